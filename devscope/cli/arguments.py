"""Command-line parsing that all of devscope's tools share."""

from __future__ import annotations

import argparse
from typing import Any, NoReturn

from devscope.errors import OptionError


class Parser(argparse.ArgumentParser):
    """Reports bad options as one message and status 1, like every other user error.

    argparse on its own would print the usage and exit with status 2. Options cannot be abbreviated, so that new
    ones break no scripts; the epilog is printed as it was written.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, **settings)

    def error(self, message: str) -> NoReturn:
        self.exit(1, f"error: {message}\n  note: options are listed by: {self.prog} --help\n")


def count(text: str) -> int:
    """An option's value that is a whole number, 0 or more."""
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of 0 or more")
    return int(text)


def parse_device_mapping(text: str) -> dict[str, str]:
    """``cuda:0=opencl:0,opencl:1=cpu:0`` as a mapping from virtual to physical devices. Raises OptionError.

    A device alone, ``cuda:0``, is mapped to itself.
    """
    advice = "write VIRTUAL=PHYSICAL, such as cuda:0=opencl:0"
    items = [item if "=" in item else f"{item}={item}" for item in text.split(",") if item.strip()]
    return _parse_pairs(",".join(items), "does not map a device", advice, "is mapped to both '{}' and '{}'")


def parse_limits(text: str) -> dict[str, str]:
    """``opencl:0=64MiB,cpu:0=1GiB`` as a mapping. Raises OptionError."""
    advice = "write DEVICE=SIZE, such as opencl:0=64MiB"
    return _parse_pairs(text, "is not a limit", advice, "has two limits, {} and {}")


def _parse_pairs(text: str, refusal: str, advice: str, contradiction: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        device, _, value = (part.strip() for part in item.partition("="))
        if not device or not value:
            raise OptionError(f"'{item}' {refusal}", notes=[advice])
        if pairs.setdefault(device, value) != value:
            raise OptionError(f"'{device}' {contradiction.format(pairs[device], value)}")
    return pairs
