"""The copies of a planned module: one per value and destination, each where it serves all its uses."""

# pyright: reportPrivateUsage=false

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from xdsl.ir import Block, Operation, SSAValue, SSAValues, Use
from xdsl.rewriter import InsertPoint, Rewriter

from devscope.analysis.insertion import InsertionPoints, Point
from devscope.dialects.device import DeviceCopyOp
from devscope.passes.device_plan.domains import REMATERIALISED
from devscope.passes.device_plan.system import System


class CapturedCopy(NamedTuple):
    """A copy of a planned module."""

    op: DeviceCopyOp
    value: SSAValue
    user: Operation | None
    """The first operation that asked; an explicit copy was asked for by nobody but the user."""

    @property
    def use(self) -> Use | None:
        """The first use by ``user``."""
        return next((use for use in self.op.result.uses if use.operation is self.user), None)


@dataclass
class NeededCopy:
    """The uses that need one value on one scope."""

    value: SSAValue
    scope: int
    existing: DeviceCopyOp | None = None
    uses: list[tuple[Operation, int]] = field(default_factory=list[tuple[Operation, int]])


class CopyPlanner:
    """Decides on copies for the cut edges of a completed system, and inserts them."""

    def __init__(
        self, system: System, final: Sequence[int], rematerialise: Callable[[SSAValue, int, Operation, int], None]
    ) -> None:
        """``final`` are the scopes of all nodes.

        ``rematerialise`` is told of the operands that use a rematerialised value: the value, the scope, the user.
        """
        self._system, self._final, self._rematerialise = system, final, rematerialise
        self._needed: dict[tuple[SSAValue, int], NeededCopy] = {}
        self._source: dict[SSAValue, SSAValue] = {}
        """Results of explicit copies, and what they copy."""
        self._points = InsertionPoints()
        self._last: dict[Operation | Block, Operation] = {}
        """Per definition, the last operation inserted after it."""

    def _scope(self, value: SSAValue) -> int:
        return self._final[self._system.nodes[value]]

    # Explicit copies

    def fold_existing(self) -> None:
        """Close the ends of explicit copies; drop those that change nothing, go back, or repeat another."""
        folded: list[SSAValue] = []
        for op in self._system.copies:
            assert isinstance(op, DeviceCopyOp)
            value = op.operand
            scope = self._scope(op.result)
            rematerialised = self._system.nodes[value] == REMATERIALISED
            equal = value if rematerialised else self._on_scope(value, scope)
            if equal is None:
                need = self._needed.setdefault((value, scope), NeededCopy(value, scope))
                if need.existing is None:
                    need.existing = op
                    self._source[op.result] = value
                    self._write_ends(op, self._scope(value), scope)
                    continue
                equal = need.existing.result
            elif equal is not value:
                folded.append(value)
            op.result.replace_all_uses_with(equal)
            Rewriter.erase_op(op)
        self._drop_unused(folded)

    def _on_scope(self, value: SSAValue, scope: int) -> SSAValue | None:
        """``value`` or a value that it was copied from, whichever is on ``scope``."""
        current: SSAValue | None = value
        while current is not None and self._scope(current) != scope:
            current = self._source.get(current)
        return current

    def _write_ends(self, op: DeviceCopyOp, src: int, dst: int) -> None:
        for name, scope in (("src", src), ("dst", dst)):
            attribute = self._system.scopes.attributes[scope]
            if op.attributes.get(name) != attribute:
                op.attributes[name] = attribute

    def _drop_unused(self, values: list[SSAValue]) -> None:
        """Drop explicit copies whose only use was to be copied back."""
        for value in values:
            while value.first_use is None and value in self._source:
                source = self._source.pop(value)
                self._needed.pop((source, self._scope(value)))
                op = value.owner
                assert isinstance(op, Operation)
                Rewriter.erase_op(op)
                value = source

    # Edges

    def resolve_edges(self) -> None:
        """Find every operand that is not where it is used, and what to use instead."""
        edges, final = self._system.edges, self._final
        suspects = edges.between(final)
        if edges.indirect:
            suspects = sorted({*suspects, *edges.indirect})
        for number in suspects:
            op = edges.op[number]
            if op.parent is not None:
                self._resolve(op, edges.operand[number], final[edges.dst[number]])
        for use in self._system.remat_uses:
            if use.op.parent is not None:
                self._resolve(use.op, use.operand, final[use.dst])

    def _resolve(self, op: Operation, index: int, scope: int) -> None:
        value = op.operands[index]
        node = self._system.nodes[value]
        if node == REMATERIALISED:
            self._rematerialise(value, scope, op, index)
            return
        if self._final[node] == scope:
            return
        equal = self._on_scope(value, scope) if self._source else None
        if equal is not None:
            set_operand(op, index, equal)
            return
        self._needed.setdefault((value, scope), NeededCopy(value, scope)).uses.append((op, index))

    # Chains

    def fold_chains(self) -> None:
        """Copy directly what explicit copies take by way of a scope where nothing uses it.

        `rewriting.copies.fold_copy` folds one copy into another. That is not enough here: needed copies that share
        the value are folded all or none, before they exist, or planning the outcome again would change it.
        """
        onward: dict[SSAValue, list[NeededCopy]] = {}
        for need in self._needed.values():
            if need.value in self._source:
                onward.setdefault(need.value, []).append(need)
        # The last of a chain first: then what it copies is folded in its turn.
        for value, found in reversed(onward.items()):
            needs = [r for r in found if self._needed.get((r.value, r.scope)) is r]
            copied = {(op, index) for need in needs for op, index in need.uses}
            copied |= {(need.existing, 0) for need in needs if need.existing is not None}
            source = self._source.get(value)
            itself = self._needed.get((source, self._scope(value))) if source is not None else None
            if source is None or (itself is not None and itself.uses):
                continue  # It is gone, or a copy that is about to be used for itself.
            if needs and all((use.operation, use.index) in copied for use in value.uses):
                for need in needs:
                    self._copy_from(source, need)
                self._drop_unused([value])
                onward.get(source, []).extend(needs)

    def _copy_from(self, source: SSAValue, need: NeededCopy) -> None:
        """Copy ``source``, of which the needed value is a copy, instead."""
        del self._needed[need.value, need.scope]
        other = self._needed.setdefault((source, need.scope), need)
        need.value = source
        op = need.existing
        for user, index in need.uses:
            user.operands[index] = source
        if other is not need:
            other.uses += need.uses
            if op is None or other.existing is None:
                other.existing = other.existing or op
            else:
                op.result.replace_all_uses_with(other.existing.result)
                del self._source[op.result]
                Rewriter.erase_op(op)
                return
        if op is not None:
            op.operands[0] = source
            self._source[op.result] = source
            self._write_ends(op, self._scope(source), need.scope)

    # Insertion

    def insert(self) -> list[CapturedCopy]:
        """Make the copies that are missing; returns all copies of the module."""
        missing = [need for need in self._needed.values() if need.existing is None]
        made: list[tuple[DeviceCopyOp, Operation | None]] = []
        if len(missing) < len(self._needed):
            pending: dict[SSAValue, list[Operation]] = {}
            for need in missing:
                pending.setdefault(need.value, []).extend(op for op, _ in need.uses)
            for need in self._needed.values():
                if need.existing is not None:
                    self._move_if_needed(need, pending)
                    made.append((need.existing, None))
        made += [(self._create(need), need.uses[0][0]) for need in missing]
        return [CapturedCopy(op, op.operand, user) for op, user in made]

    def _move_if_needed(self, need: NeededCopy, pending: dict[SSAValue, list[Operation]]) -> None:
        """Let an explicit copy serve all uses of its value on its scope, from where it stands if it can."""
        op = need.existing
        assert op is not None
        for user, index in need.uses:
            set_operand(user, index, op.result)
        users = [use.operation for use in op.result.uses] + pending.get(op.result, [])
        if users and not self._points.may_stay(op, need.value, users):
            point = self._points.point(need.value, users)
            op.detach()
            self._insert(op, need.value, point)

    def _create(self, need: NeededCopy) -> DeviceCopyOp:
        location = need.uses[0][0].location
        op = DeviceCopyOp.create(operands=[need.value], result_types=[need.value.type], location=location)
        self._write_ends(op, self._scope(need.value), need.scope)
        point = self._points.point(need.value, [user for user, _ in need.uses])
        for user, index in need.uses:
            set_operand(user, index, op.result)
        self._insert(op, need.value, point)
        return op

    def _insert(self, op: Operation, value: SSAValue, point: Point) -> None:
        if point.anchor is not None:
            place = InsertPoint.before(point.anchor)
        else:
            last = self._last.get(value.owner, value.owner)
            self._last[value.owner] = op
            place = InsertPoint.after(last) if isinstance(last, Operation) else InsertPoint.at_start(last)
        Rewriter.insert_op(op, place)


# xDSL's own way to change operands makes a view and several sequences for each, three times the work.


def set_operand(op: Operation, index: int, value: SSAValue) -> None:
    """``op.operands[index] = value``."""
    operands, use = [*op._operands], op._operand_uses[index]
    operands[index].remove_use(use)
    value.add_use(use)
    operands[index] = value
    op._operands = SSAValues(operands)


def replace_uses(old: SSAValue, new: SSAValue) -> None:
    """``old.replace_all_uses_with(new)``; a value without a name takes over that of ``old``."""
    for use in tuple(old.uses):
        set_operand(use._operation, use._index, new)
    if new.name_hint is None and old.name_hint is not None:
        new.name_hint = old.name_hint
