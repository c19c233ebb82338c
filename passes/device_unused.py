"""``device-unused``: what nobody uses goes, on both sides of every call.

Arguments and results of private functions that no live code needs disappear from the function and from its
calls; so do operations without effect whose results nobody uses, and functions that nobody calls. MLIR's
``remove-dead-values`` works on MLIR's modules, which passes over xDSL's do not have.

Everything is dead until it is found to be used, so that functions that only pass a value round to each other do
not keep it alive.
"""

from typing import Self

from xdsl.dialects.builtin import ArrayAttr, FunctionType
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import BlockArgument, Operation, OpResult, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from devscope.analysis.call_graph import CallGraph
from devscope.analysis.effects import Effects
from devscope.analysis.manager import AnalysisManager, ManagedPass
from devscope.analysis.symbols import CALL, function_of, is_claimed
from devscope.dialects.names import op_name
from devscope.dialects.op_facts import facts_of
from devscope.dialects.scope_attribute import ARGUMENTS, RESULTS

Side = tuple[FuncOp, str]
"""The arguments (`ARGUMENTS`) or the results (`RESULTS`) of a private function."""


class Liveness:
    """Operations, arguments and results of a module, which must not change, that its public functions need.

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
        self.passing: dict[Side, list[Operation]] = {}
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
            self.passing.setdefault(side, []).append(op)
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
        self._work += (op.operands[index] for op in self.passing.get((function, side), ()))


class DeviceUnusedPass(ManagedPass):
    """Remove unused arguments and results of private functions, dead code and functions that nobody calls."""

    name = "device-unused"

    def run(self, analyses: AnalysisManager) -> bool:
        live = analyses.get(Liveness)
        dead = [function for function in live.graph.private if function not in live.functions]
        for function in dead:
            Rewriter.erase_op(function, safe_erase=False)
        signatures = [_Signature(function, live) for function in live.functions]
        erased = [_erase_dead(function.body, live) for function in live.functions if not is_claimed(function)]
        shrunk = [signature.shrink() for signature in signatures]
        return bool(dead) or any(erased) or any(shrunk)


class _Signature:
    """What stays of the arguments and results of a function."""

    def __init__(self, function: FuncOp, live: Liveness) -> None:
        self._function = function
        self._live = live
        self._arguments = self._kept(ARGUMENTS, len(function.function_type.inputs))
        self._results = self._kept(RESULTS, len(function.function_type.outputs))

    def _kept(self, side: str, count: int) -> list[int]:
        private = self._function in self._live.graph.private
        return [i for i in range(count) if not private or ((self._function, side), i) in self._live.needed]

    def shrink(self) -> bool:
        """Drop the others from the function, its returns and its calls; whether there are any.

        What is dead is erased already: nothing uses the arguments any more.
        """
        function = self._function
        type_ = function.function_type
        if len(self._arguments) == len(type_.inputs) and len(self._results) == len(type_.outputs):
            return False
        for call in self._live.passing.get((function, ARGUMENTS), ()):
            self._shrink_call(call)
        for end in self._live.passing.get((function, RESULTS), ()):
            end.operands = [end.operands[i] for i in self._results]
        for argument in reversed(function.body.blocks[0].args):
            if argument.index not in self._arguments:
                function.body.blocks[0].erase_arg(argument, safe_erase=False)
        function.properties["function_type"] = FunctionType.from_lists(
            [type_.inputs.data[i] for i in self._arguments], [type_.outputs.data[i] for i in self._results]
        )
        for side, chosen in ((ARGUMENTS, self._arguments), (RESULTS, self._results)):
            attributes = function.properties.get(side)
            if isinstance(attributes, ArrayAttr) and len(attributes) > len(chosen):
                function.properties[side] = ArrayAttr([attributes.data[i] for i in chosen])
        return True

    def _shrink_call(self, call: Operation) -> None:
        results = [call.results[i] for i in self._results]
        callee = call.get_attr_or_prop("callee")
        assert callee is not None
        new = CallOp.create(
            operands=[call.operands[i] for i in self._arguments],
            result_types=[result.type for result in results],
            properties={**call.properties, "callee": callee},
            attributes={name: value for name, value in call.attributes.items() if name != "callee"},
        )
        new.location = call.location
        Rewriter.insert_op(new, InsertPoint.before(call))
        for old, result in zip(results, new.results, strict=True):
            result.name_hint = old.name_hint
            old.replace_all_uses_with(result)
        Rewriter.erase_op(call, safe_erase=False)


def _erase_dead(body: Region, live: Liveness) -> bool:
    """Erase what is dead, users before definitions; whether anything was."""
    erased = False
    stack = [body]
    while stack:
        for block in reversed(stack.pop().blocks):
            for op in reversed(list(block.ops)):
                if op not in live.operations:
                    Rewriter.erase_op(op, safe_erase=False)
                    erased = True
                elif facts_of(op).is_entered:
                    stack += op.regions
    return erased
