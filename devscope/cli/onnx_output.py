"""``devscope plan model.onnx -o annotated.onnx``: a model that says where its nodes run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from devscope.cli.files import write_output
from devscope.errors import InputError, OptionError

if TYPE_CHECKING:
    from devscope.passes.device_plan import Plan
    from devscope.source import PipedSource


def require_model(source: Path | PipedSource) -> Path:
    """The model whose plan is to be written. Raises OptionError for what is no model in a file."""
    if not isinstance(source, Path) or source.suffix != ".onnx":
        raise OptionError("--output writes ONNX models", notes=["the program must be a file that ends in .onnx"])
    return source


def write_annotated(source: Path, output: str, plan: Plan) -> int:
    """Write the model with ``device_configurations`` of its nodes; of how many is returned.

    A node is where most of its work is. Raises InputError for a model whose weights lie outside and would not be
    found from another folder.
    """
    import onnx

    from devscope.frontends.onnx.devices import annotate

    model = onnx.load(source, load_external_data=False)
    outside = any(tensor.data_location == onnx.TensorProto.EXTERNAL for tensor in model.graph.initializer)
    if outside and Path(output).resolve().parent != source.resolve().parent:
        raise InputError(f"the weights of '{source}' lie beside it", notes=["write the model to the same folder"])
    devices = _devices(plan, {node.name for node in model.graph.node if node.name})
    annotate(model, devices)
    write_output(output, model.SerializeToString())
    return len(devices)


def _devices(plan: Plan, nodes: set[str]) -> dict[str, str]:
    from devscope.passes.device_place.operation_view import OperationView

    most: dict[str, tuple[float, str]] = {}
    for placement in plan.placements:
        view = OperationView(placement.operation)
        node = next((name for name in view.names if name in nodes), None)
        work = view.flops + view.bytes
        if node is not None and work > most.get(node, (0.0, ""))[0]:
            most[node] = work, placement.scope.short()
    return {node: device for node, (_, device) in most.items()}
