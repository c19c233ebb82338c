"""Results that are larger than the caches: their lines go to memory without having been read from there.

That takes vectors that fill a whole line of the memory. LLVM does not vectorise loops of such stores: it does not
know where lines begin. The pool counts finished tasks by locked instructions, in front of which the processor
writes what it still holds of lines.
"""

from collections.abc import Collection
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.nest import Nest, Numbers
from devscope.lowering.kernels.tiles import LINE
from devscope.lowering.kernels.vector_bodies import compare, is_vectorisable
from devscope.lowering.kernels.vector_loads import Loads
from devscope.lowering.mlir_util import Builder

_LEAST = 512
"""Bytes of a row: of shorter ones, much is in lines that are not written as a whole."""


NEVER = 1 << 40
"""Bytes from which on results go past the caches, where none do."""


def streamed_lanes(
    nest: Nest, loop: int, numbers: Numbers, functions: Collection[str] = (), may_load: Loads | None = None
) -> int:
    """Elements of a line of the result, if rows of it, along ``loop``, may be streamed; else 0.

    ``functions``, ``may_load``: see `is_vectorisable`.
    """
    (result, *others) = nest.results
    if others or not all(nest.parallel) or not nest.is_pure:
        return 0
    if not is_vectorisable(nest, loop, functions, may_load):
        return 0
    type_ = ir.MemRefType(result.value.type)
    bytes_, extent = mlir_util.element_bytes(type_.element_type), nest.static_extent(loop)
    if loop not in result.dims or (extent is not None and extent * bytes_ < _LEAST):
        return 0
    size = mlir_util.static_bytes(type_)
    return LINE // bytes_ if size is None or size >= numbers["stream"] else 0


def whole_lines(
    build: Builder, buffer: Any, at: list[Any], range_: tuple[Any, Any], lanes: int, numbers: Numbers
) -> tuple[Any, Any]:
    """The part of a range, of indices of the last axis, that is whole lines; nothing of a small buffer.

    ``at``: the indices of the first element.
    """
    index, (begin, end) = build.index, range_

    def value(name: str, *operands: Any) -> Any:
        return build.value(f"arith.{name}", operands, index)

    type_ = ir.MemRefType(buffer.type)
    bytes_, line, count = (build.constant(n) for n in (mlir_util.element_bytes(type_.element_type), LINE, lanes))
    place, _, strides = build.metadata(buffer)
    for position, stride in zip(at, strides, strict=True):
        place = value("addi", place, value("muli", position, stride))
    address = value("addi", build.pointer(buffer), value("muli", place, bytes_))
    missing = value("remui", value("subi", line, value("remui", address, line)), line)
    first = value("minui", value("addi", begin, value("divui", missing, bytes_)), end)
    is_line = compare(build, "arith.cmpi", 0, value("remui", missing, bytes_), build.constant(0))
    if mlir_util.static_bytes(type_) is None:
        is_large = compare(build, "arith.cmpi", 9, build.byte_size(buffer), build.constant(numbers["stream"]))
        is_line = build.value("arith.andi", [is_line, is_large], is_line.type)
    first = build.value("arith.select", [is_line, first, end], index)
    return first, value("subi", end, value("remui", value("subi", end, first), count))


def store_line(build: Builder, vector: Any, buffer: Any, at: list[Any]) -> None:
    attributes = {
        "alignment": ir.IntegerAttr.get(build.i64, LINE),
        "nontemporal": ir.BoolAttr.get(True, vector.context),
    }
    build.op("vector.store", [vector, buffer, *at], attributes=attributes)
