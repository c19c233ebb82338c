"""Warnings about copies that every iteration of a loop repeats, and the better plan where there is one.

Where an operation is all that keeps a loop from running on one scope, the warning names it. That is the case

* when everything that the loop computes on one of two scopes is there for no demand of the program: put there by
  default, it could as well be placed with the rest;
* when the loop computes nothing on one of them, but only carries a value there;
* else, when the program demands both: it can have the one or the other.
"""

from collections.abc import Iterator, Mapping, Sequence

from xdsl.ir import Block, Operation, SSAValue

from devscope.analysis.loops import Loop, innermost_loop, trip_count
from devscope.analysis.symbols import function_of
from devscope.analysis.value_kinds import byte_size
from devscope.dialects.location import source_location, value_location
from devscope.dialects.op_facts import Control, facts_of
from devscope.errors import Note
from devscope.passes.device_plan.capture import Part
from devscope.passes.device_plan.capture.copies import CapturedCopy
from devscope.passes.device_plan.domains import REMATERIALISED
from devscope.passes.device_plan.remarks import Remark, loops_around
from devscope.passes.device_plan.report.provenance import Explainer
from devscope.passes.device_plan.report.repetition import Repetitions

_UNASKED = frozenset({"default", "propagated", "preferred", "first_result"})
"""Kinds of reasons that neither a demand of the program stands behind nor a cost that was worked out."""

_CALLS = frozenset({Control.CALL, Control.CALL_INDIRECT})


def loop_warnings(parts: Sequence[Part], explainer: Explainer) -> list[Remark]:
    """One warning per copy in a loop; the first one of each loop says what would be better.

    And one per copy in a function that a loop calls, of those that are not in a loop of their own.
    """
    warnings: list[Remark] = []
    others: list[CapturedCopy] = []
    for part in parts:
        loops: dict[Operation | Block, tuple[Loop, list[CapturedCopy]]] = {}
        placed: dict[Operation, tuple[int, int]] = {}
        for copy in part.copies:
            loop = innermost_loop(copy.op, part.system.graphs)
            if loop is not None:
                loops.setdefault(loop.start, (loop, []))[1].append(copy)
            else:
                others.append(copy)
        if loops:
            placed = {op: (node, scope) for op, node, scope in part.placed if node != REMATERIALISED}
        for loop, copies in loops.values():
            advice = _Advisor(explainer, part, loop, placed).advice(copies)
            times = trip_count(loop.start) if isinstance(loop.start, Operation) else None
            total = f", {times:,} times" if times is not None else ""
            when = f"in every iteration of {_name(explainer, loop)}"
            for copy in copies:
                warnings.append(_warning(explainer, copy, when, total, advice))
                advice = ()
    return [*warnings, *_in_called_functions(parts, explainer, others)]


def _in_called_functions(
    parts: Sequence[Part], explainer: Explainer, copies: Sequence[CapturedCopy]
) -> Iterator[Remark]:
    repeated = Repetitions(part.system for part in parts).repeated_functions if copies else {}
    for copy in copies if repeated else ():
        function = function_of(copy.op)
        if function is not None and function in repeated:
            loop, call = repeated[function]
            name = explainer.formatter.function(function, position=False)
            when = f"in every run of {name}, which {explainer.formatter.op(call)} starts"
            yield _warning(explainer, copy, f"{when} in every iteration of {_name(explainer, loop)}", "", ())


def _warning(explainer: Explainer, copy: CapturedCopy, when: str, total: str, advice: Sequence[Note]) -> Remark:
    op = copy.op
    what = f"{explainer.formatter.value(copy.value)} is copied from {op.src.short()} to {op.dst.short()}"
    size = byte_size(copy.value.type)
    amount = f"{size:,} bytes each time{total}" if size is not None else f"a size known at run time only{total}"
    user = explainer.formatter.op(copy.user) if copy.user is not None else "the program itself"
    text = f"{what} {when}: {amount}, asked for by {user}"
    return Remark("warning", text, source_location(op), tuple(advice), op, loops_around(op))


