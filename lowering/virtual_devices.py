"""The virtual devices of a program, and the parts of their code, on their way through the lowering."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp

from devscope.analysis.target_binding import TargetBinding
from devscope.dialects.device import TARGET_ATTR, ScopeAttr, TargetAttr
from devscope.dialects.location import source_location
from devscope.errors import LoweringError
from devscope.lowering.boundary import CutModules
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
    def target(self) -> KernelTarget:
        target = find_target(self.attribute.kind_name)
        assert isinstance(target, KernelTarget)
        return target


@dataclass
class VirtualDevice:
    """One virtual device of the program: a slot and a queue, whatever its code is compiled for."""

    slot: int
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
        scope = self.scopes[0]
        return DeviceSpec(
            self.slot, scope.type_name, max(scope.id_value, 0), self.kind, self.binaries, self.kernels
        )


def find_devices(cut: CutModules, binding: TargetBinding) -> list[VirtualDevice]:
    """The virtual devices of a program. Raises LoweringError for a target that nothing can compile for."""
    found: dict[tuple[str, int], VirtualDevice] = {}
    for scope in cut.scopes:
        parts = [DevicePart(where, target, part) for (where, target), part in cut.parts.items() if where == scope]
        key = scope.type_name, max(scope.id_value, 0)
        kind = parts[0].attribute.kind_name if parts else binding.target_of(scope).kind_name
        virtual = found.setdefault(key, VirtualDevice(HOST_SLOT + 1 + len(found), kind, [], []))
        virtual.scopes.append(scope)
        virtual.parts += parts
    for virtual in found.values():
        _check_kinds(virtual)
    return list(found.values())


def _check_kinds(virtual: VirtualDevice) -> None:
    """What is compiled for a device must be of one kind, since it works on the same memory."""
    for part in virtual.parts:
        first = part.module.body.block.first_op
        if part.attribute.kind_name != virtual.kind:
            raise LoweringError(
                f"'{TARGET_ATTR}' is {part.attribute.short()} here and of kind '{virtual.kind}' on another "
                f"function on {part.scope.short()}",
                source_location(first) if first is not None else None,
                ["the targets of one device differ in their options only"],
            )
    if not isinstance(find_target(virtual.kind), KernelTarget):
        scope = virtual.scopes[0]
        first = virtual.parts[0].module.body.block.first_op if virtual.parts else None
        raise LoweringError(
            f"no code generator for target '{virtual.kind}', which '{scope.short()}' asks for",
            source_location(first) if first is not None else None,
            [
                f"targets with one: {', '.join(target_names())}",
                f"build it for another target: --devices {scope.type_name}:{max(scope.id_value, 0)}=opencl:0",
            ],
        )
