"""Operations of linalg on buffers as nests of loops: in which order, in how large parts, and by how many tasks.

The innermost loop is the one along which most operands have their elements side by side: LLVM vectorises it. What
loops sum up that way stays in registers; where loops sum up rows, a part of a row at a time stays in the cache.
Loops that read one operand and write another in different orders go by blocks of both.

What can be done in any order becomes tasks, so many as the work is worth: `numbers` of the target's table of
schedules say how much that is. Sums are reassociated, as vectors and tasks need it; nothing else is.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop import bindings
from devscope.lowering.interop.bindings import ir
from devscope.lowering.mlir_util import Builder

ROWS = "devscope.rows"
"""On a function: its operations of linalg share so many outermost loops, the first axes of their results."""

SCRATCH = "devscope.scratch"
"""On such a function: the position of the first buffer that has room for one row of each task."""

Numbers = Mapping[str, int]

_TASK = -1
"""What indexes the first axis of a buffer that each task has a part of."""

_PURE = frozenset({"arith", "math", "complex", "index", "ub"})
_PURE_OPS = frozenset(
    {"affine.apply", "affine.min", "affine.max", "linalg.index", "linalg.yield", "scf.if", "scf.yield"}
    | {"memref.load", "memref.dim"}
)

#: What combines two partial results into one, with what changes nothing; ``{}`` stands for the width of integers.
_NEUTRAL = {
    "arith.addf": "-0.0",
    "arith.mulf": "1.0",
    "arith.addi": "0",
    "arith.muli": "1",
    "arith.andi": "-1",
    "arith.ori": "0",
    "arith.xori": "0",
}
_REASSOCIATED = ("arith.addf", "arith.mulf")
_EXTREMA = ("arith.maximumf", "arith.minimumf", "arith.maxsi", "arith.minsi", "arith.maxui", "arith.minui")


@dataclass
class Operand:
    """``dims``: the loop that indexes each axis; none for a scalar that is no buffer."""

    value: Any
    dims: tuple[int, ...]

    @property
    def is_buffer(self) -> bool:
        return mlir_util.is_memref(self.value.type)

    def contiguous(self) -> int | None:
        """The loop along which elements stand side by side."""
        if not self.is_buffer:
            return None
        type_ = ir.MemRefType(self.value.type)
        strides, _ = type_.get_strides_and_offset()
        axes = (axis for axis in reversed(range(type_.rank)) if strides[axis] == 1 and type_.shape[axis] != 1)
        return next((self.dims[axis] for axis in axes), None)


@dataclass
class Nest:
    """An operation: ``operands`` are first the ``inputs`` ones that are read, then the results.

    ``parallel``: for each loop, whether its iterations can be done in any order. ``is_pure``: whether the body
    neither fails nor allocates.
    """

    op: Any
    operands: list[Operand]
    inputs: int
    parallel: list[bool]
    is_pure: bool
    temporaries: Mapping[Any, Any] = field(default_factory=dict[Any, Any])
    """Buffers that hold a row of each task in the end, and what makes them."""

    @property
    def results(self) -> list[Operand]:
        return self.operands[self.inputs :]

    def place(self, loop: int) -> tuple[Operand, int]:
        """An operand and its axis that say how often ``loop`` runs."""
        return next((o, o.dims.index(loop)) for o in reversed(self.operands) if o.is_buffer and loop in o.dims)

    def static_extent(self, loop: int) -> int | None:
        dynamic = ir.ShapedType.get_dynamic_size()
        buffers = [o for o in self.operands if o.is_buffer and loop in o.dims]
        extents = (ir.MemRefType(o.value.type).shape[o.dims.index(loop)] for o in buffers)
        return next((extent for extent in extents if extent != dynamic), None)

    def extent(self, build: Builder, loop: int) -> Any:
        if (static := self.static_extent(loop)) is not None:
            return build.constant(static)
        operand, axis = self.place(loop)
        if operand.value not in self.temporaries:
            return build.dim(operand.value, axis)
        shape = ir.MemRefType(operand.value.type).shape
        before = sum(size == ir.ShapedType.get_dynamic_size() for size in shape[:axis])
        return self.temporaries[operand.value].operands[before]

    def cost(self) -> int:
        """Of one iteration, in operations; functions count as much as they have, about."""
        body = [inner.name for child in mlir_util.children(self.op) for inner in mlir_util.walk(child)]
        return 1 + sum(16 if name.startswith("math.") else 1 for name in body)


def lower_nests(module: Any, numbers: Numbers) -> None:
    """All operations of ``module`` that index their operands by single loops; the others stay."""
    linalg: Any = None
    for function in mlir_util.functions(module):
        ops = [op for op in mlir_util.walk(function) if op.name.startswith("linalg.") and op.name not in _PURE_OPS]
        if not ops:
            continue
        linalg = linalg or bindings.load("_mlir_libs._mlirDialectsLinalg")
        if ROWS in function.attributes:
            _lower_rows(function, [nest for op in ops if (nest := match(op, linalg))], numbers)
            continue
        for op in ops:
            nest = match(op, linalg)
            if nest is not None:
                _lower(nest, numbers)


def match(op: Any, linalg: Any) -> Nest | None:
    """None for what is no nest of this kind, such as a convolution."""
    operands = list(op.operands)
    if len(op.regions) != 1 or list(op.results) or len(operands) < 2:
        return None
    inputs = len(operands) // 2 if op.name == "linalg.reduce" else len(operands) - 1
    if "operandSegmentSizes" in op.attributes:
        inputs, _ = ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])
    maps = linalg.get_indexing_maps(op)
    if maps is None or len(mlir_util.entry_block(op).arguments) != len(operands):
        return None
    maps = [ir.AffineMapAttr(map_).value for map_ in maps]
    if not all(map_.is_projected_permutation and map_.n_symbols == 0 for map_ in maps):
        return None
    dims: list[tuple[int, ...]] = []
    for value, map_ in zip(operands, maps, strict=True):
        results = list(map_.results)
        if isinstance(value.type, ir.ShapedType) and not mlir_util.is_memref(value.type):
            return None
        dims.append(tuple(ir.AffineDimExpr(expr).position for expr in results))
    parallel = [all(loop in used for used in dims[inputs:]) for loop in range(maps[0].n_dims)]
    if "iterator_types" in op.attributes:
        text = str(op.attributes["iterator_types"])  # as objects they would load all of linalg
        kinds = re.findall("parallel|reduction|window", text)
        parallel = [p and kind == "parallel" for p, kind in zip(parallel, kinds, strict=True)]
    found = [Operand(value, used) for value, used in zip(operands, dims, strict=True)]
    if not all(any(loop in o.dims for o in found if o.is_buffer) for loop in range(len(parallel))):
        return None
    body = [inner for child in mlir_util.children(op) for inner in mlir_util.walk(child)]
    is_pure = all(inner.name.partition(".")[0] in _PURE or inner.name in _PURE_OPS for inner in body)
    return Nest(op, found, inputs, parallel, is_pure)


_STACK_BYTES = 1 << 15
"""A row of at most so many bytes is on the stack of a task."""


def is_on_stack(type_: Any, rows: int) -> bool:
    """Where one row is of a buffer that is only used row by row; ``rows``: how many axes say which."""
    memref = ir.MemRefType(type_)
    inside = memref.shape[rows:]
    known = ir.ShapedType.get_dynamic_size() not in inside
    return known and prod(inside) * mlir_util.element_bytes(memref.element_type) <= _STACK_BYTES


def _lower_rows(function: Any, nests: Sequence[Nest], numbers: Numbers) -> None:
    """One pass over the rows that all ``nests`` of a function share."""
    rows = ir.IntegerAttr(function.attributes[ROWS]).value
    room = iter(
        list(mlir_util.entry_block(function).arguments)[ir.IntegerAttr(function.attributes[SCRATCH]).value :]
    )
    made = {op.results[0]: op for op in mlir_util.children(function) if op.name == "memref.alloc"}
    scratch: dict[Any, Any] = {value: None if is_on_stack(value.type, rows) else next(room) for value in made}
    for nest in nests:
        nest.temporaries = made
    if any(value is not None for value in scratch.values()):
        numbers = {**numbers, "most_tasks": numbers["row_tasks"]}
    first = nests[0].results[0].dims[:rows]
    build = Builder(nests[0].op)
    extents = [nests[0].extent(build, loop) for loop in first]

    def row(inside: Builder, indices: list[Any], task: Any, ranges: dict[int, tuple[Any, Any]]) -> None:
        if len(indices) < rows:
            loop = first[len(indices)]
            begin, end = ranges.get(loop, (inside.constant(0), extents[len(indices)]))

            def deeper(build: Builder, index: Any, _: list[Any]) -> list[Any]:
                row(build, [*indices, index], task, ranges)
                return []

            _for(inside, (begin, end, inside.constant(1)), [], deeper)
            return
        for nest in nests:
            outer = dict(zip(nest.results[0].dims, indices, strict=False))
            order = _order(nest, rows)
            _use_scratch(nest, scratch, rows)
            _Emitter(nest, order, numbers).emit(inside, {**outer, _TASK: task}, {})

    def part(inside: Builder, ranges: dict[int, tuple[Any, Any]], task: Any) -> None:
        for value, given in list(scratch.items()):
            if given is None:
                type_ = ir.MemRefType(value.type)
                inner = mlir_util.buffer_type(type_.shape[rows:], type_.element_type)
                scratch[value] = inside.alloc(inner, name="memref.alloca")
        row(inside, [], task, ranges)

    _Parts(nests, first, (), numbers).emit(build, part)
    for nest in nests:
        nest.op.erase()
    for op in made.values():
        op.erase()


def _use_scratch(nest: Nest, scratch: Mapping[Any, Any], rows: int) -> None:
    """One row of a task in the place of each buffer that ``scratch`` has a buffer for."""
    for operand in nest.operands:
        if operand.value in scratch:
            operand.value, own = scratch[operand.value], operand.dims[rows:]
            on_stack = ir.MemRefType(operand.value.type).rank == len(own)
            operand.dims = own if on_stack else (_TASK, *own)


def _lower(nest: Nest, numbers: Numbers) -> None:
    _collapse(nest)
    build = Builder(nest.op)
    order = _order(nest)
    parts = _Parts([nest], [loop for loop in order if nest.parallel[loop]], order[-1:], numbers)
    if not nest.is_pure:
        _Emitter(nest, order, numbers).emit(build, {}, {})
    elif any(nest.parallel) or not nest.parallel:
        parts.emit(build, lambda inside, ranges, _: _Emitter(nest, order, numbers).emit(inside, {}, ranges))
    elif not _in_two_stages(nest, order, build, numbers):
        _Emitter(nest, order, numbers).emit(build, {}, {})
    nest.op.erase()


def _collapse(nest: Nest) -> None:
    """Neighbouring loops that index neighbouring axes of all operands that they index become one."""
    if any(inner.name == "linalg.index" for c in mlir_util.children(nest.op) for inner in mlir_util.walk(c)):
        return
    if not all(mlir_util.is_whole_buffer(o.value.type) for o in nest.operands if o.is_buffer):
        return
    count = len(nest.parallel)
    order = next((o.dims for o in nest.results if len(o.dims) == count), tuple(range(count)))
    groups: list[list[int]] = []
    for loop in order:
        last = groups[-1][-1] if groups else None
        if last is not None and nest.parallel[last] == nest.parallel[loop] and _are_neighbours(nest, last, loop):
            groups[-1].append(loop)
        else:
            groups.append([loop])
    if len(groups) == count:
        return
    number_of = {loop: number for number, group in enumerate(groups) for loop in group}
    firsts = {group[0] for group in groups}
    build = Builder(nest.op)
    for operand in nest.operands:
        axes: list[list[int]] = []
        for axis, loop in enumerate(operand.dims):
            if loop in firsts:
                axes.append([])
            axes[-1].append(axis)
        if operand.is_buffer and len(axes) < len(operand.dims):
            operand.value = _collapsed(build, operand.value, axes)
        operand.dims = tuple(dict.fromkeys(number_of[loop] for loop in operand.dims))
    nest.parallel = [nest.parallel[group[0]] for group in groups]


def _are_neighbours(nest: Nest, first: int, second: int) -> bool:
    for operand in nest.operands:
        has = (first in operand.dims, second in operand.dims)
        if has[0] != has[1] or (has[0] and operand.dims.index(second) != operand.dims.index(first) + 1):
            return False
    return True


def _collapsed(build: Builder, value: Any, axes: list[list[int]]) -> Any:
    type_ = ir.MemRefType(value.type)
    dynamic = ir.ShapedType.get_dynamic_size()
    shape = [
        dynamic
        if any(type_.shape[axis] == dynamic for axis in group)
        else prod(type_.shape[axis] for axis in group)
        for group in axes
    ]
    i64 = build.i64
    reassociation = ir.ArrayAttr.get(
        [ir.ArrayAttr.get([ir.IntegerAttr.get(i64, axis) for axis in group]) for group in axes], value.context
    )
    result = mlir_util.buffer_type(shape, type_.element_type, type_.memory_space)
    return build.value("memref.collapse_shape", [value], result, {"reassociation": reassociation})


def _order(nest: Nest, fixed: int = 0) -> list[int]:
    """The loops, outermost first; ``fixed`` of them, which are around them already, are left out."""
    around = set(nest.results[0].dims[:fixed])
    loops = [loop for loop in range(len(nest.parallel)) if loop not in around]
    if not loops:
        return []
    scores = dict.fromkeys(loops, 0)
    for number, operand in enumerate(nest.operands):
        loop = operand.contiguous()
        if loop in scores:  # what has an element for each iteration counts most
            scores[loop] += (2 if number >= nest.inputs else 1) * (
                8 if len(operand.dims) == len(nest.parallel) else 1
            )
    innermost = max(loops, key=lambda loop: (scores[loop], loop))
    results = [loop for loop in nest.results[0].dims if loop in loops and nest.parallel[loop]]
    others = [loop for loop in loops if not nest.parallel[loop]]
    return [*(loop for loop in (*results, *others) if loop != innermost), innermost]


class _Parts:
    """How nests are cut into tasks: along which loops of the first, outermost first, and how often along each."""

    def __init__(
        self, nests: Sequence[Nest], loops: Sequence[int], innermost: Sequence[int], numbers: Numbers
    ) -> None:
        nest = nests[0]
        self._nests = nests
        self._innermost = innermost
        self._numbers = numbers
        self._loops = [loop for loop in loops if nest.static_extent(loop) != 1]
        work = 0
        for each in nests:
            extents = [each.static_extent(loop) for loop in range(len(each.parallel))]
            known = [extent for extent in extents if extent is not None]
            unknown = len(known) < len(extents) and 0 not in known
            work = None if work is None or unknown else work + prod(known) * each.cost()
        self._never = work is not None and work < 2 * numbers["grain"]

    @property
    def is_single(self) -> bool:
        """Whether there is never more than one task."""
        return self._never or not self._loops

    def emit(self, build: Builder, body: Callable[[Builder, dict[int, tuple[Any, Any]], Any], None]) -> Any:
        """``body`` gets the ranges of loops that are cut, and the task's number; returns how many tasks."""
        if self.is_single:
            body(build, {}, build.constant(0))
            return build.constant(1)
        nest, index = self._nests[0], build.index
        zero, one = build.constant(0), build.constant(1)

        def value(name: str, *operands: Any, at: Builder = build) -> Any:
            return at.value(f"arith.{name}", operands, index)

        work = zero
        for each in self._nests:
            product = build.constant(each.cost())
            for loop in range(len(each.parallel)):
                product = value("muli", product, each.extent(build, loop))
            work = value("addi", work, product)
        rest = value("divui", work, build.constant(self._numbers["grain"]))
        rest = value("maxui", value("minui", rest, build.constant(self._numbers["most_tasks"])), one)
        cuts: list[tuple[int, Any, Any]] = []
        tasks = one
        for loop in self._loops:
            extent = nest.extent(build, loop)
            units = extent
            if loop in self._innermost:
                units = value("ceildivui", extent, build.constant(self._numbers["columns"]))
            times = value("maxui", value("minui", units, rest), one)
            rest = value("ceildivui", rest, times)
            tasks = value("muli", tasks, times)
            cuts.append((loop, extent, times))
        tasks_loop = build.grouped("scf.parallel", [[zero], [tasks], [one], []], [], regions=1)
        block = ir.Block.create_at_start(tasks_loop.regions[0], [index], [nest.op.location])
        end = ir.Operation.create("scf.reduce", loc=nest.op.location, ip=ir.InsertionPoint(block))
        inside = Builder(end)
        left = block.arguments[0]
        ranges: dict[int, tuple[Any, Any]] = {}
        for loop, extent, times in reversed(cuts):
            number = value("remui", left, times, at=inside)
            left = value("divui", left, times, at=inside)
            size = value("ceildivui", extent, times, at=inside)
            if loop in self._innermost:
                columns = inside.constant(self._numbers["columns"])
                size = value("muli", value("ceildivui", size, columns, at=inside), columns, at=inside)
            begin = value("minui", value("muli", number, size, at=inside), extent, at=inside)
            stop = value("minui", value("addi", begin, size, at=inside), extent, at=inside)
            ranges[loop] = begin, stop
        body(inside, ranges, block.arguments[0])
        return tasks


