"""Operators of classical machine learning (``ai.onnx.ml``), beside onnxruntime: of known and of any sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import devscope
from devscope.errors import LoweringError

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

pytestmark = pytest.mark.sampled(12)
RNG = np.random.default_rng(5)


def random(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def learned(kind: str, given: Any, results: list[int], batch: Any, version: int = 3, **attributes: Any) -> Any:
    """A model of one operator; ``results`` are the types of its results."""
    node = helper.make_node(kind, ["x"], [f"y{n}" for n in range(len(results))], domain="ai.onnx.ml", **attributes)
    x = helper.make_tensor_value_info(
        "x", helper.np_dtype_to_tensor_dtype(given.dtype), [batch or given.shape[0], *given.shape[1:]]
    )
    ranks = [1 if len(results) == 2 and n == 0 else 2 for n in range(len(results))]
    infos = [helper.make_tensor_value_info(f"y{n}", of, [None] * ranks[n]) for n, of in enumerate(results)]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", version)]
    return helper.make_model(helper.make_graph([node], "g", [x], infos), opset_imports=opsets, ir_version=8)


def check(kind: str, given: Any, results: list[int], batch: Any, version: int = 3, **attributes: Any) -> None:
    model = learned(kind, given, results, batch, version, **attributes)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    with devscope.compile(model, cache=False) as exe:
        for one in (given, given[:2]) if batch else (given,):
            found = exe(x=one)
            found = found if isinstance(found, tuple) else (found,)
            for got, want in zip(found, session.run(None, {"x": one}), strict=True):
                np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-6)


def forest(kind: str, targets: list[int], modes: list[str], positive: bool = False) -> dict[str, Any]:
    """Trees of two levels, of one and of none; all leaves are of all ``targets``."""
    names: dict[str, list[Any]] = {name: [] for name in ("tree", "node", "feature", "true", "false", "mode")}
    leaves: list[tuple[int, int]] = []
    for tree, nodes in enumerate([[(1, 2), (3, 4), None, None, None], [(1, 2), None, None], [None]]):
        for at, to in enumerate(nodes):
            row = (tree, at, (tree + at) % 3, *(to or (0, 0)), modes[(tree + at) % len(modes)] if to else "LEAF")
            for name, value in zip(names, row, strict=True):
                names[name].append(value)
            if to is None:
                leaves.append((tree, at))
    leaves = [leaf for leaf in leaves for _ in targets]
    weights = random(len(leaves))
    return {
        "nodes_treeids": names["tree"],
        "nodes_nodeids": names["node"],
        "nodes_featureids": names["feature"],
        "nodes_truenodeids": names["true"],
        "nodes_falsenodeids": names["false"],
        "nodes_modes": names["mode"],
        "nodes_values": [0.1 * n - 0.3 for n in range(len(names["tree"]))],
        "nodes_missing_value_tracks_true": [n % 2 for n in range(len(names["tree"]))],
        f"{kind}_treeids": [tree for tree, _ in leaves],
        f"{kind}_nodeids": [node for _, node in leaves],
        f"{kind}_ids": [targets[n % len(targets)] for n in range(len(leaves))],
        f"{kind}_weights": (np.abs(weights) / 3 if positive else weights).tolist(),
    }


X = random(6, 3)
CODES = np.array([[3, 1, 7], [1, 1, 4], [9, 3, 3]])
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
THREE = {"classlabels_int64s": [5, 7, 9]}
TWO = {"classlabels_int64s": [0, 4]}
MISSING = np.where(X > 0.5, np.nan, X).astype(np.float32)
LINE = {"coefficients": random(9).tolist(), "intercepts": [0.1, -0.2, 0.3]}
SUPPORT = {
    "n_supports": 4,
    "support_vectors": random(12).tolist(),
    "coefficients": random(4).tolist(),
    "rho": [0.3],
}


@pytest.mark.parametrize("batch", [None, "n"], ids=["known", "any"])
@pytest.mark.parametrize(
    ("kind", "given", "results", "attributes"),
    [
        ("Scaler", X, [FLOAT], {"offset": [0.1, 0.2, 0.3], "scale": [2.0, 3.0, 0.5]}),
        ("Scaler", CODES, [FLOAT], {"offset": [1.0], "scale": [0.5]}),
        ("Binarizer", X, [FLOAT], {"threshold": 0.3}),
        *(("Normalizer", X, [FLOAT], {"norm": norm}) for norm in ("L1", "L2")),
        ("Imputer", MISSING, [FLOAT], {"imputed_value_floats": [1.0, 2.0, 3.0], "replaced_value_float": np.nan}),
        ("Imputer", CODES, [INT64], {"imputed_value_int64s": [8], "replaced_value_int64": 3}),
        ("LabelEncoder", CODES, [FLOAT], {"keys_int64s": [1, 3, 9], "values_floats": [0.5, 1.5, 2.5]}),
        (
            "LabelEncoder",
            CODES,
            [INT64],
            {"keys_int64s": [4, 1, 7], "values_int64s": [1, 2, 3], "default_int64": 6},
        ),
        ("LinearRegressor", X, [FLOAT], {**LINE, "targets": 3}),
        (
            "LinearClassifier",
            X,
            [INT64, FLOAT],
            {**LINE, "classlabels_ints": [2, 4, 6], "post_transform": "SOFTMAX"},
        ),
        *(
            ("SVMRegressor", X, [FLOAT], {**SUPPORT, "kernel_type": kernel, "kernel_params": [0.4, 0.2, 2.0]})
            for kernel in ("LINEAR", "RBF", "POLY", "SIGMOID")
        ),
        ("TreeEnsembleRegressor", MISSING, [FLOAT], {**forest("target", [0], ["BRANCH_LEQ"]), "n_targets": 1}),
        (
            "TreeEnsembleRegressor",
            X,
            [FLOAT],
            {
                **forest("target", [0, 1], ["BRANCH_LT", "BRANCH_GTE", "BRANCH_NEQ"]),
                **{"n_targets": 2, "base_values": [0.5, 1.5]},
            },
        ),
        *(
            (
                "TreeEnsembleRegressor",
                X,
                [FLOAT],
                {**forest("target", [0], ["BRANCH_GT"]), "n_targets": 1, "aggregate_function": function},
            )
            for function in ("AVERAGE", "MIN", "MAX")
        ),
        *(
            (
                "TreeEnsembleClassifier",
                X,
                [INT64, FLOAT],
                {**forest("class", [0, 1, 2], ["BRANCH_LEQ"]), **THREE, "post_transform": post},
            )
            for post in ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO")
        ),
        ("TreeEnsembleClassifier", X, [INT64, FLOAT], {**forest("class", [0], ["BRANCH_LEQ"], True), **TWO}),
        (
            "TreeEnsembleClassifier",
            X,
            [INT64, FLOAT],
            {**forest("class", [0], ["BRANCH_LEQ"]), **TWO, "post_transform": "LOGISTIC", "base_values": [0.3]},
        ),
    ],
)
def test_as_onnxruntime(kind: str, given: Any, results: list[int], attributes: dict[str, Any], batch: Any) -> None:
    check(kind, given, results, batch, **attributes)


@pytest.mark.parametrize("batch", [3, "n"], ids=["known", "any"])
def test_columns_and_labels_that_are_taken(batch: Any) -> None:
    """As converters of scikit-learn write them: columns, and labels by the places of the best scores."""
    take = {"op_type": "ArrayFeatureExtractor", "domain": "ai.onnx.ml"}
    nodes = [
        helper.make_node(**take, inputs=["x", "columns"], outputs=["some"]),
        helper.make_node("ArgMax", ["x"], ["best"], axis=1),
        helper.make_node(**take, inputs=["labels", "best"], outputs=["label"]),
    ]
    constants = {"columns": np.array([[2, 0]]), "labels": np.array([5, 7, 9])}
    graph = helper.make_graph(
        nodes,
        "taken",
        [helper.make_tensor_value_info("x", FLOAT, [batch, 3])],
        [helper.make_tensor_value_info("some", FLOAT, [batch, 2]),
         helper.make_tensor_value_info("label", INT64, [1, batch])],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    exe = devscope.compile(helper.make_model(graph, opset_imports=opsets, ir_version=8), cache=False)
    some, label = exe(x=X[:3])
    np.testing.assert_array_equal(some, X[:3, [2, 0]])
    np.testing.assert_array_equal(label, [constants["labels"][X[:3].argmax(1)]])


def test_an_ensemble_with_leaves_of_their_own() -> None:
    attributes = {
        "n_targets": 2,
        "tree_roots": [0, 2],
        "nodes_featureids": [0, 1, 2],
        "nodes_splits": numpy_helper.from_array(np.array([0.1, -0.2, 0.3], np.float32)),
        "nodes_modes": numpy_helper.from_array(np.array([0, 3, 2], np.uint8)),
        "nodes_truenodeids": [1, 0, 2],
        "nodes_trueleafs": [0, 1, 1],
        "nodes_falsenodeids": [3, 1, 0],
        "nodes_falseleafs": [1, 1, 1],
        "leaf_targetids": [0, 1, 0, 1],
        "leaf_weights": numpy_helper.from_array(random(4)),
    }
    check("TreeEnsemble", X, [FLOAT], "n", 5, **attributes)


@pytest.mark.parametrize(
    ("kind", "attributes", "said"),
    [
        ("LabelEncoder", {"keys_strings": ["a"], "values_int64s": [1]}, "strings"),
        (
            "TreeEnsembleClassifier",
            {"classlabels_strings": ["a", "b"]},
            "TreeEnsembleClassifier whose labels are str",
        ),
        ("SVMClassifier", {}, "SVMClassifier is not supported"),
    ],
)
def test_text_is_refused(kind: str, attributes: dict[str, Any], said: str) -> None:
    given = np.array([["a"]], object) if kind == "LabelEncoder" else CODES
    results = {"LabelEncoder": [INT64], "SVMClassifier": [INT64, FLOAT]}.get(kind, [TensorProto.STRING, FLOAT])
    with pytest.raises(LoweringError, match=said) as error:
        devscope.compile(learned(kind, given, results, None, **attributes), cache=False)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("batch", [None, "n"], ids=["known", "any"])
def test_a_model_of_no_other_operators(batch: Any) -> None:
    model = learned("Normalizer", X, [FLOAT], batch, norm="L2")
    want = devscope.compile(model, cache=False)(X)
    del model.opset_import[0]
    np.testing.assert_array_equal(devscope.compile(model, cache=False)(X), want)
