"""The callable interface of a module: its public functions, their arguments and results."""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloat,
    IndexType,
    IntegerType,
    ModuleOp,
    TensorType,
)
from xdsl.ir import Attribute

from devscope.dialects.location import source_location
from devscope.errors import LoweringError
from devscope.runtime.program import DTYPE_BYTES, TensorSpec


def public_functions(module: ModuleOp) -> list[func.FuncOp]:
    """Functions with a body that are not private, in module order."""
    return [
        op
        for op in module.body.block.ops
        if isinstance(op, func.FuncOp) and op.body.blocks and not _is_private(op)
    ]


def _is_private(function: func.FuncOp) -> bool:
    return function.sym_visibility is not None and function.sym_visibility.data == "private"


def function_signature(function: func.FuncOp) -> tuple[list[TensorSpec], list[TensorSpec]]:
    """Inputs and outputs of ``function``; raises LoweringError for a type that no array can hold."""
    hints = [argument.name_hint or f"arg{n}" for n, argument in enumerate(function.args)]
    inputs = [
        _spec(function, type_, name) for type_, name in zip(function.function_type.inputs, hints, strict=True)
    ]
    outputs = [
        _spec(function, type_, f"result{number}")
        for number, type_ in enumerate(function.function_type.outputs)
    ]
    return inputs, outputs


def _spec(function: func.FuncOp, type_: Attribute, name: str) -> TensorSpec:
    scalar = not isinstance(type_, TensorType)
    element = type_.get_element_type() if isinstance(type_, TensorType) else type_
    dtype = str(element) if isinstance(element, IntegerType | IndexType | AnyFloat) else ""
    if dtype not in DTYPE_BYTES:
        raise LoweringError(
            f"function '{function.sym_name.data}' has '{name}' of type {type_}, which cannot be passed",
            source_location(function),
            [f"public functions take and return scalars and ranked tensors of {', '.join(DTYPE_BYTES)}"],
        )
    shape = type_.get_shape() if isinstance(type_, TensorType) else ()
    sizes = [None if size == DYNAMIC_INDEX else size for size in shape]
    return TensorSpec(dtype, sizes, scalar, name)
