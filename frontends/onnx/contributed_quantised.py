"""Quantised operators of onnxruntime's own: see `contributed`."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
from onnx import TensorProto

from devscope.frontends.onnx.rewriter import Writer, contributes
from devscope.frontends.onnx.types import Refused


def _given(w: Writer, *numbers: int) -> list[str]:
    """Operands; ``""`` of those that are absent."""
    return [w[number] if w.has(number) else "" for number in numbers]


def _dequantised(w: Writer, x: int, scale: int, zero: int) -> str:
    return w.op("DequantizeLinear", *_given(w, x, scale, zero))


def _quantised(w: Writer, y: str, scale: int, zero: int) -> None:
    """The first result."""
    w.op("QuantizeLinear", y, *_given(w, scale, zero), result=0)


@contributes("QuantizeLinear", "DequantizeLinear")
def _linear(w: Writer) -> None:
    """They came with types that ONNX's had later."""
    w.op(w.node.op_type, *w.node.input, result=0, **w.attributes)


@contributes("QLinearAdd", "QLinearMul")
def _linear_binary(w: Writer) -> None:
    sides = _dequantised(w, 0, 1, 2), _dequantised(w, 3, 4, 5)
    _quantised(w, w.op(w.node.op_type.removeprefix("QLinear"), *sides), 6, 7)


@contributes("QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax")
def _linear_unary(w: Writer) -> None:
    own = {key: value for key, value in w.attributes.items() if key in ("alpha", "axis")}
    if w.node.op_type == "QLinearSoftmax":
        own.setdefault("axis", -1)
        if (w.attr("opset", 13) < 13) != (w.opset < 13) and own["axis"] not in (-1, w.rank(0) - 1):
            raise Refused("QLinearSoftmax of another version, not along the last axis")
    _quantised(w, w.op(w.node.op_type.removeprefix("QLinear"), _dequantised(w, 0, 1, 2), **own), 3, 4)


@contributes("QLinearGlobalAveragePool", "QLinearAveragePool")
def _linear_pool(w: Writer) -> None:
    own = {key: value for key, value in w.attributes.items() if key != "channels_last"}
    x, axes = _dequantised(w, 0, 1, 2), [*range(w.rank(0))]
    turned = w.attr("channels_last", 0)
    x = w.op("Transpose", x, perm=[0, axes[-1], *axes[1:-1]]) if turned else x
    y = w.op(w.node.op_type.removeprefix("QLinear"), x, **own)
    _quantised(w, w.op("Transpose", y, perm=[0, *axes[2:], 1]) if turned else y, 3, 4)


@contributes("QLinearConcat")
def _linear_concat(w: Writer) -> None:
    parts = [_dequantised(w, number, number + 1, number + 2) for number in range(2, len(w.node.input), 3)]
    _quantised(w, w.op("Concat", *parts, axis=w.attr("axis")), 0, 1)


@contributes("QLinearWhere")
def _linear_where(w: Writer) -> None:
    _quantised(w, w.op("Where", w[0], _dequantised(w, 1, 2, 3), _dequantised(w, 4, 5, 6)), 7, 8)


@contributes("QLinearReduceMean")
def _linear_mean(w: Writer) -> None:
    axes = [*(w.attr("axes") or range(w.rank(0)))]
    y = w.mean(_dequantised(w, 0, 1, 2), axes)
    _quantised(w, y if w.attr("keepdims", 1) else w.squeeze(y, *axes), 3, 4)


# Products: of integers, scaled afterwards.


def _product(w: Writer, x: str, y: str, zeros: list[str], scale: str) -> str:
    product = w.op("MatMulInteger", x, y, *zeros)
    return w.op("Mul", w.op("Cast", product, to=TensorProto.FLOAT), scale)


def _scales(w: Writer, x: int, y: int) -> str:
    """The product of two scales, the second one or one for each column."""
    return w.op("Mul", w.reshape(w[x]), w[y])


@contributes("MatMulIntegerToFloat")
def _integers_to_float(w: Writer) -> None:
    y = _product(w, w[0], w[1], _given(w, 4, 5), _scales(w, 2, 3))
    w.op("Add", y, w[6], result=0) if w.has(6) else w.op("Identity", y, result=0)


