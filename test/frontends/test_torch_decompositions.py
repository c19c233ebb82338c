"""Forms of PyTorch's operations that torch-mlir does not take: by decompositions of ours, as eager."""

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import devscope

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.sampled(20)

F = torch.nn.functional

_PLACES = torch.tensor([[[0, 1], [2, 3], [1, 0]]] * 2)
_BYTES = torch.tensor([[0, 3, 250, 130, 7], [255, 128, 1, 127, 200]], dtype=torch.uint8)


def _random(*shape: int) -> Any:
    return torch.randn(shape, generator=torch.Generator().manual_seed(5))


class _Module(torch.nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *arguments: Any) -> Any:
        return self.function(*arguments)


_SPECIAL = torch.tensor(
    [[torch.nan, 1, -torch.inf, torch.inf, 0, 0.3], [2, torch.nan, torch.nan, -3, torch.inf, 5]]
)
_DIVISORS = torch.tensor([[1, torch.nan, 0.1, -0.3, 0.1, 2], [0.1, 0.5, 0, -0.7, 3, -0.1]])


def _scatters(x: Any, index: Any, source: Any) -> Any:
    return (
        x.scatter(-1, index, source),
        x.scatter(-1, index, 1.5),
        x.scatter_add(-2, index % 3, source),
        x.scatter_reduce(-1, index, source, "amax"),
        x.scatter(-1, index, source, reduce="add"),
        x.scatter(2, index, 2.0, reduce="multiply"),
        x.index_add(1, index.reshape(-1)[:2] % 3, x[:, :2], alpha=2),
        x.index_add(-1, index.reshape(-1)[:2] % 3, x[..., :2]),
    )


def _running(x: Any) -> Any:
    small = torch.nan_to_num(x, 3, 100, -100).to(torch.int8)
    return (
        *(*x.cummax(1), *x.cummin(0), *small.cummax(0), *_BYTES.cummin(1)),
        *(x.logcumsumexp(1), x.logcumsumexp(0), *x[:, :0].cummax(1)),
    )


def _bags(weight: Any, indices: Any) -> Any:
    offsets = torch.tensor([0, 0, 4, 9, 9, 15])
    flat = indices.flatten()
    return (
        *(F.embedding_bag(indices, weight.nan_to_num(), mode=mode) for mode in ("sum", "mean", "max")),
        *(F.embedding_bag(flat, weight, offsets, mode=mode, padding_idx=1) for mode in ("sum", "mean", "max")),
        F.embedding_bag(flat, weight, offsets, mode="sum", include_last_offset=True),
    )


def _powers(x: Any) -> Any:
    return x**2, x**3, x**-1, x**3.0, x**0.5, x**-0.5, x.norm(dim=1), torch.signbit((x**3).nan_to_num())


def _conditions(x: Any) -> Any:
    good = x > 0
    return ~good, good & (x < 2), good.all(1), good.any(0), good.sum(), torch.where(good, x, -x), good.flip(1)


def _narrow(x: Any) -> Any:
    scaled = x.repeat(1, 8) * 255
    sixteen = scaled.nan_to_num().bfloat16()
    return (
        *(scaled.nan_to_num().clamp(0, 255).to(torch.uint8), scaled.nan_to_num().clamp(-128, 127).to(torch.int8)),
        *(sixteen.clamp(0, 255).to(torch.uint8), scaled.nan_to_num().double().clamp(0, 200).to(torch.uint8)),
    )


def _paddings(x: Any) -> Any:
    return (
        *(F.pad(x, (-1, 2, 1, -2), value=2.0), F.pad(x, (-1, -1)), F.pad(x, (0, 1, -2, 0))),
        *(F.pad(x, (3, 2), "reflect"), F.pad(x, (0, 4, 1, 0), "reflect"), F.pad(x, (0, 0), "reflect")),
        *(F.pad(x, (3, 0, 0, 2), "replicate"), F.pad(x[None], (1, 2, 3, 4, 5, 6), "replicate")),
    )


def _pools(x: Any) -> Any:
    return (
        *F.adaptive_max_pool2d(x, (2, 3), return_indices=True),
        *F.adaptive_max_pool1d(x[:, 0], 3, return_indices=True),
        *F.adaptive_max_pool3d(x, (2, 4, 3), return_indices=True),
        *F.adaptive_max_pool2d(x, 1, return_indices=True),
        F.adaptive_max_pool2d(x, (3, 4)),
        *(
            F.adaptive_avg_pool2d(x, (4, 3)),
            F.adaptive_avg_pool2d(x[0], (3, 10)),
            F.adaptive_avg_pool3d(x, (2, 9, 3)),
        ),
        *(F.adaptive_avg_pool1d(x[0], 5), F.adaptive_avg_pool2d(x.half(), (5, 1))),
    )


def _places_of_all(x: Any) -> Any:
    return x.argmax(), x.argmin(keepdim=True), x.reshape(2, -1, 70).argmax(), x.nan_to_num().int().argmin()


def _matrices(a: Any, b: Any) -> Any:
    """The first pivot of the first matrix is zero."""
    a = a * (torch.arange(16).reshape(4, 4) > 0)
    square = a @ a.mT + torch.eye(4)
    return (
        torch.linalg.solve(a, b),
        torch.linalg.solve(a[0], b[0, :, 0]),
        torch.linalg.solve(a, b.mT, left=False),
        torch.linalg.inv(a),
        torch.linalg.cholesky(square),
        torch.linalg.cholesky(square, upper=True),
        *torch.triangular_solve(b, square, upper=False, transpose=True),
        torch.linalg.lu_solve(*torch.linalg.lu_factor(a), b),
    )


def _equal(x: Any) -> Any:
    """What is compared with itself, NaN among it."""
    return (
        *(x == x, x.eq(x.clone()), x >= x, x != x, x - x, x.half() == x.half()),
        *(torch.isfinite(x), torch.isfinite(torch.complex(x, x)), torch.isfinite(x.to(torch.int8))),
        *(torch.isclose(x, x), torch.isclose(x, x + 1e-9, equal_nan=True)),
    )


