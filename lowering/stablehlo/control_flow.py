"""StableHLO's control flow becomes that of scf: tensors decide by their only element."""

from typing import Any

from devscope.dialects.device import SCOPE_ATTR
from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.mlir_util import Builder


def lower_choice(op: Any) -> None:
    """An index without a branch is for the last one."""
    scope, results = _scope(op), [result.type for result in op.results]
    blocks = [region.blocks[0] for region in op.regions]
    which = _element(op, op.operands[0])
    build = Builder(op)
    if op.name == "stablehlo.if":
        new = build.op("scf.if", [which], results, scope, regions=2)
    else:
        cases = {"cases": ir.DenseI64ArrayAttr.get(list(range(len(blocks) - 1)), op.context)}
        number = build.value("arith.index_cast", [which], build.index)
        new = build.op("scf.index_switch", [number], results, {**scope, **cases}, regions=len(blocks))
        blocks.insert(0, blocks.pop())
    for block, region in zip(blocks, new.regions, strict=True):
        block.append_to(region)
        _end(block, "scf.yield")
    mlir_util.replace_op(op, new.results)


def lower_while(op: Any) -> None:
    results = [result.type for result in op.results]
    new = Builder(op).op("scf.while", op.operands, results, _scope(op), regions=2)
    condition, body = (region.blocks[0] for region in op.regions)
    condition.append_to(new.regions[0])
    body.append_to(new.regions[1])
    _end(condition, "scf.condition", condition.arguments)
    _end(body, "scf.yield")
    mlir_util.replace_op(op, new.results)


def _scope(op: Any) -> dict[str, Any]:
    return {SCOPE_ATTR: op.attributes[SCOPE_ATTR]} if SCOPE_ATTR in op.attributes else {}


def _end(block: Any, name: str, carried: Any = ()) -> None:
    """End a block by another terminator: ``scf.condition`` takes the element that decides, and what is carried."""
    *_, end = block.operations
    operands = [_element(end, end.operands[0]), *carried] if name == "scf.condition" else end.operands
    Builder(end).op(name, operands)
    end.operation.erase()


def _element(before: Any, tensor: Any) -> Any:
    return Builder(before).value("tensor.extract", [tensor], ir.RankedTensorType(tensor.type).element_type)
