"""The analysis manager: what is computed when, and what is kept."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import ModuleOp

from devscope.analysis.call_graph import CallGraph
from devscope.analysis.manager import AnalysisManager, ManagedPass
from devscope.analysis.scope_analysis import ScopeAnalysis
from devscope.analysis.symbols import Symbols

PROGRAM = "func.func @main() { func.return }"


class _Pass(ManagedPass):
    name = "test-pass"
    preserved = frozenset({Symbols})
    changes = True

    def run(self, analyses: AnalysisManager) -> bool:
        analyses.get(CallGraph)
        return self.changes


def test_an_analysis_is_computed_once_with_what_it_builds_on(parse_program: Callable[[str], ModuleOp]) -> None:
    analyses = AnalysisManager(parse_program(PROGRAM))
    assert analyses.get(CallGraph) is analyses.get(CallGraph)
    assert analyses.get(ScopeAnalysis).symbols is analyses.get(CallGraph).symbols
    assert analyses.computed == {Symbols: 1, CallGraph: 1, ScopeAnalysis: 1}


def test_a_pass_that_changes_keeps_what_it_preserves(parse_program: Callable[[str], ModuleOp]) -> None:
    analyses = AnalysisManager(parse_program(PROGRAM))
    assert analyses.run(_Pass())
    assert analyses.run(_Pass())
    assert analyses.computed == {Symbols: 1, CallGraph: 2}


def test_a_pass_that_changes_nothing_keeps_all(parse_program: Callable[[str], ModuleOp]) -> None:
    analyses = AnalysisManager(parse_program(PROGRAM))
    quiet = _Pass()
    object.__setattr__(quiet, "changes", False)
    assert not analyses.run(quiet)
    assert not analyses.run(quiet)
    assert analyses.computed == {Symbols: 1, CallGraph: 1}
