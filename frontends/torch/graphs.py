"""Graphs that PyTorch's compiler has made functional: what ``torch.compile`` hands to a backend."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from devscope.errors import LoweringError
from devscope.frontends import ImportedSource
from devscope.frontends.torch import fx
from devscope.frontends.torch.lowering import Lowering
from devscope.frontends.torch.signature import ENTRY, Signature, declared_dtype
from devscope.frontends.torch.weights import Weights


def read_graph(module: torch.fx.GraphModule, constants: Mapping[int, Any]) -> tuple[ImportedSource, list[Any]]:
    """The program of a graph, some of whose arguments are ``constants``, by number.

    And what its results are: a constant, or the number of the program's result, and its dtype; None for a number.
    Raises LoweringError.
    """
    nodes = list(module.graph.nodes)
    arguments = [node for node in nodes if node.op == "placeholder"]
    output = next(node for node in nodes if node.op == "output")
    returned: Any = output.args[0] if isinstance(output.args[0], tuple | list) else [output.args[0]]
    weights = Weights()
    results: list[Any] = []
    outputs: list[str] = []
    for value in returned:
        if isinstance(value, torch.fx.Node):
            shown = value.meta.get("val")
            results.append((len(outputs), shown.dtype if isinstance(shown, torch.Tensor) else None))
            outputs.append(value.name)
        else:
            results.append(value)
    inputs = [node.name for number, node in enumerate(arguments) if number not in constants]
    bound = {arguments[number].name: weights.add(one, arguments[number].name) for number, one in constants.items()}
    if not outputs:
        raise LoweringError("the graph has no results")
    signature = Signature(inputs, outputs, bound, weights)
    values = {node.name: node.meta.get("val") for node in nodes}
    dtypes = tuple([declared_dtype(values[name]) for name in part] for part in (inputs, outputs))
    results_names = [f"result{number}" for number in range(len(outputs))]
    with Lowering() as lowering:
        text = lowering.linalg(fx.import_graph(module.graph, signature))
    source = ImportedSource(
        "<PyTorch graph>",
        text,
        {ENTRY: (inputs, results_names)},
        dtypes={ENTRY: (dtypes[0], dtypes[1])},
        literals=signature.literals,
    )
    return source, results
