"""PyTorch modules and functions as programs: names, dtypes, nesting, dynamic dimensions, weights and state."""

import copy
import enum
import gc
import logging
from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import devscope
from devscope.errors import ArgumentError, ExecutionError, InputError, LoweringError
from devscope.frontends import imported

torch = pytest.importorskip("torch")
nn = torch.nn
Dim = torch.export.Dim
Pair = namedtuple("Pair", "left right")


class Layers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Linear(5, 8), nn.ReLU())
        self.last = nn.Linear(8, 3)
        self.register_buffer("chosen", torch.tensor([True, False, True]))

    def forward(self, x: Any, options: Any, times: int = 2, *, mask: Any = None) -> Any:
        y = self.last(self.first(x)) * options["scale"] * times
        return {"y": torch.where(self.chosen, y, 0), "pair": Pair(y.sum(0), None), "times": times}


class Factors(nn.Module):
    """Something that has no lowering."""

    def __init__(self, depth: int = 1) -> None:
        super().__init__()
        self.parts = nn.ModuleList(Factors(0) for _ in range(depth))

    def forward(self, x: Any) -> Any:
        return self.parts[0](x) if self.parts else torch.linalg.ldl_factor_ex(x)


class Plain(nn.Module):
    """Named tuples cannot be saved."""

    def __init__(self, layers: Any) -> None:
        super().__init__()
        self.layers = layers

    def forward(self, x: Any, options: Any) -> Any:
        return {"y": self.layers(x, options)["y"]}


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        self.register_buffer("sums", torch.zeros(3))

    def forward(self, x: Any) -> Any:
        self.count += 1
        self.sums.add_(x.sum(0))
        return self.sums / self.count, self.sums


def tensor(*shape: int, seed: int = 0) -> Any:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape).astype(np.float32))


@pytest.fixture(scope="module")
def module() -> Any:
    torch.manual_seed(3)
    return Layers().eval()


@pytest.fixture(scope="module")
def executable(module: Any) -> Any:
    arguments = (tensor(4, 5), {"scale": tensor(1)})
    with devscope.compile(module, arguments, dynamic_shapes={"x": {0: Dim("batch")}}, cache=False) as made:
        yield made


