"""User (hand-written) kernels of a module, and the operations that launch them.

A kernel is a private function over buffers with ``device.kernel``. It is device code as it stands, for one
work-item: planning, splitting and what runs after them leave its body alone. What it calls are private functions
over scalars, which device-bind-target inlines. MLIR has verified each operation; checked here, before anything is
planned, is what a kernel may hold, and what holds between a launch and its kernel.
"""

from collections.abc import Sequence

from xdsl.dialects.builtin import MemRefType, ModuleOp, NoneAttr, TensorType, UnregisteredOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue

from devscope.analysis.call_graph import CallGraph
from devscope.analysis.classify import portable_functions
from devscope.analysis.symbols import CALL, Symbols, callee_name, is_kernel, is_public, named_function
from devscope.dialects.device import KERNEL_ATTR, Device, LaunchOp
from devscope.dialects.launch import InOp
from devscope.dialects.location import error_at, note_at
from devscope.dialects.names import op_name
from devscope.dialects.op_facts import facts_of
from devscope.dialects.verifier import verify_operation

_DIALECTS = frozenset({"arith", "cf", "complex", "index", "math", "memref", "scf", "ub", "vector"})
_DYNAMIC = "gpu.dynamic_shared_memory"
_INDICES = ("block_dim", "block_id", "global_id", "grid_dim", "thread_id")
_GPU = {_DYNAMIC, "gpu.barrier", *(f"gpu.{name}" for name in _INDICES)}
_LEGAL = {*_GPU, "affine.apply", "affine.max", "affine.min", "func.call", "func.return"}
_NOT_IN_KERNELS = {
    *(f"memref.{name}" for name in ("alloc", "copy", "dealloc", "get_global", "prefetch", "realloc", "reshape")),
    *("scf.forall", "scf.parallel", "vector.print"),
}
_SOURCES = frozenset({"memref.alloca", _DYNAMIC})
"""Where a kernel gets buffers from, apart from its parameters and from views."""


def calls_in_kernels(symbols: Symbols) -> list[tuple[FuncOp, Operation]]:
    """The calls in user kernels, each with its kernel, in order."""
    return [(kernel, op) for kernel in symbols.kernels.values() for op in kernel.walk() if op_name(op) == CALL]


def check_kernels(module: ModuleOp) -> None:
    """Raise `VerifyError`, located, for the first user kernel of ``module`` that cannot be one, or launch.

    A kernel is a private function with a body and without results, that launches name and nothing calls. Launches
    in a module without kernels are left to `check_launch`.
    """
    symbols = Symbols(module)
    kernels = symbols.kernels
    for kernel in kernels.values():
        _check_kernel(kernel)
        _check_body(kernel)
    if not kernels:
        return
    _check_calls(module, symbols)
    launches = [op for op in module.walk() if op_name(op) == LaunchOp.name]
    for op in launches:
        check_launch(op)
    launched = {named_function(op): op for op in reversed(launches)}
    for op in module.walk():
        if named_function(op) in kernels and not isinstance(op, LaunchOp):
            _refuse_use(op, launched.get(named_function(op)))


def _refuse_use(op: Operation, launch: Operation | None) -> None:
    """Nothing but a launch may name a kernel."""
    name = named_function(op)
    how = "called" if op_name(op) == CALL else "used as a value"
    if launch is None:
        raise error_at(op, f"kernel '{name}' is {how}", "device.launch runs it on tensors")
    here = note_at(launch, "it is launched here")
    message = f"'{name}' is launched as a kernel and {how}, too"
    raise error_at(op, message, here, "give one of them a function of its own")


def _check_calls(module: ModuleOp, symbols: Symbols) -> None:
    """Raise `VerifyError`, located, for a call in a user kernel of ``module`` that a kernel cannot make."""
    calls = calls_in_kernels(symbols)
    if not calls:
        return
    graph = CallGraph(module, symbols)
    portable = {f.sym_name.data: f for f in portable_functions(graph.symbols.functions.values())}
    for kernel, op in calls:
        name = callee_name(op) or ""
        call = f"kernel '{kernel.sym_name.data}' calls '{name}'"
        if name not in portable:
            legal = "what they call are private functions with a body, over scalars alone"
            raise error_at(op, f"{call}, which kernels cannot", legal)
        cycle = graph.cycle_below(portable[name])
        if cycle is not None:
            path = " -> ".join(function.sym_name.data for function in cycle)
            raise error_at(op, f"{call}, which is recursive: {path}", "write it as a loop (scf.while)")


