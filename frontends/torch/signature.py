"""What an exported program takes, gives and keeps: names, nesting, dtypes, weights, state.

``torch.export`` makes everything arguments and results of one graph: parameters, buffers, constants, and what the
user gives; new values of buffers, and what the user gets. Numbers and text that the program was traced with are
constants of it; calls have to give the same.
"""

from __future__ import annotations

import collections
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import torch
from torch.export.graph_signature import (
    ConstantArgument,
    CustomObjArgument,
    InputKind,
    OutputKind,
    SymBoolArgument,
    SymFloatArgument,
    SymIntArgument,
    TensorArgument,
)

from devscope.errors import LoweringError
from devscope.frontends.torch.weights import Weights
from devscope.runtime.state import StateSpec
from devscope.runtime.structure import LEAF, Structure, Tree, leaf_paths, member_of

ENTRY = "main"
_VALUES = TensorArgument | SymIntArgument | SymFloatArgument | SymBoolArgument
_UNSIGNED = {torch.uint8: "ui8", torch.uint16: "ui16", torch.uint32: "ui32", torch.uint64: "ui64"}
_UNLIMITED = 2**31
_CONSTANTS = bool | int | float | str


@dataclass
class Signature:
    """Of the function that is compiled: what the values of the graph are to it."""

    inputs: list[str]
    """Values of the graph that are arguments: first the user's, then state."""
    outputs: list[str]
    """Values of the graph that are results: first the user's, then new state."""
    bound: dict[str, Any]
    """What other arguments of the graph are: attributes by name, see `Weights`."""
    weights: Weights
    names: dict[str, tuple[list[str], list[str]]] = field(default_factory=dict[str, Any])
    structures: dict[str, Structure] = field(default_factory=dict[str, Structure])
    dtypes: dict[str, tuple[list[str], list[str]]] = field(default_factory=dict[str, Any])
    state: dict[str, StateSpec] = field(default_factory=dict[str, StateSpec])
    limits: list[tuple[int, int, int, int]] = field(default_factory=list[tuple[int, int, int, int]])
    """Of dynamic dimensions: the argument, the dimension, the least and the largest size it was traced for."""

    @property
    def literals(self) -> Mapping[str, memoryview]:
        """The data of the weights by name."""
        return self.weights.data


def signature_of(program: Any) -> Signature:
    """The signature of a functional ``ExportedProgram``. Raises LoweringError for what is refused."""
    specs = program.graph_signature
    weights = Weights()
    mutated = {
        spec.target: spec.arg.name
        for spec in specs.output_specs
        if spec.kind in (OutputKind.BUFFER_MUTATION, OutputKind.PARAMETER_MUTATION)
    }
    for spec in specs.output_specs:
        if spec.kind == OutputKind.USER_INPUT_MUTATION:
            raise LoweringError(
                f"the program writes to its argument '{spec.target}'",
                notes=["compiled programs leave their arguments alone: return the new value instead"],
            )
        if spec.kind == OutputKind.TOKEN:
            raise LoweringError(
                "the program has operations with effects besides its results, which are not supported",
                notes=["checks that can fail (torch.linalg, for matrices of more than 64 columns), prints"],
            )
        if spec.kind not in (OutputKind.USER_OUTPUT, *_MUTATIONS):
            raise LoweringError(f"results of kind {spec.kind.name} are not supported")
    inputs: list[str] = []
    leaves: list[Tree] = []
    bound: dict[str, Any] = {}
    state: list[tuple[str, str, str, Any]] = []
    for spec in specs.input_specs:
        if spec.kind == InputKind.USER_INPUT:
            leaves.append(_leaf(spec.arg, "an argument"))
            if isinstance(spec.arg, _VALUES):
                inputs.append(spec.arg.name)
        elif spec.target in mutated and spec.kind in (InputKind.BUFFER, InputKind.PARAMETER):
            state.append((spec.target, spec.arg.name, mutated[spec.target], _stored(program, spec)))
        elif spec.kind in (InputKind.BUFFER, InputKind.PARAMETER, InputKind.CONSTANT_TENSOR):
            bound[spec.arg.name] = weights.add(_stored(program, spec), spec.target)
        else:
            raise LoweringError(f"the program has an argument of kind {spec.kind.name}, which is not supported")
    results = [spec.arg for spec in specs.output_specs if spec.kind == OutputKind.USER_OUTPUT]
    outputs = [arg.name for arg in results if isinstance(arg, _VALUES)]
    found = Signature(inputs, outputs, bound, weights)
    _describe(program, found, iter(leaves), iter([_leaf(arg, "the result") for arg in results]))
    _keep(found, state)
    values = {node.name: node.meta.get("val") for node in program.graph.nodes}
    taken, given = ([declared_dtype(values[name]) for name in part] for part in (found.inputs, found.outputs))
    found.dtypes = {ENTRY: (taken, given)}
    found.limits = list(_limits(program, [values[name] for name in found.inputs]))
    return found


_MUTATIONS = OutputKind.BUFFER_MUTATION, OutputKind.PARAMETER_MUTATION


