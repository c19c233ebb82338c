"""OpenCL: kernels -> gpu dialect -> LLVM dialect (``spir_kernel``) -> SPIR-V."""

import re
from collections.abc import Sequence
from typing import Any

from devscope.dialects.target import get_target_kind
from devscope.errors import OptionError
from devscope.lowering import expansions, mlir_util
from devscope.lowering.codegen.device_emitter import SPIRV, shared_emitter
from devscope.lowering.codegen.instruction_sets import vector_instructions
from devscope.lowering.cpu.kernel_tables import FOLDER, OPENCL_CPU, OPENCL_CPU_32, built_in_rows
from devscope.lowering.cpu.math_functions import OF_VECTORS, WITH_FMA
from devscope.lowering.gpu.device_kernels import DeviceKernels
from devscope.lowering.gpu.kernel_tables import gpu_schedules
from devscope.lowering.gpu.local_memory import pass_local_memory
from devscope.lowering.gpu.to_llvm import call_functions, compile_kernels
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.library import KernelLibrary
from devscope.lowering.kernels.table import Row, Schedules
from devscope.lowering.mlir_util import RunPasses
from devscope.lowering.opencl.hidden_counts import hide_counts
from devscope.lowering.opencl.hidden_guards import OFFSET, hide_guards
from devscope.lowering.opencl.short_nests import join_short_nests
from devscope.lowering.pipelines import pipeline
from devscope.lowering.target import NO_LANES, DeviceBinary, KernelTarget, Lanes, Options

#: Operations of `math` that are built-ins of OpenCL C (specification 3.0, section 6.15.2), most under their names.
_SAME_NAME = """
    acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 floor fma
    log log10 log1p log2 round rsqrt sin sinh sqrt tan tanh trunc
"""
_BUILTINS = {f"math.{name}": name for name in _SAME_NAME.split()} | {
    "math.absf": "fabs",
    "math.powf": "pow",
    "math.roundeven": "rint",
}


#: What LLVM has intrinsics of vectors for that its SPIR-V backend knows: drivers compute them all at once.
_OF_VECTORS = [f"math.{name}" for name in ("absf", "ceil", "copysign", "floor", "fma", "sqrt", "trunc")]


def _by_elements_of_others(op: Any) -> str:
    """Vectors of SPIR-V have 2 to 16 elements."""
    type_ = op.results[0].type
    shape = ir.VectorType(type_).shape if isinstance(type_, ir.VectorType) else []
    return "" if len(shape) == 1 and shape[0] in (2, 4, 8, 16) else expansions.by_elements(op)


def _of_truths(op: Any) -> str:
    """A conversion of a vector of i1: LLVM's SPIR-V backend makes an illegal instruction of it."""
    given, type_ = op.operands[0].type, op.results[0].type
    if not isinstance(given, ir.VectorType) or str(expansions.element_type(given)) != "i1":
        return ""
    is_float = isinstance(expansions.element_type(type_), ir.FloatType)
    true = ("-1" if op.name in ("arith.extsi", "arith.sitofp") else "1") + (".0" if is_float else "")
    return f"""
        %true = arith.constant dense<{true}> : {type_}
        %false = arith.constant dense<{"0.0" if is_float else "0"}> : {type_}
        %chosen = arith.select %0, %true, %false : {given}, {type_}
    """


#: Built-ins for vectors have widths of their own. LLVM's SPIR-V backend makes ``fmax`` of the maximum, which drops
#: NaN and does not tell zeros apart; it has no integers of 128 bits, and no vectors of numbers from 0 on.
_EXPANSIONS = {
    **expansions.FOR_ALL,
    **dict.fromkeys(_BUILTINS, expansions.by_elements),
    **dict.fromkeys(_OF_VECTORS, _by_elements_of_others),
    **dict.fromkeys(("arith.maximumf", "arith.minimumf"), expansions.maximum),
    **dict.fromkeys(("arith.extsi", "arith.extui", "arith.sitofp", "arith.uitofp"), _of_truths),
    **dict.fromkeys(("arith.mulsi_extended", "arith.mului_extended"), expansions.multiply_extended),
    "arith.truncf": expansions.half_of_double,
    "math.sincos": expansions.sincos,
    "memref.atomic_rmw": expansions.atomic,
    "vector.reduction": expansions.reduction,
    "vector.step": expansions.step,
}


def _compile_kernels(gpu_modules: Any, run_passes: RunPasses, options: Options) -> DeviceBinary:
    def prepare(gpu_modules: Any, _: RunPasses) -> None:
        """The driver inlines its built-in functions and vectorises across them."""
        pass_local_memory(gpu_modules)
        for kernel in [op for op in mlir_util.walk(gpu_modules) if op.name == "gpu.func"]:
            join_short_nests(kernel)
            hide_guards(kernel)
            hide_counts(kernel, lambda op: _built_in(op) is not None)
            _fix_subgroup(kernel)
        powers = {"math.fpowi": _power_in_single} if options.get("fp64") is False else {}
        expansions.expand(mlir_util.walk(gpu_modules), _EXPANSIONS | powers)
        _keep_order(gpu_modules)
        call_functions(gpu_modules, _built_in)

    gpu_to_llvm = pipeline("opencl/gpu_to_llvm")
    return compile_kernels(gpu_modules, run_passes, "opencl", gpu_to_llvm, SPIRV, prepare, _set_calling_convention)


