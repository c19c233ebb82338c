"""Operations that torch-mlir lacks, most on matrices: it carries calls of them, which devscope's lowering expands.

To PyTorch each is an operation of its own, ``devscope::NAME``, so that graphs have it and eager can run it. What
they compute is in ``lowering/stablehlo/matrix_calls.py``, of matrices of any size and of batches of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

_Tensor = torch.Tensor
_LIBRARY = torch.library.Library("devscope", "DEF")


def _define(schema: str, eager: Callable[..., Any], shapes: Callable[..., Any]) -> Any:
    name = schema.partition("(")[0]
    _LIBRARY.define(schema)
    _LIBRARY.impl(name, eager, "CompositeExplicitAutograd")
    torch.library.register_fake(f"devscope::{name}", shapes, lib=_LIBRARY)
    return getattr(torch.ops.devscope, name).default


def _shapes_of_svd(a: _Tensor, full: bool) -> tuple[_Tensor, ...]:
    *batch, m, n = a.shape
    k = min(m, n)
    u, v = (m, n) if full else (k, k)
    values = a.new_empty([*batch, k], dtype=a.dtype.to_real())
    return a.new_empty([*batch, m, u]), values, a.new_empty([*batch, v, n])


def _eager_lu(a: _Tensor) -> tuple[_Tensor, ...]:
    packed, pivots = torch.linalg.lu_factor(a)
    order = torch.lu_unpack(packed, pivots, unpack_data=False)[0].argmax(-2)
    return packed, pivots - 1, order.to(torch.int32)


def _shapes_of_lu(a: _Tensor) -> tuple[_Tensor, ...]:
    *batch, m, n = a.shape
    of: Any = torch.int32
    return torch.empty_like(a), a.new_empty([*batch, min(m, n)], dtype=of), a.new_empty([*batch, m], dtype=of)


def _shapes_of_qr(a: _Tensor) -> tuple[_Tensor, ...]:
    *batch, m, n = a.shape
    return torch.empty_like(a), a.new_empty([*batch, min(m, n)])


def _as_second(a: _Tensor, b: _Tensor) -> _Tensor:
    return torch.empty_like(b)


def _eager_eigh(a: _Tensor) -> tuple[_Tensor, ...]:
    values, vectors = torch.linalg.eigh(a)
    return vectors, values


def _shapes_of_eigh(a: _Tensor) -> tuple[_Tensor, ...]:
    return torch.empty_like(a), a.new_empty(a.shape[:-1], dtype=a.dtype.to_real())


def _eager_eig(a: _Tensor) -> tuple[_Tensor, ...]:
    return tuple(torch.linalg.eig(a))


def _shapes_of_eig(a: _Tensor) -> tuple[_Tensor, ...]:
    of = torch.promote_types(a.dtype, torch.complex64)
    return a.new_empty(a.shape[:-1], dtype=of), a.new_empty(a.shape, dtype=of)


def _eager_svd(a: _Tensor) -> tuple[_Tensor, ...]:
    return tuple(torch.linalg.svd(a, full_matrices=False))


def _eager_full_svd(a: _Tensor) -> tuple[_Tensor, ...]:
    return tuple(torch.linalg.svd(a))


def _shapes_of_thin_svd(a: _Tensor) -> tuple[_Tensor, ...]:
    return _shapes_of_svd(a, False)


def _shapes_of_full_svd(a: _Tensor) -> tuple[_Tensor, ...]:
    return _shapes_of_svd(a, True)


def _eager_qr(a: _Tensor) -> tuple[_Tensor, ...]:
    return tuple(torch.geqrf(a))


def _as_first(a: _Tensor, b: _Tensor | None = None) -> _Tensor:
    return torch.empty_like(a)


def _solve_lower(a: _Tensor, b: _Tensor) -> _Tensor:
    return torch.linalg.solve_triangular(a, b, upper=False)


def _solve_upper(a: _Tensor, b: _Tensor) -> _Tensor:
    return torch.linalg.solve_triangular(a, b, upper=True)


eigh = _define("eigh(Tensor a) -> (Tensor, Tensor)", _eager_eigh, _shapes_of_eigh)
"""Eigenvectors, and eigenvalues, ascending, of symmetric matrices of which the lower triangle is read."""

eig = _define("eig(Tensor a) -> (Tensor, Tensor)", _eager_eig, _shapes_of_eig)
"""Eigenvalues and eigenvectors, both complex."""

svd = _define("svd(Tensor a) -> (Tensor, Tensor, Tensor)", _eager_svd, _shapes_of_thin_svd)
full_svd = _define("full_svd(Tensor a) -> (Tensor, Tensor, Tensor)", _eager_full_svd, _shapes_of_full_svd)

qr = _define("qr(Tensor a) -> (Tensor, Tensor)", _eager_qr, _shapes_of_qr)
"""R, below it the vectors of reflections, and their factors."""

reflections = _define("reflections(Tensor a, Tensor taus) -> Tensor", torch.linalg.householder_product, _as_first)
"""The product of reflections as `qr` has them."""

lu = _define("lu(Tensor a) -> (Tensor, Tensor, Tensor)", _eager_lu, _shapes_of_lu)
"""Both factors in one matrix, the row that each was swapped with, from 0, and the order of rows that makes."""

cholesky = _define("cholesky(Tensor a) -> Tensor", torch.linalg.cholesky, _as_first)
exponential = _define("exponential(Tensor a) -> Tensor", torch.linalg.matrix_exp, _as_first)
solve_lower = _define("solve_lower(Tensor a, Tensor b) -> Tensor", _solve_lower, _as_second)
solve_upper = _define("solve_upper(Tensor a, Tensor b) -> Tensor", _solve_upper, _as_second)


def _eager_require(condition: _Tensor, x: _Tensor) -> _Tensor:
    if not condition:
        raise RuntimeError("what the program was compiled for does not hold")
    return x.clone()


require = _define("require(Tensor condition, Tensor x) -> Tensor", _eager_require, _as_second)
"""``x``; an error if the condition does not hold."""


def _define_scatter(reduce: str) -> Any:
    def eager(x: _Tensor, index: _Tensor, source: _Tensor) -> _Tensor:
        if reduce == "set":
            return x.scatter(1, index, source)
        return x.scatter_reduce(1, index, source, reduce)

    def like(x: _Tensor, index: _Tensor, source: _Tensor) -> _Tensor:
        del index, source
        return torch.empty_like(x)

    return _define(f"scatter_{reduce}(Tensor x, Tensor index, Tensor source) -> Tensor", eager, like)


SCATTERS = {reduce: _define_scatter(reduce) for reduce in ("set", "sum", "prod", "amax", "amin")}
"""Scatters of a batch of matrices along their rows, with an index for each element of ``source``."""


def _extrema_along_rows(scan: Callable[..., Any]) -> Callable[..., Any]:
    def eager(x: _Tensor) -> tuple[_Tensor, ...]:
        return tuple(scan(x, 1))

    return eager


def _shapes_of_extrema(x: _Tensor) -> tuple[_Tensor, ...]:
    return torch.empty_like(x), torch.empty_like(x, dtype=torch.int64)


cummax, cummin = (
    _define(f"{scan.__name__}(Tensor x) -> (Tensor, Tensor)", _extrema_along_rows(scan), _shapes_of_extrema)
    for scan in (torch.cummax, torch.cummin)
)
"""Of a batch of matrices, down their columns; indices as PyTorch's."""


