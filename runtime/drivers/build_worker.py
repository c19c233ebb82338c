"""The process in which `build_apart` lets a driver build: a binary from stdin, what it made of it to stdout."""

import os
import sys

from devscope.errors import DeviceError
from devscope.runtime.drivers import driver
from devscope.runtime.drivers.build_apart import REFUSED


def _main(name: str) -> int:
    # What drivers print must not get between.
    output = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    binary = sys.stdin.buffer.read()
    try:
        of_type = driver(name.partition(":")[0])
        device = of_type.find(name) if of_type is not None else None
        if device is None:
            raise DeviceError(f"there is no {name}")
        _, built = device.build(binary, None)
        if built is not None:
            device.build(binary, built)
    except DeviceError as error:
        print(error, file=sys.stderr)
        return REFUSED
    with open(output, "wb") as file:
        file.write(built or b"")
    return 0


if __name__ == "__main__":
    status = _main(sys.argv[1])
    sys.stderr.flush()
    os._exit(status)  # a driver's clean-up is nothing to wait for
