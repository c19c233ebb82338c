"""The models of `models.py`: networks of PyTorch with random weights, and magika's ONNX file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

NAMES = ("resnet18", "minilm", "gpt_step", "magika")


class Block(nn.Module):
    """Two convolutions beside a shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        short = [nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)]
        self.downsample = nn.Sequential(*(short if stride != 1 or inputs != outputs else []))

    def forward(self, x: Any) -> Any:
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + self.downsample(x))


class ResNet18(nn.Module):
    """Images, 1 x 3 x 224 x 224, to 1000 classes."""

    def __init__(self) -> None:
        super().__init__()
        self.begin = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU())
        self.pool = nn.MaxPool2d(3, 2, 1)
        widths = [(64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2)]
        self.layers = nn.Sequential(*(nn.Sequential(Block(*each), Block(each[1], each[1], 1)) for each in widths))
        self.end = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))

    def forward(self, x: Any) -> Any:
        return self.end(self.layers(self.pool(self.begin(x))))


class Layer(nn.Module):
    """A layer of BERT: attention with a mask, then two linear ones."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.dense = (nn.Linear(width, width) for _ in range(4))
        self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-12), nn.LayerNorm(width, eps=1e-12)
        self.inside, self.out = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Any, bias: Any) -> Any:
        batch, length, width = x.shape

        def split(y: Any) -> Any:
            return y.view(batch, length, self.heads, width // self.heads).transpose(1, 2)

        q, k, v = split(self.query(x)), split(self.key(x)), split(self.value(x))
        weights = (q @ k.transpose(-1, -2) / (width // self.heads) ** 0.5 + bias).softmax(-1)
        x = self.norm1(x + self.dense((weights @ v).transpose(1, 2).reshape(batch, length, width)))
        return self.norm2(x + self.out(F.gelu(self.inside(x))))


class MiniLM(nn.Module):
    """all-MiniLM-L6-v2 without its weights: 4 sentences of 32 tokens to normalised vectors."""

    def __init__(self, width: int = 384) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(30522, width), nn.Embedding(512, width)
        self.types = nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.layers = nn.ModuleList([Layer(width, 12) for _ in range(6)])

    def forward(self, ids: Any, mask: Any) -> Any:
        x = self.words(ids) + self.places(torch.arange(ids.shape[1])) + self.types(torch.zeros_like(ids))
        x = self.norm(x)
        bias = (1.0 - mask.float())[:, None, None, :] * -1e9
        for layer in self.layers:
            x = layer(x, bias)
        given = mask.float()[:, :, None]
        return F.normalize((x * given).sum(1) / given.sum(1).clamp(min=1e-9), dim=1)


class GPTStep(nn.Module):
    """A block of a GPT decodes one token, with keys and values of 128 before it."""

    def __init__(self, width: int = 256, heads: int = 8, length: int = 128) -> None:
        super().__init__()
        self.heads, self.length = heads, length
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Any, keys: Any, values: Any, place: Any) -> Any:
        batch, _, width = x.shape
        q, k, v = (
            y.view(batch, 1, self.heads, width // self.heads).transpose(1, 2)
            for y in self.qkv(self.norm1(x)).split(width, 2)
        )
        here = torch.arange(self.length)
        now = (here == place).view(1, 1, self.length, 1)
        keys, values = torch.where(now, k, keys), torch.where(now, v, values)
        weights = q @ keys.transpose(-1, -2) * (width // self.heads) ** -0.5
        later = (here > place).view(1, 1, 1, self.length)
        weights = weights.masked_fill(later, float("-inf")).softmax(-1)
        x = x + self.out((weights @ values).transpose(1, 2).reshape(batch, 1, width))
        return x + self.narrow(F.gelu(self.wide(self.norm2(x)))), keys, values


def network(name: str) -> tuple[Any, tuple[Any, ...]]:
    """A module and example arguments, always the same."""
    torch.manual_seed(7)
    if name == "resnet18":
        module = ResNet18()
        for each in module.modules():
            if isinstance(each, nn.BatchNorm2d) and each.running_mean is not None and each.running_var is not None:
                each.running_mean.normal_(0, 0.1)
                each.running_var.uniform_(0.5, 1.5)
        return module.eval(), (torch.randn(1, 3, 224, 224),)
    if name == "minilm":
        mask = torch.ones(4, 32, dtype=torch.int64)
        mask[0, 29:] = 0
        return MiniLM().eval(), (torch.randint(1000, 30000, (4, 32)), mask)
    caches = torch.randn(1, 8, 128, 32), torch.randn(1, 8, 128, 32)
    return GPTStep().eval(), (torch.randn(1, 1, 256), *caches, torch.tensor(5))


def magika_file() -> Path | None:
    """The ONNX model in the package, if it is installed."""
    import importlib.util

    found = importlib.util.find_spec("magika")
    places = Path(found.origin).parent.glob("models/standard_v3_*/model.onnx") if found and found.origin else []
    return next(iter(sorted(places)), None)


def magika_input() -> Any:
    return np.random.default_rng(7).integers(0, 257, (1, 2048)).astype(np.int32)