def _keep_order(gpu_modules: Any) -> None:
    """Sums that may be in any order: LLVM's SPIR-V backend makes `Fast` of that, by which nothing is NaN."""
    for op in mlir_util.walk(gpu_modules):
        if "fastmath" in op.attributes and "reassoc" in (flags := str(op.attributes["fastmath"])):
            kept = ",".join(flag for flag in flags[1:-1].partition("<")[2].split(",") if flag != "reassoc")
            op.attributes["fastmath"] = ir.Attribute.parse(f"#arith.fastmath<{kept or 'none'}>", op.context)


def _fix_subgroup(kernel: Any) -> None:
    """Have ``kernel`` compiled for the sub-groups that its work-items exchange numbers in."""
    widths = {op.operands[2].owner.operation.attributes["value"] for op in mlir_util.named(kernel, "gpu.shuffle")}
    for width in widths:
        kernel.attributes["llvm.intel_reqd_sub_group_size"] = width


_TYPES = ("cpu", "gpu")


def _check_options(options: Options) -> None:
    if _type_of_device(options) not in _TYPES:
        raise OptionError(
            f"option 'type' of target kind 'opencl' is '{options['type']}'", notes=[f"legal: {', '.join(_TYPES)}"]
        )
    subgroup = int(options.get("subgroup", 1))
    if subgroup & (subgroup - 1):
        raise OptionError(
            f"option 'subgroup' of target kind 'opencl' is {subgroup}", notes=["legal: powers of two"]
        )


def _type_of_device(options: Options) -> object:
    """Where nothing says what a device is, it is a CPU, whose driver can be installed everywhere."""
    return options.get("type", "cpu")


def _choose_kernels(options: Options, rows: Sequence[Row]) -> DeviceKernels | Schedules:
    if _type_of_device(options) != "cpu":
        return gpu_schedules(rows)
    known = [OPENCL_CPU] if _has_wide_vectors(options) else [OPENCL_CPU_32, OPENCL_CPU]
    own = [row for row in rows if row.instructions in known]
    schedules = Schedules([*own, *built_in_rows(known[0])], *known)
    return DeviceKernels(schedules, KernelLibrary(FOLDER, schedules.loops, OF_VECTORS), WITH_FMA)


def _lanes(options: Options) -> Lanes:
    """Sub-groups, whose work-items stand side by side where workgroups have one axis."""
    return Lanes(int(options["subgroup"]), _EXCHANGED) if "subgroup" in options else NO_LANES


_EXCHANGED = ("f16", "f32", "f64", "i8", "i16", "i32", "i64", "index")


def _has_wide_vectors(options: Options) -> bool:
    """Of more than 32 bytes. Where nothing says so, a device is the processor that compiles."""
    vector = options.get("vector")
    return int(vector) > 32 if vector is not None else vector_instructions("", "") == "avx512"


def _power_in_single(op: Any) -> str:
    return expansions.power(op, "f32")


def _built_in(op: Any) -> str | None:
    """The built-in for ``op``, by its Itanium C++ ABI name."""
    name = _BUILTINS.get(op.name)
    if name is None or not isinstance(op.results[0].type, ir.FloatType):
        return None
    return f"_Z{len(name)}{name}{''.join(_CODES[str(operand.type)] for operand in op.operands)}"


_CODES = {"f16": "Dh", "f32": "f", "f64": "d"}


#: A declaration or a call of one of the functions that `_built_in` names, in LLVM IR.
_BUILTIN_USE = re.compile(rf"\b(declare|call)((?: [a-z]+)*?) (half|float|double|i64(?= @{OFFSET}\b)) @_Z")


def _set_calling_convention(text: str) -> str:
    """Built-ins are ``spir_func``; a call that disagrees with its callee's convention is undefined in LLVM.

    Set in the text because the bindings import the module of the llvm dialect, which takes longer than compiling
    kernels does, to make an attribute of it.
    """
    return _BUILTIN_USE.sub(r"\1\2 spir_func \3 @_Z", text)


TARGET = KernelTarget(
    kind=get_target_kind("opencl"),
    check_options=_check_options,
    compile_kernels=_compile_kernels,
    choose_kernels=_choose_kernels,
    lanes=_lanes,
    integer_widths=(1, 8, 16, 32, 64),  # LLVM's SPIR-V backend makes others wider, and keeps what overflows
    optional_types={"f64": "fp64", "f16": "fp16"},
    prepare=shared_emitter,
)
