"""Elementwise operators, and casts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from devscope.frontends.onnx.builder import Builder, Value, limits
from devscope.frontends.onnx.graph import Node, operator
from devscope.frontends.onnx.types import (
    DTYPES,
    Refused,
    common_shape,
    element_of,
    is_code,
    is_complex,
    is_float,
    is_integer,
    is_unsigned,
    width,
)

_UNARY = {
    **{"Ceil": "ceil", "Floor": "floor", "Exp": "exponential", "Log": "log", "Sqrt": "sqrt", "Sin": "sine"},
    **{"Cos": "cosine", "Tanh": "tanh", "Sigmoid": "logistic", "Not": "not", "BitwiseNot": "not", "Neg": "negate"},
    **{
        name: name.lower()
        for name in ["Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh", "Erf"]
    },
    "Round": "round_nearest_even",
}
_BINARY = {
    **{"Add": "add", "Sub": "subtract", "Mul": "multiply", "And": "and", "Or": "or", "Xor": "xor"},
    **{"BitwiseAnd": "and", "BitwiseOr": "or", "BitwiseXor": "xor"},
}
_FOLDS = {"Sum": "add", "Max": "maximum", "Min": "minimum", "Mean": "add"}
_COMPARES = {"Equal": "EQ", "Less": "LT", "Greater": "GT", "LessOrEqual": "LE", "GreaterOrEqual": "GE"}


@operator(*_UNARY)
def unary(n: Node) -> Value:
    return n.b.unary(_UNARY[n.proto.op_type], n[0])


@operator("Abs")
def absolute(n: Node) -> Value:
    return n[0] if is_unsigned(n[0].element) else n.b.unary("abs", n[0])


@operator("Sign")
def sign(n: Node) -> Value:
    x = n[0]
    if is_unsigned(x.element):
        return n.b.convert(n.b.compare("NE", x, 0), x.element)
    return n.b.unary("sign", x)


@operator("Identity")
def identity(n: Node) -> Value:
    return n[0]


@operator(*_BINARY)
def binary(n: Node) -> Value:
    x, y = n[0], n[1]
    if n.opset < 7 and n.attr("broadcast", 0):  # the second operand's dimensions begin at an axis of the first
        axis = n.attr("axis", x.rank - y.rank)
        y = n.b.reshape(y, [*y.shape, *[1] * (x.rank - axis - y.rank)])
    return n.b.binary(_BINARY[n.proto.op_type], x, y)


@operator(*_FOLDS)
def folds(n: Node) -> Value:
    result, *others = n.inputs
    for other in others:
        result = n.b.binary(_FOLDS[n.proto.op_type], result, other)
    return n.b.binary("divide", result, len(n)) if n.proto.op_type == "Mean" else result


@operator(*_COMPARES)
def compares(n: Node) -> Value:
    return n.b.compare(_COMPARES[n.proto.op_type], n[0], n[1])


@operator("Div")
def divide(n: Node) -> Value:
    return n.b.binary("divide", n[0], n[1])


@operator("Mod")
def modulo(n: Node) -> Value:
    b = n.b
    x, y = b.broadcast_both(n[0], n[1])
    rest = b.binary("remainder", x, y)
    if n.attr("fmod", 0) or is_unsigned(x.element):
        return rest
    differs = b.compare("NE", b.compare("LT", rest, 0), b.compare("LT", y, 0))
    return b.select(b.binary("and", differs, b.compare("NE", rest, 0)), b.binary("add", rest, y), rest)


@operator("Pow")
def power(n: Node) -> Value:
    b, x, y = n.b, n[0], n[1]
    if x.element == y.element:
        return b.binary("power", x, y)
    if is_float(x.element):
        return b.binary("power", x, b.convert(y, x.element))
    if is_float(y.element):
        wide = "f64" if width(x.element) > 24 else "f32"
        return b.convert(b.binary("power", b.convert(x, wide), b.convert(y, wide)), x.element)
    return b.binary("power", x, b.convert(y, x.element))


@operator("BitShift")
def shift(n: Node) -> Value:
    kind = "logical" if is_unsigned(n[0].element) else "arithmetic"
    name = "shift_left" if n.attr("direction") == "LEFT" else f"shift_right_{kind}"
    return n.b.binary(name, n[0], n[1])


@operator("Reciprocal")
def reciprocal(n: Node) -> Value:
    return n.b.binary("divide", n.b.like(1, n[0]), n[0])


@operator("IsNaN")
def is_nan(n: Node) -> Value:
    return n.b.compare("NE", n[0], n[0])


@operator("IsInf")
def is_infinite(n: Node) -> Value:
    b, x = n.b, n[0]
    found = b.full(False, "i1", x.shape)
    for name, number in (("detect_positive", math.inf), ("detect_negative", -math.inf)):
        if n.attr(name, 1) and not is_code(x.element):
            found = b.binary("or", found, b.compare("EQ", x, number))
    return found


@operator("Where")
def where(n: Node) -> Value:
    return n.b.select(n[0], n[1], n[2])


@operator("Clip")
def clip(n: Node) -> Value:
    b, x = n.b, n[0]
    low = n.get(1) if n.has(1) else n.attr("min")
    high = n.get(2) if n.has(2) else n.attr("max")
    if low is not None:
        x = b.binary("maximum", x, low)
    return x if high is None else b.binary("minimum", x, high)


# Activations: what the standard says, written out.


@operator("Relu")
def relu(n: Node) -> Value:
    return n.b.binary("maximum", n[0], 0)


def _if_negative(n: Node, otherwise: Value) -> Value:
    return n.b.select(n.b.compare("LT", n[0], 0), otherwise, n[0])


@operator("LeakyRelu")
def leaky_relu(n: Node) -> Value:
    return _if_negative(n, n.b.binary("multiply", n[0], n.attr("alpha", 0.01)))


@operator("PRelu")
def prelu(n: Node) -> Value:
    b, x, slope = n.b, n[0], n[1]
    if slope.rank < x.rank and tuple(x.shape) != common_shape(x.shape, slope.shape):
        slope = b.reshape(slope, [*slope.shape, *[1] * (x.rank - 1 - slope.rank)])
    return _if_negative(n, b.binary("multiply", x, slope))


@operator("Elu")
def elu(n: Node) -> Value:
    b = n.b
    return _if_negative(n, b.binary("multiply", b.unary("exponential_minus_one", n[0]), n.attr("alpha", 1.0)))


@operator("Celu")
def celu(n: Node) -> Value:
    b, alpha = n.b, n.attr("alpha", 1.0)
    inner = b.unary("exponential_minus_one", b.binary("divide", n[0], alpha))
    return _if_negative(n, b.binary("multiply", inner, alpha))


@operator("Selu")
def selu(n: Node) -> Value:
    b, alpha, gamma = n.b, n.attr("alpha", 1.67326319217681884765625), n.attr("gamma", 1.05070102214813232421875)
    inner = b.binary("multiply", b.unary("exponential_minus_one", n[0]), alpha)
    return b.binary("multiply", b.select(b.compare("LE", n[0], 0), inner, n[0]), gamma)


@operator("Softplus")
def softplus(n: Node) -> Value:
    b, x = n.b, n[0]
    rest = b.unary("log_plus_one", b.unary("exponential", b.unary("negate", b.unary("abs", x))))
    return b.binary("add", b.binary("maximum", x, 0), rest)


@operator("Softsign")
def softsign(n: Node) -> Value:
    return n.b.binary("divide", n[0], n.b.binary("add", n.b.unary("abs", n[0]), 1))


@operator("HardSigmoid", "HardSwish")
def hard_sigmoid(n: Node) -> Value:
    b, x = n.b, n[0]
    swish = n.proto.op_type == "HardSwish"
    alpha, beta = (1 / 6, 0.5) if swish else (n.attr("alpha", 0.2), n.attr("beta", 0.5))
    y = b.binary("add", b.binary("multiply", x, alpha), beta)
    y = b.binary("minimum", b.binary("maximum", y, 0), 1)
    return b.binary("multiply", x, y) if swish else y


@operator("ThresholdedRelu")
def thresholded_relu(n: Node) -> Value:
    return n.b.select(n.b.compare("GT", n[0], n.attr("alpha", 1.0)), n[0], 0)


@operator("Shrink")
def shrink(n: Node) -> Value:
    b, x, limit, bias = n.b, n[0], n.attr("lambd", 0.5), n.attr("bias", 0.0)
    above = b.select(b.compare("GT", x, limit), b.binary("subtract", x, bias), 0)
    return b.select(b.compare("LT", x, -limit), b.binary("add", x, bias), above)


@operator("Gelu")
def gelu(n: Node) -> Value:
    b, x = n.b, n[0]
    if n.attr("approximate", "none") == "tanh":
        cube = b.binary("multiply", b.binary("multiply", x, x), x)
        inner = b.binary(
            "multiply", b.binary("add", x, b.binary("multiply", cube, 0.044715)), math.sqrt(2 / math.pi)
        )
        inner = b.unary("tanh", inner)
    else:
        inner = b.unary("erf", b.binary("multiply", x, math.sqrt(0.5)))
    return b.binary("multiply", b.binary("multiply", x, 0.5), b.binary("add", inner, 1))


@operator("Dropout")
def dropout(n: Node) -> list[Value]:
    training = n.known(2)
    if n.has(2) and training is None:
        raise Refused("Dropout whose mode is computed at run time")
    ratio = n.known(1)
    drops = training is not None and bool(training) and (ratio is None or float(ratio) != 0)
    if drops or (n.opset < 7 and not n.attr("is_test", 0)):
        raise Refused("Dropout in training, which is random")
    return [n[0], n.b.full(True, "i1", n[0].shape)]


# Casts.


@operator("Cast")
def cast(n: Node) -> Value:
    if n.attr("round_mode", "up") != "up":
        raise Refused("Cast with a round_mode")
    return converted(n.b, n[0], element_of(int(n.attr("to"))), bool(n.attr("saturate", 1)))


@operator("CastLike")
def cast_like(n: Node) -> Value:
    return converted(n.b, n[0], n[1].element, bool(n.attr("saturate", 1)))


def converted(b: Builder, x: Value, element: str, saturate: bool = True) -> Value:
    """``x`` as ONNX casts it: floats of 8 bits stop at the largest one, integers keep their low bits."""
    if x.element == element:
        return x
    if is_complex(x.element) or is_complex(element):
        raise Refused("casts of complex numbers")
    if is_code(element):
        return to_float8(b, x, element, saturate)
    if element == "i1":
        return b.compare("NE", x, 0)
    if is_float(x.element) and is_integer(element):
        return b.convert(b.convert(_widened(b, x), "i64" if width(element) < 64 else element), element)
    if width(element) < 8 and is_integer(element):
        return b.convert(b.convert(x, "ui8" if is_unsigned(element) else "i8"), element)
    return b.convert(_widened(b, x), element)


def _widened(b: Builder, x: Value) -> Value:
    small = is_code(x.element) or (is_integer(x.element) and width(x.element) < 8)
    if not small:
        return x
    return b.convert(x, "f32" if is_float(x.element) else "ui8" if is_unsigned(x.element) else "i8")


def to_float8(b: Builder, x: Value, element: str, saturate: bool) -> Value:
    dtype = np.dtype(DTYPES[element])
    y = b.convert(x, "f64" if x.element == "f64" else "f32")
    largest = float(_largest(dtype))
    if saturate:
        limited = b.binary("minimum", b.binary("maximum", y, -largest), largest)
        y = b.select(b.compare("NE", y, y), y, limited)
    elif element.endswith("UZ") or element == "f8E4M3FN":
        # What rounds to more than the largest is NaN, as infinities are.
        y = b.select(b.compare("EQ", b.unary("abs", y), math.inf), math.nan, y)
    return b.convert(y, element)


def _largest(dtype: Any) -> Any:
    import ml_dtypes

    return ml_dtypes.finfo(dtype).max


@operator("BitCast")
def bit_cast(n: Node) -> Value:
    b, x, to = n.b, n[0], element_of(int(n.attr("to")))
    if "i1" in (to, x.element) and 8 in (width(to), width(x.element)):  # a byte, 0 or 1
        return b.compare("NE", b.bitcast(x, "i8"), 0) if to == "i1" else b.bitcast(b.convert(x, "i8"), to)
    if width(to) != width(x.element) or "i1" in (to, x.element):
        raise Refused("BitCast to elements of another size")
    return b.bitcast(x, to)


def clamped_convert(b: Builder, x: Value, element: str) -> Value:
    """Floats, which are whole, as integers: those too large become the largest."""
    low, high = limits(element)
    x = b.binary("minimum", b.binary("maximum", x, float(low)), float(high))
    return b.convert(b.convert(x, "i32"), element)
