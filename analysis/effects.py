"""Which operations may be dropped when nobody uses what they compute."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from devscope.analysis.symbols import CALL, Symbols
from devscope.analysis.value_kinds import BUFFER, kind_of
from devscope.dialects.names import op_name

if TYPE_CHECKING:
    from devscope.analysis.manager import AnalysisManager

_PURE_DIALECTS = frozenset({"arith", "complex", "index", "linalg", "math", "scf", "tensor"})
_PURE = frozenset(
    {
        *("device.launch", "device.in", "device.out"),
        *("affine.apply", "affine.max", "affine.min", "bufferization.alloc_tensor", "device.device_copy"),
        *("cf.br", "cf.cond_br", "cf.switch", "func.return", "ub.poison"),
    }
)


class Effects:
    """Purity of the operations of a module whose calls stay as they are."""

    def __init__(self, symbols: Symbols) -> None:
        self._symbols = symbols
        self._pure: dict[FuncOp, bool] = {}
        """The answer per function; False while it is being found, which is the answer for recursive ones."""

    @classmethod
    def of(cls, analyses: AnalysisManager) -> Self:
        return cls(analyses.get(Symbols))

    def can_drop(self, op: Operation) -> bool:
        """Whether an operation, with what is nested in it, only computes its results from tensors and scalars."""
        callees = _callees_if_pure(op, self._symbols)
        return callees is not None and all(self._is_pure(callee) for callee in callees)

    def _is_pure(self, function: FuncOp) -> bool:
        """Whether calls of a function may be dropped: no effects, and it does not call itself."""
        if function in self._pure:
            return self._pure[function]
        stack = [function]
        while stack:
            current = stack[-1]
            callees = self._body_callees(current)
            self._pure.setdefault(current, False)
            waiting = [callee for callee in callees or () if callee not in self._pure]
            if waiting:
                stack += waiting
                continue
            self._pure[current] = callees is not None and all(self._pure[callee] for callee in callees)
            stack.pop()
        return self._pure[function]

    def _body_callees(self, function: FuncOp) -> list[FuncOp] | None:
        if not function.body.blocks:
            return None
        found: list[FuncOp] = []
        for block in function.body.blocks:
            for op in block.ops:
                callees = _callees_if_pure(op, self._symbols)
                if callees is None:
                    return None
                found += callees
        return found


def _callees_if_pure(op: Operation, symbols: Symbols) -> list[FuncOp] | None:
    """The functions that decide whether ``op`` is pure; None if it is not anyway."""
    found: list[FuncOp] = []
    for inner in op.walk():
        name = op_name(inner)
        if name == CALL:
            callee = symbols.callee(inner)
            if callee is None:
                return None
            found.append(callee)
        elif not _is_pure(inner, name):
            return None
    return found


def _is_pure(op: Operation, name: str) -> bool:
    """Whether an operation itself has no effect. What works on buffers may write to them."""
    if name not in _PURE and name.partition(".")[0] not in _PURE_DIALECTS:
        return False
    return all(kind_of(value.type) != BUFFER for value in (*op.operands, *op.results))
