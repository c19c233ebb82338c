"""Device functions -> launchers (host code) and kernels (device code), for targets that go through ``gpu``."""

from __future__ import annotations

from typing import Any

from devscope.errors import LoweringError
from devscope.lowering import mlir_util
from devscope.lowering.bufferize import to_buffers
from devscope.lowering.constants import ConstantTable
from devscope.lowering.gpu.bufferize_launches import call_kernels, carry_launches
from devscope.lowering.gpu.outline_kernels import outline_kernels
from devscope.lowering.gpu.user_kernels import define_launchers, take_user_kernels
from devscope.lowering.interop.bindings import ir
from devscope.lowering.llvm_dialect import mlir_location
from devscope.lowering.mlir_util import RunPasses
from devscope.lowering.pipelines import pipeline
from devscope.lowering.target import ElementTypes, KernelTarget, Options


def lower_device_functions(
    module: Any,
    space: Any,
    target: KernelTarget,
    options: Options,
    run_passes: RunPasses,
    constants: ConstantTable,
    taken: set[str],
) -> None:
    """Turn the tensor functions of ``module`` into launchers over memrefs in memory space ``space``.

    Their kernels, outlined and hand-written ones, stand beside them as ``gpu.module`` operations; their names are
    added to ``taken``. Raises LoweringError for what ``target`` cannot compile.
    """
    kernels = take_user_kernels(module, taken)
    to_buffers(module, target, options, run_passes, constants, carry_launches)
    call_kernels(module, kernels)
    mlir_util.retype_memrefs(module.operation, space, lambda old: old is None)
    run_passes(module.operation, pipeline("deallocate"))
    outline_kernels(module, run_passes, target, options, taken)
    define_launchers(module, kernels, space)


def take_kernels(module: Any) -> Any:
    """Move the ``gpu.module`` operations of ``module`` into a new module."""
    kernels = ir.Module.create(loc=ir.Location.unknown(module.context))
    for op in mlir_util.children(module.operation):
        if op.name == "gpu.module":
            kernels.body.append(op)
    return kernels


def check_types(gpu_modules: Any, target: KernelTarget, options: Options) -> None:
    """Raise LoweringError, located, for a type that ``target`` lacks: LLVM's backends abort on it."""
    lacking = {type_ for type_, option in target.types.optional.items() if options.get(option) is False}
    for type_, op in mlir_util.types(gpu_modules.operation):
        scalar = ir.ShapedType(type_).element_type if isinstance(type_, ir.ShapedType) else type_
        if str(scalar) in lacking or not _exists(scalar, target.types):
            where = " on this device" if str(scalar) in lacking else ""
            is_integer = isinstance(scalar, ir.IntegerType)
            other = f"integers of up to {target.types.integer_bits} bits" if is_integer else "f32"
            raise LoweringError(
                f"target '{target.name}' cannot compute with {scalar}{where}",
                mlir_location(op),
                [f"compute with {other}, or place the operation on another device"],
            )


def _exists(scalar: Any, types: ElementTypes) -> bool:
    if isinstance(scalar, ir.IntegerType):
        return scalar.width <= types.integer_bits
    is_float = isinstance(scalar, ir.FloatType) or str(scalar) in ("f80", "f128")  # no classes for these
    return not is_float or str(scalar) in types.floats
