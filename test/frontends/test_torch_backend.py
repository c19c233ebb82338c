"""``torch.compile(..., backend="devscope")``: what is compiled, how often, and what runs in eager."""

import copy
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


def test_images_of_any_size_grow_by_a_factor() -> None:
    torch._dynamo.reset()
    grown, options = nn.functional.interpolate, {"fallback": "error", "cache": False}
    run = torch.compile(lambda x: grown(x, scale_factor=2), backend="devscope", dynamic=True, options=options)
    for rows in (8, 11):
        x = tensor(1, 2, rows, 9)
        torch.testing.assert_close(run(x), grown(x, scale_factor=2))


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


def test_sizes_that_weights_decide_need_not_be_declared() -> None:
    """PyTorch takes all three dimensions for any; the layer's weights say what the last is."""
    torch._dynamo.reset()
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    run = torch.compile(layer, backend="devscope", dynamic=True, options={"fallback": "error", "cache": False})
    with torch.no_grad():
        torch.testing.assert_close(run(tensor(3, 5, 8)), layer(tensor(3, 5, 8)), rtol=1e-5, atol=1e-5)


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


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.mix = nn.Embedding(11, 8), nn.Linear(8, 24)
        self.drop, self.norm, self.frozen = nn.Dropout(0.3), nn.LayerNorm(8), nn.Linear(8, 8).requires_grad_(False)

    def forward(self, words: Any) -> Any:
        q, k, v = self.mix(self.words(words)).unflatten(-1, (3, 2, 4)).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        return self.frozen(self.norm(self.drop(mixed))) @ self.words.weight.T


def images() -> Any:
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, stride=2, padding=1, groups=2),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.ConvTranspose2d(4, 3, 2, 2),
        nn.Upsample(scale_factor=2, mode="bilinear"),
        nn.AvgPool2d(2),
    )


@pytest.mark.parametrize(("kind", "device"), [("words", "cpu:0"), ("images", "opencl:0")])
@pytest.mark.long
def test_training(compilations: list[Any], kind: str, device: str) -> None:
    """Steps of any batch size, with random numbers that PyTorch draws, are those of eager."""
    torch.manual_seed(2)
    eager = Tagger() if kind == "words" else images()
    trained = copy.deepcopy(eager)
    run = compiled(trained, default=device)
    optimizers = [torch.optim.SGD(one.parameters(), 0.1, momentum=0.9) for one in (eager, trained)]
    for batch in (3, 5, 4):
        x = torch.randint(0, 11, (batch, 6)) if kind == "words" else tensor(batch, 2, 8, 8)
        for forward, optimizer in zip((eager, run), optimizers, strict=True):
            torch.manual_seed(batch)
            optimizer.zero_grad()
            forward(x).square().mean().backward()
            optimizer.step()
    for one, other in zip(eager.state_dict().values(), trained.state_dict().values(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)
    assert len(compilations) == 4  # forwards and backwards, of one size and of any


def test_random_numbers_are_those_that_pytorch_draws() -> None:
    def noisy(x: Any) -> Any:
        noise = torch.randn_like(x) + torch.rand(x.shape[0], 1) + torch.randint(0, 5, x.shape)
        return x + noise, torch.multinomial(x.softmax(-1), 2), nn.functional.dropout(x, 0.5)

    run = torch.compile(noisy, backend="devscope", dynamic=True, options={"fallback": "error", "cache": False})
    for rows in (3, 4):
        torch.manual_seed(rows)
        expected = noisy(tensor(rows, 6))
        torch.manual_seed(rows)
        torch.testing.assert_close(run(tensor(rows, 6)), expected)


def test_gradients_in_eager_have_all_results() -> None:
    """Those that nothing is computed for, too."""

    def function(table: Any, words: Any, x: Any) -> Any:
        return torch.nn.functional.embedding(words, table).sum() + torch.pdist(x).sum()

    torch._dynamo.reset()
    run = torch.compile(function, backend="devscope", options={"cache": False})
    table, words, x = tensor(5, 3).requires_grad_(), torch.tensor([1, 4]), tensor(3, 3, seed=1).requires_grad_()
    with pytest.warns(DevscopeWarning, match="runs in eager"):
        found = torch.autograd.grad(run(table, words, x), [table, x])
    torch.testing.assert_close(found, torch.autograd.grad(function(table, words, x), [table, x]))


def test_recurrent_networks() -> None:
    eager, x = nn.GRU(3, 4, bidirectional=True).eval(), tensor(5, 2, 3)
    with torch._dynamo.config.patch(allow_rnn=True), torch.no_grad():
        torch.testing.assert_close(compiled(eager)(x), eager(x), rtol=1e-5, atol=1e-6)
    assert torch.backends.mkldnn.enabled


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
