"""What goes along rows, and elementwise operations, for `kernels.py`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from _kernel_text import Text, Value
from _kernel_work import Run, Work, normal


def softmax_text(t: Text, x: Value) -> Value:
    """Along the last axis, as frontends decompose it."""
    axis = len(x.shape) - 1
    kept = range(axis)
    greatest = t.reduce("%r = arith.maximumf %b, %a : f32", x, axis, t.fill("0xFF800000", x.shape[:-1]))[0]
    centred = t.map("%r = arith.subf %a, %b : f32", x, (greatest, kept))
    powers = t.map("%r = math.exp %a : f32", centred)
    total = t.reduce("%r = arith.addf %b, %a : f32", powers, axis, t.fill(0.0, x.shape[:-1]))[0]
    return t.map("%r = arith.divf %a, %b : f32", powers, (total, kept))


def softmax_numpy(x: Any) -> Any:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    powers /= powers.sum(axis=-1, keepdims=True)
    return powers


def softmax(rows: int, width: int) -> Work:
    def text() -> str:
        t = Text()
        return t.returning(softmax_text(t, t.argument(rows, width)))

    return Work(
        f"softmax {rows}x{width}",
        "rows",
        text,
        normal((rows, width)),
        lambda out, x: lambda: softmax_numpy(x),
        lambda torch, out, x: lambda: torch.softmax(x, -1, out=out),
        "GB/s",
        8.0 * rows * width,
    )


def layer_norm(rows: int, width: int) -> Work:
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
        normal((rows, width), (width,), (width,)),
        by_numpy,
        by_torch,
        "GB/s",
        8.0 * rows * width,
    )


def reduction(kind: str, size: int, axis: int) -> Work:
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
        normal((size, size)),
        lambda out, x: lambda: getattr(np, kind)(x, axis=axis, out=out),
        by_torch,
        "GB/s",
        4.0 * size * size,
    )


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
        normal((size, size), *more),
        by_numpy,
        by_torch,
        "GB/s",
        8.0 * size * size,
        numpy_is_peer=numpy_is_peer,
        bandwidth=bandwidth,
    )


def function(
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


def ten_operations(size: int) -> Work:
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


def transpose(size: int) -> Work:
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


def broadcast_add(size: int) -> Work:
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


GELU = """%s = arith.mulf %a, %root : f32
    %e = math.erf %s : f32
    %p = arith.addf %e, %one : f32
    %h = arith.mulf %a, %half : f32
    %r = arith.mulf %h, %p : f32"""


def gelu_numpy(out: Any, x: Any) -> Run:
    del out
    erf = np.frompyfunc(math.erf, 1, 1)
    return lambda: (0.5 * x * (1 + erf(x * 0.5**0.5).astype(np.float64))).astype(np.float32)
