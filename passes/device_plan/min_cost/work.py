"""How much an operation computes and moves, estimated from its name and the types of its operands and results."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import NamedTuple

from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr

from devscope.analysis.captured_values import free_values
from devscope.analysis.loops import trips
from devscope.dialects.names import op_name
from devscope.dialects.op_facts import facts, facts_of
from devscope.passes.device_plan.min_cost.contractions import contraction_flops
from devscope.passes.device_plan.min_cost.sizes import Sizes, element_bytes

TRANSCENDENTAL_FLOPS = 8
"""Of one exponential, root, tangent and the like; every other operation on a scalar counts 1."""


class Work(NamedTuple):
    """``flops`` computed, ``bytes`` read and written, ``readback`` bytes that the host reads and waits for."""

    flops: float = 0.0
    bytes: float = 0.0
    readback: float = 0.0


NOTHING = Work()

_TRANSCENDENTAL = re.compile(
    r"(?:math|linalg|stablehlo|chlo|tosa|complex)\.(?:exp|log|sqrt|rsqrt|cbrt|sin|cos|tan|asin|acos|atan|sinh|cosh"
    r"|tanh|erf|pow|sigmoid|logistic|sine|cosine|exponential|softmax|reciprocal)\w*"
)

_ENTERED = frozenset({"scf.for", "scf.while", "scf.parallel", "scf.forall", "scf.if"})
"""In a body, operations that work by what is in their regions."""


class Estimator:
    """Estimates work, with ``dynamic_size`` for dimensions known at run time and ``trip_count`` for loops.

    ``root`` says which value another one stands for: annotations are no data of their own.
    """

    def __init__(
        self, dynamic_size: int, trip_count: int, root: Callable[[SSAValue], SSAValue] = lambda value: value
    ) -> None:
        self._root = root
        self._sizes = Sizes(dynamic_size)
        self._trips = trip_count

    def bytes(self, type_: Attribute) -> int:
        """The size of a value's data; 0 for what is no array."""
        return self._sizes.bytes(type_)

    def work(self, op: Operation) -> Work:
        """What one execution of ``op`` takes, with everything in its regions."""
        name = op_name(op)
        known = facts(name)
        if known.costs_nothing:
            return NOTHING
        if known.reads_scalars:
            return Work(readback=element_bytes(getattr(op.operands[0].type, "element_type", None)))
        bytes_ = self._traffic(op)
        if known.moves:
            return Work(0.0, bytes_)
        if known.destination is not None:  # what is written is the size of operand 0, the rest is taken over
            return Work(0.0, 2.0 * self.bytes(op.operands[0].type))
        return Work(self._flops(op, name), bytes_)

    def _traffic(self, op: Operation) -> float:
        """Bytes of all operands and results, and of what the regions use from outside, each value once.

        Uninitialised tensors are not read.
        """
        values = dict.fromkeys(map(self._root, free_values(op) if op.regions else op.operands))
        total = sum(self.bytes(value.type) for value in values if not _is_uninitialised(value))
        return float(total + sum(self.bytes(result.type) for result in op.results))

    def _flops(self, op: Operation, name: str) -> float:
        contraction = contraction_flops(self._sizes, op, name)
        if contraction is not None:
            return contraction
        elements = self._iterations(op, name)
        if op.regions:
            return elements * self._body(op, name)
        return elements * _weight(name)

    def _iterations(self, op: Operation, name: str) -> float:
        """How often the body of ``op`` runs; without a body, the elements of its largest operand or result."""
        if name == "linalg.generic":
            found = self._generic_iterations(op)
            if found is not None:
                return found
        if name in ("scf.forall", "scf.parallel"):
            return trips(op, self._trips)
        if name == "tensor.generate":
            return float(math.prod(self._sizes.shape(op.results[0].type)))
        values = (*op.operands, *op.results)
        return float(max((math.prod(self._sizes.shape(v.type)) for v in values), default=1))

    def _generic_iterations(self, op: Operation) -> float | None:
        """The size of a generic's iteration space, from its indexing maps and shapes."""
        maps = op.get_attr_or_prop("indexing_maps")
        if not isinstance(maps, ArrayAttr):
            return None
        sizes: dict[int, int] = {}
        count = 0
        for value, attribute in zip(op.operands, maps, strict=False):
            if not isinstance(attribute, AffineMapAttr):
                return None
            count = attribute.data.num_dims
            for expression, size in zip(attribute.data.results, self._sizes.shape(value.type), strict=False):
                if isinstance(expression, AffineDimExpr):
                    sizes.setdefault(expression.position, size)
        return float(math.prod(sizes.get(position, 1) for position in range(count)))

    def _body(self, op: Operation, name: str) -> float:
        """Flops of one run of the regions of ``op``; at least 1."""
        total = 0.0
        stack = [(block, 1.0) for region in op.regions for block in region.blocks]
        while stack:
            block, times = stack.pop()
            for inner in block.ops:
                inner_name = op_name(inner)
                if inner.regions and inner_name in _ENTERED:
                    again = times * trips(inner, self._trips)
                    stack += [(b, again) for region in inner.regions for b in region.blocks]
                elif self._computes(inner, inner_name):
                    total += times * self._flops(inner, inner_name)
        return max(total, 1.0)

    def _computes(self, op: Operation, name: str) -> bool:
        """Whether an operation in a body computes: no constants, no indices, no ends of regions."""
        known = facts(name)
        if known.costs_nothing or known.reads_scalars or known.moves:
            return False
        if not op.results or not (op.operands or op.regions):
            return False
        return name.partition(".")[0] not in ("index", "scf") and name != "arith.index_cast"


def _weight(name: str) -> int:
    return TRANSCENDENTAL_FLOPS if _TRANSCENDENTAL.fullmatch(name) else 1


def _is_uninitialised(value: SSAValue) -> bool:
    owner = value.owner
    if not isinstance(owner, Operation):
        return False
    known = facts_of(owner)
    return known.allocates and known.rematerialised
