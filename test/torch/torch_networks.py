"""Networks for images and volumes, written out as in libraries of models: more of `torch_modules.MODULES`."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch_modules import floats, module, positive

BATCH = torch.export.Dim("batch", min=1, max=64)


class ConvNormActivation(nn.Sequential):
    def __init__(
        self, i: int, o: int, kernel: int = 3, stride: int = 1, groups: int = 1, activation: Any = nn.ReLU
    ) -> None:
        layers = [
            nn.Conv2d(i, o, kernel, stride, kernel // 2, groups=groups, bias=False),
            nn.BatchNorm2d(o, eps=1e-3),
        ]
        super().__init__(*layers, *([activation(inplace=True)] if activation else []))


class SqueezeExcitation(nn.Module):
    def __init__(self, channels: int, squeezed: int, activation: Any, scale: Any) -> None:
        super().__init__()
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc1, self.fc2 = nn.Conv2d(channels, squeezed, 1), nn.Conv2d(squeezed, channels, 1)
        self.activation, self.scale_activation = activation(), scale()

    def forward(self, x: Any) -> Any:
        return self.scale_activation(self.fc2(self.activation(self.fc1(self.avgpool(x))))) * x


class InvertedResidual(nn.Module):
    def __init__(self, i: int, wide: int, o: int, kernel: int, stride: int, se: bool, activation: Any) -> None:
        super().__init__()
        layers: list[nn.Module] = [ConvNormActivation(i, wide, 1, activation=activation)] if wide != i else []
        layers.append(ConvNormActivation(wide, wide, kernel, stride, wide, activation))
        if se:
            layers.append(SqueezeExcitation(wide, max(wide // 4, 2), nn.ReLU, nn.Hardsigmoid))
        layers.append(ConvNormActivation(wide, o, 1, activation=None))
        self.block, self.residual = nn.Sequential(*layers), stride == 1 and i == o

    def forward(self, x: Any) -> Any:
        return x + self.block(x) if self.residual else self.block(x)


@module(floats(2, 3, 32, 32), dynamic={"x": {0: BATCH}}, others=[(floats(1, 3, 32, 32),), (floats(5, 3, 32, 32),)])
class MobileNetV3(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            ConvNormActivation(3, 8, 3, 2, activation=nn.Hardswish),
            InvertedResidual(8, 8, 8, 3, 2, True, nn.ReLU),
            InvertedResidual(8, 24, 12, 3, 2, False, nn.ReLU),
            InvertedResidual(12, 28, 12, 5, 1, True, nn.Hardswish),
            ConvNormActivation(12, 36, 1, activation=nn.Hardswish),
        )
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(
            nn.Linear(36, 40), nn.Hardswish(inplace=True), nn.Dropout(0.2, inplace=True), nn.Linear(40, 10)
        )

    def forward(self, x: Any) -> Any:
        return self.classifier(torch.flatten(self.avgpool(self.features(x)), 1))


class StochasticDepth(nn.Module):
    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Any) -> Any:
        if not self.training or self.p == 0.0:
            return x
        keep = torch.empty([x.shape[0]] + [1] * (x.ndim - 1)).bernoulli_(1 - self.p)
        return x * keep / (1 - self.p)


@module(floats(1, 8, 15, 15))
class MBConv(nn.Module):
    """EfficientNet's block."""

    def __init__(self) -> None:
        super().__init__()
        self.block = nn.Sequential(
            ConvNormActivation(8, 32, 1, activation=nn.SiLU),
            ConvNormActivation(32, 32, 5, 1, 32, nn.SiLU),
            SqueezeExcitation(32, 2, nn.SiLU, nn.Sigmoid),
            ConvNormActivation(32, 8, 1, activation=None),
        )
        self.drop = StochasticDepth(0.2)

    def forward(self, x: Any) -> Any:
        return self.drop(self.block(x)) + x


class DenseLayer(nn.Module):
    def __init__(self, i: int) -> None:
        super().__init__()
        self.norm1, self.conv1 = nn.BatchNorm2d(i), nn.Conv2d(i, 16, 1, bias=False)
        self.norm2, self.conv2 = nn.BatchNorm2d(16), nn.Conv2d(16, 4, 3, padding=1, bias=False)

    def forward(self, features: Any) -> Any:
        y = self.conv1(F.relu(self.norm1(torch.cat(features, 1))))
        return self.conv2(F.relu(self.norm2(y)))


