"""Short Fourier transforms that are written out, computed line by line in Python."""

import re as patterns

import numpy as np
import pytest

from devscope.lowering.stablehlo.butterflies import Body, Complex

_OPERATIONS = {"addf": np.add, "subf": np.subtract, "mulf": np.multiply, "negf": np.negative}


def _values(body: Body, known: dict[str, float]) -> dict[str, float]:
    """What the lines of ``body`` define, of what is ``known``."""
    found = dict(known)
    for line in body.lines:
        name, operation, operands = patterns.fullmatch(r"(%\w+) = arith\.(\w+) (.*) : f64", line).groups()
        if operation == "constant":
            found[name] = float(operands)
        else:
            found[name] = _OPERATIONS[operation](*(found[each] for each in operands.split(", ")))
    return found


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 15, 16, 20])
def test_short_transforms(length: int, sign: int) -> None:
    """Of complex numbers, of real ones, and of fewer with zeros behind them."""
    rng = np.random.default_rng(length)
    for given, is_real in ((length, False), (length, True), (-(-length // 2), False)):
        x = np.zeros(length, complex)
        x[:given] = rng.standard_normal(given) + (0 if is_real else 1j * rng.standard_normal(given))
        body = Body("f64")
        names: list[Complex] = [(None, None)] * length
        names[:given] = [(f"%re{n}", None if is_real else f"%im{n}") for n in range(given)]
        results = body.transform(names, sign)
        known = {f"%re{n}": x[n].real for n in range(given)} | {f"%im{n}": x[n].imag for n in range(given)}
        found: dict[str | None, float] = {None: 0.0, **_values(body, known)}
        made = [found[re] + 1j * found[im] for re, im in results]
        want = np.fft.fft(x) if sign < 0 else np.fft.ifft(x) * length
        np.testing.assert_allclose(made, want, atol=1e-13)


def test_quarters_of_a_turn_multiply_nothing() -> None:
    body = Body("f32")
    body.transform([(f"%re{n}", f"%im{n}") for n in range(4)], -1)
    assert not any("mulf" in line for line in body.lines)
    assert sum("addf" in line or "subf" in line for line in body.lines) == 16
