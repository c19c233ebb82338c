"""Makes the modules of this folder importable and keeps the user's cache out of the tests."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from devscope.runtime.cache import DIRECTORY_VARIABLE


@pytest.fixture(scope="session", autouse=True)
def cache_directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    directory = tmp_path_factory.mktemp("cache")
    patch = pytest.MonkeyPatch()
    patch.setenv(DIRECTORY_VARIABLE, str(directory))
    yield directory
    patch.undo()
