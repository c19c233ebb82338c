"""Elementwise results that go into parts of a larger tensor, which may cover each other."""

from dataclasses import dataclass

import numpy as np

import devscope

_OPERATIONS = {"absf": np.abs, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc}
_PART, _WHOLE = "tensor<32xf32>", "tensor<96xf32>"


@dataclass
class _Program:
    """A function of as many vectors as ``kinds`` of operations, whose results go to ``places`` of a vector that is
    filled before, or empty. ``order``: that of the operations, not of what they are put into."""

    kinds: list[str]
    places: list[int]
    order: list[int]
    is_filled: bool

    def text(self, name: str) -> str:
        lines = [f"%y{n} = math.{self.kinds[n]} %x{n} : {_PART}" for n in self.order]
        begin = "arith.constant dense<7.0>" if self.is_filled else "tensor.empty()"
        lines.append(f"%p0 = {begin} : {_WHOLE}")
        for n, place in enumerate(self.places):
            where = f"[{place}] [32] [1] : {_PART} into {_WHOLE}"
            lines.append(f"%p{n + 1} = tensor.insert_slice %y{n} into %p{n}{where}")
        arguments = ", ".join(f"%x{n}: {_PART}" for n in range(len(self.kinds)))
        lines.append(f"return %p{len(self.places)} : {_WHOLE}")
        return f"func.func @{name}({arguments}) -> {_WHOLE} {{\n" + "\n".join(lines) + "\n}\n"

    def reference(self, x: list[np.ndarray]) -> np.ndarray:
        """NaN where nothing is said."""
        result = np.full(96, 7 if self.is_filled else np.nan, np.float32)
        for kind, place, values in zip(self.kinds, self.places, x, strict=True):
            result[place : place + 32] = _OPERATIONS[kind](values)
        return result


def test_parts_that_cover_each_other() -> None:
    rng = np.random.default_rng(3)
    programs: list[_Program] = []
    for number in range(24):
        count = 2 + number % 3
        kinds = [str(kind) for kind in rng.choice(list(_OPERATIONS), count)]
        places = [int(place) for place in rng.choice([0, 16, 32, 40, 48, 64], count)]
        programs.append(_Program(kinds, places, [int(n) for n in rng.permutation(count)], number % 2 == 0))
    executable = devscope.compile("".join(each.text(f"f{number}") for number, each in enumerate(programs)))
    for number, program in enumerate(programs):
        x = [4 * rng.standard_normal(32).astype(np.float32) for _ in program.kinds]
        want, found = program.reference(x), executable.run(f"f{number}", *x)
        known = ~np.isnan(want)
        np.testing.assert_array_equal(found[known], want[known], repr(program))
