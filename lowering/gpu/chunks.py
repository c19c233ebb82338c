"""Elementwise operations on a GPU, in chunks: a work-item moves several elements that stand side by side at once.

There are fewer instructions that way for the same lines of memory. What is computed of each element is not
vectorised: GPUs do that across work-items.
"""

from collections.abc import Sequence
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.gpu.launchers import Launchers
from devscope.lowering.interop import bindings
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.nest import Nest, Operand, collapse_loops, match, product_of
from devscope.lowering.kernels.nest_bodies import clone_body, uses
from devscope.lowering.kernels.schedule_report import NOTED
from devscope.lowering.kernels.table import Schedules
from devscope.lowering.mlir_util import Builder

KIND = "chunks"

_WIDTHS = (8, 16, 32, 64)


def choose_chunks(module: Any, schedules: Schedules) -> None:
    """Note at the elementwise operations on buffers of ``module`` how many bytes the rows of ``schedules`` say."""
    linalg = bindings.load("_mlir_libs._mlirDialectsLinalg")
    for op in mlir_util.walk(module.operation):
        if not op.name.startswith("linalg.") or not Launchers.is_launched(op):
            continue
        nest = match(op, linalg)
        if nest is None or not nest.parallel or not _is_elementwise(nest):
            continue
        elements = product_of(nest.static_extent(loop) for loop in range(len(nest.parallel)))
        element = str(ir.MemRefType(nest.results[0].value.type).element_type)
        row = schedules.choose(op, KIND, element, {"elements": elements})
        if row is not None:
            op.attributes[NOTED] = ir.IntegerAttr.get(
                ir.IntegerType.get_signless(64, op.context), row.numbers["bytes"]
            )


def lower_in_chunks(function: Any, alignment: int) -> bool:
    """Make one loop of chunks of what ``function`` has: elementwise operations with rows for that, and constants.
    False if it stays. ``alignment``: of buffers, in bytes."""
    ops = [op for op in mlir_util.children(function) if op.name not in ("arith.constant", "func.return")]
    if not ops or not all(NOTED in op.attributes for op in ops):
        return False
    linalg = bindings.load("_mlir_libs._mlirDialectsLinalg")
    nests = [nest for op in ops if (nest := match(op, linalg))]
    assert len(nests) == len(ops)
    collapse_loops(*nests)
    lanes = min(ir.IntegerAttr(op.attributes[NOTED]).value for op in ops) // max(map(_widest, nests))
    if lanes < 2 or any(len(nest.parallel) > 1 for nest in nests):
        return False
    _emit(nests, lanes, alignment)
    for op in ops:
        op.erase()
    return True


def _is_elementwise(nest: Nest) -> bool:
    """Whether buffers have an element for each iteration, in the same order, that can be moved with others."""
    every = tuple(range(len(nest.parallel)))
    body = [inner for op in mlir_util.children(nest.op) for inner in mlir_util.walk(op)]
    if not nest.is_pure or not all(nest.parallel) or any(op.name == "linalg.index" for op in body):
        return False
    return all(
        operand.dims == every
        and mlir_util.is_whole_buffer(operand.value.type)
        and _is_number(ir.MemRefType(operand.value.type).element_type)
        for operand in _buffers(nest)
    )


def _is_number(type_: Any) -> bool:
    if isinstance(type_, ir.IntegerType):
        return type_.width in _WIDTHS
    return isinstance(type_, ir.F16Type | ir.F32Type | ir.F64Type)


def _buffers(nest: Nest) -> list[Operand]:
    return [operand for operand in nest.operands if operand.is_buffer]


def _widest(nest: Nest) -> int:
    return max(mlir_util.element_bytes(ir.MemRefType(each.value.type).element_type) for each in _buffers(nest))


