"""OpenCL: kernels -> gpu dialect -> LLVM dialect (``spir_kernel``) -> SPIR-V."""

import re
from typing import Any

from devscope.dialects.target import get_target_kind
from devscope.lowering.codegen.device_emitter import SPIRV, shared_emitter
from devscope.lowering.gpu.local_memory import pass_local_memory
from devscope.lowering.gpu.to_llvm import call_functions, compile_kernels
from devscope.lowering.interop.bindings import ir
from devscope.lowering.mlir_util import RunPasses
from devscope.lowering.pipelines import pipeline
from devscope.lowering.target import DeviceBinary, KernelTarget, Options

#: Operations of `math` that are built-ins of OpenCL C (specification 3.0, section 6.15.2), most under their names.
_SAME_NAME = """
    acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 floor fma
    log log10 log1p log2 round rsqrt sin sinh sqrt tan tanh trunc
"""
_BUILTINS = {name: name for name in _SAME_NAME.split()} | {"absf": "fabs", "powf": "pow", "roundeven": "rint"}


def _compile_kernels(gpu_modules: Any, run_passes: RunPasses, options: Options) -> DeviceBinary:
    gpu_to_llvm = pipeline("opencl/gpu_to_llvm")
    return compile_kernels(
        gpu_modules, run_passes, "opencl", gpu_to_llvm, SPIRV, _prepare, _set_calling_convention
    )


def _prepare(gpu_modules: Any, run_passes: RunPasses) -> None:
    """The driver inlines its built-in functions and vectorises across them."""
    pass_local_memory(gpu_modules)
    call_functions(gpu_modules, _built_in)


def _built_in(op: Any) -> str | None:
    """The built-in for ``op``, by its Itanium C++ ABI name: its parameters all have the type of the result."""
    name = _BUILTINS.get(op.name.removeprefix("math."))
    if name is None or not op.name.startswith("math.") or not isinstance(op.results[0].type, ir.FloatType):
        return None
    code = {"f16": "Dh", "f32": "f", "f64": "d"}[str(op.results[0].type)]
    return f"_Z{len(name)}{name}{code * len(op.operands)}"


#: A declaration or a call of one of the functions that `_built_in` names, in LLVM IR.
_BUILTIN_USE = re.compile(r"\b(declare|call)((?: [a-z]+)*?) (half|float|double) @_Z")


def _set_calling_convention(text: str) -> str:
    """Built-ins are ``spir_func``; a call that disagrees with its callee's convention is undefined in LLVM.

    Set in the text because the bindings import the module of the llvm dialect, which takes longer than compiling
    kernels does, to make an attribute of it.
    """
    return _BUILTIN_USE.sub(r"\1\2 spir_func \3 @_Z", text)


TARGET = KernelTarget(
    kind=get_target_kind("opencl"),
    compile_kernels=_compile_kernels,
    optional_types={"f64": "fp64", "f16": "fp16"},
    prepare=shared_emitter,
)
