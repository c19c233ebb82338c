"""Short Fourier transforms of single elements, written out: what one step of a long transform does everywhere.

A value that is known to be zero is None, and nothing is computed with it.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Sequence

from devscope.lowering.stablehlo.arrays import literal

Scalar = str | None
Complex = tuple[Scalar, Scalar]

MOST_PRIME = 13
"""The longest transform that is written out if it cannot be cut."""


class Body:
    """``lines`` of arith on numbers of type ``of``, behind those that define its constants."""

    def __init__(self, of: str) -> None:
        self._of = of
        self._lines: list[str] = []
        self._constants: dict[str, str] = {}

    @property
    def lines(self) -> list[str]:
        constants = (f"{name} = arith.constant {text} : {self._of}" for text, name in self._constants.items())
        return [*constants, *self._lines]

    def _define(self, operation: str, *operands: str) -> str:
        name = f"%t{len(self._lines)}"
        self._lines.append(f"{name} = arith.{operation} {', '.join(operands)} : {self._of}")
        return name

    def _number(self, number: float) -> str:
        return self._constants.setdefault(literal(number, self._of), f"%c{len(self._constants)}")

    def named(self, value: Scalar) -> str:
        return self._number(0.0) if value is None else value

    def add(self, a: Scalar, b: Scalar) -> Scalar:
        if a is None or b is None:
            return b if a is None else a
        return self._define("addf", a, b)

    def sub(self, a: Scalar, b: Scalar) -> Scalar:
        if a is None or b is None:
            return a if b is None else self._define("negf", b)
        return self._define("subf", a, b)

    def times(self, a: Scalar, b: str | float) -> Scalar:
        if a is None or b == 1:
            return a
        return self._define("mulf", a, b if isinstance(b, str) else self._number(b))

    def product(self, value: Complex, re: str, im: str) -> Complex:
        """With a number whose parts have these names."""
        a, b = value
        real = self.sub(self.times(a, re), self.times(b, im))
        return real, self.add(self.times(a, im), self.times(b, re))

    def turned(self, value: Complex, turn: int, n: int) -> Complex:
        """By ``turn`` of ``n`` parts of a whole turn, clockwise: exactly, if these are quarters."""
        for _ in range(4 * turn % (4 * n) // n):
            re, im = value
            value = im, self.sub(None, re)
        turn = 4 * turn % n  # of a quarter
        if turn == 0:
            return value
        re, im = value
        if 2 * turn == n:  # an eighth: both factors are equal
            factor = math.sqrt(0.5)
            return self.times(self.add(re, im), factor), self.times(self.sub(im, re), factor)
        root = cmath.exp(-0.5j * math.pi * turn / n)
        real = self.sub(self.times(re, root.real), self.times(im, root.imag))
        return real, self.add(self.times(re, root.imag), self.times(im, root.real))

    def transform(self, values: Sequence[Complex], sign: int) -> list[Complex]:
        """With the sign of the exponent. An inverse one is a forward one of parts that have changed places, and do so
        again behind it."""
        if sign > 0:
            return [(re, im) for im, re in self._forward([(im, re) for re, im in values])]
        return self._forward(values)

    def _forward(self, values: Sequence[Complex]) -> list[Complex]:
        """By Cooley and Tukey's algorithm (1965), in time."""
        n = len(values)
        if n == 1:
            return list(values)
        short = factors(n)[0]
        if short == n:
            return self._of_prime(values)
        long = n // short
        parts = [self._forward(values[first::short]) for first in range(short)]
        done: list[Complex] = [(None, None)] * n
        for k in range(long):
            turned = [self.turned(part[k], number * k, n) for number, part in enumerate(parts)]
            done[k::long] = self._forward(turned)
        return done

    def _of_prime(self, values: Sequence[Complex]) -> list[Complex]:
        """Of sums and differences of elements as far behind the first one as in front of it, around a circle."""
        n = len(values)
        first, *others = values
        if n == 2:
            return [self._sum(first, others[0]), self._difference(first, others[0])]
        half = range(1, n // 2 + 1)
        sums = {j: self._sum(values[j], values[n - j]) for j in half}
        differences = {j: self._difference(values[j], values[n - j]) for j in half}
        total = first
        for each in sums.values():
            total = self._sum(total, each)
        done = [total] * n
        for k in half:
            even = first
            odd: Complex = (None, None)
            for j in half:
                angle = 2 * math.pi * (j * k % n) / n
                even = self._sum(even, self.scaled(sums[j], math.cos(angle)))
                odd = self._sum(odd, self.scaled(differences[j], math.sin(angle)))
            re, im = odd
            done[k] = self.add(even[0], im), self.sub(even[1], re)
            done[n - k] = self.sub(even[0], im), self.add(even[1], re)
        return done

    def scaled(self, value: Complex, factor: float) -> Complex:
        return self.times(value[0], factor), self.times(value[1], factor)

    def _sum(self, a: Complex, b: Complex) -> Complex:
        return self.add(a[0], b[0]), self.add(a[1], b[1])

    def _difference(self, a: Complex, b: Complex) -> Complex:
        return self.sub(a[0], b[0]), self.sub(a[1], b[1])


def factors(n: int) -> list[int]:
    """Prime factors, the smallest first."""
    found = list[int]()
    factor = 2
    while factor * factor <= n:
        while n % factor == 0:
            found.append(factor)
            n //= factor
        factor += 1
    return [*found, n] if n > 1 else found
