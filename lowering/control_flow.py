"""Control flow of ``affine`` and StableHLO -> ``scf``, before planning: what is planned and split is ``scf``.

``affine`` is MLIR's business; StableHLO's passes leave control flow alone.
"""

from typing import Any

from devscope.dialects.device import SCOPE_ATTR
from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.mlir_util import Builder, RunPasses

_AFFINE = frozenset({"affine.for", "affine.if"})
_CHOICES = frozenset({"stablehlo.case", "stablehlo.if"})
FOREIGN = _AFFINE | _CHOICES | {"stablehlo.while"}
"""The operations that this is about."""

_BECOMES = {
    "affine.for": "scf.for",
    "affine.if": "scf.if",
    "affine.parallel": "scf.parallel",
    "affine.load": "memref.load",
    "affine.store": "memref.store",
    "affine.vector_load": "vector.load",
    "affine.vector_store": "vector.store",
}


def lower_control_flow(module: Any, run_passes: RunPasses) -> None:
    """Make ``scf`` of other structured control flow in an ``ir.Module``, in place. Scopes stay."""
    ops = [op for op in mlir_util.walk(module.operation) if op.name in FOREIGN]
    for op in ops:
        if op.name in _CHOICES:
            _lower_choice(op)
        elif op.name == "stablehlo.while":
            _lower_while(op)
    if any(op.name in _AFFINE for op in mlir_util.walk(module.operation)):
        _lower_affine(module, run_passes)


def _lower_affine(module: Any, run_passes: RunPasses) -> None:
    """MLIR's pass keeps the order of operations, and drops their attributes."""
    before = _by_kind(module)
    scopes = {kind: [_scope(op) for op in ops] for kind, ops in before.items()}
    run_passes(module.operation, "builtin.module(lower-affine)")
    for kind, ops in _by_kind(module).items():
        for op, scope in zip(ops, scopes[kind], strict=True):
            for name, value in scope.items():
                op.attributes[name] = value


def _by_kind(module: Any) -> dict[str, list[Any]]:
    """The operations that are or become one of those that affine ones become, in order, by that one's name."""
    found: dict[str, list[Any]] = {kind: [] for kind in _BECOMES.values()}
    for op in mlir_util.walk(module.operation):
        kind = _BECOMES.get(op.name, op.name)
        if kind in found:
            found[kind].append(op)
    return found


def _scope(op: Any) -> dict[str, Any]:
    return {SCOPE_ATTR: op.attributes[SCOPE_ATTR]} if SCOPE_ATTR in op.attributes else {}


def _lower_choice(op: Any) -> None:
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


def _lower_while(op: Any) -> None:
    results = [result.type for result in op.results]
    new = Builder(op).op("scf.while", op.operands, results, _scope(op), regions=2)
    condition, body = (region.blocks[0] for region in op.regions)
    condition.append_to(new.regions[0])
    body.append_to(new.regions[1])
    _end(condition, "scf.condition", condition.arguments)
    _end(body, "scf.yield")
    mlir_util.replace_op(op, new.results)


def _end(block: Any, name: str, carried: Any = ()) -> None:
    """End a block by another terminator: ``scf.condition`` takes the element that decides, and what is carried."""
    *_, end = block.operations
    operands = [_element(end, end.operands[0]), *carried] if name == "scf.condition" else end.operands
    Builder(end).op(name, operands)
    end.operation.erase()


def _element(before: Any, tensor: Any) -> Any:
    return Builder(before).value("tensor.extract", [tensor], ir.RankedTensorType(tensor.type).element_type)
