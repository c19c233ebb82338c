"""The seeds and random programs of the tests.

``make test`` is deterministic: hypothesis derives its examples from the tests themselves, and all other random
tests draw from one fixed seed. ``make fuzz`` (test/fuzz) sets the profile ``fuzz``, in which both are new.

Random programs, for tests of analyses and passes, have branches, loops, blocks, bodies, calls and function values.
"""

from __future__ import annotations

import os
import random
import re
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from hypothesis import settings
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from devscope.backends import registry as backend_registry
from devscope.dialects import target as dialect_targets
from devscope.dialects.context import make_context
from devscope.lowering import target as lowering_targets
from devscope.runtime import plugins

sys.path.append(str(Path(__file__).parent / "fuzz"))

SEED_VARIABLE = "DEVSCOPE_TEST_SEED"
PROFILE_VARIABLE = "DEVSCOPE_TEST_PROFILE"

# No test may fail because the machine is slow: deadlines are off.
settings.register_profile("ci", derandomize=True, deadline=None, database=None)
settings.register_profile("fuzz", deadline=None, database=None, print_blob=True)
settings.load_profile(os.environ.get(PROFILE_VARIABLE, "ci"))

# Test modules read it when they are imported; the processes of pytest-xdist inherit it.
os.environ.setdefault(SEED_VARIABLE, "0")

# A job in the background of a shell ignores Ctrl-C, and what it starts inherits that: nothing would end its calls.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "not_emulated: about what the emulator of CUDA has not, see docs/testing.md"
    )
    config.addinivalue_line("markers", "long: only make whole runs it")
    config.addinivalue_line("markers", "sampled(n): all but one in n sets of parameters of each test are long")
    config.addinivalue_line("markers", f"fuzz: draws random programs or data from ${SEED_VARIABLE}")


#: Folders whose tests take long, and the mark `sampled` of those that have none.
_SAMPLED = {"backends": 4, "e2e": 8, "frontends": 6, "lowering": 4, "passes": 4}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What is not drawn of samples is long. The longest test comes first: no process is left alone with it."""
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        if _sampled(item) > 1:
            tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for sets in tests.values():
        sets.sort(key=lambda item: crc32(item.nodeid.encode()))  # no step through them: it could miss a target
        for item in sets[-(-len(sets) // _sampled(sets[0])) :]:
            item.add_marker(pytest.mark.long)
    items.sort(key=lambda item: item.path.name != "test_valgrind.py")


def _sampled(item: pytest.Item) -> int:
    """One set of parameters in how many is drawn."""
    mark = item.get_closest_marker("sampled")
    return mark.args[0] if mark else _SAMPLED.get(item.path.relative_to(Path(__file__).parent).parts[0], 1)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A process that crashed says nothing itself."""
    if terminalreporter.stats.get("failed"):
        terminalreporter.write_line(f"repeat with {SEED_VARIABLE}={os.environ[SEED_VARIABLE]}")


@pytest.fixture(scope="module", autouse=True)
def registries() -> Iterator[None]:
    """What a module's tests register, or make known by naming an installed backend, ends with the module."""
    kept: list[tuple[dict[str, Any], dict[str, Any]]] = [
        (table, dict(table))
        for table in (
            dialect_targets._KINDS,
            backend_registry._registered,
            lowering_targets._registered,
            plugins._registered,
        )
    ]
    yield
    for table, before in kept:
        table.clear()
        table.update(before)


SCOPES = ("#cpu0", "#opencl0", "#opencl1", "#opencl0@fast")

_SCOPE = re.compile(r"#(cpu|opencl)([0-9])(?:@([a-z]+))?(?![A-Za-z0-9_.<])")


def parse_program(text: str) -> ModuleOp:
    """Parse a module in which ``#opencl0@fast`` is a scope, ``!t`` a tensor and ``!f`` a function of one.

    Operations are located where their line says (``loc("m.mlir":1:1)``), if it does.
    """
    text = _SCOPE.sub(lambda m: f'#device.scope<"{m[1]}", {m[2]} : i64, "", "{m[3] or ""}">', text)
    text = re.sub(r"!f\b", "(!t) -> !t", text).replace("!t", "tensor<4xf32>")
    return Parser(make_context(), text, "program.mlir").parse_module()


