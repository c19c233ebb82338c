"""The host: bufferised functions -> loops -> LLVM dialect -> LLVM IR text."""

from __future__ import annotations

from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.codegen.llvm_text import to_llvm22
from devscope.lowering.gpu.outline_kernels import copy_as_linalg, is_whole_copy
from devscope.lowering.llvm_dialect import require_fully_lowered, to_llvm_ir
from devscope.lowering.mlir_util import RunPasses

_TO_LLVM = (
    "builtin.module("
    "func.func(convert-linalg-to-loops,scf-forall-to-for),expand-strided-metadata,lower-affine,"
    "func.func(math-expand-ops{ops=rsqrt,tan}),"
    # before math becomes calls of libm: those must not get C wrappers
    "convert-scf-to-cf,convert-math-to-funcs,convert-vector-to-llvm,convert-math-to-llvm,"
    "convert-math-to-libm,arith-expand,finalize-memref-to-llvm{use-generic-functions=true},convert-func-to-llvm,convert-arith-to-llvm,"
    "convert-index-to-llvm,convert-cf-to-llvm,convert-ub-to-llvm,reconcile-unrealized-casts,canonicalize,cse)"
)


def to_llvm_text(module: Any, run_passes: RunPasses) -> str:
    """LLVM IR of a bufferised host module without memory spaces or device operations."""
    for op in list(mlir_util.walk(module.operation)):
        # A strided memref.copy would call a C++ support library; as linalg it becomes a loop.
        if op.name == "memref.copy" and not is_whole_copy(op):
            copy_as_linalg(op)
    run_passes(module.operation, _TO_LLVM)
    require_fully_lowered(module.operation, "cpu")
    return to_llvm22(to_llvm_ir(module))
