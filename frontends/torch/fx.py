"""Graphs of ``torch.fx`` as modules of torch-mlir's dialect.

The graph's arguments are imported as such; those that are weights become ``torch.vtensor.literal`` then, whose
attribute has no data (`weights`). So the module stays small, and the importer touches no data.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from enum import Enum
from typing import Any

import torch
from torch_mlir.extras import fx_importer

from devscope.dialects.location import KIND_MARK, PRAGMA
from devscope.errors import LoweringError
from devscope.frontends.torch.branches import choose_of_branches
from devscope.frontends.torch.empty_tensors import fold_empty_tensors
from devscope.frontends.torch.flexible_attention import write_out_attention
from devscope.frontends.torch.loops import LoopImporter, loop_graphs
from devscope.frontends.torch.lowering_worker import CALL, LIMITS
from devscope.frontends.torch.matrix_operations import ROUTINES
from devscope.frontends.torch.places import described, frame_of, module_path
from devscope.frontends.torch.signature import ENTRY, Signature
from devscope.frontends.torch.size_arithmetic import lower_size_arithmetic, name_sizes_in_assertions
from devscope.frontends.torch.views import flatten_joined_dimensions, take_parts
from devscope.lowering.interop.bindings import without_dialect_modules
from devscope.lowering.interop.parsing import bytecode

ir: Any = importlib.import_module("torch_mlir.ir")  # its stubs are empty
# Not ``torch_mlir.dialects.torch``: its Python classes of all operations take 0.3 s and 23 MiB, and nobody asks.
torch_dialect: Any = importlib.import_module("torch_mlir._mlir_libs._torchMlir")
_OWN = "torch.devscope."


@without_dialect_modules()
def import_graph(graph: Any, signature: Signature) -> bytes:
    """Bytecode of a module whose function ``main`` is a functional graph.

    Raises LoweringError for what the importer refuses.
    """
    graph = _with_outputs(graph, signature)
    for node in graph.find_nodes(op="placeholder"):
        if isinstance(node.meta.get("val"), Enum):
            graph.erase_node(node)
    choose_of_branches(graph)
    for each in (graph, *loop_graphs(graph)):
        _prepare(each)
    context = ir.Context()
    torch_dialect.register_dialect(context)
    importer: Any = fx_importer.FxImporter(
        context=context, hooks=_Literals(signature), graph_node_importer_cls=LoopImporter
    )
    importer._cc = _Locations(context, py_attr_tracker=importer._py_attr_tracker)
    try:
        if graph.owning_module is not None:
            importer._import_all_child_modules(graph.owning_module, ENTRY)
        function = importer.import_stateless_graph(graph, func_name=ENTRY)
    except LoweringError:
        raise
    except Exception as error:
        raise LoweringError(
            f"torch-mlir does not import the program: {' '.join(str(error).split())[:600]}"
        ) from error
    _bind(function, graph, signature)
    _call_routines(importer.module)
    if signature.limits:
        flat = [number for limit in signature.limits for number in limit]
        function.attributes[LIMITS] = ir.DenseI64ArrayAttr.get(flat, function.context)
    for spec in signature.state.values():
        _return_initial(importer.module, spec.initial, signature)
    return bytecode(importer.module)


def _prepare(graph: Any) -> None:
    """Bring a graph to what torch-mlir lowers. Raises LoweringError for what there is no way to."""
    for node in graph.find_nodes(op="call_function", target=torch.ops.aten._assert_tensor_metadata.default):
        graph.erase_node(node)  # it is of types, which the importer does not all know
    choose_of_branches(graph)
    write_out_attention(graph)
    fold_empty_tensors(graph)
    flatten_joined_dimensions(graph)
    take_parts(graph)
    name_sizes_in_assertions(graph)
    lower_size_arithmetic(graph)
    _refuse_random_numbers(graph)


def _refuse_random_numbers(graph: Any) -> None:
    for node in graph.nodes:
        if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
            raise LoweringError(
                f"{str(node.target).rpartition('.')[0]} draws random numbers, which compiled programs do not"
                f"{described(node)}",
                notes=["call eval() on the module if it is not to train, or give the numbers as an argument"],
            )


def _with_outputs(graph: Any, signature: Signature) -> Any:
    """``graph`` with the results in the order of the signature, and without constants among them."""
    nodes = {node.name: node for node in graph.nodes}
    output = next(node for node in graph.nodes if node.op == "output")
    output.args = (tuple(nodes[name] for name in signature.outputs),)
    return graph


def _bind(function: Any, graph: Any, signature: Signature) -> None:
    """Make arguments of the graph those of the signature, in its order; others are weights, or unused."""
    block = function.regions[0].blocks[0]
    names = [node.name for node in graph.nodes if node.op == "placeholder"]
    arguments = dict(zip(names, list(block.arguments), strict=True))
    with function.context, ir.Location.unknown():
        for name in signature.inputs:
            old = arguments[name]
            new = block.add_argument(old.type, old.location)
            old.replace_all_uses_with(new)
        first = ir.InsertionPoint.at_block_begin(block)
        for name, old in arguments.items():
            if name in signature.bound and any(True for _ in old.uses):
                old.replace_all_uses_with(_literal(signature.bound[name], old.type, first))
        for _ in names:
            block.erase_argument(0)
        types = [argument.type for argument in block.arguments]
        results = list(function.type.results)
        function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, results))


def _call_routines(module: Any) -> None:
    """Calls of functions that nobody has, which torch-mlir leaves alone, in place of what only devscope lowers."""
    found: list[Any] = []

    def look(op: Any) -> Any:
        if op.name == "torch.operator" and op.attributes["name"].value.startswith(_OWN):
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(look)
    with module.context:
        for number, op in enumerate(found):
            routine = ROUTINES[op.attributes["name"].value.removeprefix(_OWN)]
            name, operands = f"{CALL}{routine}.{number}", list(op.operands)
            type_ = ir.FunctionType.get([value.type for value in operands], [value.type for value in op.results])
            with ir.InsertionPoint(module.body), op.location:
                fx_importer.func_dialect.FuncOp(name, type_, visibility="private")
            with ir.InsertionPoint(op), op.location:
                call = fx_importer.func_dialect.CallOp(type_.results, name, operands)
            for old, new in zip(op.results, call.results, strict=True):
                old.replace_all_uses_with(new)
            op.erase()


def _return_initial(module: Any, name: str, signature: Signature) -> None:
    """Add a function without arguments that returns what state is at first."""
    entry = next(op for op in module.body.operations if op.operation.attributes["sym_name"].value == ENTRY)
    kept = [key for key in signature.bound if key.startswith("initial ")]
    types = list(entry.type.results)[-len(kept) :]
    with module.context, ir.Location.unknown(), ir.InsertionPoint(module.body):
        function = fx_importer.func_dialect.FuncOp(name, ir.FunctionType.get([], types))
        block = function.add_entry_block()
        with ir.InsertionPoint(block):
            point = ir.InsertionPoint(block)
            values = [_literal(signature.bound[key], type_, point) for key, type_ in zip(kept, types, strict=True)]
            fx_importer.func_dialect.ReturnOp(values)


def _literal(attribute: str, type_: Any, point: Any) -> Any:
    value = ir.Attribute.parse(attribute)
    return ir.Operation.create(
        "torch.vtensor.literal", results=[type_], attributes={"value": value}, ip=point
    ).result


class _Literals(fx_importer.FxImporterHooks):
    """Tensors that stand in the graph are weights as others are."""

    def __init__(self, signature: Signature) -> None:
        self._weights = signature.weights

    def resolve_literal(self, gni: Any, literal: Any, info: Any) -> Any:
        if not isinstance(literal, torch.Tensor):
            return None
        attribute = ir.Attribute.parse(self._weights.add(literal, "a constant of the graph"))
        type_ = gni._cc.tensor_to_vtensor_type(literal)
        return ir.Operation.create(
            "torch.vtensor.literal", results=[type_], attributes={"value": attribute}
        ).result


class _Locations(fx_importer.ContextCache):
    """Types, and locations of operations: the path of the module that they are of, what they were decomposed from,
    and the device of ``with devscope.on(...)``, as names around the user's line."""

    __slots__ = ()

    def format_asm_shape(self, shape: Any) -> str:
        """Sizes that PyTorch's trace has found to be a constant, later than their tensor was made, are one."""
        sizes = [size.node.expr if isinstance(size, torch.SymInt) else size for size in shape]
        return ",".join("?" if getattr(size, "free_symbols", None) else str(size) for size in sizes)

    def get_node_location(self, node: Any) -> Any:
        frame = frame_of(node)
        line = ir.Location.file(frame[0], int(frame[1]), 0, context=self._c) if frame else None
        location = line
        for name in _names(node):
            location = ir.Location.name(name, location or ir.Location.unknown(self._c), context=self._c)
        return location


def _names(node: Any) -> Iterator[str]:
    """What the location of a node says besides the line, its module last, before it what it was made of."""
    device = (node.meta.get("custom") or {}).get(PRAGMA)
    if isinstance(device, str):
        yield f"{PRAGMA}({device})"
    targets = [node.target, *(origin.target for origin in node.meta.get("from_node") or ())]
    kinds = [".".join(str(target).split(".")[:2]) for target in reversed(targets)]
    yield from (f"{KIND_MARK}{kind}" for kind in dict.fromkeys(kinds) if kind.startswith("aten."))
    if path := module_path(node):
        yield path
