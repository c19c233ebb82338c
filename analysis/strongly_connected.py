"""Strongly connected components of a graph: the nodes that lie on cycles together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence


def strongly_connected_components(graph: Mapping[str, Sequence[str]]) -> Iterator[list[str]]:
    """The strongly connected components of a graph, each after those that it points to (Tarjan, iterative)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    open_: list[str] = []
    on_stack: set[str] = set()
    for root in graph:
        if root in index:
            continue
        work = [(root, iter(graph[root]))]
        index[root] = low[root] = len(index)
        open_.append(root)
        on_stack.add(root)
        while work:
            node, targets = work[-1]
            target = next(targets, None)
            if target is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    cut = open_.index(node)
                    component, open_ = open_[cut:], open_[:cut]
                    on_stack.difference_update(component)
                    yield component
            elif target not in index:
                index[target] = low[target] = len(index)
                open_.append(target)
                on_stack.add(target)
                work.append((target, iter(graph[target])))
            elif target in on_stack:
                low[node] = min(low[node], index[target])