def _eager_log_sums(x: _Tensor) -> _Tensor:
    return torch.logcumsumexp(x, 1)


logcumsumexp = _define("logcumsumexp(Tensor x) -> Tensor", _eager_log_sums, _as_first)


def _extents_of_windows(x: _Tensor, steps: _Tensor) -> list[Any]:
    """The rows and columns of images that windows are added up to."""
    _, *window, h, w = x.shape
    stride, dilation = steps.shape[:2], steps.shape[2:]
    return [
        (count - 1) * s + (size - 1) * d + 1
        for count, size, s, d in zip((h, w), window, stride, dilation, strict=True)
    ]


def _eager_add_windows(x: _Tensor, steps: _Tensor) -> _Tensor:
    extents, stride, dilation = _extents_of_windows(x, steps), steps.shape[:2], steps.shape[2:]
    fold: Any = torch.nn.functional.fold
    windows = x.reshape(x.shape[0], x.shape[1] * x.shape[2], -1)
    return fold(windows, extents, x.shape[1:3], dilation, 0, stride).squeeze(1)


def _shapes_of_add_windows(x: _Tensor, steps: _Tensor) -> _Tensor:
    return x.new_empty([x.shape[0], *_extents_of_windows(x, steps)])


add_windows = _define("add_windows(Tensor x, Tensor steps) -> Tensor", _eager_add_windows, _shapes_of_add_windows)
"""Images that windows overlap in; the extents of ``steps`` are two strides and two dilations."""


