"""Functions that ``torch.export`` cannot trace, since they look at the data of tensors, by others that it can."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from threading import RLock
from typing import Any
from unittest import mock

import torch
import torch.nn.functional as F
from torch.nn.modules import transformer
from torch.overrides import TorchFunctionMode

_Tensor = torch.Tensor
_LOCK = RLock()


def _reduced(loss: _Tensor, reduction: str) -> _Tensor:
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss


def _gaussian_nll_loss(
    input: _Tensor, target: _Tensor, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> _Tensor:
    """PyTorch looks whether a variance is negative; here it is ``eps`` then."""
    if not isinstance(var, torch.Tensor):
        var = var * torch.ones_like(input)
    elif var.dim() == input.dim() - 1:
        var = var.unsqueeze(-1)
    var = var.clamp(min=eps)
    loss = 0.5 * (torch.log(var) + (input - target) ** 2 / var)
    return _reduced(loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)


def _rows(targets: _Tensor, lengths: Any) -> _Tensor:
    """Targets that stand one after the other, a row each; what is behind the end of a row is anything."""
    longest = targets.shape[0] if isinstance(lengths, torch.Tensor) else max(lengths)
    lengths = torch.as_tensor(lengths, dtype=torch.int64)
    places = (lengths.cumsum(0) - lengths)[:, None] + torch.arange(longest)
    return targets[places.clamp(max=targets.shape[0] - 1)]


def _ctc_loss(
    log_probs: _Tensor,
    targets: _Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> _Tensor:
    """Connectionist temporal classification, in logarithms: as in ATen/native/LossCTC.cpp, a step per time.

    A state is a label or a blank between labels. ``log_probs``: time x batch x class, or time x class.
    """
    if is_one := log_probs.dim() == 2:
        log_probs, targets = log_probs[:, None], targets.reshape(1, -1)
    elif targets.dim() == 1:
        targets = _rows(targets, target_lengths)
    times, batch, classes = log_probs.shape
    input_lengths, target_lengths = (
        torch.as_tensor(one, dtype=torch.int64).reshape(-1) for one in (input_lengths, target_lengths)
    )
    targets = targets.to(torch.int64).clamp(0, classes - 1)
    blanks = torch.full_like(targets, blank)
    states = torch.cat([torch.stack([blanks, targets], -1).flatten(1), torch.full((batch, 1), blank)], 1)
    count = states.shape[1]
    number, nothing = torch.arange(count), torch.full((batch, 2), -math.inf, dtype=log_probs.dtype)
    skips = torch.cat([torch.zeros(batch, 2, dtype=torch.bool), states[:, 2:] != states[:, :-2]], 1)
    found = log_probs.gather(2, states.expand(times, -1, -1))
    alpha = torch.where(number < 2, found[0], -math.inf)
    for time in range(1, times):
        before = torch.cat([nothing, alpha], 1)
        ways = torch.stack([alpha, before[:, 1:-1], torch.where(skips, before[:, :-2], -math.inf)])
        most = ways.amax(0)
        shift = torch.where(most == -math.inf, 0.0, most)
        alpha_then = torch.log(torch.exp(ways - shift).sum(0)) + shift + found[time]
        alpha = torch.where(time < input_lengths[:, None], alpha_then, alpha)
    last = 2 * target_lengths[:, None]
    ends = torch.where((number == last) | (number == last - 1), alpha, -math.inf)
    loss = -torch.logsumexp(ends, 1)
    loss = torch.where(input_lengths == 0, torch.where(target_lengths == 0, 0.0, math.inf), loss)
    if zero_infinity:
        loss = torch.where(torch.isinf(loss), 0.0, loss)
    if reduction == "mean":
        return (loss / target_lengths.clamp(min=1).to(loss.dtype)).mean()
    return _reduced(loss[0] if is_one else loss, reduction)


_TRACED: dict[Any, Callable[..., Any]] = {
    F.gaussian_nll_loss: _gaussian_nll_loss,
    F.ctc_loss: _ctc_loss,
}


class _Mode(TorchFunctionMode):
    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        function: Any = _TRACED.get(func, func)
        return function(*args, **(kwargs or {}))


def _is_causal(mask: Any, is_causal: bool | None = None, size: int | None = None) -> bool:
    """PyTorch compares the mask with a causal one, for kernels that need none then; ours are given the mask."""
    return bool(is_causal)


@contextmanager
def traced_functions() -> Generator[None]:
    """While it is entered, what cannot be traced is computed in a way that can."""
    with _LOCK, _Mode(), mock.patch.object(transformer, "_detect_is_causal_mask", _is_causal):
        yield
