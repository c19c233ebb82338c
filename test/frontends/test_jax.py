"""JAX functions as programs: names, dtypes, nesting and dynamic dimensions are those of the function."""

import re
from collections import OrderedDict
from dataclasses import dataclass, replace
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import devscope
from devscope.errors import ArgumentError, ExecutableFormatError, ExecutionError, InputError, LoweringError
from devscope.frontends.jax import read_function
from devscope.runtime.structure import Structure, count_leaves, leaf_paths

jax = pytest.importorskip("jax")
jnp = jax.numpy


class Layer(NamedTuple):
    weights: Any
    bias: Any


X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
FIRST = Layer(np.ones((3, 2), np.float32), np.array([0.5, -0.5], np.float32))
PARAMETERS = {"first": FIRST, "rest": [None, (np.float32(2),)]}


def network(parameters: Any, x: Any) -> Any:
    first = parameters["first"]
    y = jnp.tanh(x @ first.weights + first.bias) * parameters["rest"][1][0]
    return {"y": y, "state": Layer(jnp.sum(y, axis=0), None)}


def equal(got: Any, want: Any) -> None:
    leaves, tree = jax.tree.flatten(want)
    found, other = jax.tree.flatten(got)
    assert str(tree) == str(other)
    for one, two in zip(found, leaves, strict=True):
        assert one.dtype == two.dtype
        np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-6)


@pytest.fixture(scope="module")
def executable() -> Any:
    with devscope.compile(network, (PARAMETERS, X), cache=False) as made:
        yield made


def test_arguments_and_results_nest(executable: Any) -> None:
    equal(executable(PARAMETERS, X), network(PARAMETERS, X))
    equal(executable(x=X, parameters=PARAMETERS), network(PARAMETERS, X))


def test_names_are_paths(executable: Any) -> None:
    assert [spec.name for spec in executable.entries["main"].inputs] == [
        "parameters['first'].weights",
        "parameters['first'].bias",
        "parameters['rest'][1][0]",
        "x",
    ]
    assert executable.entries["main"].outputs[1].name == "result['y']"


