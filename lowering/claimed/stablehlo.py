"""What backends take of a program in StableHLO as it is written, before the rest becomes linalg.

Patterns that name operations of StableHLO or CHLO are asked of such a program. What they take stays StableHLO,
also when `Backend.codegen` sees it: while the rest is converted, the functions of it are declarations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from typing import Any

from xdsl.dialects.builtin import ModuleOp, NoneAttr, StringAttr, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute
from xdsl.rewriter import InsertPoint, Rewriter

from devscope.analysis.patterns import Match, Pattern
from devscope.analysis.patterns.language import Answer, Custom, Op
from devscope.analysis.symbols import Symbols, is_claimed, named_function
from devscope.backends.backend import Row, Selected
from devscope.backends.registry import get_backend
from devscope.dialects.device import COMPOSITE_ATTR
from devscope.errors import OptionError
from devscope.passes.device_partition import Partition, PartitionOptions, partition_module
from devscope.passes.device_partition.backends import refusal
from devscope.runtime.dtypes import DTYPES

_DIALECTS = ("stablehlo.", "chlo.")
_STAYS = "stablehlo.custom_call"
"""What is asked together with all that becomes linalg."""


@dataclass(frozen=True)
class _OfStableHlo(Selected):
    """A backend with the patterns that are asked of StableHLO."""

    @property
    def patterns(self) -> Sequence[Row]:
        return [
            Row(name, pattern, _of_kept_types(predicate))
            for name, pattern, predicate in super().patterns
            if _names_stablehlo(pattern)
        ]


def _names_stablehlo(pattern: Pattern) -> bool:
    names = pattern.names if isinstance(pattern, Op) else pattern.roots if isinstance(pattern, Custom) else ()
    return any(name.startswith(_DIALECTS) and name != _STAYS for name in names) or any(
        map(_names_stablehlo, pattern.parts())
    )


def _of_kept_types(predicate: Callable[[Any], Answer] | None) -> Callable[[Match], Answer]:
    """``predicate``, of values that are of the same types where the rest of the program is linalg."""

    def check(match: Match) -> Answer:
        types = (value.type for op in match.ops for value in (*op.operands, *op.results))
        changed = next((type_ for type_ in types if not _is_kept(type_)), None)
        if changed is not None:
            return f"{changed} is stored as another type: patterns of linalg may take this"
        return refusal(predicate, match) or True

    return check


def _is_kept(type_: Attribute) -> bool:
    if not isinstance(type_, TensorType):
        return False
    return str(type_.get_element_type()) in DTYPES and isinstance(type_.encoding, NoneAttr)


def of_stablehlo(backends: Sequence[Selected]) -> list[Selected]:
    """Those with patterns that are asked of StableHLO, with these alone."""
    values = [{field.name: getattr(one, field.name) for field in fields(one)} for one in backends]
    return [one for one in (_OfStableHlo(**each) for each in values) if one.patterns]


def claim(module: ModuleOp, backends: Sequence[Selected], options: PartitionOptions | None) -> Partition:
    """Make functions of what backends, as `of_stablehlo` gives them, take of a module in StableHLO."""
    found = partition_module(module, backends, options and replace(options, places=False))
    taken = [row for row in found.taken if row.called]
    return Partition(found.strategy, taken, found.refusals)


def hold(module: ModuleOp) -> list[FuncOp]:
    """Take out the functions of patterns that name StableHLO; what others call stays as a declaration."""
    functions = Symbols(module).functions
    held = {name: op for name, op in functions.items() if op.body.blocks and _is_of_stablehlo(op)}
    held |= {name: op for name, op in functions.items() if is_claimed(op) and _calls(op) & held.keys()}
    called = {callee for name, op in functions.items() if name not in held for callee in _calls(op)}
    for name, function in held.items():
        if name in called:
            Rewriter.insert_op(function.clone_without_regions(), InsertPoint.before(function))
        function.detach()
    return list(held.values())


def put_back(module: ModuleOp, held: Sequence[FuncOp]) -> None:
    """Put functions that were taken out in the place of their declarations; those that nothing calls are gone."""
    waiting = {function.sym_name.data: function for function in held}
    for name, declaration in Symbols(module).functions.items():
        needed = [name] if name in waiting else []
        for callee in needed:
            if (function := waiting.pop(callee, None)) is not None:
                Rewriter.insert_op(function, InsertPoint.before(declaration))
                needed += sorted(_calls(function))
        if needed:
            declaration.detach()


def _calls(function: FuncOp) -> set[str]:
    return {name for op in function.body.walk() if (name := named_function(op)) is not None}


def _is_of_stablehlo(function: FuncOp) -> bool:
    composite = function.attributes.get(COMPOSITE_ATTR)
    if not is_claimed(function) or not isinstance(composite, StringAttr):
        return False
    backend, _, pattern = composite.data.partition(".")
    with suppress(OptionError):  # whoever compiles it says what is wrong
        return any(row[0] == pattern and _names_stablehlo(row[1]) for row in get_backend(backend).patterns)
    return False
