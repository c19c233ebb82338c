"""What devscope knows of each type of device: one module per driver."""
