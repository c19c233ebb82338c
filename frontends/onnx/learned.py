"""Operators of classical machine learning (``ai.onnx.ml``), which converters of scikit-learn and others write.

They are written out in operators of ONNX, of known shapes and of any size. Where the specification leaves it open,
results are onnxruntime's. Ensembles of trees: `trees`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx

from devscope.frontends.onnx.rewriter import Writer, learned
from devscope.frontends.onnx.types import Refused

_FLOAT, _INT64 = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64


def array(w: Writer, name: str, dtype: Any) -> Any:
    """A list among the attributes, empty where there is none."""
    return np.asarray(w.attr(name, []), dtype)


def as_rows(w: Writer) -> str:
    """The first operand as floats, a row for each sample."""
    x = w.op("Cast", w[0], to=_FLOAT) if w.graph.type_of(w[0]) != _FLOAT else w[0]
    return w.unsqueeze(x, 0) if w.rank(0) == 1 else x


def transformed(w: Writer, scores: str, given: str | None = None, result: int | None = None) -> str:
    """Scores, a column for each class or target, after the transform ``given``, or that of the node."""
    post: str = w.attr("post_transform", "NONE") if given is None else given
    if post == "SOFTMAX_ZERO":  # scores of 0 stay
        absent = w.op("Equal", scores, w.constant(0.0))
        least = w.op("Where", absent, w.constant(-math.inf), scores)
        return w.op("Where", absent, w.constant(0.0), w.op("Softmax", least, axis=-1), result=result)
    if post == "PROBIT":
        raise Refused(f"{w.node.op_type} with the transform PROBIT")
    kinds = {"NONE": "Identity", "LOGISTIC": "Sigmoid", "SOFTMAX": "Softmax"}
    return w.op(kinds[post], scores, result=result, **({"axis": -1} if post == "SOFTMAX" else {}))


def labels(w: Writer) -> Any:
    """Those of classes, numbers; None where they are text, which is refused where the label is wanted."""
    found = w.attr("classlabels_int64s", w.attr("classlabels_ints"))
    if found is None and w.wants(0):
        raise Refused(f"{w.node.op_type} whose labels are strings, which are not supported")
    return None if found is None else np.asarray(found, np.int64)


def with_both(w: Writer, positive: str, offset: float) -> str:
    """Two columns of the scores of the second of two classes; the first one's is ``offset`` minus that."""
    return w.op("Concat", w.op("Sub", w.constant(offset), positive), positive, axis=1)


def label_of_two(w: Writer, positive: str, least: float, names: Any) -> None:
    is_second = w.squeeze(w.op("Greater", positive, w.constant(least)), 1)
    w.op("Where", is_second, w.constant(names[1], np.int64), w.constant(names[0], np.int64), result=0)


def label_of_most(w: Writer, scores: str, names: Any) -> None:
    best = w.op("ArgMax", scores, axis=1, keepdims=0)
    w.op("Gather", w.constant(names, np.int64), best, result=0)


@learned("LinearRegressor")
def _linear_regressor(w: Writer) -> None:
    targets = w.attr("targets", 1)
    y = w.op("MatMul", as_rows(w), w.constant(array(w, "coefficients", np.float32).reshape(targets, -1).T))
    if "intercepts" in w.attributes:
        y = w.op("Add", y, w.constant(array(w, "intercepts", np.float32)))
    transformed(w, y, result=0)


