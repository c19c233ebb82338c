"""Contractions and convolutions on buffers as products of matrices, for kernels in which workgroups share tiles.

Each element of the result is a sum of products of an element of A and one of B. The loops are those of a batch (in
the indices of both operands and the result), rows (m: of A and the result), columns (n: of B and the result) and
sums (k). A kernel has one index for each group, which it takes apart into those of the loops, so that any sum of
loops can be an index: a convolution is a contraction whose windows are among k (S. Chetlur et al., "cuDNN:
Efficient Primitives for Deep Learning", 2014, "implicit" products).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.gpu.kernel_loops import maps_of
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.contraction_match import WIDE_SUMS, product, sums_products
from devscope.lowering.windows import sum_of_loops

LEAST_WORK = 4096
"""Multiplications below which a work-item for each result is as fast, and compiled sooner."""


Index = Sequence[tuple[int, int]]
"""A sum of loops times factors."""


@dataclass
class Operand:
    """A buffer, and the index of each of its axes."""

    value: Any
    indices: Sequence[Index]

    @property
    def type(self) -> Any:
        return ir.MemRefType(self.value.type)

    @property
    def element(self) -> str:
        return str(self.type.element_type)

    @property
    def loops(self) -> set[int]:
        return {loop for index in self.indices for loop, _ in index}

    def axis(self, loop: int) -> int | None:
        """The axis whose index ``loop`` is."""
        return next((axis for axis, index in enumerate(self.indices) if list(index) == [(loop, 1)]), None)

    def extent(self, loop: int) -> int | None:
        """None where it is not known."""
        extent = self.type.shape[self.axis(loop)]
        return None if extent == ir.ShapedType.get_dynamic_size() else extent

    def innermost(self) -> int | None:
        """The loop along which elements stand side by side, one of more than one iteration if there is one."""
        strides, _ = self.type.get_strides_and_offset()
        found = [
            index[-1][0] for axis, index in enumerate(self.indices) if index and strides[axis] == 1
        ]  # of a window the inner loop
        return next((loop for loop in found[::-1] if self.axis(loop) is None or self.extent(loop) != 1), None)


@dataclass
class Contraction:
    """``loops``: those of each group, ``"b"``, ``"m"``, ``"n"`` and ``"k"``, outermost first.

    ``element``: the type that sums are computed in; ``extend``: the operation that makes it of the operands'.
    """

    a: Operand
    b: Operand
    c: Operand
    loops: dict[str, list[int]]
    element: str
    extend: str
    extents: dict[int, int | None] = field(default_factory=dict[int, int | None])

    def operand_of(self, loop: int) -> tuple[int, Operand]:
        """An operand, and its number, of which one axis is as long as the loop."""
        operands = [(2, self.c), (0, self.a), (1, self.b)]
        return next((number, operand) for number, operand in operands if operand.axis(loop) is not None)

    def sizes(self) -> dict[str, int | None]:
        return {name: product([self.extents[loop] for loop in group]) for name, group in self.loops.items()}


def match(op: Any) -> Contraction | None:
    """The contraction that ``op`` computes; None for another operation, and for one with little work or reuse."""
    if not op.name.startswith("linalg.") or len(op.operands) != 3 or list(op.results):
        return None
    if not all(mlir_util.is_memref(operand.type) for operand in op.operands):
        return None
    extend = sums_products(op)
    if extend is None:
        return None
    maps = maps_of(op)
    operands: list[Operand] = []
    for value, map_ in zip(op.operands, maps, strict=True):
        indices = sums_of_loops(map_)
        if indices is None:
            return None
        operands.append(Operand(value, indices))
    found = _grouped(operands, maps[0].n_dims, extend)
    if found is None:
        return None
    work, sizes = product(list(found.extents.values())), found.sizes()
    if 1 in (sizes["m"], sizes["n"]):  # no element of a tile is used twice
        return None
    return found if work is None or work >= LEAST_WORK else None


def sums_of_loops(map_: Any) -> list[Index] | None:
    """The indices that an indexing map gives; None if one is anything else."""
    indices = [sum_of_loops(result) for result in map_.results]
    known = [index for index in indices if index is not None]
    return list(known) if len(known) == len(indices) else None


def _grouped(operands: Sequence[Operand], loops: int, extend: str) -> Contraction | None:
    a, b, c = operands
    if any(isinstance(operand.type.element_type, ir.ComplexType) for operand in operands):
        return None
    groups: dict[frozenset[int], list[int]] = {}
    for loop in range(loops):
        users = frozenset(number for number, operand in enumerate(operands) if loop in operand.loops)
        groups.setdefault(users, []).append(loop)
    kinds = {frozenset({0, 1, 2}): "b", frozenset({0, 2}): "m", frozenset({1, 2}): "n", frozenset({0, 1}): "k"}
    if not set(groups) <= set(kinds):
        return None
    named = {name: groups.get(key, []) for key, name in kinds.items()}
    if not named["k"] or any(c.axis(loop) is None for loop in c.loops):
        return None
    if c.innermost() in named["m"]:  # neighbours in the result are neighbouring columns
        a, b, named["m"], named["n"] = b, a, named["n"], named["m"]
    order = {loop: c.axis(loop) or 0 for loop in c.loops}
    for name in "bmn":
        named[name].sort(key=lambda loop: order[loop])
    inner = [operand.innermost() for operand in (b, a)]
    named["k"].sort(key=lambda loop: (inner.index(loop) if loop in inner else -1, loop))
    element = WIDE_SUMS.get(c.element, c.element)
    found = Contraction(a, b, c, named, element, extend)
    for loop in range(loops):
        if all(operand.axis(loop) is None for operand in operands):
            return None
        found.extents[loop] = found.operand_of(loop)[1].extent(loop)
    return found
