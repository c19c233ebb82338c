"""What `kernels.py` measures: every work as MLIR text, as numpy and torch compute it, and how much it is.

The text is what people's frontends produce: named contractions, convolutions and pooling, `tensor.pad` before
them, `linalg.transpose` before a matmul with a transposed side, one `linalg.generic` per elementwise operation.
Elementwise named operations are not in it: linalg's set of them differs from version to version.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import _mlp
import numpy as np
from _graphs import GRAPHS, module_text

Run = Callable[[], Any]

COPIED = 64 << 20
"""Bytes of the copy that memory bandwidth is measured by."""


@dataclass(frozen=True)
class Work:
    """One row of the table.

    ``text`` makes the module, whose ``@main`` takes ``inputs()``. ``numpy(out, *arrays)`` and ``torch(torch, out,
    *tensors)`` make a function of no arguments that computes the same; ``out`` is where the result may go, None at
    numpy's first call. ``amount`` is in flop where the unit is GFLOP/s, in bytes moved at least where it is GB/s.
    """

    name: str
    group: str
    text: Callable[[], str]
    inputs: Callable[[], list[Any]]
    numpy: Callable[..., Run]
    torch: Callable[..., Run]
    unit: str = "ms"
    amount: float = 0.0
    target: float = 1.0
    numpy_is_peer: bool = True
    """Otherwise numpy has no such operation, and only says what is right."""
    compiled: bool = False
    """Is `torch.compile` a peer?"""
    bandwidth: bool = False
    """Memory bandwidth is the limit: the row has a target for its share of it."""
    scales: bool = False
    """The cores are the limit: the row has a target for two threads against one."""


# ------------------------------------------------------------------------------------------------- MLIR text


@dataclass(frozen=True)
class Value:
    name: str
    shape: tuple[int, ...]
    dtype: str = "f32"

    @property
    def type(self) -> str:
        return f"tensor<{'x'.join(map(str, self.shape))}x{self.dtype}>"


class Text:
    """A module with one function ``@main``, line by line."""

    def __init__(self) -> None:
        self._arguments: list[Value] = []
        self._lines: list[str] = []
        self._count = 0

    def argument(self, *shape: int, dtype: str = "f32") -> Value:
        self._arguments.append(Value(f"%arg{len(self._arguments)}", shape, dtype))
        return self._arguments[-1]

    def _new(self, shape: Sequence[int], dtype: str) -> Value:
        self._count += 1
        return Value(f"%{self._count}", tuple(shape), dtype)

    def _line(self, line: str) -> None:
        self._lines.append(f"  {line}")

    def constant(self, value: float | str, dtype: str = "f32") -> str:
        """A scalar; -inf as its bits."""
        name = self._new((), dtype).name
        digits = f"{value:.9e}" if isinstance(value, float) else value
        self._line(f"{name} = arith.constant {digits} : {dtype}")
        return name

    def empty(self, shape: Sequence[int], dtype: str = "f32") -> Value:
        result = self._new(shape, dtype)
        self._line(f"{result.name} = tensor.empty() : {result.type}")
        return result

    def fill(self, value: float | str, shape: Sequence[int], dtype: str = "f32") -> Value:
        scalar, start = self.constant(value, dtype), self.empty(shape, dtype)
        result = self._new(shape, dtype)
        outs = f"outs({start.name} : {start.type})"
        self._line(f"{result.name} = linalg.fill ins({scalar} : {dtype}) {outs} -> {result.type}")
        return result

    def named(self, operation: str, operands: Sequence[Value], start: Value, attributes: str = "") -> Value:
        result = self._new(start.shape, start.dtype)
        self._line(f"{result.name} = linalg.{operation} {attributes} {_ins(operands, start)} -> {result.type}")
        return result

    def transpose(self, value: Value, *permutation: int) -> Value:
        start = self.empty([value.shape[axis] for axis in permutation], value.dtype)
        result = self._new(start.shape, start.dtype)
        self._line(f"{result.name} = linalg.transpose {_ins([value], start)} permutation = {list(permutation)}")
        return result

    def pad(self, value: Value, low: Sequence[int], high: Sequence[int], with_: float | str = 0.0) -> Value:
        shape = [a + extent + b for a, extent, b in zip(low, value.shape, high, strict=True)]
        scalar, result = self.constant(with_), self._new(shape, value.dtype)
        axes = ", ".join(f"%i{axis}: index" for axis in range(len(shape)))
        self._line(f"{result.name} = tensor.pad {value.name} low{list(low)} high{list(high)} {{")
        self._line(f"^bb0({axes}):\n    tensor.yield {scalar} : {value.dtype}")
        self._line(f"}} : {value.type} to {result.type}")
        return result

    def insert(self, value: Value, into: Value, offsets: Sequence[int], strides: Sequence[int]) -> Value:
        result = self._new(into.shape, into.dtype)
        self._line(
            f"{result.name} = tensor.insert_slice {value.name} into {into.name}{list(offsets)}{list(value.shape)}"
            f"{list(strides)} : {value.type} into {into.type}"
        )
        return result

    def map(self, body: str, *operands: Value | tuple[Value, Sequence[int]], shape: Sequence[int] = ()) -> Value:
        """An elementwise operation: ``body`` defines %r from %a, %b, ...; an operand may say which axes it has."""
        parts = [(o, range(len(o.shape))) if isinstance(o, Value) else o for o in operands]
        start = self.empty(shape or parts[0][0].shape)
        maps = [*(axes for _, axes in parts), range(len(start.shape))]
        return self._generic(body, [value for value, _ in parts], [start], maps, ())[0]

    def reduce(self, body: str, value: Value, axis: int, *starts: Value) -> list[Value]:
        """``body`` defines %r (%r0, %r1 where there are several) from %a and the accumulators %b, %c."""
        kept = [a for a in range(len(value.shape)) if a != axis]
        return self._generic(body, [value], starts, [range(len(value.shape)), *[kept] * len(starts)], (axis,))

    def _generic(
        self,
        body: str,
        operands: Sequence[Value],
        starts: Sequence[Value],
        maps: Sequence[Sequence[int]],
        reduced: Sequence[int],
    ) -> list[Value]:
        rank = max(max(axes, default=-1) for axes in maps) + 1
        axes = ", ".join(f"d{axis}" for axis in range(rank))
        texts = ", ".join(f"affine_map<({axes}) -> ({', '.join(f'd{a}' for a in m)})>" for m in maps)
        kinds = ", ".join('"reduction"' if axis in reduced else '"parallel"' for axis in range(rank))
        letters = "abcdefgh"
        inside = ", ".join(f"%{letters[n]}: {value.dtype}" for n, value in enumerate([*operands, *starts]))
        results = [self._new(start.shape, start.dtype) for start in starts]
        yielded = ["%r"] if len(starts) == 1 else [f"%r{n}" for n in range(len(starts))]
        types = ", ".join(start.type for start in starts)
        # Each of several results is a name of its own, which the text of MLIR does with %x:2, %x#0.
        name = results[0].name if len(results) == 1 else f"{results[0].name}:{len(results)}"
        if len(results) > 1:
            results = [Value(f"{results[0].name}#{n}", start.shape, start.dtype) for n, start in enumerate(starts)]
        self._line(f"{name} = linalg.generic {{indexing_maps = [{texts}], iterator_types = [{kinds}]}}")
        outs = f"{', '.join(s.name for s in starts)} : {types}"
        ins = f"{', '.join(o.name for o in operands)} : {', '.join(o.type for o in operands)}"
        self._line(f"    ins({ins}) outs({outs}) {{\n  ^bb0({inside}):\n    {body}")
        scalars = ", ".join(start.dtype for start in starts)
        types = types if len(starts) == 1 else f"({types})"
        self._line(f"  linalg.yield {', '.join(yielded)} : {scalars}\n  }} -> {types}")
        return results

    def returning(self, result: Value) -> str:
        arguments = ", ".join(f"{argument.name}: {argument.type}" for argument in self._arguments)
        body = "\n".join(self._lines)
        return (
            f"func.func @main({arguments}) -> {result.type} {{\n{body}\n"
            f"  return {result.name} : {result.type}\n}}\n"
        )


def _ins(operands: Sequence[Value], start: Value) -> str:
    names, types = ", ".join(o.name for o in operands), ", ".join(o.type for o in operands)
    return f"ins({names} : {types}) outs({start.name} : {start.type})"


def _normal(*shapes: tuple[int, ...], dtype: Any = np.float32) -> Callable[[], list[Any]]:
    """Inputs: normally distributed, with a variance that keeps sums of products near 1."""

    def make() -> list[Any]:
        rng = np.random.default_rng(0)
        return [rng.standard_normal(shape, np.float32).astype(dtype) for shape in shapes]

    return make


# ---------------------------------------------------------------------------------------------- contractions


def _matmul(
    m: int, k: int, n: int, transposed: str = "", dtype: str = "f32", scales: bool = True, group: str = "matmul"
) -> Work:
    """[m, k] x [k, n]; the side that ``transposed`` names comes as [k, m] or [n, k]."""
    a_shape = (k, m) if transposed == "A" else (m, k)
    b_shape = (n, k) if transposed == "B" else (k, n)

    def text() -> str:
        t = Text()
        a, b = t.argument(*a_shape, dtype=dtype), t.argument(*b_shape, dtype=dtype)
        a = t.transpose(a, 1, 0) if transposed == "A" else a
        b = t.transpose(b, 1, 0) if transposed == "B" else b
        return t.returning(t.named("matmul", [a, b], t.fill(0.0, (m, n), dtype)))

    def straight(a: Any, b: Any) -> tuple[Any, Any]:
        return (a.T if transposed == "A" else a), (b.T if transposed == "B" else b)

    def by_numpy(out: Any, a: Any, b: Any) -> Run:
        a, b = straight(a, b)
        if dtype == "f16":
            return lambda: np.matmul(a.astype(np.float32), b.astype(np.float32)).astype(np.float16)
        return lambda: np.matmul(a, b, out=out)

    def by_torch(torch: Any, out: Any, a: Any, b: Any) -> Run:
        a, b = straight(a, b)
        return lambda: torch.mm(a, b, out=out)

    shape = str(m) if m == k == n else f"{m}x{k}x{n}"
    name = f"matmul {shape}" + (f", {transposed} transposed" if transposed else "")
    return Work(
        name + (f", {dtype}" if dtype != "f32" else ""),
        group,
        text,
        _normal(a_shape, b_shape, dtype=np.dtype(f"f{int(dtype[1:]) // 8}")),
        by_numpy,
        by_torch,
        "GFLOP/s",
        2.0 * m * n * k,
        scales=scales,
    )


def _batch_matmul(batch: int, m: int, k: int, n: int) -> Work:
    def text() -> str:
        t = Text()
        a, b = t.argument(batch, m, k), t.argument(batch, k, n)
        return t.returning(t.named("batch_matmul", [a, b], t.fill(0.0, (batch, m, n))))

    return Work(
        f"batch matmul {batch}x({m}x{k}x{n})",
        "batch",
        text,
        _normal((batch, m, k), (batch, k, n)),
        lambda out, a, b: lambda: np.matmul(a, b, out=out),
        lambda torch, out, a, b: lambda: torch.bmm(a, b, out=out),
        "GFLOP/s",
        2.0 * batch * m * n * k,
        scales=True,
    )


def _softmax_text(t: Text, x: Value) -> Value:
    """Along the last axis, as frontends decompose it."""
    axis = len(x.shape) - 1
    kept = range(axis)
    greatest = t.reduce("%r = arith.maximumf %b, %a : f32", x, axis, t.fill("0xFF800000", x.shape[:-1]))[0]
    centred = t.map("%r = arith.subf %a, %b : f32", x, (greatest, kept))
    powers = t.map("%r = math.exp %a : f32", centred)
    total = t.reduce("%r = arith.addf %b, %a : f32", powers, axis, t.fill(0.0, x.shape[:-1]))[0]
    return t.map("%r = arith.divf %a, %b : f32", powers, (total, kept))


def _softmax_numpy(x: Any) -> Any:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    powers /= powers.sum(axis=-1, keepdims=True)
    return powers


def _attention(heads: int, length: int, width: int) -> Work:
    shape = (heads, length, width)
    scale = width**-0.5

    def text() -> str:
        t = Text()
        q, k, v = (t.argument(*shape) for _ in range(3))
        scores = t.named("batch_matmul", [q, t.transpose(k, 0, 2, 1)], t.fill(0.0, (heads, length, length)))
        factor = t.constant(scale)
        weights = _softmax_text(t, t.map(f"%r = arith.mulf %a, {factor} : f32", scores))
        return t.returning(t.named("batch_matmul", [weights, v], t.fill(0.0, shape)))

    def by_torch(torch: Any, out: Any, *qkv: Any) -> Run:
        del out
        q, k, v = (x[None] for x in qkv)
        return lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v)[0]

    return Work(
        f"attention {heads} x {length} x {width}",
        "batch",
        text,
        _normal(shape, shape, shape),
        lambda out, q, k, v: lambda: np.matmul(_softmax_numpy(q @ k.transpose(0, 2, 1) * scale), v, out=out),
        by_torch,
        "GFLOP/s",
        4.0 * heads * length * length * width,
        scales=True,
    )


# ---------------------------------------------------------------------------------------------- convolutions


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


def _convolution(
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
        _normal(shape, weights),
        by_numpy,
        by_torch,
        "GFLOP/s",
        2.0 * math.prod(positions) * math.prod(taps) * filters * (1 if depthwise else channels),
        numpy_is_peer=False,
        scales=not depthwise,
    )


def _transposed(size: int, channels: int, filters: int) -> Work:
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
        _normal((1, channels, size, size), weights),
        by_numpy,
        by_torch,
        "GFLOP/s",
        2.0 * size * size * 16 * channels * filters,
        numpy_is_peer=False,
        scales=True,
    )


def _pooling(kind: str, last: bool, size: int, channels: int) -> Work:
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
        _normal(shape),
        by_numpy,
        by_torch,
        numpy_is_peer=False,
    )


# ----------------------------------------------------------------------------------------------- row operations


def _softmax(rows: int, width: int) -> Work:
    def text() -> str:
        t = Text()
        return t.returning(_softmax_text(t, t.argument(rows, width)))

    return Work(
        f"softmax {rows}x{width}",
        "rows",
        text,
        _normal((rows, width)),
        lambda out, x: lambda: _softmax_numpy(x),
        lambda torch, out, x: lambda: torch.softmax(x, -1, out=out),
        "GB/s",
        8.0 * rows * width,
    )


def _layer_norm(rows: int, width: int) -> Work:
    epsilon = 1e-5

    def text() -> str:
        t = Text()
        x, gain, offset = t.argument(rows, width), t.argument(width), t.argument(width)
        count, small = t.constant(float(width)), t.constant(epsilon)
        add, by_count = "%r = arith.addf %b, %a : f32", f"%r = arith.divf %a, {count} : f32"
        mean = t.map(by_count, t.reduce(add, x, 1, t.fill(0.0, (rows,)))[0])
        centred = t.map("%r = arith.subf %a, %b : f32", x, (mean, (0,)))
        squares = t.map("%r = arith.mulf %a, %a : f32", centred)
        variance = t.map(by_count, t.reduce(add, squares, 1, t.fill(0.0, (rows,)))[0])
        shifted = t.map(f"%r = arith.addf %a, {small} : f32", variance)
        inverse = t.map("%r = math.rsqrt %a : f32", shifted)
        normed = t.map("%r = arith.mulf %a, %b : f32", centred, (inverse, (0,)))
        scaled = t.map("%r = arith.mulf %a, %b : f32", normed, (gain, (1,)))
        return t.returning(t.map("%r = arith.addf %a, %b : f32", scaled, (offset, (1,))))

    def by_numpy(out: Any, x: Any, gain: Any, offset: Any) -> Run:
        del out

        def run() -> Any:
            result = x - x.mean(axis=1, keepdims=True)
            result *= gain / np.sqrt(np.square(result).mean(axis=1, keepdims=True) + np.float32(epsilon))
            result += offset
            return result

        return run

    def by_torch(torch: Any, out: Any, x: Any, gain: Any, offset: Any) -> Run:
        del out  # with it torch computes into memory of its own, and copies
        norm = torch.nn.functional.layer_norm
        return lambda: norm(x, (width,), gain, offset, epsilon)

    return Work(
        f"layer norm {rows}x{width}",
        "rows",
        text,
        _normal((rows, width), (width,), (width,)),
        by_numpy,
        by_torch,
        "GB/s",
        8.0 * rows * width,
    )


def _reduction(kind: str, size: int, axis: int) -> Work:
    def text() -> str:
        t = Text()
        x = t.argument(size, size)
        if kind == "sum":
            return t.returning(t.reduce("%r = arith.addf %b, %a : f32", x, axis, t.fill(0.0, (size,)))[0])
        values, indices = t.fill("0xFF800000", (size,)), t.fill(0, (size,), "i64")
        body = (
            f"%i = linalg.index {axis} : index\n    %n = arith.index_cast %i : index to i64\n"
            "    %r0 = arith.maximumf %a, %b : f32\n    %more = arith.cmpf ogt, %a, %b : f32\n"
            "    %r1 = arith.select %more, %n, %c : i64"
        )
        return t.returning(t.reduce(body, x, axis, values, indices)[1])

    def by_torch(torch: Any, out: Any, x: Any) -> Run:
        return lambda: getattr(torch, kind)(x, axis, out=out)

    return Work(
        f"{kind} {size}x{size}, axis {axis}",
        "rows",
        text,
        _normal((size, size)),
        lambda out, x: lambda: getattr(np, kind)(x, axis=axis, out=out),
        by_torch,
        "GB/s",
        4.0 * size * size,
    )


# -------------------------------------------------------------------------------------------------- elementwise


def _elementwise(
    name: str,
    size: int,
    text: Callable[[], str],
    by_numpy: Callable[..., Run],
    by_torch: Callable[..., Run],
    *more: tuple[int, ...],
    numpy_is_peer: bool = True,
    bandwidth: bool = False,
) -> Work:
    """Of ``size`` x ``size`` numbers, and of inputs of the shapes ``more``."""
    return Work(
        name,
        "elementwise",
        text,
        _normal((size, size), *more),
        by_numpy,
        by_torch,
        "GB/s",
        8.0 * size * size,
        numpy_is_peer=numpy_is_peer,
        bandwidth=bandwidth,
    )


def _function(
    name: str,
    size: int,
    body: str,
    by_numpy: Callable[..., Run],
    by_torch: Callable[..., Run],
    numpy_is_peer: bool = True,
) -> Work:
    """One operation; in its body %half, %one and %root are constants."""

    def text() -> str:
        t = Text()
        x = t.argument(size, size)
        names = {f"%{key}": t.constant(v) for key, v in {"half": 0.5, "one": 1.0, "root": 0.5**0.5}.items()}
        full = body
        for key, value in names.items():
            full = full.replace(key, value)
        return t.returning(t.map(full, x))

    return _elementwise(f"{name} {size}x{size}", size, text, by_numpy, by_torch, numpy_is_peer=numpy_is_peer)


def _ten_operations(size: int) -> Work:
    def text() -> str:
        t = Text()
        x = y = t.argument(size, size)
        c = {value: t.constant(value) for value in (1.5, 0.25, 0.0, 4.0, 0.75)}
        for operation in (
            f"mulf %a, {c[1.5]}",
            f"addf %a, {c[0.25]}",
            f"maximumf %a, {c[0.0]}",
            "mulf %a, %b",
            f"subf %a, {c[4.0]}",
            f"minimumf %a, {c[4.0]}",
            "negf %a",
            f"mulf %a, {c[0.75]}",
            "addf %a, %b",
            f"subf %a, {c[0.25]}",
        ):
            y = t.map(f"%r = arith.{operation} : f32", y, *([x] if "%b" in operation else []))
        return t.returning(y)

    def by_numpy(out: Any, x: Any) -> Run:
        f = np.float32

        def run() -> Any:
            y = np.multiply(x, f(1.5), out=out)
            y += f(0.25)
            np.maximum(y, f(0), out=y)
            y *= x
            y -= f(4)
            np.minimum(y, f(4), out=y)
            np.negative(y, out=y)
            y *= f(0.75)
            y += x
            y -= f(0.25)
            return y

        return run

    def by_torch(torch: Any, out: Any, x: Any) -> Run:
        def run() -> Any:
            y = torch.mul(x, 1.5, out=out)
            y.add_(0.25).clamp_(min=0).mul_(x).sub_(4).clamp_(max=4).neg_().mul_(0.75).add_(x).sub_(0.25)
            return y

        return run

    return _elementwise(
        f"10 operations {size}x{size}",
        size,
        text,
        by_numpy,
        by_torch,
        bandwidth=True,
    )


def _transpose(size: int) -> Work:
    def text() -> str:
        t = Text()
        return t.returning(t.transpose(t.argument(size, size), 1, 0))

    def by_numpy(out: Any, x: Any) -> Run:
        def run() -> Any:
            if out is None:
                return x.T.copy()
            np.copyto(out, x.T)
            return out

        return run

    return _elementwise(
        f"transpose {size}x{size}",
        size,
        text,
        by_numpy,
        lambda torch, out, x: lambda: out.copy_(x.T),
        bandwidth=True,
    )


def _broadcast_add(size: int) -> Work:
    def text() -> str:
        t = Text()
        x, y = t.argument(size, size), t.argument(size)
        return t.returning(t.map("%r = arith.addf %a, %b : f32", x, (y, (1,))))

    return _elementwise(
        f"broadcast add {size}x{size} + {size}",
        size,
        text,
        lambda out, x, y: lambda: np.add(x, y, out=out),
        lambda torch, out, x, y: lambda: torch.add(x, y, out=out),
        (size,),
        bandwidth=True,
    )


_GELU = """%s = arith.mulf %a, %root : f32
    %e = math.erf %s : f32
    %p = arith.addf %e, %one : f32
    %h = arith.mulf %a, %half : f32
    %r = arith.mulf %h, %p : f32"""


def _gelu_numpy(out: Any, x: Any) -> Run:
    del out
    erf = np.frompyfunc(math.erf, 1, 1)
    return lambda: (0.5 * x * (1 + erf(x * 0.5**0.5).astype(np.float64))).astype(np.float32)


# -------------------------------------------------------------------------------------------------- whole models


def _mlp_work() -> Work:
    def by_torch(torch: Any, out: Any, images: Any) -> Run:
        del out
        arrays = [torch.from_numpy(array) for array in _mlp.parameters()]
        layers = [(w.T.contiguous(), b) for w, b in zip(arrays[::2], arrays[1::2], strict=True)]

        def run() -> Any:
            x = images
            for number, (weight, bias) in enumerate(layers):
                x = torch.nn.functional.linear(x, weight, bias)
                x = x.relu_() if number < len(layers) - 1 else x
            return x

        return run

    def by_numpy(out: Any, images: Any) -> Run:
        del out
        arrays = _mlp.parameters()
        return lambda: _mlp.reference(images, arrays)

    return Work(
        "MLP 64x(784-1024-1024-10), constant weights",
        "mlp",
        lambda: _mlp.module_text(True),
        lambda: [_mlp.batch()],
        by_numpy,
        by_torch,
        target=1.2,
        scales=True,
    )


def _transformer_torch(torch: Any, out: Any, x: Any, *rest: Any) -> Run:
    del out
    q, k, v, mix, up, down, *scalars = rest
    epsilon, factor = float(scalars[1]), float(scalars[2])
    length, width, heads = 128, 512, 8
    functional = torch.nn.functional

    def split(value: Any) -> Any:
        return value.view(1, length, heads, width // heads).transpose(1, 2)

    def run() -> Any:
        y = functional.layer_norm(x, (width,), eps=epsilon)
        parts = split(y @ q), split(y @ k), split(y @ v)
        mixed = functional.scaled_dot_product_attention(*parts, scale=factor)
        y = x + mixed.transpose(1, 2).reshape(length, width) @ mix
        return y + torch.tanh(functional.layer_norm(y, (width,), eps=epsilon) @ up) @ down

    return run


def _convnet_torch(torch: Any, out: Any, x: Any, *rest: Any) -> Run:
    del out
    *kernels, dense, bias = rest
    layers = [(w, b.flatten()) for w, b in zip(kernels[::2], kernels[1::2], strict=True)]
    functional = torch.nn.functional

    def run() -> Any:
        y = x
        for number, (weight, offset) in enumerate(layers):
            y = torch.relu(functional.conv2d(y, weight, offset))
            y = functional.max_pool2d(y, 2) if number % 2 else y
        return torch.addmm(bias, y.flatten(1), dense)

    return run


def _graph(name: str, by_torch: Callable[..., Run]) -> Work:
    graph = GRAPHS[name]()

    def inputs() -> list[Any]:
        """As in `memory.py`: small weights; scalars are the reciprocals that the graph multiplies by."""
        rng = np.random.default_rng(0)
        return [
            np.full(shape, 1 / 512, np.float32)
            if math.prod(shape) == 1
            else (rng.standard_normal(shape) / max(math.prod(shape[1:]), 1) ** 0.5).astype(np.float32)
            for shape in graph.inputs
        ]

    def by_numpy(out: Any, *arrays: Any) -> Run:
        del out
        from memory import evaluate

        return lambda: evaluate(graph, arrays)

    return Work(
        name,
        "models",
        lambda: module_text(graph),
        inputs,
        by_numpy,
        by_torch,
        numpy_is_peer=False,
        compiled=True,
        scales=True,
    )


# ------------------------------------------------------------------------------------------------------- the table


_LARGE = ((2048, "f16"), (4096, "f16"), (4096, "f32"), (8192, "f16"))


def _large(s: Callable[[int], int]) -> list[Work]:
    """Rows that fill a GPU."""
    return [
        _batch_matmul(s(64), s(512), s(128), s(512)),
        _convolution("3x3", True, s(256), s(64), s(128), 3),
        _convolution("3x3", False, s(256), s(64), s(128), 3),
        _softmax(s(16384), s(2048)),
        _layer_norm(s(16384), s(2048)),
        *[_reduction("sum", s(8192), axis) for axis in (1, 0)],
        _transpose(s(8192)),
        _ten_operations(s(8192)),
    ]


def works(small: bool = False) -> dict[str, Work]:
    """All rows by name; ``small``: a sixteenth of every size, and the whole models as they are."""

    def s(size: int) -> int:
        return max(size // 16, min(size, 4)) if small else size

    matmuls = [_matmul(s(n), s(n), s(n), side) for n in (256, 512, 1024, 2048) for side in ("", "A", "B")]
    if small:
        matmuls = matmuls[-3:]
    rows = (s(256), s(1024), s(4096))
    rows = rows[-1:] if small else rows
    big = s(4096)
    both = (True, False)
    found = [
        *matmuls,
        _matmul(s(500), s(501), s(499)),
        _matmul(s(64), s(784), s(1024)),
        _matmul(s(64), s(1024), s(10), scales=False),
        _matmul(1, s(4096), s(4096), scales=False),
        _matmul(s(1024), s(1024), s(1024), dtype="f64"),
        _batch_matmul(s(16), s(128), s(64), s(128)),
        _attention(s(8), s(512), s(64)),
        *[_convolution("3x3", last, s(56), s(64), s(64), 3) for last in both],
        *[_convolution("1x1", last, s(56), s(64), s(256), 1) for last in both],
        *[_convolution("7x7 stride 2", last, s(224), 3, s(64), 7, stride=2) for last in both],
        *[_convolution("depthwise 3x3", last, s(56), s(128), s(128), 3, depthwise=True) for last in both],
        *[_convolution("3x3x3", last, s(28), s(32), s(32), 3, rank=3) for last in both],
        _transposed(s(28), s(64), s(32)),
        *[_pooling(kind, last, s(112), s(64)) for kind in ("max", "mean") for last in both],
        _mlp_work(),
        *[_softmax(big, width) for width in rows],
        *[_layer_norm(big, width) for width in rows],
        *[_reduction(kind, big, axis) for kind in ("sum", "argmax") for axis in (1, 0)],
        _ten_operations(big),
        _function(
            "gelu",
            big,
            _GELU,
            _gelu_numpy,
            lambda torch, out, x: lambda: torch.ops.aten.gelu.out(x, out=out),
            numpy_is_peer=False,
        ),
        *[
            _function(
                name,
                big,
                f"%r = math.{name} %a : f32",
                lambda out, x, name=name: lambda: getattr(np, name)(x, out=out),
                lambda torch, out, x, name=name: lambda: getattr(torch, name)(x, out=out),
            )
            for name in ("tanh", "exp")
        ],
        _transpose(big),
        _broadcast_add(big),
        _graph("transformer block", _transformer_torch),
        _graph("convnet", _convnet_torch),
        *[_matmul(s(n), s(n), s(n), dtype=d, group="large") for n, d in _LARGE],
        *[replace(work, group="large") for work in _large(s)],
    ]
    return {work.name: work for work in found}
