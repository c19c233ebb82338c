"""The dataflow graph of a function: which operations there are to take, and what depends on what.

A *node* is an operation that computes, moves or controls, numbered as they stand, blocks after those that dominate
them, and those in a loop or branch before it, so that every edge goes from a smaller number to a larger one.
Constants, empty tensors, fills with constants, and code on scalars and shapes are no nodes: they are
*transparent*, cloned to where they are needed, and edges go through them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from devscope.analysis.captured_values import free_values
from devscope.analysis.classify import is_scalar_code, is_terminator
from devscope.analysis.dominance import reverse_post_order
from devscope.analysis.effects import has_side_effects
from devscope.analysis.patterns.attributes import splat_value
from devscope.analysis.patterns.elements import repetition
from devscope.dialects.device import DeviceCopyOp, OnDeviceOp, RegionOp, ScopeAttr
from devscope.dialects.op_facts import facts_of
from devscope.dialects.scope_attribute import scope_on


@dataclass(frozen=True)
class Node:
    """One operation. ``scope``: where annotations want it, open where they do not say. ``may_be_taken``: whether a
    backend may have it. ``frame``: where the loops, branches and regions around it want calls, whatever it says
    itself."""

    index: int
    op: Operation
    scope: ScopeAttr
    may_be_taken: bool
    frame: ScopeAttr


class Graph:
    """The nodes of ``function`` with their edges."""

    def __init__(self, function: FuncOp) -> None:
        self.function = function
        self.nodes: list[Node] = []
        self.of: dict[Operation, int] = {}
        """The number of an operation."""
        self.inputs: list[tuple[int, ...]] = []
        """Per node, the nodes that it depends on, in order."""
        self.outputs: list[list[int]] = []
        """Per node, the nodes that depend on it: what it stands in does, too."""
        self.users: list[list[int]] = []
        """Per node, the nodes that use a result."""
        self.external: list[bool] = []
        """Per node, whether something that is no node uses a result: a terminator."""
        self._through: dict[Operation, tuple[int, ...]] = {}
        self._wanted = _annotated(function)
        outer = scope_on(function) or ScopeAttr.get()
        for block in reverse_post_order(function.body):
            self._add_block(block, outer, ScopeAttr.get())

    def __len__(self) -> int:
        return len(self.nodes)

    def _add_block(self, block: Block, outer: ScopeAttr, frame: ScopeAttr) -> None:
        for op in block.ops:
            if is_transparent(op):
                if not any(result.uses for result in op.results):  # it stays, and with it what it asks of a value
                    self._pass_on(self._sources(op))
                continue
            facts = facts_of(op)
            own = op.scope if isinstance(op, RegionOp) else scope_on(op)
            scope = self._wanted.get(op) or own or outer
            if facts.is_entered:
                inside = frame.join(own or frame) or frame
                for region in op.regions:
                    for inner in reverse_post_order(region):
                        self._add_block(inner, scope, inside)
            used = self._sources(op)
            if is_terminator(op):
                self._pass_on(used)
                continue
            inner = (self.of.get(one) for one in op.walk()) if facts.is_entered else ()
            needed = {*used, *(number for number in inner if number is not None)}
            index = len(self.nodes)
            self.nodes.append(Node(index, op, scope, _may_be_taken(op), frame))
            self.of[op] = index
            self.inputs.append(tuple(sorted(needed)))
            self.outputs.append([])
            self.users.append([])
            self.external.append(False)
            for number in needed:
                self.outputs[number].append(index)
            for number in used:
                self.users[number].append(index)

    def _pass_on(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            self.external[number] = True

    def _sources(self, op: Operation) -> set[int]:
        """The nodes whose results ``op`` uses, through transparent operations too."""
        return {number for value in free_values(op) for number in self._made_by(value)}

    def _made_by(self, value: SSAValue) -> tuple[int, ...]:
        stack, found, seen = [value], set[int](), set[Operation]()
        while stack:
            owner = stack.pop().owner
            if not isinstance(owner, Operation) or owner in seen:
                continue
            seen.add(owner)
            number = self.of.get(owner)
            if number is not None:
                found.add(number)
            elif owner in self._through:
                found.update(self._through[owner])
            else:
                stack += owner.operands
        result = tuple(sorted(found))
        if isinstance(value.owner, Operation) and value.owner not in self.of:
            self._through[value.owner] = result
        return result

    # Sets of nodes

    def entries(self, inside: frozenset[int]) -> list[int]:
        """Nodes inside that need something from outside."""
        return [n for n in sorted(inside) if any(source not in inside for source in self.inputs[n])]

    def exits(self, inside: frozenset[int]) -> list[int]:
        """Nodes inside whose results something outside uses."""
        return [n for n in sorted(inside) if self.external[n] or any(user not in inside for user in self.users[n])]

    def taps(self, inside: frozenset[int]) -> list[int]:
        """Exits that are used inside, too."""
        return [n for n in self.exits(inside) if any(user in inside for user in self.users[n])]

    def depth(self, inside: frozenset[int]) -> int:
        """Nodes on the longest path inside."""
        longest: dict[int, int] = {}
        for node in sorted(inside):
            longest[node] = 1 + max(
                (longest[source] for source in self.inputs[node] if source in inside), default=0
            )
        return max(longest.values(), default=0)

    def leaves_and_returns(self, inside: frozenset[int]) -> int | None:
        """A node outside on a path from inside to inside: what is run as one thing would wait for itself."""
        last, first = max(inside), min(inside)
        stack = [user for node in inside for user in self.outputs[node] if user not in inside and user < last]
        seen = set(stack)
        while stack:
            node = stack.pop()
            for user in self.outputs[node]:
                if user in inside:
                    return node
                if first < user < last and user not in seen:
                    seen.add(user)
                    stack.append(user)
        return None

    def scope_of(self, inside: Iterable[int]) -> ScopeAttr | None:
        """What the annotations of all nodes want together; None if they contradict each other."""
        scope: ScopeAttr | None = ScopeAttr.get()
        for node in inside:
            scope = scope.join(self.nodes[node].scope) if scope is not None else None
        return scope


@dataclass(frozen=True)
class Limits:
    """What regions of a backend may look like; 0 is no limit."""

    exits: int = 1
    depth: int = 0
    taps: bool = False


def invalid(graph: Graph, inside: frozenset[int], device: ScopeAttr, limits: Limits) -> str | None:
    """Why nodes cannot be taken as one, on ``device``; None if they can."""
    ops = [graph.nodes[node].op for node in sorted(inside)]
    if len({op.parent for op in ops}) != 1:
        return "it crosses the border of a region"
    for node in sorted(inside):
        if not graph.nodes[node].may_be_taken:
            return "it has an operation with effects, or one that controls others"
    scope = graph.scope_of(inside)
    if scope is None:
        return "its operations are annotated with different scopes"
    if scope.join(device) is None:
        return f"its operations are annotated with {scope.short()}, which is not {device.short()}"
    frame = graph.nodes[min(inside)].frame
    if frame.join(device) is None:
        return f"it stands in what is on {frame.short()}, which is not {device.short()}"
    if any(not graph.users[node] and not graph.external[node] for node in inside):
        return "nothing uses what it makes"
    exits = graph.exits(inside)
    if limits.exits and len(exits) > limits.exits:
        return f"{len(exits)} of its operations are used outside, at most {limits.exits} may be"
    if not limits.taps and graph.taps(inside):
        return "what is used inside is used outside, too"
    if limits.depth and graph.depth(inside) > limits.depth:
        return f"it is {graph.depth(inside)} operations deep, at most {limits.depth} may be"
    if len(inside) > 1 and graph.leaves_and_returns(inside) is not None:
        return "an operation outside lies between two inside"
    return None


def is_transparent(op: Operation) -> bool:
    """Whether an operation is cloned to where it is needed, so that nobody has to take it."""
    facts = facts_of(op)
    fills = facts.fills or _is_splat(op)
    if op.regions and not fills:
        return False
    if facts.control is not None:
        return False
    if fills or facts.rematerialised:
        makers = (value.owner for value in op.operands)
        return all(not _is_data(value) for value in op.operands if not isinstance(value.owner, Operation)) and all(
            is_transparent(maker) for maker in makers if isinstance(maker, Operation)
        )
    return is_scalar_code(op)


def _is_splat(op: Operation) -> bool:
    """Whether it makes one constant element after another, as fills do."""
    repeated = repetition(op)
    return repeated is not None and splat_value(repeated[0]) is not None


def _is_data(value: SSAValue) -> bool:
    return hasattr(value.type, "element_type")


def _may_be_taken(op: Operation) -> bool:
    if isinstance(op, OnDeviceOp | DeviceCopyOp | RegionOp) or facts_of(op).control is not None:
        return False
    return bool(op.results) and not has_side_effects(op)


def _annotated(function: FuncOp) -> dict[Operation, ScopeAttr]:
    """Where ``device.on_device`` puts operations: that which makes its operand, and what only that uses."""
    found: dict[Operation, ScopeAttr] = {}
    stack: list[tuple[Operation, ScopeAttr]] = []
    for op in function.walk():
        if isinstance(op, OnDeviceOp) and op.constrains_body and isinstance(op.operand.owner, Operation):
            stack.append((op.operand.owner, op.scope))
    while stack:
        op, scope = stack.pop()
        if op in found or scope_on(op) is not None or isinstance(op, OnDeviceOp | DeviceCopyOp | RegionOp):
            continue
        found[op] = scope
        stack += [(value.owner, scope) for value in op.operands if isinstance(value.owner, Operation)]
    return found


class Quotient:
    """The graph with some sets of nodes as one node each: so that no two of them wait for each other."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._sets: dict[int, frozenset[int]] = {}
        self._last = list(range(len(graph)))
        """Per node, the last one of all sets that begin at it or before: only these lead back from behind it."""

    def add(self, nodes: frozenset[int]) -> None:
        for node in nodes:
            self._sets[node] = nodes
        last = max(nodes)
        for node in range(min(nodes), last):
            if self._last[node] >= last:
                break
            self._last[node] = last

    def whole(self, node: int) -> frozenset[int]:
        """The nodes that are one with ``node``."""
        return self._sets.get(node) or frozenset((node,))

    def makes_cycle(self, nodes: frozenset[int]) -> bool:
        """Whether ``nodes`` as one would depend on themselves."""
        outputs, last = self._graph.outputs, max(nodes)
        while self._last[last] > last:
            last = self._last[last]
        users = {user for node in nodes for user in outputs[node] if user not in nodes}
        stack = sorted(user for user in users if user <= last)
        seen = set(stack)
        while stack:
            for node in self.whole(stack.pop()):
                for user in outputs[node]:
                    if user in nodes:
                        return True
                    if user not in seen and user <= last:
                        seen.update(self.whole(user))
                        stack.append(user)
        return False


