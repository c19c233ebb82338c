"""Mutated modules through every command: success, or one clear error and status 1 (2 for wrong usage)."""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from mutations import mutated
from outcome import Outcome, from_error

import devscope.cli.main
import devscope.cli.opt

TEST = Path(__file__).resolve().parent.parent
COMMANDS = {
    "plan": ["plan", "FILE"],
    "plan-table": ["plan", "FILE", "--table"],
    "plan-json": ["plan", "FILE", "--json"],
    "plan-dot": ["plan", "FILE", "--dot"],
    "plan-explain": ["plan", "FILE", "--explain", "%0"],
    "min-cost": ["plan", "FILE", "--completion", "min-cost", "--default", "opencl:0"],
    "open": ["plan", "FILE", "--arguments", "open", "--default", "opencl:0"],
    "lower": ["lower", "FILE", "--stage", "split"],
    "build": ["build", "FILE", "-o", "OUT"],
    "build-device": ["build", "FILE", "-o", "OUT", "--default", "opencl:0", "--chunks", "2"],
}
PIPELINES = (
    "device-plan", "device-plan{default=opencl:0 arguments=open},device-verify", "canonicalize,cse,device-plan",
    "device-plan,device-split,device-verify-split", "device-plan{default=opencl:0},device-move-copies",
    "mlir.canonicalize", "mlir.cse,device-verify", "device-split", "device-inline,device-sccp,device-unused",
)  # fmt: skip
_LONGEST = 20
"""Seconds a mutated program may run: its loops may have no end."""


@cache
def sources() -> list[Path]:
    """The modules of the tests."""
    return sorted(path for path in TEST.rglob("*.mlir") if path.stat().st_size < 20_000)


def a_module(rng: random.Random) -> str:
    """One of the tests' (a part of it, where it has several) or a generated one."""
    kind = rng.random()
    if kind < 0.6:
        return rng.choice(re.split(r"^// -----.*$", rng.choice(sources()).read_text(), flags=re.MULTILINE))
    if kind < 0.8:
        from random_program import Generator

        return Generator(np.random.default_rng(rng.getrandbits(32)), rng.randint(2, 8)).program().text
    from module_text import expand
    from random_modules import Generator as Planner

    return expand(Planner(rng, 0.3).module())


def a_command(rng: random.Random) -> tuple[str, list[str]]:
    """Its name and arguments; FILE and OUT stand for paths."""
    kind = rng.random()
    if kind < 0.25:
        flags = rng.choice(([], ["--print-op-generic"], ["--emit-bytecode"], ["--print-debuginfo"]))
        return "opt", ["FILE", "-p", rng.choice(PIPELINES), "-o", "OUT", *flags]
    if kind < 0.4 and _checks():
        return "run", ["run", "FILE", "--random", "1", "--size", "3", "--no-cache", "--checks", "on"]
    name = rng.choice(list(COMMANDS))
    return name, COMMANDS[name]


@cache
def _checks() -> bool:
    import inspect

    return "checks" in inspect.signature(devscope.compile).parameters


def check(seed: int, folder: Path) -> Outcome:
    rng = random.Random(seed)
    text = mutated(rng, a_module(rng))
    name, command = a_command(rng)
    (folder / "module.mlir").write_text(text, encoding="utf-8", errors="surrogateescape")
    (folder / "command").write_text("\n".join([name, *command]))
    return run_command(folder)


def run_command(folder: Path) -> Outcome:
    """Runs the command in ``folder`` on the module there."""
    name, *command = (folder / "command").read_text().split("\n")
    module = folder / "module.mlir"
    paths = {"FILE": str(module), "OUT": str(folder / "out")}
    main: Callable[[list[str]], Any] = devscope.cli.opt.main if name == "opt" else devscope.cli.main.main
    try:
        with _output(folder), _time_limit(name):
            status = main([paths.get(word, word) for word in command])
    except SystemExit as ended:
        status = ended.code
    except KeyboardInterrupt:
        return Outcome("right")
    except BaseException as error:
        return from_error(error)
    return judge(name, status or 0, (folder / "stderr").read_text(errors="replace"), folder / "out")


