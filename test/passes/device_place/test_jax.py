"""Rules and pragmas in JAX functions: named scopes through transformations, loops, inner functions and export."""

from collections import Counter

import numpy as np
import pytest

import devscope
from devscope.errors import OptionError

jax = pytest.importorskip("jax")
jnp = jax.numpy

X = np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32)


def network(x, w):
    with jax.named_scope("layer1"):
        y = jnp.tanh(x @ w)
    z = jax.jit(lambda a: jax.nn.softmax(a @ w))(y)

    def body(c, _):
        with jax.named_scope("inner"):
            return jnp.sin(c @ w), None

    with jax.named_scope("loop"):
        c, _ = jax.lax.scan(body, z, None, length=3)
    return c.sum()


def on_devices(plan, *names):
    """Per device, how many operations of these names are there, besides the host."""
    found = Counter(one.scope.short() for one in plan.placements if not names or one.op in names)
    return {device: count for device, count in found.items() if device != "cpu:0"}


@pytest.mark.parametrize(
    ("place", "products"),
    [
        ({"layer1": "opencl:0"}, 1),
        ({"layer1/tanh": "opencl:0"}, 0),
        ({"dot_general": "opencl:0"}, 3),
        ({"stablehlo.dot_general": "opencl:0"}, 3),
        ({"inner": "opencl:0"}, 1),
        ({"loop": "opencl:0"}, 1),
        ({"linalg.matmul": "opencl:0"}, 3),
        ({"*.body": "opencl:0"}, 1),
    ],
)
def test_rules_and_results(place, products):
    plan = devscope.plan(network, (X, X), place=place)
    assert on_devices(plan, "linalg.matmul").get("opencl:0", 0) == products
    assert on_devices(plan)["opencl:0"] > 0
    np.testing.assert_allclose(devscope.compile(network, (X, X), place=place)(X, X), network(X, X), rtol=1e-5)


def test_a_gradient_is_where_its_scope_is():
    gradient = jax.grad(network)
    plan = devscope.plan(gradient, (X, X), place={"layer1": "opencl:0"})
    assert on_devices(plan)["opencl:0"] >= 5
    found = devscope.compile(gradient, (X, X), place={"layer1": "opencl:0"})(X, X)
    np.testing.assert_allclose(found, gradient(X, X), rtol=1e-4, atol=1e-6)


class TestHints:
    """What JAX itself writes of places."""

    def test_compute_on(self):
        from jax.experimental.compute_on import compute_on

        def function(x):
            with compute_on("device_host"):
                y = jnp.sin(x) * 2
            return jnp.exp(y)

        plan = devscope.plan(function, (X,), default="opencl:0")
        whys = [one.scope.short() for one in plan.placements if one.reason == "_xla_compute_type = host"]
        assert whys
        assert set(whys) == {"cpu:0"}
        assert on_devices(plan)["opencl:0"] > 0
        found = devscope.compile(function, (X,), default="opencl:0")(X)
        np.testing.assert_allclose(found, function(X), rtol=1e-5)

    def test_of_a_function(self):
        from jax.experimental.compute_on import compute_on

        @compute_on("device_host")
        @jax.jit
        def inner(x):
            return jnp.sin(x)

        def function(x):
            return jnp.exp(inner(x) * 3)

        plan = devscope.plan(function, (X,), default="opencl:0")
        assert any(one.reason == "_xla_compute_type = host" for one in plan.placements)
        np.testing.assert_allclose(devscope.compile(function, (X,), default="opencl:0")(X), function(X), rtol=1e-5)


class TestPragmas:
    @staticmethod
    def function(x, w):
        with devscope.on("opencl:0"):
            y = jax.jit(lambda a: jnp.tanh(a @ w))(x)
            with devscope.on("cpu:0"):
                z = jnp.exp(y)
        return (z + y).sum()

    def test_the_innermost_counts(self):
        plan = devscope.plan(self.function, (X, X))
        whys = {one.reason for one in plan.placements}
        assert {"devscope.on('opencl:0')", "devscope.on('cpu:0')"} <= whys
        assert on_devices(plan, "linalg.matmul") == {"opencl:0": 1}
        np.testing.assert_allclose(devscope.compile(self.function, (X, X))(X, X), self.function(X, X), rtol=1e-5)

    def test_they_win_over_rules(self):
        plan = devscope.plan(self.function, (X, X), place={"*dot_general": "opencl:1", "add": "opencl:1"})
        assert on_devices(plan, "linalg.matmul") == {"opencl:0": 1}
        assert any("the program says opencl:0, which wins over opencl:1" in r.text for r in plan.remarks)

    def test_they_survive_export_and_transformations(self, tmp_path):
        function = jax.vmap(jax.grad(self.function), in_axes=(0, None))
        examples = (jax.ShapeDtypeStruct((2, 4, 4), jnp.float32), jax.ShapeDtypeStruct((4, 4), jnp.float32))
        exported = jax.export.export(jax.jit(function), platforms=("cpu",))(*examples)
        file = tmp_path / "exported.stablehlo"
        file.write_bytes(exported.mlir_module_serialized)
        assert on_devices(devscope.plan(file)) == on_devices(devscope.plan(function, examples))
        assert on_devices(devscope.plan(file))["opencl:0"] >= 4

    def test_without_a_trace_nothing_happens(self):
        with devscope.on("opencl:0"):
            assert float(self.function(X, X)) == float(self.function(X, X))

    def test_what_is_no_device(self):
        with pytest.raises(OptionError, match="unknown device type 'gpu'"), devscope.on("gpu:0"):
            pass
