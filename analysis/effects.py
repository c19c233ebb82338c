"""Effects of operations: which only compute their results, on operations and through calls.

What one operation does by itself is a fact (`dialects.op_facts`). xDSL's traits of memory effects say it of
registered operations only, which most of a program's are not in a compilation, and nothing of calls.
"""

from collections.abc import Iterator
from typing import Self

from xdsl.dialects.builtin import IntegerAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from devscope.analysis.manager import AnalysisManager
from devscope.analysis.symbols import CALL, Symbols
from devscope.analysis.value_kinds import BUFFER, kind_of
from devscope.dialects.names import op_name
from devscope.dialects.op_facts import facts_of


def has_side_effects(op: Operation) -> bool:
    """Whether an operation, or one in its regions, does more than to compute its results. Calls do."""
    return any(not _is_pure(inner) for inner in op.walk())


class Effects:
    """Purity of the operations of a module whose calls stay as they are: calls are what their callees are."""

    def __init__(self, symbols: Symbols) -> None:
        self._symbols = symbols
        self._pure: dict[FuncOp, bool] = {}
        """The answer per function; False while it is being found, which is the answer for recursive ones."""

    @classmethod
    def of(cls, analyses: AnalysisManager) -> Self:
        return cls(analyses.get(Symbols))

    def is_pure(self, op: Operation) -> bool:
        """Whether an operation, with what is nested in it, only computes its results from tensors and scalars."""
        callees = self._callees_if_pure(op.walk())
        return callees is not None and all(self._returns_only(callee) for callee in callees)

    def _returns_only(self, function: FuncOp) -> bool:
        """Whether calls of a function have no effects, and it does not call itself."""
        stack = [function] if function not in self._pure else []
        while stack:
            current = stack[-1]
            body = (op for block in current.body.blocks for op in block.walk())
            callees = self._callees_if_pure(body) if current.body.blocks else None
            self._pure.setdefault(current, False)
            waiting = [callee for callee in callees or () if callee not in self._pure]
            if waiting:
                stack += waiting
                continue
            self._pure[current] = callees is not None and all(self._pure[callee] for callee in callees)
            stack.pop()
        return self._pure[function]

    def _callees_if_pure(self, ops: Iterator[Operation]) -> list[FuncOp] | None:
        """The functions that decide whether operations are pure; None if these are not anyway."""
        found: list[FuncOp] = []
        for op in ops:
            if op_name(op) == CALL:
                callee = self._symbols.callee(op)
                if callee is None:
                    return None
                found.append(callee)
            elif not _is_pure(op):
                return None
        return found


def _is_pure_call(op: Operation) -> bool:
    """Whether it calls something outside of the program that only computes, as the program itself says."""
    if op_name(op) != "stablehlo.custom_call":
        return False
    effect = op.get_attr_or_prop("has_side_effect")
    return effect is None or (isinstance(effect, IntegerAttr) and not effect.value.data)


def _is_pure(op: Operation) -> bool:
    """Whether an operation itself has no effect. On memory it may write, or read what others write."""
    row = facts_of(op)
    return (bool(row.pure) or _is_pure_call(op)) and (
        row.query or not any(kind_of(value.type) == BUFFER for value in (*op.operands, *op.results))
    )
