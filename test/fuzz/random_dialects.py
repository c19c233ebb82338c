"""Operations of random programs that become something simpler first: TOSA, StableHLO, packing, bf16."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
from random_linalg import LINALG
from random_operations import maximum, minimum
from random_places import windows
from random_stablehlo import STABLEHLO
from random_tosa import TOSA
from random_values import Environment, Type

if TYPE_CHECKING:
    from random_program import Block, Generator


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


def half(g: Generator, block: Block) -> None:
    """A step in bf16, on the host, and back."""
    x, type_ = g.tensor(block, lambda t: t.dtype == "f32", lambda: g.tensor_type(dtypes=["f32"]))
    narrow = str(type_).replace("f32", "bf16")
    name, function = g.pick([("addf", np.add), ("mulf", np.multiply), ("subf", np.subtract), ("divf", np.divide),
                             ("maximumf", maximum), ("minimumf", minimum)])  # fmt: skip
    y, (a, b, c, result) = g.value(block, type_)[0], (g.name() for _ in range(4))
    mark = " {device.scope = #host}"

    def run(e: Environment) -> Any:
        one, two = (np.asarray(e[n]).astype(ml_dtypes.bfloat16).astype(np.float32) for n in (x, y))
        return np.asarray(function(one, two)).astype(ml_dtypes.bfloat16).astype(np.float32)

    text = (
        f"  {a} = arith.truncf {x}{mark} : {type_} to {narrow}\n"
        f"  {b} = arith.truncf {y}{mark} : {type_} to {narrow}\n"
        f"  {c} = arith.{name} {a}, {b}{mark} : {narrow}\n  {result} = arith.extf {c}{mark} : {narrow} to {type_}"
    )

    def step(e: Environment) -> None:
        e[result] = run(e)

    from random_program import Statement

    block.statements.append(Statement([(result, type_)], lambda: text, step))
    block.visible.append((result, type_))


def tosa(g: Generator, block: Block) -> None:
    g.pick(TOSA)(g, block)


def stablehlo(g: Generator, block: Block) -> None:
    g.pick(STABLEHLO)(g, block)


OTHER = [*[tosa] * 3, *[stablehlo] * 3, *LINALG, windows, windows, pack, half]
