"""One side of `kernels.py`, in a process of its own: it computes when it is told to.

    python _kernel_peer.py devscope|device|numpy|torch|compile|cuda|iree|iree-dt|WAY THREADS DIRECTORY
               [--small] [--device NAME]

Every line of standard input is a JSON object. ``{"load": NAME}`` makes a work's function from DIRECTORY's arrays,
calls it and compares its result; ``{"seconds": S}`` calls it for that long, ``{"burst": S}`` in bursts;
``{"copy": S}`` copies 64 MiB for that long, with ``"burst": S`` in bursts. Every answer is a JSON line: an
``error``, or the best ``wall`` and processor (``cpu``) seconds of one call. Both of a numpy's and a torch's Python
have what this imports. A WAY is one of `WAYS`.

With ``--device`` a work is repeated in a loop of the program, which copies the inputs there before and the last
result back afterwards. The time of an iteration is the difference between many and one. The host does the same
beside a device: iterations write to two buffers in turn.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import _bursts
import numpy as np
from _kernel_table import works
from _kernel_work import COPIED, Run, Work

TOLERANCE = {"float16": 4e-3, "float32": 1e-4, "float64": 1e-10, "int64": 0.0}
"""Of the greatest magnitude of the result."""
BATCH = 2e-4
"""Calls of less than so many seconds are timed together."""

IREE_FLAGS = {
    "iree": ["--iree-opt-level=O3"],
    "iree-dt": ["--iree-opt-level=O3", "--iree-opt-data-tiling", "--iree-llvmcpu-enable-ukernels=all"],
}


WAYS: dict[str, tuple[list[str], str]] = {
    "search": (["blas", "onednn"], "search"),
    "eager": (["blas", "onednn"], "eager"),
    "generated": ([], "eager"),
    "blas": (["blas"], "eager"),
    "onednn": (["onednn"], "eager"),
}
"""Of partitioning: backends and strategy."""

STACK = ["--iree-llvmcpu-stack-allocation-limit=262144"]
"""The transformer block needs 48 KiB of it; IREE's default limit is 32."""


def aligned(shape: tuple[int, ...], dtype: Any) -> Any:
    """Memory at a multiple of 64 bytes, as torch and IREE allocate it; numpy's own is at one of 16."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.empty(size + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + size].view(dtype).reshape(shape)


def aligned_copy(array: Any) -> Any:
    copy = aligned(array.shape, array.dtype)
    copy[...] = array
    return copy


class Side:
    """What makes functions; ``threads`` were told to libraries by the environment."""

    def __init__(self, kind: str, threads: int, directory: Path, device: str = "", cpu: str = "") -> None:
        self.kind, self.threads, self.directory, self.device, self.cpu = kind, threads, directory, device, cpu

    def function(self, work: Work, number: int, arrays: list[Any], result: Any) -> Run:
        """A function of no arguments that computes ``work``, and reuses memory for its result where it can."""
        if self.kind == "numpy":
            return work.numpy(aligned(result.shape, result.dtype), *arrays)
        if self.kind in ("torch", "compile"):
            return self._torch(work, arrays, result)
        if self.kind == "cuda":
            return Queued(work, arrays, result)
        if self.kind in WAYS:
            program = self._partitioned(work, number)
            return lambda: program(*arrays)
        if self.device:
            import devscope

            return Loop(devscope.compile(looped(work.text()), default=self.device), arrays, self.device)
        if self.kind == "devscope":
            import devscope

            program = devscope.compile(for_cpu(work.text(), self.cpu))
            return lambda: program(*arrays)
        return self._iree(work, number, arrays)

    def _partitioned(self, work: Work, number: int) -> Any:
        """Compiled with backends; a search with costs that are measured before."""
        import devscope

        backends, partition = WAYS[self.kind]
        if partition == "eager":
            return devscope.compile(work.text(), backends=backends)
        from devscope.compile_options import CompileOptions
        from devscope.passes.device_partition.cost_file import costs_json
        from devscope.profile import Profiler

        options = CompileOptions(backends=backends, partition="search")
        profiler = Profiler(work.text(), options, _bursts.best)
        rows = [row for _, row, _ in profiler.measured([]) if row is not None]
        rows += [row for _, row, _ in profiler.wholes(rows) if row is not None]
        costs = self.directory / f"{number}.{self.threads}.json"
        costs.write_text(costs_json(rows))
        return devscope.compile(work.text(), backends=backends, partition="search", costs=costs)

    def _torch(self, work: Work, arrays: list[Any], result: Any) -> Run:
        import torch

        torch.set_num_threads(self.threads)
        torch.set_grad_enabled(False)
        out = torch.empty(result.shape, dtype=getattr(torch, str(result.dtype)))
        function = work.torch(torch, out, *map(torch.from_numpy, arrays))
        return torch.compile(function) if self.kind == "compile" else function

    def _iree(self, work: Work, number: int, arrays: list[Any]) -> Run:
        """Inputs are on IREE's device before, results stay there, in blocks that it uses again."""
        import iree.runtime as runtime

        file = self.directory / f"{number}.{self.kind}.vmfb"
        if not file.exists():
            file.write_bytes(compile_iree(work.text(), IREE_FLAGS[self.kind], self.cpu or "host"))
        if not hasattr(self, "config"):
            # Not task_topology_group_count: its workers may stand on one core.
            runtime.flags.parse_flags(f"--task_topology_max_group_count={self.threads}")
            driver = runtime.get_driver("local-sync" if self.threads == 1 else "local-task")
            device = driver.create_default_device(allocators=["caching"])
            self.config = runtime.Config(device=device)
        code = runtime.VmModule.copy_buffer(self.config.vm_instance, file.read_bytes())
        main = runtime.load_vm_module(code, self.config).main
        inputs = [runtime.asdevicearray(self.config.device, array) for array in arrays]
        return lambda: main(*inputs)


