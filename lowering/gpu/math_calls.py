"""Mathematical functions of kernels, for devices whose driver has none."""

from __future__ import annotations

from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.gpu.to_llvm import call_functions
from devscope.lowering.interop.bindings import ir
from devscope.lowering.math_functions import math_function
from devscope.lowering.mlir_util import RunPasses
from devscope.lowering.pipelines import pipeline

#: Operations of `arith` that MLIR makes calls of a vendor's library, too.
_LIBRARY = {f"arith.{name}" for name in ("maximumf", "maxnumf", "minimumf", "minnumf", "remf")}


def call_math_functions(gpu_modules: Any, run_passes: RunPasses) -> None:
    """Every operation of `math` becomes a call of a function of ours: MLIR would call the vendor's library."""
    run_passes(gpu_modules.operation, pipeline("gpu/math"))
    texts: dict[str, str] = {}

    def symbol_of(op: Any) -> str | None:
        if not op.name.startswith("math.") and op.name not in _LIBRARY:
            return None
        operands, result = [str(operand.type) for operand in op.operands], str(op.results[0].type)
        symbol = "_".join(["devscope", op.name.partition(".")[2], *operands])
        texts.setdefault(symbol, math_function(symbol, op.name, operands, result))
        return symbol

    call_functions(gpu_modules, symbol_of)
    functions = ir.Module.parse("".join(texts.values()), gpu_modules.context)
    run_passes(functions.operation, pipeline("gpu/to_llvm"))
    for function in mlir_util.children(functions.operation):
        function.attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<internal>", gpu_modules.context)
        gpu_modules.body.append(function)
