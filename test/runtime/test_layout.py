"""What Python knows of the native runtime's constants is what the C sources say."""

from __future__ import annotations

from enum import IntEnum

import pytest
from handmade import calls_program

from devscope.runtime.linker import HostLibrary
from devscope.runtime.native import layout
from devscope.runtime.program import DYNAMIC_LOCAL_SIZE


@pytest.fixture(scope="module")
def native() -> layout.Layout:
    return HostLibrary(calls_program(), ["cpu", "opencl"]).layout


@pytest.mark.parametrize("enum", [layout.Origin, layout.Operation, layout.Code])
def test_enumerations(native: layout.Layout, enum: type[IntEnum]) -> None:
    prefix = f"{enum.__name__.upper()}_"
    assert native.constants[enum.__name__] == {f"{prefix}{item.name}": item.value for item in enum}


def test_constants(native: layout.Layout) -> None:
    assert native.constants["Constants"] == {
        "ABI_VERSION": layout.ABI_VERSION,
        "RETURNED_BLOCKS": layout.RETURNED_BLOCKS,
        "DYNAMIC_LOCAL_SIZE": DYNAMIC_LOCAL_SIZE,
    }


def test_structs(native: layout.Layout) -> None:
    """Fields are where C has them, and what a table does not have is no attribute."""
    context, error = native.Context, native.Error
    assert context.error.offset == 0
    assert context.device_count.offset >= context.error.size
    assert context.returned.size == 8 * layout.RETURNED_BLOCKS
    record = context(error=error(origin=2, code=-5))
    assert (record.error.origin, record.error.code, record.device_count) == (2, -5, 0)
    assert native.ClQueue.cl.offset == 0
    with pytest.raises(AttributeError, match="no struct 'Nothing'"):
        _ = native.Nothing