_MAIN = re.compile(r"func\.func @main\((.*?)\) -> (\S+) {")


def for_cpu(text: str, cpu: str) -> str:
    """The program for a CPU of this name, which LLVM knows; this one's if it is empty."""
    target = f'attributes {{device.target = #device.target<"cpu", {{cpu = "{cpu}"}}>}}'
    return _MAIN.sub(lambda found: f"{found[0][:-1]}{target} {{", text, count=1) if cpu else text


def looped(text: str) -> str:
    """The program of ``@main`` with a last argument: how often its work is done once more."""
    found = _MAIN.search(text)
    assert found, text
    parameters, result = found.groups()
    names, types = zip(*(parameter.split(": ") for parameter in parameters.split(", ")), strict=True)
    call = f"func.call @work({', '.join(names)}) : ({', '.join(types)}) -> {result}"
    return f"""\
{text.replace("func.func @main(", "func.func private @work(")}
func.func @main({parameters}, %times: index) -> {result} {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %first = {call}
  %last = scf.for %i = %zero to %times step %one iter_args(%before = %first) -> {result} {{
    %next = {call}
    scf.yield %next : {result}
  }}
  return %last : {result}
}}
"""


@dataclass
class Loop:
    """A `looped` program and its inputs."""

    program: Any
    arrays: list[Any]
    device: str

    def __call__(self, more: int = 1) -> Any:
        return self.program(*self.arrays, more)

    def launches(self, more: int) -> int:
        self.program.reset_counters()
        self(more)
        return self.program.counters().launches[self.device]

    def best_times(self, seconds: float, bursts: bool = False) -> dict[str, float]:
        """Of one iteration, by the clock alone: threads of the driver do the work.

        Raises RuntimeError where the compiler took the work out of the loop.
        """
        if not self.device.startswith("cpu:") and self.launches(3) <= self.launches(1):
            raise RuntimeError("the loop does not repeat the work")
        start = time.perf_counter()
        once, more = self._time(1), self._time(3)
        # Iterations take longer than the copies around them.
        repeats = 1 + max(2, int(max(seconds, 10 * BATCH, once) / max((more - once) / 2, more / 30)))
        best = dict.fromkeys((1, repeats), float("inf"))
        calls = 0
        while calls < 3 or time.perf_counter() - start < seconds:
            with _bursts.urgent() if bursts else nullcontext():
                best = {count: min(least, self._time(count)) for count, least in best.items()}
            if bursts:
                time.sleep(_bursts.BURST / 2)
            calls += 1
        # On a busy machine one iteration may take longer than many: then the copies count, too.
        difference = (best[repeats] - best[1]) / (repeats - 1)
        return {"wall": difference if difference > 0 else best[repeats] / (repeats + 1)}

    def _time(self, more: int) -> float:
        before = time.perf_counter()
        self(more)
        return time.perf_counter() - before


class Queued:
    """What torch has on a GPU: inputs are there before, results stay there. Products of f32 are not of tf32."""

    def __init__(self, work: Work, arrays: list[Any], result: Any) -> None:
        import torch

        torch.set_grad_enabled(False)
        torch.set_default_device("cuda")
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.benchmark = True
        self._wait = torch.cuda.synchronize
        out = torch.empty(result.shape, dtype=getattr(torch, str(result.dtype)))
        self._run = work.torch(torch, out, *(torch.from_numpy(array).cuda() for array in arrays))

    def __call__(self) -> Any:
        return self._run().cpu()

    def best_times(self, seconds: float) -> dict[str, float]:
        """Of one of many, by the clock: the host does not wait between them."""
        start = time.perf_counter()
        repeats = 1 + int(max(seconds / 4, 10 * BATCH) / max(self._time(10) / 10, 1e-7))
        best = float("inf")
        while best == float("inf") or time.perf_counter() - start < seconds:
            best = min(best, self._time(repeats) / repeats)
        return {"wall": best}

    def _time(self, count: int) -> float:
        self._wait()
        before = time.perf_counter()
        for _ in range(count):
            self._run()
        self._wait()
        return time.perf_counter() - before


