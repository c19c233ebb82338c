"""Random modules for the planner: every kind of control flow, function values and annotations of all kinds."""

from __future__ import annotations

import random

SCOPES = ("#cpu0", "#dev0", "#dev1", "#gpu0", "#rocm1", "#dev", "#dev0@global", "#any@global")
_FLAGS = ("", "", "", ", constrain_result = true", ", constrain_body = false",
          ", constrain_body = false, constrain_result = true")  # fmt: skip
UNARY = "(!t) -> !t"


class Generator:
    """Writes modules of straight lines, branches, loops, blocks, calls and function values, annotated at random.

    ``%v1``, ``%v2`` and so on are the names of values that operations make.
    """

    def __init__(self, rng: random.Random, annotations: float) -> None:
        self.rng = rng
        self.annotations = annotations
        self.count = 0
        self.callees = 0
        """How many of the functions ``@f0``, ``@f1`` and so on may be called."""
        self.unary = 0
        """How many of the functions ``@u0``, ``@u1`` and so on may be used as values."""

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def new(self, values: list[str]) -> str:
        """A name that statements after this one may use."""
        values.append(self.name())
        return values[-1]

    def attribute(self, chance: float = 1.0) -> str:
        if self.rng.random() >= self.annotations * chance:
            return ""
        return f"{{device.scope = {self.rng.choice(SCOPES)}}} "

    # Functions

    def module(self) -> str:
        return "\n".join(self.functions())

    def functions(self) -> list[str]:
        """The functions of a module, in any order."""
        unary, called = self.rng.randint(0, 2), self.rng.randint(0, 2)
        functions = [self.external(), *(self.unary_function(number) for number in range(unary))]
        if unary:
            functions.append(self.apply())
        self.unary = unary
        for number in range(called):
            self.callees = number
            functions.append(self.function(f"f{number}", "private " if self.rng.random() < 0.8 else ""))
        self.callees = called
        functions.append(self.function("main", ""))
        self.rng.shuffle(functions)
        return functions

    def external(self) -> str:
        """A declaration; in generic form, since xDSL's own leaves out the attributes of its arguments."""
        sides = [f"[{self.attribute(0.5) or '{}'}]" for _ in range(2)]
        return (
            f'"func.func"() <{{sym_name = "external", sym_visibility = "private", function_type = {UNARY},'
            f" arg_attrs = {sides[0]}, res_attrs = {sides[1]}}}> ({{}}) : () -> ()"
        )

    def unary_function(self, number: int) -> str:
        marks = self.attribute(0.3), self.attribute(0.3)
        values = ["%x"]
        lines = [line for _ in range(self.rng.randint(1, 2)) for line in self.compute(values, 0)]
        body = "\n".join([*lines, f"func.return {values[-1]} : !t"])
        return f"func.func private @u{number}(%x: !t {marks[0]}) -> (!t {marks[1]}) {{\n{body}\n}}"

    def apply(self) -> str:
        values = ["%x"]
        called = self.new(values)
        return f"""func.func private @apply(%g: {UNARY} {self.attribute(0.2)}, %x: !t) -> !t {{
          {called} = "func.call_indirect"(%g, %x) : ({UNARY}, !t) -> !t
          {self.compute(values, 0)[0]}
          func.return {values[-1]} : !t
        }}"""

    def function(self, name: str, visibility: str) -> str:
        marks = [self.attribute(0.3) for _ in range(3)]
        frame = self.attribute(0.1)
        values = ["%a", "%b"]
        body = self.statements(values, 2)
        blocks = self.rng.choice(("", "diamond", "loop"))
        if blocks:
            body += self.diamond(values) if blocks == "diamond" else self.loop(values)
        body.append(f"func.return {self.rng.choice(values)} : !t")
        lines = "\n".join(body)
        return f"""func.func {visibility}@{name}(%a: !t {marks[0]}, %b: !t {marks[1]}, %p: i1, %i: index)
            -> (!t {marks[2]}) {f"attributes {frame}" if frame else ""}{{
          {lines}
        }}"""

    def statements(self, values: list[str], depth: int) -> list[str]:
        lines: list[str] = []
        for _ in range(self.rng.randint(1, 5)):
            kinds = [self.compute, self.compute, self.constant, self.filled, self.view, self.scalar, self.generate]
            kinds += [self.call_external]
            if self.rng.random() < self.annotations:
                kinds += [self.annotate, self.annotate, self.copy, *([self.region] if depth else [])]
            kinds += [self.call, self.call] if self.callees else []
            kinds += [self.indirect, self.indirect, self.call_apply] if self.unary else []
            kinds += [self.if_, self.for_, self.while_, self.switch, self.execute] if depth else []
            kinds += [self.carried_function] if depth and self.unary else []
            lines += self.rng.choice(kinds)(values, depth)
        return lines

    def body(self, values: list[str], depth: int, last: str) -> str:
        """Statements in a block of their own, ended by ``last`` with a value that is visible there."""
        inner = list(values)
        lines = self.statements(inner, depth - 1)
        return "\n".join([*lines, last.format(self.rng.choice(inner[-4:]))])

    # Operations

    def compute(self, values: list[str], depth: int) -> list[str]:
        x, y = self.rng.choice(values), self.rng.choice(values)
        return [f'{self.new(values)} = "ml.op"({x}, {y}) {self.attribute()} : (!t, !t) -> !t']

    def constant(self, values: list[str], depth: int) -> list[str]:
        return [f'{self.new(values)} = "arith.constant"() {{value = dense<1.0> : !t}} : () -> !t']

    def filled(self, values: list[str], depth: int) -> list[str]:
        empty, scalar = self.name(), self.name()
        return [
            f'{empty} = "tensor.empty"() : () -> !t',
            f'{scalar} = "arith.constant"() {{value = 1.0 : f32}} : () -> f32',
            f'{self.new(values)} = "linalg.fill"({scalar}, {empty}) '
            "<{operandSegmentSizes = array<i32: 1, 1>}> ({ ^bb0(%x: f32, %y: f32): linalg.yield %x : f32 }) "
            f"{self.attribute()} : (f32, !t) -> !t",
        ]

    def view(self, values: list[str], depth: int) -> list[str]:
        source = self.rng.choice(values)
        return [f'{self.new(values)} = "tensor.bitcast"({source}) {self.attribute(0.3)} : (!t) -> !t']

    def scalar(self, values: list[str], depth: int) -> list[str]:
        read, source, target = self.name(), self.rng.choice(values), self.rng.choice(values)
        return [
            f'{read} = "tensor.extract"({source}, %i, %i) : (!t, index, index) -> f32',
            f'{self.new(values)} = "tensor.insert"({read}, {target}, %i, %i) : (f32, !t, index, index) -> !t',
        ]

    def generate(self, values: list[str], depth: int) -> list[str]:
        source = self.rng.choice(values)
        return [
            f"""{self.new(values)} = "tensor.generate"() ({{
            ^bb0(%x: index, %y: index):
            %e = "tensor.extract"({source}, %x, %y) : (!t, index, index) -> f32
            "tensor.yield"(%e) : (f32) -> ()
          }}) {self.attribute()} : () -> !t"""
        ]

    # Annotations

    def annotate(self, values: list[str], depth: int) -> list[str]:
        scope, flags, value = self.rng.choice(SCOPES), self.rng.choice(_FLAGS), self.rng.choice(values)
        return [f'{self.new(values)} = "device.on_device"({value}) {{scope = {scope}{flags}}} : (!t) -> !t']

    def copy(self, values: list[str], depth: int) -> list[str]:
        src, dst, value = self.rng.choice(SCOPES[:-1]), self.rng.choice(SCOPES[:-1]), self.rng.choice(values)
        return [f'{self.new(values)} = "device.device_copy"({value}) {{src = {src}, dst = {dst}}} : (!t) -> !t']

    def region(self, values: list[str], depth: int) -> list[str]:
        body, scope = self.body(values, depth, "device.yield {} : !t"), self.rng.choice(SCOPES)
        return [f'{self.new(values)} = "device.region"() ({{ {body} }}) {{scope = {scope}}} : () -> !t']

    # Calls

    def call(self, values: list[str], depth: int) -> list[str]:
        x, y, callee = self.rng.choice(values), self.rng.choice(values), self.rng.randrange(self.callees)
        return [
            f'{self.new(values)} = "func.call"({x}, {y}, %p, %i) {{callee = @f{callee}}} '
            ": (!t, !t, i1, index) -> !t"
        ]

    def call_external(self, values: list[str], depth: int) -> list[str]:
        x = self.rng.choice(values)
        return [f'{self.new(values)} = "func.call"({x}) {{callee = @external}} : (!t) -> !t']

    def function_value(self) -> tuple[list[str], str]:
        """Statements that make a function value, and its name."""
        names = [self.name() for _ in range(2)]
        lines = [
            f'{name} = "func.constant"() {{value = @u{self.rng.randrange(self.unary)}}} : () -> ({UNARY})'
            for name in names
        ]
        if self.rng.random() < 0.5:
            return lines[:1], names[0]
        chosen = self.name()
        if self.rng.random() < 0.5:
            last = f'{chosen} = "arith.select"(%p, {names[0]}, {names[1]}) : (i1, {UNARY}, {UNARY}) -> ({UNARY})'
        else:
            arms = [f"{{ scf.yield {name} : {UNARY} }}" for name in names]
            last = f'{chosen} = "scf.if"(%p) ({arms[0]}, {arms[1]}) : (i1) -> ({UNARY})'
        return [*lines, last], chosen

    def indirect(self, values: list[str], depth: int) -> list[str]:
        lines, function = self.function_value()
        x = self.rng.choice(values)
        call = f'{self.new(values)} = "func.call_indirect"({function}, {x}) : ({UNARY}, !t) -> !t'
        return [*lines, call]

    def call_apply(self, values: list[str], depth: int) -> list[str]:
        lines, function = self.function_value()
        x = self.rng.choice(values)
        return [
            *lines,
            f'{self.new(values)} = "func.call"({function}, {x}) {{callee = @apply}} : ({UNARY}, !t) -> !t',
        ]

    def carried_function(self, values: list[str], depth: int) -> list[str]:
        """A loop that carries a function and what it is called with."""
        lines, first = self.function_value()
        again, second = self.function_value()
        result, counter, function, x, y = (self.name() for _ in range(5))
        initial = self.rng.choice(values)
        values.append(f"{result}#1")
        inner = "\n".join(again)
        return [
            *lines,
            f"""{result}:2 = "scf.for"(%i, %i, %i, {first}, {initial}) ({{
            ^bb0({counter}: index, {function}: {UNARY}, {x}: !t):
              {inner}
              {y} = "func.call_indirect"({function}, {x}) : ({UNARY}, !t) -> !t
              scf.yield {second}, {y} : {UNARY}, !t
            }}) : (index, index, index, {UNARY}, !t) -> ({UNARY}, !t)""",
        ]

    # Control flow

    def if_(self, values: list[str], depth: int) -> list[str]:
        arms = [self.body(values, depth, "scf.yield {} : !t") for _ in range(2)]
        mark = self.attribute(0.2)
        return [f'{self.new(values)} = "scf.if"(%p) ({{ {arms[0]} }}, {{ {arms[1]} }}) {mark} : (i1) -> !t']

    def switch(self, values: list[str], depth: int) -> list[str]:
        arms = [f"{{ {self.body(values, depth, 'scf.yield {} : !t')} }}" for _ in range(3)]
        return [
            f'{self.new(values)} = "scf.index_switch"(%i) <{{cases = array<i64: 0, 1>}}> ({", ".join(arms)}) '
            ": (index) -> !t"
        ]

    def execute(self, values: list[str], depth: int) -> list[str]:
        body = self.body(values, depth, "scf.yield {} : !t")
        return [f'{self.new(values)} = "scf.execute_region"() ({{ {body} }}) : () -> !t']

    def for_(self, values: list[str], depth: int) -> list[str]:
        counter, carried, initial = self.name(), self.name(), self.rng.choice(values)
        body = self.body([*values, carried], depth, "scf.yield {} : !t")
        return [
            f'{self.new(values)} = "scf.for"(%i, %i, %i, {initial}) ({{ ^bb0({counter}: index, {carried}: !t):'
            f" {body} }}) {self.attribute(0.2)} : (index, index, index, !t) -> !t"
        ]

    def while_(self, values: list[str], depth: int) -> list[str]:
        before, after, initial = self.name(), self.name(), self.rng.choice(values)
        first = self.body([*values, before], depth, "scf.condition(%p) {} : !t")
        second = self.body([*values, after], depth, "scf.yield {} : !t")
        return [
            f'{self.new(values)} = "scf.while"({initial}) ({{ ^bb0({before}: !t): {first} }},'
            f" {{ ^bb1({after}: !t): {second} }}) {self.attribute(0.2)} : (!t) -> !t"
        ]

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
