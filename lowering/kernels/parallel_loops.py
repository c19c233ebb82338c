"""Parallel loops, such as those of scatters and scans, on the host: in which order, and by how many tasks.

Iterations are independent, so each step may be done of all of them before the next one. Where elements stand side
by side along one of the loops, that becomes the innermost one, inside of loops and branches that are the same for
all its iterations: rows are scattered as wholes, and columns summed up side by side. What iterations carry from
step to step is in memory on the stack then.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.access_distances import VIEWS, side_by_side
from devscope.lowering.kernels.control_flow import for_loop, if_else
from devscope.lowering.kernels.nest import Numbers
from devscope.lowering.mlir_util import Builder

_ARITHMETIC = frozenset({"arith", "math", "complex", "index", "ub"})
_ACCESSES = frozenset({"memref.load", "memref.store"})
_OTHERS = frozenset({"memref.dim", "affine.apply", "scf.for", "scf.if", "scf.yield", "scf.reduce"})
_WHILE = frozenset({"scf.while", "scf.condition"})
_ENDS = "devscope.ends"
"""On loops that a lowering made, of which it knows that they end soon."""
_ROOM = 1024
"""Iterations side by side that carry something: what they carry stays in the first cache."""
_UNIT = 256
"""Iterations of the innermost loop, of which tasks have multiples."""

_Range = tuple[Any, Any]


def lower_parallel_loops(module: Any, numbers: Numbers) -> None:
    """Of every ``scf.parallel`` of ``module`` without results: loops, and an ``scf.forall`` over tasks, if any."""
    loops = [op for op in mlir_util.walk(module.operation) if op.name == "scf.parallel" and not list(op.results)]
    for loop in reversed(loops):  # inner ones are loops of outer ones then
        _Loops(loop, numbers).lower()
        loop.erase()


def lower_along_rows(function: Any, numbers: Numbers) -> bool:
    """Make loops over tasks of the ``scf.parallel`` operations in the body of ``function``, if what each iteration
    does goes along rows of its own, one after the other; False if it stays."""
    loops = [_Loops(op, numbers) for op in mlir_util.children(function) if op.name == "scf.parallel"]
    if not loops or not all(loop.goes_along_rows for loop in loops):
        return False
    for loop in loops:
        loop.lower()
        loop.op.erase()
    return True


class _Loops:
    """One operation: how its loops are done."""

    def __init__(self, op: Any, numbers: Numbers) -> None:
        self.op, self._numbers = op, numbers
        self._body = mlir_util.entry_block(op)
        self._indices = list(self._body.arguments)
        rank = len(self._indices)
        operands = list(op.operands)
        self._lower, upper, self._step = operands[:rank], operands[rank : 2 * rank], operands[2 * rank : 3 * rank]
        inside = [each for child in mlir_util.children(op) for each in mlir_util.walk(child)]
        known = _ACCESSES | _OTHERS
        self._is_simple = all(_is_pure(each) or each.name in known for each in inside)
        # Nobody asks in a task whether the call is to be left.
        loops = [each for each in inside if each.name in ("scf.for", "scf.while") and _ENDS not in each.attributes]
        ends_soon = all(each.name == "scf.for" and all(map(_is_size, list(each.operands)[:3])) for each in loops)
        self._can_be_tasks = ends_soon and all(_is_pure(each) or each.name in known | _WHILE for each in inside)
        self._innermost = self._find_innermost(inside) if self._is_simple else None
        has_loops = any(each.name == "scf.for" for each in inside)
        self.goes_along_rows = self._is_simple and self._can_be_tasks and has_loops and self._innermost is None
        build = Builder(op)
        self._zero, self._one = build.constant(0), build.constant(1)
        self._extents = [_trips(build, *bounds) for bounds in zip(self._lower, upper, self._step, strict=True)]
        self._outer = [number for number in range(rank) if number != self._innermost]

    def lower(self) -> None:
        build = Builder(self.op)
        total, width = self._one, self._one
        for number, extent in enumerate(self._extents):
            if number == self._innermost:
                width = extent
            else:
                total = _product(build, total, extent)
        if not self._can_be_tasks or _is_inside(self.op, "scf.parallel"):
            self._one_after_the_other(build, self._outer, {}, width)
            return

        def value(name: str, *operands: Any) -> Any:
            return build.value(f"arith.{name}", operands, build.index)

        work = _product(build, _product(build, total, width), self._work(build, self._body))
        most = value("maxui", value("divui", work, build.constant(self._numbers["grain"])), self._one)
        rows = value("minui", total, most)
        # Each part of the columns goes through all that is the same for them, so there are few.
        units = value("ceildivui", width, build.constant(_UNIT))
        parts = value("divui", most, value("maxui", rows, self._one))
        columns = value("minui", value("minui", units, parts), build.constant(self._numbers["row_tasks"]))
        (forall,) = build.insert("scf.forall (%task) in (%0) {\n}", [build.multiply(rows, columns)])
        inside = Builder(mlir_util.children(forall)[-1])
        task = mlir_util.entry_block(forall).arguments[0]
        row = inside.value("arith.divui", [task, columns], inside.index)
        column = inside.value("arith.remui", [task, columns], inside.index)
        unit = inside.constant(_UNIT if self._innermost is not None else 1)
        self._points(
            inside, _part(inside, row, total, rows, self._one), _part(inside, column, width, columns, unit)
        )

    def _points(self, build: Builder, rows: _Range, columns: _Range) -> None:
        """Iterations ``rows`` of all but the innermost loop, which are counted as one, by ``columns`` of that."""

        def row(inside: Builder, place: Any, _: list[Any]) -> list[Any]:
            mapping: dict[Any, Any] = {}
            for number in reversed(self._outer):
                at = place
                if number != self._outer[0]:
                    at = inside.value("arith.remui", [place, self._extents[number]], inside.index)
                    place = inside.value("arith.divui", [place, self._extents[number]], inside.index)
                mapping[self._indices[number]] = self.index(inside, number, at)
            self._row(inside, mapping, columns)
            return []

        for_loop(build, (*rows, self._one), [], row)

    def _one_after_the_other(
        self, build: Builder, outer: Sequence[int], mapping: Mapping[Any, Any], width: Any
    ) -> None:
        if not outer:
            self._row(build, dict(mapping), (self._zero, width))
            return
        number, *others = outer

        def row(inside: Builder, place: Any, _: list[Any]) -> list[Any]:
            at = self.index(inside, number, place)
            self._one_after_the_other(inside, others, {**mapping, self._indices[number]: at}, width)
            return []

        for_loop(build, (self._zero, self._extents[number], self._one), [], row)

    def _row(self, build: Builder, mapping: dict[Any, Any], columns: _Range) -> None:
        if self._innermost is None:
            _clone(build, mlir_util.children(self.op)[:-1], mapping)
        else:
            _Columns(self, self._innermost, build, self.op).emit(build, mapping, columns)

    def index(self, build: Builder, number: int, at: Any) -> Any:
        """The index of a loop in its iteration ``at``."""
        return build.value(
            "arith.addi", [self._lower[number], build.multiply(at, self._step[number])], build.index
        )

    def _find_innermost(self, inside: Sequence[Any]) -> int | None:
        """The loop along which most elements stand side by side, if none in the body is better."""
        accesses = [op for op in inside if op.name in _ACCESSES]
        loops = [mlir_util.entry_block(op).arguments[0] for op in inside if op.name == "scf.for"]
        if not loops:
            return None
        scores = [side_by_side(accesses, index) for index in self._indices]
        best = max(scores)
        is_best = best > max(0, *(side_by_side(accesses, index) for index in loops))
        return max(n for n, score in enumerate(scores) if score == best) if is_best else None

    def _work(self, build: Builder, block: Any) -> Any:
        """Of one iteration, in elements that are read and written; a loop of unknown length counts as one step."""
        ops = [op.operation for op in block.operations]
        total = build.constant(sum(op.name in _ACCESSES for op in ops) + len(ops) // 8)
        for op in ops:
            for inner in mlir_util.blocks_of(op):
                work = self._work(build, inner)
                bounds = [self._at_most(value) for value in list(op.operands)[:3]]
                if op.name == "scf.for" and not any(self._is_own(value) for value in bounds):
                    work = _product(build, work, _trips(build, *bounds))
                total = build.value("arith.addi", [total, work], build.index)
        return total

    def _at_most(self, value: Any) -> Any:
        """What ``value`` is at most, known outside of the body, if it says so."""
        maker = mlir_util.maker(value, "arith.minui")
        most = [] if maker is None else [operand for operand in maker.operands if not self._is_own(operand)]
        return most[0] if most and self._is_own(value) else value

    def _is_own(self, value: Any) -> bool:
        """Whether ``value`` is made in the body."""
        owner = value.owner
        return owner == self._body or _is_inside(owner.owner if isinstance(owner, ir.Block) else owner, self.op)


class _Columns:
    """The innermost loop, which goes into the blocks of the body."""

    def __init__(self, loops: _Loops, number: int, build: Builder, op: Any) -> None:
        self._loops, self._number = loops, number
        self._block = mlir_util.entry_block(op)
        self._index = self._block.arguments[number]
        self._build = build
        self._dependent = {self._index}
        self._mark(self._block)
        inside = [each for child in mlir_util.children(op) for each in mlir_util.walk(child)]
        self._carries = any(each.name == "scf.for" and list(each.results) for each in inside)
        self._again: list[Any] = []
        self._rooms: dict[Any, Any] = {}

    def emit(self, build: Builder, mapping: Mapping[Any, Any], columns: _Range) -> None:
        if not self._carries:
            self._emit(build, self._block, mapping, columns, [])
            return
        most = build.constant(_ROOM)

        def part(inside: Builder, begin: Any, _: list[Any]) -> list[Any]:
            left = inside.value("arith.subi", [columns[1], begin], inside.index)
            size = inside.value("arith.minui", [left, most], inside.index)
            end = inside.value("arith.addi", [begin, size], inside.index)
            self._emit(inside, self._block, mapping, (begin, end), [])
            return []

        for_loop(build, (*columns, most), [], part)

    def _mark(self, block: Any) -> None:
        """Find what depends on the index, or is carried, in the order of the operations."""
        for op in (each.operation for each in block.operations):
            if op.name == "scf.for":
                self._dependent.update(list(mlir_util.entry_block(op).arguments)[1:])
            for inner in mlir_util.blocks_of(op):
                self._mark(inner)
            if len(op.regions) or any(value in self._dependent for value in op.operands):
                self._dependent.update(op.results)

    def _is_shared(self, op: Any) -> bool:
        """Whether ``op`` is a loop or a branch that is the same for all iterations."""
        if op.name == "scf.for":
            return not any(value in self._dependent for value in list(op.operands)[:3])
        return op.name == "scf.if" and not list(op.results) and op.operands[0] not in self._dependent

    def _emit(
        self, build: Builder, block: Any, mapping: Mapping[Any, Any], columns: _Range, into: Sequence[Any]
    ) -> None:
        """Iterations ``columns`` of a block; ``into``: rooms for what it yields."""
        mapping = dict(mapping)
        *ops, end = [op.operation for op in block.operations]
        yielded = list(end.operands)
        at = next((n for n, op in enumerate(ops) if self._is_shared(op)), None)
        if at is None or any(op.name == "memref.store" or len(op.regions) for op in ops[:at]):
            self._each(build, ops, mapping, columns, yielded, into)
            return
        shared, again = ops[at], len(self._again)
        own: list[Any] = []
        for op in ops[:at]:
            is_own = any(value in self._dependent for value in op.operands)
            if not is_own:
                _clone(build, [op], mapping)
            elif _is_pure(op):
                self._again.append(op)
            else:
                own.append(op)
        carried = list(shared.results)
        begins = [*(value for op in own for value in op.results), *list(shared.operands)[3:]]
        rooms = [self._room(value) for value in begins]
        if begins:
            self._each(build, own, mapping, columns, begins, rooms)
        count = len(begins) - len(carried)
        self._rooms.update(zip([*begins[:count], *carried], rooms, strict=True))
        operands = [mapping.get(value, value) for value in shared.operands]
        if shared.name == "scf.if":
            branches = [list(region.blocks) for region in shared.regions]

            def fill(blocks: list[Any], inside: Builder) -> list[Any]:
                for inner in blocks:
                    self._emit(inside, inner, mapping, columns, [])
                return []

            then, other = branches
            if_else(build, operands[0], lambda inside: fill(then, inside), lambda inside: fill(other, inside), [])
        else:
            body = mlir_util.entry_block(shared)
            index, *values = body.arguments
            self._rooms.update(zip(values, rooms[count:], strict=True))

            def step(inside: Builder, place: Any, _: list[Any]) -> list[Any]:
                self._emit(inside, body, {**mapping, index: place}, columns, rooms[count:])
                return []

            for_loop(build, (operands[0], operands[1], operands[2]), [], step)
        if ops[at + 1 :] or yielded:
            self._each(build, ops[at + 1 :], mapping, columns, yielded, into)
        del self._again[again:]

    def _each(
        self,
        build: Builder,
        ops: Sequence[Any],
        mapping: Mapping[Any, Any],
        columns: _Range,
        values: Sequence[Any],
        into: Sequence[Any],
    ) -> None:
        """The loop itself; ``values`` go into the rooms ``into``."""

        def point(inside: Builder, place: Any, _: list[Any]) -> list[Any]:
            here = {**mapping, self._index: self._loops.index(inside, self._number, place)}
            in_room = inside.value("arith.subi", [place, columns[0]], inside.index)
            for value, room in self._rooms.items():
                here[value] = inside.value("memref.load", [room, in_room], value.type)
            _clone(inside, [*self._again, *ops], here)
            for value, room in zip(values, into, strict=True):
                inside.op("memref.store", [here.get(value, value), room, in_room])
            return []

        for_loop(build, (*columns, build.constant(1)), [], point)

    def _room(self, value: Any) -> Any:
        return self._build.at_begin_of_task().alloc_on_stack(mlir_util.buffer_type([_ROOM], value.type))


def _is_pure(op: Any) -> bool:
    return (
        op.name.partition(".")[0] in _ARITHMETIC or op.name in VIEWS or op.name in ("memref.dim", "affine.apply")
    )


def _clone(build: Builder, ops: Sequence[Any], mapping: dict[Any, Any]) -> None:
    """Copies of ``ops``, whose results are entered in ``mapping``."""
    for op in ops:
        made = build.clone(op)
        mlir_util.remap_operands(made, mapping)
        mapping.update(zip(op.results, made.results, strict=True))


def _trips(build: Builder, lower: Any, upper: Any, step: Any) -> Any:
    extent = build.value("arith.subi", [upper, lower], build.index)
    count = build.value("arith.ceildivsi", [extent, step], build.index)
    return build.value("arith.maxsi", [count, build.constant(0)], build.index)


def _product(build: Builder, left: Any, right: Any) -> Any:
    """Of two numbers that are not negative; the largest one where it is none."""
    text = """
      %low, %high = arith.mului_extended %0, %1 : index
      %most = arith.constant 9223372036854775807 : index
      %c0 = arith.constant 0 : index
      %is_small = arith.cmpi eq, %high, %c0 : index
      %is_number = arith.cmpi sge, %low, %c0 : index
      %fits = arith.andi %is_small, %is_number : i1
      %product = arith.select %fits, %low, %most : index"""
    return build.insert(text, [left, right])[-1].results[0]


def _is_size(value: Any) -> bool:
    """Whether a number is known, or computed of known ones and of the extents of buffers."""
    if isinstance(value.owner, ir.Block):
        return False
    op = value.owner.operation
    if op.name in ("memref.dim", "arith.constant"):
        return True
    return op.name.startswith("arith.") and all(_is_size(operand) for operand in op.operands)


def _part(build: Builder, number: Any, extent: Any, count: Any, unit: Any) -> _Range:
    """Part ``number`` of ``count`` equal ones, in multiples of ``unit``."""
    size = build.value(
        "arith.ceildivui", [build.value("arith.ceildivui", [extent, count], build.index), unit], build.index
    )
    size = build.multiply(size, unit)
    begin = build.value("arith.minui", [build.multiply(number, size), extent], build.index)
    end = build.value("arith.addi", [begin, size], build.index)
    return begin, build.value("arith.minui", [end, extent], build.index)


def _is_inside(op: Any, around: Any) -> bool:
    """Whether ``op`` is in the operation ``around``, or in one of that name."""
    op = op.operation
    while op.name != "func.func":
        op = op.parent
        if op == around or op.name == around:
            return True
    return False
