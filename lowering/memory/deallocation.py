"""``bufferization.dealloc`` -> ``memref.dealloc``, once functions are inlined.

The ownership pass asks at run time which of several buffers are the same where it cannot tell; inlined, and with
what is known of calls, it mostly can be told. A function never returns its arguments (it returns what it owns), so
what a call returns is new memory.
"""

from __future__ import annotations

from typing import Any

from devscope.dialects.op_facts import facts
from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.mlir_util import RunPasses
from devscope.lowering.pipelines import pipeline

_DEALLOC = "bufferization.dealloc"


def lower_deallocations(module: Any, run_passes: RunPasses) -> None:
    """Lower what the ownership pass left in ``module``, and clean up."""
    left = False
    for func in mlir_util.functions(module):
        if mlir_util.has_body(func):
            left |= _Function(func).free_known()
    run_passes(module, pipeline("lower_deallocations" if left else "clean_up"))


class _Function:
    def __init__(self, func: Any) -> None:
        self._origins: dict[Any, Any] = {a: a for a in mlir_util.entry_block(func).arguments}
        self._fresh: dict[Any, Any] = {}
        self._true: set[Any] = set()
        self._deallocs: list[Any] = []
        self._clones = False
        for op in mlir_util.walk(func):
            self._visit(op)

    def _visit(self, op: Any) -> None:
        source = facts(op.name).view_of
        if source is not None:
            origin = self._origins.get(op.operands[source])
            if origin is not None:
                self._origins[op.results[0]] = origin
        elif op.name == "memref.get_global":
            self._origins[op.results[0]] = op.results[0]
        elif op.name == "memref.alloc":
            self._fresh[op.results[0]] = self._origins[op.results[0]] = op.results[0]
        elif op.name == "func.call":
            buffers = [result for result in op.results if mlir_util.is_memref(result.type)]
            # Results of one call may be the same buffer.
            for result in buffers:
                self._origins[result] = buffers[0]
            if len(buffers) == 1:
                self._fresh[buffers[0]] = buffers[0]
        elif op.name == "arith.constant" and op.results[0].type == ir.IntegerType.get_signless(1, op.context):
            if ir.IntegerAttr(op.attributes["value"]).value:
                self._true.add(op.results[0])
        elif op.name == _DEALLOC:
            self._deallocs.append(op)
        self._clones |= op.name == "bufferization.clone"

    def free_known(self) -> bool:
        """Whether operations of ``bufferization`` are left."""
        left = [self._free_known(op) for op in self._deallocs]
        return self._clones or any(left)

    def _free_known(self, op: Any) -> bool:
        buffers, conditions, retained = mlir_util.operand_groups(op)
        others = [self._origins.get(value) for value in (*buffers, *retained)]
        if any(origin is None for origin in others):
            return True
        kept: list[int] = []
        for position, condition in enumerate(conditions):
            origin = others[position]
            if condition in self._true and origin in self._fresh and others.count(origin) == 1:
                mlir_util.Builder(op).op("memref.dealloc", [origin])
            else:
                kept.append(position)
        if not kept:
            self._erase(op)
            return False
        if len(kept) < len(buffers):
            groups = [buffers[k] for k in kept], [conditions[k] for k in kept], retained
            types = [result.type for result in op.results]
            mlir_util.replace_op(op, mlir_util.Builder(op).grouped(_DEALLOC, groups, types).results)
        return True

    def _erase(self, op: Any) -> None:
        """Nothing that it retains was among what it freed: none of it is owned on its account."""
        build = mlir_util.Builder(op)
        mlir_util.replace_op(op, [build.constant(0, result.type) for result in op.results])
