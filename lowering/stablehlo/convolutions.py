"""Convolutions that upstream does not lower, or not well: padding, then sums of products over windows."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from devscope.lowering.interop.bindings import ir
from devscope.lowering.mlir_util import Builder
from devscope.lowering.stablehlo.arrays import literal
from devscope.lowering.stablehlo.element_types import widen_products
from devscope.lowering.stablehlo.large_windows import expand_large_windows
from devscope.lowering.stablehlo.templates import (
    commas,
    element,
    expand,
    fold_empty,
    integers,
    number,
    shape,
    tensor,
)
from devscope.lowering.stablehlo.windows import window_count

Emit = Callable[[str], None]


@dataclass(frozen=True)
class _Value:
    """A tensor, and what its axes are: ``b`` the batch, ``i`` and ``o`` features, ``g`` groups, numbers of space."""

    name: str
    extents: Sequence[int]
    letters: Sequence[str]
    of: Any
    sizes: Mapping[str, str]
    """Names of extents that are not known, by letter."""

    @property
    def type(self) -> str:
        return tensor(self.extents, self.of)

    def dynamic_sizes(self) -> str:
        return commas(self.sizes[a] for a, extent in zip(self.letters, self.extents, strict=True) if extent < 0)

    def in_groups(self, letter: str, groups: int, rest: str) -> tuple[_Value, str]:
        """With groups in front of an axis, and what becomes of which axis, as `tensor.expand_shape` says it.

        ``rest``: the name of what is then the extent of the axis.
        """
        at = self.letters.index(letter)
        each = self.extents[at] // groups if self.extents[at] >= 0 else -1
        extents = [*self.extents[:at], groups, each, *self.extents[at + 1 :]]
        letters = [*self.letters[:at], "g", *self.letters[at:]]
        axes = [[axis + (axis > at)] if axis != at else [at, at + 1] for axis in range(len(self.letters))]
        return _Value(f"{self.name}_groups", extents, letters, self.of, {**self.sizes, letter: rest}), str(axes)


def expand_convolution(op: Any) -> None:
    """``stablehlo.convolution`` as in `_is_known_upstream`, and ``stablehlo.dynamic_conv``.

    Layouts stay as they are. Without their sign integers have the same products and sums.
    """
    widen_products(op)
    layouts = _layouts(op)
    _widen_filters(op, layouts[1])
    types = [op.operands[0].type, op.operands[1].type, op.results[0].type]
    if op.name == "stablehlo.convolution" and expand_large_windows(op, layouts):
        return
    space = len(layouts[0]) - 2
    of_features, of_batch = number(op, "feature_group_count", 1), number(op, "batch_group_count", 1)
    groups = of_features * of_batch
    if (op.name == "stablehlo.convolution" and _is_known_upstream(op, types, layouts, groups)) or fold_empty(op):
        return
    lines = ["%zero = arith.constant 0 : index\n%one = arith.constant 1 : index"]
    emit = lines.append
    of = element(types[2])
    plain = ir.IntegerType.get_signless(of.width, op.context) if isinstance(of, ir.IntegerType) else of
    x, w = (_operand(op, emit, n, name, layouts[n], of, plain) for n, name in enumerate(("%x", "%w")))
    _count_windows(op, emit, x, w)
    if groups > 1:  # in front of padding, which upstream would move behind without the sizes of what it pads
        x = _in_groups(emit, x, "i" if of_features > 1 else "b", groups)
        w = _in_groups(emit, w, "o", groups)
    x, w = _padded(op, emit, x), _turned(op, emit, w)
    sizes = {"b": x.sizes["b"], "o": w.sizes["o"], **{str(axis): f"%m{axis}" for axis in range(space)}}
    whole = _Value("%sums", shape(types[2]), layouts[2], plain, sizes)
    if groups > 1:
        result, axes = whole.in_groups("o", groups, sizes["o"])
        _sum_products(op, emit, x, w, result)
        emit(f"%sums = tensor.collapse_shape {result.name} {axes} : {result.type} into {whole.type}")
    else:
        _sum_products(op, emit, x, w, whole)
    emit(f"%out = builtin.unrealized_conversion_cast %sums : {whole.type} to {types[2]}")
    emit(f'"devscope.return"(%out) : ({types[2]}) -> ()')
    expand(op, "\n".join(lines))


def _widen_filters(op: Any, letters: Sequence[str]) -> None:
    """One filter of each group has the type of the result: upstream takes it for that, whatever it is."""
    filters, of = op.operands[1], element(op.results[0].type)
    groups = number(op, "feature_group_count", 1)
    if groups > 1 and shape(filters.type)[letters.index("o")] == groups and element(filters.type) != of:
        type_ = ir.Type.parse(tensor(shape(filters.type), of), op.context)
        op.operands[1] = Builder(op).value("stablehlo.convert", [filters], type_)


def _is_known_upstream(op: Any, types: Sequence[Any], layouts: Sequence[Sequence[str]], groups: int) -> bool:
    """All static ones are; of a dynamic batch those without groups, with features behind the axes of space, that
    are padded by no less than nothing.

    Upstream dilates the filters of others with zeros, whose products with infinities are not numbers, and take time.
    """
    extents = [
        (extent, letter)
        for type_, letters in zip(types, layouts, strict=True)
        for extent, letter in zip(shape(type_), letters, strict=True)
    ]
    unknown = {letter for extent, letter in extents if extent < 0}
    axes = [str(axis) for axis in range(len(layouts[0]) - 2)]
    is_plain = [list(letters) for letters in layouts] == [["b", *axes, "i"], [*axes, "i", "o"], ["b", *axes, "o"]]
    if not unknown and set(integers(op, "rhs_dilation", [1])) <= {1}:
        return True
    return unknown <= {"b"} and groups == 1 and is_plain and min(integers(op, "padding", [0]), default=0) >= 0


def _layouts(op: Any) -> list[list[str]]:
    found = re.search(r"\[([^]]*)\]x\[([^]]*)\]->\[([^]]*)\]", str(op.attributes["dimension_numbers"]))
    if found is None:
        raise ValueError(str(op.attributes["dimension_numbers"]))
    x, w, result = (group.replace(" ", "").split(",") for group in found.groups())
    return [[a.replace("f", "i") for a in x], w, [a.replace("f", "o") for a in result]]


def _operand(op: Any, emit: Emit, place: int, name: str, letters: Sequence[str], of: Any, plain: Any) -> _Value:
    """Of the element type of the result, without its sign."""
    type_ = op.operands[place].type
    extents = shape(type_)
    value = _Value(
        name, extents, letters, plain, {letter: f"{name}_n{axis}" for axis, letter in enumerate(letters)}
    )
    emit(f"{name}_of = stablehlo.convert %{place} : ({type_}) -> {tensor(extents, of)}")
    emit(f"{name} = builtin.unrealized_conversion_cast {name}_of : {tensor(extents, of)} to {value.type}")
    for axis in range(len(extents)):
        emit(f"{name}_at{axis} = arith.constant {axis} : index")
        emit(f"{name}_n{axis} = tensor.dim {name}, {name}_at{axis} : {value.type}")
    return value


def _count_windows(op: Any, emit: Emit, x: _Value, w: _Value) -> None:
    """How many there are along each axis of space, ``%m``, of padding that is named here, ``%p`` and ``%high``."""
    space = len(x.letters) - 2
    padding = integers(op, "padding", [0] * (2 * space))
    named = {
        "s": integers(op, "window_strides", [1] * space),
        "h": integers(op, "lhs_dilation", [1] * space),
        "g": integers(op, "rhs_dilation", [1] * space),
        "p": padding[::2],
        "high": padding[1::2],
    }
    for axis in range(space):
        for name, values in named.items():
            if len(op.operands) == 3 and name in ("p", "high"):
                type_, side = op.operands[2].type, "%zero" if name == "p" else "%one"
                emit(f"%{name}_at{axis} = arith.constant {axis} : index")
                emit(f"%{name}_e{axis} = tensor.extract %2[%{name}_at{axis}, {side}] : {type_}")
                emit(f"%{name}{axis} = arith.index_cast %{name}_e{axis} : {element(type_)} to index")
            else:
                emit(f"%{name}{axis} = arith.constant {values[axis]} : index")
        window_count(emit, axis, x.sizes[str(axis)], w.sizes[str(axis)])


def _padded(op: Any, emit: Emit, x: _Value) -> _Value:
    """With zeros around and between elements, of the extents ``%padded``."""
    space = sum(letter.isdigit() for letter in x.letters)
    padding = integers(op, "padding", [0] * (2 * space))
    holes = [by - 1 for by in integers(op, "lhs_dilation", [1] * space)]
    is_known = len(op.operands) == 2
    if is_known and not any((*padding, *holes)):
        return x
    is_static = all(extent >= 0 for extent, letter in zip(x.extents, x.letters, strict=True) if letter.isdigit())
    is_known = is_known and (is_static or (min(padding, default=0) >= 0 and not any(holes)))
    extents, amounts = [*x.extents], []
    for at, letter in enumerate(x.letters):
        if not letter.isdigit():
            amounts.append((0, 0, 0) if is_known else ("%zero",) * 3)
        elif is_known:
            (low, high), hole = padding[2 * int(letter) : 2 * int(letter) + 2], holes[int(letter)]
            amounts.append((low, high, hole))
            if extents[at] >= 0:
                extents[at] += low + high + hole * max(extents[at] - 1, 0)
        else:
            emit(f"%hole{letter} = arith.constant {holes[int(letter)]} : index")
            amounts.append((f"%p{letter}", f"%high{letter}", f"%hole{letter}"))
            extents[at] = -1
    sizes = {a: f"%padded{a}" if a.isdigit() else size for a, size in x.sizes.items()}
    padded = _Value("%padded", extents, x.letters, x.of, sizes)
    zero, index = f"tensor<{x.of}>", f"tensor<{len(extents)}xindex>"
    emit(f"%none = stablehlo.constant dense<{literal(0, str(x.of))}> : {zero}")
    sides = dict(zip(("low", "high", "interior"), zip(*amounts, strict=True), strict=True))
    if is_known:
        given = commas(f"{side} = {[*values]}" for side, values in sides.items())
        emit(f"%padded = stablehlo.pad {x.name}, %none, {given} : ({x.type}, {zero}) -> {padded.type}")
        return padded
    for side, values in sides.items():
        emit(f"%{side} = tensor.from_elements {commas(values)} : {index}")
    emit(
        f"%padded = stablehlo.dynamic_pad {x.name}, %none, {commas(f'%{side}' for side in sides)} "
        f": ({x.type}, {zero}, {commas([index] * 3)}) -> {padded.type}"
    )
    return padded


def _turned(op: Any, emit: Emit, w: _Value) -> _Value:
    axes = [
        w.letters.index(str(axis)) for axis, is_turned in enumerate(integers(op, "window_reversal")) if is_turned
    ]
    if not axes:
        return w
    emit(f"%turned = stablehlo.reverse {w.name}, dims = {axes} : {w.type}")
    return _Value("%turned", w.extents, w.letters, w.of, w.sizes)


def _in_groups(emit: Emit, value: _Value, letter: str, groups: int) -> _Value:
    rest = f"{value.name}_each"
    made, axes = value.in_groups(letter, groups, rest)
    emit(f"{value.name}_by = arith.constant {groups} : index")
    emit(f"{rest} = arith.divui {value.sizes[letter]}, {value.name}_by : index")
    sizes = commas(
        made.sizes[a] if extent < 0 else extent for a, extent in zip(made.letters, made.extents, strict=True)
    )
    emit(
        f"{made.name} = tensor.expand_shape {value.name} {axes} output_shape [{sizes}] : {value.type} into {made.type}"
    )
    return made


def _sum_products(op: Any, emit: Emit, x: _Value, w: _Value, result: _Value) -> None:
    """Loops over the result, then over input features and windows."""
    space = [letter for letter in result.letters if letter.isdigit()]
    strides, dilations = (integers(op, name, [1] * len(space)) for name in ("window_strides", "rhs_dilation"))
    loops = [*result.letters, "i", *(f"k{a}" for a in space)]
    dim = {letter: f"d{place}" for place, letter in enumerate(loops)}
    at_x = {a: f"{dim[a]} * {strides[int(a)]} + {dim[f'k{a}']} * {dilations[int(a)]}" for a in space}
    at_w = {a: dim[f"k{a}"] for a in space}
    places = [({**dim, **at_x}, x), ({**dim, **at_w}, w), (dim, result)]
    maps = commas(
        f"affine_map<({commas(dim.values())}) -> ({commas(at[a] for a in value.letters)})>" for at, value in places
    )
    kinds = commas('"parallel"' if letter in result.letters else '"reduction"' for letter in loops)
    of = str(result.of)
    multiply, add = _ARITHMETIC["i1" if of == "i1" else of[0]]
    emit(f"""
%start = stablehlo.constant dense<{literal(0, of)}> : tensor<{of}>
%first = tensor.extract %start[] : tensor<{of}>
%room = tensor.empty({result.dynamic_sizes()}) : {result.type}
%cleared = linalg.fill ins(%first : {of}) outs(%room : {result.type}) -> {result.type}
{result.name} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}
    ins({x.name}, {w.name} : {x.type}, {w.type}) outs(%cleared : {result.type}) {{
^bb0(%a: {of}, %b: {of}, %sum: {of}):
  %product = {multiply} %a, %b : {of}
  %more = {add} %sum, %product : {of}
  linalg.yield %more : {of}
}} -> {result.type}""")


_ARITHMETIC = {
    "i1": ("arith.andi", "arith.ori"),
    "i": ("arith.muli", "arith.addi"),
    "c": ("complex.mul", "complex.add"),
    **dict.fromkeys("fb", ("arith.mulf", "arith.addf")),
}
"""Products and sums, by what the names of element types begin with."""
