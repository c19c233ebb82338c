"""Partitions of a function as a whole: what was measured of them has all in it that candidates by themselves do
not show, such as what generated code fuses across candidates, caches, and threads of several libraries.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from xdsl.dialects.builtin import ModuleOp, StringAttr, SymbolRefAttr

from devscope.dialects.device import SCOPE_ATTR, ScopeAttr
from devscope.passes.device_partition.candidates import Candidate
from devscope.passes.device_partition.eager import Claimed, regions_of
from devscope.passes.device_partition.graph import Graph
from devscope.passes.device_partition.outline import Outliner
from devscope.passes.device_partition.structure import structure_of

WHERE = "function"
"""What rows of such costs have for a place."""


def key_of(graph: Graph, chosen: Iterable[Candidate]) -> tuple[str, str, str] | None:
    """Structure, pattern and place of the row that says what a function costs where these take its nodes.

    None for a function that refers to others: its structure does not say what these do.
    """
    attributes = (
        a for op in graph.function.body.walk() for a in (*op.attributes.values(), *op.properties.values())
    )
    if any(isinstance(attribute, SymbolRefAttr) for attribute in attributes):
        return None
    blocks = {*graph.function.body.blocks}
    outer = [node.index for node in graph.nodes if node.op.parent in blocks]
    return structure_of(graph, outer), partition_of(chosen), WHERE


def partition_of(chosen: Iterable[Candidate]) -> str:
    """Who takes what, as a digest. How operations stand together for which one device has code generated makes no
    difference: what follows fuses them as it can.
    """
    taken: list[str] = []
    for candidate in chosen:
        if candidate.spec.backend is None:
            taken += (f"{candidate.spec.device} {node}" for node in candidate.nodes if candidate.spec.device)
        taken += (f"{claim.name} {candidate.spec.device} {sorted(claim.nodes)}" for claim in candidate.claims)
    return hashlib.sha256("\n".join(sorted(taken)).encode()).hexdigest()[:24]


def claimed_regions(graph: Graph, chosen: Iterable[Candidate]) -> list[Claimed]:
    """What backends take, as functions."""
    return regions_of(graph, [claim for candidate in chosen for claim in candidate.claims])


def annotate(graph: Graph, chosen: Iterable[Candidate]) -> None:
    """Put what nobody takes where it was placed."""
    for candidate in chosen:
        if candidate.spec.device and candidate.spec.backend is None:
            device = ScopeAttr.parse_text(candidate.spec.device)
            for node in sorted(candidate.nodes):
                op, scope = graph.nodes[node].op, graph.nodes[node].scope
                op.attributes[SCOPE_ATTR] = scope.join(device) or device


def partitioned_alone(graph: Graph, chosen: Sequence[Candidate], several: bool) -> ModuleOp:
    """A module whose ``@main`` is a function, partitioned so. ``several``: there is more than one device."""
    function = graph.function.clone()
    function.properties["sym_name"] = StringAttr("main")
    function.properties.pop("sym_visibility", None)
    module, copy = ModuleOp([function]), Graph(function)
    if several:
        annotate(copy, chosen)
    Outliner(module).outline(copy, claimed_regions(copy, chosen))
    return module
