"""ONNX models as programs: names, dtypes, dynamic dimensions, weights outside of the module, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import devscope
from devscope.errors import DevscopeError, DevscopeWarning, InputError, LoweringError
from devscope.frontends import DeferredSource, imported

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

pytestmark = pytest.mark.sampled(6)

FLOAT, INT64, UINT8 = TensorProto.FLOAT, TensorProto.INT64, TensorProto.UINT8
RNG = np.random.default_rng(1)
WEIGHTS = RNG.standard_normal((64, 32), np.float32)


def model_of(nodes: list[Any], inputs: list[Any], outputs: list[Any], weights: dict[str, Any] | None = None,
             opset: int = 21, functions: Any = ()) -> Any:  # fmt: skip
    tensors = [numpy_helper.from_array(array, name) for name, array in (weights or {}).items()]
    graph = helper.make_graph(nodes, "a graph/with a name", inputs, outputs, tensors)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("own", 1)]
    return helper.make_model(graph, opset_imports=opsets, functions=functions, ir_version=10)


def info(name: str, *shape: int | str, type: int = FLOAT) -> Any:
    return helper.make_tensor_value_info(name, type, shape)


def network(*batch: int | str) -> Any:
    nodes = [
        helper.make_node("MatMul", ["in/x:0", "w"], ["product"], "layer/product"),
        helper.make_node("Relu", ["product"], ["out/y:0"]),
    ]
    return model_of(nodes, [info("in/x:0", *batch, 64)], [info("out/y:0", *batch, 32)], {"w": WEIGHTS})


X = RNG.standard_normal((3, 64), np.float32)
WANT = np.maximum(X @ WEIGHTS, 0)


@pytest.mark.parametrize("batch", [3, "batch"])
@pytest.mark.parametrize("form", ["object", "bytes", "file"])
def test_forms_of_a_model(batch: int | str, form: str, tmp_path: Path) -> None:
    model: Any = network(batch)
    if form == "file":
        onnx.save(model, tmp_path / "model.onnx")
        model = tmp_path / "model.onnx"
    elif form == "bytes":
        model = model.SerializeToString()
    exe = devscope.compile(model, cache=False)
    np.testing.assert_allclose(exe(X), WANT, rtol=1e-5, atol=1e-5)
    (given,), (made,) = exe.entries["main"].inputs, exe.entries["main"].outputs
    assert (given.name, made.name) == ("in/x:0", "out/y:0")
    assert given.shape == [None if batch == "batch" else 3, 64]
    np.testing.assert_allclose(exe(**{"in/x:0": X}), WANT, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("batch", [3, "batch"])
def test_weights_stay_outside(batch: int | str) -> None:
    deferred = imported(network(batch))
    assert isinstance(deferred, DeferredSource)
    source = deferred.read()
    (data,) = source.literals.values()
    assert bytes(data) == WEIGHTS.tobytes()
    assert len(source.data) < 4000
    assert b'loc("layer/product"("devscope.kind:MatMul"))' in source.data


def test_data_in_another_file(tmp_path: Path) -> None:
    onnx.save(
        network("n"), tmp_path / "model.onnx", save_as_external_data=True, location="model.data", size_threshold=0
    )
    exe = devscope.compile(str(tmp_path / "model.onnx"), default="opencl:0", cache=False)
    np.testing.assert_allclose(exe(X), WANT, rtol=1e-5, atol=1e-5)
    (tmp_path / "model.data").write_bytes(b"short")
    with pytest.raises(InputError, match="is too short"):
        devscope.compile(str(tmp_path / "model.onnx"), cache=False)
    (tmp_path / "model.data").unlink()
    with pytest.raises(InputError, match="No such file"):
        devscope.compile(str(tmp_path / "model.onnx"), cache=False)


def test_data_outside_of_the_folder_is_refused(tmp_path: Path) -> None:
    model = network(3)
    (tmp_path / "data").write_bytes(WEIGHTS.tobytes())
    (tmp_path / "inner").mkdir()
    (tensor,) = model.graph.initializer
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="../data")
    (tmp_path / "inner" / "model.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(InputError, match="outside of its folder"):
        devscope.compile(str(tmp_path / "inner" / "model.onnx"), cache=False)
    with pytest.raises(InputError, match="is no file itself"):
        devscope.compile(model, cache=False)


def test_digest_covers_weights(tmp_path: Path) -> None:
    other = network(3)
    other.graph.initializer[0].raw_data = (WEIGHTS * 2).tobytes()
    first, again, second = (imported(model) for model in (network(3), network(3), other))
    assert first.digest() == again.digest() != second.digest()


@pytest.mark.parametrize(
    ("type", "dtype"),
    [(UINT8, "uint8"), (TensorProto.BFLOAT16, "bfloat16"), (TensorProto.FLOAT8E5M2, "float8_e5m2"),
     (TensorProto.UINT16, "uint16"), (TensorProto.BOOL, "bool"), (TensorProto.UINT4, "uint4")],
)  # fmt: skip
@pytest.mark.parametrize("target", ["cpu:0", "opencl:0"])
def test_dtypes_are_the_models(type: int, dtype: str, target: str) -> None:
    import ml_dtypes

    kind = np.dtype(getattr(ml_dtypes, dtype, None) or dtype)
    nodes = [helper.make_node("Cast", ["x"], ["y"], to=type), helper.make_node("Cast", ["y"], ["z"], to=FLOAT)]
    exe = devscope.compile(
        model_of(nodes, [info("x", 4)], [info("y", 4, type=type), info("z", 4)]), default=target, cache=False
    )
    x = np.array([0, 1, 2, 7], np.float32)
    y, z = exe(x)
    assert y.dtype == kind
    np.testing.assert_array_equal(y, x.astype(kind))
    np.testing.assert_array_equal(z, x.astype(kind).astype(np.float32))


def test_unsigned_arithmetic() -> None:
    nodes = [
        helper.make_node("Div", ["x", "y"], ["quotient"]),
        helper.make_node("Max", ["x", "y"], ["larger"]),
        helper.make_node("Less", ["x", "y"], ["less"]),
    ]
    x, y = np.array([200, 3, 255], np.uint8), np.array([7, 130, 254], np.uint8)
    inputs = [info("x", 3, type=UINT8), info("y", 3, type=UINT8)]
    outputs = [
        info("quotient", 3, type=UINT8),
        info("larger", 3, type=UINT8),
        info("less", 3, type=TensorProto.BOOL),
    ]
    got = devscope.compile(model_of(nodes, inputs, outputs), cache=False)(x, y)
    for one, want in zip(got, (x // y, np.maximum(x, y), x < y), strict=True):
        np.testing.assert_array_equal(one, want)


def test_products_of_small_floats_are_rounded_once() -> None:
    x, w = (RNG.standard_normal(shape).astype(np.float16) for shape in ((3, 500), (500, 4)))
    f16 = TensorProto.FLOAT16
    model = model_of(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        [info("x", 3, 500, type=f16), info("w", 500, 4, type=f16)],
        [info("y", 3, 4, type=f16)],
    )
    got = devscope.compile(model, cache=False)(x, w)
    np.testing.assert_allclose(got, x.astype(np.float64) @ w.astype(np.float64), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("target", ["cpu:0", "opencl:0"])
def test_sums_of_bf16(target: str) -> None:
    """Short ones are rounded at each step, in order, as ONNX's reference does; long ones lose nothing to that."""
    import ml_dtypes

    kind, bf16 = ml_dtypes.bfloat16, TensorProto.BFLOAT16
    for extent in (6, 20, 1000):
        x = RNG.random((5, extent), np.float32).astype(kind)
        nodes = [helper.make_node("ReduceSum", ["x"], ["y"], keepdims=0), helper.make_node("Abs", ["y"], ["z"])]
        nodes[0].input.append("axes")
        model = model_of(
            nodes, [info("x", 5, extent, type=bf16)], [info("z", 5, type=bf16)], {"axes": np.array([1])}
        )
        want = np.zeros(5, kind if extent < 100 else np.float32)
        for column in x.T:
            want = (want + column).astype(want.dtype)
        got = devscope.compile(model, default=target, cache=False)(x)
        np.testing.assert_array_equal(got, want.astype(kind))


