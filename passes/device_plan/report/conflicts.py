"""Errors for demands that no scope satisfies: all of a planning run, each with both chains of reasons."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import TypeAlias

from xdsl.dialects.builtin import MemRefType, UnrankedMemRefType
from xdsl.ir import Operation

from devscope.analysis.value_kinds import FUNCTION, TENSOR, kind_of
from devscope.dialects.device import SCOPE_ATTR, OnDeviceOp
from devscope.dialects.location import source_location
from devscope.dialects.op_facts import Control, facts_of
from devscope.dialects.scope_attribute import ARGUMENTS, RESULTS
from devscope.errors import Note, PlanError, SourceLocation
from devscope.passes.device_plan.domains import Conflict, Demand, Domains, Reason
from devscope.passes.device_plan.report.diagnostics import TEXTS, DiagnosticFormatter, without_middle
from devscope.passes.device_plan.report.provenance import united_neighbours, view_steps
from devscope.passes.device_plan.scope_table import CONFLICT
from devscope.passes.device_plan.system import System

MOST_ERRORS = 20
"""Errors that one run prints; of the others, only the number."""

_MOST_EXAMINED = 200
"""Clashes that are looked into; of the others, only the number."""

_TAKEN_OVER = frozenset({"assigned", "refined"})
"""Kinds of demands that repeat what another function demands."""


_Steps: TypeAlias = list[tuple[Reason, str]]
"""Why one side of a conflict must be where it is: reasons, each with the scope that it demands, if it is a demand.
The last one is."""


def check(systems: Iterable[System], formatter: DiagnosticFormatter) -> None:
    """Raise `PlanError` for all that is wrong with the demands in ``systems``; others of it are its `others`.

    Errors come in the order of the source. Of conflicts between the same two demands, the first is reported; and
    none that only follows from what another function demands, if that one is reported.
    """
    refused = [system for system in systems if system.errors or system.domains.conflicts]
    if not refused:
        return
    direct = {str(error): error for system in refused for error in system.errors}
    following: dict[str, PlanError] = {}
    search = cache(_DemandSearch)
    conflicts = [(system, conflict) for system in refused for conflict in _distinct(system)]
    conflicts.sort(key=lambda pair: _position(_location(pair[1])))
    seen: set[frozenset[Reason]] = set()
    left_out = max(0, len(conflicts) - _MOST_EXAMINED)
    for system, conflict in conflicts[:_MOST_EXAMINED]:
        left, right = (system.domains.scope_of(node) for node in (conflict.left, conflict.right))
        first = _steps(system, conflict.left, right, search)
        second = _steps(system, conflict.right, left, search)
        demands = frozenset((first[-1][0], second[-1][0]))
        if demands not in seen:
            seen.add(demands)
            error = _error(system, conflict, first, second, formatter)
            taken_over = not _TAKEN_OVER.isdisjoint(kind for kind, _, _ in demands)
            (following if taken_over else direct)[str(error)] = error
    errors = sorted((direct or following).values(), key=lambda error: _position(error.location))
    raise _combined(errors, left_out)


def _position(where: SourceLocation | None) -> tuple[bool, str, int, int]:
    return (True, "", 0, 0) if where is None else (False, where.file, where.line, where.column)


def _location(conflict: Conflict) -> SourceLocation | None:
    op = conflict.reason[1]
    return source_location(op) if op is not None else None


def _combined(errors: Sequence[PlanError], left_out: int) -> PlanError:
    """The first error, which has the others; the last one says how many are left out."""
    shown = list(errors[:MOST_ERRORS])
    left_out += len(errors) - len(shown)
    if left_out:
        last = shown[-1]
        shown[-1] = PlanError(last.message, last.location, [*last.notes, f"and {left_out} more such errors"])
    first = shown[0]
    return PlanError(first.message, first.location, first.notes, shown[1:])


def _distinct(system: System) -> Iterator[Conflict]:
    """The conflicts of a system, less those between classes that conflicted before."""
    find = system.domains.find
    seen: set[frozenset[int]] = set()
    for conflict in system.domains.conflicts:
        classes = frozenset((find(conflict.left), find(conflict.right)))
        if classes not in seen:
            seen.add(classes)
            yield conflict


class _DemandSearch:
    """Searches the demands and unions of `Domains` as they were when this was made."""

    def __init__(self, domains: Domains) -> None:
        self._scopes = domains.scopes
        self._neighbours = united_neighbours(domains)
        self._demands: dict[int, list[Demand]] = {}
        for demand in domains.demands:
            self._demands.setdefault(demand.node, []).append(demand)

    def against(self, start: int, opposing: int) -> tuple[list[Reason], Demand] | None:
        """Why the class of ``start`` cannot be on scope ``opposing``.

        The reasons that lead from ``start`` to the nearest demand in its class that does not join ``opposing``,
        and that demand; None when the class demands no such thing.
        """
        came_from: dict[int, tuple[int, Reason]] = {}
        queue = [start]
        for node in queue:
            for demand in self._demands.get(node, ()):
                if self._scopes.join(demand.scope, opposing) == CONFLICT:
                    reasons: list[Reason] = []
                    while node != start:
                        node, reason = came_from[node]
                        reasons.append(reason)
                    return reasons[::-1], demand
            for neighbour, reason in self._neighbours.get(node, ()):
                if neighbour != start and neighbour not in came_from:
                    came_from[neighbour] = (node, reason)
                    queue.append(neighbour)
        return None


def _steps(system: System, node: int, opposing: int, search: Callable[[Domains], _DemandSearch]) -> _Steps:
    """From ``node`` to the demand that rules ``opposing`` out, into called functions where it comes from one."""
    found: _Steps = []
    seen: set[tuple[System, int]] = set()
    place: tuple[System, int] | None = (system, node)
    while place is not None and place not in seen:
        seen.add(place)
        system, node = place
        chain = search(system.domains).against(node, opposing)
        if chain is None:
            break
        reasons, demand = chain
        found += ((reason, "") for reason in reasons if reason[1] is not None and reason != demand.reason)
        found.append((demand.reason, system.scopes.short(demand.scope)))
        place = system.imported.get(demand.node) if demand.reason[0] == "callee" else None
    return list(dict.fromkeys(found)) or [(("program", None, 0), "")]


def _error(
    system: System, conflict: Conflict, first: _Steps, second: _Steps, formatter: DiagnosticFormatter
) -> PlanError:
    left, right = (system.scopes.short(system.domains.scope_of(node)) for node in (conflict.left, conflict.right))
    kind, op, index = conflict.reason
    # The left side of a use is the value, which may be a view of another one.
    views = [(r, "") for r in view_steps(system, op.operands[index])] if kind == "use" and op is not None else []
    return PlanError(
        f"{_subject(conflict.reason, formatter)} must be on {left} and on {right}",
        source_location(op) if op is not None else None,
        [
            *_notes(views + first, f"on {left} because", formatter),
            *_notes(second, f"and on {right} because", formatter),
            _suggestion(conflict.reason),
        ],
    )


def _notes(reasons: Iterable[tuple[Reason, str]], start: str, formatter: DiagnosticFormatter) -> list[Note]:
    """One note per step."""
    notes: list[Note] = []
    for reason, scope in reasons:
        note = formatter.note(reason, scope)
        notes.append(Note(f"{start} {note.text}", note.location))
        start = "and"
    return without_middle(notes)


def _subject(reason: Reason, formatter: DiagnosticFormatter) -> str:
    """What a conflict is about."""
    kind, op, index = reason
    if op is None:
        return "a value"
    if "{use}" in TEXTS[kind] or "{value}" in TEXTS[kind] or kind == "copy_operand":
        return formatter.operand(op, index)
    if kind in (ARGUMENTS, RESULTS):
        side = "argument" if kind == ARGUMENTS else "result"
        return f"{side} #{index} of {formatter.function(op)}"
    return formatter.op(op, position=False)


def _suggestion(reason: Reason) -> str:
    """What to do about a conflict."""
    kind, op, index = reason
    if kind == "on_call":
        return f"drop {SCOPE_ATTR} from the call: what it passes is copied to where the function wants it"
    if kind == "body_call" or (op is not None and _in_parallel_loop(op)):
        return "place the loop as a whole, or move the operation out of it"
    type_ = op.operands[index].type if op is not None and index < len(op.operands) else None
    data = kind_of(type_) if type_ is not None else TENSOR
    if kind in ("use", "on_device") and data == FUNCTION:
        return "a function value is one function: give each scope a function of its own"
    if kind in ("use", "on_device") and data != TENSOR and not isinstance(type_, MemRefType | UnrankedMemRefType):
        return f"planning copies tensors only: put all that makes or uses a {type_} on one scope"
    if kind in ("use", "on_device") and data != TENSOR:
        return (
            "a buffer stays where it is: put both on one scope, or take its data as a tensor, with "
            "bufferization.to_tensor, which is copied where it is used"
        )
    if isinstance(op, OnDeviceOp):
        return (
            "one operation executes on one scope: drop one annotation, or let this one have constrain_body = "
            "false and constrain_result = true, which copies the value there"
        )
    return "make the two scopes agree, drop one of them, or put a device.device_copy where the data may move"


def _in_parallel_loop(op: Operation) -> bool:
    parent = op.parent_op()
    while parent is not None and facts_of(parent).control is not Control.PARALLEL:
        parent = parent.parent_op()
    return parent is not None