def _counted(x: Any) -> Any:
    sizes = torch.tensor([1, -2, 0.5, 3e38, 1e-38, 1e-44, 0, torch.inf, torch.nan, 0.75]) * (x[0, 0] != 100)
    return (
        *(*torch.frexp(sizes), *torch.frexp(x.double() * 1e-300), *torch.histogram(x, 4)),
        *torch.histogram(x, 3, range=(-1.0, 2.0), density=True),
        *((x > 0).nonzero_static(size=4), x.nonzero_static(size=40, fill_value=7), x[:0].nonzero_static(size=2)),
    )


def _bessel_functions(x: Any) -> Any:
    ends = torch.tensor([0.0, -0.0, 2, 8, -8, 1e-6, -torch.inf, torch.nan])
    y, of = torch.cat([x.flatten() * 9, ends]), torch.special
    return (*(of.bessel_j0(y), of.bessel_y1(y), of.spherical_bessel_j0(y), of.scaled_modified_bessel_k1(y)),)


def _polynomials(x: Any) -> Any:
    of = torch.special
    return (
        *(
            of.chebyshev_polynomial_u(x, 3),
            of.shifted_chebyshev_polynomial_v(x, 4),
            of.legendre_polynomial_p(x, 5),
        ),
        *(of.hermite_polynomial_h(x, 3.9), of.hermite_polynomial_he(x, 1), of.laguerre_polynomial_l(x, 3)),
        *(of.chebyshev_polynomial_t(x, 0), of.chebyshev_polynomial_w(x, -1)),
    )


def _special_functions(x: Any) -> Any:
    y, ends = x * 9, torch.tensor([0.0, -0.0, 8, -8, 88, torch.inf, -torch.inf, torch.nan, 1e-30, -0.5])
    y = torch.cat([y.flatten(), ends])
    order = y.abs() + 1.1
    return (
        *(
            torch.i0(y),
            torch.special.i0e(y),
            torch.special.i1(y),
            torch.special.i1e(y.double()),
            torch.i0(y.half()),
        ),
        *(torch.special.ndtri(torch.sigmoid(y)), torch.special.ndtri(y / 8), torch.digamma(y)),
        *(torch.polygamma(1, -y.abs() / 3), torch.polygamma(2, order), torch.special.zeta(3.0, order)),
        *(
            torch.nextafter(y, y.flip(0)),
            torch.nextafter(y.double(), ends[:1].double()),
            torch.nextafter(y * 0, y),
        ),
        *(torch.complex(x, -x).prod(), torch.complex(x, x.flip(0)).prod(1), torch.complex(x, -x).cumprod(1)),
    )


def _repeated(x: Any, repeats: Any) -> Any:
    return (
        torch.repeat_interleave(x, torch.tensor([1, 0, 2, 3]), dim=0),
        torch.repeat_interleave(repeats),
        *(torch.repeat_interleave(x, repeats, dim=0), x.repeat_interleave(repeats, 0, output_size=6)),
    )


def _bits(x: Any) -> Any:
    n, double = (x * 100).to(torch.int64), x.double()
    bytes_ = n.to(torch.uint8)
    return (
        *(
            x.view(torch.int32),
            x.view(torch.int16),
            x.view(torch.uint8),
            x.view(torch.float64),
            double.view(n.dtype),
        ),
        *(
            x.half().view(torch.int16),
            x.bfloat16().view(torch.int16),
            n.view(torch.float64),
            double.view(torch.int32),
        ),
        *(
            bytes_.view(torch.int8),
            bytes_.view(torch.int16),
            (x > 0).view(torch.uint8),
            (n & 1).bool().view(torch.int8),
        ),
        *(torch.complex(x, -x).view(torch.float32), (x.view(torch.int32) & 0x7FFFFFFF).view(torch.float32)),
        n << (n & 7),
    )


def _bytes(x: Any, y: Any) -> Any:
    """All of them above 127 in some place."""
    return (
        *(
            x.sum(1),
            x.prod(1),
            x // y,
            x % y,
            x / y,
            x // 7,
            x >> 1,
            x * 1.5,
            x.pow(2),
            x.max(),
            x.max(1)[0],
            x.abs(),
        ),
        *(
            x.sort(1)[0],
            x.any(),
            x.to(torch.int8) * 3,
            torch.stack([x, y.int()]),
            torch.div(x, y, rounding_mode="trunc"),
        ),
    )


def _mixed(x: Any, y: Any, n: Any) -> Any:
    """Bytes, bool and integers with operands of other types; numbers that are no bytes are wrapped."""
    is_high, signed = x > 100, x.to(torch.int8)
    return (
        *(x + 0.5, x + y, x > y, y <= x, x == 250, x < 1000, signed < 1000, x - 200, x & n, torch.maximum(x, n)),
        *(torch.where(is_high, x, y), torch.where(x == 255, -1, x.long()), x.fmod(2.5), x.clamp(1.5, 200.5)),
        *(is_high > -1, is_high | 15, is_high.clamp(max=20), is_high**2, is_high + n, n.clamp(1.5, 20.5)),
        *(2**x, 3 ** (n % 5), n ** (n % 7), (n % 3 - 1) ** (n - 100), 2.0 ** (x % 9), x.pow(0.5)),
        *(F.pad(x, (1, 1), value=200), x.new_full((2,), 250), x.clone().fill_(200), torch.ones_like(x)),
        *(x @ x.T, signed @ signed.T, torch.bucketize(x, torch.tensor([5, 100, 200]))),
        *(x.scatter_reduce(1, n % 5, x, "amax"), is_high.scatter_add(1, n % 5, is_high), x.scatter(1, n % 5, 200)),
        *(is_high.scatter(-1, n % 5, ~is_high), is_high.scatter(1, n % 5, True), signed.scatter(0, n[:1] % 2, -3)),
        *(one.scatter_add(1, n % 5, one) for one in (x, signed)),
        *(
            one.scatter_reduce(1, n % 5, one, how)
            for one in (x, signed)
            for how in ("sum", "prod", "mean", "amin")
        ),
        *(one.scatter_reduce(0, n[:2] % 2, one, "mean", include_self=False) for one in (x, signed)),
        *(F.pad(x[None], (2, 1), mode) for mode in ("reflect", "replicate", "circular")),
        *(F.pad(signed, (1, -1), value=-100), F.pad(is_high, (1, 1), value=True)),
    )


