"""Calls of the runtime's functions that give memory."""

from collections.abc import Iterable
from typing import Any

from devscope.lowering.interop.bindings import ir
from devscope.lowering.mlir_util import Builder, buffer_type, element_bytes, static_bytes

_MOST_BYTES = 2**63 - 1


class RuntimeBuilder(Builder):
    """Creates them in front of an operation."""

    def allocation_bytes(self, type_: Any, dynamic: Iterable[Any]) -> Any:
        """Bytes of a new buffer, as the runtime's allocation functions want them.

        ``dynamic`` are the sizes of the dynamic dimensions. If one is negative the result is the smallest of
        them, if the product is too large the largest number: neither must turn into some other amount of memory.
        """
        least = element_bytes(type_.element_type)
        for size in type_.shape:
            least *= 1 if size == ir.ShapedType.get_dynamic_size() else size
        total = self.constant(min(least, _MOST_BYTES))
        for size in dynamic:
            total = self.call("devscope_times", [total, size], [self.index]).results[0]
        return total

    def runtime_buffer(self, callee: str, operands: Iterable[Any], size: Any) -> Any:
        """``size`` bytes (``memref<?xi8>``) at the pointer that the runtime's function ``callee`` gives."""
        pointer = self.call(callee, operands, [self.index]).results[0]
        return self.runtime_bytes("devscope_buffer_at", [pointer, size])

    def runtime_bytes(self, callee: str, operands: Iterable[Any]) -> Any:
        """What a function of ``runtime_calls.mlir`` gives that returns a ``memref<?xi8>``."""
        i8 = ir.IntegerType.get_signless(8, self.index.context)
        return self.call(callee, operands, [buffer_type([ir.ShapedType.get_dynamic_size()], i8)]).results[0]

    def static_buffer(self, callee: str, operands: Iterable[Any], type_: Any) -> Any:
        """A buffer of ``type_``, whose size is known, at the pointer that ``callee`` gives."""
        size = self.constant(static_bytes(type_) or 0)
        return self.view(self.runtime_buffer(callee, operands, size), [], type_)

    def view(self, raw: Any, sizes: Iterable[Any], type_: Any) -> Any:
        """Bytes (``memref<?xi8>``) seen as ``type_``; ``sizes`` are its dynamic sizes."""
        return self.value("memref.view", [raw, self.constant(0), *sizes], type_)
