"""Which functions a function value may be: a 0-CFA of the whole module.

Functions start at ``func.constant``, and flow through branches, loops and blocks, ``arith.select``, arguments of
calls, and results of calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from devscope.analysis.symbols import CALL, CONSTANT, INDIRECT, RETURN, Symbols, is_public
from devscope.analysis.value_flow import ValueFlow, targets
from devscope.analysis.value_kinds import FUNCTION, kind_of
from devscope.dialects.names import op_name
from devscope.dialects.op_facts import facts_of


class Callees(NamedTuple):
    """The functions that a call may reach, in module order.

    Without ``complete`` others may be reached, too: the value comes from a caller that is not in this module,
    or out of an operation that nobody knows.
    """

    functions: tuple[FuncOp, ...] = ()
    complete: bool = True


NOBODY_KNOWS = Callees((), complete=False)


class FunctionValues:
    """What the calls of a module reach. It is solved when somebody first asks for a function value."""

    def __init__(self, symbols: Symbols, flow: ValueFlow) -> None:
        self._symbols = symbols
        self._functions = symbols.functions
        self._flow = flow
        self._solved = False
        self._known: dict[SSAValue, set[FuncOp]] = {}
        self._unknown: set[SSAValue] = set()

    def callees(self, op: Operation) -> Callees:
        """What a call, or a ``func.constant``, names or may reach through its function value."""
        if op_name(op) == INDIRECT:
            return self.of_value(op.operands[0])
        callee = self._symbols.callee(op)
        return Callees((callee,)) if callee is not None else NOBODY_KNOWS

    def of_value(self, value: SSAValue) -> Callees:
        """The functions that a function value may be."""
        if isinstance(value, OpResult) and op_name(value.op) == CONSTANT:
            return self.callees(value.op)
        if not self._solved:
            self._solved = True
            self._solve()
        known = self._known.get(value, set[FuncOp]())
        return Callees(
            tuple(func for func in self._functions.values() if func in known), value not in self._unknown
        )

    def _solve(self) -> None:
        """Propagate until nothing changes. Only function values and calls are looked at twice."""
        facts = _Facts(self._functions)
        known = self._known = {value: set[FuncOp]() for value in facts.values}
        changed = True
        while changed:
            changed = False
            sites, strangers = self._call_sites(facts)
            for value in facts.values:
                found, complete = self._pull(value, facts, sites, strangers)
                if not found <= known[value]:
                    known[value] |= found
                    changed = True
                if not complete and value not in self._unknown:
                    self._unknown.add(value)
                    changed = True

    def _call_sites(self, facts: _Facts) -> tuple[dict[FuncOp, list[Operation]], set[FuncOp]]:
        """The calls of each function, and the functions that somebody outside may call."""
        sites: dict[FuncOp, list[Operation]] = {}
        strangers = {func for func in self._functions.values() if is_public(func)}
        for call in facts.calls:
            reached = self.callees(call)
            for func in reached.functions:
                sites.setdefault(func, []).append(call)
            outside = not reached.complete or any(func.body.first_block is None for func in reached.functions)
            for value in arguments_of(call) if outside else ():
                strangers |= self._known.get(value, set())
        for op, value in facts.escapes:
            func = op.parent_op()
            if op_name(op) != RETURN or (isinstance(func, FuncOp) and func in strangers):
                strangers |= self._known.get(value, set())
        return sites, strangers

    def _pull(
        self, value: SSAValue, facts: _Facts, sites: dict[FuncOp, list[Operation]], strangers: set[FuncOp]
    ) -> tuple[set[FuncOp], bool]:
        """What is known of a value from what flows into it now; whether that is all that does."""
        if isinstance(value, OpResult) and op_name(value.op) == CONSTANT:
            reached = self.callees(value.op)
            return set(reached.functions), reached.complete
        sources: list[SSAValue] = []
        complete = True
        if isinstance(value, BlockArgument) and isinstance(func := value.block.parent_op(), FuncOp):
            if value.block is func.body.first_block:
                sources = [arguments_of(call)[value.index] for call in sites.get(func, ())]
                complete = func not in strangers
        elif isinstance(value, OpResult) and op_name(value.op) in (CALL, INDIRECT):
            reached = self.callees(value.op)
            complete = reached.complete
            for func in reached.functions:
                sources += [op.operands[value.index] for op in facts.returns.get(func, ())]
                complete = complete and func.body.first_block is not None
        elif isinstance(value, OpResult) and (first := facts_of(value.op).chooses_from) is not None:
            sources = list(value.op.operands[first:])
        sources = sources or list(self._flow.sources(value))
        if not sources and not _has_origin(value):
            complete = False
        found = {func for source in sources for func in self._known.get(source, ())}
        return found, complete and not any(source in self._unknown for source in sources)


class _Facts:
    """What one walk over a module finds: function values, calls, returns, and where function values get lost."""

    def __init__(self, functions: Mapping[str, FuncOp]) -> None:
        self.values: list[SSAValue] = []
        self.calls: list[Operation] = []
        self.returns: dict[FuncOp, list[Operation]] = {}
        self.escapes: list[tuple[Operation, SSAValue]] = []
        """Uses of function values after which anybody may call these; returns to strangers are such uses, too."""
        for function in functions.values():
            for op in function.walk():
                self.values += function_values_of(op)
                self._read(op)

    def _read(self, op: Operation) -> None:
        name = op_name(op)
        if name in (CALL, INDIRECT):
            self.calls.append(op)
            return
        if name == RETURN and isinstance(func := op.parent_op(), FuncOp):
            self.returns.setdefault(func, []).append(op)
        lost = [(index, v) for index, v in enumerate(op.operands) if kind_of(v.type) == FUNCTION]
        if lost and facts_of(op).chooses_from is None:
            carried = {index for index, _ in targets(op)}
            self.escapes += ((op, value) for index, value in lost if index not in carried)


def _has_origin(value: SSAValue) -> bool:
    """Whether a value that nothing is known to flow into is nevertheless understood: it is never made."""
    if isinstance(value, OpResult):
        return op_name(value.op) in (CALL, INDIRECT) or facts_of(value.op).is_entered
    parent = value.owner.parent_op() if isinstance(value, BlockArgument) else None
    return isinstance(parent, FuncOp) or (parent is not None and facts_of(parent).is_entered)


def function_values_of(op: Operation) -> list[SSAValue]:
    """The function values among the results of an operation and the arguments of its blocks."""
    arguments = (a for region in op.regions for block in region.blocks for a in block.args)
    return [value for value in (*op.results, *arguments) if kind_of(value.type) == FUNCTION]


def takes_functions(function: FuncOp) -> bool:
    """Whether a function takes or returns functions: nobody outside of its module can call it."""
    types = function.function_type
    return any(kind_of(type_) == FUNCTION for type_ in (*types.inputs, *types.outputs))


def has_function_values(symbols: Symbols) -> bool:
    """Whether functions of a module take, return, name or call function values."""
    functions = symbols.functions.values()
    return any(
        takes_functions(function) or any(op_name(op) in (CONSTANT, INDIRECT) for op in function.walk())
        for function in functions
    )


def arguments_of(call: Operation) -> list[SSAValue]:
    """What a call passes, without the function value that it calls."""
    return list(call.operands[1:] if op_name(call) == INDIRECT else call.operands)
