"""Turns what host code cannot do by itself into calls of the native runtime: whatever touches device memory,
allocation of host memory, launches, and assertions.

Device memrefs carry the ``#device.scope`` they live in as memory space until here. Afterwards the module is
ordinary host code: no memory spaces, no ``gpu`` operations, only calls to ``devscope_*`` functions, which
``runtime_calls.mlir`` declares or defines.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib import resources
from typing import Any

from devscope.errors import LoweringError
from devscope.lowering import mlir_util
from devscope.lowering.checks.assertions import CHECK, DIFFERENCE
from devscope.lowering.checks.indices import STATUS
from devscope.lowering.constants import CONSTANT_PREFIX, constant_number
from devscope.lowering.entries import KEEP, KEPT
from devscope.lowering.gpu.local_memory import STATIC_LOCAL
from devscope.lowering.interop.bindings import ir
from devscope.lowering.interop.diagnostics import decode_location
from devscope.lowering.memory.buffers import has_plain_type
from devscope.lowering.memory.effects import END_VIEW, FILLED, PUBLISH, VIEW, WRITTEN
from devscope.lowering.memory.plan import STORAGE_ATTR, PlaceCalls
from devscope.lowering.mlir_util import Builder
from devscope.lowering.results import RESULT_ATTR
from devscope.lowering.runtime_builder import RuntimeBuilder
from devscope.lowering.target import HOST_SLOT

_FLUSH = "device.flush"
"""The end of a device function in host code: its device starts what was enqueued, the host goes on beside it. The
place is marked while device functions are functions of their own; later they may be inlined."""

Slots = Mapping[str, int]
Rewrite = Callable[[Any, list[int]], None]
"""Replaces an operation whose memrefs, operands and then results, are in the memory of these slots."""


def mark_flushes(launchers: Any, slot: int) -> None:
    """Mark the ends of the functions in ``launchers`` that launch kernels."""
    i64 = ir.IntegerType.get_signless(64, launchers.context)
    for func in mlir_util.functions(launchers):
        ops = mlir_util.walk(func)
        if any(op.name == "gpu.launch_func" for op in ops):
            for op in ops:
                if op.name == "func.return":
                    Builder(op).op(_FLUSH, attributes={"slot": ir.IntegerAttr.get(i64, slot)})


def lower_to_runtime_calls(
    module: Any, slots: Slots, kernels: Mapping[str, int], reports: Sequence[str] = ()
) -> None:
    """Rewrite ``module`` in place.

    ``slots`` maps the text of a memory space attribute to a runtime slot, ``kernels`` a kernel
    function to its number within its device. ``reports``: what kernels report, by numbers from 1.
    """
    messages: dict[str, str] = {}
    ops = mlir_util.walk(module)
    compared = _Compared(ops)
    rewrites = {
        **_REWRITES,
        "gpu.launch_func": partial(_launch, kernels),
        "cf.assert": partial(_assert, messages, compared),
    }
    places = PlaceCalls()
    work: list[tuple[Any, Rewrite, list[int]]] = []
    for op in ops:
        rewrite = rewrites.get(op.name)
        if rewrite is None:
            continue
        where = _slots_of(op, slots)
        if STORAGE_ATTR in op.attributes:
            work.append((op, places.lower, where))
        elif op.name not in _LOWERED_BY_MLIR or any(where) or (op.name == "memref.alloc" and has_plain_type(op)):
            work.append((op, rewrite, where))
    mlir_util.retype_memrefs(module.operation, None, lambda space: space is not None)
    for op, rewrite, where in work:
        rewrite(op, where)
    for op in mlir_util.children(module.operation):
        if op.name == "memref.global" and mlir_util.symbol_name(op).startswith((CONSTANT_PREFIX, STATUS)):
            op.erase()
    for text, symbol in messages.items():
        _define_text(module, symbol, text)
    if reports:
        _define_text(module, _REPORTS, "\0".join(reports))
    text = resources.files("devscope.lowering").joinpath("runtime_calls.mlir").read_text()
    support = ir.Module.parse(text, module.context)
    for op in mlir_util.children(support.operation):
        module.body.append(op)


_REPORTS = "devscope_reports"


def _define_text(module: Any, symbol: str, text: str) -> None:
    data = text.encode() + b"\0"
    value, type_ = ir.StringAttr.get(data, module.context), f"!llvm.array<{len(data)} x i8>"
    mlir_util.append(module, f"llvm.mlir.global private constant @{symbol}({value}) : {type_}")


def _address(build: Builder, symbol: str, context: Any) -> Any:
    name = {"global_name": ir.FlatSymbolRefAttr.get(symbol, context)}
    return build.value("llvm.mlir.addressof", [], ir.Type.parse("!llvm.ptr", context), name)


def _slots_of(op: Any, slots: Slots) -> list[int]:
    """The slots of the memrefs among operands and results, read before spaces are erased."""
    types = [value.type for value in (*op.operands, *op.results) if mlir_util.is_memref(value.type)]
    spaces = map(mlir_util.memory_space, types)
    return [HOST_SLOT if space is None else slots[str(space)] for space in spaces]


def _number(build: Builder, number: int) -> Any:
    return build.constant(number, build.i64)


def _alloc(op: Any, where: list[int]) -> None:
    """MLIR's own lowering, left to buffers of unusual types, takes a negative or too large size for another one.

    Releasing memory of the host is left to it: it knows which pointer an allocation gave.
    """
    build = RuntimeBuilder(op)
    type_ = ir.MemRefType(op.results[0].type)
    dynamic = list(op.operands)
    size = build.allocation_bytes(type_, dynamic)
    if RESULT_ATTR in op.attributes:
        position = _number(build, ir.IntegerAttr(op.attributes[RESULT_ATTR]).value)
        raw = build.runtime_bytes("devscope_result_buffer", [position, size])
    elif where == [HOST_SLOT]:
        raw = build.runtime_bytes("devscope_host_buffer", [size])
    else:
        raw = build.runtime_buffer("devscope_alloc", [_number(build, where[0]), size], size)
    mlir_util.replace_op(op, [build.view(raw, dynamic, type_)])


def _call(
    callee: str, arguments: Callable[[Builder, Any, list[int]], list[Any]], op: Any, where: list[int]
) -> None:
    """Replace an operation without results by a call of ``callee``."""
    build = Builder(op)
    build.call(callee, arguments(build, op, where))
    op.erase()


def _handles(build: Builder, op: Any, where: list[int]) -> list[Any]:
    pairs = zip(where, op.operands, strict=True)
    return [item for slot, memref in pairs for item in _handle(build, slot, memref)]


def _handle(build: Builder, slot: int, memref: Any) -> list[Any]:
    """A buffer as the runtime's functions want it."""
    return [_number(build, slot), build.pointer(memref)]


