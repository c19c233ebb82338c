"""Functions of two complex numbers as XLA defines them, of numbers that are infinite or not numbers, too."""

from string import Template
from typing import Any

from devscope.lowering.stablehlo.element_types import expand_each, part_extents, part_type
from devscope.lowering.stablehlo.templates import element, tensor

# r^c e^(-d t) of the angle c t + d log r, where r and t are the size and the angle of the base, c and d the parts of the
# exponent. Powers of 0, of 1 and of infinity, and those of the exponent 0, are cases of their own.
_POWER = """
%a = stablehlo.real %0 : ($C) -> $P
%b = stablehlo.imag %0 : ($C) -> $P
%c = stablehlo.real %1 : ($C) -> $P
%d = stablehlo.imag %1 : ($C) -> $P
%zero = stablehlo.constant dense<0.0> : $P
%one = stablehlo.constant dense<1.0> : $P
%inf = stablehlo.constant dense<$inf> : $P
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


def expand_power(op: Any) -> None:
    _expand(op, _POWER)


def expand_atan2(op: Any) -> None:
    _expand(op, _ATAN2)


def expand_cube_root(op: Any) -> None:
    third = "%third = stablehlo.constant dense<(0.33333333333333331, 0.0)> : $C"
    _expand(op, f"{third}\n%result = stablehlo.power %0, %third : $C")


def _expand(op: Any, text: str) -> None:
    type_ = op.results[0].type
    if not (part := part_type(type_)):
        return
    extents = part_extents(op)
    types = {"C": element(type_), "P": part, "M": "i1"}
    inf = {"f32": "0x7F800000", "f64": "0x7FF0000000000000"}[part]
    text = Template(text).substitute({name: tensor(extents, of) for name, of in types.items()}, inf=inf)
    expand_each(op, text.splitlines())