@module(floats(2, 3, 24, 24))
class DenseNet121(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        stem = [("conv0", nn.Conv2d(3, 8, 7, 2, 3)), ("norm0", nn.BatchNorm2d(8)), ("relu0", nn.ReLU(True))]
        self.stem = nn.Sequential(OrderedDict([*stem, ("pool0", nn.MaxPool2d(3, stride=2, padding=1))]))
        self.layers = nn.ModuleDict({f"denselayer{n + 1}": DenseLayer(8 + 4 * n) for n in range(3)})
        self.transition = nn.Sequential(
            nn.BatchNorm2d(20), nn.ReLU(inplace=True), nn.Conv2d(20, 10, 1, bias=False), nn.AvgPool2d(2, stride=2)
        )
        self.classifier = nn.Linear(10, 7)

    def forward(self, x: Any) -> Any:
        features = [self.stem(x)]
        for layer in self.layers.values():
            features.append(layer(features))
        y = F.relu(self.transition(torch.cat(features, 1)), inplace=True)
        return self.classifier(torch.flatten(F.adaptive_avg_pool2d(y, (1, 1)), 1))


@module(floats(1, 6, 17, 17))
class InceptionA(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.branch1x1 = ConvNormActivation(6, 4, 1)
        self.branch5x5 = nn.Sequential(ConvNormActivation(6, 3, 1), ConvNormActivation(3, 4, 5))
        self.b7a = nn.Conv2d(6, 4, (1, 7), padding=(0, 3))
        self.b7b = nn.Conv2d(4, 4, (7, 1), padding=(3, 0))
        self.branch_pool = ConvNormActivation(6, 3, 1)
        self.down = nn.Conv2d(15, 8, 3, stride=2)

    def forward(self, x: Any) -> Any:
        pool = self.branch_pool(F.avg_pool2d(x, kernel_size=3, stride=1, padding=1))
        y = torch.cat([self.branch1x1(x), self.branch5x5(x), self.b7b(self.b7a(x)), pool], 1)
        return torch.cat([self.down(y), F.max_pool2d(x, kernel_size=3, stride=2)], 1)


@module(floats(1, 3, 17, 23))
class UNetOdd(nn.Module):
    """Sizes that do not halve: what goes up is padded to what it joins."""

    def __init__(self) -> None:
        super().__init__()
        self.inc, self.down = self.double(3, 6), self.double(6, 12)
        self.up, self.conv, self.outc = (
            nn.ConvTranspose2d(12, 6, 2, stride=2),
            self.double(12, 6),
            nn.Conv2d(6, 2, 1),
        )

    def double(self, i: int, o: int) -> Any:
        return nn.Sequential(
            nn.Conv2d(i, o, 3, padding=1, bias=False),
            nn.BatchNorm2d(o),
            nn.ReLU(inplace=True),
            nn.Conv2d(o, o, 3, padding=1, bias=False),
            nn.InstanceNorm2d(o, affine=True),
            nn.LeakyReLU(0.1, inplace=True),
        )

    def forward(self, x: Any) -> Any:
        x1 = self.inc(x)
        x2 = self.up(self.down(F.max_pool2d(x1, 2)))
        dy, dx = x1.size()[2] - x2.size()[2], x1.size()[3] - x2.size()[3]
        x2 = F.pad(x2, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
        return self.outc(self.conv(torch.cat([x1, x2], dim=1))).argmax(1)


@module(lambda: OrderedDict(c2=torch.randn(1, 4, 16, 16), c3=torch.randn(1, 8, 8, 8), c4=torch.randn(1, 16, 4, 4)))
class FeaturePyramid(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.ModuleList(nn.Conv2d(c, 6, 1) for c in (4, 8, 16))
        self.layer = nn.ModuleList(nn.Conv2d(6, 6, 3, padding=1) for _ in range(3))

    def forward(self, x: dict[str, Any]) -> Any:
        names, values = list(x.keys()), list(x.values())
        last = self.inner[-1](values[-1])
        results = [self.layer[-1](last)]
        for n in (1, 0):
            lateral = self.inner[n](values[n])
            last = lateral + F.interpolate(last, size=lateral.shape[-2:], mode="nearest")
            results.insert(0, self.layer[n](last))
        names.append("pool")
        results.append(F.max_pool2d(results[-1], 1, 2, 0))
        return OrderedDict(zip(names, results, strict=True))


class LayerNorm2d(nn.LayerNorm):
    def forward(self, x: Any) -> Any:
        x = x.permute(0, 2, 3, 1)
        return F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps).permute(0, 3, 1, 2)


@module(floats(2, 3, 32, 32), dynamic={"x": {0: BATCH}}, others=[(floats(1, 3, 32, 32),), (floats(3, 3, 32, 32),)])
class ConvNeXt(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 4, 4), LayerNorm2d(8, eps=1e-6))
        self.dwconv, self.norm = nn.Conv2d(8, 8, 7, padding=3, groups=8), nn.LayerNorm(8, eps=1e-6)
        self.pw1, self.pw2, self.gamma = nn.Linear(8, 32), nn.Linear(32, 8), nn.Parameter(torch.full((8,), 0.5))
        self.head = nn.Sequential(LayerNorm2d(8), nn.Conv2d(8, 12, 2, 2), nn.Flatten(2), nn.Dropout(0.1))

    def forward(self, x: Any) -> Any:
        x = self.stem(x)
        y = self.pw2(F.gelu(self.pw1(self.norm(self.dwconv(x).permute(0, 2, 3, 1)))))
        return self.head(x + (self.gamma * y).permute(0, 3, 1, 2)).mean(-1)


@module(floats(1, 8, 8, 12))
class SwinBlock(nn.Module):
    """Attention in shifted windows with relative positions."""

    def __init__(self, dim: int = 12, heads: int = 3, window: int = 4, shift: int = 2) -> None:
        super().__init__()
        self.heads, self.window, self.shift = heads, window, shift
        self.norm, self.qkv, self.proj = nn.LayerNorm(dim), nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.table = nn.Parameter(torch.randn((2 * window - 1) ** 2, heads))
        coords = torch.stack(torch.meshgrid(torch.arange(window), torch.arange(window), indexing="ij")).flatten(1)
        relative = (coords[:, :, None] - coords[:, None, :]).permute(1, 2, 0) + window - 1
        self.register_buffer("index", relative[..., 0] * (2 * window - 1) + relative[..., 1])

    def windows(self, x: Any) -> Any:
        b, h, w, c = x.shape
        x = x.view(b, h // self.window, self.window, w // self.window, self.window, c)
        return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, self.window**2, c)

    def forward(self, x: Any) -> Any:
        b, h, w, c = x.shape
        y = torch.roll(self.norm(x), shifts=(-self.shift, -self.shift), dims=(1, 2))
        mask = torch.zeros((1, h, w, 1))
        count = 0
        cuts = (slice(0, -self.window), slice(-self.window, -self.shift), slice(-self.shift, None))
        for rows in cuts:
            for columns in cuts:
                mask[:, rows, columns, :] = count
                count += 1
        mask = self.windows(mask).squeeze(-1)
        mask = mask.unsqueeze(1) - mask.unsqueeze(2)
        mask = mask.masked_fill(mask != 0, -100.0).masked_fill(mask == 0, 0.0)
        y = self.windows(y)
        n = y.shape[0]
        q, k, v = self.qkv(y).reshape(n, -1, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        bias = self.table[self.index.view(-1)].view(self.window**2, self.window**2, -1).permute(2, 0, 1)
        attn = (q * (c // self.heads) ** -0.5) @ k.transpose(-2, -1) + bias.unsqueeze(0)
        attn = attn.view(n // mask.shape[0], mask.shape[0], self.heads, *attn.shape[-2:]) + mask[None, :, None]
        y = self.proj(
            (attn.view(n, self.heads, *attn.shape[-2:]).softmax(-1) @ v).transpose(1, 2).reshape(n, -1, c)
        )
        y = y.view(b, h // self.window, w // self.window, self.window, self.window, c)
        y = y.permute(0, 1, 3, 2, 4, 5).contiguous().view(b, h, w, c)
        return x + torch.roll(y, (self.shift, self.shift), (1, 2))


@module(floats(1, 4, 12, 12))
class ShuffleNetUnit(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.branch = nn.Sequential(
            ConvNormActivation(2, 6, 1), ConvNormActivation(6, 6, 3, 1, 6, None), ConvNormActivation(6, 2, 1)
        )

    def forward(self, x: Any) -> Any:
        x1, x2 = x.chunk(2, dim=1)
        out = torch.cat((x1, self.branch(x2)), dim=1)
        b, c, h, w = out.size()
        return torch.transpose(out.view(b, 2, c // 2, h, w), 1, 2).contiguous().view(b, c, h, w)


@module(floats(1, 6, 14, 14))
class AtrousPyramid(nn.Module):
    """DeepLab's head."""

    def __init__(self) -> None:
        super().__init__()
        self.convs = nn.ModuleList(
            [nn.Conv2d(6, 4, 1), *(nn.Conv2d(6, 4, 3, padding=rate, dilation=rate) for rate in (2, 4))]
        )
        self.pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(6, 4, 1), nn.ReLU())
        self.project = nn.Sequential(nn.Conv2d(16, 4, 1), nn.Dropout2d(0.5), nn.Conv2d(4, 3, 1))

    def forward(self, x: Any) -> Any:
        found = [conv(x) for conv in self.convs]
        found.append(F.interpolate(self.pool(x), size=x.shape[-2:], mode="bilinear", align_corners=False))
        out = F.interpolate(
            self.project(torch.cat(found, 1)), scale_factor=2.5, mode="bicubic", align_corners=True
        )
        return {"out": out, "aux": x.mean((-1, -2))}


@module(floats(2, 3, 20, 20))
class VGG(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        channels = 3
        for width in [6, "M", 8, 8, "M"]:
            if width == "M":
                layers.append(nn.MaxPool2d(kernel_size=2, stride=2, ceil_mode=True))
            else:
                layers += [nn.Conv2d(channels, int(width), kernel_size=3, padding=1), nn.ReLU(inplace=True)]
                channels = int(width)
        self.features, self.avgpool = nn.Sequential(*layers), nn.AdaptiveAvgPool2d((3, 3))
        self.classifier = nn.Sequential(nn.Linear(72, 20), nn.ReLU(True), nn.Dropout(), nn.Linear(20, 5))

    def forward(self, x: Any) -> Any:
        return self.classifier(torch.flatten(self.avgpool(self.features(x)), 1))


@module(floats(1, 2, 8, 10, 6))
class UNet3d(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Conv3d(2, 4, 3, padding=1), nn.Conv3d(4, 6, 3, stride=2, padding=1)
        self.up = nn.ConvTranspose3d(6, 4, 2, stride=2)
        self.norm, self.out = nn.InstanceNorm3d(4), nn.Conv3d(8, 2, 1)

    def forward(self, x: Any) -> Any:
        a = F.leaky_relu(self.norm(self.a(x)), 0.01)
        b = F.elu(self.b(a))
        return F.softmax(self.out(torch.cat([a, self.up(b)], 1)), dim=1), F.interpolate(
            b, size=(7, 5, 4), mode="trilinear"
        )


@module(floats(1, 3, 6, 16, 16))
class R2Plus1D(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv3d(3, 6, (1, 7, 7), (1, 2, 2), (0, 3, 3), bias=False),
            nn.BatchNorm3d(6),
            nn.ReLU(),
            nn.Conv3d(6, 8, (3, 1, 1), (1, 1, 1), (1, 0, 0), bias=False),
            nn.BatchNorm3d(8),
            nn.ReLU(),
            nn.MaxPool3d((1, 3, 3), (1, 2, 2), (0, 1, 1)),
            nn.AdaptiveAvgPool3d((1, 1, 1)),
            nn.Flatten(),
        )

    def forward(self, x: Any) -> Any:
        return self.layers(x)


@module(floats(1, 1, 28, 28), positive(1, 2, 3))
class SpatialTransformerNetwork(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.localization = nn.Sequential(
            nn.Conv2d(1, 4, 7), nn.MaxPool2d(2, 2), nn.ReLU(True), nn.Conv2d(4, 4, 5)
        )
        self.fc_loc = nn.Linear(4 * 7 * 7, 6)

    def forward(self, x: Any, theta: Any) -> Any:
        found = self.fc_loc(self.localization(x).view(-1, 4 * 7 * 7)).view(-1, 2, 3) + theta
        grid = F.affine_grid(found, list(x.size()), align_corners=False)
        return F.grid_sample(x, grid, mode="bilinear", padding_mode="border", align_corners=False)


@module(floats(1, 4, 6, 6))
class SuperResolution(nn.Module):
    """ESPCN, EDSR: residual scaling, sub-pixels, a global skip."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(4, 8, 3, 1, 1), nn.PReLU(8), nn.Conv2d(8, 4, 3, 1, 1))
        self.tail = nn.Sequential(nn.Conv2d(4, 36, 3, 1, 1), nn.PixelShuffle(3))

    def forward(self, x: Any) -> Any:
        y = self.tail(x + self.body(x).mul(0.1))
        return y + F.interpolate(x, scale_factor=3, mode="bicubic"), F.pixel_unshuffle(y, 3)


@module(floats(2, 5, 9))
class PointNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv1d(5, 12, 1), nn.BatchNorm1d(12)
        self.fc = nn.Linear(12, 25)

    def forward(self, x: Any) -> Any:
        y = torch.max(F.relu(self.bn1(self.conv1(x))), 2, keepdim=True)[0].view(-1, 12)
        matrix = self.fc(y) + torch.eye(5).view(1, 25).repeat(y.size(0), 1)
        x = torch.bmm(x.transpose(2, 1), matrix.view(-1, 5, 5)).transpose(2, 1)
        distance = torch.cdist(x.transpose(1, 2), x.transpose(1, 2))
        near = distance.topk(3, dim=-1, largest=False)[1]
        return near, torch.gather(x, 2, near.reshape(2, 1, -1).expand(-1, 5, -1)).view(2, 5, 9, 3).max(-1)[0]


@module(floats(2, 3, 16, 16))
class GhostAndCoordinate(nn.Module):
    """Ghost features; attention by coordinates; blurred downsampling; local response normalisation."""

    def __init__(self) -> None:
        super().__init__()
        self.primary, self.cheap = nn.Conv2d(3, 6, 1), nn.Conv2d(6, 6, 3, padding=1, groups=6)
        self.pool_h, self.pool_w = nn.AdaptiveAvgPool2d((None, 1)), nn.AdaptiveAvgPool2d((1, None))
        self.mix, self.lrn = nn.Conv2d(12, 12, 1), nn.LocalResponseNorm(3, alpha=0.1, beta=0.7, k=2.0)
        self.register_buffer("blur", torch.tensor([1.0, 2.0, 1.0]).outer(torch.tensor([1.0, 2.0, 1.0])) / 16)

    def forward(self, x: Any) -> Any:
        a = self.primary(x)
        x = torch.cat([a, self.cheap(a)], 1)
        h, w = self.pool_h(x), self.pool_w(x).permute(0, 1, 3, 2)
        y = F.hardswish(self.mix(torch.cat([h, w], dim=2)))
        ah, aw = torch.split(y, [16, 16], dim=2)
        x = x * ah.sigmoid() * aw.permute(0, 1, 3, 2).sigmoid()
        kernel = self.blur[None, None].expand(12, 1, 3, 3)
        return F.conv2d(F.pad(self.lrn(x), (1, 1, 1, 1), mode="reflect"), kernel, stride=2, groups=12)


@module(floats(1, 3, 16, 16))
class BoxDecoder(nn.Module):
    """A detector's end: anchors, boxes, overlaps, the best per class, non-maximum suppression by a fixed count."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 18, 3, stride=4, padding=1)
        self.register_buffer("anchors", torch.tensor([[3.0, 5.0], [6.0, 4.0], [8.0, 8.0]]))

    def forward(self, x: Any) -> Any:
        n, _, h, w = (p := self.conv(x)).shape
        p = p.view(n, 3, 6, h, w).permute(0, 1, 3, 4, 2)
        ys, xs = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        centre = (p[..., :2].sigmoid() * 2 - 0.5 + torch.stack((xs, ys), -1)) * 4
        size = (p[..., 2:4].sigmoid() * 2) ** 2 * self.anchors.view(1, 3, 1, 1, 2)
        boxes = torch.cat((centre - size / 2, centre + size / 2), -1).clamp(0, 16).view(n, -1, 4)[0]
        scores = p[..., 4:].softmax(-1).view(-1, 2)
        area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
        low, high = torch.max(boxes[:, None, :2], boxes[:, :2]), torch.min(boxes[:, None, 2:], boxes[:, 2:])
        inter = (high - low).clamp(min=0).prod(2)
        iou = inter / (area[:, None] + area - inter + 1e-6)
        order = scores[:, 0].argsort(descending=True, stable=True)
        overlap = iou[order][:, order]
        keep = torch.ones(48, dtype=torch.bool)
        for step in range(5):
            later = torch.arange(48) > step
            keep = keep & ~((overlap[step] > 0.5) & keep[step] & later)
        return boxes[order], keep, scores.max(1)
