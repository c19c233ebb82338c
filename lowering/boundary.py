"""Cuts a split module into one for the host, which holds device data as buffers, and one per device and target.

In the host's functions a tensor that lives on a device becomes a memref whose memory space is its scope,
and ``device.device_copy`` becomes an allocation and a ``memref.copy`` between spaces. Everything MLIR does
with buffers afterwards (carrying them through loops, freeing them) then works on device buffers unchanged.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from xdsl.dialects import func
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    MemRefType,
    ModuleOp,
    NoneAttr,
    StringAttr,
    TensorType,
)
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.rewriter import Rewriter

from devscope.analysis.host_only import is_host_only
from devscope.analysis.scope_analysis import ScopeAnalysis
from devscope.analysis.symbols import Symbols, callee_name, is_kernel
from devscope.analysis.target_binding import TargetBinding
from devscope.dialects.device import SCOPE_ATTR, TARGET_ATTR, DeviceCopyOp, ScopeAttr, TargetAttr
from devscope.dialects.location import source_location
from devscope.dialects.names import op_name
from devscope.dialects.target import OptionValue, get_target_kind
from devscope.errors import LoweringError, SourceLocation, option_note
from devscope.lowering.target import (
    HOST_SLOT,
    ClaimedTarget,
    DeviceBinary,
    KernelTarget,
    find_target,
    target_names,
)
from devscope.rewriting.functions import drop_idle_kernels
from devscope.runtime.program import DeviceSpec, KernelSpec


@dataclass
class DevicePart:
    """The code of one virtual device for one target, on its way through the lowering."""

    scope: ScopeAttr
    attribute: TargetAttr
    module: ModuleOp
    given: Mapping[str, OptionValue] = field(default_factory=dict[str, OptionValue])
    """Options of the device that it will run on."""

    @property
    def options(self) -> Mapping[str, OptionValue]:
        """Those of the target; of the device where it says no others."""
        return {**self.given, **self.attribute.option_values}

    @property
    def location(self) -> SourceLocation | None:
        """Where it begins in the source."""
        first = self.module.body.block.first_op
        return source_location(first) if first is not None else None

    @property
    def enqueues(self) -> bool:
        """Whether it is a backend's code for devices that devscope drives: it has a library enqueue work."""
        target = find_target(self.attribute.kind_name)
        return isinstance(target, ClaimedTarget) and target.kind.device_type != target.kind.name

    @property
    def target(self) -> KernelTarget:
        """What compiles it; `cut_module` has found it."""
        target = find_target(self.attribute.kind_name)
        assert isinstance(target, KernelTarget)
        return target


@dataclass
class VirtualDevice:
    """One virtual device of the program: a slot and a queue, whatever its code is compiled for."""

    spec: DeviceSpec
    scopes: list[ScopeAttr] = field(default_factory=list[ScopeAttr])
    parts: list[DevicePart] = field(default_factory=list[DevicePart])

    def add(self, binary: DeviceBinary) -> dict[str, int]:
        """Add a binary of a part; returns the numbers of its kernels, which count through all binaries."""
        if not binary.kernels:
            return {}
        first, number = len(self.spec.kernels), len(self.spec.binaries)
        self.spec.binaries.append(binary.data)
        self.spec.kernels += [KernelSpec(name, sizes, number) for name, sizes in binary.kernels]
        return {kernel.name: first + n for n, kernel in enumerate(self.spec.kernels[first:])}


