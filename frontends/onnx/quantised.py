"""Quantised operators of models of any size, in floats that are whole: see `rewrites`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from devscope.frontends.onnx.builder import limits
from devscope.frontends.onnx.rewriter import Graph, Writer, rewrites
from devscope.frontends.onnx.types import Refused, element_of, is_integer, width

_FIRST, _EACH = slice(1), slice(None)
MOVES: dict[str, slice] = {
    **dict.fromkeys(
        ("DepthToSpace", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity", "MaxPool", "Reshape",
         "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze"), _FIRST),
    **dict.fromkeys(("Clip", "Concat", "Max", "Min"), _EACH),
    **{"Pad": slice(0, 3, 2), "Where": slice(1, 3)},
}  # fmt: skip
"""Operators on quantised numbers that are the same on floats, and which of their operands these are."""

_COMPARES = dict.fromkeys(("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"), _EACH)


def _integer(w: Writer, kind: int) -> str:
    """Raises `Refused`."""
    element = element_of(kind)
    if not is_integer(element):
        raise Refused(f"{w.node.op_type} of shapes known at run time only, of elements of type {element}")
    return element


def _along(w: Writer, operand: str, rank: int, axis: int) -> str:
    """A scale or zero point, one or one for each place of an axis or block of it, for a tensor of that rank."""
    if block := w.attr("block_size", 0):
        places = w.op("Div", w.range(w.extent(w[0], axis)), w.constant(block, np.int64))
        return w.op("Gather", operand, places, axis=axis)
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
    y = w.op("Round", y)
    y = y if zero is None else w.op("Add", y, zero)
    low, high = limits(_integer(w, to))
    w.op("Clip", y, w.constant(low), w.constant(high), result=0)
    w.graph.whole[w.node.output[0]] = to


@rewrites("QuantizeLinear")
def _quantize(w: Writer) -> None:
    axis, rank = w.attr("axis", 1), w.rank(0)
    to = w.graph.type_of(w[2]) if w.has(2) else w.attr("output_dtype", 0) or TensorProto.UINT8
    zero = _zero(w, 2, rank, axis) if w.has(2) else None
    scale = _along_like(w, w.to(w[1], np.float32), w[1], rank, axis)
    _quantised(w, w.op("Div", w.to(w[0], np.float32), scale), zero, to)


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
    to = w.attr("output_dtype", 0) or w.graph.type_of(w[1])
    given, scale, zero = w.data(0), w.data(1), w.data(2)
    if given is not None and scale is not None and (zero is not None or not w.has(2)):
        wide = given.astype(np.float32)
        wide = wide if zero is None else wide - _as_large(w, zero.astype(np.float32), wide.shape)
        wide = wide * _as_large(w, scale.astype(np.float32), wide.shape)
        w.op("Identity", w.constant(wide, helper.tensor_dtype_to_np_dtype(to)), result=0)
        return
    _integer(w, w.graph.type_of(w[0]))
    y = _float(w, 0)
    if w.has(2):
        y = w.op("Sub", y, _zero(w, 2, rank, axis))
    y = w.op("Mul", y, _along_like(w, w.to(w[1], np.float32), w[1], rank, axis))
    w.op("Cast", y, to=to, result=0)


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


SIGNED: dict[int, int] = {TensorProto.UINT8: TensorProto.INT8, TensorProto.UINT16: TensorProto.INT16}
"""Of what torch-mlir would get unsigned."""


@rewrites("Cast", "CastLike")
def _cast(w: Writer) -> None:
    """torch-mlir has no unsigned integers."""
    to: int = w.attr("to") or w.graph.type_of(w[1])
    if to in SIGNED:
        count = w.constant(1 << width(element_of(to)), np.int64)
        w.op("Cast", w.op("Mod", w.to(w[0], np.int64), count), to=TensorProto.FLOAT, result=0)
        w.graph.whole[w.node.output[0]] = to
    else:
        cast(w, w[0], to)


def cast(w: Writer, x: str, to: int) -> None:
    """The first result. To integers of 16 bits, torch-mlir casts like another value only."""
    if to == TensorProto.INT16:
        w.op("CastLike", x, w.constant(0, np.int16), result=0)
    else:
        w.op("Cast", x, to=to, result=0)


def moved(graph: Graph, node: Any) -> Any:
    """A node that is kept; on quantised numbers, if there are any, with constants among them in floats, too."""
    given = [name for name in node.input if name in graph.whole]
    if not given:
        return node
    which = MOVES.get(node.op_type) or _COMPARES.get(node.op_type, slice(0))
    result = onnx.NodeProto()
    result.CopyFrom(node)
    numbers = [number for number in range(len(node.input))[which] if node.input[number]]
    for number in numbers:
        name = node.input[number]
        if name not in graph.whole and (data := graph.data(name)) is not None:
            result.input[number] = name = graph.constant(data.astype(np.float32))
            graph.whole[name] = graph.whole[given[0]]
    if numbers != [number for number, name in enumerate(result.input) if name in graph.whole]:
        raise Refused(f"{node.op_type} of quantised numbers, of shapes known at run time only")
    if node.op_type not in _COMPARES:
        made = node.output if node.op_type == "Split" else node.output[:1]
        graph.whole.update(dict.fromkeys(made, graph.whole[given[0]]))
    return result
