"""``device-unused``: what nobody uses goes, on both sides of every call.

Arguments and results of private functions that no live code needs disappear from the function and from its
calls; so do operations without effect whose results nobody uses, and functions that nobody calls. MLIR's
``remove-dead-values`` works on MLIR's modules, which passes over xDSL's do not have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from xdsl.dialects.builtin import ArrayAttr, FunctionType
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation, Region
from xdsl.rewriter import InsertPoint, Rewriter

from devscope.analysis.manager import AnalysisManager, ManagedPass
from devscope.analysis.symbols import CALL
from devscope.dialects.names import op_name
from devscope.dialects.op_facts import facts_of
from devscope.dialects.signature import ARGUMENTS, RESULTS
from devscope.passes.device_unused.liveness import Liveness

_T = TypeVar("_T")


@dataclass(frozen=True)
class DeviceUnusedPass(ManagedPass):
    """Remove unused arguments and results of private functions, dead code and functions that nobody calls."""

    name = "device-unused"

    def run(self, analyses: AnalysisManager) -> bool:
        live = analyses.get(Liveness)
        dead = [function for function in live.graph.private if function not in live.functions]
        for function in dead:
            function.detach()
            function.erase(safe_erase=False)
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
            _chosen(type_.inputs.data, self._arguments), _chosen(type_.outputs.data, self._results)
        )
        for side, chosen in ((ARGUMENTS, self._arguments), (RESULTS, self._results)):
            attributes = function.properties.get(side)
            if isinstance(attributes, ArrayAttr) and len(attributes) > len(chosen):
                function.properties[side] = ArrayAttr(_chosen(attributes.data, chosen))


def _kept(function: FuncOp, side: str, types: Sequence[Attribute], live: Liveness) -> list[int]:
    private = function in live.graph.private
    return [i for i in range(len(types)) if not private or ((function, side), i) in live.needed]


def _chosen(items: Sequence[_T], indices: Sequence[int]) -> list[_T]:
    return [items[index] for index in indices]


def _clean(body: Region, live: Liveness, changed: dict[FuncOp, _Signature]) -> bool:
    """Erase what is dead, users before definitions, and shrink the calls that are not; whether anything was."""
    erased = False
    stack = [body]
    while stack:
        for block in reversed(stack.pop().blocks):
            for op in reversed(list(block.ops)):
                if op not in live.operations:
                    op.detach()
                    op.erase(safe_erase=False)
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