def _for(
    build: Builder,
    bounds: tuple[Any, Any, Any],
    initial: Sequence[Any],
    body: Callable[[Builder, Any, list[Any]], list[Any]],
) -> list[Any]:
    """``scf.for`` over the bounds (begin, end, step); ``body`` makes what it yields from what it carries."""
    types = [value.type for value in initial]
    loop = build.op("scf.for", [*bounds, *initial], types, regions=1)
    location = loop.location
    block = ir.Block.create_at_start(loop.regions[0], [build.index, *types], [location] * (1 + len(types)))
    end = ir.Operation.create("scf.yield", loc=location, ip=ir.InsertionPoint(block))
    index, *carried = block.arguments
    results = body(Builder(end), index, carried)
    if results:
        ir.Operation.create("scf.yield", operands=results, loc=location, ip=ir.InsertionPoint(end))
        end.erase()
    return list(loop.results)


@dataclass(frozen=True)
class _Step:
    """A loop of a nest: over parts of ``tile`` iterations, or over all of what is left of it."""

    loop: int
    tile: int | None = None


class _Emitter:
    """Makes the loops of one nest, in the order ``order``."""

    def __init__(self, nest: Nest, order: Sequence[int], numbers: Numbers) -> None:
        self._nest = nest
        self._order = order
        self._block = mlir_util.entry_block(nest.op)
        self._steps = self._make_steps(numbers)
        # Trailing loops that sum up, and the results that none of them indexes: those are carried.
        self._sums = 0
        while self._sums < len(order) and not nest.parallel[order[-1 - self._sums]]:
            self._sums += 1
        summed = set(order[len(order) - self._sums :])
        self._carried = [n for n, o in enumerate(nest.results) if self._sums and summed.isdisjoint(o.dims)]
        self._guard = numbers["guard"] if self._sums == 1 and _mostly_stays(nest.op, len(self._carried)) else 0
        self._used = [bool(list(argument.uses)) for argument in self._block.arguments]

    def _make_steps(self, numbers: Numbers) -> list[_Step]:
        nest, order = self._nest, self._order
        if not order or not nest.parallel[order[-1]]:
            return [_Step(loop) for loop in order]
        innermost = order[-1]
        tiles: dict[int, int] = {}
        if any(not nest.parallel[loop] for loop in order):
            tiles[innermost] = numbers["row_part"]
        else:
            for operand in nest.operands:
                other = operand.contiguous()
                if other is not None and other != innermost and other in order:
                    tiles[other] = tiles[innermost] = numbers["block"]
        for loop in list(tiles):
            extent = nest.static_extent(loop)
            if extent is not None and extent <= tiles[loop]:
                del tiles[loop]
        parallel = [loop for loop in order[:-1] if nest.parallel[loop]]
        sums = [loop for loop in order if not nest.parallel[loop]]
        outer = [_Step(loop, tiles.get(loop)) for loop in parallel]
        if innermost in tiles:
            outer.append(_Step(innermost, tiles[innermost]))
        inner = [_Step(loop) for loop in parallel if loop in tiles]
        return [*outer, *inner, *map(_Step, sums), _Step(innermost)]

    def emit(self, build: Builder, outer: Mapping[int, Any], ranges: Mapping[int, tuple[Any, Any]]) -> None:
        """``outer``: the indices of loops that are around the nest; ``ranges``: of those that are cut."""
        self._ranges = dict(ranges)
        self._zero, self._one = build.constant(0), build.constant(1)
        for loop in self._order:
            if loop not in self._ranges:
                self._ranges[loop] = self._zero, self._nest.extent(build, loop)
        self._level(build, self._steps, dict(outer), {}, None)

    def _level(
        self,
        build: Builder,
        steps: Sequence[_Step],
        indices: dict[int, Any],
        loaded: dict[int, Any],
        carried: list[Any] | None,
    ) -> list[Any]:
        """``loaded``: inputs by number; each is loaded as far outside as its indices are known."""
        nest = self._nest
        loaded = dict(loaded)
        for number, operand in enumerate(nest.operands[: nest.inputs]):
            is_known = all(loop in indices for loop in operand.dims)
            if self._used[number] and number not in loaded and is_known:
                loaded[number] = self._load(build, operand, indices)
        if carried is None and self._carried and len(steps) == self._sums:
            outputs = [nest.results[number] for number in self._carried]
            first = [self._load(build, output, indices) for output in outputs]
            level = self._guarded if self._guard else self._level
            for output, value in zip(outputs, level(build, steps, indices, loaded, first), strict=True):
                build.op("memref.store", [value, output.value, *self._at(output, indices)])
            return []
        if not steps:
            return self._body(build, indices, loaded, carried or [])
        step, *rest = steps
        begin, end = self._ranges[step.loop]
        if step.tile is None:

            def point(inside: Builder, index: Any, values: list[Any]) -> list[Any]:
                return self._level(inside, rest, {**indices, step.loop: index}, loaded, carried and values)

            return _for(build, (begin, end, self._one), carried or [], point)
        tile = build.constant(step.tile)

        def part(inside: Builder, index: Any, values: list[Any]) -> list[Any]:
            left = inside.value("arith.subi", [end, index], inside.index)
            size = inside.value("arith.minui", [left, tile], inside.index)
            old = self._ranges[step.loop]
            self._ranges[step.loop] = index, inside.value("arith.addi", [index, size], inside.index)
            results = self._level(inside, rest, indices, loaded, carried and values)
            self._ranges[step.loop] = old
            return results

        return _for(build, (begin, end, tile), carried or [], part)

    def _guarded(
        self,
        build: Builder,
        steps: Sequence[_Step],
        indices: dict[int, Any],
        loaded: dict[int, Any],
        carried: list[Any],
    ) -> list[Any]:
        """The innermost loop, by parts: one that changes nothing of what is carried is found out with vectors."""
        loop = steps[0].loop
        begin, end = self._ranges[loop]
        index, i32 = build.index, ir.IntegerType.get_signless(32, build.index.context)
        guard, none = build.constant(self._guard), build.constant(0, i32)
        length = build.value("arith.subi", [end, begin], index)
        rest = build.value("arith.remui", [length, guard], index)
        whole = build.value("arith.subi", [end, rest], index)

        def in_order(inside: Builder, bounds: tuple[Any, Any], values: list[Any]) -> list[Any]:
            def point(build: Builder, index: Any, values: list[Any]) -> list[Any]:
                return self._level(build, [], {**indices, loop: index}, loaded, values)

            return _for(inside, (*bounds, self._one), values, point)

        def part(inside: Builder, first: Any, values: list[Any]) -> list[Any]:
            def look(build: Builder, number: Any, flags: list[Any]) -> list[Any]:
                place = build.value("arith.addi", [first, number], index)
                new = self._level(build, [], {**indices, loop: place}, loaded, values)
                changes = _changes(build, values, new)
                flag = build.value("arith.extui", [changes], i32)
                return [build.value("arith.ori", [flags[0], flag], i32)]

            (flag,) = _for(inside, (self._zero, guard, self._one), [none], look)
            unequal = {"predicate": ir.IntegerAttr.get(inside.i64, 1)}
            is_new = inside.value("arith.cmpi", [flag, none], _bool(build), unequal)
            types = [value.type for value in values]
            choice = inside.op("scf.if", [is_new], types, regions=2)
            for number, region in enumerate(choice.regions):
                block = ir.Block.create_at_start(region, [])
                end = ir.Operation.create("scf.yield", loc=choice.location, ip=ir.InsertionPoint(block))
                branch, results = Builder(end), values
                if number == 0:
                    behind = branch.value("arith.addi", [first, guard], index)
                    results = in_order(branch, (first, behind), values)
                branch.op("scf.yield", results)
                end.erase()
            return list(choice.results)

        return in_order(build, (whole, end), _for(build, (begin, whole, guard), carried, part))

    def _at(self, operand: Operand, indices: Mapping[int, Any]) -> list[Any]:
        return [indices[loop] for loop in operand.dims]

    def _load(self, build: Builder, operand: Operand, indices: Mapping[int, Any]) -> Any:
        if not operand.is_buffer:
            return operand.value
        element = ir.MemRefType(operand.value.type).element_type
        return build.value("memref.load", [operand.value, *self._at(operand, indices)], element)

    def _body(
        self, build: Builder, indices: Mapping[int, Any], loaded: Mapping[int, Any], carried: list[Any]
    ) -> list[Any]:
        nest = self._nest
        mapping: dict[Any, Any] = {self._block.arguments[number]: value for number, value in loaded.items()}
        mapping |= {
            self._block.arguments[nest.inputs + number]: value
            for number, value in zip(self._carried, carried, strict=True)
        }
        for number, output in enumerate(nest.results):
            argument = self._block.arguments[nest.inputs + number]
            if number not in self._carried and self._used[nest.inputs + number]:
                mapping[argument] = self._load(build, output, indices)
        yielded = clone_body(build, nest.op, mapping, indices, reassociate=bool(self._carried))
        for number, output in enumerate(nest.results):
            if number not in self._carried:
                build.op("memref.store", [yielded[number], output.value, *self._at(output, indices)])
        return [yielded[number] for number in self._carried]


