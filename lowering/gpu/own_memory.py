"""Buffers that iterations of parallel loops make: kernels allocate nothing.

Small ones of known size are on the stack of a work-item. Others are slices of a buffer that is made before the
loop, one for each iteration.
"""

from collections.abc import Collection, Sequence
from typing import Any

from devscope.dialects.op_facts import facts
from devscope.errors import LoweringError
from devscope.lowering import mlir_util
from devscope.lowering.gpu.local_memory import PRIVATE
from devscope.lowering.interop.bindings import ir
from devscope.lowering.interop.diagnostics import decode_location
from devscope.lowering.mlir_util import Builder

_PRIVATE_BYTES = 4096
"""What a work-item has on its stack, at most, of a buffer."""

_ALIGNMENT = 64
"""Of slices, in bytes."""

_PARALLEL = ("scf.forall", "scf.parallel")
_LOOPS = ("scf.for", "scf.while")
_ENDS = ("scf.yield", "scf.condition")


def allocate_before_kernels(module: Any) -> None:
    """Of all buffers that iterations of parallel loops of ``module`` make.

    Raises LoweringError, located, for what kernels cannot have.
    """
    for op in mlir_util.named(module.operation, "memref.alloc"):
        if not (loops := _loops_around(op, _PARALLEL)):
            if mlir_util.is_in_body(op):
                raise LoweringError(
                    "a kernel cannot make a tensor in the body of an operation of linalg",
                    decode_location(op.location),
                    ["compute with elements there, or place this on the host"],
                )
            continue
        values = _same_memory(op.results[0])
        users = [use.owner.operation for value in values for use in value.uses]
        if any(user.name in _ENDS and user.parent.operation in _loops_around(op, _LOOPS) for user in users):
            raise LoweringError(
                "a kernel cannot make a new buffer in each iteration of a loop that carries it to the next one",
                decode_location(op.location),
                ["update the carried tensor in place, as tensor.insert does, or place this on the host"],
            )
        size = mlir_util.static_bytes(ir.MemRefType(op.results[0].type))
        is_small = size is not None and size <= _PRIVATE_BYTES
        if is_small and not any(user.name in (*_ENDS, *_LOOPS) for user in users):
            _make_private(op, values)
            continue
        for loop in loops:
            op = _slice(op, loop)


def _loops_around(op: Any, names: Collection[str]) -> list[Any]:
    """The innermost one first."""
    return [outer for outer in mlir_util.around(op) if outer.name in names]


def _same_memory(value: Any) -> list[Any]:
    """``value``, and whatever else may stand for its memory or a part of it."""
    found: list[Any] = [value]
    for each in found:
        for use in each.uses:
            user = use.owner.operation
            holder = user.parent.operation if user.name in _ENDS else user
            others: list[Any] = []
            if facts(user.name).view_of is not None:
                others = [user.results[0]]
            elif holder is not user or user.name in _LOOPS:
                others = [*holder.results, *(v for region in holder.regions for v in region.blocks[0].arguments)]
            found += [other for other in others if mlir_util.is_memref(other.type) and other not in found]
    return found


def _make_private(op: Any, values: Sequence[Any]) -> None:
    private = ir.Attribute.parse(PRIVATE, op.context)
    made = Builder(op).alloc(mlir_util.with_memory_space(op.results[0].type, private), name="memref.alloca")
    for view in values[1:]:
        view.set_type(mlir_util.with_memory_space(view.type, private))
    mlir_util.replace_op(op, [made])


def _slice(op: Any, loop: Any) -> Any:
    """Have the buffer that ``op`` makes in ``loop`` made before it, for each iteration; gives what does so."""
    sizes = list(op.operands)
    if not all(_move_out(size, loop) for size in sizes):
        raise LoweringError(
            "a kernel cannot make a buffer whose size is computed in a parallel loop",
            decode_location(op.location),
            ["give it the greatest size that it may have, computed before the loop, or place this on the host"],
        )
    outside, inside = Builder(loop), Builder(op)
    size = _bytes(outside, op.results[0].type, sizes)
    number, count = inside.constant(0), outside.constant(1)
    indices = loop.regions[0].blocks[0].arguments
    for (begin, end, step), index in zip(_ranges(outside, loop), indices, strict=False):
        length = outside.value("arith.subi", [end, begin], outside.index)
        length = outside.value("arith.maxsi", [length, outside.constant(0)], outside.index)
        extent = outside.value("arith.ceildivui", [length, step], outside.index)
        done = inside.value("arith.subi", [index, begin], inside.index)
        place = inside.value("arith.divui", [done, step], inside.index)
        number = inside.value("arith.addi", [inside.multiply(number, extent), place], inside.index)
        count = outside.multiply(count, extent)
    i8, unknown = ir.IntegerType.get_signless(8, op.context), ir.ShapedType.get_dynamic_size()
    made = outside.alloc(mlir_util.buffer_type([unknown], i8), [outside.multiply(count, size)])
    at = inside.multiply(number, size)
    mlir_util.replace_op(op, [inside.value("memref.view", [made, at, *sizes], op.results[0].type)])
    return made.owner


def _bytes(build: Builder, type_: Any, sizes: Sequence[Any]) -> Any:
    """Of a slice for a buffer of ``type_``."""
    memref = ir.MemRefType(type_)
    total = build.constant(mlir_util.element_bytes(memref.element_type))
    dynamic = iter(sizes)
    for size in memref.shape:
        is_known = size != ir.ShapedType.get_dynamic_size()
        total = build.multiply(total, build.constant(size) if is_known else next(dynamic))
    return build.value(
        "arith.muli",
        [build.value("arith.ceildivui", [total, line := build.constant(_ALIGNMENT)], build.index), line],
        build.index,
    )


def _move_out(value: Any, loop: Any) -> bool:
    """Whether a number is known before ``loop``: what computes it from such ones is moved there."""
    if not _is_inside(value, loop):
        return True
    op = None if isinstance(value.owner, ir.Block) else value.owner.operation
    if op is None or not (op.name.startswith("arith.") or op.name == "memref.dim"):
        return False
    if not all(_move_out(operand, loop) for operand in op.operands):
        return False
    op.move_before(loop)
    return True


def _is_inside(value: Any, loop: Any) -> bool:
    op = value.owner.owner if isinstance(value.owner, ir.Block) else value.owner
    return op == loop or loop in _loops_around(op, _PARALLEL)


def _ranges(build: Builder, loop: Any) -> list[tuple[Any, Any, Any]]:
    """Begin, end and step of each index of ``loop``."""
    groups = mlir_util.operand_groups(loop)
    if loop.name == "scf.parallel":
        return list(zip(*groups[:3], strict=True))
    found: list[Any] = []
    for name, given in zip(("LowerBound", "UpperBound", "Step"), groups, strict=False):
        dynamic = iter(given)
        numbers = list(ir.DenseI64ArrayAttr(loop.attributes[f"static{name}"]))
        is_known = [number != ir.ShapedType.get_dynamic_size() for number in numbers]
        found.append(
            [build.constant(n) if known else next(dynamic) for n, known in zip(numbers, is_known, strict=True)]
        )
    return list(zip(*found, strict=True))
