"""Ensembles of decision trees: all samples go down all trees at once, a step for each level.

Where they are is a matrix of nodes, a row for each sample, a column for each tree; leaves lead to themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from devscope.frontends.onnx.learned import (
    array,
    as_rows,
    label_of_most,
    label_of_two,
    labels,
    transformed,
    with_both,
)
from devscope.frontends.onnx.rewriter import Writer, learned
from devscope.frontends.onnx.types import Refused

_Array = Any
_COMPARISONS = {"LEQ": "LessOrEqual", "LT": "Less", "GTE": "GreaterOrEqual", "GT": "Greater", "EQ": "Equal"}


@dataclass
class Ensemble:
    """By node: the feature that decides, what it is compared with and how, and where it goes on; `weights` by target."""

    features: _Array
    values: _Array
    modes: list[str]
    then: _Array
    otherwise: _Array
    is_missing_then: _Array
    weights: _Array
    roots: _Array

    def depth(self) -> int:
        here, steps = self.roots, 0
        while (inner := here[self.then[here] != here]).size:
            here, steps = np.unique(np.concatenate([self.then[inner], self.otherwise[inner]])), steps + 1
            if steps > self.then.size:
                raise Refused("trees that lead in circles")
        return steps


def leaves(w: Writer, x: str, trees: Ensemble) -> str:
    """Which leaf of each tree a sample gets to."""
    dtype, here = trees.values.dtype, w.constant(trees.roots[None], np.int64)
    modes = sorted({mode for mode, at, to in zip(trees.modes, range(len(trees.modes)), trees.then, strict=True)
                    if at != to})  # fmt: skip

    def of_each(numbers: _Array, dtype: Any = np.int64) -> str:
        return w.op("Gather", w.constant(numbers, dtype), here)

    for step in range(max(1, trees.depth())):
        if step:
            given = w.op("GatherElements", x, of_each(trees.features), axis=1)
        else:  # the same for all samples
            given = w.op("Gather", x, w.constant(trees.features[trees.roots], np.int64), axis=1)
        limits, found = of_each(trees.values, dtype), ""
        for mode in modes or ["LEQ"]:
            one = w.op("Equal" if mode == "NEQ" else _COMPARISONS[mode], given, limits)
            one = w.op("Not", one) if mode == "NEQ" else one
            is_of = of_each(np.array([other == mode for other in trees.modes]), np.bool_)
            found = one if not found else w.op("Where", is_of, one, found)
        if trees.is_missing_then.any():
            missing = w.op("And", w.op("IsNaN", given), of_each(trees.is_missing_then, np.bool_))
            found = w.op("Or", found, missing)
        here = w.op("Where", found, of_each(trees.then), of_each(trees.otherwise))
    return here


def scores(w: Writer, x: str, trees: Ensemble, aggregate: str) -> str:
    """A column for each target."""
    own = w.op("Gather", w.constant(trees.weights, trees.weights.dtype), leaves(w, x, trees))
    if aggregate in ("MIN", "MAX"):
        return w.reduced(f"Reduce{aggregate.capitalize()}", own, [1])
    found = w.sum(own, [1])
    count = w.constant(trees.roots.size, trees.weights.dtype)
    return w.op("Div", found, count) if aggregate == "AVERAGE" else found


def _ensemble(w: Writer, kind: str, count: int) -> Ensemble:
    """Of the attributes of a regressor (``target``) or a classifier (``class``)."""

    def numbers(name: str) -> _Array:
        if (tensor := w.attr(f"{name}_as_tensor")) is not None:
            return onnx.numpy_helper.to_array(tensor)
        return array(w, name, np.float32)

    trees, nodes = array(w, "nodes_treeids", np.int64), array(w, "nodes_nodeids", np.int64)
    place = {(int(tree), int(node)): at for at, (tree, node) in enumerate(zip(trees, nodes, strict=True))}
    modes = [one.decode().removeprefix("BRANCH_") for one in w.attr("nodes_modes", [])]
    sides: list[_Array] = []
    for name in ("nodes_truenodeids", "nodes_falsenodeids"):
        to = [place.get((int(tree), int(node)), 0) for tree, node in zip(trees, array(w, name, "i8"), strict=True)]
        sides.append(np.array([at if modes[at] == "LEAF" else one for at, one in enumerate(to)], np.int64))
    inner = [at for at, mode in enumerate(modes) if mode != "LEAF"]
    led_to = {int(side[at]) for side in sides for at in inner}
    values, own = numbers("nodes_values"), numbers(f"{kind}_weights")
    weights = np.zeros((len(modes), count), own.dtype)
    leaf = zip(array(w, f"{kind}_treeids", "i8"), array(w, f"{kind}_nodeids", "i8"), strict=True)
    for (tree, node), target, weight in zip(leaf, array(w, f"{kind}_ids", "i8"), own, strict=True):
        weights[place[int(tree), int(node)], target] += weight
    missing = array(w, "nodes_missing_value_tracks_true", np.bool_)
    then, otherwise = sides
    return Ensemble(
        array(w, "nodes_featureids", np.int64), values, modes, then, otherwise,
        missing if missing.size else np.zeros(len(modes), np.bool_),
        weights, np.array([at for at in range(len(modes)) if at not in led_to], np.int64),
    )  # fmt: skip


def _samples(w: Writer, trees: Ensemble) -> str:
    x = as_rows(w)
    if trees.values.dtype == np.float64:
        x = w.op("Cast", w[0] if w.rank(0) == 2 else w.unsqueeze(w[0], 0), to=onnx.TensorProto.DOUBLE)
    return x


def _base(w: Writer) -> _Array:
    tensor = w.attr("base_values_as_tensor")
    return array(w, "base_values", np.float32) if tensor is None else onnx.numpy_helper.to_array(tensor)


@learned("TreeEnsembleRegressor")
def _regressor(w: Writer) -> None:
    trees, base = _ensemble(w, "target", w.attr("n_targets", 1)), _base(w)
    aggregate = w.attr("aggregate_function", "SUM")
    if aggregate in ("MIN", "MAX") and trees.weights.shape[1] > 1:
        raise Refused(f"TreeEnsembleRegressor of several targets with the function {aggregate}")
    found = scores(w, _samples(w, trees), trees, aggregate)
    if base.size:
        found = w.op("Add", found, w.constant(base, trees.weights.dtype))
    found = w.op("Cast", found, to=onnx.TensorProto.FLOAT)
    transformed(w, found, result=0)


@learned("TreeEnsembleClassifier")
def _classifier(w: Writer) -> None:
    """Of two classes, trees may give scores of one of them, which then is the second's."""
    names = labels(w)
    texts = w.attr("classlabels_strings", [])
    count = len(texts) if names is None else names.size
    trees, base = _ensemble(w, "class", count), _base(w)
    ids = np.unique(array(w, "class_ids", np.int64))
    is_binary = count == 2 and ids.size == 1
    if is_binary:
        trees.weights = trees.weights[:, ids]
    found = scores(w, _samples(w, trees), trees, "SUM")
    found = w.op("Cast", found, to=onnx.TensorProto.FLOAT)
    if is_binary and base.size == 2:
        base = base[1:]
    if base.size:
        found = w.op("Add", found, w.constant(base))
    post = w.attr("post_transform", "NONE")
    if not is_binary:
        if w.wants(0):
            label_of_most(w, found, names)
        if w.wants(1):
            transformed(w, found, result=1)
        return
    is_probability = bool((trees.weights >= 0).all())
    if w.wants(0):
        label_of_two(w, found, 0.5 if is_probability else 0.0, names)
    if w.wants(1):
        transformed(w, with_both(w, found, 1.0 if is_probability else 0.0), post, result=1)


