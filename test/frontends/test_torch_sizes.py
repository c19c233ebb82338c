"""Arithmetic of sizes that are known at run time: poolings, interpolations and numbers made of sizes, as eager."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import devscope
from devscope.errors import ExecutionError, InputError

torch = pytest.importorskip("torch")

from torch._higher_order_ops import associative_scan  # noqa: E402

from devscope.frontends.torch.dynamic_shapes import check_dynamic  # noqa: E402

pytestmark = pytest.mark.sampled(6)

F = torch.nn.functional
Dim = torch.export.Dim


def _random(*shape: int) -> Any:
    return torch.randn(shape, generator=torch.Generator().manual_seed(5))


def _poolings(x: Any) -> Any:
    return (
        F.adaptive_avg_pool2d(x, (2, 3)),
        F.adaptive_avg_pool2d(x, (None, 2)),
        F.adaptive_avg_pool1d(x[0], 4),
        F.adaptive_avg_pool3d(x[None], (2, 3, 3)),
        *F.adaptive_max_pool2d(x, (2, 3), return_indices=True),
        F.adaptive_max_pool1d(x[0], 4),
        *F.max_pool1d(x[0], 3, 2, 1, ceil_mode=True, return_indices=True),
        F.max_pool1d(x[0, 0], (2,), padding=(1,)),
        F.interpolate(x, scale_factor=1.5, mode="area"),
    )


def _interpolations(x: Any) -> Any:
    return (
        F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True),
        F.interpolate(x, scale_factor=1.5, mode="bilinear"),
        F.interpolate(x, size=(7, 9), mode="bicubic", align_corners=True),
        F.interpolate(x, scale_factor=2, mode="nearest-exact"),
        F.interpolate(x, size=(4, 6), mode="bilinear", antialias=True),
    )


def _parts(x: Any) -> Any:
    rows = x.shape[2]
    return torch.cat([x, x, x], 2).split([rows, 2 * rows], 2)


def _numbers(x: Any) -> Any:
    rows, columns = x.shape[-2:]
    y, places = x[0, 0], torch.arange(6)
    return (
        *(y * rows**0.5, y * columns**-0.5, y / rows, y * (rows - 1) / max(columns, 2), rows**2 * y, rows - y),
        *(torch.tensor([rows, 1.5]), torch.full((2,), rows * 1.5), torch.tensor(rows * 1.0), y.mean() * y.numel()),
        *(torch.div(places, rows, rounding_mode="floor"), places % columns, torch.where(y > 0, y, rows)),
        *(y**rows, y > rows / 4, y.clamp(max=rows / 8)),
        F.pad(y, (0, (-columns) % 4, (rows + 1) % 3, 0)),
        *(torch.complex(y, y + 1).mean(0).imag, torch.full((2,), rows, dtype=torch.complex64).real),
    )


def _memory(x: Any) -> Any:
    rows = x.shape[2]
    y = x[0, 0].T * 2
    y.as_strided((rows - 1, 2), (2, 1), 1).mul_(3)
    images = (x + 1).to(memory_format=torch.channels_last)
    return (
        y,
        y.as_strided((rows, 2), (1, 3), 1),
        x.as_strided(x.shape, x.stride()),
        F.adaptive_avg_pool2d(images, 1),
    )


@pytest.mark.long
@pytest.mark.parametrize("function", [_poolings, _interpolations, _parts, _numbers, _memory])
def test_as_eager(function: Callable[..., Any]) -> None:
    shapes = ({2: Dim("rows", min=2), 3: Dim("columns", min=2)},)
    exe = devscope.compile(function, (_random(1, 2, 8, 9),), dynamic_shapes=shapes, cache=False)
    for rows, columns in ((8, 9), (7, 5), (3, 12)):
        x = _random(1, 2, rows, columns)
        for found, expected in zip(exe(x), function(x), strict=True):
            np.testing.assert_allclose(found, expected.numpy(), rtol=1e-4, atol=1e-5)


def test_sizes_that_are_multiples_may_be_small_in_the_example() -> None:
    def halved(x: Any) -> Any:
        return F.avg_pool2d(x, 2) + 1, F.interpolate(F.max_pool2d(x, 2), scale_factor=2) - x

    shapes = ({0: Dim("batch"), 2: 2 * Dim("rows"), 3: 2 * Dim("columns")},)
    exe = devscope.compile(halved, (_random(1, 2, 2, 6),), dynamic_shapes=shapes, cache=False)
    for batch, rows, columns in ((1, 2, 6), (3, 8, 2)):
        x = _random(batch, 2, rows, columns)
        for found, expected in zip(exe(x), halved(x), strict=True):
            np.testing.assert_allclose(found, expected.numpy(), rtol=1e-5)


def test_filters_of_each_image_of_a_batch() -> None:
    def modulated(x: Any, weight: Any, bias: Any) -> Any:
        image, batch = x.flatten(0, 1)[None], x.shape[0]
        filtered = F.conv1d(image, weight.flatten(0, 1), bias.flatten(), 2, 1, 2, batch)
        return filtered, F.conv_transpose1d(filtered, weight.flatten(0, 1), None, 2, 1, 1, batch)

    shapes = ({0: Dim("batch")},) * 3
    examples = [(_random(n, 2, 9), _random(n, 3, 2, 3), _random(n, 3)) for n in (3, 1, 4)]
    with devscope.compile(modulated, examples[0], dynamic_shapes=shapes, cache=False) as exe:
        for given in examples:
            for found, expected in zip(exe(*given), modulated(*given), strict=True):
                np.testing.assert_allclose(found, expected.numpy(), rtol=1e-4, atol=1e-5)


def test_runs_and_repetitions_of_nothing() -> None:
    def runs(x: Any) -> Any:
        found = torch.unique(x, return_inverse=True, return_counts=True)
        return *found, torch.unique_consecutive(x), x.repeat(2, 3, 1), x.nan_to_num().tile(2)

    with devscope.compile(runs, (_random(5),), dynamic_shapes=({0: Dim("n")},), cache=False) as exe:
        for x in (torch.tensor([2.0, torch.nan, torch.nan, 1, 1, 2]), _random(0), _random(1)):
            for found, expected in zip(exe(x), runs(x), strict=True):
                np.testing.assert_array_equal(found, expected.numpy())


def _series(x: Any, y: Any) -> Any:
    n, m = x.shape
    return (
        *(torch.linspace(0, 1, n), torch.linspace(-3, 5, m, dtype=torch.float64), torch.logspace(0, 1, n)),
        *(torch.hann_window(n), torch.hann_window(n, periodic=False), torch.hamming_window(m, True, 0.5)),
        *(torch.blackman_window(n), torch.bartlett_window(n, False), torch.kaiser_window(m, True, 6.0)),
        *(torch.kron(x, y), torch.kron(x[0], y), torch.roll(x, (5, -1), (0, 1)), torch.roll(x, n // 2, 1)),
        torch.einsum("nm,nm,kj->mj", x, x, y),
    )


def _in_matrices(x: Any, y: Any) -> Any:
    n, m = x.shape
    square = (x @ x.T).fill_diagonal_(-5.0)
    return (
        *(square, square[*torch.tril_indices(n, n, -1)], torch.triu_indices(n, m, 1), torch.combinations(x[0])),
        *(torch.vander(x[0]), torch.vander(x[0], 3, increasing=True), F.one_hot(torch.arange(m) % n, n)),
        *(y.T.cov(), torch.cov(x[0], correction=0), torch.corrcoef(torch.cat([x, x[:1] ** 2]))),
        *(torch.fft.fftfreq(n, 0.5), torch.fft.rfftfreq(m), torch.cdist(x, x[:1])),
        F.affine_grid(x[None, :1, :1] * torch.eye(2, 3), [1, 1, n, m], align_corners=False),
        F.affine_grid(x[None, :1, :1] * torch.eye(3, 4), [1, 1, n, 2, m], align_corners=True),
    )


def _rounded(x: Any, y: Any) -> Any:
    scale, zero = x.abs().amax(1) / 127, torch.tensor(3, dtype=torch.int32)
    return (
        torch.fake_quantize_per_tensor_affine(x, 0.05, 3, -128, 127),
        torch.fake_quantize_per_tensor_affine(x, y[0, 0].abs(), zero, 0, 15),
        torch.fake_quantize_per_channel_affine(x, scale, torch.zeros_like(scale, dtype=torch.int32), 0, -8, 7),
    )


@pytest.mark.long
@pytest.mark.parametrize("function", [_series, _in_matrices, _rounded])
def test_what_pytorch_traces_for_known_sizes_only(function: Callable[..., Any]) -> None:
    """PyTorch's trace takes their sizes as constants."""
    shapes = ({0: Dim("n"), 1: Dim("m")}, {0: Dim("k")})
    with devscope.compile(
        function, (_random(4, 5), _random(3, 2)), dynamic_shapes=shapes, default="cpu:0", cache=False
    ) as exe:
        for n, m, k in ((4, 5, 3), (7, 2, 1), (1, 3, 2)):
            given = _random(n, m), _random(k, 2)
            for got, want in zip(exe(*given), function(*given), strict=True):
                np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-6)