def _name(explainer: Explainer, loop: Loop) -> str:
    first = loop.first
    if first is loop.start:
        return explainer.formatter.op(first)
    where = source_location(first) if first is not None else None
    return f"the loop of blocks{f' that begins at {where}' if where is not None else ''}"


class _Advisor:
    """Looks for a better plan for one loop."""

    def __init__(
        self, explainer: Explainer, part: Part, loop: Loop, placed: Mapping[Operation, tuple[int, int]]
    ) -> None:
        """``placed``: what the part computes, with nodes and scopes."""
        self._explainer, self._part, self._loop = explainer, part, loop
        self._operations = list(loop.operations())
        self._computed: dict[int, list[tuple[Operation, int]]] = {}
        """Per scope, what the loop computes there: operations and their nodes."""
        for op in self._operations:
            if op in placed:
                node, scope = placed[op]
                self._computed.setdefault(scope, []).append((op, node))

    def advice(self, copies: Sequence[CapturedCopy]) -> list[Note]:
        """What would keep ``copies`` out of the loop; empty when nothing simple would."""
        scopes = self._part.system.scopes
        ends = {scopes.number(end) for copy in copies for end in (copy.op.src, copy.op.dst)}
        if len(ends) != 2 or any(facts_of(op).control in _CALLS for op in self._operations):
            return []
        if any(copy.user is None for copy in copies):
            return []
        for here, there in (sorted(ends), sorted(ends, reverse=True)):
            if not self._computed.get(here) and self._computed.get(there):
                return self._carry(here, there)
        for here, there in (sorted(ends), sorted(ends, reverse=True)):
            if self._may_leave(here) and self._computed.get(there):
                names = self._names(here)
                return [Note(f"put {names} on {scopes.short(there)} too: then the loop copies nothing")]
        return self._choose(sorted(ends))

    def _carry(self, here: int, there: int) -> list[Note]:
        short, system = self._part.system.scopes.short, self._part.system
        carried = [value for value in self._loop.carried() if self._is_on(value, here)]
        if not carried:
            return []
        name = self._explainer.formatter.value(carried[0])
        reason = self._explainer.decision(system, system.nodes[carried[0]])
        text = (
            f"the loop computes nothing on {short(here)}, but carries {name} there "
            f"because {reason}; carried on {short(there)}, it is not copied in the loop"
        )
        return [Note(text, value_location(carried[0]))]

    def _choose(self, ends: Sequence[int]) -> list[Note]:
        notes: list[Note] = []
        for scope in ends:
            asked = [pair for pair in self._computed.get(scope, ()) if not self._is_unasked(pair[1])]
            if not asked:
                return []
            op, node = asked[0]
            name = self._explainer.formatter.op(op, position=False)
            reason = self._explainer.decision(self._part.system, node)
            notes.append(Note(f"{name} is there because {reason}", source_location(op)))
        short = self._part.system.scopes.short
        names = " or ".join(short(scope) for scope in ends)
        return [*notes, Note(f"with all of the loop on {names}, it copies nothing")]

    def _may_leave(self, scope: int) -> bool:
        """Whether no demand keeps what the loop has on ``scope`` there."""
        nodes = [node for _, node in self._computed.get(scope, ())]
        carried = [self._part.system.nodes[value] for value in self._loop.carried() if self._is_on(value, scope)]
        return bool(nodes) and all(map(self._is_unasked, [*nodes, *carried]))

    def _is_on(self, value: SSAValue, scope: int) -> bool:
        node = self._part.system.nodes.get(value, REMATERIALISED)
        return node >= 0 and self._part.system.domains.scope_of(node) == scope

    def _is_unasked(self, node: int) -> bool:
        """Whether no demand decided for ``node``."""
        provenance = self._explainer.provenance(self._part.system)
        return provenance.decision(provenance.end(node))[0][0] in _UNASKED

    def _names(self, scope: int) -> str:
        # What only looks at data follows it by itself.
        nodes = self._part.system.nodes
        computed = self._computed[scope]
        operations = [op for op, node in computed if not op.operands or nodes.get(op.operands[0]) != node]
        return self._explainer.formatter.operations(operations or [op for op, _ in computed])
