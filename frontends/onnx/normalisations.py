"""Normalisations by means: see `rewrites`."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from devscope.frontends.onnx.rewriter import Writer, rewrites


@rewrites("InstanceNormalization")
def _instance_normalization(w: Writer) -> None:
    """torch-mlir divides by -1 where it does not know how many elements there are."""
    rank = w.rank(0)
    axes = [*range(2, rank)]
    centred = w.op("Sub", w[0], w.mean(w[0], axes))
    variance = w.mean(w.op("Mul", centred, centred), axes)
    spread = w.op("Sqrt", w.op("Add", variance, w.constant(w.attr("epsilon", 1e-5))))
    shape = w.constant([-1, *[1] * (rank - 2)], np.int64)
    scaled = w.op("Mul", w.op("Div", centred, spread), w.op("Reshape", w[1], shape))
    w.op("Add", scaled, w.op("Reshape", w[2], shape), result=0)


@rewrites("GroupNormalization")
def _group_normalization(w: Writer) -> None:
    """Its scales are those of groups before opset 21."""
    rank, groups = w.rank(0), w.attr("num_groups")
    grouped = w.op("Reshape", w[0], w.constant([0, groups, -1], np.int64))
    kind = w.attr("stash_type", TensorProto.FLOAT)
    grouped = w.op("Cast", grouped, to=kind)
    centred = w.op("Sub", grouped, w.mean(grouped, [2]))
    variance = w.mean(w.op("Mul", centred, centred), [2])
    spread = w.op("Sqrt", w.op("Add", variance, w.op("Cast", w.constant(w.attr("epsilon", 1e-5)), to=kind)))
    normal = w.op("Cast", w.op("Div", centred, spread), to=w.type())
    if w.opset < 21:
        factors, terms = (w.op("Reshape", w[number], w.constant([-1, 1], np.int64)) for number in (1, 2))
        normal = w.op("Add", w.op("Mul", normal, factors), terms)
    found = w.op("Reshape", normal, w.op("Shape", w[0]))
    if w.opset >= 21:
        shape = w.constant([-1, *[1] * (rank - 2)], np.int64)
        factors, terms = (w.op("Reshape", w[number], shape) for number in (1, 2))
        found = w.op("Add", w.op("Mul", found, factors), terms)
    w.op("Identity", found, result=0)


@rewrites("LpNormalization")
def _lp_normalization(w: Writer) -> None:
    """Of nothing but zeros: zeros."""
    kind = "ReduceL1" if w.attr("p", 2) == 1 else "ReduceL2"
    length = w.reduced(kind, w[0], [w.attr("axis", -1)], keepdims=1)
    some = w.op("Where", w.op("Equal", length, w.number(0)), w.number(1), length)
    w.op("Div", w[0], some, result=0)


@rewrites("MeanVarianceNormalization")
def _mean_variance_normalization(w: Writer) -> None:
    axes = w.attr("axes") or [0, 2, 3]
    centred = w.op("Sub", w[0], w.mean(w[0], axes))
    variance = w.mean(w.op("Mul", centred, centred), axes)
    w.op("Div", centred, w.op("Add", w.op("Sqrt", variance), w.number(1e-9)), result=0)


@rewrites("RMSNormalization")
def _rms_normalization(w: Writer) -> None:
    rank = w.rank(0)
    axes = [*range(w.attr("axis", -1) % rank, rank)]
    kind = w.attr("stash_type", TensorProto.FLOAT)
    x = w.op("Cast", w[0], to=kind)
    mean = w.op("Add", w.mean(w.op("Mul", x, x), axes), w.op("Cast", w.constant(w.attr("epsilon", 1e-5)), to=kind))
    w.op("Mul", w.op("Cast", w.op("Div", x, w.op("Sqrt", mean)), to=w.type()), w[1], result=0)
