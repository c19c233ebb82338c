"""Functions that ``torch.export`` cannot trace, since they look at the data of tensors, by others that it can."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from threading import RLock
from typing import Any
from unittest import mock

import torch
import torch.nn.functional as F
from torch._C._dynamo.eval_frame import reset_code
from torch.distributions import Distribution
from torch.nn.modules import batchnorm, rnn, transformer
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map_only

from devscope.frontends.torch.array_decompositions import fake_quantize
from devscope.frontends.torch.associative_scans import associative_scans
from devscope.frontends.torch.dynamic_functions import TRACED as DYNAMIC
from devscope.frontends.torch.dynamic_functions import orders_of_examples
from devscope.frontends.torch.matrix_decompositions import has_routines, least_squares
from devscope.frontends.torch.packed_sequences import PACK, PAD, PADDED, RECURRENT, Packed
from devscope.frontends.torch.tables import MASKS

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


def _is_number(index: Any) -> bool:
    kinds = (torch.int64, torch.int32, torch.int16, torch.int8)
    return isinstance(index, torch.Tensor) and index.dim() == 0 and index.dtype in kinds


def _dimensions(x: _Tensor, index: Any) -> tuple[list[Any], list[int]] | None:
    """The parts of an index without ``...``, and the dimension that each begins at; None for masks and lists."""
    parts: list[Any] = list(index) if isinstance(index, tuple) else [index]
    for part in parts:
        known = isinstance(part, torch.Tensor | slice | int | type(...)) or part is None
        if not known or isinstance(part, bool) or (isinstance(part, torch.Tensor) and part.dtype in MASKS):
            return None
    if any(part is ... for part in parts):
        place = next(at for at, part in enumerate(parts) if part is ...)
        missing = x.dim() - sum(part is not None and part is not ... for part in parts)
        parts[place : place + 1] = [slice(None)] * missing
    return parts, [sum(part is not None for part in parts[:at]) for at in range(len(parts))]


def _take(x: _Tensor, index: Any) -> Any:
    """PyTorch looks what number it is that a tensor of one has as an index: here, rows are taken first."""
    found = _dimensions(x, index) if _has_numbers(index) else None
    if found is None:
        return x[index]
    parts, dims = found
    for at, (part, dim) in enumerate(zip(parts, dims, strict=True)):
        if _is_number(part):
            number = torch.where(part < 0, part + x.shape[dim], part).to(torch.int64)
            x = x.index_select(dim, number.reshape(1))
            parts[at] = 0
    return x[tuple(parts)]


def _put(x: _Tensor, index: Any, value: Any) -> Any:
    found = _dimensions(x, index) if _has_numbers(index) else None
    if found is None or any(part is None for part in found[0]):
        x[index] = value
        return
    parts, _ = found
    tensors = [at for at, part in enumerate(parts) if isinstance(part, torch.Tensor)]
    if tensors[-1] - tensors[0] >= len(tensors):
        raise RuntimeError("indices that are tensors, one of them of one number, do not stand side by side")
    # The index is of ranges alone and of tensors side by side, so that these are one dimension, or none.
    target, dim = x, 0
    for at, part in enumerate(parts):
        if at in tensors:
            dim += 1
        elif isinstance(part, int):
            target = target.select(dim, part)
        else:
            start, stop, step = part.start, part.stop, part.step
            target = target if part == slice(None) else _range(target, dim, start, stop, step)
            dim += 1
    before = sum(not isinstance(part, int) for part in parts[: tensors[0]])
    numbers = [parts[at].to(torch.int64) for at in tensors]
    value = torch.as_tensor(value, dtype=x.dtype)
    torch.ops.aten.index_put_(target, [*[None] * before, *numbers], value)


def _range(x: _Tensor, dim: int, start: Any, stop: Any, step: Any) -> _Tensor:
    return torch.ops.aten.slice.Tensor(x, dim, start, stop, 1 if step is None else step)


def _has_numbers(index: Any) -> bool:
    return any(map(_is_number, index if isinstance(index, tuple) else (index,)))


_TRACED[torch.Tensor.__getitem__] = _take
_TRACED[torch.Tensor.__setitem__] = _put


def _cov(x: _Tensor, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> _Tensor:
    """As in ATen/native/Correlation.cpp, which looks whether weights are negative, and all of one size."""
    if x.dim() < 2:
        x = x.reshape(1, -1)
    if not (x.dtype.is_floating_point or x.dtype.is_complex):
        x = x.to(torch.get_default_dtype())
    weights = fweights if aweights is None else aweights if fweights is None else fweights * aweights
    weighted = x if weights is None else x * weights
    total = x.shape[1] if weights is None else weights.sum()
    free = total - correction
    if aweights is not None and correction:
        free = total - correction * (weights * aweights).sum() / total
    of = x.real.dtype
    free = (free.to(of) if isinstance(free, torch.Tensor) else torch.scalar_tensor(free, dtype=of)).clamp(min=0)
    means = (weighted.sum(1) / total)[:, None]
    centred = x - means
    return ((centred @ (centred if weights is None else centred * weights).mH) / free).squeeze()


def _corrcoef(x: _Tensor) -> _Tensor:
    found = _cov(x)
    if found.dim() == 0:
        return found / found
    spread = found.diagonal().real.sqrt()
    found = found / spread[:, None] / spread
    if found.is_complex():
        return torch.complex(found.real.clamp(-1, 1), found.imag.clamp(-1, 1))
    return found.clamp(-1, 1)


for _of in (torch, torch.Tensor):
    _TRACED[_of.cov], _TRACED[_of.corrcoef] = _cov, _corrcoef


def _masked_select(x: _Tensor, mask: _Tensor) -> _Tensor:
    """PyTorch's trace takes no more than ``x`` has for all, even where the mask has more dimensions."""
    return torch.masked_select(*torch.broadcast_tensors(x, mask))