@pytest.mark.parametrize("target", ["cpu:0", "opencl:0"])
@pytest.mark.parametrize("length", [7, 300])
def test_fourier_transforms(target: str, length: int) -> None:
    """Forward of one side, back, and both ways with complex numbers, along an axis in the middle."""
    half = length // 2 + 1
    nodes = [
        helper.make_node("DFT", ["x"], ["f"], axis=1, onesided=1),
        helper.make_node("DFT", ["f", "length"], ["back"], axis=1, onesided=1, inverse=1),
        helper.make_node("DFT", ["f"], ["g"], axis=1),
        helper.make_node("DFT", ["f"], ["h"], axis=1, inverse=1),
    ]
    shapes = {"f": half, "g": half, "h": half}
    outputs = [*(info(name, 2, extent, 3, 2) for name, extent in shapes.items()), info("back", 2, length, 3, 1)]
    model = model_of(nodes, [info("x", 2, length, 3, 1)], outputs, {"length": np.array(length)}, opset=19)
    x = RNG.standard_normal((2, length, 3, 1), np.float32)
    *found, back = devscope.compile(model, default=target, cache=False)(x)
    f = np.fft.rfft(x[..., 0], axis=1)
    np.testing.assert_allclose(back, x, rtol=1e-4, atol=1e-4)
    for got, want in zip(found, (f, np.fft.fft(f, axis=1), np.fft.ifft(f, axis=1)), strict=True):
        most = np.abs(want).max()
        np.testing.assert_allclose(got[..., 0] + 1j * got[..., 1], want, rtol=1e-5, atol=1e-5 * most)