@pytest.mark.parametrize(
    ("arguments", "named", "message"),
    [
        (({},), {"x": X}, "expected the keys"),
        ((PARAMETERS,), {}, "lacks 'x'"),
        ((PARAMETERS, X, X), {}, "2 arguments by position, got 3"),
        ((PARAMETERS, X), {"x": X}, "twice"),
        ((PARAMETERS, X), {"z": X}, "no argument 'z'"),
        (({**PARAMETERS, "rest": (None, (2.0,))}, X), {}, r"'parameters\['rest'\]': expected a list, got tuple"),
        (({**PARAMETERS, "rest": [None, ()]}, X), {}, "expected 1 parts, got 0"),
        (({**PARAMETERS, "rest": [0, (2.0,)]}, X), {}, "expected None, got int"),
        (([], X), {}, "'parameters': expected a dictionary, got list"),
    ],
)
def test_wrong_structure(executable: Any, arguments: Any, named: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        executable(*arguments, **named)


def test_wrong_array_names_its_path(executable: Any) -> None:
    with pytest.raises(InputError, match=r"'parameters\['first'\]\.bias': expected shape \[2\], got \[3\]"):
        executable({**PARAMETERS, "first": Layer(PARAMETERS["first"].weights, np.ones(3, np.float32))}, X)


def test_saved_programs_need_no_jax(executable: Any, tmp_path: Path) -> None:
    executable.save(tmp_path / "network.dsx")
    with devscope.load(tmp_path / "network.dsx") as loaded:
        assert repr(loaded(PARAMETERS, X)) == repr(executable(PARAMETERS, X))


def test_run_traces_with_what_it_is_called_with() -> None:
    equal(devscope.run(network, PARAMETERS, X, cache=False), network(PARAMETERS, X))
    np.testing.assert_array_equal(devscope.run(lambda a, b: a - b, b=X, a=X, cache=False), X - X)


def test_tuples_are_tuples() -> None:
    with devscope.compile(lambda a, b: (a + b, a * b), (X, X), cache=False) as made:
        assert type(made(X, X)) is tuple
        assert [spec.name for spec in made.entries["main"].inputs] == ["a", "b"]
        total, product = made(X, b=X)
        np.testing.assert_array_equal(total, X + X)
        np.testing.assert_array_equal(product, X * X)


U = np.array([200, 100, 255, 0], np.uint8)


def test_dtypes_are_those_of_the_function() -> None:
    """Unsigned means unsigned; small types are those of ml_dtypes."""
    ml_dtypes = pytest.importorskip("ml_dtypes")

    def function(u: Any, f8: Any, i4: Any, z: Any) -> Any:
        narrow = (f8.astype(jnp.float32) * 2).astype(jnp.float8_e5m2)
        return u + u[::-1], jnp.minimum(u, 150), u > 150, u.astype(jnp.float32), narrow, i4, z * z

    small = np.array([1, 2, 3], ml_dtypes.float8_e5m2)
    given = U, small, np.array([1, -2, 7], ml_dtypes.int4), np.array([1 + 2j], np.complex64)
    with devscope.compile(function, given, cache=False) as made:
        assert [spec.dtype for spec in made.entries["main"].inputs] == ["ui8", "f8E5M2", "i4", "complex<f32>"]
        for got, want in zip(made(*given), function(*given), strict=True):
            assert got.dtype == want.dtype
            np.testing.assert_array_equal(np.asarray(got), np.asarray(want))
        with pytest.raises(InputError, match="expected dtype uint8, got int8"):
            made(U.astype(np.int8), *given[1:])


def test_arrays_of_64_bits_are_those_of_jax(tmp_path: Path) -> None:
    """Which has none unless it is told to."""

    def function(parameters: Any, n: Any, factor: Any) -> Any:
        return parameters["x"] * factor + n

    given = {"x": np.linspace(0, 1, 4)}, np.arange(4), 2.5
    with devscope.compile(function, given, cache=False) as made:
        want = function(jax.tree.map(jnp.asarray, given[0]), jnp.asarray(given[1]), 2.5)
        equal(made(*given), want)
        equal(made({"x": given[0]["x"].astype(np.float32)}, np.arange(4, dtype=np.int32), np.float32(2.5)), want)
        with pytest.raises(
            ArgumentError, match="argument 1: the program was traced for int32, and an element does"
        ):
            made(given[0], given[1] + 2**31, 2.5)
        with pytest.raises(InputError, match="expected dtype int32, got uint64"):
            made(given[0], given[1].astype(np.uint64), 2.5)
        with pytest.raises(InputError, match="got str"):
            made(*given[:2], "2.5")
        made.save(tmp_path / "program.dsx")
    with devscope.load(tmp_path / "program.dsx") as loaded:
        equal(loaded(*given), want)
    with devscope.compile(lambda x: x[::-1], (np.arange(4),), cache=False) as plain:
        np.testing.assert_array_equal(plain(np.arange(4)), [3, 2, 1, 0])


def test_dynamic_dimensions() -> None:
    (rows,) = jax.export.symbolic_shape("n")
    spec = jax.ShapeDtypeStruct((rows, 3), np.float32)

    def function(x: Any, w: Any) -> Any:
        return {"y": jax.nn.softmax(x @ w, axis=-1), "total": x.sum(0), "twice": jnp.concatenate([x, x])}

    weights = np.ones((3, 2), np.float32)
    with devscope.compile(function, (spec, weights), cache=False) as made:
        assert str(made.entries["main"].inputs[0]) == "?x3xf32"
        for count in (1, 4, 7):
            x = np.linspace(-1, 1, 3 * count, dtype=np.float32).reshape(count, 3)
            equal(made(x, weights), function(x, weights))


def test_as_many_of_the_largest_as_a_dimension_says() -> None:
    def function(x: Any) -> Any:
        return jax.lax.top_k(x, x.shape[1] // 2)

    (columns,) = jax.export.symbolic_shape("n")
    exported = jax.export.export(jax.jit(function))(jax.ShapeDtypeStruct((2, columns), np.float32))
    x = np.array([[1, 3, np.nan, 3, -1], [0, -np.inf, -0.0, 5, 5]], np.float32)
    exe = devscope.compile(exported, default="cpu:0")
    for size in (1, 5):
        for got, wanted in zip(exe(x[:, :size]), function(x[:, :size]), strict=True):
            np.testing.assert_array_equal(got, wanted)


def test_sizes_that_break_a_constraint() -> None:
    rows, few = jax.export.symbolic_shape("a, b", constraints=["a >= b"])
    shapes = [jax.ShapeDtypeStruct((size,), np.float32) for size in (rows, few)]
    exe = devscope.compile(lambda x, y: x[: y.shape[0]] + y, shapes, cache=False)
    np.testing.assert_array_equal(exe(X[0], X[0, :2]), 2 * X[0, :2])
    with pytest.raises(ExecutionError) as error:
        exe(X[0, :1], X[0, :2])
    assert "constraint a >= b" in str(error.value)
    assert "{" not in str(error.value)  # JAX has places of numbers in its messages


@pytest.mark.long
def test_what_jax_has_for_processors_only() -> None:
    x = np.array([[2, 1], [1, 3]], np.float32)
    values = devscope.run(lambda x: jnp.linalg.eigvalsh(x), x, cache=False)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(x), rtol=1e-5)
    values, vectors = devscope.run(lambda x: jnp.linalg.eig(x), x * [[1], [-1]], cache=False)
    np.testing.assert_allclose(x * [[1], [-1]] @ vectors, vectors * values, atol=1e-5)


def test_examples_by_name_and_without_data() -> None:
    spec = jax.ShapeDtypeStruct((3,), np.float32)
    with devscope.compile(lambda left, *, by: left - by, {"by": spec, "left": spec}, cache=False) as made:
        np.testing.assert_array_equal(made(left=X[0], by=X[1]), X[0] - X[1])
        np.testing.assert_array_equal(made(X[0], by=X[1]), X[0] - X[1])


def test_jax_arrays_are_arguments() -> None:
    given = jnp.arange(4, dtype=jnp.bfloat16), jnp.array([True, False, True, False])
    with devscope.compile(lambda x, mask: jnp.where(mask, x, -x), given, cache=False) as made:
        result = made(*given)
        assert result.dtype == given[0].dtype
        np.testing.assert_array_equal(result, np.where(given[1], given[0], -given[0]))
        with pytest.raises(InputError, match=r"argument 0 'x': JAX is tracing a function.*\n.*pure_callback"):
            jax.jit(made)(*given)


@pytest.mark.parametrize("implementation", ["threefry2x32", "rbg"])
def test_typed_keys_are_arguments(implementation: str) -> None:
    def draw(keys: Any) -> Any:
        return jax.vmap(lambda key: jax.random.uniform(key, (2,)))(keys), jax.random.split(keys[0])

    keys = jax.random.split(jax.random.key(3, impl=implementation), 4)
    drawn, split = devscope.run(draw, keys)
    want, other = draw(keys)
    equal([drawn, split], [want, jax.random.key_data(other)])


def test_sharding_constraints_of_one_device() -> None:
    mesh = jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x", None))

    def function(x: Any) -> Any:
        return jax.lax.with_sharding_constraint(x + 1, sharding) * 2

    equal(devscope.run(function, X), (X + 1) * 2)
    equal(devscope.run(jax.jit(function, in_shardings=sharding), X), (X + 1) * 2)


SHARDED = """
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.custom_call @Sharding(%x) {sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([i]) {i=2}>}
    : (tensor<2xf32>) -> tensor<2xf32>
  %1 = stablehlo.add %0, %x : tensor<2xf32>
  return %1 : tensor<2xf32>
}
"""


@pytest.mark.parametrize("rule", [True, False])
@pytest.mark.parametrize("is_bytecode", [True, False])
def test_modules_of_bindings_of_jax(rule: bool, is_bytecode: bool) -> None:
    """They stay as they are. Bytecode of another version of MLIR is read by those who wrote it."""
    from jax._src.interpreters.mlir import make_ir_context
    from jaxlib.mlir import ir

    text = SHARDED if rule else re.sub(r"\{sdy.*\}", "", SHARDED)
    with make_ir_context():
        module = ir.Module.parse(text)
        before, stream = str(module), BytesIO()
        module.operation.write_bytecode(stream)
        x = np.ones(2, np.float32)
        result = devscope.run(stream.getvalue() if is_bytecode else module, x, default="cpu:0", cache=False)
        np.testing.assert_array_equal(result, 2 * x)
        assert str(module) == before


def test_exported_and_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEVSCOPE_CACHE", str(tmp_path))
    exported = jax.export.export(jax.jit(lambda x: {"y": x + 1}))(X)
    for _ in range(2):  # the second time from the cache
        with devscope.compile(exported) as made:
            equal(made(X), {"y": X + 1})


def test_what_is_for_processors_alone() -> None:
    exported = jax.export.export(jax.jit(jnp.sin), platforms=["cpu"])(X)
    equal(devscope.run(lambda x: exported.call(x) + 1, X, cache=False), np.sin(X) + 1)


@pytest.mark.parametrize(
    ("function", "examples", "message"),
    [
        (lambda x: undefined, (X,), "cannot trace.*undefined"),  # noqa: F821  # pyright: ignore
        (lambda x: x, (object(),), "cannot trace"),
        (lambda x, y: x, (X,), "cannot trace"),
    ],
)
def test_what_jax_cannot_trace(function: Any, examples: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        devscope.compile(function, examples)


def test_containers_of_jax_alone() -> None:
    @jax.tree_util.register_pytree_node_class
    class Own:
        def tree_flatten(self) -> Any:
            return (X,), None

        @classmethod
        def tree_unflatten(cls, aux: Any, children: Any) -> Any:
            return cls()

    with pytest.raises(LoweringError, match="has a Own, which a compiled program cannot take apart"):
        devscope.compile(lambda own: X, (Own(),))


@jax.tree_util.register_pytree_with_keys_class
class Pair:
    def __init__(self, left: Any, right: Any) -> None:
        self.left, self.right = left, right

    def tree_flatten_with_keys(self) -> Any:
        return [(jax.tree_util.GetAttrKey(name), getattr(self, name)) for name in ("left", "right")], None

    @classmethod
    def tree_unflatten(cls, _: Any, parts: Any) -> Any:
        return cls(*parts)


@partial(jax.tree_util.register_dataclass, data_fields=["weights"], meta_fields=["kind", "apply"])
@dataclass
class Model:
    weights: Any
    kind: str = "plain"
    apply: Any = jnp.sin


def test_classes_with_names_of_parts(tmp_path: Path) -> None:
    def step(model: Model, given: Any) -> Any:
        weights = {"w": model.apply(model.weights["w"] + given["pair"].left)}
        return replace(model, weights=weights), Pair(given["pair"].right, None)

    model, given = Model({"w": X}), OrderedDict(pair=Pair(X, X + 1), last=X)
    want = step(model, given)
    with devscope.compile(step, (model, given), cache=False) as made:
        names = [spec.name for spec in made.entries["main"].inputs]
        assert names == ["model.weights['w']", "given['pair'].left", "given['pair'].right", "given['last']"]
        made.save(tmp_path / "made.dsx")
    with devscope.load(tmp_path / "made.dsx") as made:
        got, pair = made(model, given)
        assert got.kind == "plain"
        np.testing.assert_allclose(got.weights["w"], want[0].weights["w"], rtol=1e-6)
        np.testing.assert_array_equal(pair.left, X + 1)
        made(got, given)
        with pytest.raises(ArgumentError, match=r"'model\.kind': the program was compiled for 'plain'"):
            made(Model({"w": X}, "other"), given)


TREE = {"dict": [["a", "*"], [3, {"list": [None, {"namedtuple": ["P", ["x"], ["*"]]}]}]]}


def test_trees() -> None:
    assert list(leaf_paths(TREE, "t")) == ["t['a']", "t[3][1].x"]
    assert count_leaves(TREE) == 2
    nested = Structure(["t"], [TREE], TREE, 1)
    given = OrderedDict([(3, [None, Layer(1, 2)[:1]]), ("a", 5)])
    assert nested.arrays("f", [given], {}) == [5, 1]
    assert repr(nested.result([5, 1])) == "{'a': 5, 3: [None, P(x=1)]}"


@pytest.mark.parametrize(
    "tree",
    [1, "**", {}, {"set": []}, {"dict": ["ab"]}, {"dict": [[[], "*"]]}, {"namedtuple": ["P", ["def"], ["*"]]}],
)
def test_damaged_trees(tree: Any) -> None:
    with pytest.raises(ValueError, match="structure"):
        Structure(["t"], [tree], "*", 1)


def test_damaged_structures(executable: Any) -> None:
    program = executable.program
    good = program.report["structures"]
    changed = (
        {"output": "*"},
        {"conversions": ["int:int32"]},
        {"conversions": ["int:i3"] * 4},
        {"conversions": 3},
    )
    for bad in (
        3,
        {"other": {}},
        {"main": {"inputs": []}},
        *({"main": {**good["main"], **new}} for new in changed),
    ):
        program.report["structures"] = bad
        try:
            with pytest.raises(ExecutableFormatError):
                devscope.Executable(program)
        finally:
            program.report["structures"] = good


def test_a_kernel_that_has_views_of_what_it_writes() -> None:
    """Steps of factors of one number are merged where none of them is told that others do not see its memory."""

    def root(x: Any) -> Any:
        return jnp.linalg.cholesky(jnp.linalg.inv(jnp.abs(x[:1]).reshape(1, 1)))

    x = np.float32([0.25, 3])
    np.testing.assert_allclose(devscope.run(root, x, default="opencl:0", cache=False), [[2]], rtol=1e-6)


def test_artifacts_with_attributes_of_shardy() -> None:
    """JAX reads them, where it is installed. Arguments and results keep their names."""

    def function(x: Any, first: Any) -> Any:
        return jnp.linalg.cholesky(x @ x.T) + first

    data = jax.export.export(jax.jit(function), platforms=["cpu"])(X[:2], np.float32(1)).mlir_module_serialized
    assert b"\0sdy\0" in data
    with devscope.compile(bytes(data), default="cpu:0", cache=False) as made:
        equal(made(first=np.float32(1), x=X[:2]), function(X[:2], np.float32(1)))
        assert [spec.name for spec in made.entries["main"].outputs] == ["result"]


def test_names_in_text_are_paths(executable: Any) -> None:
    data = jax.export.export(jax.jit(network))(PARAMETERS, X).mlir_module()
    with devscope.compile(str(data), default="cpu:0", cache=False) as made:
        assert made.entries == executable.entries


def test_lu_is_a_call() -> None:
    """JAX's own rule would write it out, and nothing would know what it is."""
    assert b"LuDecomposition" in read_function(jnp.linalg.inv, (X[:3],)).data
