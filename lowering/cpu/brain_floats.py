"""bf16 on processors: computed in f32, and rounded by arithmetic, which vectors have.

LLVM does the same, but calls a function for each element that it rounds. Upstream's passes for that,
arith-emulate-unsupported-floats and arith-expand{include-bf16}, change signs (negf) by way of f32, too, and
make one positive NaN of all.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from devscope.lowering.expansions import Expansion, element_type, expand, in_single, like
from devscope.lowering.interop.bindings import ir

_COMPUTED = ("addf", "subf", "mulf", "divf", "maximumf", "minimumf", "maxnumf", "minnumf")


def expand_brain_floats(ops: Iterable[Any]) -> None:
    """Replace arithmetic on bf16, and conversions from and to it, among ``ops``: code behind which is LLVM's."""
    found = [op for op in ops if op.name in _EXPANSIONS and any(map(_is_brain_float, (*op.operands, *op.results)))]
    if found:
        expand(found, _EXPANSIONS)


def _is_brain_float(value: Any) -> bool:
    return isinstance(element_type(value.type), ir.BF16Type)


def _compute(op: Any) -> str:
    return in_single(op) if _is_brain_float(op.results[0]) else ""


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
    if not _is_brain_float(op.results[0]) or not isinstance(element_type(source), ir.F32Type):
        return ""
    i1, i16, i32 = (like(type_, element) for element in ("i1", "i16", "i32"))
    return f"""
        %bits = arith.bitcast %0 : {source} to {i32}
        {_constant("width", 16, i32)}
        {_constant("one", 1, i32)}
        {_constant("below_half", 0x7FFF, i32)}
        {_constant("quiet", 0x40, i32)}
        %upper = arith.shrui %bits, %width : {i32}
        %odd = arith.andi %upper, %one : {i32}
        %half = arith.addi %odd, %below_half : {i32}
        %more = arith.addi %bits, %half : {i32}
        %rounded = arith.shrui %more, %width : {i32}
        %no_number = arith.ori %upper, %quiet : {i32}
        %is_nan = arith.cmpf uno, %0, %0 : {source}
        %chosen = arith.select %is_nan, %no_number, %rounded : {i1}, {i32}
        %narrow = arith.trunci %chosen : {i32} to {i16}
        %y = arith.bitcast %narrow : {i16} to {type_}
    """


def _constant(name: str, number: int, type_: str) -> str:
    return f"%{name} = arith.constant {f'dense<{number}>' if 'vector' in type_ else number} : {type_}"


_EXPANSIONS: Mapping[str, Expansion] = {
    **{f"arith.{name}": _compute for name in _COMPUTED},
    "arith.extf": _extend,
    "arith.truncf": _round,
}
