"""Which operations can be the root of a match, by their names: most cannot, and need not be looked at."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import cache

from devscope.analysis.patterns.elements import KINDS
from devscope.analysis.patterns.language import Custom, Dominated, Either, Elementwise, OneOrMore, Op, Pattern


def roots(pattern: Pattern) -> frozenset[str] | None:
    """The names, with ``*`` in them, that a root of ``pattern`` may have; None for all."""
    match pattern:
        case Op():
            return frozenset(pattern.names)
        case Custom():
            return frozenset(pattern.roots)
        case Elementwise():
            row = KINDS[pattern.kind]
            return frozenset(["linalg.generic", *row.scalar.split(), *row.tensor.split()])
        case Either():
            each = [roots(alternative) for alternative in pattern.alternatives]
            known = [names for names in each if names is not None]
            return frozenset[str]().union(*known) if len(known) == len(each) else None
        case OneOrMore():
            return roots(pattern.link)
        case Dominated():
            return roots(pattern.child)
        case _:
            return None


@cache
def may_root(pattern: Pattern, name: str) -> bool:
    """Whether an operation of this name can be the root of a match."""
    names = roots(pattern)
    return names is None or is_named(name, tuple(names))


def is_named(name: str, names: Sequence[str]) -> bool:
    return any(name == one or ("*" in one and fnmatchcase(name, one)) for one in names)
