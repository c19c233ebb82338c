"""What it costs to move a module between MLIR and xDSL.

The module is one function of linalg.matmul, tensor.empty, arith.addf, arith.mulf and math.exp in equal parts.
Nominal operations are those that its text shows; all operations include the three in the body that each
linalg.matmul hides, which are imported and exported like the rest. Times are medians of CPU time (all of it is
one thread); the garbage collector runs as it does for users. Beside it, on a smaller module of the same kind,
the way through text: MLIR's printer, xDSL's parser and printer, MLIR's parser.

    python bench/interop.py [--operations 100000] [--repeats 5] [--text-operations 500]
"""

from __future__ import annotations

import argparse
import gc
import io
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from xdsl.parser import Parser
from xdsl.printer import Printer

from devscope.lowering.interop.session import Session

GROUP = 5
HIDDEN_PER_GROUP = 3
TARGETS = {"import": 40_000, "export": 150_000}

Result = TypeVar("Result")


def module_text(operations: int) -> str:
    """A function of ``operations`` operations, in groups of five, each group using the one before."""
    tensor = "tensor<64x64xf32>"
    lines = [f"module {{\nfunc.func @f(%z: {tensor}, %w: {tensor}) -> {tensor} {{"]
    last = "%z"
    for n in range(operations // GROUP):
        lines += [
            f"  %e{n} = tensor.empty() : {tensor}",
            f"  %m{n} = linalg.matmul ins({last}, %w : {tensor}, {tensor}) outs(%e{n} : {tensor}) -> {tensor}",
            f"  %a{n} = arith.addf %m{n}, {last} : {tensor}",
            f"  %p{n} = arith.mulf %a{n}, %w : {tensor}",
            f"  %z{n} = math.exp %p{n} : {tensor}",
        ]
        last = f"%z{n}"
    return "\n".join([*lines, f"  return {last} : {tensor}\n}}\n}}"])


def median_time(work: Callable[[], Result], repeats: int) -> tuple[float, Result]:
    """Seconds, and the last result; only one result is alive at a time."""
    times: list[float] = []
    result = work()
    for _ in range(repeats):
        del result
        gc.collect()
        start = time.process_time()
        result = work()
        times.append(time.process_time() - start)
    return statistics.median(times), result


def resident_bytes() -> int:
    """The memory of this process; 0 where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def through_text(session: Session, module: Any) -> Any:
    """The same way there and back, as text."""
    text = module.operation.get_asm(print_generic_op_form=True, use_local_scope=True)
    imported = Parser(session.xdsl_context, text).parse_module()
    stream = io.StringIO()
    Printer(stream=stream, print_generic_format=True).print_op(imported)
    return session.parse(stream.getvalue())


def report(name: str, seconds: float, nominal: int) -> None:
    everything = nominal // GROUP * (GROUP + HIDDEN_PER_GROUP)
    target = TARGETS.get(name)
    aim = f"   target {target:,}" if target else ""
    print(f"{name:8} {seconds:7.3f} s {nominal / seconds:11,.0f} {everything / seconds:11,.0f}{aim}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--operations", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--text-operations", type=int, default=500)
    arguments = parser.parse_args()
    count, repeats = arguments.operations, arguments.repeats

    session, text = Session(), module_text(count)
    print(f"{count:,} nominal operations, medians of {repeats}")
    print("                     nominal ops/s   all ops/s")
    seconds, module = median_time(lambda: session.parse(text), repeats)
    report("parse", seconds, count)
    before = resident_bytes()
    imported = session.to_xdsl(module)
    memory = resident_bytes() - before
    del imported
    seconds, imported = median_time(lambda: session.to_xdsl(module), repeats)
    report("import", seconds, count)
    seconds, exported = median_time(lambda: session.to_mlir(imported, verify=False), repeats)
    report("export", seconds, count)
    seconds, _ = median_time(exported.operation.verify, repeats)
    report("verify", seconds, count)
    all_operations = count // GROUP * (GROUP + HIDDEN_PER_GROUP)
    print(f"memory of the imported module: {memory / count:,.0f} bytes per nominal operation, ", end="")
    print(f"{memory / all_operations:,.0f} per operation")

    small = session.parse(module_text(arguments.text_operations))
    bridge, _ = median_time(lambda: session.to_mlir(session.to_xdsl(small)), repeats)
    as_text, _ = median_time(lambda: through_text(session, small), min(repeats, 3))
    print(f"there and back, {arguments.text_operations} operations: ", end="")
    print(f"bridge {bridge * 1e3:.1f} ms, text {as_text * 1e3:.1f} ms, ratio {as_text / bridge:.0f}")


if __name__ == "__main__":
    main()
