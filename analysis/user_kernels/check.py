"""Checks launches and user kernels before anything is planned.

MLIR has verified each operation of them; here stands what holds between a launch and its kernel, and what a kernel
may do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import MemRefType, ModuleOp, NoneAttr, TensorType, UnregisteredOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation

from devscope.analysis.symbols import CALL, Symbols, is_kernel, named_function
from devscope.analysis.user_kernels import kernel_name, launches_in
from devscope.analysis.user_kernels.body import check_body, first_store, uses_local_memory
from devscope.analysis.user_kernels.calls import check_calls
from devscope.dialects.device import KERNEL_ATTR, Device, LaunchOp
from devscope.dialects.launch import InOp
from devscope.dialects.location import source_location
from devscope.dialects.names import op_name
from devscope.dialects.verifier import verify_operation
from devscope.errors import Note, VerifyError


def check_kernels(module: ModuleOp) -> None:
    """Raise `VerifyError`, located, for the first user kernel of ``module`` that cannot be one, or launch.

    A kernel is a private function with a body and without results, that launches name and nothing calls. Launches
    in a module without kernels are left to `check_launch`.
    """
    symbols = Symbols(module)
    kernels = symbols.kernels
    for kernel in kernels.values():
        _check_kernel(kernel)
        check_body(kernel)
    if kernels:
        check_calls(module, symbols)
        for op in module.walk():
            if op_name(op) == LaunchOp.name:
                check_launch(op)
        _refuse_calls(module, kernels)


def _refuse_calls(module: ModuleOp, kernels: Mapping[str, FuncOp]) -> None:
    """Nothing but a launch may name a kernel."""
    launches = {kernel_name(launch): launch for launch in reversed(launches_in(module))}
    for op in module.walk():
        name = named_function(op)
        if name is None or name not in kernels:
            continue
        how = "called" if op_name(op) == CALL else "used as a value"
        launch = launches.get(name)
        if launch is None:
            raise VerifyError(
                f"kernel '{name}' is {how}", source_location(op), ["device.launch runs it on tensors"]
            )
        raise VerifyError(
            f"'{name}' is launched as a kernel and {how}, too",
            source_location(op),
            [
                Note("it is launched here", source_location(launch)),
                "give one of them a function of its own",
            ],
        )


def _check_kernel(kernel: FuncOp) -> None:
    name = kernel.sym_name.data
    if kernel.sym_visibility is None or kernel.sym_visibility.data != "private":
        raise VerifyError(f"kernel '{name}' must be private: only launches reach it", source_location(kernel))
    if not kernel.body.blocks:
        raise VerifyError(f"kernel '{name}' has no body", source_location(kernel))
    if kernel.function_type.outputs.data:
        raise VerifyError(
            f"kernel '{name}' returns something",
            source_location(kernel),
            ["it leaves its results in the buffers that 'device.out' name"],
        )


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
    name = kernel_name(launch)
    kernel = Symbols.lookup_symbol_in(module, name)  # there may be many launches, each of which a rule checks
    if not isinstance(kernel, FuncOp):
        known = ", ".join(Symbols(module).kernels)
        raise VerifyError(
            f"'{name}' is launched, but the module has no such function",
            source_location(launch),
            [f"kernels of the module: {known}" if known else "the module has no kernels"],
        )
    if not is_kernel(kernel):
        raise VerifyError(
            f"'{name}' is launched, but is no kernel",
            source_location(launch),
            [
                Note("it stands here", source_location(kernel)),
                f"a kernel has '{KERNEL_ATTR}', and memrefs for the tensors that it works on",
            ],
        )
    values = [*launch.ins, *launch.outs]
    _check_parameters(launch, kernel, [value.type for value in values])
    _check_writes(launch, kernel)
    _check_local_memory(launch, kernel)


def _check_parameters(launch: LaunchOp, kernel: FuncOp, given: Sequence[Attribute]) -> None:
    name, taken = kernel.sym_name.data, kernel.function_type.inputs.data
    here = Note("the kernel stands here", source_location(kernel))
    if len(given) != len(taken):
        raise VerifyError(
            f"the launch of '{name}' has {len(given)} arguments, the kernel has {len(taken)} parameters",
            source_location(launch),
            [here, "parameters are what 'device.in' name, in order, then what 'device.out' name"],
        )
    for number, (one, other) in enumerate(zip(given, taken, strict=True)):
        problem = _mismatch(one, other)
        if problem is not None:
            message = f"argument #{number} of the launch of '{name}' is {one}, its parameter {other}"
            raise VerifyError(message, source_location(launch), [here, problem])


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
        store = first_store(kernel, number) if isinstance(op.operand.type, TensorType) else None
        if store is not None:
            raise VerifyError(
                f"'{op_name(store)}' writes to parameter #{number} of kernel '{kernel.sym_name.data}', which a "
                "launch only lets it read",
                source_location(store),
                [Note("'device.in' here; 'device.out' lets a kernel write", source_location(op))],
            )


def _check_local_memory(launch: LaunchOp, kernel: FuncOp) -> None:
    user = uses_local_memory(kernel)
    name = kernel.sym_name.data
    if user is not None and launch.local_bytes is None:
        raise VerifyError(
            f"kernel '{name}' has dynamic local memory, but its launch does not say how much",
            source_location(launch),
            [Note("it is used here", source_location(user)), "the bytes for a workgroup are the seventh operand"],
        )
    if user is None and launch.local_bytes is not None:
        raise VerifyError(
            f"the launch gives kernel '{name}' local memory, which it does not use",
            source_location(launch),
            ["a kernel gets at it by gpu.dynamic_shared_memory; else leave the seventh operand out"],
        )
