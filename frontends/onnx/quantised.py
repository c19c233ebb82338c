"""Quantised operators of models of any size, in floats that are whole: see `rewrites`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from devscope.frontends.onnx.rewriter import Graph, Writer, rewrites
from devscope.frontends.onnx.types import Refused

MOVES = frozenset(
    ("Concat", "Flatten", "Gather", "GatherND", "Identity", "MaxPool", "Reshape", "Slice", "Split", "Squeeze",
     "Transpose", "Unsqueeze")
)  # fmt: skip
"""Operators on quantised numbers that are the same on floats."""

_RANGES: dict[int, tuple[int, int]] = {
    TensorProto.UINT8: (0, 255),
    TensorProto.INT8: (-128, 127),
    TensorProto.INT32: (-(2**31), 2**31 - 1),
}


def _along(w: Writer, operand: str, rank: int, axis: int) -> str:
    """A scale or zero point, one or one for each place of an axis, for a tensor of that rank."""
    shape = [1] * rank
    if rank and w.graph.shapes.get(operand, []) not in ([], [1]):
        shape[axis % rank] = -1
    return w.op("Reshape", operand, w.constant(shape, np.int64))


def _float(w: Writer, number: int) -> str:
    """A quantised operand, as a float."""
    name, found = w[number], w.data(number)
    if found is not None:
        return w.constant(found)
    return name if name in w.graph.whole else w.op("Cast", name, to=TensorProto.FLOAT)


def _zero(w: Writer, number: int, rank: int, axis: int) -> str:
    return _along_like(w, _float(w, number), w[number], rank, axis)


def _along_like(w: Writer, made: str, operand: str, rank: int, axis: int) -> str:
    w.graph.shapes[made] = w.graph.shapes.get(operand, [])
    return _along(w, made, rank, axis)


def _quantised(w: Writer, y: str, zero: str | None, to: int) -> None:
    """The first result: rounded to even, moved by the zero point, limited to the type."""
    if to not in _RANGES:
        raise Refused(f"{w.node.op_type} of shapes known at run time only, to elements of type {to}")
    y = w.op("Round", y)
    y = y if zero is None else w.op("Add", y, zero)
    low, high = _RANGES[to]
    w.op("Clip", y, w.constant(low), w.constant(high), result=0)
    w.graph.whole[w.node.output[0]] = to


@rewrites("QuantizeLinear")
def _quantize(w: Writer) -> None:
    axis, rank = w.attr("axis", 1), w.rank(0)
    if w.attr("block_size", 0) or w.graph.type_of(w[0]) != TensorProto.FLOAT:
        raise Refused("QuantizeLinear of shapes known at run time only, in blocks or not of f32")
    to = w.graph.type_of(w[2]) if w.has(2) else w.attr("output_dtype", 0) or TensorProto.UINT8
    zero = _zero(w, 2, rank, axis) if w.has(2) else None
    _quantised(w, w.op("Div", w[0], _along(w, w[1], rank, axis)), zero, to)


def _as_large(w: Writer, x: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """One for all, one for each place of an axis, or one for each block of it."""
    axis, block = w.attr("axis", 1), w.attr("block_size", 0)
    if x.size == 1 or not shape:
        return x.reshape(())
    axis %= len(shape)
    if block:
        return np.repeat(x, block, axis).take(np.arange(shape[axis]), axis)
    return x.reshape([-1 if a == axis else 1 for a in range(len(shape))])


@rewrites("DequantizeLinear")
def _dequantize(w: Writer) -> None:
    axis, rank = w.attr("axis", 1), w.rank(0)
    if w.graph.type_of(w[1]) != TensorProto.FLOAT:
        raise Refused("DequantizeLinear of shapes known at run time only, not to f32")
    given, scale, zero = w.data(0), w.data(1), w.data(2)
    if given is not None and scale is not None and (zero is not None or not w.has(2)):
        wide = given.astype(np.float32)
        wide = wide if zero is None else wide - _as_large(w, zero.astype(np.float32), wide.shape)
        w.op("Identity", w.constant(wide * _as_large(w, scale, wide.shape)), result=0)
        return
    if w.attr("block_size", 0) or w.graph.type_of(w[0]) not in _RANGES:
        of = "in blocks" if w.attr("block_size", 0) else f"of type {w.graph.type_of(w[0])}"
        raise Refused(f"DequantizeLinear of shapes known at run time only, {of}")
    y = _float(w, 0)
    if w.has(2):
        y = w.op("Sub", y, _zero(w, 2, rank, axis))
    w.op("Mul", y, _along(w, w[1], rank, axis), result=0)


@rewrites("DynamicQuantizeLinear")
def _dynamic_quantize(w: Writer) -> None:
    zero, most = w.constant(0), w.constant(255)
    low = w.op("Min", w.op("ReduceMin", w[0], keepdims=0), zero)
    high = w.op("Max", w.op("ReduceMax", w[0], keepdims=0), zero)
    scale = w.op("Div", w.op("Sub", high, low), most, result=1)
    point = w.op("Clip", w.op("Round", w.op("Div", w.op("Neg", low), scale)), zero, most, result=2)
    w.graph.whole[w.node.output[2]] = TensorProto.UINT8
    _quantised(w, w.op("Div", w[0], scale), point, TensorProto.UINT8)


def _centred(w: Writer, number: int, zero: int, axis: int) -> str:
    """An operand minus its zero point."""
    rank, given, point = w.rank(number), w.data(number), w.data(zero)
    if not w.has(zero):
        return _float(w, number)
    if given is not None and point is not None:
        shape = [1] * rank
        if np.size(point) > 1:
            shape[axis % rank] = -1
        return w.constant(given.astype(np.float32) - point.astype(np.float32).reshape(shape))
    return w.op("Sub", _float(w, number), _zero(w, zero, rank, axis))


def _product(w: Writer, weights: int, zeros: tuple[int, int], result: int | None = None) -> str:
    if "Conv" in w.node.op_type:
        x, y = _centred(w, 0, zeros[0], 0), _centred(w, weights, zeros[1], 0)
        return w.op("Conv", x, y, result=result, **w.attributes)
    return w.op("MatMul", _centred(w, 0, zeros[0], -2), _centred(w, weights, zeros[1], -1), result=result)


@rewrites("ConvInteger", "MatMulInteger")
def _integers(w: Writer) -> None:
    _product(w, 1, (2, 3), result=0)
    w.graph.whole[w.node.output[0]] = TensorProto.INT32


@rewrites("QLinearConv", "QLinearMatMul")
def _linear(w: Writer) -> None:
    y, axis = _product(w, 3, (2, 5)), 1 if "Conv" in w.node.op_type else -1
    rank = w.rank(0) if axis == 1 else max(w.rank(0), w.rank(3))
    if w.has(8):
        y = w.op("Add", y, _zero(w, 8, rank, 1))
    scales = [_along(w, w[number], rank, axis) for number in (1, 4, 6)]
    y = w.op("Mul", y, w.op("Div", w.op("Mul", scales[0], scales[1]), scales[2]))
    _quantised(w, y, _zero(w, 7, rank, axis), w.graph.type_of(w[7]))


def moved(graph: Graph, node: Any) -> Any:
    """A node that is kept; on quantised numbers, if there are any."""
    found = [graph.whole[name] for name in node.input if name in graph.whole]
    if not found:
        return node
    if node.op_type == "Cast" and found[0] in _RANGES:
        (to,) = (attribute.i for attribute in node.attribute if attribute.name == "to")
        return helper.make_node("Cast", node.input, node.output, node.name, to=to)
    first = node.input if node.op_type == "Concat" else node.input[:1]
    if node.op_type not in MOVES or any(name not in graph.whole for name in first):
        raise Refused(f"{node.op_type} of quantised numbers, of shapes known at run time only")
    graph.whole.update(dict.fromkeys(node.output, found[0]))
    return node
