"""Which device a scope names, and which target compiles for it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Self

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from devscope.analysis.value_kinds import memory_space_of
from devscope.dialects.device import SCOPE_ATTR, TARGET_ATTR, ScopeAttr, TargetAttr
from devscope.dialects.scope_attribute import ARGUMENTS, RESULTS, signature_attributes
from devscope.dialects.target import get_target_kind
from devscope.errors import OptionError

HOST_KIND = "cpu"


def device_name(scope: ScopeAttr) -> str:
    """The device of a scope that names one; an open id is 0."""
    return f"{scope.type_name}:{max(scope.id_value, 0)}"


def named_devices(module: ModuleOp) -> list[str]:
    """Every device that a module names: in scopes, copies, annotations, targets and types of buffers; sorted."""
    found: set[Attribute | None] = set()
    for op in module.walk():
        found.update(op.attributes.values())
        found.update(memory_space_of(result.type) for result in op.results)
        if isinstance(op, FuncOp):
            sides = ((ARGUMENTS, op.function_type.inputs.data), (RESULTS, op.function_type.outputs.data))
            for side, types in sides:
                found.update(map(memory_space_of, types))
                found.update(signature_attributes(op, side, len(types)))
            target = op.attributes.get(TARGET_ATTR)
            if SCOPE_ATTR not in op.attributes and isinstance(target, TargetAttr):
                found.add(ScopeAttr.get(target=target))
    return sorted({device_name(a) for a in found if isinstance(a, ScopeAttr) and a.type_name})


@dataclass(frozen=True)
class TargetBinding:
    """The target of each virtual device: what its scope says, else an override, else its type's own kind.

    ``overrides`` maps a virtual device (``"opencl:1"``) or a device type (``"opencl"``) to a target kind,
    so that a program planned for one kind of device can be built for another.
    """

    overrides: dict[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def parse(cls, items: Iterable[str]) -> Self:
        """From ``DEVICE=KIND`` items, such as ``opencl:1=cpu``; raises OptionError on anything else."""
        overrides: dict[str, str] = {}
        for item in items:
            device, separator, kind = item.partition("=")
            if not separator or not device:
                raise OptionError(f"'{item}' is not a target binding", notes=["write DEVICE=KIND: opencl:1=cpu"])
            get_target_kind(kind)
            ScopeAttr.parse_text(device)
            overrides[device] = kind
        return cls(overrides)

    def kind_of(self, device: str) -> str:
        """The target kind that a virtual device is built for, unless its scope names another one."""
        type_ = device.partition(":")[0]
        return self.overrides.get(device) or self.overrides.get(type_) or type_

    def target_of(self, scope: ScopeAttr) -> TargetAttr:
        """The target that code on ``scope`` is compiled for."""
        for name in (device_name(scope), scope.type_name):
            if name in self.overrides:
                return TargetAttr.get(self.overrides[name])
        return scope.target_attr or TargetAttr.get(scope.type_name or HOST_KIND)

    def target_in(self, scope: ScopeAttr, function: Attribute | None) -> TargetAttr:
        """The target of code on ``scope`` in a function whose ``device.target`` is ``function``.

        The function's is the default of what its scopes leave open. It cannot make a device something else: code
        that is built for another kind than the device's own keeps that kind.
        """
        target = self.target_of(scope)
        if target != scope.target_attr and isinstance(function, TargetAttr) and function.kind == target.kind:
            return function
        return target

    def in_host_memory(self, scope: ScopeAttr) -> bool:
        """True if data on ``scope`` is ordinary host memory, so that no copy and no handle is needed."""
        return self.target_of(scope).kind_name == HOST_KIND
