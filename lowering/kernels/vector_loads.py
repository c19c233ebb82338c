"""Loads in bodies of operations of linalg that go along with a loop, such as those of rows in another order.

LLVM leaves loops with such loads as they are.
"""

from collections.abc import Mapping
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.nest import Nest
from devscope.lowering.kernels.tiles import ELEMENTS
from devscope.lowering.mlir_util import Builder

LOAD = "memref.load"
_SUMS = {"arith.addi": 1, "arith.subi": -1}


def goes_along(load: Any, nest: Nest, loop: int) -> bool:
    """Whether what ``load`` reads in iterations of ``loop`` stands side by side, or is the same for all."""
    buffer, *indices = load.operands
    type_ = ir.MemRefType(buffer.type)
    if mlir_util.is_on_device(buffer) or str(type_.element_type) not in ELEMENTS:
        return False
    steps = [_step(index, nest, loop) for index in indices]
    if not any(step is None or step for step in steps):
        return True
    strides, _ = type_.get_strides_and_offset()
    return strides[-1] == 1 and steps[-1] == 1 and not any(step is None or step for step in steps[:-1])


def _step(value: Any, nest: Nest, loop: int) -> int | None:
    """How much larger a number of the body is in the next iteration; None if that is not known."""
    block = mlir_util.entry_block(nest.op)
    if isinstance(value.owner, ir.Block):
        if value.owner != block:
            return 0
        operand = nest.operands[ir.BlockArgument(value).arg_number]
        return None if loop in operand.dims else 0
    op = value.owner.operation
    if op.block != block:
        return 0
    if op.name == "linalg.index":
        return int(ir.IntegerAttr(op.attributes["dim"]).value == loop)
    steps = [_step(operand, nest, loop) for operand in op.operands]
    if not any(step is None or step for step in steps):
        return 0
    if op.name == "arith.index_cast":
        return steps[0]
    if op.name in _SUMS and steps[0] is not None and steps[1] is not None:
        return steps[0] + _SUMS[op.name] * steps[1]
    return None


def load_along(
    build: Builder, load: Any, mapping: Mapping[Any, Any], indices: Mapping[int, Any], type_: Any, mask: Any
) -> Any:
    """What ``load`` reads in the iterations from ``indices`` on, those of ``mask`` if there is one."""
    buffer, *at = load.operands
    *outer, last = at
    places = [*(mapping.get(value, value) for value in outer), _first(build, last, mapping, indices)]
    if mask is None:
        return build.value("vector.load", [buffer, *places], type_)
    zero = "0.0" if isinstance(type_.element_type, ir.FloatType) else "0"
    nothing = ir.Attribute.parse(f"dense<{zero}> : {type_}", type_.context)
    padding = build.value("arith.constant", [], type_, {"value": nothing})
    return build.value("vector.maskedload", [buffer, *places, mask, padding], type_)


def _first(build: Builder, value: Any, mapping: Mapping[Any, Any], indices: Mapping[int, Any]) -> Any:
    """A number of the body in the first of some iterations, where others have vectors of all."""
    found = mapping.get(value, value)
    if not isinstance(found.type, ir.VectorType):
        return found
    op = value.owner.operation
    if op.name == "linalg.index":
        return indices[ir.IntegerAttr(op.attributes["dim"]).value]
    operands = [_first(build, operand, mapping, indices) for operand in op.operands]
    return build.value(op.name, operands, value.type, dict(op.attributes.items()))
