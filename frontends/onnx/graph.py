"""ONNX graphs of static shapes, node by node, as StableHLO: constants are folded, functions expanded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from devscope.frontends.onnx import contributed
from devscope.frontends.onnx.builder import Builder, Value
from devscope.frontends.onnx.devices import location_of
from devscope.frontends.onnx.rewriter import Graph, tensor_of
from devscope.frontends.onnx.types import DTYPES, Refused, SizesDiffer, UnknownShape, element_of
from devscope.frontends.onnx.validity import not_supported


class Elements(tuple["Value | np.ndarray[Any, Any] | Elements", ...]):
    """A sequence; how many elements it has is known as the model is imported."""


class Maybe(Elements):
    """An optional value: one or none."""


Held = Value | np.ndarray[Any, Any] | Elements
Lowering = Callable[["Node"], "Held | Sequence[Held | None]"]

OPERATORS: dict[str, Lowering] = {}
"""By name; of the domain of ONNX, or ``DOMAIN.NAME``."""

_MOST_FOLDED = 1 << 16
"""Elements of a constant that is computed."""

_NEVER_FOLDED = frozenset(
    [
        "If",
        "Loop",
        "Scan",
        "RandomNormal",
        "RandomUniform",
        "RandomNormalLike",
        "RandomUniformLike",
        "Bernoulli",
        "Multinomial",
    ]
)


_KEEPS_SHAPE = frozenset(
    ("Abs", "Cast", "CastLike", "Ceil", "Exp", "Floor", "Identity", "Log", "Neg", "Not", "Sqrt")
)


def operator(*names: str) -> Callable[[Lowering], Lowering]:
    """Registers what lowers operators of these names."""

    def register(lowering: Lowering) -> Lowering:
        OPERATORS.update(dict.fromkeys(names, lowering))
        return lowering

    return register


class Node:
    """An operator with its operands, for what lowers it."""

    def __init__(self, scope: Scope, proto: Any) -> None:
        self.scope = scope
        self.b = scope.b
        self.proto = proto
        self.opset = scope.opset(proto.domain)
        self.attributes = {a.name: helper.get_attribute_value(a) for a in proto.attribute}

    def __len__(self) -> int:
        return len(self.proto.input)

    def has(self, number: int) -> bool:
        return number < len(self.proto.input) and self.proto.input[number] != ""

    def __getitem__(self, number: int) -> Value:
        if not self.has(number):
            raise Refused(f"{self.proto.op_type} without its operand {number}")
        return self.scope.value(self.proto.input[number])

    def get(self, number: int) -> Value | None:
        return self[number] if self.has(number) else None

    @property
    def inputs(self) -> list[Value]:
        return [self[number] for number in range(len(self))]

    def held(self, number: int) -> Held:
        return self.scope.held(self.proto.input[number])

    def known(self, number: int) -> np.ndarray[Any, Any] | None:
        """The elements of an operand, if the model has them."""
        return self.scope.known.get(self.proto.input[number]) if self.has(number) else None

    def integers(self, number: int, what: str) -> list[int]:
        """Elements of an operand that has to be known. Raises `Refused`."""
        found = self.known(number)
        if found is None:
            raise Refused(f"{self.proto.op_type} whose {what} is computed at run time")
        return [int(one) for one in np.asarray(found).reshape(-1)]

    def optional_integers(self, name: str, number: int) -> list[int] | None:
        """An attribute of older versions that became an operand; None where there is neither."""
        if name in self.attributes:
            found = self.attributes[name]
            return [int(found)] if isinstance(found, int) else [int(one) for one in found]
        return self.integers(number, name) if self.has(number) else None

    def attr(self, name: str, default: Any = None) -> Any:
        found = self.attributes.get(name, default)
        return found.decode() if isinstance(found, bytes) else found

    def declared_shape(self, number: int = 0) -> tuple[int, ...]:
        """The shape that the model or shape inference gives to a result. Raises `Refused`."""
        found = self.scope.shapes.get(self.proto.output[number])
        if found is None:
            raise UnknownShape(f"{self.proto.op_type} whose result has a shape that is known at run time only")
        return found

    def wants(self, number: int) -> bool:
        """Whether a result is used."""
        return number < len(self.proto.output) and self.proto.output[number] != ""


def value_of(b: Builder, held: Held) -> Value:
    """Raises `Refused` for sequences."""
    if isinstance(held, Elements):
        raise Refused("a sequence or an optional value, where a tensor has to be")
    return held if isinstance(held, Value) else b.constant(held, element_of_array(held))


class Scope:
    """The values of a graph or of a function's body, by name."""

    def __init__(
        self,
        builder: Builder,
        opsets: Mapping[str, int],
        functions: Mapping[tuple[str, str], Any],
        outer: Scope | None = None,
    ) -> None:
        self.b = builder
        self.opsets = opsets
        self.functions = functions
        self.values: dict[str, Value] = dict(outer.values) if outer else {}
        self.known: dict[str, np.ndarray[Any, Any]] = dict(outer.known) if outer else {}
        self.lists: dict[str, Elements] = dict(outer.lists) if outer else {}
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.elements: dict[str, str] = {}
        self.literals: Mapping[str, str] = outer.literals if outer else {}
        """Names of resources, by those of the initializers that are outside of the model."""
        self.outside: Mapping[str, Any] = outer.outside if outer else {}
        self.devices: Mapping[str, str] = outer.devices if outer else {}
        """Of nodes, by name."""

    def opset(self, domain: str) -> int:
        return self.opsets.get("" if domain == "ai.onnx" else domain, 1)

    def value(self, name: str) -> Value:
        found = self.values.get(name)
        if found is None and name in self.known:
            found = value_of(self.b, self.known[name])  # not kept: it may stand inside of a region
        if found is None:
            what = "is a sequence or an optional value" if name in self.lists else "comes from nowhere"
            raise Refused(f"'{name}', which {what}")
        return found

    def declare(self, infos: Sequence[Any]) -> None:
        """Take the static shapes of ``ValueInfoProto``."""
        for info in infos:
            type_ = info.type.tensor_type
            if type_.HasField("shape") and all(dim.HasField("dim_value") for dim in type_.shape.dim):
                self.shapes[info.name] = tuple(dim.dim_value for dim in type_.shape.dim)

    def run(self, nodes: Sequence[Any]) -> None:
        """Lower nodes in order. Raises `Refused`."""
        for proto in reversed(nodes):  # what keeps shapes has an operand of the declared one
            if proto.op_type in _KEEPS_SHAPE and proto.output[0] in self.shapes:
                self.shapes.setdefault(proto.input[0], self.shapes[proto.output[0]])
        for proto in nodes:
            outer = self.b.location
            self.b.location = self._location(proto, outer)
            try:
                self._run(proto)
            except SizesDiffer as differ:
                raise Refused(f"{proto.op_type} of node '{proto.name}': {differ}") from None
            self.b.location = outer

    def _location(self, proto: Any, outer: str) -> str:
        return location_of(proto, self.devices.get(proto.name) if proto.name else None, outer)

    def _run(self, proto: Any) -> None:
        if self.fold(proto):
            return
        name = proto.op_type if proto.domain in ("", "ai.onnx") else f"{proto.domain}.{proto.op_type}"
        local = self.functions.get((proto.domain, proto.op_type))
        lowering = OPERATORS.get(name) if local is None else None
        if lowering is None and local is None and contributed.written(proto, self.opset("")):
            self.run(contributed.written_out(_Operands(self, proto), proto, self.opset("")))
            return
        if lowering is None:
            self._expand(proto, local)
            return
        node = Node(self, proto)
        made = lowering(node)
        made = made if isinstance(made, Sequence) and not isinstance(made, Elements) else [made]
        for output, value in zip(proto.output, made, strict=False):
            if output and value is not None:
                self.hold(output, value)

    def held(self, name: str) -> Held:
        """What a name stands for. Raises `Refused`."""
        for table in (self.lists, self.values, self.known):
            if name in table:
                return table[name]
        return self.value(name)

    def hold(self, name: str, what: Held) -> None:
        for table in (self.lists, self.values, self.known):
            table.pop(name, None)
        if isinstance(what, Elements):
            self.lists[name] = what
        elif isinstance(what, Value):
            self.values[name] = what
        else:
            self.known[name] = what

    def fold(self, proto: Any) -> bool:
        """Compute a node whose operands are known; whether that was done."""
        if proto.op_type == "Constant":
            self.hold(proto.output[0], constant_of(proto))
            return True
        if proto.op_type in ("Shape", "Size") and proto.domain in ("", "ai.onnx"):
            shape = self._shape(proto.input[0])
            if shape is None:
                return False
            given = {a.name: a.i for a in proto.attribute}
            part = shape[slice(given.get("start", 0), given.get("end"))]
            number = np.array(part if proto.op_type == "Shape" else int(np.prod(shape)), np.int64)
            self.hold(proto.output[0], number)
            return True
        inputs = [one for one in proto.input if one]
        if not inputs or any(one not in self.known for one in inputs) or proto.op_type in _NEVER_FOLDED:
            return False
        if any(attribute.type == onnx.AttributeProto.GRAPH for attribute in proto.attribute):
            return False
        if sum(self.known[one].size for one in inputs) > _MOST_FOLDED:
            return False
        found = evaluated(proto, {one: self.known[one] for one in inputs}, self.opsets)
        if found is None:
            return False
        for name, array in found.items():
            self.hold(name, array)
        return True

    def _shape(self, name: str) -> tuple[int, ...] | None:
        if name in self.known:
            return self.known[name].shape
        found = self.values.get(name)
        return self.shapes.get(name) if found is None else found.shape

    def shape_of(self, name: str) -> tuple[int, ...]:
        return self.known[name].shape if name in self.known else self.value(name).shape

    def _expand(self, proto: Any, local: Any) -> None:
        body = local or self._function_body(proto)
        if body is None:
            raise Refused(not_supported(proto))
        opsets = {**self.opsets, **{one.domain: one.version for one in body.opset_import}}
        inner = Scope(self.b, opsets, self.functions)
        inner.literals, inner.outside = self.literals, self.outside
        for formal, actual in zip(body.input, proto.input, strict=False):
            if actual:
                inner.hold(formal, self.held(actual))
        if len(body.output) == len(proto.output):
            for formal, actual in zip(body.output, proto.output, strict=True):
                if actual in self.shapes:
                    inner.shapes[formal] = self.shapes[actual]
        given = {attribute.name: attribute for attribute in proto.attribute}
        given = {**{one.name: one for one in body.attribute_proto}, **given}
        if local is None:
            schema = onnx.defs.get_schema(proto.op_type, self.opset(proto.domain), proto.domain)
            defaults = {name: a.default_value for name, a in schema.attributes.items() if a.default_value.type}
            given = {**defaults, **given}
        absent = {formal for formal, actual in zip(body.input, proto.input, strict=False) if not actual}
        absent |= {*body.input[len(proto.input) :]}
        inner.run([_bound(node, given, absent) for node in body.node])
        for formal, actual in zip(body.output, proto.output, strict=False):
            if actual:
                self.hold(actual, inner.held(formal))

    def _function_body(self, proto: Any) -> Any:
        try:
            version = self.opset(proto.domain)
            schema: Any = onnx.defs.get_schema(proto.op_type, version, proto.domain)
        except onnx.defs.SchemaError:
            return None
        text = b""
        if schema.has_function:
            versions = [one for one in schema.function_opset_versions if one <= version]
            text = schema.get_function_with_opset_version(max(versions)) if versions else b""
        elif schema.has_context_dependent_function:
            versions = [one for one in schema.context_dependent_function_opset_versions if one <= version]
            types = [self.type_of(name).SerializeToString() for name in proto.input]
            if versions:
                text = schema.get_context_dependent_function_with_opset_version(
                    max(versions), proto.SerializeToString(), types
                )
        return onnx.FunctionProto.FromString(text) if text else None

    def type_of(self, name: str) -> Any:
        if not name:
            return onnx.TypeProto()
        if name in self.known:
            element, shape = element_of_array(self.known[name]), self.known[name].shape
        else:
            found = self.value(name)
            element, shape = found.element, found.shape
        number = helper.np_dtype_to_tensor_dtype(np.dtype(DTYPES[element]))
        return helper.make_tensor_type_proto(number, shape)

    def subgraph(self, graph: Any, given: Mapping[str, Held]) -> Scope:
        """A scope of a graph inside of this one, with values for its inputs; not yet run."""
        inner = Scope(self.b, self.opsets, self.functions, self)
        for name, value in given.items():
            inner.hold(name, value)
        inner.declare([*graph.value_info, *graph.output])
        for initializer in graph.initializer:
            inner.known[initializer.name] = array_of(initializer)
        return inner


