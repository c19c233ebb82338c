"""Complex numbers that loops and branches carry become two numbers: LLVM's SPIR-V has no pairs there."""

from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.mlir_util import Builder

_CARRY = frozenset({"scf.for", "scf.if", "scf.while", "scf.index_switch"})


def carry_parts(module: Any) -> None:
    for op in reversed([op for op in mlir_util.walk(module) if op.name in _CARRY]):  # inner ones first
        values = [*op.results, *(argument for block in mlir_util.blocks_of(op) for argument in block.arguments)]
        if any(_is_complex(value) for value in values):
            _carry(op)


def _carry(op: Any) -> None:
    for block in mlir_util.blocks_of(op):
        *_, end = block.operations
        _take_apart_operands(end.operation)
        _put_together_arguments(block)
    build = Builder(op)
    types = [part for result in op.results for part in _parts(result)]
    attributes = {name: op.attributes[name] for name in op.attributes}
    operands = _taken_apart(build, op.operands)
    new = build.op(op.name, operands, types, attributes, regions=len(op.regions))
    for region, other in zip(op.regions, new.regions, strict=True):
        for block in list(region.blocks):
            block.append_to(other)
    made = iter(new.results)
    mlir_util.replace_op(op, [_put_together(build, result.type, made) for result in op.results])


def _is_complex(value: Any) -> bool:
    return isinstance(value.type, ir.ComplexType)


def _parts(value: Any) -> list[Any]:
    return [value.type.element_type] * 2 if _is_complex(value) else [value.type]


def _taken_apart(build: Builder, values: Any) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if _is_complex(value):
            found += [build.value(f"complex.{part}", [value], value.type.element_type) for part in ("re", "im")]
        else:
            found.append(value)
    return found


def _put_together(build: Builder, type_: Any, parts: Any) -> Any:
    """The next of ``parts``, or a number of the next two."""
    first = next(parts)
    return (
        build.value("complex.create", [first, next(parts)], type_) if isinstance(type_, ir.ComplexType) else first
    )


def _take_apart_operands(end: Any) -> None:
    if any(_is_complex(value) for value in end.operands):
        build = Builder(end)
        build.op(end.name, _taken_apart(build, end.operands))
        end.erase()


def _put_together_arguments(block: Any) -> None:
    old = list(block.arguments)
    if not any(_is_complex(argument) for argument in old):
        return
    new = [block.add_argument(type_, block.owner.location) for argument in old for type_ in _parts(argument)]
    build, parts = Builder(block.operations[0].operation), iter(new)
    for argument in old:
        argument.replace_all_uses_with(_put_together(build, argument.type, parts))
    for _ in old:
        block.erase_argument(0)
