"""devscope's planning pass beside TVM Relax's `RealizeVDevice`, on the same programs.

Chains and DAGs of elementwise operations on tensor<64x64xf32>, a device hint after every 50, two devices in
turn (see _hinted_programs.py). Both passes run alone, on a module that is in memory already, in a fresh process
that has planned a small program before; time is CPU time, all of it one thread. A hint is a body-only
device.on_device, which like TVM's says where data is computed; `attribute` stands for the same programs with
device.scope on the operation instead. Then time and memory of programs of a million operations, and what
``devscope plan --table``, ``--dot`` and ``--explain`` take beside ``devscope plan``. Then the number of
copies on random DAGs that TVM can plan, where a hint is a device.on_device that says where the data goes.

    python bench/plan.py [--rounds 3] [--parts times growth copies reports] [--largest 1000000] [--programs 300]
                         [--relax PYTHON]

TVM lives in an environment of its own; PYTHON is its interpreter (default: $DEVSCOPE_RELAX_PYTHON, else that of
build/bench/relax). Without one, devscope's figures stand alone. To make one:

    python -m venv build/bench/relax && build/bench/relax/bin/pip install apache-tvm==0.27.0.post1
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from _hinted_programs import DEVICES, INPUTS, SHAPE, Op, Step, random_steps, steps
from _processes import Case, column, interleaved, median_ratio, repository, script_case, spread

PARTS = ("times", "growth", "copies", "reports")
KINDS = ("chain", "dag")
SIZES = (1_000, 4_000, 16_000, 64_000)
AT = 64_000
"""The size that targets speak of."""
TARGET_RATIO = 0.5
TARGET_GROWTH = 1.3
TARGET_MEMORY = 1000
HINTS = ("on_device", "attribute")
REPORTS = {"plan": [""], "table": ["--table"], "dot": ["--dot"], "explain": ["--explain", "500"]}
REPORTED = (8_000, 32_000, 100_000)
TARGET_REPORT = 1.5


def build(program: Iterable[Step], inputs: int, hint: str, result_only: bool = False) -> Any:
    """A module with one function, made of xDSL operations one by one."""
    from xdsl.dialects.arith import AddfOp, NegfOp
    from xdsl.dialects.builtin import ModuleOp, TensorType, f32
    from xdsl.dialects.func import FuncOp, ReturnOp
    from xdsl.ir import Block, Region, SSAValue

    from devscope.dialects.device import SCOPE_ATTR, OnDeviceOp, ScopeAttr

    type_ = TensorType(f32, SHAPE)
    scopes = [ScopeAttr.get("opencl", number) for number in range(DEVICES)]
    block = Block(arg_types=[type_] * inputs)
    values: list[SSAValue] = list(block.args)
    for step in program:
        if isinstance(step, Op):
            operands = [values[operand] for operand in step.operands]
            op = AddfOp(*operands) if len(operands) == 2 else NegfOp(*operands)
        elif hint == "attribute":
            values[step.operand].owner.attributes[SCOPE_ATTR] = scopes[step.device]
            values.append(values[step.operand])
            continue
        else:
            op = OnDeviceOp(
                values[step.operand],
                scopes[step.device],
                constrain_body=not result_only,
                constrain_result=result_only,
            )
        block.add_op(op)
        values.append(op.results[0])
    block.add_op(ReturnOp(values[-1]))
    return ModuleOp([FuncOp("main", ([type_] * inputs, [type_]), Region(block))])


def copies(module: Any) -> int:
    return sum(op.name == "device.device_copy" for op in module.walk())


def child_time(kind: str, hint: str, operations: int, memory: bool) -> dict[str, float]:
    """One planning: its time, or the peak of what it allocates, which is a run of its own."""
    from devscope.passes.device_plan import plan_module

    plan_module(build(steps(kind, 1000), 1, hint))  # what is made once per process
    module = build(steps(kind, operations), 1, hint)
    gc.collect()
    if memory:
        tracemalloc.start()
        plan = plan_module(module)
        peak = tracemalloc.get_traced_memory()[1]
        del plan
        return {"peak": peak}
    start = time.process_time()
    plan = plan_module(module)
    seconds = time.process_time() - start
    del plan
    return {"seconds": seconds, "copies": copies(module)}


def child_report(kind: str, form: str, operations: int) -> dict[str, float]:
    """CPU time of ``devscope plan`` on a program as text, start of the process included."""
    from devscope.cli.main import main as devscope

    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as file:
        file.write(str(build(steps(kind, operations), 1, "on_device")))
        file.flush()
        gc.collect()
        start = time.process_time()
        with open(os.devnull, "w", encoding="utf-8") as nowhere, contextlib.redirect_stdout(nowhere):
            devscope(["plan", file.name, *filter(None, REPORTS[form])])
        return {"seconds": time.process_time() - start}


def child_copies(programs: int) -> dict[str, list[int]]:
    """The copies of each random program."""
    from devscope.passes.device_plan import plan_module

    found: list[int] = []
    for seed in range(programs):
        module = build(random_steps(seed), INPUTS, "on_device", result_only=True)
        plan_module(module)
        found.append(copies(module))
    return {"copies": found}


# The peer


def find_relax(option: str | None) -> str | None:
    """The interpreter that has TVM, or None, with a line that says why."""
    default = repository() / "build" / "bench" / "relax" / "bin" / "python"
    python = option or os.environ.get("DEVSCOPE_RELAX_PYTHON") or str(default)
    try:
        done = subprocess.run([python, "-c", "import tvm.relax"], capture_output=True, text=True, check=False)
    except OSError as error:
        reason = str(error)
    else:
        if done.returncode == 0:
            return python
        reason = done.stderr.strip().rpartition("\n")[2]
    print(f"no TVM Relax ({reason}): devscope's figures alone. How to get it: {Path(__file__).name} --help")
    return None


def relax_case(python: str, name: str, *arguments: str) -> Case:
    script = Path(__file__).with_name("_relax.py")
    return Case(name, [python, str(script), *arguments])


def own_case(name: str, *arguments: str) -> Case:
    return script_case(name, __file__, "--child", *arguments)


# The tables


def per_operation(runs: Sequence[dict[str, Any]], operations: int) -> list[float]:
    """Microseconds."""
    return [seconds / operations * 1e6 for seconds in column(runs, "seconds")]


def show_times(relax: str | None, kind: str, rounds: int) -> bool:
    """Microseconds per operation at all sizes; whether the target is met."""
    print(f"\n{kind}: CPU microseconds per operation, {rounds} processes each, and copies")
    print(f"{'operations':>12}{'on_device':>22}{'attribute':>22}{'TVM Relax':>22}{'ratio':>8}  copies (TVM)")
    ratio = 0.0
    for size in SIZES:
        cases = [own_case(hint, "time", kind, hint, str(size)) for hint in HINTS]
        cases += [relax_case(relax, "relax", "time", kind, str(size))] if relax else []
        runs = interleaved(cases, rounds)
        times = {name: per_operation(figures, size) for name, figures in runs.items()}
        row = f"{size:>12,}" + "".join(f"{spread(times[hint], 'us', 1):>22}" for hint in HINTS)
        count = f"  {runs['on_device'][0]['copies']}"
        if relax:
            ratio = median_ratio(times["on_device"], times["relax"])
            row += f"{spread(times['relax'], 'us', 1):>22}{ratio:>8.2f}"
            count += f" ({runs['relax'][0]['copies']})"
        print(row + count)
    if relax:
        print(f"ratio at {AT:,}: {ratio:.2f} (target: at most {TARGET_RATIO})")
    return ratio <= TARGET_RATIO


def show_growth(kind: str, largest: int, rounds: int) -> bool:
    """Time per operation of the largest program over that of `AT`, the two in turn; peak memory of both."""
    sizes = (AT, largest)
    runs = interleaved([own_case(str(size), "time", kind, "on_device", str(size)) for size in sizes], rounds)
    peaks = [run_memory(kind, size) / size for size in sizes]
    times = [per_operation(runs[str(size)], size) for size in sizes]
    growth = median_ratio(times[1], times[0])
    print(
        f"\n{kind}: {AT:,} operations {spread(times[0], 'us', 1)}, {largest:,} {spread(times[1], 'us', 1)} each: "
        f"x{growth:.2f} (target: at most {TARGET_GROWTH})"
    )
    print(
        f"{kind}: peak memory above the module's: {peaks[0]:.0f} and {peaks[1]:.0f} bytes per operation "
        f"(target: at most {TARGET_MEMORY})"
    )
    return growth <= TARGET_GROWTH and max(peaks) <= TARGET_MEMORY


def show_reports(kind: str, rounds: int) -> bool:
    """Seconds of every form of ``devscope plan``, and their ratios to the plain one; whether the target is met."""
    print(f"\n{kind}: CPU seconds of devscope plan, and of its reports over it (target: at most {TARGET_REPORT})")
    met = True
    for size in REPORTED:
        runs = interleaved([own_case(form, "report", kind, form, str(size)) for form in REPORTS], rounds)
        seconds = {form: column(found, "seconds") for form, found in runs.items()}
        ratios = {form: median_ratio(seconds[form], seconds["plan"]) for form in REPORTS if form != "plan"}
        met &= max(ratios.values()) <= TARGET_REPORT
        shown = ", ".join(f"--{form} x{ratio:.2f}" for form, ratio in ratios.items())
        print(f"{size:>12,}{spread(seconds['plan'], 's', 1):>22}  {shown}")
    return met


def run_memory(kind: str, size: int) -> float:
    case = own_case("memory", "memory", kind, "on_device", str(size))
    return column(interleaved([case], 1)["memory"], "peak")[0]


def show_copies(relax: str, programs: int) -> bool:
    """Copies of all random programs that TVM plans; whether devscope never has more."""
    cases = [own_case("devscope", "copies", str(programs)), relax_case(relax, "relax", "copies", str(programs))]
    runs = interleaved(cases, 1)
    both: list[tuple[int, int | None]] = list(
        zip(runs["devscope"][0]["copies"], runs["relax"][0]["copies"], strict=True)
    )
    pairs = [(ours, theirs) for ours, theirs in both if theirs is not None]
    fewer, more = sum(a < b for a, b in pairs), sum(a > b for a, b in pairs)
    print(
        f"\n{programs} random DAGs, of which TVM Relax plans {len(pairs)}: {sum(a for a, _ in pairs)} copies, "
        f"TVM {sum(b for _, b in pairs)}; fewer on {fewer}, more on {more} (target: 0)"
    )
    return more == 0


def child(arguments: Sequence[str]) -> None:
    match arguments:
        case ["time" | "memory" as what, kind, hint, operations]:
            print(json.dumps(child_time(kind, hint, int(operations), what == "memory")))
        case ["report", kind, form, operations]:
            print(json.dumps(child_report(kind, form, int(operations))))
        case ["copies", programs]:
            print(json.dumps(child_copies(int(programs))))
        case _:
            raise SystemExit(f"unknown child: {arguments}")


def main() -> int:
    description, _, rest = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(
        description=description, epilog=rest, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3, help="processes per figure (default: 3)")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="what to measure (default: all)")
    parser.add_argument("--largest", type=int, default=1_000_000, help="operations of the largest program")
    parser.add_argument("--programs", type=int, default=300, help="random DAGs whose copies are counted")
    parser.add_argument("--relax", metavar="PYTHON", help="a Python that has apache-tvm 0.27.0.post1")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child)
        return 0
    relax = find_relax(options.relax)
    met: list[bool] = []
    if "times" in options.parts:
        met += [show_times(relax, kind, options.rounds) for kind in KINDS]
    if "growth" in options.parts:
        met += [show_growth(kind, options.largest, options.rounds) for kind in KINDS]
    if relax and "copies" in options.parts:
        met.append(show_copies(relax, options.programs))
    if "reports" in options.parts:
        met += [show_reports(kind, options.rounds) for kind in KINDS]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
