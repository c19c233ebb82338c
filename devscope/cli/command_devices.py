"""``devscope devices``: what this machine has."""

from __future__ import annotations

import argparse
import json

NAME = "devices"
HELP = "list the devices of this machine"
EPILOG = """\
example:
  devscope devices --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def execute(arguments: argparse.Namespace) -> int:
    from devscope.runtime.devices import list_devices

    devices = list_devices()
    if arguments.json:
        print(json.dumps([device.to_json() for device in devices], indent=2))
        return 0
    for device in devices:
        print(device.describe())
    return 0