_TRACED[torch.masked_select] = _TRACED[torch.Tensor.masked_select] = _masked_select


_return_types: Any = torch.return_types


def _lstsq(a: _Tensor, b: _Tensor, rcond: Any = None, *, driver: Any = None) -> Any:
    """Whether there are residuals depends on data."""
    if not has_routines(a):
        return torch.linalg.lstsq(a, b, rcond, driver=driver)
    return _return_types.linalg_lstsq(least_squares(a, b, rcond, driver=driver))


_TRACED[torch.linalg.lstsq] = _lstsq


def _fake_quantize(x: _Tensor, scale: Any, zero_point: Any, quant_min: int, quant_max: int) -> _Tensor:
    """Of all elements alike: as of one channel."""
    scale, zero = torch.as_tensor(scale, dtype=torch.float32), torch.as_tensor(zero_point, dtype=torch.int32)
    one = x.unsqueeze(0), scale.reshape(1), zero.reshape(1)
    return fake_quantize(*one, 0, quant_min, quant_max).squeeze(0)


_TRACED[torch.fake_quantize_per_tensor_affine] = _fake_quantize
_TRACED[torch.fake_quantize_per_channel_affine] = fake_quantize


def _combinations(x: _Tensor, r: int = 2, with_replacement: bool = False) -> Any:
    """Of places that are known here; of pairs, however many there are."""
    if r != 2:
        choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
        places = torch.tensor([*choose(range(x.shape[0]), r)], dtype=torch.int64).reshape(-1, r)
        return x[places]
    triangle = DYNAMIC[torch.triu_indices]
    one, other = triangle(x.shape[0], x.shape[0], 0 if with_replacement else 1)
    return torch.stack([x.index_select(0, one), x.index_select(0, other)], 1)


_TRACED[torch.combinations] = _combinations


