"""One side of `models.py`, in a process of its own: it compiles a model, then calls it when it is told to.

    python _model_peer.py devscope|eager|compile|onnxruntime|iree MODEL THREADS DIRECTORY

The first line that it prints is ``{"first": S}``: seconds from the model and its inputs, which are in memory, to
the first result, the import of the compiler included; or an ``error``. Then every line of standard input is a JSON
object: ``{"seconds": S}`` calls it for that long, the answer is the best ``wall`` seconds of a call;
``{"peak": 1}`` asks for the most memory that the process has had, in MiB. The first result is compared with that
in DIRECTORY, or written there by the side that is the reference.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _models import magika_file, magika_input, network

TOLERANCE = 1e-3
"""Of the greatest magnitude of a result."""
REFERENCE = {"magika": "onnxruntime"}

Call = Callable[[], Any]


def make(side: str, name: str, threads: int, directory: Path) -> tuple[Callable[[], Call], bool]:
    """What compiles a model and makes a function of no arguments of it."""
    import torch

    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    if name == "magika":
        file, array = magika_file(), magika_input()
        if file is None or side in ("eager", "compile"):
            raise SystemExit(0)
        source: Any = str(file)
        examples: tuple[Any, ...] = ()
        arrays = [array]
    else:
        source, examples = network(name)
        arrays = [example.numpy() for example in examples]

    def with_devscope() -> Call:
        import devscope

        program = devscope.compile(source, examples or None)
        return lambda: program(*arrays)

    def with_compile() -> Call:
        compiled = torch.compile(source)
        return lambda: compiled(*examples)

    def with_onnxruntime() -> Call:
        import onnxruntime

        file = source
        if examples:
            file = str(directory / f"{name}.onnx")
            torch.onnx.export(source, examples, file, dynamo=False, opset_version=17)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        session = onnxruntime.InferenceSession(file, options)
        given = {each.name: array for each, array in zip(session.get_inputs(), arrays, strict=True)}
        return lambda: session.run(None, given)

    def with_iree() -> Call:
        import iree.runtime as runtime
        from _kernel_peer import compile_iree

        code = compile_iree(linalg_text(source, examples), ["--iree-opt-level=O3"])
        runtime.flags.parse_flags(f"--task_topology_max_group_count={threads}")
        driver = runtime.get_driver("local-sync" if threads == 1 else "local-task")
        config = runtime.Config(device=driver.create_default_device(allocators=["caching"]))
        module = runtime.load_vm_module(runtime.VmModule.copy_buffer(config.vm_instance, code), config)
        inputs = [runtime.asdevicearray(config.device, array) for array in arrays]
        function = next(module[each] for each in module.vm_module.function_names if not each.startswith("__"))
        return lambda: function(*inputs)

    kinds = {
        "devscope": with_devscope,
        "eager": lambda: lambda: source(*examples),
        "compile": with_compile,
        "onnxruntime": with_onnxruntime,
        "iree": with_iree,
    }
    return kinds[side], REFERENCE.get(name, "eager") == side


def linalg_text(source: Any, examples: tuple[Any, ...]) -> str:
    """What devscope's importer makes of the model, with weights in the text."""
    from devscope.frontends import DeferredSource, imported

    found = imported(source, examples or None, None)
    if isinstance(found, DeferredSource):
        found = found.read()
    text = found.data.decode()
    blobs = ",\n".join(f'{name}: "0x40000000{bytes(data).hex()}"' for name, data in found.literals.items())
    return f"{text}\n{{-# dialect_resources: {{ builtin: {{ {blobs} }} }} #-}}\n"


def flat(result: Any) -> list[Any]:
    results = result if isinstance(result, tuple | list) else [result]
    return [np.asarray(each) for each in results]


def check(result: Any, file: Path, is_reference: bool) -> None:
    """Raise RuntimeError for a result that is not the reference's; without one, any is taken."""
    found = flat(result)
    if is_reference:
        np.savez(file, *found)
    if is_reference or not file.exists():
        return
    with np.load(file) as expected:
        for one, name in zip(found, expected.files, strict=True):
            error = float(np.abs(one - expected[name]).max() / np.abs(expected[name]).max())
            if not error <= TOLERANCE:
                raise RuntimeError(f"wrong result: relative error {error:.1e}")


def best(call: Call, seconds: float) -> float:
    end, least = time.perf_counter() + seconds, float("inf")
    while time.perf_counter() < end:
        start = time.perf_counter()
        call()
        least = min(least, time.perf_counter() - start)
    return least


def main() -> None:
    side, name, threads, directory = sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4])
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print must not come between the answers
    compiler, is_reference = make(side, name, threads, directory)
    start = time.perf_counter()
    try:
        call = compiler()
        result = call()
        answer = {"first": time.perf_counter() - start}
        check(result, directory / f"{name}.npz", is_reference)
        del result
    except Exception as error:
        answer = {"error": f"{type(error).__name__}: {str(error)[:300]}"}
    print(json.dumps(answer), file=answers, flush=True)
    if "error" in answer:
        return
    for line in sys.stdin:
        request = json.loads(line)
        if "peak" in request:
            answer = {"peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}
        else:
            answer = {"wall": best(call, request["seconds"])}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