def test_functions_of_the_model() -> None:
    body = [helper.make_node("Mul", ["a", "a"], ["b"]), helper.make_node("LeakyRelu", ["b"], ["c"])]
    body[1].attribute.add(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT)
    function = helper.make_function("own", "Square", ["a"], ["c"], body, [helper.make_opsetid("", 21)], ["slope"])
    nodes = [helper.make_node("Square", ["x"], ["y"], domain="own", slope=0.5)]
    model = model_of(nodes, [info("x", 2)], [info("y", 2)], functions=[function])
    np.testing.assert_array_equal(devscope.compile(model, cache=False)(np.array([2, -3], np.float32)), [4, 9])


def test_control_flow() -> None:
    branches = {
        name: helper.make_graph([helper.make_node(kind, ["x", "x"], [name])], name, [], [info(name, 2)])
        for name, kind in (("then_branch", "Add"), ("else_branch", "Mul"))
    }
    nodes = [helper.make_node("If", ["c"], ["y"], **branches)]
    exe = devscope.compile(
        model_of(nodes, [info("c", type=TensorProto.BOOL), info("x", 2)], [info("y", 2)]), cache=False
    )
    x = np.array([2, 5], np.float32)
    np.testing.assert_array_equal(exe(np.array(True), x), x + x)
    np.testing.assert_array_equal(exe(np.array(False), x), x * x)


def test_branches_that_ask_for_ranks_and_sizes() -> None:
    """PyTorch's exporter writes ``squeeze`` of a size that is not known so, and asks for ranks: in graphs inside
    of others, whose values share names, and which use the same weights.
    """

    def info_of(name: str) -> Any:
        return helper.make_tensor_value_info(name, FLOAT, None)

    def branches(then: list[Any], otherwise: list[Any], *results: str) -> dict[str, Any]:
        parts = (("then_branch", then, results[0]), ("else_branch", otherwise, results[1]))
        return {
            key: helper.make_graph(nodes, key, [], [onnx.ValueInfoProto(name=name)]) for key, nodes, name in parts
        }

    def squeezed(x: str, y: str, axis: str) -> list[Any]:
        same = [node("Identity", x, "same")]
        choices = branches([node("Squeeze", f"{x} {axis}", "less")], same, "less", "same")
        return [
            node("Shape", x, f"{y}.shape"), node("Gather", f"{y}.shape {axis}", f"{y}.size"),
            node("Equal", f"{y}.size one", f"{y}.is"), node("If", f"{y}.is", y, **choices),
        ]  # fmt: skip

    def ranked(x: str, y: str, kind: str) -> list[Any]:
        low = [node("Unsqueeze", f"{x} one", "more"), node(kind, "more", "low")]
        high = [node("MatMul", f"{x} w", "high")]
        return [
            node("Shape", x, "shape"), node("Size", "shape", "rank"), node("Equal", "rank three", "is"),
            node("If", "is", y, **branches(low, high, "low", "high")),
        ]  # fmt: skip

    chosen = branches(
        ranked("b", "y1", "Abs"), [*ranked("b", "y2", "Neg"), node("Add", "y2 y2", "y3")], "y1", "y3"
    )
    nodes = [
        *squeezed("x", "a", "two"), *squeezed("a", "b", "one"), node("ReduceSum", "b", "sum", keepdims=0),
        node("Less", "sum zero", "below"), node("If", "below", "z", **chosen),
        node("Shape", "z", "z.shape"), node("Slice", "z.shape none one", "rows"),
        node("Slice", "b.shape ten ten", "nothing"), node("Concat", "rows nothing columns", "sizes", axis=0),
        node("Reshape", "z sizes", "y"),
    ]  # fmt: skip
    weights = {
        "one": np.array([1]), "two": np.array([2]), "three": np.array(3), "w": WEIGHTS, "zero": np.float32(0),
        "none": np.array([0]), "ten": np.array([10]), "columns": np.array([32]),
    }  # fmt: skip
    model = model_of(nodes, [info("x", "n", "k", "m", 64)], [info("y", *"pq")], weights)
    program = devscope.compile(model, cache=False)
    assert [made.shape for made in program.entries["main"].outputs] == [[None, 32]]
    x = RNG.standard_normal((3, 1, 1, 64), np.float32)
    for given in (x, -x, x[:1]):
        flat = given.reshape(-1, 64) @ WEIGHTS
        want = flat if given.sum() < 0 else 2 * flat
        np.testing.assert_allclose(program(given), want, rtol=1e-4, atol=1e-4)
    with pytest.raises(DevscopeError, match="dimension 1 of operand 0 is 2"):
        program(np.ones((3, 2, 1, 64), np.float32))


