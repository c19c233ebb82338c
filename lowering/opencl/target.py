"""OpenCL: ``gpu.module`` kernels -> LLVM dialect (``spir_kernel``) -> SPIR-V."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from devscope.errors import LoweringError, SourceLocation
from devscope.lowering import mlir_util
from devscope.lowering.codegen.llvm_text import to_llvm22
from devscope.lowering.codegen.spirv import shared_emitter
from devscope.lowering.gpu.local_memory import attribution_count, local_sizes
from devscope.lowering.gpu.outline_kernels import DeviceBinary, GridSchedule, KernelTarget
from devscope.lowering.interop.bindings import ir
from devscope.lowering.llvm_dialect import mlir_location, require_fully_lowered, to_llvm_ir
from devscope.lowering.mlir_util import RunPasses

#: OpenCL's address space for buffers (OpenCL C specification 3.0, section 6.7; SPIR-V CrossWorkgroup).
_GLOBAL_MEMORY = 1

_GPU_TO_LLVM = (
    "builtin.module(gpu.module(expand-strided-metadata,lower-affine,"
    "convert-gpu-to-llvm-spv{use-64bit-index=true},canonicalize))"
)
_REST_TO_LLVM = (
    "builtin.module(expand-strided-metadata,lower-affine,convert-scf-to-cf,"
    # integer powers become functions of several blocks, which only code without scf can take in
    "convert-math-to-funcs,inline,symbol-dce,convert-vector-to-llvm,convert-math-to-llvm,arith-expand,"
    "convert-arith-to-llvm,convert-index-to-llvm,finalize-memref-to-llvm,convert-func-to-llvm,"
    "convert-cf-to-llvm,convert-ub-to-llvm,reconcile-unrealized-casts,canonicalize,cse)"
)

#: math op -> OpenCL C built-in (OpenCL C specification 3.0, section 6.15.2).
_BUILTINS = {
    "math.absf": "fabs",
    "math.acos": "acos",
    "math.acosh": "acosh",
    "math.asin": "asin",
    "math.asinh": "asinh",
    "math.atan": "atan",
    "math.atan2": "atan2",
    "math.atanh": "atanh",
    "math.cbrt": "cbrt",
    "math.ceil": "ceil",
    "math.copysign": "copysign",
    "math.cos": "cos",
    "math.cosh": "cosh",
    "math.erf": "erf",
    "math.erfc": "erfc",
    "math.exp": "exp",
    "math.exp2": "exp2",
    "math.expm1": "expm1",
    "math.floor": "floor",
    "math.fma": "fma",
    "math.log": "log",
    "math.log10": "log10",
    "math.log1p": "log1p",
    "math.log2": "log2",
    "math.powf": "pow",
    "math.round": "round",
    "math.roundeven": "rint",
    "math.rsqrt": "rsqrt",
    "math.sin": "sin",
    "math.sinh": "sinh",
    "math.sqrt": "sqrt",
    "math.tan": "tan",
    "math.tanh": "tanh",
    "math.trunc": "trunc",
}


def _schedule(options: Mapping[str, Any]) -> GridSchedule:
    return GridSchedule(workgroup=int(options.get("workgroup", 256)), innermost=64)


def compile_kernels(gpu_modules: Any, run_passes: RunPasses, options: Mapping[str, Any]) -> DeviceBinary:
    """Compile a builtin module that contains only ``gpu.module`` operations.

    Raises LoweringError for an operation or a type that the target cannot run.
    """
    _check_types(gpu_modules, options)
    local = local_sizes(gpu_modules)
    text = to_llvm_text(gpu_modules, run_passes)
    try:
        binary = shared_emitter().emit(text)
    except LoweringError as error:
        error.location = _named_kernel(gpu_modules, error)
        raise
    return DeviceBinary(binary, _kernel_signatures(gpu_modules, local))


def _named_kernel(module: Any, error: LoweringError) -> SourceLocation | None:
    """Where the kernel stands whose name LLVM's message has, if it has one."""
    text = "".join(error.notes)
    kernels = [op for op in mlir_util.children(module.operation) if op.name == "llvm.func"]
    return next(
        (mlir_location(op) for op in kernels if f"in function: {mlir_util.symbol_name(op)})" in text), None
    )


TARGET = KernelTarget("opencl", _schedule, compile_kernels, prepare=shared_emitter)

