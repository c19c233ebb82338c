"""Groups the device operations of a block into maximal regions that can run as one function.

An operation's *level* counts how often control has to change between scopes before it can run. Operations
of one scope on one level form a region: no operation outside can lie between two members, because it would
have raised the level of the second. Scalar code is transparent, since it is cloned to where it is needed.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Block, Operation

from devscope.analysis.captured_values import definitions_in, users_in
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
        self._assign_levels()
        self._sink_sources()
        regions: dict[tuple[ScopeAttr, int], DeviceRegion] = {}
        for op, (role, scope) in self._roles.items():
            if role is Role.DEVICE and op not in self.clonable:
                level = self.levels[op]
                regions.setdefault((scope, level), DeviceRegion(scope, level, [])).members.append(op)
        self.regions = sorted(regions.values(), key=lambda region: region.level)

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

    def _assign_levels(self) -> None:
        """Levels as early as possible; scalar code takes, per scope, the level at which it can be cloned.

        Scalar code that waits for no work comes before all work, on level -1: passing its result costs no change.
        So do copies and views of what is there from the start: a device need not wait for other work of the host.
        """
        clone_levels: dict[Operation, dict[ScopeAttr, int]] = {}
        scopes = {scope for _, scope in self._roles.values()}

        def needed_level(op: Operation, scope: ScopeAttr) -> int:
            level = -1 if op in self.clonable or is_free(op) else 0
            for owner in self._definitions[op]:
                if self.can_clone(owner, scope):
                    level = max(level, clone_levels[owner][scope])
                else:
                    level = max(level, self.levels[owner] + (self._roles[owner][1] != scope))
            return level

        last_effect = 0
        for op, (role, scope) in self._roles.items():
            level = needed_level(op, scope)
            if op in self.clonable:
                clone_levels[op] = {s: needed_level(op, s) for s in scopes if self.can_clone(op, s)}
            elif role is Role.HOST and has_side_effects(op):
                level = last_effect = max(level, last_effect)
            self.levels[op] = level

    def _sink_sources(self) -> None:
        """Device work that depends on no other work (a fill, say) moves to the level of its first user."""
        for op, role in reversed(self._roles.items()):
            if role[0] is not Role.DEVICE or op in self.clonable or self._depends_on_work(op):
                continue
            limits = [
                self.levels[op]
                if user is None or user not in self._roles or user in self.clonable
                else self.levels[user] - (self._roles[user] != role)
                for user in users_in(self._block, op)
            ]
            self.levels[op] = max(self.levels[op], min(limits, default=self.levels[op]))

    def _depends_on_work(self, op: Operation) -> bool:
        stack = [op]
        while stack:
            definitions = self._definitions[stack.pop()]
            if any(owner not in self.clonable for owner in definitions):
                return True
            stack += definitions
        return False
