"""Strongly connected components."""

from __future__ import annotations

from devscope.analysis.strongly_connected import strongly_connected_components


def test_components_come_behind_what_they_point_to() -> None:
    graph = {"a": ["b"], "b": ["c", "d"], "c": ["b"], "d": ["d", "e"], "e": [], "f": ["a"]}
    found = list(strongly_connected_components(graph))
    assert [sorted(group) for group in found] == [["e"], ["d"], ["b", "c"], ["a"], ["f"]]


def test_a_long_chain_needs_no_stack() -> None:
    graph = {str(n): [str(n + 1)] for n in range(20_000)} | {"20000": []}
    assert len(list(strongly_connected_components(graph))) == 20_001
