"""Loops of PyTorch (``while_loop``, ``scan``, ``map``) as calls, which `lowering_loops` makes loops of `scf` of.

torch-mlir's own importer makes loops that never end of the first, and has none for the others. What a loop does is
a function of the module, which torch-mlir lowers as it does others.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import torch
from torch_mlir.extras import fx_importer

from devscope.errors import LoweringError
from devscope.frontends.torch.lowering_loops import KIND, LOOP, PARTS, SIZES
from devscope.frontends.torch.places import described

ir: Any = importlib.import_module("torch_mlir.ir")  # its stubs are empty
_higher_order: Any = torch.ops.higher_order
_WHILE, _SCAN, _MAP = (_higher_order.while_loop, _higher_order.scan, _higher_order.map_impl)


def loop_graphs(graph: Any) -> Iterator[Any]:
    """The graphs of what the loops in ``graph`` do, and of those in them."""
    for node in graph.nodes:
        if node.target in (_WHILE, _SCAN, _MAP):
            for part in node.args[: _functions(node)]:
                module = getattr(graph.owning_module, part.target)
                module.graph.owning_module = module
                yield module.graph
                yield from loop_graphs(module.graph)


def _functions(node: Any) -> int:
    return 2 if node.target is _WHILE else 1


class LoopImporter(fx_importer.GraphNodeImporter):
    """Also imports loops."""

    __slots__ = ()

    def _import_hop_while_loop(self, loc: Any, node: Any, hop: Any) -> None:
        del hop
        self._call_loop(loc, node, "while", node.args[2:], [len(node.args[2])])

    def _import_hop_scan(self, loc: Any, node: Any, hop: Any) -> None:
        del hop
        *_, init, rows, _ = node.args
        self._call_loop(loc, node, "scan", node.args[1:], [len(init), len(rows)])

    def _import_hop_map_impl(self, loc: Any, node: Any, hop: Any) -> None:
        del hop
        self._call_loop(loc, node, "scan", node.args[1:], [0, len(node.args[1])])

    def _call_loop(self, loc: Any, node: Any, kind: str, groups: Any, counts: list[int]) -> None:
        arguments = [one for group in groups for one in group]
        operands = [self._import_argument(loc, one) for one in arguments]
        found = node.meta["val"]
        types = [self._cc.value_info_to_type(one) for one in found]
        importer: Any = self.fx_importer
        root, names = node.graph.owning_module, importer._graph_module_to_func_name
        parts = [names[id(getattr(root, part.target))] for part in node.args[: _functions(node)]]
        sizes = _sizes(node, found[counts[0] :], arguments) if kind == "scan" else []
        name = f"{LOOP}{len(importer._m.body.operations)}"
        type_ = ir.FunctionType.get([value.type for value in operands], types)
        with importer._m_ip, loc:
            function = fx_importer.func_dialect.FuncOp(name, type_, visibility="private")
            function.attributes[KIND] = ir.ArrayAttr.get([ir.StringAttr.get(kind), _numbers(counts)])
            function.attributes[PARTS] = ir.ArrayAttr.get([ir.FlatSymbolRefAttr.get(part) for part in parts])
            function.attributes[SIZES] = _numbers(sizes)
        with loc:
            call = fx_importer.func_dialect.CallOp(types, name, operands)
        self._multi_result_nodes.add(node)
        for number, value in enumerate(call.operation.results):
            self.bind_node_value(node, value, number)


def _numbers(values: list[int]) -> Any:
    return ir.DenseI64ArrayAttr.get(values)


def _sizes(node: Any, rows: Any, arguments: list[Any]) -> list[int]:
    """For each dynamic dimension of what a step adds to a result, an argument and its dimension of that size."""
    known: dict[Any, tuple[int, int]] = {}
    for number, one in enumerate(arguments):
        value = one.meta.get("val") if isinstance(one, torch.fx.Node) else None
        for dim, size in enumerate(value.shape if isinstance(value, torch.Tensor) else ()):
            known.setdefault(_expression(size), (number, dim))
    found: list[int] = []
    for row in rows:
        for size in row.shape[1:]:
            if not isinstance(size, int):
                if _expression(size) not in known:
                    raise LoweringError(
                        f"a step of a scan makes a dimension of size {size}, which none of its arguments has"
                        f"{described(_last(node))}"
                    )
                found += known[_expression(size)]
    return found


def _last(node: Any) -> Any:
    """The last operation of what a scan does: a scan itself has no line."""
    graph = getattr(node.graph.owning_module, node.args[0].target).graph
    return next(one for one in reversed(graph.nodes) if one.op == "call_function")


def _expression(size: Any) -> Any:
    return size if isinstance(size, int) else size.node.expr
