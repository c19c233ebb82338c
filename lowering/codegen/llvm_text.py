"""LLVM dialect -> LLVM IR text, readable for the LLVM that llvmlite carries.

MLIR (LLVM 24) prints floating-point literals in forms that LLVM 22 does not read: ``+inf``, ``-qnan``,
``+nan(0x1)``, ``f0x3F800000`` and decimals that are rounded to the type. LLVM has always read the bit
patterns ``0x...`` (double, also for float), ``0xH....`` (half) and ``0xR....`` (bfloat), so every literal is
rewritten to its exact bit pattern. Nothing else differs between the two for the IR that MLIR emits.
See llvm-project pull request 190649.
"""

import re
import struct
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from typing import Any

from devscope.errors import SourceLocation
from devscope.lowering import mlir_util
from devscope.lowering.divisions import define_divisions
from devscope.lowering.interop import bindings
from devscope.lowering.interop.diagnostics import decode_location
from devscope.lowering.legal import cannot_lower

_CAST = "builtin.unrealized_conversion_cast"
_TRANSLATED = ("llvm.", "nvvm.", "rocdl.")
"""Dialects that MLIR translates to LLVM IR."""

#: type -> exponent bits, mantissa bits
_FORMATS = {"half": (5, 10), "bfloat": (8, 7), "float": (8, 23), "double": (11, 52)}

_LITERAL = re.compile(
    r'"(?:[^"\\]|\\.)*"'  # strings,
    r"|[%@!#$][-\w.$]+"  # names
    r"|;[^\n]*"  # and comments are passed over
    r"|\b(?P<type>half|bfloat|float|double)\b"
    r"|(?<![\w.%@!#])(?P<literal>[+-]?(?:inf|qnan)\b|[+-]s?nan\(0x[0-9A-Fa-f]+\)"
    r"|f0x[0-9A-Fa-f]+|[+-]?\d+\.\d*(?:[eE][+-]?\d+)?)"
)

#: What decimals have. A search for the point finds it much faster than one for the digit in front of it.
_DECIMAL = re.compile(r"\.(?<=\d\.)")


def to_llvm_ir(module: Any, target: str) -> str:
    """LLVM IR text, for llvmlite's LLVM, of a module in the LLVM dialect.

    Raises LoweringError naming the first operations that are not in a dialect which becomes LLVM IR.
    """
    ops = mlir_util.walk(module)
    _require_fully_lowered(ops, target)
    define_divisions(ops)
    # Not dialects.llvm, which would define 300 classes more.
    translation = bindings.load("_mlir_libs._mlirDialectsLLVM")
    return to_llvm22(translation.translate_module_to_llvmir(module.operation))


def _require_fully_lowered(ops: Iterable[Any], target: str) -> None:
    """MLIR's translation to LLVM IR crashes the process on other operations, so it must not see them."""
    left: dict[str, SourceLocation | None] = {}
    for op in ops:
        if not op.name.startswith(_TRANSLATED) and op.name != "builtin.module":
            left.setdefault(op.name, decode_location(op.location))
    if left:
        # A cast is what a neighbour's failed conversion leaves behind, not the cause.
        name = next((name for name in left if name != _CAST), _CAST)
        others = [other for other in left if other not in (name, _CAST)]
        raise cannot_lower(target, name, left[name], others)


def to_llvm22(text: str) -> str:
    """Rewrite the floating-point literals of textual LLVM IR, bit for bit."""
    return "\n".join(_rewrite_line(line) if _may_have_literal(line) else line for line in text.split("\n"))


def _may_have_literal(line: str) -> bool:
    """Few lines have one, and to look at all names of the others takes long."""
    return "inf" in line or "nan" in line or "f0x" in line or _DECIMAL.search(line) is not None


def _rewrite_line(line: str) -> str:
    type_name: str | None = None  # a literal's type is the last floating-point type named before it

    def rewrite(match: re.Match[str]) -> str:
        nonlocal type_name
        if match["type"]:
            type_name = match["type"]
            return match[0]
        literal = match["literal"]
        if literal is None or type_name is None:
            return match[0]
        return _legacy_literal(literal, type_name)

    return _LITERAL.sub(rewrite, line)


@lru_cache(maxsize=4096)
def _legacy_literal(literal: str, type_name: str) -> str:
    bits = literal_bits(literal, type_name)
    if type_name == "half":
        return f"0xH{bits:04X}"
    if type_name == "bfloat":
        return f"0xR{bits:04X}"
    if type_name == "float":
        bits = _widen_to_double(bits)
    return f"0x{bits:016X}"


def literal_bits(literal: str, type_name: str) -> int:
    """The bit pattern of an LLVM 24 floating-point literal in the format of ``type_name``."""
    exponent_bits, mantissa_bits = _FORMATS[type_name]
    if literal.startswith("f0x"):
        return int(literal[3:], 16)
    sign = 0
    if literal[0] in "+-":
        sign = (literal[0] == "-") << (exponent_bits + mantissa_bits)
        literal = literal[1:]
    infinity = ((1 << exponent_bits) - 1) << mantissa_bits
    quiet = 1 << (mantissa_bits - 1)
    if literal == "inf":
        return sign | infinity
    if literal == "qnan":
        return sign | infinity | quiet
    if literal.startswith("nan("):
        return sign | infinity | quiet | int(literal[4:-1], 16)
    if literal.startswith("snan("):
        return sign | infinity | int(literal[5:-1], 16)
    return sign | _round(Fraction(literal), exponent_bits, mantissa_bits)


def _round(value: Fraction, exponent_bits: int, mantissa_bits: int) -> int:
    """Bits of the nearest number, ties to even (IEEE 754 roundTiesToEven); ``value`` is not negative."""
    if value == 0:
        return 0
    bias = (1 << (exponent_bits - 1)) - 1
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    if value < Fraction(2) ** exponent:
        exponent -= 1
    exponent = max(exponent, 1 - bias)  # below that, numbers are subnormal
    mantissa = round(value / Fraction(2) ** (exponent - mantissa_bits))  # Python rounds fractions half to even
    # The leading bit of a normal number counts the exponent up, and so does a carry.
    infinity = ((1 << exponent_bits) - 1) << mantissa_bits
    return min(((exponent + bias - 1) << mantissa_bits) + mantissa, infinity)


def _widen_to_double(bits: int) -> int:
    """The double whose value (or NaN payload) equals that of the float with these bits."""
    sign, exponent, mantissa = bits >> 31, (bits >> 23) & 0xFF, bits & 0x7FFFFF
    if exponent == 0xFF:
        return (sign << 63) | (0x7FF << 52) | (mantissa << 29)
    (value,) = struct.unpack("<f", struct.pack("<I", bits))
    return struct.unpack("<Q", struct.pack("<d", value))[0]
