"""Sequences and optional values of models of static shapes: how many elements there are is known at import."""

from __future__ import annotations

import numpy as np

from devscope.frontends.onnx.builder import Value
from devscope.frontends.onnx.control import run_inside
from devscope.frontends.onnx.graph import Elements, Held, Maybe, Node, operator, value_of
from devscope.frontends.onnx.types import Refused


def _elements(n: Node, number: int = 0) -> list[Held]:
    found = n.held(number)
    if not isinstance(found, Elements) or isinstance(found, Maybe):
        raise Refused(
            f"{n.proto.op_type} of '{n.proto.input[number]}', which is no sequence that is known at import"
        )
    return [*found]


def _place(n: Node, number: int, count: int) -> int | None:
    """Where in a sequence of ``count`` elements; None where the node does not say."""
    if not n.has(number):
        return None
    (place,) = n.integers(number, "place in a sequence")
    if not -count <= place < count:
        raise Refused(f"{n.proto.op_type} at {place} of {count} elements")
    return place % count


@operator("SequenceConstruct")
def construct(n: Node) -> Held:
    return Elements(n.held(number) for number in range(len(n)))


@operator("SequenceEmpty")
def empty(n: Node) -> Held:
    return Elements()


@operator("SequenceInsert")
def insert(n: Node) -> Held:
    elements = _elements(n)
    place = _place(n, 2, len(elements) + 1)
    elements.insert(len(elements) if place is None else place, n.held(1))
    return Elements(elements)


@operator("SequenceErase")
def erase(n: Node) -> Held:
    elements = _elements(n)
    place = _place(n, 1, len(elements))
    if not elements:
        raise Refused("SequenceErase of no elements")
    del elements[-1 if place is None else place]
    return Elements(elements)


@operator("SequenceAt")
def at(n: Node) -> Held:
    elements = _elements(n)
    place = _place(n, 1, len(elements))
    if place is None:
        raise Refused("SequenceAt without a place")
    return elements[place]


@operator("SequenceLength")
def length(n: Node) -> Held:
    return np.array(len(_elements(n)), np.int64)


@operator("SplitToSequence")
def split(n: Node) -> Held:
    b, x = n.b, n[0]
    axis = n.attr("axis", 0) % x.rank
    extent = x.shape[axis]
    sizes = n.integers(1, "split") if n.has(1) else [1]
    known = n.known(1)
    if known is None or np.ndim(known) == 0:
        sizes = [min(sizes[0], extent - start) for start in range(0, extent, sizes[0])]
    ends = np.cumsum([0, *sizes]).tolist()
    if n.has(1) or n.attr("keepdims", 1):
        return Elements(b.part(x, axis, end - size, end) for size, end in zip(sizes, ends[1:], strict=True))
    return Elements(b.at(x, axis, place) for place in range(extent))


@operator("ConcatFromSequence")
def concat(n: Node) -> Value:
    b, axis = n.b, n.attr("axis")
    values = [value_of(b, one) for one in _elements(n)]
    if not values:
        raise Refused("ConcatFromSequence of no elements")
    if n.attr("new_axis", 0):
        axis %= values[0].rank + 1
        values = [b.reshape(x, [*x.shape[:axis], 1, *x.shape[axis:]]) for x in values]
    return b.concatenate(values, axis % values[0].rank)


@operator("SequenceMap")
def sequence_map(n: Node) -> list[Held]:
    """The graph once for each element of the first sequence, and of others with it."""
    given, graph = [n.held(number) for number in range(len(n))], n.attributes["body"]
    rows = [
        run_inside(n, graph, [one[place] if isinstance(one, Elements) else one for one in given])
        for place in range(len(_elements(n)))
    ]
    return [Elements(row[number] for row in rows) for number in range(len(graph.output))]


@operator("Optional")
def optional(n: Node) -> Held:
    return Maybe([n.held(0)] if n.has(0) else [])


@operator("OptionalGetElement")
def element(n: Node) -> Held:
    found = n.held(0)
    if not isinstance(found, Maybe):
        return found
    if not found:
        raise Refused("OptionalGetElement of a value that is not there")
    return found[0]


@operator("OptionalHasElement")
def has_element(n: Node) -> Held:
    found = n.held(0) if n.has(0) else Maybe()
    return np.array(not isinstance(found, Maybe) or bool(found))
