"""Recurrent networks, spectra, losses and products over sizes known at run time only, in operators of torch-mlir."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from devscope.frontends.onnx.images import filled
from devscope.frontends.onnx.rewriter import Writer, rewrites
from devscope.frontends.onnx.types import Refused

_ACTIVATIONS = {"sigmoid": "Sigmoid", "tanh": "Tanh", "relu": "Relu"}


_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
_DEFAULTS = {"RNN": ["tanh"], "GRU": ["sigmoid", "tanh"], "LSTM": ["sigmoid", "tanh", "tanh"]}


@rewrites("GRU", "RNN", "LSTM")
def _recurrent(w: Writer) -> None:
    """A Loop over time for each direction, after a product of the whole sequence with the weights.

    torch-mlir has LSTM, of sequences of one length, not backwards only.
    """
    kind = w.node.op_type
    own = w.has(4) or w.has(7) or "activations" in w.attributes or w.attr("layout", 0)
    if kind == "LSTM" and not own and w.attr("direction", "forward") != "reverse":
        for number, name in enumerate(w.several(kind, *w.node.input, count=len(w.node.output), **w.attributes)):
            if w.wants(number):
                w.op("Identity", name, result=number)
        return
    if "clip" in w.attributes or w.attr("input_forget", 0):
        raise Refused(f"{kind} with clip or input_forget")
    batch_first = bool(w.attr("layout", 0))
    x = w.op("Transpose", w[0], perm=[1, 0, 2]) if batch_first else w[0]
    backwards = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[
        w.attr("direction", "forward")
    ]
    found = [_direction(w, x, number, back, batch_first) for number, back in enumerate(backwards)]
    rows, *ends = zip(*found, strict=True)
    results = [w.op("Concat", *(w.unsqueeze(one, 1) for one in rows), axis=1)]
    results += [w.op("Concat", *(w.unsqueeze(one, 0) for one in end), axis=0) for end in ends]
    for number, value in enumerate(results):
        if w.wants(number) and batch_first:
            w.op("Transpose", value, perm=[1, 0, 2] if number else [2, 0, 1, 3], result=number)
        elif w.wants(number):
            w.op("Identity", value, result=number)


def _activations(w: Writer, number: int) -> list[str]:
    """Of one direction."""
    default = _DEFAULTS[w.node.op_type]
    names = [one.decode().lower() for one in w.attr("activations") or []]
    names = names[number * len(default) : (number + 1) * len(default)] or default
    if unknown := [name for name in names if name not in _ACTIVATIONS]:
        raise Refused(f"{w.node.op_type} of shapes known at run time only, with the activation {unknown[0]}")
    return [_ACTIVATIONS[name] for name in names]


def _direction(w: Writer, x: str, number: int, back: bool, batch_first: bool) -> list[str]:
    """What one direction gives at each time, and its last states."""
    which, hidden = w.constant(number, np.int64), w.shape(2)[2]
    if not isinstance(hidden, int):
        raise Refused(f"{w.node.op_type} of as many features as are known at run time only")
    weights, recurrent = (w.op("Transpose", w.op("Gather", w[k], which, axis=0), perm=[1, 0]) for k in (1, 2))
    time = w.extent(x, 0)
    state = w.op("Concat", w.reshape(w.extent(x, 1), 1), w.constant([hidden], np.int64), axis=0)
    first = [
        w.op("Gather", w[k], which, axis=int(batch_first)) if w.has(k) else w.op("Expand", w.number(0), state)
        for k in ((5, 6) if w.node.op_type == "LSTM" else (5,))
    ]
    given, bias = w.op("MatMul", x, weights), ""
    if w.has(3):
        both, gates = w.op("Gather", w[3], which, axis=0), hidden * _GATES[w.node.op_type]
        given, bias = w.op("Add", given, w.part(both, 0, 0, gates)), w.part(both, 0, gates, 2 * gates)
    peep = w.op("Gather", w[7], which, axis=0) if w.has(7) else ""
    lengths = w.op("Cast", w[4], to=TensorProto.INT64) if w.has(4) else ""
    rows = w.op("Expand", w.number(0), w.op("Concat", w.reshape(time, 1), state, axis=0))
    known = [size if isinstance(size, int) else None for size in w.shape(0)[:2]]
    body = _Body(w, number, known[::-1] if batch_first else known, hidden, len(first))
    place = body.op("Sub", body.op("Sub", time, body.constant(1, np.int64)), body.trip) if back else body.trip
    now = body.op("Gather", given, place, axis=0)
    step = {"RNN": _rnn, "GRU": _gru, "LSTM": _lstm}[w.node.op_type]
    made = step(body, now, body.states, recurrent, bias, peep, _activations(w, number))
    row = made[0]
    if lengths:
        on = body.unsqueeze(body.op("Less", place, lengths), 1)
        row = body.op("Where", on, row, body.number(0))
        made = [body.op("Where", on, new, old) for new, old in zip(made, body.states, strict=True)]
    stored = body.op("ScatterND", body.rows, body.reshape(place, 1, 1), body.unsqueeze(row, 0))
    graph = body.graph_of([*made, stored])
    results = w.several("Loop", time, w.constant(True, np.bool_), *first, rows, count=len(first) + 1, body=graph)
    for result, shape in zip(results, body.shapes, strict=True):
        w.graph.declare(result, w.type(), shape)
    return [results[-1], *results[:-1]]


class _Body(Writer):
    """Of a Loop over time, which carries states and rows; constants stand in it, where inference looks for them."""

    def __init__(
        self, outer: Writer, direction: int, sizes: Sequence[int | None], hidden: int, states: int
    ) -> None:
        """``sizes``: how many steps and sequences, as far as they are known."""
        node = onnx.NodeProto()
        node.CopyFrom(outer.node)
        node.name = f"{node.name}.step{direction}"
        super().__init__(outer.graph, node, outer.opset)
        self.trip, self._going, self.rows = (f"{node.name}.{name}" for name in ("trip", "going", "rows"))
        self.states = [f"{node.name}.state{number}" for number in range(states)]
        self.hidden = hidden
        self.shapes = [*[[sizes[1], hidden]] * states, [*sizes, hidden]]

    def constant(self, array: Any, dtype: Any = np.float32) -> str:
        return self.op("Constant", value=numpy_helper.from_array(np.asarray(array, dtype)))

    def gate(self, x: str, number: int, count: int = 1, axis: int = 1) -> str:
        return self.part(x, axis, number * self.hidden, (number + count) * self.hidden)

    def graph_of(self, carried: Sequence[str]) -> Any:
        goes_on = self.op("Identity", self._going)
        make = helper.make_tensor_value_info
        kinds = [(TensorProto.BOOL, []), *((self.type(), shape) for shape in self.shapes)]
        heads = [make(self.trip, TensorProto.INT64, [])]
        names = [self._going, *self.states, self.rows]
        heads += [make(name, *kind) for name, kind in zip(names, kinds, strict=True)]
        results = [make(name, *kind) for name, kind in zip([goes_on, *carried], kinds, strict=True)]
        return helper.make_graph(self.nodes, self.node.name, heads, results)


def _rnn(w: _Body, x: str, states: Sequence[str], r: str, bias: str, peep: str, acts: Sequence[str]) -> list[str]:
    total = w.op("Add", x, w.op("MatMul", states[0], r))
    return [w.op(acts[0], w.op("Add", total, bias) if bias else total)]


def _gru(w: _Body, x: str, states: Sequence[str], r: str, bias: str, peep: str, acts: Sequence[str]) -> list[str]:
    (h,) = states
    total = w.op("Add", w.gate(x, 0, 2), w.op("MatMul", h, w.gate(r, 0, 2)))
    total = w.op("Add", total, w.gate(bias, 0, 2, 0)) if bias else total
    gates = w.op(acts[0], total)
    update, reset = w.gate(gates, 0), w.gate(gates, 1)
    first = bool(w.attr("linear_before_reset", 0))
    inner = w.op("MatMul", h if first else w.op("Mul", reset, h), w.gate(r, 2))
    inner = w.op("Add", inner, w.gate(bias, 2, 1, 0)) if bias else inner
    inner = w.op("Mul", reset, inner) if first else inner
    new = w.op(acts[1], w.op("Add", w.gate(x, 2), inner))
    return [w.op("Add", new, w.op("Mul", update, w.op("Sub", h, new)))]


def _lstm(w: _Body, x: str, states: Sequence[str], r: str, bias: str, peep: str, acts: Sequence[str]) -> list[str]:
    h, c = states
    total = w.op("Add", x, w.op("MatMul", h, r))
    total = w.op("Add", total, bias) if bias else total

    def gate(number: int, cell: str, which: int) -> str:
        found = w.gate(total, number)
        if peep:
            found = w.op("Add", found, w.op("Mul", w.gate(peep, which, 1, 0), cell))
        return w.op(acts[0], found)

    new = w.op("Mul", gate(0, c, 0), w.op(acts[1], w.gate(total, 3)))
    cell = w.op("Add", w.op("Mul", gate(2, c, 2), c), new)
    return [w.op("Mul", gate(1, cell, 1), w.op(acts[2], cell)), cell]


# Spectra: products with matrices of cosines and sines.

_MOST = 4096
"""Elements of a transform whose matrix is a constant."""


def _waves(w: Writer, count: str, length: int | None, half: bool) -> tuple[str, str]:
    """Cosines and sines of place times frequency, [places, frequencies]; ``length`` is None if it is ``count`` only."""
    if length is not None:
        if length > _MOST:
            raise Refused(f"a Fourier transform of {length} elements, of other sizes known at run time only")
        places, kept = np.arange(length), length // 2 + 1 if half else length
        angles = 2 * math.pi / length * (np.outer(places, places[:kept]) % length)
        return w.constant(np.cos(angles), w.dtype), w.constant(np.sin(angles), w.dtype)
    two = w.constant(2, np.int64)
    kept = w.op("Add", w.op("Div", count, two), w.constant(1, np.int64)) if half else count
    turns = w.op("Mul", w.unsqueeze(w.range(count), 1), w.unsqueeze(w.range(kept), 0))
    parts = (w.op("Cast", one, to=w.type()) for one in (w.op("Mod", turns, count), count))
    angles = w.op("Mul", w.op("Div", *parts), w.number(2 * math.pi))
    return w.op("Cos", angles), w.op("Sin", angles)


@rewrites("DFT")
def _dft(w: Writer) -> None:
    rank, inverse, half = w.rank(0), bool(w.attr("inverse", 0)), bool(w.attr("onesided", 0))
    axis = w.attr("axis", 1)
    if w.opset >= 20:
        axis = -2 if not w.has(2) else w.data(2)
        if axis is None:
            raise Refused("DFT of shapes known at run time only, along an axis that is computed")
    axis = int(axis) % rank
    if inverse and half:
        raise Refused("DFT of shapes known at run time only, back from one side")
    parts = w.shape(0)[-1]
    if parts not in (1, 2):
        raise Refused("DFT of shapes known at run time only, of real or complex numbers")
    length, x = w.shape(0)[axis], w[0]
    if w.has(1):
        if w.data(1) is None:
            raise Refused("DFT of shapes known at run time only, of a length that is computed")
        length = int(w.data(1))
        ends = [w.constant(0, np.int64), w.op("Sub", w.constant(length, np.int64), w.extent(x, axis))]
        x = filled(w, x, axis, w.number(0), ends)
    cosines, sines = _waves(w, w.extent(x, axis), length if isinstance(length, int) else None, half)
    order = [*(a for a in range(rank - 1) if a != axis), axis]
    given = [w.op("Gather", x, w.constant(k, np.int64), axis=rank - 1) for k in range(parts)]
    given = [w.op("Transpose", one, perm=order) for one in given]
    sides = [[w.op("MatMul", one, waves) for waves in (cosines, sines)] for one in given]
    real, imaginary = sides[0][0], w.op("Neg", sides[0][1]) if not inverse else sides[0][1]
    if parts == 2:
        signs = ("Sub", "Add") if inverse else ("Add", "Add")
        real = w.op(signs[0], real, sides[1][1])
        imaginary = w.op(signs[1], imaginary, sides[1][0])
    if inverse:
        count = w.op("Cast", w.extent(x, axis), to=w.type())
        real, imaginary = (w.op("Div", one, count) for one in (real, imaginary))
    _joined(w, [w.op("Transpose", one, perm=np.argsort(order).tolist()) for one in (real, imaginary)], rank - 1)


def _joined(w: Writer, parts: Sequence[str], axis: int) -> None:
    """The node's result: real and imaginary parts."""
    w.op("Concat", *(w.unsqueeze(part, axis) for part in parts), axis=axis, result=0)


