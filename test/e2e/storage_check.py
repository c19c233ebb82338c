"""Whether planned buffers share bytes that they must not share; knows nothing of how places are chosen."""

from __future__ import annotations

from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir

STORAGE = "devscope.storage"
_LOOPS = ("scf.for", "scf.while", "scf.forall", "scf.parallel")

#: Memory space, offset, end.
Place = tuple[str, int, int]


def check_storage(module: Any, entries: list[str]) -> int:
    """Follow the calls of every entry through planned host code; returns how many places were used."""
    functions = {mlir_util.symbol_name(f): f for f in mlir_util.functions(module) if mlir_util.has_body(f)}
    followed = _Follower(functions)
    for name in entries:
        followed.body(functions[f"devscope_entry_{name}"], {}, [])
    for function in functions.values():
        _check_uses(function)
    return len(followed.used)


class _Follower:
    def __init__(self, functions: dict[str, Any]) -> None:
        self._functions = functions
        self.used: set[Place] = set()

    def body(self, op: Any, live: dict[Any, Place], stack: list[str]) -> None:
        before = dict(live)
        # A second time through a loop, what the first one left would be in the way.
        for _ in range(2 if op.name in _LOOPS else 1):
            for region in op.regions:
                for inner in [i for block in region.blocks for i in mlir_util.children(op) if i.block == block]:
                    self._step(inner, live, stack)
        assert live == before, "a buffer outlives the block that it was made in"

    def _step(self, op: Any, live: dict[Any, Place], stack: list[str]) -> None:
        if STORAGE in op.attributes and op.name == "memref.alloc":
            number, offset, size = ir.DenseI64ArrayAttr(op.attributes[STORAGE])
            type_ = ir.MemRefType(op.results[0].type)
            needed = mlir_util.element_bytes(type_.element_type)
            for extent in type_.shape:
                needed *= extent
            assert size >= max(needed, 1), f"{size} bytes for {type_}"
            space = str(type_.memory_space)
            # A buffer of its own is the only one of its number.
            place = (f"{space} {number}", 0, size) if offset == -1 else (space, offset, offset + size)
            for other in live.values():
                assert place[0] != other[0] or place[2] <= other[1] or other[2] <= place[1], f"{place} and {other}"
            live[op.results[0]] = place
            self.used.add(place)
        elif STORAGE in op.attributes:
            del live[op.operands[0]]
        elif op.name == "func.call":
            callee = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
            if callee in self._functions and callee not in stack:
                self.body(self._functions[callee], live, [*stack, callee])
        elif len(op.regions):
            self.body(op, live, stack)


def _check_uses(function: Any) -> None:
    """Nothing uses a buffer after its release, through whatever value; nothing returns one."""
    owners: dict[Any, set[Any]] = {}
    ops = list(mlir_util.walk(function))
    for op in ops:
        if op.name == "memref.alloc" and STORAGE in op.attributes:
            owners[op.results[0]] = {op.results[0]}
    changed = True
    while changed:
        changed = any([_pass_on(op, owners) for op in ops])
    released: set[Any] = set()
    for op in ops:
        for operand in op.operands:
            assert not owners.get(operand, set()) & released, f"{op.name} uses a released buffer"
            assert op.name != "func.return" or operand not in owners, "a buffer with a place is returned"
        if op.name == "memref.dealloc" and STORAGE in op.attributes:
            released |= owners[op.operands[0]]


def _pass_on(op: Any, owners: dict[Any, set[Any]]) -> bool:
    if op.name == "func.call":
        return False
    around = op.parent.operation if op.name in ("scf.yield", "scf.condition") else op
    found: set[Any] = set().union(*(owners.get(value, set()) for value in op.operands))
    targets = [*op.results, *around.results]
    targets += [argument for block in mlir_util.blocks_of(around) for argument in block.arguments]
    changed = False
    for value in targets:
        if found and mlir_util.is_memref(value.type) and not found <= owners.setdefault(value, set()):
            owners[value] |= found
            changed = True
    return changed
