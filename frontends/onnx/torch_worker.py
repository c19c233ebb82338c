"""The process in which torch-mlir imports a model: see `torch_route`. Answers ``("ok", MLIR)`` or ``("failed", why)``."""

from __future__ import annotations

import os
import pickle
import re
import sys
import warnings
from importlib import import_module
from typing import Any

from devscope.frontends.onnx.broadcasts import BROADCAST
from devscope.frontends.onnx.prepare import all_nodes
from devscope.frontends.onnx.torch_broadcasts import BROADCASTS, put_broadcasts, put_call
from devscope.frontends.onnx.torch_loops import UnsupportedLoopError, goes_on, put_loop
from devscope.frontends.torch.assertions import drop_wrong_assertions
from devscope.frontends.torch.lowering_loops import LOOP, put_loops
from devscope.frontends.torch.lowering_worker import without_last
from devscope.runtime.child_process import limit_time

_PIPELINES = (
    "builtin.module(torch-onnx-to-torch-backend-pipeline)",
    "builtin.module(torch-backend-to-linalg-on-tensors-backend-pipeline{allow-non-finites=true})",
)
_NODE = re.compile(r'error: "([^"]+)"')
_OPERATION = re.compile(r"failed to legalize operation '(?:torch\.)?([\w.]+)'")


def _imported(model: Any, resources: dict[str, str], functions: bool) -> Any:
    ir: Any = import_module("torch_mlir.ir")
    torch_dialect: Any = import_module("torch_mlir.dialects.torch")
    onnx_importer: Any = import_module("torch_mlir.extras.onnx_importer")

    data: dict[str, Any] = {}
    """Resources: a name that is parsed again is another one."""

    class Importer(onnx_importer.NodeImporter):
        """Large initializers are resources without data, loops and broadcasts are calls."""

        def _handle_node_Loop(self, node: Any) -> bool:
            (body,) = (attribute.g for attribute in node.attribute if attribute.name == "body")
            plain = goes_on(body) and len(node.input) - 1 == len(body.output)
            if plain and not any(one.op_type == BROADCAST for one in all_nodes(body)):  # torch-mlir has those
                self._forget_sizes(node, body)
                return False
            put_loop(self, onnx_importer.GraphInfo, node)
            return True

        def _handle_node_DevscopeBroadcast(self, node: Any) -> bool:
            put_call(self, node)
            return True

        def _forget_sizes(self, node: Any, body: Any) -> None:
            """Values that a loop begins with are of the body's types, which may not say as much of sizes."""
            for number, (name, info) in enumerate(zip(node.input[2:], body.input[2:], strict=True), 2):
                value, wanted = self._nv_map[name], self._cc.type_proto_to_type(info.type)
                if value.type == wanted:
                    continue
                with ir.InsertionPoint(self._b), ir.Location.name(node.name):
                    cast = ir.Operation.create("torch.tensor_static_info_cast", results=[wanted], operands=[value])
                node.input[number] = f"{node.name}.initial{number}"
                self._nv_map[node.input[number]] = cast.result

        def import_initializer(self, initializer: Any, extern_name: str | None = None) -> Any:
            name = resources.get(initializer.name) if extern_name is None else None
            if name is None:
                return super().import_initializer(initializer, extern_name)
            with ir.InsertionPoint(self._b), ir.Location.name(initializer.name):
                type_ = self._cc.tensor_proto_to_builtin_type(initializer)
                if name not in data:
                    data[name] = ir.Attribute.parse(f"dense_resource<{name}> : {type_}")
                result = self._cc.tensor_proto_to_type(initializer)
                attributes = {"value": data[name]}
                op = ir.Operation.create("torch.vtensor.literal", results=[result], attributes=attributes)
            self._nv_map[initializer.name] = op.result
            return op.result

    context = ir.Context()
    torch_dialect.register_dialect(context)
    config = onnx_importer.Config()
    if functions:
        config.function_expansion_allowlists_by_domain = None
    onnx_importer.NodeImporter = Importer
    info = onnx_importer.ModelInfo(model, config=config)
    module = info.create_module(context=context)
    Importer.define_function(info.main_graph, module.operation).import_all()
    return module


def _answer(text: bytes, resources: dict[str, str], functions: bool) -> tuple[str, str]:
    import onnx

    passmanager: Any = import_module("torch_mlir.passmanager")

    model = onnx.ModelProto.FromString(text)
    model.graph.name = "main"
    warnings.simplefilter("ignore")
    try:
        module = _imported(model, resources, functions)
    except UnsupportedLoopError as error:
        return "failed", str(error)
    except Exception as error:  # the importer raises KeyError, TypeError and more
        return "failed", f"torch-mlir's importer refuses it: {' '.join(str(error).split())[:200]}"
    names = [op.operation.attributes["sym_name"].value for op in module.body.operations]
    has_calls = any(name.startswith((LOOP, BROADCASTS)) for name in names)
    with module.context as context:
        context.emit_error_diagnostics = False
        for pipeline in _PIPELINES:
            try:
                without_last(passmanager.PassManager.parse(pipeline), has_calls).run(module.operation)
            except Exception as error:
                return "failed", _reason(str(error), model)
        put_loops(module)
        put_broadcasts(module)
    drop_wrong_assertions(module)
    return "ok", module.operation.get_asm(enable_debug_info=True)


def _reason(message: str, model: Any) -> str:
    """In terms of the model, if the message says which node it is about."""
    kinds = {node.name: node.op_type for node in model.graph.node}
    found = next((one for one in _NODE.findall(message) if one in kinds), None)
    if found is not None:
        return f"torch-mlir cannot lower {kinds[found]} as node '{found}' has it"
    operation = _OPERATION.search(message)
    if operation is not None:
        return f"torch-mlir cannot lower its operation {operation[1]}"
    lines = [line for line in message.splitlines() if "error:" in line]
    return f"torch-mlir cannot lower it: {(lines or [message])[0].strip()[:200]}"


if __name__ == "__main__":
    limit_time()
    answer = pickle.dumps(_answer(*pickle.loads(sys.stdin.buffer.read())))
    sys.stdout.buffer.write(answer)
    sys.stdout.buffer.flush()
    os._exit(0)
