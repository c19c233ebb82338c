"""Domains, the terms that planning unifies: ``D ::= scope | fn(D, ...) -> (D, ...)``.

A domain is a node of a union-find forest, an integer. First-order nodes carry the scope that their class must
have, possibly with open fields; function nodes carry one node per argument and result. Whether a node is a
function, and of which arity, is known from the type of the value it stands for and never changes. So no
variable can be bound to a term that contains it: terms are as deep as MLIR's function types are nested, which
is finite, and unification needs no occurs check.

All traversals are iterative. Unions are by rank, and `Domains.find` compresses paths.
"""

from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import NamedTuple, TypeAlias

from xdsl.ir import Operation

from devscope.passes.device_plan.edges import Edges
from devscope.passes.device_plan.scope_table import CONFLICT, OPEN, ScopeTable

HOST_NODE = -1
"""In place of a node, for values that are on the host by type."""

REMATERIALISED = -2
"""In place of a node, for values that are computed again on every scope that needs them, never copied."""

PLAIN, PLACED, ANNOTATED, CARRIED_OUT = 0, 1, 2, 4
NOT_COMPUTED, HEADER, INDIRECT, UNMOVABLE, FIXED = 8, 16, 32, 64, 128
"""Flags of nodes.

* `PLACED`: all its edges are loose.
* `ANNOTATED`: a body-only ``device.on_device``; its edges are loose, except to a ``func.return``: an annotated
  result fixes the function's result (TVM's rewrite of top-level annotations).
* `CARRIED_OUT`: a loop's result; its edges are boundaries.
* `HEADER`: an argument of a block that begins a loop; its edges to uses outside the loop are boundaries.
* `NOT_COMPUTED`: an argument, a carried value or a copy. An annotation of it that cannot hold means "a copy of
  it there"; on a computed value it is an error, since one operation cannot execute on two scopes.
* `INDIRECT`: the result of an annotation or a copy. Planning replaces it by what it stands for, which may turn out
  to be elsewhere.
* `UNMOVABLE`: some value with this node is no tensor.
* `FIXED`: a copy, or a result that an annotation fixes. Its users follow it before they follow other operands.
"""

Reason: TypeAlias = tuple[str, Operation | None, int]
"""Why two nodes were united or a scope was demanded: a key of `diagnostics.TEXTS`, the operation, and the index
of the operand, argument or result. Turned into text only when somebody asks."""


class FunctionDomain(NamedTuple):
    """The nodes of a function's arguments and results; `HOST_NODE` for those that are on the host by type."""

    arguments: tuple[int, ...]
    results: tuple[int, ...]

    @property
    def components(self) -> tuple[int, ...]:
        return self.arguments + self.results


class Union(NamedTuple):
    """Two nodes that were made one, and why."""

    left: int
    right: int
    reason: Reason


class Demand(NamedTuple):
    """A scope that a node must have."""

    node: int
    scope: int
    reason: Reason


class Conflict(Union):
    """Two nodes that must be one and cannot: the scopes of their classes do not join."""

    __slots__ = ()


