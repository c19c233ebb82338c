"""Tensors -> buffers, by one-shot bufferisation, with what it has to be told first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from devscope.lowering import mlir_util, pipelines
from devscope.lowering.interop.bindings import ir
from devscope.lowering.mlir_util import RunPasses
from devscope.lowering.result_buffers import separate_results


def bufferize(module: Any, run_passes: RunPasses, before: Callable[[Any], None] | None = None) -> None:
    """Replace the tensors of ``module``; its functions have a single block and protected arguments.

    ``before`` is called with ``module`` right before one-shot bufferisation.
    """
    separate_results(module)
    _read_where_copied(module)
    run_passes(module.operation, pipelines.ALLOCATE)
    if before is not None:
        before(module)
    run_passes(module.operation, pipelines.BUFFERIZE)


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