@rewrites("STFT")
def _stft(w: Writer) -> None:
    shape, half = w.shape(0), bool(w.attr("onesided", 1))
    if len(shape) == 3 and shape[2] != 1:
        raise Refused("STFT of complex numbers")
    length = w.shape(2)[0] if w.has(2) else int(w.data(3)) if w.has(3) and w.data(3) is not None else None
    if not isinstance(length, int):
        raise Refused("STFT of shapes known at run time only, of pieces whose length is computed")
    x = w.squeeze(w[0], 2) if len(shape) == 3 else w[0]
    step = w.reshape(w.op("Cast", w[1], to=TensorProto.INT64))
    rest = w.op("Sub", w.extent(x, 1), w.constant(length, np.int64))
    count = w.op("Add", w.op("Div", rest, step), w.constant(1, np.int64))
    starts = w.unsqueeze(w.op("Mul", w.range(count), step), 1)
    pieces = w.op("Gather", x, w.op("Add", starts, w.constant(np.arange(length), np.int64)), axis=1)
    pieces = w.op("Mul", pieces, w[2]) if w.has(2) else pieces
    cosines, sines = _waves(w, "", length, half)
    _joined(w, [w.op("MatMul", pieces, cosines), w.op("Neg", w.op("MatMul", pieces, sines))], 3)


