"""An interpreter that counts copies, and enters every loop."""

from __future__ import annotations

from typing import Any

from interpreter import Interpreter
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from devscope.dialects.device import DeviceCopyOp


class CopyCounter(Interpreter):
    """Decides in the same order for the same control flow, and so goes the same way with copies elsewhere."""

    def __init__(self, module: ModuleOp, seed: int) -> None:
        super().__init__(module, seed)
        self.copies = 0

    def _op(self, op: Operation, name: str, values: dict[SSAValue, Any]) -> list[Any]:
        self.copies += isinstance(op, DeviceCopyOp)
        return super()._op(op, name, values)

    def _for(self, op: Operation, values: dict[SSAValue, Any], carried: list[Any]) -> list[Any]:
        return super()._for(op, values, self._region(op.regions[0], values, [0, *carried]))

    def _while(self, op: Operation, values: dict[SSAValue, Any], carried: list[Any]) -> list[Any]:
        _, *entering = self._region(op.regions[0], values, carried)
        return super()._while(op, values, self._region(op.regions[1], values, entering))
