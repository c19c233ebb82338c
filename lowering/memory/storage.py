"""Buffers with a place in an arena: how the plan notes it, and the runtime calls that it becomes.

A planned ``memref.alloc`` has ``devscope.storage = array<i64: number, offset, bytes>``: its number among the places in
its memory's arena, where that place begins, and how long it is. Its ``memref.dealloc`` has the number. It frees
nothing, but tells LLVM, which takes places for memory of their own, until when a place holds this buffer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.mlir_util import Builder

STORAGE_ATTR = "devscope.storage"


def mark(alloc: Any, free: Any, number: int, offset: int, size: int) -> None:
    """Note the place of a buffer."""
    alloc.attributes[STORAGE_ATTR] = ir.DenseI64ArrayAttr.get([number, offset, size], alloc.context)
    free.attributes[STORAGE_ATTR] = ir.DenseI64ArrayAttr.get([number], free.context)


def lower(op: Any, where: tuple[int, ...], kernels: Mapping[str, int]) -> None:
    """Replace a marked allocation or release by what the runtime offers for it; ``where`` is its slot."""
    slot = where[0]
    build = Builder(op)
    if op.name == "memref.alloc":
        number, _, size = ir.DenseI64ArrayAttr(op.attributes[STORAGE_ATTR])
        operands = [build.constant(n, build.i64) for n in ([slot] if slot else []) + [number, size]]
        callee = "devscope_place_on_device" if slot else "devscope_place_on_host"
        raw = build.call(callee, operands, [build.bytes_type()]).results[0]
        mlir_util.replace_op(op, [build.view(raw, [], ir.MemRefType(op.results[0].type))])
        return
    if not slot:
        build.call("devscope_host_done", [_address(build, op.operands[0])])
    op.erase()


def _address(build: Builder, buffer: Any) -> Any:
    """The address as a pointer: LLVM loses track of those that were numbers in between."""
    rank = ir.MemRefType(buffer.type).rank
    shape = f", array<{rank} x i64>, array<{rank} x i64>" if rank else ""
    descriptor = ir.Type.parse(f"!llvm.struct<(ptr, ptr, i64{shape})>", buffer.type.context)
    pointer = ir.Type.parse("!llvm.ptr", buffer.type.context)
    struct = build.value("builtin.unrealized_conversion_cast", [buffer], descriptor)
    position = ir.DenseI64ArrayAttr.get([1], buffer.type.context)
    return build.value("llvm.extractvalue", [struct], pointer, {"position": position})
