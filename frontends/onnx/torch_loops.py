"""Loops of a model that torch-mlir imports: as calls of functions, which `lowering_loops` makes loops of `scf` of.

torch-mlir's own does not look at a condition, and has no rows of trips whose number is known at run time only. What
a loop does is a function of the module, which torch-mlir lowers as it does others.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from devscope.frontends.onnx.broadcasts import BROADCAST
from devscope.frontends.onnx.inference import captured, inferred_with_loops
from devscope.frontends.torch.lowering_loops import KIND, LOOP, PARTS, SIZES

_ELEMENTS = {
    "f16": TensorProto.FLOAT16,
    "bf16": TensorProto.BFLOAT16,
    "f32": TensorProto.FLOAT,
    "f64": TensorProto.DOUBLE,
    "i1": TensorProto.BOOL,
    "si8": TensorProto.INT8,
    "si32": TensorProto.INT32,
    "si64": TensorProto.INT64,
}
_TYPE = re.compile(r"!torch\.vtensor<\[(.*)\],(\w+)>")

_Dims = list[Any]
_Type = tuple[int, _Dims]
"""An element type, and sizes: numbers, or names of those that are known at run time."""


class UnsupportedLoopError(Exception):
    """Why a loop has no place here."""


def goes_on(body: Any) -> bool:
    """Whether a loop's body only hands its condition on."""
    name = body.output[0].name
    made = {output: node for node in body.node for output in node.output}
    while name in made and made[name].op_type == "Identity":
        name = made[name].input[0]
    return name == body.input[1].name


def put_loop(importer: Any, graph_info: Any, node: Any) -> None:
    """A call in the place of a loop: ``importer`` of torch-mlir imports the graph that ``node`` is in.

    ``graph_info``: torch-mlir's class of what is known of a graph. Raises UnsupportedLoopError.
    """
    _Loop(importer, graph_info, node).put()


