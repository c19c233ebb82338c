"""What callers need to know of a function: which parts of its signature are one, and what they demand.

A function is planned for each of its uses as if it stood there alone (Hindley-Milner's let-polymorphism, with
scopes for types). Its body is solved once, in isolation, and *summarised*: first-order nodes of the signature
that the body makes one form a *class*; a class has the scope that the body demands, which may be open. A use of
the function gets fresh nodes, one per class. So planning is linear in the program however often functions are
called, and a caller never sees which other callers there are.

Two things about open classes are softer than demands, and become `System.soft_constraints` at the use:

* the scope that propagation would give the class, such as an argument's that only placed operations use;
* that a loop in the body connects classes (`solve.unify_boundaries`), by way of what is computed in the loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from devscope.passes.device_plan.domains import HOST_NODE
from devscope.passes.device_plan.edges import BOUNDARY, LOOSE, SoftConstraint
from devscope.passes.device_plan.node_flags import NOT_COMPUTED, PLACED, PLAIN
from devscope.passes.device_plan.scope_table import OPEN
from devscope.passes.device_plan.signatures import Signature, positions_of
from devscope.passes.device_plan.solve import unify_and_propagate
from devscope.passes.device_plan.system import Seconds, System


@dataclass
class SignatureClass:
    """First-order nodes of a signature that are one."""

    root: int
    """In the summarised system."""
    positions: list[int]
    """What they belong to, see `positions_of`."""
    scope: int
    computes: bool
    preferred: int = OPEN
    """The scope that propagation would give it."""
    seconds: Seconds = ()


@dataclass
class LoopSummary:
    """Computation inside loops that connects classes of the signature."""

    root: int
    scope: int
    computes: bool
    classes: list[int]
    seconds: Seconds = ()


@dataclass
class Summary:
    """A function as its callers see it."""

    func: FuncOp
    system: System
    signature: Signature
    numbers: list[int]
    """Per first-order node of the signature, its class."""
    classes: list[SignatureClass]
    loops: list[LoopSummary]


def summarise(system: System, signature: Signature, seconds: Mapping[int, Seconds]) -> Summary:
    """The summary of one function of a solved system; the system stays as it is.

    ``seconds`` is what executes per class, if anybody cares, by root.
    """
    domains = system.domains
    system.summarised = len(domains.unions), len(domains.demands)
    classes: dict[int, SignatureClass] = {}
    numbers: list[int] = []
    numbered: dict[int, int] = {}
    for node, position in zip(
        domains.first_order(signature.node), positions_of(system.domains, signature), strict=True
    ):
        root = domains.find(node)
        if root not in classes:
            classes[root] = SignatureClass(root, [], domains.scope[root], bool(domains.computes[root]))
            classes[root].seconds = seconds.get(root, ())
        classes[root].positions.append(position)
        numbers.append(numbered.setdefault(root, len(numbered)))
    listed = list(classes.values())
    loops = _look_ahead(system, listed)
    for loop in loops:
        root = domains.find(loop.root)
        # A loop that the body already made one with a class counts there.
        loop.seconds = () if root in classes else seconds.get(root, ())
    return Summary(signature.op, system, signature, numbers, listed, loops)


def _look_ahead(system: System, classes: Sequence[SignatureClass]) -> list[LoopSummary]:
    """Find out what propagation and loops would do to ``classes``, and undo it."""
    domains = system.domains
    mark, scopes, demands = domains.begin_trial(), domains.scope[:], len(domains.demands)
    followers = unify_and_propagate(system)
    groups: dict[int, list[int]] = {}
    for number, part in enumerate(classes):
        root = domains.find(part.root)
        groups.setdefault(root, []).append(number)
        if root in followers and not system.scopes.has_type[part.scope]:
            part.preferred = domains.scope[root]
    loops: list[LoopSummary] = []
    for root, members in groups.items():
        inner = bool(domains.computes[root]) and not any(classes[number].computes for number in members)
        if len(members) > 1 or inner:
            scope = OPEN if root in followers else domains.scope[root]
            loops.append(LoopSummary(root, scope, inner, members))
    domains.rollback(mark)
    domains.scope[:] = scopes
    del domains.demands[demands:]
    return loops


def instantiate(system: System, summary: Summary, op: Operation) -> Signature:
    """Fresh nodes in ``system`` for a use of the function by ``op``."""
    domains = system.domains
    nodes: list[int] = []
    for part in summary.classes:
        # A class with a preference is like a placed operation: a copy is expected next to it, outside of the
        # function, where calls can share it.
        node = system.new(NOT_COMPUTED | (PLACED if part.preferred != OPEN else PLAIN), part.computes)
        nodes.append(node)
        system.imported[node] = (summary.system, part.root)
        if part.seconds:
            system.imported_seconds.append((node, op, part.seconds))
        if part.scope != OPEN:
            domains.demand(node, part.scope, ("callee", op, part.positions[0]))
        if part.preferred != OPEN:
            _instantiate_preference(system, summary, part, node, op)
    for loop in summary.loops:
        _instantiate_loop(system, summary, loop, nodes, op)

    leaves = iter(summary.numbers)
    functions = summary.system.domains.functions

    def mirrored(node: int) -> int:
        if node == HOST_NODE:
            return HOST_NODE
        function = functions.get(node)
        if function is None:
            return nodes[next(leaves)]
        arguments = [mirrored(part) for part in function.arguments]
        return system.new_function(arguments, [mirrored(part) for part in function.results])

    arguments = [mirrored(node) for node in summary.signature.arguments]
    results = [mirrored(node) for node in summary.signature.results]
    return Signature(summary.func, arguments, results, system.new_function(arguments, results), has_plan=False)


def _instantiate_preference(
    system: System, summary: Summary, part: SignatureClass, node: int, op: Operation
) -> None:
    """Where the body would like an open class, as an edge that only propagation looks at."""
    there = system.demanded(part.preferred, ("callee", op, part.positions[0]), PLACED)
    system.imported[there] = (summary.system, part.root)
    is_argument = part.positions[0] >= 0
    src, dst = (node, there) if is_argument else (there, node)
    system.soft_constraints.append(SoftConstraint(src, dst, op, part.positions[0], LOOSE))


def _instantiate_loop(
    system: System, summary: Summary, loop: LoopSummary, nodes: Sequence[int], op: Operation
) -> None:
    """A loop's computation, connected as loosely as values that enter and leave loops are."""
    node = system.new(NOT_COMPUTED, loop.computes)
    system.imported[node] = (summary.system, loop.root)
    if loop.seconds:
        system.imported_seconds.append((node, op, loop.seconds))
    if loop.scope != OPEN:
        system.domains.demand(node, loop.scope, ("callee", op, summary.classes[loop.classes[0]].positions[0]))
    for number in loop.classes:
        position = summary.classes[number].positions[0]
        src, dst = (nodes[number], node) if position >= 0 else (node, nodes[number])
        system.soft_constraints.append(SoftConstraint(src, dst, op, position, BOUNDARY))
