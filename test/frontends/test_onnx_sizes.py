"""Operators of sizes known at run time only, which are written out, beside onnxruntime; several in a program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import devscope
from devscope.frontends import DeferredSource, imported

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

pytestmark = pytest.mark.sampled(12)

RNG = np.random.default_rng(5)


def node(kind: str, inputs: str, outputs: str, **attributes: Any) -> Any:
    """``-`` is an operand or a result that is not there."""
    lists = ([name.replace("-", "") for name in names.split()] for names in (inputs, outputs))
    return helper.make_node(kind, *lists, **attributes)


def uniform(*shape: int) -> Any:
    return RNG.uniform(-0.5, 0.5, shape).astype(np.float32)


def recurrent(kind: str, gates: int, directions: int) -> dict[str, Any]:
    shapes = {"w": (gates * 5, 4), "r": (gates * 5, 5), "b": (gates * 10,)}
    return {f"{kind}{name}": uniform(directions, *shape) for name, shape in shapes.items()}


def loop(inputs: str, outputs: str, nodes: list[Any], values: str, results: str) -> Any:
    """``values`` and ``results`` of the body: name, type and sizes, such as ``x:FLOAT:n,3``."""

    def infos(text: str) -> Any:
        for name, kind, sizes in (one.split(":") for one in text.split()):
            shape = [int(size) if size.isdigit() else size for size in sizes.split(",") if size]
            yield helper.make_tensor_value_info(name, getattr(TensorProto, kind), shape)

    body = helper.make_graph(nodes, "body", [*infos(values)], [*infos(results)])
    return node("Loop", inputs, outputs, body=body)


INNER = loop(
    "five yes a", "b rows",
    [
        node("Add", "s first", "s2"), node("ReduceSum", "s2", "q", keepdims=0), node("Less", "q ten", "again"),
        node("Identity", "q", "r"),
    ],
    "j:INT64: going:BOOL: s:FLOAT:t", "again:BOOL: s2:FLOAT:t r:FLOAT:",
)  # fmt: skip
PRODUCTS = helper.make_graph(
    [node("Add", "s a", "s2"), node("Mul", "s2 b", "o"), node("ReduceSum", "o", "q", keepdims=0)],
    "body",
    [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [size])
        for name, size in (("s", "m"), ("a", "n"), ("b", "n"))
    ],
    [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in ("s2", "o")]
    + [helper.make_tensor_value_info("q", TensorProto.FLOAT, [])],
)
GRIDS = [("linear", "zeros", 0), ("nearest", "border", 1), ("cubic", "reflection", 0), ("linear", "reflection", 1)]
UPPER = {"auto_pad": "SAME_UPPER"}
BRANCHES = {
    f"{name}_branch": helper.make_graph(
        nodes, name, [], [helper.make_tensor_value_info("o", TensorProto.FLOAT, None)]
    )
    for name, nodes in (
        (
            "then",
            [node("MaxPool", "x", "m", kernel_shape=[3, 3], strides=[2, 2], **UPPER), node("Relu", "m", "o")],
        ),
        (
            "else",
            [node("ArgMax", "x", "m", axis=2, select_last_index=1), node("Cast", "m", "o", to=TensorProto.FLOAT)],
        ),
    )
}
CASES: dict[str, tuple[list[Any], dict[str, list[int | str]], dict[str, Any]]] = {
    "images": (
        [
            *(node("GridSample", "x grid", f"s{k}", mode=mode, padding_mode=padding, align_corners=corners)
              for k, (mode, padding, corners) in enumerate(GRIDS)),
            node("AveragePool", "x", "p0", kernel_shape=[3, 2], strides=[2, 3], pads=[1, 0, 1, 1], ceil_mode=1),
            node("AveragePool", "x", "p1", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], ceil_mode=1,
                 count_include_pad=1),
        ],
        {"x": ["n", 3, "h", "w"], "grid": ["n", "i", "j", 2]},
        {},
    ),
    "windows": (
        [
            *(node(kind, "x", f"{kind}{k}", kernel_shape=[3, 2], strides=[2, 2], **more)
              for kind in ("MaxPool", "AveragePool")
              for k, more in enumerate((UPPER, {"auto_pad": "SAME_LOWER"}, {"pads": [1, 0, 2, 1]}))),
            *(one for k, more in enumerate((
                {"pads": [1, 1, 1, 1], "ceil_mode": 1}, UPPER,
                {"pads": [2, 0, 1, 1], "storage_order": 1, "ceil_mode": 1},
              )) for one in (node("MaxPool", "x", f"m{k} at{k}", kernel_shape=[3, 3], strides=[2, 2], **more),
                             node("Cast", f"at{k}", f"places{k}", to=TensorProto.FLOAT))),
            *(node("ConvTranspose", f"x {name}", f"{name}{k}", **more) for name, k, more in (
                ("wide", 0, UPPER | {"strides": [2, 2]}), ("wide", 1, {"pads": [1, 0, 2, 1], "strides": [1, 3]}),
                ("each", 2, {"group": 3, "strides": [2, 1], "output_padding": [1, 0]}),
            )),
            node("LRN", "x", "l", size=3, alpha=0.5), node("ArgMin", "x", "a", axis=3, select_last_index=1),
            node("Cast", "a", "last", to=TensorProto.FLOAT),
            node("GroupNormalization", "x many many", "g", num_groups=3),
            node("ReduceSum", "x", "sum", keepdims=0), node("Less", "zero sum", "yes"),
            node("If", "yes", "chosen", **BRANCHES),
        ],
        {"x": ["n", 3, "h", "w"]},
        {"wide": uniform(3, 2, 3, 2), "each": uniform(3, 1, 3, 2), "zero": np.float32(0),
         "many": uniform(3)},
    ),
    "regions": (
        [
            node("Shape", "x", "size"), node("Slice", "size none ones", "images"),
            node("Cast", "images", "count", to=TensorProto.FLOAT), node("Abs", "index", "some"),
            node("Mul", "some count", "wide"), node("Mul", "wide half", "which"),
            node("Cast", "which", "image", to=TensorProto.INT64),
            node("RoiAlign", "x rois image", "r0", output_height=3, output_width=2, sampling_ratio=2),
            node("RoiAlign", "x rois image", "r1", output_height=2, spatial_scale=4.0,
                 coordinate_transformation_mode="output_half_pixel"),
            node("RoiAlign", "x rois image", "r2", mode="max", sampling_ratio=1),
            node("AffineGrid", "theta size", "g0"), node("AffineGrid", "theta size", "g1", align_corners=1),
            node("CenterCropPad", "x five", "c", axes=[2, -1]),
            node("DeformConv", "x kernel moves bias", "d", pads=[1, 1, 1, 1], group=2, offset_group=2),
            node("MeanVarianceNormalization", "x", "v"),
        ],
        {"x": ["n", 4, "h", "w"], "rois": ["k", 4], "index": ["k"], "theta": ["n", 2, 3],
         "moves": ["n", 36, "h", "w"]},
        {"none": np.array([0]), "ones": np.array([1]), "half": np.float32(0.45), "five": np.array([5, 3]),
         "kernel": uniform(6, 2, 3, 3), "bias": uniform(6)},
    ),
    "columns": (
        [
            *(node("LpPool", "x", f"l{k}", kernel_shape=[3, 2], strides=[2, 2], p=1 + k, **more) for k, more in
              enumerate((UPPER, {"auto_pad": "SAME_LOWER"}, {"pads": [1, 1, 1, 1], "ceil_mode": 1}))),
            node("LpPool", "x", "l3", kernel_shape=[2, 2], dilations=[2, 3]),
            node("MaxPool", "z", "most at", kernel_shape=[2, 2], strides=[2, 2]), node("Shape", "z", "size"),
            node("MaxUnpool", "most at size", "u0", kernel_shape=[2, 2], strides=[2, 2]),
            node("SpaceToDepth", "z", "deep", blocksize=2),
            node("MaxUnpool", "most at", "u1", kernel_shape=[2, 2], strides=[2, 2]),
            node("Col2Im", "columns image block", "c0", pads=[1, 0, 0, 1], strides=[2, 1], dilations=[1, 2]),
        ],
        {"x": ["n", 3, "h", "w"], "z": ["n", 2, "e", "e"], "columns": ["n", 12, 8]},
        {"image": np.array([4, 5]), "block": np.array([2, 2])},
    ),
    "quantised": (
        [
            *(one for k, kind in enumerate((np.uint16, np.int16)) for one in (
                node("QuantizeLinear", f"x scale zero{k}", f"q{k}"),
                node("DequantizeLinear", f"q{k} scale zero{k}", f"y{k}"),
                node("Cast", f"q{k}", f"whole{k}", to=TensorProto.FLOAT))),
            node("QuantizeLinear", "x scales", "q2", axis=1, block_size=2, output_dtype=TensorProto.INT8),
            node("DequantizeLinear", "q2 scales", "y2", axis=1, block_size=2),
            node("Clip", "x least most", "positive"), node("Cast", "positive", "bytes", to=TensorProto.UINT8),
            node("Equal", "bytes one", "same"), node("Max", "bytes one", "more"),
            node("Where", "same more two", "chosen"), node("Cast", "chosen", "y3", to=TensorProto.FLOAT),
        ],
        {"x": ["n", 4, "h"], "scales": ["n", 2, "h"]},
        {"scale": np.float32(1 / 30000), "zero0": np.uint16(20000), "zero1": np.int16(-300),
         "least": np.float32(0), "most": np.float32(255), "one": np.uint8(1), "two": np.uint8(2)},
    ),
    "functions": (
        [
            node("Gelu", "x", "gelu", approximate="tanh"), node("Softsign", "x", "sign"),
            node("MatMul", "row x", "product"), node("Mul", "x zero", "nothing"),
            node("LpNormalization", "nothing", "unit0", axis=1, p=1),
            node("LpNormalization", "x", "unit1", axis=0),
            node("Cast", "i", "whole", to=TensorProto.INT64), node("Mul", "whole none", "at"),
            node("GatherND", "x at", "found"),
        ],
        {"x": ["n", 4, "h"], "i": ["j", "w", 1]},
        {"row": uniform(4), "zero": np.float32(0), "none": np.array(0)},
    ),
    "products": (
        [
            *(node("Einsum", operands, f"e{k}", equation=equation) for k, (operands, equation) in enumerate((
                ("a b", "bihd,jhd->bhij"), ("a a", "bihd,bjhd->bhij"), ("row a", "d,...d"), ("a b", "bihd,jhd->"),
                ("row b row", "k,jhd,d->hkj"), ("b", "jhd->dj"), ("b table", "jhd,dn->jhdn"),
            ))),
            node("MatMul", "a row", "column"), node("Abs", "some", "size"), node("Neg", "size", "below"),
            node("Cast", "below", "at", to=TensorProto.INT64),
            node("GatherND", "a at", "taken"),
            *(node("ScatterElements", "c at d", kind, axis=1, reduction=kind) for kind in ("max", "min")),
        ],
        {"a": ["n", "t", 3, 4], "b": ["k", 3, 4], "some": ["j", 2], "c": ["k", "n"], "d": ["j", 2]},
        {"row": uniform(4), "table": uniform(4, 2)},
    ),
    "pads": (
        [
            node("Shape", "x", "s", start=1, end=2), node("Sub", "five s", "d"), node("Sub", "two s", "e"),
            node("Concat", "d s", "more", axis=0), node("Concat", "s e", "less", axis=0),
            node("Concat", "two two", "pair", axis=0), node("Concat", "one s", "wide", axis=0),
            node("Pad", "x more half axes", "y0"), node("Pad", "x less - axes", "y1"),
            node("Pad", "x pair - axes", "y2", mode="reflect"), node("Pad", "x wide - axes", "y3", mode="edge"),
            node("Pad", "x twos", "y4", mode="wrap"),
        ],
        {"x": ["n", "h", 4]},
        {"one": np.array([1]), "two": np.array([2]), "five": np.array([5]), "half": np.float32(0.5),
         "axes": np.array([-2]), "twos": np.array([0, 2, 1, 0, 3, 2])},
    ),
    "loops": (
        [
            node("Slice", "x zeros ones zeros", "top"), node("Abs", "top", "size"),
            node("Squeeze", "size zeros", "first"), node("Shape", "x", "rows_", end=1),
            loop(
                "rows_ yes none", "total parts",
                [
                    node("Identity", "on", "on2"), node("Gather", "x i", "row", axis=0),
                    node("ReduceMax", "row", "most"), node("Add", "sum most", "sum2"),
                ],
                "i:INT64: on:BOOL: sum:FLOAT:1", "on2:BOOL: sum2:FLOAT:1 row:FLOAT:t",
            ),
            loop(
                "- yes x", "grown",
                [
                    node("Concat", "y top", "y2", axis=0), node("Shape", "y2", "shape", end=1),
                    node("Less", "shape six", "short"), node("Squeeze", "short zeros", "goes"),
                ],
                "k:INT64: go:BOOL: y:FLOAT:n,t", "goes:BOOL: y2:FLOAT:m,t",
            ),
            loop(
                "- - first", "last maxima",
                [
                    INNER, node("Mul", "b half", "c"), node("ReduceMax", "rows", "m", keepdims=0),
                    node("Less", "i two", "on2"),
                ],
                "i:INT64: on:BOOL: a:FLOAT:t", "on2:BOOL: c:FLOAT:t m:FLOAT:",
            ),
            node("Transpose", "x", "columns"), node("ReduceSum", "x ones", "none_", keepdims=0),
            node("Scan", "none_ x columns", "sum products sums", num_scan_inputs=2, scan_input_axes=[1, 0],
                 scan_input_directions=[0, 1], scan_output_axes=[1, 0], scan_output_directions=[1, 0],
                 body=PRODUCTS),
        ],
        {"x": ["n", "t"]},
        {"zeros": np.array([0]), "none": np.zeros(1, np.float32), "ones": np.array([1]), "yes": np.array(True),
         "six": np.array([6]), "ten": np.float32(10), "five": np.array(5), "half": np.float32(0.5),
         "two": np.array(2)},
    ),
    "recurrences": (
        [
            node("GRU", "x Gw Gr Gb l", "g gh", hidden_size=5, direction="bidirectional"),
            node("GRU", "x Fw Fr - - h", "f", hidden_size=5, direction="reverse", linear_before_reset=1),
            node("RNN", "x Rw Rr Rb", "- rh", hidden_size=5, activations=["Relu"]),
            node("LSTM", "x Lw Lr Lb l", "y yh yc", hidden_size=5, direction="bidirectional"),
        ],
        {"x": ["t", "n", 4], "l": ["n"], "h": [1, "n", 5]},
        {**recurrent("G", 3, 2), **recurrent("F", 3, 1), **recurrent("R", 1, 1), **recurrent("L", 4, 2)},
    ),
    "loops of known sizes": (
        [
            node("LSTM", "u Lw Lr Lb", "y - yc", hidden_size=5, direction="bidirectional"),
            node("LSTM", "u Bw Br Bb", "b bh", hidden_size=5, direction="reverse"),
            node("RNN", "v Rw Rr", "r", hidden_size=5),
            node("NonMaxSuppression", "boxes scores some half", "m"),
            node("Cast", "m", "kept", to=TensorProto.FLOAT),
        ],
        {"u": ["t", 2, 4], "v": [3, "n", 4], "boxes": [1, "h", 4], "scores": [1, 2, "h"]},
        {**recurrent("L", 4, 2), **recurrent("B", 4, 1), **recurrent("R", 1, 1), "some": np.array([2]),
         "half": np.float32([0.5])},
    ),
    "selections": (
        [
            node("Round", "x", "whole"), node("Unique", "whole", "y0 i j k"),
            node("Unique", "whole", "y1 - - m", sorted=0),
            node("Greater", "whole zero", "few"), node("Cast", "few", "flags", to=TensorProto.FLOAT),
            node("Unique", "flags", "y4 i4 j4 k4", axis=1),
            node("Unique", "flags", "y5 i5 j5 k5", axis=-2, sorted=0),
            *(node("Cast", name, f"y{name}", to=TensorProto.FLOAT)
              for name in ("i", "j", "k", "m", "i4", "j4", "k4", "i5", "j5", "k5")),
            node("ReduceMax", "x one", "most", keepdims=0), node("Greater", "most zero", "some"),
            node("Compress", "x some", "y2", axis=0),
            node("Cast", "whole", "tokens", to=TensorProto.INT64),
            node("TfIdfVectorizer", "tokens", "y3", mode="TFIDF", max_gram_length=2, min_gram_length=1,
                 max_skip_count=1, ngram_counts=[0, 2], ngram_indexes=[0, 1, 2, 3], weights=[1.0, 2.0, 0.5, 3.0],
                 pool_int64s=[0, 1, 1, -1, 0, 0]),
        ],
        {"x": ["n", "t"]},
        {"zero": np.float32(1), "one": np.array([1])},
    ),
    "others": (
        [
            node("Slice", "x begin stop axes back", "y0"), node("Slice", "x before stop axes back", "y1"),
            node("Shape", "x", "rows", start=0, end=1), node("Squeeze", "rows", "count"),
            node("Range", "count one minus", "r0"), node("Range", "nine count minus", "r1"),
            node("Range", "one count three", "r2"),
            *(node("Cast", f"r{k}", f"y{k + 2}", to=TensorProto.FLOAT) for k in range(3)),
        ],
        {"x": ["n", "h"]},
        {"begin": np.array([9, 3]), "before": np.array([-9, 4]), "stop": np.array([-(1 << 62), 0]),
         "axes": np.array([0, 1]), "back": np.array([-1, -2]), "one": np.array(1), "nine": np.array(-9),
         "minus": np.array(-1), "three": np.array(3), "scale": np.float32([2])},
    ),
    "sizes that may be 1": (
        [
            node("Add", "x y", "sum"), node("Max", "x y z", "most"), node("PRelu", "z x", "slopes"),
            node("Less", "y x", "below"), node("Where", "below x row", "chosen"),
            node("Shape", "sum", "shape"), node("Expand", "x shape", "wide0"), node("Expand", "y three", "wide1"),
            node("MatMul", "a b", "products"), node("Gemm", "m w c", "layer", beta=0.5),
            node("Gemm", "m w", "twice", alpha=2.0), node("Pad", "x around", "less"),
            node("If", "yes", "branch", then_branch=helper.make_graph(
                [node("Sub", "y x", "difference")], "then", [],
                [helper.make_tensor_value_info("difference", TensorProto.FLOAT, None)],
            ), else_branch=helper.make_graph(
                [node("Neg", "sum", "negative")], "else", [],
                [helper.make_tensor_value_info("negative", TensorProto.FLOAT, None)],
            )),
            node("Slice", "x zeros ones zeros", "top"), node("Slice", "top zeros nines zeros", "same"),
            node("Mul", "top same", "square"),
        ],
        {"x": ["o", 4], "y": ["p", 4], "z": ["q", 4], "row": ["o", 1], "a": ["o", "q", 3, 4],
         "b": ["p", "o", 4, 2], "m": ["q", 5], "c": ["o", 3]},
        {"w": uniform(5, 3), "three": np.array([3, 4]), "yes": np.array(True), "zeros": np.array([0]),
         "ones": np.array([1]), "nines": np.array([9]), "around": np.array([1, -1, 0, 2])},
    ),
    "older meanings": (
        [
            node("Upsample", "x factors", "larger", mode="linear"), node("Hardmax", "x", "largest", axis=2),
            node("Softmax", "x", "shares", axis=2),
        ],
        {"x": ["n", 2, 3, 4]},
        {"factors": np.float32([1, 1, 2, 1.5])},
    ),
    "series": (
        [
            node("STFT", "x step window", "frames"),
            node("DFT", "z - one", "a"), node("DFT", "z nine one", "b", inverse=1),
            node("DFT", "v - one", "r", onesided=1),
            node("ReduceProd", "c one_", "q", keepdims=0),
            node("SoftmaxCrossEntropyLoss", "c labels weights", "l0", ignore_index=2),
            node("NegativeLogLikelihoodLoss", "c labels", "l1", reduction="sum"),
        ],
        {"x": ["n", "t"], "z": ["n", "k", 2], "v": ["n", "k", 1], "c": ["n", 6, "i"], "labels": ["n", "i"]},
        {"step": np.array(3), "window": uniform(8), "one": np.array(1), "nine": np.array(9),
         "one_": np.array([1]), "weights": uniform(6) + 1},
    ),
}  # fmt: skip
SIZES = {
    "e": (4, 6),
    "n": (2, 1),
    "h": (4, 5),
    "w": (7, 6),
    "t": (11, 9),
    "k": (10, 7),
    "i": (3, 1),
    "j": (5, 2),
    "o": (1, 3),
    "p": (3, 1),
    "q": (3, 3),
}
TYPES = {"l": np.int32, "labels": np.int64}


@pytest.mark.long
@pytest.mark.parametrize("target", ["cpu:0", "opencl:0"])
@pytest.mark.parametrize("case", CASES)
def test_sizes(case: str, target: str) -> None:
    nodes, shapes, weights = CASES[case]
    kinds = {name: helper.np_dtype_to_tensor_dtype(np.dtype(TYPES.get(name, np.float32))) for name in shapes}
    inputs = [helper.make_tensor_value_info(name, kinds[name], shape) for name, shape in shapes.items()]
    used = {name for one in nodes for name in one.input}
    outputs = [name for one in nodes for name in one.output if name and name not in used]
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, case, inputs, results, tensors)
    opset = {"others": 23, "quantised": 21, "older meanings": 9}.get(case, 20)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    deferred = imported(model)
    assert isinstance(deferred, DeferredSource)
    source = deferred.read()
    program = devscope.compile(source, default=target, cache=False)
    for number in (0, 1):
        sizes = {name: pair[number] for name, pair in SIZES.items()}
        given = {
            name: uniform(*(sizes[e] if isinstance(e, str) else e for e in shape)) * 3
            for name, shape in shapes.items()
        }
        if case == "recurrences":
            given["l"] = np.array([sizes["t"], 4][: sizes["n"]], np.int32)
        if case == "series":
            given["labels"] = RNG.integers(0, 6, given["labels"].shape)
        wants = session.run(None, given)
        for name, got, want in zip(outputs, program(**given), wants, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5, err_msg=name)
