"""Groups the device operations of a block into maximal regions that can run as one function.

An operation's *level* counts how often control has to change between scopes before it can run. Operations
of one scope on one level form a region: no operation outside can lie between two members, because it would
have raised the level of the second. Scalar code is transparent, since it is cloned to where it is needed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.ir import Block, Operation, SSAValue

from devscope.analysis.captured_values import free_values, users_in
from devscope.analysis.classify import Classifier, Role, is_free, is_rematerialised, is_terminator
from devscope.analysis.effects import has_side_effects
from devscope.analysis.symbols import callee_name
from devscope.dialects.device import ScopeAttr


@dataclass
class DeviceRegion:
    scope: ScopeAttr
    level: int
    members: list[Operation]

    @property
    def is_call(self) -> bool:
        """Whether the region is but one call of a function that lies on the device as a whole."""
        return len(self.members) == 1 and callee_name(self.members[0]) is not None


@dataclass
class BlockSplit:
    """How one block falls apart."""

    regions: list[DeviceRegion] = field(default_factory=list[DeviceRegion])
    levels: dict[Operation, int] = field(default_factory=dict[Operation, int])
    clonable: set[Operation] = field(default_factory=set[Operation])
    """Scalar code, and constants and empties all of whose users are device work."""
    tied: dict[Operation, ScopeAttr] = field(default_factory=dict[Operation, ScopeAttr])
    """Shape queries: they are cloned to where their tensor lives; other regions get their result passed."""
    control_flow: list[Operation] = field(default_factory=list[Operation])
    """Host operations with regions: their blocks are split on their own."""

    def can_clone(self, op: Operation, scope: ScopeAttr) -> bool:
        """Whether a region on ``scope`` can have its own copy of ``op``."""
        return op in self.clonable and self.tied.get(op, scope) == scope

    def clonable_on(self, scope: ScopeAttr) -> set[Operation]:
        """All operations of which a region on ``scope`` can have its own copy."""
        return {op for op in self.clonable if self.tied.get(op, scope) == scope}


def split_block(block: Block, classifier: Classifier) -> BlockSplit:
    ops = [op for op in block.ops if not is_terminator(op)]
    roles = {op: classifier.role(op) for op in ops}
    needs = {op: free_values(op) for op in ops}
    result = BlockSplit()
    result.clonable = _clonable(block, ops, roles)
    result.tied = {op: scope for op in result.clonable if (scope := classifier.queried_scope(op)) is not None}
    _assign_levels(ops, roles, needs, result)
    _sink_sources(ops, roles, needs, result)
    regions: dict[tuple[ScopeAttr, int], DeviceRegion] = {}
    for op in ops:
        role, scope = roles[op]
        if role is Role.DEVICE and op not in result.clonable:
            level = result.levels[op]
            region = regions.setdefault((scope, level), DeviceRegion(scope, level, []))
            region.members.append(op)
        elif role is Role.HOST and op.regions:
            result.control_flow.append(op)
    result.regions = sorted(regions.values(), key=lambda region: region.level)
    return result


def _clonable(
    block: Block, ops: list[Operation], roles: dict[Operation, tuple[Role, ScopeAttr]]
) -> set[Operation]:
    found: set[Operation] = set()
    for op in ops:
        role, scope = roles[op]
        if role is Role.SCALAR:
            found.add(op)
        elif role is Role.DEVICE and is_rematerialised(op):
            users = users_in(block, op)
            if all(user is not None and roles.get(user) == (Role.DEVICE, scope) for user in users):
                found.add(op)
    return found


def _assign_levels(
    ops: list[Operation],
    roles: dict[Operation, tuple[Role, ScopeAttr]],
    needs: dict[Operation, list[SSAValue]],
    result: BlockSplit,
) -> None:
    """Levels as early as possible; scalar code takes, per scope, the level at which it can be cloned.

    Scalar code that waits for no work comes before all work, on level -1: passing its result costs no change.
    So do copies and views of what is there from the start: a device need not wait for other work of the host.
    """
    clone_levels: dict[Operation, dict[ScopeAttr, int]] = {}
    scopes = {scope for _, scope in roles.values()}

    def needed_level(op: Operation, scope: ScopeAttr) -> int:
        level = -1 if op in result.clonable or is_free(op) else 0
        for value in needs[op]:
            owner = value.owner
            if not isinstance(owner, Operation) or owner not in roles:
                continue
            if result.can_clone(owner, scope):
                level = max(level, clone_levels[owner][scope])
            else:
                level = max(level, result.levels[owner] + (roles[owner][1] != scope))
        return level

    last_effect = 0
    for op in ops:
        role, scope = roles[op]
        if op in result.clonable:
            clone_levels[op] = {s: needed_level(op, s) for s in scopes if result.can_clone(op, s)}
            result.levels[op] = needed_level(op, scope)
            continue
        level = needed_level(op, scope)
        if role is Role.HOST and has_side_effects(op):
            level = last_effect = max(level, last_effect)
        result.levels[op] = level


def _sink_sources(
    ops: list[Operation],
    roles: dict[Operation, tuple[Role, ScopeAttr]],
    needs: dict[Operation, list[SSAValue]],
    result: BlockSplit,
) -> None:
    """Device work that depends on no other work (a fill, say) moves to the level of its first user."""
    for op in reversed(ops):
        role, scope = roles[op]
        if role is not Role.DEVICE or op in result.clonable or _depends_on_work(op, roles, needs, result):
            continue
        block = op.parent
        assert block is not None
        limits: list[int] = []
        for user in users_in(block, op):
            if user is None or user not in roles or user in result.clonable:
                limits.append(result.levels[op])
            else:
                limits.append(result.levels[user] - (roles[user] != (Role.DEVICE, scope)))
        if limits:
            result.levels[op] = max(result.levels[op], min(limits))


def _depends_on_work(
    op: Operation,
    roles: dict[Operation, tuple[Role, ScopeAttr]],
    needs: dict[Operation, list[SSAValue]],
    result: BlockSplit,
) -> bool:
    stack = [op]
    while stack:
        for value in needs[stack.pop()]:
            owner = value.owner
            if isinstance(owner, Operation) and owner in roles:
                if owner not in result.clonable:
                    return True
                stack.append(owner)
    return False