#: Types that a device may lack, with the target option that says so.
_OPTIONAL_TYPES = {"f64": "fp64", "f16": "fp16"}


def _check_types(gpu_modules: Any, options: Mapping[str, Any]) -> None:
    """LLVM's SPIR-V backend aborts on types that SPIR-V lacks, without a word about the operation."""
    lacking = {type_ for type_, option in _OPTIONAL_TYPES.items() if options.get(option) is False}
    known: set[Any] = set()
    for op in mlir_util.walk(gpu_modules.operation):
        arguments = [argument for block in mlir_util.blocks_of(op) for argument in block.arguments]
        for type_ in [value.type for value in (*op.results, *arguments)]:
            if type_ in known:
                continue
            scalar = ir.ShapedType(type_).element_type if isinstance(type_, ir.ShapedType) else type_
            if str(scalar) in lacking or not _exists_in_spirv(scalar):
                where = " on this device" if str(scalar) in lacking else ""
                raise LoweringError(
                    f"target 'opencl' cannot compute with {scalar}{where}",
                    mlir_location(op),
                    [f"compute with {_advice(scalar)}, or place the operation on another device"],
                )
            known.add(type_)


def _advice(scalar: Any) -> str:
    return "integers of up to 64 bits" if isinstance(scalar, ir.IntegerType) else "f32"


def _exists_in_spirv(scalar: Any) -> bool:
    if isinstance(scalar, ir.IntegerType):
        return scalar.width <= 64
    is_float = isinstance(scalar, ir.FloatType) or str(scalar) in ("f80", "f128")  # no classes for these
    return not is_float or str(scalar) in ("f16", "f32", "f64")


def to_llvm_text(gpu_modules: Any, run_passes: RunPasses) -> str:
    """The kernels' LLVM IR as text; ``gpu_modules`` is left holding ``llvm.func`` operations."""
    context = gpu_modules.context
    i64 = ir.IntegerType.get_signless(64, context)
    space = ir.IntegerAttr.get(i64, _GLOBAL_MEMORY)
    mlir_util.retype_memrefs(gpu_modules.operation, space, lambda old: _is_device_scope(old))
    for gpu_module in mlir_util.children(gpu_modules.operation):
        _call_builtins(gpu_module)
    written = _written_pointers(gpu_modules)
    run_passes(gpu_modules.operation, _GPU_TO_LLVM)
    _merge(gpu_modules)
    run_passes(gpu_modules.operation, _REST_TO_LLVM)
    _mark_noalias(gpu_modules, written)
    require_fully_lowered(gpu_modules.operation, "opencl")
    return _set_calling_convention(to_llvm22(to_llvm_ir(gpu_modules)))


def _is_device_scope(space: Any | None) -> bool:
    return space is not None and str(space).startswith("#device.")


def _call_builtins(gpu_module: Any) -> None:
    """Replace math ops by calls of OpenCL's built-in functions, which the driver inlines and vectorises."""
    context = gpu_module.context
    body = gpu_module.regions[0].blocks[0]
    declared: set[str] = set()
    for op in list(mlir_util.walk(gpu_module)):
        builtin = _BUILTINS.get(op.name)
        if builtin is None or not isinstance(op.results[0].type, ir.FloatType):
            continue
        element = op.results[0].type
        symbol = _mangled(builtin, str(element), len(op.operands))
        if symbol not in declared:
            declared.add(symbol)
            _declare(body, symbol, ir.FunctionType.get([element] * len(op.operands), [element], context))
        call = mlir_util.Builder(op).call(symbol, op.operands, [element])
        mlir_util.replace_op(op, call.results)


def _declare(body: Any, symbol: str, type_: Any) -> None:
    context = type_.context
    declaration = ir.Operation.create(
        "func.func",
        attributes={
            "sym_name": ir.StringAttr.get(symbol, context),
            "sym_visibility": ir.StringAttr.get("private", context),
            "function_type": ir.TypeAttr.get(type_),
        },
        regions=1,
        loc=ir.Location.unknown(context),
    )
    body.append(declaration)


#: A declaration or a call of one of the functions that `_mangled` names, in LLVM IR.
_BUILTIN_USE = re.compile(r"\b(declare|call)((?: [a-z]+)*?) (half|float|double) @_Z")