@learned("LinearClassifier")
def _linear_classifier(w: Writer) -> None:
    names, intercepts = labels(w), array(w, "intercepts", np.float32)
    coefficients = array(w, "coefficients", np.float32)
    features = w.shape(0)[-1]
    rows = intercepts.size or (coefficients.size // features if isinstance(features, int) else 0)
    if not rows:
        raise Refused("LinearClassifier without intercepts, of features of any number")
    scores = w.op("MatMul", as_rows(w), w.constant(coefficients.reshape(rows, -1).T))
    if intercepts.size:
        scores = w.op("Add", scores, w.constant(intercepts))
    if rows > 1:
        if w.wants(0):
            label_of_most(w, scores, names)
    else:
        if w.wants(0):
            label_of_two(w, scores, 0.0, names)
        if w.attr("post_transform", "NONE") != "NONE":
            raise Refused("LinearClassifier of one row of coefficients with a transform")
        scores = with_both(w, scores, 1.0)
    if w.wants(1):
        transformed(w, scores, result=1)


@learned("Binarizer")
def _binarizer(w: Writer) -> None:
    above = w.op("Greater", w[0], w.number(w.attr("threshold", 0.0)))
    w.op("Cast", above, to=w.type(), result=0)


@learned("ArrayFeatureExtractor")
def _array_feature_extractor(w: Writer) -> None:
    x = w.unsqueeze(w[0], 0) if w.rank(0) == 1 else w[0]
    w.op("Gather", x, w.reshape(w[1], -1), axis=-1, result=0)


@learned("Scaler")
def _scaler(w: Writer) -> None:
    x = w.op("Cast", w[0], to=_FLOAT) if w.graph.type_of(w[0]) != _FLOAT else w[0]
    x = w.op("Sub", x, w.constant(array(w, "offset", np.float32)))
    w.op("Mul", x, w.constant(array(w, "scale", np.float32)), result=0)


@learned("Normalizer")
def _normalizer(w: Writer) -> None:
    """Rows of zeros stay."""
    x, norm = as_rows(w), w.attr("norm", "MAX")
    if norm == "MAX":
        size = w.reduced("ReduceMax", x, [1], keepdims=1)
    else:
        parts = w.op("Abs", x) if norm == "L1" else w.op("Mul", x, x)
        size = w.unsqueeze(w.sum(parts, [1]), 1)
        size = w.op("Sqrt", size) if norm == "L2" else size
    size = w.op("Where", w.op("Equal", size, w.constant(0.0)), w.constant(1.0), size)
    if w.rank(0) == 1:
        w.op("Reshape", w.op("Div", x, size), w.constant([-1], np.int64), result=0)
    else:
        w.op("Div", x, size, result=0)


@learned("Imputer")
def _imputer(w: Writer) -> None:
    kind = "float" if "imputed_value_floats" in w.attributes else "int64"
    imputed = array(w, f"imputed_value_{kind}s", w.dtype)
    replaced = w.attr(f"replaced_value_{kind}", 0)
    missing = w.op("IsNaN", w[0]) if math.isnan(replaced) else w.op("Equal", w[0], w.number(replaced))
    w.op("Where", missing, w.constant(imputed, w.dtype), w[0], result=0)


@learned("OneHotEncoder")
def _one_hot(w: Writer) -> None:
    """Categories that are not listed are zeros, also where the node says that they are errors."""
    if "cats_int64s" not in w.attributes:
        raise Refused("OneHotEncoder of strings, which are not supported")
    x = w.unsqueeze(w.op("Cast", w[0], to=_INT64), -1)
    same = w.op("Equal", x, w.constant(array(w, "cats_int64s", np.int64), np.int64))
    w.op("Cast", same, to=_FLOAT, result=0)


@learned("FeatureVectorizer")
def _feature_vectorizer(w: Writer) -> None:
    parts: list[str] = []
    for number, name in enumerate(w.node.input):
        x = w.op("Cast", name, to=_FLOAT)
        parts.append(w.unsqueeze(x, 0) if w.rank(number) == 1 else x)
    w.op("Concat", *parts, axis=1, result=0)


_KINDS = {"float": np.float32, "int64": np.int64}


def _listed(w: Writer, what: str) -> Any:
    """Keys or values, of whichever type the node lists them."""
    if (tensor := w.attr(f"{what}_tensor")) is not None:
        found = onnx.numpy_helper.to_array(tensor)
        if found.dtype.kind in "biuf":
            return found.reshape(-1)
    for kind, dtype in _KINDS.items():
        if f"{what}_{kind}s" in w.attributes:
            return array(w, f"{what}_{kind}s", dtype)
    raise Refused("LabelEncoder of strings, which are not supported")


@learned("LabelEncoder")
def _label_encoder(w: Writer) -> None:
    """Keys are looked for one beside the other; NaN is the key NaN."""
    keys, values = _listed(w, "keys"), _listed(w, "values")
    default: Any = -1 if values.dtype.kind == "i" else -0.0
    default = w.attr("default_int64" if values.dtype.kind == "i" else "default_float", default)
    if (tensor := w.attr("default_tensor")) is not None:
        default = onnx.numpy_helper.to_array(tensor).reshape(-1)[0]
    x = w.unsqueeze(w[0], w.rank(0))
    same = w.op("Equal", x, w.constant(keys, keys.dtype))
    if keys.dtype.kind == "f" and np.isnan(keys).any():
        same = w.op("Or", same, w.op("And", w.op("IsNaN", x), w.constant(np.isnan(keys), np.bool_)))
    # What is not found is one more, the last.
    first = w.op("Mul", w.op("Cast", same, to=_INT64), w.constant(np.arange(keys.size, 0, -1), np.int64))
    back = np.concatenate([[default], values[::-1]]).astype(values.dtype)
    w.op("Gather", w.constant(back, values.dtype), w.reduced("ReduceMax", first, [-1]), result=0)


@learned("SVMRegressor")
def _svm_regressor(w: Writer) -> None:
    coefficients, x = array(w, "coefficients", np.float32), as_rows(w)
    vectors = array(w, "support_vectors", np.float32).reshape(w.attr("n_supports", 0) or 1, -1)
    kernel, (gamma, offset, degree) = w.attr("kernel_type", "LINEAR"), [*w.attr("kernel_params", []), 0, 0, 3][:3]
    if w.attr("n_supports", 0) == 0:
        near = x
    elif kernel == "RBF":
        squares = w.unsqueeze(w.sum(w.op("Mul", x, x), [1]), 1)
        inner = w.op("MatMul", x, w.constant(-2 * vectors.T))
        apart = w.op("Add", w.op("Add", squares, inner), w.constant((vectors**2).sum(1)))
        near = w.op("Exp", w.op("Mul", apart, w.constant(-gamma)))
    else:
        near = w.op("MatMul", x, w.constant(vectors.T))
        if kernel in ("POLY", "SIGMOID"):
            near = w.op("Add", w.op("Mul", near, w.constant(gamma)), w.constant(offset))
            near = w.op("Tanh", near) if kernel == "SIGMOID" else w.op("Pow", near, w.constant(degree))
    y = w.op(
        "Add", w.op("MatMul", near, w.constant(coefficients.reshape(-1, 1))), w.constant(array(w, "rho", "f"))
    )
    if w.attr("one_class", 0):
        y = w.op("Where", w.op("Greater", y, w.constant(0.0)), w.constant(1.0), w.constant(-1.0))
    transformed(w, y, result=0)


for _name in ("CategoryMapper", "DictVectorizer", "CastMap", "ZipMap"):

    @learned(_name)
    def _of_maps(w: Writer) -> None:
        raise Refused(f"{w.node.op_type}: maps and strings are not supported")


@learned("SVMClassifier")
def _svm_classifier(w: Writer) -> None:
    raise Refused("SVMClassifier is not supported")