def _ends_of_copy(build: Builder, op: Any, where: list[int]) -> list[Any]:
    """Contiguous parts only: strided copies on one device became kernels, and none cross devices."""
    operands: list[Any] = []
    for slot, memref in zip(where, op.operands, strict=True):
        operands += [*_handle(build, slot, memref), _byte_offset(build, memref)]
    return [*operands, build.byte_size(op.operands[1])]


def _view(op: Any, where: list[int]) -> None:
    """A whole buffer of a device as the host or another device sees it."""
    build = RuntimeBuilder(op)
    source = op.operands[0]
    sizes = build.dynamic_sizes(source)
    size = build.byte_size(source)
    handle = _handle(build, where[0], source)
    if where[1] != HOST_SLOT:
        raw = build.runtime_buffer("devscope_view", [*handle, _number(build, where[1])], size)
    elif FILLED in op.attributes:
        raw = build.runtime_bytes("devscope_map_new_buffer", [*handle, size])
    else:
        written = _number(build, int(WRITTEN in op.attributes))
        raw = build.runtime_buffer("devscope_map", [*handle, written], size)
    mlir_util.replace_op(op, [build.view(raw, sizes, ir.MemRefType(op.results[0].type))])


def _byte_offset(build: Builder, memref: Any) -> Any:
    """Where a view begins in its buffer."""
    type_ = ir.MemRefType(memref.type)
    if type_.get_strides_and_offset()[1] == 0:
        return build.constant(0)
    return build.multiply(build.metadata(memref)[0], build.constant(mlir_util.element_bytes(type_.element_type)))


