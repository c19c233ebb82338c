"""What a kernel launch through the runtime costs, against the driver's own calls.

Compiled host code launches a kernel with 21 arguments (three memrefs of rank 2) through
``devscope_launch``; beside it, in the same object and on the same queue and kernel, a loop makes the calls
that OpenCL needs: 21 x clSetKernelArg and clEnqueueNDRangeKernel. Both end with a blocking read of one
buffer. Runs alternate; the ratio is that of the medians. Target: at most 1.2.

    python bench/launch.py [--launches 2000] [--repeats 31]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable

from devscope.lowering.codegen.device_emitter import shared_emitter
from devscope.lowering.codegen.host_object import compile_host_object
from devscope.runtime.drivers.opencl_device import ClQueue, OpenCL
from devscope.runtime.executable import Executable
from devscope.runtime.native import ENTRY_PREFIX, abi, call_symbol
from devscope.runtime.program import DeviceSpec, Entry, KernelSpec, Program, TensorSpec

TARGET = 1.2
ARGUMENTS = 21
#: What the baseline calls; the entries get the addresses.
FUNCTIONS = {"set": "clSetKernelArg", "run": "clEnqueueNDRangeKernel", "read": "clEnqueueReadBuffer"}
PARAMETERS = 4 + len(FUNCTIONS)
#: Position in a group of seven: two buffers (allocated, aligned), offset, two sizes, two strides.
BUFFERS = [index for index in range(ARGUMENTS) if index % 7 < 2]


def kernel_ir() -> str:
    kinds = ["ptr addrspace(1)" if index in BUFFERS else "i64" for index in range(ARGUMENTS)]
    parameters = ", ".join(f"{kind} %a{index}" for index, kind in enumerate(kinds))
    return f"define spir_kernel void @empty({parameters}) {{\n  ret void\n}}\n"


def host_ir() -> str:
    """Two entries (launches, buffer, queue, kernel, functions...), all i64; the first uses the runtime."""
    cells = "\n".join(
        f"  %c{index} = getelementptr i64, ptr %cells, i64 {index}\n"
        f"  store i64 {'%buffer' if index in BUFFERS else '%i'}, ptr %c{index}"
        for index in range(ARGUMENTS)
    )
    sets = "\n".join(
        f"  %s{index} = call i32 %set(ptr %kernel, i32 {index}, i64 8, ptr %c{index})"
        for index in range(ARGUMENTS)
    )
    functions = "\n".join(f"  %{name} = inttoptr i64 %v{4 + index} to ptr" for index, name in enumerate(FUNCTIONS))
    parameters = ", ".join(f"ptr %p{index}" for index in range(PARAMETERS))
    values = "\n".join(
        f"  %d{index}.p = getelementptr ptr, ptr %p{index}, i64 1\n"
        f"  %d{index} = load ptr, ptr %d{index}.p\n"
        f"  %v{index} = load i64, ptr %d{index}"
        for index in range(PARAMETERS)
    )
    body = """
define void @_mlir_ciface_devscope_entry_{name}({parameters}) {{
entry:
  %cells = alloca [{arguments} x i64]
  %word = alloca i64
  %global = alloca i64
  %local = alloca i64
  store i64 64, ptr %global
  store i64 64, ptr %local
{values}
  %queue = inttoptr i64 %v2 to ptr
  %kernel = inttoptr i64 %v3 to ptr
  %buffer = add i64 %v1, 0
  %memory = inttoptr i64 %v1 to ptr
{functions}
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
{cells}
{launch}
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %v0
  br i1 %more, label %loop, label %exit
exit:
{finish}
  ret void
}}
"""
    ours = f"  call void @devscope_launch({', '.join(['i64 1', 'i64 0', 'i64 1', 'i64 1', 'i64 1'])}, "
    ours += f"i64 64, i64 1, i64 1, ptr %cells, i64 {ARGUMENTS})"
    raw = sets + (
        "\n  %status = call i32 %run(ptr %queue, ptr %kernel, i32 1, ptr null, ptr %global, ptr %local,"
        " i32 0, ptr null, ptr null)"
    )
    read_ours = "  call void @devscope_copy(i64 1, ptr %memory, i64 0, i64 0, ptr %word, i64 0, i64 8)"
    read_raw = (
        "  %got = call i32 %read(ptr %queue, ptr %memory, i32 1, i64 0, i64 8, ptr %word,"
        " i32 0, ptr null, ptr null)"
    )
    text = """
