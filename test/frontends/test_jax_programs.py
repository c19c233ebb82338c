"""Programs of JAX's users are what JAX computes: on the host, on a device, and with work on both."""

import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import devscope
from devscope.frontends import imported
from devscope.lowering.interop.bindings import ir
from devscope.parsed_source import parse_source

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

jax = pytest.importorskip("jax")
PROGRAMS = pytest.importorskip("_jax_programs").PROGRAMS

pytestmark = pytest.mark.sampled(6)

SCOPES = ('#device.scope<"cpu", 0 : i64, "", "">', '#device.scope<"opencl", 0 : i64, "", "">')


def equal(got: Any, want: Any) -> None:
    for one, two in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert one.shape == two.shape
        assert one.dtype == two.dtype
        np.testing.assert_allclose(one, two, rtol=2e-4, atol=2e-5)


def placed_at_random(source: Any, seed: int, every: int) -> Any:
    """The module of a function's program, in which one in ``every`` operations says where it runs."""
    rng, parsed = random.Random(seed), parse_source(source)
    for function in parsed.module.body.operations:
        for op in function.regions[0].blocks[0].operations:
            if op.operation.name.startswith("stablehlo.") and rng.random() < 1 / every:
                op.operation.attributes["device.scope"] = ir.Attribute.parse(rng.choice(SCOPES), parsed.context)
    return parsed.module


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("target", ["cpu:0", "opencl:0"])
def test_on_one_device(name: str, target: str) -> None:
    function, arguments = PROGRAMS[name](small=True, seed=1)
    with devscope.compile(function, arguments, default=target, cache=False) as made:
        for seed in (1, 2):
            _, arguments = PROGRAMS[name](small=True, seed=seed)
            equal(made(*arguments), jax.jit(function)(*arguments))


@pytest.mark.parametrize("name", PROGRAMS)
def test_with_work_on_both(name: str) -> None:
    function, arguments = PROGRAMS[name](small=True)
    module = placed_at_random(imported(function, arguments), seed=len(name), every=6)
    assert all(scope in str(module) for scope in SCOPES)
    want = jax.jit(function)(*arguments)
    with devscope.compile(module, cache=False) as made:
        assert {"cpu:0", "opencl:0"} <= set(made.devices)
        equal(list(made(*jax.tree.leaves(arguments))), want)


@pytest.mark.parametrize("name", ["MLP, training step", "attention block, KV cache"])
def test_products_on_a_device(name: str) -> None:
    """By a rule of the caller; all else stays on the host."""
    function, arguments = PROGRAMS[name](small=True)
    rules = {"dot_general": "opencl:0", "*": "cpu:0"}
    with devscope.compile(function, arguments, place=rules, cache=False) as made:
        assert {"cpu:0", "opencl:0"} <= set(made.devices)
        equal(made(*arguments), jax.jit(function)(*arguments))


def test_a_net_learns() -> None:
    """The state of one step is the argument of the next one."""
    function, (parameters, x, labels) = PROGRAMS["MLP, training step"](small=True)
    with devscope.compile(function, (parameters, x, labels), cache=False) as step:
        losses: list[float] = []
        for _ in range(20):
            parameters, loss = step(parameters, x, labels)
            losses.append(float(loss))
    assert losses == sorted(losses, reverse=True)


def test_a_cache_fills() -> None:
    """Position after position; the cache goes round."""
    function, (parameters, cache, x, _) = PROGRAMS["attention block, KV cache"](small=True)
    ours = theirs = cache
    staged = jax.jit(function)
    with devscope.compile(function, (parameters, cache, x, np.int32(0)), cache=False) as made:
        for position in range(0, 6, 2):
            y, ours = made(parameters, ours, x, np.int32(position))
            want, theirs = staged(parameters, theirs, x, np.int32(position))
            equal((y, ours), (want, theirs))
            x = np.asarray(y)


@pytest.mark.parametrize("target", ["cpu:0", "opencl:0"])
def test_factors_of_any_number_of_small_matrices(target: str) -> None:
    """Rows of three elements are read one by one: into vectors, at places that are known at run time only."""
    (count,) = jax.export.symbolic_shape("n")
    shape = jax.ShapeDtypeStruct((count, 3, 3), np.float32)
    program = jax.export.export(jax.jit(jax.numpy.linalg.cholesky), platforms=["cpu"])(shape)
    x = np.random.default_rng(3).standard_normal((5, 3, 3)).astype(np.float32)
    x = x @ x.transpose(0, 2, 1) + np.eye(3, dtype=np.float32)
    equal(devscope.compile(program, default=target, cache=False)(x), np.linalg.cholesky(x))
