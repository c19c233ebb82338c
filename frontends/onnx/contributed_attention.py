"""Attention as onnxruntime has it: see `contributed`. Heads are ``[batch, heads, places, size]`` in here."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from onnx import TensorProto

from devscope.frontends.onnx.rewriter import Unknown, Writer, contributes
from devscope.frontends.onnx.types import Refused


def _heads(w: Writer, x: str, count: int) -> str:
    """Of ``[batch, places, heads * size]``."""
    return w.op("Transpose", w.reshape(x, 0, 0, count, -1), perm=[0, 2, 1, 3])


def _merged(w: Writer, x: str) -> str:
    """The node's first result, of heads."""
    shape = w.constant([0, 0, -1], np.int64)
    return w.op("Reshape", w.op("Transpose", x, perm=[0, 2, 1, 3]), shape, result=0)


def _attended(
    w: Writer,
    query: str,
    keys: str,
    values: str,
    masks: Sequence[str],
    size: int | None,
    hidden: str | None = None,
) -> str:
    """``masks`` are added to what the softmax gets; ``hidden`` says where there is nothing to be seen."""
    scale = w.attr("scale", 0.0) or 0.0
    if scale:
        factor = w.number(scale)
    elif size is not None:
        factor = w.number(1 / math.sqrt(size))
    else:
        width = w.op("Cast", w.extent(query, 3), to=w.type())
        factor = w.op("Reciprocal", w.op("Sqrt", width))
    y = w.op("MatMul", w.op("Mul", query, factor), w.op("Transpose", keys, perm=[0, 1, 3, 2]))
    if cap := w.attr("softcap", 0.0):
        y = w.op("Mul", w.op("Tanh", w.op("Div", y, w.number(cap))), w.number(cap))
    for mask in masks:
        y = w.op("Add", y, mask)
    y = y if hidden is None else w.op("Where", hidden, w.number(_lowest(w)), y)
    return w.op("MatMul", w.op("Softmax", y, axis=3 if w.opset < 13 else -1), values)


def _lowest(w: Writer) -> float:
    from ml_dtypes import finfo

    return float(finfo(w.dtype).min)


def _later(w: Writer, query: str, keys: str) -> str:
    """Where a key comes after the query: queries are the last places of the keys."""
    count, all_ = w.extent(query, 2), w.extent(keys, 2)
    own = w.unsqueeze(w.op("Add", w.range(count), w.op("Sub", all_, count)), 1)
    return w.op("Greater", w.unsqueeze(w.range(all_), 0), own)


def _mask(w: Writer, number: int, keys: str) -> list[str]:
    """What a mask, or how many keys there are of each row of the batch, adds: 0 or the filter's value."""
    if not w.has(number):
        return []
    rank, mask = w.rank(number), w[number]
    if rank == 1:
        shape, batch = w.shape(number), w.shape(0)
        if shape[0] is None or shape[0] != batch[0]:
            raise Refused(f"{w.node.op_type} whose mask says more than how many keys there are")
        seen = w.op("Less", w.unsqueeze(w.range(w.extent(keys, 2)), 0), w.unsqueeze(w.to(mask, np.int64), 1))
        mask, rank = w.op("Cast", seen, to=TensorProto.INT32), 2
    if rank > 3:
        raise Refused(f"{w.node.op_type} with a mask of rank {rank}")
    absent = w.op("Sub", w.number(1), w.op("Cast", mask, to=w.type()))
    added = w.op("Mul", absent, w.number(w.attr("mask_filter_value", -10000.0)))
    return [w.unsqueeze(added, *([1, 2] if rank == 2 else [1]))]


def _attention(w: Writer, parts: Sequence[str], size: int | None, mask: int, past: int, bias: int | None) -> None:
    """``parts``: query, keys and values, as heads. Past keys and values are one tensor, and so are the present ones."""
    query, keys, values = parts
    if w.attr("do_rotary", 0) or w.attr("past_present_share_buffer", 0):
        raise Refused(f"{w.node.op_type} with places that turn, or with memory that is shared")
    if w.has(past):
        before = [w.op("Gather", w[past], w.constant(number, np.int64), axis=0) for number in (0, 1)]
        keys, values = (w.op("Concat", *pair, axis=2) for pair in zip(before, (keys, values), strict=True))
    if w.wants(1):
        w.op("Concat", w.unsqueeze(keys, 0), w.unsqueeze(values, 0), axis=0, result=1)
    masks = _mask(w, mask, keys)
    masks += [w[bias]] if bias is not None and w.has(bias) else []
    hidden = _later(w, query, keys) if w.attr("unidirectional", 0) else None
    _merged(w, _attended(w, query, keys, values, masks, size, hidden))


