"""What ways in hand over: weights that stay outside of the module, dtypes of the source, imports that can wait."""

from pathlib import Path

import numpy as np
import pytest

import devscope
from devscope.frontends import DeferredSource, ImportedSource
from devscope.source import source_digest

TEXT = b"""
func.func @main(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %w = arith.constant dense_resource<layer.weight> : tensor<64x64xf32>
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x64xf32>
  %e = tensor.empty(%n) : tensor<?x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x64xf32>) -> tensor<?x64xf32>
  %y = linalg.matmul ins(%x, %w : tensor<?x64xf32>, tensor<64x64xf32>)
                     outs(%f : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}
"""


def with_weights(weights: np.ndarray) -> ImportedSource:
    return ImportedSource("model", TEXT, literals={"layer.weight": memoryview(weights).cast("B")})


@pytest.mark.parametrize("target", ["cpu:0", "opencl:0"])
def test_weights_stay_outside(target: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    x, weights = (rng.standard_normal((n, 64), np.float32) for n in (3, 64))
    exe = devscope.compile(with_weights(weights), default=target, cache=False)
    np.testing.assert_allclose(exe(x), x @ weights, rtol=1e-5, atol=1e-5)
    exe.save(tmp_path / "model.dsx")
    np.testing.assert_allclose(devscope.load(tmp_path / "model.dsx")(x), x @ weights, rtol=1e-5, atol=1e-5)


def test_digest_covers_weights_and_dtypes() -> None:
    ones = np.ones((64, 64), np.float32)
    digest = source_digest(with_weights(ones))
    assert digest == source_digest(with_weights(ones.copy()))
    assert digest != source_digest(with_weights(2 * ones))
    assert digest != source_digest(ImportedSource("model", TEXT, dtypes={"main": (["f32"], ["f32"])}))


def test_wrong_size_is_refused() -> None:
    with pytest.raises(devscope.errors.LoweringError, match="has 256 bytes, its type needs 16384"):
        devscope.compile(with_weights(np.ones((1, 64), np.float32)), cache=False)


def test_dtypes_are_the_sources() -> None:
    text = b"func.func @main(%x: tensor<2xi8>) -> tensor<2xi8> { return %x : tensor<2xi8> }"
    exe = devscope.compile(ImportedSource("m", text, dtypes={"main": (["ui8"], ["f8E5M2"])}), cache=False)
    assert [spec.dtype for spec in (*exe.entries["main"].inputs, *exe.entries["main"].outputs)] == [
        "ui8",
        "f8E5M2",
    ]
    with pytest.raises(devscope.errors.InputError, match="expected dtype uint8, got int8"):
        exe(np.zeros(2, np.int8))


def test_import_waits_for_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    reads: list[int] = []

    def read() -> ImportedSource:
        reads.append(1)
        return with_weights(np.ones((64, 64), np.float32))

    x = np.ones((1, 64), np.float32)
    for _ in range(2):
        assert devscope.compile(DeferredSource("model", lambda: "digest", read))(x)[0, 0] == 64
    assert len(reads) == 1
