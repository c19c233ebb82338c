"""Functions of complex numbers as XLA defines them, of numbers that are infinite or not numbers, too."""

from string import Template
from typing import Any

import numpy as np

from devscope.lowering import mlir_util
from devscope.lowering.constants import constant_value
from devscope.lowering.interop.bindings import ir
from devscope.lowering.stablehlo.element_types import expand_each, part_extents, part_type
from devscope.lowering.stablehlo.templates import element, tensor

# Parts, and the size: the larger part times the length of (1, smaller / larger). Parts that are not numbers count more
# than infinite ones.
_SIZE = """
%a = stablehlo.real %0 : ($C) -> $P
%b = stablehlo.imag %0 : ($C) -> $P
%zero = stablehlo.constant dense<0.0> : $P
%one = stablehlo.constant dense<1.0> : $P
%a_size = stablehlo.abs %a : $P
%b_size = stablehlo.abs %b : $P
%large = stablehlo.maximum %a_size, %b_size : $P
%small = stablehlo.minimum %a_size, %b_size : $P
%ratio = stablehlo.divide %small, %large : $P
%square = stablehlo.multiply %ratio, %ratio : $P
%more = stablehlo.add %square, %one : $P
%root = stablehlo.sqrt %more : $P
%hypotenuse = stablehlo.multiply %large, %root : $P
%unknown = stablehlo.compare NE, %hypotenuse, %hypotenuse, FLOAT : ($P, $P) -> $M
%r = stablehlo.select %unknown, %small, %hypotenuse : $M, $P
"""

_ABS = _SIZE.replace("%r = ", "%result = ")

_SIGN = f"""{_SIZE}
%re = stablehlo.divide %a, %r : $P
%im = stablehlo.divide %b, %r : $P
%unit = stablehlo.complex %re, %im : $C
%r_0 = stablehlo.compare EQ, %r, %zero, FLOAT : ($P, $P) -> $M
%result = stablehlo.select %r_0, %0, %unit : $M, $C
"""

# (expm1(a) cos b + cos b - 1, e^a sin b), without an imaginary part where the number has none.
_EXPM1 = """
%a = stablehlo.real %0 : ($C) -> $P
%b = stablehlo.imag %0 : ($C) -> $P
%zero = stablehlo.constant dense<0.0> : $P
%half = stablehlo.constant dense<0.5> : $P
%minus_two = stablehlo.constant dense<-2.0> : $P
%b_half = stablehlo.multiply %b, %half : $P
%sine_half = stablehlo.sine %b_half : $P
%square = stablehlo.multiply %sine_half, %sine_half : $P
%cosine_1 = stablehlo.multiply %square, %minus_two : $P
%cosine = stablehlo.cosine %b : $P
%growth = stablehlo.exponential_minus_one %a : $P
%turned = stablehlo.multiply %growth, %cosine : $P
%re = stablehlo.add %turned, %cosine_1 : $P
%power = stablehlo.exponential %a : $P
%sine = stablehlo.sine %b : $P
%product = stablehlo.multiply %power, %sine : $P
%b_0 = stablehlo.compare EQ, %b, %zero, FLOAT : ($P, $P) -> $M
%im = stablehlo.select %b_0, %zero, %product : $M, $P
%result = stablehlo.complex %re, %im : $C
"""

# Of an imaginary part that is infinite or not a number: nothing that is a number, but signs of infinite real parts.
_TANH = """
%a = stablehlo.real %0 : ($C) -> $P
%b = stablehlo.imag %0 : ($C) -> $P
%zero = stablehlo.constant dense<0.0> : $P
%inf = stablehlo.constant dense<$inf> : $P
%tanh = stablehlo.tanh %0 {$plain} : $C
%tanh_re = stablehlo.real %tanh : ($C) -> $P
%tanh_im = stablehlo.imag %tanh : ($C) -> $P
%nothing = stablehlo.subtract %b, %b : $P
%b_0 = stablehlo.compare EQ, %b, %zero, FLOAT : ($P, $P) -> $M
%b_finite = stablehlo.is_finite %b : ($P) -> $M
%a_size = stablehlo.abs %a : $P
%a_inf = stablehlo.compare EQ, %a_size, %inf, FLOAT : ($P, $P) -> $M
%known = stablehlo.or %a_inf, %b_finite : $M
%re = stablehlo.select %known, %tanh_re, %nothing : $M, $P
%b_unknown = stablehlo.not %b_finite : $M
%far = stablehlo.and %a_inf, %b_unknown : $M
%real = stablehlo.or %b_0, %far : $M
%im = stablehlo.select %real, %zero, %tanh_im : $M, $P
%result = stablehlo.complex %re, %im : $C
"""

