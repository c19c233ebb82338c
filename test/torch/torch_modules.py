"""Modules of the shape that people write, each with example inputs: `MODULES`, by name."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


@dataclass
class Example:
    """A module, what it is compiled for, and what it is called with."""

    model: nn.Module
    calls: list[Arguments]
    """By position and by name: of the first of them is the program made, which has to do for the others, too."""
    dynamic_shapes: Any = None


MODULES: dict[str, Callable[[], Example]] = {}


def module(
    *inputs: Callable[[], Any],
    name: str = "",
    kwargs: dict[str, Callable[[], Any] | None] | None = None,
    dynamic: Any = None,
    others: Sequence[tuple[Callable[[], Any], ...]] = (),
) -> Any:
    """Register a class, or a function that makes a module, whose forward takes what ``inputs`` and ``kwargs``
    make.

    It is called with that, twice, with other values of the same shapes, and with what ``others`` make, whose
    shapes are those that ``dynamic`` (as ``dynamic_shapes`` of ``torch.export``) allows.
    """

    def register(make: Any) -> Any:
        def made() -> Example:
            torch.manual_seed(7)
            model = make()
            for part in model.modules():
                if isinstance(part, nn.modules.batchnorm._BatchNorm) and part.running_mean is not None:
                    part.running_mean.normal_(0, 0.1)
                    part.running_var.uniform_(0.5, 1.5)
            first, again = (tuple(one() for one in inputs) for _ in range(2))
            named = {key: one() if one is not None else None for key, one in (kwargs or {}).items()}
            calls = [first, first, again, *(tuple(one() for one in other) for other in others)]
            return Example(model.eval(), [(call, named) for call in calls], dynamic)

        MODULES[name or make.__name__] = made
        return make

    return register


def floats(*shape: int) -> Callable[[], Any]:
    return lambda: torch.randn(*shape)


def ints(high: int, *shape: int, low: int = 0) -> Callable[[], Any]:
    return lambda: torch.randint(low, high, shape)


def positive(*shape: int) -> Callable[[], Any]:
    return lambda: torch.rand(*shape) * 0.9 + 0.05


def bits(*shape: int) -> Callable[[], Any]:
    return lambda: torch.rand(*shape) > 0.4


def plain(make: Callable[..., Any], *inputs: Callable[[], Any], name: str) -> None:
    """A function of tensors as a module."""

    class Function(nn.Module):
        def forward(self, *arguments: Any) -> Any:
            return make(*arguments)

    module(*inputs, name=name)(Function)


# Convolutional networks.


class Basic(nn.Module):
    def __init__(self, i: int, o: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(i, o, 3, stride, 1, bias=False), nn.BatchNorm2d(o)
        self.conv2, self.bn2 = nn.Conv2d(o, o, 3, 1, 1, bias=False), nn.BatchNorm2d(o)
        self.skip = nn.Sequential(nn.Conv2d(i, o, 1, stride, bias=False), nn.BatchNorm2d(o)) if i != o else None

    def forward(self, x: Any) -> Any:
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + (x if self.skip is None else self.skip(x)))


@module(floats(1, 3, 32, 32))
class ResNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1)
        )
        self.layer1, self.layer2 = Basic(8, 8, 1), Basic(8, 16, 2)
        self.fc = nn.Linear(16, 10)

    def forward(self, x: Any) -> Any:
        return self.fc(torch.flatten(F.adaptive_avg_pool2d(self.layer2(self.layer1(self.stem(x))), 1), 1))


@module(floats(2, 3, 16, 16))
class LeNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.c1, self.c2 = nn.Conv2d(3, 6, 5), nn.Conv2d(6, 8, 3, padding="same")
        self.fc1, self.fc2 = nn.Linear(8 * 3 * 3, 20), nn.Linear(20, 10)

    def forward(self, x: Any) -> Any:
        x = F.max_pool2d(torch.tanh(self.c1(x)), 2)
        x = F.max_pool2d(F.leaky_relu(self.c2(x)), 2)
        return F.log_softmax(self.fc2(F.relu(self.fc1(x.flatten(1)))), dim=-1)


class SqueezeExcitation(nn.Module):
    def __init__(self, c: int, r: int = 4) -> None:
        super().__init__()
        self.fc1, self.fc2 = nn.Conv2d(c, c // r, 1), nn.Conv2d(c // r, c, 1)

    def forward(self, x: Any) -> Any:
        s = x.mean((2, 3), keepdim=True)
        return x * F.hardsigmoid(self.fc2(F.relu(self.fc1(s))))


@module(floats(1, 3, 24, 24))
class MobileNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.Hardswish())
        self.expand = nn.Sequential(nn.Conv2d(8, 16, 1), nn.BatchNorm2d(16), nn.ReLU6())
        self.depth = nn.Sequential(nn.Conv2d(16, 16, 5, 1, 2, groups=16), nn.BatchNorm2d(16), nn.SiLU())
        self.se, self.project = SqueezeExcitation(16), nn.Conv2d(16, 8, 1)
        self.head = nn.Linear(8, 5)

    def forward(self, x: Any) -> Any:
        x = self.stem(x)
        x = x + self.project(self.se(self.depth(self.expand(x))))
        return self.head(x.mean([2, 3]))


@module(floats(1, 4, 12, 12))
class DenseNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(nn.BatchNorm2d(4 + 3 * n), nn.ReLU(), nn.Conv2d(4 + 3 * n, 3, 3, padding=1))
            for n in range(3)
        )
        self.down = nn.Sequential(nn.Conv2d(13, 6, 1), nn.AvgPool2d(2))

    def forward(self, x: Any) -> Any:
        found = [x]
        for layer in self.layers:
            found.append(layer(torch.cat(found, 1)))
        return self.down(torch.cat(found, 1))


@module(floats(1, 3, 16, 16))
class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.d1, self.d2 = self.block(3, 8), self.block(8, 16)
        self.middle = self.block(16, 16)
        self.up2, self.up1 = nn.ConvTranspose2d(16, 16, 2, 2), nn.Upsample(scale_factor=2, mode="bilinear")
        self.u2, self.u1 = self.block(32, 8), self.block(16, 8)
        self.out = nn.Conv2d(8, 2, 1)

    def block(self, i: int, o: int) -> Any:
        return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.GroupNorm(2, o), nn.GELU())

    def forward(self, x: Any) -> Any:
        a = self.d1(x)
        b = self.d2(F.max_pool2d(a, 2))
        m = self.middle(F.max_pool2d(b, 2))
        y = self.u2(torch.cat([self.up2(m), b], 1))
        return torch.sigmoid(self.out(self.u1(torch.cat([self.up1(y), a], 1))))


@module(floats(2, 1, 16, 16))
class VariationalAutoencoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Sequential(
            nn.Conv2d(1, 4, 4, 2, 1), nn.ReLU(), nn.Conv2d(4, 8, 4, 2, 1), nn.ReLU(), nn.Flatten()
        )
        self.mean, self.var, self.back = nn.Linear(128, 6), nn.Linear(128, 6), nn.Linear(6, 128)
        self.decode = nn.Sequential(
            nn.Unflatten(1, (8, 4, 4)),
            nn.ConvTranspose2d(8, 4, 4, 2, 1),
            nn.ReLU(),
            nn.ConvTranspose2d(4, 1, 3, 2, 1, output_padding=1),
        )

    def forward(self, x: Any) -> Any:
        h = self.encode(x)
        mean, log_var = self.mean(h), self.var(h)
        out = torch.sigmoid(self.decode(self.back(mean + 0.1 * torch.exp(0.5 * log_var))))
        kl = -0.5 * torch.sum(1 + log_var - mean.pow(2) - log_var.exp())
        return {"out": out, "loss": F.mse_loss(out, x) + kl, "mean": mean}


module(floats(1, 2, 6, 8, 8), name="Conv3d")(
    lambda: nn.Sequential(
        nn.Conv3d(2, 4, 3, padding=1), nn.BatchNorm3d(4), nn.ReLU(), nn.MaxPool3d(2), nn.Conv3d(4, 2, (1, 3, 3))
    )
)
module(floats(1, 4, 5, 6), name="TransposedConvolutions")(
    lambda: nn.Sequential(
        nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2),
        nn.ELU(),
        nn.ConvTranspose2d(6, 3, 4, stride=(1, 2), dilation=2),
    )
)
module(floats(2, 3, 10), name="TransposedConvolution1d")(lambda: nn.ConvTranspose1d(3, 5, 4, stride=2, padding=1))
module(floats(1, 2, 3, 4, 5), name="TransposedConvolution3d")(
    lambda: nn.ConvTranspose3d(2, 3, 3, stride=2, padding=1)
)
module(floats(1, 4, 16, 16), name="DilatedAndGrouped")(
    lambda: nn.Sequential(
        nn.Conv2d(4, 8, 3, dilation=2, groups=4), nn.Mish(), nn.Conv2d(8, 4, (1, 5), (2, 1), (0, 2))
    )
)
module(floats(1, 3, 8, 8), name="PaddingModes")(
    lambda: nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1, padding_mode="reflect"),
        nn.ReplicationPad2d((1, 0, 2, 1)),
        nn.ConstantPad2d((1, 1, 0, 2), 0.5),
        nn.Conv2d(4, 2, 3, padding=1, padding_mode="circular"),
        nn.ZeroPad2d(1),
    )
)


@module(floats(2, 3, 20))
class TemporalConvolutions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv1d(3 if n == 0 else 6, 6, 3, dilation=2**n) for n in range(3))
        self.skip = nn.Conv1d(3, 6, 1)

    def forward(self, x: Any) -> Any:
        y = x
        for n, layer in enumerate(self.layers):
            y = F.relu(layer(F.pad(y, (2 * 2**n, 0))))
        return (y + self.skip(x))[:, :, -1]


# Recurrent networks.
module(floats(2, 6, 5), name="LSTM")(lambda: nn.LSTM(5, 7, batch_first=True))
module(floats(6, 2, 5), floats(2, 2, 7), name="GRU")(lambda: nn.GRU(5, 7, num_layers=2))
module(floats(5, 2, 4), name="BidirectionalLSTM")(lambda: nn.LSTM(4, 3, num_layers=2, bidirectional=True))
module(floats(2, 6, 5), name="ElmanRNN")(lambda: nn.RNN(5, 4, nonlinearity="relu", batch_first=True))


@module(floats(5, 2, 4))
class Cells(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = nn.LSTMCell(4, 6), nn.GRUCell(6, 6), nn.RNNCell(6, 3)

    def forward(self, x: Any) -> Any:
        h, c = torch.zeros(2, 6), torch.zeros(2, 6)
        g, r, out = torch.zeros(2, 6), torch.zeros(2, 3), []
        for step in x:
            h, c = self.a(step, (h, c))
            g = self.b(h, g)
            r = self.c(g, r)
            out.append(r)
        return torch.stack(out), (h, c)


@module(ints(30, 2, 7))
class TextClassifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(30, 8, padding_idx=0)
        self.rnn = nn.GRU(8, 6, batch_first=True, bidirectional=True)
        self.attend, self.out = nn.Linear(12, 1), nn.Linear(12, 3)

    def forward(self, ids: Any) -> Any:
        h, _ = self.rnn(self.words(ids))
        scores = self.attend(h).squeeze(-1).masked_fill(ids == 0, float("-inf"))
        return self.out((h * F.softmax(scores, 1).unsqueeze(-1)).sum(1))


@module(floats(2, 10, 6))
class SelectiveScan(nn.Module):
    """As Mamba's: a gated linear recurrence over time."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.out = nn.Linear(6, 16), nn.Linear(8, 6)
        self.conv = nn.Conv1d(8, 8, 4, groups=8, padding=3)
        self.b, self.c, self.dt = nn.Linear(8, 4), nn.Linear(8, 4), nn.Linear(8, 8)
        self.a = nn.Parameter(torch.log(torch.arange(1.0, 5.0)).repeat(8, 1))
        self.d = nn.Parameter(torch.ones(8))

    def forward(self, x: Any) -> Any:
        u, z = self.inner(x).chunk(2, -1)
        u = F.silu(self.conv(u.transpose(1, 2))[..., : x.shape[1]].transpose(1, 2))
        b, c, dt = self.b(u), self.c(u), F.softplus(self.dt(u))
        a = torch.exp(dt.unsqueeze(-1) * -torch.exp(self.a))
        state, ys = torch.zeros(x.shape[0], 8, 4), []
        for t in range(x.shape[1]):
            state = a[:, t] * state + (dt[:, t] * u[:, t]).unsqueeze(-1) * b[:, t].unsqueeze(1)
            ys.append((state * c[:, t].unsqueeze(1)).sum(-1))
        return self.out((torch.stack(ys, 1) + u * self.d) * F.silu(z))


