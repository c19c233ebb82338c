"""What a test of a program needs to know: the arguments of a call, a numpy reference, the accuracy asked for."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Sizes = Mapping[str, int]
Rng = np.random.Generator

DTYPES: dict[str, type[Any]] = {
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    "i1": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "index": np.int64,
}

#: Extents of one executable's calls: a single element, odd primes, more than one workgroup's share.
SIZES: tuple[Sizes, ...] = ({"n": 1, "m": 1}, {"n": 7, "m": 3}, {"n": 67, "m": 34})

#: Largest error, relative to the largest element of the reference (which is computed in f64).
TOLERANCES = {"f16": 4e-3, "f32": 1e-5, "f64": 1e-12}


_SHARES = 12


def share(names: Iterable[str], number: int) -> list[str]:
    """A twelfth of the programs: each way to run them that is tested with one has its own. All of them for
    ``make whole``.
    """
    return sorted(names) if "DEVSCOPE_TEST_WHOLE" in os.environ else sorted(names)[number::_SHARES]


def rest(names: Iterable[str], *numbers: int) -> list[str]:
    """The programs that are in none of the shares ``numbers``; all of them for ``make whole``."""
    if "DEVSCOPE_TEST_WHOLE" in os.environ:
        return sorted(names)
    return sorted(set(names).difference(*(share(names, number) for number in numbers)))


@dataclass(frozen=True)
class Argument:
    """How one argument is made: uniform in [low, high), or by ``make``. A name is a dynamic extent."""

    dtype: str
    shape: tuple[int | str, ...]
    low: float = -2
    high: float = 2
    make: Callable[[Rng, tuple[int, ...]], Any] | None = None

    def array(self, rng: Rng, sizes: Sizes) -> Array:
        shape = tuple(sizes[e] if isinstance(e, str) else e for e in self.shape)
        dtype = DTYPES[self.dtype]
        if self.make is not None:
            return np.asarray(self.make(rng, shape), dtype)
        if self.dtype.startswith("f"):
            return rng.uniform(self.low, self.high, shape).astype(dtype)
        if self.dtype == "i1":
            return np.asarray(rng.integers(0, 2, shape), dtype)
        return np.asarray(rng.integers(int(self.low), int(self.high), shape), dtype)


class ArgumentType:
    """``f32("n", 4)`` is a random tensor argument of that shape; ``f32()`` one of rank 0, or a scalar."""

    def __init__(self, dtype: str, low: float, high: float) -> None:
        self._dtype, self._low, self._high = dtype, low, high

    def __call__(
        self,
        *shape: int | str,
        low: float | None = None,
        high: float | None = None,
        make: Callable[[Rng, tuple[int, ...]], Any] | None = None,
    ) -> Argument:
        low = self._low if low is None else low
        return Argument(self._dtype, shape, low, self._high if high is None else high, make)


f16, f32, f64 = (ArgumentType(name, -2, 2) for name in ("f16", "f32", "f64"))
i8, i16, i32, i64, index = (ArgumentType(name, -20, 20) for name in ("i8", "i16", "i32", "i64", "index"))
i1 = ArgumentType("i1", 0, 2)


@dataclass(frozen=True)
class Case:
    """One entry of a program and what it must compute.

    ``results`` has an element type per result, with ``scalar`` behind it for one that is not a tensor.
    """

    reference: Callable[..., Any]
    arguments: tuple[Argument, ...]
    results: tuple[str, ...]
    entry: str
    sizes: tuple[Sizes, ...]
    tolerance: float | None
    exact: bool
    device_work: bool
    on_host: bool

    def expected(self, arrays: list[Array]) -> list[Array]:
        """The reference's results, in the element types of the program's."""
        if not self.exact:
            arrays = [a.astype(np.float64) if a.dtype.kind == "f" else a for a in arrays]
        with np.errstate(all="ignore"):
            values = self.reference(*[a.copy() for a in arrays])
            values = values if isinstance(values, tuple) else () if values is None else (values,)
            return [
                np.asarray(value).astype(DTYPES[result.split()[0]])
                for value, result in zip(values, self.results, strict=True)
            ]


CASES: dict[str, list[Case]] = {}


def case(
    *arguments: Argument,
    results: str,
    program: str | None = None,
    entry: str = "main",
    sizes: tuple[Sizes, ...] | None = None,
    tolerance: float | None = None,
    exact: bool = False,
    device_work: bool = True,
    on_host: bool = True,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the decorated function as the reference of the program of its name.

    References get floating-point arguments as f64, and as they are if ``exact``. ``sizes`` replaces the
    standard extents. ``device_work`` is False where no work is annotated or the work is all on scalars.
    ``on_host`` is False where the host cannot do the work: it runs no kernels.
    """
    dynamic = any(isinstance(extent, str) for argument in arguments for extent in argument.shape)

    def register(reference: Callable[..., Any]) -> Callable[..., Any]:
        types = tuple(r.strip() for r in results.split(",") if r.strip())
        calls = sizes if sizes is not None else SIZES if dynamic else ({},)
        found = Case(reference, arguments, types, entry, calls, tolerance, exact, device_work, on_host)
        CASES.setdefault(program or reference.__name__, []).append(found)
        return reference

    return register
