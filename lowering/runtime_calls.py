"""Turns what host code cannot do by itself into calls of the native runtime: whatever touches device memory,
allocation of host memory, and assertions.

Device memrefs carry the ``#device.scope`` they live in as memory space until here. Afterwards the module is
ordinary host code: no memory spaces, no ``gpu`` operations, only calls to ``devscope_*`` functions, whose
translation from memrefs to handles stands in ``runtime_calls.mlir``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import resources
from typing import Any

from devscope.errors import LoweringError
from devscope.lowering import mlir_util
from devscope.lowering.assertions import is_assertion, lower_assertions
from devscope.lowering.constants import CONSTANT_PREFIX, constant_number
from devscope.lowering.flush import FLUSH, lower_flush
from devscope.lowering.gpu.launch_calls import lower_launch
from devscope.lowering.interop.bindings import ir
from devscope.lowering.memory.buffers import has_plain_type
from devscope.lowering.memory.effects import END_VIEW, FILLED, PUBLISH, VIEW, WRITTEN
from devscope.lowering.memory.storage import STORAGE_ATTR, PlaceCalls
from devscope.lowering.mlir_util import Builder

HOST_SLOT = 0
#: Symbols of ``memref.global`` operations that stand for entries of the program's constant table.

Slots = Mapping[str, int]


def lower_to_runtime_calls(module: Any, slots: Slots, kernels: Mapping[str, int]) -> None:
    """Rewrite ``module`` in place.

    ``slots`` maps the text of a memory space attribute to a runtime slot, ``kernels`` a kernel
    function to its number within its device.
    """
    ops = list(mlir_util.walk(module.operation))
    places = PlaceCalls()
    work = [item for op in ops if (item := _classify(op, slots, places)) is not None]
    assertions = [op for op in ops if is_assertion(op)]
    flushes = [op for op in ops if op.name == FLUSH]
    mlir_util.retype_memrefs(module.operation, None, lambda space: space is not None)
    for op, rewrite, where in work:
        rewrite(op, where, kernels)
    for op in flushes:
        lower_flush(op)
    lower_assertions(module, assertions)
    _remove_constant_globals(module)
    _append_support_functions(module)


def _slot_of(value: Any, slots: Slots) -> int | None:
    """Slot of a memref's memory; None if the value is not a memref."""
    if not mlir_util.is_memref(value.type):
        return None
    space = mlir_util.memory_space(value.type)
    return HOST_SLOT if space is None else slots[str(space)]


Rewrite = Callable[[Any, tuple[int, ...], Mapping[str, int]], None]


def _classify(op: Any, slots: Slots, places: PlaceCalls) -> tuple[Any, Rewrite, tuple[int, ...]] | None:
    """The rewrite that ``op`` needs and the slots of the memrefs involved, read before spaces are erased."""
    if op.name == "memref.get_global":
        if not _is_constant_symbol(op):
            return None
        return op, _constant, (_required(_slot_of(op.results[0], slots)),)
    if op.name == "gpu.launch_func":
        return op, lower_launch, (_launch_slot(op, slots),)
    rewrite = _REWRITES.get(op.name)
    if rewrite is None:
        return None
    if STORAGE_ATTR in op.attributes:
        return op, places.lower, (_required(_slot_of((*op.results, *op.operands)[0], slots)),)
    values = [*op.operands, *op.results]
    where = tuple(slot for v in values if (slot := _slot_of(v, slots)) is not None)
    if any(where) or op.name == PUBLISH:
        return op, rewrite, where
    return (op, _host_alloc, where) if op.name == "memref.alloc" and has_plain_type(op) else None


def _required(slot: int | None) -> int:
    assert slot is not None
    return slot


def _alloc(op: Any, where: tuple[int, ...], kernels: Mapping[str, int]) -> None:
    build = Builder(op)
    type_ = ir.MemRefType(op.results[0].type)
    dynamic = list(op.operands)
    size = build.allocation_bytes(type_, dynamic)
    slot = build.constant(where[0], build.i64)
    raw = build.call("devscope_alloc_buffer", [slot, size], [build.bytes_type()]).results[0]
    mlir_util.replace_op(op, [build.view(raw, dynamic, type_)])


def _host_alloc(op: Any, where: tuple[int, ...], kernels: Mapping[str, int]) -> None:
    """MLIR's own lowering, left to buffers of unusual types, takes a negative or too large size for another one.

    Releasing is left to it: it knows which pointer an allocation gave.
    """
    build = Builder(op)
    type_ = ir.MemRefType(op.results[0].type)
    dynamic = list(op.operands)
    size = build.allocation_bytes(type_, dynamic)
    raw = build.call("devscope_host_buffer", [size], [build.bytes_type()]).results[0]
    mlir_util.replace_op(op, [build.view(raw, dynamic, type_)])


def _dealloc(op: Any, where: tuple[int, ...], kernels: Mapping[str, int]) -> None:
    build = Builder(op)
    pointer = build.pointer(op.operands[0])
    build.call("devscope_free_buffer", [build.constant(where[0], build.i64), pointer])
    op.erase()