def _eager_bits(x: _Tensor, like: _Tensor) -> _Tensor:
    return x.contiguous().view(like.dtype).clone()


def _shapes_of_bits(x: _Tensor, like: _Tensor) -> _Tensor:
    return torch.empty_like(x, dtype=like.dtype)


bits = _define("bits(Tensor x, Tensor like) -> Tensor", _eager_bits, _shapes_of_bits)
"""The bits of ``x`` as numbers of the type of ``like``, which is as wide."""


WORDS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def bits_as(x: _Tensor, dtype: torch.dtype) -> _Tensor:
    return x if x.dtype == dtype else bits(x, torch.zeros(1, dtype=dtype))


erfc, trunc = (
    _define(f"{name}(Tensor a) -> Tensor", getattr(torch, name), _as_first) for name in ("erfc", "trunc")
)
copysign = _define("copysign(Tensor a, Tensor b) -> Tensor", torch.copysign, _as_first)
"""MLIR's functions of numbers, of operands of one type and shape."""


def _parts(value: _Tensor) -> tuple[_Tensor, ...]:
    return value.real.clone(), value.imag.clone()


def _eager_fft(a: _Tensor, b: _Tensor) -> tuple[_Tensor, ...]:
    return _parts(torch.fft.fft(torch.complex(a, b)))


def _eager_ifft(a: _Tensor, b: _Tensor) -> tuple[_Tensor, ...]:
    return _parts(torch.fft.ifft(torch.complex(a, b), norm="forward"))


def _eager_rfft(a: _Tensor) -> tuple[_Tensor, ...]:
    return _parts(torch.fft.rfft(a))


def _eager_irfft(a: _Tensor, b: _Tensor, like: _Tensor) -> _Tensor:
    return torch.fft.irfft(torch.complex(a, b), like.shape[0], norm="forward")


def _as_both(a: _Tensor, b: _Tensor) -> tuple[_Tensor, ...]:
    return torch.empty_like(a), torch.empty_like(b)


def _shapes_of_rfft(a: _Tensor) -> tuple[_Tensor, ...]:
    half = [*a.shape[:-1], a.shape[-1] // 2 + 1]
    return a.new_empty(half), a.new_empty(half)


def _shapes_of_irfft(a: _Tensor, b: _Tensor, like: _Tensor) -> _Tensor:
    del b
    return a.new_empty([*a.shape[:-1], like.shape[0]])


fft = _define("fft(Tensor a, Tensor b) -> (Tensor, Tensor)", _eager_fft, _as_both)
ifft = _define("ifft(Tensor a, Tensor b) -> (Tensor, Tensor)", _eager_ifft, _as_both)
rfft = _define("rfft(Tensor a) -> (Tensor, Tensor)", _eager_rfft, _shapes_of_rfft)
irfft = _define("irfft(Tensor a, Tensor b, Tensor like) -> Tensor", _eager_irfft, _shapes_of_irfft)
"""Fourier transforms along the last dimension, not scaled, of real and imaginary parts; all extents are known.
What `irfft` makes is as long as ``like``."""

ROUTINES = {
    **{name: f"devscope.{name}" for name in ("fft", "ifft", "rfft", "irfft")},
    **{name: f"devscope.{name}" for name in ("cummax", "cummin", "logcumsumexp", "add_windows", "bits")},
    **{name: f"devscope.math.{name}" for name in ("erfc", "trunc", "copysign")},
    **{f"scatter_{reduce}": f"devscope.scatter_{reduce}" for reduce in SCATTERS},
    "eigh": "Eigh",
    "eig": "devscope.eig",
    "svd": "devscope.svd",
    "full_svd": "devscope.full_svd",
    "qr": "Qr",
    "reflections": "ProductOfElementaryHouseholderReflectors",
    "lu": "LuDecomposition",
    "cholesky": "devscope.cholesky",
    "exponential": "devscope.exponential",
    "solve_lower": "devscope.solve_lower",
    "solve_upper": "devscope.solve_upper",
    "require": "devscope.require",
}
"""What calls of the operations are called in StableHLO."""