def clone_body(
    build: Builder, of: Any, mapping: dict[Any, Any], indices: Mapping[int, Any], reassociate: bool
) -> list[Any]:
    """What the body of the operation ``of`` yields, computed in front of ``build``'s place."""
    *ops, end = mlir_util.children(of)
    sums = {combiner for combiner in combiners(of) if combiner is not None} if reassociate else set[Any]()
    for op in ops:
        if op.name == "linalg.index":
            mapping[op.results[0]] = indices[ir.IntegerAttr(op.attributes["dim"]).value]
            continue
        copy = build.clone(op)
        mlir_util.remap_operands(copy, mapping)
        for inner in mlir_util.walk(copy)[1:]:
            if inner.name == "linalg.index":
                mlir_util.replace_op(inner, [indices[ir.IntegerAttr(inner.attributes["dim"]).value]])
        if op in sums and op.name in _REASSOCIATED:
            _allow_reassociation(copy)
        mapping.update(zip(op.results, copy.results, strict=True))
    return [mapping.get(value, value) for value in end.operands]


def _allow_reassociation(op: Any) -> None:
    flags = str(op.attributes["fastmath"]).partition("<")[2].rstrip(">") if "fastmath" in op.attributes else "none"
    flags = (
        "reassoc" if flags == "none" else flags if "reassoc" in flags or flags == "fast" else f"{flags},reassoc"
    )
    op.attributes["fastmath"] = ir.Attribute.parse(f"#arith.fastmath<{flags}>", op.context)