def _unbatched(x: Any, y: Any) -> Any:
    return (
        *(F.max_pool1d(x, 2), F.avg_pool1d(x, 2), F.adaptive_avg_pool1d(x, 4), F.adaptive_max_pool1d(x, 4)),
        *(*F.max_pool2d(y, 2, return_indices=True), F.avg_pool2d(y, 2), F.adaptive_avg_pool2d(y, 2)),
    )


def _empty(x: Any, images: Any, y: Any, nowhere: Any) -> Any:
    return (
        *(x.cumsum(0), x.std(0), x.sum(0), x.prod(), (x > 0).all(), x.T @ x, torch.stack([x, x]), x.flatten()),
        *(F.group_norm(images, 2), images.flatten(1), F.unfold(images, 2), F.pixel_shuffle(images, 2)),
        *(y.index_add(0, nowhere, x), y.index_copy(0, nowhere, x), y.index_fill(0, nowhere, 2.0), images.mean()),
        torch.cat([x.flatten(), y[0]]),
    )


def _added(x: Any, numbers: Any) -> Any:
    """Along rows: some are added to more than once, or not at all."""
    at, half = torch.tensor([1, 1, 4, 0]), x.round().half()
    return (
        *(
            x.index_add(1, at, x[:, :4] * 2),
            x.index_add(-1, at, x[..., :4], alpha=0.5),
            x.index_add(1, at[0], x[:, :1]),
        ),
        *(half.index_add(2, at, half[..., :4]), numbers.index_add(1, at, numbers[:, 1:5], alpha=3)),
        *((numbers > 0).index_add(1, at, numbers[:, 1:5] > 1), x[:0].index_add(1, at, x[:0, :4])),
    )


def _histograms(x: Any) -> Any:
    """Of NaN and infinities, too; side by side where there are many for a bin."""
    return (
        torch.histc(x, 5, -1, 1),
        torch.histc(x.double(), 300, -3, 2),
        torch.histc(x[0], 3, 0, 9),
        torch.histc(x[:0], 4, 0, 1),
    )


def _of_some(x: Any) -> Any:
    x = torch.where(x > 0.8, torch.nan, x)
    scale, zero = torch.full((4,), 0.05), torch.tensor([0, 3, -2, 1], dtype=torch.int32)
    return x.nanmedian(1)[0], x.nanmedian(), torch.fake_quantize_per_channel_affine(x, scale, zero, 0, -8, 7)


def _bounds(x: Any, y: Any) -> Any:
    """Of NaN and infinities, too; quotients that are rounded before they are whole ones."""
    return (
        *(
            torch.maximum(x, y),
            torch.minimum(x, y),
            x.clamp(-1, 1),
            x.clamp(min=0.5),
            x.clip(max=0),
            x.clamp(y - 1, y),
        ),
        *(
            F.hardtanh(x),
            F.relu6(x),
            F.hardsigmoid(x),
            F.hardswish(x),
            torch.clamp_min(x, y),
            torch.clamp_max(x, 0.25),
        ),
        *(
            x // 2,
            y // 0.1,
            x // y,
            torch.div(x, y, rounding_mode="floor"),
            torch.div(y, 0.1, rounding_mode="floor"),
        ),
        *(torch.fmod(y, 0.1), torch.fmod(x, y), torch.fmod(x, -2), torch.bucketize(x, y[1, :2])),
    )


def _grids(x: Any, grid: Any) -> Any:
    return tuple(
        F.grid_sample(x, grid, padding_mode=mode, align_corners=False) for mode in ("border", "reflection")
    )


def _constants(x: Any) -> Any:
    number = torch.full((), 0.1)
    return (x < 0) != (number < 0), (x < 0) == (number > 0), (x > 1) | (number >= 1), (x > 0) & (number != 0)


def _losses(x: Any, y: Any) -> Any:
    short = torch.tensor([[0, 2, -1, 1], [3, -1, 0, 0], [-1, 0, 1, 2]])
    return (
        F.multilabel_margin_loss(x, short, reduction="none"),
        F.gaussian_nll_loss(x, y, y.abs(), full=True),
        F.ctc_loss(x.log_softmax(1), torch.tensor([1, 2]), (3,), (2,)),
        F.ctc_loss(x[:, None].log_softmax(2), torch.tensor([[3, 3]]), (3,), (2,), reduction="sum"),
    )


def _masks(x: Any, rows: Any) -> Any:
    """How many elements each takes depends on data."""
    return x[x > 0], x[:, x[0] > 0], x[(x > 0).all(1)], x[rows].sum(0), x.masked_select(rows[:, None])


def _slopes(x: Any) -> Any:
    return F.rrelu(x), F.rrelu(x, 0.2, 0.4)


def _filters_per_channel(x: Any, volume: Any, weight: Any, volumes: Any) -> Any:
    """Transposed, and in 3-D."""
    return (
        F.conv_transpose1d(x[:, :, 0], weight[:, :, 0], stride=2, padding=1, groups=3),
        F.conv_transpose2d(x, weight, stride=(2, 1), padding=2, output_padding=(1, 0), dilation=(1, 2), groups=3),
        F.conv_transpose2d(x, weight[..., :1, :1], x[0, :, 0, 0], stride=3, groups=3),
        F.conv_transpose3d(volume, volumes, stride=2, groups=3),
        F.conv3d(volume, volumes, volume[0, :, 0, 0, 0], padding=(1, 0, 2), stride=(2, 1, 1), groups=3),
        F.conv3d(volume[0], volumes, dilation=(2, 1, 1), groups=3),
    )


def _complex(x: Any) -> Any:
    """Small constants, too."""
    z, at = torch.complex(x, x.flip(1)), torch.tensor([1, 1])
    constants = torch.complex(torch.arange(6.0), torch.ones(6))
    found = (
        *(z * constants + torch.tensor(1 + 2j), z == z.flip(1), z != 1, z.cumsum(1), torch.where(x > 0, z, 0)),
        *(z.tril(), z.masked_fill(x > 0, 2.0), torch.sgn(z), z.sigmoid(), z.tanh(), z**z, z.rsqrt(), z.var()),
        *(
            z.to(torch.complex128),
            torch.eye(4, dtype=torch.complex64) @ z,
            torch.isnan(z),
            z.index_add(0, at, z[:2]),
        ),
        torch.zeros_like(z).scatter_add(1, torch.zeros(4, 6, dtype=torch.int64), z),
    )
    return tuple(torch.view_as_real(one) if one.is_complex() else one for one in found)


