"""Device functions -> launchers (host code) and kernels (device code), for targets that go through ``gpu``."""

from __future__ import annotations

from typing import Any

from devscope.lowering import mlir_util, pipelines
from devscope.lowering.bufferize import bufferize
from devscope.lowering.constants import ConstantTable, extract_constants
from devscope.lowering.control_flow import lift_control_flow
from devscope.lowering.gpu.bufferize_launches import call_kernels, carry_launches
from devscope.lowering.gpu.outline_kernels import GridSchedule, outline_kernels
from devscope.lowering.gpu.user_kernels import define_launchers, take_user_kernels
from devscope.lowering.interop.bindings import ir
from devscope.lowering.legal import check_module
from devscope.lowering.mlir_util import RunPasses
from devscope.lowering.tensors import prepare_tensors


def lower_device_functions(
    module: Any,
    space: Any,
    constants: ConstantTable,
    schedule: GridSchedule,
    run_passes: RunPasses,
    taken: set[str],
    target: str,
) -> None:
    """Turn the tensor functions of ``module`` into launchers over memrefs in memory space ``space``.

    Their kernels, outlined and hand-written ones, stand beside them as ``gpu.module`` operations; their names are
    added to ``taken``. Raises LoweringError for what ``target``, a kind, cannot compile.
    """
    kernels = take_user_kernels(module, taken)
    check_module(module, target)
    for func in mlir_util.functions(module):
        if mlir_util.has_body(func):
            protect_arguments(func)
    lift_control_flow(module, run_passes)
    # All constants but splats: their data reaches the device once, through the runtime.
    extract_constants(module, constants, most_inline=0)
    prepare_tensors(module, run_passes, loop_order={})
    bufferize(module, run_passes, carry_launches)
    call_kernels(module, kernels)
    mlir_util.retype_memrefs(module.operation, space, lambda old: old is None)
    run_passes(module.operation, pipelines.DEALLOCATE)
    outline_kernels(module, run_passes, schedule, taken)
    define_launchers(module, kernels, space)


def take_kernels(module: Any) -> Any:
    """Move the ``gpu.module`` operations of ``module`` into a new module."""
    kernels = ir.Module.create(loc=ir.Location.unknown(module.context))
    for op in mlir_util.children(module.operation):
        if op.name == "gpu.module":
            kernels.body.append(op)
    return kernels


def protect_arguments(func: Any) -> None:
    """Arguments belong to the caller: bufferisation must not write into them."""
    context = func.context
    count = len(mlir_util.function_type(func).inputs)
    old = list(ir.ArrayAttr(func.attributes["arg_attrs"])) if "arg_attrs" in func.attributes else []
    entries = [ir.DictAttr(a) for a in old] or [ir.DictAttr.get({}, context)] * count
    protected = {"bufferization.writable": ir.BoolAttr.get(False, context)}
    merged: list[Any] = []
    for entry, type_ in zip(entries, mlir_util.function_type(func).inputs, strict=True):
        named = {entry[i].name: entry[i].attr for i in range(len(entry))}
        is_tensor = isinstance(type_, ir.RankedTensorType)
        merged.append(ir.DictAttr.get({**named, **(protected if is_tensor else {})}, context))
    func.attributes["arg_attrs"] = ir.ArrayAttr.get(merged, context)
