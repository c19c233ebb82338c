"""Unification: which nodes are one, given the hard demands and the edges.

The demands are in the classes before the first edge is looked at. Then, in this order:

1. firm edges into classes that already have a scope: an operation's placement reaches its operands;
2. the other firm edges: everything without a demand follows its neighbours;
3. free annotations, each where nothing forbids it;
4. propagation to open classes and loop boundaries (`propagation`, `unify_boundaries`).

An edge whose ends do not join is cut, and capture copies the value. A value with a cut edge is needed on two
scopes, so it no longer drags users that nobody placed to its own: they stay open and take the default.
This subsumes the repair that TVM runs before its solver (issue 15019), siblings and third users included.
"""

from __future__ import annotations

from devscope.passes.device_plan.edges import BOUNDARY, FIRM, FREE
from devscope.passes.device_plan.propagation import propagate
from devscope.passes.device_plan.scope_table import OPEN
from devscope.passes.device_plan.system import System


def unify(system: System) -> None:
    """Steps 1 to 3. Never fails: what does not unify is cut."""
    unify_firm(system)
    try_free(system)


def unify_and_propagate(system: System) -> set[int]:
    """Step 4. The roots of the classes that follow something placed."""
    followers: set[int] = set()
    propagate(system, followers)
    unify_boundaries(system, followers)
    propagate(system, followers)
    return followers


def unify_firm(system: System) -> None:
    """Steps 1 and 2, each one pass over the firm edges in order."""
    domains, edges = system.domains, system.edges
    find, unify = domains.find, domains.unify_edge
    parent, scope = domains.parent, domains.scope
    contested: set[int] = set()
    edges.cut = cut = []
    later: list[int] = []
    for number, (dst, kind) in enumerate(zip(edges.dst, edges.kind, strict=True)):
        if kind != FIRM:
            continue
        if scope[dst if parent[dst] < 0 else find(dst)] == OPEN:
            later.append(number)
        elif not unify(number):
            contested.add(edges.src[number])
            cut.append(number)
    cut += domains.unify_edges(later, contested)


def try_free(system: System) -> None:
    """Step 3: avoid copies that an annotation allows but nothing needs (TVM's phase 3a)."""
    for edge in system.edges.of_kind(FREE):
        system.domains.unify(edge.src, edge.dst, edge.reason)


def unify_boundaries(system: System, followers: set[int]) -> None:
    """Unify loop-carried values with what enters and leaves the loop.

    ``followers`` are left alone: a loop that a placed operation pulled to a device does not pull
    what stands before and after it along.
    """
    domains = system.domains
    for edge in (*system.edges.of_kind(BOUNDARY), *system.soft_constraints):
        if edge.kind == BOUNDARY and domains.find(edge.src) not in followers:
            if domains.find(edge.dst) in followers:
                continue
            domains.unify(edge.src, edge.dst, edge.reason)
