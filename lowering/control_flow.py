"""Unstructured control flow (``cf``) -> structured control flow (``scf``): what bufferisation can handle."""

from __future__ import annotations

from typing import Any

from devscope.lowering import mlir_util, pipelines
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels import RunPasses


def lift_control_flow(module: Any, run_passes: RunPasses) -> None:
    """Rewrite the functions of ``module`` so that each has a single block."""
    run_passes(module.operation, pipelines.LIFT_CONTROL_FLOW)
    for op in list(mlir_util.walk(module.operation)):
        if op.name == "ub.poison" and isinstance(op.results[0].type, ir.ShapedType):
            _replace_poison(op)


def _replace_poison(op: Any) -> None:
    """The lifted code carries poison where a value is not needed; tensors and buffers must exist to be freed.

    Any value will do, so dynamic extents become 0.
    """
    type_ = op.results[0].type
    build = mlir_util.Builder(op)
    dynamic = ir.ShapedType.get_dynamic_size()
    sizes = [build.constant(0) for extent in ir.ShapedType(type_).shape if extent == dynamic]
    if mlir_util.is_memref(type_):
        segments = ir.DenseI32ArrayAttr.get([len(sizes), 0], op.context)
        value = build.value("memref.alloc", sizes, type_, {"operandSegmentSizes": segments})
    else:
        value = build.value("tensor.empty", sizes, type_)
    mlir_util.replace_op(op, [value])