def cut_module(module: ModuleOp, binding: TargetBinding) -> list[VirtualDevice]:
    """Take a split module apart; what stays in ``module`` is the host's. Each part verifies on its own.

    Raises LoweringError for a target that nothing can compile for.
    """
    drop_idle_kernels(module)
    functions = [op for op in module.body.block.ops if isinstance(op, func.FuncOp)]
    device_of = {function: _device_of(function, binding) for function in functions}
    if not any(device_of.values()) and is_host_only(module):
        return []
    spaces = _convert_host(ScopeAnalysis(module), [f for f in functions if device_of[f] is None], binding)
    parts: dict[tuple[ScopeAttr, TargetAttr], ModuleOp] = {}
    for function, scope in device_of.items():
        if scope is None:
            continue
        if not is_kernel(function):
            inputs = [_buffer_type(t, scope) for t in function.function_type.inputs]
            outputs = [_buffer_type(t, scope) for t in function.function_type.outputs]
            declaration = _declaration(function, FunctionType.from_lists(inputs, outputs))
            module.body.block.insert_op_before(declaration, function)
        function.detach()
        target = function.attributes[TARGET_ATTR]
        assert isinstance(target, TargetAttr)
        parts.setdefault((scope, target), ModuleOp([])).body.block.add_op(function)
    _declare_external_functions(list(parts.values()))
    scopes = list(dict.fromkeys([scope for scope, _ in parts] + spaces))
    return _find_devices(scopes, [DevicePart(*where, part) for where, part in parts.items()], binding)


def _find_devices(scopes: list[ScopeAttr], parts: list[DevicePart], binding: TargetBinding) -> list[VirtualDevice]:
    """The virtual devices where ``scopes`` have code or data, and their code.

    A device may have no code, since data can be placed there without being worked on, and several parts, whose
    targets differ.
    """
    found: dict[tuple[str, int], VirtualDevice] = {}
    for scope in scopes:
        own = [part for part in parts if part.scope == scope]
        name = scope.type_name, max(scope.id_value, 0)
        compiled = next((part for part in own if not part.enqueues), None)
        kind = binding.target_of(scope).kind_name if compiled is None else compiled.attribute.kind_name
        virtual = found.setdefault(name, VirtualDevice(DeviceSpec(HOST_SLOT + 1 + len(found), *name, kind)))
        virtual.scopes.append(scope)
        virtual.parts += own
    for virtual in found.values():
        _check_kinds(virtual, list(found.values()))
    return list(found.values())


def _check_kinds(virtual: VirtualDevice, others: list[VirtualDevice]) -> None:
    """What is compiled for a device must be of one kind, since it works on the same memory.

    Where there is no code for that kind, the advice is for all of ``others`` of which this is so.
    """
    kind = virtual.spec.kind
    for part in virtual.parts:
        if part.enqueues and part.target.kind.device_type != get_target_kind(kind).device_type:
            raise LoweringError(
                f"backend '{part.attribute.kind_name}' computes on devices of type "
                f"'{part.target.kind.device_type}', but {part.scope.short()} is built for '{kind}'",
                part.location,
                ["leave the backend out, or build for a device of its type"],
            )
        if part.attribute.kind_name != kind and not part.enqueues:
            raise LoweringError(
                f"'{TARGET_ATTR}' is {part.attribute.short()} here and of kind '{kind}' on another "
                f"function on {part.scope.short()}",
                part.location,
                ["the targets of one device differ in their options only"],
            )
    if not isinstance(find_target(kind), KernelTarget):
        lacking = [one.spec.name for one in others if not isinstance(find_target(one.spec.kind), KernelTarget)]
        raise LoweringError(
            f"no code generator for target '{kind}', which '{virtual.scopes[0].short()}' asks for",
            virtual.parts[0].location if virtual.parts else None,
            [
                f"targets with one: {', '.join(target_names())}",
                option_note("build it for another target:", "devices", dict.fromkeys(lacking, "opencl:0")),
            ],
        )


def _device_of(function: func.FuncOp, binding: TargetBinding) -> ScopeAttr | None:
    """Where a function runs; None for the host."""
    scope = function.attributes.get(SCOPE_ATTR)
    return scope if isinstance(scope, ScopeAttr) and not binding.in_host_memory(scope) else None