_OF_NUMBERS = ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ")


@learned("TreeEnsemble")
def _tree_ensemble(w: Writer) -> None:
    """Inner nodes and leaves apart, each in lists of its own."""
    to_array: Any = onnx.numpy_helper.to_array
    splits, modes = to_array(w.attributes["nodes_splits"]), to_array(w.attributes["nodes_modes"])
    if modes.max(initial=0) >= len(_OF_NUMBERS):
        raise Refused("TreeEnsemble of memberships of sets")
    inner, targets = splits.size, array(w, "leaf_targetids", np.int64)
    sides: list[_Array] = []
    for side in ("true", "false"):
        to, is_leaf = array(w, f"nodes_{side}nodeids", np.int64), array(w, f"nodes_{side}leafs", np.bool_)
        leaf = np.arange(targets.size) + inner
        sides.append(np.concatenate([np.where(is_leaf, to + inner, to), leaf]))
    own = to_array(w.attributes["leaf_weights"])
    weights = np.zeros((inner + targets.size, w.attr("n_targets", 1)), own.dtype)
    weights[inner + np.arange(targets.size), targets] = own
    rest = [0] * targets.size
    missing = array(w, "nodes_missing_value_tracks_true", np.bool_)
    then, otherwise = sides
    trees = Ensemble(
        np.concatenate([array(w, "nodes_featureids", np.int64), rest]).astype(np.int64),
        np.concatenate([splits, rest]).astype(splits.dtype),
        [*(_OF_NUMBERS[one] for one in modes), *["LEAF"] * targets.size], then, otherwise,
        np.concatenate([missing if missing.size else np.zeros(inner), rest]).astype(np.bool_),
        weights, array(w, "tree_roots", np.int64),
    )  # fmt: skip
    aggregate = ("AVERAGE", "SUM", "MIN", "MAX")[w.attr("aggregate_function", 1)]
    if aggregate in ("MIN", "MAX") and weights.shape[1] > 1:
        raise Refused(f"TreeEnsemble of several targets with the function {aggregate}")
    x = w[0] if w.rank(0) == 2 else w.unsqueeze(w[0], 0)
    post = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")[w.attr("post_transform", 0)]
    transformed(w, scores(w, x, trees, aggregate), post, result=0)
