"""From a split module to a `Program`: every function through its target's pipeline, then one object file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from devscope.dialects.device import ScopeAttr
from devscope.errors import LoweringError
from devscope.lowering import device, host, mlir_util, opencl, pipelines
from devscope.lowering.boundary import cut_module
from devscope.lowering.codegen.host_object import compile_host_object
from devscope.lowering.constants import ConstantTable, constant_array, extract_constants
from devscope.lowering.entries import add_entry
from devscope.lowering.interop.bindings import ir
from devscope.lowering.interop.session import Session
from devscope.lowering.opencl import DeviceBinary
from devscope.lowering.runtime_calls import HOST_SLOT, lower_to_runtime_calls
from devscope.lowering.signature import function_signature, public_functions
from devscope.lowering.tensors import UNIT_STRIDE_INNERMOST, prepare_tensors
from devscope.passes.split.targets import TargetBinding
from devscope.runtime.native import runtime_ir
from devscope.runtime.program import ConstantSpec, DeviceSpec, Entry, KernelSpec, Program, TensorSpec

#: Host constants up to this many elements are immediate data; larger ones go to the constant table.
_INLINE_ELEMENTS = 16

#: Target kinds with a code generator for kernels.
_KERNEL_TARGETS = {"opencl": (opencl.SCHEDULE, opencl.compile_kernels)}


@dataclass
class _DevicePart:
    slot: int
    scope: ScopeAttr
    kind: str
    binary: DeviceBinary = field(default_factory=lambda: DeviceBinary(b"", []))


def compile_split_module(session: Session, module: ModuleOp, binding: TargetBinding) -> Program:
    """Compile a split xDSL module, which is consumed.

    Raises LoweringError for what a target cannot compile, with its location in the source.
    """
    public = _public_signatures(module)
    cut = cut_module(module, binding)
    parts = [
        _DevicePart(slot, scope, _checked_kind(scope, binding))
        for slot, scope in enumerate(cut.devices, start=HOST_SLOT + 1)
    ]
    constants = ConstantTable()
    host_module = session.to_mlir(cut.host)
    with session.context:
        _lower_host_functions(session, host_module, constants)
        kernels: dict[str, int] = {}
        for part in parts:
            device_module = session.to_mlir(cut.devices[part.scope])
            part.binary = _lower_device(session, device_module, part, constants)
            kernels.update(part.binary.numbers())
            _merge_functions(host_module, device_module)
        symbols = _add_entries(host_module, list(public))
        slots = {_space_text(session, part.scope): part.slot for part in parts}
        lower_to_runtime_calls(host_module, slots, kernels)
        text = host.to_llvm_text(host_module, session.run_passes)
    host_object = compile_host_object(text, runtime_ir(), list(symbols.values()))
    arrays = [constant_array(attribute) for attribute in constants.attributes()]
    return Program(
        entries={
            name: Entry(symbols[name], inputs, outputs) for name, (inputs, outputs) in public.items()
        },
        host_object=host_object.data,
        host_triple=host_object.machine.triple,
        host_cpu=host_object.machine.cpu,
        host_features=host_object.machine.features,
        devices=[
            DeviceSpec(
                slot=part.slot,
                type=part.scope.type_name,
                id=max(part.scope.id_value, 0),
                kind=part.kind,
                binary=part.binary.data,
                kernels=[KernelSpec(name, sizes) for name, sizes in part.binary.kernels],
            )
            for part in parts
        ],
        constants=[
            ConstantSpec(str(ir.ShapedType(a.type).element_type), list(ir.ShapedType(a.type).shape))
            for a in constants.attributes()
        ],
        constant_data=list(arrays),
    )


def _checked_kind(scope: ScopeAttr, binding: TargetBinding) -> str:
    kind = binding.target_of(scope).kind_name
    if kind not in _KERNEL_TARGETS:
        raise LoweringError(
            f"no code generator for target '{kind}', which '{scope.short()}' asks for",
            notes=[
                f"targets with one: cpu, {', '.join(_KERNEL_TARGETS)}",
                f"build it for another target: --devices {scope.short()}=opencl:0",
            ],
        )
    return kind


def _lower_host_functions(session: Session, module: Any, constants: ConstantTable) -> None:
    for func in mlir_util.functions(module):
        if mlir_util.has_body(func):
            device.protect_arguments(func)
    session.run_passes(module, pipelines.LIFT_CONTROL_FLOW)
    extract_constants(module, constants, wanted=lambda elements: elements > _INLINE_ELEMENTS)
    prepare_tensors(module, session.run_passes, UNIT_STRIDE_INNERMOST)
    session.run_passes(module, pipelines.BUFFERIZE)
    session.run_passes(module, pipelines.DEALLOCATE)


def _lower_device(
    session: Session, module: Any, part: _DevicePart, constants: ConstantTable
) -> DeviceBinary:
    schedule, compile_kernels = _KERNEL_TARGETS[part.kind]
    space = ir.Attribute.parse(_space_text(session, part.scope))
    gpu_modules = device.lower_device_functions(module, space, constants, schedule, session.run_passes)
    if not gpu_modules.body.operations:
        return DeviceBinary(b"", [])
    return compile_kernels(gpu_modules, session.run_passes)


def _space_text(session: Session, scope: ScopeAttr) -> str:
    """A scope as the memory space attribute it becomes in MLIR."""
    return str(ir.Attribute.parse(str(scope), session.context))


def _merge_functions(target: Any, source: Any) -> None:
    """Move all operations of ``source`` into ``target``; definitions replace declarations of their name."""
    present = {
        mlir_util.symbol_name(op.operation): op.operation
        for op in target.body.operations
        if "sym_name" in op.operation.attributes
    }
    for op in [op.operation for op in source.body.operations]:
        old = present.get(mlir_util.symbol_name(op))
        if old is not None and old.name == "func.func" and not mlir_util.has_body(old):
            old.erase()
        elif old is not None:
            continue  # a shared helper or constant that stands there already
        op.detach_from_parent()
        target.body.append(op)


def _add_entries(module: Any, names: list[str]) -> dict[str, str]:
    functions = {mlir_util.symbol_name(f): f for f in mlir_util.functions(module)}
    return {name: add_entry(module, functions[name]) for name in names}


def _public_signatures(module: ModuleOp) -> dict[str, tuple[list[TensorSpec], list[TensorSpec]]]:
    return {f.sym_name.data: function_signature(f) for f in public_functions(module)}
