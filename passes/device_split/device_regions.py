"""Groups the device operations of a block into maximal regions that can run as one function, and outlines them.

An operation's *level* counts how often control has to change between scopes before it can run. Operations
of one scope on one level form a region: no operation outside can lie between two members, because it would
have raised the level of the second. Scalar code is transparent, since it is cloned to where it is needed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import func
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Block, Operation, Region, SSAValue

from devscope.analysis.assertions import asserts, is_assertion, may_be_guarded
from devscope.analysis.captured_values import definitions_in, free_values, users_in
from devscope.analysis.classify import Classifier, Role, is_free, is_rematerialised, is_tensor, is_terminator
from devscope.analysis.effects import has_side_effects
from devscope.analysis.symbols import callee_name
from devscope.dialects.device import NOALIAS_ATTR, SCOPE_ATTR, TARGET_ATTR, ScopeAttr, TargetAttr
from devscope.dialects.scope_attribute import ARGUMENTS, RESULTS, set_signature_attributes, unplaced
from devscope.rewriting.blocks import erase_operations


@dataclass
class DeviceRegion:
    """Operations of one block that become a function of their own, or one call that stays."""

    scope: ScopeAttr
    members: list[Operation]
    is_call: bool
    """Whether it is but one call of a function that lies on the device as a whole, and stays as it is."""


class BlockSplit:
    """How one block falls apart."""

    def __init__(self, block: Block, classifier: Classifier) -> None:
        self._block = block
        ops = [op for op in block.ops if not is_terminator(op)]
        self._roles = {op: classifier.role(op) for op in ops}
        self._definitions = {op: [d for d in definitions_in(block, op) if d in self._roles] for op in ops}
        self.levels: dict[Operation, int] = {}
        self.clonable = {op for op in ops if self._is_clonable(op)}
        """Scalar code, and constants and empties all of whose users are device work."""
        self._tied = {op: scope for op in self.clonable if (scope := classifier.queried_scope(op)) is not None}
        """Shape queries: they are cloned to where their tensor lives; other regions get their result passed."""
        self.control_flow = [op for op, (role, _) in self._roles.items() if role is Role.HOST and op.regions]
        """Host operations with regions: their blocks are split on their own."""
        self._is_host = classifier.is_host
        self._assign_levels()
        self._sink_sources()
        members: dict[tuple[ScopeAttr, int], list[Operation]] = {}
        for op, (role, scope) in self._roles.items():
            if role is Role.DEVICE and op not in self.clonable:
                members.setdefault((scope, self.levels[op]), []).append(op)
        regions = sorted(members.items(), key=lambda item: item[0][1])
        self.regions = [DeviceRegion(scope, ops, self._is_call(ops)) for (scope, _), ops in regions]

    def can_clone(self, op: Operation, scope: ScopeAttr) -> bool:
        """Whether a region on ``scope`` can have its own copy of ``op``."""
        return op in self.clonable and self._tied.get(op, scope) == scope

    def clonable_on(self, scope: ScopeAttr) -> set[Operation]:
        """All operations of which a region on ``scope`` can have its own copy."""
        return {op for op in self.clonable if self.can_clone(op, scope)}

    def _is_clonable(self, op: Operation) -> bool:
        role, scope = self._roles[op]
        if role is not Role.DEVICE or not is_rematerialised(op):
            return role is Role.SCALAR
        users = users_in(self._block, op)
        return all(user is not None and self._roles.get(user) == (Role.DEVICE, scope) for user in users)

    def _is_call(self, members: Sequence[Operation]) -> bool:
        """Not where the call takes a constant or its like: the region has its own copy, the host none."""
        call = members[0]
        if len(members) > 1 or callee_name(call) is None:
            return False
        return not any(is_tensor(value) and value.owner in self.clonable for value in call.operands)

    def _assign_levels(self) -> None:
        """Levels as early as possible; scalar code takes, per scope, the level at which it can be cloned.

        Scalar code that waits for no work comes before all work, on level -1: passing its result costs no change.
        So do copies and views of what is there from the start: a device need not wait for other work of the host;
        and assertions, which what they guard comes after.
        """
        clone_levels: dict[Operation, dict[ScopeAttr, int]] = {}
        scopes = {scope for _, scope in self._roles.values()}

        def needed_level(op: Operation, scope: ScopeAttr) -> int:
            level = -1 if op in self.clonable or is_free(op) or is_assertion(op) else 0
            for owner in self._definitions[op]:
                if self.can_clone(owner, scope):
                    level = max(level, clone_levels[owner][scope])
                else:
                    level = max(level, self.levels[owner] + (self._roles[owner][1] != scope))
            return max(level, guarded + (not self._is_host(scope))) if may_be_guarded(op) else level

        last_effect = guarded = -1
        for op, (role, scope) in self._roles.items():
            level = needed_level(op, scope)
            if op in self.clonable:
                clone_levels[op] = {s: needed_level(op, s) for s in scopes if self.can_clone(op, s)}
            elif role is Role.HOST and has_side_effects(op):
                level = last_effect = max(level, last_effect)
            if role is Role.HOST and asserts(op):
                guarded = max(level, guarded)
            self.levels[op] = level

    def _sink_sources(self) -> None:
        """Device work that depends on no other work (a fill, say) moves to the level of its first user."""
        dependent: set[Operation] = set()
        for op, definitions in self._definitions.items():
            if any(owner not in self.clonable or owner in dependent for owner in definitions):
                dependent.add(op)
        for op, role in reversed(self._roles.items()):
            if role[0] is not Role.DEVICE or op in self.clonable or op in dependent:
                continue
            limits = [
                self.levels[op]
                if user is None or user not in self._roles or user in self.clonable
                else self.levels[user] - (self._roles[user] != role)
                for user in users_in(self._block, op)
            ]
            self.levels[op] = max(self.levels[op], min(limits, default=self.levels[op]))


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
    call = func.CallOp(name, inputs, [v.type for v in outputs])
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
    types = block.arg_types, [value.type for value in outputs]
    function = func.FuncOp(name, types, Region(block), visibility="private")
    for side, values in ((ARGUMENTS, block.args), (RESULTS, outputs)):
        set_signature_attributes(function, side, [scope if is_tensor(value) else None for value in values])
    function.attributes |= {SCOPE_ATTR: scope, TARGET_ATTR: target, NOALIAS_ATTR: UnitAttr()}
    return function
