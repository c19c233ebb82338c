"""Which operations on buffers go over the same rows, and can be one pass over them.

A row of a buffer is what its first axes are indexed to. Operations that stand side by side are done row by row
where each buffer that one of them writes and another uses is used by rows of the same number: a row is in the
cache, then, while all steps are done to it. They may write different parts of a row, such as what a pad copies and
its border.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.buffer_users import Code, is_quiet, used_buffers
from devscope.lowering.kernels.nest import Nest, Operand, copy_nest, match, product_of
from devscope.lowering.kernels.nest_bodies import uses
from devscope.lowering.kernels.row_passes import is_on_stack
from devscope.lowering.kernels.table import Schedules
from devscope.lowering.mlir_util import Builder

_LEAST_ROWS = 8
_LEAST_COLUMNS = 16
"""Of fewer of both, as far as they are known, loops over whole buffers are faster."""

_LONG_ROW = 1 << 16
"""Elements that are work for several threads."""


def row_groups(ops: Sequence[Any], linalg: Any) -> list["RowGroup"]:
    """Operations among ``ops``, all of a function or module, that follow each other and share rows.

    Fills between them belong to a group if only its next operation uses what they fill.
    """
    code = Code(ops)
    groups: list[RowGroup] = []
    for block in mlir_util.by_block(ops):
        group = RowGroup(code)
        groups.append(group)
        waiting: Nest | None = None
        for op in block:
            if is_quiet(op):
                continue
            nest = _nest(op, linalg)
            if nest is None:  # may use what is waiting, too
                group, waiting = RowGroup(code), None
                groups.append(group)
                continue
            if group.take(nest) and (waiting is None or group.take_before_last(waiting)):
                waiting = None
                continue
            if op.name == "linalg.fill" and waiting is None and group.nests:
                waiting = nest
                continue
            if waiting is not None and group.nests[-1] is nest:
                group.nests.pop()
            group = RowGroup(code)
            groups.append(group)
            for each in (nest,) if waiting is None else (waiting, nest):
                if not group.take(each) and group.nests[-1] is not each:  # what has no rows is alone
                    group = RowGroup(code)
                    groups.append(group)
                    group.take(each)
            waiting = None
    return [group for group in groups if group.nests]


def _nest(op: Any, linalg: Any) -> Nest | None:
    if op.name == "memref.copy":
        nest = copy_nest(op)
    elif op.name.startswith("linalg."):
        nest = match(op, linalg)
    else:
        nest = None
    if nest is None or not nest.is_pure or any(mlir_util.is_on_device(o.value) for o in nest.operands):
        return None
    return nest


def _rows(nest: Nest) -> int:
    """How many of the first axes of all results can be those of rows."""
    count = 0
    for loops in zip(*(result.dims for result in nest.results), strict=False):
        if len(set(loops)) > 1 or not nest.parallel[loops[0]]:
            break
        count += 1
    return count


class _Shared:
    """What members of a group use, so that one that comes is compared with those alone that it concerns."""

    def __init__(self) -> None:
        self.written: set[Any] = set()
        self.views: dict[Any, set[Any]] = {}
        self.users: dict[Any, list[Nest]] = {}
        self.operands: dict[Any, list[tuple[Operand, Nest]]] = {}
        """Of each buffer, what uses it or views of it."""


@dataclass
class RowGroup:
    """``rows``: how many axes say which row."""

    code: Code
    nests: list[Nest] = field(default_factory=list[Nest])
    rows: int = 0
    _shared: _Shared = field(default_factory=_Shared)

    def take(self, nest: Nest) -> bool:
        """Add an operation, which stands behind all others, if it can be done row by row with them."""
        rows = _rows(nest)
        if not self.nests:
            self.rows = rows
            self._add(nest)
            return rows > 0
        # As many axes as all buffers agree on that are written.
        written = self._shared.written | {self.code.root(o.value) for o in nest.results}
        counts = range(min(rows, self.rows), 0, -1)
        agrees = (
            n for n in counts if self._agrees(nest, written, n) and self._has_parts_of_rows(nest, written, n)
        )
        common = next(agrees, 0)
        if not common:
            return False
        if not self._is_connected(nest, common) or self._is_worth_more(common):
            return False
        self.rows = common
        self._add(nest)
        return True

    def _add(self, nest: Nest) -> None:
        self.nests.append(nest)
        shared = self._shared
        shared.written.update(self.code.root(o.value) for o in nest.results)
        for value, buffer in self.code.buffers(nest).items():
            shared.views.setdefault(buffer, set()).add(value)
            shared.users.setdefault(buffer, []).append(nest)
        for operand in nest.operands:
            if operand.is_buffer:
                shared.operands.setdefault(self.code.root(operand.value), []).append((operand, nest))

    def _has_parts_of_rows(self, nest: Nest, written: set[Any], rows: int) -> bool:
        """Whether all use the same value of each buffer that is written, or parts of its rows."""
        views: dict[Any, set[Any]] = {}
        for value, buffer in self.code.buffers(nest).items():
            views.setdefault(buffer, set()).add(value)
        for buffer in written & set(views):
            values = views[buffer] | self._shared.views.get(buffer, set())
            if len(values) > 1 and not all(self.code.has_parts_of_rows(value, rows) for value in values):
                return False
        return True

    def in_parts(self) -> set[Any]:
        """Views of buffers that are written, of which others are used, too."""
        views = (values for buffer, values in self._shared.views.items() if buffer in self._shared.written)
        return {value for values in views if len(values) > 1 for value in values if value != self.code.root(value)}

    def _is_worth_more(self, rows: int) -> bool:
        """Whether this has rows enough for all threads, and longer ones would be few, or nobody knows how many."""
        if rows == self.rows or all(all(nest.parallel) for nest in self.nests):
            return False
        count = self._size(self.nests[0], rows, inside=False)
        if count is not None and count >= _LEAST_ROWS:
            return False
        return any((self._size(nest, rows, inside=True) or 0) >= _LONG_ROW for nest in self.nests)

    @staticmethod
    def _size(nest: Nest, rows: int, *, inside: bool) -> int | None:
        """How many rows there are, or how often the loops in one run."""
        around = nest.results[0].dims[:rows]
        loops = [loop for loop in range(len(nest.parallel)) if (loop in around) != inside]
        return product_of(nest.static_extent(loop) for loop in loops)

    def take_before_last(self, nest: Nest) -> bool:
        """Add an operation that stands in front of the last member."""
        if not self.take(nest):
            return False
        self.nests[-2:] = self.nests[:-3:-1]
        return True

    def _agrees(self, nest: Nest, written: set[Any], rows: int) -> bool:
        return self._has_parts_of_rows(nest, written, rows) and all(
            self.is_by_rows(each, root, rows)
            for root in written & set(self.code.buffers(nest).values())
            if root in self._shared.users
            for each in (nest, *self._shared.users[root])
        )

    def is_by_rows(self, nest: Nest, root: Any, rows: int) -> bool:
        """Whether ``nest`` uses of the buffer ``root`` only the row that it writes."""
        if root in self.code.loads(nest):
            return False
        first = nest.results[0].dims[:rows]
        own = [o for o in nest.operands if o.is_buffer and self.code.root(o.value) == root]
        return all(o.dims[:rows] == first for o in own)

    def _is_connected(self, nest: Nest, rows: int) -> bool:
        """Whether the number of rows is the same."""
        ours = [o.value for o in nest.operands if o.is_buffer and o.dims[:rows] == nest.results[0].dims[:rows]]
        return any(
            operand.dims[:rows] == member.results[0].dims[:rows]
            and self._are_rows_of_one(value, operand.value, rows)
            for value in ours
            for operand, member in self._shared.operands.get(self.code.root(value), ())
        )

    def _are_rows_of_one(self, one: Any, other: Any, rows: int) -> bool:
        return one == other or all(self.code.has_parts_of_rows(value, rows) for value in (one, other))

    def temporaries(self) -> list[Any]:
        """Buffers that are made in the same block and used by nothing else."""
        members = [nest.op for nest in self.nests]
        values = dict.fromkeys(value for nest in self.nests for value in used_buffers(nest))
        return [
            value
            for value in values
            if self.code.maker_name(value) == "memref.alloc"
            and self.code.makers[value].block == members[0].block
            and all(user in members for user in self.code.users[value])
        ]

    def write_results_once(self, least: int) -> None:
        """Buffers of ``least`` bytes or more, in which steps before the last one keep rows: one row is enough."""
        last, in_parts = self.nests[-1], {self.code.root(value) for value in self.in_parts()}
        for result in {o.value: o for o in last.results}.values():
            earlier = [nest for nest in self.nests[:-1] if result.value in used_buffers(nest)]
            type_ = ir.MemRefType(result.value.type)
            size = mlir_util.static_bytes(type_)
            if not earlier or (size is not None and size < least) or not is_on_stack(type_, self.rows):
                continue
            if self.code.root(result.value) in in_parts:
                continue
            if not all(_is_whole(nest, result.value) for nest in (earlier[0], last)):
                continue
            build, type_ = Builder(self.nests[0].op), mlir_util.buffer_type(type_.shape, type_.element_type)
            row = self.code.add(build.grouped("memref.alloc", [build.dynamic_sizes(result.value), []], [type_]))
            for nest in earlier:
                nest.replace(result.value, row)
            last.replace(result.value, row, last.inputs)
            self.code.users[row] = [nest.op for nest in (*earlier, last)]

    def note(self, schedules: Schedules) -> None:
        """Say which operations are one pass over rows."""
        first = None
        for nest in self.nests:
            extents = [nest.static_extent(loop) for loop in range(len(nest.parallel))]
            around = set(nest.results[0].dims[: self.rows])
            sizes = {
                name: product_of(extent for loop, extent in enumerate(extents) if (loop in around) == is_row)
                for name, is_row in (("rows", True), ("columns", False))
            }
            element = str(ir.MemRefType(nest.results[0].value.type).element_type)
            first = schedules.note_loops(nest.op, element, sizes, first)

    def row_count(self) -> int | None:
        """None where it is not known."""
        return self._size(self.nests[0], self.rows, inside=False)

    def _work(self) -> int | None:
        """In elements that are read or written, about; None where sizes are not known."""
        extents = [[nest.static_extent(loop) for loop in range(len(nest.parallel))] for nest in self.nests]
        known = [product_of([nest.cost(), *each]) for nest, each in zip(self.nests, extents, strict=True)]
        found = [work for work in known if work is not None]
        return sum(found) if len(found) == len(known) else None

    def pays(self, little: int = 0) -> bool:
        """``little``: where operations are launches, work that is one task's anyway: all are one launch, then."""
        if len(self.nests) < 2:
            return False
        if all(len(nest.parallel) == self.rows for nest in self.nests):
            self.rows -= 1
        if self.rows == 0:
            return False
        launched = [nest for nest in self.nests if nest.op.name not in ("linalg.fill", "memref.copy")]
        if len(launched) > 1 and (work := self._work()) is not None and work < little:
            return True
        # What stands side by side is in one row, so that vectors take it, also where the first axis is summed up.
        while self.rows and not self._is_shared(by_rows=True):
            if not self._is_shared(by_rows=False):
                return False
            self.rows -= 1
        rows = self.row_count()
        return self.rows > 0 and (rows is None or rows >= _LEAST_ROWS)

    def _is_shared(self, *, by_rows: bool) -> bool:
        """Whether several members use the same long parts of a buffer; ``by_rows``: of the row that they write."""
        seen: dict[Any, int] = {}
        in_parts = self.in_parts()
        for nest in self.nests:
            first = nest.results[0].dims[: self.rows]
            used = [o for o in nest.operands if o.is_buffer and len(o.dims) > self.rows]
            values = {o.value for o in used if not by_rows or o.dims[: self.rows] == first}
            for value in {self.code.root(value) if value in in_parts else value for value in values}:
                seen[value] = seen.get(value, 0) + 1
        return any(count > 1 and _is_long(value, self.rows) for value, count in seen.items())


def _is_whole(nest: Nest, value: Any) -> bool:
    """Whether ``nest`` writes all elements of a buffer, and none because of what that held."""
    if nest.op.name == "memref.copy":
        return nest.results[0].value == value
    arguments = mlir_util.entry_block(nest.op).arguments
    own = [number for number, operand in enumerate(nest.operands) if operand.value == value]
    results = [number for number in own if number >= nest.inputs]
    return (
        len(results) == 1
        and all(nest.parallel)
        and (
            len(nest.operands[results[0]].dims) == len(nest.parallel)
            and arguments[results[0]] not in uses(nest.op)
        )
    )


def _is_long(value: Any, rows: int) -> bool:
    inside = ir.MemRefType(value.type).shape[rows:]
    return ir.ShapedType.get_dynamic_size() in inside or prod(inside) >= _LEAST_COLUMNS
