"""The cache on disk: damage, eviction, several processes, and being switched off."""

from __future__ import annotations

import errno
import fcntl
import io
import os
import signal
import stat
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from handmade import calls_program

from devscope.cli.main import main
from devscope.errors import DevscopeWarning, OptionError
from devscope.runtime.cache import DIRECTORY_VARIABLE, DiskCache, environment_key, open_cache
from devscope.runtime.program import ConstantSpec

KEY = "0123456789abcdef"


@pytest.fixture
def cache(tmp_path: Path) -> DiskCache:
    return DiskCache(tmp_path / "cache")


def files(cache: DiskCache) -> list[Path]:
    return sorted(path for path in cache.root.rglob("*") if path.is_file())


def test_blobs(cache: DiskCache) -> None:
    assert cache.load_blob(KEY) is None
    cache.store_blob(KEY, b"one")
    assert cache.load_blob(KEY) == b"one"
    cache.store_blob(KEY, b"two")
    assert cache.load_blob(KEY) == b"two"


def test_programs(cache: DiskCache) -> None:
    assert cache.load_program(KEY) is None
    constants = [(ConstantSpec("i32", [3]), np.arange(3, dtype=np.int32))]
    stored = calls_program(constants=constants)
    cache.store_program(KEY, stored)
    program = cache.load_program(KEY)
    assert program is not None
    assert program.host_object == stored.host_object
    assert bytes(program.constant_data[0]) == np.arange(3, dtype=np.int32).tobytes()


@pytest.mark.parametrize("damage", [lambda data: b"", lambda data: data[:-1], lambda data: data[:60] + b"?"])
def test_damaged_entries_are_dropped_and_rewritten(cache: DiskCache, damage: object) -> None:
    assert callable(damage)
    cache.store_blob(KEY, b"content")
    cache.store_program(KEY, calls_program())
    for path in files(cache):
        path.write_bytes(damage(path.read_bytes()))
    assert cache.load_blob(KEY) is None
    assert cache.load_program(KEY) is None
    assert files(cache) == []
    cache.store_blob(KEY, b"content")
    assert cache.load_blob(KEY) == b"content"


def test_an_entry_that_cannot_be_read_now_stays(cache: DiskCache, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> bytes:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    cache.store_blob(KEY, b"content")
    with monkeypatch.context() as patch:
        patch.setattr("devscope.runtime.cache._read_blob", fail)
        assert cache.load_blob(KEY) is None
    assert cache.load_blob(KEY) == b"content"


@pytest.mark.parametrize("key", ["", "short", "../../etc/passwd", "0123456789ABCDEF", "g" * 20, "a" * 129])
def test_keys_are_digests(cache: DiskCache, key: str) -> None:
    with pytest.raises(OptionError, match="not a cache key"):
        cache.load_blob(key)


def test_least_recently_used_goes_first(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, max_bytes=3500)
    keys = [f"{index:016x}" for index in range(4)]
    for index, key in enumerate(keys[:3]):
        cache.store_blob(key, bytes(1000))
        (path,) = cache.root.glob(f"{key}.bin")
        os.utime(path, (index + 1, index + 1))
    assert cache.load_blob(keys[0]) is not None  # used: now the newest
    cache.store_blob(keys[3], bytes(1000))
    assert [cache.load_blob(key) is not None for key in keys] == [True, False, True, True]


def test_leftovers_of_dead_processes_are_removed(cache: DiskCache) -> None:
    """They count for nothing: no entry goes because of them. Files that are being written stay."""
    cache.max_bytes = 5000
    cache.store_blob(KEY, bytes(1000))
    dead, alive = cache.root / ".tmp-dead", cache.root / ".tmp-alive"
    dead.write_bytes(bytes(100_000))
    alive.write_bytes(bytes(100_000))
    with alive.open("rb") as writing:
        fcntl.flock(writing, fcntl.LOCK_EX)
        cache.store_blob(KEY[::-1], b"content")
        assert not dead.exists()
        assert alive.exists()
    assert cache.load_blob(KEY) == bytes(1000)
    assert cache.load_blob(KEY[::-1]) == b"content"
    assert len(cache.entries()) == 2
    assert len(cache.clear()) == 2
    assert files(cache) == []


DIE = """
import os, signal, sys
from pathlib import Path
from devscope.runtime.cache import DiskCache

cache = DiskCache(Path(sys.argv[1]))
cache._store("%s.bin", lambda file: (file.write(bytes(1000)), file.flush(), os.kill(os.getpid(), signal.SIGKILL)))
"""


def test_killed_while_it_writes(cache: DiskCache) -> None:
    process = subprocess.run([sys.executable, "-c", DIE % KEY, str(cache.root.parent)], check=False)
    assert process.returncode == -signal.SIGKILL
    assert [path.name[:5] for path in files(cache)] == [".tmp-"]
    assert cache.load_blob(KEY) is None
    cache.store_blob(KEY, b"content")
    assert [path.name for path in files(cache)] == [f"{KEY}.bin"]


def test_a_full_disk(cache: DiskCache) -> None:
    def fail(file: io.BufferedWriter) -> None:
        file.write(bytes(10))
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    cache.store_blob(KEY, b"content")
    cache._store(f"{KEY}.bin", fail)  # pyright: ignore[reportPrivateUsage, reportArgumentType]
    assert cache.load_blob(KEY) == b"content"
    assert len(files(cache)) == 1


def test_what_is_made_is_the_users_alone(cache: DiskCache) -> None:
    previous = os.umask(0)
    try:
        cache.store_blob(KEY, b"content")
        cache.store_program(KEY, calls_program())
    finally:
        os.umask(previous)
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (cache.root.parent, cache.root, *files(cache))}
    assert list(modes.values()) == [0o700, 0o700, 0o600, 0o600]


