"""Types of random programs, data for them, and how far two results may differ.

A reference is computed in the types of the program. Operations whose result is not determined to the last bit
(functions of `math`, sums in any order) are *inexact*: the reference is computed several times, each time with
other errors in their results, and what comes out of a program may differ as far as these runs do. So an exact
program must give the same bits, and an error that a program amplifies is allowed for as far as it is amplified.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from devscope.runtime.dtypes import DTYPES

Array = np.ndarray[Any, np.dtype[Any]]
Rng = np.random.Generator

FLOATS = ("f16", "f32", "f64")
COMPLEX = ("complex<f32>", "complex<f64>")
INTEGERS = ("i8", "i16", "i32", "i64", "index")
ANYTHING: tuple[float | None, ...] = (np.nan, 1.0, np.inf, -np.inf, None, None)
"""For each run of a reference with errors: what takes the place of what can be anything; None: some, by chance."""
SPREAD = 6.0
"""How much farther than those runs a result may be from the reference."""


@dataclass(frozen=True)
class Type:
    """An extent that is text is the index value of that name: ``n`` stands for ``%n``."""

    dtype: str
    shape: tuple[int | str, ...] = ()
    scalar: bool = False

    def __str__(self) -> str:
        if self.scalar:
            return self.dtype
        extents = ("?" if isinstance(extent, str) else str(extent) for extent in self.shape)
        return f"tensor<{'x'.join([*extents, self.dtype])}>"

    @property
    def dynamic(self) -> list[str]:
        return [f"%{extent}" for extent in self.shape if isinstance(extent, str)]

    @property
    def known(self) -> bool:
        """In all functions, which have ``%n`` and ``%m``."""
        return set(self.dynamic) <= {"%n", "%m"}

    @property
    def numpy(self) -> np.dtype[Any]:
        return DTYPES[self.dtype]


def scalar(dtype: str) -> Type:
    return Type(dtype, scalar=True)


class Undefined(Exception):
    """What a program does has no meaning for these arguments."""


class Environment(dict[str, Any]):
    """Values by their names in the program.

    With ``noise``, inexact operations make other errors. ``anything``, of `ANYTHING`, is what they make where they
    can make anything.
    """

    noise: Rng | None = None
    anything: float | None = None

    def inner(self) -> Environment:
        copy = Environment(self)
        copy.noise, copy.anything = self.noise, self.anything
        return copy

    def sizes(self, shape: Sequence[int | str]) -> tuple[int, ...]:
        return tuple(int(self[f"%{extent}"]) if isinstance(extent, str) else extent for extent in shape)

    def inexact(self, value: Any, ulps: float, scale: Any = None) -> Array:
        """``value``, off by up to ``ulps`` units of ``scale`` (its own magnitude) in a run with errors.

        ``scale`` is the sum of the magnitudes of the finite terms of a sum. Where that is too large, the sum may
        overflow on the way or not: it can be anything then.
        """
        value = np.asarray(value)
        dtype = value.dtype
        if self.noise is None or value.dtype.kind not in "fc":
            return value
        info = np.finfo(value.dtype)
        largest = float(info.max)
        size = np.abs(value) if scale is None else np.asarray(scale)
        error = ulps * (float(info.eps) * np.minimum(size, largest) + float(info.smallest_subnormal))
        noise: Any = self.noise.uniform(-1, 1, value.shape)
        if (
            value.dtype.kind == "c"
        ):  # docs/types.md: the magnitude counts; which part is infinite or NaN may differ
            noise = noise + 1j * self.noise.uniform(-1, 1, value.shape)
            value = np.where(np.isfinite(value), value, self.noise.choice([complex(np.nan, np.nan), 1.0]))
        moved = value + (error * noise).astype(value.dtype)
        moved = np.where(np.isfinite(value), moved, value)
        if scale is None:
            return moved.astype(dtype)
        unknown = size > largest / 4
        if self.anything is not None:
            return np.where(unknown, self.anything, moved).astype(dtype)
        some = self.noise.choice([np.nan, 1.0, np.inf, -np.inf], value.shape)
        return np.where(unknown & (self.noise.random(value.shape) < 0.7), some, moved).astype(dtype)


def magnitude(x: Any) -> Array:
    """Of finite values; others are 0."""
    x = np.asarray(x)
    return np.where(np.isfinite(x), np.abs(x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)), 0)


def wide(function: Callable[..., Any]) -> Callable[..., Any]:
    """Computed in f64."""
    return lambda *arrays: function(*(np.asarray(a, np.float64) for a in arrays)).astype(
        np.asarray(arrays[0]).dtype
    )


def random_array(rng: Rng, dtype: str, shape: tuple[int, ...], special: float) -> Array:
    """Small numbers; the share ``special`` of them are values at the edges of the type."""
    if dtype == "i1":
        return rng.integers(0, 2, shape).astype(np.bool_)
    type_ = DTYPES[dtype]
    if type_.kind in "fc":
        plain = rng.normal(0, rng.choice([0.1, 1, 1, 10]), shape)
        if rng.random() < 0.3:
            plain = np.round(plain * 2) / 2
        if type_.kind == "c":
            return (plain + 1j * rng.normal(0, 1, shape)).astype(type_)
        edges = edges_of(type_)
    else:
        plain = rng.integers(-4, 9, shape)
        edges = [0, 1, -1, np.iinfo(type_).max, np.iinfo(type_).min] if dtype != "index" else [0, 1]
    values = plain.astype(type_)
    chosen = np.array(edges, type_)[rng.integers(0, len(edges), shape)]
    return np.where(rng.random(shape) < special, chosen, values).astype(type_)


def edges_of(type_: np.dtype[Any]) -> list[float]:
    info = np.finfo(type_)
    small = [float(info.smallest_subnormal), float(info.tiny), 1e-9, -1e-4]
    return [np.nan, np.inf, -np.inf, 0.0, -0.0, 0.5, -0.5, 1.5, 2.5, *small, float(info.max), -float(info.max)]


def literal(dtype: str, value: Any) -> str:
    """As in MLIR's constants: floats by their bits unless they are short."""
    if dtype == "i1":
        return "true" if value else "false"
    if DTYPES[dtype].kind == "c":
        return f"({value.real:.17e}, {value.imag:.17e})"
    if DTYPES[dtype].kind == "f":
        text = repr(float(value))
        if len(text) <= 6 and "." in text and "e" not in text:
            return text
        array = np.asarray(value, DTYPES[dtype])
        return f"0x{int(array.view(f'u{array.itemsize}')):0{2 * array.itemsize}X}"
    return str(int(value))


