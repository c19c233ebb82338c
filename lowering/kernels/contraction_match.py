"""Which operations on buffers are contractions that kernels compute, and what their loops are for a kernel.

The loops of a contraction are those of a batch (in both operands and the result), rows (m: in A and the result),
columns (n: in B and the result) and sums (k: in A and B), as upstream infers them. A kernel has one of each. Loops
of one kind through which elements are at equal distances in both buffers are one loop. Of others, rows or columns
are a batch of one operand with one matrix of the other, as the images that a convolution of single pixels has, if
there is no batch; the rest are made around the call, and so are loops of the result alone, which upstream has no
name for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from math import prod
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.contraction_words import WORD, Words

Group = tuple[int, ...]
"""Loops that are one for a kernel, outermost first; none is a loop of one iteration."""

LEAST_WORK = 4096
"""Multiplications below which loops are as fast, and compiled sooner."""

WIDE_SUMS = {"f16": "f32", "bf16": "f32"}
"""The types that sums are computed in, where it is not that of the result."""

EXTENSIONS = ("arith.extf", "arith.extsi", "arith.extui")


class Place(Enum):
    """Where a kernel reads an operand: in panels that it packs, for all tasks or each for itself, in a constant's
    (`packed_constants`), or in the buffer."""

    TO_PACK = auto()
    TO_PACK_IN_TASKS = auto()
    PANELS = auto()
    IN_PLACE = auto()


@dataclass
class Operand:
    """A buffer, and its axes by the loops of the contraction, in order of the axes.

    ``ones``: loops of one iteration, whatever the type of the buffer says of them.
    """

    value: Any
    axes: Mapping[int, int]
    place: Place = Place.TO_PACK
    ones: frozenset[int] = frozenset()

    @property
    def type(self) -> Any:
        return ir.MemRefType(self.value.type)

    @property
    def element(self) -> str:
        return str(self.type.element_type)

    def extent(self, loop: int) -> int | None:
        """None where it is not known."""
        if loop in self.ones:
            return 1
        extent = self.type.shape[self.axes[loop]]
        return None if extent == ir.ShapedType.get_dynamic_size() else extent

    def innermost(self) -> int | None:
        """The loop along which elements stand side by side, one of more than one iteration if there is one."""
        strides, _ = self.type.get_strides_and_offset()
        is_whole, found = mlir_util.is_whole_buffer(self.type), list[int]()
        for loop, axis in reversed(list(self.axes.items())):
            if strides[axis] == 1 or (is_whole and all(self.extent(each) == 1 for each in found)):
                found.append(loop)
        return next((loop for loop in found if self.extent(loop) != 1), found[0] if found else None)

    def is_one(self, outer: int, inner: int) -> bool:
        """Whether each step of ``outer`` goes as far as all steps of ``inner``."""
        one, other = self.axes[outer], self.axes[inner]
        if other == one + 1 and mlir_util.is_whole_buffer(self.type):
            return True
        strides, _ = self.type.get_strides_and_offset()
        extent, dynamic = self.extent(inner), ir.ShapedType.get_dynamic_stride_or_offset()
        known = extent is not None and dynamic not in (strides[one], strides[other])
        return known and strides[one] == strides[other] * (extent or 0)


@dataclass
class Contraction:
    """``loops``: those of the kernel, by the names b, m, n and k; A or B may lack b. ``outer``: others, sums last.

    ``element``: the type that sums are computed in. ``extend``: the operation that makes it of the operands'.
    ``sums_outside``: whether there are sums among the outer loops. ``words``: where several steps of k are packed
    as one. ``most``: iterations of the kernel's loops, where their number is not known but its limit.
    """

    a: Operand
    b: Operand
    c: Operand
    loops: Mapping[str, Group]
    outer: Sequence[int]
    element: str
    extend: str
    sums_outside: bool
    words: Words | None = None
    most: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def packed(self) -> str:
        """The type of what panels have for a step of the kernel's inner loop."""
        return WORD if self.words else self.element

    @property
    def steps_at_once(self) -> int:
        """Of k, in a step of the kernel's inner loop."""
        return self.words.steps if self.words else 1

    def operand_of(self, loop: int) -> Operand:
        return next(operand for operand in (self.c, self.a, self.b) if loop in operand.axes)

    def extent(self, name: str) -> int | None:
        """The iterations of the kernel's loop ``name``; None where they are not known."""
        extents = [self.operand_of(loop).extent(loop) for loop in self.loops[name]]
        return product(extents)

    def limit(self, name: str) -> int | None:
        """The most iterations of the kernel's loop ``name``; None where they are not known."""
        return self.most.get(name, self.extent(name))

    def sizes(self) -> dict[str, int | None]:
        return {name: self.extent(name) for name in self.loops}

    def is_lines(self, operand: Operand) -> bool:
        """Whether the elements of ``operand``, A or B, stand side by side along k."""
        return operand.innermost() in self.loops["k"][-1:]

    def contiguous_of_b(self) -> str:
        return "k" if self.is_lines(self.b) else "n"

    def contiguous(self) -> str:
        """The loops along which elements of A and of B stand side by side."""
        return f"{'k' if self.is_lines(self.a) else 'm'}, {self.contiguous_of_b()}"


