"""Losses, normalisations, poolings, rearrangements, dtypes and control flow: more of `torch_modules.MODULES`."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations, parametrize
from torch_modules import bits, floats, ints, module, plain, positive

BATCH = torch.export.Dim("batch", min=1, max=64)

# Losses.

plain(
    lambda x, y, w: (
        *(F.cross_entropy(x, y, reduction=r) for r in ("none", "sum", "mean")),
        F.cross_entropy(x, y, weight=w, label_smoothing=0.1),
        F.cross_entropy(x, y, weight=w, ignore_index=2, reduction="sum"),
        F.cross_entropy(x, x.softmax(1), label_smoothing=0.2, reduction="none"),
        F.nll_loss(F.log_softmax(x, 1), y, weight=w, ignore_index=1),
        F.multi_margin_loss(x, y, p=2, margin=0.5, weight=w),
        F.multilabel_margin_loss(x, torch.tensor([[0, 2, -1, 1], [3, -1, 0, 0], [-1, 0, 1, 2]])),
        F.multilabel_soft_margin_loss(x, (x > 0).float(), weight=w),
    ),
    floats(3, 4),
    lambda: torch.tensor([0, 2, 3]),
    positive(4),
    name="ClassLosses",
)
plain(
    lambda x, y: (F.cross_entropy(x, y), F.cross_entropy(x, y, reduction="none", ignore_index=0)),
    floats(2, 3, 4, 5),
    ints(3, 2, 4, 5),
    name="SegmentationLosses",
)
plain(
    lambda x, y, w: (
        F.binary_cross_entropy(x, y, weight=w),
        F.binary_cross_entropy(x, y, reduction="none"),
        F.binary_cross_entropy_with_logits(x * 4 - 2, y, pos_weight=w[0], reduction="sum"),
        F.binary_cross_entropy_with_logits(x * 4 - 2, y, weight=w),
        F.kl_div(x.log(), y, reduction="batchmean"),
        F.kl_div(x.log(), y.log(), log_target=True, reduction="none"),
        F.poisson_nll_loss(x, y, log_input=False, full=True),
        F.gaussian_nll_loss(x, y, w, full=True, reduction="sum"),
        F.gaussian_nll_loss(x, y, w),
        F.soft_margin_loss(x, y.round() * 2 - 1),
        F.hinge_embedding_loss(x, y.round() * 2 - 1, margin=0.3),
    ),
    positive(3, 4),
    positive(3, 4),
    positive(3, 4),
    name="ProbabilityLosses",
)
plain(
    lambda x, y: (
        *(F.l1_loss(x, y, reduction=r) for r in ("none", "sum", "mean")),
        F.smooth_l1_loss(x, y, beta=0.5),
        F.huber_loss(x, y, delta=0.3, reduction="none"),
        F.mse_loss(x, y, reduction="sum"),
        F.cosine_embedding_loss(x, y, torch.tensor([1, -1, 1]), margin=0.1, reduction="none"),
        F.margin_ranking_loss(x[0], y[0], x[1].sign(), margin=0.2),
        F.triplet_margin_loss(x, y, x.flip(0), margin=0.7, p=1, swap=True),
        F.triplet_margin_with_distance_loss(x, y, y.flip(0), distance_function=nn.PairwiseDistance()),
    ),
    floats(3, 4),
    floats(3, 4),
    name="DistanceLosses",
)


class Dice(nn.Module):
    def forward(self, x: Any, y: Any) -> Any:
        p, t = torch.sigmoid(x).flatten(1), y.flatten(1).to(x.dtype)
        dice = 1 - (2 * (p * t).sum(1) + 1) / (p.sum(1) + t.sum(1) + 1)
        ce = F.binary_cross_entropy_with_logits(x, y.float(), reduction="none")
        focal = (0.25 * (1 - torch.exp(-ce)) ** 2 * ce).mean()
        return dice.mean() + focal


module(floats(2, 1, 6, 6), bits(2, 1, 6, 6), name="DiceAndFocal")(Dice)
module(
    lambda: torch.randn(8, 2, 5).log_softmax(2),
    ints(5, 2, 3, low=1),
    lambda: torch.tensor([8, 6]),
    lambda: torch.tensor([3, 2]),
    name="CTC",
)(lambda: nn.CTCLoss(zero_infinity=True))
module(lambda: torch.randn(6, 2, 4).log_softmax(2), name="CTCEach")(lambda: _CTC())


class _CTC(nn.Module):
    """Sizes that the program knows; repeated labels."""

    def forward(self, x: Any) -> Any:
        y = torch.tensor([[1, 1, 2], [3, 2, 2]])
        return F.ctc_loss(x, y, (6, 5), (3, 2), reduction="none"), F.ctc_loss(
            x, y, (6, 6), (2, 3), reduction="sum", blank=0
        )


# Normalisations.


class Normalisations(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.group, self.instance = nn.GroupNorm(2, 4), nn.InstanceNorm2d(4, affine=True)
        self.batch, self.layer = nn.BatchNorm2d(4), nn.LayerNorm([4, 5, 5], bias=False)
        self.one, self.rms = nn.GroupNorm(1, 4, affine=False), nn.RMSNorm(5)

    def forward(self, x: Any) -> Any:
        return (
            self.group(x),
            self.instance(x),
            self.batch(x),
            self.layer(x),
            self.one(x),
            self.rms(x),
            F.normalize(x, dim=1),
        )


module(
    floats(2, 4, 5, 5),
    dynamic=({0: BATCH},),
    others=[(floats(1, 4, 5, 5),), (floats(3, 4, 5, 5),)],
    name="NormalisationsAnyBatch",
)(Normalisations)
module(
    floats(2, 6, 8),
    dynamic=({0: BATCH, 2: torch.export.Dim("length", min=2, max=99)},),
    others=[(floats(1, 6, 5),), (floats(3, 6, 11),)],
    name="GroupNormAnyLength",
)(lambda: nn.Sequential(nn.Conv1d(6, 6, 3, padding=1), nn.GroupNorm(3, 6), nn.SiLU(), nn.BatchNorm1d(6)))
module(floats(4, 6), name="BatchNormWithoutStatistics")(lambda: nn.BatchNorm1d(6, track_running_stats=False))


@module(floats(2, 3, 9))
class Parametrized(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = parametrizations.weight_norm(nn.Conv1d(3, 4, 3), dim=0)
        self.fc = parametrizations.spectral_norm(nn.Linear(7, 5))
        self.symmetric = nn.Linear(5, 5)
        parametrize.register_parametrization(self.symmetric, "weight", Symmetric())

    def forward(self, x: Any) -> Any:
        return self.symmetric(self.fc(self.conv(x)))


class Symmetric(nn.Module):
    def forward(self, x: Any) -> Any:
        return x.triu() + x.triu(1).transpose(-1, -2)


# Poolings, samplings, rearrangements.

plain(
    lambda x: (
        F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False),
        F.avg_pool2d(x, 2, divisor_override=3),
        F.max_pool2d(x, 3, 2, 1, dilation=2, return_indices=True),
        F.lp_pool2d(x, 3, 2),
        F.adaptive_avg_pool2d(x, (3, 4)),
        F.adaptive_max_pool2d(x, (3, 4)),
        F.avg_pool1d(x[0], 3, 1, 1),
        F.max_pool1d(x[0], 3, 2, 1, ceil_mode=True),
        F.avg_pool3d(x, 2),
        F.max_pool3d(x, 2, return_indices=True),
        F.adaptive_avg_pool3d(x, (2, 3, 2)),
    ),
    floats(2, 3, 7, 8),
    name="MorePoolings",
)
plain(
    lambda x: (
        F.interpolate(x, size=(9, 5), mode="bilinear", align_corners=True),
        F.interpolate(x, scale_factor=(1.5, 2), mode="nearest"),
        F.interpolate(x, scale_factor=2, mode="nearest-exact"),
        F.interpolate(x, size=(3, 4), mode="area"),
        F.interpolate(x, size=(4, 4), mode="bilinear", antialias=True),
        F.interpolate(x, scale_factor=0.5, mode="bicubic", align_corners=False),
        F.interpolate(x[0], size=9, mode="linear"),
        F.interpolate(x[:, :, None], scale_factor=2, mode="trilinear", align_corners=True),
        F.interpolate(x, scale_factor=1.7, mode="bilinear", recompute_scale_factor=True),
    ),
    floats(1, 2, 6, 7),
    name="MoreInterpolations",
)
plain(
    lambda x, g: tuple(
        F.grid_sample(x, g, mode=m, padding_mode=p, align_corners=a)
        for m in ("bilinear", "nearest", "bicubic")
        for p in ("zeros", "border", "reflection")
        for a in (True, False)
    ),
    floats(2, 2, 5, 6),
    lambda: torch.randn(2, 3, 4, 2) * 0.9,
    name="GridSample2d",
)
plain(
    lambda x, g: tuple(
        F.grid_sample(x, g, mode=m, padding_mode=p, align_corners=a)
        for m, p, a in (
            ("bilinear", "zeros", False),
            ("nearest", "border", True),
            ("bilinear", "reflection", True),
        )
    ),
    floats(1, 2, 3, 5, 6),
    lambda: torch.randn(1, 2, 3, 4, 3) * 0.9,
    name="GridSample3d",
)
plain(lambda t: F.affine_grid(t, [1, 2, 3, 4, 5], align_corners=True), floats(1, 3, 4), name="AffineGrid3d")
plain(
    lambda x: (
        F.unfold(x, (2, 3), dilation=2, padding=1, stride=2),
        F.fold(F.unfold(x, 3, stride=2), (7, 9), 3, stride=2),
        F.pixel_shuffle(x, 2),
        F.pad(x, (1, 2, 0, 1), mode="circular"),
        F.pad(x[0], (2, 1), mode="replicate"),
        F.pad(x, (0, 3, 2, 1), mode="replicate"),
        F.pad(x, (3, 0, 1, 2), mode="reflect"),
        F.pad(x[None], (1, 1, 0, 2, 3, 1), mode="reflect"),
        F.pad(x, (-1, 1, 2, -2), value=3.0),
    ),
    floats(1, 4, 7, 9),
    name="FoldsAndPads",
)
plain(
    lambda x: torch.istft(
        torch.stft(x, 16, 4, window=torch.hann_window(16), return_complex=True),
        16,
        4,
        window=torch.hann_window(16),
        length=60,
    ),
    floats(2, 60),
    name="ISTFT",
)
plain(
    lambda x: (
        torch.ops.aten.unfold_backward(x, [2, 25], 1, 6, 4),  # windows are longer than steps
        torch.ops.aten.unfold_backward(x, [2, 40], -1, 6, 8),
        torch.ops.aten.unfold_backward(x, [11, 5], 0, 6, 5),
    ),
    floats(2, 5, 6),
    name="UnfoldBackward",
)
plain(
    lambda x: (
        torch.view_as_real(
            torch.stft(
                x,
                16,
                4,
                window=torch.hamming_window(16),
                center=True,
                pad_mode="reflect",
                normalized=True,
                return_complex=True,
            )
        ),
        torch.fft.irfft(torch.fft.rfft(x) * torch.exp(-torch.arange(31) * 0.1)),
        torch.fft.fftshift(torch.fft.fft(x).abs(), dim=-1),
        torch.fft.ifft2(torch.fft.fft2(x)).real,
        torch.fft.fftfreq(8),
        torch.fft.rfft(x, n=32, norm="ortho").angle(),
        torch.view_as_real(torch.fft.fft(x.flatten())),
    ),
    floats(2, 60),
    name="Spectra",
)
plain(
    lambda x, y: (
        (z := torch.complex(x, y)) * z.conj(),
        z.abs(),
        z.angle(),
        z.real + z.imag,
        torch.polar(x.abs(), y),
        z @ z.mT,
        z.sum(0),
        torch.view_as_real(z / (z + 1)),
        z.exp(),
        torch.einsum("ij,kj->ik", z, z),
        z.H,
        z == z,
        z[:, 1:2],
        torch.cat([z, z]),
        z.mean(),
        z.reciprocal(),
        -z,
        z * 2,
        z - 1j,
        z.sqrt().abs(),
    ),
    floats(3, 4),
    floats(3, 4),
    name="ComplexNumbers",
)

# Indices.

plain(
    lambda x, i, s: (
        x.index_put((i[0] % 4,), s[0, :1].expand(3, 5)[..., 0:5], accumulate=True),
        *(
            x.scatter_reduce(1, i, s, r, include_self=z)
            for r in ("sum", "prod", "mean", "amax", "amin")
            for z in (True, False)
        ),
        x.index_copy(0, torch.tensor([2, 0]), x[1:3]),
        x.index_fill(1, torch.tensor([0, 3]), -1.0),
        x.masked_scatter(x > 0, s.repeat(2, 2)[:4, :5]),
        x.index_reduce(0, torch.tensor([0, 2, 0]), s[:3, :1].expand(3, 5), "amax"),
        x.take(i),
        x.put(i[0], s[0]),
        x[..., [0, 2]],
        x[[1, 0], :, None][..., 1:3],
        torch.diagonal_scatter(x, s[:, 0], 0),
        torch.select_scatter(x, x[0], 0, 2),
        torch.slice_scatter(x, x[:, :2], 1, 1, 5, 2),
        torch.block_diag(x, s),
        x.diagonal(1),
    ),
    floats(4, 5),
    lambda: torch.tensor([[0, 1, 2], [3, 1, 1], [4, 4, 0], [2, 2, 2]]),
    floats(4, 3),
    name="Writes",
)
plain(
    lambda x: (
        x.cummax(0),
        x.cummin(-1),
        x.cumsum(0).cumsum(1),
        x.cumprod(1),
        torch.logcumsumexp(x, 0),
        torch.diff(x, dim=1),
        torch.trapezoid(x, dx=0.5),
        torch.cumulative_trapezoid(x, dim=0),
        torch.gradient(x, dim=1)[0],
        x.cumsum(1, dtype=torch.float64),
        (x > 0).cumsum(1),
        x.flip(1).cumsum(1).flip(1),
        x.msort(),
        x.sort(dim=0, descending=True, stable=True),
        x.topk(2, 0, largest=False, sorted=True),
        x.mode(1),
        x.quantile(0.3, dim=1),
        x.nanmean(1),
        torch.nanquantile(x, 0.5, dim=0),
        x.histc(4, -2, 2),
        x.median(),
        torch.std_mean(x, 1),
        torch.var_mean(x, 0),
        x.argsort(dim=1, stable=True),
        x.amin(1),
    ),
    floats(5, 6),
    name="CumulationsAndOrder",
)
plain(
    lambda x: (
        torch.einsum("bhid,bhjd->bhij", x, x),
        torch.einsum("...ij,...jk->...ik", x, x.mT),
        torch.einsum("bhij->bjhi", x),
        torch.einsum("bhii->bhi", x[..., :4, :4]),
        torch.einsum("bhij,h->bij", x, x[0, :, 0, 0]),
        torch.einsum("i,j->ij", x[0, 0, 0], x[0, 1, 0]),
        x.movedim(1, -1),
        x.swapaxes(0, 1),
        x.unflatten(2, (2, 2)),
        x.repeat_interleave(2, 1),
        x.repeat_interleave(torch.tensor([1, 2]), 1, output_size=3),
        torch.vander(x[0, 0, 0]),
        torch.hstack([x, x]),
        torch.dstack([x[0], x[0]]),
        torch.column_stack([x[0, 0], x[0, 1]]),
        torch.cartesian_prod(x[0, 0, 0], x[0, 1, 1]),
        torch.broadcast_to(x[:, :1], (2, 3, 4, 5)),
        torch.atleast_3d(x[0, 0]),
        x.chunk(3, -1),
        x.split([1, 3], 2),
        x.narrow(2, 1, 2),
        torch.meshgrid(x[0, 0, 0], x[0, 0, 1], indexing="xy"),
        x[0, 0, :4, :4].trace(),
        torch.linalg.multi_dot([x[0, 0], x[0, 0].T, x[0, 0]]),
        torch.linalg.matrix_power(x[0, 0, :4, :4], 3),
        torch.linalg.norm(x[0, 0]),
        torch.addmm(x[0, 0, :4, :4], x[0, 0], x[0, 0].T, beta=0.5),
        x.renorm(2, 0, 1.0),
    ),
    floats(2, 2, 4, 5),
    name="EinsumAndShapes",
)

# Bags of embeddings.


@module(ints(20, 12), lambda: torch.tensor([0, 3, 3, 9]), positive(12))
class Bags(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mean, self.sum = (
            nn.EmbeddingBag(20, 4, mode="mean", padding_idx=3),
            nn.EmbeddingBag(20, 4, mode="sum", include_last_offset=True),
        )
        self.max, self.weighted = nn.EmbeddingBag(20, 4, mode="max"), nn.EmbeddingBag(20, 4, mode="sum")

    def forward(self, ids: Any, offsets: Any, weights: Any) -> Any:
        return (
            self.mean(ids, offsets),
            self.sum(ids, torch.cat([offsets, torch.tensor([12])])),
            self.max(ids, offsets),
            self.weighted(ids, offsets, per_sample_weights=weights),
            self.weighted(ids.view(3, 4), per_sample_weights=weights.view(3, 4)),
            self.mean(ids.int().view(2, 6)),
        )


@module(lambda: [torch.randint(0, 9, (5,)) for _ in range(3)], lambda: [torch.tensor([0, 2, 4])] * 3, floats(3, 6))
class DLRM(nn.Module):
    """Bags per feature, products of pairs, a perceptron."""

    def __init__(self) -> None:
        super().__init__()
        self.emb_l = nn.ModuleList(nn.EmbeddingBag(9, 4, mode="sum", sparse=False) for _ in range(3))
        self.bot, self.top = (
            nn.Sequential(nn.Linear(6, 4), nn.ReLU()),
            nn.Sequential(nn.Linear(10, 1), nn.Sigmoid()),
        )

    def forward(self, indices: Any, offsets: Any, dense: Any) -> Any:
        x = self.bot(dense)
        ly = [emb(i, o) for emb, i, o in zip(self.emb_l, indices, offsets, strict=True)]
        t = torch.cat([x, *ly], dim=1).view(3, -1, 4)
        z = torch.bmm(t, torch.transpose(t, 1, 2))
        li, lj = torch.tril_indices(4, 4, offset=-1)
        return self.top(torch.cat([x, z[:, li, lj]], dim=1))


# Dtypes.


class Halves(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4)
        self.fc, self.ln = nn.Linear(4, 6), nn.LayerNorm(6)

    def forward(self, x: Any) -> Any:
        y = F.gelu(self.norm(self.conv(x))).mean((2, 3))
        return torch.softmax(self.ln(self.fc(y)), -1), F.max_pool2d(x, 2)


module(lambda: torch.randn(2, 3, 6, 6).half(), name="HalfModule")(lambda: Halves().half())
module(lambda: torch.randn(2, 3, 6, 6).bfloat16(), name="BFloat16Module")(lambda: Halves().bfloat16())
module(lambda: torch.randn(2, 3, 6, 6).double(), name="DoubleModule")(lambda: Halves().double())


@module(lambda: torch.randint(0, 256, (2, 8, 8, 3), dtype=torch.uint8))
class ImagePreparation(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor([0.485, 0.456, 0.406])[:, None, None])
        self.register_buffer("std", torch.tensor([0.229, 0.224, 0.225])[:, None, None])

    def forward(self, x: Any) -> Any:
        y = (x.permute(0, 3, 1, 2).float() / 255.0 - self.mean) / self.std
        gray = (y * torch.tensor([0.299, 0.587, 0.114]).view(3, 1, 1)).sum(1, keepdim=True)
        return (
            y,
            (gray * 40 + 128).clamp(0, 255).to(torch.uint8),
            x // 7,
            x >> 2,
            x.sum((1, 2)),
            255 - x,
            x.float().mean(),
        )


plain(
    lambda x, y: (
        x // y,
        x % y,
        torch.div(x, y, rounding_mode="trunc"),
        torch.div(x, y, rounding_mode="floor"),
        x.float() / y,
        x.bitwise_and(y),
        x | y,
        x ^ y,
        ~x,
        x << 1,
        x >> 1,
        x.abs(),
        x.sign(),
        x.clamp(-3, 4),
        x.sum(),
        x.prod(1),
        x.max(),
        x.argmax(1),
        x.sort(1),
        x.cumsum(0),
        (x > 0).any(0),
        (x > 0).all(1),
        torch.gcd(x, y),
        x.pow(2),
        x.int() * 3,
        x.short() + 1,
        x.to(torch.int8) * 2,
        torch.bincount(y.flatten(), minlength=9),
        torch.bincount(y.flatten(), x.flatten().float()),
        F.one_hot(y % 5, 5),
        x.eq(y),
        torch.isin(x, y),
        x.roll(1),
        x.float().round(decimals=1),
        torch.maximum(x, y),
        x.square(),
        x.true_divide(2),
    ),
    ints(20, 3, 4, low=-20),
    ints(9, 3, 4, low=1),
    name="MoreIntegers",
)

# State, arguments, control flow.


@module(floats(2, 4))
class RunningMean(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(4))
        self.register_buffer("steps", torch.tensor(0))
        self.register_buffer("history", torch.zeros(5, 4))

    def forward(self, x: Any) -> Any:
        self.steps += 1
        self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
        self.history.copy_(torch.cat([self.history[1:], x.mean(0, keepdim=True)]))
        return x - self.mean, self.steps.clone(), self.history.sum(0)


@module(
    floats(4, 3),
    lambda: {"scale": torch.tensor(1.5), "shifts": [torch.ones(3), (torch.zeros(1), torch.tensor(2))]},
    kwargs={"flag": lambda: True, "bias": floats(3)},
)
class Nested(nn.Module):
    def forward(self, x: Any, options: Any, *, flag: bool, bias: Any, unused: Any = None) -> Any:
        y = x * options["scale"] + options["shifts"][0] + options["shifts"][1][0]
        return {"y": y + bias if flag else y, "rest": (x.sum(), [options["shifts"][1][1] + 1]), "none": None}


@module(floats(3, 4), lambda: torch.tensor(True))
class Conditional(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Any, p: Any) -> Any:
        return torch.cond(p, lambda x: self.a(x).relu(), lambda x: self.b(x).sin(), (x,)), torch.cond(
            x.sum() > 0, torch.cos, torch.sin, (x,)
        )


@module(floats(3, 4), ints(6, 3))
class RandomlyNothing(nn.Module):
    """Dropouts and noise of a module that does not train."""

    def __init__(self) -> None:
        super().__init__()
        self.drops = nn.Sequential(
            nn.Dropout(0.5),
            nn.AlphaDropout(0.3),
            nn.FeatureAlphaDropout(0.2),
            nn.RReLU(),
            nn.Softshrink(),
            nn.Threshold(0.1, 20),
            nn.CELU(),
            nn.GLU(),
        )

    def forward(self, x: Any, ids: Any) -> Any:
        return (
            self.drops(x),
            F.dropout(x, 0.5, self.training),
            F.softmin(x, 1),
            F.hardtanh(x, -0.3, 0.4),
            F.one_hot(ids, 6).float() @ torch.eye(6)[:, :2],
        )


plain(
    lambda x: (
        F.relu6(x * 4),
        F.elu(x, 0.7),
        F.selu(x),
        F.hardshrink(x),
        F.tanhshrink(x),
        F.softsign(x),
        F.logsigmoid(x),
        F.mish(x),
        F.softplus(x, 2, 3),
        F.hardswish(x * 3),
        F.gelu(x, approximate="tanh"),
        F.silu(x),
        F.prelu(x, torch.tensor([0.1, 0.2, 0.3, 0.4])),
        F.glu(x, -1),
        F.log_softmax(x, 0, dtype=torch.float64),
        F.softmax(x, -1),
        torch.special.expit(x),
        torch.special.ndtr(x),
        torch.special.log_ndtr(x),
        torch.special.gammaln(x.abs()),
        torch.special.entr(x.abs()),
        torch.special.xlog1py(x, x.abs()),
        torch.erfc(x),
        torch.asinh(x),
        torch.acosh(1 + x.abs()),
        torch.atanh(x.tanh()),
        torch.logaddexp(x, -x),
        torch.logaddexp2(x, -x),
        torch.rsqrt(x.abs()),
        torch.exp2(x),
        torch.log2(x.abs()),
        torch.log10(x.abs()),
        torch.deg2rad(x),
        torch.signbit(x),
        x.sgn(),
        torch.clamp(x, min=torch.tensor(-0.2)),
        torch.clip(x, max=0.5),
        torch.floor_divide(x, 0.3),
        torch.square(x),
        torch.isclose(x, x + 1e-9),
        torch.dist(x, -x),
        torch.cosine_similarity(x, -x, 0),
        math.pi * x,
        x.isnan(),
        x.isinf().sum(),
    ),
    floats(3, 4),
    name="MoreFunctions",
)


class Graph(nn.Module):
    """Attention over edges: a softmax per node by scatter."""

    def __init__(self) -> None:
        super().__init__()
        self.lin, self.a = nn.Linear(4, 6), nn.Parameter(torch.randn(12))

    def forward(self, x: Any, edges: Any) -> Any:
        h = self.lin(x)
        source, target = edges[0], edges[1]
        score = F.leaky_relu((torch.cat([h[source], h[target]], -1) * self.a).sum(-1), 0.2)
        most = torch.full((5,), float("-inf")).scatter_reduce(0, target, score, "amax")
        e = torch.exp(score - most[target])
        total = torch.zeros(5).scatter_add(0, target, e)
        out = torch.zeros(5, 6).index_add(0, target, (e / (total[target] + 1e-9))[:, None] * h[source])
        degree = torch.zeros(5).scatter_add_(0, target, torch.ones(9))
        return out, degree.clamp(min=1).pow(-0.5)


module(floats(5, 4), ints(5, 2, 9), name="GraphAttention")(Graph)


def _distinct(x: Any, y: Any, z: Any) -> Any:
    runs = torch.unique_consecutive(x[0], return_inverse=True, return_counts=True)
    return (
        torch.unique(x, return_inverse=True, return_counts=True),
        torch.unique(y),
        torch.unique(z),
        runs,
        z.sort(),
    )


plain(
    _distinct,
    ints(6, 4, 5),
    lambda: torch.tensor([1.0, math.nan, -0.0, 0.0, 1.0, math.nan]),
    bits(9),
    name="Unique",
)


def _diagonals(x: Any) -> Any:
    square, tall = (x > 0).float(), x[:, :3].clone()
    square.fill_diagonal_(0)
    tall.fill_diagonal_(2)
    return square, tall, torch.cholesky_inverse(x.tril() + 3 * torch.eye(6))


plain(_diagonals, floats(6, 6), name="FilledDiagonals")


plain(
    lambda x: (
        torch.special.bessel_j0(x),
        torch.special.bessel_j1(x),
        torch.special.bessel_y0(x),
        torch.special.bessel_y1(x),
        torch.special.modified_bessel_k0(x),
        torch.special.scaled_modified_bessel_k1(x),
        torch.special.spherical_bessel_j0(x),
        torch.special.hermite_polynomial_h(x, 4),
        torch.special.shifted_chebyshev_polynomial_t(x, 3),
        torch.special.legendre_polynomial_p(x, 5),
    ),
    lambda: 5 * torch.randn(4, 7),
    name="Bessel",
)

# Numbers of Python are rounded to the dtype that they are compared with; the place of an extremum is a NaN's.
plain(
    lambda x: (
        x > 0.1,
        x <= -0.3,
        x == 0.7,
        x.clamp(-0.3, 0.7),
        F.threshold(x, 0.1, 2.0),
        x.abs() ** 0.5,
        *torch.where(x > 0.85, float("nan"), x).max(1),
        torch.where(x > 0.85, float("nan"), x).argmin(0),
    ),
    lambda: torch.arange(-10, 10).reshape(4, 5) / 10,
    name="ComparedWithNumbers",
)