# Transformers.


class Attention(nn.Module):
    def __init__(self, c: int, heads: int, causal: bool = False) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv, self.out = nn.Linear(c, 3 * c), nn.Linear(c, c)

    def forward(self, x: Any, mask: Any = None) -> Any:
        b, t, c = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=self.causal)
        return self.out(y.transpose(1, 2).reshape(b, t, c))


class Block(nn.Module):
    def __init__(self, c: int, heads: int, causal: bool = False) -> None:
        super().__init__()
        self.n1, self.n2, self.attention = nn.LayerNorm(c), nn.LayerNorm(c), Attention(c, heads, causal)
        self.mlp = nn.Sequential(nn.Linear(c, 4 * c), nn.GELU(), nn.Linear(4 * c, c), nn.Dropout(0.1))

    def forward(self, x: Any, mask: Any = None) -> Any:
        x = x + self.attention(self.n1(x), mask)
        return x + self.mlp(self.n2(x))


@module(ints(50, 2, 9))
class GPT(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(50, 16), nn.Embedding(12, 16)
        self.blocks = nn.ModuleList(Block(16, 4, causal=True) for _ in range(2))
        self.norm, self.head = nn.LayerNorm(16), nn.Linear(16, 50, bias=False)
        self.head.weight = self.words.weight

    def forward(self, ids: Any) -> Any:
        x = self.words(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


@module(ints(40, 2, 8), lambda: torch.tensor([[1] * 8, [1] * 5 + [0] * 3]))
class BERT(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.places, self.types = nn.Embedding(40, 12), nn.Embedding(16, 12), nn.Embedding(2, 12)
        self.norm = nn.LayerNorm(12, eps=1e-12)
        self.blocks = nn.ModuleList(Block(12, 3) for _ in range(2))
        self.pool = nn.Linear(12, 12)

    def forward(self, ids: Any, mask: Any) -> Any:
        x = self.norm(self.words(ids) + self.places.weight[: ids.shape[1]] + self.types(torch.zeros_like(ids)))
        bias = (1.0 - mask[:, None, None, :].float()) * torch.finfo(torch.float32).min
        for block in self.blocks:
            x = block(x, bias)
        weights = mask.unsqueeze(-1).float()
        mean = (x * weights).sum(1) / weights.sum(1).clamp(min=1e-9)
        return torch.tanh(self.pool(x[:, 0])), F.normalize(mean, p=2, dim=1)


@module(floats(1, 3, 16, 16))
class ViT(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 12, 4, 4)
        self.cls, self.places = nn.Parameter(torch.randn(1, 1, 12)), nn.Parameter(torch.randn(1, 17, 12))
        self.block, self.head = Block(12, 3), nn.Linear(12, 5)

    def forward(self, x: Any) -> Any:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], 1) + self.places
        return self.head(self.block(x)[:, 0])


module(floats(2, 6, 8), name="EncoderLayer")(lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True))
module(floats(5, 2, 8), floats(7, 2, 8), name="DecoderLayer")(
    lambda: nn.TransformerDecoderLayer(8, 2, 16, norm_first=True, activation="gelu")
)
module(floats(2, 4, 8), floats(2, 6, 8), floats(2, 6, 8), name="MultiheadAttention")(
    lambda: nn.MultiheadAttention(8, 4, batch_first=True)
)
module(floats(4, 2, 8), floats(3, 2, 8), name="WholeTransformer")(lambda: nn.Transformer(8, 2, 1, 1, 16))