def combiners(of: Any) -> list[Any | None]:
    """For each result: the operation that combines what was there with a new value; None if there is none."""
    *ops, end = mlir_util.children(of)
    makers = {result: op for op in ops for result in op.results}
    arguments = list(mlir_util.entry_block(of).arguments)[-len(end.operands) :]
    found: list[Any | None] = []
    for value, argument in zip(end.operands, arguments, strict=True):
        op = makers.get(value)
        is_last = op is not None and len(list(argument.uses)) == 1 and list(op.operands).count(argument) == 1
        known = op is not None and (op.name in _NEUTRAL or op.name in _EXTREMA)
        found.append(op if is_last and known and len(list(value.uses)) == 1 else None)
    return found


def _mostly_stays(of: Any, carried: int) -> bool:
    """Whether all results are carried, and are what they were or chosen anew, such as those of an argmax."""
    *ops, end = mlir_util.children(of)
    makers = {result: op for op in ops for result in op.results}
    arguments = list(mlir_util.entry_block(of).arguments)[-len(end.operands) :]
    chosen = 0
    for value, argument in zip(end.operands, arguments, strict=True):
        op = makers.get(value)
        if op is None or argument not in list(op.operands):
            return False
        chosen += op.name == "arith.select"
        if op.name != "arith.select" and op.name not in _EXTREMA:
            return False
    numbers = all(isinstance(value.type, ir.IntegerType | ir.FloatType | ir.IndexType) for value in arguments)
    return chosen > 0 and numbers and carried == len(arguments)


