"""bf16 on processors, roots of f16, and f64 that becomes f16: computed in f32, and rounded by arithmetic.

LLVM does the same, but takes vectors apart, and calls a function for each bf16 that it rounds. Upstream's passes
for that, arith-emulate-unsupported-floats and arith-expand{include-bf16}, change signs (negf) by way of f32, too,
and make one positive NaN of all.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from devscope.lowering.expansions import Expansion, element_type, expand, like
from devscope.lowering.interop.bindings import ir

_INTEGERS = tuple(f"math.{name}" for name in ("floor", "ceil", "trunc", "round", "roundeven"))
_EXTREMA = tuple(f"arith.{name}" for name in ("maximumf", "minimumf", "maxnumf", "minnumf"))

_COMPUTED = (
    *(f"arith.{name}" for name in ("addf", "subf", "mulf", "divf")),
    *_EXTREMA,
    "math.fma",
    *(f"arith.{name}" for name in ("fptosi", "fptoui", "sitofp", "uitofp", "cmpf")),
    "arith.select",  # of bits, LLVM makes a choice of bf16 of it again, and takes vectors apart
)

_ALSO_OF_HALF = ("math.sqrt", "math.rsqrt", *_INTEGERS)
"""What is f32's of f16, too: LLVM takes vectors apart."""

_EXACT = (*_INTEGERS, *_EXTREMA)
"""Whose results in f32 are bf16."""


def expand_short_floats(ops: Iterable[Any]) -> None:
    """Replace what is done with bf16, and roots of f16, among ``ops``: code behind which is LLVM's."""
    found = [op for op in ops if op.name in _EXPANSIONS and any(map(_is_short, (*op.operands, *op.results)))]
    if found:
        expand(found, _EXPANSIONS)


def _is_brain_float(value: Any) -> bool:
    return isinstance(element_type(value.type), ir.BF16Type)


def _is_short(value: Any) -> bool:
    return isinstance(element_type(value.type), (ir.BF16Type, ir.F16Type))


def _compute(op: Any) -> str:
    """The same operation in f32 where it is in bf16; other operands and results stay."""
    return _in_single(op, _is_brain_float)


def _compute_also_half(op: Any) -> str:
    return _in_single(op, _is_short)


def _in_single(op: Any, is_short: Callable[[Any], bool]) -> str:
    (result,), operands = op.results, list(op.operands)
    short = [number for number, value in enumerate(operands) if is_short(value)]
    if not short and not is_short(result):
        return ""
    names = [f"%x{number}" if number in short else f"%{number}" for number in range(len(operands))]
    types = [str(value.type) for value in operands]
    lines: list[str] = []
    for number in short:
        types[number] = like(operands[number].type, "f32")
        lines.append(f"%x{number} = arith.extf %{number} : {operands[number].type} to {types[number]}")
    wide = like(result.type, "f32") if is_short(result) else str(result.type)
    attributes = f"{{predicate = {op.attributes['predicate']}}}" if "predicate" in op.attributes else ""
    lines.append(f'%y = "{op.name}"({", ".join(names)}) {attributes} : ({", ".join(types)}) -> {wide}')
    if op.name in _EXACT and _is_brain_float(result):
        i32 = like(result.type, "i32")
        lines.append(f"%bits = arith.bitcast %y : {wide} to {i32}\n{_upper_halves('%bits', '%r', result.type)}")
    elif op.name in _INTEGERS:
        # LLVM would take this for a function of f16 again, did it know that the sign is the same.
        lines.append(f"%signed = math.copysign %y, %x0 : {wide}")
        lines.append(f"%r = arith.truncf %signed : {wide} to {result.type}")
    elif is_short(result):
        lines.append(f"%r = arith.truncf %y : {wide} to {result.type}")
    return "\n".join(lines)


def _of_bits(op: Any) -> str:
    """A change of the sign, also that of a NaN."""
    type_ = op.results[0].type
    if not _is_brain_float(op.results[0]):
        return ""
    bits = like(type_, "i16")
    steps = {
        "arith.negf": f"%y = arith.xori %a, %sign : {bits}",
        "math.absf": f"%y = arith.andi %a, %others : {bits}",
        "math.copysign": f"""
            %b = arith.bitcast %1 : {type_} to {bits}
            %size = arith.andi %a, %others : {bits}
            %of_other = arith.andi %b, %sign : {bits}
            %y = arith.ori %size, %of_other : {bits}""",
    }
    return f"""
        %a = arith.bitcast %0 : {type_} to {bits}
        {_constant("sign", -0x8000, bits)}
        {_constant("others", 0x7FFF, bits)}
        {steps[op.name]}
        %r = arith.bitcast %y : {bits} to {type_}
    """


