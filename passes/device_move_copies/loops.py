"""Copies around loops: in front where they copy what is from outside, behind where iterations need it elsewhere.

Out of a loop go only copies that every iteration runs: one under a branch inside may run never, and stays there. A
loop that runs no iteration then has one copy more than before, as with the copies that the planner makes; other
loops have fewer.

A loop carries a value where its iterations need it, not where they bring it back to.

    for p = x: { d = copy p to T; t = f(d); o = copy t to S; yield o }

computes nothing with ``p`` and ``o`` on S. It becomes, with one copy in front of it and one behind it,

    d = copy x to T; r = for p = d: { t = f(p); yield t }; copy r to S

Values that the loop passes round change together. They do so if each of them is on S for copies to T and shapes
only, and comes from T at the end of an iteration or is another one of them, and if a loop of one iteration already
has no more copies than before. A loop of no iteration then has two for each.
"""

from dataclasses import dataclass

from xdsl.ir import Block, Operation, SSAValue, Use
from xdsl.rewriter import InsertPoint, Rewriter

from devscope.analysis.classify import is_rematerialised
from devscope.analysis.dominance import is_single_block
from devscope.analysis.symbols import function_of
from devscope.analysis.value_flow import targets
from devscope.analysis.value_kinds import TENSOR, kind_of
from devscope.dialects.device import TARGET_ATTR, DeviceCopyOp, ScopeAttr
from devscope.dialects.op_facts import facts_of
from devscope.dialects.scope_attribute import scope_around, unplaced, write_scope
from devscope.rewriting.copies import copies_of, insert_copy, move_before


def hoist_copies(loop: Operation) -> bool:
    """Move copies in front of a loop; whether there were any. Loops inside must have been done before."""
    changed = False
    for region in loop.regions:
        for op in list(region.block.ops) if is_single_block(region) else ():
            if isinstance(op, DeviceCopyOp) and not loop.is_ancestor(op.operand.owner):
                move_before(op, loop)
                changed = True
    return changed


@dataclass(frozen=True)
class Carried:
    """One carried value. Operands are named by their operation and number."""

    argument: SSAValue
    """What it is inside."""
    result: SSAValue | None
    """What it is behind the loop."""
    first: tuple[Operation, int] | None
    """The operand that it is in the first iteration, if it enters the loop from outside."""
    next: tuple[Operation, int]
    """The operand at the end of a block that it is next."""


def carried_values(loop: Operation) -> list[Carried]:
    """The tensors that a loop carries; none for loops that a tensor decides.

    An ``scf.while`` has two kinds: what enters its first region, and what goes from there to the second and out.
    """
    if facts_of(loop).by_tensor or not all(map(is_single_block, loop.regions)):
        return []
    entering = {value: (loop, number) for number, value in targets(loop)}
    found: list[Carried] = []
    for end in (region.block.last_op for region in loop.regions):
        assert end is not None
        results = {number: value for number, value in targets(end) if value.owner is loop}
        for number, value in targets(end):
            if value.owner is not loop and kind_of(value.type) == TENSOR:
                found.append(Carried(value, results.get(number), entering.get(value), (end, number)))
    return found


def carry_copied(loop: Operation) -> bool:
    """Carry values on the scope where a loop needs them; whether there were any. Loops inside come before."""
    changed = False
    values = carried_values(loop)
    arguments = {carried.argument: carried for carried in values}
    ends = {carried.next: carried for carried in values}
    for carried in values:
        for here, there in _scopes(carried):
            group = _Group(loop, here, there)
            if group.collect(carried, arguments, ends) and group.saves_copies():
                group.carry()
                changed = True
                break
    return changed


def _scopes(carried: Carried) -> list[tuple[ScopeAttr, ScopeAttr]]:
    """Where a value is, and where copies say that it could be instead."""
    found = {(copy.src, copy.dst): None for copy in _direct_copies(carried)}
    last = _operand(carried.next).owner
    if isinstance(last, DeviceCopyOp):
        found[last.dst, last.src] = None
    return list(found)


def _direct_copies(carried: Carried) -> list[DeviceCopyOp]:
    """Copies of a value that every iteration makes."""
    users = (use.operation for use in carried.argument.uses)
    block = carried.argument.owner
    return [user for user in users if isinstance(user, DeviceCopyOp) and user.parent is block]


def _operand(place: tuple[Operation, int]) -> SSAValue:
    return place[0].operands[place[1]]