# -i tanh(i z)
_TAN = """
%a = stablehlo.real %0 : ($C) -> $P
%b = stablehlo.imag %0 : ($C) -> $P
%minus_b = stablehlo.negate %b : $P
%turned = stablehlo.complex %minus_b, %a : $C
%tanh = stablehlo.tanh %turned : $C
%tanh_re = stablehlo.real %tanh : ($C) -> $P
%re = stablehlo.imag %tanh : ($C) -> $P
%im = stablehlo.negate %tanh_re : $P
%result = stablehlo.complex %re, %im : $C
"""

# r^c e^(-d t) of the angle c t + d log r, where r and t are the size and the angle of the base, c and d the parts of the
# exponent. Powers of 0, of 1 and of infinity, and those of the exponent 0, are cases of their own.
_POWER = f"""{_SIZE}
%c = stablehlo.real %1 : ($C) -> $P
%d = stablehlo.imag %1 : ($C) -> $P
%inf = stablehlo.constant dense<$inf> : $P
%size = stablehlo.power %r, %c : $P
%t = stablehlo.atan2 %b, %a : $P
%minus_d = stablehlo.negate %d : $P
%exponent = stablehlo.multiply %minus_d, %t : $P
%scale = stablehlo.exponential %exponent : $P
%length = stablehlo.multiply %size, %scale : $P
%log_r = stablehlo.log %r : $P
%ct = stablehlo.multiply %c, %t : $P
%d_log_r = stablehlo.multiply %d, %log_r : $P
%angle = stablehlo.add %ct, %d_log_r : $P
%cosine = stablehlo.cosine %angle : $P
%sine = stablehlo.sine %angle : $P
%re = stablehlo.multiply %length, %cosine : $P
%im = stablehlo.multiply %length, %sine : $P
%power = stablehlo.complex %re, %im : $C
%nothing = stablehlo.constant dense<(0.0, 0.0)> : $C
%unit = stablehlo.constant dense<(1.0, 0.0)> : $C
%endless = stablehlo.complex %inf, %zero : $C
%r_0 = stablehlo.compare EQ, %r, %zero, FLOAT : ($P, $P) -> $M
%c_0 = stablehlo.compare EQ, %c, %zero, FLOAT : ($P, $P) -> $M
%d_0 = stablehlo.compare EQ, %d, %zero, FLOAT : ($P, $P) -> $M
%b_0 = stablehlo.compare EQ, %b, %zero, FLOAT : ($P, $P) -> $M
%a_1 = stablehlo.compare EQ, %a, %one, FLOAT : ($P, $P) -> $M
%a_inf = stablehlo.compare EQ, %a, %inf, FLOAT : ($P, $P) -> $M
%c_above = stablehlo.compare GT, %c, %zero, FLOAT : ($P, $P) -> $M
%c_below = stablehlo.compare LT, %c, %zero, FLOAT : ($P, $P) -> $M
%c_least = stablehlo.or %c_above, %c_0 : $M
%real_0 = stablehlo.and %r_0, %d_0 : $M
%is_0 = stablehlo.and %real_0, %c_least : $M
%to_0 = stablehlo.and %c_0, %d_0 : $M
%is_1 = stablehlo.and %a_1, %b_0 : $M
%real_inf = stablehlo.and %a_inf, %b_0 : $M
%is_inf = stablehlo.and %real_inf, %d_0 : $M
%grows = stablehlo.and %is_inf, %c_above : $M
%shrinks = stablehlo.and %is_inf, %c_below : $M
%of_0 = stablehlo.select %c_0, %unit, %nothing : $M, $C
%with_0 = stablehlo.select %is_0, %of_0, %power : $M, $C
%with_exponent_0 = stablehlo.select %to_0, %unit, %with_0 : $M, $C
%with_1 = stablehlo.select %is_1, %unit, %with_exponent_0 : $M, $C
%with_inf = stablehlo.select %grows, %endless, %with_1 : $M, $C
%result = stablehlo.select %shrinks, %nothing, %with_inf : $M, $C
"""