def _check_kernel(kernel: FuncOp) -> None:
    name = kernel.sym_name.data
    if is_public(kernel):
        raise error_at(kernel, f"kernel '{name}' must be private: only launches reach it")
    if not kernel.body.blocks:
        raise error_at(kernel, f"kernel '{name}' has no body")
    if kernel.function_type.outputs.data:
        remedy = "it leaves its results in the buffers that 'device.out' name"
        raise error_at(kernel, f"kernel '{name}' returns something", remedy)


def check_launch(launch: Operation) -> None:
    """Raise `VerifyError`, located, for a ``device.launch`` that does not fit a kernel of its module.

    Parameters are what the launch names: for tensors memrefs of the same element type and rank, whose extents the
    program knows if the kernel does. What is passed by ``device.in`` is not written. Local memory is given if the
    kernel has dynamic one.
    """
    if not isinstance(launch, LaunchOp):
        verify_operation(launch, Device)  # an importer leaves an operation that is wrong unregistered
        return
    for op in launch.body.block.ops:
        if isinstance(op, UnregisteredOp):
            verify_operation(op, Device)
    module = launch.get_toplevel_object()
    if not isinstance(module, ModuleOp):
        return  # in a clone that planning made of a function
    name = launch.kernel.string_value()
    kernel = Symbols.lookup_symbol_in(module, name)  # there may be many launches, each of which a rule checks
    if not isinstance(kernel, FuncOp):
        known = ", ".join(Symbols(module).kernels)
        legal = f"kernels of the module: {known}" if known else "the module has no kernels"
        raise error_at(launch, f"'{name}' is launched, but the module has no such function", legal)
    if not is_kernel(kernel):
        legal = f"a kernel has '{KERNEL_ATTR}', and memrefs for the tensors that it works on"
        here = note_at(kernel, "it stands here")
        raise error_at(launch, f"'{name}' is launched, but is no kernel", here, legal)
    _check_parameters(launch, kernel, [value.type for value in (*launch.ins, *launch.outs)])
    _check_writes(launch, kernel)
    _check_local_memory(launch, kernel)


def _check_parameters(launch: LaunchOp, kernel: FuncOp, given: Sequence[Attribute]) -> None:
    name, taken = kernel.sym_name.data, kernel.function_type.inputs.data
    here = note_at(kernel, "the kernel stands here")
    if len(given) != len(taken):
        message = f"the launch of '{name}' has {len(given)} arguments, the kernel has {len(taken)} parameters"
        legal = "parameters are what 'device.in' name, in order, then what 'device.out' name"
        raise error_at(launch, message, here, legal)
    for number, (one, other) in enumerate(zip(given, taken, strict=True)):
        problem = _mismatch(one, other)
        if problem is not None:
            message = f"argument #{number} of the launch of '{name}' is {one}, its parameter {other}"
            raise error_at(launch, message, here, problem)


def _mismatch(given: Attribute, taken: Attribute) -> str | None:
    """Why a parameter of type ``taken`` does not take an argument of type ``given``, and what to do."""
    if not isinstance(given, TensorType):
        return None if given == taken else "scalars are passed as they are: the types must be equal"
    if not isinstance(taken, MemRefType):
        return "a kernel takes tensors as memrefs"
    if not isinstance(taken.layout, NoneAttr) or not isinstance(taken.memory_space, NoneAttr):
        return "the memrefs of a kernel are dense and name no memory space"
    if given.get_element_type() != taken.get_element_type() or given.get_num_dims() != taken.get_num_dims():
        return "element type and rank must be equal"
    for extent, expected in zip(given.get_shape(), taken.get_shape(), strict=True):
        if expected >= 0 and extent != expected:
            return "an extent that the kernel knows must be that of the tensor; tensor.cast can say so"
    return None


