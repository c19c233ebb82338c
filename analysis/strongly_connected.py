"""Strongly connected components of a graph: the nodes that lie on cycles together."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TypeVar

_Node = TypeVar("_Node", bound=Hashable)


def strongly_connected_components(graph: Mapping[_Node, Sequence[_Node]]) -> Iterator[list[_Node]]:
    """The strongly connected components, each after those that it points to (Tarjan, iterative)."""
    index: dict[_Node, int] = {}
    low: dict[_Node, int] = {}
    open_: list[_Node] = []
    on_stack: set[_Node] = set()

    def enter(node: _Node) -> None:
        index[node] = low[node] = len(index)
        open_.append(node)
        on_stack.add(node)
        work.append((node, iter(graph[node])))

    for root in graph:
        work: list[tuple[_Node, Iterator[_Node]]] = []
        if root not in index:
            enter(root)
        while work:
            node, targets = work[-1]
            target = next(targets, None)
            if target is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component: list[_Node] = []
                    while not component or component[-1] != node:
                        component.append(open_.pop())
                    on_stack.difference_update(component)
                    yield component[::-1]
            elif target not in index:
                enter(target)
            elif target in on_stack:
                low[node] = min(low[node], index[target])
