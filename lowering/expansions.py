"""Operations in terms of others, for code generators that lack them or make something else of them.

An expansion gives text for an operation, in which ``%0``, ``%1`` and so on are its operands, and whose last
results are those of the operation; or ``""`` for one that stays. Results are what MLIR defines, special values
included: here is what upstream expands with others.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir

Expansion = Callable[[Any], str]

#: Kinds of ``vector.reduction``, and of ``memref.atomic_rmw`` by number.
_EXTREMA = ("maximumf", "minimumf")
_ATOMIC_KINDS = {4: "maximumf", 5: "maxnumf", 8: "minimumf", 9: "minnumf"}


def expand(root: Any, expansions: Mapping[str, Expansion]) -> None:
    """Expand the operations under ``root``, by their names, and those that they become."""
    work = list(mlir_util.walk(root))
    while work:
        op = work.pop()
        text = expansions[op.name](op) if op.name in expansions else ""
        if text:
            made = mlir_util.insert(op, text, op.operands)
            values = [result for new in made for result in new.results]
            mlir_util.replace_op(op, values[len(values) - len(op.results) :])
            work += [inner for new in made for inner in mlir_util.walk(new)]


def like(type_: Any, element: str) -> str:
    """``element``, or the vector of as many of them as ``type_`` has."""
    if not isinstance(type_, ir.VectorType):
        return element
    return f"vector<{'x'.join([*map(str, ir.VectorType(type_).shape), element])}>"


def element_type(type_: Any) -> Any:
    return ir.VectorType(type_).element_type if isinstance(type_, ir.VectorType) else type_


def by_elements(op: Any) -> str:
    """An elementwise operation on vectors, with one result, as one on each element."""
    (type_,) = [result.type for result in op.results]
    if not isinstance(type_, ir.VectorType):
        return ""
    count = math.prod(ir.VectorType(type_).shape)
    lines = [f"%v{n}:{count} = vector.to_elements %{n} : {v.type}" for n, v in enumerate(op.operands)]
    types = f"({', '.join(str(element_type(v.type)) for v in op.operands)}) -> {element_type(type_)}"
    for number in range(count):
        operands = ", ".join(f"%v{n}#{number}" for n in range(len(op.operands)))
        lines.append(f'%r{number} = "{op.name}"({operands}) : {types}')
    results = ", ".join(f"%r{number}" for number in range(count))
    return "\n".join([*lines, f"%r = vector.from_elements {results} : {type_}"])


def clamp(op: Any) -> str:
    type_ = op.operands[0].type
    return f"%n = arith.minimumf %0, %2 : {type_}\n%r = arith.maximumf %n, %1 : {type_}"


def sincos(op: Any) -> str:
    type_ = op.operands[0].type
    return f"%s = math.sin %0 : {type_}\n%c = math.cos %0 : {type_}"


def maximum(op: Any) -> str:
    """``arith.maximumf`` and ``arith.minimumf`` by comparisons: NaN if an operand is, and -0 is less than +0.

    Upstream's arith-expand confuses the zeros. Where they are equal, the bits are, but for the sign of a zero.
    """
    type_ = op.results[0].type
    predicate, of_signs = ("ugt", "andi") if op.name.endswith("maximumf") else ("ult", "ori")
    bits, bools = like(type_, f"i{ir.FloatType(element_type(type_)).width}"), like(type_, "i1")
    chosen = f"{bools}, {type_}" if bools != "i1" else str(type_)
    return f"""
        %first = arith.cmpf {predicate}, %0, %1 : {type_}
        %either = arith.select %first, %0, %1 : {chosen}
        %left = arith.bitcast %0 : {type_} to {bits}
        %right = arith.bitcast %1 : {type_} to {bits}
        %common = arith.{of_signs} %left, %right : {bits}
        %same = arith.bitcast %common : {bits} to {type_}
        %equal = arith.cmpf oeq, %0, %1 : {type_}
        %number = arith.select %equal, %same, %either : {chosen}
        %missing = arith.cmpf uno, %1, %1 : {type_}
        %result = arith.select %missing, %1, %number : {chosen}
    """


def reduction(op: Any) -> str:
    """``vector.reduction`` to the maximum or minimum, as operations on elements."""
    kind = next((kind for kind in _EXTREMA if f"<{kind}>" in str(op.attributes["kind"])), None)
    if kind is None:
        return ""
    vector = ir.VectorType(op.operands[0].type)
    count = math.prod(vector.shape)
    lines = [f"%v:{count} = vector.to_elements %0 : {vector}"]
    values = [*(f"%v#{number}" for number in range(count)), *(["%1"] if len(op.operands) > 1 else [])]
    result = values[0]
    for number, value in enumerate(values[1:]):
        lines.append(f"%r{number} = arith.{kind} {result}, {value} : {vector.element_type}")
        result = f"%r{number}"
    if result == values[0]:
        lines.append(f"%r = arith.{kind} {result}, {result} : {vector.element_type}")
    return "\n".join(lines)


def atomic(op: Any) -> str:
    """``memref.atomic_rmw`` to the maximum or minimum of floats, as a loop that compares and exchanges."""
    kind = _ATOMIC_KINDS.get(ir.IntegerAttr(op.attributes["kind"]).value)
    if kind is None:
        return ""
    value, memref, *indices = op.operands
    where = ", ".join(f"%{number + 2}" for number in range(len(indices)))
    return f"""
        %r = memref.generic_atomic_rmw %1[{where}] : {memref.type} {{
        ^bb0(%old: {value.type}):
          %new = arith.{kind} %old, %0 : {value.type}
          memref.atomic_yield %new : {value.type}
        }}
    """


def power(op: Any) -> str:
    """``math.fpowi`` by ``math.powf`` in f64, whose exponents are exact up to 2^53; beyond, what counts of them is
    whether they are odd. Upstream multiplies, rounding each time, and loses small results of negative exponents.
    """
    type_, exponent = (operand.type for operand in op.operands)
    wide, odd = like(type_, "f64"), like(type_, "i1")
    widened = "%0" if wide == str(type_) else "%x"
    chosen = f"{odd}, {wide}" if odd != "i1" else wide
    lines = [
        *([] if widened == "%0" else [f"%x = arith.extf %0 : {type_} to {wide}"]),
        f"%size = math.absf {widened} : {wide}",
        f"%n = arith.sitofp %1 : {exponent} to {wide}",
        f"%p = math.powf %size, %n : {wide}",
        f"%signed = math.copysign %p, {widened} : {wide}",
        f"%odd = arith.trunci %1 : {exponent} to {odd}",
        f"%r = arith.select %odd, %signed, %p : {chosen}",
        *([] if widened == "%0" else [f"%narrow = arith.truncf %r : {wide} to {type_}"]),
    ]
    return "\n".join(lines)


def in_single(op: Any) -> str:
    """A function of one number of fewer bits than f32, in f32."""
    type_ = op.operands[0].type
    if ir.FloatType(element_type(type_)).width >= 32:
        return ""
    wide = like(type_, "f32")
    return f"""
        %x = arith.extf %0 : {type_} to {wide}
        %y = {op.name} %x : {wide}
        %r = arith.truncf %y : {wide} to {type_}
    """