class Domains:
    """A union-find forest with scopes and provenance."""

    def __init__(self, scopes: ScopeTable) -> None:
        self.scopes = scopes
        self.edges = Edges()
        """The uses that `unify_edge` knows by number."""
        self.parent: list[int] = []
        """Per node, one nearer to the root of its class; for a root with rank r, ``~r``, which is negative."""
        self.scope: list[int] = []
        """Per root: the number of the scope that its class must have."""
        self.computes = bytearray()
        """Per root: whether some operation executes on its class, so that placing it places computation."""
        self.flags: list[int] = []
        """Per node, what the constraint system knows of it."""
        self.functions: dict[int, FunctionDomain] = {}
        self.demands: list[Demand] = []
        self.conflicts: list[Conflict] = []
        """What `link` could not make one. With any, the program is refused."""
        self._log: list[int | Union] = []
        """Every union, in order. One along an edge is kept as the number of the edge."""

    def new(self, flags: int = PLAIN, computes: bool = False) -> int:
        """A fresh first-order node, its scope open."""
        parent = self.parent
        node = len(parent)
        parent.append(-1)
        self.scope.append(OPEN)
        self.computes.append(computes)
        self.flags.append(flags)
        return node

    def new_function(self, arguments: Iterable[int], results: Iterable[int]) -> int:
        node = self.new(UNMOVABLE)
        self.functions[node] = FunctionDomain(tuple(arguments), tuple(results))
        return node

    def find(self, node: int) -> int:
        """The root of the node's class."""
        parent = self.parent
        root = node
        while (above := parent[root]) >= 0:
            root = above
        while (above := parent[node]) >= 0 and above != root:
            parent[node], node = root, above
        return root

    def roots(self) -> list[int]:
        """One node per class."""
        return [node for node, above in enumerate(self.parent) if above < 0]

    def final_scopes(self) -> list[int]:
        """Per node, the scope of its class. For when no class changes any more."""
        parent, scope = self.parent, self.scope
        for node, above in enumerate(parent):
            if above >= 0:
                scope[node] = scope[above if parent[above] < 0 else self.find(node)]
        return scope

    def scope_of(self, node: int) -> int:
        """The number of the scope that the node's class must have; closed once planning is complete."""
        return self.scope[self.find(node)]

    def demand(self, node: int, scope: int, reason: Reason) -> bool:
        """Require a scope of a first-order node's class; False, and nothing changed, when it does not join."""
        root = self.find(node)
        joined = self.scopes.join(self.scope[root], scope)
        if joined == CONFLICT:
            return False
        self.scope[root] = joined
        self.demands.append(Demand(node, scope, reason))
        return True

    def unify(self, left: int, right: int, reason: Reason) -> bool:
        """Make two first-order nodes one; False, and nothing changed, when their scopes do not join."""
        return self._unite(left, right, Union(left, right, reason))

    def unify_edge(self, number: int) -> bool:
        """`unify` both ends of an edge, because of it."""
        return self._unite(self.edges.src[number], self.edges.dst[number], number)

    def unify_edges(self, numbers: Iterable[int], contested: set[int]) -> list[int]:
        """`unify_edge` along many edges, in order. The source of one that fails joins ``contested``; edges from
        there into classes with an open scope are left out. Returns those that fail or are left out."""
        cut: list[int] = []
        parent, scope, computes = self.parent, self.scope, self.computes
        sources, destinations, log = self.edges.src, self.edges.dst, self._log
        for number in numbers:
            source, destination = sources[number], destinations[number]
            a = parent[source]
            if a < 0:
                a = source
            elif parent[a] >= 0:
                a = self.find(source)
            b = destination if parent[destination] < 0 else self.find(destination)
            if a == b:
                continue
            if contested and source in contested and scope[b] == OPEN:
                cut.append(number)
            elif parent[b] == -1 and parent[a] < -1 and scope[b] == OPEN:
                # The usual case of `_unite`, without the call, which would take a sixth of planning a chain (3.0
                # and 3.6 us per operation): a node on its own joins a class.
                parent[b] = a
                computes[a] |= computes[b]
                log.append(number)
            elif not self._unite(a, b, number):
                contested.add(source)
                cut.append(number)
        return cut

    def _unite(self, left: int, right: int, entry: int | Union) -> bool:
        parent, scope = self.parent, self.scope
        a = left if parent[left] < 0 else self.find(left)
        b = right if parent[right] < 0 else self.find(right)
        if a == b:
            return True
        joined = scope[a]
        if joined != scope[b]:
            joined = self.scopes.join(joined, scope[b])
            if joined == CONFLICT:
                return False
        computes = self.computes
        if parent[a] > parent[b]:  # the class of lower rank goes below the other
            a, b = b, a
        if parent[a] == parent[b]:
            parent[a] -= 1
        parent[b] = a
        scope[a] = joined
        computes[a] |= computes[b]
        self._log.append(entry)
        return True

    def link(self, left: int, right: int, reason: Reason) -> None:
        """Make two nodes of any order one, component by component; what cannot be is added to ``conflicts``.

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
            elif (function := first or second) is not None:
                # It meets a first-order node, in an aggregate say: all its components are on that scope.
                plain = left if first is None else right
                work += ((component, plain) for component in function.components)
            elif not self.unify(left, right, reason):
                self.conflicts.append(Conflict(left, right, reason))

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

    @property
    def union_count(self) -> int:
        return len(self._log)

    def unions(self, count: int | None = None) -> Iterator[Union]:
        """The first ``count`` unions, or all, in order."""
        for entry in islice(self._log, count):
            if isinstance(entry, int):
                edge = self.edges[entry]
                entry = Union(edge.src, edge.dst, edge.reason)
            yield entry

    @contextmanager
    def trial(self) -> Generator[None]:
        """What is united and demanded inside is taken back at the end; nodes may not be made."""
        parent, scope, computes = self.parent[:], self.scope[:], self.computes[:]
        unions, demands = len(self._log), len(self.demands)
        yield
        self.parent[:], self.scope[:], self.computes[:] = parent, scope, computes
        del self._log[unions:], self.demands[demands:]
