"""Loops of host code that a signal can end: they ask, now and then, whether the call is to be left.

A loop asks in every iteration if one may take long: if a loop of unknown length is in it, a call, or much work.
One of unknown length that has neither asks once for many iterations, which become a loop inside: LLVM vectorises
that as before. Loops that linalg becomes ask where they are outermost. Functions that call themselves ask in each
call.
"""

from math import prod
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.memory.call_graph import CallGraph
from devscope.lowering.mlir_util import Builder

_GO_ON = "devscope_go_on"
_LOOPS = frozenset({"scf.for", "scf.while", "scf.parallel"})
_MUCH = 4096
"""Operations without which asking would show in the time that an iteration takes."""
_AT_ONCE = 1 << 18
"""Iterations between two questions."""
_UNKNOWN = 1 << 40
"""The work of a loop of unknown length: always much."""


def poll_in_scalar_loops(module: Any) -> None:
    """The loops of the source, of which those without other loops may be long ones inside of others."""
    _Loops(module).poll_in_innermost()


def poll_in_loops(module: Any) -> None:
    """All loops; those that are done already, and their bodies, stay."""
    _Loops(module).poll()
    _poll_in_recursion(module)


def _poll_in_recursion(module: Any) -> None:
    graph = CallGraph(module)
    for name, function in graph.functions.items():
        if name in graph.recursive:
            Builder(_first(mlir_util.entry_block(function))).call(_GO_ON, [])


class _Loops:
    def __init__(self, module: Any) -> None:
        ops = _outside_of_tasks(module.operation)
        self._loops = [op for op in ops if op.name in _LOOPS]
        self._constants = mlir_util.constants(module) if self._loops else {}
        self._polled = {op.block for op in ops if _is_question(op)} if self._loops else set[Any]()

    def poll_in_innermost(self) -> None:
        for loop in self._loops:
            body = mlir_util.children(loop)
            is_plain = not any(_may_be_long(op) for b in body for op in mlir_util.walk(b))
            if loop.name == "scf.for" and is_plain and self._count(loop) > _AT_ONCE:
                self._ask_in_parts(loop)

    def poll(self) -> None:
        for loop in self._loops:
            if any(block in self._polled for block in mlir_util.blocks_of(loop)):
                continue
            if loop.name == "scf.while":
                self._ask(loop.regions[1].blocks[0])
            elif loop.name == "scf.parallel":
                if list(loop.results):  # others become tasks
                    self._ask(mlir_util.entry_block(loop))
            elif self._work(loop) > _MUCH:
                self._ask(mlir_util.entry_block(loop))
            elif self._count(loop) > _AT_ONCE and loop.parent.name == "func.func":
                self._ask_in_parts(loop)

    def _work(self, loop: Any) -> int:
        """Of one iteration, in operations."""
        total = 0
        for op in mlir_util.children(loop):
            inside = self._work(op) if len(op.regions) else 0
            if op.name in ("scf.while", "scf.parallel", "func.call"):
                inside = _UNKNOWN
            elif op.name == "memref.copy":
                inside = _elements(op.operands[0].type)
            elif op.name == "scf.for":
                inside = inside * self._count(op)
            total += 1 + inside
        return total

    def _count(self, loop: Any) -> int:
        bounds = [self._constants.get(value) for value in list(loop.operands)[:3]]
        numbers = [ir.IntegerAttr(bound.attributes["value"]).value for bound in bounds if bound is not None]
        if len(numbers) < 3 or numbers[2] <= 0 or mlir_util.is_unsigned(loop):
            return _UNKNOWN
        lower, upper, step = numbers
        return max(0, -((lower - upper) // step))

    def _ask(self, block: Any) -> None:
        Builder(_first(block)).call(_GO_ON, [])

    def _ask_in_parts(self, loop: Any) -> None:
        """``for i in lower..upper`` becomes ``for part in parts of n steps: ask; for i in part``.

        Parts are counted: an index that went on in their length could go beyond the largest number.
        """
        lower, upper, step = list(loop.operands)[:3]
        stride = self._constants.get(step)
        number = 0 if stride is None else ir.IntegerAttr(stride.attributes["value"]).value
        index = ir.IndexType.get(loop.context)
        if lower.type != index or not 0 < number < 1 << 30 or mlir_util.is_unsigned(loop):
            self._ask(mlir_util.entry_block(loop))
            return
        build = Builder(loop)
        carried = list(loop.operands)[3:]
        length, zero = build.constant(number * _AT_ONCE), build.constant(0)
        results = [value.type for value in loop.results]
        most = build.value("arith.maxsi", [upper, lower], index)
        extent = build.value("arith.subi", [most, lower], index)
        count = build.value("arith.ceildivui", [extent, length], index)
        outer = build.op("scf.for", [zero, count, build.constant(1), *carried], results, regions=1)
        block = ir.Block.create_at_start(outer.regions[0], [index, *results], [loop.location] * (1 + len(results)))
        for old, new in zip(loop.results, outer.results, strict=True):
            old.replace_all_uses_with(new)
        yield_ = ir.Operation.create(
            "scf.yield", operands=list(loop.results), loc=loop.location, ip=ir.InsertionPoint(block)
        )
        loop.move_before(yield_)
        inner = Builder(loop)
        inner.call(_GO_ON, [])
        part, *values = block.arguments
        start = inner.value("arith.addi", [lower, inner.multiply(part, length)], index)
        left = inner.value("arith.subi", [upper, start], index)
        end = inner.value("arith.addi", [start, inner.value("arith.minui", [left, length], index)], index)
        for number, value in enumerate([start, end, step, *values]):
            loop.operands[number] = value


def _outside_of_tasks(root: Any) -> list[Any]:
    """All operations under ``root`` but those in loops that become tasks, between which the runtime asks."""
    found: list[Any] = []

    def visit(op: Any) -> Any:
        found.append(op)
        return ir.WalkResult.SKIP if op.name == "scf.parallel" and not len(op.results) else ir.WalkResult.ADVANCE

    root.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def _may_be_long(op: Any) -> bool:
    return op.name in _LOOPS or op.name in ("func.call", "memref.copy") or op.name.startswith("linalg.")


def _elements(type_: Any) -> int:
    """How many elements a buffer has, as far as its type says."""
    shaped = ir.ShapedType(type_)
    return prod(shaped.shape) if shaped.has_rank and shaped.has_static_shape else _UNKNOWN


def _first(block: Any) -> Any:
    return block.operations[0].operation


def _is_question(op: Any) -> bool:
    return op.name == "func.call" and ir.FlatSymbolRefAttr(op.attributes["callee"]).value == _GO_ON
