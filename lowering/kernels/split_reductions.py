"""Reductions with too few results for tasks: parts of them are done side by side, into rows of a buffer.

``r[j] += x[i, j]`` becomes ``part[t, j] += x[t, i, j]`` with few long parts ``t``, then ``r[j] += part[t, j]``;
what is left of ``i`` is done before. How many parts there are depends on sizes alone. Where ``j`` fills no vector,
several neighbours ``i`` are done at once before: ``part[s, j] += x[i, s, j]``, whose rows are long.
"""

from collections.abc import Sequence
from math import ceil, prod
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop import bindings
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.nest import Nest, Numbers, Operand, match, order_loops
from devscope.lowering.kernels.nest_bodies import combiners, has_neutral, neutral
from devscope.lowering.mlir_util import Builder

_LEAST = 128
"""Steps of a part: a part costs as much as two or three more."""

_FEW = 16
"""Of fewer tasks that compute different results, parts are made."""

_NEIGHBOURS = 16
"""Rows that are added to as many rows of sums, where they are shorter."""

_UNKNOWN = 16
"""Parts of a loop whose length is not known."""


def split_reductions(module: Any, numbers: Numbers, to_one: bool = False) -> None:
    """All that pay in ``module``, bufferised code for one memory; ``numbers``: of the target's loops.

    ``to_one``: also those to one result.
    """
    ops = [op for op in mlir_util.walk(module.operation) if op.name == "linalg.reduce" or _reduces(op)]
    if not ops:
        return
    linalg = bindings.load("_mlir_libs._mlirDialectsLinalg")
    for op in ops:
        nest = match(op, linalg)
        if nest is None or not nest.is_pure or any(mlir_util.is_on_device(o.value) for o in nest.operands):
            continue
        found = [combiner for combiner in combiners(op) if combiner is not None]
        if len(found) < len(nest.results) or not (to_one or any(nest.parallel)) or _has_indices(op):
            continue
        types = [ir.MemRefType(result.value.type).element_type for result in nest.results]
        if not all(has_neutral(combiner.name, type_) for combiner, type_ in zip(found, types, strict=True)):
            continue
        if not to_one and (rows := _short_rows(nest)) is not None:
            (column,) = nest.results[0].dims
            nest = match(split_loop(nest, rows, _NEIGHBOURS, found, beside=column)[-1], linalg)
            assert nest is not None
            found = [combiner for combiner in combiners(nest.op) if combiner is not None]
        loop = _longest(nest)
        if loop is not None and (parts := _parts(nest, loop, numbers)) > 1:
            split_loop(nest, loop, parts, found)


def _reduces(op: Any) -> bool:
    return op.name == "linalg.generic" and "reduction" in str(op.attributes["iterator_types"])


def _has_indices(op: Any) -> bool:
    return any(inner.name == "linalg.index" for c in mlir_util.children(op) for inner in mlir_util.walk(c))


def _longest(nest: Nest) -> int | None:
    """The first loop of sums that is long enough, or whose length is not known."""
    extents = {loop: nest.static_extent(loop) for loop, parallel in enumerate(nest.parallel) if not parallel}
    long = (loop for loop, extent in extents.items() if extent is None or extent >= _FEW)
    return next(long, None)


def _short_rows(nest: Nest) -> int | None:
    """The loop that adds up short rows, which stand one after the other in all buffers that have them."""
    columns = {result.dims for result in nest.results}
    sums = [loop for loop, parallel in enumerate(nest.parallel) if not parallel]
    if len(columns) != 1 or len(sums) != 1 or sum(nest.parallel) != 1:
        return None
    (column,), (row,) = columns.pop(), sums
    buffers = [o for o in nest.operands[: nest.inputs] if o.is_buffer and row in o.dims]
    in_order = all(o.dims == (row, column) and mlir_util.is_whole_buffer(o.value.type) for o in buffers)
    width, height = nest.static_extent(column), nest.static_extent(row)
    if not buffers or not in_order or width is None or height is None:
        return None
    return row if 1 < width < _NEIGHBOURS and height >= _NEIGHBOURS * _LEAST else None


def _parts(nest: Nest, loop: int, numbers: Numbers) -> int:
    """1 if results are enough for tasks, or of unknown number; or there is too little work."""
    results = nest.results[0].dims
    if any(set(o.dims) != set(results) for o in nest.results):
        return 1
    tasks, innermost = 1, order_loops(nest)[-1]
    for each in results:
        extent = nest.static_extent(each)
        if extent is None:
            return 1
        tasks *= ceil(extent / numbers["columns"]) if each == innermost else extent
    if tasks >= _FEW:
        return 1
    extent = nest.static_extent(loop)
    if extent is None:
        return _UNKNOWN
    loops = range(len(nest.parallel))
    work = prod(nest.static_extent(each) or 1 for each in loops) * nest.cost()
    if work < 2 * numbers["grain"]:
        return 1
    others = prod(nest.static_extent(each) or 1 for each in loops if each != loop and not nest.parallel[each])
    return extent // max(ceil(extent / numbers["most_parts"]), ceil(_LEAST / others))


