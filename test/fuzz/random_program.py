"""Random programs with a reference in numpy: functions, control flow and annotations around random operations.

A program is a tree of statements. Each has MLIR text and a function that does the same on numpy arrays; the
operations are in ``random_operations``. Names of values are unique in a program, so that statements can be taken
out of it (`reduced`) without regard to blocks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from random_values import (
    ANYTHING,
    COMPLEX,
    FLOATS,
    INTEGERS,
    Array,
    Environment,
    Rng,
    Type,
    Undefined,
    dense,
    difference,
    literal,
    random_array,
    scalar,
)

HEADER = """\
#first = #device.scope<"opencl", 0 : i64, "", "">
#second = #device.scope<"opencl", 1 : i64, "", "">
#slim = #device.scope<"opencl", 0 : i64, #device.target<"opencl", {workgroup = 16 : i64}>, "">
#wide = #device.scope<"opencl", 0 : i64, #device.target<"opencl", {workgroup = 128 : i64}>, "">
#other = #device.scope<"cuda", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
"""
SCOPES = ("#first", "#first", "#first", "#second", "#slim", "#wide", "#host")
SIZES = (1, 2, 3, 4, 5, 7, 8, 16, 17, 0)
NAME = re.compile(r"%[A-Za-z_]\w*")
INDEX = scalar("index")
Value = tuple[str, Type]


@dataclass
class Statement:
    """``text`` is made when it is asked for, since blocks may change before."""

    results: list[Value]
    text: Callable[[], str]
    run: Callable[[Environment], None]
    blocks: Sequence[Block] = ()


@dataclass
class Block:
    """Statements, the values that are visible after them, and what the block yields."""

    visible: list[Value]
    depth: int
    owner: Function | None
    statements: list[Statement] = field(default_factory=list[Statement])
    yielded: list[str] = field(default_factory=list[str])

    def text(self) -> str:
        return "\n".join(statement.text() for statement in self.statements)

    def run(self, environment: Environment) -> list[Any]:
        for statement in self.statements:
            statement.run(environment)
        return [environment[name] for name in self.yielded]


@dataclass
class Function:
    """``%n`` and ``%m`` are its last arguments, the extents of all dynamic dimensions. Others come on demand."""

    name: str
    arguments: list[Value] = field(default_factory=list[Value])
    marks: dict[str, str] = field(default_factory=dict[str, str])
    results: list[Value] = field(default_factory=list[Value])
    body: Block = field(init=False)

    def __post_init__(self) -> None:
        self.body = Block([("%n", INDEX), ("%m", INDEX)], 0, self)

    def text(self) -> str:
        arguments = [f"{name}: {type_}{self.marks.get(name, '')}" for name, type_ in self.arguments]
        types = [f"{type_}{self.marks.get(f'{number}', '')}" for number, (_, type_) in enumerate(self.results)]
        names = ", ".join(name for name, _ in self.results)
        plain = ", ".join(str(type_) for _, type_ in self.results)
        visibility = "" if self.name == "main" else "private "
        return (
            f"func.func {visibility}@{self.name}({', '.join([*arguments, '%n: index', '%m: index'])})\n"
            f"    -> ({', '.join(types)}) {{\n{constants()}{self.body.text()}\n"
            f"  return {names} : {plain}\n}}\n"
        )

    def run(self, values: Iterable[Any], environment: Environment) -> list[Any]:
        """``values`` are those of the arguments and of ``%n`` and ``%m``."""
        inner = environment_of(environment.noise, environment.anything)
        inner.update(zip([*(name for name, _ in self.arguments), "%n", "%m"], values, strict=True))
        return self.body.run(inner)


def constants() -> str:
    return "".join(f"  %c{number} = arith.constant {number} : index\n" for number in range(4))


def environment_of(noise: Rng | None = None, anything: float | None = None) -> Environment:
    environment = Environment({f"%c{number}": np.int64(number) for number in range(4)})
    environment.noise, environment.anything = noise, anything
    return environment


@dataclass
class Program:
    """The entry is ``main``; ``special`` is the share of values at the edges of their types in its arguments."""

    functions: list[Function]
    special: float
    checks: str = ""
    """What this option must be: ``on`` where only checks find what is undefined, ``off`` where zero divides."""

    @property
    def main(self) -> Function:
        return self.functions[-1]

    @property
    def text(self) -> str:
        texts = [function.text() for function in self.functions]
        used = set(re.findall(r"@\w+", "".join(texts)[texts[0].find("{") :])) if texts else set[str]()
        kept = [t for f, t in zip(self.functions, texts, strict=True) if f.name == "main" or f"@{f.name}" in used]
        return HEADER + "".join(kept)

    def inputs(self, rng: Rng, n: int, m: int) -> list[Any]:
        """Arguments of a call in which the dynamic extents are these."""
        sizes = environment_of()
        sizes.update({"%n": n, "%m": m})
        arrays = [random_array(rng, t.dtype, sizes.sizes(t.shape), self.special) for _, t in self.main.arguments]
        return [*(array[()] if array.ndim == 0 else array for array in arrays), np.int64(n), np.int64(m)]

    def run(self, inputs: Sequence[Any], environment: Environment) -> list[Any]:
        with np.errstate(all="ignore"):
            return self.main.run([np.copy(value)[()] for value in inputs], environment)

    def runs(self, inputs: Sequence[Any]) -> list[list[Any]]:
        """The results without errors, and then with."""
        noisy = (environment_of(np.random.default_rng(seed), value) for seed, value in enumerate(ANYTHING))
        return [self.run(inputs, environment) for environment in (environment_of(), *noisy)]

    def problem(self, found: Any, runs: list[list[Any]]) -> tuple[int, str] | None:
        """The first wrong result, and what is wrong with it."""
        values = found if isinstance(found, tuple) else (found,)
        for number, (value, (_, type_)) in enumerate(zip(values, self.main.results, strict=True)):
            wanted, *noisy = [run[number] for run in runs]
            if wrong := difference(value, wanted, noisy, type_.dtype):
                return number, f"result {number}: {wrong}"
        return None


class Generator:
    """Makes one program from the choices of ``rng``. Its operations have the ``scopes`` of `HEADER`; all loops of
    a ``busy`` one run."""

    def __init__(
        self, rng: Rng, length: int | None = None, scopes: Sequence[str] = SCOPES, busy: bool = False,
        risky: bool = False
    ) -> None:  # fmt: skip
        self.rng, self.scopes, self.busy, self.risky = rng, scopes, busy, risky
        self.count = 0
        self.functions: list[Function] = []
        self.others: list[Function] = []
        """Those that take functions, and so are called in one place only."""
        self.length = length or int(rng.integers(4, 16))
        self.special = float(rng.choice([0, 0, 0.1, 0.4]))
        self.placed = float(rng.choice([0, 0.3, 0.6, 0.9]))
        self.extents: list[int | str] = [*self.sample(SIZES[:-1], 2), *self.sample(("n", "n", "m"), 2)]
        if self.chance(0.1):
            self.extents.append(0)
        self.dtypes = [*self.sample(FLOATS, 2), *self.sample(INTEGERS[:-1], 1)]
        if self.chance(0.15):
            self.dtypes += [self.pick(COMPLEX)] * 2
        self.factors: dict[str, list[int | str]] = {}
        """What dynamic extents are products of."""
        self.zeros = self.chance(0.3)
        """Whether zero may divide."""

    def program(self) -> Program:
        for number in range(self.integer(0, 3)):
            self.function(f"helper{number}", self.integer(2, 6))
        main = self.function("main", self.length)
        checks = "off" if self.zeros else ""
        if self.risky and self.chance(0.15):
            from random_risks import add_risk

            checks = checks or self.pick(("", "on"))
            name, type_ = add_risk(self, main.body, checks == "on")
            main.results.append((name, type_))
            main.body.yielded.append(name)
        return Program([*self.others, *self.functions[:-1], main], self.special, checks)

    def function(self, name: str, length: int) -> Function:
        function = Function(name)
        self.fill(function.body, length)
        tensors = [v for v in function.body.visible if v[1] != INDEX and (name == "main" or v[1].known)] or [
            self.value(function.body, self.tensor_type())
        ]
        # Mostly what nothing else uses: the rest is reached from there.
        names = Counter(NAME.findall(function.body.text()))
        last = [value for value in tensors if names[value[0]] == 1]
        function.results = [*self.sample(last, 4), *self.recent(tensors, self.integer(0 if last else 1, 3))]
        function.body.yielded = [name for name, _ in function.results]
        if name != "main" or self.chance(0.1):
            for key, type_ in [*function.arguments, *((f"{i}", t) for i, (_, t) in enumerate(function.results))]:
                if not type_.scalar and self.chance(0.2):
                    function.marks[key] = self.scope(1)
        self.functions.append(function)
        return function

    def fill(self, block: Block, length: int) -> None:
        from random_control import CONTROL
        from random_dialects import OTHER
        from random_operations import OPERATIONS

        for _ in range(length):
            table = CONTROL if block.depth < 2 and self.chance(0.25) else OTHER if self.chance(0.2) else OPERATIONS
            self.pick(table)(self, block)

    def inner(self, block: Block, carried: Sequence[Value] = (), length: int | None = None) -> Block:
        inner = Block([*block.visible, *carried], block.depth + 1, block.owner)
        self.fill(inner, self.integer(1, 4) if length is None else length)
        return inner

    # ---- choices ----

    def integer(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high))

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def pick(self, items: Sequence[Any]) -> Any:
        return items[self.integer(0, len(items))]

    def sample(self, items: Sequence[Any], count: int) -> list[Any]:
        chosen = self.rng.choice(len(items), min(count, len(items)), replace=False) if items else []
        return [items[int(i)] for i in chosen]

    def recent(self, items: Sequence[Value], count: int) -> list[Value]:
        """``count`` items, recent ones more often, possibly with repetition."""
        weights = np.arange(1, len(items) + 1, dtype=float)
        return [items[int(i)] for i in self.rng.choice(len(items), size=count, p=weights / weights.sum())]

    def shape(self, rank: int) -> tuple[int | str, ...]:
        return tuple(self.pick(self.extents) for _ in range(rank))

    def tensor_type(self, rank: int | None = None, dtypes: Sequence[str] | None = None) -> Type:
        rank = self.pick((0, 1, 1, 2, 2, 2, 3, 4)) if rank is None else rank
        return Type(self.pick(dtypes or self.dtypes), self.shape(rank))

    def scope(self, probability: float | None = None, prefix: str = "") -> str:
        """An annotation to put behind an operation, or nothing."""
        if not self.chance(self.placed if probability is None else probability):
            return ""
        return f"{prefix} {{device.scope = {self.pick(self.scopes)}}}"

    def mark(self) -> str:
        """An annotation as one attribute among others, or nothing."""
        return f", device.scope = {self.pick(self.scopes)}" if self.chance(self.placed) else ""

    # ---- values ----

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def emit(
        self, block: Block, type_: Type, text: str, run: Callable[[Environment], Any], hidden: bool = False
    ) -> str:
        """A statement of one result, ``text`` being its right side."""
        name = self.name()
        made = (name, type_)

        def step(environment: Environment) -> None:
            value = np.asarray(run(environment))
            environment[name] = value if value.dtype == type_.numpy else value.astype(type_.numpy)

        block.statements.append(Statement([made], lambda: f"  {name} = {text}", step))
        if not hidden:
            block.visible.append(made)
        return name

    def tensors(self, block: Block, suits: Callable[[Type], bool] = lambda _: True) -> list[Value]:
        return [value for value in block.visible if not value[1].scalar and suits(value[1])]

    def tensor(self, block: Block, suits: Callable[[Type], bool], make: Callable[[], Type]) -> Value:
        """A visible tensor of a type that suits; a new one of type ``make()`` now and then or if there is none."""
        found = self.tensors(block, suits)
        if found and self.chance(0.85):
            return self.recent(found, 1)[0]
        return self.value(block, make(), new=True)

    def value(self, block: Block, type_: Type, new: bool = False) -> Value:
        found = [value for value in block.visible if value[1] == type_]
        if found and not new and self.chance(0.9):
            return self.recent(found, 1)[0]
        return self.new_scalar(block, type_) if type_.scalar else self.new_tensor(block, type_)

    def new_scalar(self, block: Block, type_: Type) -> Value:
        assert block.owner is not None
        if self.chance(0.3) and type_.dtype != "index" and len(block.owner.arguments) < 12:
            return self.argument(block, type_)
        return self.constant_scalar(block, type_)

    def constant_scalar(self, block: Block, type_: Type, value: Any = None) -> Value:
        special = self.special if type_.dtype != "index" else 0
        found = random_array(self.rng, type_.dtype, (), special)[()] if value is None else type_.numpy.type(value)
        if type_.dtype == "index" and value is None:
            found = abs(found)
        text = literal(type_.dtype, found)
        spelt = text if type_.dtype == "i1" else f"{text} : {type_}"
        if type_.dtype in COMPLEX:
            re, im = text[1:-1].split(", ")
            spelt, kind = f"[{re} : {type_.dtype[8:-1]}, {im} : {type_.dtype[8:-1]}] : {type_}", "complex"
        else:
            kind = "arith"
        return self.emit(block, type_, f"{kind}.constant {spelt}", lambda _: found), type_

    def argument(self, block: Block, type_: Type) -> Value:
        """Of the function, and so visible in all blocks that are still open."""
        assert block.owner is not None
        made = (f"%a{self.count}", type_)
        self.count += 1
        block.owner.arguments.append(made)
        block.visible.insert(0, made)
        if block.owner.body is not block:
            block.owner.body.visible.insert(0, made)
        return made

    def new_tensor(self, block: Block, type_: Type) -> Value:
        assert block.owner is not None
        if type_.known and len(block.owner.arguments) < 8 and self.chance(0.6):
            return self.argument(block, type_)
        small = not type_.dynamic and np.prod(type_.shape, dtype=float) <= 600
        if small and self.chance(0.6):
            return self.constant(block, type_)
        element, element_type = self.value(block, scalar(type_.dtype))
        if self.chance(0.5):
            return self.splat(block, type_, element)
        empty = self.empty(block, type_)
        text = f"linalg.fill{self.scope()} ins({element} : {element_type}) outs({empty} : {type_}) -> {type_}"
        return self.emit(block, type_, text, lambda e: np.full(e.sizes(type_.shape), e[element])), type_

    def splat(self, block: Block, type_: Type, element: str) -> Value:
        sizes = f"[{', '.join(type_.dynamic)}]" if type_.dynamic else ""
        text = f"tensor.splat {element}{sizes}{self.scope()} : {type_}"
        return self.emit(block, type_, text, lambda e: np.full(e.sizes(type_.shape), e[element])), type_

    def constant(self, block: Block, type_: Type, array: Array | None = None) -> Value:
        if array is None:
            array = random_array(self.rng, type_.dtype, tuple(int(e) for e in type_.shape), self.special)
            if array.size and self.chance(0.3):
                array = np.full_like(array, array.flat[0])
        equal = array.size and (array.tobytes() == np.full_like(array, array.flat[0]).tobytes())
        spelt = literal(type_.dtype, array.flat[0]) if equal else dense(type_.dtype, array)
        if not array.size:
            spelt = ""
        fixed = array
        return self.emit(block, type_, f"arith.constant dense<{spelt}> : {type_}", lambda _: fixed), type_

    def empty(self, block: Block, type_: Type) -> str:
        """The name of a tensor that nobody reads: a new one, or an existing one."""
        found = self.tensors(block, lambda t: t == type_)
        if found and self.chance(0.4):
            return self.recent(found, 1)[0][0]
        text = f"tensor.empty({', '.join(type_.dynamic)}) : {type_}"
        return self.emit(block, type_, text, lambda e: np.zeros(e.sizes(type_.shape)), hidden=True)


def dependencies(statements: Sequence[Statement], wanted: Iterable[str]) -> list[Statement]:
    """Those of ``statements`` that ``wanted`` values need."""
    needed, kept = set(wanted), list[Statement]()
    for statement in reversed(statements):
        if any(name in needed for name, _ in statement.results):
            kept.append(statement)
            needed |= set(NAME.findall(statement.text()))
    return kept[::-1]


def reduced(program: Program, result: int) -> Program:
    """The program with one of its results only, and what that needs."""
    main = program.main
    body = replace(main.body, yielded=[main.body.yielded[result]])
    body.statements = dependencies(main.body.statements, body.yielded)
    return with_body(program, body, [main.results[result]], main.arguments)


def with_body(program: Program, body: Block, results: list[Value], arguments: list[Value]) -> Program:
    main = Function("main", arguments, {}, results)
    main.body = body
    return replace(program, functions=[*program.functions[:-1], main])


def without_statement(program: Program, number: int, inputs: list[Any]) -> tuple[Program, list[Any]] | None:
    """The program in which the results of a statement of ``main`` are arguments instead, and its inputs."""
    main = program.main
    statement = main.body.statements[number]
    if not statement.results or not all(t.known for _, t in statement.results):
        return None
    environment = environment_of()
    environment.update(zip([*(name for name, _ in main.arguments), "%n", "%m"], inputs, strict=True))
    try:
        with np.errstate(all="ignore"):
            for step in main.body.statements[: number + 1]:
                step.run(environment)
    except Undefined:
        return None
    rest = [step for step in main.body.statements if step is not statement]
    body = replace(main.body, statements=dependencies(rest, main.body.yielded))
    added = [np.asarray(environment[name])[()] for name, _ in statement.results]
    arguments = [*main.arguments, *statement.results]
    return with_body(program, body, main.results, arguments), [*inputs[:-2], *added, *inputs[-2:]]
