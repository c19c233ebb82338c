"""Accesses of memory that LLVM has no vectors for, as ones of integers that it has them for.

LLVM does not vectorise loops that move bf16, and takes parts of vectors of these apart, without the instructions
for bf16, which take small numbers for zeros: they are read and written as i16.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from devscope.lowering.expansions import Expansion, element_type, expand, like
from devscope.lowering.interop.bindings import ir


def access_as_integers(ops: Iterable[Any]) -> None:
    """Replace such accesses among ``ops``, of LLVM's dialect."""
    expand([op for op in ops if op.name in _EXPANSIONS], _EXPANSIONS)


def _load(op: Any) -> str:
    if not isinstance(op.results[0].type, ir.BF16Type):
        return ""
    return "%bits = llvm.load %0 : !llvm.ptr -> i16\n%y = llvm.bitcast %bits : i16 to bf16"


def _store(op: Any) -> str:
    if not isinstance(op.operands[0].type, ir.BF16Type):
        return ""
    return "%bits = llvm.bitcast %0 : bf16 to i16\nllvm.store %bits, %1 : i16, !llvm.ptr"


def _load_part(op: Any) -> str:
    type_ = op.results[0].type
    if not isinstance(element_type(type_), ir.BF16Type) or len(op.operands) != 3:
        return ""
    bits = like(type_, "i16")
    return f"""
        %others = llvm.bitcast %2 : {type_} to {bits}
        %x = llvm.intr.masked.load %0, %1, %others {{alignment = {op.attributes["alignment"]}}}
          : (!llvm.ptr, {op.operands[1].type}, {bits}) -> {bits}
        %y = llvm.bitcast %x : {bits} to {type_}
    """


def _store_part(op: Any) -> str:
    type_ = op.operands[0].type
    if not isinstance(element_type(type_), ir.BF16Type):
        return ""
    bits = like(type_, "i16")
    return f"""
        %x = llvm.bitcast %0 : {type_} to {bits}
        llvm.intr.masked.store %x, %1, %2 {{alignment = {op.attributes["alignment"]}}}
          : {bits}, {op.operands[2].type} into !llvm.ptr
    """


_EXPANSIONS: Mapping[str, Expansion] = {
    "llvm.load": _load,
    "llvm.store": _store,
    "llvm.intr.masked.load": _load_part,
    "llvm.intr.masked.store": _store_part,
}