class _Operands(Graph):
    """What a scope knows of a node's operands; constants are added to it."""

    def __init__(self, scope: Scope, proto: Any) -> None:
        self.scope, self._count = scope, 0
        self.outside, self.whole = {}, {}
        self._names = {name for name in proto.input if name}
        self.shapes = {name: [*scope.shape_of(name)] for name in self._names}

    def data(self, name: str) -> Any:
        return self.scope.known.get(name)

    def type_of(self, name: str) -> int:
        return self.scope.type_of(name).tensor_type.elem_type if name in self._names else 0

    def constant(self, array: np.ndarray[Any, Any]) -> str:
        self._count += 1
        name = f"devscope.constant.{self._count}"
        self.scope.hold(name, array)
        return name


def _bound(node: Any, given: Mapping[str, Any], absent: set[str]) -> Any:
    """A node of a function's body, with the attributes of a call."""
    result = onnx.NodeProto()
    result.CopyFrom(node)
    del result.attribute[:]
    for attribute in node.attribute:
        if attribute.ref_attr_name:
            if attribute.ref_attr_name in given:
                copy = result.attribute.add()
                copy.CopyFrom(given[attribute.ref_attr_name])
                copy.name = attribute.name
            continue
        copy = result.attribute.add()
        copy.CopyFrom(attribute)
        if attribute.type == onnx.AttributeProto.GRAPH:
            bodies = [_bound(inner, given, absent) for inner in attribute.g.node]
            del copy.g.node[:]
            copy.g.node.extend(bodies)
    names = ["" if name in absent else name for name in result.input]
    del result.input[:]
    result.input.extend(names)
    return result


