"""Regions become private functions, and calls of these.

A function has ``device.compiler``, ``device.target`` and ``device.scope``; made of one claim it has
``device.composite``, too, ``"BACKEND.PATTERN"``. Of several claims it has calls of one function each, which have
it. Parameters stand as they are first used, each once; constants, empty tensors and fills are made inside.
Functions that are equal are one.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from heapq import heapify, heappop, heappush
from itertools import chain, pairwise

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from devscope.analysis.captured_values import definitions_in, free_values
from devscope.analysis.classify import is_tensor
from devscope.analysis.effects import has_side_effects
from devscope.analysis.function_structure import fingerprint
from devscope.dialects.device import COMPILER_ATTR, COMPOSITE_ATTR, SCOPE_ATTR, TARGET_ATTR
from devscope.dialects.op_facts import facts_of
from devscope.dialects.scope_attribute import ARGUMENTS, RESULTS, set_signature_attributes, unplaced
from devscope.passes.device_partition.backends import PartitionBackend, scope_of, target_of
from devscope.passes.device_partition.claims import Claim
from devscope.passes.device_partition.eager import Claimed
from devscope.passes.device_partition.graph import Graph, is_transparent
from devscope.rewriting.blocks import erase_operations, reorder
from devscope.rewriting.functions import fresh_name, taken_names


class Outliner:
    """Makes the functions of one module."""

    def __init__(self, module: ModuleOp) -> None:
        self._taken = taken_names(module)
        self._known: dict[Hashable, func.FuncOp] = {}
        self._last: dict[func.FuncOp, func.FuncOp] = {}
        """Behind which function the next one of a caller stands."""

    def outline(self, graph: Graph, regions: Sequence[Claimed]) -> list[str]:
        """Replace regions, which are in program order, by calls; the names of the functions that are called."""
        caller, names, blocks = graph.function, list[str](), dict[Block, None]()
        for region in regions:
            backend, calls = region.backend, list[func.CallOp]()
            for claim in in_order_of_use(graph, region.claims):
                members = [graph.nodes[node].op for node in sorted(claim.nodes)]
                calls.append(self._replace(members, caller, claim.pattern, backend, claim.name))
            if len(calls) > 1:
                block = calls[0].parent
                assert block is not None
                blocks[block] = None
                calls = [self._replace(calls, caller, "region", backend, None)]
            names.append(calls[0].callee.string_value())
        for block in blocks:
            _sort(block)
        _drop_dead(caller)
        return names

    def _replace(
        self,
        members: Sequence[Operation],
        caller: func.FuncOp,
        pattern: str,
        backend: PartitionBackend,
        composite: str | None,
    ) -> func.CallOp:
        function, inputs, outputs = outlined(members, backend, composite)
        name = self._insert(function, caller, f"{caller.sym_name.data}_{backend.name}_{pattern}")
        last = members[-1]
        call = func.CallOp(name, inputs, [value.type for value in outputs])
        call.location = last.location
        assert last.parent is not None
        last.parent.insert_op_after(call, last)
        for value, result in zip(outputs, call.results, strict=True):
            result.name_hint = value.name_hint
            value.replace_all_uses_with(result)
        erase_operations(reversed(members))
        return call

    def _insert(self, function: func.FuncOp, caller: func.FuncOp, base: str) -> str:
        """Put a function into the module, unless there is an equal one; the name."""
        key = fingerprint(function, {}, checks=False)
        known = self._known.get(key)
        if known is not None:
            function.erase()
            return known.sym_name.data
        name = fresh_name(re.sub(r"[^\w$.]", "_", base), self._taken)
        function.properties["sym_name"] = StringAttr(name)
        Rewriter.insert_op(function, InsertPoint.after(self._last.get(caller, caller)))
        self._last[caller] = self._known[key] = function
        return name


def in_order_of_use(graph: Graph, claims: Sequence[Claim]) -> list[Claim]:
    """Claims of one region, each after those whose results it uses."""
    owner = {node: number for number, claim in enumerate(claims) for node in claim.nodes}
    users: list[set[int]] = [set() for _ in claims]
    for node, number in owner.items():
        for source in graph.inputs[node]:
            if owner.get(source, number) != number:
                users[owner[source]].add(number)
    waits = [0] * len(claims)
    for number in chain.from_iterable(users):
        waits[number] += 1
    ready = [(min(claims[number].nodes), number) for number, count in enumerate(waits) if not count]
    heapify(ready)
    order: list[Claim] = []
    while ready:
        number = heappop(ready)[1]
        order.append(claims[number])
        for user in users[number]:
            waits[user] -= 1
            if not waits[user]:
                heappush(ready, (min(claims[user].nodes), user))
    return order


def outlined(
    members: Sequence[Operation], backend: PartitionBackend | None, composite: str | None
) -> tuple[func.FuncOp, list[SSAValue], list[SSAValue]]:
    """A function of operations of one block, which stay; what it takes, and what it gives. It has no name yet.

    Without a backend it is an ordinary one.
    """
    inside = set(members)
    made = _made_inside(members)
    inputs = _inputs(members, made)
    outputs: list[SSAValue] = [
        result
        for op in members
        for result in op.results
        if any(not _within(use.operation, inside, made) for use in result.uses)
    ]
    block = Block(arg_types=[value.type for value in inputs])
    mapping: dict[SSAValue, SSAValue] = dict(zip(inputs, block.args, strict=True))
    for value, argument in mapping.items():
        argument.name_hint = value.name_hint
    for op in _with_what_is_made(members, made):
        block.add_op(unplaced(op, mapping))
    block.add_op(func.ReturnOp(*(mapping[value] for value in outputs)))
    types = block.arg_types, [value.type for value in outputs]
    function = func.FuncOp("", types, Region(block), visibility="private")
    function.location = members[-1].location
    if backend is None:
        return function, inputs, outputs
    scope = scope_of(backend)
    for side, values in ((ARGUMENTS, block.args), (RESULTS, outputs)):
        set_signature_attributes(function, side, [scope if is_tensor(value) else None for value in values])
    function.attributes |= {
        COMPILER_ATTR: StringAttr(backend.name),
        TARGET_ATTR: target_of(backend),
        SCOPE_ATTR: scope,
    }
    if composite is not None:
        function.attributes[COMPOSITE_ATTR] = StringAttr(composite)
    return function, inputs, outputs


def with_what_it_makes(members: Sequence[Operation]) -> list[Operation]:
    """Operations of one block, each after the transparent ones that a function of them has of its own."""
    return _with_what_is_made(members, _made_inside(members))


def _made_inside(members: Sequence[Operation]) -> set[Operation]:
    """The transparent operations of which the function has its own.

    Those that make constants and memory; and queries, with what is computed from them, of values that it has.
    """
    inside = set(members)
    needed: dict[Operation, None] = {}
    stack = list(members)
    while stack:
        for value in free_values(stack.pop()):
            owner = value.owner
            if (
                isinstance(owner, Operation)
                and owner not in inside
                and owner not in needed
                and is_transparent(owner)
            ):
                needed[owner] = None
                stack.append(owner)
    has = {value for op in members for value in free_values(op) if is_tensor(value)}
    has |= {result for op in members for result in op.results}
    answers: dict[Operation, bool] = {}

    def can_make(op: Operation) -> bool:
        if op not in answers:
            answers[op] = all(
                can_make(v.owner) if v.owner in needed and isinstance(v.owner, Operation) else v in has
                for v in free_values(op)
            )
        return answers[op]

    return {op for op in needed if facts_of(op).rematerialised or facts_of(op).fills or can_make(op)}


def _inputs(members: Sequence[Operation], made: set[Operation]) -> list[SSAValue]:
    """What comes from outside, as it is first used."""
    own = {*members, *made}
    values = (value for op in _with_what_is_made(members, made) for value in free_values(op))
    direct = [value for op in members for value in free_values(op) if value.owner not in own]
    return list(dict.fromkeys([*direct, *(value for value in values if value.owner not in own)]))


def _with_what_is_made(members: Sequence[Operation], made: set[Operation]) -> list[Operation]:
    """Members, each after what it needs of ``made``."""
    found: dict[Operation, None] = {}
    for member in members:
        stack = [member]
        while stack:
            missing = [
                value.owner
                for value in free_values(stack[-1])
                if isinstance(value.owner, Operation) and value.owner in made and value.owner not in found
            ]
            if missing:
                stack += missing[:1]
            else:
                found[stack.pop()] = None
    return list(found)


def _within(user: Operation, inside: set[Operation], made: set[Operation]) -> bool:
    """Whether an operation is a member, stands in one, or is only there for members."""
    current: Operation | None = user
    while current is not None:
        if current in inside:
            return True
        if current in made:
            return all(_within(use.operation, inside, made) for result in current.results for use in result.uses)
        current = current.parent_op()
    return False


def _sort(block: Block) -> None:
    """Put what a call needs before it, and what needs it behind; everything else stays where it is."""
    ops = list(block.ops)
    position = {op: number for number, op in enumerate(ops)}
    waits = {op: {position[made] for made in definitions_in(block, op)} for op in ops}
    effects = [op for op in ops if has_side_effects(op) and not isinstance(op, func.CallOp)]
    for first, second in pairwise(effects):
        waits[second].add(position[first])
    users: list[list[int]] = [[] for _ in ops]
    for op, needed in waits.items():
        for number in needed:
            users[number].append(position[op])
    left = {position[op]: len(needed) for op, needed in waits.items()}
    end = len(ops) - 1
    ready = [number for number, count in left.items() if not count and number != end]
    heapify(ready)
    order: list[Operation] = []
    while ready:
        number = heappop(ready)
        order.append(ops[number])
        for user in users[number]:
            left[user] -= 1
            if not left[user] and user != end:
                heappush(ready, user)
    reorder(block, order)


def _drop_dead(function: func.FuncOp) -> None:
    """Erase the transparent operations that nothing uses any more."""
    stack = [op for op in function.body.walk() if not any(result.uses for result in op.results)]
    while stack:
        op = stack.pop()
        if op.parent is None or not is_transparent(op) or any(result.uses for result in op.results):
            continue
        makers = [value.owner for value in op.operands if isinstance(value.owner, Operation)]
        erase_operations([op])
        stack += makers