@module(floats(1, 6, 16))
class Llama(nn.Module):
    """Rotary embeddings, RMS norms, grouped queries, gated units."""

    def __init__(self) -> None:
        super().__init__()
        self.n1, self.n2 = nn.RMSNorm(16), nn.RMSNorm(16, eps=1e-5)
        self.q, self.k, self.v = nn.Linear(16, 16, False), nn.Linear(16, 8, False), nn.Linear(16, 8, False)
        self.o, self.gate, self.up = nn.Linear(16, 16, False), nn.Linear(16, 24, False), nn.Linear(16, 24, False)
        self.down = nn.Linear(24, 16, False)
        self.register_buffer("rates", 1.0 / 10000 ** (torch.arange(0, 4, 2).float() / 4), persistent=False)

    def turned(self, x: Any) -> Any:
        angles = torch.outer(torch.arange(x.shape[2]).float(), self.rates)
        cos, sin = torch.cat([angles, angles], -1).cos(), torch.cat([angles, angles], -1).sin()
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat([-b, a], -1) * sin

    def forward(self, x: Any) -> Any:
        b, t, _ = x.shape
        h = self.n1(x)
        q, k, v = (p(h).view(b, t, -1, 4).transpose(1, 2) for p in (self.q, self.k, self.v))
        k, v = (z.repeat_interleave(2, 1) for z in (self.turned(k), v))
        scores = self.turned(q) @ k.transpose(-1, -2) / math.sqrt(4)
        scores = scores.masked_fill(torch.triu(torch.ones(t, t, dtype=torch.bool), 1), float("-inf"))
        x = x + self.o((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, 16))
        h = self.n2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


