"""Operators of onnxruntime's own (``com.microsoft``), which optimised and quantised models have, in operators of ONNX.

What they mean is in onnxruntime's ``docs/ContribOperators.md``; the rest is what its kernels for the CPU do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx

from devscope.frontends.onnx import contributed_attention as _attention
from devscope.frontends.onnx import contributed_quantised as _quantised
from devscope.frontends.onnx import learned as _learned
from devscope.frontends.onnx import listings as _listings
from devscope.frontends.onnx import trees as _trees
from devscope.frontends.onnx.inference import inferred
from devscope.frontends.onnx.rewriter import CONTRIBUTED, LEARNED, Graph, Unknown, Writer, contributes
from devscope.frontends.onnx.types import Refused

#: Each registers the operators that it writes out.
MODULES = (_attention, _learned, _listings, _quantised, _trees)

_OPERATORS = {"com.microsoft": CONTRIBUTED, "ai.onnx.ml": LEARNED}
_NORMALISATIONS = {"LayerNormalization": 17, "SimplifiedLayerNormalization": 1 << 10}
"""What onnxruntime has in ONNX's domain before ONNX has it: since when that is."""


def written(node: Any, opset: int) -> bool:
    """Whether a node is one of these operators."""
    if node.domain in ("", "ai.onnx"):
        return opset < _NORMALISATIONS.get(node.op_type, 0) or node.op_type in _listings.OPERATORS
    return node.op_type in _OPERATORS.get(node.domain, ())


def written_out(graph: Graph, node: Any, opset: int) -> list[Any]:
    """Nodes of ONNX that stand for a node. Raises `Refused`; `Unknown`, if that may change."""
    writer = Writer(graph, node, opset)
    _OPERATORS.get(node.domain, CONTRIBUTED)[node.op_type](writer)
    return writer.nodes


def without_contributed(model: Any, outside: Mapping[str, memoryview]) -> Any:
    """A model whose graph has none of these operators; as it is, if it has none. Raises `Refused`."""
    opset = max((one.version for one in model.opset_import if one.domain in ("", "ai.onnx")), default=1)
    while any(written(node, opset) for node in model.graph.node):
        result = onnx.ModelProto()
        result.CopyFrom(model)
        graph, nodes = Graph(result, outside), list[Any]()
        left: Unknown | None = None
        for node in model.graph.node:
            try:
                nodes += written_out(graph, node, opset) if written(node, opset) else [node]
            except Unknown as unknown:
                left = left or unknown
                nodes.append(node)
        if left is not None and len(nodes) == len(model.graph.node):
            raise left
        del result.graph.node[:]
        result.graph.node.extend(nodes)
        model = inferred(result)
    return model


@contributes("FusedMatMul")
def _fused_matmul(w: Writer) -> None:
    sides = [_turned(w, number, w.attr(f"trans{side}", 0), w.attr(f"transBatch{side}", 0))
             for number, side in enumerate("AB")]  # fmt: skip
    y, alpha = w.op("MatMul", *sides), w.attr("alpha", 1.0)
    w.op("Identity", y if alpha == 1 else w.op("Mul", y, w.number(alpha)), result=0)


def _turned(w: Writer, number: int, last: int, batch: int) -> str:
    """``batch``: the first dimension is behind those of the batch; ``last``: the last two are exchanged."""
    if not last and not batch:
        return w[number]
    order = [*range(w.rank(number))]
    if batch:
        order = [*order[1:-1], order[0], order[-1]]
    if last:
        order[-2:] = order[:-3:-1]
    return w.op("Transpose", w[number], perm=order)


_ACTIVATIONS = {
    **{"Relu": (), "Tanh": (), "Sigmoid": ()},
    **{"LeakyRelu": ("alpha",), "HardSigmoid": ("alpha", "beta"), "Elu": ("alpha",)},
}


def _activated(w: Writer, x: str, parameters: list[float]) -> None:
    """The node's result: what its activation gives."""
    name = w.attr("activation", "")
    if name == "Clip":
        w.op("Clip", x, *(w.number(one) for one in parameters), result=0)
    elif name in _ACTIVATIONS:
        w.op(name, x, result=0, **dict(zip(_ACTIVATIONS[name], parameters, strict=False)))
    elif name:
        raise Refused(f"{w.node.op_type} with the activation {name}")
    else:
        w.op("Identity", x, result=0)


@contributes("FusedConv")
def _fused_conv(w: Writer) -> None:
    own = {key: value for key, value in w.attributes.items() if not key.startswith("activation")}
    y = w.op("Conv", *w.node.input[:3], **own)
    y = w.op("Add", y, w[3]) if w.has(3) else y
    _activated(w, y, [*w.attr("activation_params", [])])


