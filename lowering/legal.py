"""What no target can lower, refused before MLIR sees it.

MLIR's pipelines refuse foreign operations in terms of their own ("op was not bufferized"), and on some input
they crash the process. Here each refusal names the target, the operation and the user's line.
"""

import math
from collections.abc import Sequence
from typing import Any

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, StringAttr, SymbolRefAttr

from devscope.analysis.target_binding import HOST_KIND
from devscope.dialects.device import COMPILER_ATTR
from devscope.dialects.location import source_location
from devscope.errors import LoweringError, SourceLocation
from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.interop.diagnostics import decode_location
from devscope.lowering.interop.mixed_types import LAUNCHES
from devscope.runtime.object_file import is_allowed
from devscope.runtime.program_check import MOST_BYTES

_DIALECTS = """
    affine arith bufferization cf complex func index linalg llvm math memref scf tensor ub vector
"""
#: Operations of these dialects that bufferisation or the conversion to LLVM does not know.
_WITHOUT_LOWERING = """
    tensor.bitcast vector.print
"""
#: Launches of hand-written kernels, lowered before bufferisation.
_LAUNCHES = LAUNCHES | {"device.in", "device.out"}
#: Accesses to an element of a tensor, whose indices are the last operands, and the position of the tensor.
_ACCESSES = {"tensor.extract": 0, "tensor.insert": 1}
#: Accesses to several elements of a tensor or a buffer.
_VECTOR_ACCESSES = """
    vector.load vector.store vector.maskedload vector.maskedstore vector.gather vector.scatter
    vector.expandload vector.compressstore vector.transfer_read vector.transfer_write
"""
_ROUNDED = frozenset(
    {"arith.convertf", "math.fma", *(f"arith.{n}f" for n in ("add", "div", "mul", "sub", "trunc"))}
)
_MODE = "roundingmode"
_MODES = ("to_nearest_even", "downward", "upward", "toward_zero", "to_nearest_away")
_IN_BYTES = frozenset({8, 16, 32, 64, 128})
"""Widths of integers that vectors have as memory has them."""
_RESERVED = "devscope_"
_LONGEST = 10_000
"""Of a symbol; SPIR-V has room for 260,000 bytes of the name of a kernel, which is longer."""
_FLOATS = frozenset({"f16", "bf16", "f32", "f64"})
"""Of f80 and f128, which the host computes with, the bindings do not say that they are floats."""


def check_names(module: ModuleOp) -> None:
    """Raise LoweringError, located, for a symbol that stands for a part of devscope's runtime or for nothing.

    Functions with a body get names of their own later; everything else keeps its name.
    """
    for op in module.body.block.ops:
        attribute = op.get_attr_or_prop("sym_name")
        if not isinstance(attribute, StringAttr):
            continue
        name = attribute.data
        if not name or "\0" in name or len(name) > _LONGEST:
            shown = repr(name[:40]) + "..." * (len(name) > 40)
            advice = f"names have 1 to {_LONGEST:,} characters, none of them null"
            raise LoweringError(f"{shown} cannot be the name of code", source_location(op), [advice])
        if isinstance(op, func.FuncOp) and (op.body.blocks or COMPILER_ATTR in op.attributes):
            continue
        if name.startswith(_RESERVED):
            raise LoweringError(f"'{name}': names that begin with '{_RESERVED}' are reserved", source_location(op))
        if isinstance(op, func.FuncOp) and not is_allowed(name) and _is_used(module, name):
            raise LoweringError(
                f"function '{name}' has no body",
                source_location(op),
                ["give it one; of others, programs may call C's functions on numbers and memory: docs/trust.md"],
            )


def _is_used(module: ModuleOp, name: str) -> bool:
    return any(
        isinstance(attribute, SymbolRefAttr) and attribute.string_value() == name
        for op in module.walk()
        for attribute in (*op.attributes.values(), *op.properties.values())
    )


def check_module(module: Any, target: str) -> None:
    """Raise LoweringError, located, for the first operation, else type, of ``module`` that cannot be compiled."""
    dialects, refused = set(_DIALECTS.split()), set(_WITHOUT_LOWERING.split())
    vector_accesses = set(_VECTOR_ACCESSES.split())
    _, *ops = mlir_util.walk(module.operation)
    left = [
        op
        for op in ops
        if op.name in refused or (op.name.partition(".")[0] not in dialects and op.name not in _LAUNCHES)
    ]
    if left:
        from devscope.lowering.stablehlo.control_flow import (
            MAKE_TOKENS,
        )  # programs that compile need no more of it

        op = min(left, key=lambda op: op.name in MAKE_TOKENS)  # they stay where what has effects does
        raise cannot_lower(target, _described(op), decode_location(op.location))
    for op in ops:
        name = op.name
        if name == "tensor.dim":
            _check_dim(op)
        elif name in _ACCESSES:
            _check_indices(op, *list(op.operands)[_ACCESSES[name] :])
        elif name in vector_accesses:
            _check_vector(op)
        elif name in _ROUNDED and _MODE in op.attributes:
            _check_rounding(op, target)
    for type_, op in mlir_util.types(ops):
        _check_type(type_, op, target)


