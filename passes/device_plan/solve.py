"""Unification and completion: which nodes are one, given the hard demands and the edges, and where each is.

**Unification.** The demands are in the classes before the first edge is looked at. Then, in this order:

1. firm edges into classes that already have a scope: an operation's placement reaches its operands;
2. the other firm edges: everything without a demand follows its neighbours;
3. free annotations, each where nothing forbids it;
4. propagation to open classes and loop boundaries (`propagation`, `unify_boundaries`): an argument used only on a
   device is on that device, and a loop around placed operations carries its values there.

An edge whose ends do not join is cut, and capture copies the value. A value with a cut edge is needed on two
scopes, so it no longer drags users that nobody placed to its own: they stay open and take the default.
This subsumes the repair that TVM runs before its solver (issue 15019), siblings and third users included.

**Completion** ``default``: scopes for what the program leaves open. TVM's rules: a function's results take the
global default, its arguments the scope of its first result, all else the global default. Ids and memory scopes
never flow between device types. An argument does not follow a result that itself follows something placed: what
is not annotated stays on the default.

**Refinement.** Scopes on both ends of an edge that differ only in open fields (a memory scope, a target) are
made one, so that naming a memory later does not cause copies.
"""

from collections.abc import Iterable
from itertools import combinations

from devscope.dialects.device import ScopeAttr
from devscope.passes.device_plan.domains import HOST_NODE
from devscope.passes.device_plan.edges import BOUNDARY, FIRM, FREE
from devscope.passes.device_plan.propagation import propagate
from devscope.passes.device_plan.scope_table import CONFLICT, OPEN
from devscope.passes.device_plan.signatures import Signature
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
        if edge.kind == BOUNDARY and followers.isdisjoint((domains.find(edge.src), domains.find(edge.dst))):
            domains.unify(edge.src, edge.dst, edge.reason)


def complete(system: System, followers: set[int]) -> None:
    """Close every class: afterwards each has a device type and an id."""
    uses = (site.signature for site in system.sites)
    for signature in (*system.signatures.values(), *system.externals.values(), *uses):
        _complete_signature(system, signature, followers)
    _close(system, system.domains.roots(), system.default)


def _complete_signature(system: System, signature: Signature, followers: set[int]) -> None:
    domains = system.domains
    results = [part for node in signature.results for part in domains.first_order(node)]
    first = domains.find(results[0]) if results else HOST_NODE
    _close(system, results, system.default)
    if first != HOST_NODE and first not in followers:
        reference = system.scopes.attributes[domains.scope[first]]
        for index, node in enumerate(signature.arguments):
            parts = domains.first_order(node)
            for part in parts:
                if not system.scopes.has_type[domains.scope_of(part)]:
                    system.choices[part] = ("first_result", signature.op, index)
            _close(system, parts, reference)


def _close(system: System, nodes: Iterable[int], default: ScopeAttr) -> None:
    domains, scopes = system.domains, system.scopes
    closed: dict[int, int] = {}
    for node in nodes:
        root = domains.find(node)
        scope = domains.scope[root]
        if scope not in closed:
            closed[scope] = scopes.closed(scope, default)
        domains.scope[root] = closed[scope]


def refine(system: System) -> None:
    """Join scopes that meet at an edge and differ in open fields only.

    Ends that are equal already are united too: what one of them learns holds for both.
    """
    if system.completed_unions is None:
        system.completed_unions = system.domains.union_count
    if not _differ_in_open_fields(system):
        return
    for number in range(len(system.edges)):
        system.domains.unify_edge(number)


def _differ_in_open_fields(system: System) -> bool:
    """Whether two scopes in use differ, but join."""
    used = sorted({*system.domains.scope} - {OPEN})
    return any(system.scopes.join(left, right) != CONFLICT for left, right in combinations(used, 2))
