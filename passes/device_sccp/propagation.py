"""Sparse conditional constant propagation over a whole module (Wegman and Zadeck), through calls.

Blocks are looked at when control can reach them, and operations again when what is known of an operand changes.
A private function that is only ever called takes what its calls pass, and a call has what its callee returns.

Not on `xdsl.analysis`, whose sparse analyses refuse operations with regions or successors, and know no calls;
MLIR's ``sccp`` knows no scopes, and folds the elements of large constants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IntegerAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue

from devscope.analysis.call_graph import CallGraph
from devscope.analysis.value_flow import first_carried, first_operand, targets
from devscope.dialects.names import op_name
from devscope.passes.device_sccp.facts import VARIES, Fact
from devscope.passes.device_sccp.transfer import known_index, overwritten_result, transfer


class Propagation:
    """The facts of one module, which must not change while it is in use."""

    def __init__(self, graph: CallGraph) -> None:
        self.graph = graph
        self.facts: dict[SSAValue, Fact] = {}
        """What is known of every value that control can reach."""
        self.reached: set[Block] = set()
        self._callers: dict[FuncOp, dict[Operation, None]] = {}
        self._returned: dict[FuncOp, list[Fact]] = {}
        self._work: list[Operation] = []
        for function in graph.symbols.functions.values():
            if function not in graph.private and function.body.blocks:
                self._enter(function.body)
        while self._work:
            op = self._work.pop()
            if op.parent in self.reached:
                self._visit(op)

    def of(self, value: SSAValue) -> Fact:
        """What is known of a value; nothing of those that are never made."""
        return self.facts.get(value, VARIES)

    def taken_region(self, op: Operation) -> Region | None:
        """The region that a choice always takes; None if it may take several, or ``op`` is no choice."""
        rule = _CHOICES.get(op_name(op))
        index = known_index(self.of(op.operands[0])) if rule is not None else None
        return rule(op, index) if rule is not None and index is not None else None

    def taken_successors(self, branch: Operation) -> Sequence[int]:
        """The successors that a ``cf.cond_br`` may take, by number."""
        flag = known_index(self.of(branch.operands[0]))
        return (0, 1) if flag is None else (0,) if flag else (1,)

    def is_skipped(self, loop: Operation) -> bool:
        """Whether an ``scf.for`` is known not to run even once."""
        if op_name(loop) != "scf.for" or loop.get_attr_or_prop("unsignedCmp") is not None:
            return False
        first, end = (known_index(self.of(bound)) for bound in loop.operands[:2])
        return first is not None and end is not None and first >= end

    # Learning

    def _learn(self, value: SSAValue, fact: Fact) -> None:
        fact = fact.within(value.type)
        old = self.facts.get(value)
        new = fact if old is None else old.meet(fact)
        if new != old:
            self.facts[value] = new
            self._work += [use.operation for use in value.uses]

    def _reach(self, block: Block) -> None:
        if block not in self.reached:
            self.reached.add(block)
            self._work += reversed(list(block.ops))

    def _enter(self, region: Region) -> None:
        """Control enters a region with arguments that nobody knows."""
        if region.blocks:
            for argument in region.blocks[0].args:
                self._learn(argument, VARIES)
            self._reach(region.blocks[0])

    # Operations

    def _visit(self, op: Operation) -> None:
        known = [self.facts.get(operand) for operand in op.operands]
        operands = [fact for fact in known if fact is not None]
        if len(operands) != len(known):
            return  # An operand is not made yet; this operation comes again when it is.
        name = op_name(op)
        rule = _RULES.get(name)
        if rule is not None:
            rule(self, op, operands)
            return
        for number, block in enumerate(op.successors):
            self._branch(op, number, block)
        if name == "linalg.generic" and overwritten_result(op):
            self._generic(op, operands)
            return
        for region in op.regions:
            self._enter(region)
            for block in region.blocks:  # How control moves in there, nobody knows.
                for argument in block.args:
                    self._learn(argument, VARIES)
                self._reach(block)
        for result, fact in zip(op.results, transfer(op, operands), strict=True):
            self._learn(result, fact)

    def _pass_on(self, op: Operation, wanted: Callable[[SSAValue], bool] = lambda _: True) -> None:
        for index, target in targets(op):
            if wanted(target):
                self._learn(target, self.facts[op.operands[index]])

    def _branch(self, op: Operation, number: int, block: Block) -> None:
        first = first_operand(op, number)
        for argument, operand in zip(block.args, op.operands[first : first + len(block.args)], strict=True):
            self._learn(argument, self.facts[operand])
        self._reach(block)

    def _cond_br(self, op: Operation, operands: Sequence[Fact]) -> None:
        for number in self.taken_successors(op):
            self._branch(op, number, op.successors[number])

    def _choose(self, op: Operation, operands: Sequence[Fact]) -> None:
        taken = self.taken_region(op)
        for region in op.regions if taken is None else (taken,):
            self._enter(region)

    def _for(self, op: Operation, operands: Sequence[Fact]) -> None:
        if self.is_skipped(op):
            self._learn_all(op.results, operands[first_carried(op) :])
            return
        self._pass_on(op)
        body = op.regions[0].blocks[0]
        self._learn(body.args[0], VARIES)
        self._reach(body)

    def _while(self, op: Operation, operands: Sequence[Fact]) -> None:
        self._pass_on(op)
        self._reach(op.regions[0].blocks[0])

    def _condition(self, op: Operation, operands: Sequence[Fact]) -> None:
        loop = op.parent_op()
        assert loop is not None
        leaves = known_index(operands[0]) == 0
        self._pass_on(op, lambda target: not leaves or target.owner is loop)
        if not leaves:
            self._reach(loop.regions[1].blocks[0])

    def _yield(self, op: Operation, operands: Sequence[Fact]) -> None:
        self._pass_on(op)

    def _generic(self, op: Operation, operands: Sequence[Fact]) -> None:
        """Each body argument is an element of its operand; the destination's are not read, or not known."""
        body = op.regions[0].blocks[0]
        inputs = len(op.operands) - len(op.results)
        for index, argument in enumerate(body.args):
            self._learn(argument, Fact(operands[index].element) if index < inputs else VARIES)
        self._reach(body)
        last = body.last_op
        if last is not None and (fact := self.facts.get(last.operands[0])) is not None:
            self._learn(op.results[0], Fact(fact.element, operands[-1].shape))

    def _generic_yield(self, op: Operation, operands: Sequence[Fact]) -> None:
        parent = op.parent_op()
        if parent is not None and op_name(parent) == "linalg.generic":
            self._work.append(parent)

    # Calls

    def _call(self, op: Operation, operands: Sequence[Fact]) -> None:
        callee = self.graph.symbols.callee(op)
        if callee is None or not callee.body.blocks:
            self._learn_all(op.results, [VARIES] * len(op.results))
            return
        self._callers.setdefault(callee, {})[op] = None
        if callee in self.graph.private:
            self._learn_all(callee.body.blocks[0].args, operands)
            self._reach(callee.body.blocks[0])
        if callee in self._returned:
            self._learn_all(op.results, self._returned[callee])

    def _return(self, op: Operation, operands: Sequence[Fact]) -> None:
        function = op.parent_op()
        assert isinstance(function, FuncOp)
        types = function.function_type.outputs.data
        facts = [fact.within(type_) for fact, type_ in zip(operands, types, strict=True)]
        old = self._returned.get(function)
        new = facts if old is None else [a.meet(b) for a, b in zip(old, facts, strict=True)]
        if new != old:
            self._returned[function] = new
            self._work += self._callers.get(function, ())

    def _learn_all(self, values: Iterable[SSAValue], facts: Iterable[Fact]) -> None:
        for value, fact in zip(values, facts, strict=True):
            self._learn(value, fact)


