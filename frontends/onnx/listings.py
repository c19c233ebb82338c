"""Operators that list what is looked for or made: counts of n-grams, matrices of mel filters."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from devscope.frontends.onnx.rewriter import Writer, contributes
from devscope.frontends.onnx.types import Refused

OPERATORS = frozenset(("MelWeightMatrix", "TfIdfVectorizer"))


@contributes("TfIdfVectorizer")
def _tf_idf(w: Writer) -> None:
    """All elements that one may begin with are compared with all n-grams of a length, for each number of skips."""
    if "pool_int64s" not in w.attributes:
        raise Refused("TfIdfVectorizer of strings, which are not supported")
    pool, begins = np.array(w.attr("pool_int64s"), np.int64), [*w.attr("ngram_counts")]
    places, rank = np.array(w.attr("ngram_indexes"), np.int64), w.rank(0)
    x = w.op("Cast", w[0], to=onnx.TensorProto.INT64)
    x = w.unsqueeze(x, 0) if rank == 1 else x
    width, counts, first = int(places.max()) + 1, "", 0
    for length, (begin, end) in enumerate(zip(begins, [*begins[1:], pool.size], strict=True), 1):
        grams = pool[begin:end].reshape(-1, length)
        own, first = places[first : first + len(grams)], first + len(grams)
        if not len(grams) or not w.attr("min_gram_length") <= length <= w.attr("max_gram_length"):
            continue
        to = w.constant((own[:, None] == np.arange(width)).astype(np.float32))
        for skip in range(w.attr("max_skip_count") + 1 if length > 1 else 1):
            found = w.op("MatMul", _counted(w, x, grams, skip + 1), to)
            counts = w.op("Add", counts, found) if counts else found
    if not counts:
        raise Refused("TfIdfVectorizer of no n-grams")
    mode, weights = w.attr("mode"), np.array(w.attr("weights", [1.0] * width), np.float32)[:width]
    if mode == "IDF":
        counts = w.op("Cast", w.op("Greater", counts, w.constant(0.0)), to=onnx.TensorProto.FLOAT)
    if mode != "TF":
        counts = w.op("Mul", counts, w.constant(weights))
    w.op("Identity", w.squeeze(counts, 0) if rank == 1 else counts, result=0)


def _counted(w: Writer, x: str, grams: Any, step: int) -> str:
    """How often each n-gram is in a row, of elements ``step`` apart."""
    length, found = grams.shape[1], ""
    for number in range(length):
        behind = (length - 1 - number) * step
        part = w.part(x, 1, number * step, -behind or 1 << 62)
        same = w.op("Equal", w.unsqueeze(part, 2), w.constant(grams[:, number], np.int64))
        found = w.op("And", found, same) if found else same
    return w.sum(w.op("Cast", found, to=onnx.TensorProto.FLOAT), [1])


@contributes("MelWeightMatrix")
def _mel_weights(w: Writer) -> None:
    """As the reference implementation of ONNX."""
    given = [w.data(number) for number in range(5)]
    if any(one is None for one in given):
        raise Refused("MelWeightMatrix whose operands are computed at run time")
    bands, length, rate, lower, upper = (one.reshape(-1)[0].item() for one in given)
    mels = 2595 * np.log10(1 + np.array([lower, upper]) / 700)
    centres = mels[0] + np.arange(bands + 2) * ((mels[1] - mels[0]) / (bands + 2))
    bins = np.floor((length + 1) * (700 * (10 ** (centres / 2595) - 1)) / rate).astype(np.int64)
    found = np.zeros((length // 2 + 1, bands), np.float32)
    for band in range(bands):
        low, middle, high = bins[band : band + 3]
        if low == middle:
            found[middle, band] = 1
        for at in range(low, middle + 1 if low < middle else low):
            found[at, band] = (at - low) / (middle - low)
        for at in range(middle, high):
            found[at, band] = (high - at) / (high - middle)
    of = w.attr("output_datatype", onnx.TensorProto.FLOAT)
    w.op("Cast", w.constant(found), to=of, result=0)
