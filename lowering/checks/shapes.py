"""Shapes that must agree when a program runs: an assertion wherever they are not known to.

Types say what is known of shapes; the rest is decided by the sizes of arguments and by numbers that the program
computes. What an operation demands becomes a comparison of two sizes on the host, which has the shapes of all
data, in front of the operation. A size is followed to where it comes from, so that most demands hold by
themselves and none is asserted twice; what depends on arguments alone is asserted at the begin of the function,
what a loop does not change, in front of the loop.

MLIR's generate-runtime-verification knows fewer operations, asserts each fact several times over and in every
iteration, and takes it for granted that shapes agree where one of them is empty.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, NamedTuple

from devscope.dialects.names import SAME_SIZE
from devscope.dialects.op_facts import facts
from devscope.lowering import mlir_util
from devscope.lowering.checks.labels import Labels
from devscope.lowering.constants import constant_value
from devscope.lowering.interop import bindings
from devscope.lowering.interop.bindings import ir
from devscope.lowering.mlir_util import Builder

CHECK = "devscope.check"
"""On an assertion of these: its message is the text of the error as it is, with ``{0}`` and ``{1}`` for the
operands of its comparison."""

DIFFERENCE = "devscope.difference"
"""On such an assertion: what is compared with 0 is the difference of what its message names."""

OF_ARGUMENTS, OF_VALUES, RANGE = "arguments do not fit each other", "shapes do not agree", "out of range"
"""How messages begin; device_error.py of the runtime tells them apart by that."""

Size = Any
"""Where a size comes from: a number, a value of type index, a shaped value and an axis, or a `_Term`."""


@dataclass(frozen=True)
class _Term:
    """``one`` and ``other`` added, subtracted, multiplied or divided, by an operation of this name."""

    operation: str
    one: Size
    other: Size


_COMPUTE: dict[str, Callable[[int, int], int]] = {
    "addi": operator.add,
    "subi": operator.sub,
    "muli": operator.mul,
    "divsi": operator.floordiv,  # of what is not negative, or not used
}


def _term(operation: str, one: Size, other: Size) -> Size:
    if isinstance(one, int) and isinstance(other, int):
        return _COMPUTE[operation](one, other)
    neutral = {"addi": 0, "subi": 0, "muli": 1, "divsi": 1}[operation]
    if isinstance(other, int) and other == neutral:
        return one
    return (
        other
        if isinstance(one, int) and one == neutral and operation in ("addi", "muli")
        else _Term(operation, one, other)
    )


def _leaves(size: Size) -> Iterator[Any]:
    """The values that a size depends on."""
    if isinstance(size, _Term):
        yield from _leaves(size.one)
        yield from _leaves(size.other)
    elif not isinstance(size, int):
        yield size[0] if isinstance(size, tuple) else size


_LOOPS = {"scf.for", "scf.forall", "scf.parallel"}
_IN_PARALLEL = "scf.forall.in_parallel"
_ENTERED = {*_LOOPS, _IN_PARALLEL} | {f"scf.{name}" for name in ("while", "if", "index_switch", "execute_region")}
_LONGEST_SHAPE = 16
"""More elements than that has no shape."""
_SLICES = {
    "tensor.extract_slice": 0,
    "memref.subview": 0,
    "tensor.insert_slice": 1,
    "tensor.parallel_insert_slice": 1,
}
_TAKES = {"tensor.extract_slice", "memref.subview"}
_CASTS = {"tensor.cast", "memref.cast"}
_CHECKED = {*_SLICES, *_CASTS, "tensor.reshape", "memref.copy"}
"""Where numbers or types of buffers may disagree; of all others, types of tensors."""
_ALIKE = {"tensor.cast", "memref.cast", "bufferization.to_tensor", "bufferization.to_buffer", "tensor.bitcast"}


def check_shapes(module: Any, labels: Labels) -> None:
    """Add the assertions to the functions of ``module``, which are over tensors.

    ``labels``: see `.labels.argument_labels`.
    """
    for function in mlir_util.functions(module):
        if mlir_util.has_body(function) and any(map(_may_disagree, mlir_util.walk(function))):
            _Function(function, labels.get(mlir_util.symbol_name(function), [])).check()


def _may_disagree(op: Any) -> bool:
    return (
        op.name in _CHECKED
        or SAME_SIZE in op.attributes
        or any(_is_dynamic(value.type) for value in (*op.operands, *op.results))
    )


def _is_dynamic(type_: Any) -> bool:
    return isinstance(type_, ir.RankedTensorType) and not type_.has_static_shape


class _Function:
    def __init__(self, function: Any, labels: Sequence[str]) -> None:
        self._function = function
        self._entry = mlir_util.entry_block(function)
        self._first = mlir_util.children(function)[0]
        self._labels = dict(zip(self._entry.arguments, labels, strict=False))
        self._made_by: dict[Any, Any] = {}
        self._arguments = set(self._entry.arguments)
        self._loop_of: dict[Any, tuple[Any, _Range]] = {}
        """Of the indices of loops."""
        self._shared: dict[Any, Any] = {}
        """For the results of parallel loops, and what they are in the body, the value that comes in."""
        self._carried: dict[Any, tuple[Any, int]] = {}
        """Of values that loops carry, the loop and the position."""
        self._sources: dict[tuple[Any, int], tuple[Any, int]] = {}
        """Of their sizes, the value and axis that they come from: at first, and if they change, themselves."""
        self._found: dict[tuple[Any, int], Size] = {}
        """Where sizes come from, as `_size` has found it."""
        self._assumed = 0
        """How many sizes are taken for what loops carry without change, which is not known yet."""
        self._depths: dict[Any, int] = {}
        """In how many loops values are defined. One that can be used in a loop is inside if it is in more."""
        self._blocks: dict[Any, int] = {}
        """In how many loops blocks are."""
        for op in mlir_util.walk(function):
            depth = self._blocks.get(op.block, 0)
            for block in mlir_util.blocks_of(op):
                self._blocks[block] = depth + (op.name in _LOOPS)
                self._depths.update(dict.fromkeys(block.arguments, self._blocks[block]))
            self._depths.update(dict.fromkeys(op.results, depth))
            if op.name in _LOOPS:
                ranges = _ranges(op)
                arguments = list(mlir_util.entry_block(op).arguments)
                self._loop_of.update((i, (op, found)) for i, found in zip(arguments, ranges, strict=False))
                carried = list(zip(arguments[len(ranges) :], op.results, strict=False))
                for position, pair in enumerate(carried):
                    if op.name == "scf.for":
                        self._carried.update(dict.fromkeys(pair, (op, position)))
                    else:
                        outputs = mlir_util.operand_groups(op)[-1]
                        self._shared.update(dict.fromkeys(pair, outputs[position]))
            self._made_by.update(dict.fromkeys(op.results, op))
        self._known: dict[Size, Size] = {}
        """For sizes, another one that is the same: a forest, whose roots stand for what is equal."""
        self._asserted: set[Any] = set()

    def check(self) -> None:
        self._check_regions(self._function)

    def _check_regions(self, parent: Any) -> None:
        """What is asserted in a block holds in the blocks that it dominates; of those, in nested ones only."""
        known, asserted = self._known, self._asserted
        for block in mlir_util.by_block(mlir_util.children(parent)):
            self._known, self._asserted = dict(known), set(asserted)
            is_entry = block[0].block == self._entry
            for op in block:
                name = op.name
                self._check(op)
                if name in _ENTERED:
                    self._check_regions(op)
            if is_entry:
                known, asserted = self._known, self._asserted
        self._known, self._asserted = known, asserted

    # ------------------------------------------------------------------------------------------ sizes

    def _size(self, value: Any, axis: int) -> Size:
        """Where the size of a dimension comes from."""
        passed: list[tuple[Any, int]] = []
        size: Size = value, axis
        while isinstance(size, tuple) and size not in self._found:
            passed.append(size)
            size = self._origin(*size)
            if size == passed[-1]:
                break
        if isinstance(size, tuple):
            size = self._found.get(size, size)
        if not self._assumed:
            self._found.update(dict.fromkeys(passed, size))
        return size

    def _origin(self, value: Any, axis: int) -> Size:
        """The same size, one step nearer to where it comes from, or as it is given."""
        extent = ir.ShapedType(value.type).shape[axis]
        if extent != ir.ShapedType.get_dynamic_size():
            return extent
        if value in self._shared:
            return self._shared[value], axis
        if value in self._carried:
            return self._source_of_carried(value, axis)
        op = self._made_by.get(value)
        source = None if op is None else self._source(op, value, axis)
        return (value, axis) if source is None else source

    def _source_of_carried(self, value: Any, axis: int) -> tuple[Any, int]:
        """What comes into the loop, if each iteration passes on a value of the size that it was given."""
        if (value, axis) not in self._sources:
            self._sources[value, axis] = value, axis
            loop, position = self._carried[value]
            block = mlir_util.entry_block(loop)
            given, passed = block.arguments[1 + position], mlir_util.children(loop)[-1].operands[position]
            self._sources.setdefault((given, axis), (given, axis))
            self._assumed += 1
            is_same = self._size(passed, axis) == (given, axis)
            self._assumed -= 1
            if is_same:
                self._sources[given, axis] = self._sources[value, axis] = loop.operands[3 + position], axis
        return self._sources[value, axis]

    def _source(self, op: Any, value: Any, axis: int) -> Any:
        """The value and axis that one of the results of ``op`` has its size from, or the size; None if unknown."""
        name, operands = op.name, list(op.operands)
        if name in ("tensor.empty", "tensor.splat", "tensor.generate", "memref.alloc"):
            sizes = operands[1:] if name == "tensor.splat" else operands
            shape = ir.ShapedType(value.type).shape
            dynamic = [n for n, extent in enumerate(shape) if extent == ir.ShapedType.get_dynamic_size()]
            return self._number(sizes[dynamic.index(axis)])
        if name in _ALIKE or name == "device.device_copy":
            return operands[0], axis
        if name == "tensor.concat" and axis == ir.IntegerAttr(op.attributes["dim"]).value:
            return _sum([self._size(operand, axis) for operand in operands])
        if name in ("tensor.insert", "tensor.insert_slice"):
            return operands[1], axis
        if name in _TAKES:
            _, sizes, _ = self._slice(op)
            kept = _kept(sizes, ir.ShapedType(value.type).shape)
            return self._number(sizes[kept[axis]])
        if name == "tensor.concat":
            return operands[0], axis
        if name == "tensor.collapse_shape":
            parts = ir.ArrayAttr(ir.ArrayAttr(op.attributes["reassociation"])[axis])
            return _product([self._size(operands[0], ir.IntegerAttr(part).value) for part in parts])
        if name == "tensor.expand_shape":
            return self._number(_mixed(op.attributes["static_output_shape"], operands[1:])[axis])
        if name.startswith("linalg.") and len(op.results) and name != "linalg.pack":
            inits = operands[len(operands) - len(op.results) :]
            return inits[list(op.results).index(value)], axis
        if _is_elementwise(op):
            return next(v for v in operands if isinstance(v.type, ir.RankedTensorType)), axis
        return None

    def _number(self, value: Any) -> Size:
        """Where a number comes from, if it is a size or a constant."""
        while not isinstance(value, int):
            op = self._made_by.get(value)
            if op is None:
                return value
            if op.name == "arith.constant":
                return ir.IntegerAttr(op.attributes["value"]).value
            if op.name in ("tensor.dim", "memref.dim"):
                source, index = op.operands
                axis = self._number(index)
                rank = ir.ShapedType(source.type).rank
                return self._size(source, axis) if isinstance(axis, int) and 0 <= axis < rank else value
            origin = self._made_by.get(op.operands[0]) if op.name == "arith.index_cast" else op
            if origin is not None and origin.name == "tensor.extract" and len(origin.operands) == 2:
                constant = self._constants(origin.operands[0])
                position = self._number(origin.operands[1])
                return constant[position] if isinstance(position, int) and 0 <= position < len(constant) else value
            if origin is None or origin.name != "arith.index_cast":
                return value
            value = origin.operands[0]
        return value

    def _constants(self, tensor: Any) -> list[int]:
        """The elements of a constant of integers, such as a shape; none of other tensors."""
        made_by = self._made_by.get(tensor)
        if made_by is None or made_by.name != "arith.constant":
            return []
        value = constant_value(made_by)
        return list(value) if isinstance(value, ir.DenseIntElementsAttr) and len(value) <= _LONGEST_SHAPE else []

    def _root(self, size: Size) -> Size:
        while size in self._known:
            size = self._known[size]
        return size

    # ------------------------------------------------------------------------------------- assertions

    def _require_equal(self, op: Any, one: tuple[Size, str], other: tuple[Size, str]) -> None:
        """``one`` and ``other``: sizes, and what they are sizes of."""
        a, b = self._root(one[0]), self._root(other[0])
        if a == b:
            return
        named = [self._described(size, what) for size, what in (one, other)]
        computed = [size for size in (one[0], other[0]) if not isinstance(size, int)]
        of_arguments = computed and all(isinstance(s, tuple) and self._labels.get(s[0]) for s in computed)
        head = OF_ARGUMENTS if of_arguments else OF_VALUES
        self._assert(
            op, "eq", one[0], other[0], f"{head}: {named[0]} is {{0}}, {named[1]} is {{1}} ({_place(op)})"
        )
        if isinstance(a, int):
            a, b = b, a
        if not isinstance(a, int):
            self._known[a] = b

    def _described(self, size: Size, what: str) -> str:
        if isinstance(size, tuple) and self._labels.get(size[0]):
            return f"dimension {size[1]} of {self._labels[size[0]]}"
        return what

    def _assert(
        self,
        op: Any,
        predicate: str,
        one: Size,
        other: Size,
        text: str,
        unless: Any = None,
        around: Any = None,
    ) -> None:
        """Assert that a comparison holds, as early as it can be, unless ``unless``, a value at ``op``, is true.

        ``around``: a loop around ``op`` that changes none of the sizes.
        """
        fact = predicate, self._root(one), self._root(other)
        if unless is None and fact in self._asserted:
            return
        self._asserted.add(fact)
        text = text.format(*(size if isinstance(size, int) else f"{{{n}}}" for n, size in enumerate((one, other))))
        if isinstance(one, int) and not isinstance(other, int):  # as MLIR would turn it round
            one, other, predicate, text = other, one, _REVERSED[predicate], text.replace("{1}", "{0}")
        before, loops = op, list[Any]()
        if unless is None:
            before, loops = self._hoist(op, [*_leaves(one), *_leaves(other)], around)
        build = Builder(before)
        values = [self._value(build, size) for size in (one, other)]
        is_difference = predicate == "eq" and not isinstance(other, int)
        if is_difference:  # MLIR puts a constant behind what it is compared with; a difference is not turned round
            values = [build.value("arith.subi", values, build.index), build.constant(0)]
        holds = compare(build, predicate, *values)
        skipped: list[Any] = []
        for loop in loops:
            is_empty = "uge" if mlir_util.is_unsigned(loop) else "sge"
            for found in _ranges(loop):
                skipped.append(compare(build, is_empty, *(self._value(build, end) for end in found[:2])))
        for skip in [*skipped, *([] if unless is None else [unless])]:
            holds = build.value("arith.ori", [holds, skip], holds.type)
        attributes = {"msg": ir.StringAttr.get(text, op.context), CHECK: ir.UnitAttr.get(op.context)}
        if is_difference:
            attributes[DIFFERENCE] = ir.UnitAttr.get(op.context)
        check = build.op("cf.assert", [holds], attributes=attributes)
        check.location = op.location

    def _value(self, build: Builder, size: Size) -> Any:
        if isinstance(size, int):
            return build.constant(size)
        if isinstance(size, _Term):
            parts = [self._value(build, part) for part in (size.one, size.other)]
            return build.value(f"arith.{size.operation}", parts, build.index)
        if not isinstance(size, tuple):
            return size
        value, axis = size
        name = "memref.dim" if mlir_util.is_memref(value.type) else "tensor.dim"
        return build.value(name, [value, build.constant(axis)], build.index)

    def _hoist(self, op: Any, values: Sequence[Any], around: Any = None) -> tuple[Any, list[Any]]:
        """The place for an assertion of ``op`` about ``values``, and the loops around ``op`` behind it.

        ``around``: a loop that it is known to stand in front of.
        """
        loops: list[Any] = []
        if op.parent.name == _IN_PARALLEL:
            op = op.parent.operation
        while around is not None and op != around:
            op = op.parent.operation
            loops.append(op)
        while op.parent is not None and op.parent.name in _LOOPS:
            loop = op.parent.operation
            if self._is_inside(loop, [*values, *_bounds(loops)]):
                return op, loops
            op = loop
            loops.append(loop)
        if op.block == self._entry and self._arguments.issuperset([*values, *_bounds(loops)]):
            return self._first, loops
        return op, loops

    def _is_inside(self, loop: Any, values: Sequence[Any]) -> bool:
        """Whether any of ``values``, which something in ``loop`` may use, is defined there."""
        return any(self._depths[value] > self._blocks[loop.block] for value in values)

    # ------------------------------------------------------------------------------ what operations need

    def _check(self, op: Any) -> None:
        name = op.name
        if name == "cf.assert" and SAME_SIZE in op.attributes:
            self._check_same(op)
        elif name in _SLICES:
            self._check_slice(op, _SLICES[name])
        elif name in _CASTS:
            self._check_cast(op)
        elif name in _RULES:
            _RULES[name](self, op)
        elif name.startswith("linalg."):
            self._check_loops(op)
        elif _is_elementwise(op):
            self._check_alike(
                op, [n for n, v in enumerate(op.operands) if isinstance(v.type, ir.RankedTensorType)]
            )

    def _check_same(self, op: Any) -> None:
        """What earlier stages demand. Where both sizes are known, the condition is folded, and false."""
        names = [ir.StringAttr(name).value for name in ir.ArrayAttr(op.attributes[SAME_SIZE])]
        comparison = self._made_by.get(op.operands[0])
        if comparison is not None and comparison.name == "arith.cmpi":
            sizes = [self._number(value) for value in comparison.operands]
            self._require_equal(op, *zip(sizes, names, strict=True))
            op.erase()
        else:
            text = f"{OF_VALUES}: {names[0]} is not {names[1]} ({_place(op)})"
            op.attributes["msg"], op.attributes[CHECK] = ir.StringAttr.get(text), ir.UnitAttr.get()

    def _sizes(self, op: Any, number: int) -> list[tuple[Size, str]]:
        value = op.operands[number]
        rank = ir.ShapedType(value.type).rank
        return [(self._size(value, axis), f"dimension {axis} of operand {number}") for axis in range(rank)]

    def _check_alike(self, op: Any, numbers: Sequence[int], but: int | None = None) -> None:
        """Operands that have one shape, except in dimension ``but``."""
        for number in numbers[1:]:
            for axis, pair in enumerate(zip(self._sizes(op, numbers[0]), self._sizes(op, number), strict=True)):
                if axis != but:
                    self._require_equal(op, *pair)

    def _check_cast(self, op: Any) -> None:
        if not all(ir.ShapedType(value.type).has_rank for value in (op.operands[0], op.results[0])):
            return
        for axis, size in enumerate(self._sizes(op, 0)):
            extent = ir.ShapedType(op.results[0].type).shape[axis]
            if extent != ir.ShapedType.get_dynamic_size():
                self._require_equal(op, size, (extent, f"dimension {axis} of the result"))

    def check_concat(self, op: Any) -> None:
        dim = ir.IntegerAttr(op.attributes["dim"]).value
        self._check_alike(op, range(len(op.operands)), dim)
        sum_ = _sum([self._size(operand, dim) for operand in op.operands])
        self._check_extent(op, dim, sum_, f"the sum of dimension {dim} of the operands")

    def _check_extent(self, op: Any, axis: int, size: Size, what: str) -> None:
        """A dimension of the result that its type gives, where it is computed from sizes that are not known."""
        extent = ir.ShapedType(op.results[0].type).shape[axis]
        if extent != ir.ShapedType.get_dynamic_size():
            self._require_equal(op, (size, what), (extent, "that of the result"))

    def check_same_shape(self, op: Any) -> None:
        self._check_alike(op, range(len(op.operands)))

    def check_pad(self, op: Any) -> None:
        """A padding of less than nothing is no slice."""
        groups = mlir_util.operand_groups(op)[1:]
        for value in (value for group in groups for value in group):
            number = self._number(value)
            if not isinstance(number, int):
                self._assert(op, "sge", number, 0, f"{RANGE}: 'tensor.pad' would pad by {{0}}")
        low, high = (_mixed(op.attributes[f"static_{n}"], g) for n, g in zip(("low", "high"), groups, strict=True))
        for axis, widths in enumerate(zip(low, high, strict=True)):
            size = _sum([self._size(op.operands[0], axis), *map(self._number, widths)])
            self._check_extent(op, axis, size, f"dimension {axis} of operand 0 with its padding")

    def check_pack(self, op: Any) -> None:
        """Dimensions in tiles have as many as the other operand's fill, or more; others are the same.

        ``linalg.pack`` and ``linalg.unpack``; see `verifyPackUnPack` in upstream's LinalgOps.cpp.
        """
        packed, plain = (1, 0) if op.name == "linalg.pack" else (0, 1)
        tiles = _mixed(op.attributes["static_inner_tiles"], mlir_util.operand_groups(op)[-1])
        positions = list(ir.DenseI64ArrayAttr(op.attributes["inner_dims_pos"]))
        outer, sizes = self._sizes(op, packed), self._sizes(op, plain)
        order = op.attributes.get("outer_dims_perm", [])
        for place, axis in enumerate(list(order) or range(len(sizes))):
            if axis not in positions:
                self._require_equal(op, outer[place], sizes[axis])
                continue
            room = _term("muli", outer[place][0], self._number(tiles[positions.index(axis)]))
            size, what = sizes[axis]
            if not (isinstance(room, int) and isinstance(size, int)):  # else MLIR has verified it
                text = f"{self._described(size, what)} is {{1}}, its tiles have room for {{0}}"
                self._assert(op, "sge", room, size, f"{OF_VALUES}: {text} ({_place(op)})")

    def check_expand(self, op: Any) -> None:
        sizes = _mixed(op.attributes["static_output_shape"], list(op.operands)[1:])
        for axis, group in enumerate(ir.ArrayAttr(op.attributes["reassociation"])):
            parts = [self._number(sizes[ir.IntegerAttr(item).value]) for item in ir.ArrayAttr(group)]
            extent, what = self._sizes(op, 0)[axis]
            if isinstance(extent, int) and all(isinstance(part, int) for part in parts):
                continue  # MLIR has verified it
            self._require_equal(op, (extent, what), (_product(parts), "the product of what it becomes"))
            for item, part in zip(ir.ArrayAttr(group), parts, strict=True):
                self._require_size(op, ir.IntegerAttr(item).value, part)

    def check_reshape(self, op: Any) -> None:
        """The result has what the shape says, of which MLIR has checked nothing but the length."""
        source, shape = op.operands
        type_ = ir.ShapedType(op.results[0].type)
        if not type_.rank:
            return
        sizes = self._elements(op, shape, type_.rank)
        for axis, (size, extent) in enumerate(zip(sizes, type_.shape, strict=True)):
            if extent == ir.ShapedType.get_dynamic_size():
                self._require_size(op, axis, size)
            else:
                self._require_equal(op, (size, f"element {axis} of the shape"), (extent, "that of the result"))
        given = _product([self._size(source, axis) for axis in range(ir.ShapedType(source.type).rank)])
        wanted = _product(sizes)
        self._require_equal(op, (given, "the operand's number of elements"), (wanted, "the result's"))

    def _require_size(self, op: Any, axis: int, size: Size) -> None:
        """A dimension of the result has a size, which is not negative: the product of two that are would fit."""
        if not isinstance(size, int | tuple):
            self._assert(op, "sge", size, 0, f"{RANGE}: dimension {axis} of '{op.name}' would be {{0}}")

    def _elements(self, op: Any, shape: Any, count: int) -> list[Size]:
        """Of ``shape``, which ``op`` uses."""
        build = Builder(op)
        constants = self._constants(shape)
        if constants:
            return constants
        made_by = self._made_by.get(shape)
        if made_by is not None and made_by.name == "tensor.from_elements":
            values = list(made_by.operands)
        else:
            element = ir.ShapedType(shape.type).element_type
            values = [build.value("tensor.extract", [shape, build.constant(n)], element) for n in range(count)]
        if values[0].type != build.index:
            values = [build.value("arith.index_cast", [value], build.index) for value in values]
        for value in values:
            self._depths.setdefault(value, self._blocks[op.block])
        return [self._number(value) for value in values]

    def _check_loops(self, op: Any) -> None:
        """An operation of linalg: its indexing maps say which dimensions are those of one loop."""
        maps = bindings.load("_mlir_libs._mlirDialectsLinalg").get_indexing_maps(op)
        if maps is None:
            return
        loops: dict[int, tuple[Size, str]] = {}
        computed: list[tuple[Any, int, int]] = []
        for number, map_ in enumerate(maps):
            for axis, expression in enumerate(map_.value.results):
                if not isinstance(expression, ir.AffineDimExpr):
                    computed.append((expression, number, axis))
                    continue
                size = self._size(op.operands[number], axis), f"dimension {axis} of operand {number}"
                position = expression.position
                if position in loops:
                    self._require_equal(op, loops[position], size)
                if position not in loops or isinstance(size[0], int):
                    loops[position] = size
        for expression, number, axis in computed:
            self._check_index(op, expression, loops, number, axis)

    def _check_index(
        self, op: Any, expression: Any, loops: dict[int, tuple[Size, str]], number: int, axis: int
    ) -> None:
        """The greatest index into a dimension that is computed from several loops, such as in a convolution."""
        extent = self._size(op.operands[number], axis)
        terms = _terms(expression)
        if terms is None or not all(position in loops for position in terms[0]):
            return
        factors, most = terms
        dynamic = [loops[position][0] for position in factors if not isinstance(loops[position][0], int)]
        if isinstance(extent, int) and not dynamic:
            return  # MLIR has verified it
        index: Size = most - sum(factors.values())
        for position, factor in factors.items():
            index = _term("addi", index, _term("muli", loops[position][0], factor))
        build = Builder(op)
        unless = None
        for size in dict.fromkeys(loops[position][0] for position in loops):
            if not isinstance(size, int):  # nothing is read in a loop that does not run
                empty = compare(build, "eq", self._value(build, size), build.constant(0))
                unless = empty if unless is None else build.value("arith.ori", [unless, empty], empty.type)
        what = self._described(extent, f"dimension {axis} of operand {number}")
        text = f"{OF_VALUES}: '{op.name}' reads index {{0}} of {what}, which is {{1}}"
        self._assert(op, "slt", index, extent, text, unless)

    # ---------------------------------------------------------------------------------------- slices

    def _slice(self, op: Any) -> tuple[list[Any], list[Any], list[Any]]:
        """Offsets, sizes and strides of a slice: numbers, or values."""
        segments = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
        operands = list(op.operands)
        first = len(operands) - sum(segments[-3:])
        groups: list[list[Any]] = []
        for kind, count in zip(("offsets", "sizes", "strides"), segments[-3:], strict=True):
            groups.append(_mixed(op.attributes[f"static_{kind}"], operands[first : first + count]))
            first += count
        return groups[0], groups[1], groups[2]

    def _check_slice(self, op: Any, whole: int) -> None:
        offsets, sizes, strides = self._slice(op)
        for axis, numbers in enumerate(zip(offsets, sizes, strides, strict=True)):
            offset, size, stride = map(self._number, numbers)
            extent, what = self._sizes(op, whole)[axis]
            if isinstance(extent, int) and all(isinstance(number, int) for number in (offset, size, stride)):
                continue  # MLIR has verified it
            if self._root(size) != self._root(extent) or offset != 0 or stride != 1:
                self._check_range(op, self._described(extent, what), offset, size, stride, extent)
        if op.name not in _TAKES:
            shape = ir.ShapedType(op.operands[0].type).shape
            for axis, kept in enumerate(_kept(sizes, shape)):
                size = self._size(op.operands[0], axis), f"dimension {axis} of operand 0"
                self._require_equal(op, size, (self._number(sizes[kept]), "the size of the slice"))

    def _check_range(self, op: Any, what: str, offset: Size, size: Size, stride: Size, extent: Size) -> None:
        """A slice of no or of a negative size, of which allocations complain, reads nothing."""
        loop, range_ = self._loop_of.get(offset, (None, None))
        last = None
        if range_ is not None:
            first, end = self._number(range_.lower), self._number(range_.upper)
            from_start = isinstance(first, int) and first >= 0
            if size == 1 and from_start and self._root(end) == self._root(extent):
                return  # the loop over the dimension
            last = self._last(op, loop, range_, [size, stride, extent])
            # What holds of the first and of the last iteration holds of all.
            for begin in [] if last is None else [last] if from_start else [first, last]:
                text = f"{RANGE}: '{op.name}' begins at {{0}} of {what}, which is {{1}}"
                self._assert(op, "ule", begin, extent, text, around=loop)
        if last is not None:
            offset = last
        elif not isinstance(offset, int) or offset != 0:
            text = f"{RANGE}: '{op.name}' begins at {{0}} of {what}, which is {{1}}"
            self._assert(op, "ule", offset, extent, text)
        text = f"{RANGE}: '{op.name}' takes {{0}} of {what}, where {{1}} are left"
        around = None if last is None else loop
        taken, left = size, _term("subi", extent, offset)
        if stride != 1:
            taken = _term("addi", _term("muli", _term("subi", size, 1), stride), 1)
            for number, name in ((size, "size"), (stride, "stride")):  # so that the product does not wrap around
                if not isinstance(number, int):
                    self._assert(op, "ult", number, 1 << 31, f"{RANGE}: the {name} of '{op.name}' is {{0}}")
        self._assert(op, "sle", taken, left, text, around=around)

    def _last(self, op: Any, loop: Any, range_: _Range, sizes: Sequence[Size]) -> Size | None:
        """The last index of a loop with which ``op`` always runs; None for others, and if it changes ``sizes``."""
        between: list[Any] = []
        parent = op.parent.operation
        while parent != loop and parent.name in (*_LOOPS, _IN_PARALLEL):
            between.append(parent)
            parent = parent.parent.operation
        lower, upper, step = map(self._number, range_)
        if parent != loop or not isinstance(step, int) or step < 1 or mlir_util.is_unsigned(loop):
            return None
        leaves = [leaf for size in (*sizes, lower, upper) for leaf in _leaves(size)]
        if self._is_inside(loop, [*leaves, *_bounds(between)]):
            return None
        rounds = _term("divsi", _term("subi", _term("subi", upper, 1), lower), step)
        return _term("addi", lower, _term("muli", rounds, step))


_RULES: dict[str, Callable[[_Function, Any], None]] = {
    "tensor.concat": _Function.check_concat,
    "tensor.pad": _Function.check_pad,
    "tensor.expand_shape": _Function.check_expand,
    "tensor.reshape": _Function.check_reshape,
    "linalg.pack": _Function.check_pack,
    "linalg.softmax": _Function.check_same_shape,
    "linalg.unpack": _Function.check_pack,
    "memref.copy": _Function.check_same_shape,
}


def _sum(sizes: Sequence[Size]) -> Size:
    return reduce(partial(_term, "addi"), sizes, 0)


def _product(sizes: Sequence[Size]) -> Size:
    return reduce(partial(_term, "muli"), sizes, 1)


class _Range(NamedTuple):
    """What an index of a loop goes through: numbers, or values."""

    lower: Any
    upper: Any
    step: Any


def _ranges(loop: Any) -> list[_Range]:
    if loop.name == "scf.for":
        return [_Range(*list(loop.operands)[:3])]
    if loop.name not in _LOOPS:
        return []
    groups = mlir_util.operand_groups(loop)[:3]
    if loop.name == "scf.forall":
        names = ("staticLowerBound", "staticUpperBound", "staticStep")
        groups = [_mixed(loop.attributes[name], group) for name, group in zip(names, groups, strict=True)]
    return [_Range(*bounds) for bounds in zip(*groups, strict=True)]


def _bounds(loops: Sequence[Any]) -> list[Any]:
    return [end for loop in loops for found in _ranges(loop) for end in found[:2] if not isinstance(end, int)]


def _place(op: Any) -> str:
    return ir.StringAttr(op.attributes["msg"]).value if op.name == "cf.assert" else f"in '{op.name}'"


_PREDICATES = {"eq": 0, "ne": 1, "ult": 6, "slt": 2, "sle": 3, "sgt": 4, "sge": 5, "ule": 7, "ugt": 8, "uge": 9}
_REVERSED = {"eq": "eq", "slt": "sgt", "sle": "sge", "sge": "sle", "ult": "ugt", "ule": "uge"}


def compare(build: Builder, predicate: str, one: Any, other: Any) -> Any:
    """Whether one integer is to another as ``arith.cmpi`` calls it."""
    i1 = ir.IntegerType.get_signless(1, one.type.context)
    return build.value(
        "arith.cmpi", [one, other], i1, {"predicate": ir.IntegerAttr.get(build.i64, _PREDICATES[predicate])}
    )


def _is_elementwise(op: Any) -> bool:
    """Whether an operation on tensors becomes a loop over their elements."""
    operands = list(op.operands)
    if not len(op.results) or not operands or not isinstance(op.results[0].type, ir.RankedTensorType):
        return False
    dialect = op.name.partition(".")[0]
    if dialect not in ("arith", "math", "complex") or not facts(op.name).elementwise:
        return False
    return op.name != "arith.select" or isinstance(operands[0].type, ir.RankedTensorType)


def _mixed(static: Any, dynamic: Sequence[Any]) -> list[Any]:
    """Numbers of which those that are not static are values."""
    values = iter(dynamic)
    marker = ir.ShapedType.get_dynamic_stride_or_offset()
    return [next(values) if number == marker else number for number in ir.DenseI64ArrayAttr(static)]


def _kept(sizes: Sequence[Any], shape: Sequence[int]) -> list[int]:
    """The dimensions of a slice that its tensor, of ``shape``, has: others are of size 1."""
    dropped = len(sizes) - len(shape)
    kept: list[int] = []
    for number, size in enumerate(sizes):
        is_next = len(kept) < len(shape) and (
            size == shape[len(kept)] or (not isinstance(size, int) and shape[len(kept)] < 0)
        )
        if is_next or not dropped:
            kept.append(number)
        else:
            dropped -= 1
    return kept


def _terms(expression: Any) -> tuple[dict[int, int], int] | None:
    """The factors of the loops in a sum, and the number in it; None for anything else, and if one is negative."""
    factors: dict[int, int] = {}
    number = 0
    for part in _summands(expression):
        left, factor = part, 1
        if isinstance(part, ir.AffineMulExpr):
            left, right = ir.AffineBinaryExpr(part).lhs, ir.AffineBinaryExpr(part).rhs
            if not isinstance(right, ir.AffineConstantExpr):
                return None
            factor = right.value
        if isinstance(left, ir.AffineConstantExpr):
            number += left.value * factor
        elif isinstance(left, ir.AffineDimExpr) and factor >= 0:
            factors[left.position] = factors.get(left.position, 0) + factor
        else:
            return None
    return factors, number


def _summands(expression: Any) -> Iterator[Any]:
    if isinstance(expression, ir.AffineAddExpr):
        sum_ = ir.AffineBinaryExpr(expression)
        yield from _summands(sum_.lhs)
        yield from _summands(sum_.rhs)
    else:
        yield expression