def _changes(build: Builder, old: Sequence[Any], new: Sequence[Any]) -> Any:
    """Whether some new value is another one than the old."""
    found: list[Any] = []
    for before, after in zip(old, new, strict=True):
        op = after.owner.operation
        if op.name == "arith.select" and op.operands[2] == before:
            found.append(op.operands[0])
            continue
        pair = [before, after]
        if isinstance(before.type, ir.FloatType):
            bits = ir.IntegerType.get_signless(before.type.width, before.type.context)
            pair = [build.value("arith.bitcast", [value], bits) for value in pair]
        found.append(
            build.value("arith.cmpi", pair, _bool(build), {"predicate": ir.IntegerAttr.get(build.i64, 1)})
        )
    total, *others = dict.fromkeys(found)
    for other in others:
        total = build.value("arith.ori", [total, other], _bool(build))
    return total


def _bool(build: Builder) -> Any:
    return ir.IntegerType.get_signless(1, build.index.context)


def neutral(build: Builder, name: str, type_: Any) -> Any | None:
    """What ``name``, a combiner, combines with any value to that value."""
    if name in _EXTREMA:
        least = name.startswith("arith.max")
        if isinstance(type_, ir.FloatType):
            if str(type_) not in _INFINITY:
                return None
            text = _INFINITY[str(type_)][least]
        elif isinstance(type_, ir.IntegerType):
            bits = type_.width
            low, high = (0, 2**bits - 1) if name.endswith("ui") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
            text = str(low if least else high)
        else:
            return None
    else:
        text = _NEUTRAL[name]
    attribute = ir.Attribute.parse(f"{text} : {type_}", type_.context)
    return build.value("arith.constant", [], type_, {"value": attribute})


