"""Completion ``default``: scopes for what the program leaves open.

* **Propagation** has happened already, see `propagation`: an argument used only on a device is on that device, and
  a loop around placed operations carries its values there.
* **Default.** TVM's rules: a function's results take the global default, its arguments the scope of its first
  result, all else the global default. Ids and memory scopes never flow between device types. An argument does
  not follow a result that itself follows something placed: what is not annotated stays on the default.
* **Refinement.** Scopes on both ends of an edge that differ only in open fields (a memory scope, a target) are
  made one, so that naming a memory later does not cause copies.
"""

from __future__ import annotations

from collections.abc import Iterable

from devscope.dialects.device import ScopeAttr
from devscope.passes.device_plan.domains import HOST_NODE
from devscope.passes.device_plan.scope_table import CONFLICT, OPEN
from devscope.passes.device_plan.signatures import Signature
from devscope.passes.device_plan.system import System


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
    return any(
        system.scopes.join(left, right) != CONFLICT
        for number, left in enumerate(used)
        for right in used[number + 1 :]
    )
