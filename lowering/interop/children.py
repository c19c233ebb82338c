"""Operations without the bindings' classes for them.

Iterating over a block makes an instance of the Python class of every operation, for which the bindings import the
Python module of its dialect: half of the time that a small program takes to compile (linalg's module builds all
its named operations). For a dialect without such a module they look for one again for every operation. A walk
gives plain ``ir.Operation`` objects, and gives them faster.
"""

from __future__ import annotations

from typing import Any

from devscope.lowering.interop.bindings import ir


def children(op: Any) -> list[Any]:
    """The operations directly in the regions of ``op``, an ``ir.Operation``, in order."""
    found: list[Any] = []

    def visit(inner: Any) -> Any:
        found.append(inner)
        return _ADVANCE if len(found) == 1 else _SKIP  # the first one is ``op``

    op.walk(visit, _PRE_ORDER)
    return found[1:]


_PRE_ORDER = ir.WalkOrder.PRE_ORDER
_ADVANCE = ir.WalkResult.ADVANCE
_SKIP = ir.WalkResult.SKIP
