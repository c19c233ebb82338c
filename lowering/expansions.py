"""Operations in terms of others, for code generators that lack them or make something else of them.

An expansion gives text for an operation, in which ``%0``, ``%1`` and so on are its operands, and whose last
results are those of the operation; or ``""`` for one that stays. Results are what MLIR defines, special values
included: here is what upstream expands with others.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir

Expansion = Callable[[Any], str]

#: Kinds of ``vector.reduction``, and of ``memref.atomic_rmw`` by number.
_EXTREMA = ("maximumf", "minimumf")
#: What they are of i1, whose 1 is -1 as a signed number.
_OF_BITS = {
    **dict.fromkeys(("and", "mul", "minui", "maxsi"), "andi"),
    **dict.fromkeys(("or", "maxui", "minsi"), "ori"),
    **dict.fromkeys(("add", "xor"), "xori"),
}
_BITWISE = ("and", "or", "xor")
_ATOMIC_KINDS = {4: "maximumf", 5: "maxnumf", 8: "minimumf", 9: "minnumf"}

_MANTISSA = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}


def expand(ops: Iterable[Any], expansions: Mapping[str, Expansion]) -> list[Any]:
    """Expand ``ops``, by their names, and those that they become; returns what is there then."""
    work, left = list(ops), []
    while work:
        op = work.pop()
        text = expansions[op.name](op) if op.name in expansions else ""
        if text:
            made = mlir_util.insert(op, text, op.operands)
            values = [result for new in made for result in new.results]
            mlir_util.replace_op(op, values[len(values) - len(op.results) :])
            work += [inner for new in made for inner in mlir_util.walk(new)]
        else:
            left.append(op)
    return left


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
    elements = [element_type(operand.type) for operand in op.operands]
    signature = f"({', '.join(map(str, elements))}) -> {element_type(type_)}"
    lines = [f"%to0 = ub.poison : {type_}"]
    for number, position in enumerate(_positions(type_)):
        for n, operand in enumerate(op.operands):
            lines.append(f"%v{number}_{n} = vector.extract %{n}{position} : {elements[n]} from {operand.type}")
        operands = ", ".join(f"%v{number}_{n}" for n in range(len(elements)))
        lines.append(f'%r{number} = "{op.name}"({operands}) : {signature}')
        made = f"vector.insert %r{number}, %to{number} {position} : {element_type(type_)} into {type_}"
        lines.append(f"%to{number + 1} = {made}")
    return "\n".join(lines)


def _positions(type_: Any) -> list[str]:
    return [str(list(index)) for index in itertools.product(*map(range, ir.VectorType(type_).shape))]


def clamp(op: Any) -> str:
    type_ = op.operands[0].type
    return f"%n = arith.minimumf %0, %2 : {type_}\n%r = arith.maximumf %n, %1 : {type_}"


def classify(op: Any) -> str:
    """``math.isfinite`` and its like, by comparisons; those of other formats stay."""
    type_ = op.operands[0].type
    if op.name == "math.isnan":
        return f"%r = arith.cmpf uno, %0, %0 : {type_}"
    if str(element_type(type_)) not in _MANTISSA:
        return ""
    width, mantissa = ir.FloatType(element_type(type_)).width, _MANTISSA[str(element_type(type_))]
    truth = like(type_, "i1")

    def constant(bits: int) -> str:
        number = f"0x{bits:0{width // 4}X}"
        return f"arith.constant {number if truth == 'i1' else f'dense<{number}>'} : {type_}"

    return f"""
        %size = math.absf %0 : {type_}
        %infinity = {constant((2 ** (width - 1 - mantissa) - 1) << mantissa)}
        %least = {constant(1 << mantissa if op.name == "math.isnormal" else 0)}
        %large = arith.cmpf oge, %size, %least : {type_}
        %r = arith.cmpf {"oeq" if op.name == "math.isinf" else "olt"}, %size, %infinity : {type_}
        %both = arith.andi %large, %r : {truth}
    """


def single_to_odd(type_: Any) -> str:
    """Lines for f64, ``%0``, rounded to f32, to an odd number where it is none: rounded again, it is as if it was
    rounded once (S. Boldo, G. Melquiond, "Emulation of a FMA and correctly rounded sums: proved algorithms using
    rounding to odd", 2008)."""
    single, bits, truth = (like(type_, name) for name in ("f32", "i32", "i1"))
    one = "1" if truth == "i1" else "dense<1>"
    chosen = bits if truth == "i1" else f"{truth}, {bits}"
    return f"""
        %near = arith.truncf %0 : {type_} to {single}
        %back = arith.extf %near : {single} to {type_}
        %inexact = arith.cmpf one, %back, %0 : {type_}
        %size = math.absf %0 : {type_}
        %near_size = math.absf %back : {type_}
        %above = arith.cmpf ogt, %near_size, %size : {type_}
        %bits = arith.bitcast %near : {single} to {bits}
        %one = arith.constant {one} : {bits}
        %below = arith.subi %bits, %one : {bits}
        %least = arith.select %above, %below, %bits : {chosen}
        %odd = arith.ori %least, %one : {bits}
        %chosen = arith.select %inexact, %odd, %bits : {chosen}
        %number = arith.bitcast %chosen : {bits} to {single}
    """


def half_of_double(op: Any) -> str:
    """``arith.truncf`` from f64 to f16 by way of f32, which processors have instructions for."""
    types = [value.type for value in (op.operands[0], op.results[0])]
    if [str(element_type(type_)) for type_ in types] != ["f64", "f16"]:
        return ""
    return f"{single_to_odd(types[0])}\n%r = arith.truncf %number : {like(types[0], 'f32')} to {types[1]}"


def sincos(op: Any) -> str:
    type_ = op.operands[0].type
    return f"%s = math.sin %0 : {type_}\n%c = math.cos %0 : {type_}"


def maximum(op: Any) -> str:
    """``arith.maximumf`` and ``arith.minimumf`` by comparisons: NaN if an operand is, and -0 is less than +0.

    Upstream's arith-expand confuses the zeros. Where they are equal, the bits are, but for the sign of a zero: it
    does not matter if one is a constant and another number, or the greater zero where the maximum is asked for.
    """
    type_ = op.results[0].type
    is_maximum = op.name.endswith("maximumf")
    predicate, of_signs = ("ugt", "andi") if is_maximum else ("ult", "ori")
    for constant, other in ((1, 0), (0, 1)):
        number = _float_constant(op.operands[constant])
        if number is None or math.isnan(number) or (number == 0 and (math.copysign(1, number) > 0) != is_maximum):
            continue
        bools = like(type_, "i1")
        chosen = f"{bools}, {type_}" if bools != "i1" else str(type_)
        if number != 0:  # one instruction of x86
            swapped = "ogt" if is_maximum else "olt"
            return f"""
                %first = arith.cmpf {swapped}, %{constant}, %{other} : {type_}
                %result = arith.select %first, %{constant}, %{other} : {chosen}
            """
        return f"""
            %first = arith.cmpf {predicate}, %{other}, %{constant} : {type_}
            %result = arith.select %first, %{other}, %{constant} : {chosen}
        """
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


def _float_constant(value: Any) -> float | None:
    """The number that ``value`` is, or has everywhere; None where that is not known."""
    owner = None if isinstance(value.owner, ir.Block) else value.owner.operation
    if owner is not None and owner.name == "vector.broadcast":
        return _float_constant(owner.operands[0])
    if owner is None or owner.name != "arith.constant":
        return None
    attribute = owner.attributes["value"]
    if isinstance(attribute, ir.DenseElementsAttr):
        if not attribute.is_splat:
            return None
        attribute = attribute.get_splat_value()
    return ir.FloatAttr(attribute).value


def _combining_kind(op: Any) -> str:
    return str(op.attributes["kind"]).rpartition("<")[2].rstrip(">")


def reduction(op: Any) -> str:
    """``vector.reduction`` to the maximum or minimum, a sum of integers or one in any order, by halves, and of
    integers bit by bit; of bits, or of another number than a power of two, by elements.

    LLVM makes one integer of a vector of bits, also where they are counted or were made bytes before. For its
    SPIR-V backend, what may be in any order is no NaN.
    """
    vector = op.operands[0].type
    element, shape = element_type(vector), ir.VectorType(vector).shape
    kind = _combining_kind(op)
    is_bits, is_float = str(element) == "i1", isinstance(element, ir.FloatType)
    operation = _OF_BITS.get(kind) if is_bits else kind if kind in _EXTREMA else None
    if kind == "add" and not is_bits and (not is_float or "reassoc" in str(op.attributes.get("fastmath"))):
        operation = "addf" if is_float else "addi"
    if kind in _BITWISE and not is_bits:
        operation = f"{kind}i"
    if operation is None:
        return ""
    lines, first, others = list[str](), "%0", list[str]()
    if len(shape) == 1 and shape[0] & (shape[0] - 1) == 0 and shape[0] > 1 and not is_bits:
        first = _by_halves(lines, operation, element, shape[0])
    else:
        for number, position in enumerate(_positions(vector)):
            lines.append(f"%v{number} = vector.extract %0{position} : {element} from {vector}")
        first, *others = [f"%v{number}" for number in range(len(lines))]
    if len(op.operands) > 1:
        others.append("%1")
    if not others:  # the element itself, which `xori` does not give
        others = [first] if is_bits else []
        operation = operation.replace("xori", "ori")
    for number, value in enumerate(others):
        lines.append(f"%r{number} = arith.{operation} {first}, {value} : {element}")
        first = f"%r{number}"
    return "\n".join(lines)


def _by_halves(lines: list[str], operation: str, element: Any, lanes: int) -> str:
    """Add what combines ``lanes`` elements of ``%0`` to ``lines``; returns the name of the result."""
    whole = "%0"
    while lanes > 1:
        old, lanes = lanes, lanes // 2
        for half in range(2):
            order = list(range(half * lanes, (half + 1) * lanes))
            one = f"vector.extract {whole}{order} : {element} from vector<{old}x{element}>"
            some = f"vector.shuffle {whole}, {whole} {order} : vector<{old}x{element}>, vector<{old}x{element}>"
            lines.append(f"%half{lanes}_{half} = {some if lanes > 1 else one}")
        made = f"vector<{lanes}x{element}>" if lanes > 1 else element
        lines.append(f"%all{lanes} = arith.{operation} %half{lanes}_0, %half{lanes}_1 : {made}")
        whole = f"%all{lanes}"
    return whole


def scan(op: Any) -> str:
    """``vector.scan`` by slices. As in LowerVectorScan.cpp, an inclusive one does not use its initial value."""
    vector, reduced = (operand.type for operand in op.operands)
    shape, element = ir.VectorType(vector).shape, element_type(vector)
    axis, is_inclusive = op.attributes["reduction_dim"].value, op.attributes["inclusive"].value
    kind = _combining_kind(op)
    suffix = ("f" if isinstance(element, ir.FloatType) else "i") * (kind in ("add", "mul"))
    sizes = [1 if n == axis else size for n, size in enumerate(shape)]
    sliced, strides = f"vector<{'x'.join(map(str, sizes))}x{element}>", [1] * len(shape)
    lines = [f"%initial = vector.shape_cast %1 : {reduced} to {sliced}", f"%made0 = ub.poison : {vector}"]
    scanned = "%initial"
    for number in range(shape[axis]):
        offsets = [number if n == axis else 0 for n in range(len(shape))]
        lines.append(
            f"%part{number} = vector.extract_strided_slice %0"
            f" {{offsets = {offsets}, sizes = {sizes}, strides = {strides}}} : {vector} to {sliced}"
        )
        if number == 0:
            scanned = "%part0" if is_inclusive else scanned
        else:
            added = number if is_inclusive else number - 1
            lines.append(f"%sum{number} = arith.{kind}{suffix} {scanned}, %part{added} : {sliced}")
            scanned = f"%sum{number}"
        lines.append(
            f"%made{number + 1} = vector.insert_strided_slice {scanned}, %made{number}"
            f" {{offsets = {offsets}, strides = {strides}}} : {sliced} into {vector}"
        )
    result = f"%made{shape[axis]}"
    lines.append(f"%all = vector.shape_cast {result} : {vector} to {vector}")
    lines.append(f"%last = vector.shape_cast {scanned} : {sliced} to {reduced}")
    return "\n".join(lines)


def step(op: Any) -> str:
    """``vector.step`` as a constant."""
    (lanes,) = ir.VectorType(op.results[0].type).shape
    return f"%r = arith.constant dense<{list(range(lanes))}> : {op.results[0].type}"


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


def power(op: Any, wide: str = "f64") -> str:
    """``math.fpowi`` by ``math.powf`` in ``wide``, or in the type of the base if that is wider.

    In f64 exponents are exact up to 2^53; what counts of larger ones is whether they are odd. Upstream multiplies,
    rounding each time, and loses small results of negative exponents.
    """
    type_, exponent = (operand.type for operand in op.operands)
    # Neither is converted to floats and to i1 at once.
    cast = {"index": "index_cast", "i1": "extsi"}.get(str(element_type(exponent)))
    m, integer = ("%m", like(exponent, "i64")) if cast else ("%1", exponent)
    narrow = ir.FloatType(element_type(type_)).width < int(wide[1:])
    wide, odd = like(type_, wide) if narrow else str(type_), like(type_, "i1")
    x = "%x" if narrow else "%0"
    lines = [
        *([f"%x = arith.extf %0 : {type_} to {wide}"] if narrow else []),
        f"%size = math.absf {x} : {wide}",
        *([f"%m = arith.{cast} %1 : {exponent} to {integer}"] if cast else []),
        f"%n = arith.sitofp {m} : {integer} to {wide}",
        f"%p = math.powf %size, %n : {wide}",
        f"%signed = math.copysign %p, {x} : {wide}",
        f"%odd = arith.trunci {m} : {integer} to {odd}",
        f"%r = arith.select %odd, %signed, %p : {wide if odd == 'i1' else f'{odd}, {wide}'}",
        *([f"%narrow = arith.truncf %r : {wide} to {type_}"] if narrow else []),
    ]
    return "\n".join(lines)


#: The upper half of a signed product by halves of the factors (Warren, Hacker's Delight, 2nd edition, 8-2).
_HIGH = """
    a0 andi 0 mask, a1 shrsi 0 half, b0 andi 1 mask, b1 shrsi 1 half, p muli a0 b0, p1 shrui p half, q muli a1 b0,
    s addi q p1, s0 andi s mask, s1 shrsi s half, r muli a0 b1, m addi r s0, m1 shrsi m half, t muli a1 b1,
    u addi t s1, high addi u m1
"""
#: Unsigned, a number whose first bit is set is 2^64 more.
_UNSIGNED_HIGH = """
    x shrsi 0 last, x1 andi x 1, y shrsi 1 last, y1 andi y 0, z addi high x1, unsigned addi z y1
"""


def multiply_extended(op: Any) -> str:
    """``arith.mulsi_extended`` and ``mului_extended`` of 64 bits without numbers of 128.

    Not by the usual sum of unsigned products: LLVM recognises it and makes a product of 128 bits of it.
    """
    type_ = op.operands[0].type
    if str(type_) not in ("i64", "index"):
        return ""
    constants = {"half": 32, "last": 63, "mask": 2**32 - 1, "zero": 0}
    lines = [f"%{name} = arith.constant {value} : {type_}" for name, value in constants.items()]
    unsigned = op.name == "arith.mului_extended"
    steps = f"{_HIGH}, {_UNSIGNED_HIGH}" if unsigned else _HIGH
    results = f"low muli 0 1, result addi {'unsigned' if unsigned else 'high'} zero"
    for step in f"{steps}, {results}".split(","):
        name, operation, left, right = step.split()
        lines.append(f"%{name} = arith.{operation} %{left}, %{right} : {type_}")
    return "\n".join(lines)


def in_single(op: Any) -> str:
    """A function of numbers of fewer bits than f32, in f32."""
    type_ = op.operands[0].type
    if ir.FloatType(element_type(type_)).width >= 32:
        return ""
    wide = like(type_, "f32")
    count = len(op.operands)
    return "\n".join(
        [
            *(f"%x{n} = arith.extf %{n} : {type_} to {wide}" for n in range(count)),
            f"%y = {op.name} {', '.join(f'%x{n}' for n in range(count))} : {wide}",
            f"%r = arith.truncf %y : {wide} to {type_}",
        ]
    )


def by_wide_elements(op: Any) -> str:
    """An elementwise operation as one on each element, of 32 bits at least."""
    return by_elements(op) or in_single(op)


#: What no code generator knows, or none exactly.
FOR_ALL = {
    **{f"math.{name}": classify for name in ("isfinite", "isinf", "isnan", "isnormal")},
    "math.clampf": clamp,
    "math.fpowi": power,
}
