"""What gradients are decomposed into, in eager, beside PyTorch's kernels."""

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
F = torch.nn.functional

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from devscope.frontends.torch.gradient_decompositions import TABLE  # noqa: E402


class _Decomposed(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.called = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.called += func in TABLE
        return TABLE.get(func, func)(*args, **(kwargs or {}))


def _random(*shape: int) -> Any:
    return torch.randn(shape, generator=torch.Generator().manual_seed(len(shape)), dtype=torch.float64)


def _check(function: Callable[..., Any], *arguments: Any) -> None:
    given = [one.clone().requires_grad_() for one in arguments]
    result = function(*given)
    grad = _random(*result.shape)
    expected = torch.autograd.grad(result, given, grad)
    with _Decomposed() as mode:
        found = torch.autograd.grad(function(*given), given, grad)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-10)
    assert mode.called


SIZES = (7, 9, 8)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize(
    ("stride", "padding", "dilation", "groups", "window"),
    [(1, 0, 1, 1, 1), (2, 1, 1, 2, 3), (3, 1, 2, 1, 3), (1, 1, 2, 2, 3), (3, 0, 1, 1, 2)],
)
def test_convolutions(rank: int, stride: int, padding: int, dilation: int, groups: int, window: int) -> None:
    x, windows = _random(2, 4, *SIZES[:rank]), [window] * rank
    straight, transposed = (getattr(F, f"conv{kind}{rank}d") for kind in ("", "_transpose"))
    _check(
        lambda x, w, b: straight(x, w, b, stride, padding, dilation, groups),
        x,
        _random(6, 4 // groups, *windows),
        _random(6),
    )
    _check(
        lambda x, w, b: transposed(x, w, b, stride, padding, stride - 1, groups, dilation),
        x,
        _random(4, 6 // groups, *windows),
        _random(6),
    )


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_pools(rank: int) -> None:
    x = _random(2, 3, *SIZES[:rank])
    average, adaptive, largest, most = (
        getattr(F, f"{name}_pool{rank}d") for name in ("avg", "adaptive_avg", "max", "adaptive_max")
    )
    for ceil_mode in (False, True):
        for include in (False, True):
            _check(lambda x, c=ceil_mode, i=include: average(x, 3, 2, 1, c, i), x)
        _check(lambda x, c=ceil_mode: largest(x, 3, 2, 1, 1, c), x)
    if rank > 1:
        _check(lambda x: average(x, 2, divisor_override=3), x)
    _check(lambda x: adaptive(x, (4, 3, 5)[:rank]), x)
    _check(lambda x: most(x, (4, 3, 5)[:rank]), x)
    _check(lambda x: F.pad(x, (1, 2, 0, 3, 2, 1)[: 2 * rank], mode="replicate"), x)


@pytest.mark.parametrize(
    ("rank", "mode", "more"),
    [
        *((rank, mode, {}) for rank in (1, 2, 3) for mode in ("nearest", "nearest-exact")),
        *(
            (rank, mode, {"align_corners": align})
            for rank, mode in ((1, "linear"), (2, "bilinear"), (2, "bicubic"), (3, "trilinear"))
            for align in (False, True)
        ),
        *((2, mode, {"antialias": True}) for mode in ("bilinear", "bicubic")),
    ],
)
def test_interpolations(rank: int, mode: str, more: dict[str, Any]) -> None:
    x = _random(2, 3, *SIZES[:rank])
    for scale in (2.3, 0.6):
        _check(lambda x, s=scale: F.interpolate(x, scale_factor=s, mode=mode, **more), x)
    _check(lambda x: F.interpolate(x, size=(5, 12, 9)[:rank], mode=mode, **more), x)


@pytest.mark.parametrize(
    "options",
    [{}, {"is_causal": True}, {"scale": 0.3, "attn_mask": torch.ones(5, 7).tril(1).bool()}, {"enable_gqa": True}],
)
def test_attention(options: dict[str, Any]) -> None:
    heads = 2 if "enable_gqa" in options else 4
    keys = _random(2, heads, 7, 8), _random(2, heads, 7, 8) + 1
    _check(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, **options), _random(2, 4, 5, 8), *keys)


def test_others() -> None:
    x = _random(3, 4)
    _check(F.hardshrink, x)
    _check(lambda x: F.softshrink(x, 0.3), x)
    for dim in (0, 1):
        _check(lambda v, g, d=dim: torch._weight_norm(v, g, d), x, _random(3, 1) if dim == 0 else _random(1, 4))
    for p in (0.0, 1.0, 1.5, 2.0, float("inf")):
        _check(lambda a, b, p=p: torch.cdist(a, b, p), x, _random(5, 4) + 1)
