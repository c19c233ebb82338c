"""Functions over tensors -> functions over buffers: the stages that the code of every target goes through."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.constants import ConstantTable, extract_constants
from devscope.lowering.control_flow import lift_control_flow
from devscope.lowering.interop.bindings import ir
from devscope.lowering.legal import check_module
from devscope.lowering.mlir_util import RunPasses
from devscope.lowering.pipelines import pipeline
from devscope.lowering.result_buffers import separate_results
from devscope.lowering.target import Options, Target
from devscope.lowering.tensors import prepare_tensors


def to_buffers(
    module: Any,
    target: Target,
    options: Options,
    run_passes: RunPasses,
    constants: ConstantTable,
    before: Callable[[Any], None] | None = None,
) -> None:
    """Lower ``module``; nobody frees the buffers yet. ``before`` is called right before one-shot bufferisation.

    Raises LoweringError for what ``target`` cannot compile.
    """
    check_module(module, target.name)
    for function in mlir_util.functions(module):
        if mlir_util.has_body(function):
            _protect_arguments(function)
    lift_control_flow(module, run_passes)
    extract_constants(module, constants, target.inline_elements)
    prepare_tensors(module, run_passes, target, options)
    separate_results(module)
    _read_where_copied(module)
    run_passes(module.operation, pipeline("allocate"))
    if before is not None:
        before(module)
    run_passes(module.operation, pipeline("bufferize"))


def _read_where_copied(module: Any) -> None:
    """Put the read of a tensor that is copied to a device right before the copy.

    Bufferisation takes ``to_buffer`` for the place of the read, and reuses the memory of a tensor that is not
    read any more. CSE leaves one ``to_buffer`` for all copies of a tensor, in front of the first.
    """
    for op in list(mlir_util.walk(module.operation)):
        if op.name != "memref.copy":
            continue
        source = op.operands[0]
        if isinstance(source.owner, ir.Block) or source.owner.operation.name != "bufferization.to_buffer":
            continue
        read = source.owner.operation.clone(ip=ir.InsertionPoint(op))
        op.operands[0] = read.results[0]


def _protect_arguments(func: Any) -> None:
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
