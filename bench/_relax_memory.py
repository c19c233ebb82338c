"""TVM Relax's side of `memory.py`: runs in a Python of its own, which needs nothing but TVM.

python _relax_memory.py     for each graph the bytes of storage that StaticPlanBlockMemory allocates, as JSON:
                            operators one by one, and after operator fusion
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import tvm
from _graphs import GRAPHS, Graph, Node
from tvm import relax

OPERATORS: dict[str, Callable[..., Any]] = {
    "add": relax.op.add,
    "sub": relax.op.subtract,
    "mul": relax.op.multiply,
    "div": relax.op.divide,
    "exp": relax.op.exp,
    "rsqrt": relax.op.rsqrt,
    "tanh": relax.op.tanh,
    "relu": relax.op.nn.relu,
    "matmul": relax.op.matmul,
    "batch_matmul": relax.op.matmul,
    "conv2d": relax.op.nn.conv2d,
}


def build(graph: Graph) -> Any:
    """An IRModule with one function of one dataflow block."""
    values: list[Any] = [
        relax.Var(f"x{number}", relax.TensorType(shape, "float32")) for number, shape in enumerate(graph.inputs)
    ]
    builder = relax.BlockBuilder()
    with builder.function("main", list(values)):
        with builder.dataflow():
            for node in graph.nodes:
                values.append(builder.emit(_call(node, [values[operand] for operand in node.operands])))
            result = builder.emit_output(values[-1])
        builder.emit_func_output(result)
    return builder.get()


def _call(node: Node, operands: Sequence[Any]) -> Any:
    if node.kind in ("sum", "max"):
        return (relax.op.sum if node.kind == "sum" else relax.op.max)(operands[0], axis=-1, keepdims=True)
    if node.kind == "max_pool":
        return relax.op.nn.max_pool2d(operands[0], pool_size=(2, 2), strides=(2, 2))
    if node.kind == "reshape":
        return relax.op.reshape(operands[0], node.shape)
    if node.kind == "transpose":
        return relax.op.permute_dims(operands[0], list(node.extra))
    return OPERATORS[node.kind](*operands)


def storage(module: Any, fuse: bool) -> int:
    """The bytes of the storage that the planned function allocates, its result left out."""
    transform = relax.transform
    fusion = [transform.AnnotateTIROpPattern(), transform.FuseOps(), transform.FuseTIR()]
    passes = [
        transform.LegalizeOps(),
        *(fusion if fuse else []),
        transform.RewriteDataflowReshape(),
        transform.ToNonDataflow(),
        transform.RemovePurityChecking(),
        transform.CallTIRRewrite(),
        transform.StaticPlanBlockMemory(),
    ]
    with tvm.target.Target("llvm"):
        planned = tvm.transform.Sequential(passes)(module)
    total = 0
    for block in planned["main"].body.blocks:
        for binding in block.bindings:
            call = binding.value
            if isinstance(call, relax.Call) and getattr(call.op, "name", "") == "relax.memory.alloc_storage":
                total += prod(int(extent) for extent in call.args[0].values)
    return total


if __name__ == "__main__":
    graphs = {name: build(make()) for name, make in GRAPHS.items()}
    print(json.dumps({name: [storage(module, False), storage(module, True)] for name, module in graphs.items()}))