def test_examples_fix_what_cannot_be_dynamic() -> None:
    """A product along a dimension of any size is no operator that can be imported; along one of 8, it is."""
    nodes = [helper.make_node("ReduceProd", ["x", "axis"], ["y"], keepdims=0)]
    model = model_of(nodes, [info("x", 1, "n", 1)], [info("y", 1, 1)], {"axis": np.array([1])})
    with pytest.raises(LoweringError, match="ReduceProd along an axis whose size is known at run time only"):
        devscope.compile(model, cache=False)
    x = RNG.standard_normal((1, 8, 1), np.float32)
    with pytest.warns(DevscopeWarning, match="compiled for the shapes of the example arguments .*1x8x1"):
        exe = devscope.compile(model, (x,), cache=False)
    want = np.prod(x, 1)
    np.testing.assert_allclose(exe(x), want, rtol=1e-4, atol=1e-4)
    for given in (((x,), {}), ((), {"x": x})):  # those of a call are examples, too
        with pytest.warns(DevscopeWarning, match="1x8x1"):
            got = devscope.run(model, *given[0], cache=False, **given[1])
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
    with pytest.raises(InputError, match="argument 'x' is no array"):
        devscope.run(model, [[[1.0], [2.0, 3.0]]])


def test_reciprocals_of_zero_are_infinite() -> None:
    model = model_of([helper.make_node("Reciprocal", ["x"], ["y"])], [info("x", "n", 3)], [info("y", "n", 3)])
    x = np.array([[0.0, -0.0, 2.0], [np.inf, np.nan, -4.0]], np.float32)
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(devscope.compile(model, cache=False)(x), 1 / x)


def node(kind: str, inputs: str, outputs: str, **attributes: Any) -> Any:
    return helper.make_node(kind, inputs.split(), outputs.split(), **attributes)


QUANTA = {
    "xs": np.float32(0.02), "xz": np.uint8(120), "ws": np.linspace(0.01, 0.02, 8, dtype=np.float32),
    "wz": np.zeros(8, np.int8), "w": RNG.integers(-127, 127, (8, 3, 16, 16)).astype(np.int8), "ys": np.float32(4),
    "bias": RNG.integers(-900, 900, 8).astype(np.int32),
    "m": RNG.integers(0, 255, (16, 8)).astype(np.uint8), "one": np.float32(0.01), "mz": np.uint8(128),
}  # fmt: skip
REWRITTEN = {
    "linear_convolution": (
        [node("QuantizeLinear", "x xs xz", "a"), node("QLinearConv", "a xs xz w ws wz ys xz bias", "b"),
         node("MaxPool", "b", "c", kernel_shape=[2, 2]), node("DequantizeLinear", "c ys xz", "y")],
        ["n", 3, "h", 18]),
    "pairs": (
        [node("QuantizeLinear", "x xs xz", "a"), node("DequantizeLinear", "a xs xz", "b"),
         node("DequantizeLinear", "w ws wz", "c", axis=0), node("Conv", "b c", "y")], ["n", 3, "h", 18]),
    "dynamic_product": (
        [node("DynamicQuantizeLinear", "x", "a as az"), node("MatMulInteger", "a m az mz", "b"),
         node("Cast", "b", "c", to=FLOAT), node("Mul", "c as", "y")], ["n", "h", 16]),
    "linear_product": (
        [node("QuantizeLinear", "x xs xz", "a"), node("QLinearMatMul", "a xs xz m one mz ys xz", "b"),
         node("DequantizeLinear", "b ys xz", "y")], ["n", "h", 16]),
    "determinant": ([node("Det", "x", "d"), node("Unsqueeze", "d inner", "y")], ["n", 3, 3]),
    "nearest": ([node("Resize", "x none scales", "y", coordinate_transformation_mode="asymmetric",
                      nearest_mode="floor")], ["n", 2, "h", 4]),
    "between": ([node("Resize", "x none scales", "y", mode="linear")], ["n", 2, "h", 4]),
    "corners": ([node("Shape", "x", "s", end=2), node("Concat", "s hw", "sizes", axis=0),
                 node("Resize", "x none none sizes", "y", mode="linear",
                      coordinate_transformation_mode="align_corners")], ["n", 2, "h", 4]),
    "four": ([node("Resize", "x none scales", "y", mode="cubic")], ["n", 2, "h", 4]),
    "instances": ([node("InstanceNormalization", "x two two", "y")], ["n", 2, "h"]),
    "shuffle": ([node("DepthToSpace", "x", "y", blocksize=2, mode="CRD")], ["n", 8, "h", 4]),
    "reshape": ([node("Transpose", "x", "a", perm=[2, 0, 1, 3]), node("Reshape", "a rows", "y")],
                ["n", 4, "h", 8]),
    "reshape by numbers": ([node("Transpose", "x", "a", perm=[2, 0, 1, 3]),
                            node("Constant", "", "numbers", value_ints=[-1, 32]),
                            node("Reshape", "a numbers", "y")],
                           ["n", 4, "h", 8]),
    "reshape by sizes": ([node("Transpose", "x", "a", perm=[2, 0, 1, 3]), node("Shape", "x", "sizes"),
                          *(node("Constant", "", f"c{number}", value_ints=[number]) for number in (-1, 3, 4)),
                          node("Slice", "sizes c3 c4", "last"),
                          node("Mul", "last c4", "row"), node("Concat", "c-1 row", "numbers", axis=0),
                          node("Reshape", "a numbers", "y")],
                         ["n", 4, "h", 8]),
}  # fmt: skip


