"""Kernels in the gpu dialect -> LLVM IR, for every target that goes through it."""

from collections.abc import Callable, Sequence
from typing import Any

from devscope.errors import LoweringError, SourceLocation
from devscope.lowering import mlir_util
from devscope.lowering.codegen.device_emitter import Machine, shared_emitter
from devscope.lowering.codegen.llvm_text import to_llvm_ir
from devscope.lowering.complex_functions import lower_complex
from devscope.lowering.divisions import guard_rounding
from devscope.lowering.gpu.complex_parts import carry_parts
from devscope.lowering.gpu.local_memory import keep_private_memory, local_sizes, parameters
from devscope.lowering.interop.bindings import ir
from devscope.lowering.interop.diagnostics import decode_location
from devscope.lowering.mlir_util import RunPasses
from devscope.lowering.pipelines import pipeline
from devscope.lowering.target import DeviceBinary, KernelTarget, Options

_GLOBAL_MEMORY = 1
"""The address space of buffers, in OpenCL (SPIR-V CrossWorkgroup) and in PTX."""


def take_kernels(module: Any) -> Any:
    """Move the ``gpu.module`` operations of ``module`` into a new module."""
    kernels = ir.Module.create(loc=ir.Location.unknown(module.context))
    for op in mlir_util.children(module.operation):
        if op.name == "gpu.module":
            kernels.body.append(op)
    return kernels


def check_types(gpu_modules: Any, target: KernelTarget, options: Options) -> None:
    """Raise LoweringError, located, for a type that ``target`` lacks: LLVM's backends abort on it, or go wrong."""
    lacking = {type_ for type_, option in target.optional_types.items() if options.get(option) is False}
    for type_, op in mlir_util.types(mlir_util.walk(gpu_modules)):
        scalar = ir.ShapedType(type_).element_type if isinstance(type_, ir.ShapedType) else type_
        scalar = scalar.element_type if isinstance(scalar, ir.ComplexType) else scalar
        if str(scalar) in lacking or not _exists(scalar, target):
            where = " on this device" if str(scalar) in lacking else ""
            other = _integers(scalar, target) if isinstance(scalar, ir.IntegerType) else "f32"
            raise LoweringError(
                f"target '{target.name}' cannot compute with {scalar}{where}",
                decode_location(op.location),
                [f"compute with {other}, or place the operation on another device"],
            )


def _exists(scalar: Any, target: KernelTarget) -> bool:
    if isinstance(scalar, ir.IntegerType):
        is_known = not target.integer_widths or scalar.width in target.integer_widths
        return is_known and scalar.width <= target.integer_bits
    is_float = isinstance(scalar, ir.FloatType) or str(scalar) in ("f80", "f128")  # no classes for these
    return not is_float or str(scalar) in target.floats


def _integers(lacking: Any, target: KernelTarget) -> str:
    if lacking.width <= target.integer_bits:
        return f"integers of {', '.join(map(str, target.integer_widths))} bits"
    return f"integers of up to {target.integer_bits} bits"


