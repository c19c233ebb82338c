"""``device-merge``: equal private functions become one.

Equal are functions of one signature, target and scope whose bodies are the same operations in the same order
with the same attributes, whatever they and their values are called and wherever they come from. Constants whose
data stays in MLIR are equal if MLIR holds them as one.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass

from devscope.dialects.names import op_name
from devscope.passes.border.symbols import Symbols

_NAMES = ("sym_name", "callee")
"""Attributes that are compared by what they stand for."""


@dataclass(frozen=True)
class DeviceMergePass(ModulePass):
    """Merge private functions that are equal but for their names."""

    name = "device-merge"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        merge_equal_functions(op)


def merge_equal_functions(module: ModuleOp) -> None:
    """Merge private functions that are equal but for their names; the first of each kind stays."""
    symbols = Symbols(module)
    candidates = [f for f in symbols.functions.values() if f in symbols.private]
    stands_for: dict[str, str] = {}
    changed = len(candidates) > 1
    while changed:  # Callers may be equal once their callees are.
        changed = False
        first: dict[Hashable, FuncOp] = {}
        for function in candidates:
            name = function.sym_name.data
            if name in stands_for:
                continue
            other = first.setdefault(_fingerprint(function, stands_for), function)
            if other is not function:
                stands_for[name] = other.sym_name.data
                changed = True
    if not stands_for:
        return
    for call in symbols.calls:
        callee = symbols.callee(call)
        if (
            callee is not None
            and (name := _representative(callee.sym_name.data, stands_for)) != callee.sym_name.data
        ):
            container = call.properties if "callee" in call.properties else call.attributes
            container["callee"] = SymbolRefAttr(name)
    for name in stands_for:
        symbols.functions[name].detach()
        symbols.functions[name].erase(safe_erase=False)


def _representative(name: str, stands_for: Mapping[str, str]) -> str:
    while name in stands_for:
        name = stands_for[name]
    return name


def _fingerprint(function: FuncOp, stands_for: Mapping[str, str]) -> Hashable:
    """What a function is but for its name, as a value that is equal for equal functions, and for no others."""
    numbers: dict[SSAValue, int] = {}
    blocks: dict[Block, int] = {}
    found: list[Hashable] = []
    for op in function.walk():
        # Regions and blocks as they come, so that their arguments and successors have numbers.
        shape: list[Hashable] = []
        for region in op.regions:
            shape.append(len(region.blocks))
            for block in region.blocks:
                blocks[block] = len(blocks)
                shape.append((len(block.ops), tuple(block.arg_types)))
                for argument in block.args:
                    numbers[argument] = len(numbers)
        for result in op.results:
            numbers[result] = len(numbers)
        found.append(
            (
                op_name(op),
                tuple(shape),
                tuple(result.type for result in op.results),
                _attributes(op, function, stands_for),
                tuple(blocks.get(block, -1) for block in op.successors),
            )
        )
    # A second round: in a loop of branches, a value may stand before its definition.
    found += (tuple(numbers.get(value, -1) for value in op.operands) for op in function.walk())
    return tuple(found)


def _attributes(op: Operation, function: FuncOp, stands_for: Mapping[str, str]) -> Hashable:
    entries: set[tuple[str, Attribute | str]] = set()
    for container in (op.attributes, op.properties):
        entries.update((name, value) for name, value in container.items() if name not in _NAMES)
    callee = op.get_attr_or_prop("callee")
    if isinstance(callee, SymbolRefAttr):
        name = _representative(callee.string_value(), stands_for)
        # Functions that call themselves are equal if they do so in the same places.
        entries.add(("callee", "" if name == function.sym_name.data else name))
    elif callee is not None:
        entries.add(("callee", callee))
    return frozenset(entries)