_INFINITY = {
    "f16": ("0x7C00", "0xFC00"),
    "bf16": ("0x7F80", "0xFF80"),
    "f32": ("0x7F800000", "0xFF800000"),
    "f64": ("0x7FF0000000000000", "0xFFF0000000000000"),
}


def _in_two_stages(nest: Nest, order: Sequence[int], build: Builder, numbers: Numbers) -> bool:
    """A nest that sums up everything: tasks sum up parts, which are combined in their order."""
    found = combiners(nest.op)
    if any(combiner is None for combiner in found) or not all(o.is_buffer and not o.dims for o in nest.results):
        return False
    most = numbers["most_parts"]
    longest = max(order, key=lambda loop: nest.static_extent(loop) or 0)
    parts = _Parts([nest], [longest], order[-1:], {**numbers, "most_tasks": most})
    if parts.is_single:
        return False
    types = [ir.MemRefType(result.value.type).element_type for result in nest.results]
    names = [combiner.name for combiner in found if combiner is not None]
    for name, type_ in zip(names, types, strict=True):
        if isinstance(type_, ir.ComplexType | ir.IndexType) or (
            name in _EXTREMA and isinstance(type_, ir.FloatType) and str(type_) not in _INFINITY
        ):
            return False
    return _stages(nest, order, build, numbers, parts, most, names, types)


