"""onnxruntime's own operators (``com.microsoft``), beside onnxruntime: of known shapes and of any size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import devscope
from devscope.errors import LoweringError

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
from onnx import helper, numpy_helper  # noqa: E402

RNG = np.random.default_rng(5)


def floats(*shape: int, dtype: Any = np.float32) -> Any:
    return RNG.standard_normal(shape).astype(dtype)


def codes(*shape: int, dtype: Any = np.uint8) -> Any:
    return RNG.integers(0, 127, shape).astype(dtype)


def own(kind: str, inputs: str, outputs: str, domain: str = "com.microsoft", **attributes: Any) -> Any:
    """Operands and results apart by spaces; ``_`` is one that is absent."""
    names = [["" if name == "_" else name for name in text.split()] for text in (inputs, outputs)]
    return helper.make_node(kind, *names, domain=domain, **attributes)


def model_of(nodes: list[Any], weights: dict[str, Any], given: dict[str, Any], free: dict[str, Any]) -> Any:
    """``free``: names of dimensions that may be of any size, by axis."""
    infos = []
    for name, array in given.items():
        shape = [free.get(name, {}).get(axis, extent) for axis, extent in enumerate(array.shape)]
        infos.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), shape))
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items()]
    bare = helper.make_graph(nodes, "g", infos, [], tensors)
    for node in nodes:
        for name in node.output:
            if name and name[0] in "yz":
                bare.output.add(name=name)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(bare, opset_imports=opsets, ir_version=8)


def check(
    nodes: list[Any], weights: dict[str, Any], given: dict[str, Any], free: dict[str, Any], **how: Any
) -> None:
    """Where onnxruntime rounds integers, one more or less is right."""
    model = model_of(nodes, weights, given, free)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    wants = session.run(None, given)
    for info, want in zip(model.graph.output, wants, strict=True):
        shape = [None] * want.ndim if free else want.shape
        info.CopyFrom(helper.make_tensor_value_info(info.name, helper.np_dtype_to_tensor_dtype(want.dtype), shape))
    got = devscope.compile(model, cache=False, **how)(**given)
    for info, one, want in zip(model.graph.output, got if isinstance(got, tuple) else (got,), wants, strict=True):
        assert one.dtype == want.dtype
        close = 1 if want.dtype.kind in "iu" else 1e-2 if want.dtype == np.float16 else 2e-5
        np.testing.assert_allclose(one.astype(np.float64), want, rtol=close, atol=close, err_msg=info.name)


PLAIN = [
    own("FusedMatMul", "a b", "y0", alpha=0.5, transA=1, transB=1),
    own("FusedMatMul", "a wb", "y1", transBatchA=1, transA=1),
    own("FusedGemm", "m wg c", "y2", activation="LeakyRelu", activation_alpha=0.3, transB=1, beta=2.0),
    own("Gelu", "a", "y3"),
    own("BiasGelu", "a c4", "y4"),
    own("FastGelu", "a c4", "y5"),
    own("QuickGelu", "a", "y6", alpha=1.5),
    own("SkipLayerNormalization", "a a c4 d4 d4", "y7 _ _ z7", epsilon=1e-6),
    own("SkipSimplifiedLayerNormalization", "a a c4", "y8", epsilon=1e-6),
    own("SimplifiedLayerNormalization", "a c4", "y9", "", axis=-1, epsilon=1e-6),
    own("FusedConv", "i k kb", "s", activation="Clip", activation_params=[0.0, 1.0], kernel_shape=[3, 3]),
    own("FusedConv", "i k kb s", "y10", activation="Relu", kernel_shape=[3, 3]),
    own("EmbedLayerNormalization", "ids ids words places kinds c4 d4 mask", "y11 y12", epsilon=1e-6),
    own("SkipLayerNormalization", "h h ch", "y13", epsilon=1e-5),
]
PLAIN_WEIGHTS = {
    "b": floats(1, 5, 3), "wb": floats(3, 2, 6), "wg": floats(5, 4), "c": floats(5), "c4": floats(4),
    "d4": floats(4), "k": floats(4, 3, 3, 3), "kb": floats(4), "words": floats(9, 4), "places": floats(12, 4),
    "kinds": floats(9, 4), "ch": floats(4, dtype=np.float16),
}  # fmt: skip
PLAIN_GIVEN = {
    "a": floats(2, 3, 4), "m": floats(3, 4), "i": floats(1, 3, 6, 6), "ids": codes(2, 5, dtype=np.int32) % 9,
    "mask": np.array([[1, 1, 0, 0, 0], [1] * 5], np.int32), "h": floats(2, 4, dtype=np.float16),
}  # fmt: skip


@pytest.mark.parametrize("target", ["cpu:0", "opencl:0"])
def test_fused(target: str) -> None:
    check(PLAIN, PLAIN_WEIGHTS, PLAIN_GIVEN, {}, default=target)


def test_fused_of_any_size() -> None:
    nodes = [node for node in PLAIN if not any(n in node.output for n in ("y1", "y13"))]
    used = {name for node in nodes for name in node.input}
    given = {name: array for name, array in PLAIN_GIVEN.items() if name in used}
    free = {"a": {0: "n"}, "m": {0: "n"}, "i": {2: "h"}, "ids": {1: "t"}, "mask": {1: "t"}}
    check(nodes, {name: array for name, array in PLAIN_WEIGHTS.items() if name in used}, given, free)


ATTENTION = [
    own("Attention", "x w wb", "y0", num_heads=2, unidirectional=1),
    own("Attention", "x w wb mask", "y1", num_heads=2),
    own("Attention", "x w wb counts", "y2", num_heads=2, scale=0.3),
    own("Attention", "x w wb _ past", "y3 z3", num_heads=2),
    own("MultiHeadAttention", "x u u wb", "y4", num_heads=2),
    own("MultiHeadAttention", "x u u _ umask", "y5", num_heads=2),
    own("MultiHeadAttention", "x x x _ _ _ pk pk", "y6 z6 z7", num_heads=2, unidirectional=1),
    own("RotaryEmbedding", "x first cosine sine", "y7", interleaved=1),
    own("RotaryEmbedding", "r first cosine sine", "y8", num_heads=2, rotary_embedding_dim=4),
]
ATTENTION_WEIGHTS = {
    "w": floats(8, 24) * 0.3, "wb": floats(24), "cosine": np.cos(floats(16, 2)), "sine": np.sin(floats(16, 2)),
    "first": np.array([2]),
}  # fmt: skip
ATTENTION_GIVEN = {
    "x": floats(2, 3, 8), "u": floats(2, 5, 8), "mask": np.array([[1, 1, 0], [1, 1, 1]], np.int32),
    "counts": np.array([2, 3], np.int32), "past": floats(2, 2, 2, 4, 4), "pk": floats(2, 2, 4, 4),
    "umask": np.array([[1, 1, 0, 0, 0], [1] * 5], np.int32), "r": floats(2, 2, 3, 6),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("any_size", [False, True])
def test_attention(any_size: bool) -> None:
    free = {"x": {0: "n", 1: "t"}, "u": {0: "n", 1: "u"}, "mask": {0: "n", 1: "t"},
            "counts": {0: "n"}, "past": {1: "n", 3: "p"}, "pk": {0: "n", 2: "p"}, "umask": {0: "n", 1: "u"},
            "r": {0: "n"}}  # fmt: skip
    check(ATTENTION, ATTENTION_WEIGHTS, ATTENTION_GIVEN, free if any_size else {})


@pytest.mark.parametrize(("past", "new", "counts"), [(0, 4, [3, 3]), (5, 1, [5, 3])])
def test_attention_of_groups(past: int, new: int, counts: list[int]) -> None:
    """A prompt, and a step behind pasts of several lengths."""
    nodes = [own("GroupQueryAttention", "q k v pk pv counts total cosine sine", "y0 y1 y2",
                 num_heads=4, kv_num_heads=2, do_rotary=1, local_window_size=3)]  # fmt: skip
    weights = {
        "total": np.array(past + new, np.int32),
        "cosine": np.cos(floats(9, 8)),
        "sine": np.sin(floats(9, 8)),
    }
    given = {"q": floats(2, new, 64), "k": floats(2, new, 32), "v": floats(2, new, 32),
             "pk": floats(2, 2, past, 16), "pv": floats(2, 2, past, 16),
             "counts": np.array(counts, np.int32)}  # fmt: skip
    check(nodes, weights, given, {})


QUANTISED = [
    own("QLinearAdd", "p s pz q s2 qz s3 rz", "y0"),
    own("QLinearMul", "p s pz q s2 qz s3 rz", "y1"),
    own("QLinearSigmoid", "p s pz s1 _", "y2"),
    own("QLinearLeakyRelu", "p s pz s3 rz", "y3", alpha=0.3),
    own("QLinearConcat", "s3 rz p s pz q s2 qz", "y4", axis=1),
    own("QGemm", "p s pz w ws wz bias s3 rz", "y5", transB=1),
    own("QGemm", "p s pz w s1 wz0", "y6", transB=1),
    own("MatMulIntegerToFloat", "p wt s ws pz wz fb", "y7"),
    own("DynamicQuantizeMatMul", "x wt s1 wz0 fb", "y8"),
    own("MatMulNBits", "x nw ns nz", "y9", N=6, K=40, bits=4, block_size=16),
    own("MatMulNBits", "x nw8 ns", "y10", N=6, K=40, bits=8, block_size=16),
]
QUANTISED_STATIC = [
    own("QLinearSoftmax", "p s pz s1 u0", "y11", axis=-1, opset=13),
    own("QLinearGlobalAveragePool", "image s pz s3 rz", "y12", channels_last=1),
    own("QLinearWhere", "c p s pz q s2 qz s3 rz", "y13"),
    own("QAttention", "xq aw ab s s1 counts pz wz0", "y14", num_heads=2),
    own("QuantizeLinear", "x s1 z16", "q16"),
    own("DequantizeLinear", "q16 s1 z16", "y15"),
]
QUANTISED_WEIGHTS = {
    "s": np.float32(0.02), "pz": np.uint8(60), "s2": np.float32(0.03), "qz": np.uint8(50), "s3": np.float32(0.04),
    "rz": np.uint8(130), "s1": np.float32(1 / 256), "w": codes(5, 40, dtype=np.int8) - np.int8(60),
    "wz0": np.int8(0), "u0": np.uint8(0), "ws": np.linspace(0.01, 0.02, 5, dtype=np.float32),
    "wz": np.zeros(5, np.int8), "fb": floats(5),
    "bias": RNG.integers(-99, 99, 5).astype(np.int32), "wt": codes(40, 5, dtype=np.int8) - np.int8(60),
    "nw": codes(6, 3, 8), "ns": np.abs(floats(18)), "nz": codes(12), "nw8": codes(6, 3, 16),
    "z16": np.uint16(30000),
    "aw": codes(8, 24, dtype=np.int8), "ab": floats(24),
}  # fmt: skip
QUANTISED_GIVEN = {"p": codes(3, 40), "q": codes(3, 40), "x": floats(3, 40)}


def used(nodes: list[Any], table: dict[str, Any]) -> dict[str, Any]:
    return {name: array for name, array in table.items() if any(name in node.input for node in nodes)}


def test_quantised() -> None:
    nodes = [*QUANTISED, *QUANTISED_STATIC]
    given = {**QUANTISED_GIVEN, "image": codes(2, 4, 5, 3), "c": RNG.random((3, 40)) > 0.5, "xq": codes(2, 3, 8),
             "counts": np.array([2, 3], np.int32)}  # fmt: skip
    check(nodes, used(nodes, QUANTISED_WEIGHTS), given, {})


def test_quantised_of_any_size() -> None:
    """Bytes as arguments and results, too, which torch-mlir takes for signed ones."""
    free = {name: {0: "n"} for name in QUANTISED_GIVEN}
    nodes = [node for node in QUANTISED if node.op_type != "QGemm" or node.output[0] == "y5"]
    check(nodes, used(nodes, QUANTISED_WEIGHTS), QUANTISED_GIVEN, free)


def test_refused() -> None:
    nodes = [own("Attention", "x w wb", "y0", num_heads=2, do_rotary=1)]
    model = model_of(nodes, used(nodes, ATTENTION_WEIGHTS), {"x": floats(2, 3, 8)}, {})
    with pytest.raises(LoweringError, match="Attention with places that turn"):
        devscope.compile(model, cache=False)
    nodes = [own("Inverse", "x", "y0")]
    with pytest.raises(LoweringError, match=r"operator Inverse of 'com.microsoft' is not supported"):
        devscope.compile(model_of(nodes, {}, {"x": floats(2, 2)}, {}), cache=False)