def _if_region(op: Operation, flag: int) -> Region:
    return op.regions[0 if flag else 1]


def _switch_region(op: Operation, value: int) -> Region | None:
    """The default region comes first."""
    cases = op.get_attr_or_prop("cases")
    if isinstance(cases, DenseArrayBase):
        numbers = list(cases.get_values())
    elif isinstance(cases, ArrayAttr):
        numbers = [case.value.data for case in cases.data if isinstance(case, IntegerAttr)]
    else:
        return None
    return op.regions[1 + numbers.index(value)] if value in numbers else op.regions[0]


_CHOICES: dict[str, Callable[[Operation, int], Region | None]] = {
    "scf.if": _if_region,
    "scf.index_switch": _switch_region,
}

_RULES: dict[str, Callable[[Propagation, Operation, Sequence[Fact]], None]] = {
    "cf.cond_br": Propagation._cond_br,  # pyright: ignore[reportPrivateUsage]
    "func.call": Propagation._call,  # pyright: ignore[reportPrivateUsage]
    ReturnOp.name: Propagation._return,  # pyright: ignore[reportPrivateUsage]
    "linalg.yield": Propagation._generic_yield,  # pyright: ignore[reportPrivateUsage]
    "scf.condition": Propagation._condition,  # pyright: ignore[reportPrivateUsage]
    "scf.execute_region": Propagation._choose,  # pyright: ignore[reportPrivateUsage]
    "scf.for": Propagation._for,  # pyright: ignore[reportPrivateUsage]
    "scf.if": Propagation._choose,  # pyright: ignore[reportPrivateUsage]
    "scf.index_switch": Propagation._choose,  # pyright: ignore[reportPrivateUsage]
    "scf.while": Propagation._while,  # pyright: ignore[reportPrivateUsage]
    "scf.yield": Propagation._yield,  # pyright: ignore[reportPrivateUsage]
}
