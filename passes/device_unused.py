"""``device-unused``: what nobody uses goes, on both sides of every call.

Arguments and results of private functions that no live code needs disappear from the function and from its
calls; so do operations without effect whose results nobody uses, and functions that nobody calls. MLIR's
``remove-dead-values`` works on MLIR's modules, which passes over xDSL's do not have.

Everything is dead until it is found to be used, so that functions that only pass a value round to each other do
not keep it alive.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from xdsl.dialects.builtin import ArrayAttr, FunctionType
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from devscope.analysis.call_graph import CallGraph
from devscope.analysis.effects import Effects
from devscope.analysis.manager import AnalysisManager, ManagedPass
from devscope.analysis.symbols import CALL, function_of
from devscope.dialects.names import op_name
from devscope.dialects.op_facts import facts_of
from devscope.dialects.signature import ARGUMENTS, RESULTS

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


@dataclass(frozen=True)
class DeviceUnusedPass(ManagedPass):
    """Remove unused arguments and results of private functions, dead code and functions that nobody calls."""

    name = "device-unused"

    def run(self, analyses: AnalysisManager) -> bool:
        live = analyses.get(Liveness)
        dead = [function for function in live.graph.private if function not in live.functions]
        for function in dead:
            Rewriter.erase_op(function, safe_erase=False)
        changed = {function: _Signature(function, live) for function in live.functions}
        changed = {function: signature for function, signature in changed.items() if signature.shrinks}
        erased = False
        for function in live.functions:
            if function in changed:
                for block in function.body.blocks:
                    if isinstance(block.last_op, ReturnOp):
                        changed[function].shrink_return(block.last_op)
            erased |= _clean(function.body, live, changed)
        for signature in changed.values():
            signature.shrink_function()
        return erased or bool(dead or changed)


class _Signature:
    """What stays of the arguments and results of a function."""

    def __init__(self, function: FuncOp, live: Liveness) -> None:
        self._function = function
        type_ = function.function_type
        self._arguments = _kept(function, ARGUMENTS, type_.inputs.data, live)
        self._results = _kept(function, RESULTS, type_.outputs.data, live)
        self.shrinks = len(self._arguments) < len(type_.inputs) or len(self._results) < len(type_.outputs)

    def shrink_call(self, call: Operation) -> None:
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

    def shrink_return(self, end: ReturnOp) -> None:
        end.operands = [end.operands[i] for i in self._results]

    def shrink_function(self) -> None:
        """The types and attributes of the signature; nothing uses the arguments any more."""
        function = self._function
        type_ = function.function_type
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


def _kept(function: FuncOp, side: str, types: Sequence[Attribute], live: Liveness) -> list[int]:
    private = function in live.graph.private
    return [i for i in range(len(types)) if not private or ((function, side), i) in live.needed]


def _clean(body: Region, live: Liveness, changed: dict[FuncOp, _Signature]) -> bool:
    """Erase what is dead, users before definitions, and shrink the calls that are not; whether anything was."""
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
                else:
                    _shrink_calls(op, live, changed)
    return erased


def _shrink_calls(op: Operation, live: Liveness, changed: dict[FuncOp, _Signature]) -> None:
    for inner in list(op.walk()) if op.regions else [op]:
        callee = live.graph.symbols.callee(inner) if op_name(inner) == CALL else None
        if callee is not None and callee in changed:
            changed[callee].shrink_call(inner)
