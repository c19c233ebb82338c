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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import Operation

from devscope.passes.device_plan.domains import HOST_NODE, NOT_COMPUTED, PLACED, PLAIN, Reason
from devscope.passes.device_plan.edges import BOUNDARY, LOOSE, SoftConstraint
from devscope.passes.device_plan.scope_table import OPEN
from devscope.passes.device_plan.signatures import Signature, positions_of
from devscope.passes.device_plan.solve import unify_and_propagate
from devscope.passes.device_plan.system import Seconds, System


@dataclass
class SummarisedClass:
    """A class of a solved system, as its callers see it."""

    root: int
    """In the summarised system."""
    scope: int
    computes: bool
    position: int = 0
    """The first thing of the signature that it belongs to, see `positions_of`."""
    seconds: Seconds = ()
    preferred: int = OPEN
    """The scope that propagation would give it."""
    connects: Sequence[int] = ()
    """Of computation in a loop: the classes of the signature that the loop makes one, by number."""


@dataclass
class Summary:
    """A function as its callers see it."""

    system: System
    signature: Signature
    numbers: list[int]
    """Per first-order node of the signature, its class."""
    classes: list[SummarisedClass]
    """First-order nodes of the signature that are one."""
    loops: list[SummarisedClass]
    """Computation inside loops that connects classes of the signature."""


def summarise(system: System, signature: Signature, seconds: Mapping[int, Seconds]) -> Summary:
    """The summary of one function of a solved system; the system stays as it is.

    ``seconds`` is what executes per class, if anybody cares, by root.
    """
    domains = system.domains
    system.summarised = domains.union_count, len(domains.demands)
    classes: dict[int, SummarisedClass] = {}
    numbers: list[int] = []
    numbered: dict[int, int] = {}
    for node, position in zip(
        domains.first_order(signature.node), positions_of(system.domains, signature), strict=True
    ):
        root = domains.find(node)
        numbers.append(numbered.setdefault(root, len(numbered)))
        if root not in classes:
            computes = bool(domains.computes[root])
            classes[root] = SummarisedClass(root, domains.scope[root], computes, position, seconds.get(root, ()))
    listed = list(classes.values())
    loops = _look_ahead(system, listed)
    for loop in loops:
        root = domains.find(loop.root)
        # A loop that the body already made one with a class counts there.
        loop.seconds = () if root in classes else seconds.get(root, ())
    return Summary(system, signature, numbers, listed, loops)


def _look_ahead(system: System, classes: Sequence[SummarisedClass]) -> list[SummarisedClass]:
    """What propagation and loops would do to ``classes``: their preferences, and the loops that connect them."""
    domains = system.domains
    groups: dict[int, list[int]] = {}
    loops: list[SummarisedClass] = []
    with domains.trial():
        followers = unify_and_propagate(system)
        for number, part in enumerate(classes):
            root = domains.find(part.root)
            groups.setdefault(root, []).append(number)
            if root in followers and not system.scopes.has_type[part.scope]:
                part.preferred = domains.scope[root]
        for root, members in groups.items():
            inner = bool(domains.computes[root]) and not any(classes[number].computes for number in members)
            if len(members) > 1 or inner:
                scope = OPEN if root in followers else domains.scope[root]
                position = classes[members[0]].position
                loops.append(SummarisedClass(root, scope, inner, position, connects=members))
    return loops


def instantiate(system: System, summary: Summary, op: Operation) -> Signature:
    """Fresh nodes in ``system`` for a use of the function by ``op``."""
    nodes = [_instantiate_class(system, summary, part, op) for part in summary.classes]
    for loop in summary.loops:
        # A loop's computation, connected as loosely as values that enter and leave loops are.
        node = _instantiate_class(system, summary, loop, op)
        for number in loop.connects:
            _constrain(system, nodes[number], node, summary.classes[number].position, op, BOUNDARY)

    leaves = iter(summary.numbers)
    functions = summary.system.domains.functions

    def mirrored(node: int) -> int:
        if node == HOST_NODE:
            return HOST_NODE
        function = functions.get(node)
        if function is None:
            return nodes[next(leaves)]
        arguments = [mirrored(part) for part in function.arguments]
        return system.domains.new_function(arguments, [mirrored(part) for part in function.results])

    arguments = [mirrored(node) for node in summary.signature.arguments]
    results = [mirrored(node) for node in summary.signature.results]
    return Signature(summary.signature.op, arguments, results, system.domains.new_function(arguments, results))


def _instantiate_class(system: System, summary: Summary, part: SummarisedClass, op: Operation) -> int:
    # A class with a preference is like a placed operation: a copy is expected next to it, outside of the
    # function, where calls can share it.
    node = system.domains.new(NOT_COMPUTED | (PLACED if part.preferred != OPEN else PLAIN), part.computes)
    system.imported[node] = (summary.system, part.root)
    reason: Reason = ("callee", op, part.position)
    if part.seconds:
        system.imported_seconds.append((node, op, part.seconds))
    if part.scope != OPEN:
        system.domains.demand(node, part.scope, reason)
    if part.preferred != OPEN:
        # Where the body would like an open class, as an edge that only propagation looks at.
        there = system.demanded(part.preferred, reason, PLACED)
        system.imported[there] = (summary.system, part.root)
        _constrain(system, node, there, part.position, op, LOOSE)
    return node


def _constrain(system: System, outer: int, inner: int, position: int, op: Operation, kind: int) -> None:
    """An argument flows from the node of the signature into the function, a result out of it."""
    src, dst = (outer, inner) if position >= 0 else (inner, outer)
    system.soft_constraints.append(SoftConstraint(src, dst, op, position, kind))
