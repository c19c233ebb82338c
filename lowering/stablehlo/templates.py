"""Expansions written as MLIR text."""

import re
from collections.abc import Callable, Sequence
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.mlir_util import Builder

RETURN, APPLY = "devscope.return", "devscope.apply"

BOUNDS = "#stablehlo.bounds"
"""Encodings that say how large dimensions are at most begin with it. Programs lose them (`shapes.drop_bounds`)."""


def expand(op: Any, text: str, operands: Sequence[Any] | None = None, blocks: Sequence[Any] | None = None) -> None:
    """Replace ``op`` by the operations of ``text``, in which ``%0``, ``%1`` and so on are ``operands``, or its own.

    ``"devscope.return"(...)`` at the end names the values of its results. ``"devscope.apply"(...)`` stands for one of
    ``blocks``, or the body of a region of ``op``: that which its attribute ``region`` says, 0 if there is none.

    Raises ValueError where the types of the values are not those of the results.
    """
    if blocks is None:
        blocks = [region.blocks[0] for region in op.regions if len(region.blocks)]
    made = mlir_util.insert(op, text, list(op.operands) if operands is None else operands)
    for call in [inner for root in made for inner in mlir_util.walk(root) if inner.name == APPLY]:
        number = ir.IntegerAttr(call.attributes["region"]).value if "region" in call.attributes else 0
        mlir_util.replace_op(call, _inline(blocks[number], call))
    *_, end = made
    values = list(end.operands)
    end.erase()
    if (given := [value.type for value in values]) != (wanted := [result.type for result in op.results]):
        raise ValueError(f"values of {commas(given)} for results of {commas(wanted)}")
    mlir_util.replace_op(op, values)


def fold_empty(op: Any) -> bool:
    """What has no elements: slices may begin at an end, and there may be no window, which upstream does not lower.

    Returns whether it was replaced.
    """
    types = [result.type for result in op.results]
    is_empty = all(type_.has_static_shape and 0 in type_.shape for type_ in types)
    if is_empty:
        build = Builder(op)
        mlir_util.replace_op(op, [build.value("tensor.empty", [], type_) for type_ in types])
    return is_empty


def _inline(block: Any, call: Any) -> list[Any]:
    """The results of the operations of ``block``, copied in front of ``call``, of its operands."""
    known = dict(zip(block.arguments, call.operands, strict=True))
    *body, end = block.operations
    for inner in body:
        copy = inner.operation.clone(ip=ir.InsertionPoint(call)).operation
        mlir_util.remap_operands(copy, known)
        known.update(zip(inner.operation.results, copy.results, strict=True))
    return [known.get(value, value) for value in end.operands]


def applied(
    op: Any, emit: Callable[[str], None], tag: str, values: Sequence[tuple[str, Any]], region: int = 0
) -> list[str]:
    """The text of the body of a region of ``op``, applied to scalars of a name and a type each; names of the results.

    Bodies of StableHLO are of tensors without dimensions, those of tm_tensor of scalars.
    """
    return applied_block(op.regions[region].blocks[0], emit, tag, values, region)


def applied_block(
    block: Any, emit: Callable[[str], None], tag: str, values: Sequence[tuple[str, Any]], region: int = 0
) -> list[str]:
    """The same of a block, which `expand` gets as number ``region``."""
    *_, end = block.operations
    results, types = list(end.operands), commas(of for _, of in values)
    out = f"%{tag}:{len(results)}" if len(results) > 1 else f"%{tag}"
    names = [f"%{tag}#{n}" for n in range(len(results))] if len(results) > 1 else [f"%{tag}"]
    if not isinstance(block.arguments[0].type, ir.RankedTensorType):
        given, kinds = commas(name for name, _ in values), commas(value.type for value in results)
        emit(f'{out} = "{APPLY}"({given}) {{region = {region}}} : ({types}) -> ({kinds})')
        return names
    for n, (name, of) in enumerate(values):
        emit(f"%{tag}_t{n} = tensor.from_elements {name} : tensor<{of}>")
    given = commas(f"%{tag}_t{n}" for n in range(len(values)))
    tensors, kinds = commas(f"tensor<{of}>" for _, of in values), commas(value.type for value in results)
    emit(f'{out} = "{APPLY}"({given}) {{region = {region}}} : ({tensors}) -> ({kinds})')
    for n, (name, value) in enumerate(zip(names, results, strict=True)):
        emit(f"%{tag}_r{n} = tensor.extract {name}[] : {value.type}")
    return [f"%{tag}_r{n}" for n in range(len(results))]