def _described(op: Any) -> str:
    """Its name, and of a call of foreign code (``stablehlo.custom_call``) what it calls."""
    called = op.attributes.get("call_target_name")
    return f"{op.name} @{called.value}" if isinstance(called, ir.StringAttr) else op.name


def _check_dim(dim: Any) -> None:
    """MLIR leaves a query of a dimension that is not there to chance; the result serves as a size."""
    tensor, index = dim.operands
    axis = mlir_util.constant_integer(index)
    if isinstance(tensor.type, ir.RankedTensorType) and axis is not None and not 0 <= axis < tensor.type.rank:
        raise LoweringError(f"{tensor.type} has no dimension {axis}", decode_location(dim.location))


def _check_indices(access: Any, tensor: Any, *indices: Any) -> None:
    """An access outside of a tensor would read or overwrite other memory of the process."""
    for index, size in zip(indices, tensor.type.shape, strict=True):
        position = mlir_util.constant_integer(index)
        if position is not None and (position < 0 or (size >= 0 and position >= size)):
            raise LoweringError(f"index {position} is outside of {tensor.type}", decode_location(access.location))


def _check_rounding(op: Any, target: str) -> None:
    """Upstream makes constrained intrinsics of a mode, which set none; devices have none of them."""
    if mode := op.attributes[_MODE].value:
        raise LoweringError(
            f"target '{target}' cannot round {_MODES[mode]} in '{op.name}'",
            decode_location(op.location),
            ["results are rounded to the nearest number, and to an even one between two: to_nearest_even"],
        )
    del op.attributes[_MODE]


def _check_vector(access: Any) -> None:
    """MLIR reads and writes vectors of i1 with a bit for each element, of which memory has bytes."""
    types = [value.type for value in [*access.operands, *access.results]]
    shaped = next(type_ for type_ in types if isinstance(type_, ir.RankedTensorType | ir.MemRefType))
    element = shaped.element_type
    is_one = all(math.prod(type_.shape) == 1 for type_ in types if isinstance(type_, ir.VectorType))
    if isinstance(element, ir.IntegerType) and element.width not in _IN_BYTES and not is_one:
        raise LoweringError(
            f"'{access.name}': vectors of {element} are packed in memory, elements of {shaped} are not",
            decode_location(access.location),
            ["keep such elements as i8 in memory: arith.extui before, arith.trunci behind"],
        )


def _check_type(type_: Any, op: Any, target: str) -> None:
    scalar = ir.ShapedType(type_).element_type if isinstance(type_, ir.ShapedType) else type_
    if isinstance(scalar, ir.FloatType) and str(scalar) not in _FLOATS:
        raise LoweringError(
            f"target '{target}' cannot compute with {scalar}",
            decode_location(op.location),
            ["compute with f32, which holds all of its numbers, and store its bits as integers"],
        )
    if not isinstance(type_, ir.RankedTensorType | ir.MemRefType):  # those are of data on devices
        return
    if isinstance(type_, ir.RankedTensorType) and type_.encoding is not None:
        raise LoweringError(
            f"tensors with an encoding cannot be compiled: {type_}",
            decode_location(op.location),
            ["dense tensors without an encoding can be"],
        )
    element = type_.element_type
    is_scalar = isinstance(element, ir.IntegerType | ir.FloatType | ir.IndexType | ir.ComplexType)
    if target != HOST_KIND and isinstance(element, ir.VectorType):
        raise LoweringError(
            f"target '{target}' cannot hold elements of type {element}",
            decode_location(op.location),
            ["make the vector a dimension of the tensor"],
        )
    size = mlir_util.element_bytes(element) if is_scalar else 1
    if type_.has_static_shape and math.prod(type_.shape) * size > MOST_BYTES:
        raise LoweringError(f"{type_} has more bytes than can be addressed", decode_location(op.location))


def cannot_lower(
    target: str, name: str, location: SourceLocation | None, others: Sequence[str] = ()
) -> LoweringError:
    """The error for operation ``name``, which ``target`` cannot compile; neither can it ``others``."""
    notes = [f"also left: {', '.join(others)}"] if others else []
    advice = "place the operation on another device, or rewrite it with linalg, arith, math or tensor"
    return LoweringError(f"target '{target}' cannot lower operation '{name}'", location, [*notes, advice])
