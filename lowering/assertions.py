"""``cf.assert`` -> a call of the native runtime, which leaves the program's call when the condition does not hold.

Left to MLIR, a failed assertion would end the process.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.llvm_dialect import mlir_location
from devscope.lowering.mlir_util import Builder

_ASSERT = "cf.assert"
_MESSAGE_PREFIX = "devscope_message_"


def is_assertion(op: Any) -> bool:
    return op.name == _ASSERT


def drop_assertions(root: Any) -> None:
    """Erase the assertions under ``root``, code of a kernel: a device has no way to leave a program."""
    for op in list(mlir_util.walk(root)):
        if is_assertion(op):
            op.erase()


def lower_assertions(module: Any, assertions: Iterable[Any]) -> None:
    """Replace assertions anywhere in the host code ``module``. Their texts become constants of the module."""
    symbols: dict[str, str] = {}
    for op in assertions:
        text = _text(op)
        symbol = symbols.setdefault(text, f"{_MESSAGE_PREFIX}{len(symbols)}")
        _call_runtime(op, symbol)
        op.erase()
    for text, symbol in symbols.items():
        _append_message(module, symbol, text)


def _text(op: Any) -> str:
    """What the runtime's device_error.py takes apart again: ``file:line:column: assertion failed: message``."""
    message = ir.StringAttr(op.attributes["msg"]).value
    location = mlir_location(op)
    failed = f"assertion failed: {message}" if message else "assertion failed"
    return f"{location}: {failed}" if location is not None else failed


def _call_runtime(op: Any, symbol: str) -> None:
    build = Builder(op)
    pointer = ir.Type.parse("!llvm.ptr", op.context)
    name = ir.FlatSymbolRefAttr.get(symbol, op.context)
    message = build.value("llvm.mlir.addressof", [], pointer, {"global_name": name})
    build.call("devscope_assert", [op.operands[0], message])


def _append_message(module: Any, symbol: str, text: str) -> None:
    context = module.context
    data = text.encode() + b"\0"
    byte = ir.IntegerType.get_signless(8, context)
    array = ir.Type.parse(f"!llvm.array<{len(data)} x {byte}>", context)
    message = ir.Operation.create(
        "llvm.mlir.global",
        attributes={
            "sym_name": ir.StringAttr.get(symbol, context),
            "global_type": ir.TypeAttr.get(array),
            "linkage": ir.Attribute.parse("#llvm.linkage<private>", context),
            "constant": ir.UnitAttr.get(context),
            "value": ir.StringAttr.get(data, context),
        },
        regions=1,
        loc=ir.Location.unknown(context),
    )
    module.body.append(message)
