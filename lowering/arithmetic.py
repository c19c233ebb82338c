"""Functions of floats as text: operations of `arith`, and of `math` what every machine has, such as fma."""

from __future__ import annotations

import struct
from collections.abc import Sequence

MANTISSA = {"f32": 23, "f64": 52}
BIAS = {"f32": 127, "f64": 1023}


class Value:
    """A value of a function that is being written: operators append operations. Numbers become constants.

    ``element`` is its type or, where ``shape`` is one like ``4x8``, that of the elements of a vector.
    """

    def __init__(self, lines: list[str], name: str, element: str, shape: str = "") -> None:
        self.lines, self.name, self.element, self.shape = lines, name, element, shape

    @property
    def type(self) -> str:
        return self._typed(self.element)

    def _typed(self, element: str) -> str:
        return f"vector<{self.shape}x{element}>" if self.shape else element

    def make(self, text: str, element: str = "") -> Value:
        value = Value(self.lines, f"%v{len(self.lines)}", element or self.element, self.shape)
        self.lines.append(f"{value.name} = {text}")
        return value

    def const(self, value: float | Value) -> Value:
        if isinstance(value, Value):
            return value
        is_float = self.element[0] == "f"
        literal = f"0x{bits(value, self.element):0{int(self.element[1:]) // 4}X}" if is_float else str(value)
        return self.make(f"arith.constant {f'dense<{literal}>' if self.shape else literal} : {self.type}")

    def op(self, name: str, *others: float | Value) -> Value:
        operands = [self.name, *(self.const(other).name for other in others)]
        return self.make(f"{name} {', '.join(operands)} : {self.type}")

    def __add__(self, other: float | Value) -> Value:
        return self.op("arith.addf" if self.element[0] == "f" else "arith.addi", other)

    def __sub__(self, other: float | Value) -> Value:
        return self.op("arith.subf" if self.element[0] == "f" else "arith.subi", other)

    def __mul__(self, other: float | Value) -> Value:
        return self.op("arith.mulf", other)

    def __truediv__(self, other: float | Value) -> Value:
        return self.op("arith.divf", other)

    def __rsub__(self, other: float) -> Value:
        return self.const(other) - self

    def __rtruediv__(self, other: float) -> Value:
        return self.const(other) / self

    def fma(self, factor: float | Value, summand: float | Value) -> Value:
        return self.op("math.fma", factor, summand)

    def size(self) -> Value:
        return self.op("math.absf")

    def signed(self, sign: Value) -> Value:
        return self.op("math.copysign", sign)

    def test(self, predicate: str, other: float | Value) -> Value:
        return self.make(f"arith.cmpf {predicate}, {self.name}, {self.const(other).name} : {self.type}", "i1")

    def choose(self, yes: float | Value, no: Value) -> Value:
        """Of a condition: ``yes`` where it holds."""
        types = f"{self.type}, {no.type}" if self.shape else no.type
        return no.make(f"arith.select {self.name}, {no.const(yes).name}, {no.name} : {types}")

    def cast(self, op: str, kind: str) -> Value:
        """To the number type ``kind``, ``f`` or ``i``, of as many bits."""
        return self.to(op, kind + self.element[1:])

    def to(self, op: str, element: str) -> Value:
        return self.make(f"arith.{op} {self.name} : {self.type} to {self._typed(element)}", element)

    def polynomial(self, coefficients: Sequence[float]) -> Value:
        """Horner's scheme; ``coefficients`` from the constant one on."""
        result = self.const(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            result = result.fma(self, coefficient)
        return result


def bits(value: float, type_: str) -> int:
    """The bits of a float of ``type_``."""
    float_, integer = ("<f", "<I") if type_ == "f32" else ("<d", "<Q")
    return struct.unpack(integer, struct.pack(float_, value))[0]