def _stages(
    nest: Nest,
    order: Sequence[int],
    build: Builder,
    numbers: Numbers,
    parts: _Parts,
    most: int,
    names: Sequence[str],
    types: Sequence[Any],
) -> bool:
    function = nest.op
    while function.name != "func.func":
        function = function.parent
    begin = Builder(mlir_util.children(function)[0])
    rooms = [begin.alloc(mlir_util.buffer_type([most], type_), name="memref.alloca") for type_ in types]
    results = nest.results
    zero, one = build.constant(0), build.constant(1)

    def part(inside: Builder, ranges: dict[int, tuple[Any, Any]], task: Any) -> None:
        for room, name, type_ in zip(rooms, names, types, strict=True):
            inside.op("memref.store", [neutral(inside, name, type_), room, task])
        nest.operands[nest.inputs :] = [Operand(room, (_TASK,)) for room in rooms]
        _Emitter(nest, order, numbers).emit(inside, {_TASK: task}, ranges)

    tasks = parts.emit(build, part)
    nest.operands[nest.inputs :] = results

    def combine(inside: Builder, index: Any, values: list[Any]) -> list[Any]:
        more = [
            inside.value("memref.load", [room, index], type_) for room, type_ in zip(rooms, types, strict=True)
        ]
        return [
            inside.value(name, [value, other], value.type)
            for name, value, other in zip(names, values, more, strict=True)
        ]

    first = [build.value("memref.load", [o.value], type_) for o, type_ in zip(results, types, strict=True)]
    totals = _for(build, (zero, tasks, one), first, combine)
    for total, result in zip(totals, results, strict=True):
        build.op("memref.store", [total, result.value])
    return True
