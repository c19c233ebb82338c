"""Modules of linalg, line by line, as people's frontends produce them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Value:
    name: str
    shape: tuple[int, ...]
    dtype: str = "f32"

    @property
    def type(self) -> str:
        return f"tensor<{'x'.join(map(str, self.shape))}x{self.dtype}>"


class Text:
    """A module with one function ``@main``, line by line."""

    def __init__(self) -> None:
        self._arguments: list[Value] = []
        self._lines: list[str] = []
        self._count = 0

    def argument(self, *shape: int, dtype: str = "f32") -> Value:
        self._arguments.append(Value(f"%arg{len(self._arguments)}", shape, dtype))
        return self._arguments[-1]

    def _new(self, shape: Sequence[int], dtype: str) -> Value:
        self._count += 1
        return Value(f"%{self._count}", tuple(shape), dtype)

    def _line(self, line: str) -> None:
        self._lines.append(f"  {line}")

    def constant(self, value: float | str, dtype: str = "f32") -> str:
        """A scalar; -inf as its bits."""
        name = self._new((), dtype).name
        digits = f"{value:.9e}" if isinstance(value, float) else value
        self._line(f"{name} = arith.constant {digits} : {dtype}")
        return name

    def empty(self, shape: Sequence[int], dtype: str = "f32") -> Value:
        result = self._new(shape, dtype)
        self._line(f"{result.name} = tensor.empty() : {result.type}")
        return result

    def fill(self, value: float | str, shape: Sequence[int], dtype: str = "f32") -> Value:
        scalar, start = self.constant(value, dtype), self.empty(shape, dtype)
        result = self._new(shape, dtype)
        outs = f"outs({start.name} : {start.type})"
        self._line(f"{result.name} = linalg.fill ins({scalar} : {dtype}) {outs} -> {result.type}")
        return result

    def named(self, operation: str, operands: Sequence[Value], start: Value, attributes: str = "") -> Value:
        result = self._new(start.shape, start.dtype)
        self._line(f"{result.name} = linalg.{operation} {attributes} {_ins(operands, start)} -> {result.type}")
        return result

    def transpose(self, value: Value, *permutation: int) -> Value:
        start = self.empty([value.shape[axis] for axis in permutation], value.dtype)
        result = self._new(start.shape, start.dtype)
        self._line(f"{result.name} = linalg.transpose {_ins([value], start)} permutation = {list(permutation)}")
        return result

    def pad(self, value: Value, low: Sequence[int], high: Sequence[int], with_: float | str = 0.0) -> Value:
        shape = [a + extent + b for a, extent, b in zip(low, value.shape, high, strict=True)]
        scalar, result = self.constant(with_), self._new(shape, value.dtype)
        axes = ", ".join(f"%i{axis}: index" for axis in range(len(shape)))
        self._line(f"{result.name} = tensor.pad {value.name} low{list(low)} high{list(high)} {{")
        self._line(f"^bb0({axes}):\n    tensor.yield {scalar} : {value.dtype}")
        self._line(f"}} : {value.type} to {result.type}")
        return result

    def insert(self, value: Value, into: Value, offsets: Sequence[int], strides: Sequence[int]) -> Value:
        result = self._new(into.shape, into.dtype)
        self._line(
            f"{result.name} = tensor.insert_slice {value.name} into {into.name}{list(offsets)}{list(value.shape)}"
            f"{list(strides)} : {value.type} into {into.type}"
        )
        return result

    def map(self, body: str, *operands: Value | tuple[Value, Sequence[int]], shape: Sequence[int] = ()) -> Value:
        """An elementwise operation: ``body`` defines %r from %a, %b, ...; an operand may say which axes it has."""
        parts = [(o, range(len(o.shape))) if isinstance(o, Value) else o for o in operands]
        start = self.empty(shape or parts[0][0].shape)
        maps = [*(axes for _, axes in parts), range(len(start.shape))]
        return self._generic(body, [value for value, _ in parts], [start], maps, ())[0]

    def reduce(self, body: str, value: Value, axis: int, *starts: Value) -> list[Value]:
        """``body`` defines %r (%r0, %r1 where there are several) from %a and the accumulators %b, %c."""
        kept = [a for a in range(len(value.shape)) if a != axis]
        return self._generic(body, [value], starts, [range(len(value.shape)), *[kept] * len(starts)], (axis,))

    def _generic(
        self,
        body: str,
        operands: Sequence[Value],
        starts: Sequence[Value],
        maps: Sequence[Sequence[int]],
        reduced: Sequence[int],
    ) -> list[Value]:
        rank = max(max(axes, default=-1) for axes in maps) + 1
        axes = ", ".join(f"d{axis}" for axis in range(rank))
        texts = ", ".join(f"affine_map<({axes}) -> ({', '.join(f'd{a}' for a in m)})>" for m in maps)
        kinds = ", ".join('"reduction"' if axis in reduced else '"parallel"' for axis in range(rank))
        letters = "abcdefgh"
        inside = ", ".join(f"%{letters[n]}: {value.dtype}" for n, value in enumerate([*operands, *starts]))
        results = [self._new(start.shape, start.dtype) for start in starts]
        yielded = ["%r"] if len(starts) == 1 else [f"%r{n}" for n in range(len(starts))]
        types = ", ".join(start.type for start in starts)
        # Each of several results is a name of its own, which the text of MLIR does with %x:2, %x#0.
        name = results[0].name if len(results) == 1 else f"{results[0].name}:{len(results)}"
        if len(results) > 1:
            results = [Value(f"{results[0].name}#{n}", start.shape, start.dtype) for n, start in enumerate(starts)]
        self._line(f"{name} = linalg.generic {{indexing_maps = [{texts}], iterator_types = [{kinds}]}}")
        outs = f"{', '.join(s.name for s in starts)} : {types}"
        ins = f"{', '.join(o.name for o in operands)} : {', '.join(o.type for o in operands)}"
        self._line(f"    ins({ins}) outs({outs}) {{\n  ^bb0({inside}):\n    {body}")
        scalars = ", ".join(start.dtype for start in starts)
        types = types if len(starts) == 1 else f"({types})"
        self._line(f"  linalg.yield {', '.join(yielded)} : {scalars}\n  }} -> {types}")
        return results

    def returning(self, result: Value) -> str:
        arguments = ", ".join(f"{argument.name}: {argument.type}" for argument in self._arguments)
        body = "\n".join(self._lines)
        return (
            f"func.func @main({arguments}) -> {result.type} {{\n{body}\n"
            f"  return {result.name} : {result.type}\n}}\n"
        )


def _ins(operands: Sequence[Value], start: Value) -> str:
    names, types = ", ".join(o.name for o in operands), ", ".join(o.type for o in operands)
    return f"ins({names} : {types}) outs({start.name} : {start.type})"