class ProgramWriter:
    """Writes a random module. ``placed`` is the share of operations and arguments that carry a scope.

    With ``closed``, every argument and result does, as in a planned module (which this need not be).
    """

    def __init__(self, rng: random.Random, placed: float, closed: bool = False) -> None:
        self.rng, self.placed, self.closed = rng, placed, closed
        self.count = 0
        self.lines: list[str] = []
        self.values: list[str] = []

    def module(self) -> str:
        texts = [self.function(name) for name in ("f", "g", "main")]
        texts.append(
            f"""func.func private @apply(%h: !f {self.mark(True)}, %x: !t {self.mark(True)})
                -> (!t {self.mark(True)}) {{
              %y = "func.call_indirect"(%h, %x) : (!f, !t) -> !t
              func.return %y : !t
            }}
            func.func private @pick(%p: i1) -> (!f {self.mark(True)}) {{
              %a = func.constant @f : (!t) -> !t
              %b = func.constant @g : (!t) -> !t
              %c = "scf.if"(%p) ({{ "scf.yield"(%a) : (!f) -> () }}, {{ "scf.yield"(%b) : (!f) -> () }})
                : (i1) -> (!f)
              func.return %c : !f
            }}"""
        )
        self.rng.shuffle(texts)
        return "\n".join(texts)

    def mark(self, signature: bool = False) -> str:
        always = signature and self.closed
        if not always and self.rng.random() >= self.placed:
            return ""
        return f"{{device.scope = {self.rng.choice(SCOPES)}}}"

    def function(self, name: str) -> str:
        main = name == "main"
        self.lines, self.values = [], ["%x", "%z"] if main else ["%x"]
        self.inside = main
        head = '%z = "arith.constant"() {value = dense<1.0> : !t} : () -> !t\n%true = arith.constant true\n'
        arguments = f"%x: !t {self.mark(True)}" + (", %p: i1, %i: index" if main else "")
        self.statements(2 if main else 0)
        if main and self.rng.random() < 0.7:
            self.blocks()
        body = "\n".join(self.lines)
        frame = f" attributes {self.mark()}" if self.rng.random() < 0.2 else ""
        frame = frame if frame.strip() != "attributes" else ""
        visibility = "" if main else "private "
        return f"""func.func {visibility}@{name}({arguments}) -> (!t {self.mark(True)}){frame} {{
            {head if main else ""}{body}
            func.return {self.pick()} : !t
          }}"""

    def new(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def pick(self) -> str:
        return self.rng.choice(self.values[-5:])

    def condition(self) -> str:
        return "%true" if self.rng.random() < 0.2 else "%p"

    def add(self, text: str) -> None:
        name = self.new()
        self.lines.append(f"{name} = {text}")
        self.values.append(name)

    def statements(self, depth: int) -> None:
        for _ in range(self.rng.randint(1, 4)):
            kinds = [self.compute] * 3 + [self.copy, self.body]
            if self.inside:
                kinds += [self.query, self.call, self.indirect]
            if depth:
                kinds += [self.choose, self.loop, self.while_]
            self.rng.choice(kinds)(depth)

    def compute(self, depth: int) -> None:
        self.add(f'"ml.op"({self.pick()}, {self.pick()}) {self.mark()} : (!t, !t) -> !t')

    def copy(self, depth: int) -> None:
        src, dst = self.rng.sample(SCOPES, 2)
        self.add(f'"device.device_copy"({self.pick()}) {{src = {src}, dst = {dst}}} : (!t) -> !t')

    def body(self, depth: int) -> None:
        inner = f'"ml.use"({self.pick()}) : (!t) -> ()'
        self.add(f'"ml.body"({self.pick()}) ({{ ^bb0(%q: f32): {inner} }}) {self.mark()} : (!t) -> !t')

    def query(self, depth: int) -> None:
        self.lines.append(f'{self.new()} = "tensor.dim"({self.pick()}, %i) : (!t, index) -> index')

    def call(self, depth: int) -> None:
        self.add(f"func.call @{self.rng.choice('fg')}({self.pick()}) : (!t) -> !t")

    def indirect(self, depth: int) -> None:
        function = self.new()
        kind = self.rng.randrange(3)
        if kind == 0:
            self.lines.append(f"{function} = func.call @pick(%p) : (i1) -> (!f)")
        else:
            self.lines.append(f"{function} = func.constant @{self.rng.choice('fg')} : (!t) -> !t")
        if kind == 2:
            self.add(f"func.call @apply({function}, {self.pick()}) : (!f, !t) -> !t")
        else:
            self.add(f'"func.call_indirect"({function}, {self.pick()}) : (!f, !t) -> !t')

    def nested(self, end: str, depth: int, carried: str = "") -> str:
        """The text of a block, in which ``carried`` is visible, too."""
        lines, values = self.lines, self.values
        self.lines, self.values = [], [*values, *([carried] if carried else [])]
        self.statements(depth - 1)
        text = "\n".join([*self.lines, end.format(self.pick())])
        self.lines, self.values = lines, values
        return text

    def choose(self, depth: int) -> None:
        arms = [self.nested("scf.yield {} : !t", depth) for _ in range(2)]
        self.add(f'"scf.if"({self.condition()}) ({{ {arms[0]} }}, {{ {arms[1]} }}) : (i1) -> !t')

    def loop(self, depth: int) -> None:
        carried = self.new()
        body = self.nested("scf.yield {} : !t", depth, carried)
        self.add(
            f'"scf.for"(%i, %i, %i, {self.pick()}) ({{ ^bb0({self.new()}: index, {carried}: !t): {body} }})'
            " : (index, index, index, !t) -> !t"
        )

    def while_(self, depth: int) -> None:
        before, after = self.new(), self.new()
        first = self.nested("scf.condition(%p) {} : !t", depth, before)
        second = self.nested("scf.yield {} : !t", depth, after)
        self.add(
            f'"scf.while"({self.pick()}) ({{ ^bb0({before}: !t): {first} }}, {{ ^bb1({after}: !t): {second} }})'
            " : (!t) -> !t"
        )

    def blocks(self) -> None:
        """A loop of blocks, and a join after it."""
        head, join = self.new(), self.new()
        self.lines.append(f"cf.br ^head({self.pick()} : !t)\n^head({head}: !t):")
        self.values.append(head)
        self.statements(0)
        self.lines.append(f"cf.cond_br {self.condition()}, ^latch, ^join({self.pick()} : !t)\n^latch:")
        visible = list(self.values)
        self.statements(0)
        self.lines.append(
            f"cf.cond_br %p, ^head({self.pick()} : !t), ^join({self.pick()} : !t)\n^join({join}: !t):"
        )
        self.values = [*visible, join]
        self.statements(1)


@pytest.fixture(name="write_program")
def write_program_fixture() -> Callable[..., str]:
    """``write_program(seed, placed, closed)``: the text of a random module."""

    def write(seed: int, placed: float = 0.4, closed: bool = False) -> str:
        return ProgramWriter(random.Random(seed), placed, closed).module()

    return write


@pytest.fixture(name="parse_program")
def parse_program_fixture() -> Callable[[str], ModuleOp]:
    return parse_program
