"""A loop carries a value where its iterations need it, not where they bring it back to.

    for p = x: { d = copy p to T; t = f(d); o = copy t to S; yield o }

computes nothing with ``p`` and ``o`` on S. It becomes, with one copy in front of it and one behind it,

    d = copy x to T; r = for p = d: { t = f(p); yield t }; copy r to S

Values that the loop passes round change together. They do so if each of them is on S for copies to T and shapes
only, and comes from T at the end of an iteration or is another one of them, and if a loop of one iteration already
has no more copies than before. A loop of no iteration then has two for each.
"""

from __future__ import annotations

from xdsl.ir import Block, Operation, SSAValue, Use

from devscope.analysis.classify import is_rematerialised
from devscope.analysis.symbols import function_of
from devscope.dialects.device import TARGET_ATTR, DeviceCopyOp, ScopeAttr
from devscope.dialects.op_facts import facts_of
from devscope.dialects.scope_attribute import scope_around, unplaced, write_scope
from devscope.passes.device_move_copies.copy_index import Outline
from devscope.passes.device_move_copies.slots import Slot, slots_of


def carry_copied(loop: Operation, outline: Outline) -> bool:
    """Carry values on the scope where a loop needs them; whether there were any. Loops inside come before."""
    changed = False
    slots = slots_of(loop)
    arguments = {slot.argument: slot for slot in slots}
    ends = {slot.next: slot for slot in slots}
    for slot in slots:
        for here, there in _scopes(slot):
            group = _Group(loop, here, there)
            if group.collect(slot, arguments, ends) and group.saves_copies():
                group.carry(outline)
                changed = True
                break
    return changed


def _scopes(slot: Slot) -> list[tuple[ScopeAttr, ScopeAttr]]:
    """Where a slot is, and where copies say that it could be instead."""
    found = {(copy.src, copy.dst): None for copy in _direct_copies(slot)}
    last = _operand(slot.next).owner
    if isinstance(last, DeviceCopyOp):
        found[last.dst, last.src] = None
    return list(found)


def _direct_copies(slot: Slot) -> list[DeviceCopyOp]:
    """Copies of a slot that every iteration makes."""
    users = (use.operation for use in slot.argument.uses)
    block = slot.argument.owner
    return [user for user in users if isinstance(user, DeviceCopyOp) and user.parent is block]


def _operand(place: tuple[Operation, int]) -> SSAValue:
    return place[0].operands[place[1]]


def _erase_unused_constant(value: SSAValue) -> None:
    owner = value.owner
    if isinstance(owner, Operation) and is_rematerialised(owner) and value.first_use is None:
        owner.detach()
        owner.erase()


class _Group:
    """Slots of a loop that go from one scope to another together."""

    def __init__(self, loop: Operation, here: ScopeAttr, there: ScopeAttr) -> None:
        self._loop, self._here, self._there = loop, here, there
        self._slots: dict[Slot, DeviceCopyOp | None] = {}
        """Each with the copy that brings its value back at the end of an iteration."""

    def collect(
        self, seed: Slot, arguments: dict[SSAValue, Slot], ends: dict[tuple[Operation, int], Slot]
    ) -> bool:
        """Find the slots that go with ``seed``; False if they cannot go."""
        work: list[Slot | None] = [seed]
        while work:
            slot = work.pop()
            if slot is None:
                return False
            if slot in self._slots:
                continue
            value = _operand(slot.next)
            back = self._slots[slot] = self._copy_back(value)
            if back is None:
                work.append(arguments.get(value))
            work += (ends.get((use.operation, use.index)) for use in self._uses_here(slot.argument))
        return True

    def saves_copies(self) -> bool:
        """Whether an iteration has fewer copies than before, and one with those around the loop no more."""
        entering = sum(any(copy.dst == self._there for copy in _direct_copies(slot)) for slot in self._slots)
        back = [slot.next[0].parent is copy.parent for slot, copy in self._slots.items() if copy is not None]
        firsts = {_operand(slot.first) for slot in self._slots if slot.first is not None}
        results = [slot.result for slot in self._slots if slot.result is not None and self._uses_here(slot.result)]
        around = sum(map(self._needs_copy, firsts)) + len(results)
        return entering + sum(back) > 0 and around <= entering + len(back)

    def carry(self, outline: Outline) -> None:
        entered: dict[SSAValue, SSAValue] = {}
        for slot, back in self._slots.items():
            if slot.first is not None:
                first = _operand(slot.first)
                if first not in entered:
                    entered[first] = self._enter(first, (_direct_copies(slot) or [self._loop])[0], outline)
                slot.first[0].operands[slot.first[1]] = entered[first]
                _erase_unused_constant(first)
            self._drop_copies(slot.argument, outline)
            if slot.result is not None:
                self._leave(slot.result, back or self._loop, outline)
            if back is not None:
                outline.replace(back, back.operand)

    def _copy_back(self, value: SSAValue) -> DeviceCopyOp | None:
        """The copy that makes a value which only goes into the next iteration, if it comes from there."""
        copy = value.owner
        if not isinstance(copy, DeviceCopyOp) or not value.has_one_use():
            return None
        return copy if (copy.src, copy.dst) == (self._there, self._here) else None

    def _uses_here(self, value: SSAValue) -> list[Use]:
        """The uses that need a value where it is."""
        return [use for use in value.uses if not self._is_free(use.operation)]

    def _is_free(self, op: Operation) -> bool:
        return facts_of(op).query or (isinstance(op, DeviceCopyOp) and op.dst == self._there)

    def _drop_copies(self, value: SSAValue, outline: Outline) -> None:
        for use in list(value.uses):
            if isinstance(use.operation, DeviceCopyOp) and use.operation.dst == self._there:
                outline.replace(use.operation, value)

    def _needs_copy(self, value: SSAValue) -> bool:
        owner = value.owner
        if isinstance(owner, DeviceCopyOp):
            return owner.src != self._there
        return isinstance(owner, Block) or not self._is_made_anew(owner)

    def _is_made_anew(self, op: Operation) -> bool:
        """Whether a constant or the like can stand on the other scope: split modules have no such code."""
        function = function_of(op)
        return is_rematerialised(op) and (function is None or TARGET_ATTR not in function.attributes)

    def _enter(self, value: SSAValue, like: Operation, outline: Outline) -> SSAValue:
        """The value on the other scope, in front of the loop."""
        owner = value.owner
        if isinstance(owner, DeviceCopyOp) and owner.src == self._there:
            return owner.operand
        if isinstance(owner, Block) or not self._is_made_anew(owner):
            return outline.make(DeviceCopyOp(value, self._here, self._there), like, self._loop)
        made = unplaced(owner)
        write_scope(made, self._there, scope_around(self._loop) == self._there)
        assert self._loop.parent is not None
        self._loop.parent.insert_op_before(made, self._loop)
        return made.results[0]

    def _leave(self, result: SSAValue, like: Operation, outline: Outline) -> None:
        """Let what needs the result of the loop where it was use a copy of it."""
        uses = self._uses_here(result)  # without those that the copies now give it
        self._drop_copies(result, outline)
        if uses:
            after = self._loop.next_op
            assert after is not None
            copy = outline.make(DeviceCopyOp(result, self._there, self._here), like, after)
            for use in uses:
                use.operation.operands[use.index] = copy