declare void @devscope_launch(i64, i64, i64, i64, i64, i64, i64, i64, ptr, i64)
declare void @devscope_copy(i64, ptr, i64, i64, ptr, i64, i64)
declare ptr @devscope_alloc(i64, i64)
declare ptr @devscope_host_alloc(i64)

define void @_mlir_ciface_devscope_entry_alloc(ptr %result) {
  %handle = call ptr @devscope_alloc(i64 1, i64 4096)
  %memory = call ptr @devscope_host_alloc(i64 8)
  store ptr %handle, ptr %memory
  %aligned = getelementptr ptr, ptr %result, i64 1
  %offset = getelementptr i64, ptr %result, i64 2
  store ptr %memory, ptr %result
  store ptr %memory, ptr %aligned
  store i64 0, ptr %offset
  ret void
}
"""
    for name, launch, finish in (("ours", ours, read_ours), ("raw", raw, read_raw)):
        text += body.format(
            name=name,
            parameters=parameters,
            arguments=ARGUMENTS,
            values=values,
            functions=functions,
            cells=cells,
            launch=launch,
            finish=finish,
        )
    return text


def program() -> Program:
    scalar = TensorSpec("i64", [], True)
    symbols = {name: f"{ENTRY_PREFIX}{name}" for name in ("ours", "raw", "alloc")}
    host = compile_host_object(host_ir(), list(symbols.values()))
    kernels = [KernelSpec("empty", [0 if index in BUFFERS else 8 for index in range(ARGUMENTS)])]
    return Program(
        entries={
            "ours": Entry(call_symbol(symbols["ours"]), [scalar] * PARAMETERS, []),
            "raw": Entry(call_symbol(symbols["raw"]), [scalar] * PARAMETERS, []),
            "alloc": Entry(call_symbol(symbols["alloc"]), [], [scalar]),
        },
        host_object=host.data,
        host_triple=host.triple,
        devices=[DeviceSpec(1, "opencl", 0, "opencl", [shared_emitter().emit(kernel_ir())], kernels)],
    )


def measure(run: dict[str, Callable[[], None]], launches: int, repeats: int) -> dict[str, list[float]]:
    """Microseconds per launch of every run, the variants one after the other in every repeat."""
    times: dict[str, list[float]] = {name: [] for name in run}
    for repeat in range(repeats + 2):
        for name, call in run.items():
            start = time.perf_counter()
            call()
            if repeat >= 2:
                times[name].append((time.perf_counter() - start) / launches * 1e6)
    return times


def main() -> int:
    parser = argparse.ArgumentParser(description="cost of a kernel launch")
    parser.add_argument("--launches", type=int, default=2000, help="launches per run (default: 2000)")
    parser.add_argument("--repeats", type=int, default=31, help="runs of each variant (default: 31)")
    options = parser.parse_args()
    with Executable(program()) as exe:
        instance = exe._pool.instances[0]  # the driver's objects: the baseline uses the same ones
        record = instance.records[1]
        kernel = abi.Kernel.from_address(record.kernels).handle
        queue = ClQueue.from_address(record.state)
        table = OpenCL.from_address(queue.cl)
        buffer = int(exe.run("alloc"))
        memory = abi.Buffer.from_address(buffer).memory
        values = (queue.queue, kernel, *(getattr(table, name) for name in FUNCTIONS.values()))
        times = measure(
            {
                "raw": lambda: exe.run("raw", options.launches, memory, *values),
                "devscope": lambda: exe.run("ours", options.launches, buffer, *values),
            },
            options.launches,
            options.repeats,
        )
    medians = {name: statistics.median(values) for name, values in times.items()}
    for name, values in times.items():
        print(f"{name:9} {medians[name]:6.2f} us per launch (median), {min(values):6.2f} us (best)")
    ratio = medians["devscope"] / medians["raw"]
    print(f"ratio     {ratio:6.3f} (target: at most {TARGET})")
    return 0 if ratio <= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
