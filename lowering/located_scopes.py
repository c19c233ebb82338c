"""Scopes of operations that passes replace: they go with their locations."""

import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from devscope.dialects.device import PLACED_BY_ATTR, SCOPE_ATTR
from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir

_CARRIED = (SCOPE_ATTR, PLACED_BY_ATTR)
_MARK = "devscope.scoped:"
_MARKED = re.compile(rf'loc\("{_MARK}(\d+)"')


def is_payload(op: Any) -> bool:
    """Whether an operation, not in the body of another one, computes with tensors."""
    parent = op.parent
    while parent is not None and parent.name != "func.func":
        if parent.name.startswith("linalg.") or parent.name == "scf.forall":
            return False
        parent = parent.parent
    if op.name in ("tensor.empty", "tensor.dim", "tensor.extract", "tensor.from_elements", "arith.constant"):
        return False
    return any(isinstance(result.type, ir.RankedTensorType) for result in op.results)


def scope_of(op: Any) -> dict[str, Any]:
    """What an operation says of its scope, as attributes of another one."""
    return {SCOPE_ATTR: op.attributes[SCOPE_ATTR]} if SCOPE_ATTR in op.attributes else {}


@contextmanager
def scopes_by_location(
    module: Any, is_scoped: Callable[[Any], bool], gets_scope: Callable[[Any], bool] = is_payload
) -> Generator[None]:
    """What is made of operations of ``module`` that have a scope gets it, if ``gets_scope``."""
    scoped: list[tuple[dict[str, Any], Any]] = []
    for op in mlir_util.walk(module.operation):
        if is_scoped(op) and SCOPE_ATTR in op.attributes:
            said = {name: op.attributes[name] for name in _CARRIED if name in op.attributes}
            scoped.append((said, op.location))
            op.location = ir.Location.name(f"{_MARK}{len(scoped) - 1}", op.location, module.context)
    yield
    for op in mlir_util.walk(module.operation) if scoped else ():
        match = _MARKED.search(str(op.location))
        if match is None:
            continue
        said, op.location = scoped[int(match[1])]
        for name, value in said.items() if gets_scope(op) else ():
            op.attributes[name] = value
