"""What partitioning asks of a backend; `devscope.backends.Backend` is one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from devscope.analysis.patterns import Match, Pattern
from devscope.dialects.device import ScopeAttr, TargetAttr
from devscope.dialects.target import OptionValue

Answer = bool | str | None
"""Of a predicate: True and None are yes, False is no, a text is no and why."""

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
    answer = predicate(match) if predicate is not None else None
    if answer is None or answer is True:
        return None
    if answer is not False and not isinstance(answer, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"it answers {answer!r}, neither True nor False nor why not")
    return answer or "its predicate says no"
