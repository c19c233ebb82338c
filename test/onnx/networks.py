"""The networks without weights that come with onnx, given random ones, on devscope: ``networks.py [NAME...]``.

What comes out is compared with onnxruntime: relative to the largest element, 1e-3.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

import devscope

TOLERANCE = 1e-3
_FOLDER = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


def names() -> list[str]:
    return sorted(path.stem.removeprefix("light_") for path in _FOLDER.glob("*.onnx"))


def network(name: str) -> Any:
    """The model, whose weights, made of a shape, become initializers of numbers as large as networks have."""
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


def difference(name: str, target: str) -> tuple[float, float, float]:
    """From onnxruntime's results, as a part of the largest element; seconds to compile, and of a call."""
    import onnxruntime

    model = network(name)
    (given,) = model.graph.input
    x = np.random.default_rng(1).standard_normal((1, 3, 224, 224), np.float32)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    want: Any = session.run(None, {given.name: x})[0]
    start = time.perf_counter()
    program = devscope.compile(model, default=target, cache=False)
    compiled = time.perf_counter() - start
    got = program(x)
    start = time.perf_counter()
    program(x)
    return float(np.abs(got - want).max() / np.abs(want).max()), compiled, time.perf_counter() - start


def main() -> None:
    wrong = 0
    for name in sys.argv[1:] or names():
        for target in ("cpu:0", "opencl:0"):
            found, compiled, call = difference(name, target)
            wrong += not found <= TOLERANCE
            times = f"compiled in {compiled:.1f} s, {call * 1e3:.0f} ms a call"
            print(f"{name} on {target}: within {found:.1e}, {times}", flush=True)
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