@pytest.mark.parametrize("case", REWRITTEN)
def test_written_out_for_dimensions_of_any_size(case: str) -> None:
    """Operators that torch-mlir lacks or has otherwise, beside the reference implementation."""
    from onnx.reference import ReferenceEvaluator

    nodes, shape = REWRITTEN[case]
    weights = {
        **QUANTA, "none": np.zeros(0, np.float32), "scales": np.array([1, 1, 2, 1.5], np.float32),
        "hw": np.array([7, 6]), "two": np.array([0.5, 2], np.float32), "rows": np.array([-1, 32]),
        "inner": np.array([1, 2]),
    }  # fmt: skip
    weights = {name: array for name, array in weights.items() if any(name in one.input for one in nodes)}
    model = model_of(nodes, [info("x", *shape)], [info("y", *(["o", "p", "q", "r"][: len(shape)]))], weights, 19)
    if case.startswith("reshape"):
        model.graph.output[0].CopyFrom(info("y", "m", 32))
    deferred = imported(model)
    assert isinstance(deferred, DeferredSource)
    source = deferred.read()
    programs = [devscope.compile(source, default=target, cache=False) for target in ("cpu:0", "opencl:0")]
    for count in (1, 3):
        x = RNG.standard_normal([{"n": count, "h": 18}.get(str(e), e) for e in shape], np.float32)
        (want,) = ReferenceEvaluator(model).run(None, {"x": x})
        for exe in programs:
            np.testing.assert_allclose(exe(x), want, rtol=1e-4, atol=1e-4)


@pytest.mark.long
@pytest.mark.parametrize(("shape", "centred"), [((2, 3, 40), 0), (("b", "c", "n"), 1)])
def test_suppression_of_boxes(shape: tuple[Any, ...], centred: int) -> None:
    """Equal scores, boxes without an area and turned ones included, and a part of the result."""
    from onnx.reference import ReferenceEvaluator

    nodes = [
        node("NonMaxSuppression", "boxes scores most overlap least", "y", center_point_box=centred),
        node("Slice", "y one two one", "a"), node("Cast", "a", "z", to=FLOAT),
    ]  # fmt: skip
    weights = {
        "overlap": np.float32([0.3]),
        "least": np.float32([-0.5]),
        "one": np.array([1]),
        "two": np.array([2]),
    }
    inputs = [info("boxes", shape[0], shape[2], 4), info("scores", *shape), info("most", 1, type=INT64)]
    outputs = [info("y", "k", 3, type=INT64), info("z", "k", 1)]
    model = model_of(nodes, inputs, outputs, weights, 19)
    reference = ReferenceEvaluator(model)
    source = imported(model)
    assert isinstance(source, DeferredSource)
    source = source.read()
    programs = [devscope.compile(source, default=target, cache=False) for target in ("cpu:0", "opencl:0")]
    batch, kinds, count = (2, 3, 40) if shape[0] == 2 else (1, 2, 25)
    boxes = RNG.integers(0, 9, (batch, count, 4)).astype(np.float32)
    scores = RNG.integers(-4, 9, (batch, kinds, count)).astype(np.float32) / 4
    for most in (0, 4, 2**40):
        given = {"boxes": boxes, "scores": scores, "most": np.array([most])}
        wants = reference.run(None, given)
        for exe in programs:
            for got, want in zip(exe(*given.values()), wants, strict=True):
                np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("type", ["INT4", "UINT4", "FLOAT4E2M1", "FLOAT8E4M3FN"])
