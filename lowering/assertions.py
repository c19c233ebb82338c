"""``cf.assert`` -> a call of the native runtime, which leaves the program's call when the condition does not hold.

Left to MLIR, a failed assertion would end the process.
"""

from __future__ import annotations

from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.llvm_dialect import mlir_location
from devscope.lowering.mlir_util import Builder

ASSERT = "cf.assert"


def drop_assertions(root: Any) -> None:
    """Erase the assertions under ``root``, code of a kernel: a device has no way to leave a program."""
    for op in list(mlir_util.walk(root)):
        if op.name == ASSERT:
            op.erase()


class AssertionCalls:
    """Replaces the assertions of the host code ``module``. Their texts become constants of the module."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self._symbols: dict[str, Any] = {}

    def lower(self, op: Any, where: list[int]) -> None:
        text = _text(op)
        if text not in self._symbols:
            self._symbols[text] = self._append_message(f"devscope_message_{len(self._symbols)}", text)
        build = Builder(op)
        pointer = ir.Type.parse("!llvm.ptr", op.context)
        message = build.value("llvm.mlir.addressof", [], pointer, {"global_name": self._symbols[text]})
        build.call("devscope_assert", [op.operands[0], message])
        op.erase()

    def _append_message(self, symbol: str, text: str) -> Any:
        context = self._module.context
        data = text.encode() + b"\0"
        name, value = ir.FlatSymbolRefAttr.get(symbol, context), ir.StringAttr.get(data, context)
        message = f"llvm.mlir.global private constant {name}({value}) : !llvm.array<{len(data)} x i8>"
        mlir_util.append(self._module, message)
        return name


def _text(op: Any) -> str:
    """What the runtime's device_error.py takes apart again: ``file:line:column: assertion failed: message``."""
    message = ir.StringAttr(op.attributes["msg"]).value
    location = mlir_location(op)
    failed = f"assertion failed: {message}" if message else "assertion failed"
    return f"{location}: {failed}" if location is not None else failed