def extents_of(emit: Callable[[str], None], prefix: str, name: str, type_: Any) -> None:
    """The text of the extents of a tensor, ``%PREFIX0``, ``%PREFIX1`` and so on."""
    for axis, extent in enumerate(shape(type_)):
        if extent >= 0:
            emit(f"%{prefix}{axis} = arith.constant {extent} : index")
        else:
            emit(f"%{prefix}_axis{axis} = arith.constant {axis} : index")
            emit(f"%{prefix}{axis} = tensor.dim {name}, %{prefix}_axis{axis} : {type_}")


def element(type_: Any) -> Any:
    return ir.ShapedType(type_).element_type


def shape(type_: Any) -> list[int]:
    """The extents of a type, -1 for what is not known."""
    type_ = ir.RankedTensorType(type_)
    return [-1 if type_.is_dynamic_dim(axis) else type_.shape[axis] for axis in range(type_.rank)]


def tensor(extents: Sequence[int], of: Any) -> str:
    """The text of a type; an extent of -1 is not known."""
    return f"tensor<{''.join('?x' if extent < 0 else f'{extent}x' for extent in extents)}{of}>"


def axes_map(rank: int, axes: Sequence[int | str]) -> str:
    dims = ", ".join(f"d{axis}" for axis in range(rank))
    return f"affine_map<({dims}) -> ({', '.join(f'd{a}' if isinstance(a, int) else a for a in axes)})>"


def commas(parts: Sequence[Any] | Any) -> str:
    return ", ".join(map(str, parts))


def integers(op: Any, name: str, default: Sequence[int] = ()) -> list[int]:
    """The numbers of an attribute of integers, of any form."""
    if name not in op.attributes:
        return list(default)
    attribute = op.attributes[name]
    if isinstance(attribute, ir.DenseElementsAttr):
        type_ = ir.RankedTensorType(attribute.type)
        if attribute.is_splat:
            count = 1
            for extent in type_.shape:
                count *= extent
            return [ir.IntegerAttr(attribute.get_splat_value()).value] * count
        return [int(number) for number in ir.DenseIntElementsAttr(attribute)]
    return [int(number) for number in attribute]


def number(op: Any, name: str, default: int = 0) -> int:
    return ir.IntegerAttr(op.attributes[name]).value if name in op.attributes else default


def flag(op: Any, name: str, default: bool = False) -> bool:
    return ir.BoolAttr(op.attributes[name]).value if name in op.attributes else default


def enum(op: Any, name: str, default: str = "") -> str:
    """The keyword of an attribute of StableHLO, as ``LT`` of ``#stablehlo<comparison_direction LT>``."""
    if name not in op.attributes:
        return default
    return str(op.attributes[name]).rstrip(">").rpartition(" ")[2]


def listed(attribute: Any) -> Callable[[str], list[int]]:
    """The lists of numbers in an attribute such as ``#stablehlo.scatter<update_window_dims = [0], ...>``."""
    text = str(attribute)

    def get(name: str) -> list[int]:
        found = re.search(rf"\b{name} = (?:\[([^]]*)\]|(\d+))", text)
        body = "" if found is None else (found[1] if found[1] is not None else found[2])
        return [int(part) for part in body.split(",") if part.strip()]

    return get


def sizes(build: Builder, value: Any) -> list[Any]:
    """The extents of a tensor as index values, dynamic ones only."""
    return [
        build.value("tensor.dim", [value, build.constant(axis)], build.index)
        for axis, extent in enumerate(shape(value.type))
        if extent < 0
    ]
