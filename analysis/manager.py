"""The analysis manager: an analysis is computed when a pass asks for it, and kept until one does not preserve it.

As in MLIR, whose manager xDSL lacks. A pass that asks for analyses is a `ManagedPass`; a compilation runs all of
its passes by `AnalysisManager.run`, and ``devscope-opt`` each with a manager of its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from typing import Any, ClassVar, Protocol, Self, TypeVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from devscope.dialects.device import HOST_SCOPE, ScopeAttr


class Analysis(Protocol):
    """What can be asked of a manager."""

    @classmethod
    def of(cls, analyses: AnalysisManager) -> Self:
        """Compute the analysis for ``analyses.module``; others that it builds on are asked for."""
        ...


_A = TypeVar("_A", bound=Analysis)


class AnalysisManager:
    """The analyses of one module, whose scalars and control flow are on ``host``."""

    def __init__(self, module: ModuleOp, host: ScopeAttr = HOST_SCOPE) -> None:
        self.module = module
        self.host = host
        self.computed: Counter[type[Analysis]] = Counter()
        """How often each analysis was computed."""
        self._kept: dict[type[Analysis], Any] = {}

    def get(self, analysis: type[_A]) -> _A:
        """The analysis of the module as it is now."""
        found = self._kept.get(analysis)
        if found is None:
            found = self._kept[analysis] = analysis.of(self)
            self.computed[analysis] += 1
        return found

    def invalidate(self, preserved: frozenset[type[Analysis]] = frozenset()) -> None:
        """Forget all analyses but ``preserved``: the module has changed."""
        self._kept = {analysis: found for analysis, found in self._kept.items() if analysis in preserved}

    def run(self, pass_: ManagedPass) -> bool:
        """Run a pass on the module, and forget what it does not preserve; whether it changed anything."""
        changed = pass_.run(self)
        if changed:
            self.invalidate(pass_.preserved)
        return changed


class ManagedPass(ModulePass, ABC):
    """A pass that gets its analyses from a manager."""

    preserved: ClassVar[frozenset[type[Analysis]]] = frozenset()
    """The analyses that still hold after it has changed the module."""

    @abstractmethod
    def run(self, analyses: AnalysisManager) -> bool:
        """Run on ``analyses.module``; whether that changed.

        A pass that asks for an analysis again after changing the module calls `AnalysisManager.invalidate` before.
        """

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        self.run(self.analyses(op))

    def analyses(self, module: ModuleOp) -> AnalysisManager:
        """A manager of its own for a module, on the host that the pass's options say."""
        return AnalysisManager(module, ScopeAttr.parse_text(getattr(self, "host", "cpu:0")))
