"""Saved programs that are damaged: by chance, with right check sums, or in their signature."""

from __future__ import annotations

import io
import json
import random
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from devscope.runtime import file_format
from devscope.runtime.file_format import read_program, save_program
from devscope.runtime.seal import seal

SIGNATURE = "manifest.json.sig"

_ODD = (
    *(-1, 0, 1, 2, 7, 2**31, 2**32 + 1, 2**62, 2**63 - 1, 2**63, 2**200, -(2**63)),
    *(1.5, float("inf"), float("nan"), True, None, "", "x", "f64", "\0", "../../x"),
    *([], [0], [[0, 0]], {}, {"a": 1}),
)


def damaged(whole: bytes, rng: random.Random) -> bytes:
    """The bytes of a file with a few of them changed, cut out, repeated or gone at the end."""
    data = bytearray(whole)
    tail = max(len(data) - 1500, 0) if rng.random() < 0.2 else 0  # where the directory of the archive is
    for _ in range(rng.choice((1, 1, 2, 8))):
        if not data:
            break
        at = rng.randrange(min(tail, len(data) - 1), len(data))
        end = min(len(data), at + rng.choice((1, 4, 64, 1000)))
        match rng.randrange(5):
            case 0 | 1:
                data[at] ^= 1 << rng.randrange(8)
            case 2:
                data[at:end] = rng.randbytes(end - at)
            case 3:
                del data[at:end]
            case _:
                data[at:at] = data[at:end]
    return bytes(data[: rng.randrange(len(data) + 1)] if rng.random() < 0.1 else data)


def resealed(good: Path, path: Path, rng: random.Random) -> None:
    """Writes ``path``: the program in ``good`` with a change inside and right check sums.

    Some changes are in the manifest, some in other members. Those of a device's binary are made through the API as
    well, so that the seal is right, too. Host code with a right seal stays as it is: it is code, whatever it does.
    """
    rng.choice((_manifest_changed, _manifest_changed, _manifest_changed, _member_changed, _binary_changed))(
        good, path, rng
    )


def signature_changed(good: Path, path: Path, rng: random.Random) -> None:
    """Writes ``path``: the signed program in ``good`` with another signature, all else being as it was."""
    members = _members(good)
    manifest = members.pop("manifest.json")
    members[SIGNATURE] = damaged(members[SIGNATURE], rng)
    _write(path, members, json.loads(manifest), manifest)


def _members(good: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(good) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def _write(path: Path, members: dict[str, bytes], manifest: Any, text: bytes | None = None) -> None:
    """``text``: of the manifest, if it is not to be made anew."""
    buffer = io.BytesIO()
    write_member = file_format._write_member  # pyright: ignore[reportPrivateUsage]
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        records = {name: write_member(archive, name, [data]) for name, data in members.items()}
        if isinstance(manifest, dict) and isinstance(manifest.get("members"), dict):
            for name in records.keys() & manifest["members"].keys():
                manifest["members"][name] = records[name]
        write_member(archive, "manifest.json", [json.dumps(manifest).encode() if text is None else text])
    path.write_bytes(buffer.getvalue())


def _manifest_changed(good: Path, path: Path, rng: random.Random) -> None:
    members = _members(good)
    manifest = json.loads(members.pop("manifest.json"))
    places: list[tuple[Any, Any]] = []

    def collect(value: Any) -> None:
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, item in items:
            places.append((value, key))
            collect(item)

    collect(manifest)
    for _ in range(rng.choice((1, 1, 2))):
        with suppress(KeyError, IndexError):  # another change took it away
            _change(*rng.choice(places), rng)
    _write(path, members, manifest)


def _change(holder: Any, key: Any, rng: random.Random) -> None:
    """Another value in place of one in a list or dictionary, or one more, or one less."""
    match rng.randrange(5):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, list):
            holder.append(holder[key])
        case 1:
            holder["extra"] = holder[key]
        case 2:
            holder[key] = [holder[key]] * rng.choice((2, 3000))
        case 3 if isinstance(holder[key], int):
            holder[key] += rng.choice((-1, 1, 8, 64, -64, 2**32))
        case _:
            holder[key] = rng.choice(_ODD)


def _flipped(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2))):
        changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _member_changed(good: Path, path: Path, rng: random.Random) -> None:
    members = _members(good)
    manifest = json.loads(members.pop("manifest.json"))
    name = rng.choice(sorted(members))
    match rng.randrange(5):
        case 0:
            members[name] = members[name][: rng.randrange(max(len(members[name]), 1))]
        case 1:
            members[rng.choice(("extra.bin", "../x", "host.o2"))] = members[name]
        case _:
            members[name] = _flipped(members[name] or b"\0", rng)
    _write(path, members, manifest)


def _binary_changed(good: Path, path: Path, rng: random.Random) -> None:
    program = read_program(good)
    device = rng.choice([device for device in program.devices if device.binaries])
    number = rng.randrange(len(device.binaries))
    device.binaries[number] = _flipped(device.binaries[number], rng)
    save_program(seal(program), path)