class _Loop:
    def __init__(self, importer: Any, graph_info: Any, node: Any) -> None:
        self._importer, self._graph_info, self._node = importer, graph_info, node
        (self._body,) = (attribute.g for attribute in node.attribute if attribute.name == "body")
        self._ir: Any = import_module("torch_mlir.ir")
        self._block = importer._m.regions[0].blocks[0]
        self._name = f"{LOOP}{len(self._block.operations)}"
        self._count = len(node.input) - 2
        self._step, self._going, *self._carried = [one.name for one in self._body.input]
        known = importer._gi.initializer_map
        taken = list(dict.fromkeys(captured(self._body)))
        self._constants = [_named(known[name], name) for name in taken if name in known]
        self._others = [name for name in taken if name not in known]
        wider = {one.output[0] for one in self._body.node if one.op_type == BROADCAST}
        self._broadcasts = [one for one in self._body.value_info if one.name in wider]
        """What ONNX does not infer."""

    def put(self) -> None:
        limit, going = self._node.input[:2]
        limit = limit and self._scalar(limit, TensorProto.INT64)
        going = self._scalar(going, TensorProto.BOOL) if going else self._constant(np.array(True))
        start = list(self._node.input[2:])
        carried, rows = self._types(start)
        if goes_on(self._body) and limit:
            self._scan(limit, going, start, carried, rows)
        else:
            self._repeat(limit, going, start, carried, rows)

    # What is known of values.

    def _type(self, name: str) -> _Type:
        found = _TYPE.fullmatch(str(self._importer._nv_map[name].type))
        if found is None or found[2] not in _ELEMENTS:
            raise UnsupportedLoopError("a loop of elements of another type")
        proto: Any = self._importer._gi.find_type_proto_for_name(name)
        said = [dim.dim_param for dim in proto.tensor_type.shape.dim] if proto else []
        sizes = found[1].split(",") if found[1] else []
        names = said if len(said) == len(sizes) else [""] * len(sizes)
        dims = [(names[at] or f"{name}.{at}") if size == "?" else int(size) for at, size in enumerate(sizes)]
        return _ELEMENTS[found[2]], dims

    def _types(self, start: list[str]) -> tuple[list[_Type], list[_Type]]:
        """Of what is carried, where sizes that change have names of their own, and of rows."""
        carried = [self._type(name) for name in start]
        while True:
            counters = [(self._step, (TensorProto.INT64, [])), (self._going, (TensorProto.BOOL, []))]
            inputs = [*counters, *zip(self._carried, carried, strict=True)]
            found = self._inferred(inputs, [one.name for one in self._body.output])
            made = [_type_of(found, one) for one in self._body.output[1:]]
            joined = [_joined(self._name, n, *each) for n, each in enumerate(zip(carried, made, strict=False))]
            if joined == carried:
                return carried, made[self._count :]
            carried = joined

    def _inferred(self, inputs: Any, outputs: Any, nodes: Any = (), constants: Any = ()) -> Any:
        """A graph of what the body does, and ``nodes`` behind it, with inferred types."""
        given = [*inputs, *((name, self._type(name)) for name in self._others)]
        graph = helper.make_graph(
            [*self._body.node, *nodes],
            self._name,
            [helper.make_tensor_value_info(name, element, dims) for name, (element, dims) in given],
            [onnx.ValueInfoProto(name=name) for name in outputs],
            [*self._body.initializer, *self._constants, *constants],
            value_info=self._broadcasts,
        )
        source = self._importer._gi.model_info.model_proto
        model = helper.make_model(graph, opset_imports=source.opset_import, functions=source.functions)
        return inferred_with_loops(model).graph

    # What is put around the loop.

    def _add(self, kind: str, inputs: list[str], type_: _Type, **attributes: Any) -> str:
        """A node in front of the loop; its result."""
        name = f"{self._name}.{kind}.{len(self._importer._gi.value_info_map)}"
        self._importer._gi.value_info_map[name] = helper.make_tensor_value_info(name, type_[0], _sizes(type_[1]))
        self._importer.import_node(helper.make_node(kind, inputs, [name], self._node.name, **attributes))
        return name

    def _constant(self, array: Any) -> str:
        name = f"{self._name}.constant.{len(self._importer._gi.initializer_map)}"
        tensor = array if isinstance(array, TensorProto) else numpy_helper.from_array(array)
        tensor = _named(tensor, name)
        self._importer._gi.initializer_map[name] = tensor
        self._importer.import_initializer(tensor)
        return name

    def _scalar(self, name: str, element: int) -> str:
        """A number that may stand in a tensor with a dimension."""
        if not self._type(name)[1]:
            return name
        return self._add("Reshape", [name, self._constant(np.zeros(0, np.int64))], (element, []))

    def _scan(self, limit: str, going: str, start: list[str], carried: list[_Type], rows: list[_Type]) -> None:
        """A step for each number below the limit, none where the loop is not to begin."""
        begins = self._add("Cast", [going], (TensorProto.INT64, []), to=TensorProto.INT64)
        trips = self._add("Mul", [limit, begins], (TensorProto.INT64, []))
        zero, one = (self._constant(np.array(number)) for number in (0, 1))
        numbers = self._add("Range", [zero, trips, one], (TensorProto.INT64, [None]))
        inputs = [*zip(self._carried, carried, strict=True), (self._step, (TensorProto.INT64, []))]
        outputs = [one.name for one in self._body.output[1:]]
        always = numpy_helper.from_array(np.array(True), self._going)
        body = self._function("body", inputs, outputs, [*carried, *rows], constants=[always])
        operands = [*start, numbers, *self._others]
        places = self._places(operands)
        sizes = [
            at
            for _, dims in rows
            for dim in dims
            if isinstance(dim, str) or dim is None
            for at in _found(places, dim)
        ]
        results = [*carried, *((element, [None, *dims]) for element, dims in rows)]
        self._call("scan", [body], operands, [self._count, 1], results, sizes, 0)

    def _repeat(self, limit: str, going: str, start: list[str], carried: list[_Type], rows: list[_Type]) -> None:
        """As long as the condition holds; what a trip gives is put behind the rows of those before."""
        places = self._places([*start, *self._others])
        first = [self._nothing(row, [*start, *self._others], places) for row in rows]
        kept = [(f"{self._name}.rows.{n}", (element, [None, *dims])) for n, (element, dims) in enumerate(rows)]
        inputs = [
            *((self._step, (TensorProto.INT64, [])), (self._going, (TensorProto.BOOL, []))),
            *(*zip(self._carried, carried, strict=True), *kept),
        ]
        last = f"{self._name}.limit"
        one, scalar, axis = (f"{self._name}.{name}" for name in ("one", "scalar", "axis"))
        constants = [
            numpy_helper.from_array(np.array(value, np.int64), name)
            for name, value in ((one, 1), (scalar, []), (axis, [0]))
        ]
        again, *made = [output.name for output in self._body.output]
        nodes = [
            helper.make_node("Add", [self._step, one], [f"{self._name}.next"]),
            helper.make_node("Reshape", [again, scalar], [f"{self._name}.again"]),
        ]
        for (name, _), row in zip(kept, made[self._count :], strict=True):
            nodes.append(helper.make_node("Unsqueeze", [row, axis], [f"{name}.row"]))
            nodes.append(helper.make_node("Concat", [name, f"{name}.row"], [f"{name}.next"], axis=0))
        outputs = [
            *(f"{self._name}.next", f"{self._name}.again"),
            *(*made[: self._count], *(f"{name}.next" for name, _ in kept)),
        ]
        types = [type_ for _, type_ in inputs]
        limited = [(last, (TensorProto.INT64, []))] if limit else []
        body = self._function("body", inputs, outputs, types, limited, nodes, constants)
        goes = [helper.make_node("Identity", [self._going], [f"{self._name}.goes"])]
        if limit:
            goes = [
                helper.make_node("Less", [self._step, last], [f"{self._name}.less"]),
                helper.make_node("And", [self._going, f"{self._name}.less"], [f"{self._name}.goes"]),
            ]
        condition = self._function(
            "condition", inputs, [f"{self._name}.goes"], [(TensorProto.BOOL, [])], limited, goes, only=True
        )
        zero = self._constant(np.array(0))
        operands = [zero, going, *start, *first, *self._others, *([limit] if limit else [])]
        self._call("while", [condition, body], operands, [len(inputs)], types, [], 2)

    def _places(self, operands: list[str]) -> dict[str, tuple[int, int]]:
        """Of each size with a name, an operand and its dimension."""
        found: dict[str, tuple[int, int]] = {}
        for number, name in enumerate(operands):
            for at, dim in enumerate(self._type(name)[1]):
                if isinstance(dim, str):
                    found.setdefault(dim, (number, at))
        return found

    def _nothing(self, row: _Type, operands: list[str], places: dict[str, tuple[int, int]]) -> str:
        """No rows."""
        element, dims = row
        if all(isinstance(dim, int) for dim in dims):
            return self._constant(helper.make_tensor("", element, [0, *dims], []))
        sizes = [self._constant(np.array([0]))]
        for dim in dims:
            if isinstance(dim, int):
                sizes.append(self._constant(np.array([dim])))
                continue
            number, at = _found(places, dim)
            shape = self._add(
                "Shape", [operands[number]], (TensorProto.INT64, [len(self._type(operands[number])[1])])
            )
            sizes.append(self._add("Gather", [shape, self._constant(np.array([at]))], (TensorProto.INT64, [1])))
        shape = self._add("Concat", sizes, (TensorProto.INT64, [1 + len(dims)]), axis=0)
        value = helper.make_tensor("", element, [1], [0])
        return self._add("ConstantOfShape", [shape], (element, [None, *dims]), value=value)

    def _function(
        self,
        name: str,
        inputs: Any,
        outputs: list[str],
        types: list[_Type],
        more: Any = (),
        nodes: Any = (),
        constants: Any = (),
        *,
        only: bool = False,
    ) -> str:
        """The name of a new function; ``only``: of ``nodes`` alone, without those of the body."""
        graph = self._inferred(inputs, outputs, nodes, constants)
        if only:
            del graph.node[: len(self._body.node)]
        for given, (element, dims) in more:
            graph.input.append(helper.make_tensor_value_info(given, element, dims))
        graph.name = f"{self._name}.{name}"
        for one, (element, dims) in zip(graph.output, types, strict=True):
            one.CopyFrom(helper.make_tensor_value_info(one.name, element, _sizes(dims)))
        names = {one.name for one in graph.output}  # whose types are looked for among the other values at first
        others = [one for one in graph.value_info if one.name not in names]
        del graph.value_info[:]
        graph.value_info.extend(others)
        info = self._graph_info(self._importer._gi.model_info, graph)
        made = type(self._importer).define_function(
            info, self._importer._m, self._importer._cc, self._importer._mc
        )
        made.import_all()
        return graph.name

    def _call(
        self,
        kind: str,
        parts: list[str],
        operands: list[str],
        counts: list[int],
        results: list[_Type],
        sizes: list[int],
        before: int,
    ) -> None:
        """``before``: how many of the results are none of the loop's."""
        ir, importer = self._ir, self._importer
        values = [importer._nv_map[name] for name in operands]
        protos = [helper.make_tensor_type_proto(element, _sizes(dims)) for element, dims in results]
        types = [importer._cc.type_proto_to_type(proto) for proto in protos]
        numbers = ir.DenseI64ArrayAttr.get
        with ir.Location.name(self._node.name), ir.InsertionPoint(self._block):
            function = ir.Operation.create(
                "func.func",
                regions=1,
                attributes={
                    "sym_name": ir.StringAttr.get(self._name),
                    "sym_visibility": ir.StringAttr.get("private"),
                    "function_type": ir.TypeAttr.get(ir.FunctionType.get([one.type for one in values], types)),
                    KIND: ir.ArrayAttr.get([ir.StringAttr.get(kind), numbers(counts)]),
                    PARTS: ir.ArrayAttr.get([ir.StringAttr.get(part) for part in parts]),
                    SIZES: numbers(sizes),
                },
            )
        importer._populate_graph_attrs(function)
        with ir.Location.name(self._node.name), ir.InsertionPoint(importer._b):
            callee = {"callee": ir.FlatSymbolRefAttr.get(self._name)}
            made = ir.Operation.create("func.call", types, values, callee).results
            for name, value in zip(self._node.output, list(made)[before:], strict=False):
                importer._nv_map[name] = self._as_declared(name, value)

    def _as_declared(self, name: str, value: Any) -> Any:
        """With the sizes that the graph says a result has."""
        proto: Any = self._importer._gi.find_type_proto_for_name(name)
        wanted = self._importer._cc.type_proto_to_type(proto) if proto else value.type
        ranks = [len(_dims(str(type_))) for type_ in (wanted, value.type)]
        if wanted == value.type or ranks[0] != ranks[1]:
            return value
        return self._ir.Operation.create("torch.tensor_static_info_cast", [wanted], [value]).result


