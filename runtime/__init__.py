"""Runs compiled programs: devices, executables, saved files. Needs neither MLIR nor xDSL."""