def _complex_functions(x: Any) -> Any:
    """On both sides of where they are cut, and at zeros."""
    cuts = torch.complex(
        torch.tensor([-1, -1, 0, -0.0, 1, 4, -4, 0.5, -0.5, 0.5]),
        torch.tensor([-0.0, 0, -0.0, 0, -0.0, 1, -3, 0, -0.0, -0.0]),
    )
    z = torch.cat([torch.complex(x, x.flip(1)).flatten(), cuts])
    found = (
        *(z.sqrt(), z.log(), z.sinh(), z.cosh(), z.tan(), z.asin(), z.acos(), z.atan(), z.asinh(), z.acosh()),
        *(
            z.atanh(),
            z.log2(),
            z.log10(),
            z.log1p(),
            z.expm1(),
            z.exp2(),
            z**0.5,
            z**-0.3,
            torch.complex(x[:0], x[:0]),
        ),
    )
    return tuple(map(torch.view_as_real, found))


def _complex_matrices(a: Any, b: Any) -> Any:
    a, b = torch.complex(a, a.mT).to(torch.complex128), torch.complex(b, -b).to(torch.complex128)
    return torch.view_as_real(torch.linalg.det(a)), torch.view_as_real(torch.linalg.solve(a, b))


def _factors_from_the_right(a: Any, b: Any) -> Any:
    factors = torch.linalg.lu_factor(a)
    return (
        torch.linalg.lu_solve(*factors, b.mT.contiguous(), left=False),
        torch.linalg.lu_solve(*factors, b, adjoint=True),
    )


def _gammas(x: Any, t: Any) -> Any:
    """Incomplete ones, of which the ends are known."""
    a = torch.cat([10 ** x.flatten(), torch.tensor([0, 0, 1, 1, torch.inf, torch.inf, -1, 1, torch.nan])])
    y = torch.cat([10 ** x.flip(1).flatten(), torch.tensor([0, 1, 0, torch.inf, 1, torch.inf, 1, -1, 1])])
    large, near = 100 * x.double().abs() + 30, 100 * x.double().abs() + 30 + 9 * x.flip(0)
    return (
        *(torch.special.gammainc(a, y), torch.special.gammaincc(a, y), torch.igamma(large, near)),
        *(
            torch.kaiser_window(7),
            torch.kaiser_window(6, False, 5.0),
            F.conv_tbc(t, t.permute(1, 2, 0), x[0, :4], 1),
        ),
    )


def _rolls(x: Any) -> Any:
    """By nothing, by all there is, and by more."""
    return (
        *(torch.roll(x, by, 1) for by in (0, 6, -9, 13)),
        *(torch.roll(x, 3), torch.roll(x, (0, 1), (0, 1)), torch.roll(x, (9, -9), (0, 1))),
        *(torch.roll(x[:0], 2, 0), x.roll((1, 1), (1, 1)), torch.roll(x > 0, -1, 0)),
    )


def _put_at_some(x: Any, y: Any) -> Any:
    """Where a condition holds: for some rows, for all, for none."""
    found: list[Any] = []
    for rows in (x[:, 0] > 0, x[:, 0] > 99, x[:, 0] < 99):
        for is_sum in (False, True):
            found.append(x.index_put((rows,), y, accumulate=is_sum))
            found.append(x.index_put((rows.nonzero()[:, 0],), y[None], accumulate=is_sum))
            found.append((x[:, :4] > 0).index_put((rows, rows), torch.tensor(True), accumulate=is_sum))
        z = x.clone()
        z[rows] *= 2
        z[0, rows[:, None].expand(-1, 2)[:3].flatten()] = 5
        found.append(z)
    return (*found, torch.linalg.pinv(x[:, :4], hermitian=True))


def _of_one_or_none(x: Any, y: Any) -> Any:
    places = x > 0
    return (
        *(x[0, 0].cumsum(0), x[0, 0].argmax(0), *x[0, 0].max(0), *x[0, 0].kthvalue(1), *x[0, 0].median(0)),
        *(*torch.aminmax(x[0, 0]), x[0, 0].softmax(0), x[0, 0].cumprod(0), x[0, 0].amax(0), places[0, 0].all(0)),
        *(x[0, 0].var(0), *places[0].mode(), torch.full((), 200, dtype=torch.uint8)),
        *torch.var_mean(x[:0], 0),
        x[:1].std(0),
        *(torch.fmax(x[:, :1], y), torch.fmin(x[:, :1], y)),
        *(
            torch.masked_select(y, places),
            y.masked_scatter(places, x),
            torch.view_as_real(torch.polar(x[:, :1], y)),
        ),
        *(torch.cov(x), torch.cov(x, aweights=y.abs()), torch.corrcoef(x), torch.cov(x[0])),
        torch.combinations(y, 3),
    )


def _of_data(x: Any) -> Any:
    y = x.clone()
    y.data.mul_(2)
    y.data[0] = 1
    return y, torch.topk(x, 2, sorted=False)[0].sum(-1), torch.topk(x, 1, 0, False, sorted=False)[1]