@pytest.mark.parametrize("target", ["cpu:0", "opencl:0"])
def test_large_weights_of_few_bits(type: str, target: str) -> None:
    """They stand outside of the module, two in a byte if they have 4 bits."""
    number = getattr(TensorProto, type)
    dtype = helper.tensor_dtype_to_np_dtype(number)
    w = np.array([0, 1, 2, 3, 4, 6], np.float32)[RNG.integers(0, 6, (128, 256))].astype(dtype)
    scale = RNG.random(256, np.float32)
    nodes = [node("DequantizeLinear", "w scale", "d", axis=1), node("MatMul", "x d", "y")]
    model = model_of(nodes, [info("x", 3, 128)], [info("y", 3, 256)], {"scale": scale}, 23)
    model.graph.initializer.append(numpy_helper.from_array(w, "w"))
    x = RNG.standard_normal((3, 128), np.float32)
    got = devscope.compile(model, default=target, cache=False)(x)
    np.testing.assert_allclose(got, x @ (w.astype(np.float32) * scale), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("opset", [12, 19])
@pytest.mark.parametrize("count", [3, "n"])
def test_sequences_of_known_elements(opset: int, count: int | str) -> None:
    """Split, taken from, put into and joined, with and without a new dimension; an optional value."""
    nodes = [
        node("SplitToSequence", "x two", "pieces", axis=1),  # 2, 2 and 1 of 5
        node("SequenceAt", "pieces last", "c"),
        node("SequenceErase", "pieces last", "rest"),
        node("Optional", "c", "maybe"),
        node("OptionalHasElement", "maybe", "there"),
        node("OptionalGetElement", "maybe", "d"),
        node("SequenceInsert", "rest d zero", "more"),
        node("SequenceLength", "more", "length"),
        node("ConcatFromSequence", "more", "y", axis=1),
        node("SplitToSequence", "x", "columns", axis=1, keepdims=0),
        node("ConcatFromSequence", "columns", "z", axis=0, new_axis=1),
    ]
    if opset < 15:
        nodes = [one for one in nodes if "Optional" not in one.op_type]
        nodes[3].input[1] = "c"
    outputs = [info("y", count, 5), info("z", 5, count), info("length", type=INT64)]
    outputs += [info("there", type=TensorProto.BOOL)] if opset > 15 else []
    places = {"two": np.array(2), "last": np.array(-1), "zero": np.array(0)}
    exe = devscope.compile(model_of(nodes, [info("x", count, 5)], outputs, places, opset), cache=False)
    x = RNG.standard_normal((3, 5), np.float32)
    y, z, length, *there = exe(x)
    np.testing.assert_array_equal(y, np.concatenate([x[:, 4:], x[:, :4]], 1))
    np.testing.assert_array_equal(z, x.T)
    assert int(length) == 3
    assert all(map(bool, there))


def test_loops_of_sequences_and_of_growing_values() -> None:
    """Written out for each trip: rows, sliced at its number, put into a sequence, and a value that gets longer."""
    body = helper.make_graph(
        [
            node("Add", "i one", "j"), node("Unsqueeze", "i zero", "start"), node("Unsqueeze", "j zero", "end"),
            node("Slice", "x start end", "row"), node("SequenceInsert", "s row", "t"),
            node("Concat", "v row", "w", axis=0), node("Identity", "c", "d"),
        ],
        "body",
        [info("i", type=INT64), info("c", type=TensorProto.BOOL), info("s"), info("v", "k", 2)],
        [info("d", type=TensorProto.BOOL), info("t"), info("w", "l", 2)],
    )  # fmt: skip
    of_row = [info("row", 1, 2), info("z", 1, type=INT64)]
    taken = helper.make_graph(
        [node("Gather", "row z", "r", axis=0), node("Add", "r r", "q")], "row", of_row, [info("q", 1, 2)]
    )
    sequence = helper.make_tensor_sequence_value_info("s", FLOAT, None)
    body.input[2].CopyFrom(sequence)
    body.output[1].type.CopyFrom(sequence.type)
    nodes = [
        node("Shape", "x", "shape", end=1), node("Squeeze", "shape", "trips"), node("SequenceEmpty", "", "none"),
        node("Loop", "trips true none x", "rows longer", body=body),
        helper.make_node("SequenceMap", ["rows", "zero"], ["mapped"], body=taken),
        node("ConcatFromSequence", "mapped", "y", axis=1), node("SequenceAt", "rows one", "z"),
    ]  # fmt: skip
    weights = {"one": np.array(1), "zero": np.array([0]), "true": np.array(True)}
    model = model_of(nodes, [info("x", 3, 2)], [info("y", 1, 6), info("z", 1, 2), info("longer", 6, 2)], weights)
    x = RNG.standard_normal((3, 2), np.float32)
    y, z, longer = devscope.compile(model, cache=False)(x)
    np.testing.assert_array_equal(y, 2 * x.reshape(1, 6))
    np.testing.assert_array_equal(z, x[1:2])
    np.testing.assert_array_equal(longer, np.concatenate([x, x]))


def test_integers_and_constants_of_models_of_any_size() -> None:
    """torch-mlir takes unsigned ones for signed ones, and has no results that no node makes."""
    nodes = [
        node("Cast", "x", "f", to=FLOAT), node("Mul", "f scale", "y"), node("Transpose", "x", "z", perm=[1, 0]),
        node("Gather", "table i", "g"), node("DequantizeLinear", "g scale zero", "w"),
        node("Neg", "i", "j"), node("Cast", "j", "u", to=TensorProto.UINT16),
        node("Cast", "y", "s", to=TensorProto.INT16),
    ]  # fmt: skip
    weights = {"scale": np.float32(0.5), "zero": np.uint8(200), "constant": WEIGHTS,
               "table": RNG.integers(0, 255, (9, 2)).astype(np.uint8)}  # fmt: skip
    inputs = [info("x", "n", 2, type=UINT8), info("i", "n", type=INT64)]
    outputs = [info("y", "n", 2), info("z", 2, "n", type=UINT8), info("w", "n", 2), info("constant", 64, 32),
               info("u", "n", type=TensorProto.UINT16), info("s", "n", 2, type=TensorProto.INT16)]  # fmt: skip
    x = np.array([[0, 1], [127, 128], [200, 255]], np.uint8)
    y, z, w, constant, u, s = devscope.compile(model_of(nodes, inputs, outputs, weights), cache=False)(
        x, np.arange(3)
    )
    np.testing.assert_array_equal(y, x * np.float32(0.5))
    np.testing.assert_array_equal(z, x.T)
    assert (z.dtype, u.dtype, s.dtype) == (np.uint8, np.uint16, np.int16)
    np.testing.assert_array_equal(u, [0, 65535, 65534])
    np.testing.assert_array_equal(s, x // 2)
    np.testing.assert_array_equal(w, (weights["table"][:3].astype(np.float32) - 200) / 2)
    np.testing.assert_array_equal(constant, WEIGHTS)


def test_nothing_is_reshaped_as_a_computed_shape_says() -> None:
    nodes = [
        node("Shape", "x", "rows", end=1),
        node("Concat", "rows three", "s", axis=0),
        node("Reshape", "x s", "y"),
    ]
    exe = devscope.compile(model_of(nodes, [info("x", "n", "k")], [info("y", "n", 3)], {"three": np.array([3])}))
    for rows in (2, 0):
        x = RNG.standard_normal((rows, 3), np.float32)
        np.testing.assert_array_equal(exe(x), x)


def test_sizes_of_the_exporters_example_inside_of_a_model() -> None:
    """As PyTorch's exporter declares behind recurrent networks of any length."""
    nodes = [
        node("Shape", "x", "sizes"),
        node("Gather", "sizes order", "turned"),
        node("Reshape", "x turned", "reshaped"),
        node("Transpose", "reshaped", "transposed", perm=[1, 0]),
        node("Einsum", "transposed transposed", "y", equation="ij,ij->j"),
    ]
    model = model_of(nodes, [info("x", "n", "m")], [info("y", "m")], {"order": np.array([1, 0])})
    model.graph.value_info.extend([info("reshaped", "m", "n"), info("transposed", 6, "m")])
    with devscope.compile(model, cache=False) as exe:
        for shape in ((6, 2), (3, 5)):
            x = RNG.standard_normal(shape, np.float32)
            np.testing.assert_allclose(exe(x), (x.reshape(shape[::-1]) ** 2).sum(1), rtol=1e-5)


def test_functions_of_models_of_any_size() -> None:
    """Called with the value that an attribute has by default, and with another."""
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    nodes = [node("Elu", "a", "e"), node("Sigmoid", "e", "s"), node("Mul", "a s", "b")]
    nodes[0].attribute.add(name="alpha", ref_attr_name="least", type=onnx.AttributeProto.FLOAT)
    default = [helper.make_attribute("least", 2.0)]
    function = helper.make_function("own", "Swish", ["a"], ["b"], nodes, opsets[:1], [], default)
    calls = [node("Swish", "x", "h", domain="own"), node("Swish", "h", "y", domain="own", least=0.5)]
    graph = helper.make_graph(calls, "twice", [info("x", "n")], [info("y", "n")])
    model = helper.make_model(graph, functions=[function], opset_imports=opsets, ir_version=9)
    x = want = RNG.standard_normal(3).astype(np.float32)
    for least in (2.0, 0.5):
        want = want / (1 + np.exp(-np.where(want < 0, least * np.expm1(want), want)))
    np.testing.assert_allclose(devscope.compile(model, cache=False)(x), want, rtol=1e-5)


LOOP = helper.make_graph(
    [
        helper.make_node("ReduceMax", ["a"], ["m"], keepdims=0),
        helper.make_node("Cast", ["m"], ["d"], to=TensorProto.BOOL),
        helper.make_node("NonZero", ["a"], ["p"]),
    ],
    "body",
    [info("i", type=INT64), info("c", type=TensorProto.BOOL), info("a", "n")],
    [info("d", type=TensorProto.BOOL), info("a", "n"), info("p", 1, "k", type=INT64)],
)


@pytest.mark.parametrize(
    ("nodes", "inputs", "message"),
    [
        ([helper.make_node("Nothing", ["x"], ["y"])], [info("x", 2)], "operator Nothing is not supported"),
        ([helper.make_node("PRelu", ["x", "s"], ["y"])],
         [info("x", 2), info("s", 3)], "PRelu of node 'PRelu_0': sizes 2 and 3 do not fit each other"),
        ([helper.make_node("StringNormalizer", ["x"], ["y"])],
         [info("x", 2, type=TensorProto.STRING)], "strings are not"),
        ([helper.make_node("Bernoulli", ["x"], ["y"])], [info("x", 2)], "RandomUniformLike is not supported"),
        ([helper.make_node("Bernoulli", ["x"], ["y"])], [info("x", "n")], "is not supported: it is random"),
        ([helper.make_node("Resize", ["x", "", "s"], ["y"])], [info("x", "n"), info("s", 1)], "Resize"),
        ([helper.make_node("ReduceProd", ["x"], ["y"])], [info("x", "n")], "ReduceProd along an axis"),
        ([helper.make_node("BitShift", ["x", "x"], ["y"], direction="LEFT")],
         [info("x", "n", type=UINT8)], "BitShift of"),
        ([helper.make_node("Add", ["x", "x"], ["y"])], [info("x", "n", type=UINT8)], "of quantised numbers"),
        ([helper.make_node("ConstantOfShape", ["x"], ["z"]), helper.make_node("ReduceSum", ["z"], ["y"])],
         [info("x", "n", type=INT64)], "'z' has as many dimensions as are known at run time only"),
        ([helper.make_node("Loop", ["", "", "x"], ["", "y"], body=LOOP)],
         [info("x", "n")], "a loop whose rows have a size that none of its operands has"),
    ],
)  # fmt: skip
def test_refused(nodes: list[Any], inputs: list[Any], message: str) -> None:
    is_alike = nodes[-1].op_type in ("StringNormalizer", "BitShift", "Add")
    kind = inputs[0].type.tensor_type.elem_type if is_alike else INT64 if nodes[-1].op_type == "Loop" else FLOAT
    with pytest.raises(LoweringError, match=message) as raised:
        devscope.compile(model_of(nodes, inputs, [info("y", None, type=kind)]), cache=False)
    assert "\n" not in raised.value.message


@pytest.mark.parametrize("count", [2, "n"])
@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([node("Concat", "x x", "y")], r"Required attribute 'axis' is missing. \(node Concat_0\)"),
        ([node("Add", "x z", "y")], "'z' of node: name: Add_0 OpType: Add is not output of any previous nodes"),
        ([node("Softmax", "x", "y", axis=7)], r"node name: Softmax_0\): 'axis' must be in \[-1 , 0\]"),
        ([node("Cast", "x", "z", to=INT64), node("Add", "x z", "y")], "Add_1.: B has inconsistent type"),
        ([helper.make_node("Constant", [], ["z"]), node("Add", "x z", "y")], "Constant_0.: One and only one"),
    ],
)
def test_models_that_are_not_valid(nodes: list[Any], message: str, count: int | str) -> None:
    with pytest.raises(InputError, match=f"is no valid ONNX model: .*{message}"):
        devscope.compile(model_of(nodes, [info("x", count)], [info("y", count)]), cache=False)


