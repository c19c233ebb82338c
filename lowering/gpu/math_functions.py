"""Functions of kernels, for devices whose driver has no library of them.

They are `elementary_functions`; here are those that need loops, branches or wide integers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from devscope.lowering import elementary_functions, expansions, mlir_util
from devscope.lowering.arithmetic import BIAS, MANTISSA, Value
from devscope.lowering.function_parts import PI
from devscope.lowering.gpu.to_llvm import call_functions
from devscope.lowering.interop.bindings import ir
from devscope.lowering.mlir_util import RunPasses
from devscope.lowering.pipelines import pipeline
from devscope.lowering.trigonometric_functions import is_far, reduce_near, sine, tangent

#: Bits of a product with 2/pi in fixed point.
_WIDTH = {"f32": 128, "f64": 192}


def _reduce_large(x: Value) -> tuple[Value, Value]:
    """n modulo 4 and r, where the size of x, at least 1, is n pi/2 + r.

    In fixed point, with as many digits of 2/pi as the exponent asks for (M. Payne and R. Hanek, Radian reduction
    for trigonometric functions, SIGNUM Newsletter 18, 1983). Numbers of f64 are no nearer than 2^-62 to a multiple
    of pi/2 (J.-M. Muller, Elementary Functions, 2nd edition, 9.3), so that at least 64 bits of r are right.
    """
    mantissa, bias, width = MANTISSA[x.element], BIAS[x.element], _WIDTH[x.element]
    wide, longest = f"i{width}", f"i{width + bias - mantissa}"
    number = x.op("math.absf").cast("bitcast", "i")
    exponent = number.op("arith.shrui", mantissa).op("arith.minui", 2 * bias)  # of infinity it is more
    digits = number.op("arith.andi", 2**mantissa - 1).op("arith.ori", 2**mantissa)
    two_over_pi = Value(x.lines, "", longest).const(int(2 / PI * 2 ** (width - 2 + bias - mantissa)))
    factor = two_over_pi.op("arith.shrui", (2 * bias - exponent).to("extui", longest)).to("trunci", wide)
    turns = digits.to("extui", wide).op("arith.muli", factor)  # of which 2^(width - 2) is pi/2
    n = (turns + 2 ** (width - 3)).op("arith.shrui", width - 2).to("trunci", number.type)
    part = turns.op("arith.shli", 2)  # signed: what n does not have
    size = part.op("math.absi")
    zeros = size.op("math.ctlz")
    top = size.op("arith.shli", zeros).op("arith.shrui", width - 64).to("trunci", "i64").to("extui", "i128")
    angle = top.op("arith.muli", int(PI / 2 * 2**63)).op("arith.shrui", 64).to("trunci", "i64")
    power = (bias - 63 - zeros.to("trunci", number.type)).op("arith.shli", mantissa).cast("bitcast", "f")
    r = angle.to("uitofp", x.type) * power
    sign = part.op("arith.shrui", width - 1).to("trunci", "i1")
    return n, sign.choose(0.0 - r, r)


def _reduce(x: Value) -> tuple[Value, Value]:
    """n modulo 4, and r, where x = n pi/2 + r; r is NaN unless x is finite."""
    n, r = reduce_near(x)
    x.lines.append(f"%n, %r = scf.if {is_far(x).name} -> ({n.type}, {r.type}) {{")
    other, rest = _reduce_large(x)
    negative = x.test("olt", 0.0)
    other, rest = negative.choose(0 - other, other), negative.choose(0.0 - rest, rest) + (x - x)
    x.lines.append(f"scf.yield {other.name}, {rest.name} : {n.type}, {r.type}")
    x.lines.append(f"}} else {{ scf.yield {n.name}, {r.name} : {n.type}, {r.type} }}")
    return Value(x.lines, "%n", n.type), Value(x.lines, "%r", r.type)


def _remf(x: Value, y: Value) -> Value:
    """C's fmod, exactly. LLVM's backend rounds the quotient.

    Each step takes a multiple of y, or of y 2^k where the quotient would be infinite; what is left is exact.
    """
    a, b = x.op("math.absf"), y.op("math.absf")
    start = a.test("olt", math.inf).choose(a, a.const(0.0))
    divisor = b.test("ogt", 0.0).choose(b, b.const(1.0))
    loop = Value(x.lines, "%rest", x.type)
    x.lines.append(f"%last = scf.while (%rest = {start.name}) : ({x.type}) -> {x.type} {{")
    goes_on = loop.op("math.absf").test("oge", divisor)
    x.lines.append(f"scf.condition({goes_on.name}) %rest : {x.type} }} do {{ ^bb0(%rest: {x.type}):")
    part = divisor
    for _ in range(2):
        infinite = (loop / part).op("math.absf").test("oeq", math.inf)
        part = infinite.choose(part * 2.0 ** (BIAS[x.element] - 27), part)
    step = (0.0 - (loop / part).op("math.trunc")).fma(part, loop)
    x.lines.append(f"scf.yield {step.name} : {x.type} }}")
    last = Value(x.lines, "%last", x.type)
    last = last.test("olt", 0.0).choose(last + divisor, last).op("math.copysign", x)
    last = b.test("ogt", 0.0).choose(last, x.const(math.nan))
    return a.test("olt", math.inf).choose(last, x.const(math.nan))


_FUNCTIONS: dict[str, Callable[[Value], Value]] = {
    **elementary_functions.OF_ONE,
    "cos": lambda x: sine(x, 1, _reduce),
    "sin": lambda x: sine(x, 0, _reduce),
    "tan": lambda x: tangent(x, _reduce),
}
_OF_TWO: dict[str, Callable[[Value, Value], Value]] = {**elementary_functions.OF_TWO, "remf": _remf}


def math_function(symbol: str, op: str, operands: Sequence[str], result: str) -> str:
    """A ``func.func`` that computes an operation of `math`, as text, which has that operation if need be.

    ``operands`` and ``result`` are types.
    """
    lines: list[str] = []
    arguments = [Value(lines, f"%arg{number}", type_) for number, type_ in enumerate(operands)]
    name = op.partition(".")[2]
    if name in _OF_TWO and result in MANTISSA:
        value = _OF_TWO[name](arguments[0], arguments[1])
    elif name in _FUNCTIONS and result in MANTISSA:
        value = _FUNCTIONS[name](arguments[0])
    else:
        names = ", ".join(argument.name for argument in arguments)
        value = Value(lines, "%result", result)
        lines.append(f'%result = "{op}"({names}) : ({", ".join(operands)}) -> {result}')
    parameters = ", ".join(f"{argument.name}: {argument.type}" for argument in arguments)
    body = "\n  ".join([*lines, f"return {value.name} : {result}"])
    return f"func.func @{symbol}({parameters}) -> {result} {{\n  {body}\n}}\n"


def _intrinsic(op: Any) -> str:
    """LLVM's intrinsic for an operation that MLIR makes a call of the vendor's library."""
    type_ = op.results[0].type
    name = op.name.removeprefix("arith.").removesuffix("f")
    return expansions.by_elements(op) or f'%r = "llvm.intr.{name}"(%0, %1) : ({type_}, {type_}) -> {type_}'


_EXPANSIONS = {
    **expansions.FOR_ALL,
    **dict.fromkeys((f"arith.{name}" for name in ("maximumf", "maxnumf", "minimumf", "minnumf")), _intrinsic),
    "arith.remf": expansions.by_wide_elements,
    "math.sincos": expansions.sincos,
}


def call_math_functions(gpu_modules: Any, run_passes: RunPasses) -> None:
    """Every operation of `math` becomes a call of a function of ours: MLIR would call the vendor's library."""
    expansions.expand(mlir_util.walk(gpu_modules), _EXPANSIONS)
    run_passes(gpu_modules.operation, pipeline("gpu/math"))
    texts: dict[str, str] = {}

    def symbol_of(op: Any) -> str | None:
        if not op.name.startswith("math.") and op.name != "arith.remf":
            return None
        operands, result = [str(operand.type) for operand in op.operands], str(op.results[0].type)
        symbol = "_".join(["devscope", op.name.partition(".")[2], *operands])
        texts.setdefault(symbol, math_function(symbol, op.name, operands, result))
        return symbol

    left = [op for op in mlir_util.walk(gpu_modules) if op.name.startswith("math.")]
    expansions.expand(left, dict.fromkeys((op.name for op in left), expansions.by_elements))
    call_functions(gpu_modules, symbol_of)
    functions = ir.Module.parse("".join(texts.values()), gpu_modules.context)
    run_passes(functions.operation, pipeline("gpu/to_llvm"))
    for function in mlir_util.children(functions.operation):
        function.attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<internal>", gpu_modules.context)
        gpu_modules.body.append(function)
