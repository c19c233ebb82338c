"""Kernels in the gpu dialect -> LLVM IR, for every target that goes through it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from devscope.errors import LoweringError, SourceLocation
from devscope.lowering import mlir_util
from devscope.lowering.codegen.device_emitter import Machine, shared_emitter
from devscope.lowering.codegen.llvm_text import to_llvm22
from devscope.lowering.gpu.local_memory import local_sizes, parameters
from devscope.lowering.interop.bindings import ir
from devscope.lowering.llvm_dialect import mlir_location, require_fully_lowered, to_llvm_ir
from devscope.lowering.mlir_util import RunPasses
from devscope.lowering.pipelines import pipeline
from devscope.lowering.target import DeviceBinary

_GLOBAL_MEMORY = 1
"""The address space of buffers, in OpenCL (SPIR-V CrossWorkgroup) and in PTX."""


def compile_kernels(
    gpu_modules: Any,
    run_passes: RunPasses,
    target: str,
    gpu_to_llvm: str,
    machine: Machine,
    prepare: Callable[[Any, RunPasses], None],
    finish: Callable[[str], str] = str,
) -> DeviceBinary:
    """Compile ``gpu.module`` operations for ``machine``; the pipeline ``gpu_to_llvm`` replaces the gpu dialect.

    ``prepare`` is called with ``gpu_modules`` first and may put functions beside them; ``finish`` changes LLVM IR.
    Raises LoweringError for an operation that the device cannot run.
    """
    kernels = _signatures(gpu_modules)
    written = _written_pointers(gpu_modules)
    prepare(gpu_modules, run_passes)
    i64 = ir.IntegerType.get_signless(64, gpu_modules.context)
    space = ir.IntegerAttr.get(i64, _GLOBAL_MEMORY)
    mlir_util.retype_memrefs(gpu_modules.operation, space, lambda old: str(old).startswith("#device."))
    run_passes(gpu_modules.operation, gpu_to_llvm)
    _merge(gpu_modules)
    run_passes(gpu_modules.operation, pipeline("gpu/to_llvm"))
    _mark_noalias(gpu_modules, written)
    require_fully_lowered(gpu_modules.operation, target)
    text = finish(to_llvm22(to_llvm_ir(gpu_modules)))
    try:
        return DeviceBinary(shared_emitter().emit(text, machine), kernels)
    except LoweringError as error:
        error.location = _named_kernel(gpu_modules, error)
        raise


def call_functions(gpu_modules: Any, symbol_of: Callable[[Any], str | None]) -> None:
    """Replace the operations that ``symbol_of`` has a name for by calls of a function of that name."""
    context = gpu_modules.context
    for gpu_module in mlir_util.children(gpu_modules.operation):
        if gpu_module.name != "gpu.module":
            continue
        declared: set[str] = set()
        for op in list(mlir_util.walk(gpu_module)):
            symbol = symbol_of(op)
            if symbol is None:
                continue
            inputs, results = [v.type for v in op.operands], [v.type for v in op.results]
            if symbol not in declared:
                declared.add(symbol)
                type_ = ir.FunctionType.get(inputs, results, context=context)
                mlir_util.declare(gpu_module.regions[0].blocks[0], symbol, type_)
            mlir_util.replace_op(op, mlir_util.Builder(op).call(symbol, op.operands, results).results)


def _written_pointers(gpu_modules: Any) -> dict[str, list[int]]:
    """For each kernel, the positions that the pointers it stores through will have once memrefs are expanded."""
    found: dict[str, list[int]] = {}
    for kernel in _kernels(gpu_modules):
        stored = {inner.operands[1] for inner in mlir_util.walk(kernel) if inner.name == "memref.store"}
        position = 0
        pointers: list[int] = []
        for argument in parameters(kernel):
            if argument in stored:
                pointers.append(position + 1)  # the aligned pointer follows the allocated one
            position += len(_cells(argument.type))
        found[mlir_util.symbol_name(kernel)] = pointers
    return found


def _kernels(gpu_modules: Any) -> list[Any]:
    return [op for op in mlir_util.walk(gpu_modules.operation) if op.name == "gpu.func"]


def _signatures(gpu_modules: Any) -> list[tuple[str, list[int]]]:
    """The name and the sizes of arguments of each kernel, as a `KernelSpec` has them."""
    return [
        (
            mlir_util.symbol_name(kernel),
            [size for argument in parameters(kernel) for size in _cells(argument.type)] + local_sizes(kernel),
        )
        for kernel in _kernels(gpu_modules)
    ]


def _cells(type_: Any) -> list[int]:
    """Sizes of what the LLVM dialect makes of an argument; of a memref: two pointers, offset, sizes, strides."""
    if mlir_util.is_memref(type_):
        return [0, 0, *[8] * (1 + 2 * ir.MemRefType(type_).rank)]
    return [mlir_util.element_bytes(type_)]


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
    tops = mlir_util.children(gpu_modules.operation)
    names = {mlir_util.symbol_name(op) for op in tops if op.name != "gpu.module"}
    for gpu_module in [op for op in tops if op.name == "gpu.module"]:
        for op in mlir_util.children(gpu_module):
            # Declarations of functions repeat; kernel names are unique by construction.
            if "sym_name" in op.attributes and mlir_util.symbol_name(op) not in names:
                names.add(mlir_util.symbol_name(op))
                gpu_modules.body.append(op)
        gpu_module.erase()


def _named_kernel(module: Any, error: LoweringError) -> SourceLocation | None:
    """Where the kernel stands whose name LLVM's message has, if it has one."""
    text = "".join(error.notes)
    kernels = [op for op in mlir_util.children(module.operation) if op.name == "llvm.func"]
    return next(
        (mlir_location(op) for op in kernels if f"in function: {mlir_util.symbol_name(op)})" in text), None
    )
