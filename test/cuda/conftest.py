"""Makes the modules of this folder importable."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from emulation import emulator


@pytest.fixture(autouse=True)
def needs_compiler() -> None:
    if emulator() is None:
        pytest.skip("this machine has no C compiler")
