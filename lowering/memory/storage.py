"""Buffers with a place in an arena: how the plan notes it, and the runtime calls that it becomes.

A planned ``memref.alloc`` has ``devscope.storage = array<i64: number, offset, bytes>``: its number among the
places of its memory, where in the arena that place begins (ALONE: it is a buffer of its own), and how long it is.
Its ``memref.dealloc`` has the number. It frees nothing, but tells LLVM, which takes places for memory of their
own, until when a place holds this buffer.
"""

from __future__ import annotations

from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.mlir_util import Builder

STORAGE_ATTR = "devscope.storage"

ALONE = -1
"""The offset of a place that is a buffer of its own, made once."""


def mark(alloc: Any, free: Any, number: int, offset: int, size: int) -> None:
    """Note the place of a buffer."""
    alloc.attributes[STORAGE_ATTR] = ir.DenseI64ArrayAttr.get([number, offset, size], alloc.context)
    free.attributes[STORAGE_ATTR] = ir.DenseI64ArrayAttr.get([number], free.context)


class PlaceCalls:
    """Replaces marked allocations and releases, in program order, by what the runtime offers for them."""

    def __init__(self) -> None:
        self._bytes: dict[Any, Any] = {}

    def lower(self, op: Any, where: list[int]) -> None:
        """Replace ``op``; ``where`` is its slot."""
        slot = where[0]
        if op.name == "memref.alloc":
            self._find(op, slot)
            return
        if not slot:
            # The bytes that the buffer is a view of: the same pointer, of which LLVM does not lose track.
            Builder(op).call("devscope_done_on_host", [self._bytes[op.operands[0]]])
        op.erase()

    def _find(self, alloc: Any, slot: int) -> None:
        build = Builder(alloc)
        number, _, size = ir.DenseI64ArrayAttr(alloc.attributes[STORAGE_ATTR])
        place, length = build.constant(number, build.i64), build.constant(size)
        if slot:
            raw = build.runtime_buffer("devscope_arena_buffer", [build.constant(slot, build.i64), place], length)
        else:
            raw = build.runtime_bytes("devscope_place_on_host", [place, length])
        view = build.view(raw, [], ir.MemRefType(alloc.results[0].type))
        self._bytes[view] = raw
        mlir_util.replace_op(alloc, [view])