def array_of(tensor: Any) -> np.ndarray[Any, Any]:
    """Raises `Refused` for elements that MLIR lacks."""
    element = element_of(tensor.data_type)
    found = numpy_helper.to_array(tensor)
    dtype = np.dtype(DTYPES[element])
    if found.dtype == dtype:
        return found
    return found.view(dtype) if found.dtype.itemsize == dtype.itemsize else found.astype(dtype)


def constant_of(proto: Any) -> np.ndarray[Any, Any]:
    (attribute,) = proto.attribute
    tensor = tensor_of(attribute)
    if tensor is None:
        raise Refused(f"a constant given as {attribute.name}")
    return array_of(tensor)


def element_of_array(array: np.ndarray[Any, Any]) -> str:
    for element, dtype in DTYPES.items():
        if array.dtype == np.dtype(dtype):
            return element
    raise Refused(f"a constant of dtype {array.dtype}")


def evaluated(proto: Any, known: Mapping[str, Any], opsets: Mapping[str, int]) -> dict[str, Any] | None:
    """What ONNX's reference implementation gives for one node; None where it has none."""
    from onnx.reference import ReferenceEvaluator

    imports = [helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    inputs = [helper.make_value_info(name, onnx.TypeProto()) for name in known]
    names = [name for name in proto.output if name]
    outputs = [helper.make_value_info(name, onnx.TypeProto()) for name in names]
    model = helper.make_model(helper.make_graph([proto], "one", inputs, outputs), opset_imports=imports)
    try:
        with np.errstate(all="ignore"):
            results = ReferenceEvaluator(model).run(None, dict(known))
    except Exception:  # it raises what numpy, and its own checks, raise
        return None
    found: dict[str, Any] = {}
    for name, array in zip(names, results, strict=True):
        if not isinstance(array, np.ndarray | np.generic) or np.asarray(array).size > _MOST_FOLDED:
            return None
        if not any(np.asarray(array).dtype == np.dtype(dtype) for dtype in DTYPES.values()):
            return None
        found[name] = np.asarray(array)
    return found
