"""Saved programs that are damaged, by chance or with right check sums, and what becomes of who calls them.

`damaged` and `resealed` make a file of a good one; `Reader` is a process that loads and calls it, and that is
started again when it dies. Every outcome must be `ACCEPTED`.
"""

from __future__ import annotations

import io
import json
import random
import re
import select
import subprocess
import sys
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from devscope.runtime import file_format
from devscope.runtime.file_format import read_program, save_program
from devscope.runtime.seal import seal

ACCEPTED = re.compile(r"RAN|TYPED \w+: ")
"""It was called and gave results, or one typed error says what is wrong."""

SECONDS = 120

_ODD = (
    *(-1, 0, 1, 2, 7, 2**31, 2**32 + 1, 2**62, 2**63 - 1, 2**63, 2**200, -(2**63)),
    *(1.5, float("inf"), float("nan"), True, None, "", "x", "f64", "\0", "../../x"),
    *([], [0], [[0, 0]], {}, {"a": 1}),
)

_SERVER = """
import sys
import numpy as np
import devscope
from devscope.errors import DevscopeError
from devscope.runtime.program import DTYPES

def argument(spec):
    return np.zeros([2 if size is None else size for size in spec.shape], DTYPES[spec.dtype])

def outcome(path):
    try:
        with devscope.load(path) as exe:
            for name, entry in exe.entries.items():
                exe.run(name, *map(argument, entry.inputs))
        return "RAN"
    except DevscopeError as error:
        return f"TYPED {type(error).__name__}: {error.message}"
    except BaseException as error:
        return f"UNTYPED {type(error).__name__}: {error}"

for line in sys.stdin:
    print(ascii(outcome(line.strip())), flush=True)
"""


class Reader:
    """A process that loads and calls programs."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def outcome(self, path: Path) -> str:
        """One line; ``DIED`` and ``HUNG`` when the process did."""
        if self._process is None:
            pipe = subprocess.PIPE
            command = [sys.executable, "-c", _SERVER]
            self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, bufsize=1)
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{path}\n")
        process.stdin.flush()
        ready, _, _ = select.select([process.stdout], [], [], SECONDS)
        line = process.stdout.readline() if ready else ""
        if line:
            return line.strip("'\"\n")
        self.close()
        return f"DIED with status {process.returncode}" if ready else "HUNG"

    def close(self) -> None:
        """Ends the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for stream in (self._process.stdin, self._process.stdout):
                if stream is not None:
                    stream.close()
            self._process = None


def damaged(whole: bytes, seed: int) -> bytes:
    """The bytes of a file with a few of them changed, cut out, repeated or gone at the end."""
    rng = random.Random(seed)
    data = bytearray(whole)
    for _ in range(rng.choice((1, 1, 2, 8))):
        at = rng.randrange(len(data))
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
    return bytes(data[: rng.randrange(len(data))] if rng.random() < 0.1 else data)


def resealed(good: Path, path: Path, seed: int) -> None:
    """Writes ``path``: the program in ``good`` with a change inside and right check sums.

    Some changes are in the manifest, some in other members. Those of a device's binary are made through the API as
    well, so that the seal is right, too. Host code with a right seal stays as it is: it is code, whatever it does.
    """
    rng = random.Random(seed)
    rng.choice((_manifest_changed, _manifest_changed, _manifest_changed, _member_changed, _binary_changed))(
        good, path, rng
    )


def _members(good: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(good) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def _write(path: Path, members: dict[str, bytes], manifest: Any) -> None:
    buffer = io.BytesIO()
    write_member = file_format._write_member  # pyright: ignore[reportPrivateUsage]
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        records = {name: write_member(archive, name, [data]) for name, data in members.items()}
        if isinstance(manifest, dict) and isinstance(manifest.get("members"), dict):
            for name in records.keys() & manifest["members"].keys():
                manifest["members"][name] = records[name]
        write_member(archive, "manifest.json", [json.dumps(manifest).encode()])
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