def _quantised(x: Any, scale: Any) -> Any:
    """As programs that PyTorch has quantised have it."""
    importlib.import_module("torch.ao.quantization.fx._decomposed")
    ops, i8, u8 = torch.ops.quantized_decomposed, torch.int8, torch.uint8
    zero, ends, limits = torch.tensor(3), (torch.tensor(0), torch.tensor(255)), (-128, 127)
    q, u = ops.quantize_per_tensor, ops.quantize_per_tensor.tensor2(x, scale, zero, *ends, u8)
    chosen = ops.choose_qparams.tensor(x, *limits, 1e-5, i8)
    tokens, token_zeros = ops.choose_qparams_per_token_asymmetric(x, i8)
    of_tokens = ops.quantize_per_token(x, tokens, token_zeros, *limits, i8)
    return (
        *(u, q.tensor(x, *chosen, *limits, i8), q.tensor(x.half(), scale, zero, *limits, i8), *chosen),
        *ops.choose_qparams_symmetric.tensor(x, 0, 255, 1e-5, u8),
        ops.dequantize_per_tensor.tensor2(u, scale, zero, *ends, u8),
        ops.dequantize_per_tensor.tensor(u, scale, zero, 0, 255, u8, out_dtype=torch.float16),
        ops.dequantize_per_token(of_tokens, tokens, token_zeros, *limits, i8, torch.float32),
        *ops.choose_qparams_per_token(x, i8),
        ops.convert_element_type.no_fuse(x, torch.float64),
    )


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (_scatters, (_random(2, 3, 4), _PLACES, _random(2, 3, 2))),
        (_paddings, (_random(2, 5, 6),)),
        (lambda x: F.fold(x, (8, 8), 3, padding=1, stride=2), (_random(1, 18, 16),)),
        (lambda x: F.fold(x, (9, 8), (3, 2), (1, 2), 1, (2, 3)), (_random(18, 15),)),
        (_running, (_SPECIAL,)),
        (_equal, (_SPECIAL,)),
        (_counted, (_random(5, 6),)),
        (_special_functions, (_random(4, 6),)),
        (_bessel_functions, (_random(4, 6),)),
        (_polynomials, (_random(4, 6),)),
        (
            lambda x, w: (torch.bincount(x, w), torch.bincount(x, w.double(), 9), torch.bincount(x, x)),
            (torch.tensor([1, 4, 1, 0]), _random(4)),
        ),
        (_bits, (_random(5, 6),)),
        (_repeated, (_random(4, 6), torch.tensor([2, 0, 3, 1]))),
        (
            _bags,
            (
                torch.where(torch.arange(4)[:, None] == 1, torch.nan, _random(4, 6)),
                _PLACES[0].repeat(3, 2)[:5, :3],
            ),
        ),
        (_powers, (torch.cat([_SPECIAL, -0.0 * _SPECIAL.abs()]),)),
        (_conditions, (_random(7, 65),)),
        (_narrow, (_SPECIAL,)),
        (_places_of_all, (_random(70, 140).round(),)),
        (_places_of_all, (torch.where(_random(70, 140) > 2, torch.nan, _random(70, 140)),)),
        (_pools, (_random(2, 3, 9, 8),)),
        (_pools, (torch.where(_random(2, 3, 9, 8) > 1.5, torch.nan, _random(2, 3, 9, 8).round()),)),
        (_matrices, (_random(2, 4, 4), _random(2, 4, 3))),
        (_bytes, (_BYTES, _BYTES.flip(1).clamp(min=1))),
        (_mixed, (_BYTES, _random(2, 5), torch.arange(10).reshape(2, 5) * 31)),
        (_unbatched, (_random(3, 8), _random(2, 3, 8))),
        (_empty, (_random(0, 3), _random(0, 4, 4, 4), _random(2, 3), torch.zeros(0, dtype=torch.int64))),
        (_added, (_random(3, 5, 7), torch.arange(105, dtype=torch.int16).reshape(3, 5, 7) - 50)),
        (_histograms, (torch.where(_random(8, 256) > 2, torch.nan, _random(8, 256) / (_random(8, 256) > -2)),)),
        (_of_some, (_random(4, 6),)),
        *((_bounds, (_SPECIAL.to(dtype), _DIVISORS.to(dtype))) for dtype in (torch.float32, torch.float64)),
        (_constants, (_random(4, 6),)),
        (_grids, (_random(1, 2, 5, 5, 4), _SPECIAL.reshape(1, 1, 2, 2, 3))),
        (_losses, (_random(3, 4), _random(3, 4))),
        (_masks, (_random(4, 6), torch.tensor([True, False, False, True]))),
        (_slopes, (_random(4, 6),)),
        (
            _filters_per_channel,
            (_random(2, 3, 5, 6), _random(2, 3, 5, 4, 6), _random(3, 1, 3, 3), _random(3, 1, 2, 3, 3)),
        ),
        (_complex, (_random(4, 6),)),
        (_complex_functions, (_random(4, 6),)),
        (_complex_matrices, (_random(2, 3, 3), _random(2, 3, 2))),
        (_factors_from_the_right, (_random(2, 3, 3), _random(2, 3, 2))),
        (_rolls, (_random(4, 6),)),
        (_gammas, (_random(4, 6), _random(4, 3, 2))),
        (_of_data, (_random(4, 6),)),
        (_put_at_some, (_random(4, 6), _random(6))),
        (_of_one_or_none, (_random(4, 6), _random(6))),
        (_quantised, (_random(4, 6), torch.tensor(0.03))),
    ],
    ids=[
        "scatters",
        "paddings",
        "fold",
        "fold of one image",
        "running extrema and sums",
        "equal",
        "counted",
        "special functions",
        "Bessel functions",
        "polynomials",
        "counted with weights",
        "bits",
        "repeated",
        "bags",
        "powers",
        "conditions",
        "bytes of floats",
        "argmax of all",
        "argmax of all with NaN",
        "pools",
        "pools of NaN and equals",
        "matrices",
        "bytes",
        "mixed types",
        "no batch",
        "no elements",
        "added along rows",
        "histograms",
        "some are no numbers",
        "bounds and quotients",
        "bounds and quotients of f64",
        "constants compared with integers",
        "grids with NaN",
        "losses",
        "masks",
        "slopes",
        "filters per channel",
        "complex numbers",
        "complex functions",
        "complex matrices",
        "factors from the right",
        "rolls",
        "incomplete gammas, windows",
        "data, and any order",
        "puts at some places, or none",
        "one element, or none",
        "quantised",
    ],
)
def test_as_eager(function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    module = _Module(function).eval()
    expected = module(*arguments)
    found = devscope.compile(module, arguments, default="cpu:0", cache=False)(*arguments)
    pairs = [(found, expected)] if isinstance(expected, torch.Tensor) else zip(found, expected, strict=True)
    for one, other in pairs:
        np.testing.assert_allclose(one, other.numpy(), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("padding", [[0, 0, 0, 2], [1, 0, 1, 0]], ids=["at the end", "anywhere"])
@pytest.mark.long
def test_padded_sentences_are_as_in_eager_inference(padding: list[int]) -> None:
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    encoder = torch.nn.TransformerEncoder(layer, 2, torch.nn.LayerNorm(8)).eval()
    x, mask = _random(2, 4, 8), torch.tensor([[0, 0, 0, 0], padding]).bool()
    any_length = {1: torch.export.Dim("length")}
    with devscope.compile(
        encoder,
        {"src": x, "src_key_padding_mask": mask},
        dynamic_shapes={"src": any_length, "src_key_padding_mask": any_length},
        cache=False,
    ) as exe:
        for length in (4, 2):
            words = {"src": x[:, :length], "src_key_padding_mask": mask[:, :length]}
            with torch.no_grad():
                expected = encoder(**words)
            np.testing.assert_allclose(exe(**words), expected.numpy(), rtol=1e-4, atol=1e-5)


def test_parts_of_complex_numbers_are_read_where_they_are() -> None:
    """Not from a copy of both as numbers of their own, which takes most of the time of simple functions."""
    from devscope.frontends.torch.views import take_parts

    def function(x: Any) -> Any:
        both = torch.view_as_real(x)
        return both.select(-1, 0), both.select(2, 1), both.select(0, 0)

    z = torch.complex(_random(2, 3), _random(2, 3))
    graph = torch.export.export(_Module(function), (z,)).graph
    take_parts(graph)
    names = [str(node.target) for node in graph.nodes if node.op == "call_function"]
    assert names == ["aten.view_as_real.default", "aten.real.default", "aten.imag.default", "aten.select.int"]


def test_numbers_less_a_tensor_keep_their_digits_and_sums_of_logarithms_a_nan() -> None:
    def function(x: Any, y: Any) -> Any:
        sums = torch.logaddexp(x, y), torch.logaddexp(y, x), torch.logaddexp2(x, y)
        return 1.1 - x, torch.rsub(x, 0.1, alpha=0.3), x.lgamma(), *sums

    special = torch.tensor([torch.nan, torch.inf, -torch.inf, 0.0, -0.7, 3.5], dtype=torch.float64)
    x, y = torch.meshgrid(special, special, indexing="ij")
    with devscope.compile(function, (x, y), cache=False) as exe:
        found = exe(x, y)
    for ours, exact in zip(found, function(x, y), strict=True):
        np.testing.assert_allclose(ours, exact.numpy(), rtol=1e-13)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64])