@contributes("FusedGemm")
def _fused_gemm(w: Writer) -> None:
    own = {key: value for key, value in w.attributes.items() if not key.startswith("activation")}
    names = ("activation_alpha", "activation_beta", "activation_gamma")
    _activated(w, w.op("Gemm", *w.node.input, **own), [w.attr(name) for name in names if name in w.attributes])


# Activations.


@contributes("Gelu", "BiasGelu")
def _gelu(w: Writer) -> None:
    x = w.op("Add", w[0], w[1]) if w.node.op_type == "BiasGelu" else w[0]
    inner = w.op("Erf", w.op("Mul", x, w.number(math.sqrt(0.5))))
    half = w.op("Mul", x, w.number(0.5))
    w.op("Mul", half, w.op("Add", inner, w.number(1)), result=0)


@contributes("FastGelu")
def _fast_gelu(w: Writer) -> None:
    x = w.op("Add", w[0], w[1]) if w.has(1) else w[0]
    cube = w.op("Mul", w.op("Mul", x, x), x)
    inner = w.op("Add", x, w.op("Mul", cube, w.number(0.044715)))
    inner = w.op("Tanh", w.op("Mul", inner, w.number(math.sqrt(2 / math.pi))))
    half = w.op("Mul", x, w.number(0.5))
    w.op("Mul", half, w.op("Add", inner, w.number(1)), result=0)


@contributes("QuickGelu")
def _quick_gelu(w: Writer) -> None:
    w.op("Mul", w[0], w.op("Sigmoid", w.op("Mul", w[0], w.number(w.attr("alpha", 1.702)))), result=0)


# Normalisations.


def _normalised(w: Writer, x: str, scale: str, bias: str | None, *, mean: bool, axes: list[int]) -> list[str]:
    """The first result; half precision is computed in f32. Returns the mean, and the reciprocal of the deviation."""
    dtype = w.dtype
    work = np.dtype(np.float64 if dtype == np.float64 else np.float32)

    def wide(value: str) -> str:
        return value if dtype == work else w.to(value, work)

    y = wide(x)
    average = w.mean(y, axes) if mean else ""
    y = w.op("Sub", y, average) if mean else y
    variance = w.mean(w.op("Mul", y, y), axes)
    spread = w.op("Sqrt", w.op("Add", variance, w.constant(w.attr("epsilon", 1e-5), work)))
    y = w.op("Mul", w.op("Div", y, spread), wide(scale))
    y = y if bias is None else w.op("Add", y, wide(bias))
    w.op("Cast", y, result=0, to=w.type())
    return [*([average] if mean else []), w.op("Reciprocal", spread)]


@contributes("LayerNormalization", "SimplifiedLayerNormalization")
def _layer_normalization(w: Writer) -> None:
    rank = w.rank(0)
    axes = [*range(w.attr("axis", -1) % rank, rank)]
    mean = w.node.op_type == "LayerNormalization"
    bias = w[2] if w.has(2) else None
    rest = _normalised(w, w[0], w[1], bias, mean=mean, axes=axes)
    for number, value in enumerate(rest, 1):
        if w.wants(number):
            w.op("Identity", value, result=number)


@contributes("SkipLayerNormalization", "SkipSimplifiedLayerNormalization")
def _skip_layer_normalization(w: Writer) -> None:
    mean = w.node.op_type == "SkipLayerNormalization"
    if w.wants(1) or w.wants(2):
        raise Refused(f"{w.node.op_type} with means or deviations as results")
    bias = 4 if mean else 3
    x = w.op("Add", w[0], w[1])
    x = w.op("Add", x, w[bias]) if w.has(bias) else x
    x = w.op("Identity", x, result=3) if w.wants(3) else x
    beta = w[3] if mean and w.has(3) else None
    _normalised(w, x, w[2], beta, mean=mean, axes=[w.rank(0) - 1])


@contributes("EmbedLayerNormalization")
def _embed_layer_normalization(w: Writer) -> None:
    """Rows of words, places and segments, added and normalised; how many words of each row the mask has."""
    w.like = 2
    places = w[8] if w.has(8) else w.unsqueeze(w.range(w.extent(w[0], 1)), 0)
    x = w.op("Add", w.op("Gather", w[2], w[0]), w.op("Gather", w[3], places))
    x = w.op("Add", x, w.op("Gather", w[4], w[1])) if w.has(1) and w.has(4) else x
    x = w.op("Identity", x, result=2) if w.wants(2) else x
    if w.wants(1):
        count = w.sum(w[7] if w.has(7) else w.op("Sub", w[0], w[0]), [1])
        w.op("Cast", count, to=onnx.TensorProto.INT32, result=1)
    _normalised(w, x, w[5], w[6], mean=True, axes=[2])
