"""The cache on disk: damage, eviction, several processes, and being switched off."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from handmade import calls_program

from devscope.errors import OptionError
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
    cache.store_program(KEY, calls_program(constants=constants))
    program = cache.load_program(KEY)
    assert program is not None
    assert program.host_object == calls_program().host_object
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
    def fail(_: Path) -> bytes:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    cache.store_blob(KEY, b"content")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", fail)
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
        (path,) = cache.root.glob(f"*/{key}.bin")
        os.utime(path, (index + 1, index + 1))
    assert cache.load_blob(keys[0]) is not None  # used: now the newest
    cache.store_blob(keys[3], bytes(1000))
    assert [cache.load_blob(key) is not None for key in keys] == [True, False, True, True]


def test_leftovers_of_dead_processes_are_removed(cache: DiskCache) -> None:
    cache.store_blob(KEY, b"content")
    directory = files(cache)[0].parent
    old, new = directory / ".tmp-old", directory / ".tmp-new"
    old.write_bytes(b"x")
    new.write_bytes(b"x")
    os.utime(old, (time.time() - 7200,) * 2)
    cache.store_blob(KEY, b"content")
    assert not old.exists()
    assert new.exists()


def test_an_unusable_place_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    cache = DiskCache(tmp_path / "file")
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
