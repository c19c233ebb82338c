"""Decompositions of convolutions in groups that torch-mlir refuses.

With a filter per channel, those that are transposed or in 3-D; and those in as many groups as a batch of any size
has images, where each has filters of its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F

from devscope.frontends.torch.tables import Table

aten: Any = torch.ops.aten
TABLE = Table()
_Tensor = torch.Tensor


@TABLE.of(aten.convolution.default)
def _convolution(
    x: _Tensor,
    weight: _Tensor,
    bias: _Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: Any,
) -> Any:
    spatial = weight.dim() - 2
    if not isinstance(groups, int):
        if transposed:
            return _transposed(x, weight, bias, stride, padding, dilation, output_padding, groups)
        return _as_product(x, weight, bias, stride, padding, dilation, groups)
    if groups == 1 or weight.shape[1] != 1 or x.shape[-spatial - 1] != groups:
        return NotImplemented
    if transposed:
        return _transposed(x, weight, bias, stride, padding, dilation, output_padding, groups)
    if spatial == 3 and weight.shape[0] == groups:
        return _in_slices(x, weight, bias, stride, padding, dilation)
    return NotImplemented


def _transposed(
    x: _Tensor,
    weight: _Tensor,
    bias: _Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    output_padding: Sequence[int],
    groups: Any,
) -> _Tensor:
    """A convolution with the flipped filter of the input with zeros in between and around it."""
    spatial = weight.dim() - 2
    pads: list[int] = []
    for dim in range(spatial):
        at = dim - spatial
        if stride[dim] > 1:
            x = F.pad(x.unsqueeze(-1).movedim(-1, at), [*[0, 0] * (-at - 1), 0, stride[dim] - 1])
            x = x.flatten(at - 1, at)
        before = dilation[dim] * (weight.shape[at] - 1) - padding[dim]
        pads = [before, before + output_padding[dim] - (stride[dim] - 1), *pads]
    flipped = weight.flip([*range(-spatial, 0)]).unflatten(0, (groups, -1)).transpose(1, 2).flatten(0, 1)
    return aten.convolution(
        F.pad(x, pads), flipped, bias, [1] * spatial, [0] * spatial, dilation, False, [0] * spatial, groups
    )


def _as_product(
    x: _Tensor,
    weight: _Tensor,
    bias: _Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: Any,
) -> _Tensor:
    """A batch of products, one of each group: of its filters, and of what each of their elements meets."""
    kernel = weight.shape[2:]
    x = F.pad(x, [pad for both in reversed(padding) for pad in (both, both)])
    met = []
    for place in itertools.product(*map(range, kernel)):
        part = x
        for dim, (at, size, step, apart) in enumerate(zip(place, kernel, stride, dilation, strict=True), 2):
            part = aten.slice.Tensor(part, dim, at * apart, x.shape[dim] - (size - 1 - at) * apart, step)
        met.append(part)
    windows = torch.stack(met, 2).unflatten(1, (groups, -1)).flatten(2, 3).flatten(3)
    found = weight.unflatten(0, (groups, -1)).flatten(2) @ windows
    found = found.flatten(1, 2).unflatten(2, met[0].shape[2:])
    return found if bias is None else found + bias.view(-1, *[1] * len(kernel))


def _in_slices(
    x: _Tensor,
    weight: _Tensor,
    bias: _Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> _Tensor:
    """Of volumes: for each depth of the filter a convolution in 2-D, of all slices that it meets; their sum."""
    depth = weight.shape[2]
    x = F.pad(x, [0, 0, 0, 0, padding[0], padding[0]])
    count: Any = (x.shape[2] - dilation[0] * (depth - 1) - 1) // stride[0] + 1
    found: Any = None
    for at in range(depth):
        first = at * dilation[0]
        slices = x[:, :, first : first + (count - 1) * stride[0] + 1 : stride[0]].transpose(1, 2)
        part = aten.convolution(
            slices.flatten(0, 1),
            weight[:, :, at],
            bias if found is None else None,
            stride[1:],
            padding[1:],
            dilation[1:],
            False,
            [0, 0],
            len(weight),
        )
        found = part if found is None else found + part
    return found.unflatten(0, (x.shape[0], count)).transpose(1, 2)


@TABLE.of(aten.conv_tbc.default)
def _with_times_first(x: _Tensor, weight: _Tensor, bias: _Tensor, pad: int = 0) -> Any:
    return F.conv1d(x.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad).permute(2, 0, 1)
