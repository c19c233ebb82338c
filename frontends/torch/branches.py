"""``torch.cond`` as choices: torch-mlir's importer has no branches.

Both sides are computed, which is allowed, since they are functional: what is not chosen has no effects.
"""

from __future__ import annotations

from typing import Any

import torch

from devscope.errors import LoweringError

aten: Any = torch.ops.aten


def choose_of_branches(graph: Any) -> None:
    """Put the operations of both branches in the place of each ``cond``. Raises LoweringError for a size."""
    while found := [node for node in graph.nodes if node.target is torch.ops.higher_order.cond]:
        for node in found:
            _inline(graph, node)
    drop_unused(graph)


def drop_unused(graph: Any) -> None:
    """Without operations whose results nobody uses, nor modules."""
    graph.eliminate_dead_code()
    if graph.owning_module is not None:
        used = {node.target.partition(".")[0] for node in graph.find_nodes(op="get_attr")}
        for name, _ in list(graph.owning_module.named_children()):
            if name not in used:
                delattr(graph.owning_module, name)


def _inline(graph: Any, node: Any) -> None:
    condition, *branches, operands = node.args
    if isinstance(condition, bool):
        sides = [_side(graph, node, branches[not condition], operands)] * 2
    else:
        sides = [_side(graph, node, branch, operands) for branch in branches]
    for use in list(node.users):
        one, other = (side[use.args[1]] for side in sides)
        if one is not other and not isinstance(one.meta.get("val"), torch.Tensor):
            raise LoweringError("a branch of torch.cond returns a size, which is not supported")
        chosen = one
        if one is not other:
            with graph.inserting_before(use):
                chosen = graph.call_function(aten.where.self, (condition, one, other))
            chosen.meta.update(use.meta)
        use.replace_all_uses_with(chosen)
        graph.erase_node(use)
    graph.erase_node(node)


def _side(graph: Any, node: Any, branch: Any, operands: Any) -> Any:
    return copied_in_front(graph, node, getattr(graph.owning_module, branch.target), branch.target, operands)


def copied_in_front(graph: Any, node: Any, side: Any, name: str, operands: Any) -> Any:
    """The results of the module ``side``, whose operations are copied in front of ``node``.

    ``name``: what those of its attributes begin with.
    """
    side.graph.owning_module = side
    values = dict(zip(side.graph.find_nodes(op="placeholder"), operands, strict=True))
    with graph.inserting_before(node):
        for one in side.graph.find_nodes(op="get_attr"):
            attribute = f"{name}_{one.target}"
            setattr(graph.owning_module, attribute, getattr(side, one.target))
            values[one] = graph.get_attr(attribute)
            values[one].meta.update(one.meta)
        return graph.graph_copy(side.graph, values)
