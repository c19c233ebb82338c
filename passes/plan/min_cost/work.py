"""How much an operation computes and moves, estimated from its name and the types of its operands and results."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    MemRefType,
    ShapedType,
    TensorType,
    VectorType,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr

from devscope.dialects.names import op_name
from devscope.passes.plan.min_cost.frequency import trips

TRANSCENDENTAL_FLOPS = 8
"""Of one exponential, root, tangent and the like; every other operation on a scalar counts 1."""


class Work(NamedTuple):
    """``flops`` computed, ``bytes`` read and written, ``readback`` bytes that the host reads and waits for."""

    flops: float = 0.0
    bytes: float = 0.0
    readback: float = 0.0


NOTHING = Work()

_FREE = frozenset(
    [
        "tensor.cast",
        "tensor.collapse_shape",
        "tensor.expand_shape",
        "tensor.extract_slice",
        "tensor.bitcast",
        "tensor.reshape",
        "memref.cast",
        "memref.view",
        "memref.subview",
        "memref.collapse_shape",
        "memref.expand_shape",
        "memref.reinterpret_cast",
        "memref.memory_space_cast",
        "memref.transpose",
        "memref.assume_alignment",
        "memref.reshape",
        "memref.alloc",
        "memref.alloca",
        "memref.dealloc",
        "memref.get_global",
        "bufferization.to_tensor",
        "bufferization.to_buffer",
        "bufferization.dealloc_tensor",
        "bufferization.materialize_in_destination",
        "stablehlo.reshape",
        "stablehlo.dynamic_reshape",
        "stablehlo.bitcast_convert",
        "arith.select",
    ]
)
"""Views, and what only makes room: nothing is computed. A select of whole tensors picks one of them."""

_READS = frozenset(("tensor.extract", "memref.load"))

_MOVES = frozenset(
    [
        "linalg.transpose",
        "linalg.broadcast",
        "linalg.copy",
        "linalg.pack",
        "linalg.unpack",
        "tensor.pad",
        "tensor.concat",
        "tensor.pack",
        "tensor.unpack",
        "tensor.gather",
        "tensor.scatter",
        "memref.copy",
        "bufferization.clone",
        "stablehlo.transpose",
        "stablehlo.broadcast_in_dim",
        "stablehlo.dynamic_broadcast_in_dim",
        "stablehlo.concatenate",
        "stablehlo.slice",
        "stablehlo.pad",
        "stablehlo.gather",
        "stablehlo.scatter",
        "stablehlo.iota",
        "stablehlo.copy",
        "tosa.transpose",
        "tosa.concat",
        "tosa.pad",
        "tosa.slice",
        "tosa.gather",
        "tosa.tile",
    ]
)
"""Data is moved, nothing is computed."""

_TRANSCENDENTAL = re.compile(
    r"(?:math|linalg|stablehlo|chlo|tosa|complex)\.(?:exp|log|sqrt|rsqrt|cbrt|sin|cos|tan|asin|acos|atan|sinh|cosh"
    r"|tanh|erf|pow|sigmoid|logistic|sine|cosine|exponential|softmax|reciprocal)\w*"
)

_TEXT = re.compile(r"(?:tensor|memref|vector)<((?:(?:\?|[0-9]+)x)*)([^,>x][^,>]*)")
_BITS = re.compile(r"[0-9]+")


class Estimator:
    """Estimates work, with ``dynamic_size`` for dimensions known at run time and ``trip_count`` for loops.

    ``root`` says which value another one stands for: annotations are no data of their own.
    """

    def __init__(
        self, dynamic_size: int, trip_count: int, root: Callable[[SSAValue], SSAValue] = lambda value: value
    ) -> None:
        self._root = root
        self._dynamic = dynamic_size
        self._trips = trip_count
        self._sizes: dict[Attribute, tuple[tuple[int, ...], int]] = {}

    def shape(self, type_: Attribute) -> tuple[int, ...]:
        """The dimensions of a type, assumed where they are not known; () for scalars."""
        return self._shape_and_width(type_)[0]

    def bytes(self, type_: Attribute) -> int:
        """The size of a value's data; 0 for what is no array."""
        shape, width = self._shape_and_width(type_)
        return math.prod(shape) * width

    def _shape_and_width(self, type_: Attribute) -> tuple[tuple[int, ...], int]:
        found = self._sizes.get(type_)
        if found is None:
            found = self._sizes[type_] = self._measure(type_)
        return found

    def _measure(self, type_: Attribute) -> tuple[tuple[int, ...], int]:
        if isinstance(type_, TensorType | MemRefType | VectorType):
            shape: Sequence[int] = type_.get_shape()
            return tuple(self._dynamic if size < 0 else size for size in shape), element_bytes(type_.element_type)
        match = _TEXT.match(str(type_)) if not isinstance(type_, ShapedType) else None
        if match is not None:
            sizes = match[1].split("x")[:-1]
            shape = tuple(self._dynamic if size == "?" else int(size) for size in sizes)
            return shape, _text_bytes(match[2])
        element = getattr(type_, "element_type", None)
        return ((self._dynamic,), element_bytes(element)) if isinstance(element, Attribute) else ((), 0)

    def work(self, op: Operation) -> Work:
        """What one execution of ``op`` takes, with everything in its regions."""
        name = op_name(op)
        if name in _FREE:
            return NOTHING
        if name in _READS:
            return Work(readback=element_bytes(getattr(op.operands[0].type, "element_type", None)))
        bytes_ = self._traffic(op)
        if name in _MOVES:
            return Work(0.0, bytes_)
        if name in _SLICED:
            return Work(0.0, 2.0 * self.bytes(op.operands[0].type))
        return Work(self._flops(op, name), bytes_)

    def _traffic(self, op: Operation) -> float:
        """Bytes of all operands and results, and of what the regions use from outside, each value once.

        Uninitialised tensors are not read.
        """
        values: dict[SSAValue, None] = dict.fromkeys(map(self._root, op.operands))
        if op.regions:
            for inner in op.walk():
                if inner is not op:
                    values.update(dict.fromkeys(self._root(v) for v in inner.operands if _is_outside(v, op)))
        total = sum(self.bytes(value.type) for value in values if not _is_uninitialised(value))
        return float(total + sum(self.bytes(result.type) for result in op.results))

    def _flops(self, op: Operation, name: str) -> float:
        contraction = _CONTRACTIONS.get(name)
        if contraction is not None:
            return contraction(self, op)
        if name.startswith("linalg.") and len(op.operands) >= 3:
            convolution = _convolution(self, op, name.removeprefix("linalg."))
            if convolution is not None:
                return convolution
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
            return float(math.prod(self.shape(op.results[0].type)))
        values = (*op.operands, *op.results)
        return float(max((math.prod(self.shape(v.type)) for v in values), default=1))

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
            for expression, size in zip(attribute.data.results, self.shape(value.type), strict=False):
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
                if inner.regions and inner_name in (
                    "scf.for",
                    "scf.while",
                    "scf.parallel",
                    "scf.forall",
                    "scf.if",
                ):
                    again = times * trips(inner, self._trips)
                    stack += [(b, again) for region in inner.regions for b in region.blocks]
                elif self._computes(inner, inner_name):
                    total += times * self._flops(inner, inner_name)
        return max(total, 1.0)

    def _computes(self, op: Operation, name: str) -> bool:
        """Whether an operation in a body computes: no constants, no indices, no ends of regions."""
        if not op.results or name in _FREE or name in _READS or name in _MOVES or not (op.operands or op.regions):
            return False
        return name.partition(".")[0] not in ("index", "scf") and name != "arith.index_cast"


