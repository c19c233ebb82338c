"""Random programs: numpy, the program built for the host, and the program built for several devices agree."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from outcome import Outcome, from_error
from random_backends import random_backend
from random_program import SCOPES, Generator, Program, reduced, without_statement
from random_values import Undefined

import devscope
from devscope.errors import DevscopeError, ExecutionError, InputError, OptionError, ParseError, VerifyError
from devscope.runtime.executable import Executable

SIZES = ((3, 5), (1, 1), (0, 2), (17, 4), (4, 0), (5, 8))
VIRTUAL = ("opencl:0", "opencl:1", "cuda:0")


@dataclass
class Trial:
    """A program, the options of its mixed build, and the arguments of its calls."""

    program: Program
    options: dict[str, Any]
    calls: list[list[Any]]
    runs: list[list[list[Any]] | None] = field(init=False)
    """None: the call has no meaning, and is an error."""

    def __post_init__(self) -> None:
        self.runs = [self._runs(call) for call in self.calls]

    def _runs(self, call: list[Any]) -> list[list[Any]] | None:
        try:
            return self.program.runs(call)
        except Undefined:
            return None

    def write(self, folder: Path) -> None:
        """As files from which the command that is in the first line runs the first call."""
        options = for_used(self.options, used_devices(self.program.text, self.options))
        flags = " ".join(
            f"--{name.replace('memory_limits', 'memory-limit')} "
            + (",".join(f"{v}={size}" for v, size in value.items()) if isinstance(value, dict) else str(value))
            for name, value in options.items()
            if name != "devices"
        )
        devices = ",".join(f"{virtual}={physical}" for virtual, physical in options["devices"].items())
        inputs = " ".join(f"--input a{number}.npy" for number in range(len(self.calls[0])))
        for number, value in enumerate(self.calls[0]):
            np.save(folder / f"a{number}.npy", np.asarray(value))
        command = f"// devscope run program.mlir {inputs} {flags} --devices {devices}\n"
        (folder / "program.mlir").write_text(command + self.program.text)

    def outcome(self) -> Outcome:
        host: dict[str, Any] = {"devices": dict.fromkeys(VIRTUAL, "cpu:0")}
        if self.program.checks:
            host["checks"] = self.program.checks
        for name, options in (("host", host), ("mixed", self.options)):
            try:
                problem = self._run(options)
            except Exception as error:
                if isinstance(error, ParseError):
                    return Outcome("wrong", f"the generator made no legal program: {error.message}")
                if isinstance(error, VerifyError):
                    return Outcome("wrong", f"{name} build: the plan is not legal: {error.message}")
                return from_error(error)
            if problem:
                return Outcome("wrong", f"{name} build: {problem}")
        return Outcome("right")

    def _run(self, options: dict[str, Any]) -> str | None:
        with compiled(self.program.text, options) as executable:
            for call, runs in zip(self.calls, self.runs, strict=True):
                copies = [np.copy(value) for value in call]
                try:
                    found = executable(*call)
                except DevscopeError as error:
                    if runs is None and isinstance(error, ExecutionError | InputError):
                        continue
                    error.message = f"when called: {error.message}"
                    raise
                for value, copy in zip(call, copies, strict=True):
                    if np.asarray(value).tobytes() != copy.tobytes():
                        return "the program changed its argument"
                if runs is None:
                    return "a call without a meaning had results"
                if wrong := self.program.problem(found, runs):
                    return wrong[1]
            return self._left(executable) or self._misused(executable)

    def _misused(self, executable: Executable) -> str | None:
        """A call in which one argument has another size: an error if its type has the size, and no harm else."""
        call, types = list(self.calls[0]), self.program.main.arguments
        sized = [number for number, (_, type_) in enumerate(types) if type_.shape]
        if not sized:
            return None
        number = sized[len(self.program.text) % len(sized)]
        call[number] = np.concatenate([call[number], np.zeros_like(call[number][:1])]) if len(call[number]) else (
            np.zeros((1, *call[number].shape[1:]), call[number].dtype))  # fmt: skip
        try:
            executable(*call)
        except (InputError, ExecutionError):
            return None
        known = isinstance(types[number][1].shape[0], int)
        return f"argument {number} had too many rows, and there were results" if known else None

    def _left(self, executable: Executable) -> str | None:
        """What calls leave behind: buffers that nobody frees, or new ones in calls like earlier ones."""
        counts: list[int] = []
        call = next((call for call, runs in zip(self.calls, self.runs, strict=True) if runs is not None), None)
        if call is None:
            return None
        for _ in range(4):
            executable(*call)
            counts.append(executable.counters().driver_allocations)
        if counts[0] < counts[1] < counts[2] < counts[3]:
            return f"each call allocates: {counts}"
        live = {name: count for name, count in executable.counters().live.items() if count}
        return f"buffers are left: {live}" if live else None

    def smaller(self) -> Iterator[Trial]:
        """Trials with less in them, the smallest first."""
        for call in self.calls if len(self.calls) > 1 else ():
            yield Trial(self.program, self.options, [call])
        if len(self.calls) > 1:
            return
        results = self.program.main.results
        for number in range(len(results) if len(results) > 1 else 0):
            yield Trial(reduced(self.program, number), self.options, self.calls)
        for number in reversed(range(len(self.program.main.body.statements))):
            if made := without_statement(self.program, number, self.calls[0]):
                yield Trial(made[0], self.options, [made[1]])
        for name in self.options:
            if name != "devices":
                yield Trial(self.program, {n: v for n, v in self.options.items() if n != name}, self.calls)


USES = {"opencl:0": ("#first", "#slim", "#wide"), "opencl:1": ("#second",), "cuda:0": ("#other",)}
_UNUSED = re.compile(
    r"names? '([a-z]+:[0-9]+)', which the program does not use|'([a-z]+:[0-9]+)', which the program"
)


def compiled(text: str, options: dict[str, Any]) -> Executable:
    """As `devscope.compile`, but mapping and limits may name devices that the program does not use."""
    used = used_devices(text, options)
    while True:
        try:
            return devscope.compile(text, cache=False, **for_used(options, used))
        except OptionError as error:
            found = _UNUSED.search(error.message)
            if found is None or (found[1] or found[2]) not in used:
                raise
            used.remove(found[1] or found[2])


def used_devices(text: str, options: dict[str, Any]) -> list[str]:
    """Those that the program names: more than it uses, where annotations come to nothing."""
    body = text[text.find("func.func") :]
    return [v for v, names in USES.items() if options.get("default") == v or any(f"{n}}}" in body for n in names)]


def for_used(options: dict[str, Any], used: list[str]) -> dict[str, Any]:
    given = dict(options)
    for name in ("devices", "memory_limits"):
        if name in given:
            given[name] = {device: value for device, value in given[name].items() if device in used}
    return given


def random_options(rng: np.random.Generator) -> dict[str, Any]:
    """Options of `devscope.compile`: each but the devices is left out most of the time."""
    physical = [["opencl:0"] * 3, ["opencl:0", "opencl:0.1", "opencl:0"],
                ["opencl:0.0", "opencl:0.1", "opencl:0.0"], ["opencl:0", "opencl:0", "cpu:0"]]  # fmt: skip
    options: dict[str, Any] = {
        "devices": dict(zip(VIRTUAL, physical[int(rng.integers(len(physical)))], strict=True))
    }
    legal: dict[str, list[Any]] = {
        "default": ["cpu:0", "opencl:0", "opencl:0", "opencl:1"],
        "arguments": ["open"],
        "completion": ["min-cost"],
        "storage": ["dynamic"],
        "chunks": [2, 3],
        "memory_limits": [{"opencl:0": "64KiB"}, {"opencl:0": "1MiB"}],
        "checks": ["on"],
    }
    known = inspect.signature(devscope.compile).parameters
    for name, values in legal.items():
        if name in known and rng.random() < (0.5 if name == "default" else 0.2):
            options[name] = values[int(rng.integers(len(values)))]
    if rng.random() < 0.3:
        options["backends"] = [random_backend(rng)]
        options["partition"] = ("eager", "search")[int(rng.integers(2))]
    return options


def trial(seed: int, length: int | None = None) -> Trial:
    rng = np.random.default_rng([seed, 1])
    program = Generator(rng, length, (*SCOPES, "#other"), risky=True).program()
    options = random_options(rng)
    if program.checks:
        options["checks"] = program.checks
    calls = [program.inputs(rng, *SIZES[int(i)]) for i in rng.choice(len(SIZES), 3, replace=False)]
    return Trial(program, options, calls)


def check(seed: int, folder: Path) -> Outcome:
    made = trial(seed)
    made.write(folder)
    return made.outcome()