class _Group:
    """Values of a loop that go from one scope to another together."""

    def __init__(self, loop: Operation, here: ScopeAttr, there: ScopeAttr) -> None:
        self._loop, self._here, self._there = loop, here, there
        self._values: dict[Carried, DeviceCopyOp | None] = {}
        """Each with the copy that brings its value back at the end of an iteration."""

    def collect(
        self, seed: Carried, arguments: dict[SSAValue, Carried], ends: dict[tuple[Operation, int], Carried]
    ) -> bool:
        """Find the values that go with ``seed``; False if they cannot go."""
        work: list[Carried | None] = [seed]
        while work:
            carried = work.pop()
            if carried is None:
                return False
            if carried in self._values:
                continue
            value = _operand(carried.next)
            back = self._values[carried] = self._copy_back(value)
            if back is None:
                work.append(arguments.get(value))
            work += (ends.get((use.operation, use.index)) for use in self._uses_here(carried.argument))
        return True

    def saves_copies(self) -> bool:
        """Whether an iteration has fewer copies than before, and one with those around the loop no more."""
        entering = sum(any(copy.dst == self._there for copy in _direct_copies(c)) for c in self._values)
        back = [c.next[0].parent is copy.parent for c, copy in self._values.items() if copy is not None]
        firsts = {_operand(carried.first) for carried in self._values if carried.first is not None}
        results = [c.result for c in self._values if c.result is not None and self._uses_here(c.result)]
        around = sum(map(self._takes_copy, firsts)) + len(results)
        return entering + sum(back) > 0 and around <= entering + len(back)

    def carry(self) -> None:
        entered: dict[SSAValue, SSAValue] = {}
        for carried, back in self._values.items():
            if carried.first is not None:
                first = _operand(carried.first)
                if first not in entered:
                    entered[first] = self._enter(first, (_direct_copies(carried) or [self._loop])[0])
                carried.first[0].operands[carried.first[1]] = entered[first]
                owner = first.owner
                if isinstance(owner, Operation) and is_rematerialised(owner) and first.first_use is None:
                    Rewriter.erase_op(owner)
            self._drop_copies(carried.argument)
            if carried.result is not None:
                self._leave(carried.result, back or self._loop)
            if back is not None:
                Rewriter.replace_op(back, [], [back.operand])

    def _copy_back(self, value: SSAValue) -> DeviceCopyOp | None:
        """The copy that makes a value which only goes into the next iteration, if it comes from there."""
        copy = value.owner
        if not isinstance(copy, DeviceCopyOp) or not value.has_one_use():
            return None
        return copy if (copy.src, copy.dst) == (self._there, self._here) else None

    def _uses_here(self, value: SSAValue) -> list[Use]:
        """The uses that need a value where it is: all but queries and copies."""
        free = copies_of(value, self._there)
        return [use for use in value.uses if use.operation not in free and not facts_of(use.operation).query]

    def _drop_copies(self, value: SSAValue) -> None:
        for copy in copies_of(value, self._there):
            Rewriter.replace_op(copy, [], [value])

    def _takes_copy(self, value: SSAValue) -> bool:
        """Whether a value on the other scope is neither what was copied from there, nor can be made there as well.

        In split modules no constant or the like can stand on devices.
        """
        owner = value.owner
        if isinstance(owner, DeviceCopyOp):
            return owner.src != self._there
        if isinstance(owner, Block) or not is_rematerialised(owner):
            return True
        function = function_of(owner)
        return function is not None and TARGET_ATTR in function.attributes

    def _enter(self, value: SSAValue, like: Operation) -> SSAValue:
        """The value on the other scope, in front of the loop."""
        owner = value.owner
        if isinstance(owner, Block) or self._takes_copy(value):
            return insert_copy(value, self._here, self._there, like, self._loop)
        if isinstance(owner, DeviceCopyOp):
            return owner.operand
        made = unplaced(owner)
        write_scope(made, self._there, scope_around(self._loop) == self._there)
        Rewriter.insert_op(made, InsertPoint.before(self._loop))
        return made.results[0]

    def _leave(self, result: SSAValue, like: Operation) -> None:
        """Let what needs the result of the loop where it was use a copy of it."""
        uses = self._uses_here(result)  # without those that the copies now give it
        self._drop_copies(result)
        if uses:
            after = self._loop.next_op
            assert after is not None
            copy = insert_copy(result, self._there, self._here, like, after)
            for use in uses:
                use.operation.operands[use.index] = copy
