"""Unification: which nodes are one, given the hard demands and the edges.

The demands are in the classes before the first edge is looked at. Then, in this order:

1. firm edges into classes that already have a scope: an operation's placement reaches its operands;
2. the other firm edges: everything without a demand follows its neighbours;
3. free annotations, each a trial that is taken back when it fails;
4. adoption and loop boundaries (`defaults.adopt`, `boundaries`).

An edge whose ends do not join is cut, and capture copies the value. A value with a cut edge is needed on two
scopes, so it no longer drags users that nobody placed to its own: they stay open and take the default.
This subsumes the repair that TVM runs before its solver (issue 15019), siblings and third users included.
"""

from __future__ import annotations

from devscope.passes.plan.defaults import adopt
from devscope.passes.plan.scopes import OPEN
from devscope.passes.plan.system import BOUNDARY, FIRM, FREE, System


def solve(system: System) -> set[int]:
    """Unify along all edges. Never fails: what does not unify is cut. The roots that adopted a scope."""
    unify_firm(system)
    try_free(system)
    adopted = adopt(system, set())
    boundaries(system, adopted)
    return adopt(system, adopted)


def unify_firm(system: System) -> None:
    """Steps 1 and 2, each one pass over the firm edges in order."""
    domains = system.domains
    find, scope, unify = domains.find, domains.scope, domains.unify
    contested: set[int] = set()
    later = []
    for edge in system.edges:
        if edge.kind != FIRM:
            continue
        if scope[find(edge.dst)] == OPEN:
            later.append(edge)
        elif not unify(edge.src, edge.dst, ("use", edge.op, edge.operand)):
            contested.add(edge.src)
    for edge in later:
        src = edge.src
        if src in contested and scope[find(edge.dst)] == OPEN:
            continue
        if not unify(src, edge.dst, ("use", edge.op, edge.operand)):
            contested.add(src)


def try_free(system: System) -> None:
    """Step 3: avoid copies that an annotation allows but nothing needs (TVM's phase 3a)."""
    domains = system.domains
    for edge in system.edges:
        if edge.kind == FREE:
            mark = domains.begin_trial()
            if domains.unify(edge.src, edge.dst, ("use", edge.op, edge.operand)):
                domains.commit(mark)
            else:
                domains.rollback(mark)


def boundaries(system: System, adopted: set[int]) -> None:
    """Unify loop-carried values with what enters and leaves the loop.

    Values that adopted a scope are left alone: a loop that a placed operation pulled to a device does not pull
    what stands before and after it along.
    """
    domains = system.domains
    for edge in system.edges:
        if edge.kind == BOUNDARY and domains.find(edge.src) not in adopted:
            if domains.find(edge.dst) in adopted:
                continue
            domains.unify(edge.src, edge.dst, ("use", edge.op, edge.operand))