def _set_calling_convention(text: str) -> str:
    """Built-ins are ``spir_func``; a call that disagrees with its callee's convention is undefined in LLVM.

    Set in the text because the bindings import the module of the llvm dialect, which takes longer than compiling
    kernels does, to make an attribute of it.
    """
    return _BUILTIN_USE.sub(r"\1\2 spir_func \3 @_Z", text)


def _mangled(name: str, element: str, arity: int) -> str:
    """Itanium C++ ABI name of an OpenCL built-in whose parameters all have one type."""
    code = {"f16": "Dh", "f32": "f", "f64": "d"}[element]
    return f"_Z{len(name)}{name}{code * arity}"


def _written_pointers(gpu_modules: Any) -> dict[str, list[int]]:
    """For each kernel, the positions that the pointers it stores through will have once memrefs are expanded."""
    found: dict[str, list[int]] = {}
    for op in mlir_util.walk(gpu_modules.operation):
        if op.name != "gpu.func":
            continue
        stored = {inner.operands[1] for inner in mlir_util.walk(op) if inner.name == "memref.store"}
        position = 0
        pointers: list[int] = []
        arguments = list(mlir_util.entry_block(op).arguments)
        for argument in arguments[: len(arguments) - attribution_count(op)]:
            if argument in stored:
                pointers.append(position + 1)  # the aligned pointer follows the allocated one
            is_memref = mlir_util.is_memref(argument.type)
            position += 3 + 2 * ir.MemRefType(argument.type).rank if is_memref else 1
        found[mlir_util.symbol_name(op)] = pointers
    return found


def _mark_noalias(module: Any, written: dict[str, list[int]]) -> None:
    """Let LLVM keep a reduction's accumulator in a register instead of storing it in every iteration.

    Sound because bufferisation gives a result the buffer of an input only where each iteration reads just
    the element that it writes (one-shot bufferisation's rule for elementwise accesses); those reads come
    before the write whatever the alias information says.
    """
    context = module.context
    noalias = ir.DictAttr.get({"llvm.noalias": ir.UnitAttr.get(context)}, context)
    empty = ir.DictAttr.get({}, context)
    for op in mlir_util.children(module.operation):
        pointers = written.get(mlir_util.symbol_name(op)) if op.name == "llvm.func" else None
        if pointers:
            count = len(mlir_util.entry_block(op).arguments)
            attributes = [noalias if i in pointers else empty for i in range(count)]
            op.attributes["arg_attrs"] = ir.ArrayAttr.get(attributes, context)


def _merge(gpu_modules: Any) -> None:
    """Move the functions of every ``gpu.module`` to the top: one binary per device builds fastest."""
    names: set[str] = set()
    for gpu_module in mlir_util.children(gpu_modules.operation):
        for op in mlir_util.children(gpu_module):
            if "sym_name" not in op.attributes:
                continue
            name = mlir_util.symbol_name(op)
            if name in names:  # declarations of built-ins repeat; kernel names are unique by construction
                continue
            names.add(name)
            gpu_modules.body.append(op)
        gpu_module.erase()


def _kernel_signatures(module: Any, local: Mapping[str, list[int]]) -> list[tuple[str, list[int]]]:
    """Names and sizes of arguments; ``local`` has the sizes of the last ones of kernels with local memory."""
    found: list[tuple[str, list[int]]] = []
    for op in mlir_util.children(module.operation):
        if op.name == "llvm.func" and mlir_util.has_body(op):
            name = mlir_util.symbol_name(op)
            sizes, last = _argument_sizes(str(op.attributes["function_type"])), local.get(name, [])
            found.append((name, sizes[: len(sizes) - len(last)] + last))
    return found


_ARGUMENT = re.compile(r"b?[fi](\d+)")


def _argument_sizes(function_type: str) -> list[int]:
    """Bytes of the arguments of ``!llvm.func<void (i64, f32, ptr<1>)>``: scalars take a power of two, buffers 0.

    Read from the text for the reason given at `_set_calling_convention`.
    """
    arguments = function_type[function_type.index("(") + 1 : function_type.rindex(")")]
    widths = [_ARGUMENT.fullmatch(argument) for argument in arguments.split(", ") if argument]
    return [0 if width is None else mlir_util.padded_bytes(int(width[1])) for width in widths]
