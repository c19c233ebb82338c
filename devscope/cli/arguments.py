"""Command-line parsing that all of devscope's tools share."""

from __future__ import annotations

import argparse
from typing import NoReturn

from devscope.errors import OptionError


class Parser(argparse.ArgumentParser):
    """Reports bad options as one message and status 1, like every other user error.

    argparse on its own would print the usage and exit with status 2.
    """

    def error(self, message: str) -> NoReturn:
        self.exit(1, f"error: {message}\n  note: options are listed by: {self.prog} --help\n")


def parse_device_mapping(text: str) -> dict[str, str]:
    """``cuda:0=opencl:0,opencl:1=cpu:0`` as a mapping from virtual to physical devices."""
    mapping: dict[str, str] = {}
    for item in filter(None, text.split(",")):
        virtual, separator, physical = (part.strip() for part in item.partition("="))
        if not separator or not virtual or not physical:
            raise OptionError(
                f"'{item}' does not map a device", notes=["write VIRTUAL=PHYSICAL, such as cuda:0=opencl:0"]
            )
        if mapping.setdefault(virtual, physical) != physical:
            raise OptionError(f"'{virtual}' is mapped to both {mapping[virtual]} and {physical}")
    return mapping
