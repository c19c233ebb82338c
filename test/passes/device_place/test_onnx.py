"""Rules and ``device_configurations`` in ONNX models."""

import numpy as np
import pytest

import devscope
from devscope.cli.main import main
from devscope.errors import DevscopeWarning

onnx = pytest.importorskip("onnx")
helper = onnx.helper
RNG = np.random.default_rng(0)
X = RNG.standard_normal((4, 8), np.float32)
W, V = RNG.standard_normal((8, 16), np.float32), RNG.standard_normal((16, 8), np.float32)
WANT = np.exp(np.maximum(X @ W, 0) @ V)


def model(batch=4):
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], "layer1/matmul"),
        helper.make_node("Relu", ["a"], ["b"], "layer1/relu"),
        helper.make_node("MatMul", ["b", "v"], ["c"], "layer2/matmul"),
        helper.make_node("Exp", ["c"], ["y"], "head"),
    ]
    value = helper.make_tensor_value_info
    weights = [onnx.numpy_helper.from_array(array, name) for name, array in (("w", W), ("v", V))]
    inputs, outputs = [value("x", 1, (batch, 8))], [value("y", 1, (batch, 8))]
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=11)


def products(source, place=None):
    plan = devscope.plan(source, place=place)
    return [one.scope.short() for one in plan.placements if one.op == "linalg.matmul"], plan


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("place", "devices"),
    [
        ({"MatMul": "opencl:0"}, ["opencl:0", "opencl:0"]),
        ({"layer1": "opencl:0"}, ["opencl:0", "cpu:0"]),
        ({"layer2/*": "opencl:0"}, ["cpu:0", "opencl:0"]),
        ([devscope.Rule("opencl:0", op="Relu"), devscope.Rule("cpu:0")], ["cpu:0", "cpu:0"]),
        ([devscope.Rule("opencl:0", op="*")], ["opencl:0", "opencl:0"]),
    ],
)
def test_rules(place, devices):
    for batch in (4, "batch"):  # what is dynamic goes through torch-mlir
        assert products(model(batch), place)[0] == devices
        np.testing.assert_allclose(devscope.compile(model(batch), place=place)(X), WANT, rtol=1e-4)


@pytest.mark.parametrize("opset", [9, 21])
@pytest.mark.parametrize("batch", [4, "batch"])
def test_layers(batch, opset):
    """Also of the nodes of an older model, which are converted."""
    proto = model(batch)
    proto.opset_import[0].version = opset
    for node, layer in zip(proto.graph.node, ("encoder", "encoder", "decoder", ""), strict=True):
        if layer:
            node.metadata_props.add(key="layer_ann", value=layer)
    assert products(proto, {"encoder": "opencl:0"})[0] == ["opencl:0", "cpu:0"]
    assert products(proto, {"decoder": "opencl:0"})[0] == ["cpu:0", "opencl:0"]


class TestConfigurations:
    @staticmethod
    def configured(names, number, batch=4, **how):
        proto = model(batch)
        proto.configuration.add(name="two", num_devices=len(names), device=names)
        said = proto.graph.node[0].device_configurations.add(configuration_id="two")
        if how.get("stage"):
            said.pipeline_stage = number
        else:
            said.sharding_spec.add(tensor_name="a", device=number if isinstance(number, list) else [number])
        return proto

    @pytest.mark.parametrize("names", [["CPU", "GPU"], ["cpu:0", "opencl:0"]])
    @pytest.mark.parametrize("stage", [True, False])
    def test_they_are_read_and_win(self, names, stage):
        source = self.configured(names, 1, stage=stage)
        found, plan = products(source, {"*": "cpu:0"})
        assert found == ["opencl:0", "cpu:0"]
        assert any(one.reason == "device_configurations" for one in plan.placements)
        np.testing.assert_allclose(devscope.compile(source)(X), WANT, rtol=1e-4)

    @pytest.mark.parametrize("batch", [4, "batch"])
    def test_of_an_older_opset(self, batch):
        source = self.configured(["CPU", "GPU"], 1, batch)
        source.opset_import[0].version = 9
        assert products(source)[0] == ["opencl:0", "cpu:0"]

    @pytest.mark.parametrize(("names", "number"), [(["NPU", "TPU"], 1), (["CPU", "GPU"], [0, 1]), (["CPU"], 3)])
    def test_what_is_not_one_device_is_said(self, names, number):
        with pytest.warns(DevscopeWarning, match="'two' of node 'layer1/matmul' is not of one device"):
            assert products(self.configured(names, number))[0] == ["cpu:0", "cpu:0"]

    def test_plans_are_written_and_read_again(self, tmp_path, capsysbinary):
        source, written = tmp_path / "model.onnx", tmp_path / "annotated.onnx"
        onnx.save(model(), source)
        arguments = ["plan", str(source), "--place", "layer1=opencl:0", "-o"]
        assert main([*arguments, str(written)]) == 0
        assert b"4 nodes have a device" in capsysbinary.readouterr().out
        assert main([*arguments, "-"]) == 0
        piped = capsysbinary.readouterr()
        assert piped.out == written.read_bytes()
        assert b"4 nodes have a device" in piped.err
        onnx.checker.check_model(written)
        assert list(onnx.load(written).configuration[0].device) == ["cpu:0", "opencl:0"]
        assert products(written)[0] == ["opencl:0", "cpu:0"]
        np.testing.assert_allclose(devscope.compile(written)(X), WANT, rtol=1e-4)
