"""Neighbouring operations on buffers that one kernel can compute: a launch costs what little work does.

Work-items of one grid take the same elements of both, so what one operation writes and the other one uses is one
work-item's own. Operations on tensors were fused before; what is left are fills and the reductions that begin with
them, contractions with what follows elementwise, several results of one input, and work without a loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any

from devscope.dialects.op_facts import CALLS, facts
from devscope.lowering import mlir_util
from devscope.lowering.gpu.kernel_loops import kinds_of, maps_of, output_count, place_of
from devscope.lowering.interop.bindings import ir
from devscope.lowering.memory.effects import buffer_of, elementwise_pairs, is_new

SMALL = 1 << 16
"""Bytes that memory may grow by for a launch less: they are written in the time of one."""


@dataclass(frozen=True)
class _Access:
    """``place``: the loop that each index is, or None for any other indices."""

    value: Any
    place: tuple[int, ...] | None
    writes: bool

    @cached_property
    def buffer(self) -> Any:
        return buffer_of(self.value)

    @cached_property
    def is_apart(self) -> bool:
        """Whether no other buffer has memory in common with this one."""
        return is_new(self.buffer) or _is_constant(self.buffer)

    def disturbs(self, other: _Access, rank: int) -> bool:
        """Whether work-items of a grid of ``rank`` may meet in an element that one of two accesses writes, to one
        buffer.

        Of none of its parameters a kernel knows that it is another one's memory (`to_llvm`): two views of what is
        written never go together, also where one work-item does all in order.
        """
        if not (self.writes or other.writes):
            return False
        if rank == 0:
            return self.value != other.value
        own = self.value == other.value and self.place == other.place
        return not own or self.place is None or set(self.place) != set(range(rank))


class _Accesses:
    """Those of some operations, by buffer."""

    def __init__(self, accesses: Iterable[_Access]) -> None:
        self.of: dict[Any, list[_Access]] = {}
        self._shared: set[Any] = set()
        """Buffers that may have memory in common with others."""
        self._written: set[Any] = set()
        """Those of `_shared` that are written."""
        for access in accesses:
            self.add(access)

    def __iter__(self) -> Iterator[_Access]:
        return chain.from_iterable(self.of.values())

    def add(self, access: _Access) -> None:
        self.of.setdefault(access.buffer, []).append(access)
        if not access.is_apart:
            self._shared.add(access.buffer)
            if access.writes:
                self._written.add(access.buffer)

    def disturbed(self, access: _Access, rank: int) -> bool:
        """Whether any of these and ``access`` may meet, see `_Access.disturbs`."""
        if any(one.disturbs(access, rank) for one in self.of.get(access.buffer, ())):
            return True
        against = self._shared if access.writes else self._written
        return not access.is_apart and len(against) > (access.buffer in against)


class _Positions:
    """The operations of a block, in the order in which they stand when this is made."""

    def __init__(self, block: Any) -> None:
        self._numbers = _numbers(block)
        self._ops = list(self._numbers)

    def is_before(self, one: Any, other: Any) -> bool:
        return self._numbers.get(one, len(self._ops)) < self._numbers[other]

    def between(self, one: Any, other: Any) -> list[Any]:
        return self._ops[self._numbers[one] + 1 : self._numbers[other]]


def _numbers(block: Any) -> dict[Any, int]:
    return {op.operation: number for number, op in enumerate(block)}


Pair = tuple[Any, Any]


@dataclass
class _Work:
    """What becomes one kernel.

    ``grid``: sizes that are known to be equal, for each loop of the grid. ``pairs``: inputs, and results that may
    be in their memory.
    """

    ops: list[Any]
    grid: list[set[Any]]
    accesses: _Accesses
    pairs: list[Pair]

    def can_take(self, other: _Work, positions: _Positions) -> bool:
        rank = len(self.grid)
        return (
            rank == len(other.grid)
            and all(map(_are_equal, self.grid, other.grid))
            and not any(other.accesses.disturbed(access, rank) for access in self.accesses)
            and self._growth(other, positions) <= SMALL
        )

    def _growth(self, other: _Work, positions: _Positions) -> float:
        """Bytes that ``other`` is the first to use, and that could have been in memory that only ``self`` uses."""
        used, after = self.accesses.of.keys(), other.accesses.of.keys()
        if all(buffer in after or _is_constant(buffer) for buffer in used):
            return 0
        ops = {*self.ops, *other.ops}
        over = {
            target
            for source, target in self._pairs_of(other)
            if source in used
            and all(user in ops or positions.is_before(user, self.ops[0]) for user in _users(source))
        }
        new = {access.buffer for access in other.accesses if access.writes} - used - over
        sizes = [mlir_util.static_bytes(buffer.type) for buffer in new]
        return sum(float("inf") if size is None else size for size in sizes)

    def _pairs_of(self, other: _Work) -> list[Pair]:
        """The pairs of ``other`` that are such for both: work-items of ``self`` do not see what is overwritten."""
        rank = len(self.grid)
        return [
            (source, target)
            for source, target in other.pairs
            if buffer_of(target) not in self.accesses.of
            and not any(
                self.accesses.disturbed(replace(over, writes=True), rank)
                for over in other.accesses.of.get(buffer_of(source), ())
                if over.value == source
            )
        ]

    def take(self, other: _Work) -> None:
        later = other.accesses.of
        self.pairs = [p for p in self.pairs if buffer_of(p[0]) not in later] + self._pairs_of(other)
        self.ops += other.ops
        self.grid = [a & b for a, b in zip(self.grid, other.grid, strict=True)]
        for access in other.accesses:
            self.accesses.add(access)


@dataclass(frozen=True)
class Group:
    """Operations that become one kernel, in order. ``pairs``: see `mark_pairs`."""

    ops: list[Any]
    pairs: list[Pair]

    @property
    def main(self) -> Any:
        """What the kernel has its name and its schedule from: the first operation that reduces, else the last."""
        return next((op for op in self.ops if "reduction" in kinds_of(op, maps_of(op))), self.ops[-1])


def merge_groups(groups: Sequence[list[Any]]) -> list[Group]:
    """``groups`` of operations, a kernel each, in the order of the program; neighbours become one where they can.

    What stands between those of one group and computes sizes, or allocates, moves in front of it.
    """
    found: list[Group] = []
    blocks: dict[Any, _Positions] = {}
    next_: _Work | None = None
    moved: list[Any] = []
    for group in reversed(groups):  # fills belong to what follows
        block = group[0].block
        positions = blocks.get(block) or blocks.setdefault(block, _Positions(block))
        work = _work_of(group)
        if next_ and work and next_.ops[0].block == block and work.can_take(next_, positions):
            between = positions.between(work.ops[-1], next_.ops[0])
            if all(map(_can_be_earlier, between)):
                moved = [op for op in between if op.name != "memref.dealloc"] + moved
                for op in moved:
                    op.move_before(work.ops[0])
                work.take(next_)
                found[-1] = Group(work.ops, work.pairs)
                next_ = work
                continue
        next_, moved = work, []
        found.append(Group(group, elementwise_pairs(group[0]) if len(group) == 1 else []))
    return found[::-1]


def sink_fills(function: Any, chosen: Callable[[Any], bool] = mlir_util.is_on_device) -> None:
    """Move every ``linalg.fill`` of a ``chosen`` buffer of ``function`` to the first operation that uses it.

    A fill of two buffers with the same is one operation on tensors, and becomes two in one place.
    """
    numbers: dict[Any, dict[Any, int]] = {}
    for fill in [op for op in mlir_util.named(function, "linalg.fill") if chosen(op.operands[1])]:
        order = numbers.get(fill.block) or numbers.setdefault(fill.block, _numbers(fill.block))
        users = (_ancestor(user, order) for user in _users(buffer_of(fill.operands[1])))
        later = [user for user in users if user is not None and order[user] > order[fill]]
        if later:
            fill.move_before(min(later, key=lambda user: order[user]))


def _work_of(group: list[Any]) -> _Work | None:
    """None for what stays as it is."""
    if all(op.name == "memref.store" for op in group):
        stored = _Accesses(_Access(op.operands[1], None, writes=True) for op in group)
        return _Work(list(group), [], stored, [])
    (op,) = group
    if not op.name.startswith("linalg.") or len(op.results) or _has_effects(op):
        return None
    maps = maps_of(op)
    if not maps:
        return None
    operands = list(op.operands)
    inputs = len(operands) - output_count(op)
    kinds = kinds_of(op, maps)
    rank = kinds.count("parallel")
    places = [place_of(map_) for map_ in maps]
    written = [set(place) if place is not None else None for place in places[inputs:]]
    if kinds[:rank] != ["parallel"] * rank or any(loops != set(range(rank)) for loops in written):
        return None
    grid: list[set[Any]] = [set() for _ in range(rank)]
    accesses: list[_Access] = []
    for number, (value, map_, place) in enumerate(zip(operands, maps, places, strict=True)):
        if not mlir_util.is_memref(value.type):
            continue
        accesses.append(_Access(value, place, number >= inputs))
        for axis, index in enumerate(map_.results):
            if isinstance(index, ir.AffineDimExpr) and index.position < rank:
                grid[index.position].add(_size(value, axis))
    inside = [value for child in mlir_util.children(op) for value in mlir_util.captured_values(child)]
    accesses += [_Access(value, None, writes=False) for value in inside if mlir_util.is_memref(value.type)]
    return _Work([op], grid, _Accesses(accesses), elementwise_pairs(op))


def _has_effects(op: Any) -> bool:
    """Whether the body does anything by itself but compute and read."""
    inside = (inner for child in mlir_util.children(op) for inner in mlir_util.walk(child))
    return any(
        not (known := facts(inner.name)).pure
        or known.control in CALLS
        or (known.writes != () and any(mlir_util.is_memref(value.type) for value in inner.operands))
        for inner in inside
    )


def _size(value: Any, axis: int) -> Any:
    """The extent of a buffer: a number, a value, or whose it is."""
    type_ = ir.MemRefType(value.type)
    if not type_.is_dynamic_dim(axis):
        return type_.get_dim_size(axis)
    owner = None if isinstance(value.owner, ir.Block) else value.owner.operation
    if owner is None or owner.name != "memref.alloc":
        return value, axis
    size = owner.operands[sum(type_.is_dynamic_dim(before) for before in range(axis))]
    maker = None if isinstance(size.owner, ir.Block) else size.owner.operation
    if maker is None or maker.name != "memref.dim":
        return size
    axis_of = mlir_util.constant_integer(maker.operands[1])
    return size if axis_of is None else _size(maker.operands[0], axis_of)


def _are_equal(one: set[Any], two: set[Any]) -> bool:
    """Whether two loops are known to be equally long. Both lengths are numbers, or neither: loops of 1 vanish."""
    numbers = [{size for size in sizes if isinstance(size, int)} for sizes in (one, two)]
    return numbers[0] == numbers[1] and not one.isdisjoint(two)


def _is_constant(buffer: Any) -> bool:
    return not isinstance(buffer.owner, ir.Block) and buffer.owner.operation.name == "memref.get_global"


def _users(buffer: Any) -> list[Any]:
    """What may use the contents of ``buffer``, by itself or by a view."""
    found: list[Any] = []
    for use in buffer.uses:
        op = use.owner.operation
        known = facts(op.name)
        if known.view_of is None:
            found += [] if known.frees or known.query else [op]
        else:
            found += [user for result in op.results for user in _users(result)]
    return found


def _ancestor(op: Any, order: dict[Any, int]) -> Any:
    """The operation of ``order`` that ``op`` is or stands in, or None."""
    while op is not None and op not in order:
        op = op.parent and op.parent.operation
    return op


def _can_be_earlier(op: Any) -> bool:
    """Whether ``op`` can move in front of kernels that do not use its results; or they, in front of it."""
    known = facts(op.name)
    return known.frees or (not list(op.regions) and not known.reads_scalars and (known.pure or known.allocates))
