"""Arithmetic on known scalars, as ``arith`` defines it.

What the definition leaves open (division by zero, shifts by too much), or what depends on the rounding of a
format that Python does not have, is not computed. xDSL's interpreter and folders of ``arith`` do less: they work
on registered operations, which those of a compilation are not, and compute every float as a double.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from operator import add, eq, ge, gt, le, lt, mul, ne, sub, truediv
from typing import Any

from xdsl.dialects.builtin import (
    AnyFloat,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
)
from xdsl.ir import Attribute
from xdsl.utils.comparisons import to_signed, to_unsigned

from devscope.passes.device_sccp.facts import Scalar, bits_of, integer

#: Integers up to this size are doubles without rounding, so that rounding to a narrower format is the only one.
_EXACT = 2**53


def fold(name: str, operands: Sequence[Scalar], result: Attribute, predicate: int | None) -> Scalar | None:
    """What operation ``name`` of ``arith`` makes of known operands; None if that is not known.

    ``result`` is the scalar type of its result; ``predicate`` that of a comparison.
    """
    if name == "arith.select":
        return operands[1] if _number(operands[0]) else operands[2]
    if name == "arith.cmpi" and predicate is not None:
        return _compare_integers(operands, predicate)
    if name == "arith.cmpf" and predicate is not None:
        return _compare_floats(operands, predicate)
    if name in _INTEGERS or name in _INTEGER_CASTS:
        return _fold_integers(name, operands, result)
    if name in _FLOATS or name in _FLOAT_CASTS:
        return _fold_floats(name, operands, result)
    return _convert(name, operands[0], result) if name in _CONVERSIONS else None


def is_folded(name: str) -> bool:
    """Whether `fold` knows an operation; on tensors, all of them work element by element."""
    return name in _KNOWN


def _number(value: Scalar) -> int:
    assert isinstance(value, IntegerAttr)
    return value.value.data


def _real(value: Scalar) -> float | None:
    """The number, if its format and its value are those that Python computes with."""
    if not isinstance(value, FloatAttr) or not isinstance(value.type, Float16Type | Float32Type | Float64Type):
        return None
    return value.value.data if math.isfinite(value.value.data) else None


def _divide(bits: int, a: int, b: int) -> int | None:
    """Signed division, towards zero."""
    a, b = to_signed(a, bits), to_signed(b, bits)
    if b == 0 or (b == -1 and a == -(1 << (bits - 1))):
        return None
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _remainder(bits: int, a: int, b: int) -> int | None:
    quotient = _divide(bits, a, b)
    return None if quotient is None else to_signed(a, bits) - quotient * to_signed(b, bits)


def _round_down(bits: int, a: int, b: int) -> int | None:
    return None if _divide(bits, a, b) is None else to_signed(a, bits) // to_signed(b, bits)


def _round_up(bits: int, a: int, b: int) -> int | None:
    return None if _divide(bits, a, b) is None else -(-to_signed(a, bits) // to_signed(b, bits))


#: Of the width and the operands' bits, as natural numbers.
_INTEGERS: dict[str, Callable[[int, int, int], int | None]] = {
    "arith.addi": lambda bits, a, b: a + b,
    "arith.subi": lambda bits, a, b: a - b,
    "arith.muli": lambda bits, a, b: a * b,
    "arith.andi": lambda bits, a, b: a & b,
    "arith.ori": lambda bits, a, b: a | b,
    "arith.xori": lambda bits, a, b: a ^ b,
    "arith.divsi": _divide,
    "arith.remsi": _remainder,
    "arith.floordivsi": _round_down,
    "arith.ceildivsi": _round_up,
    "arith.divui": lambda bits, a, b: a // b if b else None,
    "arith.remui": lambda bits, a, b: a % b if b else None,
    "arith.shli": lambda bits, a, b: a << b if b < bits else None,
    "arith.shrui": lambda bits, a, b: a >> b if b < bits else None,
    "arith.shrsi": lambda bits, a, b: to_signed(a, bits) >> b if b < bits else None,
    "arith.maxui": lambda bits, a, b: max(a, b),
    "arith.minui": lambda bits, a, b: min(a, b),
    "arith.maxsi": lambda bits, a, b: max(to_signed(a, bits), to_signed(b, bits)),
    "arith.minsi": lambda bits, a, b: min(to_signed(a, bits), to_signed(b, bits)),
}

_INTEGER_CASTS: dict[str, Callable[[int, int], int]] = {
    "arith.index_cast": lambda bits, a: to_signed(a, bits),
    "arith.index_castui": lambda bits, a: a,
    "arith.extsi": lambda bits, a: to_signed(a, bits),
    "arith.extui": lambda bits, a: a,
    "arith.trunci": lambda bits, a: a,
}

_FLOATS: dict[str, Callable[[float, float], float]] = {
    "arith.addf": add,
    "arith.subf": sub,
    "arith.mulf": mul,
    "arith.divf": truediv,
}

_FLOAT_CASTS: dict[str, Callable[[float], float]] = {
    "arith.negf": lambda a: -a,
    "arith.extf": lambda a: a,
    "arith.truncf": lambda a: a,
}

_CONVERSIONS = frozenset({"arith.sitofp", "arith.uitofp"})
_KNOWN = frozenset(
    {
        "arith.select",
        "arith.cmpi",
        "arith.cmpf",
        *_INTEGERS,
        *_INTEGER_CASTS,
        *_FLOATS,
        *_FLOAT_CASTS,
        *_CONVERSIONS,
    }
)
_FORMATS: dict[type[Attribute], str] = {Float16Type: "e", Float32Type: "f", Float64Type: "d"}


def _fold_integers(name: str, operands: Sequence[Scalar], result: Attribute) -> Scalar | None:
    bits = bits_of(operands[0].type)
    first, *rest = [to_unsigned(_number(operand), bits) for operand in operands]
    value = _INTEGERS[name](bits, first, rest[0]) if rest else _INTEGER_CASTS[name](bits, first)
    return None if value is None else integer(value, result)


def _fold_floats(name: str, operands: Sequence[Scalar], result: Attribute) -> Scalar | None:
    numbers = [number for operand in operands if (number := _real(operand)) is not None]
    if len(numbers) != len(operands):
        return None
    try:
        value = _FLOATS[name](*numbers) if name in _FLOATS else _FLOAT_CASTS[name](*numbers)
    except (OverflowError, ZeroDivisionError):
        return None
    return _rounded(value, result)


def _rounded(value: float, type_: Attribute) -> Scalar | None:
    """A double in the format ``type_``: after one of +, -, * and / in narrower formats, that rounding is exact."""
    layout = _FORMATS.get(type(type_))
    if layout is None:
        return None
    try:
        rounded: float = struct.unpack(layout, struct.pack(layout, value))[0]
    except OverflowError:
        return None
    if not math.isfinite(rounded):
        return None
    assert isinstance(type_, AnyFloat)
    return FloatAttr(rounded, type_)


def _convert(name: str, operand: Scalar, result: Attribute) -> Scalar | None:
    value = _number(operand)
    if name == "arith.uitofp":
        value = to_unsigned(value, bits_of(operand.type))
    return _rounded(float(value), result) if abs(value) <= _EXACT else None


def _compare_integers(operands: Sequence[Scalar], predicate: int) -> Scalar | None:
    """In the order of ``arith``'s predicates: eq, ne, then signed and unsigned lt, le, gt, ge."""
    a, b = _number(operands[0]), _number(operands[1])
    if predicate >= len(_ORDER) - 4:
        bits = bits_of(operands[0].type)
        a, b = to_unsigned(a, bits), to_unsigned(b, bits)
    return integer(int(_ORDER[predicate](a, b)), IntegerType(1))


_ORDER: tuple[Callable[[Any, Any], bool], ...] = (eq, ne, lt, le, gt, ge, lt, le, gt, ge)

#: ``arith``'s predicates on numbers that are no NaNs: false, the ordered ones, ord, the unordered ones, uno, true.
_FLOAT_ORDER: tuple[Callable[[Any, Any], bool] | bool, ...] = (
    *(False, eq, gt, ge, lt, le, ne, True),
    *(eq, gt, ge, lt, le, ne, False, True),
)


def _compare_floats(operands: Sequence[Scalar], predicate: int) -> Scalar | None:
    a, b = _real(operands[0]), _real(operands[1])
    if a is None or b is None:
        return None
    order = _FLOAT_ORDER[predicate]
    return integer(int(order if isinstance(order, bool) else order(a, b)), IntegerType(1))
