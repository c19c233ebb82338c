"""The devices that scopes and modules name."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from devscope.analysis.machine import Machine, nominal_machine
from devscope.analysis.value_kinds import memory_space_of
from devscope.dialects.device import SCOPE_ATTR, TARGET_ATTR, ScopeAttr, TargetAttr
from devscope.dialects.signature import ARGUMENTS, RESULTS, signature_attributes


def machine_of(module: ModuleOp, host: ScopeAttr, default: ScopeAttr) -> Machine:
    """A machine of nominal devices: those that the module names, the default's and the host's."""
    return nominal_machine([device_name(default), *named_devices(module)], device_name(host))


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
