"""Puts functions that handle buffers into their callers, so that one function shows the lifetimes of all of them.

Only functions that allocate, free or return buffers: for the others LLVM decides. MLIR's inliner has no budget for
all copies of a body together, and verifies the module, in which launches have no kernels yet.
"""

from __future__ import annotations

from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.memory.call_graph import CallGraph

_MOST_OPERATIONS = 2000
"""What the copies of one function's body may have together."""

_HANDLES_BUFFERS = frozenset({"memref.alloc", "memref.dealloc", "bufferization.dealloc", "bufferization.clone"})


def inline_functions(module: Any) -> None:
    """Inline the private functions of ``module`` with a single block that are called once, or are small."""
    graph = CallGraph(module)
    calls: dict[str, list[Any]] = {}
    for caller in graph.functions.values():
        for callee, found in caller.calls.items():
            calls.setdefault(callee, []).extend(found)
    for name in graph.order:
        found = graph.functions[name]
        if name in graph.recursive or found.is_value or not _is_private(found.func):
            continue
        if name in calls and len(found.func.regions[0].blocks) == 1:
            _inline(found.func, calls[name])


def _is_private(func: Any) -> bool:
    return (
        "sym_visibility" in func.attributes and ir.StringAttr(func.attributes["sym_visibility"]).value == "private"
    )


def _inline(func: Any, sites: list[Any]) -> None:
    ops = list(mlir_util.walk(func))[1:]
    if not (_HANDLES_BUFFERS & {op.name for op in ops} or any(map(_is_buffer, sites[0].results))):
        return
    if (len(sites) - 1) * len(ops) > _MOST_OPERATIONS:
        return
    for site in sites[:-1]:
        _copy_body(func, site)
    _move_body(func, sites[-1])
    func.erase()


def _is_buffer(value: Any) -> bool:
    return mlir_util.is_memref(value.type)


def _move_body(func: Any, site: Any) -> None:
    for argument, operand in zip(mlir_util.entry_block(func).arguments, list(site.operands), strict=True):
        argument.replace_all_uses_with(operand)
    *body, return_ = mlir_util.children(func)
    for op in body:
        op.move_before(site)
    results = list(return_.operands)
    return_.erase()
    mlir_util.replace_op(site, results)


def _copy_body(func: Any, site: Any) -> None:
    mapping = dict(zip(mlir_util.entry_block(func).arguments, site.operands, strict=True))
    *body, return_ = mlir_util.children(func)
    for op in body:
        copy = op.clone(ip=ir.InsertionPoint(site)).operation
        mlir_util.remap_operands(copy, mapping)
        mapping.update(zip(op.results, copy.results, strict=True))
    mlir_util.replace_op(site, [mapping.get(value, value) for value in return_.operands])
