"""The virtual devices of a program, and the parts of their code, on their way through the lowering."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp

from devscope.analysis.target_binding import TargetBinding
from devscope.dialects.device import TARGET_ATTR, ScopeAttr, TargetAttr
from devscope.dialects.location import source_location
from devscope.errors import LoweringError, SourceLocation
from devscope.lowering.runtime_calls import HOST_SLOT
from devscope.lowering.target import DeviceBinary, KernelTarget, find_target, target_names
from devscope.runtime.program import DeviceSpec, KernelSpec


@dataclass
class DevicePart:
    """The code of one virtual device for one target, on its way through the lowering."""

    scope: ScopeAttr
    attribute: TargetAttr
    module: ModuleOp

    @property
    def location(self) -> SourceLocation | None:
        """Where it begins in the source."""
        first = self.module.body.block.first_op
        return source_location(first) if first is not None else None

    @property
    def target(self) -> KernelTarget:
        target = find_target(self.attribute.kind_name)
        assert isinstance(target, KernelTarget)
        return target


@dataclass
class VirtualDevice:
    """One virtual device of the program: a slot and a queue, whatever its code is compiled for."""

    slot: int
    name: tuple[str, int]
    """The type and the number of the device."""
    kind: str
    scopes: list[ScopeAttr]
    parts: list[DevicePart]
    binaries: list[bytes] = field(default_factory=list[bytes])
    kernels: list[KernelSpec] = field(default_factory=list[KernelSpec])

    def add(self, binary: DeviceBinary) -> dict[str, int]:
        """Add a binary of a part; returns the numbers of its kernels, which count through all binaries."""
        if not binary.kernels:
            return {}
        first, number = len(self.kernels), len(self.binaries)
        self.binaries.append(binary.data)
        self.kernels += [KernelSpec(name, sizes, number) for name, sizes in binary.kernels]
        return {kernel.name: first + n for n, kernel in enumerate(self.kernels[first:])}

    def spec(self) -> DeviceSpec:
        return DeviceSpec(self.slot, *self.name, self.kind, self.binaries, self.kernels)


def find_devices(scopes: list[ScopeAttr], parts: list[DevicePart], binding: TargetBinding) -> list[VirtualDevice]:
    """The virtual devices of a program. Raises LoweringError for a target that nothing can compile for."""
    found: dict[tuple[str, int], VirtualDevice] = {}
    for scope in scopes:
        own = [part for part in parts if part.scope == scope]
        name = scope.type_name, max(scope.id_value, 0)
        kind = own[0].attribute.kind_name if own else binding.target_of(scope).kind_name
        virtual = found.setdefault(name, VirtualDevice(HOST_SLOT + 1 + len(found), name, kind, [], []))
        virtual.scopes.append(scope)
        virtual.parts += own
    for virtual in found.values():
        _check_kinds(virtual)
    return list(found.values())


def _check_kinds(virtual: VirtualDevice) -> None:
    """What is compiled for a device must be of one kind, since it works on the same memory."""
    for part in virtual.parts:
        if part.attribute.kind_name != virtual.kind:
            raise LoweringError(
                f"'{TARGET_ATTR}' is {part.attribute.short()} here and of kind '{virtual.kind}' on another "
                f"function on {part.scope.short()}",
                part.location,
                ["the targets of one device differ in their options only"],
            )
    if not isinstance(find_target(virtual.kind), KernelTarget):
        device, number = virtual.name
        raise LoweringError(
            f"no code generator for target '{virtual.kind}', which '{virtual.scopes[0].short()}' asks for",
            virtual.parts[0].location if virtual.parts else None,
            [
                f"targets with one: {', '.join(target_names())}",
                f"build it for another target: --devices {device}:{number}=opencl:0",
            ],
        )
