"""What a module computes for somebody: operations, arguments and results that its public functions need.

Everything is dead until it is found to be used, so that functions that only pass a value round to each other do
not keep it alive.
"""

from __future__ import annotations

from typing import Self

from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import BlockArgument, Operation, OpResult, Region, SSAValue

from devscope.analysis.call_graph import CallGraph
from devscope.analysis.effects import Effects
from devscope.analysis.manager import AnalysisManager
from devscope.analysis.symbols import CALL, function_of
from devscope.dialects.names import op_name
from devscope.dialects.op_facts import facts_of
from devscope.dialects.signature import ARGUMENTS, RESULTS

Side = tuple[FuncOp, str]
"""The arguments (`ARGUMENTS`) or the results (`RESULTS`) of a private function."""


class Liveness:
    """Live code of a module, which must not change while it is in use.

    Control flow is entered: what stands in it is live for its own sake. The bodies of computations are not.
    """

    def __init__(self, graph: CallGraph, effects: Effects) -> None:
        self.graph = graph
        self.functions: dict[FuncOp, None] = {}
        """Functions that are public, values, or called by live code."""
        self.operations: set[Operation] = set()
        self.needed: set[tuple[Side, int]] = set()
        """Arguments and results of private functions, by number."""
        self._effects = effects
        self._passing: dict[Side, list[Operation]] = {}
        """Live calls and returns, whose operands become arguments and results."""
        self._work: list[Operation | SSAValue | Region] = []
        for function in self.graph.symbols.functions.values():
            if function not in self.graph.private:
                self._reach(function)
        while self._work:
            self._step(self._work.pop())

    @classmethod
    def of(cls, analyses: AnalysisManager) -> Self:
        return cls(analyses.get(CallGraph), analyses.get(Effects))

    def _step(self, item: Operation | SSAValue | Region) -> None:
        if isinstance(item, Region):
            self._enter(item)
        elif isinstance(item, Operation):
            self._keep(item)
        elif isinstance(item, OpResult):
            self._work.append(item.op)
            self._need(self._callee(item.op), RESULTS, item.index)
        elif isinstance(item, BlockArgument):
            function = item.block.parent_op()
            if isinstance(function, FuncOp) and item.block is function.body.first_block:
                self._need(function, ARGUMENTS, item.index)

    def _reach(self, function: FuncOp) -> None:
        if function not in self.functions:
            self.functions[function] = None
            self._work.append(function.body)

    def _enter(self, region: Region) -> None:
        """Keep what acts, and what decides where control goes next."""
        for block in region.blocks:
            for op in block.ops:
                if op is block.last_op or not self._effects.is_pure(op):
                    self._work.append(op)

    def _keep(self, op: Operation) -> None:
        if op in self.operations:
            return
        self.operations.add(op)
        side = self._passed_to(op)
        if side is not None:
            self._passing.setdefault(side, []).append(op)
            self._work += (value for i, value in enumerate(op.operands) if (side, i) in self.needed)
            return
        self._work += op.operands
        if facts_of(op).is_entered:
            self._work += op.regions
        else:
            for inner in op.walk():
                if inner is not op:
                    self._work.append(inner)

    def _callee(self, op: Operation) -> FuncOp | None:
        return self.graph.symbols.callee(op) if op_name(op) == CALL else None

    def _passed_to(self, op: Operation) -> Side | None:
        """What the operands of a call or return become, if they are needed only as far as that is."""
        callee = self._callee(op)
        if callee is not None:
            self._reach(callee)
        function = function_of(op) if isinstance(op, ReturnOp) else callee
        if function is None or function not in self.graph.private:
            return None
        return function, RESULTS if isinstance(op, ReturnOp) else ARGUMENTS

    def _need(self, function: FuncOp | None, side: str, index: int) -> None:
        if function is None or function not in self.graph.private or ((function, side), index) in self.needed:
            return
        self.needed.add(((function, side), index))
        self._work += (op.operands[index] for op in self._passing.get((function, side), ()))
