"""Packed sequences (``torch.nn.utils.rnn``) as padded ones: how many of them go on at a time depends on data.

In place of the rows of all times, one after the other, are those of the padded tensor, times x sequences; in place
of the number of rows at each time, the lengths of the sequences, which only what is here looks at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from devscope.frontends.torch.matrix_operations import require

_Tensor = torch.Tensor


class Packed:
    """The lengths that a trace has seen, by identity, with how many times and sequences there are."""

    def __init__(self) -> None:
        self._known: list[tuple[_Tensor, int, int]] = []

    def of(self, lengths: Any) -> tuple[int, int] | None:
        return next((found[1:] for found in self._known if found[0] is lengths), None)

    def pack(self, x: _Tensor, lengths: _Tensor, batch_first: bool) -> tuple[_Tensor, _Tensor]:
        x = x.transpose(0, 1) if batch_first else x
        lengths = lengths.to(torch.int64).clone()
        self._known.append((lengths, x.shape[0], x.shape[1]))
        return x.flatten(0, 1), lengths

    def pad(
        self, data: _Tensor, lengths: _Tensor, batch_first: bool, padding: Any, total: int | None = None
    ) -> tuple[_Tensor, _Tensor]:
        """Without ``total``, PyTorch's is as long as the longest sequence: here, that is as long as the tensor."""
        times, count = self.of(lengths) or (0, 0)
        x = data.unflatten(0, (times, count))
        x = torch.where(_goes_on(times, lengths, x.dim()), x, padding)
        if total is None or total < 0:
            x = require((lengths == times).any(), x)
        elif total > times:
            more = x.new_full([total - times, *x.shape[1:]], padding)
            x = torch.cat([x, more])
        return x.transpose(0, 1) if batch_first else x, lengths


def _goes_on(times: int, lengths: _Tensor, rank: int) -> _Tensor:
    goes_on = torch.arange(times)[:, None] < lengths
    return goes_on.reshape([*goes_on.shape, *[1] * (rank - 2)])


def _lstm(x: _Tensor, state: Sequence[_Tensor], w: Sequence[_Tensor], bias: Any) -> list[_Tensor]:
    h, c = state
    i, f, g, o = (x + h @ w[1].mT + bias[1]).chunk(4, -1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    h = o.sigmoid() * c.tanh()
    return [h @ w[2].mT if len(w) > 2 else h, c]


def _gru(x: _Tensor, state: Sequence[_Tensor], w: Sequence[_Tensor], bias: Any) -> list[_Tensor]:
    (h,) = state
    r, z, n = x.chunk(3, -1)
    hr, hz, hn = (h @ w[1].mT + bias[1]).chunk(3, -1)
    z = (z + hz).sigmoid()
    return [(1 - z) * (n + (r + hr).sigmoid() * hn).tanh() + z * h]


def _simple(activation: Callable[[_Tensor], _Tensor]) -> Callable[..., list[_Tensor]]:
    def step(x: _Tensor, state: Sequence[_Tensor], w: Sequence[_Tensor], bias: Any) -> list[_Tensor]:
        return [activation(x + state[0] @ w[1].mT + bias[1])]

    return step


def _recurrent(step: Callable[..., list[_Tensor]]) -> Callable[..., Any]:
    def run(
        packed: Packed,
        data: _Tensor,
        lengths: _Tensor,
        state: Any,
        params: Sequence[_Tensor],
        has_biases: bool,
        layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
    ) -> Any:
        times, count = packed.of(lengths) or (0, 0)
        states = [state] if isinstance(state, torch.Tensor) else list(state)
        x = data.unflatten(0, (times, count))
        goes_on = _goes_on(times, lengths, 3)
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
                bias = own[2:4] if has_biases else (0.0, 0.0)
                weights = [*own[:2], *own[4 if has_biases else 2 :]]
                given = x @ weights[0].mT + bias[0]
                now = [one[number] for one in states]
                rows: list[_Tensor] = []
                for time in reversed(range(times)) if direction else range(times):
                    then = step(given[time], now, weights, bias)
                    now = [torch.where(goes_on[time], new, old) for new, old in zip(then, now, strict=True)]
                    rows.append(torch.where(goes_on[time], now[0], 0.0))
                sides.append(torch.stack(rows[::-1] if direction else rows))
                for end, last in zip(ends, now, strict=True):
                    end.append(last)
            x = torch.cat(sides, -1)
        return x.flatten(0, 1), *[torch.stack(end) for end in ends]

    return run


_functions: Any = vars(torch)["_C"]._VariableFunctions
RECURRENT: dict[Any, Callable[..., Any]] = {
    _functions.lstm: _recurrent(_lstm),
    _functions.gru: _recurrent(_gru),
    _functions.rnn_tanh: _recurrent(_simple(torch.tanh)),
    _functions.rnn_relu: _recurrent(_simple(torch.relu)),
}
"""Functions of packed sequences, which come with `Packed` here; their other forms are left alone."""

PACK, PAD = _functions._pack_padded_sequence, _functions._pad_packed_sequence
