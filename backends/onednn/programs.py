"""Programs for the conformance suite: every product and convolution with everything that may follow it."""

from __future__ import annotations

from collections.abc import Iterator

_PRODUCTS = {
    "linalg.matmul": ("6x5", "5x7", "6x7", ""),
    "linalg.batch_matmul": ("3x6x5", "3x5x7", "3x6x7", ""),
    "linalg.conv_2d_nhwc_hwcf": (
        "2x6x7x3",
        "3x2x3x4",
        "2x4x6x4",
        "{strides = dense<1> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}",
    ),
}

BIAS = """  %bb = linalg.broadcast ins(%v : $V) outs(%e : $C) dimensions = [$OTHERS]
  %biased = arith.addf %r, %bb : $C"""

RELU = "  %y = arith.maximumf %x, %z : $C"
TANH = "  %y = math.tanh %x : $C"
GELU = """  %half = arith.constant dense<0.5> : $C
  %one = arith.constant dense<1.0> : $C
  %root = arith.constant dense<0.70710678118654757> : $C
  %inner = arith.mulf %x, %root : $C
  %erf = math.erf %inner : $C
  %above = arith.addf %erf, %one : $C
  %scaled = arith.mulf %x, %half : $C
  %y = arith.mulf %scaled, %above : $C"""
GELU_TANH = """  %half = arith.constant dense<0.5> : $C
  %one = arith.constant dense<1.0> : $C
  %small = arith.constant dense<0.044715> : $C
  %root = arith.constant dense<0.79788456080286536> : $C
  %square = arith.mulf %x, %x : $C
  %cube = arith.mulf %x, %square : $C
  %part = arith.mulf %cube, %small : $C
  %sum = arith.addf %x, %part : $C
  %inner = arith.mulf %sum, %root : $C
  %tanh = math.tanh %inner : $C
  %above = arith.addf %tanh, %one : $C
  %scaled = arith.mulf %x, %half : $C
  %y = arith.mulf %scaled, %above : $C"""

ACTIVATIONS = {"": "", "relu": RELU, "tanh": TANH, "gelu": GELU, "gelu_tanh": GELU_TANH}


def program(name: str, bias: bool = False, sum_: bool = False, activation: str = "") -> str:
    """A product; with ``bias`` a row is added, with ``sum_`` a tensor."""
    a, b, c, attributes = _PRODUCTS[name]
    lines = [
        "func.func @main(%a: $A, %b: $B, %c: $C, %v: $V) -> $C {",
        "  %zero = arith.constant 0.0 : f32",
        "  %z = arith.constant dense<0.0> : $C",
        "  %e = tensor.empty() : $C",
        f"  %r = {name} {attributes} ins(%a, %b : $A, $B) outs(%z : $C) -> $C",
    ]
    value = "%r"
    if bias:
        lines, value = [*lines, BIAS], "%biased"
    if sum_:
        lines, value = [*lines, f"  %summed = arith.addf {value}, %c : $C"], "%summed"
    if activation:
        lines, value = [*lines, ACTIVATIONS[activation].replace("%x", value)], "%y"
    text = "\n".join([*lines, f"  return {value} : $C", "}"])
    rank = c.count("x") + 1
    types = {"$A": a, "$B": b, "$C": c, "$V": c.rpartition("x")[2]}
    for key, shape in types.items():
        text = text.replace(key, f"tensor<{shape}xf32>")
    return text.replace("$OTHERS", ", ".join(map(str, range(rank - 1))))


def programs() -> Iterator[str]:
    for name in _PRODUCTS:
        yield program(name, bias=True)
        yield program(name, sum_=True)
        for activation in [one for one in ACTIVATIONS if one]:
            yield program(name, bias=activation != "tanh", sum_=activation == "relu", activation=activation)
