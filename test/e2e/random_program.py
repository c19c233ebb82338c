"""Random programs: control flow, calls and updates around tensor code whose pieces have random scopes.

A generated program is MLIR text together with Python statements that do the same on numpy arrays. Values are
``tensor<?x4xf64>`` (MATRIX), ``tensor<?xf64>`` (COLUMN) and ``f64`` (SCALAR), all of them small in magnitude.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

MATRIX, COLUMN, SCALAR = "tensor<?x4xf64>", "tensor<?xf64>", "f64"
Environment = dict[str, Any]
Statement = Callable[[Environment], None]

_HEADER = """\
#first = #device.scope<"opencl", 0 : i64, "", "">
#second = #device.scope<"opencl", 1 : i64, "", "">
#slim = #device.scope<"opencl", 0 : i64, #device.target<"opencl", {workgroup = 16 : i64}>, "">
#wide = #device.scope<"opencl", 0 : i64, #device.target<"opencl", {workgroup = 128 : i64}>, "">
#host = #device.scope<"cpu", 0 : i64, "", "">
#full = affine_map<(i, j) -> (i, j)>
#rows = affine_map<(i, j) -> (i)>
#columns = affine_map<(i, j) -> (j)>
"""
_FUNCTION = f"({MATRIX}, {MATRIX}, f64, i1, index) -> {MATRIX}"
_SCOPES = ("#first", "#second", "#slim", "#wide", "#host")
_UNARY: dict[str, Callable[[Any], Any]] = {
    "math.sin": np.sin,
    "math.tanh": np.tanh,
    "math.absf": np.abs,
    "arith.negf": np.negative,
}
_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "arith.subf": np.subtract,
    "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum,
}


@dataclass
class Function:
    """A private function: two matrices and a scalar to results of the given types."""

    name: str
    results: list[str]
    body: list[Statement]
    returned: list[str]

    def call(self, e: Environment, x: str, y: str, s: str) -> list[Any]:
        """The results on these values of the caller, whose ``%flag`` and ``%steps`` it takes, too."""
        inner = {"%x": e[x], "%y": e[y], "%s": e[s], "%flag": e["%flag"], "%steps": e["%steps"]}
        for statement in self.body:
            statement(inner)
        return [inner[name] for name in self.returned]


@dataclass
class Program:
    """``run(x, y, s, flag, n)`` is what the entry ``main`` computes."""

    text: str
    run: Callable[..., tuple[Any, ...]]


@dataclass
class Block:
    """Code under construction: the values that are visible and the statements so far."""

    values: list[tuple[str, str]]
    depth: int
    lines: list[str] = field(default_factory=list[str])
    statements: list[Statement] = field(default_factory=list[Statement])

    def of_type(self, type_: str) -> list[str]:
        return [name for name, found in self.values if found == type_]


class Generator:
    """Makes one program from the choices of ``rng``."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._count = 0
        self._functions: list[Function] = []
        self._values: list[Function] = []
        """Those that are used as values: with one result, a matrix."""
        self._annotated = True
        self._texts: list[str] = []

    def program(self) -> Program:
        if self._rng.integers(2):
            # First, and without annotations: these demand scopes of arguments, in which values have to agree.
            self._annotated = False
            self._values = [self._function(f"value{number}", [MATRIX]) for number in range(3)]
            self._texts.append(_APPLY)
            self._annotated = True
        for number in range(int(self._rng.integers(0, 3))):
            self._functions.append(self._function(f"helper{number}"))
        body, returned, types = self._body(int(self._rng.integers(6, 14)))
        self._texts.append(
            "func.func @main(%x: tensor<?x4xf64>, %y: tensor<?x4xf64>, %s: f64, %flag: i1, %steps: index)\n"
            f"    -> ({', '.join(types)}) {{\n{_prologue()}"
            + "\n".join(body.lines)
            + f"\n  return {', '.join(returned)} : {', '.join(types)}\n}}\n"
        )

        def run(x: Any, y: Any, s: float, flag: bool, steps: int) -> tuple[Any, ...]:
            environment: Environment = {"%x": x, "%y": y, "%s": s, "%flag": flag, "%steps": steps}
            for statement in body.statements:
                statement(environment)
            return tuple(environment[name] for name in returned)

        return Program(_HEADER + "".join(self._texts), run)

    # ---- structure ----

    def _body(self, length: int, types: Sequence[str] = ()) -> tuple[Block, list[str], list[str]]:
        block = Block([("%x", MATRIX), ("%y", MATRIX), ("%s", SCALAR)], depth=0)
        self._fill(block, length)
        if types:
            return block, [self._value(block, type_) for type_ in types], list(types)
        names = self._choose(block.values, int(self._rng.integers(1, 5)))
        return block, [name for name, _ in names], [type_ for _, type_ in names]

    def _function(self, name: str, types: Sequence[str] = ()) -> Function:
        block, returned, types = self._body(int(self._rng.integers(2, 6)), types)
        self._texts.append(
            f"func.func private @{name}(%x: tensor<?x4xf64>, %y: tensor<?x4xf64>, %s: f64, %flag: i1, "
            f"%steps: index)\n    -> ({', '.join(types)}) {{\n{_prologue()}"
            + "\n".join(block.lines)
            + f"\n  return {', '.join(returned)} : {', '.join(types)}\n}}\n"
        )
        return Function(name, types, block.statements, returned)

    def _fill(self, block: Block, length: int) -> None:
        simple = [
            *(self._unary, self._unary, self._binary, self._binary, self._scale, self._row_sum),
            *(self._broadcast, self._splat, self._read, self._write, self._move_columns, self._total),
            *(self._constant, self._product, self._region, self._generate),
        ]
        simple += [self._on_device] if self._annotated else []
        nested = [self._for, self._if, self._while, self._switch]
        for _ in range(length):
            choices = list(simple)
            if block.depth < 2:
                choices += nested
            if self._functions and block.depth < 2:
                choices += [self._call, self._call]
            if self._values and block.depth < 2:
                choices += [self._call_value, self._call_value, self._call_values]
            choices[int(self._rng.integers(len(choices)))](block)

    def _nested(self, block: Block, carried: Sequence[tuple[str, str]] = ()) -> Block:
        inner = Block([*block.values, *carried], block.depth + 1)
        self._fill(inner, int(self._rng.integers(1, 4)))
        return inner

    # ---- operations ----

    def _unary(self, block: Block) -> None:
        name, function = self._pick(list(_UNARY.items()))
        type_ = self._pick([MATRIX, MATRIX, COLUMN])
        operand = self._value(block, type_)
        result = self._new(block, type_)
        block.lines.append(f"  {result} = {name} {operand}{self._scope()} : {type_}")
        block.statements.append(lambda e: e.update({result: function(e[operand])}))

    def _binary(self, block: Block) -> None:
        name, function = self._pick(list(_BINARY.items()))
        type_ = self._pick([MATRIX, MATRIX, COLUMN, SCALAR])
        left, right = self._value(block, type_), self._value(block, type_)
        result = self._new(block, type_)
        scope = "" if type_ == SCALAR else self._scope()
        block.lines.append(f"  {result} = {name} {left}, {right}{scope} : {type_}")
        block.statements.append(lambda e: e.update({result: function(e[left], e[right])}))

    def _scale(self, block: Block) -> None:
        """A scalar of the host in the body of device code; keeps magnitudes down, too."""
        operand, factor = self._value(block, MATRIX), self._value(block, SCALAR)
        result = self._new(block, MATRIX)
        block.lines.append(
            f"  {result} = linalg.generic {{indexing_maps = [#full, #full],\n"
            f'      iterator_types = ["parallel", "parallel"]}}\n'
            f"    ins({operand} : {MATRIX}) outs(%empty : {MATRIX}){self._scope(' attrs =')} {{\n"
            f"  ^bb0(%a: f64, %out: f64):\n    %b = math.sin {factor} : f64\n"
            f"    %c = arith.mulf %a, %b : f64\n    linalg.yield %c : f64\n  }} -> {MATRIX}"
        )
        block.statements.append(lambda e: e.update({result: e[operand] * np.sin(e[factor])}))

    def _row_sum(self, block: Block) -> None:
        operand, start = self._value(block, MATRIX), self._value(block, COLUMN)
        result = self._new(block, COLUMN)
        block.lines.append(
            f"  {result} = linalg.reduce {{arith.addf}} ins({operand} : {MATRIX}) outs({start} : {COLUMN})\n"
            f"    dimensions = [1]{self._scope()}"
        )
        block.statements.append(lambda e: e.update({result: e[operand].sum(axis=1) + e[start]}))

    def _broadcast(self, block: Block) -> None:
        operand, column = self._value(block, MATRIX), self._value(block, COLUMN)
        result = self._new(block, MATRIX)
        block.lines.append(
            f"  {result} = linalg.generic {{indexing_maps = [#full, #rows, #full],\n"
            f'      iterator_types = ["parallel", "parallel"]}}\n'
            f"    ins({operand}, {column} : {MATRIX}, {COLUMN}) outs(%empty : {MATRIX})"
            f"{self._scope(' attrs =')} {{\n"
            f"  ^bb0(%a: f64, %b: f64, %out: f64):\n    %c = arith.subf %a, %b : f64\n"
            f"    linalg.yield %c : f64\n  }} -> {MATRIX}"
        )
        block.statements.append(lambda e: e.update({result: e[operand] - e[column][:, None]}))

    def _splat(self, block: Block) -> None:
        operand = self._value(block, SCALAR)
        result = self._new(block, COLUMN)
        block.lines.append(f"  {result} = tensor.splat {operand}[%n]{self._scope()} : {COLUMN}")
        block.statements.append(lambda e: e.update({result: np.full(len(e["%x"]), e[operand])}))

    def _read(self, block: Block) -> None:
        operand = self._value(block, MATRIX)
        column = int(self._rng.integers(4))
        result = self._new(block, SCALAR)
        block.lines.append(f"  {result} = tensor.extract {operand}[%last, %c{column}] : {MATRIX}")
        block.statements.append(lambda e: e.update({result: e[operand][-1, column]}))

    def _total(self, block: Block) -> None:
        """A full reduction that is read by the host."""
        operand = self._value(block, COLUMN)
        sum_, result = self._new(block, None), self._new(block, SCALAR)
        block.lines.append(
            f"  {sum_} = linalg.reduce {{arith.maximumf}} ins({operand} : {COLUMN}) outs(%none : tensor<f64>)\n"
            f"    dimensions = [0]{self._scope()}\n  {result} = tensor.extract {sum_}[] : tensor<f64>"
        )
        block.statements.append(lambda e: e.update({result: max(0.0, e[operand].max())}))

    def _write(self, block: Block) -> None:
        operand, value = self._value(block, MATRIX), self._value(block, SCALAR)
        column = int(self._rng.integers(4))
        result = self._new(block, MATRIX)
        block.lines.append(
            f"  {result} = tensor.insert {value} into {operand}[%c0, %c{column}]{self._scope()} : {MATRIX}"
        )

        def run(e: Environment) -> None:
            e[result] = e[operand].copy()
            e[result][0, column] = e[value]

        block.statements.append(run)

    def _move_columns(self, block: Block) -> None:
        source, target = self._value(block, MATRIX), self._value(block, MATRIX)
        take, put = (int(c) for c in self._rng.integers(3, size=2))
        part, result = self._new(block, None), self._new(block, MATRIX)
        block.lines.append(
            f"  {part} = tensor.extract_slice {source}[0, {take}] [%n, 2] [1, 1]{self._scope()} "
            f": {MATRIX} to tensor<?x2xf64>\n"
            f"  {result} = tensor.insert_slice {part} into {target}[0, {put}] [%n, 2] [1, 1]{self._scope()} "
            f": tensor<?x2xf64> into {MATRIX}"
        )

        def run(e: Environment) -> None:
            e[result] = e[target].copy()
            e[result][:, put : put + 2] = e[source][:, take : take + 2]

        block.statements.append(run)

    def _constant(self, block: Block) -> None:
        """A constant that is used in one place, or in several, is there wherever it is used."""
        operand = self._value(block, MATRIX)
        numbers = [float(number) / 8 for number in self._rng.integers(-8, 9, 4)]
        constant, result = self._new(block, None), self._new(block, MATRIX)
        block.lines.append(
            f"  {constant} = arith.constant dense<{numbers}> : tensor<4xf64>\n"
            f"  {result} = linalg.generic {{indexing_maps = [#full, #columns, #full],\n"
            f'      iterator_types = ["parallel", "parallel"]}}\n'
            f"    ins({operand}, {constant} : {MATRIX}, tensor<4xf64>) outs(%empty : {MATRIX})"
            f"{self._scope(' attrs =')} {{\n"
            f"  ^bb0(%a: f64, %b: f64, %out: f64):\n    %c = arith.mulf %a, %b : f64\n"
            f"    linalg.yield %c : f64\n  }} -> {MATRIX}"
        )
        block.statements.append(lambda e: e.update({result: e[operand] * np.array(numbers)}))

    def _product(self, block: Block) -> None:
        """Accumulates into a value that may be used elsewhere, too."""
        operand, start = self._value(block, MATRIX), self._value(block, MATRIX)
        numbers = self._rng.integers(-2, 3, (4, 4)) / 16
        constant, result = self._new(block, None), self._new(block, MATRIX)
        block.lines.append(
            f"  {constant} = arith.constant dense<{numbers.tolist()}> : tensor<4x4xf64>\n"
            f"  {result} = linalg.matmul{self._scope()} ins({operand}, {constant} : {MATRIX}, tensor<4x4xf64>)\n"
            f"    outs({start} : {MATRIX}) -> {MATRIX}"
        )
        block.statements.append(lambda e: e.update({result: e[operand] @ numbers + e[start]}))

    def _on_device(self, block: Block) -> None:
        """Only a value that nothing else places may be placed this way; a mere permission to copy always may."""
        operand, inner, result = self._value(block, MATRIX), self._new(block, None), self._new(block, MATRIX)
        block.lines.append(
            f"  {inner} = math.cos {operand} : {MATRIX}\n"
            f'  {inner}b = "device.on_device"({inner}) {{scope = {self._pick(_SCOPES)}, '
            f"constrain_body = true, constrain_result = {self._pick(['true', 'false'])}}}"
            f" : ({MATRIX}) -> {MATRIX}\n"
            f'  {result} = "device.on_device"({inner}b) {{scope = {self._pick(_SCOPES)}, '
            f"constrain_body = false, constrain_result = false}} : ({MATRIX}) -> {MATRIX}"
        )
        block.statements.append(lambda e: e.update({result: np.cos(e[operand])}))

    def _region(self, block: Block) -> None:
        operand, other = self._value(block, MATRIX), self._value(block, MATRIX)
        inner, result = self._new(block, None), self._new(block, MATRIX)
        block.lines.append(
            f'  {result} = "device.region"() ({{\n'
            f"    {inner} = arith.subf {operand}, {other} : {MATRIX}\n"
            f"    {inner}s = math.sin {inner} : {MATRIX}\n"
            f'    "device.yield"({inner}s) : ({MATRIX}) -> ()\n'
            f"  }}) {{scope = {self._pick(_SCOPES)}}} : () -> {MATRIX}"
        )
        block.statements.append(lambda e: e.update({result: np.sin(e[operand] - e[other])}))

    def _generate(self, block: Block) -> None:
        """Reads another tensor at a computed place, and a scalar."""
        operand, scalar = self._value(block, MATRIX), self._value(block, SCALAR)
        result = self._new(block, MATRIX)
        block.lines.append(
            f"  {result} = tensor.generate %n {{\n  ^bb0(%i: index, %j: index):\n"
            f"    %back = arith.subi %last, %i : index\n"
            f"    %a = tensor.extract {operand}[%back, %j] : {MATRIX}\n"
            f"    %b = arith.maximumf %a, {scalar} : f64\n    tensor.yield %b : f64\n"
            f"  }}{self._scope()} : {MATRIX}"
        )
        block.statements.append(lambda e: e.update({result: np.maximum(e[operand][::-1], e[scalar])}))

    def _call(self, block: Block) -> None:
        callee = self._functions[int(self._rng.integers(len(self._functions)))]
        x, y, s = self._value(block, MATRIX), self._value(block, MATRIX), self._value(block, SCALAR)
        results = [self._new(block, type_) for type_ in callee.results]
        block.lines.append(
            f"  {', '.join(results)} = func.call @{callee.name}({x}, {y}, {s}, %flag, %steps)\n"
            f"    : ({MATRIX}, {MATRIX}, f64, i1, index) -> ({', '.join(callee.results)})"
        )
        block.statements.append(lambda e: e.update(zip(results, callee.call(e, x, y, s), strict=True)))

    def _function_value(self, block: Block) -> tuple[str, Callable[[Environment], Function]]:
        """A function, or one of two."""
        (one, first), (other, second) = ((self._name(), self._pick(self._values)) for _ in range(2))
        block.lines += [
            f"  {name} = func.constant @{function.name} : {_FUNCTION}"
            for name, function in ((one, first), (other, second))
        ]
        chosen = self._name()
        match int(self._rng.integers(3)):
            case 0:
                return one, lambda e: first
            case 1:
                block.lines.append(f"  {chosen} = arith.select %flag, {one}, {other} : {_FUNCTION}")
                return chosen, lambda e: first if e["%flag"] else second
            case _:
                number, low = self._value(block, SCALAR), self._name()
                block.lines.append(
                    f"  {low} = arith.cmpf olt, {number}, %limit : f64\n"
                    f"  {chosen} = scf.if {low} -> ({_FUNCTION}) {{\n  scf.yield {one} : {_FUNCTION}\n"
                    f"  }} else {{\n  scf.yield {other} : {_FUNCTION}\n  }}"
                )
                return chosen, lambda e: first if e[number] < 0.25 else second

    def _call_value(self, block: Block) -> None:
        """Calls a function value, or lets another function call it twice."""
        function, which = self._function_value(block)
        x, y, s = self._value(block, MATRIX), self._value(block, MATRIX), self._value(block, SCALAR)
        result = self._new(block, MATRIX)
        arguments, types = f"{x}, {y}, {s}, %flag, %steps", f"{MATRIX}, {MATRIX}, f64, i1, index"
        if twice := bool(self._rng.integers(2)):
            call = f"func.call @apply({function}, {arguments}) : ({_FUNCTION}, {types}) -> {MATRIX}"
        else:
            call = f"func.call_indirect {function}({arguments}) : {_FUNCTION}"
        block.lines.append(f"  {result} = {call}")

        def run(e: Environment) -> None:
            (e[result],) = which(e).call(e, x, y, s)
            if twice:
                (e[result],) = which(e).call(e, result, x, s)

        block.statements.append(run)

    def _call_values(self, block: Block) -> None:
        """A loop that carries a function and what it makes."""
        (first, start), (next_, then) = self._function_value(block), self._function_value(block)
        x, y, s = self._value(block, MATRIX), self._value(block, MATRIX), self._value(block, SCALAR)
        last, result = self._name(), self._new(block, MATRIX)
        function, carried, made = (self._name() for _ in range(3))
        block.lines.append(
            f"  {last}, {result} = scf.for {self._name()} = %c0 to %steps step %c1\n"
            f"      iter_args({function} = {first}, {carried} = {x}) -> ({_FUNCTION}, {MATRIX}) {{\n"
            f"  {made} = func.call_indirect {function}({carried}, {y}, {s}, %flag, %steps) : {_FUNCTION}\n"
            f"  scf.yield {next_}, {made} : {_FUNCTION}, {MATRIX}\n  }}"
        )

        def run(e: Environment) -> None:
            e[result] = e[x]
            for number in range(e["%steps"]):
                (e[result],) = (then if number else start)(e).call(e, result, y, s)

        block.statements.append(run)

    # ---- control flow ----

    def _for(self, block: Block) -> None:
        initial = self._choose(block.values, int(self._rng.integers(1, 4)))
        carried = [(self._name(), type_) for _, type_ in initial]
        inner = self._nested(block, carried)
        yielded = [self._value(inner, type_) for _, type_ in initial]
        types = ", ".join(type_ for _, type_ in initial)
        results = [self._new(block, type_) for _, type_ in initial]
        pairs = ", ".join(f"{a} = {b}" for (a, _), (b, _) in zip(carried, initial, strict=True))
        block.lines += [
            f"  {', '.join(results)} = scf.for {self._name()} = %c0 to %steps step %c1 iter_args({pairs})\n"
            f"      -> ({types}) {{",
            *inner.lines,
            f"  scf.yield {', '.join(yielded)} : {types}\n  }}",
        ]

        def run(e: Environment) -> None:
            state = [e[name] for name, _ in initial]
            for _ in range(e["%steps"]):
                scope = dict(e)
                scope.update(zip((name for name, _ in carried), state, strict=True))
                state = _run(inner, scope, yielded)
            e.update(zip(results, state, strict=True))

        block.statements.append(run)

    def _while(self, block: Block) -> None:
        """Runs while a counter is below %steps and a number, perhaps read from a device, is below a limit."""
        initial = self._choose(block.values, int(self._rng.integers(1, 3)))
        number, counter = self._value(block, SCALAR), self._name()
        before = [(self._name(), type_) for _, type_ in initial]
        after = [(self._name(), type_) for _, type_ in initial]
        inner = self._nested(block, after)
        yielded = [self._value(inner, type_) for _, type_ in initial]
        types = ", ".join(type_ for _, type_ in initial)
        results = [self._new(block, type_) for _, type_ in initial]
        pairs = ", ".join(f"{a} = {b}" for (a, _), (b, _) in zip(before, initial, strict=True))
        names = ", ".join(name for name, _ in before)
        arguments = ", ".join(f"{name}: {type_}" for name, type_ in after)
        count, low, goes, next_ = (self._name() for _ in range(4))
        block.lines += [
            f"  {', '.join(results)}, {self._name()} = scf.while ({pairs}, {counter} = %c0)\n"
            f"      : ({types}, index) -> ({types}, index) {{\n"
            f"    {count} = arith.cmpi ult, {counter}, %steps : index\n"
            f"    {low} = arith.cmpf olt, {number}, %limit : f64\n"
            f"    {goes} = arith.andi {count}, {low} : i1\n"
            f"    scf.condition({goes}) {names}, {counter} : {types}, index\n  }} do {{\n"
            f"  ^bb0({arguments}, {next_}: index):",
            *inner.lines,
            f"  {next_}n = arith.addi {next_}, %c1 : index\n"
            f"  scf.yield {', '.join(yielded)}, {next_}n : {types}, index\n  }}",
        ]

        def run(e: Environment) -> None:
            state = [e[name] for name, _ in initial]
            for _ in range(e["%steps"] if e[number] < 0.25 else 0):
                scope = dict(e)
                scope.update(zip((name for name, _ in after), state, strict=True))
                state = _run(inner, scope, yielded)
            e.update(zip(results, state, strict=True))

        block.statements.append(run)

    def _if(self, block: Block) -> None:
        types = [type_ for _, type_ in self._choose(block.values, int(self._rng.integers(1, 4)))]
        sides = [self._nested(block), self._nested(block)]
        yielded = [[self._value(side, type_) for type_ in types] for side in sides]
        number, condition = self._pick([None, self._value(block, SCALAR)]), "%flag"
        if number is not None:
            condition = self._name()
            block.lines.append(f"  {condition} = arith.cmpf olt, {number}, %limit : f64")
        results = [self._new(block, type_) for type_ in types]
        joined = ", ".join(types)
        block.lines += [
            f"  {', '.join(results)} = scf.if {condition} -> ({joined}) {{",
            *sides[0].lines,
            f"  scf.yield {', '.join(yielded[0])} : {joined}\n  }} else {{",
            *sides[1].lines,
            f"  scf.yield {', '.join(yielded[1])} : {joined}\n  }}",
        ]

        def run(e: Environment) -> None:
            taken = e["%flag"] if number is None else e[number] < 0.25
            side = 0 if taken else 1
            e.update(zip(results, _run(sides[side], dict(e), yielded[side]), strict=True))

        block.statements.append(run)

    def _switch(self, block: Block) -> None:
        type_ = self._pick([MATRIX, COLUMN])
        sides = [self._nested(block) for _ in range(3)]
        yielded = [self._value(side, type_) for side in sides]
        result = self._new(block, type_)
        block.lines.append(f"  {result} = scf.index_switch %steps -> {type_}")
        for number, (side, value) in enumerate(zip(sides, yielded, strict=True)):
            label = "default" if number == 2 else f"case {number}"
            block.lines += [f"  {label} {{", *side.lines, f"  scf.yield {value} : {type_}\n  }}"]

        def run(e: Environment) -> None:
            side = min(int(e["%steps"]), 2)
            e[result] = _run(sides[side], dict(e), [yielded[side]])[0]

        block.statements.append(run)

    # ---- choices ----

    def _pick(self, items: Sequence[Any]) -> Any:
        return items[int(self._rng.integers(len(items)))]

    def _choose(self, items: Sequence[tuple[str, str]], count: int) -> list[tuple[str, str]]:
        """``count`` items, recent ones more often, possibly with repetition."""
        weights = np.arange(1, len(items) + 1, dtype=float)
        found = self._rng.choice(len(items), size=count, p=weights / weights.sum())
        return [items[int(i)] for i in found]

    def _value(self, block: Block, type_: str) -> str:
        """A visible value of the type; made from a scalar where there is none."""
        found = [(name, type_) for name in block.of_type(type_)]
        if not found:
            self._splat(block)
            found = [(name, type_) for name in block.of_type(type_)]
        return self._choose(found, 1)[0][0]

    def _scope(self, prefix: str = "") -> str:
        choice = self._pick([*_SCOPES, "#first", None, None])
        return "" if choice is None else f"{prefix} {{device.scope = {choice}}}"

    def _name(self) -> str:
        self._count += 1
        return f"%v{self._count}"

    def _new(self, block: Block, type_: str | None) -> str:
        name = self._name()
        if type_ is not None:
            block.values.append((name, type_))
        return name


def _run(block: Block, environment: Environment, wanted: Sequence[str]) -> list[Any]:
    for statement in block.statements:
        statement(environment)
    return [environment[name] for name in wanted]


_APPLY = f"""\
func.func private @apply(%f: {_FUNCTION}, %x: {MATRIX}, %y: {MATRIX}, %s: f64, %flag: i1, %steps: index)
    -> {MATRIX} {{
  %0 = func.call_indirect %f(%x, %y, %s, %flag, %steps) : {_FUNCTION}
  %1 = func.call_indirect %f(%0, %x, %s, %flag, %steps) : {_FUNCTION}
  return %1 : {MATRIX}
}}
"""


def _prologue() -> str:
    constants = "".join(f"  %c{number} = arith.constant {number} : index\n" for number in range(4))
    return (
        f"{constants}  %limit = arith.constant 0.25 : f64\n"
        f"  %none = arith.constant dense<0.0> : tensor<f64>\n"
        f"  %n = tensor.dim %x, %c0 : {MATRIX}\n  %last = arith.subi %n, %c1 : index\n"
        f"  %empty = tensor.empty(%n) : {MATRIX}\n"
    )
