"""Packed sequences (``torch.nn.utils.rnn``) as padded ones: how many of them go on at a time depends on data.

In place of the rows of all times, one after the other, are those of the padded tensor, times x sequences.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from devscope.frontends.torch.matrix_operations import require
from devscope.frontends.torch.recurrences import gru, layers_of, lstm, of_padded, simple

_Tensor = torch.Tensor


class Packed:
    """What a trace has packed, by identity of the numbers of rows at each time.

    Of each, how many times and sequences there are, and the lengths of these.
    """

    def __init__(self) -> None:
        self._known: list[tuple[_Tensor, int, int, _Tensor]] = []
        self._rows: list[tuple[_Tensor, _Tensor]] = []

    def of(self, counts: Any) -> tuple[int, int, _Tensor] | None:
        return next((found[1:] for found in self._known if found[0] is counts), None)

    def pack(self, x: _Tensor, lengths: _Tensor, batch_first: bool) -> tuple[_Tensor, _Tensor]:
        x = x.transpose(0, 1) if batch_first else x
        lengths = lengths.to(torch.int64).clone()
        counts = _goes_on(x.shape[0], lengths, 2).sum(1)
        self._known.append((counts, x.shape[0], x.shape[1], lengths))
        return self.join(x), counts

    def join(self, x: _Tensor) -> _Tensor:
        """All rows; how a copy stands in memory does not depend on how many there are."""
        found = x.clone(memory_format=torch.contiguous_format).view(x.shape[0] * x.shape[1], *x.shape[2:])
        self._rows.append((found, x))
        return found

    def apart(self, data: _Tensor, times: int, count: int) -> _Tensor:
        """Of rows, times x sequences: PyTorch does not take these apart where a size is dynamic."""
        found = next((x for rows, x in self._rows if rows is data), None)
        return data.unflatten(0, (times, count)) if found is None else found

    def pad(
        self, data: _Tensor, counts: _Tensor, batch_first: bool, padding: Any, total: int | None = None
    ) -> tuple[_Tensor, _Tensor]:
        """Without ``total``, PyTorch's is as long as the longest sequence: here, that is as long as the tensor."""
        times, count, lengths = self.of(counts) or (0, 0, counts)
        x = self.apart(data, times, count)
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


def _of_packed(step: Callable[..., list[_Tensor]]) -> Callable[..., Any]:
    def run(packed: Packed, data: _Tensor, counts: _Tensor, *others: Any) -> Any:
        times, count, lengths = packed.of(counts) or (0, 0, counts)
        x = packed.apart(data, times, count)
        outputs, *last = layers_of(step, x, [_goes_on(times, lengths, 3)], *others)
        return packed.join(outputs), *last

    return run


_functions: Any = vars(torch)["_C"]._VariableFunctions
_STEPS = {
    _functions.lstm: lstm,
    _functions.gru: gru,
    _functions.rnn_tanh: simple(torch.tanh),
    _functions.rnn_relu: simple(torch.relu),
}
RECURRENT: dict[Any, Callable[..., Any]] = {function: _of_packed(step) for function, step in _STEPS.items()}
"""Functions of packed sequences, which come with `Packed` here."""

PADDED: dict[Any, Callable[..., Any]] = {function: of_padded(step, function) for function, step in _STEPS.items()}
"""Their other forms."""

PACK, PAD = _functions._pack_padded_sequence, _functions._pad_packed_sequence