def dense(dtype: str, array: Array) -> str:
    """What stands in ``dense<...>``."""
    if array.ndim == 0:
        return literal(dtype, array[()])
    return f"[{', '.join(dense(dtype, part) for part in array)}]" if array.size else ""


def difference(found: Any, reference: Any, noisy: Sequence[Any], dtype: str) -> str | None:
    """How ``found`` differs from the reference by more than errors explain, if it does."""
    found, reference = np.asarray(found), np.asarray(reference)
    if found.shape != reference.shape or found.dtype != DTYPES[dtype]:
        return f"{found.shape} {found.dtype}, wanted {reference.shape} {DTYPES[dtype]}"
    reference = reference.astype(DTYPES[dtype])
    if reference.dtype.kind == "c":
        parts: list[Callable[[Any], Any]] = [np.real, np.imag]
        real = {"complex<f32>": "f32", "complex<f64>": "f64"}[dtype]
        problems = [difference(p(found), p(reference), [p(n) for n in noisy], real) for p in parts]
        return next((problem for problem in problems if problem), None)
    with np.errstate(all="ignore"):
        wrong = _wrong(found, reference, [np.asarray(n) for n in noisy])
    if not wrong.any():
        return None
    where = tuple(int(i) for i in np.argwhere(wrong)[0])
    return f"{int(wrong.sum())} of {wrong.size} elements, first at {list(where)}: {found[where]!r}, " \
        f"wanted {reference[where]!r}"  # fmt: skip


def _wrong(found: Array, reference: Array, noisy: list[Array]) -> Array:
    if reference.dtype.kind != "f":
        wide = reference.astype(np.float64)
        spread = np.zeros(reference.shape)
        for other in noisy:
            spread = np.maximum(spread, np.abs(other.astype(np.float64) - wide))
        return (found != reference) & (np.abs(found.astype(np.float64) - wide) > SPREAD * spread)
    wide, value = reference.astype(np.float64), found.astype(np.float64)
    spread, unknown = np.zeros(reference.shape), np.zeros(reference.shape, bool)
    signs = np.zeros(reference.shape, bool)
    for other in noisy:
        run = other.astype(np.float64)
        same = (run == wide) | (np.isnan(run) & np.isnan(wide))
        unknown |= ~same & ~(np.isfinite(run) & np.isfinite(wide))
        signs |= np.signbit(run) != np.signbit(wide)
        spread = np.maximum(spread, np.where(same, 0, np.abs(run - wide)))
    equal = (value == wide) & ((np.signbit(value) == np.signbit(wide)) | signs | (wide != 0))
    near = np.abs(value - wide) <= SPREAD * spread
    return ~(equal | (np.isnan(value) & np.isnan(wide)) | (near & (spread > 0)) | unknown)