_SLICED = frozenset(("tensor.insert", "tensor.insert_slice", "tensor.parallel_insert_slice", "memref.store"))
"""What they write is the size of operand 0; the rest of the destination is taken over."""


def element_bytes(element: object) -> int:
    """Bytes of one element in memory: at least 1, 8 for an index."""
    return _element_bytes(element) if isinstance(element, Attribute) else 4


@lru_cache(maxsize=256)
def _element_bytes(element: Attribute) -> int:
    return _text_bytes(str(element))


def _text_bytes(text: str) -> int:
    """From the name of a type: the first number in it is its width."""
    digits = _BITS.search(text)
    bytes_ = max(int(digits[0]) // 8, 1) if digits is not None else 8
    return bytes_ * 2 if text.startswith("complex") else bytes_


def _weight(name: str) -> int:
    return TRANSCENDENTAL_FLOPS if _TRANSCENDENTAL.fullmatch(name) else 1


def _is_outside(value: SSAValue, op: Operation) -> bool:
    owner = value.owner
    parent = owner if isinstance(owner, Operation) else owner.parent_op()
    while parent is not None and parent is not op:
        parent = parent.parent_op()
    return parent is None


def _is_uninitialised(value: SSAValue) -> bool:
    owner = value.owner
    return isinstance(owner, Operation) and op_name(owner) in ("tensor.empty", "bufferization.alloc_tensor")


def _product(estimator: Estimator, op: Operation, batch: int = 0) -> float:
    """A contraction of two operands, every index in two of the three shapes: 2 * sqrt(|A| |B| |C| / batch).

    With ``batch`` leading dimensions that all three have. Matrices and vectors of any order fit.
    """
    first = estimator.shape(op.operands[0].type)
    shapes = (
        first,
        estimator.shape(op.operands[1].type),
        estimator.shape(op.results[0].type if op.results else op.operands[2].type),
    )
    shared = math.prod(first[:batch])
    return 2.0 * math.sqrt(math.prod(map(math.prod, shapes)) / shared) if shared else 0.0


def _batched(batch: int) -> Callable[[Estimator, Operation], float]:
    return lambda estimator, op: _product(estimator, op, batch)


def _dot_general(estimator: Estimator, op: Operation) -> float:
    """Elements of the result times those of the contracted dimensions."""
    text = str(op.get_attr_or_prop("dot_dimension_numbers"))
    contracted = re.search(r"lhs_contracting_dimensions\s*=\s*\[([0-9, ]*)\]", text)
    if contracted is None:
        return _product(estimator, op)
    shape = estimator.shape(op.operands[0].type)
    indices = [int(index) for index in contracted[1].split(",") if index.strip()]
    size = math.prod(shape[index] for index in indices if index < len(shape))
    return 2.0 * size * math.prod(estimator.shape(op.results[0].type))


def _stablehlo_convolution(estimator: Estimator, op: Operation) -> float:
    """The kernel's layout is the second list of ``[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]``."""
    text = str(op.get_attr_or_prop("dimension_numbers"))
    layout = re.search(r"x\s*\[([^\]]*)\]", text)
    kernel = estimator.shape(op.operands[1].type)
    letters = [letter.strip() for letter in layout[1].split(",")] if layout is not None else []
    features = (
        kernel[letters.index("o")] if "o" in letters and len(letters) == len(kernel) else max(kernel, default=1)
    )
    return 2.0 * math.prod(estimator.shape(op.results[0].type)) * math.prod(kernel) / max(features, 1)


def _tosa_convolution(estimator: Estimator, op: Operation) -> float:
    """A kernel with its output channels first."""
    kernel = estimator.shape(op.operands[1].type)
    return 2.0 * math.prod(estimator.shape(op.results[0].type)) * math.prod(kernel[1:])


_CONTRACTIONS: dict[str, Callable[[Estimator, Operation], float]] = {
    **dict.fromkeys(
        [
            "linalg.matmul",
            "linalg.matmul_transpose_a",
            "linalg.matmul_transpose_b",
            "linalg.quantized_matmul",
            "linalg.matvec",
            "linalg.vecmat",
            "linalg.dot",
            "linalg.mmt4d",
            "stablehlo.dot",
        ],
        _batched(0),
    ),
    **dict.fromkeys(
        [
            "linalg.batch_matmul",
            "linalg.batch_matmul_transpose_a",
            "linalg.batch_matmul_transpose_b",
            "linalg.batch_matvec",
            "linalg.batch_vecmat",
            "linalg.batch_mmt4d",
            "linalg.quantized_batch_matmul",
            "tosa.matmul",
        ],
        _batched(1),
    ),
    "stablehlo.dot_general": _dot_general,
    "stablehlo.convolution": _stablehlo_convolution,
    "tosa.conv2d": _tosa_convolution,
    "tosa.conv3d": _tosa_convolution,
    "tosa.fully_connected": _batched(0),
}

_PER_OUTPUT = frozenset("fmg")
"""Letters of a filter's layout that say which output it makes; all others are summed over."""


def _convolution(estimator: Estimator, op: Operation, name: str) -> float | None:
    """linalg's named convolutions and poolings: the filter's share of one output element, per output element."""
    if "conv" not in name and not name.startswith("pooling"):
        return None
    outputs = math.prod(estimator.shape(op.operands[-1].type))
    filter_ = estimator.shape(op.operands[1].type)
    if name.startswith("pooling"):
        return float(outputs * math.prod(filter_))
    layout = name.removesuffix("_q").rpartition("_")[2]
    per_output = _PER_OUTPUT | set("c") if name.startswith("depthwise") else _PER_OUTPUT
    if len(layout) != len(filter_):
        return 2.0 * outputs * math.prod(filter_)
    summed = math.prod(size for letter, size in zip(layout, filter_, strict=True) if letter not in per_output)
    return 2.0 * outputs * summed
