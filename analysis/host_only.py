"""Whether a planned module is for the host alone, as most are: then there is nothing to split, cut or check."""

from collections.abc import Iterable

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from devscope.analysis.value_kinds import memory_space_of
from devscope.dialects.device import HOST_SCOPE, SCOPE_ATTR, ScopeAttr
from devscope.dialects.scope_attribute import ARGUMENTS, RESULTS, signature_attributes


def is_host_only(module: ModuleOp, host: ScopeAttr = HOST_SCOPE) -> bool:
    """Whether all that a module places is on ``host``, and no operation is of the ``device`` dialect."""
    for op in module.walk():
        scopes: list[Attribute | None] = [op.attributes.get(SCOPE_ATTR)]
        if isinstance(op, FuncOp):
            inputs, outputs = op.function_type.inputs.data, op.function_type.outputs.data
            scopes += signature_attributes(op, ARGUMENTS, len(inputs))
            scopes += signature_attributes(op, RESULTS, len(outputs))
            if _says_memory((*inputs, *outputs)):
                return False
        if any(scope is not None and scope != host for scope in scopes) or op.name.startswith("device."):
            return False
        arguments = (argument for region in op.regions for block in region.blocks for argument in block.args)
        if _says_memory(value.type for values in (op.results, arguments) for value in values):
            return False
    return True


def _says_memory(types: Iterable[Attribute]) -> bool:
    return any(memory_space_of(type_) is not None for type_ in types)
