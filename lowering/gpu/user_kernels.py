"""Hand-written kernels: functions over buffers that ``device.launch`` runs on tensors.

They leave the module before tensor code is lowered. One-shot bufferisation knows no ``device.launch``. What it
knows is ``linalg.generic``, whose outputs are initial values of its results just as what ``device.out`` names: so
a launch goes through it in the body of one, which reads all tensors and writes all outputs. Where results can have
the memory of their initial values, and where these have to be copied, is then decided by the rules for all
tensors. The launch itself is about elements there.

Then it becomes a call of a function of the kernel's name, first declared only; once the module's other kernels are
outlined it gets a body that launches the kernel, so that from there on both kinds look the same.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from devscope.dialects.device import KERNEL_ATTR
from devscope.lowering import mlir_util
from devscope.lowering.checks.indices import check_indices, note_in_function, status_memory
from devscope.lowering.checks.labels import Checks
from devscope.lowering.gpu.local_memory import STATIC_LOCAL, move_local_memory
from devscope.lowering.interop.bindings import ir
from devscope.lowering.interop.mixed_types import LAUNCHES
from devscope.lowering.mlir_util import Builder
from devscope.lowering.truth_bytes import in_memory, store_truths_as_bytes

_OUT = "device.out"
_SIZES = 6
"""The first operands of a launch: grid and workgroup, x, y, z each; then bytes of local memory, if any."""


@dataclass
class UserKernel:
    """A kernel, taken out of its module; ``parameters`` are the types of its parameters.

    ``module_name`` is that of the ``gpu.module`` that it becomes. ``reports``: it has one more parameter, memory
    where it notes assertions that do not hold.
    """

    name: str
    module_name: str
    func: Any
    parameters: list[Any]
    reports: bool


def take_user_kernels(module: Any, taken: set[str], checks: Checks) -> dict[str, UserKernel]:
    """Take the hand-written kernels out of ``module``: by the names that launches have for them.

    Equal ones become one. Names are added to ``taken``, the names of the program, which has those of all kernels.
    """
    found: dict[str, UserKernel] = {}
    first: dict[str, UserKernel] = {}
    for func in mlir_util.functions(module):
        parameters = list(mlir_util.function_type(func).inputs)
        if KERNEL_ATTR not in func.attributes or not any(map(mlir_util.is_memref, parameters)):
            continue
        name = mlir_util.symbol_name(func)
        text = mlir_util.text_but_name(func)
        if text not in first:
            module_name = f"{name}_kernel"
            while module_name in taken:
                module_name += "_"
            # What outlining makes of a function 'f' is called 'f_kernel'.
            taken.update((module_name, module_name.removesuffix("_kernel"), name.removesuffix("_kernel")))
            reports = False
            if checks.indices:
                check_indices(func)
                reports = note_in_function(func, checks)
            store_truths_as_bytes(func)
            parameters = list(map(in_memory, parameters))
            first[text] = UserKernel(name, module_name, func, parameters, reports)
        found[name] = first[text]
        func.detach_from_parent()
        drop_assertions(func)
    return found


def drop_assertions(kernel: Any) -> None:
    """Erase the assertions in the code of a kernel: a device has no way to leave a program."""
    for op in mlir_util.walk(kernel):
        if op.name == "cf.assert":
            op.erase()


def carry_launches(module: Any) -> None:
    """Put the launches of ``module`` into the bodies of ``linalg.generic``. To be done right before bufferisation:
    these are no loops over elements, which might be fused.
    """
    for op in mlir_util.walk(module.operation):
        if op.name in LAUNCHES:
            _carry(op)


def _carry(launch: Any) -> None:
    context = launch.context
    arguments = [op for op in _arguments(launch) if isinstance(op.operands[0].type, ir.RankedTensorType)]
    tensors = [op.operands[0] for op in arguments]
    outs = len(launch.results)
    groups = tensors[: len(tensors) - outs], tensors[len(tensors) - outs :]
    maps, iterators = _loops([ir.RankedTensorType(value.type).rank for value in tensors], outs)
    attributes = {
        "indexing_maps": ir.Attribute.parse(maps, context),
        "iterator_types": ir.Attribute.parse(iterators, context),
    }
    types = [result.type for result in launch.results]
    generic = Builder(launch).grouped("linalg.generic", groups, types, attributes, regions=1)
    elements = [ir.RankedTensorType(value.type).element_type for value in tensors]
    body = ir.Block.create_at_start(generic.regions[0], elements, [launch.location] * len(elements))
    for result, new in zip(launch.results, generic.results, strict=True):
        result.replace_all_uses_with(new)
    launch.detach_from_parent()
    body.append(launch)
    for op, element in zip(arguments, body.arguments, strict=True):
        op.operands[0] = element
    for result, element in zip(launch.results, elements[len(tensors) - outs :], strict=True):
        result.set_type(element)
    body.append(ir.Operation.create("linalg.yield", operands=list(launch.results), loc=launch.location))


def _arguments(launch: Any) -> list[Any]:
    """What name the arguments of a kernel, in the order of its parameters."""
    return sorted(mlir_util.children(launch), key=lambda op: op.name == _OUT)


def _loops(ranks: Sequence[int], outs: int) -> tuple[str, str]:
    """Indexing maps and iterators, as text, in which every operand has loops of its own.

    An input and an output are then not read and written element by element, which could be in one buffer.
    """
    loops = ", ".join(f"d{number}" for number in range(sum(ranks)))
    maps: list[str] = []
    iterators: list[str] = []
    for number, rank in enumerate(ranks):
        own = ", ".join(f"d{len(iterators) + axis}" for axis in range(rank))
        maps.append(f"affine_map<({loops}) -> ({own})>")
        kind = "parallel" if number >= len(ranks) - outs else "reduction"
        iterators += [f"#linalg.iterator_type<{kind}>"] * rank
    return f"[{', '.join(maps)}]", f"[{', '.join(iterators)}]"


def call_kernels(module: Any, kernels: Mapping[str, UserKernel]) -> None:
    """Replace what carries a launch in ``module``, which is bufferised, by a call of a function over buffers.

    The functions have the names of the kernels, and no bodies yet.
    """
    declared: set[str] = set()
    for generic in mlir_util.walk(module.operation):
        carried = mlir_util.children(generic) if generic.name == "linalg.generic" else ()
        launch = next((op for op in carried if op.name in LAUNCHES), None)
        if launch is None:
            continue
        kernel = kernels[ir.FlatSymbolRefAttr(launch.attributes["kernel"]).value]
        if kernel.name not in declared:
            declared.add(kernel.name)
            sizes = [ir.IndexType.get(module.context)] * len(launch.operands)
            type_ = ir.FunctionType.get([*kernel.parameters, *sizes], [], context=module.context)
            mlir_util.declare(module, kernel.name, type_, kernel.func.location)
        _call(generic, launch, kernel)


def _call(generic: Any, launch: Any, kernel: UserKernel) -> None:
    build = Builder(generic)
    block = mlir_util.entry_block(generic)
    buffer_of = dict(zip(block.arguments, generic.operands, strict=True))
    values: list[Any] = []
    copied: list[tuple[Any, Any]] = []
    for op, parameter in zip(_arguments(launch), kernel.parameters, strict=True):
        value = op.operands[0]
        if value not in buffer_of:
            values.append(value)
            continue
        buffer = buffer_of[value]
        dense = _dense(build, buffer)
        if dense is not buffer and op.name == _OUT:
            copied.append((dense, buffer))
        # A kernel may leave open what the program knows of a shape.
        values.append(build.cast(dense, parameter))
    build.call(kernel.name, [*values, *launch.operands])
    for dense, buffer in copied:
        build.op("memref.copy", [dense, buffer])
    generic.erase()


def _dense(build: Builder, buffer: Any) -> Any:
    """``buffer``, or a copy of it where it is part of another one."""
    if mlir_util.is_whole_buffer(buffer.type):
        return buffer
    type_ = ir.MemRefType(buffer.type)
    return build.copy(buffer, mlir_util.buffer_type(type_.shape, type_.element_type))


def define_launchers(module: Any, kernels: Mapping[str, UserKernel], space: Any) -> None:
    """Give the functions that `call_kernels` declared their bodies, and ``module`` what they launch.

    The arguments of kernels are in memory space ``space``.
    """
    by_name = {kernel.name: kernel for kernel in kernels.values()}
    for launcher in mlir_util.functions(module):
        kernel = by_name.get(mlir_util.symbol_name(launcher))
        if kernel is not None:
            module.operation.attributes["gpu.container_module"] = ir.UnitAttr.get(module.context)
            gpu_module, function = _gpu_module(kernel, space)
            module.body.append(gpu_module)
            _define(module, launcher, kernel, move_local_memory(function), space)


def _gpu_module(kernel: UserKernel, space: Any) -> tuple[Any, Any]:
    context = kernel.func.context
    location = kernel.func.location
    attributes = {"sym_name": ir.StringAttr.get(kernel.module_name, context)}
    gpu_module = ir.Operation.create("gpu.module", attributes=attributes, regions=1, loc=location)
    body = ir.Block.create_at_start(gpu_module.regions[0], [], [])
    attributes = {name: kernel.func.attributes[name] for name in ("sym_name", "function_type")}
    attributes["kernel"] = ir.UnitAttr.get(context)
    function = ir.Operation.create("gpu.func", attributes=attributes, regions=1, loc=location)
    for block in list(kernel.func.regions[0].blocks):
        block.append_to(function.regions[0])
    body.append(function)
    for op in mlir_util.walk(function):
        if op.name == "func.return":
            Builder(op).op("gpu.return")
            op.erase()
    _move_arguments(function, space)
    return gpu_module, function


def _move_arguments(function: Any, space: Any) -> None:
    """Put the buffers that ``function`` is given, and its views of them, into memory space ``space``."""
    users: dict[Any, list[Any]] = {}
    for op in mlir_util.walk(function):
        for operand in op.operands:
            users.setdefault(operand, []).append(op)
    work: list[Any] = [a for a in mlir_util.entry_block(function).arguments if mlir_util.is_memref(a.type)]
    while work:
        value = work.pop()
        for op in users.get(value, ()):
            results = [result for result in op.results if mlir_util.is_memref(result.type)]
            work += [result for result in results if mlir_util.memory_space(result.type) is None]
        value.set_type(mlir_util.with_memory_space(value.type, space))
    types = [argument.type for argument in mlir_util.entry_block(function).arguments]
    type_ = ir.FunctionType.get(types, [], context=function.context)
    function.attributes["function_type"] = ir.TypeAttr.get(type_)


def _define(module: Any, launcher: Any, kernel: UserKernel, static_local: int, space: Any) -> None:
    context = launcher.context
    end = mlir_util.add_body(launcher)
    build = Builder(end)
    values = list(mlir_util.entry_block(launcher).arguments)
    arguments, sizes = values[: len(kernel.parameters)], values[len(kernel.parameters) :]
    if kernel.reports:
        arguments.append(status_memory(module, end, space))
    local = [_local_bytes(build, size) for size in sizes[_SIZES:]]
    symbol = ir.SymbolRefAttr.get([kernel.module_name, kernel.name], context)
    # async dependencies, grid, workgroup, cluster, local memory, arguments, async object
    groups = [[], *([size] for size in sizes[:_SIZES]), [], [], [], local, arguments, []]
    attributes = {"kernel": symbol, STATIC_LOCAL: ir.IntegerAttr.get(build.i64, static_local)}
    build.grouped("gpu.launch_func", groups, attributes=attributes)


_LOCAL_BYTES = -(2**31), 2**31 - 1
"""``gpu.launch_func`` has 32 bits for them; a device with more local memory has yet to be made."""


def _local_bytes(build: Builder, size: Any) -> Any:
    """Too large or negative sizes stay so: the runtime refuses them."""
    least, most = map(build.constant, _LOCAL_BYTES)
    size = build.value("arith.maxsi", [size, least], build.index)
    size = build.value("arith.minsi", [size, most], build.index)
    return build.value("arith.index_cast", [size], ir.IntegerType.get_signless(32, size.context))
