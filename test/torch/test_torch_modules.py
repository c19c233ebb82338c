"""A sample of `torch_examples`; all of them on all targets: ``make torch``."""

from pathlib import Path
from typing import Any

import pytest

import devscope

torch = pytest.importorskip("torch")

from torch_check import check  # noqa: E402
from torch_models import CachedDecoder  # noqa: E402

pytestmark = pytest.mark.sampled(12)

_ON_HOST = (
    "MobileNet GRU MixtureOfExperts Complex Spectra EmbeddingBag Order NormalisationsAnyBatch CTC Conditional "
    "MoreInterpolations ComparedWithNumbers"
)
_PLACING = "Equilibrium Writes Scatter"
SAMPLE = [
    *(("cpu:0", name) for name in [*_ON_HOST.split(), *_PLACING.split()]),
    *(("opencl:0", name) for name in ("LeNet", "CrossEntropy", "ImagePreparation")),
    *(("mixed", name) for name in ("Contrastive", "RecurrentAnyLength", "Scans")),
]


@pytest.mark.parametrize(("target", "name"), SAMPLE)
def test_module(target: str, name: str) -> None:
    assert check(name, target) == ""


def test_a_fourier_transform_is_no_product_with_all_roots() -> None:
    x = torch.randn(2, 1024)
    with devscope.compile(lambda x: torch.view_as_real(torch.fft.rfft(x)), (x,), cache=False) as exe:
        torch.testing.assert_close(
            torch.from_numpy(exe(x)), torch.view_as_real(torch.fft.rfft(x)), atol=1e-4, rtol=0
        )
        assert exe.memory()["cpu:0"]["planned"] < 100 * x.nbytes


@pytest.mark.parametrize("options", [{}, {"place": {"attention.*": "opencl:0", "*": "cpu:0"}}])
def test_a_decoder_that_keeps_its_cache(options: dict[str, Any], tmp_path: Path) -> None:
    torch.manual_seed(11)
    model = CachedDecoder().eval()
    tokens = [3]
    with devscope.compile(model, (torch.tensor([3]), torch.tensor(0)), cache=False, **options) as exe:
        for place in range(6):
            token, at = torch.tensor([tokens[-1]]), torch.tensor(place)
            with torch.no_grad():
                want = model(token, at)
            got = torch.from_numpy(exe(token, at))
            torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)
            tokens.append(int(got.argmax()))


@pytest.mark.parametrize("options", [{"default": "opencl:0"}, {"place": {"attention": "opencl:0", "*": "cpu:0"}}])
def test_a_cache_on_a_device_stays_there(options: dict[str, Any]) -> None:
    """What calls copy is less than the cache, and they launch no kernel for each element of it."""
    torch.manual_seed(11)
    model = CachedDecoder().eval()
    cache = sum(buffer.nbytes for buffer in model.buffers())
    with devscope.compile(model, (torch.tensor([3]), torch.tensor(0)), cache=False, **options) as exe:
        for place in range(4):
            if place == 2:
                exe.reset_counters()
            with torch.no_grad():
                want = model(torch.tensor([3]), torch.tensor(place))
            torch.testing.assert_close(torch.from_numpy(exe(torch.tensor([3]), torch.tensor(place))), want)
        counters = exe.counters()
        assert counters.h2d.bytes + counters.d2h.bytes < cache
        assert counters.h2d.copies + counters.d2h.copies <= 2 * 5
        assert counters.launches["opencl:0"] < 2 * 30
        for name, buffer in model.named_buffers():
            torch.testing.assert_close(torch.from_numpy(exe.state()[name]), buffer)
