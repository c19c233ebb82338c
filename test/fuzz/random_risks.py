"""What a call may do that has no meaning: it must be an error, and never a result (docs/checks.md).

A risk is the last statement of a program; its reference raises `Undefined` for the sizes with which it goes wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from random_values import Environment, Type, Undefined

if TYPE_CHECKING:
    from random_program import Block, Generator, Value

INDEX = Type("index", scalar=True)
_Run = Callable[[Environment], Any]
_Risk = tuple[Type, str, _Run]


def _demand(holds: Any, what: str) -> None:
    if not holds:
        raise Undefined(what)


def _pair(g: Generator, block: Block) -> tuple[Value, Value]:
    """Tensors of %n and of %m rows: arguments, since the element of a constant is known whatever its index is."""
    rest, dtype = g.sample((1, 2, 3), g.integer(0, 3)), g.pick(("f32", "i32"))
    one, other = (g.argument(block, Type(dtype, (extent, *rest))) for extent in ("n", "m"))
    return one, other


def _add(g: Generator, block: Block) -> _Risk:
    (x, type_), (y, _) = _pair(g, block)
    name = "arith.addf" if type_.dtype == "f32" else "arith.addi"
    text = f"{name} {x}, {y}{g.scope()} : {type_}"
    if g.chance(0.5):
        ends = f"ins({x}, {y} : {type_}, {type_}) outs({g.empty(block, type_)} : {type_})"
        text = f"linalg.add{g.scope()} {ends} -> {type_}"

    def run(e: Environment) -> Any:
        _demand(e["%n"] == e["%m"], "sizes of an addition")
        return e[x] + e[y]

    return type_, text, run


def _concat(g: Generator, block: Block) -> _Risk:
    (x, type_), (y, _) = _pair(g, block)
    if len(type_.shape) == 1:
        return _add(g, block)
    result = Type(type_.dtype, ("n", 2 * int(type_.shape[1]), *type_.shape[2:]))

    def run(e: Environment) -> Any:
        _demand(e["%n"] == e["%m"], "sizes of a concatenation")
        return np.concatenate([e[x], e[y]], 1)

    return result, f"tensor.concat dim(1) {x}, {y}{g.scope()} : ({type_}, {type_}) -> {result}", run


def _cast(g: Generator, block: Block) -> _Risk:
    (x, type_), _ = _pair(g, block)
    result = Type(type_.dtype, (3, *type_.shape[1:]))

    def run(e: Environment) -> Any:
        _demand(e["%n"] == 3, "the size of a cast")
        return e[x]

    return result, f"tensor.cast {x} : {type_} to {result}", run


def _slices(g: Generator, type_: Type, offset: str, size: str) -> str:
    rest = [str(e) for e in type_.shape[1:]]
    zeros, ones = ["0"] * len(rest), ["1"] * len(type_.shape)
    return f"[{', '.join([offset, *zeros])}] [{', '.join([size, *rest])}] [{', '.join(ones)}]"


def _extract_slice(g: Generator, block: Block) -> _Risk:
    (x, type_), _ = _pair(g, block)
    result = Type(type_.dtype, ("m", *type_.shape[1:]))

    def run(e: Environment) -> Any:
        _demand(e["%m"] + 1 <= e["%n"], "a slice that is not inside")
        return e[x][1 : 1 + int(e["%m"])]

    text = f"tensor.extract_slice {x}{_slices(g, type_, '1', '%m')}{g.scope()} : {type_} to {result}"
    return result, text, run


def _insert_slice(g: Generator, block: Block) -> _Risk:
    (x, type_), (y, _) = _pair(g, block)

    def run(e: Environment) -> Any:
        _demand(e["%m"] <= e["%n"], "a slice that is not inside")
        result = np.array(e[x])
        result[: int(e["%m"])] = e[y]
        return result

    text = f"tensor.insert_slice {y} into {x}{_slices(g, type_, '0', '%m')}{g.scope()} : {type_} into {type_}"
    return type_, text, run


def _extract(g: Generator, block: Block) -> _Risk:
    (x, type_), _ = _pair(g, block)
    places = ", ".join(["%m", *("%c0" for _ in type_.shape[1:])])

    def run(e: Environment) -> Any:
        _demand(e["%m"] < e["%n"], "an index out of range")
        return e[x][(int(e["%m"]), *(0 for _ in type_.shape[1:]))]

    return Type(type_.dtype, scalar=True), f"tensor.extract {x}[{places}] : {type_}", run


def _insert(g: Generator, block: Block) -> _Risk:
    (x, type_), _ = _pair(g, block)
    scalar = Type(type_.dtype, scalar=True)
    value, places = g.value(block, scalar)[0], ["%m", *("%c0" for _ in type_.shape[1:])]

    def run(e: Environment) -> Any:
        _demand(e["%m"] < e["%n"], "an index out of range")
        result = np.array(e[x])
        result[(int(e["%m"]), *(0 for _ in type_.shape[1:]))] = e[value]
        return result

    return type_, f"tensor.insert {value} into {x}[{', '.join(places)}]{g.scope()} : {type_}", run


def _divide(g: Generator, block: Block) -> _Risk:
    def run(e: Environment) -> Any:
        _demand(e["%m"] != 0, "a division by zero")
        return e["%n"] // e["%m"]

    return INDEX, f"arith.{g.pick(('divui', 'divsi'))} %n, %m : index", run


ALWAYS = (_add, _concat, _cast, _extract_slice, _insert_slice)
CHECKED = (_extract, _insert, _divide)
"""Only with ``checks="on"``."""


def add_risk(g: Generator, block: Block, checked: bool) -> Value:
    type_, text, run = g.pick(CHECKED if checked else ALWAYS)(g, block)
    return g.emit(block, type_, text, run), type_