@pytest.mark.parametrize("count", [2, "n"])
@pytest.mark.parametrize(
    ("kind", "shape", "groups"),
    [("Conv", (4, 5, 3, 3), 1), ("Conv", (4, 4, 3, 3), 2), ("ConvTranspose", (3, 4, 3, 3), 1)],
)
def test_convolutions_of_other_channels(kind: str, shape: tuple[int, ...], groups: int, count: int | str) -> None:
    nodes, outputs = [node(kind, "x w", "y", group=groups)], [info("y", None, None, None, None)]
    model = model_of(nodes, [info("x", count, 4, 5, 5)], outputs, {"w": np.zeros(shape, np.float32)})
    with pytest.raises(InputError, match=rf"{kind} of 4 channels by weights of .*\(node {kind}_0\)"):
        devscope.compile(model, cache=False)


@pytest.mark.parametrize("data", [b"\x08\x0a\xff\xff\xff", b"\x08\x0a", b"\x08\x0a:\x7f"])
def test_damaged_models(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(data)
    for source in (data, tmp_path / "model.onnx"):
        with pytest.raises(InputError, match="is not an ONNX model"):
            devscope.compile(source, cache=False)


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from devscope.cli.main import main

    onnx.save(network("n"), tmp_path / "model.onnx")
    path = str(tmp_path / "model.onnx")
    assert main(["plan", path, "--table"]) == 0
    assert main(["run", path, "--random", "0", "--no-cache", "--check"]) == 0
    assert "agrees with the host" in capsys.readouterr().out
    assert main(["build", path, "-o", str(tmp_path / "model.dsx")]) == 0
    np.testing.assert_allclose(devscope.load(tmp_path / "model.dsx")(X), WANT, rtol=1e-5, atol=1e-5)
    assert main(["plan", str(tmp_path / "none.onnx")]) == 1


def test_quantised_windows_of_any_size() -> None:
    """What moves quantised numbers is written out as on floats."""
    nodes = [
        node("QuantizeLinear", "x scale zero", "q"), node("Reshape", "q image", "images"),
        node("MaxPool", "images", "most", kernel_shape=[1, 2], strides=[1, 2], auto_pad="SAME_UPPER"),
        node("GatherND", "most at", "y"),
    ]  # fmt: skip
    weights = {"scale": np.float32(0.5), "zero": np.uint8(100), "image": np.array([0, 1, 1, -1])}
    inputs = [info("x", "n", 5), info("at", "k", "l", 1, type=INT64)]
    outputs = [info("y", "k", "l", 1, 1, 3, type=UINT8)]
    x, at = RNG.standard_normal((3, 5)).astype(np.float32), np.array([[[0], [2]], [[1], [-1]]])
    q = np.clip(np.rint(x / np.float32(0.5)) + 100, 0, 255).astype(np.uint8)
    most = np.stack([q[:, :2].max(1), q[:, 2:4].max(1), q[:, 4]], 1)
    exe = devscope.compile(model_of(nodes, inputs, outputs, weights), cache=False)
    np.testing.assert_array_equal(exe(x, at), most[at[..., 0]][:, :, None, None])
