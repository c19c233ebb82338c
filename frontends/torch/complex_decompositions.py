"""Decompositions of what torch-mlir lacks, or does wrongly, for complex numbers; and Fourier transforms.

They compute with real and imaginary parts, as tensors of their own. A transform is a routine or, of extents that
are not known, a product with a matrix of roots of unity, whose angles are reduced as integers, to be exact.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from devscope.frontends.torch import matrix_operations
from devscope.frontends.torch.tables import Table

aten: Any = torch.ops.aten
TABLE = Table()
_Tensor = torch.Tensor
_Parts = tuple[Any, Any]


def _for_complex(*overloads: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a decomposition that only counts where an argument is complex."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        def decompose(*arguments: Any, **named: Any) -> Any:
            if not any(map(_is_complex, arguments)):
                return NotImplemented
            return function(*arguments, **named)

        TABLE.update(dict.fromkeys(overloads, decompose))
        return function

    return register


def _is_complex(value: Any) -> bool:
    return value.is_complex() if isinstance(value, torch.Tensor) else isinstance(value, complex)


def _parts(value: Any) -> _Parts:
    if not isinstance(value, torch.Tensor):
        return (value.real, value.imag) if isinstance(value, complex) else (value, 0.0)
    if not value.is_complex():
        return value, torch.zeros_like(value)
    both = torch.view_as_real(value)
    return both.select(-1, 0), both.select(-1, 1)


def _whole(real: _Tensor, imaginary: _Tensor) -> _Tensor:
    return torch.complex(*torch.broadcast_tensors(real, imaginary))


@_for_complex(aten.add.Tensor, aten.add.Scalar)
def _add(x: Any, y: Any, alpha: Any = 1) -> Any:
    (a, b), (c, d) = _parts(x), _parts(y)
    return _whole(a + c, b + d) if alpha == 1 else _whole(a + c * alpha, b + d * alpha)


@_for_complex(aten.sub.Tensor, aten.sub.Scalar)
def _sub(x: Any, y: Any, alpha: Any = 1) -> Any:
    (a, b), (c, d) = _parts(x), _parts(y)
    return _whole(a - c, b - d) if alpha == 1 else _whole(a - c * alpha, b - d * alpha)


@_for_complex(aten.mul.Tensor, aten.mul.Scalar)
def _mul(x: Any, y: Any) -> Any:
    (a, b), (c, d) = _parts(x), _parts(y)
    return _whole(a * c - b * d, a * d + b * c)


@_for_complex(aten.div.Tensor, aten.div.Scalar)
def _div(x: Any, y: Any) -> Any:
    (a, b), (c, d) = _parts(x), _parts(y)
    if not _is_complex(y):
        return _whole(a / c, b / c)
    size = c * c + d * d
    return _whole((a * c + b * d) / size, (b * c - a * d) / size)


@_for_complex(aten.neg.default)
def _neg(x: _Tensor) -> Any:
    a, b = _parts(x)
    return _whole(-a, -b)


@_for_complex(aten.reciprocal.default)
def _reciprocal(x: _Tensor) -> Any:
    a, b = _parts(x)
    size = a * a + b * b
    return _whole(a / size, -b / size)


@_for_complex(aten._conj.default, aten.conj_physical.default, aten._conj_physical.default)
def _conj(x: _Tensor) -> Any:
    a, b = _parts(x)
    return _whole(a, -b)


@_for_complex(aten.abs.default)
def _abs(x: _Tensor) -> Any:
    return torch.hypot(*_parts(x))


def _angle(x: _Tensor) -> Any:
    if not x.is_complex():
        return torch.where(torch.isnan(x), x, torch.where(x < 0, math.pi, 0.0))
    a, b = _parts(x)
    return torch.atan2(b, a)


@_for_complex(aten.real.default)
def _real(x: _Tensor) -> Any:
    return _parts(x)[0]


@_for_complex(aten.imag.default)
def _imag(x: _Tensor) -> Any:
    return _parts(x)[1]


@_for_complex(aten.exp.default)
def _exp(x: _Tensor) -> Any:
    a, b = _parts(x)
    return _whole(a.exp() * b.cos(), a.exp() * b.sin())


@_for_complex(aten.log.default)
def _log(x: _Tensor) -> Any:
    return _whole(torch.log(_abs(x)), torch.atan2(_imag(x), _real(x)))


@_for_complex(aten.sqrt.default)
def _sqrt(x: _Tensor) -> Any:
    """The larger part as a root, the other one by division, so that nothing cancels."""
    a, b = _parts(x)
    large = torch.sqrt((torch.hypot(a, b) + a.abs()) / 2)
    small = torch.where(large == 0, 0, b.abs() / (2 * large))
    return _whole(torch.where(a < 0, small, large), torch.copysign(torch.where(a < 0, large, small), b))


@_for_complex(aten.sin.default)
def _sin(x: _Tensor) -> Any:
    a, b = _parts(x)
    return _whole(a.sin() * b.cosh(), a.cos() * b.sinh())


@_for_complex(aten.cos.default)
def _cos(x: _Tensor) -> Any:
    a, b = _parts(x)
    return _whole(a.cos() * b.cosh(), -a.sin() * b.sinh())


@_for_complex(aten.sinh.default)
def _sinh(x: _Tensor) -> Any:
    a, b = _parts(x)
    return _whole(a.sinh() * b.cos(), a.cosh() * b.sin())


@_for_complex(aten.cosh.default)
def _cosh(x: _Tensor) -> Any:
    a, b = _parts(x)
    return _whole(a.cosh() * b.cos(), a.sinh() * b.sin())


def _turned(x: _Tensor, back: bool = False) -> Any:
    """Times i, or -i."""
    a, b = _parts(x)
    return _whole(b, -a) if back else _whole(-b, a)


def _by_turning(overload: Any, other: Callable[[_Tensor], _Tensor]) -> None:
    """Functions of circles are those of hyperbolas a quarter turn away, and these of those."""

    @_for_complex(overload)
    def compute(x: _Tensor) -> Any:
        return _turned(other(_turned(x)), back=True)


_by_turning(aten.tan.default, torch.tanh)
_by_turning(aten.atan.default, torch.atanh)
_by_turning(aten.asinh.default, torch.asin)


# Kahan: Branch cuts for complex elementary functions, 1987.


@_for_complex(aten.asin.default)
def _asin(x: _Tensor) -> Any:
    (a, b), (c, d) = _parts(torch.sqrt(1 - x)), _parts(torch.sqrt(1 + x))
    return _whole(torch.atan2(_real(x), a * c - b * d), torch.asinh(a * d - b * c))


@_for_complex(aten.acos.default)
def _acos(x: _Tensor) -> Any:
    (a, b), (c, d) = _parts(torch.sqrt(1 - x)), _parts(torch.sqrt(1 + x))
    return _whole(2 * torch.atan2(a, c), torch.asinh(c * b - d * a))


@_for_complex(aten.acosh.default)
def _acosh(x: _Tensor) -> Any:
    (a, b), (c, d) = _parts(torch.sqrt(x - 1)), _parts(torch.sqrt(x + 1))
    return _whole(torch.asinh(a * c + b * d), 2 * torch.atan2(b, c))


@_for_complex(aten.atanh.default)
def _atanh(x: _Tensor) -> Any:
    a, b = _parts(x)
    real = torch.log1p(4 * a / ((1 - a) * (1 - a) + b * b)) / 4
    return _whole(real, torch.atan2(2 * b, (1 - a) * (1 + a) - b * b) / 2)


@_for_complex(aten.log1p.default)
def _log1p(x: _Tensor) -> Any:
    a, b = _parts(x)
    real = torch.where(_abs(x) < 0.5, torch.log1p(a * (2 + a) + b * b) / 2, torch.log(torch.hypot(1 + a, b)))
    return _whole(real, torch.atan2(b, 1 + a))


@_for_complex(aten.expm1.default)
def _expm1(x: _Tensor) -> Any:
    a, b = _parts(x)
    half = torch.sin(b / 2)
    return _whole(torch.expm1(a) * b.cos() - 2 * half * half, a.exp() * b.sin())


def _in_base(overload: Any, base: float) -> None:
    @_for_complex(overload)
    def compute(x: _Tensor) -> Any:
        return torch.log(x) / math.log(base)


_in_base(aten.log2.default, 2)
_in_base(aten.log10.default, 10)


@_for_complex(aten.exp2.default)
def _exp2(x: _Tensor) -> Any:
    return torch.exp(x * math.log(2))


@_for_complex(aten.pow.Tensor_Scalar)
def _power(x: _Tensor, exponent: Any) -> Any:
    """By products where the exponent is a small whole number."""
    if isinstance(exponent, int | float) and exponent == int(exponent) and 0 < exponent <= 64:
        found = x
        for digit in bin(int(exponent))[3:]:
            found = found * found * x if digit == "1" else found * found
        return found
    if exponent in (0.5, -0.5):
        return torch.sqrt(x) if exponent == 0.5 else torch.rsqrt(x)
    return _raised(x, torch.full((), exponent))


def _raised(x: _Tensor, exponent: _Tensor) -> _Tensor:
    """Of 0, whose logarithm is infinite, too."""
    real, _ = _parts(exponent)
    of_zero = torch.where(exponent == 0, 1.0, torch.where(real > 0, 0.0, math.inf))
    found = torch.exp(torch.log(x) * exponent)
    return torch.where(x == 0, torch.complex(of_zero, torch.where(real < 0, math.nan, 0.0)).to(found.dtype), found)


def _linear(overload: Any) -> None:
    """Of the parts of a complex argument: what the operation is of the parts."""

    @_for_complex(overload)
    def apart(x: _Tensor, *arguments: Any, **named: Any) -> Any:
        a, b = _parts(x)
        return _whole(overload(a, *arguments, **named), overload(b, *arguments, **named))


for _overload in (
    *(aten.sum.default, aten.sum.dim_IntList, aten.mean.default, aten.mean.dim),
    *(aten.cumsum.default, aten.tril.default, aten.triu.default),
):
    _linear(_overload)


def _moving(overload: Any) -> None:
    """Of the parts of all arguments that are floats or complex; others say where."""

    @_for_complex(overload)
    def apart(*arguments: Any, **named: Any) -> Any:
        def part(number: int) -> list[Any]:
            def of(x: Any) -> Any:
                has_parts = isinstance(x, torch.Tensor) and (x.is_complex() or x.is_floating_point())
                return _parts(x)[number] if has_parts else x

            return [of(argument) for argument in arguments]

        return _whole(overload(*part(0), **named), overload(*part(1), **named))


for _overload in (
    *(aten.where.self, aten.scatter.src, aten.scatter_add.default),
    *(aten.index_put.default, aten.index_add.default, aten.index_copy.default),
):
    _moving(_overload)


@_for_complex(aten.masked_fill.Scalar, aten.masked_fill.Tensor)
def _masked_fill(x: _Tensor, mask: _Tensor, value: Any) -> Any:
    (a, b), (c, d) = _parts(x), _parts(value)
    return _whole(torch.where(mask, c, a), torch.where(mask, d, b))


@_for_complex(aten.eq.Tensor, aten.eq.Scalar)
def _equal(x: _Tensor, y: Any) -> Any:
    (a, b), (c, d) = _parts(x), _parts(y)
    return (a == c) & (b == d)


@_for_complex(aten.ne.Tensor, aten.ne.Scalar)
def _unequal(x: _Tensor, y: Any) -> Any:
    (a, b), (c, d) = _parts(x), _parts(y)
    return (a != c) | (b != d)


@_for_complex(aten.sgn.default)
def _sign(x: _Tensor) -> Any:
    size = _abs(x)
    return torch.where(size == 0, 0, x) / torch.where(size == 0, 1, size)


@_for_complex(aten.rsqrt.default)
def _reciprocal_root(x: _Tensor) -> Any:
    return torch.reciprocal(torch.sqrt(x))


@_for_complex(aten.sigmoid.default)
def _sigmoid(x: _Tensor) -> Any:
    return torch.reciprocal(torch.exp(-x) + 1)


@_for_complex(aten.tanh.default)
def _tanh(x: _Tensor) -> Any:
    """(t + i s) / (1 + i t s), whose terms do not overflow."""
    t, s = (function(part) for function, part in zip((torch.tanh, torch.tan), _parts(x), strict=True))
    size = 1 + t * t * s * s
    return _whole(t * (1 + s * s) / size, s * (1 - t * t) / size)


@_for_complex(aten.pow.Tensor_Tensor)
def _power_of(x: _Tensor, y: _Tensor) -> Any:
    return _raised(x, y)


@_for_complex(aten.var.correction)
def _variance(x: _Tensor, *arguments: Any, **named: Any) -> Any:
    a, b = _parts(x)
    return aten.var.correction(a, *arguments, **named) + aten.var.correction(b, *arguments, **named)


@TABLE.of(aten.eye.default, aten.eye.m)
def _identity(*sizes: Any, dtype: Any = None, **named: Any) -> Any:
    if dtype is None or not dtype.is_complex:
        return NotImplemented
    return torch.eye(*sizes, dtype=dtype.to_real(), **named).to(dtype)


@TABLE.of(aten.isnan.default)
def _is_nan(x: _Tensor) -> Any:
    return x != x if x.is_complex() else NotImplemented


@TABLE.of(aten._to_copy.default)
def _converted(x: _Tensor, *, dtype: Any = None, **named: Any) -> Any:
    """torch-mlir takes one complex type for another."""
    if dtype is None or not dtype.is_complex:
        return NotImplemented
    a, b = _parts(x)
    return _whole(a.to(dtype.to_real()), b.to(dtype.to_real()))


@_for_complex(aten.mm.default, aten.bmm.default)
def _product(x: _Tensor, y: _Tensor) -> Any:
    (a, b), (c, d) = _parts(x), _parts(y)
    return _whole(a @ c - b @ d, a @ d + b @ c)


# Fourier transforms.


def _roots(rows: int, columns: int, n: int, forward: bool, dtype: torch.dtype) -> _Parts:
    """The powers of the ``n``-th root of unity: cosines and sines of ``rows`` x ``columns`` angles."""
    powers = torch.arange(rows)[:, None] * torch.arange(columns)[None, :]
    powers = powers % n
    angles = powers.to(dtype) * (2 * math.pi / n)
    sines = torch.where(2 * powers % n == 0, 0.0, angles.sin())  # half a turn is not exact
    return angles.cos(), -sines if forward else sines


def _has_routine(*values: Any) -> bool:
    """Whether transforms are routines: all extents are known. Else they are products with all roots of unity."""
    extents: Iterable[Any] = itertools.chain(*(value.shape for value in values))
    known = all(isinstance(extent, int) and extent > 0 for extent in extents)
    return known and all(value.dtype in (torch.float32, torch.float64) for value in values)


def _along(parts: _Parts, dim: int, forward: bool) -> _Parts:
    a, b = (part.movedim(dim, -1) for part in parts)
    if _has_routine(a, b):
        transform = matrix_operations.fft if forward else matrix_operations.ifft
        real, imaginary = transform(a.contiguous(), b.contiguous())
        return real.movedim(-1, dim), imaginary.movedim(-1, dim)
    n = a.shape[-1]
    cosines, sines = _roots(n, n, n, forward, a.dtype)
    real, imaginary = a @ cosines - b @ sines, a @ sines + b @ cosines
    return real.movedim(-1, dim), imaginary.movedim(-1, dim)


def _scale(normalization: int, sizes: Sequence[int]) -> float:
    """0: none, 1: by the root of the number of elements, 2: by the number."""
    return math.prod(sizes) ** (-0.5 * normalization)


def _fft(x: _Tensor, dim: Sequence[int], normalization: int, forward: bool) -> Any:
    parts = _parts(x)
    for one in dim:
        parts = _along(parts, one, forward)
    scale = _scale(normalization, [x.shape[one] for one in dim])
    return _whole(parts[0] * scale, parts[1] * scale)


def _real_fft(x: _Tensor, dim: Sequence[int], normalization: int, onesided: bool) -> Any:
    moved, n = x.movedim(dim[-1], -1), x.shape[dim[-1]]
    if _has_routine(x):
        parts = matrix_operations.rfft(moved.contiguous())
        if not onesided:  # the rest is conjugate symmetric
            a, b = (part[..., 1 : n - n // 2].flip(-1) for part in parts)
            parts = torch.cat((parts[0], a), -1), torch.cat((parts[1], -b), -1)
    else:
        cosines, sines = _roots(n, n // 2 + 1 if onesided else n, n, True, x.dtype)
        parts = moved @ cosines, moved @ sines
    parts = parts[0].movedim(-1, dim[-1]), parts[1].movedim(-1, dim[-1])
    for one in dim[:-1]:
        parts = _along(parts, one, True)
    scale = _scale(normalization, [x.shape[one] for one in dim])
    return _whole(parts[0] * scale, parts[1] * scale)


def _fft_to_real(x: _Tensor, dim: Sequence[int], normalization: int, last_dim_size: int) -> Any:
    parts, n = _parts(x), last_dim_size
    for one in dim[:-1]:
        parts = _along(parts, one, False)
    half = n // 2 + 1
    a, b = (part.movedim(dim[-1], -1)[..., :half] for part in parts)
    like = a.new_empty([n])
    if _has_routine(a, b, like) and a.shape[-1] == half:
        scale = _scale(normalization, [*(x.shape[one] for one in dim[:-1]), n])
        made = matrix_operations.irfft(a.contiguous(), b.contiguous(), like)
        return (made * scale).movedim(-1, dim[-1])
    cosines, sines = _roots(half, n, n, False, a.dtype)
    row = torch.arange(half)[:, None]
    weight = torch.where((row == 0) | (2 * row == n), 1.0, 2.0).to(a.dtype)
    scale = _scale(normalization, [*(x.shape[one] for one in dim[:-1]), n])
    return ((a @ (cosines * weight) - b @ (sines * weight)) * scale).movedim(-1, dim[-1])


def _frequencies(n: Any, d: float = 1.0, dtype: Any = None, **_: Any) -> Any:
    places = torch.arange(n)
    places = torch.where(places < (n + 1) // 2, places, places - n)
    return places.to(dtype or torch.get_default_dtype()) / (n * d)


def _real_frequencies(n: Any, d: float = 1.0, dtype: Any = None, **_: Any) -> Any:
    return torch.arange(n // 2 + 1).to(dtype or torch.get_default_dtype()) / (n * d)


TABLE[aten.fft_fftfreq.default] = _frequencies
TABLE[aten.fft_rfftfreq.default] = _real_frequencies
TABLE[aten.angle.default] = _angle
TABLE[aten._fft_c2c.default] = _fft
TABLE[aten._fft_r2c.default] = _real_fft
TABLE[aten._fft_c2r.default] = _fft_to_real


def _filled(overload: Any, position: int | None = None) -> None:
    """New tensors of complex numbers, which torch-mlir fills with numbers of another type."""

    def filled(*arguments: Any, **named: Any) -> Any:
        of = named.get("dtype") or (arguments[0].dtype if isinstance(arguments[0], torch.Tensor) else None)
        value = 0 if position is None else arguments[position]
        if of is None:
            of = torch.complex64 if isinstance(value, complex) else torch.float32
        if not of.is_complex:
            return NotImplemented
        named |= {"dtype": of.to_real()}
        is_size = isinstance(value, torch.SymInt | torch.SymFloat)  # whose complex() would be a constant
        parts = [value, 0] if is_size else [complex(value).real, complex(value).imag]
        return torch.complex(*(overload(*_with(arguments, position, part), **named) for part in parts))

    TABLE[overload] = filled


def _with(arguments: tuple[Any, ...], position: int | None, value: Any) -> tuple[Any, ...]:
    if position is None:
        return arguments
    return *arguments[:position], value, *arguments[position + 1 :]


_filled(aten.zeros.default)
_filled(aten.new_zeros.default)
_filled(aten.zeros_like.default)
_filled(aten.scalar_tensor.default, 0)
_filled(aten.full.default, 1)
_filled(aten.new_full.default, 2)
_filled(aten.full_like.default, 1)


@_for_complex(aten.prod.default)
def _whole_product(x: _Tensor, dtype: Any = None) -> Any:
    return torch.prod(x.flatten(), 0, dtype=dtype)


@_for_complex(aten.prod.dim_int)
def _product_along(x: _Tensor, dim: int, keepdim: bool = False, dtype: Any = None) -> Any:
    """Of halves, until one is left: torch-mlir dies of it."""
    count: Any = x.shape[dim] if x.dim() else 1
    if not isinstance(count, int):
        return NotImplemented
    x = (x if x.dim() else x[None]).to(dtype or x.dtype).movedim(dim, 0)
    if not count:
        none = _parts(x)[0].sum(0, keepdim=True)
        x = torch.complex(none + 1, none)
    while (count := x.shape[0]) > 1:
        half, product = count // 2, x[: count // 2] * x[count // 2 : count // 2 * 2]
        x = torch.cat([product, x[2 * half :]]) if count % 2 else product
    return x.movedim(0, dim) if keepdim else x[0]


@_for_complex(aten.cumprod.default)
def _running_product(x: _Tensor, dim: int, dtype: Any = None) -> Any:
    """With the product of twice as many elements at each step."""
    count: Any = x.shape[dim] if x.dim() else 0
    if not isinstance(count, int):
        return NotImplemented
    x, step = x.to(dtype or x.dtype), 1
    while step < count:
        shorter = x.narrow(dim, 0, count - step) * x.narrow(dim, step, count - step)
        x, step = torch.cat([x.narrow(dim, 0, step), shorter], dim), 2 * step
    return x
