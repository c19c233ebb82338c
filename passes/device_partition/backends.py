"""What partitioning asks of a backend; `devscope.backends.Backend` is one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from devscope.analysis.patterns import Match, Pattern
from devscope.analysis.patterns.language import Answer, objection
from devscope.dialects.device import ScopeAttr, TargetAttr
from devscope.dialects.target import OptionValue

Row = tuple[str, Pattern, Callable[[Match], Answer] | None]
"""A name, a pattern, and a predicate that sees what it matched."""


class PartitionBackend(Protocol):
    """A compiler of some patterns. ``name``: of its target kind; ``device``: where its code runs, ``"cpu:0"``."""

    @property
    def name(self) -> str: ...
    @property
    def device(self) -> str: ...
    @property
    def options(self) -> Mapping[str, OptionValue]: ...
    @property
    def patterns(self) -> Sequence[Row]: ...
    @property
    def merge(self) -> bool: ...
    def cost(self, match: Match) -> float | None: ...


def scope_of(backend: PartitionBackend) -> ScopeAttr:
    """The scope of a backend's data."""
    return ScopeAttr.parse_text(backend.device)


def target_of(backend: PartitionBackend) -> TargetAttr:
    """What a backend's functions are compiled for. Raises OptionError for options that it does not have."""
    return TargetAttr.get(backend.name, backend.options)


def refusal(predicate: Callable[[Match], Answer] | None, match: Match) -> str | None:
    """Why a predicate says no to a match; None if it says yes."""
    return None if predicate is None else objection(predicate(match), "its predicate says no")
