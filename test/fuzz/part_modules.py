"""Mutated modules through every command: success, or one clear error and status 1 (2 for wrong usage)."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import random
import re
import signal
import sys
from collections.abc import Callable
from functools import cache
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any

import numpy as np
from mutations import mutated
from outcome import Outcome
from preloaded import LIBRARIES

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
    if kind < 0.4:
        return "run", ["run", "FILE", "--random", "1", "--size", "3", "--no-cache", "--checks", "on"]
    name = rng.choice(list(COMMANDS))
    return name, COMMANDS[name]


def check(seed: int, folder: Path) -> Outcome:
    rng = random.Random(seed)
    text = mutated(rng, a_module(rng))
    name, command = a_command(rng)
    (folder / "module.mlir").write_text(text, encoding="utf-8", errors="surrogateescape")
    (folder / "command").write_text("\n".join([name, *command]))
    return run_command(folder)


def run_command(folder: Path) -> Outcome:
    """Runs the command in ``folder`` on the module there, in a process of its own, as a user does: on some texts
    MLIR's reader damages the memory of its process, of which a later trial would die. Ctrl-C ends a program that
    goes on."""
    name, *words = (folder / "command").read_text().split("\n")
    paths = {"FILE": str(folder / "module.mlir"), "OUT": str(folder / "out")}
    tool = f"devscope.cli.{'opt' if name == 'opt' else 'main'}"
    process = _processes().Process(target=_become, args=(tool, [paths.get(word, word) for word in words], folder))
    process.start()
    process.join(_LONGEST)
    if process.exitcode is None:
        assert process.pid
        os.kill(process.pid, signal.SIGINT)
        process.join(_LONGEST)
    if process.exitcode is None:
        process.kill()
        return Outcome("hang", f"{name}: ctrl-C does not end it")
    return judge(name, process.exitcode, folder)


@cache
def _processes() -> ForkServerContext:
    """They are forks of a process that has loaded the libraries and run nothing."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["devscope.cli.main", "devscope.cli.opt", *LIBRARIES])
    return context


def _become(tool: str, words: list[str], folder: Path) -> None:
    """The command line ``tool``, which ends this process."""
    for number, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    sys.argv = [tool, *words]
    sys.exit(importlib.import_module(tool).main())


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


def judge(name: str, status: int, folder: Path) -> Outcome:
    errors = (folder / "stderr").read_text(errors="replace")
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
    if status and (folder / "out").exists():
        return Outcome("wrong", f"{name}: an output file after an error")
    if not status:
        return Outcome("right")
    message = heads[0].partition("error: ")[2]
    # What MLIR's reader or a stack does not survive is an error of the command's (docs/trust.md).
    survived = not message.startswith(("a library ended the process", "the process was ended"))
    if survived or (message.startswith("the process was ended (SIGSEGV) while running") and recurses(folder)):
        return Outcome("refused", message)
    return Outcome("crash", f"{name}: {message}")


def shrink_module(place: Path, folder: Path, still: Callable[[Outcome], bool], smallest: Any, end: float) -> None:
    (folder / "command").write_text((place / "command").read_text())

    def fails(text: str) -> bool:
        (folder / "module.mlir").write_text(text, errors="surrogateescape")
        (folder / "out").unlink(missing_ok=True)
        return still(run_command(folder))

    text = smallest((place / "module.mlir").read_text(errors="surrogateescape"), fails, end)
    (folder / "module.mlir").write_text(text, errors="surrogateescape")
    command = (folder / "command").read_text().replace("\n", " ")
    print(f"{folder}: {command}\n{text}")