@module(floats(1, 5, 8))
class ComplexRotary(nn.Module):
    def forward(self, x: Any) -> Any:
        b, t, c = x.shape
        rates = torch.outer(torch.arange(t).float(), 1.0 / 100 ** (torch.arange(0, c, 2).float() / c))
        turn = torch.polar(torch.ones_like(rates), rates)
        return torch.view_as_real(torch.view_as_complex(x.view(b, t, c // 2, 2)) * turn).flatten(2)


@module(floats(6, 8))
class MixtureOfExperts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(8, 4)
        self.up, self.down = nn.Parameter(torch.randn(4, 8, 12)), nn.Parameter(torch.randn(4, 12, 8))

    def forward(self, x: Any) -> Any:
        weights, chosen = torch.topk(F.softmax(self.gate(x), -1), 2)
        weights = weights / weights.sum(-1, keepdim=True)
        mask = F.one_hot(chosen, 4).to(x.dtype)
        combine = (mask * weights.unsqueeze(-1)).sum(1)
        y = torch.einsum("nd,edh->enh", x, self.up).relu()
        return torch.einsum("enh,ehd,ne->nd", y, self.down, combine)


@module(floats(1, 1, 8), floats(1, 2, 6, 4), floats(1, 2, 6, 4), lambda: torch.tensor([3]))
class CachedStep(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(8, 24)

    def forward(self, x: Any, keys: Any, values: Any, place: Any) -> Any:
        q, k, v = (z.view(1, 1, 2, 4).transpose(1, 2) for z in self.qkv(x).split(8, -1))
        keys, values = keys.index_copy(2, place, k), values.index_copy(2, place, v)
        mask = (torch.arange(6) <= place).view(1, 1, 1, 6)
        return F.scaled_dot_product_attention(q, keys, values, attn_mask=mask), keys, values


# Losses.
plain(lambda x, y: F.cross_entropy(x, y), floats(5, 7), ints(7, 5), name="CrossEntropy")
plain(
    lambda x, y: F.cross_entropy(x, y, label_smoothing=0.1, ignore_index=2, reduction="sum"),
    floats(5, 7),
    ints(7, 5),
    name="SmoothedCrossEntropy",
)
plain(
    lambda x, y, w: F.cross_entropy(x, y, weight=w),
    floats(2, 4, 3, 3),
    ints(4, 2, 3, 3),
    positive(4),
    name="WeightedCrossEntropy2d",
)
plain(lambda x, y: F.cross_entropy(x, y.softmax(-1)), floats(5, 7), floats(5, 7), name="SoftTargets")
plain(lambda x, y: F.nll_loss(F.log_softmax(x, 1), y), floats(5, 7), ints(7, 5), name="NegativeLogLikelihood")
plain(
    lambda x, y: (F.binary_cross_entropy(x, y), F.binary_cross_entropy_with_logits(x, y, pos_weight=y + 1)),
    positive(4, 3),
    positive(4, 3),
    name="BinaryCrossEntropy",
)
plain(
    lambda x, y: (F.huber_loss(x, y, delta=0.5), F.smooth_l1_loss(x, y), F.l1_loss(x, y, reduction="none")),
    floats(4, 3),
    floats(4, 3),
    name="Huber",
)
plain(
    lambda x, y: F.kl_div(x.log_softmax(1), y.log_softmax(1), reduction="batchmean", log_target=True),
    floats(4, 5),
    floats(4, 5),
    name="KullbackLeibler",
)
plain(
    lambda a, p, n: (F.triplet_margin_loss(a, p, n), F.cosine_embedding_loss(a, p, torch.tensor([1, -1, 1]))),
    floats(3, 6),
    floats(3, 6),
    floats(3, 6),
    name="Triplet",
)
plain(
    lambda x, y: (
        F.hinge_embedding_loss(x, y.sign()),
        F.soft_margin_loss(x, y.sign()),
        F.poisson_nll_loss(x, y.abs()),
    ),
    floats(3, 4),
    floats(3, 4),
    name="MarginLosses",
)
plain(
    lambda x, y: (F.multi_margin_loss(x, y), F.multi_margin_loss(x, y, p=2, reduction="sum")),
    floats(5, 4),
    ints(4, 5),
    name="MoreLosses",
)


@module(floats(4, 6), floats(4, 6))
class Contrastive(nn.Module):
    def forward(self, a: Any, b: Any) -> Any:
        a, b = F.normalize(a, dim=-1), F.normalize(b, dim=-1)
        logits = a @ b.T / 0.07
        labels = torch.arange(a.shape[0])
        return (F.cross_entropy(logits, labels) + F.cross_entropy(logits.T, labels)) / 2


# Normalisations and activations.


@module(floats(2, 6, 5, 5))
class Norms(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.b, self.g, self.i = nn.BatchNorm2d(6), nn.GroupNorm(3, 6), nn.InstanceNorm2d(6, affine=True)
        self.l, self.r = nn.LayerNorm([5, 5]), nn.RMSNorm([6, 5, 5])

    def forward(self, x: Any) -> Any:
        return (
            self.b(x),
            self.g(x),
            self.i(x),
            self.l(x),
            self.r(x),
            F.local_response_norm(x, 3),
            F.normalize(x, 1.0),
        )


module(floats(2, 4, 6), name="BatchNorm1d")(lambda: nn.Sequential(nn.BatchNorm1d(4), nn.Conv1d(4, 2, 3)))
module(floats(3, 5), name="WeightNorm")(lambda: nn.utils.parametrizations.weight_norm(nn.Linear(5, 4)))
module(floats(3, 5), name="SpectralNorm")(lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(5, 4)))
plain(
    lambda x: [
        *(
            f(x)
            for f in (F.relu6, F.elu, F.selu, F.celu, F.gelu, F.silu, F.mish, F.softplus, F.softsign, F.hardtanh)
        ),
        *(f(x) for f in (F.hardswish, F.hardsigmoid, F.logsigmoid, F.tanhshrink, F.softshrink, F.hardshrink)),
        F.glu(x, 1),
        F.prelu(x, torch.tensor([0.2])),
        F.threshold(x, 0.1, 2.0),
        F.gelu(x, approximate="tanh"),
        F.softmin(x, 0),
        F.rrelu(x),
    ],
    floats(3, 4),
    name="Activations",
)

# Poolings and interpolation.
plain(
    lambda x: (
        F.max_pool2d(x, 3, 2, 1, return_indices=True),
        F.avg_pool2d(x, 3, 2, 1, count_include_pad=False, ceil_mode=True),
        F.lp_pool2d(x.abs(), 2, 2),
    ),
    floats(1, 2, 9, 9),
    name="Poolings",
)
plain(
    lambda x: (
        F.adaptive_avg_pool2d(x, (3, 4)),
        F.adaptive_max_pool2d(x, 2),
        F.adaptive_avg_pool2d(x, (None, 1)),
        F.adaptive_avg_pool1d(x[0], 5),
    ),
    floats(1, 2, 9, 8),
    name="AdaptivePoolings",
)
plain(
    lambda x: (F.max_pool1d(x, 2), F.avg_pool1d(x, 3, 2), F.max_pool1d(x, 3, 2, dilation=2)),
    floats(2, 3, 12),
    name="Poolings1d",
)
plain(
    lambda x: (F.avg_pool3d(x, 2), F.max_pool3d(x, 2, 1), F.adaptive_avg_pool3d(x, 1)),
    floats(1, 2, 4, 5, 6),
    name="Poolings3d",
)
plain(lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2), floats(1, 2, 4, 6), name="Unpooling")
plain(
    lambda x: [
        F.interpolate(x, scale_factor=2.0),
        F.interpolate(x, size=(7, 9), mode="nearest"),
        F.interpolate(x, size=(7, 9), mode="bilinear", align_corners=True),
        F.interpolate(x, scale_factor=0.5, mode="bilinear", antialias=False),
        F.interpolate(x, size=(10, 3), mode="bicubic"),
        F.interpolate(x, size=3, mode="area"),
        F.interpolate(x[0], scale_factor=3, mode="linear"),
        F.interpolate(x, size=(7, 5), mode="nearest-exact"),
    ],
    floats(1, 2, 5, 6),
    name="Interpolations",
)
plain(
    lambda x, g: [
        F.grid_sample(x, g.tanh(), align_corners=False),
        F.grid_sample(x, g.tanh(), mode="nearest", align_corners=False),
        F.grid_sample(x, g, padding_mode="border", align_corners=True),
    ],
    floats(1, 2, 5, 6),
    floats(1, 4, 3, 2),
    name="GridSample",
)
plain(
    lambda x, t: F.grid_sample(x, F.affine_grid(t, [1, 2, 4, 4], align_corners=False), align_corners=False),
    floats(1, 2, 5, 6),
    floats(1, 2, 3),
    name="SpatialTransformer",
)
plain(
    lambda x: (F.pixel_shuffle(x, 2), F.pixel_unshuffle(x, 2), F.channel_shuffle(x, 4)),
    floats(1, 8, 4, 6),
    name="Shuffles",
)
plain(lambda x: (F.unfold(x, 3, padding=1), F.fold(F.unfold(x, 2), (5, 6), 2)), floats(1, 2, 5, 6), name="Unfold")

# Indices, order, cumulation.
plain(
    lambda x: (x.cumsum(1), x.cumprod(0), x.cummax(1), x.cummin(0), torch.logcumsumexp(x, 1)),
    floats(4, 5),
    name="Cumulations",
)
plain(
    lambda x: (x.sort(-1), x.argsort(0, descending=True), x.topk(3, 1), x.kthvalue(2, 1), x.median(1)),
    floats(4, 6),
    name="Order",
)
plain(
    lambda x, i: (x.gather(1, i), torch.take_along_dim(x, i, 1), x[i[:, 0] % 4], x.index_select(1, i[0])),
    floats(4, 5),
    ints(5, 4, 3),
    name="Gather",
)
plain(
    lambda x, i, s: (
        x.scatter(1, i, s),
        x.scatter_add(1, i, s),
        x.scatter_reduce(1, i, s, "amax"),
        x.T.scatter_reduce(-2, i.T, s.T, "prod"),
        x.scatter(-1, i, 2.5),
        x.scatter_add(1, i[:, :0], s),
        x.scatter(0, i[:2, :2] % 4, s),
        torch.stack([x, -x]).scatter_add(1, torch.stack([i % 4, -(i - 4) % 4])[:, :3], torch.stack([s, s, s])[:2]),
        x.index_add(0, i[:, 0] % 4, s[:, :1].expand(-1, 5)),
        x.index_put((torch.arange(4), i[:, 0]), s[:, 1], accumulate=True),
    ),
    floats(4, 5),
    ints(5, 4, 3),
    floats(4, 3),
    name="Scatter",
)
plain(
    lambda x, m: (
        torch.where(m, x, -x),
        x.masked_fill(m, 3.0),
        torch.tril(x),
        torch.triu(x, 1),
        x.clamp(-0.5, 0.5),
        m.logical_not() & (x > 0),
        m.any(1),
        m.all(),
        m.sum(0),
    ),
    floats(4, 5),
    bits(4, 5),
    name="Masks",
)
plain(
    lambda x: (
        x.roll(2, 1),
        x.flip([0, 1]),
        torch.rot90(x),
        x.repeat(2, 3),
        x.tile(2),
        torch.diagonal(x[:, :4]),
        torch.diag_embed(x[0]),
        x.unfold(1, 3, 2),
        torch.stack(x.unbind(1), 0),
        torch.tensor_split(x, 3, 1),
    ),
    floats(4, 6),
    name="Rearrangements",
)
plain(
    lambda x: (
        x.std(1),
        x.var(0, unbiased=False),
        x.norm(),
        x.norm(1, 0),
        torch.linalg.vector_norm(x, float("inf"), 1),
        x.logsumexp(1),
        x.prod(1),
        x.amax((0, 1)),
        x.argmax(),
        x.argmin(1),
        x.max(1),
        x.aminmax(),
        torch.cdist(x, x.flip(0)),
        torch.count_nonzero(x > 0, 1),
        x.nansum(),
        F.cosine_similarity(x, x.flip(1)),
        F.pairwise_distance(x, x.flip(1)),
    ),
    floats(4, 5),
    name="Reductions",
)
plain(
    lambda x: (
        torch.einsum("bij,bjk->bik", x, x),
        torch.bmm(x, x),
        torch.matmul(x, x[0, 0]),
        torch.baddbmm(x, x, x, beta=0.5, alpha=2),
        torch.tensordot(x, x, dims=([1, 2], [0, 1])),
        torch.outer(x[0, 0], x[1, 1]),
        torch.kron(x[0], x[1]),
        torch.cross(x[..., :3], x[..., 1:], dim=-1),
        F.bilinear(x[0], x[1], x),
    ),
    floats(4, 4, 4),
    name="Products",
)
plain(
    lambda x: (
        torch.special.erfinv(x),
        x.erf(),
        x.lgamma(),
        x.expm1(),
        x.log1p(),
        x.atan2(x + 1),
        x.frac(),
        x.round(),
        torch.sinc(x),
        x.logit(),
        x.asin(),
        x.sinh(),
        torch.fmod(x, 0.3),
        torch.remainder(-x, 0.3),
        x.trunc(),
        torch.hypot(x, x),
        x**x,
        x.float_power(2),
        torch.heaviside(x - 0.5, x),
        torch.lerp(x, -x, 0.3),
        torch.addcmul(x, x, x),
        x.digamma(),
        torch.xlogy(x, x),
        torch.copysign(x, -x),
        torch.nan_to_num(x / 0.0),
        x.isfinite(),
    ),
    positive(3, 4),
    name="Functions",
)
module(ints(20, 11), lambda: torch.tensor([0, 4, 7]), name="EmbeddingBag")(
    lambda: nn.EmbeddingBag(20, 5, mode="mean")
)
module(ints(20, 3, 4), name="EmbeddingBag2d")(lambda: nn.EmbeddingBag(20, 5, mode="sum"))
module(ints(20, 3, 4), name="EmbeddingBagMax")(lambda: nn.EmbeddingBag(20, 5, mode="max"))
plain(lambda x, y: torch.searchsorted(x.sort().values, y), floats(8), floats(2, 3), name="SearchSorted")
plain(lambda x: torch.bucketize(x, torch.tensor([-1.0, 0.0, 1.0])), floats(3, 4), name="Bucketize")
plain(lambda x: (torch.fft.rfft(x).abs(), torch.fft.fft2(x).real), floats(4, 8), name="Fourier")
plain(
    lambda x: torch.stft(x, 8, 4, window=torch.hann_window(8), return_complex=True).abs(),
    floats(1, 32),
    name="STFT",
)
plain(
    lambda x: (x * (1 + 2j)).abs() + torch.view_as_complex(torch.stack([x, x], -1)).real, floats(3), name="Complex"
)
plain(
    lambda x: (x % 3, x // 2, x << 1, x & 6, x ^ 5, x.float() / 3, x.bool(), -x),
    ints(20, 3, 4, low=-20),
    name="Integers",
)
plain(
    lambda x: (
        x.to(torch.float16) + 1,
        x.bfloat16() @ x.bfloat16().T,
        x.double().mean(),
        x.to(torch.int8),
        x.half().float(),
    ),
    floats(3, 4),
    name="Casts",
)


@module(floats(2, 4), ints(6, 2, 3), ints(2, 9, low=0))
class GraphConvolution(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.message, self.update = nn.Embedding(6, 4), nn.Linear(8, 4), nn.GRUCell(4, 4)

    def forward(self, x: Any, ids: Any, edges: Any) -> Any:
        nodes = torch.cat([x, self.embed(ids.flatten())], 0)
        source, target = edges, (edges + 3) % nodes.shape[0]
        messages = self.message(torch.cat([nodes[source], nodes[target]], -1)).relu()
        gathered = torch.zeros_like(nodes).index_add(0, target, messages)
        return self.update(gathered, nodes)


@module(floats(3, 7), ints(9, 3, 2))
class Recommender(nn.Module):
    """Wide and deep: crossed embeddings beside a perceptron."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(9, 4) for _ in range(2))
        self.deep = nn.Sequential(nn.Linear(15, 12), nn.BatchNorm1d(12), nn.PReLU(), nn.Linear(12, 1))
        self.wide = nn.Linear(7, 1)

    def forward(self, dense: Any, ids: Any) -> Any:
        found = [table(ids[:, n]) for n, table in enumerate(self.tables)]
        pairs = torch.stack(found, 1)
        second = 0.5 * (pairs.sum(1).pow(2) - pairs.pow(2).sum(1)).sum(1, keepdim=True)
        return torch.sigmoid(self.deep(torch.cat([dense, *found], 1)) + self.wide(dense) + second).squeeze(1)


@module(floats(1, 3, 16, 16))
class Detector(nn.Module):
    """A head over two scales: boxes decoded on a grid, scores by class."""

    def __init__(self) -> None:
        super().__init__()
        self.c1, self.c2 = nn.Conv2d(3, 8, 3, 2, 1), nn.Conv2d(8, 8, 3, 2, 1)
        self.lateral, self.head = nn.Conv2d(8, 8, 1), nn.Conv2d(8, 6, 1)

    def forward(self, x: Any) -> Any:
        a = F.leaky_relu(self.c1(x), 0.1)
        b = F.leaky_relu(self.c2(a), 0.1)
        boxes, scores = [], []
        for feature in (b, self.lateral(a) + F.interpolate(b, scale_factor=2, mode="nearest")):
            p = self.head(feature)
            h, w = p.shape[-2:]
            ys, xs = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
            centre = torch.stack([xs, ys]).float() + p[:, :2].sigmoid()
            boxes.append(torch.cat([centre, p[:, 2:4].exp()], 1).flatten(2))
            scores.append(p[:, 4:].sigmoid().flatten(2))
        all_boxes, all_scores = torch.cat(boxes, 2), torch.cat(scores, 2)
        best, label = all_scores.max(1)
        chosen = best.topk(5, dim=1).indices
        return all_boxes.gather(2, chosen.unsqueeze(1).expand(-1, 4, -1)), label.gather(1, chosen)


@module(floats(1, 1, 12, 12))
class Generator(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.ReflectionPad2d(3), nn.Conv2d(1, 4, 7), nn.InstanceNorm2d(4), nn.ReLU(), nn.Upsample(scale_factor=2)
        )
        self.up = nn.Sequential(
            nn.Conv2d(4, 16, 3, padding=1), nn.PixelShuffle(2), nn.PReLU(4), nn.Conv2d(4, 1, 9, padding=4)
        )

    def forward(self, x: Any) -> Any:
        return torch.tanh(self.up(self.body(x)))


@module(floats(2, 4, 8, 8), lambda: torch.tensor([3.0, 500.0]))
class Diffusion(nn.Module):
    """A step of a denoiser: sinusoidal times, feature-wise modulation, attention over pixels."""

    def __init__(self) -> None:
        super().__init__()
        self.time = nn.Sequential(nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, 16))
        self.c1, self.c2, self.norm = (
            nn.Conv2d(4, 8, 3, padding=1),
            nn.Conv2d(8, 4, 3, padding=1),
            nn.GroupNorm(4, 8),
        )
        self.qkv = nn.Conv1d(8, 24, 1)

    def forward(self, x: Any, t: Any) -> Any:
        rates = torch.exp(torch.arange(8) * -(math.log(10000.0) / 8))
        angles = t[:, None] * rates[None]
        scale, shift = self.time(torch.cat([angles.sin(), angles.cos()], -1)).chunk(2, 1)
        h = self.norm(self.c1(x)) * (1 + scale[..., None, None]) + shift[..., None, None]
        q, k, v = self.qkv(h.flatten(2)).chunk(3, 1)
        attended = torch.softmax(q.transpose(1, 2) @ k / math.sqrt(8), -1) @ v.transpose(1, 2)
        return self.c2(F.silu(h + attended.transpose(1, 2).reshape(h.shape)))
