"""Assertions that two sizes compare as an operation demands: none twice, each as early as it can be.

What depends on arguments alone is asserted at the begin of the function, what a loop does not change, in front of
the loop. In a block holds what was asserted in the blocks that dominate it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.checks.sizes import IN_PARALLEL, LOOPS, Size, Sizes, Term, bounds, leaves, ranges
from devscope.lowering.interop.bindings import ir
from devscope.lowering.mlir_util import Builder

CHECK = "devscope.check"
"""On an assertion of these: its message is the text of the error as it is, with ``{0}`` and ``{1}`` for the
operands of its comparison."""

DIFFERENCE = "devscope.difference"
"""On such an assertion: what is compared with 0 is the difference of what its message names."""

OF_ARGUMENTS, OF_VALUES, RANGE = "arguments do not fit each other", "shapes do not agree", "out of range"
"""How messages begin; device_error.py of the runtime tells them apart by that."""


class Assertions:
    """Of a function whose sizes are ``sizes``. ``labels``: what arguments are called.

    ``first``: whether assertions about arguments stand in front of all else.
    """

    def __init__(self, sizes: Sizes, labels: Sequence[str], first: bool = True) -> None:
        self._sizes = sizes
        self._labels = dict(zip(sizes.entry.arguments, labels, strict=False))
        self._first = next(iter(sizes.entry.operations)) if first else None
        self._known: dict[Size, Size] = {}
        """For sizes, another one that is the same: a forest, whose roots stand for what is equal."""
        self._asserted: set[Any] = set()

    def facts(self) -> tuple[dict[Size, Size], set[Any]]:
        """What is known to hold where assertions are added now."""
        return self._known, self._asserted

    def assume(self, facts: tuple[dict[Size, Size], set[Any]]) -> None:
        """Add assertions where ``facts`` hold from now on."""
        self._known, self._asserted = dict(facts[0]), set(facts[1])

    def root(self, size: Size) -> Size:
        while size in self._known:
            size = self._known[size]
        return size

    def require_equal(self, op: Any, one: tuple[Size, str], other: tuple[Size, str]) -> None:
        """``one`` and ``other``: sizes, and what they are sizes of."""
        a, b = self.root(one[0]), self.root(other[0])
        if a == b:
            return
        named = [self.described(size, what) for size, what in (one, other)]
        computed = [size for size in (one[0], other[0]) if not isinstance(size, int)]
        of_arguments = computed and all(isinstance(s, tuple) and self._labels.get(s[0]) for s in computed)
        head = OF_ARGUMENTS if of_arguments else OF_VALUES
        self.require(
            op, "eq", one[0], other[0], f"{head}: {named[0]} is {{0}}, {named[1]} is {{1}} ({place_of(op)})"
        )
        self.know_equal(a, b)

    def know_equal(self, one: Size, other: Size) -> None:
        """What follows may take for granted, since it is asserted."""
        a, b = self.root(one), self.root(other)
        if isinstance(a, int):
            a, b = b, a
        if a != b and not isinstance(a, int):
            self._known[a] = b

    def described(self, size: Size, what: str) -> str:
        if isinstance(size, tuple) and self._labels.get(size[0]):
            return f"dimension {size[1]} of {self._labels[size[0]]}"
        return what

    def require(
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
        fact = predicate, self.root(one), self.root(other)
        if unless is None and fact in self._asserted:
            return
        self._asserted.add(fact)
        text = text.format(*(size if isinstance(size, int) else f"{{{n}}}" for n, size in enumerate((one, other))))
        if isinstance(one, int) and not isinstance(other, int):  # as MLIR would turn it round
            one, other, predicate, text = other, one, _REVERSED[predicate], text.replace("{1}", "{0}")
        before, loops = op, list[Any]()
        if unless is None:
            before, loops = self._hoist(op, [*leaves(one), *leaves(other)], around)
        build = Builder(before)
        values = [self.value_of(build, size) for size in (one, other)]
        is_difference = predicate == "eq" and not isinstance(other, int)
        if is_difference:  # MLIR puts a constant behind what it is compared with; a difference is not turned round
            values = [build.value("arith.subi", values, build.index), build.constant(0)]
        holds = compare(build, predicate, *values)
        skipped: list[Any] = []
        for loop in loops:
            is_empty = "uge" if mlir_util.is_unsigned(loop) else "sge"
            for found in ranges(loop):
                skipped.append(compare(build, is_empty, *(self.value_of(build, end) for end in found[:2])))
        for skip in [*skipped, *([] if unless is None else [unless])]:
            holds = build.value("arith.ori", [holds, skip], holds.type)
        attributes = {"msg": ir.StringAttr.get(text, op.context), CHECK: ir.UnitAttr.get(op.context)}
        if is_difference:
            attributes[DIFFERENCE] = ir.UnitAttr.get(op.context)
        check = build.op("cf.assert", [holds], attributes=attributes)
        check.location = op.location

    def value_of(self, build: Builder, size: Size) -> Any:
        if isinstance(size, int):
            return build.constant(size)
        if isinstance(size, Term):
            parts = [self.value_of(build, part) for part in (size.one, size.other)]
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
        if op.parent.name == IN_PARALLEL:
            op = op.parent.operation
        while around is not None and op != around:
            op = op.parent.operation
            loops.append(op)
        while op.parent is not None and op.parent.name in LOOPS:
            loop = op.parent.operation
            if self._sizes.is_inside(loop, [*values, *bounds(loops)]):
                return op, loops
            op = loop
            loops.append(loop)
        of_arguments = self._first is not None and op.block == self._sizes.entry
        if of_arguments and self._sizes.arguments.issuperset([*values, *bounds(loops)]):
            return self._first, loops
        return op, loops


def place_of(op: Any) -> str:
    return ir.StringAttr(op.attributes["msg"]).value if op.name == "cf.assert" else f"in '{op.name}'"


_PREDICATES = {"eq": 0, "ne": 1, "ult": 6, "slt": 2, "sle": 3, "sgt": 4, "sge": 5, "ule": 7, "ugt": 8, "uge": 9}
_REVERSED = {"eq": "eq", "slt": "sgt", "sle": "sge", "sge": "sle", "ult": "ugt", "ule": "uge"}


def is_equality(op: Any) -> bool:
    """Whether ``op`` compares two integers so."""
    return op.name == "arith.cmpi" and ir.IntegerAttr(op.attributes["predicate"]).value == _PREDICATES["eq"]


def compare(build: Builder, predicate: str, one: Any, other: Any) -> Any:
    """Whether one integer is to another as ``arith.cmpi`` calls it."""
    i1 = ir.IntegerType.get_signless(1, one.type.context)
    return build.value(
        "arith.cmpi", [one, other], i1, {"predicate": ir.IntegerAttr.get(build.i64, _PREDICATES[predicate])}
    )
