"""Floats as integers in the same order: text, as sorts and running extrema compare them."""

from collections.abc import Callable
from typing import Any

from devscope.lowering.interop.bindings import ir

INFINITY = {"f16": 0x7C00, "bf16": 0x7F80, "f32": 0x7F800000, "f64": 0x7FF0000000000000}
"""The bits of it."""

_Emit = Callable[[str], None]


def emit_sign(emit: _Emit, bits: str, of: Any, kind: str) -> None:
    """``%sign``: -1 where that of a float is set; ``%most``: all other bits of it. ``bits``: as an integer ``kind``."""
    most = (1 << (ir.FloatType(of).width - 1)) - 1
    emit(f"%most = arith.constant {most} : {kind}\n%places = arith.constant {int(kind[1:]) - 1} : {kind}")
    emit(f"%sign = arith.shrsi {bits}, %places : {kind}")


def emit_number_key(emit: _Emit, bits: str, of: Any, kind: str, descending: bool = False) -> str:
    """The name of the key: both zeros have the same, what is not a number comes last."""
    emit_sign(emit, bits, of, kind)
    emit(f"%size = arith.andi {bits}, %most : {kind}\n%flipped = arith.xori %size, %sign : {kind}")
    emit(f"%number = arith.subi {'%sign, %flipped' if descending else '%flipped, %sign'} : {kind}")
    emit(f"%infinity = arith.constant {INFINITY[str(of)]} : {kind}")
    emit(f"%is_none = arith.cmpi sgt, %size, %infinity : {kind}")
    emit(f"%key = arith.select %is_none, %most, %number : {kind}")
    return "%key"