def _split(w: Writer, x: str, sizes: Sequence[int]) -> list[str]:
    """Of the last dimension of three."""
    ends = np.cumsum([0, *sizes]).tolist()
    return [w.part(x, 2, start, start + size) for start, size in zip(ends, sizes, strict=False)]


def _sizes(w: Writer, bias: int, weights: int) -> list[int]:
    """Of queries, keys and values."""
    if given := w.attr("qkv_hidden_sizes"):
        return [*given]
    for number in (bias, weights):
        total = w.shape(number)[-1] if w.has(number) else None
        if isinstance(total, int):
            return [total // 3] * 3
    raise Unknown(f"{w.node.op_type} of a size known at run time only")


@contributes("Attention")
def _projected(w: Writer) -> None:
    sizes, count = _sizes(w, 2, 1), w.attr("num_heads")
    y = w.op("MatMul", w[0], w[1])
    y = w.op("Add", y, w[2]) if w.has(2) else y
    parts = [_heads(w, part, count) for part in _split(w, y, sizes)]
    _attention(w, parts, sizes[0] // count, 3, 4, 5)


@contributes("QAttention")
def _projected_integers(w: Writer) -> None:
    w.like = 2
    sizes, count = _sizes(w, 2, 1), w.attr("num_heads")
    zeros = [w[number] if w.has(number) else "" for number in (6, 7)]
    y = w.op("Cast", w.op("MatMulInteger", w[0], w[1], *zeros), to=w.type())
    y = w.op("Mul", y, w.op("Mul", w.reshape(w[3]), w[4]))
    parts = [_heads(w, part, count) for part in _split(w, w.op("Add", y, w[2]), sizes)]
    _attention(w, parts, sizes[0] // count, 5, 8, None)


@contributes("MultiHeadAttention")
def _multi_head(w: Writer) -> None:
    count = w.attr("num_heads")
    if w.rank(0) != 3 or not w.has(1) or w.rank(1) == 5:
        raise Refused("MultiHeadAttention of queries, keys and values in one tensor")
    given, sizes = [w[0], w[1], w[2]], [w.shape(number)[-1] for number in range(3)]
    if w.has(3):
        known = [size for size in sizes if isinstance(size, int)]
        if w.rank(1) != 3 or len(known) != len(sizes):
            raise Unknown("MultiHeadAttention of a size known at run time only")
        ends = np.cumsum([0, *known]).tolist()
        biases = [w.part(w[3], 0, start, end) for start, end in itertools.pairwise(ends)]
        given = [w.op("Add", *pair) for pair in zip(given, biases, strict=True)]
    query, keys, values = (_heads(w, x, count) if w.rank(number) == 3 else x for number, x in enumerate(given))
    if w.has(6):
        keys, values = w.op("Concat", w[6], keys, axis=2), w.op("Concat", w[7], values, axis=2)
    for number, value in ((1, keys), (2, values)):
        if w.wants(number):
            w.op("Identity", value, result=number)
    masks = [*_mask(w, 4, keys), *([w[5]] if w.has(5) else [])]
    hidden = _later(w, query, keys) if w.attr("unidirectional", 0) else None
    size = sizes[0] // count if isinstance(sizes[0], int) else None
    _merged(w, _attended(w, query, keys, values, masks, size, hidden))


# Places that turn.


def _turned(w: Writer, x: str, places: str, tables: tuple[int, int], interleaved: bool, width: int) -> str:
    """Heads, of ``width`` elements of which some may stay, turned by the angles of their places."""
    half = w.shape(tables[0])[-1]
    if not isinstance(half, int):
        raise Unknown(f"{w.node.op_type} of a size known at run time only")
    cosine, sine = (w.unsqueeze(w.op("Gather", w[number], places), 1) for number in tables)
    given = w.part(x, 3, 0, 2 * half) if 2 * half < width else x
    if interleaved:
        pairs = w.reshape(given, 0, 0, 0, half, 2)
        first, second = (w.op("Gather", pairs, w.constant(number, np.int64), axis=4) for number in (0, 1))
    else:
        first, second = w.part(given, 3, 0, half), w.part(given, 3, half, 2 * half)
    left = w.op("Sub", w.op("Mul", first, cosine), w.op("Mul", second, sine))
    right = w.op("Add", w.op("Mul", first, sine), w.op("Mul", second, cosine))
    if interleaved:
        y = w.op("Concat", w.unsqueeze(left, 4), w.unsqueeze(right, 4), axis=4)
        y = w.reshape(y, 0, 0, 0, 2 * half)
    else:
        y = w.op("Concat", left, right, axis=3)
    return w.op("Concat", y, w.part(x, 3, 2 * half, width), axis=3) if 2 * half < width else y


@contributes("RotaryEmbedding")
def _rotary_embedding(w: Writer) -> None:
    """Places are given, or begin at the one number that is."""
    if w.attr("is_packed_batching", 0) or w.attr("scale", 1.0) != 1.0:
        raise Refused("RotaryEmbedding of packed batches, or with a scale")
    flat, half = w.rank(0) == 3, w.shape(2)[-1]
    last = w.shape(0)[-1]
    count = w.attr("num_heads", 0)
    if not isinstance(half, int) or not isinstance(last, int):
        raise Unknown("RotaryEmbedding of a size known at run time only")
    width = last if not flat else last // count if count else 2 * half
    x = _heads(w, w[0], last // width) if flat else w[0]
    places = w[1]
    if w.rank(1) == 1:
        places = w.unsqueeze(w.op("Add", w.range(w.extent(x, 2)), places), 0)
    y = _turned(w, x, places, (2, 3), bool(w.attr("interleaved", 0)), width)
    if flat:
        _merged(w, y)
    else:
        w.op("Identity", y, result=0)


@contributes("GroupQueryAttention")
def _group_query(w: Writer) -> None:
    """Keys and values of fewer heads, written behind those of the past, as many as each row of the batch has."""
    count, shared = w.attr("num_heads"), w.attr("kv_num_heads")
    if any(w.has(number) for number in range(9, len(w.node.input))) or w.attr("smooth_softmax", 0) > 0:
        raise Refused("GroupQueryAttention with places, biases or sinks of its own")
    width = w.shape(0)[-1]
    if not isinstance(width, int):
        raise Unknown("GroupQueryAttention of a size known at run time only")
    if w.has(1):
        size = width // count
        parts = [w[0], w[1], w[2]]
    else:
        size = width // (count + 2 * shared)
        parts = _split(w, w[0], [count * size, shared * size, shared * size])
    query, keys, values = (_heads(w, x, n) for x, n in zip(parts, (count, shared, shared), strict=True))
    # Places of what is new, in each row.
    new, one = w.extent(query, 2), w.constant(1, np.int64)
    total = w.reshape(w.to(w[6], np.int64))
    have = w.op("Add", w.reshape(w.to(w[5], np.int64), -1, 1), one)
    first = w.op("Where", w.op("Equal", total, new), w.constant(0, np.int64), w.op("Sub", have, new))
    places = w.op("Add", first, w.unsqueeze(w.range(new), 0))
    if w.attr("do_rotary", 0):
        turn = bool(w.attr("rotary_interleaved", 0))
        query, keys = (_turned(w, x, places, (7, 8), turn, size) for x in (query, keys))
    past = w.extent(w[3], 2) if w.has(3) else w.constant(0, np.int64)
    number = w.unsqueeze(w.range(w.op("Max", past, total)), 0)
    last = w.op("Sub", new, one)
    inside = w.op("Max", w.op("Min", w.op("Sub", number, first), last), w.constant(0, np.int64))
    behind = w.op("Where", w.op("Less", number, first), number, w.op("Add", past, inside))
    there = w.unsqueeze(w.op("Less", number, w.op("Add", first, new)), 1, 3)
    keys, values = (
        w.op(
            "Where",
            there,
            _gathered(w, w.op("Concat", w[old], x, axis=2) if w.has(old) else x, behind),
            w.number(0),
            result=result if w.wants(result) else None,
        )
        for old, x, result in ((3, keys, 1), (4, values, 2))
    )
    each = w.unsqueeze(places, 2)
    hidden = w.op("Greater", w.unsqueeze(number, 1), w.op("Min", each, w.op("Sub", w.unsqueeze(have, 2), one)))
    if (window := w.attr("local_window_size", -1)) > 0:
        least = w.op("Sub", each, w.constant(window, np.int64))
        hidden = w.op("Or", hidden, w.op("Not", w.op("Greater", w.unsqueeze(number, 1), least)))
    groups = w.constant(np.repeat(np.arange(shared), count // shared), np.int64)
    keys, values = (w.op("Gather", x, groups, axis=1) for x in (keys, values))
    _merged(w, _attended(w, query, keys, values, [], size, w.unsqueeze(hidden, 1)))


def _gathered(w: Writer, x: str, places: str) -> str:
    """The elements of heads at places of each row of the batch."""
    shape = [w.unsqueeze(w.extent(x, 0), 0), w.unsqueeze(w.extent(x, 1), 0), w.unsqueeze(w.extent(places, 1), 0)]
    shape = w.op("Concat", *shape, w.unsqueeze(w.extent(x, 3), 0), axis=0)
    return w.op("GatherElements", x, w.op("Expand", w.unsqueeze(places, 1, 3), shape), axis=2)
