"""Graphs that PyTorch's compiler has made functional: what ``torch.compile`` hands to a backend."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from devscope.errors import LoweringError
from devscope.frontends import ImportedSource
from devscope.frontends.torch import fx
from devscope.frontends.torch.lowering import Lowering
from devscope.frontends.torch.random_numbers import take_draws
from devscope.frontends.torch.signature import ENTRY, Signature, declared_dtype
from devscope.frontends.torch.weights import Weights


@dataclass(frozen=True)
class Given:
    """A result of a graph that is one of its arguments."""

    number: int


@dataclass(frozen=True)
class Computed:
    """A result that the program computes, its ``number`` there; ``dtype`` is PyTorch's, None of a number."""

    number: int
    dtype: torch.dtype | None


@dataclass(frozen=True)
class Graph:
    """A graph as a program."""

    source: ImportedSource
    results: list[Any]
    """`Given`, `Computed` or a constant, for each."""
    draws: list[Callable[[Sequence[Any]], Any]]
    """What makes the last arguments of the program of those that the graph was called with: random numbers."""


def read_graph(module: torch.fx.GraphModule, constants: Mapping[int, Any]) -> Graph:
    """The program of a graph, some of whose arguments are ``constants``, by number. Raises LoweringError."""
    graph = torch.fx.GraphModule(module, copy.deepcopy(module.graph)).graph  # the import changes it
    given = {node: number for number, node in enumerate(graph.find_nodes(op="placeholder"))}
    draws = take_draws(graph)
    nodes = list(graph.nodes)
    arguments = [node for node in nodes if node.op == "placeholder"]
    output = next(node for node in nodes if node.op == "output")
    returned: Any = output.args[0] if isinstance(output.args[0], tuple | list) else [output.args[0]]
    if all(value in given for value in returned if isinstance(value, torch.fx.Node)):
        given = {}  # a program has a result
    weights = Weights()
    results: list[Any] = []
    outputs: list[str] = []
    for value in returned:
        if not isinstance(value, torch.fx.Node):
            results.append(value)
        elif value in given:
            results.append(Given(given[value]))
        else:
            shown = value.meta.get("val")
            results.append(Computed(len(outputs), shown.dtype if isinstance(shown, torch.Tensor) else None))
            outputs.append(value.name)
    inputs = [node.name for number, node in enumerate(arguments) if number not in constants]
    bound = {arguments[number].name: weights.add(one, arguments[number].name) for number, one in constants.items()}
    if not outputs:
        raise LoweringError("the graph has no results")
    signature = Signature(inputs, outputs, bound, weights)
    values = {node.name: node.meta.get("val") for node in nodes}
    dtypes = tuple([declared_dtype(values[name]) for name in part] for part in (inputs, outputs))
    results_names = [f"result{number}" for number in range(len(outputs))]
    with Lowering() as lowering:
        text = lowering.linalg(fx.import_graph(graph, signature))
    source = ImportedSource(
        "<PyTorch graph>",
        text,
        {ENTRY: (inputs, results_names)},
        dtypes={ENTRY: (dtypes[0], dtypes[1])},
        literals=signature.literals,
    )
    return Graph(source, results, draws)
