"""Convolutions and pooling, for `kernels.py`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from _kernel_text import Text
from _kernel_work import Run, Work, normal


def _windows(x: Any, kernel: Sequence[int], stride: int) -> Any:
    """[n, c, spatial...] -> [n, c, positions..., kernel...], a view."""
    axes = tuple(range(2, x.ndim))
    view = np.lib.stride_tricks.sliding_window_view(x, kernel, axis=axes)
    return view[(slice(None), slice(None), *[slice(None, None, stride)] * len(axes))]


def _channels(last: bool, batch: int, channels: int, spatial: Sequence[int]) -> tuple[int, ...]:
    return (batch, *spatial, channels) if last else (batch, channels, *spatial)


def _first(x: Any) -> Any:
    """The channels of an array or tensor from the last axis to the second: a view."""
    order = (0, x.ndim - 1, *range(1, x.ndim - 1))
    return x.transpose(order) if isinstance(x, np.ndarray) else x.permute(order)


def _last(x: Any) -> Any:
    order = (0, *range(2, x.ndim), 1)
    return x.transpose(order) if isinstance(x, np.ndarray) else x.permute(order)


def convolution(
    kind: str,
    last: bool,
    size: int,
    channels: int,
    filters: int,
    kernel: int,
    stride: int = 1,
    rank: int = 2,
    depthwise: bool = False,
) -> Work:
    """Batch 1; ``size`` along every spatial axis, padded by half of the kernel."""
    edge = kernel // 2
    spatial = (size,) * rank
    positions = ((size + 2 * edge - kernel) // stride + 1,) * rank
    shape = _channels(last, 1, channels, spatial)
    taps = (kernel,) * rank
    if depthwise:
        weights = (*taps, channels) if last else (channels, *taps)
        operation = "depthwise_conv_2d_nhwc_hwc" if last else "depthwise_conv_2d_nchw_chw"
    else:
        weights = (*taps, channels, filters) if last else (filters, channels, *taps)
        letters = "dhw"[3 - rank :]
        input_letters, filter_letters = (
            (f"n{letters}c", f"{letters}cf") if last else (f"nc{letters}", f"fc{letters}")
        )
        operation = f"conv_{rank}d_{input_letters}_{filter_letters}"

    def text() -> str:
        t = Text()
        x, w = t.argument(*shape), t.argument(*weights)
        around = _channels(last, 0, 0, (edge,) * rank)
        x = t.pad(x, around, around) if edge else x
        attributes = (
            f"{{strides = dense<{stride}> : tensor<{rank}xi64>, dilations = dense<1> : tensor<{rank}xi64>}}"
        )
        return t.returning(
            t.named(operation, [x, w], t.fill(0.0, _channels(last, 1, filters, positions)), attributes)
        )

    def straight(x: Any, w: Any) -> tuple[Any, Any]:
        """Channels first, filters as [filters, channels, taps...] (depthwise: [channels, 1, taps...])."""
        if depthwise:
            axes = (rank, *range(rank)) if last else tuple(range(rank + 1))
            w = w.transpose(axes) if isinstance(w, np.ndarray) else w.permute(axes)
            w = w[:, None]
        elif last:
            axes = (rank + 1, rank, *range(rank))
            w = w.transpose(axes) if isinstance(w, np.ndarray) else w.permute(axes)
        return (_first(x) if last else x), w

    def by_numpy(out: Any, x: Any, w: Any) -> Run:
        del out
        x, w = straight(x, w)
        x = np.pad(x, [(0, 0), (0, 0), *[(edge, edge)] * rank])

        def run() -> Any:
            view = _windows(x, taps, stride)
            axes = tuple(range(2 + rank, 2 + 2 * rank))
            if depthwise:
                result = np.einsum("nchwij,cij->nchw", view, w[:, 0])
            else:
                result = np.tensordot(view, w, axes=((1, *axes), (1, *range(2, 2 + rank))))
                return result if last else np.ascontiguousarray(_first(result))
            return np.ascontiguousarray(_last(result)) if last else result

        return run

    def by_torch(torch: Any, out: Any, x: Any, w: Any) -> Run:
        del out
        x, w = straight(x, w)
        if last:
            layout = torch.channels_last if rank == 2 else torch.channels_last_3d
            x, w = x.contiguous(memory_format=layout), w.contiguous(memory_format=layout)
        function = torch.nn.functional.conv2d if rank == 2 else torch.nn.functional.conv3d
        groups = channels if depthwise else 1

        def run() -> Any:
            result = function(x, w, stride=stride, padding=edge, groups=groups)
            return _last(result) if last else result

        return run

    return Work(
        f"conv {kind} {'x'.join(map(str, spatial))}x{channels}"
        + (f" to {filters}" if filters != channels else "")
        + (", channels last" if last else ", channels first"),
        "conv",
        text,
        normal(shape, weights),
        by_numpy,
        by_torch,
        "GFLOP/s",
        2.0 * math.prod(positions) * math.prod(taps) * filters * (1 if depthwise else channels),
        numpy_is_peer=False,
        scales=not depthwise,
    )


def transposed(size: int, channels: int, filters: int) -> Work:
    """4x4, stride 2, padding 1: twice the size. The filters come turned around, as a frontend folds them."""
    weights = (filters, channels, 4, 4)
    spread = 2 * size - 1 + 4

    def text() -> str:
        t = Text()
        x, w = t.argument(1, channels, size, size), t.argument(*weights)
        zeros = t.fill(0.0, (1, channels, spread, spread))
        x = t.insert(x, zeros, (0, 0, 2, 2), (1, 1, 2, 2))
        return t.returning(t.named("conv_2d_nchw_fchw", [x, w], t.fill(0.0, (1, filters, 2 * size, 2 * size))))

    def by_numpy(out: Any, x: Any, w: Any) -> Run:
        del out
        zeros = np.zeros((1, channels, spread, spread), x.dtype)
        zeros[:, :, 2:-2:2, 2:-2:2] = x
        return lambda: np.ascontiguousarray(
            _first(np.tensordot(_windows(zeros, (4, 4), 1), w, axes=((1, 4, 5), (1, 2, 3))))
        )

    def by_torch(torch: Any, out: Any, x: Any, w: Any) -> Run:
        del out
        w = w.flip(2, 3).transpose(0, 1).contiguous()
        return lambda: torch.nn.functional.conv_transpose2d(x, w, stride=2, padding=1)

    return Work(
        f"conv transposed 4x4 stride 2 {size}x{size}x{channels} to {filters}, channels first",
        "conv",
        text,
        normal((1, channels, size, size), weights),
        by_numpy,
        by_torch,
        "GFLOP/s",
        2.0 * size * size * 16 * channels * filters,
        numpy_is_peer=False,
        scales=True,
    )


def pooling(kind: str, last: bool, size: int, channels: int) -> Work:
    """3x3, stride 2; the greatest of a padded image, or the mean of an unpadded one."""
    edge = 1 if kind == "max" else 0
    positions = (size + 2 * edge - 3) // 2 + 1
    shape = _channels(last, 1, channels, (size, size))
    result_shape = _channels(last, 1, channels, (positions, positions))

    def text() -> str:
        t = Text()
        x, window = t.argument(*shape), t.empty((3, 3))
        around = _channels(last, 0, 0, (edge, edge))
        least = "0xFF800000" if kind == "max" else 0.0
        x = t.pad(x, around, around, least) if edge else x
        operation = f"pooling_{'nhwc' if last else 'nchw'}_{'max' if kind == 'max' else 'sum'}"
        attributes = "{strides = dense<2> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}"
        found = t.named(operation, [x, window], t.fill(least, result_shape), attributes)
        if kind == "mean":
            count = t.constant(9.0)
            found = t.map(f"%r = arith.divf %a, {count} : f32", found)
        return t.returning(found)

    def by_numpy(out: Any, x: Any) -> Run:
        del out
        x = _first(x) if last else x
        x = np.pad(x, [(0, 0), (0, 0), (edge, edge), (edge, edge)], constant_values=-np.inf)

        def run() -> Any:
            result = getattr(_windows(x, (3, 3), 2), kind)(axis=(4, 5))
            return np.ascontiguousarray(_last(result)) if last else result

        return run

    def by_torch(torch: Any, out: Any, x: Any) -> Run:
        del out
        x = _first(x) if last else x
        functional = torch.nn.functional

        def run() -> Any:
            pooled = functional.max_pool2d(x, 3, 2, 1) if kind == "max" else functional.avg_pool2d(x, 3, 2)
            return _last(pooled) if last else pooled

        return run

    return Work(
        f"{kind} pooling 3x3 stride 2 {size}x{size}x{channels}, channels {'last' if last else 'first'}",
        "pool",
        text,
        normal(shape),
        by_numpy,
        by_torch,
        numpy_is_peer=False,
    )
