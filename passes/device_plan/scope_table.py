"""Scopes as small integers, so that the solver joins and compares them without touching attributes."""

from devscope.dialects.device import OPEN_SCOPE, ScopeAttr

OPEN = 0
"""The scope with all fields open."""

CONFLICT = -1
"""The outcome of joining two scopes that no scope satisfies."""


class ScopeTable:
    """Every scope of one planning run, numbered in the order of first appearance."""

    def __init__(self) -> None:
        self.attributes: list[ScopeAttr] = [OPEN_SCOPE]
        self.has_type: list[bool] = [False]
        """Per scope: whether the device type is closed. Until then the scope names no device."""
        self._numbers: dict[ScopeAttr, int] = {OPEN_SCOPE: OPEN}
        self._joins: dict[tuple[int, int], int] = {}

    def number(self, attribute: ScopeAttr) -> int:
        """The number of this scope; equal scopes have equal numbers."""
        found = self._numbers.get(attribute)
        if found is None:
            found = self._numbers[attribute] = len(self.attributes)
            self.attributes.append(attribute)
            self.has_type.append(bool(attribute.type_name))
        return found

    def join(self, left: int, right: int) -> int:
        """The weakest scope that satisfies both, or `CONFLICT`."""
        if left == right or right == OPEN:
            return left
        if left == OPEN:
            return right
        key = (left, right)
        found = self._joins.get(key)
        if found is None:
            joined = self.attributes[left].join(self.attributes[right])
            found = self._joins[key] = CONFLICT if joined is None else self.number(joined)
        return found

    def closed(self, scope: int, default: ScopeAttr) -> int:
        """``scope`` with a device type and an id: from ``default`` where that is legal, else id 0.

        An id never flows between device types (TVM's planner leaks it; see `ScopeAttr.default_from`).
        """
        return self.number(close_scope(self.attributes[scope], default))

    def short(self, scope: int) -> str:
        return self.attributes[scope].short()


def close_scope(scope: ScopeAttr, default: ScopeAttr) -> ScopeAttr:
    """``scope`` completed from ``default``; an id that is still open becomes 0.

    A scope that names a device already is left alone: its memory scope and target stay open until somebody
    asks for one. So what an earlier planning wrote does not depend on later defaults.
    """
    if scope.type_name and scope.id_value >= 0:
        return scope
    scope = scope.default_from(default)
    return scope.default_from(ScopeAttr.get(scope.type_name, 0)) if scope.id_value < 0 else scope
