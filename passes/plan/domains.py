"""Domains, the terms that planning unifies: ``D ::= scope | fn(D, ...) -> (D, ...)``.

A domain is a node of a union-find forest, an integer. First-order nodes carry the scope that their class must
have, possibly with open fields; function nodes carry one node per argument and result. Whether a node is a
function, and of which arity, is known from the type of the value it stands for and never changes. So no
variable can be bound to a term that contains it: terms are as deep as MLIR's function types are nested, which
is finite, and unification needs no occurs check.

All traversals are iterative. Unions are by rank; `Domains.find` compresses paths, except during a trial, so
that `Domains.rollback` can take unions back.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from xdsl.ir import Operation

from devscope.passes.plan.scopes import CLASH, OPEN, ScopeTable

HOST_NODE = -1
"""In place of a node, for values that are on the host by type."""

Reason: TypeAlias = tuple[str, Operation | None, int]
"""Why two nodes were united or a scope was demanded: a key of `explain.TEXTS`, the operation, and the index
of the operand, argument or result. Turned into text only when somebody asks."""


@dataclass(frozen=True)
class FunctionDomain:
    """The nodes of a function's arguments and results; `HOST_NODE` for those that are on the host by type."""

    arguments: tuple[int, ...]
    results: tuple[int, ...]

    @property
    def components(self) -> tuple[int, ...]:
        return self.arguments + self.results


class Union(NamedTuple):
    """One union, with what is needed to undo it and to explain it."""

    child: int
    root: int
    old_rank: int
    old_scope: int
    old_computes: bool
    left: int
    right: int
    reason: Reason


class Demand(NamedTuple):
    """A scope that a node must have."""

    node: int
    scope: int
    reason: Reason


class Clash(Exception):
    """Two nodes cannot be one: the scopes of their classes do not join. Nothing was changed."""

    def __init__(self, left: int, right: int, reason: Reason) -> None:
        super().__init__(left, right, reason)
        self.left, self.right, self.reason = left, right, reason


