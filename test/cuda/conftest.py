"""Makes the modules of this folder, and those of the tests of backends, importable."""

import sys
from pathlib import Path

import pytest

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[1] / "backends")]

from emulation import emulator


@pytest.fixture(autouse=True)
def needs_compiler() -> None:
    if emulator() is None:
        pytest.skip("this machine has no C compiler")