def test_parts_pairs_slopes_and_products() -> None:
    def function(x: Any) -> Any:
        return (
            *(*torch.tensor_split(x, 3), *torch.tensor_split(x, [1, -2]), *x.vsplit(2), torch.pdist(x, 3)),
            *(*torch.gradient(x, spacing=[0.5, 2]), torch.diff(x, n=2, dim=0), torch.chain_matmul(x, x.T, x)),
            *torch.gradient(x, spacing=(x[:, 0].cumsum(0),), dim=0, edge_order=2),
            *(x.var(0, correction=7), *torch.std_mean(x[4:], 0)),
        )

    with devscope.compile(function, (_random(8, 5),), dynamic_shapes=({0: Dim("n", min=6)},), cache=False) as exe:
        for x in (_random(8, 5), _random(6, 5)):
            for found, expected in zip(exe(x), function(x), strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.long
def test_signals() -> None:
    kinds: Any = {"n_fft": 4, "hop_length": 2, "window": torch.ones(4)}

    def function(x: Any) -> Any:
        n, spectra = x.shape[0], torch.stft(x, **kinds, return_complex=True)
        return (
            *(torch.istft(spectra, **kinds, length=n), spectra.istft(**kinds, length=n + 3, center=False)),
            torch.fft.fft(x, norm="ortho").abs(),
        )

    with devscope.compile(function, (_random(12),), dynamic_shapes=({0: Dim("n", min=4)},), cache=False) as exe:
        for x in (_random(12), _random(7)):
            for found, expected in zip(exe(x), function(x), strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def _linear(x: Any, y: Any) -> Any:
    """What ``h = x * h + y`` gives, row after row."""

    def both(one: Any, other: Any) -> Any:
        return {"x": one["x"] * other["x"], "y": other["x"] * one["y"] + other["y"]}

    made = [
        associative_scan(both, {"x": x, "y": y}, dim, reverse, "generic")["y"]
        for dim, reverse in ((0, False), (1, True))
    ]
    return *made, torch.cond(x.sum() > 0, torch.sin, torch.cos, (y[:, -1],))


@pytest.mark.parametrize("dim", [0, 1])
def test_associative_scans_along_and_across_what_varies(dim: int) -> None:
    """In one process, that is with what PyTorch has compiled before."""
    shapes = ({dim: Dim("n")},) * 2
    with devscope.compile(_linear, (_random(3, 4),) * 2, dynamic_shapes=shapes, cache=False) as exe:
        for count in (5, 1):
            size = (count, 4) if dim == 0 else (3, count)
            x, y = _random(*size), _random(*size) - 1
            for found, expected in zip(exe(x, y), _linear(x, y), strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_no_decomposition_makes_a_constant_of_a_size() -> None:
    module = torch.nn.Tanh()
    exported = torch.export.export(module, (_random(3, 2),), dynamic_shapes=({0: Dim("n")},))
    with pytest.raises(InputError, match=r"decomposes 'Tanh' into is for input\.shape\[0\] == 3 only"):
        check_dynamic(exported, torch.export.export(module, (_random(3, 2),)), "Tanh")


def test_variance_of_nothing() -> None:
    def function(x: Any) -> Any:
        return x.var(0), x.std()

    with devscope.compile(function, (_random(3, 2),), dynamic_shapes=({0: Dim("n")},), cache=False) as exe:
        for rows in (0, 1, 3):
            x = _random(rows, 2)
            for found, expected in zip(exe(x), function(x), strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_what_pytorch_cannot_prove_of_sizes_is_looked_at_in_calls() -> None:
    def spectrum(x: Any) -> Any:
        assert 48 % (x.shape[1] // 16) == 0
        return torch.stft(x, 16, 4, window=torch.hann_window(16), return_complex=True).abs()

    shapes = ({1: Dim("length", min=16)},)
    with devscope.compile(spectrum, (_random(1, 100),), dynamic_shapes=shapes, cache=False) as exe:
        for length in (100, 64):
            x = _random(1, length)
            np.testing.assert_allclose(exe(x), spectrum(x), rtol=1e-4, atol=1e-5)
        with pytest.raises(ExecutionError, match=r"traced for sizes with Eq\(Mod\(48, .*x\.shape\[1\]"):
            exe(_random(1, 80))
