"""The scopes in a function's signature: attributes of its arguments and results."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from devscope.dialects.device import SCOPE_ATTR

ARGUMENTS = "arg_attrs"
RESULTS = "res_attrs"


def signature_attributes(func: FuncOp, side: str, count: int) -> list[Attribute | None]:
    """The ``device.scope`` of each of ``count`` arguments or results; None where there is none.

    ``side`` is `ARGUMENTS` or `RESULTS`. The attributes are not checked to be scopes.
    """
    entries = func.properties.get(side)
    if not isinstance(entries, ArrayAttr):
        return [None] * count
    return [entry.data.get(SCOPE_ATTR) if isinstance(entry, DictionaryAttr) else None for entry in entries]


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
