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

Slot = tuple[FuncOp, int]
"""One argument or one result of a private function."""


class Liveness:
    """Live code of a module, which must not change while it is in use.

    Control flow is entered: what stands in it is live for its own sake. The bodies of computations are not.
    """

    def __init__(self, graph: CallGraph, effects: Effects) -> None:
        self.graph = graph
        self.functions: dict[FuncOp, None] = {}
        """Functions that are public, values, or called by live code."""
        self.operations: set[Operation] = set()
        self.arguments: set[Slot] = set()
        self.results: set[Slot] = set()
        self._effects = effects
        self._calls: dict[FuncOp, list[Operation]] = {}
        self._returns: dict[FuncOp, list[Operation]] = {}
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
            self._need_result(item)
        elif isinstance(item, BlockArgument):
            self._need_argument(item)

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
        name = op_name(op)
        if name == CALL:
            self._keep_call(op)
            return
        if isinstance(op, ReturnOp):
            self._keep_return(op)
            return
        self._work += op.operands
        if facts_of(op).is_entered:
            self._work += op.regions
        else:
            for inner in op.walk():
                if inner is not op:
                    self._work.append(inner)

    def _keep_call(self, op: Operation) -> None:
        callee = self.graph.symbols.callee(op)
        if callee is not None:
            self._reach(callee)
        if callee is None or callee not in self.graph.private:
            self._work += op.operands
            return
        self._calls.setdefault(callee, []).append(op)
        self._work += (value for i, value in enumerate(op.operands) if (callee, i) in self.arguments)

    def _keep_return(self, op: Operation) -> None:
        function = function_of(op)
        assert function is not None
        if function not in self.graph.private:
            self._work += op.operands
            return
        self._returns.setdefault(function, []).append(op)
        self._work += (value for i, value in enumerate(op.operands) if (function, i) in self.results)

    def _need_result(self, result: OpResult) -> None:
        op = result.op
        self._work.append(op)
        callee = self.graph.symbols.callee(op) if op_name(op) == CALL else None
        if callee in self.graph.private and callee is not None and (callee, result.index) not in self.results:
            self.results.add((callee, result.index))
            self._work += (end.operands[result.index] for end in self._returns.get(callee, ()))

    def _need_argument(self, argument: BlockArgument) -> None:
        function = argument.block.parent_op()
        if not isinstance(function, FuncOp) or function not in self.graph.private:
            return
        if argument.block is function.body.first_block and (function, argument.index) not in self.arguments:
            self.arguments.add((function, argument.index))
            self._work += (call.operands[argument.index] for call in self._calls.get(function, ()))
