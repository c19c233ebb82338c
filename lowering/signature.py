"""The callable interface of a module: its public functions, their arguments and results."""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloat,
    IndexType,
    IntegerType,
    ModuleOp,
    NoneAttr,
    TensorType,
)
from xdsl.ir import Attribute

from devscope.analysis.symbols import is_public
from devscope.dialects.location import source_location, value_location
from devscope.errors import LoweringError, SourceLocation
from devscope.runtime.program import DTYPES, TensorSpec

_LONGEST = 200
"""Types with more characters than this are shown in part."""


def public_functions(module: ModuleOp) -> list[func.FuncOp]:
    """Functions with a body that are not private, in module order."""
    return [op for op in module.body.block.ops if isinstance(op, func.FuncOp) and op.body.blocks and is_public(op)]


def function_signature(function: func.FuncOp) -> tuple[list[TensorSpec], list[TensorSpec]]:
    """Inputs and outputs of ``function``; raises LoweringError for a type that no array can hold."""
    inputs: list[TensorSpec] = []
    for number, argument in enumerate(function.args):
        spec = _spec(argument.type, argument.name_hint or f"arg{number}")
        if spec is None:
            raise _unpassable(function, f"argument {number}", argument.type, value_location(argument))
        inputs.append(spec)
    outputs: list[TensorSpec] = []
    for number, type_ in enumerate(function.function_type.outputs):
        spec = _spec(type_, f"result{number}")
        if spec is None:
            raise _unpassable(function, f"result {number}", type_, source_location(function))
        outputs.append(spec)
    return inputs, outputs


def _spec(type_: Attribute, name: str) -> TensorSpec | None:
    """None for a type that cannot be passed."""
    scalar = not isinstance(type_, TensorType)
    if isinstance(type_, TensorType) and not isinstance(type_.encoding, NoneAttr):
        return None
    element = type_.get_element_type() if isinstance(type_, TensorType) else type_
    dtype = str(element) if isinstance(element, IntegerType | IndexType | AnyFloat) else ""
    if dtype not in DTYPES:
        return None
    shape = type_.get_shape() if isinstance(type_, TensorType) else ()
    sizes = [None if size == DYNAMIC_INDEX else size for size in shape]
    return TensorSpec(dtype, sizes, scalar, name)


def _unpassable(
    function: func.FuncOp, what: str, type_: Attribute, location: SourceLocation | None
) -> LoweringError:
    text = str(type_)
    shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    return LoweringError(
        f"{what} of public function '{function.sym_name.data}' has type {shown}, which cannot be passed",
        location,
        [f"public functions take and return scalars and dense ranked tensors of {', '.join(DTYPES)}"],
    )