@pytest.mark.parametrize("batch", [4, 1, 7])
def test_arguments_and_results_are_those_of_forward(module: Any, executable: Any, batch: int) -> None:
    x, options = tensor(batch, 5, seed=batch), {"scale": tensor(1)}
    want, got = module(x, options), executable(x, options=options)
    assert list(got) == ["y", "pair", "times"]
    np.testing.assert_allclose(got["y"], want["y"].detach(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(got["pair"].left, want["pair"].left.detach(), rtol=1e-5, atol=1e-6)
    assert got["pair"].right is None
    assert got["times"] == 2


def test_names_and_dynamic_dimensions(executable: Any) -> None:
    assert repr(executable).partition(" on ")[0] == (
        "<Executable main(x: ?x5xf32, options['scale']: 1xf32) -> "
        "(result['y']: ?x3xf32, result['pair'].left: 3xf32)"
    )


def test_numbers_and_none_are_constants(module: Any) -> None:
    x, options = tensor(2, 5), {"scale": tensor(1)}
    with devscope.compile(module, {"x": x, "options": options, "times": 5, "mask": None}, cache=False) as exe:
        np.testing.assert_allclose(
            exe(x, options, 5, mask=None)["y"], module(x, options, 5)["y"].detach(), rtol=1e-5, atol=1e-6
        )
        with pytest.raises(ArgumentError, match="'times': the program was compiled for 5, got 6"):
            exe(x, options, 6, mask=None)
        with pytest.raises(ArgumentError, match="'mask': expected None"):
            exe(x, options, 5, mask=1)


class _Way(enum.Enum):
    UP = "up"
    DOWN = "down"


def test_members_of_enumerations_are_constants(tmp_path: Path) -> None:
    with devscope.compile(lambda x, way: x * 2 if way is _Way.UP else x, (tensor(2), _Way.UP), cache=False) as exe:
        exe.save(tmp_path / "up.dsx")
    with devscope.load(tmp_path / "up.dsx") as exe:
        np.testing.assert_array_equal(exe(tensor(2), _Way.UP), tensor(2) * 2)
        with pytest.raises(ArgumentError, match=r"'way': the program was compiled for _Way\.UP, got <_Way\.DOWN"):
            exe(tensor(2), _Way.DOWN)


def test_running_means_of_all_batches() -> None:
    """Batch normalisation without a momentum."""
    module = nn.BatchNorm1d(3, momentum=None).train()
    eager = copy.deepcopy(module)
    with devscope.compile(module, (tensor(4, 3),), cache=False) as exe:
        for scale in (1, 2, 3):
            x = tensor(4, 3) * scale
            np.testing.assert_allclose(exe(x), eager(x).detach(), rtol=1e-5, atol=1e-6)
        for name, value in exe.state().items():
            np.testing.assert_allclose(value, eager.state_dict()[name], rtol=1e-5, atol=1e-6)


def test_weights_are_those_of_the_module(module: Any) -> None:
    source = imported(module, (tensor(2, 5), {"scale": tensor(1)}))
    assert b"dense_resource<devscope_weight_0>" in source.data
    assert "dialect_resources" not in source.data.decode()
    addresses = {np.frombuffer(data, np.uint8).ctypes.data for data in source.literals.values()}
    assert addresses == {module.first[0].weight.data_ptr(), module.last.weight.data_ptr()}


def test_tied_and_strided_weights() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(20, 6)
            self.head = nn.Linear(6, 20, bias=False)
            self.head.weight = self.embedding.weight
            self.turned = nn.Parameter(tensor(6, 20).T)

        def forward(self, ids: Any) -> Any:
            return self.head(self.embedding(ids)) @ self.turned

    model, ids = Tied().eval(), torch.tensor([3, 1, 19])
    source = imported(model, (ids,))
    assert len(source.literals) == 2
    np.testing.assert_allclose(devscope.run(model, ids, cache=False), model(ids).detach(), rtol=1e-5, atol=1e-5)


def test_paths_of_modules_are_locations(module: Any) -> None:
    text = imported(module, (tensor(2, 5), {"scale": tensor(1)})).data.decode()
    assert 'loc("first.0"(' in text
    assert 'loc("last"(' in text


@pytest.mark.parametrize(
    "dtype",
    ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"],
)
def test_dtypes(dtype: str) -> None:
    x = torch.arange(-2, 4).to(getattr(torch, dtype))
    got = devscope.run(lambda x: (x, x[1:] if dtype == "bool" else x + x), x, cache=False)
    want = (x, x[1:] if dtype == "bool" else x + x)
    for one, two in zip(got, want, strict=True):
        assert one.dtype.name == dtype
        assert one.tolist() == two.tolist()


def test_state_is_kept_from_call_to_call(tmp_path: Path) -> None:
    module, x = Counter(), tensor(2, 3)
    with devscope.compile(module, (x,), dynamic_shapes={"x": {0: Dim("rows")}}, cache=False) as exe:
        assert str(exe.entries["main"]) == "(x: ?x3xf32) -> (result[0]: 3xf32, result[1]: 3xf32)"
        exe.save(tmp_path / "counter.dsx")
        for step in range(3):
            x = tensor(step + 2, 3, seed=step)
            for one, two in zip(exe(x), module(x), strict=True):
                np.testing.assert_allclose(one, two, rtol=1e-6)
        exe(x)[1][:] = 100.0
        module(x)
        np.testing.assert_allclose(exe(x)[0], module(x)[0], rtol=1e-6)
        with pytest.raises(InputError):
            exe(x.numpy().astype(np.float64))
        exe.reset()
        np.testing.assert_allclose(exe(x)[0], x.numpy().sum(0), rtol=1e-6)
    with devscope.load(tmp_path / "counter.dsx") as exe:
        np.testing.assert_allclose(exe(x)[0], x.numpy().sum(0), rtol=1e-6)


def test_exported_programs_and_files(module: Any, tmp_path: Path) -> None:
    x, options = tensor(2, 5), {"scale": tensor(1)}
    want = module(x, options)["y"].detach()
    exported = torch.export.export(Plain(module), (x, options))
    torch.export.save(exported, tmp_path / "model.pt2")
    for source in (exported, tmp_path / "model.pt2"):
        np.testing.assert_allclose(devscope.run(source, x, options, cache=False)["y"], want, rtol=1e-5, atol=1e-6)


def _grows(x: Any) -> Any:
    loop: Any = torch.ops.higher_order.scan
    return loop(lambda last, row: [last + 1, torch.cat([row, row])], [x[0]], [x], ())


def test_rows_of_scans_have_sizes_of_arguments() -> None:
    shapes = ({1: Dim("n")},)
    with pytest.raises(LoweringError, match=r"makes a dimension of size 2\*s.*, which none of its arguments has"):
        devscope.compile(_grows, (tensor(2, 3),), dynamic_shapes=shapes, cache=False)


@pytest.mark.parametrize(
    ("source", "arguments", "message"),
    [
        (nn.Linear(2, 2), None, "give example_arguments"),
        (lambda x: x.add_(1), (tensor(2),), "writes to its argument 'x'"),
        (Factors(), (tensor(3, 3),), "no lowering for aten.linalg_ldl_factor_ex \\(in parts.0, .*test_torch.py:"),
        (lambda x: x if x.sum() > 0 else -x, (tensor(2),), "PyTorch cannot trace '<lambda>'"),
        (nn.Dropout(), (tensor(2),), "bernoulli draws random numbers.*call eval"),
        (lambda x: {"y": slice(x)}, (tensor(2),), "PyTorch|slice"),
    ],
)
def test_refusals(source: Any, arguments: Any, message: str) -> None:
    with pytest.raises((InputError, LoweringError), match=f"(?s){message}"):
        devscope.compile(source, arguments, cache=False)


def test_sparse_weights_are_refused() -> None:
    module = nn.Module()
    module.register_buffer("table", torch.eye(3).to_sparse())
    module.forward = lambda x: module.table @ x
    with pytest.raises((InputError, LoweringError), match=r"sparse|PyTorch cannot"):
        devscope.compile(module, (tensor(3, 3),), cache=False)


def test_files_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from devscope.cli.main import main

    batch = {0: torch.export.Dim("batch")}
    exported = torch.export.export(nn.Linear(2, 3), (tensor(2, 2),), dynamic_shapes=(batch,))
    torch.export.save(exported, path := str(tmp_path / "model.pt2"))
    assert main(["plan", path, "--place", "linear=opencl:0", "--table"]) == 0
    assert "rule 1: 'linear'" in capsys.readouterr().out
    assert main(["run", path, "--random", "0", "--size", "5", "--place", "linear=opencl:0", "--check"]) == 0
    said = capsys.readouterr()
    assert "5x3xf32" in said.out + said.err
    assert "agrees with the host" in said.out + said.err
    torch.export.save(torch.export.export(nn.Linear(2, 3), (tensor(2, 2),)), path)
    assert main(["run", path, "--random", "0", "--size", "5"]) == 0
    assert (
        "--size has no effect: the sizes of what 'main' takes are fixed (input: 2x2xf32)"
        in capsys.readouterr().err
    )


def test_damaged_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logged: list[Any] = []  # what PyTorch would say first, with a traceback
    monkeypatch.setattr(logging.getLogger("torch.export"), "handle", logged.append)
    for data in (b"PK\3\4 no", b"no"):
        (tmp_path / "no.pt2").write_bytes(data)
        with pytest.raises(InputError, match="is no program of PyTorch"):
            devscope.compile(tmp_path / "no.pt2")
    assert not logged


def test_sizes_that_the_trace_does_not_cover_are_refused() -> None:
    def function(x: Any) -> Any:
        return x + 1 if x.shape[0] > 4 else x - 1

    exe = devscope.compile(
        function, (tensor(6),), dynamic_shapes={"x": {0: Dim("n", min=5, max=100)}}, cache=False
    )
    assert exe(tensor(5)).tolist() == (tensor(5) + 1).tolist()
    for size in (3, 101):
        with pytest.raises(ExecutionError, match="traced for 5 to 100 in dimension 0 of argument 0"):
            exe(tensor(size))


def test_lines_that_make_constants_of_sizes_are_named() -> None:
    def rows(x: Any) -> Any:
        return sum(x[row] for row in range(x.shape[0]))

    with pytest.raises(InputError, match=r"test_torch.py:[0-9]+ makes a constant of a size: return sum"):
        devscope.compile(rows, (tensor(6, 2),), dynamic_shapes={"x": {0: Dim("n")}}, cache=False)


def test_integers_of_dynamic_sizes_are_dynamic() -> None:
    """As Swin's windows are counted: ``int`` itself makes constants of them."""

    def windows(x: Any) -> Any:
        count = int(x.shape[0] / (4 * 4 / 2 / 2))
        assert isinstance(len(x.shape), int)
        return x.view(count, -1).sum(1) * int("3")

    with devscope.compile(windows, (tensor(12, 2),), dynamic_shapes={"x": {0: Dim("n")}}, cache=False) as exe:
        for x in (tensor(12, 2), tensor(8, 2)):
            np.testing.assert_allclose(exe(x), windows(x), rtol=1e-5)
    assert windows.__globals__.get("int", int) is int


def test_dimensions_of_unknown_size_that_are_joined() -> None:
    class Attention(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.q = torch.nn.LayerNorm(8), torch.nn.Linear(8, 8)

        def forward(self, x: Any) -> Any:
            batch, length, width = x.shape
            q = self.q(self.norm(x)).view(batch, length, 2, 4).transpose(1, 2)
            return x + (q @ q.transpose(-1, -2) @ q).transpose(1, 2).reshape(batch, length, width)

    module = Attention().eval()
    shapes = ({0: torch.export.Dim("batch", min=2), 1: torch.export.Dim("length", min=2)},)
    exe = devscope.compile(module, (torch.zeros(4, 16, 8),), dynamic_shapes=shapes, default="cpu:0", cache=False)
    for size in ((4, 16), (3, 35)):
        x = torch.from_numpy(np.random.default_rng(size[0]).standard_normal((*size, 8)).astype(np.float32))
        np.testing.assert_allclose(exe(x), module(x).detach().numpy(), rtol=1e-4, atol=1e-4)


def test_dimensions_of_unknown_size_that_are_joined_and_split_at_once() -> None:
    class Masked(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = torch.nn.MultiheadAttention(8, 2, batch_first=True)

        def forward(self, x: Any, mask: Any) -> Any:
            parts = (x * mask.T[..., None]).view(x.shape[0], -1, 2, 2).transpose(0, 1)
            x = x.transpose(0, 1)
            return parts, self.attention(x, x, x, key_padding_mask=mask == 0)[0]

    module, batch, length = Masked().eval(), torch.export.Dim("batch", min=2), torch.export.Dim("length", min=2)
    shapes = {"x": {0: length, 1: batch}, "mask": {0: batch, 1: length}}
    given = (torch.zeros(7, 4, 8), torch.ones(4, 7))
    with devscope.compile(module, given, dynamic_shapes=shapes, default="cpu:0", cache=False) as exe:
        for size in ((7, 4), (35, 3)):
            x = torch.from_numpy(np.random.default_rng(size[0]).standard_normal((*size, 8)).astype(np.float32))
            mask = torch.ones(size[1], size[0])
            mask[0, size[0] // 2 :] = 0
            for one, other in zip(exe(x, mask), module(x, mask), strict=True):
                np.testing.assert_allclose(one, other.detach().numpy(), rtol=1e-4, atol=1e-4)


def test_one_tensor_as_two_examples() -> None:
    x = torch.ones(3)
    exe = devscope.compile(lambda a, b: a - b, (x, x), default="cpu:0", cache=False)
    np.testing.assert_array_equal(exe(2 * x, x), np.ones(3))


def test_nothing_is_collected_while_pytorch_traces():
    """Its imports and graphs are so many objects that collections take a tenth of the time."""
    seen: list[bool] = []

    class Watching(nn.Module):
        def forward(self, x: Any) -> Any:
            seen.append(gc.isenabled())
            return x + 1

    assert devscope.compile(Watching(), (torch.zeros(3),))(torch.zeros(3)).tolist() == [1, 1, 1]
    assert not any(seen)
    assert gc.isenabled()


@dataclass
class Given:
    x: Any
    mask: Any = None
    times: int = 2


@dataclass
class Returned:
    y: Any
    given: Given
    nothing: Any = None


def test_data_classes_that_pytorch_was_not_told_of() -> None:
    def function(given: Given) -> Returned:
        return Returned(given.x * given.times, Given(given.x + 1, (given.x,)))

    x = tensor(2, 3)
    exe = devscope.compile(function, (Given(x),), cache=False)
    result = exe(Given(x))
    np.testing.assert_array_equal(result.y, 2 * x.numpy())
    np.testing.assert_array_equal(result.given.mask[0], x.numpy())
    assert result.nothing is None
    assert result.given.times == 2
    with pytest.raises(ArgumentError, match=r"given.mask.*expected None"):
        exe(Given(x, x))
    with pytest.raises(ArgumentError, match="expected a tuple"):
        exe(x)
    assert not {Given, Returned} & set(torch.utils._pytree.SUPPORTED_NODES)


class Output(OrderedDict[str, Any]):
    """As libraries of models have it: what is not None, by name."""


@dataclass
class Logits(Output):
    logits: Any = None
    hidden: Any = None

    def __post_init__(self) -> None:
        self.update({key: value for key, value in vars(self).items() if value is not None})


def test_data_classes_whose_library_names_the_fields() -> None:
    pytree = torch.utils._pytree
    pytree.register_pytree_node(
        Logits,
        lambda given: (list(given.values()), list(given)),
        lambda values, keys: Logits(**dict(zip(keys, values, strict=True))),
        serialized_type_name="test_torch.Logits",
    )
    x = tensor(2)
    found = devscope.compile(lambda x: (Logits(hidden=x + 1), x.shape), (x,), cache=False)(x)
    assert found[0].logits is None
    assert found[1] == (2,)
    np.testing.assert_array_equal(found[0].hidden, x.numpy() + 1)


def test_conjugated_examples_and_keys() -> None:
    z = torch.complex(tensor(3), tensor(3, seed=1)).conj()
    real, double = devscope.compile(lambda z: (z.real, z * 2), (z,), cache=False)(z)
    np.testing.assert_array_equal(real, z.real.numpy())
    np.testing.assert_array_equal(double, 2 * z.resolve_conj().numpy())
    with pytest.raises(LoweringError, match=r"the result has the key \('a', 1\)"):
        devscope.compile(lambda x: {("a", 1): x}, (tensor(2),), cache=False)


def test_dynamic_dimensions_that_are_one_in_the_example() -> None:
    """PyTorch takes 0 and 1 for constants; another example is traced, with the same size for the same name."""

    class Attends(nn.Module):
        def forward(self, x: Any, parts: Any, mask: Any) -> Any:
            found = nn.functional.scaled_dot_product_attention(x, parts["keys"][0], parts["keys"][0], mask)
            return found + parts["more"], x.shape[0]

    batch, length = torch.export.Dim("batch"), torch.export.Dim.DYNAMIC
    one = torch.export.Dim("batch", min=1, max=4)
    module = Attends().eval()

    def arguments(b: int, n: int) -> tuple[Any, ...]:
        x, keys, more = (torch.rand(shape) for shape in ((b, 3, 4), (b, n, 4), (4,)))
        return x, {"keys": (keys,), "more": more}, torch.ones(3, n, dtype=torch.bool)

    for name in (batch, one):
        shapes = ({0: name}, {"keys": ({0: name, 1: length},), "more": None}, {1: length})
        with devscope.compile(module, arguments(1, 1), dynamic_shapes=shapes, cache=False) as program:
            for sizes in ((1, 1), (3, 5), (2, 1), (1, 7)):
                given = arguments(*sizes)
                found, expected = program(*given), module(*given)
                np.testing.assert_allclose(found[0], expected[0].numpy(), rtol=1e-5, atol=1e-6)
                assert found[1] == sizes[0]


def test_dimensions_of_one_that_decide_ranks_are_refused() -> None:
    with pytest.raises(InputError, match="ranks where a dynamic dimension is 1"):
        devscope.compile(lambda x: x.squeeze(0) * 2, (torch.ones(1, 3),), dynamic_shapes={"x": {0: Dim("n")}})
    with devscope.compile(
        lambda x: x.squeeze() * 2, (torch.ones(4, 1),), dynamic_shapes={"x": {0: Dim("n")}}, cache=False
    ) as exe:
        assert exe(torch.ones(0, 1)).shape == (0,)
        with pytest.raises(ExecutionError, match=r"x\.shape\[0\] != 1"):
            exe(torch.ones(1, 1))


def test_sizes_that_pytorch_finds_out_are_of_any_size_for_an_example_of_one() -> None:
    """Unless another size cannot be traced, or is a constant."""
    auto = ({0: Dim.AUTO},)
    for function, batches in ((lambda x: x * 2 + 1, (1, 3)), (lambda x: x.squeeze(0) @ torch.ones(4, 2), (1,))):
        with devscope.compile(function, (tensor(1, 4),), dynamic_shapes=auto, cache=False) as exe:
            for batch in batches:
                x = tensor(batch, 4)
                np.testing.assert_allclose(exe(x), function(x), rtol=1e-6)


def test_tensors_as_arguments() -> None:
    """With gradients, transposed, conjugated, negated and of bf16; others are refused."""

    class Same(nn.Module):
        def forward(self, x: Any) -> Any:
            return x + 0

    x = tensor(3, 4)
    z = torch.complex(x, -x)
    for given in (x, x.clone().requires_grad_(), nn.Parameter(x), x.T, z, z.conj(), z.conj().imag, x.bfloat16().T):
        with devscope.compile(Same(), (given,), cache=False) as program:
            want = given.detach().to(torch.complex64).resolve_conj().resolve_neg()
            np.testing.assert_array_equal(program(given).astype(np.complex64), want)
    with devscope.compile(Same(), (x,), cache=False) as program:
        for wrong in (x.to_sparse(), x.to("meta")):
            with pytest.raises(InputError, match="not a dense one in host memory"):
                program(wrong)
        with pytest.raises(InputError, match="expected dtype float32, got float64"):
            program(x.double())
        with pytest.raises(InputError, match="could not be taken over through numpy"):
            program(x.bfloat16())
