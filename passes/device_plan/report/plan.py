"""What planning decided and why: the `Plan`."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from xdsl.ir import Operation, SSAValue, Use

from devscope.analysis.captured_values import captured_uses
from devscope.analysis.symbols import function_of
from devscope.analysis.value_kinds import byte_size, holds_data, scalar_size
from devscope.dialects.device import DeviceCopyOp, ScopeAttr
from devscope.dialects.location import source_kinds, source_location, source_name
from devscope.dialects.names import op_name
from devscope.dialects.op_facts import facts_of
from devscope.errors import Note
from devscope.passes.device_plan.capture import Part
from devscope.passes.device_plan.capture.copies import CapturedCopy
from devscope.passes.device_plan.domains import PLACED
from devscope.passes.device_plan.remarks import Remark
from devscope.passes.device_plan.report.diagnostics import DiagnosticFormatter, without_middle
from devscope.passes.device_plan.report.loop_copies import loop_warnings
from devscope.passes.device_plan.report.provenance import Explainer
from devscope.passes.device_plan.report.repetition import ONCE, Repetition, Repetitions
from devscope.passes.device_plan.report.source_names import SourceNames
from devscope.passes.device_plan.system import System


class Placement(NamedTuple):
    """Where an operation executes, and why there."""

    op: str
    """Its name."""
    scope: ScopeAttr
    reason: str
    operation: Operation

    @property
    def function(self) -> str:
        """The name of the function that it stands in."""
        func = function_of(self.operation)
        return func.sym_name.data if func is not None else ""


class Copy(NamedTuple):
    """A ``device.device_copy`` of the planned module."""

    value: str
    """What is copied, in words."""
    src: ScopeAttr
    dst: ScopeAttr
    bytes: int | None
    """Size of the data; None when it is known at run time only."""
    required_by: str
    """The first use that needs the copy."""
    operation: DeviceCopyOp
    repetition: Repetition = ONCE
    """How often it runs, as planned: what compiles the plan may move it out of a loop."""


class ReadBack(NamedTuple):
    """Scalars that an operation reads on a device, for the host."""

    value: str
    """What is read, in words."""
    src: ScopeAttr
    bytes: int
    op: str
    """Its name."""
    operation: Operation
    repetition: Repetition = ONCE


class Clone(NamedTuple):
    """A function that planning made, for uses of another one on other scopes."""

    name: str
    original: str
    required_by: str
    """The first use that needs it."""


_SHOWN_COPIES = 8


@dataclass(repr=False)
class Plan:
    """The outcome of planning one module.

    Says everything in words when asked, and not before. Values are named after the module as it is then: ask
    before it is transformed further.
    """

    said: list[Remark]
    """Operations without a planning rule, and what the program says in vain."""
    clones: list[Clone]
    parts: list[Part]
    names: SourceNames = field(default_factory=SourceNames)
    signatures: str = ""
    """What public functions take and give, with the names of the source, if whoever planned them knows."""
    default_reason: str = ""
    """Who chose the default scope, if a rule did."""
    write: Callable[[], Any] | None = None
    """Makes `module`, if whoever planned it can."""

    def __repr__(self) -> str:
        """The public functions, how many operations are on which device, and which values are copied where."""
        scopes = [part.system.scopes.attributes[scope] for part in self.parts for _, _, scope in part.placed]
        placed = Counter(scope.short() for scope in scopes)
        where = ", ".join(f"{count} on {scope}" for scope, count in sorted(placed.items())) or "nothing"
        copies = [f"{copy.value} from {copy.src.short()} to {copy.dst.short()}" for copy in self.copies]
        more = f", ... ({len(copies)} in all)" if len(copies) > _SHOWN_COPIES else ""
        plan = f"Plan {self.signatures}" if self.signatures else "Plan"
        return f"<{plan}: operations: {where}; copies: {', '.join(copies[:_SHOWN_COPIES]) or 'none'}{more}>"

    @cached_property
    def module(self) -> Any:
        """The planned module, of the kind that `devscope.plan` was given; None where a pass planned it."""
        return self.write() if self.write is not None else None

    @cached_property
    def formatter(self) -> DiagnosticFormatter:
        originals = {clone.name: clone.original for clone in self.clones}
        return DiagnosticFormatter(self.names, originals, self.default_reason)

    @cached_property
    def explainer(self) -> Explainer:
        """The chains of reasons behind the plan."""
        return Explainer([part.system for part in self.parts], self.formatter)

    def placed_operations(self) -> set[Operation]:
        """The operations that the program itself placed."""
        executed = ((part.system, op, node) for part in self.parts for op, node in part.system.executed)
        placed = {op for system, op, node in executed if node >= 0 and system.flags[node] & PLACED}
        annotated = {op for part in self.parts for op in part.system.annotated}
        # A view is where its source is, which may have been placed.
        return {op for op in placed if op in annotated or facts_of(op).view_of is None}

    @cached_property
    def placements(self) -> list[Placement]:
        """Every operation that has a scope, function by function, in the order of the program."""
        return [
            Placement(
                op_name(op),
                part.system.scopes.attributes[scope],
                self.explainer.decision(part.system, node),
                op,
            )
            for part in self.parts
            for op, node, scope in part.placed
        ]

    @cached_property
    def copies(self) -> list[Copy]:
        """Every copy of the module."""
        return [
            Copy(
                self.formatter.value(value),
                op.src,
                op.dst,
                byte_size(value.type),
                self.formatter.op(user) if user is not None else "the input",
                op,
                self.repetitions.of(op),
            )
            for part in self.parts
            for op, value, user in part.copies
        ]

    @cached_property
    def read_backs(self) -> list[ReadBack]:
        """The scalars that operations on devices give to the host, which waits for each: conditions, say."""
        return [
            ReadBack(
                self._what_is_read(op),
                part.system.scopes.attributes[scope],
                sum(scalar_size(value.type) for value in op.results),
                op_name(op),
                op,
                self.repetitions.of(op),
            )
            for part in self.parts
            for op, _, scope in part.placed
            if scope != part.system.host_scope and op.results and not any(map(_has_scope, op.results))
        ]

    def _what_is_read(self, op: Operation) -> str:
        used = ((op, index) for index, value in enumerate(op.operands) if _has_scope(value))
        read = next(used, None) or next(captured_uses(op), None)
        return self.formatter.operand(*read) if read is not None else "a result"

    @cached_property
    def repetitions(self) -> Repetitions:
        return Repetitions(part.system for part in self.parts)

    @cached_property
    def remarks(self) -> list[Remark]:
        """What deserves attention: `said`, and copies inside loops."""
        return [*self.said, *loop_warnings(self.parts, self.explainer)]

    @cached_property
    def copy_remarks(self) -> list[Remark]:
        """One remark per copy: how much, and who asked. And one per scalar that is read back from a device."""
        copied = [(_copy_text(copy), copy.operation) for copy in self.copies]
        read = [(_read_text(back), back.operation) for back in self.read_backs]
        return [Remark("remark", text, source_location(op)) for text, op in (*copied, *read)]

    # Why

    @cached_property
    def places(self) -> dict[Operation, tuple[System, int]]:
        """Per operation that has a scope of its own, its system and node."""
        return {op: (part.system, node) for part in self.parts for op, node, _ in part.placed}

    def why_placed(self, op: Operation) -> list[Note]:
        """The chain of reasons for an operation's scope; empty for one that has none of its own."""
        return self.explainer.chain(*self.places[op]) if op in self.places else []

    @cached_property
    def _copied(self) -> dict[Operation, tuple[System, CapturedCopy]]:
        return {copy.op: (part.system, copy) for part in self.parts for copy in part.copies}

    def why_copied(self, op: DeviceCopyOp) -> tuple[list[Note], list[Note]]:
        """The chains behind a copy: why its data is where it is, and why that is needed elsewhere."""
        system, copy = self._copied[op]
        source = self.explainer.chain_of_value(system, copy.value)
        use = copy.use
        if use is None:
            return source, [Note("the program copies it there", source_location(op))]
        ask = self.formatter.note(("use", use.operation, use.index))
        return source, list(dict.fromkeys((ask, *self.why_needed(system, use))))

    def why_needed(self, system: System, use: Use) -> list[Note]:
        """The chain behind the scope on which a value is used; empty where no scope is asked of it."""
        node = self.explainer.provenance(system).destination(use.operation, use.index)
        return self.explainer.chain(system, node) if node is not None else []

    # As data

    def to_json(self, chains: bool = False) -> dict[str, object]:
        """The plan as lists and texts. Locations are ``file:line:col`` or None, sizes in bytes or None.

        ``times``: how often a copy or a read-back runs per call, at most; None where a loop's length is not known.

        With ``chains``, all steps of the reasons behind each placement and copy are in there too. ``warnings`` are
        those of the remarks, with their notes, each as a text of several lines.
        """
        return {
            "placements": [
                {
                    "op": placement.op,
                    "function": placement.function,
                    "location": _where(placement.operation),
                    "source_name": source_name(placement.operation),
                    "made_of": source_kinds(placement.operation),
                    "scope": placement.scope.short(),
                    "reason": placement.reason,
                    **({"chain": _steps(self.why_placed(placement.operation))} if chains else {}),
                }
                for placement in self.placements
            ],
            "copies": [
                {
                    "value": copy.value,
                    "location": _where(copy.operation),
                    "src": copy.src.short(),
                    "dst": copy.dst.short(),
                    "bytes": copy.bytes,
                    "times": copy.repetition.total,
                    "asked_by": copy.required_by,
                    **(_both(*self.why_copied(copy.operation)) if chains else {}),
                }
                for copy in self.copies
            ],
            "read_backs": [
                {
                    "op": read.op,
                    "location": _where(read.operation),
                    "value": read.value,
                    "src": read.src.short(),
                    "bytes": read.bytes,
                    "times": read.repetition.total,
                }
                for read in self.read_backs
            ],
            "clones": [
                {"name": clone.name, "original": clone.original, "asked_by": clone.required_by}
                for clone in self.clones
            ],
            "remarks": [str(remark) for remark in self.remarks],
            "warnings": [remark.text for remark in self.remarks if remark.severity == "warning"],
        }


def _steps(notes: Sequence[Note]) -> list[dict[str, str | None]]:
    return [
        {"text": note.text, "location": str(note.location) if note.location is not None else None}
        for note in without_middle(notes)
    ]


def _both(source: Sequence[Note], destination: Sequence[Note]) -> dict[str, object]:
    return {"source_chain": _steps(source), "destination_chain": _steps(destination)}


def _has_scope(value: SSAValue) -> bool:
    return holds_data(value.type)


def _copy_text(copy: Copy) -> str:
    size = "a number of bytes that is known at run time only" if copy.bytes is None else f"{copy.bytes:,} bytes"
    ends, often = f"from {copy.src.short()} to {copy.dst.short()}", str(copy.repetition)
    return f"{copy.value} is copied {ends} ({size}) for {copy.required_by}{often and f', {often}'}"


def _read_text(read: ReadBack) -> str:
    often = str(read.repetition)
    return f"'{read.op}' reads {read.value} back from {read.src.short()}{often and f' ({often})'}"


def _where(op: Operation) -> str | None:
    where = source_location(op)
    return str(where) if where is not None else None
