"""What the tests of the bridge share: a session, and the text that tells two modules apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from devscope.lowering.interop.session import Session


@pytest.fixture
def session() -> Session:
    return Session()


@pytest.fixture
def generic_text() -> Callable[[Any], str]:
    """All that a module says: every property, and every location in full."""

    def text(module: Any) -> str:
        return module.operation.get_asm(print_generic_op_form=True, enable_debug_info=True, use_local_scope=True)

    return text
