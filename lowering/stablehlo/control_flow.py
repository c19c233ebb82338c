"""StableHLO's control flow becomes that of scf: tensors decide by their only element."""

from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.global_state import is_public
from devscope.lowering.interop.bindings import ir
from devscope.lowering.located_scopes import scope_of
from devscope.lowering.mlir_util import Builder


def lower_choice(op: Any) -> None:
    """An index without a branch is for the last one."""
    scope, results = scope_of(op), [result.type for result in op.results]
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
    new = Builder(op).op("scf.while", op.operands, results, scope_of(op), regions=2)
    condition, body = (region.blocks[0] for region in op.regions)
    condition.append_to(new.regions[0])
    body.append_to(new.regions[1])
    _end(condition, "scf.condition", condition.arguments)
    _end(body, "scf.yield")
    mlir_util.replace_op(op, new.results)


_CHOICES = ("scf.if", "scf.index_switch")
CARRIERS = (*_CHOICES, "arith.select", "scf.while", "scf.for")


_TOKEN = "!stablehlo.token"
MAKE_TOKENS = ("stablehlo.after_all", "stablehlo.create_token")
_PASS_TOKENS = frozenset(
    {*MAKE_TOKENS, "stablehlo.while", "stablehlo.case", "stablehlo.if", "stablehlo.return"}
    | {"stablehlo.optimization_barrier", "func.func", "func.call", "func.return"}
)


def drop_tokens(module: Any) -> None:
    """Tokens order what has effects. Where nothing has, they are values that nobody reads.

    Not where what has effects takes them, or public functions do: such programs are refused as they are.
    """
    ops = mlir_util.walk(module.operation)
    if not any(str(type_) == _TOKEN for type_, _ in mlir_util.types(ops[1:])):
        return
    for op in ops:
        if op.name not in _PASS_TOKENS and any(str(value.type) == _TOKEN for value in (*op.operands, *op.results)):
            return
        if op.name == "func.func" and _TOKEN in str(op.attributes["function_type"]) and is_public(op):
            return
    of = ir.RankedTensorType.get([], ir.IntegerType.get_signless(1, module.context), loc=module.operation.location)
    for op in mlir_util.named(module.operation, *MAKE_TOKENS):
        value = ir.DenseElementsAttr.parse(f"dense<false> : {of}", module.context)
        mlir_util.replace_op(op, Builder(op).op("stablehlo.constant", [], [of], {"value": value}).results)
    mlir_util.retype(module.operation, lambda type_: of if str(type_) == _TOKEN else type_)


def carry_elements(op: Any) -> None:
    """Make control flow in a body carry elements in the place of tensors without dimensions, which need memory."""
    for block in mlir_util.blocks_of(op):
        *_, end = block.operations
        _take_elements(end.operation)
        if op.name not in _CHOICES:
            _give_tensors(block.arguments, Builder(block.operations[0].operation))
    if op.name not in _CHOICES:
        _take_elements(op)
    _give_tensors(op.results, Builder(next(mlir_util.ops_behind(op))))


def _take_elements(op: Any) -> None:
    for number, value in enumerate(op.operands):
        if _is_single(value.type):
            op.operands[number] = _element(op, value)


def _give_tensors(values: Any, build: Builder) -> None:
    for value in values:
        if not _is_single(tensor := value.type):
            continue
        value.set_type(ir.RankedTensorType(tensor).element_type)
        made = build.op("tensor.from_elements", [value], [tensor])
        value.replace_all_uses_except(made.results[0], made)


def _is_single(type_: Any) -> bool:
    return isinstance(type_, ir.RankedTensorType) and not type_.rank


def _end(block: Any, name: str, carried: Any = ()) -> None:
    """End a block by another terminator: ``scf.condition`` takes the element that decides, and what is carried."""
    *_, end = block.operations
    operands = [_element(end, end.operands[0]), *carried] if name == "scf.condition" else end.operands
    Builder(end).op(name, operands)
    end.operation.erase()


def _element(before: Any, tensor: Any) -> Any:
    return Builder(before).value("tensor.extract", [tensor], ir.RankedTensorType(tensor.type).element_type)
