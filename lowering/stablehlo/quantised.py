"""Quantised types whose storage has no sign: upstream converts them to integers that have one, as if they were these."""

import re
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.mlir_util import Builder
from devscope.lowering.stablehlo.templates import shape, tensor

_UNSIGNED = re.compile(r"(!quant\.uniform<)u(\d+)(?:<(\d+):(\d+)>)?:")
_KEPT = frozenset({"func.func", "func.call", "stablehlo.bitcast_convert", "stablehlo.constant"})
"""What says how a value is stored: it is so, and what computes with it has a wider storage, with a sign."""
_GIVEN = frozenset({"func.return", "func.call", "stablehlo.bitcast_convert"})


def widen_storage(module: Any) -> None:
    """Compute with ``u8`` as with ``i16<0:255>``, and so on."""
    ops = mlir_util.walk(module.operation)[1:]
    for op in ops:
        for number, value in enumerate(op.operands) if op.name in _GIVEN else ():
            if wide := _wide(value.type):
                op.operands[number] = _converted(Builder(op), value, wide, value.type)
    for op in ops:
        for value in mlir_util.defined_values(op):
            if not (wide := _wide(value.type)):
                continue
            if op.name not in _KEPT:
                value.set_type(wide)
                continue
            users = list(value.uses)
            new = _converted(_behind(op), value, value.type, wide)
            for use in users:
                use.owner.operands[use.operand_number] = new


def _behind(op: Any) -> Builder:
    if op.name == "func.func":
        return Builder(mlir_util.first_child(op))
    return Builder(next(iter(mlir_util.ops_behind(op))))


def _converted(build: Builder, value: Any, old: Any, new: Any) -> Any:
    """Its integers, of the width of the other storage."""
    for name, type_ in (("bitcast_convert", _storage(old)), ("convert", _storage(new)), ("bitcast_convert", new)):
        value = build.value(f"stablehlo.{name}", [value], type_)
    return value


def _wide(type_: Any) -> Any:
    """The type with the wider storage, None for others."""
    if not (found := _UNSIGNED.search(str(type_))) or not isinstance(type_, ir.RankedTensorType):
        return None
    width = int(found[2])
    least, most = found[3] or 0, found[4] or 2**width - 1
    text = _UNSIGNED.sub(rf"\g<1>i{2 * width}<{least}:{most}>:", str(type_))
    return ir.Type.parse(text, type_.context)


def _storage(type_: Any) -> Any:
    name = re.search(r"!quant\.uniform<(u|i)(\d+)", str(type_))
    assert name is not None
    sign = "ui" if name[1] == "u" else "i"
    return ir.Type.parse(tensor(shape(type_), f"{sign}{name[2]}"), type_.context)
