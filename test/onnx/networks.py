"""The networks without weights that come with onnx, given random ones: ``networks.py [--log FILE] [NAME...]``.

On the host, on OpenCL and split by rules; compared with onnxruntime, both what comes out and what goes into the
softmax at the end: a softmax of large numbers is 0 and 1 whatever comes before. What is
in the log is not done again; ``--write`` writes ``docs/conformance/onnx_networks.md``.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

import devscope

TOLERANCE = 1e-4
"""Of the largest element of a result."""
PLACEMENTS: dict[str, dict[str, Any]] = {
    "cpu:0": {"default": "cpu:0"},
    "opencl:0": {"default": "opencl:0"},
    "split": {
        "place": [
            {"op": ["Conv", "Gemm"], "location": "n*[02468]", "device": "opencl:0"},
            {"device": "cpu:0"},
        ]
    },
}
TABLE = Path(__file__).parents[2] / "docs" / "conformance" / "onnx_networks.md"
_FOLDER = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


def names() -> list[str]:
    return sorted(path.stem.removeprefix("light_") for path in _FOLDER.glob("*.onnx"))


def network(name: str) -> Any:
    """The model, whose weights, made of a shape, become initializers of numbers as large as networks have.

    Its results: what it computes, and what its last softmax gets."""
    model = onnx.load(_FOLDER / f"light_{name}.onnx")
    graph, rng = model.graph, np.random.default_rng(7)
    constants = {tensor.name: tensor for tensor in graph.initializer}
    users: dict[str, list[tuple[Any, int]]] = {}
    for node in graph.node:
        for number, value in enumerate(node.input):
            users.setdefault(value, []).append((node, number))
    kept, made = [], []
    for node in graph.node:
        if node.op_type == "ConstantOfShape" and node.input[0] in constants:
            shape = tuple(int(n) for n in numpy_helper.to_array(constants[node.input[0]]))
            numbers = _numbers(rng, shape, *_role(users, node.output[0]))
            made.append(numpy_helper.from_array(numbers.astype(np.float32), node.output[0]))
        else:
            kept.append(node)
    used = {value for node in kept for value in node.input}
    old = [tensor for tensor in graph.initializer if tensor.name in used]
    inputs = [one for one in graph.input if one.name not in constants]
    for field, values in (("node", kept), ("initializer", [*old, *made]), ("input", inputs)):
        graph.ClearField(field)
        getattr(graph, field).extend(values)
    last = graph.node[-1]
    if last.op_type == "Softmax":
        graph.output.append(onnx.helper.make_tensor_value_info(last.input[0], onnx.TensorProto.FLOAT, None))
    model.ir_version = 8
    return model


def _role(users: dict[str, list[tuple[Any, int]]], name: str) -> tuple[str, int]:
    """The operator that a weight is for, and which of its operands it is."""
    for node, number in users.get(name, ()):
        if node.op_type != "Unsqueeze":
            return node.op_type, number
        return _role(users, node.output[0])
    return "", 0


def _numbers(rng: np.random.Generator, shape: tuple[int, ...], kind: str, number: int) -> np.ndarray:
    if kind == "BatchNormalization":
        around = rng.standard_normal(shape) * 0.1
        return {1: 1 + around, 2: around, 3: around, 4: 0.5 + rng.random(shape)}[number]
    if kind == "Mul":
        return 1 + rng.standard_normal(shape) * 0.1
    if len(shape) > 1:
        return rng.standard_normal(shape) * np.sqrt(2 / np.prod(shape[1:]))
    return 0.05 * rng.standard_normal(shape)


def differences(name: str, placements: Sequence[str]) -> Iterator[tuple[str, float, float, float]]:
    """For each placement the difference from onnxruntime's results, seconds to compile, and of the second call."""
    if not placements:
        return
    import onnxruntime

    model = network(name)
    (given,) = model.graph.input
    x = np.random.default_rng(1).standard_normal((1, 3, 224, 224), np.float32)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    wants: Any = session.run(None, {given.name: x})
    del session
    for placement in placements:
        start = time.perf_counter()
        with devscope.compile(model, cache=False, **PLACEMENTS[placement]) as program:
            compiled = time.perf_counter() - start
            program(x)
            start = time.perf_counter()
            got = program(x)
            call = time.perf_counter() - start
            found = got if isinstance(got, tuple) else (got,)
            pairs = zip(found, wants, strict=True)
            yield placement, max(float(np.abs(g - w).max() / np.abs(w).max()) for g, w in pairs), compiled, call


_HEAD = """# Networks of the package onnx

`test/onnx/networks.py` (`make onnx`): the nine networks that come with the package onnx without weights, given
random ones, with an image of random numbers, on the host, on a device and split: convolutions and products whose
nodes have even numbers on `opencl:0`, the rest on `cpu:0`, by rules. Results, and what the softmax at the end
gets, are compared with onnxruntime's: the largest difference, as a part of the largest element. The limit is
{tolerance:.0e}.

| network | {placements} |
|---|{lines}|
"""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", default=names())
    parser.add_argument("--log", type=Path)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    lines = given.log.read_text().splitlines() if given.log and given.log.exists() else []
    table = {(name, placement): float(found) for name, placement, found in map(str.split, lines)}
    for name in given.names:
        for placement, found, compiled, call in differences(
            name, [one for one in PLACEMENTS if (name, one) not in table]
        ):
            table[name, placement] = found
            times = f"compiled in {compiled:.1f} s, {call * 1e3:.0f} ms a call"
            print(f"{name} on {placement}: within {found:.1e}, {times}", flush=True)
            if given.log:
                with given.log.open("a") as log:
                    log.write(f"{name} {placement} {found}\n")
    if any(not found <= TOLERANCE for found in table.values()):
        sys.exit(f"further than {TOLERANCE} from onnxruntime: {table}")
    if given.write:
        placements, lines = " | ".join(PLACEMENTS), "|".join("---" for _ in PLACEMENTS)
        text = _HEAD.format(tolerance=TOLERANCE, placements=placements, lines=lines)
        for name in given.names:
            text += f"| {name} | {' | '.join(f'{table[name, one]:.1e}' for one in PLACEMENTS)} |\n"
        TABLE.write_text(text)


if __name__ == "__main__":
    main()
