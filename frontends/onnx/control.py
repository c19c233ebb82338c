"""If, Loop and Scan; recurrent networks, which are loops; Fourier transforms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from devscope.frontends.onnx.builder import Builder, Value, tensor_type
from devscope.frontends.onnx.contractions import matmul_of
from devscope.frontends.onnx.graph import Elements, Held, Node, operator, value_of
from devscope.frontends.onnx.types import Refused, UnknownShape, is_complex


def run_inside(n: Node, graph: Any, given: Sequence[Held] = ()) -> list[Held]:
    """What a graph inside of a node gives."""
    inner = n.scope.subgraph(graph, dict(zip([one.name for one in graph.input], given, strict=True)))
    inner.run(graph.node)
    return [inner.held(output.name) for output in graph.output]


@operator("If")
def if_(n: Node) -> list[Held]:
    branches = [n.attributes["then_branch"], n.attributes["else_branch"]]
    known = n.known(0)
    if known is not None:
        return run_inside(n, branches[0 if bool(np.asarray(known).reshape(-1)[0]) else 1])

    def lower(graph: Any) -> list[Value]:
        return [value_of(n.b, one) for one in run_inside(n, graph)]

    condition = n.b.reshape(n[0], [])
    return [*n.b.choose(condition, [lambda: lower(branches[0]), lambda: lower(branches[1])])]


def _put(b: Builder, row: Value, rows: Value, place: Value) -> Value:
    """``rows`` with one row, along the first axis, replaced."""
    row = b.reshape(row, [1, *row.shape])
    zero = b.scalar(0, "i64")
    names = ", ".join([place.name, *[zero.name] * (rows.rank - 1)])
    types = ", ".join(["tensor<i64>"] * rows.rank)
    text = (
        f"stablehlo.dynamic_update_slice {rows.name}, {row.name}, {names} : ({rows.type}, {row.type}, {types}) -> "
    )
    return b.op(text + rows.type, rows.element, rows.shape)


def _row(b: Builder, rows: Value, place: Value, axis: int = 0) -> Value:
    found = b.take(rows, b.reshape(place, [1]), axis)
    return b.reshape(found, rows.shape[:axis] + rows.shape[axis + 1 :])


_MOST_TRIPS = 1 << 10
"""Of a loop whose body is written out for each."""


@operator("Loop")
def loop(n: Node) -> list[Held]:
    b, graph = n.b, n.attributes["body"]
    held = [n.held(number) for number in range(2, len(n))]
    if any(isinstance(one, Elements) for one in held):
        return _unrolled(n, held)
    first = [value_of(b, one) for one in held]
    count = len(first)
    limit = b.reshape(n[0], []) if n.has(0) else None
    going = b.reshape(n[1], []) if n.has(1) else b.scalar(True, "i1")
    heads = [b.fresh("i64", []), b.fresh("i1", []), *first]
    try:
        again, *tried = _tried(n, graph, heads)
    except UnknownShape:
        if n.known(0) is None:
            raise
        return _unrolled(n, held)
    if any(one.type != before.type for one, before in zip(tried[:count], first, strict=False)):
        return _unrolled(n, held)
    known = n.known(1) if n.has(1) else np.array(True)
    goes_on = known is not None and bool(np.all(known)) and again.name == heads[1].name
    rows = [_rows(n, number, row, goes_on) for number, row in enumerate(tried[count:], count)]

    def condition(values: list[Value]) -> Value:
        return values[1] if limit is None else b.binary("and", values[1], b.compare("LT", values[0], limit))

    def body(values: list[Value]) -> list[Value]:
        place, _, *carried = values
        again, *made = (value_of(b, one) for one in run_inside(n, graph, [place, values[1], *carried[:count]]))
        kept = [_put(b, row, old, place) for row, old in zip(made[count:], carried[count:], strict=True)]
        return [b.binary("add", place, 1), b.reshape(again, []), *made[:count], *kept]

    results = b.repeat([b.scalar(0, "i64"), going, *first, *rows], condition, body)
    return [*results[2:]]


def _rows(n: Node, number: int, row: Value, goes_on: bool) -> Value:
    """Where a loop puts what its trips give, which is as many rows as the model declares, or as there are trips."""
    trips = n.known(0)
    count = None if trips is None else int(np.asarray(trips).reshape(-1)[0])
    if count is not None and goes_on:
        return n.b.full(0, row.element, [count, *row.shape])
    shape = n.declared_shape(number)
    if count is not None and count != shape[0]:
        raise Refused("Loop whose rows are fewer than its trips")
    return n.b.full(0, row.element, shape)


def _unrolled(n: Node, carried: list[Held]) -> list[Held]:
    """A loop of sequences, or of values that change their shapes: its body, written out for each trip."""
    graph, count = n.attributes["body"], len(carried)
    trips, going = n.known(0), n.known(1) if n.has(1) else np.array(True)
    if going is None or (trips is None and n.has(0)):
        raise Refused("Loop of sequences, or of values that change their shapes, whose trips are not known")
    left = math.inf if trips is None else int(np.asarray(trips).reshape(-1)[0])
    rows: list[list[Value]] = [[] for _ in graph.output[1 + count :]]
    number = 0
    while number < left and bool(np.asarray(going).reshape(-1)[0]):
        if number == _MOST_TRIPS:
            raise Refused(f"Loop of sequences, or of values that change their shapes, of more than {number} trips")
        again, *made = run_inside(n, graph, [np.array(number), np.array(True), *carried])
        if not isinstance(again, np.ndarray):
            raise Refused("Loop of sequences, or of values that change their shapes, whose condition is computed")
        carried, going = made[:count], again
        for found, row in zip(rows, made[count:], strict=True):
            found.append(value_of(n.b, row))
        number += 1
    return [*carried, *(_stacked(n, place, found) for place, found in enumerate(rows, count))]


def _stacked(n: Node, number: int, rows: list[Value]) -> Value:
    if not rows:
        return n.b.full(0, _scan_element(n.attributes["body"].output[1 + number]), n.declared_shape(number))
    return n.b.concatenate([n.b.reshape(row, [1, *row.shape]) for row in rows], 0)


def _scan_element(output: Any) -> str:
    from devscope.frontends.onnx.types import element_of

    return element_of(output.type.tensor_type.elem_type)


@operator("Scan")
def scan(n: Node) -> list[Value]:
    b, graph, scanned = n.b, n.attributes["body"], n.attributes["num_scan_inputs"]
    if n.opset < 9:
        return _batched_scan(n)
    values = n.inputs
    states, sequences = values[: len(values) - scanned], values[len(values) - scanned :]
    axes = [a % s.rank for a, s in zip(n.attr("scan_input_axes") or [0] * scanned, sequences, strict=True)]
    backwards = n.attr("scan_input_directions") or [0] * scanned
    sequences = [b.reverse(s, [a]) if back else s for s, a, back in zip(sequences, axes, backwards, strict=True)]
    count = len(graph.output) - len(states)
    length = sequences[0].shape[axes[0]]
    out_axes, out_back = n.attr("scan_output_axes") or [0] * count, n.attr("scan_output_directions") or [0] * count
    rows: list[Value] = []
    items = [_without(s, a) for s, a in zip(sequences, axes, strict=True)]
    for row in _tried(n, graph, [*states, *items])[len(states) :]:
        rows.append(b.full(0, row.element, [length, *row.shape]))

    def body(place: Value, carried: list[Value]) -> list[Value]:
        items = [_row(b, s, place, a) for s, a in zip(sequences, axes, strict=True)]
        made = [value_of(b, one) for one in run_inside(n, graph, [*carried[: len(states)], *items])]
        kept = [_put(b, r, old, place) for r, old in zip(made[len(states) :], carried[len(states) :], strict=True)]
        return [*made[: len(states)], *kept]

    results = b.loop([*states, *rows], body, length)
    finished: list[Value] = []
    for number, value in enumerate(results[len(states) :]):
        value = b.reverse(value, [0]) if out_back[number] else value
        axis = out_axes[number] % value.rank
        order = [*range(1, value.rank)]
        order.insert(axis, 0)
        finished.append(b.transpose(value, order))
    return [*results[: len(states)], *finished]


def _without(x: Value, axis: int) -> Value:
    """The name, element type and shape of a row."""
    return Value(x.name, x.element, x.shape[:axis] + x.shape[axis + 1 :])


def _tried(n: Node, graph: Any, given: Sequence[Value]) -> list[Value]:
    """What a body gives for operands of these types: it is lowered once, and what was written is taken back."""
    lines = n.b.lines
    n.b.lines = []
    try:
        return [value_of(n.b, one) for one in run_inside(n, graph, given)]
    finally:
        n.b.lines = lines


def _batched_scan(n: Node) -> list[Value]:
    raise Refused("Scan of a version before 9")


# Recurrent networks. Weights have a dimension of directions first; sequences are [time, batch, features].

_ACTIVATIONS = {"sigmoid": "logistic", "tanh": "tanh"}


def _activation(n: Node, name: str, x: Value, number: int) -> Value:
    b, name = n.b, name.lower()
    if name in _ACTIVATIONS:
        return b.unary(_ACTIVATIONS[name], x)
    if name == "relu":
        return b.binary("maximum", x, 0)
    alphas, betas = n.attr("activation_alpha") or [], n.attr("activation_beta") or []
    if name == "affine":
        return b.binary("add", b.binary("multiply", x, alphas[number]), betas[number])
    raise Refused(f"{n.proto.op_type} with the activation {name}")


class _Recurrence:
    """What RNN, GRU and LSTM have in common: directions, lengths, initial states, and the loop over time."""

    def __init__(self, n: Node, gates: int, states: int, defaults: list[str]) -> None:
        self.n, self.b, self.gates = n, n.b, gates
        self.hidden = n[2].shape[-1]
        direction = n.attr("direction", "forward")
        self.directions = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[direction]
        names = n.attr("activations")
        names = [one.decode() if isinstance(one, bytes) else one for one in names] if names else defaults * 2
        self.activations = [
            names[k * len(defaults) : (k + 1) * len(defaults)] for k in range(len(self.directions))
        ]
        self.batch_first = bool(n.attr("layout", 0))
        self.states = states
        if n.attr("clip", None) is not None:
            raise Refused(f"{n.proto.op_type} with clip")

    def run(self, step: Any) -> list[Value]:
        n, b = self.n, self.b
        x = n.b.transpose(n[0], [1, 0, 2]) if self.batch_first else n[0]
        time, batch, _ = x.shape
        outputs: list[Value] = []
        finals: list[list[Value]] = [[] for _ in range(self.states)]
        for number, backwards in enumerate(self.directions):
            w, r = b.at(n[1], 0, number), b.at(n[2], 0, number)
            bias = b.at(n[3], 0, number) if n.has(3) else b.full(0, x.element, [2 * self.gates * self.hidden])
            first = [self._initial(5 + k, number, batch, x.element) for k in range(self.states)]
            lengths = b.convert(n[4], "i64") if n.has(4) else None
            given = x
            if backwards:
                given = b.reverse(x, [0]) if lengths is None else _reversed(b, x, lengths)
            inputs = matmul_of(b, given, b.transpose(w, [1, 0]))
            rows = b.full(0, x.element, [time, batch, self.hidden])

            def body(
                place: Value,
                carried: list[Value],
                inputs: Value = inputs,
                r: Value = r,
                bias: Value = bias,
                lengths: Value | None = lengths,
                number: int = number,
            ) -> list[Value]:
                *state, kept = carried
                made = step(number, _row(b, inputs, place), state, r, bias)
                row = made[0]
                if lengths is not None:
                    on = b.reshape(b.compare("LT", b.broadcast(place, [batch]), lengths), [batch, 1])
                    row = b.select(on, made[0], 0)
                    made = [b.select(on, new, old) for new, old in zip(made, state, strict=True)]
                return [*made, _put(b, row, kept, place)]

            *last, rows = b.loop([*first, rows], body, time)
            if backwards:
                rows = b.reverse(rows, [0]) if lengths is None else _reversed(b, rows, lengths)
            outputs.append(b.reshape(rows, [time, 1, batch, self.hidden]))
            for found, value in zip(finals, last, strict=True):
                found.append(b.reshape(value, [1, batch, self.hidden]))
        y = b.concatenate(outputs, 1)
        ends = [b.concatenate(found, 0) for found in finals]
        if self.batch_first:
            return [b.transpose(y, [2, 0, 1, 3]), *(b.transpose(end, [1, 0, 2]) for end in ends)]
        return [y, *ends]

    def _initial(self, number: int, direction: int, batch: int, element: str) -> Value:
        n, b = self.n, self.b
        if not n.has(number):
            return b.full(0, element, [batch, self.hidden])
        return b.at(n[number], 1 if self.batch_first else 0, direction)

    def gate(self, x: Value, gate: int, axis: int = -1) -> Value:
        axis %= x.rank
        return self.b.part(x, axis, gate * self.hidden, (gate + 1) * self.hidden)

    def recurrent(self, h: Value, r: Value) -> Value:
        return matmul_of(self.b, h, self.b.transpose(r, [1, 0]))

    def act(self, direction: int, which: int, x: Value) -> Value:
        return _activation(self.n, self.activations[direction][which], x, which)


def _reversed(b: Builder, x: Value, lengths: Value) -> Value:
    from devscope.frontends.onnx.shapes import take_along

    wide = b.broadcast_in_dim(lengths, x.shape, [1])
    place = b.iota(0, x.shape)
    turned = b.binary("subtract", b.binary("subtract", wide, 1), place)
    return take_along(b, x, b.select(b.compare("LT", place, wide), turned, place), 0)


@operator("RNN")
def rnn(n: Node) -> list[Value]:
    net, b = _Recurrence(n, 1, 1, ["Tanh"]), n.b

    def step(direction: int, x: Value, state: list[Value], r: Value, bias: Value) -> list[Value]:
        total = b.binary("add", x, net.recurrent(state[0], r))
        for part in (net.gate(bias, 0), net.gate(bias, 1)):
            total = b.binary("add", total, part)
        return [net.act(direction, 0, total)]

    return net.run(step)


@operator("GRU")
def gru(n: Node) -> list[Value]:
    net, b = _Recurrence(n, 3, 1, ["Sigmoid", "Tanh"]), n.b

    def step(direction: int, x: Value, state: list[Value], r: Value, bias: Value) -> list[Value]:
        (h,) = state
        gates: list[Value] = []
        for gate in (0, 1):
            total = b.binary("add", net.gate(x, gate), net.recurrent(h, net.gate(r, gate, 0)))
            total = b.binary("add", b.binary("add", total, net.gate(bias, gate)), net.gate(bias, gate + 3))
            gates.append(net.act(direction, 0, total))
        update, reset = gates
        own, other = net.gate(bias, 2), net.gate(bias, 5)
        if n.attr("linear_before_reset", 0):
            inner = b.binary("add", net.recurrent(h, net.gate(r, 2, 0)), other)
            inner = b.binary("add", b.binary("multiply", reset, inner), own)
        else:
            inner = net.recurrent(b.binary("multiply", reset, h), net.gate(r, 2, 0))
            inner = b.binary("add", b.binary("add", inner, other), own)
        new = net.act(direction, 1, b.binary("add", net.gate(x, 2), inner))
        rest = b.binary("subtract", b.like(1, update), update)
        return [b.binary("add", b.binary("multiply", rest, new), b.binary("multiply", update, h))]

    return net.run(step)


@operator("LSTM")
def lstm(n: Node) -> list[Value]:
    net, b = _Recurrence(n, 4, 2, ["Sigmoid", "Tanh", "Tanh"]), n.b
    if n.attr("input_forget", 0):
        raise Refused("LSTM with input_forget")

    def step(direction: int, x: Value, state: list[Value], r: Value, bias: Value) -> list[Value]:
        h, c = state
        total = b.binary("add", x, net.recurrent(h, r))
        total = b.binary("add", total, b.part(bias, 0, 0, 4 * net.hidden))
        total = b.binary("add", total, b.part(bias, 0, 4 * net.hidden, 8 * net.hidden))
        peep = b.at(n[7], 0, direction) if n.has(7) else None

        def seen(gate: int, number: int, cell: Value) -> Value:
            found = net.gate(total, gate)
            if peep is None:
                return found
            return b.binary("add", found, b.binary("multiply", net.gate(peep, number), cell))

        enter = net.act(direction, 0, seen(0, 0, c))
        forget = net.act(direction, 0, seen(2, 2, c))
        new = net.act(direction, 1, net.gate(total, 3))
        cell = b.binary("add", b.binary("multiply", forget, c), b.binary("multiply", enter, new))
        leave = net.act(direction, 0, seen(1, 1, cell))
        return [b.binary("multiply", leave, net.act(direction, 2, cell)), cell]

    return net.run(step)


# Fourier transforms: ONNX keeps real and imaginary parts in the last dimension.


@operator("DFT")
def dft(n: Node) -> Value:
    x = n[0]
    if n.opset >= 20:
        axis = n.integers(2, "axis")[0] if n.has(2) and n.known(2) is not None else -2 if not n.has(2) else None
        if axis is None:
            return _dft_at_run_time(n)
    else:
        axis = n.attr("axis", 1)
    return _dft_along(n, x, axis % x.rank)


def _dft_at_run_time(n: Node) -> Value:
    """An axis computed at run time: of those that give the declared shape, the one that is asked for."""
    b, x, shape = n.b, n[0], n.declared_shape()
    asked = b.reshape(b.convert(n[2], "i64"), [])
    asked = b.select(b.compare("LT", asked, 0), b.binary("add", asked, x.rank), asked)
    result: Value | None = None
    for axis in range(x.rank - 1):
        try:
            made = _dft_along(n, x, axis)
        except Refused:
            continue
        if made.shape == shape:
            result = made if result is None else b.select(b.compare("EQ", asked, axis), made, result)
    if result is None:
        raise Refused("DFT whose axis, computed at run time, fits no declared shape")
    return result


def _dft_along(n: Node, x: Value, axis: int) -> Value:
    b, inverse, half = n.b, bool(n.attr("inverse", 0)), bool(n.attr("onesided", 0))
    length = 2 * (x.shape[axis] - 1) if inverse and half else x.shape[axis]
    if n.has(1):
        known = n.known(1)
        if known is not None:
            length = int(np.asarray(known).reshape(-1)[0])
        elif inverse or not half:
            length = n.declared_shape()[axis]
        else:
            raise Refused("DFT whose length is computed at run time, of one side")
    taken = length // 2 + 1 if inverse and half else length
    if taken < x.shape[axis]:
        x = b.part(x, axis, 0, taken)
    elif taken > x.shape[axis]:
        high = [0] * x.rank
        high[axis] = taken - x.shape[axis]
        x = b.pad(x, 0, [0] * x.rank, high)
    return fourier(b, x, axis, inverse, half, length)


def fourier(b: Builder, x: Value, axis: int, inverse: bool, half: bool, length: int) -> Value:
    """``stablehlo.fft`` along ``axis``. ``x`` has one or two parts in its last dimension, real and imaginary.

    ``half``: what comes out, or goes in if it is the inverse, are the first ``length // 2 + 1`` frequencies of real
    numbers. The result has two parts, or one, those numbers, if it is such an inverse.
    """
    if x.size == 0 or length == 0:
        raise Refused("a Fourier transform of no elements")
    wide = x if x.element in ("f32", "f64") else b.convert(x, "f32")
    last, element = x.rank - 1, wide.element
    order = [*(a for a in range(last) if a != axis), axis]
    parts = [b.transpose(b.at(wide, last, k), order) for k in range(x.shape[last])]
    whole = f"complex<{element}>"
    given, made = parts[0], [*parts[0].shape[:-1], length]
    real = len(parts) == 1 and not inverse and half
    if not real:
        imaginary = parts[1] if len(parts) == 2 else b.like(0, given)
        to = tensor_type(whole, given.shape)
        types = f"({given.type}, {imaginary.type}) -> {to}"
        given = b.op(f"stablehlo.complex {given.name}, {imaginary.name} : {types}", whole, given.shape)
    kind = "RFFT" if real else "IRFFT" if inverse and half else "IFFT" if inverse else "FFT"
    if real:
        made[-1] = length // 2 + 1
    result_element = element if kind == "IRFFT" else whole
    text = f"stablehlo.fft {given.name}, type = {kind}, length = [{length}] : ({given.type}) -> "
    result = b.op(text + tensor_type(result_element, made), result_element, made)
    if kind == "IRFFT":
        found = [result]
    else:
        if half and not real:  # of complex numbers
            result = b.part(result, result.rank - 1, 0, length // 2 + 1)
        cells = tensor_type(element, result.shape)
        found = [
            b.op(f"stablehlo.{name} {result.name} : ({result.type}) -> {cells}", element, result.shape)
            for name in ("real", "imag")
        ]
    back = np.argsort(order).tolist()
    found = [b.transpose(b.convert(part, x.element), back) for part in found]
    return b.concatenate([b.reshape(part, [*part.shape, 1]) for part in found], last)


@operator("STFT")
def stft(n: Node) -> Value:
    b, x = n.b, n[0]
    if is_complex(x.element):
        raise Refused("STFT of complex numbers")
    shape = n.declared_shape()
    window = n.get(2)
    half = bool(n.attr("onesided", 1))
    known = n.known(3)
    if window is not None:
        length = window.shape[0]
    elif known is not None:
        length = int(np.asarray(known).reshape(-1)[0])
    else:
        length = shape[2] if not half else (shape[2] - 1) * 2
    frames = shape[1]
    step = b.reshape(b.convert(n[1], "i64"), [])
    starts = b.binary("multiply", b.iota(0, [frames, length]), step)
    pieces = b.take(x, b.binary("add", starts, b.iota(1, [frames, length])), 1)
    if pieces.rank == 3:
        pieces = b.reshape(pieces, [*pieces.shape, 1])
    if window is not None:
        pieces = b.binary("multiply", pieces, b.reshape(window, [length, 1]))
    return fourier(b, pieces, 2, False, half, length)