def _describe(program: Any, found: Signature, leaves: Iterator[Tree], results: Iterator[Tree]) -> None:
    """Names and nesting of what the user gives and gets."""
    given, named = program.call_spec.in_spec.children()
    parameters = [*_names(program, len(given.children())), *named.context]
    children = [*given.children(), *named.children()]
    trees = [_tree(child, leaves, "an argument") for child in children]
    output = _tree(program.call_spec.out_spec, results, "the result")
    paths = [path for name, tree in zip(parameters, trees, strict=True) for path in leaf_paths(tree, name)]
    found.names[ENTRY] = paths, list(leaf_paths(output, "result"))
    if output != LEAF or any(tree != LEAF for tree in trees):
        found.structures[ENTRY] = Structure(parameters, trees, output, len(given.children()))


def _names(program: Any, count: int) -> list[str]:
    """The names of the parameters that were given by position."""
    called = program.module_call_graph[0].signature if program.module_call_graph else None
    names = list((called.forward_arg_names if called is not None else None) or ())
    return [*names[:count], *(f"arg{number}" for number in range(len(names), count))]


def _keep(found: Signature, state: list[tuple[str, str, str, Any]]) -> None:
    """State comes after what the user gives and gets; a function of its own returns what it is at first."""
    if not state:
        return
    taken, given = found.names[ENTRY]
    found.state[ENTRY] = StateSpec([target for target, *_ in state], f"{ENTRY}.initial_state")
    for target, value, new, tensor in state:
        found.inputs.append(value)
        found.outputs.append(new)
        found.bound[f"initial {value}"] = found.weights.add(tensor.detach().clone(), target)
        taken.append(target)
        given.append(target)


def _stored(program: Any, spec: Any) -> torch.Tensor:
    found = program.state_dict.get(spec.target)
    if found is None:
        found = program.constants[spec.target]
    return found


def _leaf(arg: Any, what: str) -> Tree:
    if isinstance(arg, _VALUES):
        return LEAF
    if isinstance(arg, CustomObjArgument) and isinstance(arg.fake_val, Enum):
        return {"enum": member_of(arg.fake_val)}
    if not isinstance(arg, ConstantArgument):
        raise LoweringError(f"{what} is a {type(arg).__name__}, which a compiled program cannot have")
    if arg.value is None:
        return None
    value: Any = arg.value
    if isinstance(value, _CONSTANTS):
        return {"constant": [arg.value]}
    raise LoweringError(
        f"{what} is the constant {arg.value!r}, which a compiled program cannot have",
        notes=["constants may be numbers, text and None"],
    )


def _tree(spec: Any, leaves: Iterator[Tree], what: str) -> Tree:
    """A ``TreeSpec`` as a `Tree`. Raises LoweringError for containers that only PyTorch can take apart."""
    if spec.is_leaf():
        return next(leaves)
    children = [_tree(child, leaves, what) for child in spec.children()]
    kind: Any = spec.type
    if kind in (tuple, list, torch.Size):
        return {"list" if kind is list else "tuple": children}
    if kind in (dict, collections.OrderedDict, collections.defaultdict):
        keys = spec.context[1] if kind is collections.defaultdict else spec.context
        if unknown := [key for key in keys if not isinstance(key, _CONSTANTS)]:
            raise LoweringError(
                f"{what} has the key {unknown[0]!r}, which a compiled program cannot have",
                notes=["keys of dictionaries may be numbers and text"],
            )
        return {"dict": [[key, child] for key, child in zip(keys, children, strict=True)]}
    if kind is collections.namedtuple:
        return {"namedtuple": [spec.context.__name__, list(spec.context._fields), children]}
    if kind.__module__ == "torch.return_types":
        return {"namedtuple": [kind.__name__, list(kind.__match_args__), children]}
    if hasattr(kind, "__dataclass_fields__"):
        found = dict(zip(_fields(spec), children, strict=True))
        nested = [name for name, part in kind.__dataclass_fields__.items() if part.init]
        return {"namedtuple": [kind.__name__, nested, [found.get(name) for name in nested]]}
    if issubclass(kind, dict | list | tuple) and "immutable" in kind.__name__:
        plain = "list" if issubclass(kind, list) else "dict"
        parts = children if plain == "list" else [[k, c] for k, c in zip(spec.context, children, strict=True)]
        return {plain: parts}
    raise LoweringError(
        f"{what} has a {kind.__name__}, which a compiled program cannot take apart without PyTorch",
        notes=["what nests may be dictionaries, lists, tuples, named tuples and None"],
    )


def _fields(spec: Any) -> list[str]:
    """Which fields of a data class are not None: the first of two lists, or all that its library names."""
    names = spec.context
    return names[0] if len(names) == 2 and isinstance(names[0], list) else names


def _limits(program: Any, values: list[Any]) -> Iterator[tuple[int, int, int, int]]:
    """Sizes that PyTorch's trace depends on; it says at least two where it did not look."""
    for number, value in enumerate(values):
        for dim, size in enumerate(value.shape if isinstance(value, torch.Tensor) else ()):
            symbol = size.node.expr if isinstance(size, torch.SymInt) else None
            limit = program.range_constraints.get(symbol)
            if limit is None:
                continue
            least = int(limit.lower) if limit.lower > 2 else 0
            most = int(limit.upper) if limit.upper < _UNLIMITED else _UNLIMITED
            if least or most < _UNLIMITED:
                yield number, dim, least, most


def declared_dtype(value: Any) -> str:
    """The dtype where MLIR's does not say all: linalg knows no signs. Empty where it does."""
    return _UNSIGNED.get(value.dtype, "") if isinstance(value, torch.Tensor) else ""
