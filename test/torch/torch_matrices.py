"""Modules with packed sequences, factors of matrices, and positions that are tensors."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch_modules import floats, module


def _one(values: list[Any]) -> Any:
    """Another one of them for each call."""
    left = iter(values * 4)
    return lambda: torch.tensor(next(left))


@module(floats(3, 7, 8), _one([[7, 4, 2], [7, 7, 1]]))
class PackedLSTM(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(8, 6, 2, batch_first=True, bidirectional=True)

    def forward(self, x: Any, lengths: Any) -> Any:
        found, (h, c) = self.lstm(pack_padded_sequence(x, lengths, batch_first=True))
        padded, lengths = pad_packed_sequence(found, batch_first=True, padding_value=-1.0)
        return padded, lengths, h, c


@module(floats(7, 3, 8), _one([[2, 7, 4], [1, 1, 6]]))
class PackedGRU(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gru, self.head = nn.GRU(8, 6), nn.Linear(6, 2)

    def forward(self, x: Any, lengths: Any) -> Any:
        found, h = self.gru(pack_padded_sequence(x, lengths, enforce_sorted=False))
        padded, _ = pad_packed_sequence(found, total_length=9)
        return padded, self.head(h[-1])


@module(floats(4, 8), _one([2, -1, 0]))
class Positions(nn.Module):
    def forward(self, x: Any, i: Any) -> Any:
        y = x.clone()
        y[i, 1:3] = 5.0
        y[:, i] = x[i, :4]
        return x[i], x[:, i], x[i, torch.tensor([0, 3])], x[torch.tensor([0, 1]), i], x[..., i, None], y


@module(floats(1, 8), _one([2, 3, 4]))
class CacheAtPosition(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.key = nn.Linear(8, 8)
        self.register_buffer("keys", torch.zeros(1, 16, 8))

    def forward(self, x: Any, place: Any) -> Any:
        self.keys[:, place] = self.key(x)
        seen = (torch.arange(16) <= place)[None, :, None]
        return (self.keys * seen).sum(1)


@module(floats(1, 2, 2, 4), _one([[2, 3], [0, 1], [-1, 4]]))
class CacheOfSeveral(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("keys", torch.zeros(1, 2, 8, 4))

    def forward(self, k: Any, places: Any) -> Any:
        self.keys[:, :, places] = k
        return F.scaled_dot_product_attention(k, self.keys, self.keys)


@module(floats(6, 6), floats(2, 5, 3))
class Factors(nn.Module):
    def forward(self, x: Any, tall: Any) -> Any:
        square = x @ x.mT + 6 * torch.eye(6)
        values, vectors = torch.linalg.eigh(square)
        u, s, v = torch.linalg.svd(tall, full_matrices=False)
        found, sides = torch.linalg.eig(x)
        return (
            torch.linalg.eigvals(x).abs().sort()[0],
            (x.to(sides.dtype) @ sides - sides * found).abs() < 1e-4,
            values,
            (vectors * values) @ vectors.mT,
            s,
            (u * s[..., None, :]) @ v,
            torch.linalg.svd(tall)[0].abs().sum((-1, -2)) * 0,
            torch.linalg.qr(tall),
            torch.linalg.qr(tall, mode="complete")[1],
            torch.linalg.slogdet(x),
            torch.logdet(square),
            torch.linalg.lu(tall),
        )


@module(floats(70, 70), floats(70, 2), floats(6, 4))
class Solved(nn.Module):
    def forward(self, x: Any, b: Any, tall: Any) -> Any:
        large = x @ x.mT / 70 + torch.eye(70)
        factor = torch.linalg.cholesky(large)
        return (
            torch.linalg.solve(large, b),
            torch.linalg.inv(large) @ b,
            torch.cholesky_solve(b, factor),
            torch.linalg.solve_triangular(factor, b, upper=False),
            torch.linalg.lstsq(tall, tall[:, :2] + 1).solution,
            torch.linalg.pinv(tall),
            torch.linalg.pinv(tall, rtol=0.5),
            torch.matrix_exp(tall[:4] * 0.5),
            torch.matrix_exp(-x @ x.mT),
            torch.linalg.matrix_rank(tall),
            torch.linalg.cond(tall),
        )


@module(
    floats(2, 16, 8),
    dynamic={"x": {0: torch.export.Dim("batch")}},
    others=[(floats(3, 16, 8),)],
)
class FourierOperator(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8, 5, dtype=torch.cfloat) * 0.1)

    def forward(self, x: Any) -> Any:
        low = torch.einsum("bim,iom->bom", torch.fft.rfft(x.mT)[..., :5], self.weight)
        out = torch.zeros(x.shape[0], 8, 9, dtype=torch.cfloat)
        return torch.fft.irfft(torch.cat([low, out[..., 5:]], -1), n=16)


@module(floats(2, 3, 13, 11), floats(1, 2, 7, 7, 7), floats(5, 4))
class FractionalPooling(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        samples = torch.rand(2, 3, 2), torch.rand(1, 2, 3)
        self.flat = nn.FractionalMaxPool2d(2, (5, 4), return_indices=True, _random_samples=samples[0])
        self.deep = nn.FractionalMaxPool3d(2, (3, 2, 1), _random_samples=samples[1])

    def forward(self, x: Any, y: Any, z: Any) -> Any:
        return *self.flat(x), self.deep(y), F.pdist(z), torch.combinations(z[0])


@module(floats(2, 3, 3), floats(2, 3, 2))
class ComplexMatrices(nn.Module):
    def forward(self, a: Any, b: Any) -> Any:
        a, b = torch.complex(a, a.mT), torch.complex(b, b.flip(-1))
        hermitian = a @ a.mH + 2 * torch.eye(3)
        (q, r), (values, vectors) = torch.linalg.qr(a), torch.linalg.eigh(hermitian)
        left, sizes, right = torch.linalg.svd(b, full_matrices=False)
        found = (
            *(torch.linalg.slogdet(a), torch.linalg.inv(a), torch.linalg.cholesky(hermitian), q @ r, q.mH @ q),
            *(
                vectors * values[:, None] @ vectors.mH,
                left * sizes[:, None] @ right,
                torch.linalg.pinv(b),
                torch.linalg.lstsq(a, b)[0],
            ),
            *(torch.linalg.matrix_exp(0.2 * a), torch.cholesky_solve(b, torch.linalg.cholesky(hermitian))),
        )
        return found, values, sizes
