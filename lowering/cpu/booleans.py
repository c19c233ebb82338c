"""Truth values in memory, which are bytes there: LLVM does not vectorise loops that read or write i1."""

from collections.abc import Iterable, Mapping
from typing import Any

from devscope.lowering.expansions import Expansion, expand
from devscope.lowering.interop.bindings import ir


def access_as_bytes(ops: Iterable[Any]) -> None:
    """Replace loads and stores of i1 among ``ops``, of LLVM's dialect, by those of bytes that are 0 or 1."""
    expand([op for op in ops if op.name in _EXPANSIONS], _EXPANSIONS)


def _is_truth(value: Any) -> bool:
    return isinstance(value.type, ir.IntegerType) and value.type.width == 1


def _load(op: Any) -> str:
    if not _is_truth(op.results[0]):
        return ""
    return "%byte = llvm.load %0 : !llvm.ptr -> i8\n%y = llvm.trunc %byte : i8 to i1"


def _store(op: Any) -> str:
    if not _is_truth(op.operands[0]):
        return ""
    return "%byte = llvm.zext %0 : i1 to i8\nllvm.store %byte, %1 : i8, !llvm.ptr"


_EXPANSIONS: Mapping[str, Expansion] = {"llvm.load": _load, "llvm.store": _store}