def _copy(op: Any, where: tuple[int, ...], kernels: Mapping[str, int]) -> None:
    """Contiguous parts only: strided copies on one device became kernels, and none cross devices."""
    build = Builder(op)
    source, target = op.operands
    build.call(
        "devscope_copy_bytes",
        [
            build.constant(where[0], build.i64),
            build.pointer(source),
            _byte_offset(build, source),
            build.constant(where[1], build.i64),
            build.pointer(target),
            _byte_offset(build, target),
            build.byte_size(target),
        ],
    )
    op.erase()


def _view(op: Any, where: tuple[int, ...], kernels: Mapping[str, int]) -> None:
    """A whole buffer of a device as the host or another device sees it."""
    build = Builder(op)
    type_ = ir.MemRefType(op.results[0].type)
    source = op.operands[0]
    sizes = [build.dim(source, axis) for axis in range(type_.rank) if type_.is_dynamic_dim(axis)]
    operands = [build.constant(where[0], build.i64), build.pointer(source), build.byte_size(source)]
    on_host = where[1] == HOST_SLOT
    callee = "devscope_map_buffer" if on_host else "devscope_view_buffer"
    if on_host and FILLED in op.attributes:
        raw = build.call("devscope_map_new_buffer", operands, [build.bytes_type()]).results[0]
    else:
        last = build.constant(int(WRITTEN in op.attributes) if on_host else where[1], build.i64)
        raw = build.call(callee, [*operands, last], [build.bytes_type()]).results[0]
    mlir_util.replace_op(op, [build.view(raw, sizes, type_)])


def _publish(op: Any, where: tuple[int, ...], kernels: Mapping[str, int]) -> None:
    build = Builder(op)
    build.call("devscope_publish_buffer", [build.pointer(op.operands[0])])
    op.erase()


def _end_view(op: Any, where: tuple[int, ...], kernels: Mapping[str, int]) -> None:
    build = Builder(op)
    pairs = zip(where, op.operands, strict=True)
    operands = [item for slot, value in pairs for item in (build.constant(slot, build.i64), build.pointer(value))]
    build.call("devscope_done_with_view", operands)
    op.erase()


def _byte_offset(build: Builder, memref: Any) -> Any:
    """Where a view begins in its buffer."""
    type_ = ir.MemRefType(memref.type)
    if type_.get_strides_and_offset()[1] == 0:
        return build.constant(0)
    return build.multiply(build.metadata(memref)[0], build.constant(mlir_util.element_bytes(type_.element_type)))


def _load(op: Any, where: tuple[int, ...], kernels: Mapping[str, int]) -> None:
    """A scalar read on the host from device memory: a copy of one element that waits for the device."""
    build = Builder(op)
    memref, *indices = op.operands
    type_ = ir.MemRefType(memref.type)
    position, _, strides = build.metadata(memref)
    for index, stride in zip(indices, strides, strict=True):
        position = build.add(position, build.multiply(index, stride))
    size = build.constant(mlir_util.element_bytes(type_.element_type))
    cell_type = ir.MemRefType.get([], type_.element_type, loc=op.location)
    cell = build.value(
        "memref.alloca", [], cell_type, {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0], op.context)}
    )
    build.call(
        "devscope_copy_bytes",
        [
            build.constant(where[0], build.i64),
            build.pointer(memref),
            build.multiply(position, size),
            build.constant(HOST_SLOT, build.i64),
            build.pointer(cell),
            build.constant(0),
            size,
        ],
    )
    mlir_util.replace_op(op, [build.value("memref.load", [cell], op.results[0].type)])


def _is_constant_symbol(op: Any) -> bool:
    return ir.FlatSymbolRefAttr(op.attributes["name"]).value.startswith(CONSTANT_PREFIX)


def _constant(op: Any, where: tuple[int, ...], kernels: Mapping[str, int]) -> None:
    build = Builder(op)
    number = constant_number(ir.FlatSymbolRefAttr(op.attributes["name"]).value)
    type_ = ir.MemRefType(op.results[0].type)
    size = mlir_util.element_bytes(type_.element_type)
    for extent in type_.shape:
        size *= extent
    operands = [build.constant(n, build.i64) for n in (where[0], number, size)]
    raw = build.call("devscope_constant_buffer", operands, [build.bytes_type()]).results[0]
    mlir_util.replace_op(op, [build.view(raw, [], type_)])


def _launch_slot(op: Any, slots: Slots) -> int:
    found = {slot for v in op.operands if (slot := _slot_of(v, slots)) is not None and slot != HOST_SLOT}
    if len(found) != 1:
        raise LoweringError(f"a kernel must touch the memory of exactly one device, not of {len(found)}")
    return found.pop()


_REWRITES: dict[str, Rewrite] = {
    "memref.alloc": _alloc,
    "memref.dealloc": _dealloc,
    "memref.copy": _copy,
    "memref.load": _load,
    VIEW: _view,
    END_VIEW: _end_view,
    PUBLISH: _publish,
}


def _remove_constant_globals(module: Any) -> None:
    for op in mlir_util.children(module.operation):
        if op.name == "memref.global" and mlir_util.symbol_name(op).startswith(CONSTANT_PREFIX):
            op.erase()


def _append_support_functions(module: Any) -> None:
    text = resources.files("devscope.lowering").joinpath("runtime_calls.mlir").read_text()
    support = ir.Module.parse(text, module.context)
    for op in mlir_util.children(support.operation):
        module.body.append(op)