def _emit(nests: Sequence[Nest], lanes: int, alignment: int) -> None:
    build = Builder(nests[-1].op)  # behind views of the buffers of all
    extent, size, zero, one = (
        nests[0].extent(build, 0),
        build.constant(lanes),
        build.constant(0),
        build.constant(1),
    )
    known = nests[0].static_extent(0)
    count = build.value("arith.ceildivui", [extent, size], build.index)
    loop = build.grouped("scf.parallel", [[zero], [count], [one], []], regions=1)
    block = ir.Block.create_at_start(loop.regions[0], [build.index], [loop.location])
    inside = Builder(ir.Operation.create("scf.reduce", loc=loop.location, ip=ir.InsertionPoint(block)))
    begin = inside.value("arith.muli", [block.arguments[0], size], build.index)
    if known is not None and known % lanes == 0:
        _emit_chunk(inside, nests, begin, lanes, alignment)
        return
    text = """
        %end = arith.addi %0, %1 : index
        %has_all = arith.cmpi ule, %end, %2 : index
        %one = arith.constant 1 : index
        scf.if %has_all {
        } else {
          scf.for %at = %0 to %2 step %one {
          }
        }"""
    branch = inside.insert(text, [begin, size, extent])[-1]
    whole, rest = (region.blocks[0] for region in branch.regions)
    _emit_chunk(Builder(list(whole.operations)[-1].operation), nests, begin, lanes, alignment)
    elements = next(iter(rest.operations)).operation
    at = mlir_util.entry_block(elements).arguments[0]
    _emit_chunk(Builder(mlir_util.children(elements)[-1]), nests, at, 1, alignment)


def _emit_chunk(build: Builder, nests: Sequence[Nest], at: Any, lanes: int, alignment: int) -> None:
    """``lanes`` elements from ``at`` on, of one operation after the other."""
    for nest in nests:
        arguments = list(mlir_util.entry_block(nest.op).arguments)
        used = uses(nest.op)
        loaded = {
            argument: _load(build, operand, at, lanes, alignment) if operand.is_buffer else [operand.value] * lanes
            for argument, operand in zip(arguments, nest.operands, strict=True)
            if used[argument]
        }
        made = [
            clone_body(build, nest.op, {argument: values[lane] for argument, values in loaded.items()}, {}, False)
            for lane in range(lanes)
        ]
        for operand, values in zip(nest.results, zip(*made, strict=True), strict=True):
            _store(build, operand, at, values, alignment)


def _load(build: Builder, operand: Operand, at: Any, lanes: int, alignment: int) -> list[Any]:
    element = ir.MemRefType(operand.value.type).element_type
    if lanes == 1:
        return [build.value("memref.load", [operand.value, at], element)]
    type_ = ir.VectorType.get_unchecked([lanes], element, context=element.context)
    vector = build.value("vector.load", [operand.value, at], type_, _aligned(type_, alignment))
    positions = (ir.DenseI64ArrayAttr.get([lane], element.context) for lane in range(lanes))
    return [build.value("vector.extract", [vector], element, {"static_position": each}) for each in positions]


def _store(build: Builder, operand: Operand, at: Any, values: Sequence[Any], alignment: int) -> None:
    if len(values) == 1:
        build.op("memref.store", [values[0], operand.value, at])
        return
    element = values[0].type
    type_ = ir.VectorType.get_unchecked([len(values)], element, context=element.context)
    vector = build.value("vector.from_elements", list(values), type_)
    build.op("vector.store", [vector, operand.value, at], attributes=_aligned(type_, alignment))


def _aligned(type_: Any, alignment: int) -> dict[str, Any]:
    """What says so of a vector of a chunk."""
    (lanes,), element = ir.VectorType(type_).shape, ir.VectorType(type_).element_type
    bytes_ = mlir_util.element_bytes(element)
    i64 = ir.IntegerType.get_signless(64, type_.context)
    return {"alignment": ir.IntegerAttr.get(i64, max(bytes_, min(alignment, lanes * bytes_)))}
