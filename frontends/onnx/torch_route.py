"""The other way for a model: torch-mlir imports it, dimensions of any size included.

Its importer and passes can end the process, so that they run in another one (`torch_worker`), which gets the model
without its large initializers and gives MLIR text back.
"""

from __future__ import annotations

import pickle
import re
import subprocess
from collections.abc import Mapping
from typing import Any

from devscope.errors import DevscopeError
from devscope.frontends.onnx.broadcasts import with_broadcasts
from devscope.frontends.onnx.devices import located
from devscope.frontends.onnx.folding import folded
from devscope.frontends.onnx.inference import inferred, inferred_with_loops, with_constants_inside
from devscope.frontends.onnx.prepare import all_nodes, with_computed_results
from devscope.frontends.onnx.types import Imported, Refused, element_of
from devscope.frontends.onnx.validity import unknown_operator
from devscope.runtime.child_process import crashed, ending, python_module

_RIGHT_TYPES = frozenset(("f16", "bf16", "f32", "f64", "i1", "i8", "i16", "i32", "i64"))
"""Of others, torch-mlir forgets the sign, or has no arithmetic."""

_WRONG: Mapping[str, str] = {
    "QLinearMatMul": "is rounded in another way",
    "QLinearConv": "is rounded in another way",
    "Resize": "takes other neighbours",
    "NonMaxSuppression": "stops for some scores",
    "InstanceNormalization": "counts elements in another way",
    "BitShift": "shifts by negative numbers in another way",
    "Scan": "writes rows where there are none",
}
"""Operators that torch-mlir imports as something else."""

_RANDOM = frozenset(
    ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")
)


_MODES = ("plain", "folded", "functions")


def import_with_torch(model: Any, outside: Mapping[str, memoryview]) -> Imported:
    """The module of a model, the function ``main``. Raises `Refused`.

    What the model declares of values inside of it may hold for the sizes of its exporter's example only; and what is
    written out may need constants that are computed.
    """
    said: list[Refused] = []
    for attempt in (lambda: model, lambda: _undeclared(model), lambda: folded(model, outside)):
        try:
            return _import(attempt(), outside)
        except Refused as refused:
            said.append(refused)
    raise said[0]


def _undeclared(model: Any) -> Any:
    result = type(model)()
    result.CopyFrom(model)
    del result.graph.value_info[:]
    return inferred(result)


def _import(model: Any, outside: Mapping[str, memoryview]) -> Imported:
    from devscope.frontends.onnx.rewrites import rewritten

    source = model
    model, outside = rewritten(with_computed_results(source), outside)
    model = inferred_with_loops(with_constants_inside(model))
    _check(model)
    model = with_broadcasts(model, outside)
    resources = {
        tensor.name: f"weight{k}" for k, tensor in enumerate(model.graph.initializer) if tensor.name in outside
    }
    said: list[str] = []
    for mode in _MODES:
        given = folded(model, resources) if mode == "folded" else model
        answer = _ask(given, resources, mode == "functions")
        if answer[0] == "ok" and _NEGATIVE.search(answer[1]) is None:
            literals = {name: outside[key] for key, name in resources.items()}
            return Imported(located(answer[1], model), _dtypes(source), literals)
        said.append("torch-mlir loses track of a dimension" if answer[0] == "ok" else answer[1])
    raise Refused(min(said, key=len))


_NEGATIVE = re.compile(r"tensor<[0-9?x]*-\d")


def _check(model: Any) -> None:
    infos = [*model.graph.input, *model.graph.value_info, *model.graph.output]
    for info in infos:
        kind = info.type.WhichOneof("value")
        if kind != "tensor_type":
            what = (kind or "unknown type").replace("_type", "").replace("_", " ")
            raise Refused(f"'{info.name}' is of type {what}, not a tensor")
        number = info.type.tensor_type.elem_type
        element = element_of(number) if number else "f32"
        if element not in _RIGHT_TYPES:
            raise Refused(f"'{info.name}' has elements of type {element} and dimensions known at run time only")
        if number and not info.type.tensor_type.HasField("shape"):
            raise Refused(
                unknown_operator(model) or f"'{info.name}' has as many dimensions as are known at run time only"
            )
    for node in all_nodes(model.graph):
        if node.op_type in _RANDOM:
            raise Refused(f"operator {node.op_type} is not supported: it is random")
        if why := _WRONG.get(node.op_type):
            raise Refused(f"{node.op_type} of shapes known at run time only: torch-mlir's {why}")


def _dtypes(model: Any) -> tuple[list[str], list[str]]:
    initialised = {tensor.name for tensor in model.graph.initializer}
    inputs = [one for one in model.graph.input if one.name not in initialised]
    return tuple(
        [element_of(one.type.tensor_type.elem_type) for one in part] for part in (inputs, model.graph.output)
    )  # pyright: ignore[reportReturnType]


def _ask(model: Any, resources: Mapping[str, str], functions: bool) -> tuple[str, str]:
    command = python_module("devscope.frontends.onnx.torch_worker")
    given = pickle.dumps((model.SerializeToString(), dict(resources), functions))
    process = subprocess.run(command, input=given, capture_output=True, check=False)
    if process.returncode == 0:
        return pickle.loads(process.stdout)
    said = process.stderr.decode(errors="replace")
    if not crashed(process.returncode):
        raise DevscopeError(f"the process that imports the model failed: {ending(process.returncode, said)}")
    return "failed", "torch-mlir's importer does not survive it"
