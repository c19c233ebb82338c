"""Shapes that must agree when a program runs: an assertion wherever they are not known to.

Types say what is known of shapes; the rest is decided by the sizes of arguments and by numbers that the program
computes. What an operation demands becomes a comparison of two sizes on the host, which has the shapes of all
data, in front of the operation. Most demands hold by themselves (`.sizes`), and none is asserted twice
(`.assertions`).

MLIR's generate-runtime-verification knows fewer operations, asserts each fact several times over and in every
iteration, and takes it for granted that shapes agree where one of them is empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from devscope.dialects.names import SAME_SIZE
from devscope.lowering import mlir_util
from devscope.lowering.checks.assertions import (
    CHECK,
    OF_VALUES,
    RANGE,
    Assertions,
    compare,
    is_equality,
    place_of,
)
from devscope.lowering.checks.labels import Labels
from devscope.lowering.checks.sizes import (
    ENTERED,
    Size,
    Sizes,
    is_elementwise,
    mixed,
    product_of,
    sum_of,
    term,
)
from devscope.lowering.checks.slices import SliceChecks
from devscope.lowering.interop import bindings
from devscope.lowering.interop.bindings import ir
from devscope.lowering.mlir_util import Builder

_SLICES = {
    "tensor.extract_slice": 0,
    "memref.subview": 0,
    "tensor.insert_slice": 1,
    "tensor.parallel_insert_slice": 1,
}
_CASTS = {"tensor.cast", "memref.cast"}
_ASSERTED = "devscope.asserted"
"""On a cast whose sizes are asserted."""
_CHECKED = {*_SLICES, *_CASTS, "tensor.reshape", "memref.copy"}
"""Where numbers or types of buffers may disagree; of all others, types of tensors."""


def check_shapes(module: Any, labels: Labels) -> None:
    """Add the assertions to the functions of ``module``, which are over tensors.

    ``labels``: see `.labels.argument_labels`.
    """
    for function in mlir_util.functions(module):
        if mlir_util.has_body(function) and any(map(_may_disagree, mlir_util.walk(function))):
            _Function(function, labels.get(mlir_util.symbol_name(function), [])).check()
    for op in mlir_util.named(module.operation, "tensor.cast"):
        op.attributes[_ASSERTED] = ir.UnitAttr.get(module.context)


def check_moved_casts(module: Any, labels: Labels) -> None:
    """Assert what casts demand that canonicalisation has made since `check_shapes`.

    It takes what a cast says of sizes for true in front of it, too: a producer's operands are cast instead, and
    read before the assertion that stands where the cast was.
    """
    for function in mlir_util.functions(module):
        casts = mlir_util.named(function, "tensor.cast") if mlir_util.has_body(function) else []
        if any(_ASSERTED not in op.attributes for op in casts):
            _Function(function, labels.get(mlir_util.symbol_name(function), []), of_casts=True).check()
        for op in casts:
            if _ASSERTED in op.attributes:
                del op.attributes[_ASSERTED]


def _may_disagree(op: Any) -> bool:
    return (
        op.name in _CHECKED
        or SAME_SIZE in op.attributes
        or any(_is_dynamic(value.type) for value in (*op.operands, *op.results))
    )


def _is_dynamic(type_: Any) -> bool:
    return isinstance(type_, ir.RankedTensorType) and not type_.has_static_shape


class _Function:
    """``of_casts``: of those without `_ASSERTED` alone."""

    def __init__(self, function: Any, labels: Sequence[str], of_casts: bool = False) -> None:
        self._function = function
        self._of_casts = of_casts
        self._sizes = Sizes(function)
        self._checks = Assertions(self._sizes, labels, first=not of_casts)
        self._slices = SliceChecks(self._sizes, self._checks)

    def check(self) -> None:
        self._check_regions(self._function)

    def _check_regions(self, parent: Any) -> None:
        """What is asserted in a block holds in the blocks that it dominates; of those, in nested ones only."""
        facts = self._checks.facts()
        for block in mlir_util.by_block(mlir_util.children(parent)):
            self._checks.assume(facts)
            is_entry = block[0].block == self._sizes.entry
            for op in block:
                name = op.name
                self._check(op)
                if name in ENTERED:
                    self._check_regions(op)
            if is_entry:
                facts = self._checks.facts()
        self._checks.assume(facts)

    # ------------------------------------------------------------------------------ what operations need

    def _check(self, op: Any) -> None:
        name = op.name
        if self._of_casts:
            if name == "tensor.cast" and _ASSERTED not in op.attributes:
                self._check_cast(op)
            elif name == "cf.assert" and CHECK in op.attributes:
                self._know_equal(op)
        elif name == "cf.assert" and SAME_SIZE in op.attributes:
            self._check_same(op)
        elif name in _SLICES:
            self._slices.check(op, _SLICES[name])
        elif name in _CASTS:
            self._check_cast(op)
        elif name in _RULES:
            _RULES[name](self, op)
        elif name.startswith("linalg."):
            self._check_loops(op)
        elif is_elementwise(op):
            self._check_alike(
                op, [n for n, v in enumerate(op.operands) if isinstance(v.type, ir.RankedTensorType)]
            )

    def _check_same(self, op: Any) -> None:
        """What earlier stages demand. Where both sizes are known, the condition is folded, and false."""
        names = [ir.StringAttr(name).value for name in ir.ArrayAttr(op.attributes[SAME_SIZE])]
        comparison = self._sizes.made_by(op.operands[0])
        if comparison is not None and comparison.name == "arith.cmpi":
            sizes = [self._sizes.number(value) for value in comparison.operands]
            self._checks.require_equal(op, *zip(sizes, names, strict=True))
            op.erase()
        else:
            text = f"{OF_VALUES}: {names[0]} is not {names[1]} ({place_of(op)})"
            op.attributes["msg"], op.attributes[CHECK] = ir.StringAttr.get(text), ir.UnitAttr.get()

    def _know_equal(self, op: Any) -> None:
        """That a size is a constant, if it is what an assertion says."""
        comparison = self._sizes.made_by(op.operands[0])
        if comparison is not None and is_equality(comparison):
            self._checks.know_equal(*map(self._sizes.number, comparison.operands))

    def _dimensions(self, op: Any, number: int) -> list[tuple[Size, str]]:
        value = op.operands[number]
        rank = ir.ShapedType(value.type).rank
        return [(self._sizes.size(value, axis), f"dimension {axis} of operand {number}") for axis in range(rank)]

    def _check_alike(self, op: Any, numbers: Sequence[int], but: int | None = None) -> None:
        """Operands that have one shape, except in dimension ``but``."""
        for number in numbers[1:]:
            for axis, pair in enumerate(
                zip(self._dimensions(op, numbers[0]), self._dimensions(op, number), strict=True)
            ):
                if axis != but:
                    self._checks.require_equal(op, *pair)

    def _check_cast(self, op: Any) -> None:
        if not all(ir.ShapedType(value.type).has_rank for value in (op.operands[0], op.results[0])):
            return
        for axis, size in enumerate(self._dimensions(op, 0)):
            extent = ir.ShapedType(op.results[0].type).shape[axis]
            if extent != ir.ShapedType.get_dynamic_size():
                self._checks.require_equal(op, size, (extent, f"dimension {axis} of the result"))

    def check_concat(self, op: Any) -> None:
        dim = ir.IntegerAttr(op.attributes["dim"]).value
        self._check_alike(op, range(len(op.operands)), dim)
        sum_ = sum_of([self._sizes.size(operand, dim) for operand in op.operands])
        self._check_extent(op, dim, sum_, f"the sum of dimension {dim} of the operands")

    def _check_extent(self, op: Any, axis: int, size: Size, what: str) -> None:
        """A dimension of the result that its type gives, where it is computed from sizes that are not known."""
        extent = ir.ShapedType(op.results[0].type).shape[axis]
        if extent != ir.ShapedType.get_dynamic_size():
            self._checks.require_equal(op, (size, what), (extent, "that of the result"))

    def check_same_shape(self, op: Any) -> None:
        self._check_alike(op, range(len(op.operands)))

    def check_pad(self, op: Any) -> None:
        """A padding of less than nothing is no slice."""
        groups = mlir_util.operand_groups(op)[1:]
        for value in (value for group in groups for value in group):
            number = self._sizes.number(value)
            if not isinstance(number, int):
                self._checks.require(op, "sge", number, 0, f"{RANGE}: 'tensor.pad' would pad by {{0}}")
        low, high = (mixed(op.attributes[f"static_{n}"], g) for n, g in zip(("low", "high"), groups, strict=True))
        for axis, widths in enumerate(zip(low, high, strict=True)):
            size = sum_of([self._sizes.size(op.operands[0], axis), *map(self._sizes.number, widths)])
            self._check_extent(op, axis, size, f"dimension {axis} of operand 0 with its padding")

    def check_pack(self, op: Any) -> None:
        """Dimensions in tiles have as many as the other operand's fill, or more; others are the same.

        ``linalg.pack`` and ``linalg.unpack``; see `verifyPackUnPack` in upstream's LinalgOps.cpp.
        """
        packed, plain = (1, 0) if op.name == "linalg.pack" else (0, 1)
        tiles = mixed(op.attributes["static_inner_tiles"], mlir_util.operand_groups(op)[-1])
        positions = list(ir.DenseI64ArrayAttr(op.attributes["inner_dims_pos"]))
        outer, sizes = self._dimensions(op, packed), self._dimensions(op, plain)
        order = op.attributes.get("outer_dims_perm", [])
        for place, axis in enumerate(list(order) or range(len(sizes))):
            if axis not in positions:
                self._checks.require_equal(op, outer[place], sizes[axis])
                continue
            room = term("muli", outer[place][0], self._sizes.number(tiles[positions.index(axis)]))
            size, what = sizes[axis]
            if not (isinstance(room, int) and isinstance(size, int)):  # else MLIR has verified it
                text = f"{self._checks.described(size, what)} is {{1}}, its tiles have room for {{0}}"
                self._checks.require(op, "sge", room, size, f"{OF_VALUES}: {text} ({place_of(op)})")

    def check_expand(self, op: Any) -> None:
        sizes = mixed(op.attributes["static_output_shape"], list(op.operands)[1:])
        for axis, group in enumerate(ir.ArrayAttr(op.attributes["reassociation"])):
            parts = [self._sizes.number(sizes[ir.IntegerAttr(item).value]) for item in ir.ArrayAttr(group)]
            extent, what = self._dimensions(op, 0)[axis]
            if isinstance(extent, int) and all(isinstance(part, int) for part in parts):
                continue  # MLIR has verified it
            self._checks.require_equal(op, (extent, what), (product_of(parts), "the product of what it becomes"))
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
                self._checks.require_equal(
                    op, (size, f"element {axis} of the shape"), (extent, "that of the result")
                )
        given = product_of([self._sizes.size(source, axis) for axis in range(ir.ShapedType(source.type).rank)])
        wanted = product_of(sizes)
        self._checks.require_equal(op, (given, "the operand's number of elements"), (wanted, "the result's"))

    def _require_size(self, op: Any, axis: int, size: Size) -> None:
        """A dimension of the result has a size, which is not negative: the product of two that are would fit."""
        if not isinstance(size, int | tuple):
            self._checks.require(op, "sge", size, 0, f"{RANGE}: dimension {axis} of '{op.name}' would be {{0}}")

    def _elements(self, op: Any, shape: Any, count: int) -> list[Size]:
        """Of ``shape``, which ``op`` uses."""
        build = Builder(op)
        constants = self._sizes.constants(shape)
        if constants:
            return constants
        made_by = self._sizes.made_by(shape)
        if made_by is not None and made_by.name == "tensor.from_elements":
            values = list(made_by.operands)
        else:
            element = ir.ShapedType(shape.type).element_type
            values = [build.value("tensor.extract", [shape, build.constant(n)], element) for n in range(count)]
        if values[0].type != build.index:
            values = [build.value("arith.index_cast", [value], build.index) for value in values]
        for value in values:
            self._sizes.define(value, op.block)
        return [self._sizes.number(value) for value in values]

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
                size = self._sizes.size(op.operands[number], axis), f"dimension {axis} of operand {number}"
                position = expression.position
                if position in loops:
                    self._checks.require_equal(op, loops[position], size)
                if position not in loops or isinstance(size[0], int):
                    loops[position] = size
        for expression, number, axis in computed:
            self._check_index(op, expression, loops, number, axis)

    def _check_index(
        self, op: Any, expression: Any, loops: dict[int, tuple[Size, str]], number: int, axis: int
    ) -> None:
        """The greatest index into a dimension that is computed from several loops, such as in a convolution."""
        extent = self._sizes.size(op.operands[number], axis)
        terms = _terms(expression)
        if terms is None or not all(position in loops for position in terms[0]):
            return
        factors, most = terms
        dynamic = [loops[position][0] for position in factors if not isinstance(loops[position][0], int)]
        if isinstance(extent, int) and not dynamic:
            return  # MLIR has verified it
        index: Size = most - sum(factors.values())
        for position, factor in factors.items():
            index = term("addi", index, term("muli", loops[position][0], factor))
        build = Builder(op)
        unless = None
        for size in dict.fromkeys(loops[position][0] for position in loops):
            if not isinstance(size, int):  # nothing is read in a loop that does not run
                empty = compare(build, "eq", self._checks.value_of(build, size), build.constant(0))
                unless = empty if unless is None else build.value("arith.ori", [unless, empty], empty.type)
        what = self._checks.described(extent, f"dimension {axis} of operand {number}")
        text = f"{OF_VALUES}: '{op.name}' reads index {{0}} of {what}, which is {{1}}"
        self._checks.require(op, "slt", index, extent, text, unless)


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
