"""How much an operation computes and moves, estimated from its name and the types of its operands and results."""

import math
import re
from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple

from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr

from devscope.analysis.captured_values import free_values
from devscope.analysis.loops import trips
from devscope.dialects.names import op_name
from devscope.dialects.op_facts import facts, facts_of
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

_PRODUCTS = (
    r"(linalg\.(matmul|matmul_transpose_[ab]|quantized_matmul|matvec|vecmat|dot|mmt4d)|stablehlo\.dot"
    r"|tosa\.fully_connected)",
    r"(linalg\.(batch_(matmul|matmul_transpose_[ab]|matvec|vecmat|mmt4d)|quantized_batch_matmul)|tosa\.matmul)",
)
"""The names of products, by their number of batch dimensions."""

_WINDOWED = r"linalg\.(pooling|.*conv).*|stablehlo\.convolution|tosa\.conv[23]d"

_LAYOUTS = {"tosa.conv2d": "ohwi", "tosa.conv3d": "odhwi"}
"""Of filters, where neither the name nor an attribute tells."""

_PER_OUTPUT = frozenset("fmgo")
"""Letters of a filter's layout that say which output it makes; all others are summed over."""

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
        contraction = _contraction_flops(self._sizes, op, name)
        if contraction is not None:
            return contraction
        elements = self._iterations(op, name)
        if op.regions:
            return elements * self._body(op)
        return elements * (TRANSCENDENTAL_FLOPS if _TRANSCENDENTAL.fullmatch(name) else 1)

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

    def _body(self, op: Operation) -> float:
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


def _is_uninitialised(value: SSAValue) -> bool:
    owner = value.owner
    if not isinstance(owner, Operation):
        return False
    known = facts_of(owner)
    return known.allocates and known.rematerialised


# Operations that multiply and add: products of matrices and vectors, convolutions, and poolings with them.


def _contraction_flops(sizes: Sizes, op: Operation, name: str) -> float | None:
    """The flops of products, convolutions and poolings; None for all other operations."""
    contraction = _contraction(name)
    return contraction(sizes, op) if contraction is not None and len(op.operands) > 1 else None


@cache
def _contraction(name: str) -> Callable[[Sizes, Operation], float] | None:
    for batch, names in enumerate(_PRODUCTS):
        if re.fullmatch(names, name):
            return partial(_product, batch=batch)
    if name == "stablehlo.dot_general":
        return _dot_general
    return _windowed if re.fullmatch(_WINDOWED, name) else None


def is_contraction(name: str) -> bool:
    """Whether operations of this name are products, convolutions or poolings."""
    return _contraction(name) is not None


def _product(sizes: Sizes, op: Operation, batch: int = 0) -> float:
    """A contraction of two operands, every index in two of the three shapes: 2 * sqrt(|A| |B| |C| / batch).

    With ``batch`` leading dimensions that all three have. Matrices and vectors of any order fit.
    """
    first, second = (sizes.shape(operand.type) for operand in op.operands[:2])
    shared = math.prod(first[:batch])
    elements = math.prod(first) * math.prod(second) * _outputs(sizes, op)
    return 2.0 * math.sqrt(elements / shared) if shared else 0.0


def _dot_general(sizes: Sizes, op: Operation) -> float:
    """Elements of the result times those of the contracted dimensions."""
    text = str(op.get_attr_or_prop("dot_dimension_numbers"))
    contracted = re.search(r"lhs_contracting_dimensions\s*=\s*\[([0-9, ]*)\]", text)
    if contracted is None:
        return _product(sizes, op)
    shape = sizes.shape(op.operands[0].type)
    indices = map(int, re.findall("[0-9]+", contracted[1]))
    return 2.0 * math.prod(shape[index] for index in indices if index < len(shape)) * _outputs(sizes, op)


def _windowed(sizes: Sizes, op: Operation) -> float:
    """Convolutions and poolings: the filter's share of one output element, per output element."""
    dialect, _, name = op_name(op).partition(".")
    filter_ = sizes.shape(op.operands[1].type)
    if name.startswith("pooling"):
        return float(_outputs(sizes, op) * math.prod(filter_))
    layout = _LAYOUTS.get(f"{dialect}.{name}", name.removesuffix("_q").rpartition("_")[2])
    if dialect == "stablehlo":  # The second list of [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f].
        lists = re.search(r"x\s*\[([^\]]*)\]", str(op.get_attr_or_prop("dimension_numbers")))
        layout = re.sub(r"[\s,]", "", lists[1]) if lists is not None else ""
    per_output = _PER_OUTPUT | set("c") if name.startswith("depthwise") else _PER_OUTPUT
    if len(layout) != len(filter_):
        return 2.0 * _outputs(sizes, op) * math.prod(filter_)
    summed = math.prod(size for letter, size in zip(layout, filter_, strict=True) if letter not in per_output)
    return 2.0 * _outputs(sizes, op) * summed


def _outputs(sizes: Sizes, op: Operation) -> int:
    """Elements of the result; without one, of the operand that is written, which is the last."""
    return math.prod(sizes.shape((op.results or op.operands[-1:])[0].type))
