"""Operations of linalg on buffers that index each operand by single loops, and in which order to do those."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.nest_bodies import combiners
from devscope.lowering.mlir_util import Builder

Numbers = Mapping[str, int]


def product_of(extents: Iterable[int | None]) -> int | None:
    """None if one is not known."""
    found = list(extents)
    known = [extent for extent in found if extent is not None]
    return prod(known) if len(known) == len(found) else None


TASK = -1
"""What indexes the first axis of a buffer that each task has a part of."""

_PURE = frozenset({"arith", "math", "complex", "index", "ub"})
_PURE_OPS = frozenset(
    {"affine.apply", "affine.min", "affine.max", "linalg.index", "linalg.yield", "scf.if", "scf.yield"}
    | {"memref.load", "memref.dim"}
)

_COSTS = {
    **dict.fromkeys(("arith.constant", "linalg.index", "linalg.yield"), 0),
    **dict.fromkeys(("math.absf", "math.ceil", "math.copysign", "math.floor", "math.fma", "math.roundeven"), 1),
    **dict.fromkeys(("math.sqrt", "math.rsqrt"), 8),
    **dict.fromkeys(("arith.divsi", "arith.divui", "arith.remsi", "arith.remui", "memref.load"), 64),
}
"""Of an operation, in those that vectors do; other functions take as long as 128, the rest counts 1."""


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


@dataclass(eq=False)
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

    def replace(self, old: Any, new: Any, count: int | None = None) -> None:
        """Use another buffer of the same shape and elements, in the first ``count`` operands or all."""
        for number, operand in enumerate(self.operands[:count]):
            if operand.value == old:
                operand.value = self.op.operands[number] = new

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
        """Of one iteration, about, in elements that are read or written one after the other."""
        names = [inner.name for child in mlir_util.children(self.op) for inner in mlir_util.walk(child)]
        operations = sum(_COSTS.get(name, 128 if name.startswith("math.") else 1) for name in names)
        return sum(operand.is_buffer for operand in self.operands) + operations // 8


def match(op: Any, linalg: Any) -> Nest | None:
    """None for what is no nest of this kind, such as a convolution."""
    operands = list(op.operands)
    if len(op.regions) != 1 or list(op.results):
        return None
    inputs = len(operands) // 2 if op.name == "linalg.reduce" else len(operands) - 1
    if "operandSegmentSizes" in op.attributes:
        inputs, _ = ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])
    maps = linalg.get_indexing_maps(op)
    if maps is None or len(mlir_util.entry_block(op).arguments) != len(operands):
        return None
    if inputs == len(operands):  # what is there for its assertions only
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


def copy_nest(op: Any) -> Nest:
    """That of a ``memref.copy``."""
    rank = ir.MemRefType(op.operands[0].type).rank
    return Nest(op, [Operand(value, tuple(range(rank))) for value in op.operands], 1, [True] * rank, True)


def collapse_loops(nest: Nest, *others: Nest) -> None:
    """Neighbouring loops that index neighbouring axes of all operands that they index become one.

    ``others``: nests of which the first loops, all parallel ones, are those of ``nest``; they stay so.
    """
    nests = (nest, *others)
    for each in nests:
        if any(inner.name == "linalg.index" for c in mlir_util.children(each.op) for inner in mlir_util.walk(c)):
            return
        if not all(mlir_util.is_whole_buffer(o.value.type) for o in each.operands if o.is_buffer):
            return
    count = len(nest.parallel)
    order = next((o.dims for o in nest.results if len(o.dims) == count), tuple(range(count)))
    if others:
        order = tuple(loop for loop in range(count) if nest.parallel[loop])
    groups = _groups(nests, order)
    for each in nests:
        rest = [loop for loop in range(len(each.parallel)) if loop not in order]
        own = [*groups, *_groups((each,), rest)]
        if len(own) < len(each.parallel):
            _collapse(each, own)


def _groups(nests: Sequence[Nest], order: Sequence[int]) -> list[list[int]]:
    """The loops of ``order``, those that can be one together."""
    groups: list[list[int]] = []
    for loop in order:
        last = groups[-1][-1] if groups else None
        if last is not None and all(_can_be_one(each, last, loop) for each in nests):
            groups[-1].append(loop)
        else:
            groups.append([loop])
    return groups


def _collapse(nest: Nest, groups: Sequence[Sequence[int]]) -> None:
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
            operand.value = collapsed(build, operand.value, axes)
        operand.dims = tuple(dict.fromkeys(number_of[loop] for loop in operand.dims))
    nest.parallel = [nest.parallel[group[0]] for group in groups]


def _can_be_one(nest: Nest, first: int, second: int) -> bool:
    return nest.parallel[first] == nest.parallel[second] and _are_neighbours(nest, first, second)


def _are_neighbours(nest: Nest, first: int, second: int) -> bool:
    for operand in nest.operands:
        has = (first in operand.dims, second in operand.dims)
        if has[0] != has[1] or (has[0] and operand.dims.index(second) != operand.dims.index(first) + 1):
            return False
    return True


def collapsed(build: Builder, value: Any, axes: list[list[int]]) -> Any:
    """A view of a whole buffer, each axis of which is made of ``axes``."""
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


def order_loops(nest: Nest, fixed: int = 0) -> list[int]:
    """The loops, outermost first; ``fixed`` of them, which are around them already, are left out.

    Those that are reduced over keep their order where it may count, as for products and the first of equal maxima.
    """
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
    others = [loop for loop in loops if not nest.parallel[loop]]
    if len(others) > 1 and any(combiner is None for combiner in combiners(nest.op)):
        for loop in others[:-1]:
            del scores[loop]
    innermost = max(scores, key=lambda loop: (scores[loop], loop))
    results = [loop for loop in nest.results[0].dims if loop in loops and nest.parallel[loop]]
    return [*(loop for loop in (*results, *others) if loop != innermost), innermost]