def _dims(type_: str) -> list[str]:
    found = _TYPE.fullmatch(type_)
    return found[1].split(",") if found and found[1] else []


def _named(tensor: Any, name: str) -> Any:
    result = TensorProto()
    result.CopyFrom(tensor)
    result.name = name
    return result


def _sizes(dims: _Dims) -> _Dims:
    """Without the names of others than numbers."""
    return [dim if isinstance(dim, int) else None for dim in dims]


def _type_of(graph: Any, declared: Any) -> _Type:
    """Of a result of a loop's body: as inferred, and as the body says where that is not all."""
    known = [one for one in (*graph.output, *graph.value_info, *graph.input) if one.name == declared.name]
    said = [one.type.tensor_type for one in (*known, declared)]
    shapes = [
        [dim.dim_value or dim.dim_param or None for dim in one.shape.dim] for one in said if one.HasField("shape")
    ]
    element = next((one.elem_type for one in said if one.elem_type), 0)
    if not shapes or not element:
        raise UnsupportedLoopError(f"a loop whose '{declared.name}' is of unknown rank")
    alike = [shape for shape in shapes if len(shape) == len(shapes[0])]
    return element, [_most_precise(dims) for dims in zip(*alike, strict=True)]


def _most_precise(dims: Any) -> Any:
    """A number, or else the name of what was inferred: those that the body has are its own."""
    return next((dim for dim in dims if isinstance(dim, int)), dims[0])


def _joined(loop: str, number: int, one: _Type, other: _Type) -> _Type:
    """Sizes that differ have a name of their own."""
    if one[0] != other[0] or len(one[1]) != len(other[1]):
        raise UnsupportedLoopError("a loop of values that change their ranks")
    pairs = enumerate(zip(one[1], other[1], strict=True))
    return one[0], [a if a == b else f"{loop}.{number}.{at}" for at, (a, b) in pairs]


def _found(places: dict[str, tuple[int, int]], dim: Any) -> tuple[int, int]:
    if dim not in places:
        raise UnsupportedLoopError("a loop whose rows have a size that none of its operands has")
    return places[dim]