def test_integers_keep_all_digits(dtype: Any) -> None:
    """Also those that no f32 or f64 has."""

    def function(x: Any, y: Any) -> Any:
        quotients = x // y, x // 3, x % y, torch.fmod(x, y), torch.div(x, y, rounding_mode="trunc")
        return -x, x.abs(), *quotients, torch.maximum(x, y), x.clamp(y, y), torch.gcd(x, y), x * y, x << 3

    limits = torch.iinfo(dtype)
    numbers = [limits.min + 1, limits.max, limits.max - 1, limits.max // 3, 0, 1, 7, 100, 3]
    divisors = [limits.max, limits.max - 2, 1, 3, 10, 64]
    if dtype.is_signed:
        divisors += [-divisor for divisor in divisors]
    x, y = torch.meshgrid(torch.tensor(numbers, dtype=dtype), torch.tensor(divisors, dtype=dtype), indexing="ij")
    with devscope.compile(function, (x, y), cache=False) as exe:
        found = exe(x, y)
    for ours, exact in zip(found, function(x, y), strict=True):
        np.testing.assert_array_equal(ours, exact.numpy())


def test_elements_are_accumulated_as_in_eager() -> None:
    """Scattered narrow floats in f32, integers rounded down to a mean, truths by "or"."""
    kinds = [(how, whole) for how in ("sum", "prod", "mean", "amin") for whole in (True, False)]

    def function(index: Any, ones: Any, truths: Any, *pairs: Any) -> Any:
        found = [ones[:2].scatter_add(0, index % 2, ones)]
        found += [truths[:9].index_put([index], truths, accumulate=True), truths[:9].index_add(0, index, truths)]
        for x, source in pairs:
            found += [x.scatter_reduce(0, index, source, how, include_self=whole) for how, whole in kinds]
        return tuple(found)

    index = torch.arange(900) * 7 % 9
    wide = [_random(909) + 1 for _ in range(2)]
    pairs = [(x[:9], x[9:]) for x in (wide[0].bfloat16(), wide[0].half(), (wide[1] * 3).int())]
    arguments = (index, torch.ones(900, dtype=torch.bfloat16), index % 4 == 1, *pairs)
    with devscope.compile(function, arguments, cache=False) as exe:
        found = exe(*arguments)
    for number, (ours, exact) in enumerate(zip(found, function(*arguments), strict=True)):
        np.testing.assert_array_equal(np.asarray(ours, np.float64), exact.double().numpy(), str(number))


def test_numbers_beside_tensors_are_not_rounded_nor_wrapped() -> None:
    def function(x: Any, byte: Any) -> Any:
        quotients = torch.div(x, 0.3, rounding_mode="trunc"), torch.remainder(2.0, x), 0.1 // x, 300 // byte
        of_bytes = byte / 300, torch.maximum(byte, torch.tensor(300)), torch.copysign(byte, -2.0)
        others = torch.searchsorted(byte, 3.5), F.leaky_relu(x, -0.5), torch.isclose(byte, byte.flip(0), 0.0, 2.0)
        return *quotients, *of_bytes, *others, torch.cat([byte, byte > 3]), torch.arange(1, 9, 3, dtype=byte.dtype)

    x = torch.tensor([3, 0.0, -0.0, -0.9, torch.nan, torch.inf, 0.6, 30], dtype=torch.float64)
    for byte in (torch.tensor([1, 3, 4, 127], dtype=torch.int8), torch.tensor([1, 3, 4, 255], dtype=torch.uint8)):
        with devscope.compile(function, (x, byte), cache=False) as exe:
            found = exe(x, byte)
        for number, (ours, exact) in enumerate(zip(found, function(x, byte), strict=True)):
            assert ours.dtype == exact.numpy().dtype
            np.testing.assert_array_equal(ours, exact.numpy(), str(number))
            signs = (np.signbit(np.nan_to_num(one)) for one in (ours, exact.numpy()))
            np.testing.assert_array_equal(*signs, str(number))


def test_places_of_what_is_no_number_are_behind_all() -> None:
    def function(ordered: Any, values: Any) -> Any:
        sides = [torch.searchsorted(ordered, values, right=right) for right in (False, True)]
        return *sides, torch.bucketize(values, ordered[:4]), torch.bucketize(values, ordered[:4], right=True)

    ordered = torch.tensor([-torch.inf, -1, 0.5, torch.inf, torch.nan, torch.nan])
    values = torch.tensor([torch.nan, -torch.inf, -2, 0.5, torch.inf])
    for dtype in (torch.float32, torch.bfloat16):
        arguments = ordered.to(dtype), values.to(dtype)
        with devscope.compile(function, arguments, cache=False) as exe:
            left, right, *without = exe(*arguments)
        np.testing.assert_array_equal(left, [6, 0, 1, 2, 3])
        np.testing.assert_array_equal(right, [6, 1, 1, 3, 4])
        for ours, exact in zip(without, function(*arguments)[2:], strict=True):
            np.testing.assert_array_equal(ours, exact.numpy())


@pytest.mark.parametrize("default", ["cpu:0", "opencl:0"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int32])
def test_places_among_many(default: str, dtype: torch.dtype) -> None:
    def function(ordered: Any, rows: Any, values: Any) -> Any:
        sides = [torch.searchsorted(ordered, values, right=right) for right in (False, True)]
        return *sides, torch.searchsorted(rows, values), torch.searchsorted(rows, values, side="right")

    ordered, rows = ((100 * _random(*shape)).round().sort().values.to(dtype) for shape in ((1030,), (3, 512)))
    values = (100 * _random(3, 50)).round()
    values[0, :3] = torch.tensor([1e4, -1e4, ordered[7]])
    if dtype.is_floating_point:
        values[1, :3] = torch.tensor([torch.nan, torch.inf, -torch.inf])
    arguments = ordered, rows, values.to(dtype)
    with devscope.compile(function, arguments, default=default, cache=False) as exe:
        for ours, exact in zip(exe(*arguments), function(*arguments), strict=True):
            np.testing.assert_array_equal(ours, exact.numpy())


def test_sorts_of_which_one_result_is_read() -> None:
    arguments = tuple((torch.arange(count) * 7 % 11).to(torch.int8) for count in (3, 64))

    def function(*arguments: Any) -> Any:
        return [x.sort().values for x in arguments], [x.argsort(stable=True) for x in arguments]

    with devscope.compile(function, arguments, default="opencl:0", cache=False) as exe:
        found = exe(*arguments)
    for ours, exact in zip(found, function(*arguments), strict=True):
        for one, other in zip(ours, exact, strict=True):
            np.testing.assert_array_equal(one, other.numpy())


def test_gamma_and_bessel_functions_have_all_digits_near_their_zeros() -> None:
    near = 2.0 ** -torch.arange(1, 50, dtype=torch.float64)
    x = torch.cat([1 + near, 1 - near, 2 + near, 2 - near, torch.linspace(0.01, 40, 999, dtype=torch.float64)])

    def function(x: Any) -> Any:
        return torch.lgamma(x), torch.special.i0e(x), torch.special.i1e(x)

    with devscope.compile(function, (x,), cache=False) as exe:
        found = exe(x)
    for ours, exact, limit in zip(found, function(x), (2e-15, 4e-15, 2e-14), strict=True):
        np.testing.assert_allclose(ours, exact.numpy(), rtol=limit)


def test_incomplete_gamma_functions_have_more_digits_than_eagers() -> None:
    """PyTorch's have nine."""
    special = pytest.importorskip("scipy.special")
    a = torch.linspace(0.1, 90, 300, dtype=torch.float64)
    x = a * torch.linspace(0.2, 1.8, 7, dtype=torch.float64)[:, None]
    functions = torch.special.gammainc, torch.special.gammaincc
    with devscope.compile(lambda a, x: tuple(one(a, x) for one in functions), (a, x), cache=False) as exe:
        found = exe(a, x)
    for ours, exact in zip(
        found, (special.gammainc(a.numpy(), x.numpy()), special.gammaincc(a.numpy(), x.numpy())), strict=True
    ):
        np.testing.assert_allclose(ours, exact, rtol=1e-11, atol=1e-13)


def test_inverse_error_functions_of_f32_have_all_digits() -> None:
    halves = 2.0 ** -torch.linspace(0, 24, 997)
    x = torch.cat([_SPECIAL.flatten(), torch.linspace(-1, 1, 2001), 1 - halves, halves - 1, halves**6]).float()
    with devscope.compile(lambda x: torch.erfinv(x), (x,), cache=False) as exe:
        found = exe(x)
    exact = torch.erfinv(x.double()).float().numpy()
    np.testing.assert_allclose(found, exact, rtol=4 * 2**-24, atol=2e-45)
    np.testing.assert_array_equal(np.signbit(found[exact == 0]), np.signbit(exact[exact == 0]))


def test_special_functions_have_all_digits() -> None:
    """Also near 0 and their ends; the sign is also that of a zero, and of what is no number."""

    def function(x: Any) -> Any:
        signs = torch.trunc(x), torch.copysign(torch.ones_like(x), x), torch.signbit(x)
        values = torch.digamma(x), torch.lgamma(x), torch.erfc(x), F.elu(x), torch.exp2(x)
        return (*signs, *values, torch.xlogy(2.0, x), torch.xlogy(x, 3.0), torch.erfinv(x / 4))

    x = torch.tensor(
        [
            *(torch.nan, -torch.nan, torch.inf, -torch.inf, 0, -0.0, 1e-40, -1e-40, 1, 2, 0.5, -0.7, -1e-5),
            *(1.5, -6.5, 3.999, 4.0, 3.99999, 27.5, 1e10),
        ],
        dtype=torch.float64,
    )
    with devscope.compile(function, (x,), cache=False) as exe:
        found = exe(x)
    for ours, exact in zip(found, function(x), strict=True):
        np.testing.assert_allclose(ours, exact.numpy(), rtol=2e-13)
    np.testing.assert_array_equal(np.signbit(found[0]), np.signbit(x.numpy()))


def test_numbers_beside_narrow_floats_are_those_of_eager() -> None:
    """Factors are not rounded, what is compared and ``alpha`` are."""

    def function(x: Any) -> Any:
        return (
            *(x * 0.3, x / 0.3, 0.3 / x, x + 0.3, 0.3 - x, F.leaky_relu(x, 0.3), F.hardshrink(x, 0.3)),
            *(x > 0.3, x <= 0.3, torch.add(x, x, alpha=0.3), torch.sub(x, x * x, alpha=3)),
        )

    for dtype in (torch.bfloat16, torch.float16):
        x = torch.cat([_random(508), torch.tensor([0.3, 0.30078125, torch.inf, torch.nan])]).to(dtype)
        with devscope.compile(function, (x,), cache=False) as exe:
            found = exe(x)
        for number, (ours, exact) in enumerate(zip(found, function(x), strict=True)):
            np.testing.assert_array_equal(np.asarray(ours, np.float32), exact.float().numpy(), str(number))


def test_functions_of_narrow_floats_round_once() -> None:
    def function(x: Any) -> Any:
        return (
            *(F.gelu(x), F.gelu(x, approximate="tanh"), F.elu(x), F.selu(x), x.sigmoid(), x.abs().rsqrt()),
            *(torch.hypot(x, x * 0.5), torch.logaddexp(x, x * 0.5), x.norm(dim=1), torch.linalg.vector_norm(x, 1)),
            *(x.cumsum(1), x.cumsum(1, dtype=torch.float32), x.cumprod(1), x.prod(1), x.sum(0), x[:, :0].prod(1)),
        )

    special = torch.tensor([torch.nan, torch.inf, -torch.inf, 0.0, -0.0, -3.5, 1e-30, 88.0])
    for dtype in (torch.bfloat16, torch.float16):
        x = torch.cat((special.expand(2, 8), 2 * _random(6, 8))).to(dtype)
        with devscope.compile(function, (x,), cache=False) as exe:
            found = exe(x)
        for ours, exact in zip(found, function(x.double()), strict=True):
            ours = torch.from_numpy(np.asarray(ours, dtype=np.float64))
            limit = exact.abs() * torch.finfo(dtype).eps + 1e-6
            is_large = exact.abs() > torch.finfo(dtype).max
            same = (ours - exact).abs() <= limit
            assert (same | (ours == exact) | (ours.isnan() & exact.isnan()) | is_large).all(), (ours, exact)


def _at_any_places(x: Any, i: Any, j: Any) -> Any:
    put, rows = torch.ops.aten.index_put, i[:, None]
    return (
        *(x[rows, j], x[rows, :, j], x[:, rows, j], x[rows, 1], x[i, [0]], x[rows.int(), j[0]]),
        *(
            put(x, [rows, j], torch.ones(())),
            put(x, [rows, j], x[0, 0], True),
            put(x > 0, [i, None, j[0]], x[:, 0] > 1),
        ),
        *(
            put(x, [rows, None, j], x[0, 0], True),
            put(x, [None, j], x[0, 0]),
            put(x, [i, j[0], i], i.float(), True),
        ),
    )


def test_places_of_any_size() -> None:
    """Several indices, broadcast, of which sizes are known at run time only."""
    n = torch.export.Dim("n", min=3)
    shapes = ({0: n}, {0: n}, {0: n, 1: n})

    def given(n: int) -> Any:
        i, j = (torch.arange(n) * 3) % 7 - 3, torch.arange(n * n).reshape(n, n) % 7 - 3
        return _random(n, 4, 4), i, j

    with devscope.compile(_Module(_at_any_places), given(4), dynamic_shapes=(shapes,), cache=False) as exe:
        for size in (4, 7):
            wanted = _at_any_places(*given(size))
            for got, want in zip(exe(*given(size)), wanted, strict=True):
                np.testing.assert_allclose(got, want)


class _Energy(torch.nn.Module):
    """A force is the derivative of an energy, whose parts have paths."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Any, *, options: dict[str, Any]) -> Any:
        self.calls += 1
        place = x.detach().requires_grad_()
        energy = self.layers(place).sum()
        (force,) = torch.autograd.grad(energy, place, create_graph=True)
        slopes = torch.func.vmap(torch.func.hessian(lambda y: (y**2).sum() ** 1.5))(x)
        return {"energy": energy * options["scale"], "both": (force, slopes, self.calls + 0)}


@pytest.mark.parametrize("options", [{}, {"place": {"layers.0": "opencl:0", "*": "cpu:0"}}])
def test_derivatives_in_forward(options: dict[str, Any]) -> None:
    torch.manual_seed(3)
    model, x, scale = _Energy(), _random(5, 3), {"scale": 2.0, "unused": None}
    with devscope.compile(model, {"x": x, "options": scale}, cache=False, **options) as exe:
        assert len(exe.devices) == 1 + bool(options)
        for _ in range(2):
            found, expected = exe(x, options=scale), model(x, options=scale)
            np.testing.assert_allclose(found["energy"], expected["energy"].detach().numpy(), rtol=1e-5)
            for one, other in zip(found["both"], expected["both"], strict=True):
                np.testing.assert_allclose(one, other.detach().numpy(), rtol=1e-5, atol=1e-6)


class _Penalty(_Energy):
    def forward(self, x: Any) -> Any:
        place = x.clone().requires_grad_()
        value = self.layers(place)
        (slope,) = torch.autograd.grad(value, place, torch.ones_like(value), create_graph=True)
        cubes = torch.func.grad(lambda y: (self.layers(y[None]) + y**3).sum())
        return (slope.norm(dim=1) - x.shape[0]).square().mean(), cubes(x), torch.func.vmap(cubes)(x + 1)


def test_derivatives_of_any_size() -> None:
    torch.manual_seed(3)
    model, shapes = _Penalty(), {"x": {0: torch.export.Dim("n")}}
    place = {"layers.0": "opencl:0", "*": "cpu:0"}
    with devscope.compile(model, (_random(5, 3),), dynamic_shapes=shapes, place=place, cache=False) as exe:
        assert len(exe.devices) == 2
        for n in (5, 8, 1):
            x = _random(n, 3)
            for one, other in zip(exe(x), model(x), strict=True):
                np.testing.assert_allclose(one, other.detach().numpy(), rtol=1e-5, atol=1e-6)
