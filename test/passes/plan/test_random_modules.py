"""Random modules: what plans, verifies, and plans again to the same bytes."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from devscope.errors import PlanError

_SCOPES = ("#cpu0", "#dev0", "#dev1", "#gpu0", "#dev", "#dev0@global")


class Generator:
    """Writes modules of straight lines, branches, loops, blocks and calls, annotated at random."""

    def __init__(self, rng: random.Random, annotations: float) -> None:
        self.rng = rng
        self.annotations = annotations
        self.count = 0

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def attribute(self, chance: float = 1.0) -> str:
        if self.rng.random() >= self.annotations * chance:
            return ""
        return f"{{device.scope = {self.rng.choice(_SCOPES)}}} "

    def module(self) -> str:
        functions = [self.function(f"f{i}", range(i)) for i in range(self.rng.randint(0, 2))]
        functions.append(self.function("main", range(len(functions))))
        self.rng.shuffle(functions)
        return "\n".join(functions)

    def function(self, name: str, callees: range) -> str:
        self.callees = callees
        visibility = "" if name == "main" else "private "
        marks = [self.attribute(0.3) for _ in range(3)]
        values = ["%a", "%b"]
        body = [*self.statements(values, 2)]
        blocks = self.rng.choice(("", "diamond", "loop"))
        if blocks:
            body += self.diamond(values) if blocks == "diamond" else self.loop(values)
        body.append(f"func.return {self.rng.choice(values)} : !t")
        lines = "\n".join(body)
        return f"""func.func {visibility}@{name}(%a: !t {marks[0]}, %b: !t {marks[1]}, %p: i1, %i: index)
            -> (!t {marks[2]}) {{
          {lines}
        }}"""

    def statements(self, values: list[str], depth: int) -> list[str]:
        lines: list[str] = []
        for _ in range(self.rng.randint(1, 5)):
            kinds = [self.compute, self.compute, self.constant, self.filled, self.view, self.scalar, self.generate]
            if self.rng.random() < self.annotations:
                kinds += [self.annotate, self.copy, *([self.region] if depth else [])]
            kinds += [self.call] if self.callees else []
            kinds += [self.if_, self.for_, self.while_] if depth else []
            lines += self.rng.choice(kinds)(values, depth)
        return lines

    def body(self, values: list[str], depth: int, last: str) -> str:
        """Statements in a block of their own, ended by ``last`` with a value that is visible there."""
        inner = list(values)
        lines = self.statements(inner, depth - 1)
        return "\n".join([*lines, last.format(self.rng.choice(inner[-4:]))])

    def compute(self, values: list[str], depth: int) -> list[str]:
        new = self.name()
        x, y = self.rng.choice(values), self.rng.choice(values)
        values.append(new)
        return [f'{new} = "ml.op"({x}, {y}) {self.attribute()} : (!t, !t) -> !t']

    def constant(self, values: list[str], depth: int) -> list[str]:
        new = self.name()
        values.append(new)
        return [f'{new} = "arith.constant"() {{value = dense<1.0> : !t}} : () -> !t']

    def filled(self, values: list[str], depth: int) -> list[str]:
        empty, scalar, new = self.name(), self.name(), self.name()
        values.append(new)
        return [
            f'{empty} = "tensor.empty"() : () -> !t',
            f'{scalar} = "arith.constant"() {{value = 1.0 : f32}} : () -> f32',
            f'{new} = "linalg.fill"({scalar}, {empty}) <{{operandSegmentSizes = array<i32: 1, 1>}}> ({{'
            f" ^bb0(%x: f32, %y: f32): linalg.yield %x : f32 }}) {self.attribute()} : (f32, !t) -> !t",
        ]

    def view(self, values: list[str], depth: int) -> list[str]:
        new = self.name()
        line = f'{new} = "tensor.bitcast"({self.rng.choice(values)}) {self.attribute(0.3)} : (!t) -> !t'
        values.append(new)
        return [line]

    def scalar(self, values: list[str], depth: int) -> list[str]:
        read, new = self.name(), self.name()
        lines = [
            f'{read} = "tensor.extract"({self.rng.choice(values)}, %i, %i) : (!t, index, index) -> f32',
            f'{new} = "tensor.insert"({read}, {self.rng.choice(values)}, %i, %i) : (f32, !t, index, index) -> !t',
        ]
        values.append(new)
        return lines

    def generate(self, values: list[str], depth: int) -> list[str]:
        new = self.name()
        line = f"""{new} = "tensor.generate"() ({{
            ^bb0(%x: index, %y: index):
            %e = "tensor.extract"({self.rng.choice(values)}, %x, %y) : (!t, index, index) -> f32
            "tensor.yield"(%e) : (f32) -> ()
          }}) {self.attribute()} : () -> !t"""
        values.append(new)
        return [line]

    def annotate(self, values: list[str], depth: int) -> list[str]:
        new = self.name()
        flags = self.rng.choice(
            ("", "", "", ", constrain_result = true", ", constrain_body = false",
             ", constrain_body = false, constrain_result = true")
        )  # fmt: skip
        scope = self.rng.choice(_SCOPES)
        line = f'{new} = "device.on_device"({self.rng.choice(values)}) {{scope = {scope}{flags}}} : (!t) -> !t'
        values.append(new)
        return [line]

    def copy(self, values: list[str], depth: int) -> list[str]:
        new = self.name()
        src, dst = self.rng.choice(_SCOPES), self.rng.choice(_SCOPES)
        value = self.rng.choice(values)
        values.append(new)
        return [f'{new} = "device.device_copy"({value}) {{src = {src}, dst = {dst}}} : (!t) -> !t']

    def call(self, values: list[str], depth: int) -> list[str]:
        new = self.name()
        x, y = self.rng.choice(values), self.rng.choice(values)
        values.append(new)
        callee = self.rng.choice(self.callees)
        return [f"{new} = func.call @f{callee}({x}, {y}, %p, %i) : (!t, !t, i1, index) -> !t"]

    def if_(self, values: list[str], depth: int) -> list[str]:
        new = self.name()
        arms = [self.body(values, depth, "scf.yield {} : !t") for _ in range(2)]
        values.append(new)
        return [f'{new} = "scf.if"(%p) ({{ {arms[0]} }}, {{ {arms[1]} }}) {self.attribute(0.2)} : (i1) -> !t']

    def for_(self, values: list[str], depth: int) -> list[str]:
        new, iv, carried = self.name(), self.name(), self.name()
        initial = self.rng.choice(values)
        body = self.body([*values, carried], depth, "scf.yield {} : !t")
        values.append(new)
        return [
            f'{new} = "scf.for"(%i, %i, %i, {initial}) ({{ ^bb0({iv}: index, {carried}: !t):'
            f" {body} }}) {self.attribute(0.2)} : (index, index, index, !t) -> !t"
        ]

    def while_(self, values: list[str], depth: int) -> list[str]:
        new, before, after = self.name(), self.name(), self.name()
        initial = self.rng.choice(values)
        first = self.body([*values, before], depth, "scf.condition(%p) {} : !t")
        second = self.body([*values, after], depth, "scf.yield {} : !t")
        values.append(new)
        return [
            f'{new} = "scf.while"({initial}) ({{ ^bb0({before}: !t): {first} }},'
            f" {{ ^bb1({after}: !t): {second} }}) {self.attribute(0.2)} : (!t) -> !t"
        ]

    def region(self, values: list[str], depth: int) -> list[str]:
        new = self.name()
        body = self.body(values, depth, "device.yield {} : !t")
        values.append(new)
        return [f'{new} = "device.region"() ({{ {body} }}) {{scope = {self.rng.choice(_SCOPES)}}} : () -> !t']

    def diamond(self, values: list[str]) -> list[str]:
        label = self.count = self.count + 1
        x, y = self.rng.choice(values), self.rng.choice(values)
        left = self.body([*values, f"%l{label}"], 1, f"cf.br ^join{label}({{}} : !t)")
        right = self.body(values, 1, f"cf.br ^join{label}({{}} : !t)")
        values.append(f"%j{label}")
        return [
            f"cf.cond_br %p, ^left{label}({x} : !t), ^right{label}",
            f"^join{label}(%j{label}: !t):",
            f"cf.br ^end{label}",
            f"^left{label}(%l{label}: !t):",
            left,
            f"^right{label}:",
            right,
            f"^end{label}:",
            f'"ml.use"({y}) : (!t) -> ()',
            *self.statements(values, 0),
        ]

    def loop(self, values: list[str]) -> list[str]:
        label = self.count = self.count + 1
        x = self.rng.choice(values)
        body = self.body([*values, f"%h{label}"], 1, f"cf.br ^head{label}({{}} : !t)")
        values.append(f"%h{label}")
        return [
            f"cf.br ^head{label}({x} : !t)",
            f"^head{label}(%h{label}: !t):",
            f"cf.cond_br %p, ^body{label}, ^end{label}",
            f"^body{label}:",
            body,
            f"^end{label}:",
            *self.statements(values, 0),
        ]


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    rng=st.randoms(use_true_random=False),
    annotations=st.sampled_from((0.0, 0.2, 0.5)),
    default=st.sampled_from(("cpu:0", "opencl:0")),
    arguments=st.sampled_from(("open", "host")),
)
def test_plans_or_explains(plan, rng, annotations: float, default: str, arguments: str) -> None:
    text = Generator(rng, annotations).module()
    error = None
    try:
        planned = plan(text, default, arguments)
    except PlanError as raised:
        error = raised
    if error is not None:
        # Only contradictory demands are errors, and both are shown.
        assert re.search(r"must be on \S+ and on \S+", error.message), error
        assert sum("because" in note for note in error.notes) == 2
        return
    pairs = {(id(copy.operation.operands[0]), copy.dst.short()) for copy in planned.plan.copies}
    assert len(pairs) == len(planned.plan.copies)
    assert len(planned.copies()) == len(planned.plan.copies)


@pytest.mark.parametrize("arguments", ["open", "host"])
@pytest.mark.parametrize("seed", range(20))
def test_without_annotations_nothing_is_copied(plan, seed: int, arguments: str) -> None:
    text = Generator(random.Random(seed), 0.0).module()
    assert plan(text, arguments=arguments).copies() == []