def _extend(op: Any) -> str:
    """The bits of a bf16 are the upper ones of an f32."""
    source, type_ = op.operands[0].type, op.results[0].type
    if not _is_brain_float(op.operands[0]):
        return ""
    i16, i32, f32 = (like(type_, element) for element in ("i16", "i32", "f32"))
    wide = "" if str(type_) == f32 else f"%more = arith.extf %y : {f32} to {type_}"
    return f"""
        %bits = arith.bitcast %0 : {source} to {i16}
        %upper = arith.extui %bits : {i16} to {i32}
        {_constant("width", 16, i32)}
        %moved = arith.shli %upper, %width : {i32}
        %y = arith.bitcast %moved : {i32} to {f32}
        {wide}
    """


def _round(op: Any) -> str:
    """To nearest, ties to even, of an f32: about half of the last digit is added to the bits. A NaN stays one."""
    source, type_ = op.operands[0].type, op.results[0].type
    if isinstance(element_type(source), ir.F64Type) and _is_short(op.results[0]):
        return _round_twice(source, type_)
    if not _is_brain_float(op.results[0]) or not isinstance(element_type(source), ir.F32Type):
        return ""
    i1, i32 = (like(type_, element) for element in ("i1", "i32"))
    return f"""
        %bits = arith.bitcast %0 : {source} to {i32}
        {_constant("digits", 16, i32)}
        {_constant("one", 1, i32)}
        {_constant("below_half", 0x7FFF, i32)}
        {_constant("quiet", 0x400000, i32)}
        %upper = arith.shrui %bits, %digits : {i32}
        %odd = arith.andi %upper, %one : {i32}
        %half = arith.addi %odd, %below_half : {i32}
        %rounded = arith.addi %bits, %half : {i32}
        %no_number = arith.ori %bits, %quiet : {i32}
        %is_nan = arith.cmpf uno, %0, %0 : {source}
        %chosen = arith.select %is_nan, %no_number, %rounded : {i1}, {i32}
        {_upper_halves("%chosen", "%y", type_)}
    """


def _upper_halves(bits: str, to: str, type_: Any) -> str:
    """``to``: the bf16 whose digits are the upper ones of ``bits``, of 32 each; of vectors as a choice of halves,
    which is one instruction for two."""
    i16, i32 = like(type_, "i16"), like(type_, "i32")
    if isinstance(type_, ir.VectorType):
        *outer, last = ir.VectorType(type_).shape
        halves = f"vector<{'x'.join(map(str, [*outer, 2 * last]))}xi16>"
        taken = f"""%halves = vector.bitcast {bits} : {i32} to {halves}
            %lower, %narrow = vector.deinterleave %halves : {halves} -> {i16}"""
    else:
        taken = f"""{_constant("width", 16, i32)}
            %shifted = arith.shrui {bits}, %width : {i32}
            %narrow = arith.trunci %shifted : {i32} to {i16}"""
    return f"{taken}\n{to} = arith.bitcast %narrow : {i16} to {type_}"


def _round_twice(source: Any, type_: Any) -> str:
    """Of an f64, which first becomes an f32 whose last digit is odd where it lost any, so that it is no tie."""
    f32, i32, i1 = (like(type_, element) for element in ("f32", "i32", "i1"))
    return f"""
        %near = arith.truncf %0 : {source} to {f32}
        %back = arith.extf %near : {f32} to {source}
        %size = math.absf %0 : {source}
        %size_back = math.absf %back : {source}
        %larger = arith.cmpf ogt, %size_back, %size : {source}
        %other = arith.cmpf one, %back, %0 : {source}
        %bits = arith.bitcast %near : {f32} to {i32}
        %one_less = arith.extsi %larger : {i1} to {i32}
        %last = arith.extui %other : {i1} to {i32}
        %below = arith.addi %bits, %one_less : {i32}
        %odd = arith.ori %below, %last : {i32}
        %single = arith.bitcast %odd : {i32} to {f32}
        %y = arith.truncf %single : {f32} to {type_}
    """


def _constant(name: str, number: int, type_: str) -> str:
    return f"%{name} = arith.constant {f'dense<{number}>' if 'vector' in type_ else number} : {type_}"


_EXPANSIONS: Mapping[str, Expansion] = {
    **dict.fromkeys(_COMPUTED, _compute),
    **dict.fromkeys(_ALSO_OF_HALF, _compute_also_half),
    **dict.fromkeys(("arith.negf", "math.absf", "math.copysign"), _of_bits),
    "arith.extf": _extend,
    "arith.truncf": _round,
}
