"""What a program is brought to before it is planned, so that plans and the split see one form of each thing.

Control flow of ``affine`` and StableHLO becomes ``scf``, shapes those of ``tensor``, globals that nobody writes
constants, and operations of ``bufferization`` on values what they mean. Passes of upstream do what they can.
"""

import re
from collections.abc import Callable, Set
from typing import Any

from devscope.dialects.device import SCOPE_ATTR
from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.mlir_util import Builder, RunPasses

_AFFINE = frozenset({"affine.for", "affine.if"})
_GLOBAL = "ml_program.global"
_READS = frozenset({f"{_GLOBAL}_load", f"{_GLOBAL}_load_const"})
_SHAPES = frozenset({"shape.shape_of", "shape.dim", "shape.const_shape", "shape.num_elements"})

_ELEMENTS = (ir.DenseElementsAttr, ir.DenseResourceElementsAttr)

_BECOMES = {
    "affine.for": "scf.for",
    "affine.if": "scf.if",
    "affine.parallel": "scf.parallel",
    "affine.load": "memref.load",
    "affine.store": "memref.store",
    "affine.vector_load": "vector.load",
    "affine.vector_store": "vector.store",
}
_MARK = "devscope.affine:"
_MARKED = re.compile(rf'loc\("{_MARK}(\d+)"')


def is_in_form(names: Set[str]) -> bool:
    """Whether a module of operations of these names is as `bring_into_form` leaves it."""
    return names.isdisjoint({_GLOBAL} | _AFFINE | _SHAPES | _REWRITES.keys())


def bring_into_form(module: Any, run_passes: RunPasses) -> None:
    """Rewrite an ``ir.Module`` in place. Scopes stay.

    Raises LoweringError, located, for what a pass cannot rewrite.
    """
    _inline_globals(module)
    for op in [op for op in mlir_util.walk(module.operation) if op.name in _REWRITES]:
        _REWRITES[op.name](op)
    names = {op.name for op in mlir_util.walk(module.operation)}
    if names & _SHAPES:
        run_passes(module.operation, "builtin.module(func.func(shape-to-shape-lowering), convert-shape-to-std)")
    if names & _AFFINE:
        _lower_affine(module, run_passes)


def _lower_affine(module: Any, run_passes: RunPasses) -> None:
    """MLIR's pass folds some operations and drops the attributes of others: scopes go with their locations."""
    scoped: list[tuple[dict[str, Any], Any]] = []
    for op in mlir_util.walk(module.operation):
        if op.name in _BECOMES and SCOPE_ATTR in op.attributes:
            scoped.append((_scope(op), op.location))
            op.location = ir.Location.name(f"{_MARK}{len(scoped) - 1}", op.location, module.context)
    run_passes(module.operation, "builtin.module(lower-affine)")
    for op in mlir_util.walk(module.operation) if scoped else ():
        match = _MARKED.match(str(op.location))
        if match is None:
            continue
        scope, op.location = scoped[int(match[1])]
        for name, value in scope.items() if op.name in _BECOMES.values() else ():
            op.attributes[name] = value


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


def _inline_globals(module: Any) -> None:
    """A global that nobody writes is its value; one that nobody reads is nothing."""
    ops = [op for op in mlir_util.walk(module.operation) if op.name.startswith(_GLOBAL)]
    users: dict[str, list[Any]] = {}
    for op in ops:
        if op.name != _GLOBAL:
            users.setdefault(str(op.attributes["global"]), []).append(op)
    for op in [op for op in ops if op.name == _GLOBAL]:
        uses = users.get(str(ir.FlatSymbolRefAttr.get(mlir_util.symbol_name(op), module.context)), [])
        is_constant = "is_mutable" not in op.attributes and "value" in op.attributes
        is_read = is_constant and isinstance(op.attributes["value"], _ELEMENTS)
        if not all(is_read and user.name in _READS for user in uses):
            continue
        for user in uses:
            value = {"value": op.attributes["value"]}
            new = Builder(user).op("arith.constant", [], [user.results[0].type], value)
            mlir_util.replace_op(user, new.results)
        op.erase()


def _lower_allocation(op: Any) -> None:
    """A tensor is a value: its copy is itself, and one without contents is empty."""
    sizes, copied, _ = mlir_util.operand_groups(op)
    value = copied or [Builder(op).value("tensor.empty", sizes, op.results[0].type, _scope(op))]
    mlir_util.replace_op(op, value)


def _lower_materialisation(op: Any) -> None:
    """What a tensor holds that another one is written to. Into a buffer it is written by bufferisation."""
    if len(op.results):
        source, type_ = op.operands[0], op.results[0].type
        same = source.type == type_
        mlir_util.replace_op(op, [source if same else Builder(op).value("tensor.cast", [source], type_)])


def _lower_size(op: Any) -> None:
    """The size of a dimension, as a tensor on the host."""
    type_ = op.results[0].type
    build = Builder(op)
    axis = build.constant(ir.IntegerAttr(op.attributes["dimension"]).value)
    size = build.value("tensor.dim", [op.operands[0], axis], build.index)
    number = build.value("arith.index_cast", [size], ir.RankedTensorType(type_).element_type)
    mlir_util.replace_op(op, [build.value("tensor.from_elements", [number], type_)])


_REWRITES: dict[str, Callable[[Any], None]] = {
    "bufferization.alloc_tensor": _lower_allocation,
    "bufferization.dealloc_tensor": lambda op: op.erase(),
    "memref.dealloc": lambda op: op.erase(),  # buffers are freed behind their last use
    "bufferization.materialize_in_destination": _lower_materialisation,
    "stablehlo.case": _lower_choice,
    "stablehlo.get_dimension_size": _lower_size,
    "stablehlo.if": _lower_choice,
    "stablehlo.while": _lower_while,
}