def _check_writes(launch: LaunchOp, kernel: FuncOp) -> None:
    ins = [op for op in launch.body.block.ops if isinstance(op, InOp)]
    for number, op in enumerate(ins):
        store = _first_store(kernel, number) if isinstance(op.operand.type, TensorType) else None
        if store is not None:
            what = f"'{op_name(store)}' writes to parameter #{number} of kernel '{kernel.sym_name.data}'"
            here = note_at(op, "'device.in' here; 'device.out' lets a kernel write")
            raise error_at(store, f"{what}, which a launch only lets it read", here)


def _check_local_memory(launch: LaunchOp, kernel: FuncOp) -> None:
    user = _dynamic_memory(kernel)
    name = kernel.sym_name.data
    if user is not None and launch.local_bytes is None:
        message = f"kernel '{name}' has dynamic local memory, but its launch does not say how much"
        here = note_at(user, "it is used here")
        raise error_at(launch, message, here, "the bytes for a workgroup are the seventh operand")
    if user is None and launch.local_bytes is not None:
        message = f"the launch gives kernel '{name}' local memory, which it does not use"
        remedy = "a kernel gets at it by gpu.dynamic_shared_memory; else leave the seventh operand out"
        raise error_at(launch, message, remedy)


def _check_body(kernel: FuncOp) -> None:
    """Raise `VerifyError`, located, for the first operation that a kernel cannot have, calls left aside."""
    dynamic = _dynamic_memory(kernel)
    for op in kernel.body.walk():
        problem = _problem(op, f"kernel '{kernel.sym_name.data}'", dynamic)
        if problem is not None:
            raise error_at(op, *problem)


def _problem(op: Operation, kernel: str, dynamic: Operation | None) -> tuple[str, str] | None:
    """Why an operation cannot stand in a kernel, and what to do; ``dynamic`` asks for local memory first."""
    name = op_name(op)
    if not _is_device_code(name):
        can = f"what can: memref, arith, math, scf, cf, vector, index, {', '.join(sorted(_GPU))}"
        return f"'{name}' cannot stand in {kernel}, which runs on a device", can
    if name == _DYNAMIC and op is not dynamic:
        return f"{kernel} asks for dynamic local memory twice", "ask once, and make several views of it"
    if _hands_buffers_on(op, name):
        remedy = "use buffers where they are, and let control flow carry numbers"
        return f"'{name}' in a kernel hands buffers on", remedy
    if name == "memref.alloca" and op.operands:
        remedy = "for local memory, gpu.dynamic_shared_memory has the size that the launch says"
        return f"{kernel} allocates memory whose size it computes", remedy
    if name == "memref.dim" and dynamic is not None and op.operands[0].owner is dynamic:
        return f"{kernel} asks how large its dynamic local memory is", "pass the size as an argument"
    return None


def _is_device_code(name: str) -> bool:
    return name in _LEGAL or (name.partition(".")[0] in _DIALECTS and name not in _NOT_IN_KERNELS)


def _hands_buffers_on(op: Operation, name: str) -> bool:
    """Whether buffers flow through control flow, which they must not: so what a kernel writes to is known."""
    is_source = name in _SOURCES or facts_of(op).view_of is not None
    values: list[SSAValue] = [] if is_source else list(op.results)
    if name.startswith("cf."):
        values += op.operands
    values += (argument for region in op.regions for block in region.blocks for argument in block.args)
    return any(isinstance(value.type, MemRefType) for value in values)


def _dynamic_memory(kernel: FuncOp) -> Operation | None:
    """Where a kernel asks for dynamic local memory."""
    return next((op for op in kernel.body.walk() if op_name(op) == _DYNAMIC), None)


def _first_store(kernel: FuncOp, parameter: int) -> Operation | None:
    """The first operation that writes to a parameter, or to a view of it."""
    aliases: list[SSAValue] = [kernel.body.blocks[0].args[parameter]]
    for value in aliases:
        views = (use.operation for use in value.uses if facts_of(use.operation).view_of == use.index)
        aliases += (view.results[0] for view in views)
    for op in kernel.body.walk():
        if any(op.operands[target] in aliases for target in facts_of(op).writes or ()):
            return op
    return None
