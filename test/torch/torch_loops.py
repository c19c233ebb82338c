"""Loops: as many steps as data says, or as sequences are long; more of `torch_modules.MODULES`."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch._higher_order_ops import while_loop
from torch._higher_order_ops.map import map as along
from torch._higher_order_ops.scan import scan
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch_modules import floats, module

BATCH, TIMES = torch.export.Dim("batch"), torch.export.Dim("times")
ANY_SIZE = {"x": {0: BATCH, 1: TIMES}}


@module(floats(2, 5, 4), dynamic=ANY_SIZE, others=[(floats(3, 9, 4),), (floats(1, 1, 4),)])
class RecurrentAnyLength(nn.Module):
    """All kinds, of any number and length of sequences."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(4, 6, bidirectional=True, proj_size=3, batch_first=True)
        self.gru = nn.GRU(6, 5, num_layers=2)
        self.rnn = nn.RNN(5, 4, nonlinearity="relu", bias=False)

    def forward(self, x: Any) -> Any:
        x, state = self.lstm(x)
        x, last = self.gru(x.transpose(0, 1))
        return self.rnn(x), state, last


@module(floats(2, 40, 3))
class LongRecurrence(nn.Module):
    """Of a known length, but too long to be written out."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(3, 4, batch_first=True)

    def forward(self, x: Any) -> Any:
        return self.lstm(x, (x.new_ones(1, 2, 4), x.new_zeros(1, 2, 4)))


@module(
    floats(3, 5, 4),
    lambda: torch.tensor([5, 2, 3]),
    dynamic={**ANY_SIZE, "lengths": {0: BATCH}},
    others=[(floats(2, 7, 4), lambda: torch.tensor([1, 7]))],
)
class PackedAnyLength(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(4, 6, bidirectional=True, batch_first=True)

    def forward(self, x: Any, lengths: Any) -> Any:
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        y, h = self.gru(packed)
        return pad_packed_sequence(y, batch_first=True, total_length=x.shape[1])[0], torch.cat([h[0], h[1]], -1)


@module(floats(3, 6), dynamic={"x": {0: BATCH}}, others=[(floats(1, 6),)])
class Equilibrium(nn.Module):
    """Steps until nothing changes; sizes are numbers of the loop, too."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 6)
        self.layer.weight.data *= 0.3

    def forward(self, x: Any) -> Any:
        def changes(step: Any, z: Any, change: Any) -> Any:
            return (step < 30) & (change > 1e-3)

        def improve(step: Any, z: Any, change: Any) -> Any:
            better = torch.cond(step < 2, lambda z: z + 1, lambda z: torch.tanh(self.layer(z) + x), (z,))
            return step + 1, better, (better - z).abs().max()

        return while_loop(changes, improve, (torch.tensor(0), torch.zeros_like(x), torch.tensor(1.0)))


@module(
    lambda: torch.rand(()) > 0.4,
    floats(2, 5, 4),
    floats(2, 4),
    dynamic={"x": {1: TIMES}},
    others=[(lambda: torch.tensor(True), floats(2, 9, 4), floats(2, 4))],
)
class Scans(nn.Module):
    """From both ends, one of them within a loop, which is one of two choices; and a loop that carries nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(4, 4)

    def forward(self, chosen: Any, x: Any, h: Any) -> Any:
        def step(h: Any, row: Any) -> Any:
            h = torch.sigmoid(self.gate(h)) * h + row
            return h, {"twice": h * 2, "positive": h > 0}

        def discounted(total: Any, row: Any) -> Any:
            total = row + 0.9 * total
            return total, total.clone()

        def repeated(x: Any) -> Any:
            def again(step: Any, x: Any) -> Any:
                return step + 1, scan(discounted, torch.zeros_like(x[0]), x, reverse=True)[1]

            return while_loop(lambda step, x: step < 3, again, (x.new_zeros((), dtype=torch.int64), x))[1]

        last, rows = scan(step, h, x, dim=1)
        turned = x.transpose(0, 1).contiguous()
        mapped = along(lambda row: self.gate(row).relu(), turned)
        return last, rows, torch.cond(chosen, repeated, lambda x: x + 1, (turned,)), mapped