def run_guarded(folder: Path) -> Outcome:
    """The same in a process of its own, as a user starts it; ctrl-C ends a program that goes on."""
    name, *words = (folder / "command").read_text().split("\n")
    paths = {"FILE": str(folder / "module.mlir"), "OUT": str(folder / "out")}
    module = "opt" if name == "opt" else "main"
    start = f"import sys; from devscope.cli.{module} import main; sys.exit(main())"
    command = [sys.executable, "-c", start, *(paths.get(word, word) for word in words)]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            _, errors = process.communicate(timeout=_LONGEST)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            try:
                _, errors = process.communicate(timeout=_LONGEST)
            except subprocess.TimeoutExpired:
                process.kill()
                return Outcome("hang", f"{name}: ctrl-C does not end it")
    return judge(name, process.returncode, errors, folder / "out")


def recurses(folder: Path) -> bool:
    """Whether functions of the module call themselves: one that never stops uses up the stack, as everywhere."""
    _, *functions = (folder / "module.mlir").read_text(errors="replace").split("func.func")
    calls: dict[str, set[str]] = {}
    for text in functions:
        name, *callees = re.findall(r"@([\w.$-]+)", text) or [""]
        calls.setdefault(name, set()).update(callees)
    reached = {name: set(callees) for name, callees in calls.items()}
    for _ in calls:
        for callees in reached.values():
            callees |= {more for callee in [*callees] for more in calls.get(callee, ())}
    return any(name in callees for name, callees in reached.items())


def judge(name: str, status: Any, errors: str, out: Path) -> Outcome:
    heads = [line for line in errors.splitlines() if re.search(r"(?:^|: )error: ", line)]
    if "Traceback" in errors or "internal error" in errors:
        last = [line for line in errors.splitlines() if "rror" in line]
        return Outcome("traceback", f"{name}: {last[-1] if last else errors[-200:]}")
    if status == 130:  # stopped by the time limit
        return Outcome("right")
    if status not in (0, 1, 2):
        return Outcome("wrong", f"{name}: status {status}")
    if (status == 0) != (not heads):
        return Outcome("wrong", f"{name}: status {status} with {len(heads)} errors on stderr")
    if status and out.exists():
        return Outcome("wrong", f"{name}: an output file after an error")
    if not status:
        return Outcome("right")
    return Outcome("refused", heads[0].partition("error: ")[2])


@contextlib.contextmanager
def _output(folder: Path) -> Iterator[None]:
    """What C++ writes is caught, too."""
    kept = [os.dup(number) for number in (1, 2)]
    sys.stdout.flush()
    sys.stderr.flush()
    files = [open(folder / name, "w+") for name in ("stdout", "stderr")]  # noqa: SIM115
    for number, file in zip((1, 2), files, strict=True):
        os.dup2(file.fileno(), number)
    try:
        with contextlib.redirect_stdout(files[0]), contextlib.redirect_stderr(files[1]):
            yield
    finally:
        for number, file, old in zip((1, 2), files, kept, strict=True):
            file.close()
            os.dup2(old, number)
            os.close(old)


@contextlib.contextmanager
def _time_limit(name: str) -> Iterator[None]:
    """Only programs that run may need it; ctrl-C is what ends them."""
    if name != "run":
        yield
        return
    before = signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    signal.alarm(_LONGEST)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def shrink_module(
    place: Path, folder: Path, still: Callable[[Callable[[], Outcome]], bool], smallest: Any, end: float
) -> None:
    (folder / "command").write_text((place / "command").read_text())

    def fails(text: str) -> bool:
        (folder / "module.mlir").write_text(text, errors="surrogateescape")
        (folder / "out").unlink(missing_ok=True)
        return still(lambda: run_command(folder))

    text = smallest((place / "module.mlir").read_text(errors="surrogateescape"), fails, end)
    (folder / "module.mlir").write_text(text, errors="surrogateescape")
    command = (folder / "command").read_text().replace("\n", " ")
    print(f"{folder}: {command}\n{text}")