def _load(op: Any, where: list[int]) -> None:
    """A scalar read on the host from device memory: a copy of one element that waits for the device."""
    build = Builder(op)
    memref, *indices = op.operands
    element = ir.MemRefType(memref.type).element_type
    position, _, strides = build.metadata(memref)
    for index, stride in zip(indices, strides, strict=True):
        position = build.value("arith.addi", [position, build.multiply(index, stride)], build.index)
    size = build.constant(mlir_util.element_bytes(element))
    cell = build.alloc(mlir_util.buffer_type([], element), name="memref.alloca")
    source = [*_handle(build, where[0], memref), build.multiply(position, size)]
    build.call("devscope_copy", [*source, *_handle(build, HOST_SLOT, cell), build.constant(0), size])
    mlir_util.replace_op(op, [build.value("memref.load", [cell], element)])


def _constant(op: Any, where: list[int]) -> None:
    symbol = ir.FlatSymbolRefAttr(op.attributes["name"]).value
    if not symbol.startswith((CONSTANT_PREFIX, STATUS)):
        return
    build = RuntimeBuilder(op)
    type_ = ir.MemRefType(op.results[0].type)
    if symbol.startswith(STATUS):
        callee, which = "devscope_status", _address(build, _REPORTS, op.context)
    else:
        callee, which = "devscope_constant", _number(build, constant_number(symbol))
    mlir_util.replace_op(op, [build.static_buffer(callee, [_number(build, where[0]), which], type_)])


def _kept(op: Any, where: list[int]) -> None:
    build = RuntimeBuilder(op)
    number = _number(build, op.attributes["number"].value)
    mlir_util.replace_op(op, [build.static_buffer("devscope_state", [number], op.results[0].type)])


def _buffer_to_keep(build: Builder, op: Any, where: list[int]) -> list[Any]:
    numbers = where[0], op.attributes["number"].value
    return [*(_number(build, number) for number in numbers), build.pointer(op.operands[0])]


def _launch(kernels: Mapping[str, int], op: Any, where: list[int]) -> None:
    """The kernel's arguments are passed in an array of 8-byte cells. ``kernels``: numbers within their device."""
    devices = set(where) - {HOST_SLOT}
    if len(devices) != 1:
        raise LoweringError(f"a kernel must touch the memory of exactly one device, not of {len(devices)}")
    build = Builder(op)
    # async dependencies, grid x y z, block x y z, cluster x y z, dynamic shared memory, kernel operands, ...
    groups = mlir_util.operand_groups(op)
    grid = [size for group in groups[1:7] for size in group]
    cells = [cell for value in groups[11] for cell in _cells(build, value)]
    if STATIC_LOCAL in op.attributes:  # cells of local memory of static size are not read
        cells += [_number(build, 0)] * ir.IntegerAttr(op.attributes[STATIC_LOCAL]).value
    cells += [build.value("arith.extsi", [size], build.i64) for size in groups[10]]
    array = build.alloc(mlir_util.buffer_type([len(cells)], build.i64), name="memref.alloca")
    for position, cell in enumerate(cells):
        build.op("memref.store", [cell, array, build.constant(position)])
    kernel = kernels[ir.SymbolRefAttr(op.attributes["kernel"]).value[-1]]
    numbers = _number(build, devices.pop()), _number(build, kernel)
    build.call("devscope_launch", [*numbers, *grid, build.pointer(array), _number(build, len(cells))])
    op.erase()


def _cells(build: Builder, value: Any) -> list[Any]:
    """The 8-byte cells of one kernel argument, as i64 values; a memref becomes 3 + 2 * rank of them.

    The order is that of MLIR's memref descriptor: allocated and aligned pointer, offset, sizes, strides.
    """
    type_ = value.type
    if mlir_util.is_memref(type_):
        pointer = build.pointer(value)
        offset, sizes, strides = build.metadata(value)
        fields = [pointer, pointer, offset, *sizes, *strides]
        return [build.value("arith.index_cast", [field], build.i64) for field in fields]
    if isinstance(type_, ir.IndexType):
        return [build.value("arith.index_cast", [value], build.i64)]
    if not isinstance(type_, ir.IntegerType):
        width = ir.FloatType(type_).width
        value = build.value("arith.bitcast", [value], ir.IntegerType.get_signless(width, type_.context))
    if value.type == build.i64:
        return [value]
    return [build.value("arith.extui", [value], build.i64)]


