"""Runs `torch_examples` beside eager: ``torch_check.py TARGET [NAME ...]``; ``TARGET`` may be ``mixed``."""

from __future__ import annotations

import copy
import inspect
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MIXED = [{"op": ["*matmul*", "matvec", "vecmat", "dot", "conv*", "*pool*", "*softmax*"], "device": "opencl:0"}]


def check(name: str, target: str) -> str:
    """What differs between devscope's results on ``target`` and eager's; empty if nothing."""
    import torch
    from torch_compare import difference
    from torch_examples import MODULES

    import devscope

    torch.set_num_threads(1)
    example = MODULES[name]()
    arguments, named = example.calls[0]
    given: Any = arguments
    if named:
        given = dict(inspect.signature(example.model.forward).bind(*arguments, **named).arguments)
    options: dict[str, Any] = {"place": MIXED} if target == "mixed" else {"default": target}
    eager = copy.deepcopy(example.model)  # which has state of its own
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        compiled = devscope.compile(
            example.model, given, dynamic_shapes=example.dynamic_shapes, cache=False, **options
        )
        with compiled as exe:
            for number, (arguments, named) in enumerate(example.calls):
                if said := difference(exe(*arguments, **named), eager(*arguments, **named)):
                    return f"call {number}: {said}"
    return ""


def check_each(target: str, names: list[str]) -> None:
    """Print a line for each module as it is done."""
    for name in names:
        try:
            said = check(name, target)
            print(f"{name}: {f'WRONG {said}' if said else 'right'}", flush=True)
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {str(error).splitlines()[0]}", flush=True)
    os._exit(0)


def results(target: str, names: list[str]) -> Iterator[tuple[str, str]]:
    """What became of each module. A process checks one after the other; if it ends, the next one goes on."""
    left = list(names)
    while left:
        command = [sys.executable, __file__, "--each", target, *left]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            assert process.stdout is not None
            for line in process.stdout:
                name, _, said = line.strip().partition(": ")
                if left and name == left[0]:
                    left.pop(0)
                    yield name, said
        if process.returncode:
            yield left.pop(0), f"CRASH: the process ended with status {process.returncode}"


def main() -> None:
    sys.path.insert(0, str(Path(__file__).parent))
    if sys.argv[1] == "--each":
        check_each(sys.argv[2], sys.argv[3:])
    from torch_examples import MODULES

    target, names = sys.argv[1], sys.argv[2:] or list(MODULES)
    found = {}
    for name, said in results(target, names):
        found[name] = said
        print(f"{target} {name}: {said}", flush=True)
    right = sum(said == "right" for said in found.values())
    print(f"{target}: {right} of {len(names)} right")
    sys.exit(right != len(names))


if __name__ == "__main__":
    main()
