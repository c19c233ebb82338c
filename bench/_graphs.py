"""The tensor programs of `memory.py`: graphs of primitive operations.

A graph becomes MLIR text here and a Relax function in `_relax_memory.py`: the same operations on the same shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import prod

Shape = tuple[int, ...]

BINARY = {"add": "arith.addf", "sub": "arith.subf", "mul": "arith.mulf", "div": "arith.divf"}
UNARY = {"exp": "math.exp", "rsqrt": "math.rsqrt", "tanh": "math.tanh"}
REDUCE = {"sum": ("arith.addf", "0.0"), "max": ("arith.maximumf", "0xFF800000")}


@dataclass(frozen=True)
class Node:
    """``kind`` with operands that are numbers of values: inputs first, then nodes. ``extra``: a permutation."""

    kind: str
    operands: tuple[int, ...]
    shape: Shape
    extra: tuple[int, ...] = ()


@dataclass
class Graph:
    """f32 everywhere. Reductions are over the last axis, which stays with size 1.

    Operands broadcast as in numpy. ``inputs`` are shapes.
    """

    inputs: list[Shape] = field(default_factory=list[Shape])
    nodes: list[Node] = field(default_factory=list[Node])

    def input(self, *shape: int) -> int:
        assert not self.nodes
        self.inputs.append(shape)
        return len(self.inputs) - 1

    def shape(self, value: int) -> Shape:
        return self.inputs[value] if value < len(self.inputs) else self.nodes[value - len(self.inputs)].shape

    def node(self, kind: str, *operands: int, shape: Shape = (), extra: tuple[int, ...] = ()) -> int:
        shapes = [self.shape(operand) for operand in operands]
        if kind in REDUCE:
            shape = (*shapes[0][:-1], 1)
        elif kind in ("matmul", "batch_matmul"):
            shape = (*shapes[0][:-1], shapes[1][-1])
        elif kind == "conv2d":
            (n, _, h, w), (f, _, kh, kw) = shapes
            shape = (n, f, h - kh + 1, w - kw + 1)
        elif kind == "max_pool":
            n, c, h, w = shapes[0]
            shape = (n, c, h // 2, w // 2)
        elif kind == "transpose":
            shape = tuple(shapes[0][axis] for axis in extra)
        elif kind != "reshape":
            shape = shapes[0]
        self.nodes.append(Node(kind, operands, shape, extra))
        return len(self.inputs) + len(self.nodes) - 1


def mlp() -> Graph:
    sizes, batch = (784, 1024, 1024, 512, 10), 64
    graph = Graph()
    x = graph.input(batch, sizes[0])
    weights = [(graph.input(a, b), graph.input(b)) for a, b in pairwise(sizes)]
    for number, (weight, bias) in enumerate(weights):
        x = graph.node("add", graph.node("matmul", x, weight), bias)
        if number < len(weights) - 1:
            x = graph.node("relu", x)
    return graph


def convnet() -> Graph:
    graph = Graph()
    x = graph.input(8, 3, 34, 34)
    channels = (3, 32, 32, 64, 64)
    kernels = [(graph.input(b, a, 3, 3), graph.input(b, 1, 1)) for a, b in pairwise(channels)]
    dense, bias = graph.input(64 * 5 * 5, 10), graph.input(10)
    for number, (kernel, offset) in enumerate(kernels):
        x = graph.node("relu", graph.node("add", graph.node("conv2d", x, kernel), offset))
        if number % 2:
            x = graph.node("max_pool", x)
    x = graph.node("reshape", x, shape=(8, 64 * 5 * 5))
    graph.node("add", graph.node("matmul", x, dense), bias)
    return graph


def transformer() -> Graph:
    """Pre-norm: attention of 8 heads and an MLP with a tanh, both with a residual connection."""
    length, width, heads, hidden = 128, 512, 8, 2048
    graph = Graph()
    x = graph.input(length, width)
    q, k, v, out = (graph.input(width, width) for _ in range(4))
    up, down = graph.input(width, hidden), graph.input(hidden, width)
    scale, epsilon, part = graph.input(1, 1), graph.input(1, 1), graph.input(1, 1, 1)

    def norm(value: int) -> int:
        centred = graph.node("sub", value, graph.node("mul", graph.node("sum", value), scale))
        variance = graph.node("mul", graph.node("sum", graph.node("mul", centred, centred)), scale)
        return graph.node("mul", centred, graph.node("rsqrt", graph.node("add", variance, epsilon)))

    def split(value: int, *order: int) -> int:
        parted = graph.node("reshape", value, shape=(length, heads, width // heads))
        return graph.node("transpose", parted, extra=order)

    normed = norm(x)
    queries = split(graph.node("matmul", normed, q), 1, 0, 2)
    keys = split(graph.node("matmul", normed, k), 1, 2, 0)
    values = split(graph.node("matmul", normed, v), 1, 0, 2)
    scores = graph.node("mul", graph.node("batch_matmul", queries, keys), part)
    powers = graph.node("exp", graph.node("sub", scores, graph.node("max", scores)))
    weights = graph.node("div", powers, graph.node("sum", powers))
    mixed = graph.node("transpose", graph.node("batch_matmul", weights, values), extra=(1, 0, 2))
    joined = graph.node("reshape", mixed, shape=(length, width))
    x = graph.node("add", x, graph.node("matmul", joined, out))
    inner = graph.node("tanh", graph.node("matmul", norm(x), up))
    graph.node("add", x, graph.node("matmul", inner, down))
    return graph


GRAPHS: dict[str, Callable[[], Graph]] = {"MLP": mlp, "convnet": convnet, "transformer block": transformer}


def live_bytes(graph: Graph, on_device: bool = False) -> int:
    """The most bytes that are live at one operation, its operands and result included.

    Elementwise results may be where an operand was that nothing uses later; a reshape is the same memory. Inputs
    and the result of the program are the caller's; ``on_device``: they are copied in before, and out after
    everything.
    """
    first = len(graph.inputs)
    owner = list(range(first + len(graph.nodes)))
    last: dict[int, int] = {}
    for number, node in enumerate(graph.nodes, first):
        if node.kind == "reshape":
            owner[number] = owner[node.operands[0]]
        last.update((owner[operand], number) for operand in node.operands)
    live = {number: 4 * prod(shape) for number, shape in enumerate(graph.inputs)} if on_device else {}
    most = sum(live.values())
    for number, node in enumerate(graph.nodes, first):
        dying = [v for v in sorted({owner[o] for o in node.operands}) if last[v] == number and v in live]
        size = 4 * prod(node.shape)
        if node.kind in BINARY or node.kind in UNARY or node.kind == "relu":
            overwritten = next((v for v in dying if live[v] == size), None)
            if overwritten is not None:
                dying.remove(overwritten)
                del live[overwritten]
        if owner[number] == number and (on_device or number != owner[-1]):
            live[number] = size
        most = max(most, sum(live.values()))
        for value in dying:
            del live[value]
    return most


# -------------------------------------------------------------------------------------------------- MLIR


def module_text(graph: Graph) -> str:
    """The graph as ``@main`` of an MLIR module; inputs are arguments."""
    lines = ["  %zero = arith.constant 0.0 : f32"]
    for number, node in enumerate(graph.nodes, len(graph.inputs)):
        lines += _emit(graph, number, node)
    arguments = ", ".join(f"%v{n}: {_type(shape)}" for n, shape in enumerate(graph.inputs))
    last = len(graph.inputs) + len(graph.nodes) - 1
    result = _type(graph.shape(last))
    body = "\n".join(lines)
    return f"func.func @main({arguments}) -> {result} {{\n{body}\n  return %v{last} : {result}\n}}\n"


def _type(shape: Sequence[int]) -> str:
    return f"tensor<{'x'.join(map(str, shape))}xf32>"


def _emit(graph: Graph, number: int, node: Node) -> list[str]:
    out, type_ = f"%v{number}", _type(node.shape)
    operands = [f"%v{operand}" for operand in node.operands]
    shapes = [graph.shape(operand) for operand in node.operands]
    types = [_type(shape) for shape in shapes]
    empty = f"  {out}_e = tensor.empty() : {type_}"
    ins = f"ins({', '.join(operands)} : {', '.join(types)})"
    if node.kind == "reshape":
        return _reshape(out, operands[0], shapes[0], node.shape)
    if node.kind == "transpose":
        return [
            empty,
            f"  {out} = linalg.transpose {ins} outs({out}_e : {type_}) permutation = {list(node.extra)}",
        ]
    if node.kind in ("matmul", "batch_matmul", "conv2d", "max_pool"):
        return [empty, *_contraction(out, node, ins, type_)]
    if node.kind in REDUCE:
        return [empty, *_reduction(out, node, ins, type_)]
    return [empty, _elementwise(out, node, shapes, ins, type_)]


def _reshape(out: str, operand: str, old: Shape, new: Shape) -> list[str]:
    long, short = (old, new) if len(old) > len(new) else (new, old)
    groups: list[list[int]] = []
    axis = 0
    for extent in short:
        groups.append([axis])
        while prod(long[a] for a in groups[-1]) < extent:
            axis += 1
            groups[-1].append(axis)
        axis += 1
    if len(old) > len(new):
        return [f"  {out} = tensor.collapse_shape {operand} {groups} : {_type(old)} into {_type(new)}"]
    shape = f"output_shape {list(new)}"
    return [f"  {out} = tensor.expand_shape {operand} {groups} {shape} : {_type(old)} into {_type(new)}"]


def _contraction(out: str, node: Node, ins: str, type_: str) -> list[str]:
    start = "%zero"
    lines: list[str] = []
    name = f"linalg.{node.kind}"
    if node.kind == "conv2d":
        name = "linalg.conv_2d_nchw_fchw"
    elif node.kind == "max_pool":
        name = "linalg.pooling_nchw_max {strides = dense<2> : tensor<2xi64>}"
        start = f"{out}_least"
        lines += [f"  {start} = arith.constant 0xFF800000 : f32", f"  {out}_w = tensor.empty() : tensor<2x2xf32>"]
        ins = ins.replace(" : ", f", {out}_w : ").replace(")", ", tensor<2x2xf32>)")
    return [
        *lines,
        f"  {out}_i = linalg.fill ins({start} : f32) outs({out}_e : {type_}) -> {type_}",
        f"  {out} = {name} {ins} outs({out}_i : {type_}) -> {type_}",
    ]


def _reduction(out: str, node: Node, ins: str, type_: str) -> list[str]:
    op, least = REDUCE[node.kind]
    axes = [f"d{axis}" for axis in range(len(node.shape))]
    short = _type(node.shape[:-1])
    groups = [[axis] for axis in range(len(axes) - 2)] + [[len(axes) - 2, len(axes) - 1]]
    iterators = ", ".join(['"parallel"'] * (len(axes) - 1) + ['"reduction"'])
    return [
        f"  {out}_least = arith.constant {least} : f32",
        f"  {out}_s = tensor.empty() : {short}",
        f"  {out}_i = linalg.fill ins({out}_least : f32) outs({out}_s : {short}) -> {short}",
        f"  {out}_r = linalg.generic {{indexing_maps = [affine_map<({', '.join(axes)}) -> ({', '.join(axes)})>, "
        f"affine_map<({', '.join(axes)}) -> ({', '.join(axes[:-1])})>], iterator_types = [{iterators}]}} "
        f"{ins} outs({out}_i : {short}) {{",
        "  ^bb0(%a: f32, %b: f32):",
        f"    %c = {op} %a, %b : f32",
        f"    linalg.yield %c : f32\n  }} -> {short}",
        f"  {out} = tensor.expand_shape {out}_r {groups} output_shape {list(node.shape)} : {short} into {type_}",
    ]


def _elementwise(out: str, node: Node, shapes: list[Shape], ins: str, type_: str) -> str:
    axes = [f"d{axis}" for axis in range(len(node.shape))]
    maps = [", ".join(_broadcast(axes, node.shape, shape)) for shape in [*shapes, node.shape]]
    texts = ", ".join(f"affine_map<({', '.join(axes)}) -> ({m})>" for m in maps)
    names = ["%a", "%b"][: len(shapes)]
    if node.kind == "relu":
        body = "%c = arith.maximumf %a, %zero : f32"
    else:
        body = f"%c = {(BINARY | UNARY)[node.kind]} {', '.join(names)} : f32"
    iterators = ", ".join(['"parallel"'] * len(axes))
    arguments = ", ".join(f"{name}: f32" for name in [*names, "%unused"])
    return (
        f"  {out} = linalg.generic {{indexing_maps = [{texts}], iterator_types = [{iterators}]}} "
        f"{ins} outs({out}_e : {type_}) {{\n  ^bb0({arguments}):\n    {body}\n    linalg.yield %c : f32\n"
        f"  }} -> {type_}"
    )


def _broadcast(axes: list[str], full: Shape, shape: Shape) -> list[str]:
    offset = len(full) - len(shape)
    return [axes[axis + offset] if extent == full[axis + offset] else "0" for axis, extent in enumerate(shape)]
