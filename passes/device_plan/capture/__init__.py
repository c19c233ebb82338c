"""Writing the plan into the module: attributes, copies, and the end of annotations.

Afterwards the module says everything that was decided, and nothing else does: planning it again finds all of it
in the module and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from devscope.dialects.device import SCOPE_ATTR, RegionOp, ScopeAttr
from devscope.dialects.scope_attribute import ARGUMENTS, RESULTS, set_signature_attributes, write_scope
from devscope.passes.device_plan.capture.copies import CapturedCopy, CopyPlanner, replace_uses
from devscope.passes.device_plan.domains import HOST_NODE, REMATERIALISED
from devscope.passes.device_plan.signatures import Signature, has_plan
from devscope.passes.device_plan.system import System


@dataclass
class Part:
    """What planning wrote for one instance of a unit of the call graph."""

    system: System
    copies: list[CapturedCopy]
    rematerialised: dict[Operation, list[tuple[Operation, int]]]
    """Per operation of the input that every scope has of its own: itself and its clones, and their scopes."""

    @property
    def placed(self) -> Iterator[tuple[Operation, int, int]]:
        """Every operation that has a scope, its node and the number of the scope, function by function."""
        system = self.system
        for signature in system.signatures.values():
            for op, node in signature.executed:
                yield op, node, system.domains.scope_of(node)
            for original in signature.remats:
                for op, scope in self.rematerialised[original]:
                    yield op, REMATERIALISED, scope


def capture(system: System) -> Part:
    """Write a completed system into its functions, and say what was written."""
    for signature in system.signatures.values():
        _write_signature(system, signature)
    _strip_control_flow(system)
    _consume_annotations(system)
    remats = _Rematerialiser(system)
    final = system.domains.final_scopes()
    copies = CopyPlanner(system, final, remats.need)
    copies.fold_existing()
    copies.resolve_edges()
    copies.fold_chains()
    for signature in system.signatures.values():
        if has_plan(signature.op):
            _place(system, signature, remats, final)
    return Part(system, copies.insert(), remats.placed)


def _write_signature(system: System, signature: Signature) -> None:
    for side, nodes in ((ARGUMENTS, signature.arguments), (RESULTS, signature.results)):
        scopes = [_signature_scope(system, node) for node in nodes]
        set_signature_attributes(signature.op, side, scopes)


def _signature_scope(system: System, node: int) -> ScopeAttr | None:
    """What an argument's or result's attribute says; for a function value, where its first result is."""
    node = system.representative(node)
    return None if node == HOST_NODE else system.scopes.attributes[system.domains.scope_of(node)]


def _strip_control_flow(system: System) -> None:
    """Drop ``device.scope`` where it was a frame or cannot mean anything: control flow and scalars."""
    keep = {*(op for op, _ in system.executed), *system.remats} if system.annotated else set[Operation]()
    for op in system.annotated:
        if op not in keep:
            del op.attributes[SCOPE_ATTR]


def _consume_annotations(system: System) -> None:
    """Replace annotations and frames by the values they stand for."""
    for op in system.transparent:
        for result in op.results:
            replace_uses(result, system.root(result))
        if isinstance(op, RegionOp):
            _inline(op)
        Rewriter.erase_op(op)


def _inline(region: RegionOp) -> None:
    """Move the body's operations to where the region stands."""
    block = region.body.block
    end = block.last_op
    assert end is not None
    Rewriter.erase_op(end)
    Rewriter.inline_block(block, InsertPoint.before(region))


def _place(system: System, signature: Signature, remats: _Rematerialiser, final: Sequence[int]) -> None:
    """Write the scopes of a body's operations."""
    frame, attributes = signature.frame, system.scopes.attributes
    surroundings = system.scopes.closed(frame.scope, system.default) if frame is not None else system.host_scope
    # The function itself says what its body runs on unless an operation says otherwise.
    write_scope(signature.op, attributes[surroundings], implied=False)
    for op, node in signature.executed:
        scope = final[node]
        if op.attributes:
            write_scope(op, attributes[scope], scope == surroundings)
        elif scope != surroundings:
            op.attributes[SCOPE_ATTR] = attributes[scope]
    remats.place(signature, surroundings)


_Needs = dict[int, list[tuple[Operation, int]]]
"""Per scope, in the order of first need: the operands that use a value there."""


class _Rematerialiser:
    """Places constants and their like: one operation per scope that needs the value, instead of copies."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._needs: dict[SSAValue, _Needs] = {}
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
                Rewriter.insert_op(clone, InsertPoint.after(group[-1][0]))
                for user, index in needs[scope]:
                    user.operands[index] = clone.results[0]
                group.append((clone, scope))
            for placed, scope in group:
                write_scope(placed, self._system.scopes.attributes[scope], scope == surroundings)
                for index, value in enumerate(placed.operands):
                    if self._system.nodes.get(value) == REMATERIALISED:
                        self.need(value, scope, placed, index)
            self.placed[op] = group

    def _own_scope(self, op: Operation, surroundings: int) -> int:
        """The scope that an operation names itself, if that is a device, else its surroundings'."""
        attribute = op.attributes.get(SCOPE_ATTR)
        if not isinstance(attribute, ScopeAttr) or not attribute.type_name:
            return surroundings
        return self._system.scopes.closed(self._system.scopes.number(attribute), self._system.default)
