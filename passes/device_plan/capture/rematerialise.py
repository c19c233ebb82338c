"""Constants and their like: one operation per scope that needs the value, instead of copies."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from devscope.dialects.device import SCOPE_ATTR, ScopeAttr
from devscope.dialects.scope_attribute import write_scope
from devscope.passes.device_plan.domains import REMATERIALISED
from devscope.passes.device_plan.signatures import Signature
from devscope.passes.device_plan.system import System

Needs = dict[int, list[tuple[Operation, int]]]
"""Per scope, in the order of first need: the operands that use a value there."""


class Rematerialiser:
    """Places the rematerialised values of one module."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._needs: dict[SSAValue, Needs] = {}
        self.placed: dict[Operation, list[tuple[Operation, int]]] = {}
        """Per operation of the input: itself and its clones, each with the number of its scope."""

    def need(self, value: SSAValue, scope: int, op: Operation, index: int) -> None:
        """Operand ``index`` of ``op`` uses ``value`` on ``scope``."""
        self._needs.setdefault(value, {}).setdefault(scope, []).append((op, index))

    def place(self, signature: Signature, surroundings: int) -> None:
        """Put every such operation of a function where it is needed, users before what they use.

        The operation itself stays on the scope it names if it is needed there, else goes to the scope of its
        surroundings if it is needed there, else to where it is needed first. Clones follow it for the rest.
        """
        for op in reversed(signature.remats):
            own = self._own_scope(op, surroundings)
            needs = next((self._needs[value] for value in op.results if value in self._needs), {})
            order = sorted(needs or (own,), key=lambda scope: (scope != own, scope != surroundings))
            group = [(op, order[0])]
            for scope in order[1:]:
                clone = op.clone()
                block = op.parent
                assert block is not None
                block.insert_op_after(clone, group[-1][0])
                for user, index in needs[scope]:
                    user.operands[index] = clone.results[0]
                group.append((clone, scope))
            for placed, scope in group:
                write_scope(placed, self._system.scopes.attributes[scope], scope == surroundings)
                self._need_operands(placed, scope)
            self.placed[op] = group

    def _own_scope(self, op: Operation, surroundings: int) -> int:
        """The scope that an operation names itself, if that is a device, else its surroundings'."""
        attribute = op.attributes.get(SCOPE_ATTR)
        if not isinstance(attribute, ScopeAttr) or not attribute.type_name:
            return surroundings
        return self._system.scopes.closed(self._system.scopes.number(attribute), self._system.default)

    def _need_operands(self, op: Operation, scope: int) -> None:
        for index, value in enumerate(op.operands):
            if self._system.nodes.get(value) == REMATERIALISED:
                self.need(value, scope, op, index)
