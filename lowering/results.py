"""Finds the allocations whose memory an entry returns, so that callers can say where results go.

The runtime asks for each whether the caller has an array for it (``devscope_result_alloc``). What is not found
here is copied there after the call, which is always right.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir

RESULT_ATTR = "devscope.result"
"""Of a ``memref.alloc``: which result of its entry it is."""

# The memory that they give is all of their operand's.
_CASTS = {"memref.cast", "memref.expand_shape", "memref.collapse_shape"}


def mark_results(module: Any, entries: Iterable[str]) -> None:
    """Mark the allocations that the functions ``entries`` return on all paths, made there once per call."""
    functions = {mlir_util.symbol_name(function): function for function in mlir_util.functions(module)}
    calls = Counter(_callee(op) for op in mlir_util.walk(module.operation) if op.name in _CALLEES)
    returned = {name: _returned(function) for name, function in functions.items()}
    i64 = ir.IntegerType.get_signless(64, module.context)
    for name in entries:
        for position, value in enumerate(returned[name] if not calls[name] else ()):
            made = _maker(value, functions[name])
            while made is not None and made[0].name == "func.call" and calls[callee := _callee(made[0])] == 1:
                made = _maker(returned[callee][made[1]], functions[callee]) if returned[callee] else None
            if made is not None and made[0].name == "memref.alloc" and RESULT_ATTR not in made[0].attributes:
                made[0].attributes[RESULT_ATTR] = ir.IntegerAttr.get(i64, position)


_CALLEES = {"func.call": "callee", "func.constant": "value"}


def _callee(op: Any) -> str:
    return ir.FlatSymbolRefAttr(op.attributes[_CALLEES[op.name]]).value


def _returned(function: Any) -> list[Any]:
    """The operands of its return; none where there are several paths."""
    blocks = function.regions[0].blocks
    return list(mlir_util.children(function)[-1].operands) if len(blocks) == 1 else []


def _maker(value: Any, function: Any) -> tuple[Any, int] | None:
    """What makes the memory of a result of ``function``, with the number of its own; None where it may not run."""
    while not isinstance(value.owner, ir.Block):
        op = value.owner.operation
        if op.parent.operation != function.operation:
            return None
        if op.name not in _CASTS:
            return op, ir.OpResult(value).result_number
        value = op.operands[0]
    return None