def merged(graph: Graph, quotient: Quotient, sets: Sequence[frozenset[int]]) -> list[list[int]]:
    """Which of ``sets`` can be one each, as lists of their numbers: neighbours, greedily from the end, without a
    cycle.

    Neighbours are two of which one uses what the other makes. ``quotient`` has all sets, others as well.
    """
    owner = {node: number for number, nodes in enumerate(sets) for node in nodes}
    groups = {number: [number] for number in range(len(sets))}
    whole = dict(enumerate(sets))
    leader = list(range(len(sets)))

    def find(number: int) -> int:
        while leader[number] != number:
            number = leader[number]
        return number

    changed = True
    while changed:
        changed = False
        for first, second in sorted(_neighbours(graph, sets, owner), reverse=True):
            one, other = find(first), find(second)
            if one == other:
                continue
            union = whole[one] | whole[other]
            if quotient.makes_cycle(union):
                continue
            keep, gone = min(one, other), max(one, other)
            leader[gone] = keep
            whole[keep] = union
            groups[keep] = sorted(groups[keep] + groups.pop(gone))
            quotient.add(union)
            changed = True
    return sorted(groups.values())


def _neighbours(graph: Graph, sets: Sequence[frozenset[int]], owner: dict[int, int]) -> set[tuple[int, int]]:
    blocks = [graph.nodes[min(nodes)].op.parent for nodes in sets]
    found: set[tuple[int, int]] = set()
    for number, nodes in enumerate(sets):
        for node in nodes:
            for user in graph.outputs[node]:
                other = owner.get(user)
                if other is not None and other != number and blocks[other] is blocks[number]:
                    found.add((number, other))
    return found


def numbers(graph: Graph, ops: Iterable[Operation]) -> frozenset[int]:
    """The nodes of operations; those that are transparent have none."""
    return frozenset(number for op in ops if (number := graph.of.get(op)) is not None)
