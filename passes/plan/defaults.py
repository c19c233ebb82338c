"""Completion ``default``: scopes for what the program leaves open.

* **Adoption.** A class in which nothing executes (arguments, results, carried values) takes the scope of its
  first placed user, else of the first placed operation that flows into it: an argument used only on a device
  is on that device, and a loop around placed operations carries its values there.
* **Default.** TVM's rules: a function's results take the global default, its arguments the scope of its first
  result, all else the global default. Ids and memory scopes never flow between device types. An argument does
  not follow a result that was itself adopted: what is not annotated stays on the default.
* **Refinement.** Scopes on both ends of an edge that differ only in open fields (a memory scope, a target) are
  made one, so that naming a memory later does not cause copies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from devscope.dialects.device import ScopeAttr
from devscope.passes.plan.domains import HOST_NODE
from devscope.passes.plan.scopes import CLASH, OPEN
from devscope.passes.plan.system import BOUNDARY, LOOSE, PLACED, Edge, Signature, System


def adopt(system: System, adopted: set[int]) -> set[int]:
    """Give open classes in which nothing executes a scope from next door; their roots join ``adopted``.

    Repeated until nothing changes; as callers stand before callees and definitions before uses, the second
    round mostly finds nothing to do.
    """
    edges = [edge for edge in system.edges if edge.kind in (LOOSE, BOUNDARY)]
    progress = bool(edges or system.remat_uses)
    while progress:
        progress = _adopt_from_uses(system, edges, adopted)
        progress |= _adopt_from_definitions(system, edges, adopted)
        progress = progress or _adopt_from_remats(system, adopted)
    return adopted


def _may_adopt(system: System, root: int) -> bool:
    return not system.domains.computes[root] and not system.scopes.has_type[system.domains.scope[root]]


def _adopt_from_uses(system: System, edges: list[Edge], adopted: set[int]) -> bool:
    """Uses before definitions, so that one pass carries a scope through nested loops and calls."""
    domains, has_type = system.domains, system.scopes.has_type
    candidates: dict[int, tuple[int, Edge]] = {}
    for edge in reversed(edges):
        src, dst = domains.find(edge.src), domains.find(edge.dst)
        if src == dst or not _may_adopt(system, src):
            continue
        candidate = candidates.get(dst)
        if edge.kind == BOUNDARY and dst not in adopted and candidate is None:
            continue
        scope = candidate[0] if candidate is not None else domains.scope[dst]
        if has_type[scope]:
            candidates[src] = (scope, edge)
    return _adopt_all(system, candidates, adopted)


def _adopt_from_definitions(system: System, edges: list[Edge], adopted: set[int]) -> bool:
    domains, has_type = system.domains, system.scopes.has_type
    candidates: dict[int, tuple[int, Edge]] = {}
    for edge in edges:
        src, dst = domains.find(edge.src), domains.find(edge.dst)
        if src == dst or dst in candidates or not _may_adopt(system, dst):
            continue
        candidate = candidates.get(src)
        if edge.kind == BOUNDARY and src not in adopted and candidate is None:
            continue
        if edge.kind == LOOSE and not system.flags[edge.src] & PLACED:
            continue  # Out of an annotation: TVM's rule is the default.
        scope = candidate[0] if candidate is not None else domains.scope[src]
        if has_type[scope]:
            candidates[dst] = (scope, edge)
    return _adopt_all(system, candidates, adopted)


def _adopt_all(system: System, candidates: dict[int, tuple[int, Edge]], adopted: set[int]) -> bool:
    progress = False
    for root, (scope, edge) in candidates.items():
        if system.domains.demand(root, scope, ("adopted", edge.op, edge.operand)):
            adopted.add(root)
            progress = True
    return progress


def _adopt_from_remats(system: System, adopted: set[int]) -> bool:
    """A carried value that only a placed constant flows into is where the constant was placed."""
    progress = False
    for use in system.remat_uses:
        root = system.domains.find(use.dst)
        scope = system.remat_scopes.get(system.root(use.op.operands[use.operand]))
        if scope is None or not _may_adopt(system, root):
            continue
        if system.domains.demand(root, scope, ("adopted", use.op, use.operand)):
            adopted.add(root)
            progress = True
    return progress


def complete(system: System, adopted: set[int]) -> None:
    """Close every class: afterwards each has a device type and an id."""
    for signature in system.signatures.values():
        _complete_signature(system, signature, adopted)
    _close(system, range(len(system.domains.parent)), system.default)


def _complete_signature(system: System, signature: Signature, adopted: set[int]) -> None:
    domains = system.domains
    results = [part for node in signature.results for part in domains.first_order(node)]
    first = domains.find(results[0]) if results else HOST_NODE
    _close(system, results, system.default)
    if first != HOST_NODE and first not in adopted:
        reference = system.scopes.attributes[domains.scope[first]]
        _close(system, (part for node in signature.arguments for part in domains.first_order(node)), reference)


def _close(system: System, nodes: Iterable[int], default: ScopeAttr) -> None:
    domains, scopes = system.domains, system.scopes
    closed: dict[int, int] = {}
    for node in nodes:
        root = domains.find(node)
        scope = domains.scope[root]
        if scope not in closed:
            closed[scope] = scopes.closed(scope, default)
        domains.scope[root] = closed[scope]


COMPLETIONS: dict[str, Callable[[System, set[int]], None]] = {"default": complete}
"""Ways to choose the scopes that are still open after unification and adoption, by name."""


def refine(system: System) -> None:
    """Join scopes that meet at an edge and differ in open fields only.

    Ends that are equal already are united too: what one of them learns holds for both.
    """
    if not _differ_in_open_fields(system):
        return
    for edge in system.edges:
        system.domains.unify(edge.src, edge.dst, ("use", edge.op, edge.operand))


def _differ_in_open_fields(system: System) -> bool:
    """Whether two scopes in use differ, but join."""
    used = sorted({scope for scope in system.domains.scope if scope != OPEN})
    return any(
        system.scopes.join(left, right) != CLASH
        for number, left in enumerate(used)
        for right in used[number + 1 :]
    )