def _declare_external_functions(parts: list[ModuleOp]) -> None:
    """Declare in each part what it calls of another one, whose launchers it is linked with."""
    tables = [Symbols(part).functions for part in parts]
    functions = {name: f for table in tables for name, f in table.items()}
    for part, table in zip(parts, tables, strict=True):
        present = set(table)
        for op in list(part.walk()):
            callee = callee_name(op)
            if callee is None or callee in present:
                continue
            present.add(callee)
            declaration = _declaration(functions[callee], functions[callee].function_type)
            # Bufferisation takes it for granted that a function without a body writes to its arguments.
            read = DictionaryAttr({"bufferization.access": StringAttr("read")})
            is_read = [isinstance(input_, TensorType) for input_ in declaration.function_type.inputs]
            declaration.properties["arg_attrs"] = ArrayAttr([read if i else DictionaryAttr({}) for i in is_read])
            part.body.block.add_op(declaration)


def _declaration(function: func.FuncOp, type_: FunctionType) -> func.FuncOp:
    """What other modules see of ``function``."""
    declaration = func.FuncOp(function.sym_name.data, type_, Region(), visibility="private")
    declaration.location = function.location
    return declaration


def _buffer_type(type_: Attribute, scope: ScopeAttr) -> Attribute:
    if not isinstance(type_, TensorType):
        return type_
    return MemRefType(type_.get_element_type(), type_.get_shape(), NoneAttr(), scope)


def _convert_host(scopes: ScopeAnalysis, hosts: list[func.FuncOp], binding: TargetBinding) -> list[ScopeAttr]:
    """Make the device data of the host's functions buffers; returns the devices that hold it."""

    def space(value: SSAValue) -> ScopeAttr | None:
        """The device scope that holds a tensor; None for host memory."""
        if not isinstance(value.type, TensorType):
            return None
        scope = scopes.of_value(value)
        return None if scope.is_open or binding.in_host_memory(scope) else scope

    values = [value for function in hosts for value in _values(function)]
    spaces = [(value, where) for value in values if (where := space(value)) is not None]
    copies = [op for function in hosts for op in function.walk() if isinstance(op, DeviceCopyOp)]
    places = {copy: (space(copy.operand), space(copy.result)) for copy in copies}
    for value, where in spaces:
        Rewriter.replace_value_with_new_type(value, _buffer_type(value.type, where))
    if spaces or copies:
        # Imported here because the dialects behind it are: programs for the host alone do without them.
        from devscope.lowering.transfers import lower_copy, lower_dims

        for copy, (source, target) in places.items():
            lower_copy(copy, source, target)
        for function in hosts:
            lower_dims(function)
    for function in hosts:
        _check_operations(function)
        _update_signature(function)
    return list(dict.fromkeys(where for _, where in spaces))


def _values(function: func.FuncOp) -> list[SSAValue]:
    """What is defined in a function, its arguments first."""
    values: list[SSAValue] = []
    for op in function.walk():
        values += op.results
        values += (a for region in op.regions for block in region.blocks for a in block.args)
    return values


_CARRIERS = frozenset({"func.func", "func.call", "func.return", "memref.dim", "memref.copy", "memref.alloc"})


def _check_operations(function: func.FuncOp) -> None:
    """Only what carries buffers on may have device buffers among its operands and results."""
    for op in function.walk():
        name = op_name(op)
        if name in _CARRIERS or name.startswith(("scf.", "cf.", "memref.", "bufferization.")):
            continue
        types = [value.type for value in (*op.operands, *op.results)]
        if any(isinstance(type_, MemRefType) and isinstance(type_.memory_space, ScopeAttr) for type_ in types):
            raise LoweringError(
                f"operation '{name}' uses data of a device on the host",
                source_location(op),
                ["put a device.device_copy before it, or place it on the device"],
            )


def _update_signature(function: func.FuncOp) -> None:
    if function.is_declaration:
        return
    outputs = list(function.function_type.outputs)
    for block in function.body.blocks:
        if isinstance(block.last_op, func.ReturnOp):
            outputs = [value.type for value in block.last_op.operands]
    types = FunctionType.from_lists([argument.type for argument in function.args], outputs)
    function.properties["function_type"] = types
