"""Memory that the work-items of a workgroup share, in hand-written kernels.

Of static size it is a *workgroup attribution* of a ``gpu.func``: what MLIR makes an argument without a value for
OpenCL, a variable for CUDA. Of the size that a launch gives it is ``gpu.dynamic_shared_memory``.
"""

from typing import Any

from devscope.dialects.op_facts import facts
from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.mlir_util import Builder
from devscope.runtime.program import DYNAMIC_LOCAL_SIZE

STATIC_LOCAL = "devscope.static_local"
"""On a ``gpu.launch_func``: how many pieces of local memory of static size the kernel has."""

_DYNAMIC_LOCAL = "gpu.dynamic_shared_memory"
_ALIGNMENT = 16
"""Of local memory, in bytes: what a work-item of a template's kernel reads at once."""

_ATTRIBUTIONS = "workgroup_attributions"
_WORKGROUP, PRIVATE = "#gpu.address_space<workgroup>", "#gpu.address_space<private>"
_SPIRV_WORKGROUP = 3


def move_local_memory(function: Any) -> int:
    """Make workgroup attributions of what ``function``, a ``gpu.func``, allocates; returns how many there are."""
    mlir_util.retype_memrefs(function, None, lambda old: str(old) == PRIVATE)
    allocas = [op for op in mlir_util.walk(function) if op.name == "memref.alloca"]
    static = [op for op in allocas if str(mlir_util.memory_space(op.results[0].type)) == _WORKGROUP]
    for op in static:
        _attribute(function, op, op.results[0].type)
    return len(static)


def allocate_at_begin(gpu_module: Any) -> None:
    """What kernels of ``gpu_module`` allocate is made where they begin: SPIR-V has variables there only."""
    mlir_util.retype_memrefs(gpu_module, None, lambda old: str(old) == PRIVATE)
    for function in mlir_util.children(gpu_module):
        if function.name != "gpu.func":
            continue
        first = mlir_util.first_child(function)
        for op in mlir_util.named(function, "memref.alloca"):
            op.move_before(first)


def keep_private_memory(gpu_modules: Any) -> None:
    """What kernels allocate is on a work-item's stack; ``convert-gpu-to-llvm-spv`` takes it for global memory."""
    made = [op.results[0] for op in mlir_util.named(gpu_modules.operation, "memref.alloca")]
    while made:
        value = made.pop()
        value.set_type(mlir_util.with_memory_space(value.type, None))
        users = [use.owner.operation for use in value.uses]
        made += [user.results[0] for user in users if facts(user.name).view_of is not None]


def _attribute(function: Any, op: Any, type_: Any) -> None:
    """Replace ``op`` by a new attribution of ``function``, the last one."""
    argument = mlir_util.entry_block(function).add_argument(type_, op.location)
    mlir_util.replace_op(op, [Builder(op).cast(argument, op.results[0].type)])
    i64 = ir.IntegerType.get_signless(64, function.context)
    function.attributes[_ATTRIBUTIONS] = ir.IntegerAttr.get(i64, _count(function) + 1)


def _count(function: Any) -> int:
    return ir.IntegerAttr(function.attributes[_ATTRIBUTIONS]).value if _ATTRIBUTIONS in function.attributes else 0


def parameters(function: Any) -> list[Any]:
    """The arguments of a ``gpu.func``'s body that launches have values for."""
    arguments = list(mlir_util.entry_block(function).arguments)
    return arguments[: len(arguments) - _count(function)]


def local_sizes(function: Any) -> list[int]:
    """The sizes of the local memory of a ``gpu.func``, as a `KernelSpec` has them."""
    attributions = list(mlir_util.entry_block(function).arguments)[len(parameters(function)) :]
    sizes = [-(mlir_util.static_bytes(argument.type) or 0) for argument in attributions]
    dynamic = any(op.name == _DYNAMIC_LOCAL for op in mlir_util.walk(function))
    return [*sizes, DYNAMIC_LOCAL_SIZE] if dynamic else sizes


def pass_local_memory(gpu_modules: Any) -> None:
    """For OpenCL: all local memory is passed as arguments, also that of the size that a launch gives, the last."""
    context = gpu_modules.context
    i8, i64 = (ir.IntegerType.get_signless(width, context) for width in (8, 64))
    space = ir.IntegerAttr.get(i64, _SPIRV_WORKGROUP)
    for function in [op for op in mlir_util.walk(gpu_modules.operation) if op.name == "gpu.func"]:
        dynamic = [op for op in mlir_util.walk(function) if op.name == _DYNAMIC_LOCAL]
        mlir_util.retype_memrefs(function, space, lambda old: str(old) == _WORKGROUP)
        for op in dynamic:
            _attribute(function, op, mlir_util.buffer_type([1], i8, space))


def mark_local_memory(module: Any) -> None:
    """Note what kernels of templates have of local memory, once they are outlined."""
    kernels = {mlir_util.symbol_name(op): op for op in mlir_util.walk(module.operation) if op.name == "gpu.func"}
    for op in mlir_util.walk(module.operation):
        if op.name != "gpu.launch_func":
            continue
        kernel = kernels[ir.SymbolRefAttr(op.attributes["kernel"]).value[-1]]
        count = len(mlir_util.entry_block(kernel).arguments) - len(parameters(kernel))
        if count:
            i64 = ir.IntegerType.get_signless(64, op.context)
            op.attributes[STATIC_LOCAL] = ir.IntegerAttr.get(i64, count)
            aligned = ir.DictAttr.get({"llvm.align": ir.IntegerAttr.get(i64, _ALIGNMENT)}, op.context)
            kernel.attributes["workgroup_attrib_attrs"] = ir.ArrayAttr.get([aligned] * count, op.context)
