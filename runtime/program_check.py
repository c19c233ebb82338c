"""What must hold of a program, whoever made it, before anything of it is loaded.

Numbers that are legal here make no table too large for memory and no arithmetic on sizes overflow.
"""

import math
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence

from devscope.errors import ExecutableFormatError
from devscope.runtime.dtypes import DTYPES, ENTRY_DTYPES
from devscope.runtime.native import CALL_PREFIX
from devscope.runtime.program import (
    DYNAMIC_LOCAL_SIZE,
    ArenaSpec,
    ConstantSpec,
    DeviceSpec,
    Entry,
    Program,
    TensorSpec,
    memory_of,
)

MOST_BYTES = 1 << 56
"""No tensor, arena or constant is larger, in bytes."""

_MOST_DIMENSIONS = 64  # numpy's limit
_MOST_DEVICES = 1024
_MOST_ARGUMENTS = 1 << 16
_MOST_LOCAL_BYTES = 1 << 30
_MOST_ALIGNMENT = 1 << 20
_CELL_BYTES = 8
_DEVICE_TYPE = re.compile(r"[A-Za-z][\w.-]*")
_NAME = re.compile(r"[^\0]+")


def check_program(program: Program) -> None:
    """Raises :class:`ExecutableFormatError` when parts of the program contradict each other, or make no sense."""
    if len(program.devices) > _MOST_DEVICES:
        raise ExecutableFormatError(f"the program has {len(program.devices)} devices")
    slots = program.slots()
    for problem in _problems(program, slots):
        raise ExecutableFormatError(problem)


def _problems(program: Program, slots: Sequence[DeviceSpec]) -> Iterator[str]:
    """Each may assume that there were none of those before it."""
    for name, entry in program.entries.items():
        yield from _of_entry(name, entry)
    for device in slots:
        yield from _of_device(device)
    if doubled := _doubled(device.name for device in slots):
        yield f"two slots are '{doubled}'"
    for arena in program.arenas:
        yield from _of_arena(arena, program, len(slots))
    if _doubled(arena.slot for arena in program.arenas) is not None:
        yield "a slot has two arenas"
    if any(not 0 <= low < high < len(slots) for low, high in program.shared):
        yield f"the slots {program.shared} that share memory are not the program's"
    yield from _of_uses(program)
    for index, spec in enumerate(program.constants):
        yield from _of_tensor(f"constant {index}", spec)
    if len(program.constants) != len(program.constant_data):
        yield f"the program has {len(program.constants)} constants and data for {len(program.constant_data)}"
    for index, (spec, data) in enumerate(zip(program.constants, program.constant_data, strict=True)):
        if (size := memory_of(data).nbytes) != spec.nbytes:
            yield f"constant {index} has {size} bytes, type {spec.shape} {spec.dtype} needs {spec.nbytes}"


def _of_uses(program: Program) -> Iterator[str]:
    for backend, names in program.uses.items():
        if not _DEVICE_TYPE.fullmatch(backend) or not all(map(_NAME.fullmatch, names)):
            yield f"the functions of backend {backend!r} that it calls have no names"


def _doubled(items: Iterable[Hashable]) -> Hashable | None:
    return next((item for item, count in Counter(items).items() if count > 1), None)


def _of_entry(name: str, entry: Entry) -> Iterator[str]:
    if not _NAME.fullmatch(name) or not _NAME.fullmatch(entry.symbol) or not entry.symbol.startswith(CALL_PREFIX):
        yield f"entry {name!r} has the symbol {entry.symbol!r}, which is that of no entry"
    for kind, specs in (("argument", entry.inputs), ("result", entry.outputs)):
        if len(specs) > _MOST_ARGUMENTS:
            yield f"entry '{name}' has {len(specs)} {kind}s"
        for index, spec in enumerate(specs):
            yield from _of_tensor(f"{kind} {index} of entry '{name}'", spec)


def _of_tensor(owner: str, spec: TensorSpec | ConstantSpec) -> Iterator[str]:
    legal = ENTRY_DTYPES if isinstance(spec, TensorSpec) else DTYPES
    if spec.dtype not in legal:
        raise ExecutableFormatError(
            f"{owner} has the unknown dtype '{spec.dtype}'", notes=[f"legal dtypes are: {', '.join(legal)}"]
        )
    sizes = [size for size in spec.shape if size is not None]
    most = MOST_BYTES // legal[spec.dtype].itemsize
    if (
        len(spec.shape) > _MOST_DIMENSIONS
        or any(not 0 <= size <= most for size in sizes)
        or math.prod(sizes) > most
    ):
        yield f"{owner} has the shape {spec.shape}, which no array has"
    if isinstance(spec, TensorSpec) and spec.scalar and spec.shape:
        yield f"{owner} is a scalar of shape {spec.shape}"


def _of_device(device: DeviceSpec) -> Iterator[str]:
    if not _DEVICE_TYPE.fullmatch(device.type) or not _DEVICE_TYPE.fullmatch(device.kind) or device.id < 0:
        yield f"slot {device.slot} is {device.name!r} of kind {device.kind!r}, which is no device"
    count = len(device.binaries)
    for kernel in device.kernels:
        if not _NAME.fullmatch(kernel.name):
            yield f"a kernel of '{device.name}' is called {kernel.name!r}"
        if not 0 <= kernel.binary < count:
            yield f"kernel '{kernel.name}' of '{device.name}' is in binary {kernel.binary} of {count}"
        sizes = [size for size in kernel.arg_sizes if size != DYNAMIC_LOCAL_SIZE]
        if len(kernel.arg_sizes) > _MOST_ARGUMENTS or any(
            not -_MOST_LOCAL_BYTES <= size <= _CELL_BYTES for size in sizes
        ):
            yield f"kernel '{kernel.name}' of '{device.name}' has arguments of impossible sizes"


def _of_arena(arena: ArenaSpec, program: Program, slots: int) -> Iterator[str]:
    size = max(arena.needed.values(), default=0)
    shared = [(at, length) for at, length in arena.places if at != -1 or not arena.slot]
    inside = all(0 <= at <= at + length <= size for at, length in shared)
    lengths = all(0 <= length <= MOST_BYTES for _, length in arena.places)
    alignment = 0 < arena.alignment <= _MOST_ALIGNMENT and not arena.alignment & (arena.alignment - 1)
    needed = arena.needed.keys() <= program.entries.keys() and all(
        0 <= size <= MOST_BYTES for size in arena.needed.values()
    )
    if not (0 <= arena.slot < slots and inside and lengths and alignment and needed) or any(
        at % arena.alignment for at, _ in shared
    ):
        yield f"the arena of slot {arena.slot} is wrong"
