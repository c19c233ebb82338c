"""Rules and pragmas in modules of PyTorch: paths of modules, operations before decomposition, ``devscope.on``."""

import numpy as np
import pytest

import devscope

torch = pytest.importorskip("torch")


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(8, 16), torch.nn.Linear(16, 8)

    def forward(self, x):
        return x + self.second(torch.relu(self.first(x)))


class Network(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = torch.nn.Sequential(Block(), Block())
        self.head = torch.nn.Linear(8, 3)

    def forward(self, x):
        x = self.layers(x)
        with devscope.on("cpu:0"):
            x = torch.tanh(x)
        return torch.softmax(self.head(x), -1)


X = torch.linspace(-1, 1, 16).reshape(2, 8)
PRODUCTS = ("linalg.matmul", "linalg.contract", "linalg.generic")


def products(place):
    plan = devscope.plan(Network().eval(), (X,), place=place)
    found = [one for one in plan.placements if one.op == "linalg.matmul"]
    return [one.scope.short() for one in found]


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("place", "devices"),
    [
        ({"layers.0": "opencl:0"}, ["opencl:0"] * 2 + ["cpu:0"] * 3),
        ({"layers.0.*": "opencl:0"}, ["opencl:0"] * 2 + ["cpu:0"] * 3),
        ({"layers.*.first": "opencl:0"}, ["opencl:0", "cpu:0", "opencl:0", "cpu:0", "cpu:0"]),
        ({"layers.1.second": "opencl:0"}, ["cpu:0"] * 3 + ["opencl:0", "cpu:0"]),
        ({"aten.linear": "opencl:0"}, ["opencl:0"] * 5),
        ({"head": "opencl:0", "*": "cpu:0"}, ["cpu:0"] * 4 + ["opencl:0"]),
        ([devscope.Rule("opencl:0", op="*")], ["opencl:0"] * 5),
    ],
)
def test_rules(place, devices):
    assert products(place) == devices
    network = Network().eval()
    found = devscope.compile(network, (X,), place=place)(X)
    np.testing.assert_allclose(found, network(X).detach().numpy(), rtol=1e-5, atol=1e-6)


NETWORKS = [Network().eval(), Network().eval()]


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (NETWORKS[0].layers, {"0", "0.first", "0.second", "1", "1.first", "1.second"}),
        (NETWORKS[0].layers[0], {"", "first", "second"}),
        (
            lambda x: NETWORKS[1].head(NETWORKS[0].layers[0](x)),
            {
                *("NETWORKS.0.layers.0", "NETWORKS.0.layers.0.first", "NETWORKS.0.layers.0.second"),
                "NETWORKS.1.head",
            },
        ),
    ],
)
def test_paths_of_modules_under_torch_compile(monkeypatch, function, expected):
    from devscope import torch_backend
    from devscope.frontends.torch.fx import module_path

    paths = set()
    read = torch_backend.read_graph

    def note(module, constants):
        paths.update(module_path(node) for node in module.graph.nodes if node.op == "call_function")
        return read(module, constants)

    monkeypatch.setattr(torch_backend, "read_graph", note)
    torch._dynamo.reset()
    with torch.no_grad():
        torch.compile(function, backend="devscope", options={"fallback": "error", "cache": False})(X)
    assert paths == expected


def test_a_pragma_wins_over_rules():
    plan = devscope.plan(Network().eval(), (X,), place=[devscope.Rule("opencl:0", op="*")])
    where = [one.scope.short() for one in plan.placements if one.reason == "devscope.on('cpu:0')"]
    assert where
    assert set(where) == {"cpu:0"}


@pytest.mark.parametrize("strict", [False, True])
def test_a_pragma_is_in_exported_files(tmp_path, strict):
    class Function(torch.nn.Module):
        def forward(self, x):
            with devscope.on("opencl:0"):
                y = torch.exp(x)
            return y + 1

    plan = devscope.plan(Function(), (X,))
    assert [one.scope.short() for one in plan.placements if "devscope.on" in one.reason] == ["opencl:0"]
    np.testing.assert_allclose(devscope.compile(Function(), (X,))(X), np.exp(X.numpy()) + 1, rtol=1e-6)
    torch.export.save(torch.export.export(Function(), (X,), strict=strict), tmp_path / "f.pt2")
    saved = devscope.plan(tmp_path / "f.pt2")
    assert [one.scope.short() for one in saved.placements if "devscope.on" in one.reason] == ["opencl:0"]
