"""Damaged program files, and such whose check sums were made anew: a typed error or the right result."""

from __future__ import annotations

import json
import random
import zipfile
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from outcome import Outcome, from_error

import devscope
from devscope.runtime import file_format

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
VALUES: list[Any] = [0, 1, -1, 2**31, 2**62, 2**200, 1.5, float("inf"), float("nan"), "x", "", None, [], {}, True,
                     [0], "../x", [[0, 2**63]], "main", {"x": 1}]  # fmt: skip


@cache
def original() -> tuple[bytes, tuple[Any, ...]]:
    """A saved program, and what it computes from `X`."""
    weights = np.linspace(-1, 1, 128, dtype=np.float32)
    text = PROGRAM.replace("WEIGHTS", weights.tobytes().hex().upper())
    with devscope.compile(text, cache=False) as executable:
        path = Path(__file__).resolve().parent.parent.parent / "build" / "fuzz" / f"original-{id(text)}.dsx"
        path.parent.mkdir(parents=True, exist_ok=True)
        executable.save(path)
        data = path.read_bytes()
        path.unlink()
        return data, executable(X)


def members(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def sealed(parts: dict[str, bytes], manifest: Any) -> bytes:
    """An archive of these members whose check sums are right."""
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        records = {
            name: file_format._write_member(archive, name, [part])  # pyright: ignore[reportPrivateUsage]
            for name, part in parts.items()
            if name != "manifest.json"
        }
        if isinstance(manifest, dict) and isinstance(manifest.get("members"), dict):
            manifest["members"] |= records
        text = manifest if isinstance(manifest, bytes) else json.dumps(manifest).encode()
        file_format._write_member(archive, "manifest.json", [text])  # pyright: ignore[reportPrivateUsage]
    return buffer.getvalue()


def damaged(rng: random.Random, data: bytes) -> bytes:
    """Bytes of the file are changed, without making check sums anew."""
    kind = rng.randrange(6)
    if kind == 0:
        return data[: rng.randrange(len(data))]
    changed = bytearray(data)
    if kind == 1:
        for _ in range(rng.choice([1, 3, 50])):
            changed[rng.randrange(len(data))] = rng.randrange(256)
    elif kind == 2:
        changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif kind == 3:
        size = rng.choice([16, 64, 512])
        one, two = (rng.randrange(max(len(data) - size, 1)) for _ in range(2))
        changed[one : one + size], changed[two : two + size] = changed[two : two + size], changed[one : one + size]
    elif kind == 4:
        start = rng.randrange(len(data))
        changed[start : start + rng.choice([1, 64, 4096])] = rng.choice([b"", b"\0" * 64, rng.randbytes(100)])
    else:
        tail = len(data) - min(len(data), 1500)
        changed[rng.randrange(tail, len(data))] = rng.randrange(256)
    return bytes(changed)


def resealed(rng: random.Random, data: bytes) -> bytes:
    """The manifest or a member is changed and the check sums are right. Code stays as it is, or is cut off."""
    parts = members(data)
    manifest: Any = json.loads(parts["manifest.json"])
    kind = rng.randrange(8)
    if kind < 5:
        for _ in range(rng.choice([1, 1, 2])):
            _change(rng, manifest)
        try:
            return sealed(parts, manifest)
        except (ValueError, TypeError):
            return sealed(parts, b"[" * rng.choice([10, 100_000]))
    if kind == 5:
        name = rng.choice([name for name in parts if name != "manifest.json"])
        if rng.random() < 0.3:
            del parts[name]
        else:
            parts[name] = parts[name][: rng.randrange(len(parts[name]) + 1)]
    elif kind == 6:
        parts[rng.choice(["../evil", "device7.bin", "extra", "host.o "])] = rng.randbytes(10)
    else:
        name = rng.choice([name for name in parts if name.endswith(".bin")])
        part = bytearray(parts[name])
        for _ in range(rng.choice([1, 4, 20])):
            if part:
                part[rng.randrange(len(part))] = rng.randrange(256)
        parts[name] = bytes(part)
    return sealed(parts, manifest)


def _change(rng: random.Random, node: Any) -> None:
    """Somewhere in the manifest: a value, a key, an item."""
    while True:
        keys: list[Any] = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not keys:
            return
        key = rng.choice(keys)
        child = node[key]
        if isinstance(child, (dict, list)) and child and rng.random() < 0.75:
            node = child
            continue
        what = rng.random()
        if what < 0.15:
            del node[key]
        elif what < 0.25 and isinstance(node, list):
            node.append(child)
        elif what < 0.3 and isinstance(node, dict):
            node["new"] = rng.choice(VALUES)
        elif isinstance(child, int) and what < 0.6:
            node[key] = child + rng.choice([-1, 1, 8, 64, -64, 2**32])
        else:
            node[key] = rng.choice(VALUES)
        return


def check(seed: int, folder: Path) -> Outcome:
    rng = random.Random(seed)
    data, wanted = original()
    path = folder / "program.dsx"
    anew = rng.random() < 0.5
    path.write_bytes((resealed if anew else damaged)(rng, data))
    return load_and_run(path, None if anew else wanted)


def load_and_run(path: Path, wanted: tuple[Any, ...] | None) -> Outcome:
    """Resealed files may compute something else, for instance from other constants."""
    try:
        with devscope.load(path) as executable:
            found = executable(X)
    except Exception as error:
        return from_error(error)
    if wanted is not None:
        for value, expected in zip(found, wanted, strict=True):
            if not np.array_equal(value, expected):
                return Outcome("wrong", "a damaged file was loaded and computes something else")
    return Outcome("right")
