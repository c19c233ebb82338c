"""Where sizes of values come from: arguments, numbers that a program computes, and sums and products of these.

A size is followed through the operations that make values of the sizes of others, into and out of loops, so that
two sizes that are the same are found to be, without a comparison when the program runs.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, NamedTuple

from devscope.dialects.op_facts import facts
from devscope.lowering import mlir_util
from devscope.lowering.constants import constant_value
from devscope.lowering.interop.bindings import ir

Size = Any
"""Where a size comes from: a number, a value of type index, a shaped value and an axis, or a `Term`."""


@dataclass(frozen=True)
class Term:
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


def term(operation: str, one: Size, other: Size) -> Size:
    if isinstance(one, int) and isinstance(other, int):
        return _COMPUTE[operation](one, other)
    neutral = {"addi": 0, "subi": 0, "muli": 1, "divsi": 1}[operation]
    if isinstance(other, int) and other == neutral:
        return one
    return (
        other
        if isinstance(one, int) and one == neutral and operation in ("addi", "muli")
        else Term(operation, one, other)
    )


def leaves(size: Size) -> Iterator[Any]:
    """The values that a size depends on."""
    if isinstance(size, Term):
        yield from leaves(size.one)
        yield from leaves(size.other)
    elif not isinstance(size, int):
        yield size[0] if isinstance(size, tuple) else size


LOOPS = {"scf.for", "scf.forall", "scf.parallel"}
IN_PARALLEL = "scf.forall.in_parallel"
ENTERED = {*LOOPS, IN_PARALLEL} | {f"scf.{name}" for name in ("while", "if", "index_switch", "execute_region")}
_LONGEST_SHAPE = 16
"""More elements than that has no shape."""
TAKES = {"tensor.extract_slice", "memref.subview"}
_ALIKE = {"tensor.cast", "memref.cast", "bufferization.to_tensor", "bufferization.to_buffer", "tensor.bitcast"}


class Sizes:
    """The sizes of values in ``function``, over tensors or buffers."""

    def __init__(self, function: Any) -> None:
        self.entry = mlir_util.entry_block(function)
        self.arguments = set(self.entry.arguments)
        self._made_by: dict[Any, Any] = {}
        self.loop_of: dict[Any, tuple[Any, Range]] = {}
        """Of the indices of loops."""
        self._shared: dict[Any, Any] = {}
        """For the results of parallel loops, and what they are in the body, the value that comes in."""
        self._carried: dict[Any, tuple[Any, int]] = {}
        """Of values that loops carry, the loop and the position."""
        self._sources: dict[tuple[Any, int], tuple[Any, int]] = {}
        """Of their sizes, the value and axis that they come from: at first, and if they change, themselves."""
        self._found: dict[tuple[Any, int], Size] = {}
        """Where sizes come from, as `size` has found it."""
        self._assumed = 0
        """How many sizes are taken for what loops carry without change, which is not known yet."""
        self._depths: dict[Any, int] = {}
        """In how many loops values are defined. One that can be used in a loop is inside if it is in more."""
        self._blocks: dict[Any, int] = {}
        """In how many loops blocks are."""
        for op in mlir_util.walk(function):
            depth = self._blocks.get(op.block, 0)
            for block in mlir_util.blocks_of(op):
                self._blocks[block] = depth + (op.name in LOOPS)
                self._depths.update(dict.fromkeys(block.arguments, self._blocks[block]))
            self._depths.update(dict.fromkeys(op.results, depth))
            if op.name in LOOPS:
                found_ranges = ranges(op)
                arguments = list(mlir_util.entry_block(op).arguments)
                self.loop_of.update((i, (op, found)) for i, found in zip(arguments, found_ranges, strict=False))
                carried = list(zip(arguments[len(found_ranges) :], op.results, strict=False))
                for position, pair in enumerate(carried):
                    if op.name == "scf.for":
                        self._carried.update(dict.fromkeys(pair, (op, position)))
                    else:
                        outputs = mlir_util.operand_groups(op)[-1]
                        self._shared.update(dict.fromkeys(pair, outputs[position]))
            self._made_by.update(dict.fromkeys(op.results, op))

    def made_by(self, value: Any) -> Any:
        """The operation whose result ``value`` is, None for arguments."""
        return self._made_by.get(value)

    def define(self, value: Any, block: Any) -> None:
        """A new value stands in ``block``."""
        self._depths.setdefault(value, self._blocks[block])

    def size(self, value: Any, axis: int) -> Size:
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
        op = self.made_by(value)
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
            is_same = self.size(passed, axis) == (given, axis)
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
            return self.number(sizes[dynamic.index(axis)])
        if name in _ALIKE or name == "device.device_copy":
            return operands[0], axis
        if name == "tensor.concat" and axis == ir.IntegerAttr(op.attributes["dim"]).value:
            return sum_of([self.size(operand, axis) for operand in operands])
        if name in ("tensor.insert", "tensor.insert_slice"):
            return operands[1], axis
        if name in TAKES:
            _, sizes, _ = self.slice_of(op)
            kept = kept_dimensions(sizes, ir.ShapedType(value.type).shape)
            return self.number(sizes[kept[axis]])
        if name == "tensor.concat":
            return operands[0], axis
        if name == "tensor.collapse_shape":
            parts = ir.ArrayAttr(ir.ArrayAttr(op.attributes["reassociation"])[axis])
            return product_of([self.size(operands[0], ir.IntegerAttr(part).value) for part in parts])
        if name == "tensor.expand_shape":
            return self.number(mixed(op.attributes["static_output_shape"], operands[1:])[axis])
        if name.startswith("linalg.") and len(op.results) and name != "linalg.pack":
            inits = operands[len(operands) - len(op.results) :]
            return inits[list(op.results).index(value)], axis
        if is_elementwise(op):
            return next(v for v in operands if isinstance(v.type, ir.RankedTensorType)), axis
        return None

    def number(self, value: Any) -> Size:
        """Where a number comes from, if it is a size or a constant."""
        while not isinstance(value, int):
            op = self.made_by(value)
            if op is None:
                return value
            if op.name == "arith.constant":
                return ir.IntegerAttr(op.attributes["value"]).value
            if op.name in ("tensor.dim", "memref.dim"):
                source, index = op.operands
                axis = self.number(index)
                rank = ir.ShapedType(source.type).rank
                return self.size(source, axis) if isinstance(axis, int) and 0 <= axis < rank else value
            origin = self.made_by(op.operands[0]) if op.name == "arith.index_cast" else op
            if origin is not None and origin.name == "tensor.extract" and len(origin.operands) == 2:
                constant = self.constants(origin.operands[0])
                position = self.number(origin.operands[1])
                return constant[position] if isinstance(position, int) and 0 <= position < len(constant) else value
            if origin is None or origin.name != "arith.index_cast":
                return value
            value = origin.operands[0]
        return value

    def constants(self, tensor: Any) -> list[int]:
        """The elements of a constant of integers, such as a shape; none of other tensors."""
        made_by = self.made_by(tensor)
        if made_by is None or made_by.name != "arith.constant":
            return []
        value = constant_value(made_by)
        return list(value) if isinstance(value, ir.DenseIntElementsAttr) and len(value) <= _LONGEST_SHAPE else []

    def slice_of(self, op: Any) -> tuple[list[Any], list[Any], list[Any]]:
        """Offsets, sizes and strides of a slice: numbers, or values."""
        segments = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
        operands = list(op.operands)
        first = len(operands) - sum(segments[-3:])
        groups: list[list[Any]] = []
        for kind, count in zip(("offsets", "sizes", "strides"), segments[-3:], strict=True):
            groups.append(mixed(op.attributes[f"static_{kind}"], operands[first : first + count]))
            first += count
        return groups[0], groups[1], groups[2]

    def is_inside(self, loop: Any, values: Sequence[Any]) -> bool:
        """Whether any of ``values``, which something in ``loop`` may use, is defined there."""
        return any(self._depths[value] > self._blocks[loop.block] for value in values)


def sum_of(sizes: Sequence[Size]) -> Size:
    return reduce(partial(term, "addi"), sizes, 0)


def product_of(sizes: Sequence[Size]) -> Size:
    return reduce(partial(term, "muli"), sizes, 1)


class Range(NamedTuple):
    """What an index of a loop goes through: numbers, or values."""

    lower: Any
    upper: Any
    step: Any


def ranges(loop: Any) -> list[Range]:
    if loop.name == "scf.for":
        return [Range(*list(loop.operands)[:3])]
    if loop.name not in LOOPS:
        return []
    groups = mlir_util.operand_groups(loop)[:3]
    if loop.name == "scf.forall":
        names = ("staticLowerBound", "staticUpperBound", "staticStep")
        groups = [mixed(loop.attributes[name], group) for name, group in zip(names, groups, strict=True)]
    return [Range(*bounds) for bounds in zip(*groups, strict=True)]


def bounds(loops: Sequence[Any]) -> list[Any]:
    return [end for loop in loops for found in ranges(loop) for end in found[:2] if not isinstance(end, int)]


def is_elementwise(op: Any) -> bool:
    """Whether an operation on tensors becomes a loop over their elements."""
    operands = list(op.operands)
    if not len(op.results) or not operands or not isinstance(op.results[0].type, ir.RankedTensorType):
        return False
    dialect = op.name.partition(".")[0]
    if dialect not in ("arith", "math", "complex") or not facts(op.name).elementwise:
        return False
    return op.name != "arith.select" or isinstance(operands[0].type, ir.RankedTensorType)


def mixed(static: Any, dynamic: Sequence[Any]) -> list[Any]:
    """Numbers of which those that are not static are values."""
    values = iter(dynamic)
    marker = ir.ShapedType.get_dynamic_stride_or_offset()
    return [next(values) if number == marker else number for number in ir.DenseI64ArrayAttr(static)]


def kept_dimensions(sizes: Sequence[Any], shape: Sequence[int]) -> list[int]:
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