def split_loop(
    nest: Nest, loop: int, parts: int, combiners: Sequence[Any], beside: int | None = None
) -> list[Any]:
    """Replace an operation by one for ``parts`` of a loop of sums, and others that combine their results.

    ``combiners``: for each result, the operation of the body that does so. ``beside``: the loop that parts stand
    in front of, which then have every so many-th iteration of a loop of known length that indexes a first axis.
    Returns the operations with the body of the one that is replaced.
    """
    first = beside or 0

    def moved(dims: Sequence[int]) -> tuple[int, ...]:
        return tuple(each + (each >= first) for each in dims)

    made: list[Any] = []
    op = nest.op
    build = Builder(op)
    static = nest.static_extent(loop)
    length: Any = (static // parts) if static is not None else None
    if static is None:
        extent = nest.extent(build, loop)
        length = build.value("arith.divui", [extent, build.constant(parts)], build.index)
        done = build.multiply(length, build.constant(parts))
        rest: Any = build.value("arith.subi", [extent, done], build.index)
    else:
        done, rest = length * parts, static % parts
    if rest != 0:
        values = [
            _view(op, o.value, o.dims.index(loop), done, rest) if o.is_buffer and loop in o.dims else o.value
            for o in nest.operands
        ]
        copy = build.clone(op)
        made.append(copy)
        for number, value in enumerate(values):
            copy.operands[number] = value
    inputs: list[Operand] = []
    for operand in nest.operands[: nest.inputs]:
        dims = moved(operand.dims)
        value = operand.value
        if operand.is_buffer and loop in operand.dims:
            axis = operand.dims.index(loop)
            if beside is not None:
                value, axis = _neighbours(op, value, parts), axis + 1
            else:
                value = value if rest == 0 else _view(op, value, axis, 0, done)
                value = _expanded(op, value, axis, parts, length)
            dims = (*dims[:axis], first, *dims[axis:])
        inputs.append(Operand(value, dims))
    rooms: list[Operand] = []
    for result, combiner in zip(nest.results, combiners, strict=True):
        type_ = ir.MemRefType(result.value.type)
        room = build.alloc(mlir_util.buffer_type([parts, *type_.shape], type_.element_type))
        start = neutral(build, combiner.name, type_.element_type)
        fill = f"linalg.fill ins(%0 : {start.type}) outs(%1 : {room.type})"
        mlir_util.insert(op, fill, [start, room])
        rooms.append(Operand(room, (first, *moved(result.dims))))
    made.append(_generic(op, inputs, rooms, [*nest.parallel[:first], True, *nest.parallel[first:]], op))
    for room, result, combiner in zip(rooms, nest.results, combiners, strict=True):
        axes = range(1, len(result.dims) + 1)
        operands = [Operand(room.value, (0, *axes))], [Operand(result.value, tuple(axes))]
        _generic(op, *operands, [False, *([True] * len(axes))], combiner)
    op.erase()
    return made


def _generic(
    op: Any, inputs: Sequence[Operand], results: Sequence[Operand], parallel: list[bool], body: Any
) -> Any:
    """In front of ``op``, with the body of another operation of linalg, or with one operation as its body."""
    operands = [*inputs, *results]
    loops = ", ".join(f"d{number}" for number in range(len(parallel)))
    maps = (f"affine_map<({loops}) -> ({', '.join(f'd{each}' for each in o.dims)})>" for o in operands)
    kinds = ", ".join('"parallel"' if each else '"reduction"' for each in parallel)
    types = [ir.MemRefType(o.value.type).element_type if o.is_buffer else o.value.type for o in operands]
    arguments = ", ".join(f"%a{number}: {type_}" for number, type_ in enumerate(types))
    count = len(inputs)

    def group(first: int, last: int) -> str:
        numbers = range(first, last)
        names = ", ".join(f"%{number}" for number in numbers)
        return f"{names} : {', '.join(str(operands[number].value.type) for number in numbers)}"

    yielded = ", ".join(f"%a{number}" for number in range(count, len(operands)))
    text = (
        f"linalg.generic {{indexing_maps = [{', '.join(maps)}], iterator_types = [{kinds}]}} "
        f"ins({group(0, count)}) outs({group(count, len(operands))}) {{\n^bb0({arguments}):\n"
        f"linalg.yield {yielded} : {', '.join(str(type_) for type_ in types[count:])}\n}}"
    )
    (made,) = mlir_util.insert(op, text, [o.value for o in operands])
    (end,) = mlir_util.children(made)
    inside = Builder(end)
    arguments_made = list(mlir_util.entry_block(made).arguments)
    if not body.name.startswith("linalg."):
        copy = inside.clone(body)
        copy.operands[0], copy.operands[1] = reversed(arguments_made)
        end.operands[0] = copy.results[0]
        return made
    *ops, old_end = mlir_util.children(body)
    mapping: dict[Any, Any] = dict(zip(mlir_util.entry_block(body).arguments, arguments_made, strict=True))
    for each in ops:
        copy = inside.clone(each)
        mlir_util.remap_operands(copy, mapping)
        mapping.update(zip(each.results, copy.results, strict=True))
    for number, value in enumerate(old_end.operands):
        end.operands[number] = mapping.get(value, value)
    return made


def _view(op: Any, value: Any, axis: int, begin: Any, size: Any) -> Any:
    """``size`` indices of ``axis`` from ``begin`` on, numbers or values."""
    type_ = ir.MemRefType(value.type)
    strides, offset = type_.get_strides_and_offset()
    dynamic, unknown = ir.ShapedType.get_dynamic_size(), ir.ShapedType.get_dynamic_stride_or_offset()
    known = isinstance(begin, int) and strides[axis] != unknown and offset != unknown
    if not isinstance(begin, int) or begin:
        offset = offset + begin * strides[axis] if known else unknown
    given = [each for each in (begin, size) if not isinstance(each, int)]
    names = {id(each): f"%{number + 1}" for number, each in enumerate(given)}
    shape = list(type_.shape)
    build = Builder(op)
    sizes: list[str] = []
    operands: list[Any] = [value, *given]
    for number, extent in enumerate(shape):
        if number == axis:
            sizes.append(names.get(id(size), str(size)))
        elif extent == dynamic:
            operands.append(build.dim(value, number))
            sizes.append(f"%{len(operands) - 1}")
        else:
            sizes.append(str(extent))
    shape[axis] = size if isinstance(size, int) else dynamic
    offsets = ["0"] * len(shape)
    offsets[axis] = names.get(id(begin), str(begin))
    result = _strided(shape, type_.element_type, strides, offset)
    text = (
        f"%v = memref.subview %0[{', '.join(offsets)}] [{', '.join(sizes)}] "
        f"[{', '.join(['1'] * len(shape))}] : {type_} to {result}"
    )
    *_, view = mlir_util.insert(op, text, operands)
    return view.results[0]


def _neighbours(op: Any, value: Any, parts: int) -> Any:
    """The first rows of a whole buffer, by ``parts`` neighbours; its type says that it has no gaps."""
    type_ = ir.MemRefType(value.type)
    rows, *inner = type_.shape
    shape = [rows // parts, parts, *inner]
    strides = [prod(shape[axis + 1 :]) for axis in range(len(shape))]
    result = mlir_util.buffer_type(shape, type_.element_type, type_.memory_space)
    text = f"memref.reinterpret_cast %0 to offset: [0], sizes: {shape}, strides: {strides} : {type_} to {result}"
    return mlir_util.insert(op, f"%v = {text}", [value])[-1].results[0]


def _expanded(op: Any, value: Any, axis: int, parts: int, length: Any) -> Any:
    """``axis`` as two: ``parts`` of ``length``, a number or a value."""
    type_ = ir.MemRefType(value.type)
    strides, offset = type_.get_strides_and_offset()
    dynamic, unknown = ir.ShapedType.get_dynamic_size(), ir.ShapedType.get_dynamic_stride_or_offset()
    build = Builder(op)
    shape, sizes = list(type_.shape), [str(extent) for extent in type_.shape]
    operands = [value]
    for number, extent in enumerate(shape):
        if extent == dynamic and number != axis:
            operands.append(build.dim(value, number))
            sizes[number] = f"%{len(operands) - 1}"
    is_static = isinstance(length, int)
    if not is_static:
        operands.append(length)
    sizes[axis : axis + 1] = [str(parts), str(length) if is_static else f"%{len(operands) - 1}"]
    shape[axis : axis + 1] = [parts, length if is_static else dynamic]
    known = is_static and strides[axis] != unknown
    wide = list(strides)
    wide[axis : axis + 1] = [length * strides[axis] if known else unknown, strides[axis]]
    is_whole = mlir_util.is_whole_buffer(type_) or (list(strides), offset) == ([1], 0)  # upstream's identity
    whole = mlir_util.buffer_type(shape, type_.element_type)
    result = whole if is_whole else _strided(shape, type_.element_type, wide, offset)
    groups = [[n] if n < axis else [n, n + 1] if n == axis else [n + 1] for n in range(len(strides))]
    text = f"%v = memref.expand_shape %0 {groups} output_shape [{', '.join(sizes)}] : {type_} into {result}"
    *_, view = mlir_util.insert(op, text, operands)
    return view.results[0]


def _strided(shape: Sequence[int], element: Any, strides: Sequence[int], offset: int) -> str:
    dynamic, unknown = ir.ShapedType.get_dynamic_size(), ir.ShapedType.get_dynamic_stride_or_offset()
    sizes = "".join("?x" if extent == dynamic else f"{extent}x" for extent in shape)
    *steps, start = ("?" if each == unknown else str(each) for each in (*strides, offset))
    return f"memref<{sizes}{element}, strided<[{', '.join(steps)}], offset: {start}>>"