def compile_iree(text: str, flags: list[str], cpu: str = "host") -> bytes:
    """IREE's compiler in this process: a VM flatbuffer."""
    from iree.compiler.api import Output, Session, Source

    session = Session()
    target = ["--iree-hal-target-backends=llvm-cpu", f"--iree-llvmcpu-target-cpu={cpu}", *STACK]
    session.set_flags(*target, "--iree-input-demote-f64-to-f32=false", *flags)
    invocation = session.invocation()
    if not invocation.parse_source(Source.wrap_buffer(session, text.encode() + b"\0")) or not invocation.execute():
        raise RuntimeError("IREE cannot compile the program")
    output = Output.open_membuffer()
    invocation.output_vm_bytecode(output)
    return bytes(output.map_memory())


def difference(found: Any, expected: Any) -> float:
    """The greatest, over the greatest magnitude expected."""
    if found.shape != expected.shape:
        raise RuntimeError(f"shape {found.shape}, expected {expected.shape}")
    if not expected.size:
        return 0.0
    wide = np.float64 if expected.dtype.kind == "f" else np.int64
    apart = np.abs(found.astype(wide) - expected.astype(wide)).max()
    return float(apart / max(np.abs(expected).max(), 1e-30))


def best_times(function: Run, seconds: float) -> dict[str, float]:
    """The best call, by the clock and by what it takes of processors; several short calls count as one."""
    start = time.perf_counter()
    function()
    once = time.perf_counter() - start
    repeats = max(1, int(BATCH / max(once, 1e-7)))
    wall = cpu = float("inf")
    calls = 0
    while not calls or time.perf_counter() - start < seconds:
        before, used = time.perf_counter(), time.process_time()
        for _ in range(repeats):
            function()
        cpu = min(cpu, (time.process_time() - used) / repeats)
        wall = min(wall, (time.perf_counter() - before) / repeats)
        calls += 1
    return {"wall": wall, "cpu": cpu}


def burst_times(function: Run, seconds: float) -> dict[str, float]:
    """The best call by the clock, of bursts that nothing else on the machine disturbs."""
    best = min(_bursts.times(function, seconds))
    return {"wall": best, "cpu": best}


def copying(side: Side) -> Run:
    """From one array to another, both touched before, by all threads that the side has."""
    count = COPIED // 4
    if side.kind != "torch":
        source, target = np.ones(count, np.float32), np.zeros(count, np.float32)
        return lambda: np.copyto(target, source)
    import torch

    torch.set_num_threads(side.threads)
    ones, zeros = torch.ones(count), torch.zeros(count)
    return lambda: zeros.copy_(ones)


def main() -> None:
    kind, threads, directory = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    # What libraries print must not come between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    table = works("--small" in sys.argv)
    numbers = {name: number for number, name in enumerate(table)}
    device, cpu = (
        sys.argv[sys.argv.index(option) + 1] if option in sys.argv else "" for option in ("--device", "--cpu")
    )
    side = Side(kind, threads, directory, device, cpu)
    function: Run | None = None
    copy: Run | None = None
    for line in sys.stdin:
        request = json.loads(line)
        answer: dict[str, Any] = {}
        try:
            if "load" in request:
                function = None  # the one before keeps no memory
                work, number = table[request["load"]], numbers[request["load"]]
                with np.load(directory / f"{number}.npz") as file:
                    arrays = [aligned_copy(file[f"arr_{n}"]) for n in range(len(file.files) - 1)]
                    result = file["result"]
                function = side.function(work, number, arrays, result)
                error = difference(np.asarray(function()), result)
                if not error <= TOLERANCE[str(result.dtype)]:
                    function = None
                    answer = {"error": f"wrong result: relative error {error:.1e}"}
            elif "copy" in request:
                copy = copy or copying(side)
                answer = (
                    burst_times(copy, request["burst"])
                    if "burst" in request
                    else best_times(copy, request["copy"])
                )
            elif function is None:
                answer = {"error": "not loaded"}
            elif isinstance(function, Queued):
                answer = function.best_times(request.get("burst") or request["seconds"])
            elif isinstance(function, Loop):
                bursts = "burst" in request
                answer = function.best_times(request["burst" if bursts else "seconds"], bursts)
            elif "burst" in request:
                answer = burst_times(function, request["burst"])
            else:
                answer = best_times(function, request["seconds"])
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
