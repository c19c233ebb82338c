"""bf16 for targets without it: its bits in memory as integers, arithmetic in f32."""

from typing import Any

import numpy as np

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.mlir_util import RunPasses
from devscope.lowering.pipelines import pipeline

_CONVERSIONS = ("arith.truncf", "arith.extf")


def store_as_integers(gpu_modules: Any, run_passes: RunPasses) -> None:
    """Leave no bf16 in ``gpu.module`` operations; each result is rounded, as on a target that has bf16."""
    if not any(_has_brain_floats(type_) for type_, _ in mlir_util.types(mlir_util.walk(gpu_modules))):
        return
    _by_single(gpu_modules)
    run_passes(gpu_modules.operation, pipeline("gpu/emulate_brain_floats"))
    for op in mlir_util.walk(gpu_modules):
        if op.name in _CONVERSIONS and "fastmath" in op.attributes:
            del op.attributes["fastmath"]  # with which a rounding between two operations would be left out
    run_passes(gpu_modules.operation, pipeline("gpu/expand_brain_floats"))
    ops = mlir_util.walk(gpu_modules)
    for op in ops:
        for value in mlir_util.defined_values(op):
            if _has_brain_floats(value.type):
                value.set_type(_as_integers(value.type))
        if "function_type" in op.attributes:
            old = mlir_util.function_type(op)
            inputs, results = ([_as_integers(t) for t in types] for types in (old.inputs, old.results))
            type_ = ir.FunctionType.get(inputs, results, context=op.context)
            op.attributes["function_type"] = ir.TypeAttr.get(type_)
    for op in [op for op in ops if op.name == "arith.constant" and ": bf16" in str(op.attributes["value"])]:
        _as_bits(op)
    for op in mlir_util.named(gpu_modules.operation, "arith.bitcast"):
        if op.operands[0].type == op.results[0].type:
            mlir_util.replace_op(op, list(op.operands))


def _has_brain_floats(type_: Any) -> bool:
    return "bf16" in str(type_)


def _as_integers(type_: Any) -> Any:
    return ir.Type.parse(str(type_).replace("bf16", "i16"), type_.context) if _has_brain_floats(type_) else type_


def _by_single(gpu_modules: Any) -> None:
    """Numbers of 64 bits and 16 become bf16 by way of f32."""
    for op in mlir_util.named(gpu_modules.operation, *_CONVERSIONS):
        source, result = op.operands[0].type, op.results[0].type
        if _has_brain_floats(result) and "f64" in str(source):
            between = ir.Type.parse(str(result).replace("bf16", "f32"), op.context)
            op.operands[0] = mlir_util.Builder(op).value("arith.truncf", [op.operands[0]], between)
        elif _has_brain_floats(source) and "f64" in str(result):
            between = ir.Type.parse(str(source).replace("bf16", "f32"), op.context)
            op.operands[0] = mlir_util.Builder(op).value("arith.extf", [op.operands[0]], between)


def _as_bits(op: Any) -> None:
    value = ir.FloatAttr(op.attributes["value"]).value
    single = np.asarray(value, np.float32).view(np.uint32)
    bits = int(single) >> 16  # it holds a number of bf16
    type_ = ir.IntegerType.get_signless(16, op.context)
    op.attributes["value"] = ir.IntegerAttr.get(type_, bits - (1 << 16) if bits >> 15 else bits)