@contributes("DynamicQuantizeMatMul")
def _dynamic_product(w: Writer) -> None:
    x, scale, zero = w.several("DynamicQuantizeLinear", w[0], count=3)
    y = _product(w, x, w[1], [zero, *_given(w, 3)], w.op("Mul", scale, w[2]))
    w.op("Add", y, w[4], result=0) if w.has(4) else w.op("Identity", y, result=0)


@contributes("QGemm")
def _quantised_gemm(w: Writer) -> None:
    sides = [w.op("Transpose", w[number], perm=[1, 0]) if w.attr(name, 0) else w[number]
             for number, name in ((0, "transA"), (3, "transB"))]  # fmt: skip
    y = w.op("Cast", w.op("MatMulInteger", *sides, *_given(w, 2, 5)), to=TensorProto.FLOAT)
    y = w.op("Add", y, w.op("Cast", w[6], to=TensorProto.FLOAT)) if w.has(6) else y
    y = w.op("Mul", y, w.op("Mul", _scales(w, 1, 4), w.constant(w.attr("alpha", 1.0))))
    _quantised(w, y, 7, 8) if w.has(7) else w.op("Identity", y, result=0)


@contributes("DynamicQuantizeLSTM")
def _dynamic_lstm(w: Writer) -> None:
    """With weights of integers, and sequences and states that are not rounded to some."""
    weights: list[str] = []
    for number, scale, zero in ((1, 8, 9), (2, 10, 11)):
        scales, zeros = (_per_direction(w, operand) for operand in (scale, zero))
        moved = w.op("Sub", w.to(w[number], np.float32), w.to(zeros, np.float32))
        weights.append(w.op("Transpose", w.op("Mul", moved, scales), perm=[0, 2, 1]))
    results = [name or f"{w.node.name}.unused{number}" for number, name in enumerate(w.node.output)]
    made = w.several("LSTM", w[0], *weights, *_given(w, 3, 4, 5, 6, 7), count=len(results), **w.attributes)
    for number, value in enumerate(made):
        if w.wants(number):
            w.op("Identity", value, result=number)


def _per_direction(w: Writer, operand: int) -> str:
    """One for each direction, or one for each row of each direction."""
    return w.unsqueeze(w[operand], *([1, 2] if w.rank(operand) == 1 else [1]))


# Weights of few bits.


@contributes("MatMulNBits")
def _few_bits(w: Writer) -> None:
    """Rows of weights are cut into blocks, each of which has a scale and a zero point."""
    bits, block, rows, columns = w.attr("bits", 4), w.attr("block_size"), w.attr("N"), w.attr("K")
    if bits not in (4, 8) or w.has(4):
        raise Refused(
            f"MatMulNBits of {bits} bits" if bits not in (4, 8) else "MatMulNBits with groups of its own"
        )
    count = -(-columns // block)
    weights, scales = w.reshaped(1, rows, count * block), w.reshaped(2, rows, count)
    if (known := w.data(3)) is not None:
        zeros = w.graph.constant(np.ascontiguousarray(known.reshape(rows, -1)[:, :count]))
    elif w.has(3):
        zeros = w.part(w.reshape(w[3], rows, -1), 1, 0, count)
    else:
        dtype = ml_dtypes.uint4 if bits == 4 else np.uint8
        zeros = w.constant(np.full((rows, count), 1 << bits - 1), dtype)
    y = w.op("DequantizeLinear", weights, scales, zeros, axis=1, block_size=block)
    y = w.part(y, 1, 0, columns) if columns < count * block else y
    y = w.op("MatMul", w[0], w.op("Transpose", y, perm=[1, 0]))
    w.op("Add", y, w[5], result=0) if w.has(5) else w.op("Identity", y, result=0)


def with_weights_of_4_bits(model: Any) -> None:
    """Weights and zero points of `MatMulNBits` are bytes that have two numbers: they get their type and shape."""
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    for node in model.graph.node:
        own = {attribute.name: attribute.i for attribute in node.attribute}
        if node.op_type != "MatMulNBits" or node.domain != "com.microsoft" or own.get("bits", 4) != 4:
            continue
        for name in (node.input[1], *node.input[3:4]):
            tensor = tensors.get(name)
            if tensor is None and name:
                raise Refused("MatMulNBits whose weights are computed")
            if tensor is not None and tensor.data_type == TensorProto.UINT8:
                shape = [own["N"], 2 * math.prod(tensor.dims) // own["N"]]
                tensor.data_type = TensorProto.UINT4
                tensor.ClearField("dims")
                tensor.dims.extend(shape)
