"""Moves a region of a block into a new private function and leaves a call."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, StringAttr, SymbolRefAttr, UnitAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from devscope.analysis.captured_values import free_values
from devscope.analysis.classify import is_tensor
from devscope.dialects.device import NOALIAS_ATTR, SCOPE_ATTR, TARGET_ATTR, ScopeAttr, TargetAttr
from devscope.dialects.scope_attribute import unplaced
from devscope.passes.device_split.device_regions import DeviceRegion
from devscope.rewriting.blocks import erase_operations


def outline_region(
    region: DeviceRegion, clonable: set[Operation], dead: set[Operation], name: str, target: TargetAttr
) -> func.FuncOp | None:
    """Build the device function of ``region`` and put a call of it in the region's place.

    Parameters are the values that the region uses but does not make: tensors first, then scalars, each by
    name; results are those that anything but ``dead`` code uses. Returns None if the region is already a
    single call of a device function, which then stays.
    """
    if region.is_call:
        return None
    inputs = _inputs(region, clonable)
    outputs = _outputs(region, dead)
    block = Block(arg_types=[v.type for v in inputs])
    mapping: dict[SSAValue, SSAValue] = dict(zip(inputs, block.args, strict=True))
    for value, argument in zip(inputs, block.args, strict=True):
        argument.name_hint = value.name_hint
    for op in region.members:
        for value in free_values(op):
            _clone_scalar_code(value, clonable, mapping, block)
        block.add_op(unplaced(op, mapping))
    block.add_op(func.ReturnOp(*(mapping[v] for v in outputs)))
    function = _function(name, block, outputs, region.scope, target)
    function.location = region.members[0].location
    call = func.CallOp(SymbolRefAttr(name), inputs, [v.type for v in outputs])
    call.location = region.members[0].location
    last = region.members[-1]
    assert last.parent is not None
    last.parent.insert_op_after(call, last)
    for value, result in zip(outputs, call.results, strict=True):
        result.name_hint = value.name_hint
        value.replace_all_uses_with(result)
    erase_operations(reversed(region.members))  # dead code may still use their results
    return function


def _inputs(region: DeviceRegion, clonable: set[Operation]) -> list[SSAValue]:
    code = set(region.members)
    found: dict[SSAValue, None] = {}
    stack = [v for op in reversed(region.members) for v in reversed(free_values(op))]
    while stack:
        value = stack.pop()
        owner = value.owner
        if isinstance(owner, Operation) and owner in clonable and owner not in code:
            code.add(owner)
            stack.extend(reversed(free_values(owner)))
        elif not isinstance(owner, Operation) or owner not in code:
            found[value] = None
    return sorted(found, key=_parameter_order)


def _parameter_order(value: SSAValue) -> tuple[bool, bool, str]:
    """Buffers first, then scalars; by name, where values without one come last, as they are first used."""
    return not is_tensor(value), value.name_hint is None, value.name_hint or ""


def _outputs(region: DeviceRegion, dead: set[Operation]) -> list[SSAValue]:
    """Results that something outside the region uses."""
    inside = {inner for op in region.members for inner in op.walk()}
    return [
        result
        for op in region.members
        for result in op.results
        if any(use.operation not in inside and use.operation not in dead for use in result.uses)
    ]


def _clone_scalar_code(
    value: SSAValue, clonable: set[Operation], mapping: dict[SSAValue, SSAValue], block: Block
) -> None:
    """Clone what computes ``value`` into ``block``, dependencies first."""
    stack = [value]
    while stack:
        owner = stack[-1].owner
        if stack[-1] in mapping or not isinstance(owner, Operation) or owner not in clonable:
            stack.pop()
            continue
        missing = [v for v in free_values(owner) if v not in mapping and v.owner in clonable]
        if missing:
            stack.extend(missing)
        else:
            block.add_op(unplaced(owner, mapping))
            stack.pop()


def _function(
    name: str, block: Block, outputs: Sequence[SSAValue], scope: ScopeAttr, target: TargetAttr
) -> func.FuncOp:
    function = func.FuncOp(
        name,
        FunctionType.from_lists(list(block.arg_types), [v.type for v in outputs]),
        Region(block),
        visibility=StringAttr("private"),
        arg_attrs=ArrayAttr([_scope_dictionary(v, scope) for v in block.args]),
        res_attrs=ArrayAttr([_scope_dictionary(v, scope) for v in outputs]),
    )
    function.attributes[SCOPE_ATTR] = scope
    function.attributes[TARGET_ATTR] = target
    function.attributes[NOALIAS_ATTR] = UnitAttr()
    return function


def _scope_dictionary(value: SSAValue, scope: ScopeAttr) -> DictionaryAttr:
    entries: dict[str, Attribute] = {SCOPE_ATTR: scope} if is_tensor(value) else {}
    return DictionaryAttr(entries)
