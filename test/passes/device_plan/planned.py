"""Plans short texts and says in short texts what came out; checks what holds for every plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from module_text import generic, parse
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.parser import Parser

from devscope.analysis.scope_analysis import ScopeAnalysis
from devscope.dialects.context import make_context
from devscope.dialects.device import DeviceCopyOp, ScopeAttr
from devscope.dialects.names import op_name
from devscope.dialects.scope_attribute import ARGUMENTS, RESULTS, signature_attributes
from devscope.passes.device_plan import Plan, PlanOptions, plan_module
from devscope.passes.device_verify import verify_module

_PURE = {"arith.constant", "tensor.empty", "linalg.fill", "tensor.bitcast", "func.constant"}
"""Operations that planning may clone or leave unused: what counts is what they compute."""

_IDENTITIES = {"device.on_device", "device.device_copy", "device.region", "device.yield"}


def meaning(module: ModuleOp) -> dict[str, list[str]]:
    """What each function computes, less where: equal before and after planning."""
    return {op.sym_name.data: _meaning(op) for op in module.ops if isinstance(op, FuncOp)}


def _meaning(module: FuncOp) -> list[str]:
    alias: dict[SSAValue, SSAValue] = {}
    numbers: dict[SSAValue, str] = {}
    for op in module.walk():
        if op_name(op) == "device.region":
            end = op.regions[0].block.last_op
            alias.update(zip(op.results, end.operands if end is not None else (), strict=True))
        elif op_name(op) in _IDENTITIES:
            alias.update(zip(op.results, op.operands, strict=False))
        elif op_name(op) not in _PURE:
            for value in (*op.results, *(a for region in op.regions for b in region.blocks for a in b.args)):
                numbers[value] = f"%{len(numbers)}"

    def expression(value: SSAValue) -> str:
        while value in alias:
            value = alias[value]
        if value in numbers:
            return numbers[value]
        owner = value.owner
        if isinstance(owner, Block):
            return "body"
        # Which clone of a function a constant names is where, not what.
        says = "" if op_name(owner) == "func.constant" else owner.properties
        return f"{op_name(owner)}{says}({', '.join(map(expression, owner.operands))})"

    return [
        f"{op_name(op)}({', '.join(map(expression, op.operands))})"
        for op in module.walk()
        if op_name(op) not in _IDENTITIES | _PURE and not _inside_pure(op)
    ]


def _inside_pure(op: Operation) -> bool:
    parent = op.parent_op()
    return parent is not None and op_name(parent) in _PURE


@dataclass
class Planned:
    """A planned module and shorthands to look into it."""

    module: ModuleOp
    plan: Plan

    def signature(self, name: str) -> str:
        """The scopes of a function, as in ``cpu:0, cuda:0 -> cpu:0``; ``-`` for what has none."""
        func = self.function(name)
        sides = (
            (ARGUMENTS, len(func.function_type.inputs)),
            (RESULTS, len(func.function_type.outputs)),
        )
        return " -> ".join(
            ", ".join(
                s.short() if isinstance(s, ScopeAttr) else "-" for s in signature_attributes(func, side, count)
            )
            for side, count in sides
        )

    def function(self, name: str) -> FuncOp:
        return next(op for op in self.module.ops if isinstance(op, FuncOp) and op.sym_name.data == name)

    def scopes(self, name: str = "main") -> str:
        """Every operation of a function that has a scope, with it, in program order."""
        analysis = ScopeAnalysis(self.module)
        placed = {id(placement.operation) for placement in self.plan.placements}
        return ", ".join(
            f"{op_name(op)} {analysis.of_op(op).short()}" for op in self.function(name).walk() if id(op) in placed
        )

    def copies(self) -> list[str]:
        """Every copy in the module, as in ``cpu:0>cuda:0``, in program order."""
        return [f"{op.src.short()}>{op.dst.short()}" for op in self.module.walk() if isinstance(op, DeviceCopyOp)]


def plan(text: str, default: str = "cpu:0", arguments: str = "open", verify: bool = True, **more: Any) -> Planned:
    """Plan ``text``; check that the outcome verifies and that planning it again changes nothing.

    ``more`` are further options of planning.
    """
    options = PlanOptions(default=ScopeAttr.parse_text(default), arguments=arguments, **more)
    module = parse(text)
    meant = meaning(module)
    outcome = plan_module(module, options)
    printed = generic(module)
    module.verify()
    clones = {clone.name: clone.original for clone in outcome.clones}
    for name, computed in meaning(module).items():
        assert computed == meant[clones.get(name, name)]
    assert set(meaning(module)) == {*meant, *clones}
    if verify:
        verify_module(module)
    plan_module(module, options)
    assert generic(module) == printed
    # What is planned stays planned, whatever the defaults are next time.
    plan_module(module, PlanOptions(default=ScopeAttr.parse_text("rocm:3")))
    assert generic(module) == printed
    # The text says all that planning decided.
    reparsed = Parser(make_context(), printed, "<printed>").parse_module()
    plan_module(reparsed, options)
    assert generic(reparsed) == printed
    return Planned(module, outcome)