def match(op: Any, linalg: Any, ones: frozenset[int] = frozenset()) -> Contraction | None:
    """The contraction that ``op``, of which upstream says that it is one, computes; None for what stays loops.

    ``ones``: loops that are taken for such of one iteration.
    """
    if not all(mlir_util.is_memref(operand.type) for operand in op.operands):
        return None
    maps = [ir.AffineMapAttr(attribute).value for attribute in linalg.get_indexing_maps(op)]
    if not all(map_.is_projected_permutation for map_ in maps):
        return None
    a, b, c = (
        Operand(
            value, {ir.AffineDimExpr(loop).position: axis for axis, loop in enumerate(map_.results)}, ones=ones
        )
        for value, map_ in zip(op.operands, maps, strict=True)
    )
    extension = sums_products(op)
    if extension is None:
        return None
    found = linalg.infer_contraction_dimensions(op)
    batch, rows, columns, sums = (list(group) for group in (found.batch, found.m, found.n, found.k))
    copies = [loop for loop in c.axes if loop not in a.axes and loop not in b.axes]
    innermost = c.innermost()
    if innermost in rows:  # the kernel's columns are what stands side by side in the result
        a, b, rows, columns = b, a, columns, rows
    if innermost not in columns:
        return None
    loops = {
        "b": _one_loop(batch, [a, b, c]),
        "m": _one_loop(rows, [c, a], a.innermost()),
        "n": _one_loop(columns, [c, b], innermost),
        "k": _one_loop(sums, [a, b], *(x.innermost() for x in (a, b))),
    }
    inside = {loop for group in loops.values() for loop in group}
    if not loops["b"]:
        others = [[loop for loop in kind if loop not in inside] for kind in (columns, rows)]
        loops["b"] = _one_loop(others[0], [c, b]) or _one_loop(others[1], [c, a])
        inside.update(loops["b"])
    all_loops = [*copies, *batch, *rows, *columns, *sums]
    outer = [loop for loop in all_loops if loop not in inside]
    element = WIDE_SUMS.get(c.element, c.element)
    made = Contraction(a, b, c, loops, outer, element, extension, not inside.issuperset(sums))
    for operand, lines in ((a, ("m", "k")), (b, ("n", "k"))):
        if operand.innermost() is None or operand.innermost() not in [
            loops[name][-1] for name in lines if loops[name]
        ]:
            return None
    work = product([made.operand_of(loop).extent(loop) for loop in all_loops])
    return made if work is None or work >= LEAST_WORK else None


def sums_products(op: Any) -> str | None:
    """How ``op`` extends the elements whose products it adds to its result; None if it does something else."""
    block = mlir_util.entry_block(op)
    *steps, end = mlir_util.children(op)
    products = [step for step in steps if step.name in ("arith.mulf", "arith.muli")]
    additions = [step for step in steps if step.name in ("arith.addf", "arith.addi")]
    extensions = [step for step in steps if step.name in EXTENSIONS]
    if len(steps) != 2 + len(extensions) or len(products) != 1 or len(additions) != 1:
        return None
    names = {step.name for step in extensions}
    sources = {step.results[0]: step.operands[0] for step in extensions}
    factors = [sources.get(value, value) for value in products[0].operands]
    if len(names) > 1 or set(factors) != set(list(block.arguments)[:2]):
        return None
    added = {products[0].results[0], block.arguments[2]}
    if set(additions[0].operands) != added or end.operands[0] != additions[0].results[0]:
        return None
    return names.pop() if names else "arith.extf"


def _one_loop(loops: Sequence[int], operands: Sequence[Operand], *innermost: int | None) -> Group:
    """As many of ``loops`` as are one in all ``operands``, the last of them one of ``innermost`` if it can be."""
    if not loops:
        return ()
    order = sorted(loops, key=lambda loop: operands[0].axes[loop])
    group = [next((loop for loop in innermost if loop is not None and loop in loops), order[-1])]
    while True:
        joined = next((x for x in order if x not in group and all(o.is_one(x, group[0]) for o in operands)), None)
        if joined is None:
            return tuple(group)
        group.insert(0, joined)


def product(extents: Sequence[int | None]) -> int | None:
    """Of all extents; None where it depends on those that are not known."""
    known = [extent for extent in extents if extent is not None]
    return prod(known) if len(known) == len(extents) or 0 in known else None
