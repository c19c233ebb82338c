"""The attribute ``device.scope`` on operations and in signatures: read, written only where it says something."""

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from devscope.dialects.device import PLACED_BY_ATTR, SCOPE_ATTR, ScopeAttr

ARGUMENTS = "arg_attrs"
RESULTS = "res_attrs"
"""The two sides of a signature, named as the properties that hold their attributes."""


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
        op.attributes.pop(PLACED_BY_ATTR, None)


def unplaced(op: Operation, values: dict[SSAValue, SSAValue] | None = None) -> Operation:
    """A clone of an operation that leaves its scope to where it is put; ``values`` are used in place of others."""
    clone = op.clone(values)
    drop_scopes(clone)
    return clone


def signature_attributes(func: FuncOp, side: str, count: int) -> list[Attribute | None]:
    """The ``device.scope`` of each of ``count`` arguments or results; None where there is none.

    ``side`` is `ARGUMENTS` or `RESULTS`. The attributes are not checked to be scopes.
    """
    return [signature_attribute(func, side, index) for index in range(count)]


def signature_attribute(func: FuncOp, side: str, index: int) -> Attribute | None:
    """As `signature_attributes`, of one argument or result."""
    entries = func.properties.get(side)
    entry = entries.data[index] if isinstance(entries, ArrayAttr) else None
    return entry.data.get(SCOPE_ATTR) if isinstance(entry, DictionaryAttr) else None


def placed_by(op: Operation, side: str = "", index: int = 0) -> str:
    """What ``device.placed_by`` says on an operation, or on one of a function's arguments or results."""
    attributes: Mapping[str, Attribute] = op.attributes
    if side in (ARGUMENTS, RESULTS):
        entries = op.properties.get(side)
        entry = entries.data[index] if isinstance(entries, ArrayAttr) else None
        attributes = entry.data if isinstance(entry, DictionaryAttr) else {}
    return getattr(attributes.get(PLACED_BY_ATTR), "data", "")


def drop_placed_by(op: Operation) -> None:
    """Remove ``device.placed_by`` from everything in ``op``, itself included."""
    for inner in op.walk():
        inner.attributes.pop(PLACED_BY_ATTR, None)
        for side in (ARGUMENTS, RESULTS) if isinstance(inner, FuncOp) else ():
            if isinstance(entries := inner.properties.get(side), ArrayAttr) and PLACED_BY_ATTR in str(entries):
                inner.properties[side] = ArrayAttr([_without_reason(entry) for entry in entries])


def _without_reason(entry: Attribute) -> Attribute:
    if not isinstance(entry, DictionaryAttr):
        return entry
    return DictionaryAttr({name: value for name, value in entry.data.items() if name != PLACED_BY_ATTR})


def set_signature_attributes(func: FuncOp, side: str, scopes: Sequence[Attribute | None]) -> None:
    """Write ``device.scope`` on each argument or result for which ``scopes`` has one; keep all else.

    Attributes that say the same already stay the objects they are, so that they print as they did.
    """
    old = func.properties.get(side)
    entries: list[DictionaryAttr] = (
        [entry for entry in old if isinstance(entry, DictionaryAttr)] if isinstance(old, ArrayAttr) else []
    )
    entries = entries or [DictionaryAttr({})] * len(scopes)
    new = [_with_scope(entry, scope) for entry, scope in zip(entries, scopes, strict=True)]
    if any(a is not b for a, b in zip(entries, new, strict=True)):
        func.properties[side] = ArrayAttr(new)


def _with_scope(entry: DictionaryAttr, scope: Attribute | None) -> DictionaryAttr:
    if scope is None or entry.data.get(SCOPE_ATTR) == scope:
        return entry
    return DictionaryAttr({**entry.data, SCOPE_ATTR: scope})
