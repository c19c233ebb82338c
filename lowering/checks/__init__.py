"""Checks of a running program: assertions that are added to the code of every target (docs/checks.md)."""
