"""The attribute ``device.scope`` on an operation: read, written only where it says something, dropped."""

from __future__ import annotations

from xdsl.ir import Block, Operation, Region, SSAValue

from devscope.dialects.device import SCOPE_ATTR, ScopeAttr


def scope_on(op: Operation) -> ScopeAttr | None:
    """What an operation's own ``device.scope`` says, None when it says nothing."""
    attribute = op.attributes.get(SCOPE_ATTR)
    return attribute if isinstance(attribute, ScopeAttr) and not attribute.is_open else None


def scope_around(op: Operation) -> ScopeAttr | None:
    """What an operation's own ``device.scope``, or that of the nearest one around it, says."""
    current: Operation | None = op
    while current is not None:
        if (scope := scope_on(current)) is not None:
            return scope
        current = current.parent_op()
    return None


def write_scope(op: Operation, scope: ScopeAttr, implied: bool) -> None:
    """Write ``device.scope`` on an operation, or drop it where its surroundings imply it.

    An attribute that is right already stays, so that it prints as it did.
    """
    attributes = op.attributes
    if implied:
        attributes.pop(SCOPE_ATTR, None)
        return
    present = attributes.get(SCOPE_ATTR)
    if present is None or (present is not scope and present != scope):
        attributes[SCOPE_ATTR] = scope


def drop_scopes(within: Operation | Region | Block) -> None:
    """Leave the scope of everything in ``within``, itself included, to its surroundings."""
    for op in within.walk():
        op.attributes.pop(SCOPE_ATTR, None)


def unplaced(op: Operation, values: dict[SSAValue, SSAValue] | None = None) -> Operation:
    """A clone of an operation that leaves its scope to where it is put; ``values`` are used in place of others."""
    clone = op.clone(values)
    drop_scopes(clone)
    return clone
