"""Decompositions of convolutions with a filter per channel that torch-mlir refuses: transposed, and in 3-D."""

from __future__ import annotations

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
    groups: int,
) -> Any:
    spatial = weight.dim() - 2
    if groups == 1 or weight.shape[1] != 1 or x.shape[-spatial - 1] != groups:
        return NotImplemented
    if transposed:
        return _transposed(x, weight, bias, stride, padding, dilation, output_padding)
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
    flipped = weight.flip([*range(-spatial, 0)])
    return aten.convolution(
        F.pad(x, pads), flipped, bias, [1] * spatial, [0] * spatial, dilation, False, [0] * spatial, len(weight)
    )


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