def compile_kernels(
    gpu_modules: Any,
    run_passes: RunPasses,
    target: str,
    gpu_to_llvm: str,
    machine: Machine,
    prepare: Callable[[Any, RunPasses], None],
    finish: Callable[[str], str] = str,
    alignment: int = 1,
) -> DeviceBinary:
    """Compile ``gpu.module`` operations for ``machine``; the pipeline ``gpu_to_llvm`` replaces the gpu dialect.

    ``prepare`` is called with ``gpu_modules`` first and may put functions beside them; ``finish`` changes LLVM IR.
    ``alignment``: what LLVM is told of that of buffers, in bytes.
    Raises LoweringError for an operation that the device cannot run.
    """
    kernels: list[tuple[str, list[int]]] = []
    written: dict[str, list[int]] = {}
    carry_parts(gpu_modules)
    ops = lower_complex(gpu_modules, run_passes)
    for kernel in [op for op in ops if op.name == "gpu.func"]:
        name = mlir_util.symbol_name(kernel)
        cells, written[name] = _cells_and_written(kernel)
        kernels.append((name, cells + local_sizes(kernel)))
    guard_rounding(ops)
    prepare(gpu_modules, run_passes)
    i64 = ir.IntegerType.get_signless(64, gpu_modules.context)
    space = ir.IntegerAttr.get(i64, _GLOBAL_MEMORY)
    mlir_util.retype_memrefs(gpu_modules.operation, space, lambda old: str(old).startswith("#device."))
    run_passes(gpu_modules.operation, gpu_to_llvm)
    keep_private_memory(gpu_modules)
    _merge(gpu_modules)
    run_passes(gpu_modules.operation, pipeline("gpu/to_llvm"))
    _mark_pointers(gpu_modules, kernels, written, alignment)
    text = finish(to_llvm_ir(gpu_modules, target))
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
        for op in mlir_util.walk(gpu_module):
            symbol = symbol_of(op)
            if symbol is None:
                continue
            inputs, results = [v.type for v in op.operands], [v.type for v in op.results]
            if symbol not in declared:
                declared.add(symbol)
                type_ = ir.FunctionType.get(inputs, results, context=context)
                mlir_util.declare(gpu_module, symbol, type_)
            mlir_util.replace_op(op, mlir_util.Builder(op).call(symbol, op.operands, results).results)


def _cells_and_written(kernel: Any) -> tuple[list[int], list[int]]:
    """What the parameters of a kernel are once memrefs are expanded: their sizes, as a `KernelSpec` has them, and
    the positions of the pointers that it stores through.
    """
    stored = {op.operands[1] for op in mlir_util.walk(kernel) if op.name == "memref.store"}
    cells: list[int] = []
    written: list[int] = []
    for argument in parameters(kernel):
        if argument in stored:
            written.append(len(cells) + 1)  # the aligned pointer follows the allocated one
        cells += _cells(argument.type)
    return cells, written


def _cells(type_: Any) -> list[int]:
    """Sizes of what the LLVM dialect makes of an argument; of a memref: two pointers, offset, sizes, strides."""
    if mlir_util.is_memref(type_):
        return [0, 0, *[8] * (1 + 2 * ir.MemRefType(type_).rank)]
    return [mlir_util.element_bytes(type_)]


def _mark_pointers(
    module: Any, kernels: Sequence[tuple[str, list[int]]], written: dict[str, list[int]], alignment: int
) -> None:
    """Say how buffers are aligned, and let LLVM keep a reduction's accumulator in a register instead of storing it
    in every iteration.

    The latter is sound because bufferisation gives a result the buffer of an input only where each iteration reads
    just the element that it writes (one-shot bufferisation's rule for elementwise accesses); those reads come
    before the write whatever the alias information says.
    """
    context = module.context
    i64 = ir.IntegerType.get_signless(64, context)
    aligned = {"llvm.align": ir.IntegerAttr.get(i64, alignment)} if alignment > 1 else {}
    alone = {"llvm.noalias": ir.UnitAttr.get(context)}
    cells = dict(kernels)
    for op in mlir_util.children(module.operation):
        name = mlir_util.symbol_name(op) if op.name == "llvm.func" else ""
        if name in cells:
            count = len(mlir_util.entry_block(op).arguments)
            attributes = [
                {**(aligned if size == 0 else {}), **(alone if number in written[name] else {})}
                for number, size in enumerate(cells[name][:count])
            ]
            op.attributes["arg_attrs"] = ir.ArrayAttr.get(
                [ir.DictAttr.get(one, context) for one in attributes], context
            )


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
    for op in mlir_util.children(module.operation):
        if op.name == "llvm.func" and f"in function: {mlir_util.symbol_name(op)})" in text:
            return decode_location(op.location)
    return None
