"""Bytes that devscope plans for intermediates, beside the fewest possible and TVM's `StaticPlanBlockMemory`.

An MLP, a convnet and a transformer block as graphs of primitive operations (see _graphs.py), all of it on the
host, and all of it on opencl:0, where copies of inputs and of the result are planned too. Two lower bounds,
neither of which uses the planner's code: bytes live in the graph, computed from its operations; and in the
compiled program, computed from where its buffers occur in the text of the planned module. Then calls: results are
compared with numpy's, and counters tell what was allocated after the first.

    python bench/memory.py [--calls 100] [--relax PYTHON]

TVM lives in an environment of its own, see plan.py. It plans the same graphs for the host, its operators one by
one and fused; results of programs are left out on both sides.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from _graphs import GRAPHS, Graph, Node, live_bytes, module_text
from _processes import Case, interleaved
from plan import find_relax

TARGET = 1.1
DEVICES = ("cpu:0", "opencl:0")

_ALLOC = re.compile(r"(%\w+) = memref\.alloc\(\) \{.*devscope\.storage.*\} : memref<([0-9x]+)xf32(.*)>")
_VIEW = re.compile(r"(%\w+) = memref\.(?:collapse_shape|expand_shape|cast|subview|reinterpret_cast) (%\w+)")


def plan(graph: Graph, device: str) -> tuple[Any, int]:
    """The compiled program, and the most bytes of its planned buffers that are live at one line of its text."""
    from devscope.api import CompileOptions
    from devscope.cli.printing import module_text as printed
    from devscope.pipeline import compile_source

    texts: list[str] = []

    def observe(stage: str, payload: Any) -> None:
        if stage == "memory":
            texts.append(printed(payload))

    program = compile_source(module_text(graph), CompileOptions(default=device), observe)
    return program, live_in_text(texts[0], "#opencl0" if device != "cpu:0" else "")


def live_in_text(text: str, space: str) -> int:
    """For straight-line code: buffers of a memory from their first to their last mention, releases left out."""
    sizes: dict[str, int] = {}
    owners: dict[str, str] = {}
    spans: dict[str, list[int]] = {}
    for number, line in enumerate(text.splitlines()):
        if "memref.dealloc" in line:
            continue
        if found := _ALLOC.search(line):
            if found[3].strip(", ") == space:
                sizes[found[1]] = 4 * prod(map(int, found[2].split("x")))
                owners[found[1]] = found[1]
            continue
        if (found := _VIEW.search(line)) and found[2] in owners:
            owners[found[1]] = owners[found[2]]
        for name in set(re.findall(r"%\w+", line)) & owners.keys():
            spans.setdefault(owners[name], []).append(number)
    lines = range(len(text.splitlines()))
    return max(sum(sizes[n] for n, span in spans.items() if span[0] <= at <= span[-1]) for at in lines)


def evaluate(graph: Graph, inputs: Sequence[Any]) -> Any:
    """What numpy computes, in f64."""
    values = [np.asarray(array, np.float64) for array in inputs]
    for node in graph.nodes:
        values.append(_evaluate(node, [values[operand] for operand in node.operands]))
    return values[-1]


def _evaluate(node: Node, operands: Sequence[Any]) -> Any:
    first = operands[0]
    match node.kind:
        case "add" | "sub" | "mul" | "div":
            names = {"add": "add", "sub": "subtract", "mul": "multiply", "div": "divide"}
            return getattr(np, names[node.kind])(*operands)
        case "relu":
            return np.maximum(first, 0)
        case "rsqrt":
            return 1 / np.sqrt(first)
        case "sum" | "max":
            return getattr(np, node.kind)(first, axis=-1, keepdims=True)
        case "matmul" | "batch_matmul":
            return operands[0] @ operands[1]
        case "conv2d":
            windows = np.lib.stride_tricks.sliding_window_view(first, operands[1].shape[2:], axis=(2, 3))
            return np.einsum("nchwij,fcij->nfhw", windows, operands[1], optimize=True)
        case "max_pool":
            n, c, h, w = node.shape
            return first[:, :, : 2 * h, : 2 * w].reshape(n, c, h, 2, w, 2).max(axis=(3, 5))
        case "reshape":
            return first.reshape(node.shape)
        case "transpose":
            return first.transpose(node.extra)
        case _:
            return getattr(np, node.kind)(first)


def call(program: Any, graph: Graph, calls: int) -> int:
    """Memory asked of drivers, as often, after the first of some calls, whose results are right."""
    from devscope.runtime.executable import Executable

    rng = np.random.default_rng(0)
    # Small weights keep what grows with the width small; scalars are the reciprocals that the graph divides by.
    inputs = [
        np.full(shape, 1 / 512, np.float32)
        if prod(shape) == 1
        else (rng.standard_normal(shape) / max(prod(shape[1:]), 1) ** 0.5).astype(np.float32)
        for shape in graph.inputs
    ]
    expected = evaluate(graph, inputs)
    with Executable(program) as executable:
        result = executable(*inputs)
        np.testing.assert_allclose(result, expected, rtol=0, atol=1e-3 * np.abs(expected).max())
        del result  # else the next call needs memory for another one
        before = executable.counters()
        for _ in range(calls):
            executable(*inputs)
        after = executable.counters()
    return sum(after.driver_allocations.values()) - sum(before.driver_allocations.values())


def show(device: str, relax: dict[str, list[int]] | None, calls: int) -> bool:
    """A row per graph; whether the target is met."""
    print(f"\n{device}: bytes of intermediates")
    heads = f"{'planned':>12}{'live, graph':>14}{'ratio':>7}{'live, text':>14}{'ratio':>7}{'allocations':>13}"
    print(f"{'':<20}{heads}" + (f"{'TVM':>12}{'fused':>12}" if relax else ""))
    met = True
    for name, make in GRAPHS.items():
        graph = make()
        program, in_text = plan(graph, device)
        planned = program.report["memory"][device]["planned"]
        bound = live_bytes(graph, device != "cpu:0")
        allocations = call(program, graph, calls)
        met &= planned <= TARGET * min(bound, in_text) and allocations == 0
        row = f"{name:<20}{planned:>12,}{bound:>14,}{planned / bound:>7.3f}{in_text:>14,}{planned / in_text:>7.3f}"
        print(f"{row}{allocations:>13}", end="")
        print("".join(f"{size:>12,}" for size in relax[name]) if relax else "")
    print(f"target: at most {TARGET} of either bound, no allocation on a device in {calls} calls after the first")
    return met


def main() -> int:
    description, _, rest = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(
        description=description, epilog=rest, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", type=int, default=100, help="calls after the first (default: 100)")
    parser.add_argument("--relax", metavar="PYTHON", help="a Python that has apache-tvm 0.27.0.post1")
    options = parser.parse_args()
    relax = find_relax(options.relax)
    sizes = None
    if relax:
        case = Case("relax", [relax, str(Path(__file__).with_name("_relax_memory.py"))])
        sizes = interleaved([case], 1)["relax"][0]
    met = [show(device, sizes if device == "cpu:0" else None, options.calls) for device in DEVICES]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
