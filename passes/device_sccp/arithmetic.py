"""Arithmetic on known scalars, as ``arith`` defines it.

What the definition leaves open (division by zero, shifts by too much), or what depends on the rounding of a
format that Python does not have, is not computed. xDSL's interpreter and folders of ``arith`` do less: they work
on registered operations, which those of a compilation are not, and compute every float as a double.
"""

import math
import operator as op
import struct
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from xdsl.dialects.builtin import (
    AnyFloat,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
)
from xdsl.ir import Attribute
from xdsl.utils.comparisons import signed_lower_bound, to_signed, to_unsigned

Scalar: TypeAlias = IntegerAttr[IntegerType] | IntegerAttr[IndexType] | FloatAttr[AnyFloat]
"""A known scalar. Integers are in the form of `integer`; floats compare by their bits."""

INDEX_BITS = 64

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
    if name in _SIGNED or name in _UNSIGNED:
        return _fold_integers(name, operands, result)
    if name in _FLOATS:
        return _fold_floats(name, operands, result)
    return _convert(name, operands[0], result) if name in _CONVERSIONS else None


def is_folded(name: str) -> bool:
    """Whether `fold` knows an operation; on tensors, all of them work element by element."""
    return name in _KNOWN


def bits_of(type_: Attribute) -> int:
    """The width of an integer type; ``index`` is as wide as a pointer."""
    return type_.width.data if isinstance(type_, IntegerType) else INDEX_BITS


def integer(value: int, type_: Attribute) -> Scalar | None:
    """``value`` modulo 2 to the width of ``type_``, in the one form that all facts use; None if no integer type.

    Only signless integers have arithmetic, in MLIR as here.
    """
    if isinstance(type_, IndexType):
        return IntegerAttr(to_signed(value, INDEX_BITS), type_)
    if isinstance(type_, IntegerType) and type_.signedness.data.name == "SIGNLESS":
        return IntegerAttr(to_signed(value, type_.width.data), type_)
    return None


def _number(value: Scalar) -> int:
    assert isinstance(value, IntegerAttr)
    return value.value.data


def _real(value: Scalar) -> float | None:
    """The number, if its format and its value are those that Python computes with."""
    if not isinstance(value, FloatAttr) or not isinstance(value.type, Float16Type | Float32Type | Float64Type):
        return None
    return value.value.data if math.isfinite(value.value.data) else None


def _divide(a: int, b: int) -> int:
    """Division towards zero."""
    return abs(a) // abs(b) if (a < 0) == (b < 0) else -(abs(a) // abs(b))


_SIGNED_DIVISIONS: dict[str, Callable[[int, int], int]] = {
    "arith.divsi": _divide,
    "arith.remsi": lambda a, b: a - _divide(a, b) * b,
    "arith.floordivsi": op.floordiv,
    "arith.ceildivsi": lambda a, b: -(-a // b),
}

#: Of signed numbers; or of either kind, where these give the same bits.
_SIGNED: dict[str, Callable[..., Any]] = {
    "arith.addi": op.add,
    "arith.subi": op.sub,
    "arith.muli": op.mul,
    "arith.andi": op.and_,
    "arith.ori": op.or_,
    "arith.xori": op.xor,
    "arith.maxsi": max,
    "arith.minsi": min,
    "arith.shli": op.lshift,
    "arith.shrsi": op.rshift,
    "arith.extsi": op.pos,
    "arith.index_cast": op.pos,
    "arith.trunci": op.pos,
    **_SIGNED_DIVISIONS,
}

#: Of natural numbers.
_UNSIGNED: dict[str, Callable[..., Any]] = {
    "arith.divui": op.floordiv,
    "arith.remui": op.mod,
    "arith.maxui": max,
    "arith.minui": min,
    "arith.shrui": op.rshift,
    "arith.extui": op.pos,
    "arith.index_castui": op.pos,
}

_FLOATS: dict[str, Callable[..., Any]] = {
    "arith.addf": op.add,
    "arith.subf": op.sub,
    "arith.mulf": op.mul,
    "arith.divf": op.truediv,
    "arith.negf": op.neg,
    "arith.extf": op.pos,
    "arith.truncf": op.pos,
}

_SHIFTS = frozenset({"arith.shli", "arith.shrsi", "arith.shrui"})
_CONVERSIONS = frozenset({"arith.sitofp", "arith.uitofp"})
_KNOWN = frozenset({"arith.select", "arith.cmpi", "arith.cmpf", *_SIGNED, *_UNSIGNED, *_FLOATS, *_CONVERSIONS})
_FORMATS: dict[type[Attribute], str] = {Float16Type: "e", Float32Type: "f", Float64Type: "d"}


def _fold_integers(name: str, operands: Sequence[Scalar], result: Attribute) -> Scalar | None:
    bits = bits_of(operands[0].type)
    signed = name in _SIGNED
    numbers = [(to_signed if signed else to_unsigned)(_number(operand), bits) for operand in operands]
    if name in _SHIFTS and not 0 <= numbers[1] < bits:
        return None
    if name in _SIGNED_DIVISIONS and numbers == [signed_lower_bound(bits), -1]:
        return None
    try:
        return integer((_SIGNED if signed else _UNSIGNED)[name](*numbers), result)
    except ZeroDivisionError:
        return None


def _fold_floats(name: str, operands: Sequence[Scalar], result: Attribute) -> Scalar | None:
    numbers = [number for operand in operands if (number := _real(operand)) is not None]
    if len(numbers) != len(operands):
        return None
    try:
        return _rounded(_FLOATS[name](*numbers), result)
    except ZeroDivisionError:
        return None


def _rounded(value: float, type_: Attribute) -> Scalar | None:
    """A double in the format ``type_``: after one of +, -, * and / in narrower formats, that rounding is exact."""
    layout = _FORMATS.get(type(type_))
    if layout is None:
        return None
    try:
        rounded: float = struct.unpack(layout, struct.pack(layout, value))[0]
    except OverflowError:
        return None
    assert isinstance(type_, AnyFloat)
    return FloatAttr(rounded, type_) if math.isfinite(rounded) else None


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


_LESS_OR_GREATER = (op.lt, op.le, op.gt, op.ge)
_ORDER: tuple[Callable[[Any, Any], bool], ...] = (op.eq, op.ne, *_LESS_OR_GREATER, *_LESS_OR_GREATER)

#: ``arith``'s predicates on numbers that are no NaNs: false, the ordered ones, ord, the unordered ones, uno, true.
_FLOAT_ORDER: tuple[Callable[[Any, Any], bool] | bool, ...] = (
    *(False, op.eq, op.gt, op.ge, op.lt, op.le, op.ne, True),
    *(op.eq, op.gt, op.ge, op.lt, op.le, op.ne, False, True),
)


def _compare_floats(operands: Sequence[Scalar], predicate: int) -> Scalar | None:
    a, b = _real(operands[0]), _real(operands[1])
    if a is None or b is None:
        return None
    order = _FLOAT_ORDER[predicate]
    return integer(int(order if isinstance(order, bool) else order(a, b)), IntegerType(1))