# -i log((x + i y) / sqrt(x^2 + y^2))
_ATAN2 = """
%i = stablehlo.constant dense<(0.0, 1.0)> : $C
%minus_i = stablehlo.constant dense<(0.0, -1.0)> : $C
%xx = stablehlo.multiply %1, %1 : $C
%yy = stablehlo.multiply %0, %0 : $C
%squares = stablehlo.add %xx, %yy : $C
%root = stablehlo.sqrt %squares : $C
%iy = stablehlo.multiply %i, %0 : $C
%number = stablehlo.add %1, %iy : $C
%unit = stablehlo.divide %number, %root : $C
%logarithm = stablehlo.log %unit : $C
%result = stablehlo.multiply %minus_i, %logarithm : $C
"""


_PLAIN = "devscope.plain"
"""An attribute of functions whose results for infinities and what is not a number are not taken."""

_FUNCTIONS = {
    "stablehlo.abs": _ABS,
    "stablehlo.sign": _SIGN,
    "stablehlo.exponential_minus_one": _EXPM1,
    "stablehlo.tanh": _TANH,
    "stablehlo.tan": _TAN,
}


def expand_function(op: Any) -> None:
    if _PLAIN not in op.attributes:
        _expand(op, _FUNCTIONS[op.name])


def expand_multiply(op: Any) -> None:
    """XLA leaves out products with 1, as derivatives have them: there infinite numbers stay what they are."""
    for factor, other in ((0, 1), (1, 0)):
        if part_type(op.results[0].type) and _constant(op.operands[factor]) == 1:
            _replace(op, op.operands[other])
            return


def expand_divide(op: Any) -> None:
    """XLA multiplies by what constants are the inverse of."""
    if not (part := part_type(op.results[0].type)) or not (divisor := _constant(op.operands[1])):
        return
    inverse = _PARTS[part](1) / _PARTS[part](divisor)
    if divisor == 1:
        _replace(op, op.operands[0])
    elif np.isfinite(inverse):
        constant = f"%inverse = stablehlo.constant dense<({inverse.real:.17e}, {inverse.imag:.17e})> : $C"
        _expand(op, f"{constant}\n%result = stablehlo.multiply %0, %inverse : $C")


_PARTS = {"f32": np.complex64, "f64": np.complex128}


_POWERS: dict[complex | None, str] = {
    -1: "%unit = stablehlo.constant dense<(1.0, 0.0)> : $C\n%result = stablehlo.divide %unit, %0 : $C",
    2: "%result = stablehlo.multiply %0, %0 : $C",
    3: "%square = stablehlo.multiply %0, %0 : $C\n%result = stablehlo.multiply %square, %0 : $C",
}


def expand_power(op: Any) -> None:
    """Powers of some exponents that are known as the program is compiled are products or an inverse, as in XLA."""
    exponent = _constant(op.operands[1]) if part_type(op.results[0].type) else None
    if exponent == 1:
        _replace(op, op.operands[0])
    else:
        _expand(op, _POWERS.get(exponent, _POWER))


def _replace(op: Any, value: Any) -> None:
    if value.type == op.results[0].type:
        mlir_util.replace_op(op, [value])


def _constant(value: Any) -> complex | None:
    """What all elements are, if that is known as the program is compiled."""
    op = value.owner
    if isinstance(op, ir.Block):
        return None
    if op.name in ("stablehlo.broadcast_in_dim", "stablehlo.dynamic_broadcast_in_dim", "stablehlo.reshape"):
        return _constant(op.operands[0])
    if op.name == "stablehlo.complex":
        real, imag = (_constant(part) for part in op.operands)
        return None if real is None or imag is None else complex(real.real, imag.real)
    if op.name != "stablehlo.constant":
        return None
    attribute = constant_value(op)
    if not isinstance(attribute, ir.DenseElementsAttr) or not attribute.is_splat:
        return None
    splat = attribute.get_splat_value()
    parts = list(splat) if isinstance(splat, ir.ArrayAttr) else [splat]
    return complex(*(ir.FloatAttr(part).value for part in parts))


def expand_atan2(op: Any) -> None:
    _expand(op, _ATAN2)


def expand_cube_root(op: Any) -> None:
    third = "%third = stablehlo.constant dense<(0.33333333333333331, 0.0)> : $C"
    _expand(op, f"{third}\n%result = stablehlo.power %0, %third : $C")


def _expand(op: Any, text: str) -> None:
    type_ = op.operands[0].type
    if not (part := part_type(type_)):
        return
    extents = part_extents(op)
    types = {"C": element(type_), "P": part, "M": "i1"}
    inf = {"f32": "0x7F800000", "f64": "0x7FF0000000000000"}[part]
    text = Template(text).substitute(
        {name: tensor(extents, of) for name, of in types.items()}, inf=inf, plain=_PLAIN
    )
    expand_each(op, text.splitlines())
