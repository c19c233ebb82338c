"""Writes StableHLO text: what ONNX operators become that are lowered here (`operators`).

Shapes are static. Element types are MLIR's, unsigned ones as StableHLO has them (``ui8``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from devscope.frontends.onnx.types import (
    DTYPES,
    Refused,
    common_shape,
    is_code,
    is_complex,
    is_float,
    is_unsigned,
    width,
)


@dataclass(frozen=True)
class Value:
    """An SSA value; ``known`` has its elements where the model says them."""

    name: str
    element: str
    shape: tuple[int, ...]

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def type(self) -> str:
        return tensor_type(self.element, self.shape)


def tensor_type(element: str, shape: Sequence[int]) -> str:
    return f"tensor<{''.join(f'{extent}x' for extent in shape)}{element}>"


class Builder:
    """Appends operations to a function's text; every method that makes one returns its `Value`."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.location = ""
        """What stands between the parentheses of ``loc()``."""
        self._count = 0

    def fresh(self, element: str, shape: Sequence[int]) -> Value:
        self._count += 1
        return Value(f"%v{self._count}", element, tuple(int(extent) for extent in shape))

    def emit(self, text: str) -> None:
        where = f" loc({self.location})" if self.location and not text.endswith("{") else ""
        self.lines.append(f"  {text}{where}")

    def op(self, text: str, element: str, shape: Sequence[int]) -> Value:
        """``text`` without the result and its type; operands are in it."""
        result = self.fresh(element, shape)
        self.emit(f"{result.name} = {text}")
        return result

    # Constants.

    def constant(self, array: Any, element: str) -> Value:
        array = np.asarray(array)
        result = self.fresh(element, array.shape)
        self.emit(f"{result.name} = stablehlo.constant {dense(array, element)} : {result.type}")
        return result

    def scalar(self, number: Any, element: str) -> Value:
        return self.constant(_as(number, element), element)

    def full(self, number: Any, element: str, shape: Sequence[int]) -> Value:
        array = np.broadcast_to(_as(number, element), tuple(shape))
        return self.constant(array, element)

    def like(self, number: Any, value: Value) -> Value:
        return self.full(number, value.element, value.shape)

    def iota(self, axis: int, shape: Sequence[int], element: str = "i64") -> Value:
        return self.op(f"stablehlo.iota dim = {axis} : {tensor_type(element, shape)}", element, shape)

    # Elementwise.

    def unary(self, name: str, x: Value) -> Value:
        dialect = "chlo" if name in _CHLO else "stablehlo"
        arrow = f"{x.type} -> {x.type}" if dialect == "chlo" else x.type
        return self.op(f"{dialect}.{name} {x.name} : {arrow}", x.element, x.shape)

    def binary(self, name: str, x: Value, y: Value | float) -> Value:
        x, y = self.broadcast_both(x, y)
        return self.op(f"stablehlo.{name} {x.name}, {y.name} : {x.type}", x.element, x.shape)

    def compare(self, direction: str, x: Value, y: Value | float) -> Value:
        x, y = self.broadcast_both(x, y)
        return self.op(
            f"stablehlo.compare {direction}, {x.name}, {y.name} : ({x.type}, {y.type}) -> "
            f"{tensor_type('i1', x.shape)}",
            "i1",
            x.shape,
        )

    def select(self, condition: Value, x: Value | float, y: Value | float) -> Value:
        typed = next(value for value in (x, y) if isinstance(value, Value))
        x, y = (v if isinstance(v, Value) else self.scalar(v, typed.element) for v in (x, y))
        shape = common_shape(condition.shape, x.shape, y.shape)
        condition, x, y = (self.broadcast(value, shape) for value in (condition, x, y))
        types = f"{condition.type}, {x.type}"
        return self.op(f"stablehlo.select {condition.name}, {x.name}, {y.name} : {types}", x.element, shape)

    def convert(self, x: Value, element: str) -> Value:
        """Of numbers that are in the range of the new type: what others become ONNX leaves open."""
        if x.element == element:
            return x
        if is_complex(x.element) and not is_complex(element):
            raise Refused("conversion of complex numbers")
        text = f"stablehlo.convert {x.name} {{devscope.in_range}} : ({x.type}) -> {tensor_type(element, x.shape)}"
        return self.op(text, element, x.shape)

    def bitcast(self, x: Value, element: str) -> Value:
        if x.element == element:
            return x
        to = tensor_type(element, x.shape)
        return self.op(f"stablehlo.bitcast_convert {x.name} : ({x.type}) -> {to}", element, x.shape)

    def broadcast_both(self, x: Value, y: Value | float) -> tuple[Value, Value]:
        if not isinstance(y, Value):
            return x, self.like(y, x)
        shape = common_shape(x.shape, y.shape)
        return self.broadcast(x, shape), self.broadcast(y, shape)

    def broadcast(self, x: Value, shape: Sequence[int]) -> Value:
        """As numpy does: missing dimensions are the first."""
        return self.broadcast_in_dim(x, shape, range(len(shape) - x.rank, len(shape)))

    def broadcast_in_dim(self, x: Value, shape: Sequence[int], axes: Sequence[int]) -> Value:
        shape = tuple(int(extent) for extent in shape)
        if x.shape == shape and list(axes) == [*range(x.rank)]:
            return x
        text = f"stablehlo.broadcast_in_dim {x.name}, dims = {[*axes]} : ({x.type}) -> "
        return self.op(text + tensor_type(x.element, shape), x.element, shape)

    # Shapes.

    def reshape(self, x: Value, shape: Sequence[int]) -> Value:
        shape = tuple(int(extent) for extent in shape)
        if x.shape == shape:
            return x
        if math.prod(shape) != x.size:
            raise Refused(f"a reshape from {[*x.shape]} to {[*shape]}")
        return self.op(
            f"stablehlo.reshape {x.name} : ({x.type}) -> {tensor_type(x.element, shape)}", x.element, shape
        )

    def transpose(self, x: Value, order: Sequence[int]) -> Value:
        if [*order] == [*range(x.rank)]:
            return x
        shape = [x.shape[axis] for axis in order]
        text = f"stablehlo.transpose {x.name}, dims = {[int(a) for a in order]} : ({x.type}) -> "
        return self.op(text + tensor_type(x.element, shape), x.element, shape)

    def slice(
        self, x: Value, starts: Sequence[int], ends: Sequence[int], steps: Sequence[int] | None = None
    ) -> Value:
        steps = steps or [1] * x.rank
        if x.rank == 0 or (not any(starts) and tuple(ends) == x.shape and set(steps) == {1}):
            return x
        shape = [max(0, -(-(end - start) // step)) for start, end, step in zip(starts, ends, steps, strict=True)]
        if 0 in shape:
            return self.full(0, x.element, shape)
        ranges = ", ".join(f"{s}:{e}:{t}" for s, e, t in zip(starts, ends, steps, strict=True))
        text = f"stablehlo.slice {x.name} [{ranges}] : ({x.type}) -> {tensor_type(x.element, shape)}"
        return self.op(text, x.element, shape)

    def part(self, x: Value, axis: int, start: int, end: int, step: int = 1) -> Value:
        starts, ends, steps = [0] * x.rank, [*x.shape], [1] * x.rank
        starts[axis], ends[axis], steps[axis] = start, end, step
        return self.slice(x, starts, ends, steps)

    def at(self, x: Value, axis: int, place: int) -> Value:
        """One place along an axis, which goes."""
        return self.reshape(self.part(x, axis, place, place + 1), x.shape[:axis] + x.shape[axis + 1 :])

    def reverse(self, x: Value, axes: Sequence[int]) -> Value:
        return self.op(f"stablehlo.reverse {x.name}, dims = {[*axes]} : {x.type}", x.element, x.shape)

    def concatenate(self, values: Sequence[Value], axis: int) -> Value:
        values = [value for value in values if value.shape[axis]] or [*values[:1]]
        if len(values) == 1:
            return values[0]
        shape = [*values[0].shape]
        shape[axis] = sum(value.shape[axis] for value in values)
        names, types = ", ".join(v.name for v in values), ", ".join(v.type for v in values)
        to = tensor_type(values[0].element, shape)
        return self.op(
            f"stablehlo.concatenate {names}, dim = {axis} : ({types}) -> {to}", values[0].element, shape
        )

    def pad(
        self,
        x: Value,
        number: Value | float,
        low: Sequence[int],
        high: Sequence[int],
        inner: Sequence[int] | None = None,
    ) -> Value:
        inner = inner or [0] * x.rank
        if not any(low) and not any(high) and not any(inner):
            return x
        filler = number if isinstance(number, Value) else self.scalar(number, x.element)
        shape = [lo + hi + n + max(0, n - 1) * i for lo, hi, n, i in zip(low, high, x.shape, inner, strict=True)]
        to = tensor_type(x.element, shape)
        text = f"stablehlo.pad {x.name}, {filler.name}, low = {[*low]}, high = {[*high]}, interior = {[*inner]} : "
        return self.op(f"{text}({x.type}, {filler.type}) -> {to}", x.element, shape)

    # Reductions and contractions.

    def reduce(self, name: str, x: Value, axes: Sequence[int], keep: bool = False) -> Value:
        """``name``: a binary operation of StableHLO.

        Sums of f16 are rounded once. ONNX's reference implementation rounds those of bf16 at each step, in order;
        so does `lowering.stablehlo.wide_results` short ones.
        """
        axes = sorted(axis % x.rank for axis in axes)
        rest = [extent for axis, extent in enumerate(x.shape) if axis not in axes]
        if x.element == "f16" and name == "add" and axes:
            return self.convert(self.reduce(name, self.convert(x, "f32"), axes, keep), x.element)
        result = x
        if axes:
            start = self.scalar(neutral(name, x.element), x.element)
            to = tensor_type(x.element, rest)
            text = f"stablehlo.reduce({x.name} init: {start.name}) applies stablehlo.{name} across dimensions = {axes}"
            result = self.op(f"{text} : ({x.type}, {start.type}) -> {to}", x.element, rest)
        if keep:
            result = self.reshape(result, [1 if a in axes else n for a, n in enumerate(x.shape)])
        return result

    def window(
        self,
        name: str,
        x: Value,
        sizes: Sequence[int],
        strides: Sequence[int],
        dilations: Sequence[int],
        pads: Sequence[tuple[int, int]],
        start: float | None = None,
    ) -> Value:
        """``stablehlo.reduce_window``; all sequences have an element per dimension."""
        first = self.scalar(neutral(name, x.element) if start is None else start, x.element)
        shape = [
            (n + lo + hi - ((k - 1) * d + 1)) // s + 1
            for n, k, s, d, (lo, hi) in zip(x.shape, sizes, strides, dilations, pads, strict=True)
        ]
        result = self.fresh(x.element, shape)
        arrays = {"window_dimensions": sizes, "window_strides": strides, "window_dilations": dilations}
        attributes = ", ".join(
            f"{key} = array<i64: {', '.join(map(str, list_))}>" for key, list_ in arrays.items()
        )
        padding = f"padding = dense<{[list(pair) for pair in pads]}> : tensor<{x.rank}x2xi64>"
        cell = f"tensor<{x.element}>"
        self.emit(
            f'{result.name} = "stablehlo.reduce_window"({x.name}, {first.name}) <{{{attributes}, {padding}}}> ({{ '
            f"^bb0(%a: {cell}, %b: {cell}): %c = stablehlo.{name} %a, %b : {cell} stablehlo.return %c : {cell} "
            f"}}) : ({x.type}, {cell}) -> {result.type}"
        )
        return result

    def dot(
        self,
        x: Value,
        y: Value,
        batch: tuple[Sequence[int], Sequence[int]],
        contract: tuple[Sequence[int], Sequence[int]],
        element: str | None = None,
    ) -> Value:
        """Dimensions of the result: those of the batch, what is left of ``x``, of ``y``. Sums are rounded once."""
        element = element or x.element
        if element in SMALL_FLOATS:
            return self.convert(self.dot(x, y, batch, contract, "f32"), element)
        left = [n for a, n in enumerate(x.shape) if a not in {*batch[0], *contract[0]}]
        right = [n for a, n in enumerate(y.shape) if a not in {*batch[1], *contract[1]}]
        shape = [*(x.shape[a] for a in batch[0]), *left, *right]
        batching = f", batching_dims = {[*batch[0]]} x {[*batch[1]]}" if batch[0] else ""
        text = f"stablehlo.dot_general {x.name}, {y.name}{batching}, contracting_dims = "
        text += f"{[*contract[0]]} x {[*contract[1]]} : ({x.type}, {y.type}) -> "
        return self.op(text + tensor_type(element, shape), element, shape)

    # Places computed at run time.

    def take(self, x: Value, places: Value, axis: int) -> Value:
        """``numpy.take``: ``places`` are i64 and inside; a clamped one otherwise."""
        offsets = [*range(axis), *range(axis + places.rank, x.rank - 1 + places.rank)]
        shape = [*x.shape[:axis], *places.shape, *x.shape[axis + 1 :]]
        sizes = [1 if a == axis else n for a, n in enumerate(x.shape)]
        if 0 in shape:
            return self.full(0, x.element, shape)
        numbers = f"offset_dims = {offsets}, collapsed_slice_dims = [{axis}], start_index_map = [{axis}], "
        numbers += f"index_vector_dim = {places.rank}"
        return self.gather(x, places, numbers, sizes, shape)

    def gather(self, x: Value, places: Value, numbers: str, sizes: Sequence[int], shape: Sequence[int]) -> Value:
        result = self.fresh(x.element, shape)
        self.emit(
            f'{result.name} = "stablehlo.gather"({x.name}, {places.name}) <{{dimension_numbers = #stablehlo.gather<'
            f"{numbers}>, slice_sizes = array<i64{': ' if sizes else ''}{', '.join(map(str, sizes))}>}}> : "
            f"({x.type}, {places.type}) -> {result.type}"
        )
        return result

    def gather_points(self, x: Value, places: Value, batch: int = 0) -> Value:
        """Elements or slices of ``x``: the last dimension of ``places`` has coordinates in those behind ``batch``."""
        depth = places.shape[-1]
        inner = x.rank - batch - depth
        outer = places.rank - 1
        shape = [*places.shape[:-1], *x.shape[batch + depth :]]
        if 0 in shape:
            return self.full(0, x.element, shape)
        if batch:
            coordinates = [self.iota(axis, [*places.shape[:-1], 1]) for axis in range(batch)]
            return self.gather_points(x, self.concatenate([*coordinates, places], outer))
        numbers = f"offset_dims = {[*range(outer, outer + inner)]}, collapsed_slice_dims = {[*range(depth)]}, "
        numbers += f"start_index_map = {[*range(depth)]}, index_vector_dim = {outer}"
        return self.gather(x, places, numbers, [1] * depth + [*x.shape[depth:]], shape)

    def scatter_points(self, x: Value, places: Value, updates: Value, name: str | None) -> Value:
        """``x`` with ``updates`` at ``places`` (see `gather_points`), put there, or combined by the operation ``name``."""
        if 0 in updates.shape or 0 in places.shape[:-1]:
            return x
        depth, outer = places.shape[-1], places.rank - 1
        window = [*range(outer, outer + x.rank - depth)]
        numbers = f"update_window_dims = {window}, inserted_window_dims = {[*range(depth)]}, "
        numbers += f"scatter_dims_to_operand_dims = {[*range(depth)]}, index_vector_dim = {outer}"
        cell = f"tensor<{x.element}>"
        body = f"%c = stablehlo.{name} %a, %b : {cell} stablehlo.return %c : {cell}"
        if name is None:
            body = f"stablehlo.return %b : {cell}"
        result = self.fresh(x.element, x.shape)
        self.emit(
            f'{result.name} = "stablehlo.scatter"({x.name}, {places.name}, {updates.name}) <{{scatter_dimension_numbers'
            f" = #stablehlo.scatter<{numbers}>}}> ({{ ^bb0(%a: {cell}, %b: {cell}): {body} }}) : "
            f"({x.type}, {places.type}, {updates.type}) -> {result.type}"
        )
        return result

    def sort(self, values: Sequence[Value], axis: int, direction: str) -> list[Value]:
        """Stable, by the first of ``values``, in a total order of floats."""
        types = ", ".join(value.type for value in values)
        cells = [f"%{'ab'[side]}{n}: tensor<{v.element}>" for n, v in enumerate(values) for side in (0, 1)]
        key = values[0]
        kind = ", TOTALORDER" if is_float(key.element) else ""
        results = [self.fresh(value.element, value.shape) for value in values]
        names = ", ".join(value.name for value in results)
        cell = f"tensor<{key.element}>"
        self.emit(
            f'{names} = "stablehlo.sort"({", ".join(v.name for v in values)}) <{{dimension = {axis} : i64, '
            f"is_stable = true}}> ({{ ^bb0({', '.join(cells)}): %c = stablehlo.compare {direction}, %a0, %b0{kind} : "
            f"({cell}, {cell}) -> tensor<i1> stablehlo.return %c : tensor<i1> }}) : ({types}) -> ({types})"
        )
        return results

    def loop(
        self,
        first: Sequence[Value],
        body: Callable[[Value, list[Value]], list[Value]],
        count: int,
    ) -> list[Value]:
        """``count`` times ``body`` on the number of the iteration, an i64, and the values of the last one."""
        start = self.scalar(0, "i64")
        carried = [start, *first]
        return self.repeat(
            carried,
            lambda values: self.compare("LT", values[0], count),
            lambda values: [self.binary("add", values[0], 1), *body(values[0], values[1:])],
        )[1:]

    def repeat(
        self,
        carried: list[Value],
        condition: Callable[[list[Value]], Value],
        body: Callable[[list[Value]], list[Value]],
    ) -> list[Value]:
        """``stablehlo.while``."""
        results = [self.fresh(v.element, v.shape) for v in carried]
        inner = [self.fresh(v.element, v.shape) for v in carried]
        types = ", ".join(v.type for v in carried)
        heads = ", ".join(f"{v.name}: {v.type}" for v in inner)
        again = [self.fresh(v.element, v.shape) for v in carried]
        head2 = ", ".join(f"{v.name}: {v.type}" for v in again)
        prefix = ", ".join(v.name for v in results)
        self.emit(f'{prefix} = "stablehlo.while"({", ".join(v.name for v in carried)}) ({{')
        self.lines.append(f"  ^bb0({heads}):")
        self.lines.append(f"  stablehlo.return {condition(inner).name} : tensor<i1>")
        self.lines.append("  }, {")
        self.lines.append(f"  ^bb0({head2}):")
        made = body(again)
        self.lines.append(f"  stablehlo.return {', '.join(v.name for v in made)} : {types}")
        self.emit(f"}}) : ({types}) -> ({types})")
        return results

    def choose(self, condition: Value, branches: Sequence[Callable[[], list[Value]]]) -> list[Value]:
        """``stablehlo.if``; both branches give values of the same types."""
        bodies: list[tuple[list[str], list[Value]]] = []
        for branch in branches:
            outer, self.lines = self.lines, []
            try:
                made = branch()
                bodies.append((self.lines, made))
            finally:
                self.lines = outer
        if [v.type for v in bodies[0][1]] != [v.type for v in bodies[1][1]]:
            raise Refused("branches of If that give other shapes or types")
        results = [self.fresh(v.element, v.shape) for v in bodies[0][1]]
        types = ", ".join(v.type for v in results)
        self.emit(f'{", ".join(v.name for v in results)} = "stablehlo.if"({condition.name}) ({{')
        for number, (lines, made) in enumerate(bodies):
            self.lines += [*lines, f"  stablehlo.return {', '.join(v.name for v in made)} : {types}"]
            self.lines += [] if number else ["  }, {"]
        self.emit(f"}}) : (tensor<i1>) -> ({types})")
        return results


_CHLO = frozenset(
    [
        "asin",
        "acos",
        "atan",
        "sinh",
        "cosh",
        "asinh",
        "acosh",
        "atanh",
        "erf",
        "erfc",
        "tan",
        "lgamma",
        "digamma",
        "is_inf",
        "is_neg_inf",
        "is_pos_inf",
    ]
)


SMALL_FLOATS = frozenset(("f16", "bf16"))


def neutral(name: str, element: str) -> Any:
    """What a reduction begins with."""
    if name in ("add", "or", "xor"):
        return 0
    if name in ("multiply", "and"):
        return 1 if name == "multiply" or element == "i1" else -1
    sign = -1 if name == "maximum" else 1
    if is_float(element):
        return sign * math.inf
    if element == "i1":
        return name == "minimum"
    return limits(element)[0 if name == "maximum" else 1]


def limits(element: str) -> tuple[int, int]:
    """The smallest and the largest integer."""
    bits = width(element)
    return (0, (1 << bits) - 1) if is_unsigned(element) else (-(1 << bits - 1), (1 << bits - 1) - 1)


def _as(number: Any, element: str) -> Any:
    return np.asarray(number).astype(DTYPES[element])


def dense(array: Any, element: str) -> str:
    """A dense literal, in hexadecimal where the type allows for it."""
    array = np.ascontiguousarray(np.asarray(array).astype(DTYPES[element], copy=False)).reshape(np.shape(array))
    if array.size == 0:
        return "dense<>"
    if element == "i1":
        return f"dense<{str(array.tolist()).lower()}>"
    if is_code(element) and width(element) < 8:
        return f"dense<{array.astype(np.float32).tolist()}>"
    if width(element) < 8:
        return f"dense<{array.astype(np.int64).tolist()}>"
    flat = array.reshape(-1)
    if flat.size > 1 and flat.tobytes() == flat[:1].tobytes() * flat.size:
        flat = flat[:1]
    if is_complex(element):
        pairs = flat.view(flat.real.dtype)
        if flat.size == 1:
            return f"dense<({', '.join(_bits(n, element) for n in pairs)})>"
        return f'dense<"0x{flat.tobytes().hex().upper()}">'
    if flat.size == 1:
        return f"dense<{_bits(flat[0], element)}>"
    return f'dense<"0x{flat.tobytes().hex().upper()}">'


def _bits(number: Any, element: str) -> str:
    """A number as MLIR writes it: floats by their bits."""
    if is_float(element) or is_complex(element):
        size = number.dtype.itemsize
        return f"0x{int.from_bytes(number.tobytes(), 'little'):0{2 * size}X}"
    return str(int(number))
