"""``torch.compile(..., backend="devscope")``: what is compiled, how often, and what runs in eager."""

from typing import Any

import numpy as np
import pytest

from devscope.errors import DevscopeWarning

torch = pytest.importorskip("torch")
nn = torch.nn

import devscope.torch_backend as backend  # noqa: E402


def tensor(*shape: int, seed: int = 0) -> Any:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape).astype(np.float32))


def compiled(model: Any, **options: Any) -> Any:
    torch._dynamo.reset()
    return torch.compile(model, backend="devscope", options={"fallback": "error", "cache": False, **options})


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    made: list[Any] = []
    read = backend.read_graph

    def counted(*arguments: Any) -> Any:
        made.append(arguments)
        return read(*arguments)

    monkeypatch.setattr(backend, "read_graph", counted)
    return made


def model() -> Any:
    torch.manual_seed(5)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)).eval()


@pytest.mark.parametrize("device", ["cpu:0", "opencl:0"])
def test_results_and_one_compilation_for_all_sizes(compilations: list[Any], device: str) -> None:
    eager = model()
    run = compiled(eager, default=device)
    with torch.no_grad():
        for batch in (4, 6, 9, 2):
            x = tensor(batch, 8, seed=batch)
            if batch == 4:
                torch._dynamo.mark_dynamic(x, 0)
            torch.testing.assert_close(run(x), eager(x), rtol=1e-5, atol=1e-6)
    assert len(compilations) == 1


def test_sizes_that_vary_are_found_dynamic(compilations: list[Any]) -> None:
    eager = model()
    run = compiled(eager)
    with torch.no_grad():
        for batch in (4, 6, 9, 12):
            torch.testing.assert_close(run(tensor(batch, 8)), eager(tensor(batch, 8)), rtol=1e-5, atol=1e-6)
    assert len(compilations) == 2


@pytest.mark.parametrize("device", ["cpu:0", "opencl:0"])
def test_attention_whose_head_size_varies(compilations: list[Any], device: str) -> None:
    """Its scale is the root of a root of a size."""
    torch._dynamo.reset()
    attention = nn.functional.scaled_dot_product_attention
    options = {"fallback": "error", "cache": False, "default": device}
    run = torch.compile(attention, backend="devscope", dynamic=True, options=options)
    for size in (8, 20):
        q, k, v = (tensor(2, 3, 5, size, seed=seed) for seed in range(3))
        torch.testing.assert_close(run(q, k, v), attention(q, k, v), rtol=1e-5, atol=1e-6)
    assert len(compilations) == 1


def test_parameters_are_constants_until_they_change(compilations: list[Any]) -> None:
    eager, x = model(), tensor(4, 8)
    run = compiled(eager)
    with torch.no_grad():
        run(x)
        assert len(compilations[0][1]) == 4
        eager[0].weight.mul_(2)
        torch.testing.assert_close(run(x), eager(x), rtol=1e-5, atol=1e-6)
        assert len(compilations) == 2


def test_breaks_mutation_and_kinds_of_results() -> None:
    class Counter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(3))

        def forward(self, x: Any, pair: Any) -> Any:
            self.count += x
            torch._dynamo.graph_break()
            x.mul_(2)
            return self.count * pair["a"], None, x.bfloat16(), (pair["a"] > 0, 3, x.to(torch.uint8)), x.view(3, 1)

    one, two = Counter(), Counter()
    run = compiled(two)
    with torch.no_grad():
        for seed in range(3):
            x = tensor(3, seed=seed).abs()
            y, pair = x.clone(), {"a": tensor(3, seed=seed + 9)}
            torch.testing.assert_close(run(x, pair), one(y, pair))
            torch.testing.assert_close(x, y)
    torch.testing.assert_close(one.count, two.count)


def test_constants_of_a_function() -> None:
    def masked(x: Any) -> Any:
        return x * torch.tensor([[True, False, True]]) + torch.tensor([1.0, 2.0, 3.0])

    x = torch.ones(2, 3)
    with torch.no_grad():
        torch.testing.assert_close(
            torch.compile(masked, backend="devscope", options={"fallback": "error"})(x), masked(x)
        )


def test_what_is_not_compiled_runs_in_eager() -> None:
    def function(x: Any) -> Any:
        return torch.special.airy_ai(x) + 1

    x = tensor(3, 3)
    run = torch.compile(function, backend="devscope", options={"cache": False})
    with torch.no_grad(), pytest.warns(DevscopeWarning, match="runs in eager: torch-mlir has no lowering for"):
        torch.testing.assert_close(run(x), function(x))
    with torch.no_grad(), pytest.raises(Exception, match=r"no lowering for aten\.special_airy_ai"):
        compiled(function)(x)


def test_training_runs_in_eager() -> None:
    eager, x = model(), tensor(4, 8)
    torch._dynamo.reset()
    run = torch.compile(eager, backend="devscope")
    with pytest.warns(DevscopeWarning, match="gradients are computed of"):
        run(x).sum().backward()
    assert eager[0].weight.grad is not None


def test_unknown_options() -> None:
    with pytest.raises(Exception, match="has no option 'defualt'"):
        compiled(lambda x: x + 1, defualt="cpu:0")(tensor(2))
    with pytest.raises(Exception, match="'fallback' is 'no'"):
        compiled(lambda x: x + 2, fallback="no")(tensor(2))


def test_weights_made_for_inference_may_be_written_to() -> None:
    """They have no version that tells."""
    with torch.inference_mode():
        layer, x = torch.nn.Linear(3, 2), torch.ones(2, 3)
        run = torch.compile(layer, backend="devscope", options={"fallback": "error"})
        for _ in range(2):
            torch.testing.assert_close(run(x), layer(x))
            layer.weight.mul_(2)
