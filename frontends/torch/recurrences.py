"""Recurrent networks (``nn.LSTM``, ``nn.GRU``, ``nn.RNN``) as loops, whose times may be any number.

What is given is multiplied for all times at once, in front of the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._higher_order_ops.scan import scan_op

_Tensor = torch.Tensor
_FEW = 16
"""Times that PyTorch writes out, if they are known: what each of them is given is known, too."""


def lstm(x: _Tensor, state: Sequence[_Tensor], w: Sequence[_Tensor]) -> list[_Tensor]:
    h, c = state
    i, f, g, o = (x + h @ w[1] + w[0]).chunk(4, -1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    h = o.sigmoid() * c.tanh()
    return [h @ w[2] if len(w) > 2 else h, c]


def gru(x: _Tensor, state: Sequence[_Tensor], w: Sequence[_Tensor]) -> list[_Tensor]:
    (h,) = state
    r, z, n = x.chunk(3, -1)
    hr, hz, hn = (h @ w[1] + w[0]).chunk(3, -1)
    z = (z + hz).sigmoid()
    return [(1 - z) * (n + (r + hr).sigmoid() * hn).tanh() + z * h]


def simple(activation: Callable[[_Tensor], _Tensor]) -> Callable[..., list[_Tensor]]:
    def step(x: _Tensor, state: Sequence[_Tensor], w: Sequence[_Tensor]) -> list[_Tensor]:
        return [activation(x + state[0] @ w[1] + w[0])]

    return step


def _along(
    step: Callable[..., list[_Tensor]],
    rows: Sequence[_Tensor],
    state: Sequence[_Tensor],
    weights: Sequence[_Tensor],
    backwards: bool,
) -> tuple[_Tensor, list[_Tensor]]:
    """All outputs of ``step`` and the last state; ``rows``: for all times, what is given, and which go on.

    A ``scan`` stays a loop, whose times may be any number.
    """

    def one(*given: _Tensor) -> list[_Tensor]:
        now, row = given[: len(state)], given[len(state) :][: len(rows)]
        found = step(row[0], now, given[len(state) + len(rows) :])
        if len(rows) == 1:
            return [*found, found[0].clone()]
        found = [torch.where(row[1], new, old) for new, old in zip(found, now, strict=True)]
        return [*found, torch.where(row[1], found[0], 0.0)]

    if backwards:
        rows = [each.flip(0) for each in rows]
    *last, outputs = scan_op(one, [each.clone() for each in state], list(rows), list(weights))
    return outputs.flip(0) if backwards else outputs, last


def layers_of(
    step: Callable[..., list[_Tensor]],
    x: _Tensor,
    goes_on: Sequence[_Tensor],
    state: Any,
    params: Sequence[_Tensor],
    has_biases: bool,
    layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
) -> tuple[_Tensor, ...]:
    """What the last layer gives at all times, and the last state of all; ``goes_on``: of packed sequences."""
    states = [state] if isinstance(state, torch.Tensor) else list(state)
    directions = 2 if bidirectional else 1
    per = len(params) // (layers * directions)
    ends: list[list[_Tensor]] = [[] for _ in states]
    for layer in range(layers):
        if layer and dropout and train:
            x = torch.nn.functional.dropout(x, dropout)
        sides: list[_Tensor] = []
        for direction in range(directions):
            number = layer * directions + direction
            own = params[number * per : (number + 1) * per]
            first, *others = [*own[:2], *own[4 if has_biases else 2 :]]
            given = x @ first.mT
            bias = x.new_zeros(own[1].shape[0])
            if has_biases:
                given, bias = given + own[2], own[3]
            weights = [bias, *(each.mT.contiguous() for each in others)]
            now = [one[number] for one in states]
            outputs, last = _along(step, [given, *goes_on], now, weights, bool(direction))
            sides.append(outputs)
            for end, found in zip(ends, last, strict=True):
                end.append(found)
        x = torch.cat(sides, -1)
    return x, *[torch.stack(end) for end in ends]


def of_padded(step: Callable[..., list[_Tensor]], function: Any) -> Callable[..., Any]:
    """Of sequences of few times, PyTorch writes all times out."""

    def run(x: _Tensor, *others: Any) -> Any:
        *known, batch_first = others
        if isinstance(others[0], torch.Tensor) and not others[0].is_floating_point():
            return function(x, *others)  # lengths of packed sequences that the trace has not seen
        times: Any = x.shape[1 if batch_first else 0]
        if isinstance(times, int) and times <= _FEW:
            return function(x, *others)
        outputs, *last = layers_of(step, x.transpose(0, 1) if batch_first else x, [], *known)
        return outputs.transpose(0, 1) if batch_first else outputs, *last

    return run