# Losses.


@rewrites("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss")
def _loss(w: Writer) -> None:
    """torch-mlir weighs the mean in another way."""
    scores = w[0]
    if w.node.op_type == "SoftmaxCrossEntropyLoss":
        scores = w.op("LogSoftmax", scores, axis=1)
        if w.wants(1):
            w.op("Identity", scores, result=1)
    labels, ignored = w.op("Cast", w[1], to=TensorProto.INT64), w.attr("ignore_index")
    weights = on = ""
    if ignored is not None:
        on = w.op("Not", w.op("Equal", labels, w.constant(ignored, np.int64)))
        labels = w.op("Where", on, labels, w.constant(0, np.int64))
    if w.has(2):
        weights = w.op("Gather", w[2], labels, axis=0)
    loss = w.op("Neg", w.squeeze(w.op("GatherElements", scores, w.unsqueeze(labels, 1), axis=1), 1))
    if on:
        weights = w.op("Where", on, weights or w.number(1), w.number(0))
        loss = w.op("Where", on, loss, w.number(0))
    loss = w.op("Mul", loss, weights) if weights else loss
    how = w.attr("reduction", "mean")
    if how == "none":
        w.op("Identity", loss, result=0)
    elif how == "sum" or not weights:
        w.op("ReduceSum" if how == "sum" else "ReduceMean", loss, keepdims=0, result=0)
    else:
        total = w.op("ReduceSum", loss, keepdims=0)
        w.op("Div", total, w.op("ReduceSum", weights, keepdims=0), result=0)


@rewrites("ReduceProd")
def _product(w: Writer) -> None:
    """The first half of an axis times the second, until there is one; torch-mlir has no such reduction."""
    shape = w.shape(0)
    axes = w.attr("axes") if w.opset < 18 else w.data(1)
    if axes is None and w.has(1):
        raise Refused("ReduceProd of shapes known at run time only, along axes that are computed")
    given = [] if axes is None else [int(axis) % len(shape) for axis in axes]
    if not given and w.attr("noop_with_empty_axes", 0):
        w.op("Identity", w[0], result=0)
        return
    axes = sorted(set(given)) or [*range(len(shape))]
    x = w[0]
    for axis in axes:
        extent = shape[axis]
        if not isinstance(extent, int) or extent == 0:
            raise Refused("ReduceProd along an axis whose size is known at run time only")
        while extent > 1:
            half = extent // 2
            y = w.op("Mul", w.part(x, axis, 0, half), w.part(x, axis, half, 2 * half))
            x = w.op("Concat", y, w.part(x, axis, 2 * half, extent), axis=axis) if extent % 2 else y
            extent -= half
    if not w.attr("keepdims", 1):
        x = w.squeeze(x, *axes)
    w.op("Identity", x, result=0)
