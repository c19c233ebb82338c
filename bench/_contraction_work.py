"""Products of matrices, and attention, for `kernels.py`."""

from __future__ import annotations

from typing import Any

import numpy as np
from _kernel_text import Text
from _kernel_work import Run, Work, normal
from _row_work import softmax_numpy, softmax_text


def matmul(
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
        normal(a_shape, b_shape, dtype=np.dtype(f"f{int(dtype[1:]) // 8}")),
        by_numpy,
        by_torch,
        "GFLOP/s",
        2.0 * m * n * k,
        scales=scales,
    )


def batch_matmul(batch: int, m: int, k: int, n: int) -> Work:
    def text() -> str:
        t = Text()
        a, b = t.argument(batch, m, k), t.argument(batch, k, n)
        return t.returning(t.named("batch_matmul", [a, b], t.fill(0.0, (batch, m, n))))

    return Work(
        f"batch matmul {batch}x({m}x{k}x{n})",
        "batch",
        text,
        normal((batch, m, k), (batch, k, n)),
        lambda out, a, b: lambda: np.matmul(a, b, out=out),
        lambda torch, out, a, b: lambda: torch.bmm(a, b, out=out),
        "GFLOP/s",
        2.0 * batch * m * n * k,
        scales=True,
    )


def attention(heads: int, length: int, width: int) -> Work:
    shape = (heads, length, width)
    scale = width**-0.5

    def text() -> str:
        t = Text()
        q, k, v = (t.argument(*shape) for _ in range(3))
        scores = t.named("batch_matmul", [q, t.transpose(k, 0, 2, 1)], t.fill(0.0, (heads, length, length)))
        factor = t.constant(scale)
        weights = softmax_text(t, t.map(f"%r = arith.mulf %a, {factor} : f32", scores))
        return t.returning(t.named("batch_matmul", [weights, v], t.fill(0.0, shape)))

    def by_torch(torch: Any, out: Any, *qkv: Any) -> Run:
        del out
        q, k, v = (x[None] for x in qkv)
        return lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v)[0]

    return Work(
        f"attention {heads} x {length} x {width}",
        "batch",
        text,
        normal(shape, shape, shape),
        lambda out, q, k, v: lambda: np.matmul(softmax_numpy(q @ k.transpose(0, 2, 1) * scale), v, out=out),
        by_torch,
        "GFLOP/s",
        4.0 * heads * length * length * width,
        scales=True,
    )
