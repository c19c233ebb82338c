"""What a rule that fits nothing may have meant."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches

from devscope.analysis.placement import Rule, unwrapped
from devscope.errors import SourceLocation
from devscope.passes.device_place.operation_view import OperationView

_CLOSE = 0.6
_SHOWN = 4


def near_names(rule: Rule, placed: Sequence[OperationView], others: Iterable[OperationView]) -> list[str]:
    """Notes: what is close to the rule's patterns, and what fits it and computes nothing."""
    notes: list[str] = []
    passive = list(dict.fromkeys(view.name for view in others if _fits(rule, view)))
    if passive:
        notes.append(f"it fits {', '.join(passive[:_SHOWN])}: planning has them where they are needed")
    known: dict[str, Callable[[], set[str]]] = {
        "op": lambda: {kind for view in placed for kind in view.kinds},
        "location": lambda: {name for view in placed for part in view.locations for name in _names(part)},
        "function": lambda: {view.function for view in placed},
    }
    known["match"] = lambda: known["op"]() | known["location"]()
    for key, names in known.items():
        for glob in getattr(rule, key) or ():
            close = _close(glob, sorted(names()))
            if glob in close:
                notes.append(f"what '{glob}' fits does not meet the rule's other conditions")
            elif close:
                notes.append(f"close to '{glob}': {', '.join(close)}")
    if not notes and placed:
        kinds = list(dict.fromkeys(kind for view in placed for kind in view.kinds))
        notes.append(
            f"operations that compute are: {', '.join(kinds[:_SHOWN])}{', ...' if len(kinds) > _SHOWN else ''}"
        )
    return notes


def _fits(rule: Rule, view: OperationView) -> bool:
    try:
        return rule.fits(view)
    except Exception:  # a predicate that was written for operations that compute
        return False


def _names(part: str | SourceLocation) -> Iterable[str]:
    """What a pattern could be meant to be: whole names, and their parts."""
    if isinstance(part, SourceLocation):
        return (f"{part.file.rpartition('/')[2]}:{part.line}",)
    name = unwrapped(part)
    return (name, *(piece for piece in re.split(r"[/.]", name) if piece))


def _close(glob: str, names: Sequence[str]) -> list[str]:
    text = re.sub(r"\[[^\]]*\]|[*?]", "", glob).strip("/.")
    found = get_close_matches(text, names, _SHOWN, _CLOSE)
    short = {name.rpartition(".")[2]: name for name in names}
    found += [short[name] for name in get_close_matches(text, list(short), _SHOWN, _CLOSE)]
    return list(dict.fromkeys(found))[:_SHOWN]
