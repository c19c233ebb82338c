"""The table of facts agrees with xDSL where xDSL says anything, and rows of plugins are taken."""

from __future__ import annotations

import pytest
from xdsl.dialects import get_all_dialects
from xdsl.traits import MemoryAllocEffect, MemoryReadEffect, MemoryWriteEffect, NoMemoryEffect

from devscope.dialects import op_facts
from devscope.dialects.op_facts import DIALECTS, OPERATIONS, Control, Facts, facts, register_facts

OURS = (*DIALECTS, "cf", "func", "scf", "ub")


def operations_of_xdsl() -> list[type]:
    dialects = get_all_dialects()
    return [op for name in OURS if name in dialects for op in dialects[name]().operations]


def test_pure_where_xdsl_says_so() -> None:
    """Two analyses once disagreed about whole dialects."""
    found = [op for op in operations_of_xdsl() if op.has_trait(NoMemoryEffect)]
    assert len(found) > 100
    assert [op.name for op in found if not facts(op.name).pure] == []


def test_effects_where_xdsl_says_so() -> None:
    effects = (MemoryAllocEffect, MemoryReadEffect, MemoryWriteEffect)
    found = [op.name for op in operations_of_xdsl() if any(op.has_trait(effect) for effect in effects)]
    assert "memref.store" in found
    # Reads are no effects that keep an operation from being dropped.
    assert [name for name in found if facts(name).pure and not facts(name).reads_scalars] == []


def test_what_talks_to_the_world_is_not_pure() -> None:
    for name in ("stablehlo.custom_call", "stablehlo.send", "tosa.variable_write", "vector.print", "func.call"):
        assert not facts(name).pure, name
    for name in ("stablehlo.add", "tosa.add", "linalg.matmul", "complex.add", "affine.apply", "scf.yield"):
        assert facts(name).pure, name


def test_a_row_is_consistent() -> None:
    for name in OPERATIONS:
        row = facts(name)
        assert row.view_of is None or not (row.moves or row.allocates or row.query), name
        assert not row.whole or row.view_of is not None, name
        assert not row.same_shape or row.elements_of is not None, name
        assert row.view_of is None or row.pure, name


def test_rows_leave_open_what_their_dialect_says() -> None:
    assert facts("arith.select").elementwise
    assert not facts("arith.constant").elementwise
    assert facts("linalg.add").pure


def test_plugins_add_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not facts("plugin.view").known
    monkeypatch.setattr(op_facts, "OPERATIONS", dict(OPERATIONS))
    monkeypatch.setattr(op_facts, "DIALECTS", dict(DIALECTS))
    register_facts("plugin.view", Facts(view_of=1))
    register_facts("plugin", Facts(pure=True))
    register_facts("plugin.if", Facts(control=Control.CHOICE))
    assert facts("plugin.view").view_of == 1
    assert facts("plugin.view").follows
    assert facts("plugin.anything").pure
    assert facts("plugin.if").is_entered
    monkeypatch.undo()
    op_facts.facts.cache_clear()
    assert not facts("plugin.view").known
