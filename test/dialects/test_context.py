"""`make_context`: all dialects, loaded on first use."""

from __future__ import annotations

from xdsl.dialects import get_all_dialects

from devscope.dialects.context import make_context
from devscope.dialects.device import OnDeviceOp


def test_every_dialect_is_there_and_none_is_loaded() -> None:
    context = make_context()
    assert set(context.registered_dialect_names) == {*get_all_dialects(), "device"}
    assert not list(context.loaded_dialects)
    assert context.get_op("device.on_device") is OnDeviceOp
    assert [dialect.name for dialect in context.loaded_dialects] == ["device"]


def test_contexts_share_nothing() -> None:
    make_context().get_op("foreign.op")
    assert "foreign.op" not in {op.name for op in make_context().loaded_ops}
