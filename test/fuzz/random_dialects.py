"""Operations of random programs from dialects that become something simpler first: TOSA, StableHLO, packing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from random_values import FLOATS, Environment, Type, wide

if TYPE_CHECKING:
    from random_program import Block, Generator

_TOSA: dict[str, tuple[Callable[..., Any], int, float]] = {
    "add": (np.add, 2, 0),
    "sub": (np.subtract, 2, 0),
    "abs": (np.abs, 1, 0),
    "negate": (np.negative, 1, 0),
    "floor": (np.floor, 1, 0),
    "ceil": (np.ceil, 1, 0),
    "exp": (wide(np.exp), 1, 16),
    "tanh": (wide(np.tanh), 1, 16),
}
_HLO: dict[str, tuple[Callable[..., Any], int, float]] = {
    "add": (np.add, 2, 0),
    "subtract": (np.subtract, 2, 0),
    "multiply": (np.multiply, 2, 0),
    "divide": (np.divide, 2, 0),
    "abs": (np.abs, 1, 0),
    "negate": (np.negative, 1, 0),
    "exponential": (wide(np.exp), 1, 16),
    "tanh": (wide(np.tanh), 1, 16),
    "sine": (wide(np.sin), 1, 16),
}


def _solid_float(t: Type) -> bool:
    return t.dtype in ("f16", "f32") and len(t.shape) >= 1 and all(isinstance(e, int) and e for e in t.shape)


def _a_float(g: Generator) -> Type:
    return Type(g.pick(("f16", "f32")), tuple(g.pick((1, 2, 3, 5)) for _ in range(g.integer(1, 4))))


def tosa(g: Generator, block: Block) -> None:
    x, type_ = g.tensor(block, _solid_float, lambda: _a_float(g))
    if g.chance(0.2):
        order = g.sample(range(len(type_.shape)), len(type_.shape))
        result = Type(type_.dtype, tuple(type_.shape[d] for d in order))
        mark = f"{{perms = array<i32: {', '.join(map(str, order))}>{g.mark()}}}"
        text = f"tosa.transpose {x} {mark} : ({type_}) -> {result}"
        g.emit(block, result, text, lambda e: np.transpose(e[x], order))
        return
    name, (function, arity, ulps) = g.pick(list(_TOSA.items()))
    operands = [x, *(g.value(block, type_)[0] for _ in range(arity - 1))]
    types = ", ".join([str(type_)] * arity)
    zero = ""
    if name == "negate":  # the zero points are operands
        point = Type(type_.dtype, (1,))
        zero = g.constant(block, point, np.zeros(1, point.numpy))[0]
        types += f", {point}, {point}"
    given = ", ".join([*operands, *([zero, zero] if zero else [])])
    text = f"tosa.{name} {given}{g.scope()} : ({types}) -> {type_}"
    g.emit(block, type_, text, lambda e: e.inexact(function(*(e[name] for name in operands)), ulps))


def stablehlo(g: Generator, block: Block) -> None:
    x, type_ = g.tensor(block, lambda t: t.dtype in FLOATS, lambda: g.tensor_type(dtypes=FLOATS))
    if g.chance(0.2):
        order = g.sample(range(len(type_.shape)), len(type_.shape))
        result = Type(type_.dtype, tuple(type_.shape[d] for d in order))
        text = f"stablehlo.transpose {x}, dims = {order}{g.scope()} : ({type_}) -> {result}"
        g.emit(block, result, text, lambda e: np.transpose(e[x], order))
        return
    name, (function, arity, ulps) = g.pick(list(_HLO.items()))
    operands = [x, *(g.value(block, type_)[0] for _ in range(arity - 1))]
    text = f"stablehlo.{name} {', '.join(operands)}{g.scope()} : {type_}"
    g.emit(block, type_, text, lambda e: e.inexact(function(*(e[name] for name in operands)), ulps))


def pack(g: Generator, block: Block) -> None:
    """Into tiles of the last dimensions, and sometimes back."""
    tiles = [g.pick((1, 2, 3)) for _ in range(g.integer(1, 3))]
    outer: list[int | str] = [g.pick((1, 2, 4)) for _ in tiles]
    rest = list(g.shape(g.integer(0, 2)))
    type_ = Type(g.pick(g.dtypes), (*rest, *(int(o) * t for o, t in zip(outer, tiles, strict=True))))
    x, _ = g.value(block, type_)
    packed = Type(type_.dtype, (*rest, *outer, *tiles))
    dims = list(range(len(rest), len(rest) + len(tiles)))
    attributes = f"inner_dims_pos = {dims} inner_tiles = {tiles} into"
    n = len(tiles)
    there = [*range(len(rest)), *(len(rest) + 2 * i for i in range(n)), *(len(rest) + 2 * i + 1 for i in range(n))]
    split = [part for pair in zip(outer, tiles, strict=True) for part in pair]

    def packing(e: Environment) -> Any:
        return np.reshape(e[x], (*e.sizes(rest), *e.sizes(split))).transpose(there)

    text = f"linalg.pack {x} {attributes} {g.empty(block, packed)}{g.scope()} : {type_} -> {packed}"
    y = g.emit(block, packed, text, packing)
    if g.chance(0.5):
        back = np.argsort(there)
        text = f"linalg.unpack {y} {attributes} {g.empty(block, type_)}{g.scope()} : {packed} -> {type_}"
        g.emit(block, type_, text, lambda e: np.transpose(e[y], back).reshape(e.sizes(type_.shape)))


OTHER = [tosa, stablehlo, pack]
