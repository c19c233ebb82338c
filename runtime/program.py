"""What a compiled program consists of, independent of the machine that runs it.

A :class:`Program` comes out of the lowering or out of a ``.dsx`` file; an ``Executable`` runs it.
"""

import math
import mmap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from devscope.errors import ExecutableFormatError, InputError, Note
from devscope.runtime.drivers import device_types
from devscope.runtime.dtypes import DTYPES

ConstantData = bytes | bytearray | memoryview | mmap.mmap | NDArray[Any]
"""Memory of a constant: anything with the buffer protocol, C order, little endian."""


@dataclass
class TensorSpec:
    """One argument or result of an entry.

    ``shape``: sizes, ``None`` for a dimension that is known at run time only. ``scalar``: a value of the
    program that is not a tensor; it has shape ``[]``.
    """

    dtype: str
    shape: list[int | None] = field(default_factory=list[int | None])
    scalar: bool = False
    name: str = ""

    def __str__(self) -> str:
        if self.scalar:
            return self.dtype
        return "x".join([*("?" if size is None else str(size) for size in self.shape), self.dtype])


@dataclass
class Entry:
    """A public function: the symbol of its C interface in the host object, its arguments and results."""

    symbol: str
    inputs: list[TensorSpec]
    outputs: list[TensorSpec]

    def __str__(self) -> str:
        """``(x: ?x784xf32) -> (logits: ?x10xf32)``."""
        given, results = (", ".join(map(_named, specs)) for specs in (self.inputs, self.outputs))
        return f"({given}) -> ({results})"


def _named(spec: TensorSpec) -> str:
    return f"{spec.name}: {spec}" if spec.name else str(spec)


def signatures(entries: Mapping[str, Entry]) -> str:
    """``main(x: 4xf32) -> (y: 4xf32); other() -> ()``."""
    return "; ".join(f"{name}{entry}" for name, entry in entries.items())


def find_entry(entries: Mapping[str, Entry], name: str, closed: Collection[str] = ()) -> Entry:
    """The entry of this name; ``closed``: public functions that only the program can call. Raises InputError."""
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"the name of an entry comes first, and not an object of type {type(name).__name__}")
    found = entries.get(name)
    if found is None:
        notes = [f"its entries are: {', '.join(map(repr, entries))}"]
        if name in closed:
            notes.insert(0, f"'{name}' takes or returns a function: only the program itself can call it")
        elif len(entries) > 1:
            notes.append(
                Note(f"call one by its name: run('{next(iter(entries))}', ...)", flags="name one: --entry")
            )
        raise InputError(f"the program has no entry '{name}'", notes=notes)
    return found


DYNAMIC_LOCAL_SIZE = -(2**63)
"""Stands for the size of workgroup-local memory whose amount the launch says."""


@dataclass
class KernelSpec:
    """A kernel of a device.

    ``binary``: which of the device's binaries has it. ``arg_sizes[i]`` is the size in bytes of argument ``i``
    (1 for ``i1``), 0 for a buffer. A negative number asks for that many bytes of workgroup-local memory; the
    launch's cell is not read then. With `DYNAMIC_LOCAL_SIZE` the cell has the number of bytes.
    """

    name: str
    arg_sizes: list[int]
    binary: int = 0


@dataclass
class DeviceSpec:
    """A virtual device of a program.

    ``slot``: its number in compiled code, 0 is host memory. ``type`` and ``id``: its name in the source,
    ``opencl:0``. ``kind``: the target kind that ``binaries`` (SPIR-V for ``opencl``) were compiled for, one per
    target: options may differ between them.
    """

    slot: int
    type: str
    id: int
    kind: str
    binaries: list[bytes] = field(default_factory=list[bytes])
    kernels: list[KernelSpec] = field(default_factory=list[KernelSpec])

    @property
    def name(self) -> str:
        """The virtual device as users write it."""
        return f"{self.type}:{self.id}"

    @property
    def compiled_for(self) -> str:
        """The device type whose devices can run ``binaries``; it may differ from the type in the source."""
        return self.kind if self.kind in device_types() else self.type


@dataclass
class ConstantSpec:
    """Type of a constant; its data stands at the same index of :attr:`Program.constant_data`."""

    dtype: str
    shape: list[int]

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return math.prod(self.shape) * DTYPES[self.dtype].itemsize


@dataclass
class ArenaSpec:
    """The storage of the buffers in one memory whose lifetime the compiler knows.

    ``places``: offset and bytes of each; offsets are multiples of ``alignment``, or -1 for a buffer of its own,
    which devices may have. ``needed``: the bytes of the arena that a call of each entry uses.
    """

    slot: int
    alignment: int
    places: list[list[int]] = field(default_factory=list[list[int]])
    needed: dict[str, int] = field(default_factory=dict[str, int])


@dataclass(repr=False)
class Program:
    """A compiled program: host code, device binaries, constants, and what the compiler reports.

    ``host_object``: a relocatable ELF object, to which the loader links the native runtime. ``devices``: one per
    slot; slot 0 may be left out and is host memory then. ``shared``: pairs of slots, the lower first, whose
    devices must reach each other's memory. ``report``: JSON data, not interpreted here. ``objects``: what backends
    compiled, linked with the host object. ``uses``: for each backend, the functions of its
    `runtime.plugins.Runtime` that host code calls.
    """

    entries: dict[str, Entry]
    host_object: bytes
    host_triple: str
    host_cpu: str = ""
    host_features: str = ""
    devices: list[DeviceSpec] = field(default_factory=list[DeviceSpec])
    constants: list[ConstantSpec] = field(default_factory=list[ConstantSpec])
    constant_data: Sequence[ConstantData] = ()
    arenas: list[ArenaSpec] = field(default_factory=list[ArenaSpec])
    shared: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    report: dict[str, Any] = field(default_factory=dict[str, Any])
    objects: list[bytes] = field(default_factory=list[bytes])
    uses: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def __repr__(self) -> str:
        """Its functions, with the names, shapes and dtypes of what they take and give, and its devices."""
        devices = ", ".join(dict.fromkeys(("cpu:0", *(device.name for device in self.devices))))
        return f"<Program {signatures(self.entries)} for {devices}>"

    def slots(self) -> list[DeviceSpec]:
        """The devices in the order of their slots, with slot 0 filled in.

        Raises :class:`ExecutableFormatError` when slots are missing or double.
        """
        devices = sorted(self.devices, key=lambda device: device.slot)
        if not devices or devices[0].slot != 0:
            devices.insert(0, DeviceSpec(0, "cpu", 0, "cpu"))
        if [device.slot for device in devices] != list(range(len(devices))):
            raise ExecutableFormatError(
                f"the program's device slots are {[device.slot for device in devices]}",
                notes=["slots count from 0 (host memory) without gaps"],
            )
        for device in devices:
            if (device.slot == 0) != (device.compiled_for == "cpu"):
                raise ExecutableFormatError(
                    f"slot {device.slot} is '{device.name}'; slot 0 must be host memory, the others devices"
                )
        return devices


def memory_of(data: ConstantData) -> NDArray[np.uint8]:
    """The bytes of a constant as a flat array that shares its memory (strided arrays are copied)."""
    if isinstance(data, np.ndarray):
        return np.ascontiguousarray(data).reshape(-1).view(np.uint8)
    view = memoryview(data)
    if view.nbytes == 0:
        return np.empty(0, np.uint8)
    return np.frombuffer(view, np.uint8)
