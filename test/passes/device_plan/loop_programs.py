"""Small random programs of loops around placed operations, and the fewest copies that they can do with."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from devscope.analysis.dominance import Dominators
from devscope.analysis.loops import LoopNest
from devscope.analysis.scope_analysis import ScopeAnalysis
from devscope.dialects.device import DeviceCopyOp, ScopeAttr
from devscope.dialects.names import op_name


class LoopProgram:
    """Writes one function whose computations are all placed; what the loops carry is not."""

    def __init__(self, rng: random.Random, scopes: Sequence[str]) -> None:
        self.rng, self.scopes, self.count = rng, scopes, 0

    def text(self) -> str:
        values = ["%x"]
        lines = self.block(values, 2, self.rng.randint(1, 2))
        if self.rng.random() < 0.3:
            lines += self.blocks(values)
        lines.append(f"func.return {self.rng.choice(values[-2:])} : !t")
        body = "\n".join(lines)
        return f"func.func @main(%x: !t, %p: i1, %i: index) -> !t {{\n{body}\n}}"

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def block(self, values: list[str], depth: int, length: int) -> list[str]:
        lines: list[str] = []
        for _ in range(length):
            kinds = [self.compute, *([self.for_, self.while_, self.if_] if depth else [])]
            lines += self.rng.choice(kinds)(values, depth)
        return lines

    def compute(self, values: list[str], depth: int) -> list[str]:
        new, used = self.name(), self.rng.choice(values)
        values.append(new)
        return [f'{new} = "ml.op"({used}) {{device.scope = {self.rng.choice(self.scopes)}}} : (!t) -> !t']

    def inner(self, values: list[str], depth: int, last: str, *carried: str) -> str:
        visible = [*values, *carried]
        lines = self.block(visible, depth - 1, self.rng.randint(1, 2))
        return "\n".join([*lines, last.format(self.rng.choice(visible[-3:]))])

    def for_(self, values: list[str], depth: int) -> list[str]:
        new, carried, initial = self.name(), self.name(), self.rng.choice(values)
        body = self.inner(values, depth, "scf.yield {} : !t", carried)
        values.append(new)
        return [
            f'{new} = "scf.for"(%i, %i, %i, {initial}) ({{ ^bb0({carried}i: index, {carried}: !t):\n{body} }})'
            " : (index, index, index, !t) -> !t"
        ]

    def while_(self, values: list[str], depth: int) -> list[str]:
        new, before, after, initial = self.name(), self.name(), self.name(), self.rng.choice(values)
        first = self.inner(values, depth, "scf.condition(%p) {} : !t", before)
        second = self.inner(values, depth, "scf.yield {} : !t", after)
        values.append(new)
        return [
            f'{new} = "scf.while"({initial}) ({{ ^bb0({before}: !t):\n{first} }}, {{ ^bb1({after}: !t):\n'
            f"{second} }}) : (!t) -> !t"
        ]

    def if_(self, values: list[str], depth: int) -> list[str]:
        new = self.name()
        arms = [self.inner(values, depth, "scf.yield {} : !t") for _ in range(2)]
        values.append(new)
        return [f'{new} = "scf.if"(%p) ({{\n{arms[0]} }}, {{\n{arms[1]} }}) : (i1) -> !t']

    def blocks(self, values: list[str]) -> list[str]:
        carried, initial = self.name(), self.rng.choice(values)
        body = self.inner(values, 1, "cf.br ^head({} : !t)", carried)
        values.append(carried)
        return [
            f"cf.br ^head({initial} : !t)",
            f"^head({carried}: !t):",
            "cf.cond_br %p, ^body, ^end",
            "^body:",
            body,
            "^end:",
        ]


Cost = tuple[int, ...]
"""Copies per loop depth, the deepest first: what to compare, in this order."""

_DEPTHS = range(4, -1, -1)


class CopyOracle:
    """The copies of a planned function, and the fewest with the same operations where they are.

    What may move is everything that is computed nowhere: arguments and results unless ``pinned``, and what
    loops, branches and blocks pass on.
    """

    def __init__(self, module: ModuleOp, pinned: bool) -> None:
        self.func = next(op for op in module.ops if isinstance(op, FuncOp))
        self.analysis = ScopeAnalysis(module)
        body = self.func.body
        self.nest = LoopNest({body: Dominators(body)} if len(body.blocks) > 1 else {})
        self.fixed: dict[object, ScopeAttr] = {}
        self.variables: dict[object, object] = {}
        """Values and results of the function that may move, each with the one that stands for its group."""
        self.uses: list[tuple[SSAValue, object, int]] = []
        """A value, where it is used, and in how many loops a copy in between would stand."""
        self._read(pinned)

    def actual(self) -> Cost:
        depths = Counter(
            self.nest.of_block(op.parent)
            for op in self.func.walk()
            if isinstance(op, DeviceCopyOp) and op.parent is not None
        )
        return tuple(depths[depth] for depth in _DEPTHS)

    def fewest(self, scopes: Sequence[ScopeAttr]) -> Cost:
        groups = list(dict.fromkeys(self.variables.values()))
        return min(
            self._cost(dict(zip(groups, choice, strict=True)))
            for choice in itertools.product(scopes, repeat=len(groups))
        )

    def _cost(self, chosen: dict[object, ScopeAttr]) -> Cost:
        def scope(key: object) -> ScopeAttr:
            group = self.variables.get(key)
            return self.fixed[key] if group is None else chosen[group]

        copies: dict[object, int] = {}
        for value, user, depth in self.uses:
            if scope(value) != (there := scope(user)):
                copies[value, there] = max(depth, copies.get((value, there), 0))
        depths = Counter(copies.values())
        return tuple(depths[depth] for depth in _DEPTHS)

    def _read(self, pinned: bool) -> None:
        block, *others = self.func.body.blocks
        self._may_move(block.args)
        if pinned:
            for argument in block.args:
                self.variables.pop(argument, None)
                self.fixed[argument] = self.analysis.of_value(argument)
        self.fixed["result"] = self.analysis.of_result(self.func, 0)
        if not pinned:
            self.variables["result"] = "result"
        for other in others:
            self._may_move(other.args)
        for op in self.func.walk():
            self._read_op(op, op_name(op))

    def _may_move(self, values: Sequence[SSAValue], *same: Sequence[SSAValue]) -> None:
        for value, *others in zip(values, *same, strict=True):
            for each in (value, *others):
                if isinstance(each.type, TensorType):
                    self.variables[each] = value

    def _read_op(self, op: Operation, name: str) -> None:
        match name:
            case "ml.op":
                self.fixed[op.results[0]] = self.fixed[op] = self.analysis.of_op(op)
                self._use(op, 0, op)
            case "scf.for":
                self._may_move(op.results, op.regions[0].block.args[1:])
                self._use(op, 3, op.results[0])
            case "scf.while":
                self._may_move(op.regions[0].block.args)
                self._may_move(op.results, op.regions[1].block.args)
                self._use(op, 0, op.regions[0].block.args[0])
            case "scf.if":
                self._may_move(op.results)
            case "scf.condition":
                self._use(op, 1, _parent(op).results[0])
            case "scf.yield":
                parent = _parent(op)
                to = parent.regions[0].block.args[0] if op_name(parent) == "scf.while" else parent.results[0]
                self._use(op, 0, to)
            case "cf.br":
                if op.operands:
                    self._use(op, 0, op.successors[0].args[0])
            case "func.return":
                self._use(op, 0, "result")
            case _:
                pass

    def _use(self, op: Operation, index: int, user: object) -> None:
        value = op.operands[index]
        while isinstance(value.owner, DeviceCopyOp):
            value = value.owner.operand
        self.uses.append((value, user, self.nest.of_copy(value, op)))


def _parent(op: Operation) -> Operation:
    parent = op.parent_op()
    assert parent is not None
    return parent