def _native_attention(
    query: _Tensor,
    key: _Tensor,
    value: _Tensor,
    embed_dim: int,
    heads: int,
    qkv_weight: _Tensor,
    qkv_bias: _Tensor,
    proj_weight: _Tensor,
    proj_bias: _Tensor,
    mask: _Tensor | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[_Tensor, _Tensor]:
    """What modules of attention call for inference, in one operation for all of it.

    ``mask_type``: 0 for a mask of positions, 1 for one of keys, 2 for both in one.
    """
    weights, biases = qkv_weight.chunk(3), qkv_bias.chunk(3)
    q, k, v = (
        F.linear(x, weight, bias).unflatten(-1, (heads, -1)).transpose(1, 2)
        for x, weight, bias in zip((query, key, value), weights, biases, strict=True)
    )
    scores = q @ k.mT / math.sqrt(embed_dim // heads)
    if mask is not None:
        hidden = mask.to(torch.bool)
        scores = scores.masked_fill(hidden[:, None, None] if mask_type == 1 else hidden, -math.inf)
    scores = scores.softmax(-1)
    found = F.linear((scores @ v).transpose(1, 2).flatten(2), proj_weight, proj_bias)
    return found, scores.mean(1) if average_attn_weights else scores


def _encoder_layer(
    x: _Tensor,
    embed_dim: int,
    heads: int,
    qkv_weight: _Tensor,
    qkv_bias: _Tensor,
    proj_weight: _Tensor,
    proj_bias: _Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    *others: Any,
    mask_type: int | None = None,
) -> _Tensor:
    """The same for a layer of ``nn.TransformerEncoder``: norms and a net of two layers follow."""
    norms, net = (others[:2], others[2:4]), others[4:8]
    mask = others[8] if len(others) > 8 else None
    mask_type = others[9] if len(others) > 9 else mask_type

    def attended(y: _Tensor) -> _Tensor:
        given = qkv_weight, qkv_bias, proj_weight, proj_bias, mask
        return _native_attention(y, y, y, embed_dim, heads, *given, mask_type=mask_type)[0]

    def mapped(y: _Tensor) -> _Tensor:
        y = F.linear(y, *net[:2])
        return F.linear(F.gelu(y) if use_gelu else F.relu(y), *net[2:])

    def normed(y: _Tensor, number: int) -> _Tensor:
        weight, bias = norms[number]
        return F.layer_norm(y, [embed_dim], weight, bias, eps)

    if norm_first:
        x = x + attended(normed(x, 0))
        return x + mapped(normed(x, 1))
    x = normed(x + attended(x), 0)
    return normed(x + mapped(x), 1)


_SAMPLINGS, _PADDINGS = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")


def _grid_sample(
    x: _Tensor,
    grid: _Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> _Tensor:
    """To be differentiated, what it is decomposed into: nothing decomposes its gradient."""
    if not torch.is_grad_enabled() or not (x.requires_grad or grid.requires_grad):
        return F.grid_sample(x, grid, mode, padding_mode, align_corners)
    from devscope.frontends.torch.decompositions import table

    operation = getattr(torch.ops.aten, f"grid_sampler_{x.dim() - 2}d").default
    return table()[operation](x, grid, _SAMPLINGS.index(mode), _PADDINGS.index(padding_mode), bool(align_corners))


_functions: Any = vars(torch)["_C"]._VariableFunctions
_TRACED[F.grid_sample] = _grid_sample
_TRACED[_functions._native_multi_head_attention] = _native_attention
_TRACED[_functions._transformer_encoder_layer_fwd] = _encoder_layer
_TRACED.update(PADDED)
_TRACED.update(DYNAMIC)


def _set_data(x: _Tensor, value: _Tensor) -> None:
    x.copy_(value)


_data: Any = torch.Tensor.data
_TRACED[_data.__get__] = torch.Tensor.detach  # what is written there is seen, too
_TRACED[_data.__set__] = _set_data


class _Mode(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self._packed = Packed()

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is PACK:
            return self._packed.pack(*args, **kwargs)
        counts = args[1] if len(args) > 1 and func is not torch.Tensor.__getitem__ else args[0] if args else None
        if isinstance(counts, torch.Tensor) and (known := self._packed.of(counts)) is not None:
            if func is PAD:
                return self._packed.pad(*args, **kwargs)
            if func in RECURRENT:
                return RECURRENT[func](self._packed, *args, **kwargs)
            if func is torch.Tensor.__getitem__ and args[1].__class__ is int:  # how many go on at first
                return known[1]
        function: Any = _TRACED.get(func, func)
        return function(*args, **kwargs)


def _is_causal(mask: Any, is_causal: bool | None = None, size: int | None = None) -> bool:
    """PyTorch compares the mask with a causal one, for kernels that need none then; ours are given the mask."""
    return bool(is_causal)


def _as_it_is(size: Any) -> Any:
    """``int`` makes a constant of a dynamic size."""
    return size


_BatchNormalisation: Any = vars(batchnorm)["_BatchNorm"]
_batch_norm = _BatchNormalisation.forward


def _batch_norm_of_means(self: Any, input: _Tensor) -> _Tensor:
    """To train without a momentum, PyTorch divides by the number of batches, which is data."""
    if self.momentum is not None or not self.training or not self.track_running_stats:
        return _batch_norm(self, input)
    self._check_input_dim(input)
    self.num_batches_tracked.add_(1)
    variance, mean = torch.var_mean(input, [0, *range(2, input.dim())])
    for kept, new in ((self.running_mean, mean), (self.running_var, variance)):
        kept.add_((new.detach() - kept) / self.num_batches_tracked)
    return F.batch_norm(input, None, None, self.weight, self.bias, True, 0.0, self.eps)


_encoder = transformer.TransformerEncoder.forward


def _encoder_of_padded(
    self: Any,
    src: _Tensor,
    mask: _Tensor | None = None,
    src_key_padding_mask: _Tensor | None = None,
    is_causal: bool | None = None,
) -> _Tensor:
    """For inference, PyTorch nests sentences that are padded at their end, and so gives zeros there."""
    is_nested = getattr(self, "use_nested_tensor", False) and not self.layers[0].training and src.dim() == 3
    if not is_nested or mask is not None or src_key_padding_mask is None:
        return _encoder(self, src, mask, src_key_padding_mask, is_causal)
    is_padding = src_key_padding_mask
    if is_padding.dtype != torch.bool:
        is_padding = is_padding != 0
    at_end = (is_padding == (is_padding.cumsum(1) > 0)).all()  # slices would say that there are 3 words or more
    for layer in self.layers:
        src = layer(src, src_key_padding_mask=src_key_padding_mask)
    found = torch.where((is_padding & at_end)[..., None], 0.0, src)
    return found if self.norm is None else self.norm(found)


_compile = torch.compile


def _compiled_anew(model: Any = None, **options: Any) -> Any:
    """Loops and branches are compiled as they are traced. Of what is compiled already PyTorch would ask whether it
    is for the sizes at hand, and so make constants of them."""
    if not hasattr(model, "__code__"):
        return _compile(model, **options)
    reset_code(model.__code__)
    compiled = _compile(model, **options)

    def call(*arguments: Any, **named: Any) -> Any:
        return compiled(*tree_map_only(torch.Tensor, _of_known_strides, arguments), **named)

    return call


def _of_known_strides(x: _Tensor) -> _Tensor:
    """PyTorch cannot look strides up that vary, where sizes do not."""
    varies = [any(isinstance(one, torch.SymInt) for one in extents) for extents in (x.shape, x.stride())]
    return x.contiguous() if varies == [False, True] else x


@contextmanager
def traced_functions() -> Generator[None]:
    """While it is entered, what cannot be traced is computed in a way that can."""
    padded = mock.patch.object(transformer.TransformerEncoder, "forward", _encoder_of_padded)
    causal = mock.patch.object(transformer, "_detect_is_causal_mask", _is_causal)
    valid = mock.patch.object(Distribution, "_validate_args", False)
    sizes = mock.patch.object(rnn, "int", _as_it_is, create=True)
    trained = mock.patch.object(_BatchNormalisation, "forward", _batch_norm_of_means)
    anew = mock.patch.object(torch, "compile", _compiled_anew)
    with _LOCK, _Mode(), causal, valid, padded, sizes, trained, anew, associative_scans(), orders_of_examples():
        yield
