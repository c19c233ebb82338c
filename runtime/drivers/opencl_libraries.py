"""Finds OpenCL drivers without any help from the user's environment.

Two kinds of libraries are tried: the CPU runtime that pip installs (package ``intel-opencl-rt``), called
directly since pip cannot register it with the system; and one ICD loader, which knows the drivers that the
system has.
"""

import contextlib
import ctypes
import glob
import os
import site
import sys
from collections.abc import Iterator

from devscope.runtime.drivers.opencl_api import OpenCLLibrary

CPU_RUNTIME = "libintelocl.so"
CPU_RUNTIME_PACKAGE = "intel-opencl-rt"
LOADER = "libOpenCL.so.1"
VENDORS = "/etc/OpenCL/vendors"

# What the CPU runtime needs and what may lie in another directory than its own.
_CPU_RUNTIME_NEEDS = ("libintlc.so.5", "libirng.so", "libimf.so", "libsvml.so", "libtbb.so.12")


def load_libraries() -> tuple[list[OpenCLLibrary], list[str]]:
    """Loads every library through which platforms can be found, and says what could not be loaded."""
    libraries: list[OpenCLLibrary] = []
    problems: list[str] = []
    for path in _cpu_runtimes():
        try:
            libraries.append(_load_cpu_runtime(path))
            break
        except OSError as error:
            problems.append(f"{path} could not be loaded: {error}")
    if (loader := _first_loader()) is not None:
        libraries.append(loader)
    else:
        libraries.extend(_vendor_libraries(problems))
    return libraries, problems


def _prefixes() -> list[str]:
    """Where pip puts the ``lib`` directory of a wheel's data, most likely place first."""
    prefixes = [sys.prefix, sys.base_prefix]
    with contextlib.suppress(Exception):
        prefixes.append(site.getuserbase())
    return list(dict.fromkeys(prefixes))


def _cpu_runtimes() -> Iterator[str]:
    for prefix in _prefixes():
        path = os.path.join(prefix, "lib", CPU_RUNTIME)
        if os.path.exists(path):
            yield path
    # Unusual places (pip install --target, ...): the wheel's list of files knows. Reading it takes longer
    # than loading the driver, so it comes last.
    from importlib.metadata import PackageNotFoundError, files

    with contextlib.suppress(PackageNotFoundError):
        for file in files(CPU_RUNTIME_PACKAGE) or ():
            if file.name == CPU_RUNTIME:
                yield os.path.realpath(str(file.locate()))


def _load_cpu_runtime(path: str) -> OpenCLLibrary:
    """Loads the CPU runtime; its dependencies are separate packages that may be elsewhere."""
    try:
        return OpenCLLibrary(path)
    except OSError:
        directories = [os.path.dirname(path), *(os.path.join(prefix, "lib") for prefix in _prefixes())]
        for name in _CPU_RUNTIME_NEEDS:
            for directory in directories:
                # Not RTLD_GLOBAL: libimf would replace the process's math functions.
                with contextlib.suppress(OSError):
                    ctypes.CDLL(os.path.join(directory, name))
                    break
        return OpenCLLibrary(path)


def _loaders() -> Iterator[str]:
    """The system's ICD loader, else one that a Python package brought along."""
    yield LOADER
    for prefix in _prefixes():
        yield os.path.join(prefix, "lib", LOADER)
    for directory in sys.path:
        yield from sorted(glob.glob(os.path.join(directory, "pyopencl", ".libs", "libOpenCL*.so*")))


def _first_loader() -> OpenCLLibrary | None:
    for path in _loaders():
        package, libs = os.path.split(os.path.dirname(path))
        if libs == ".libs":
            # pyopencl's loader reads this variable without a check; importing pyopencl sets it, too.
            os.environ.setdefault("PYOPENCL_HOME", package)
        with contextlib.suppress(OSError):
            return OpenCLLibrary(path)
    return None


def _vendor_libraries(problems: list[str]) -> Iterator[OpenCLLibrary]:
    """Without a loader, the registered drivers that export the API themselves."""
    for icd in sorted(glob.glob(os.path.join(VENDORS, "*.icd"))):
        try:
            with open(icd, encoding="utf-8") as file:
                path = file.read().strip()
            yield OpenCLLibrary(path)
        except OSError as error:
            problems.append(f"{icd}: {error}")