_OF_CHECKS = frozenset({"arith.cmpi", "arith.ori", "arith.subi", "arith.addi", "arith.constant"})


class _Compared:
    """What the comparisons among operations compare."""

    def __init__(self, ops: Iterable[Any]) -> None:
        self._made_by = {op.results[0]: op for op in ops if op.name in _OF_CHECKS}

    def by(self, condition: Any, difference: bool) -> list[Any]:
        """The operands of the comparison that a condition is, or begins with; none if it is something else.

        ``difference``: it compares a difference with 0; then the parts of that.
        """
        op = self._made_by.get(condition)
        while op is not None and op.name == "arith.ori":
            op = self._made_by.get(op.operands[0])
        made_by = None if op is None or not difference else self._made_by.get(op.operands[0])
        if op is None or made_by is None or made_by.name not in ("arith.subi", "arith.addi"):
            return [] if op is None else list(op.operands)
        one, other = made_by.operands
        number = self._constant(other) if made_by.name == "arith.addi" else None
        return [one, other if number is None else Builder(made_by).constant(-number)]  # x - c is x + -c by now

    def _constant(self, value: Any) -> int | None:
        op = self._made_by.get(value)
        if op is None or op.name != "arith.constant" or not isinstance(value.type, ir.IndexType):
            return None
        return ir.IntegerAttr(op.attributes["value"]).value


def _assert(messages: dict[str, str], compared: _Compared, op: Any, where: list[int]) -> None:
    """Left to MLIR, a failed assertion would end the process; the runtime leaves the program's call.

    ``messages`` are the symbols of the texts of assertions.
    """
    message = mlir_util.text_of(op, "msg")
    is_check = CHECK in op.attributes
    text = message if is_check else f"assertion failed: {message}" if message else "assertion failed"
    location = decode_location(op.location)
    if location is not None:
        text = f"{location}: {text}"  # taken apart again by the runtime's device_error.py
    symbol = messages.setdefault(text, f"devscope_message_{len(messages)}")
    build = Builder(op)
    address = _address(build, symbol, op.context)
    numbers = compared.by(op.operands[0], DIFFERENCE in op.attributes) if is_check else []
    numbers = [_as_i64(build, value) for value in numbers]
    build.call("devscope_assert", [op.operands[0], address, *(numbers or [_number(build, 0)] * 2)])
    op.erase()


def _as_i64(build: Builder, value: Any) -> Any:
    if value.type == build.i64:
        return value
    if isinstance(value.type, ir.IndexType):
        return build.value("arith.index_cast", [value], build.i64)
    return build.value("arith.extsi" if value.type.width < 64 else "arith.trunci", [value], build.i64)


_LOWERED_BY_MLIR = frozenset({"memref.alloc", "memref.dealloc", "memref.copy", "memref.load", VIEW})
"""Operations that MLIR lowers, where they are about memory of the host alone."""

_REWRITES: dict[str, Rewrite] = {
    "memref.alloc": _alloc,
    "memref.dealloc": partial(_call, "devscope_free", _handles),
    "memref.copy": partial(_call, "devscope_copy", _ends_of_copy),
    "memref.load": _load,
    "memref.get_global": _constant,
    VIEW: _view,
    END_VIEW: partial(_call, "devscope_view_done", _handles),
    PUBLISH: partial(_call, "devscope_publish_buffer", lambda build, op, _: [build.pointer(op.operands[0])]),
    KEPT: _kept,
    KEEP: partial(_call, "devscope_keep", _buffer_to_keep),
    _FLUSH: partial(_call, "devscope_start", lambda build, op, _: [_number(build, op.attributes["slot"].value)]),
}
