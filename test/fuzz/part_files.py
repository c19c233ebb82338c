"""Program files with damage, new check sums or other signatures: a typed error or the right result."""

from __future__ import annotations

import json
import random
import tempfile
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from damaged_files import damaged, resealed, signature_changed
from outcome import Outcome, from_error

import devscope
from devscope.errors import DevscopeError, ExecutableFormatError
from devscope.runtime.dtypes import DTYPES
from devscope.runtime.inspection import inspect

PROGRAM = """\
#d = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<?x16xf32>) -> (tensor<?x8xf32>, f32) {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %w = arith.constant dense<"0xWEIGHTS"> : tensor<16x8xf32>
  %n = tensor.dim %x, %c0 : tensor<?x16xf32>
  %e = tensor.empty(%n) : tensor<?x8xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
  %0 = linalg.matmul {device.scope = #d} ins(%x, %w : tensor<?x16xf32>, tensor<16x8xf32>)
      outs(%i : tensor<?x8xf32>) -> tensor<?x8xf32>
  %1 = math.tanh %0 : tensor<?x8xf32>
  %2 = tensor.extract %1[%c0, %c0] : tensor<?x8xf32>
  return %1, %2 : tensor<?x8xf32>, f32
}
func.func @other(%k: tensor<4xi32>) -> tensor<4xi32> {
  %0 = arith.addi %k, %k : tensor<4xi32>
  return %0 : tensor<4xi32>
}
"""
X = np.linspace(-1, 1, 32, dtype=np.float32).reshape(2, 16)
KEY = Ed25519PrivateKey.from_private_bytes(bytes(32))


@cache
def original() -> tuple[bytes, tuple[Any, ...], bytes]:
    """A saved program, what it computes from `X`, and the program signed with `KEY`."""
    weights = np.linspace(-1, 1, 128, dtype=np.float32)
    text = PROGRAM.replace("WEIGHTS", weights.tobytes().hex().upper())
    with devscope.compile(text, cache=False) as executable, tempfile.TemporaryDirectory() as folder:
        plain, signed, key = (Path(folder) / name for name in ("plain.dsx", "signed.dsx", "key"))
        private = form.PrivateFormat.PKCS8
        key.write_bytes(KEY.private_bytes(form.Encoding.PEM, private, form.NoEncryption()))
        executable.save(plain)
        executable.save(signed, sign_with=key)
        return plain.read_bytes(), executable(X), signed.read_bytes()


def check(seed: int, folder: Path) -> Outcome:
    rng = random.Random(seed)
    data, wanted, signed = original()
    path, good, key = folder / "program.dsx", folder / "good.dsx", folder / "key.pub"
    keys = [key] if rng.random() < 0.3 else None
    good.write_bytes(signed if keys else data)
    public = form.PublicFormat.SubjectPublicKeyInfo
    key.write_bytes(KEY.public_key().public_bytes(form.Encoding.PEM, public))
    kind = rng.random()
    if kind < 0.4:
        path.write_bytes(damaged(good.read_bytes(), rng))
    elif keys and kind < 0.7:
        signature_changed(good, path, rng)
    else:
        resealed(good, path, rng)
    anew = kind >= 0.4 and not keys
    return load_and_run(path, None if anew else wanted, keys, not anew or _binaries(path) == _binaries(good))


def _binaries(path: Path) -> list[bytes]:
    """The code of the devices. Where it is valid but another, it may do anything: it is loaded, but not run."""
    with zipfile.ZipFile(path) as archive:
        return [archive.read(name) for name in sorted(archive.namelist()) if name.endswith(".bin")]


def load_and_run(
    path: Path, wanted: tuple[Any, ...] | None, keys: list[Path] | None = None, run: bool = True
) -> Outcome:
    """Without ``wanted`` results may be any, for instance from other constants."""
    refused = None
    try:
        json.dumps(inspect(path, keys))
    except ExecutableFormatError as error:
        refused = error
    except Exception as error:
        return from_error(error)
    try:
        with devscope.load(path, trusted_keys=keys) as executable:
            if refused is not None:
                return Outcome("wrong", f"it is loaded, but not inspected: {refused.message}")
            found = executable(X) if wanted is not None else None
            for name, entry in executable.entries.items() if wanted is None and run else ():
                shapes = [([2 if size is None else size for size in s.shape], s.dtype) for s in entry.inputs]
                executable.run(name, *(np.zeros(shape, DTYPES[dtype]) for shape, dtype in shapes))
    except ExecutableFormatError as error:
        return from_error(error)
    except DevscopeError as error:
        if refused is not None:
            return Outcome("wrong", f"inspected, {refused.message}; loaded, {error.message}")
        return from_error(error)
    except Exception as error:
        return from_error(error)
    for value, expected in zip(found or (), wanted or (), strict=True):
        if not np.array_equal(value, expected):
            return Outcome("wrong", "a damaged file was loaded and computes something else")
    return Outcome("right")
