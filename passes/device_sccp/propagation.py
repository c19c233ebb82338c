"""Sparse conditional constant propagation over a whole module (Wegman and Zadeck), through calls.

Blocks are looked at when control can reach them, and operations again when what is known of an operand changes.
A private function that is only ever called takes what its calls pass, and a call has what its callee returns.

Not on `xdsl.analysis`, whose sparse analyses refuse operations with regions or successors, and know no calls;
MLIR's ``sccp`` knows no scopes, and folds the elements of large constants.
"""

from collections.abc import Callable, Iterable, Sequence

from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue

from devscope.analysis.call_graph import CallGraph
from devscope.analysis.loops import static_integers
from devscope.analysis.value_flow import first_carried, first_operand, targets
from devscope.dialects.names import op_name
from devscope.dialects.op_facts import LOOPS, Control, facts_of
from devscope.passes.device_sccp.facts import VARIES, Fact, known_index, overwritten_result, transfer


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
        name = op_name(op)
        index = known_index(self.of(op.operands[0])) if name in ("scf.if", "scf.index_switch") else None
        if index is None:
            return None
        if name == "scf.if":
            return op.regions[0 if index else 1]
        cases = static_integers(op, "cases")
        # The default region comes first.
        return op.regions[1 + cases.index(index) if index in cases else 0]

    def taken_successors(self, branch: Operation) -> Sequence[int]:
        """The successors that an operation may take, by number: known are those of a ``cf.cond_br``."""
        flag = known_index(self.of(branch.operands[0])) if op_name(branch) == "cf.cond_br" else None
        if flag is None:
            return range(len(branch.successors))
        return (0,) if flag else (1,)

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

    def _learn_all(self, values: Iterable[SSAValue], facts: Iterable[Fact]) -> None:
        for value, fact in zip(values, facts, strict=True):
            self._learn(value, fact)

    def _reach(self, block: Block) -> None:
        if block not in self.reached:
            self.reached.add(block)
            self._work += reversed(list(block.ops))

    def _enter(self, region: Region) -> None:
        """Control enters a region with arguments that nobody knows."""
        if region.blocks:
            entry = region.blocks[0]
            self._learn_all(entry.args, [VARIES] * len(entry.args))
            self._reach(entry)

    # Operations

    def _visit(self, op: Operation) -> None:
        operands = [fact for operand in op.operands if (fact := self.facts.get(operand)) is not None]
        if len(operands) != len(op.operands):
            return  # An operand is not made yet; this operation comes again when it is.
        control = facts_of(op).control
        if isinstance(op, ReturnOp):
            self._return(op, operands)
        elif control is Control.CALL:
            self._call(op, operands)
        elif control in LOOPS:
            self._loop(op, operands)
        elif control is Control.CONDITION:
            self._condition(op, operands)
        elif control is Control.YIELD:
            self._pass_on(op)
        elif control is Control.CHOICE:
            taken = self.taken_region(op)
            for region in op.regions if taken is None else (taken,):
                self._enter(region)
        elif op_name(op) == "linalg.generic" and overwritten_result(op):
            self._generic(op, operands)
        else:
            self._compute(op, operands)

    def _compute(self, op: Operation, operands: Sequence[Fact]) -> None:
        """All that is no control flow, and branches. How control moves in regions, nobody knows."""
        for number in self.taken_successors(op):
            block, first = op.successors[number], first_operand(op, number)
            self._learn_all(block.args, operands[first : first + len(block.args)])
            self._reach(block)
        for block in (block for region in op.regions for block in region.blocks):
            self._learn_all(block.args, [VARIES] * len(block.args))
            self._reach(block)
        self._learn_all(op.results, transfer(op, operands))
        parent = op.parent_op()
        if op_name(op) == "linalg.yield" and parent is not None:
            self._work.append(parent)

    def _pass_on(self, op: Operation, wanted: Callable[[SSAValue], bool] = lambda _: True) -> None:
        for index, target in targets(op):
            if wanted(target):
                self._learn(target, self.facts[op.operands[index]])

    def _loop(self, op: Operation, operands: Sequence[Fact]) -> None:
        if self.is_skipped(op):
            self._learn_all(op.results, operands[first_carried(op) :])
            return
        self._pass_on(op)
        known = facts_of(op)
        if known.control is Control.COUNTED:
            self._learn(op.regions[0].blocks[0].args[0], VARIES)
        for region in op.regions if known.by_tensor else op.regions[:1]:
            self._reach(region.blocks[0])

    def _condition(self, op: Operation, operands: Sequence[Fact]) -> None:
        loop = op.parent_op()
        assert loop is not None
        leaves = known_index(operands[0]) == 0
        self._pass_on(op, lambda target: not leaves or target.owner is loop)
        if not leaves:
            self._reach(loop.regions[1].blocks[0])

    def _generic(self, op: Operation, operands: Sequence[Fact]) -> None:
        """Each body argument is an element of its operand; the destination's are not read, or not known."""
        body = op.regions[0].blocks[0]
        inputs = len(op.operands) - len(op.results)
        elements = [Fact(fact.element) for fact in operands[:inputs]]
        self._learn_all(body.args, [*elements, *[VARIES] * (len(body.args) - inputs)])
        self._reach(body)
        last = body.last_op
        if last is not None and (fact := self.facts.get(last.operands[0])) is not None:
            self._learn(op.results[0], Fact(fact.element, operands[-1].shape))

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