def loads(cache: DiskCache) -> bool:
    """Whether both kinds of entries are loaded; if not, there must be one warning about it, and only one."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = [cache.load_blob(KEY), cache.load_program(KEY), cache.load_blob(KEY), cache.load_program(KEY)]
    assert all(issubclass(warning.category, DevscopeWarning) for warning in caught)
    assert len({str(warning.message) for warning in caught}) == len(caught) <= 2
    assert (None in found) == bool(caught)
    return None not in found


@pytest.mark.parametrize("level", ["entries", "folder", "root"])
@pytest.mark.parametrize("mode", [0o666, 0o620, 0o602])
def test_what_others_can_write_is_not_loaded(cache: DiskCache, level: str, mode: int) -> None:
    cache.store_blob(KEY, b"content")
    cache.store_program(KEY, calls_program())
    assert loads(cache)
    paths = {"entries": files(cache), "folder": [cache.root], "root": [cache.root.parent]}[level]
    for path in paths:
        path.chmod(mode | (0o100 if level != "entries" else 0))
    assert not loads(cache)
    cache.store_blob(KEY, b"other")  # nor is anything written where others can, or an entry of theirs left there
    for path in paths:
        path.chmod(0o700 if level != "entries" else 0o600)
    assert cache.load_blob(KEY) == (b"other" if level == "entries" else b"content")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("level", ["entries", "folder", "root"])
def test_what_belongs_to_others_is_not_loaded(cache: DiskCache, level: str) -> None:
    cache.store_blob(KEY, b"content")
    cache.store_program(KEY, calls_program())
    for path in {"entries": files(cache), "folder": [cache.root], "root": [cache.root.parent]}[level]:
        os.chown(path, 65534, 65534)
    assert not loads(cache)
    assert cache.clear() == []
    assert len(files(cache)) == 2


@pytest.mark.parametrize("level", ["entries", "folder", "root"])
def test_symbolic_links_are_not_followed(cache: DiskCache, tmp_path: Path, level: str) -> None:
    cache.store_blob(KEY, b"content")
    cache.store_program(KEY, calls_program())
    for path in {"entries": files(cache), "folder": [cache.root], "root": [cache.root.parent]}[level]:
        path.rename(tmp_path / f"moved-{path.name}")
        path.symlink_to(tmp_path / f"moved-{path.name}")
    assert not loads(cache)
    assert cache.clear() == []
    moved = sorted(tmp_path.glob("moved-*"))
    cache.store_blob(KEY, b"other")
    assert sorted(tmp_path.glob("moved-*")) == moved
    if level == "entries":
        assert moved[0].read_bytes().endswith(b"content")


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_is_not_opened(cache: DiskCache, make: Callable[[Path], None]) -> None:
    cache.store_blob(KEY, b"content")
    (path,) = files(cache)
    path.unlink()
    make(path)
    with pytest.warns(DevscopeWarning, match="is not a regular file"):
        assert cache.load_blob(KEY) is None


def test_command(cache: DiskCache, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(cache.root.parent))
    cache.store_blob(KEY, bytes(2000))
    (cache.root / "notes.txt").write_text("not an entry")
    assert main(["cache", "--show"]) == 0
    first, header, entry = capsys.readouterr().out.splitlines()
    assert first == f"{cache.root}: 1 entry, 2.0 KiB, of at most 1.0 GiB"
    assert header.split() == ["entry", "what", "size", "last", "used"]
    assert entry.split() == [KEY, "driver's", "binary", "2.0", "KiB", *entry.split()[5:]]
    assert main(["cache", "--clear"]) == 0
    assert capsys.readouterr().out == f"{cache.root}: removed 1 entry, 2.0 KiB\n"
    assert [path.name for path in files(cache)] == ["notes.txt"]
    monkeypatch.setenv(DIRECTORY_VARIABLE, "off")
    assert main(["cache", "--show"]) == 2
    assert "the cache is off" in capsys.readouterr().err


def test_a_file_is_no_place(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    cache = DiskCache(tmp_path / "file")
    with pytest.warns(DevscopeWarning, match="cannot be a folder"):
        cache.store_blob(KEY, b"content")
    assert cache.load_blob(KEY) is None
    assert cache.load_program(KEY) is None


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(tmp_path))
    cache = open_cache()
    assert cache is not None
    assert cache.root.parent == tmp_path
    monkeypatch.setenv(DIRECTORY_VARIABLE, "off")
    assert open_cache() is None
    monkeypatch.delenv(DIRECTORY_VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    cache = open_cache()
    assert cache is not None
    assert "devscope" in cache.root.parts


def test_environment_key_is_stable() -> None:
    assert environment_key() == environment_key()


WORK = """
import sys
from pathlib import Path
from devscope.runtime.cache import DiskCache

cache = DiskCache(Path(sys.argv[1]), max_bytes=40_000)
for round in range(150):
    for index in range(8):
        key = f"{index:016x}"
        blob = cache.load_blob(key)
        assert blob is None or blob == bytes([index]) * 9000, "mixed contents"
        if blob is None or round % 3 == 0:
            cache.store_blob(key, bytes([index]) * 9000)
"""


def test_two_processes_at_once(tmp_path: Path) -> None:
    """Writers replace and evict each other's entries; readers see whole entries or none."""
    processes = [
        subprocess.Popen([sys.executable, "-c", WORK, str(tmp_path)], stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for process in processes:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    assert not [path for path in tmp_path.rglob(".tmp-*")]