class Domains:
    """A union-find forest with scopes, provenance and an undo log."""

    def __init__(self, scopes: ScopeTable) -> None:
        self.scopes = scopes
        self.parent: list[int] = []
        self.scope: list[int] = []
        """Per root: the number of the scope that its class must have."""
        self.computes: list[bool] = []
        """Per root: whether some operation executes on its class, so that placing it places computation."""
        self.functions: dict[int, FunctionDomain] = {}
        self.unions: list[Union] = []
        self.demands: list[Demand] = []
        self._rank: list[int] = []
        self._trial = False

    def new(self, computes: bool = False) -> int:
        """A fresh first-order node, its scope open."""
        node = len(self.parent)
        self.parent.append(node)
        self.scope.append(OPEN)
        self.computes.append(computes)
        self._rank.append(0)
        return node

    def new_function(self, arguments: tuple[int, ...], results: tuple[int, ...]) -> int:
        node = self.new()
        self.functions[node] = FunctionDomain(arguments, results)
        return node

    def find(self, node: int) -> int:
        """The root of the node's class."""
        parent = self.parent
        root = node
        while parent[root] != root:
            root = parent[root]
        if not self._trial:
            while parent[node] != root:
                parent[node], node = root, parent[node]
        return root

    def scope_of(self, node: int) -> int:
        """The number of the scope that the node's class must have."""
        return self.scope[self.find(node)]

    def demand(self, node: int, scope: int, reason: Reason) -> bool:
        """Require a scope of a first-order node's class; False, and nothing changed, when it does not join."""
        root = self.find(node)
        joined = self.scopes.join(self.scope[root], scope)
        if joined == CLASH:
            return False
        self.scope[root] = joined
        self.demands.append(Demand(node, scope, reason))
        return True

    def unify(self, left: int, right: int, reason: Reason) -> bool:
        """Make two first-order nodes one; False, and nothing changed, when their scopes do not join."""
        a, b = self.find(left), self.find(right)
        if a == b:
            return True
        joined = self.scopes.join(self.scope[a], self.scope[b])
        if joined == CLASH:
            return False
        if self._rank[a] < self._rank[b]:
            a, b = b, a
        self.unions.append(Union(b, a, self._rank[a], self.scope[a], self.computes[a], left, right, reason))
        self.parent[b] = a
        self._rank[a] += self._rank[a] == self._rank[b]
        self.scope[a] = joined
        self.computes[a] |= self.computes[b]
        return True

    def link(self, left: int, right: int, reason: Reason) -> None:
        """Make two nodes of any order one, component by component. Raises `Clash`.

        Functions of different arity cannot meet in a module that verifies.
        """
        work = [(left, right)]
        while work:
            left, right = work.pop()
            if HOST_NODE in (left, right) or self.find(left) == self.find(right):
                continue
            first, second = self.functions.get(left), self.functions.get(right)
            if first is not None and second is not None:
                work += zip(first.components, second.components, strict=True)
            elif first is not None or second is not None:
                self._collapse(left, right, work)
            elif not self.unify(left, right, reason):
                raise Clash(left, right, reason)

    def _collapse(self, left: int, right: int, work: list[tuple[int, int]]) -> None:
        """A function meets a first-order node, in an aggregate say: all its components are on that scope."""
        function, plain = (left, right) if left in self.functions else (right, left)
        work += ((component, plain) for component in self.functions[function].components)

    def first_order(self, node: int) -> list[int]:
        """The first-order nodes in a node's term, itself when it is first order."""
        found: list[int] = []
        work = [node]
        while work:
            node = work.pop()
            if node in self.functions:
                work += reversed(self.functions[node].components)
            elif node != HOST_NODE:
                found.append(node)
        return found

    def begin_trial(self) -> int:
        """Start a trial; give what this returns to `commit` or `rollback`. Trials do not nest."""
        self._trial = True
        return len(self.unions)

    def commit(self, mark: int) -> None:
        """Keep what was united since ``mark``."""
        del mark
        self._trial = False

    def rollback(self, mark: int) -> None:
        """Undo every union since ``mark``, latest first."""
        while len(self.unions) > mark:
            union = self.unions.pop()
            self.parent[union.child] = union.child
            self._rank[union.root] = union.old_rank
            self.scope[union.root] = union.old_scope
            self.computes[union.root] = union.old_computes
        self._trial = False

    def chain(self, start: int, opposing: int) -> tuple[list[Reason], Demand] | None:
        """Why the class of ``start`` cannot be on scope ``opposing``.

        The reasons that lead from ``start`` to the nearest demand in its class that does not join
        ``opposing``, and that demand; None when the class demands no such thing. Linear in the size of the
        log: for messages only.
        """
        neighbours: dict[int, list[tuple[int, Reason]]] = {}
        for union in self.unions:
            neighbours.setdefault(union.left, []).append((union.right, union.reason))
            neighbours.setdefault(union.right, []).append((union.left, union.reason))
        demands: dict[int, list[Demand]] = {}
        for demand in self.demands:
            demands.setdefault(demand.node, []).append(demand)
        came_from: dict[int, tuple[int, Reason] | None] = {start: None}
        queue = deque([start])
        while queue:
            node = queue.popleft()
            for demand in demands.get(node, ()):
                if self.scopes.join(demand.scope, opposing) == CLASH:
                    return _path(came_from, node), demand
            for neighbour, reason in neighbours.get(node, ()):
                if neighbour not in came_from:
                    came_from[neighbour] = (node, reason)
                    queue.append(neighbour)
        return None


def _path(came_from: dict[int, tuple[int, Reason] | None], node: int) -> list[Reason]:
    """The reasons from the start of a search to ``node``, in that order."""
    reasons: list[Reason] = []
    step = came_from[node]
    while step is not None:
        node, reason = step
        reasons.append(reason)
        step = came_from[node]
    return reasons[::-1]
