"""Operations of `complex` -> operations on their real and imaginary parts, the same for every target.

Upstream's convert-complex-to-standard does it for arithmetic; ``complex_functions.mlir`` has all other functions.
Afterwards complex numbers are only made and taken apart; in memory they are pairs, as in numpy and in C.
"""

import math
import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from string import Template
from typing import Any

from devscope.errors import LoweringError
from devscope.lowering import mlir_util
from devscope.lowering.expansions import Expansion, expand
from devscope.lowering.interop.bindings import ir
from devscope.lowering.interop.diagnostics import decode_location
from devscope.lowering.mlir_util import RunPasses
from devscope.lowering.pipelines import pipeline

#: Bits of the mantissa and the largest exponent of the formats that parts may have.
_FORMATS = {"bf16": (8, 127), "f16": (11, 15), "f32": (24, 127), "f64": (53, 1023)}


def lower_complex(module: Any, run_passes: RunPasses) -> list[Any]:
    """Expand the operations of `complex` under ``module``; returns all operations that are there then.

    Raises LoweringError, located, for numbers of whose parts no format is known.
    """
    ops = mlir_util.walk(module)
    if not any(op.name.startswith("complex.") or (op.name == "arith.select" and _part_type(op)) for op in ops):
        return ops
    expand(ops, _expansions())
    run_passes(module.operation, pipeline("complex"))
    return mlir_util.walk(module)


@cache
def _expansions() -> Mapping[str, Expansion]:
    """Of `complex` and of ``arith.select``: LLVM's backend for SPIR-V knows no choice between pairs."""
    functions = {f"complex.{name}": _function for name in _bodies("f32")}
    return {**functions, "complex.bitcast": _bitcast, "arith.select": _function}


def _function(op: Any) -> str:
    part = _part_type(op)
    if part is None or _SCALED in op.attributes:
        return ""
    if str(part) not in _FORMATS:
        raise LoweringError(
            f"complex numbers of {part} cannot be compiled",
            decode_location(op.location),
            [f"their parts can be: {', '.join(_FORMATS)}"],
        )
    return _bodies(str(part))[op.name.partition(".")[2]]


_SCALED = "devscope.scaled"
"""On a division that upstream expands."""


def _part_type(op: Any) -> Any:
    """The type of the parts of the complex numbers that ``op`` is about."""
    types = [value.type for value in (*op.operands, *op.results)]
    return next((type_.element_type for type_ in types if isinstance(type_, ir.ComplexType)), None)


_FUNCTION = re.compile(r"^func\.func @(\w+)\(.*\{\n((?:.*\n)*?)  return %result ", re.MULTILINE)


@cache
def _bodies(part: str) -> Mapping[str, str]:
    """The bodies of the functions of ``complex_functions.mlir``, where parts are of type ``part``."""
    text = resources.files("devscope.lowering").joinpath("complex_functions.mlir").read_text()
    mantissa, exponent = _FORMATS[part]
    numbers = {name: f"{value:.17e}" for name, value in _numbers(mantissa, exponent).items()}
    infinity = (2 * exponent + 1) << (mantissa - 1)
    nan = infinity | 1 << (mantissa - 2)
    text = Template(text).substitute(T=part, nan=f"0x{nan:X}", inf=f"0x{infinity:X}", **numbers)
    return dict(_FUNCTION.findall(text))


def _numbers(mantissa: int, exponent: int) -> dict[str, float]:
    """``exp_limit``: below the largest exponent of exp; ``tanh_limit``: there 1 - tanh is half a unit.

    Numbers above ``huge`` and below ``tiny`` are scaled; the latter by ``up``, and what their root is then by
    ``up_back``. Dividends and divisors below ``tiny`` are scaled by ``div_up``, four times which there is, too.
    """
    half_up = (mantissa + 3) // 2
    div_up = min(2 * half_up, exponent - 3)
    return {
        "pi": math.pi,
        "exp_limit": math.floor(exponent * math.log(2) * 0.99),
        "tanh_limit": math.ceil((mantissa + 2) * math.log(2) / 2),
        "huge": 2.0 ** (exponent - 3),
        "tiny": 2.0 ** (mantissa + 2 - exponent),
        "up": 2.0 ** (2 * half_up),
        "up_back": 2.0**-half_up,
        "div_up": 2.0**div_up,
        "div_down": 2.0**-div_up,
    }


def _bitcast(op: Any) -> str:
    """The real part is in the lower bits, as in memory."""
    number, complex_type = op.operands[0].type, op.results[0].type
    is_taken_apart = isinstance(number, ir.ComplexType)
    if is_taken_apart:
        number, complex_type = complex_type, number
    part = complex_type.element_type
    width = ir.FloatType(part).width
    half, whole = f"i{width}", f"i{2 * width}"
    if is_taken_apart:
        return f"""
            %re = complex.re %0 : {complex_type}
            %im = complex.im %0 : {complex_type}
            %re_bits = arith.bitcast %re : {part} to {half}
            %im_bits = arith.bitcast %im : {part} to {half}
            %low = arith.extui %re_bits : {half} to {whole}
            %wide = arith.extui %im_bits : {half} to {whole}
            %width = arith.constant {width} : {whole}
            %high = arith.shli %wide, %width : {whole}
            %bits = arith.ori %low, %high : {whole}
            %number = arith.bitcast %bits : {whole} to {number}
        """
    return f"""
        %bits = arith.bitcast %0 : {number} to {whole}
        %width = arith.constant {width} : {whole}
        %high = arith.shrui %bits, %width : {whole}
        %re_bits = arith.trunci %bits : {whole} to {half}
        %im_bits = arith.trunci %high : {whole} to {half}
        %re = arith.bitcast %re_bits : {half} to {part}
        %im = arith.bitcast %im_bits : {half} to {part}
        %number = complex.create %re, %im : {complex_type}
    """
