"""Small helpers over the MLIR Python bindings that several lowering steps share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from devscope.lowering.interop.bindings import ir
from devscope.lowering.interop.children import children

RunPasses = Callable[[Any, str], None]
"""Runs a pass pipeline on an operation: `Session.run_passes`."""


def blocks_of(op: Any) -> Iterator[Any]:
    for region in op.regions:
        yield from region.blocks


def walk(op: Any) -> Iterator[Any]:
    """All operations under ``op``, itself first, in pre-order; safe while bodies of visited ops change."""
    stack = [op.operation]
    while stack:
        current = stack.pop()
        yield current
        if len(current.regions):
            stack.extend(reversed(children(current)))


def functions(module: Any) -> list[Any]:
    """The ``func.func`` operations of a module, in order."""
    return [op for op in children(module.operation) if op.name == "func.func"]


def symbol_name(op: Any) -> str:
    return ir.StringAttr(op.attributes["sym_name"]).value


def text_but_name(func: Any) -> str:
    """The text of a function without its name, the same for equal functions of a module."""
    # Attributes are written out, not by aliases, which have names by the order in which they occur.
    return func.get_asm(use_local_scope=True).replace(f"@{symbol_name(func)}(", "@(", 1)


def has_body(func: Any) -> bool:
    return len(func.regions[0].blocks) > 0


def declare(block: Any, name: str, type_: Any, location: Any | None = None) -> Any:
    """Append a private function without a body."""
    context = type_.context
    function = ir.Operation.create(
        "func.func",
        attributes={
            "sym_name": ir.StringAttr.get(name, context),
            "sym_visibility": ir.StringAttr.get("private", context),
            "function_type": ir.TypeAttr.get(type_),
        },
        regions=1,
        loc=ir.Location.unknown(context) if location is None else location,
    )
    block.append(function)
    return function


def entry_block(func: Any) -> Any:
    return func.regions[0].blocks[0]


def function_type(func: Any) -> Any:
    return ir.FunctionType(ir.TypeAttr(func.attributes["function_type"]).value)


def is_memref(type_: Any) -> bool:
    return isinstance(type_, ir.MemRefType)


def memory_space(type_: Any) -> Any | None:
    """The memory space attribute of a memref type; None for other types and for the default space."""
    return ir.MemRefType(type_).memory_space if is_memref(type_) else None


def with_memory_space(type_: Any, space: Any | None) -> Any:
    memref = ir.MemRefType(type_)
    return ir.MemRefType.get(
        memref.shape, memref.element_type, memref.layout, space, loc=ir.Location.unknown(type_.context)
    )


def retype(root: Any, convert: Callable[[Any], Any]) -> None:
    """Replace the type of every value under ``root`` by ``convert(type)``, function types included."""
    for op in walk(root):
        for result in op.results:
            new = convert(result.type)
            if new != result.type:
                result.set_type(new)
        for block in blocks_of(op):
            for argument in block.arguments:
                new = convert(argument.type)
                if new != argument.type:
                    argument.set_type(new)
        if "function_type" in op.attributes:
            old = ir.TypeAttr(op.attributes["function_type"]).value
            if isinstance(old, ir.FunctionType):
                inputs, results = [convert(t) for t in old.inputs], [convert(t) for t in old.results]
                new = ir.FunctionType.get(inputs, results, context=op.context)
                op.attributes["function_type"] = ir.TypeAttr.get(new)
        elif op.name == "memref.global":
            op.attributes["type"] = ir.TypeAttr.get(convert(ir.TypeAttr(op.attributes["type"]).value))


def retype_memrefs(root: Any, space: Any | None, when: Callable[[Any | None], bool]) -> None:
    """Move every memref whose memory space satisfies ``when`` to ``space``."""

    def convert(type_: Any) -> Any:
        if is_memref(type_) and when(ir.MemRefType(type_).memory_space):
            return with_memory_space(type_, space)
        return type_

    retype(root, convert)


def replace_op(op: Any, values: Iterable[Any]) -> None:
    for result, value in zip(op.results, values, strict=True):
        result.replace_all_uses_with(value)
    op.erase()


def captured_values(root: Any) -> list[Any]:
    """Values that ``root`` and what is nested in it use but do not define, in first-use order."""
    inside = list(walk(root))
    defined = {result for op in inside for result in op.results}
    defined |= {argument for op in inside for block in blocks_of(op) for argument in block.arguments}
    return list(dict.fromkeys(v for op in inside for v in op.operands if v not in defined))


def constants(root: Any) -> dict[Any, Any]:
    """The values of the ``arith.constant`` operations under ``root``, and those operations.

    To ask a value for its owner would have the bindings import the module of the owner's dialect.
    """
    return {op.results[0]: op for op in walk(root) if op.name == "arith.constant"}


def remap_operands(root: Any, mapping: dict[Any, Any]) -> None:
    for op in walk(root):
        for index, operand in enumerate(op.operands):
            new = mapping.get(operand)
            if new is not None:
                op.operands[index] = new


def element_bytes(type_: Any) -> int:
    """Bytes that one element takes in memory: i1 and other odd widths are padded to a power of two of bytes."""
    if isinstance(type_, ir.IndexType):
        return 8
    return padded_bytes(
        ir.IntegerType(type_).width if isinstance(type_, ir.IntegerType) else ir.FloatType(type_).width
    )


def padded_bytes(bits: int) -> int:
    """The smallest power of two of bytes that holds so many bits."""
    size = 1
    while size * 8 < bits:
        size *= 2
    return size


_MOST_BYTES = 2**63 - 1
#: ``eq`` and ``sge`` of arith.cmpi, which compares signed here.
_EQUAL, _AT_LEAST = 0, 5


class Builder:
    """Creates operations in front of another one, with its location."""

    def __init__(self, before: Any) -> None:
        self._before = before
        self._context = before.context
        self.index = ir.IndexType.get(self._context)
        self.i64 = ir.IntegerType.get_signless(64, self._context)

    def op(
        self,
        name: str,
        operands: Iterable[Any] = (),
        results: Iterable[Any] = (),
        attributes: dict[str, Any] | None = None,
    ) -> Any:
        return ir.Operation.create(
            name,
            operands=list(operands),
            results=list(results),
            attributes=attributes or {},
            loc=self._before.location,
            ip=ir.InsertionPoint(self._before),
        )

    def value(
        self, name: str, operands: Iterable[Any], result: Any, attributes: dict[str, Any] | None = None
    ) -> Any:
        return self.op(name, operands, [result], attributes).results[0]

    def constant(self, number: int, type_: Any | None = None) -> Any:
        type_ = self.index if type_ is None else type_
        return self.value("arith.constant", [], type_, {"value": ir.IntegerAttr.get(type_, number)})

    def call(self, callee: str, operands: Iterable[Any], results: Iterable[Any] = ()) -> Any:
        symbol = ir.FlatSymbolRefAttr.get(callee, self._context)
        return self.op("func.call", operands, results, {"callee": symbol})

    def multiply(self, left: Any, right: Any) -> Any:
        return self.value("arith.muli", [left, right], self.index)

    def add(self, left: Any, right: Any) -> Any:
        return self.value("arith.addi", [left, right], self.index)

    def dim(self, memref: Any, axis: int) -> Any:
        size = ir.MemRefType(memref.type).shape[axis]
        if size != ir.ShapedType.get_dynamic_size():
            return self.constant(size)
        return self.value("memref.dim", [memref, self.constant(axis)], self.index)

    def byte_size(self, memref: Any) -> Any:
        type_ = ir.MemRefType(memref.type)
        return self.bytes_of(type_, [self.dim(memref, axis) for axis in range(type_.rank)])

    def bytes_of(self, type_: Any, sizes: Iterable[Any]) -> Any:
        total = self.constant(element_bytes(type_.element_type))
        for size in sizes:
            total = self.multiply(total, size)
        return total

    def allocation_bytes(self, type_: Any, dynamic: Sequence[Any]) -> Any:
        """Bytes of a new buffer, as the runtime's allocation functions want them.

        ``dynamic`` are the sizes of the dynamic dimensions. If one is negative the result is the smallest of
        them, if the product is too large the largest number: neither must turn into some other amount of memory.
        """
        least = element_bytes(type_.element_type)
        for size in type_.shape:
            least *= 1 if size == ir.ShapedType.get_dynamic_size() else size
        total = self.constant(min(least, _MOST_BYTES))
        if not dynamic:
            return total
        zero = self.constant(0)
        smallest = dynamic[0]
        fits: Any = None
        for size in dynamic:
            total, high = self.op("arith.mului_extended", [total, size], [self.index] * 2).results
            none = self._compare(_EQUAL, high, zero)
            fits = none if fits is None else self.value("arith.andi", [fits, none], none.type)
            smallest = size if size is smallest else self.value("arith.minsi", [smallest, size], self.index)
        fits = self.value("arith.andi", [fits, self._compare(_AT_LEAST, total, zero)], fits.type)
        total = self.value("arith.select", [fits, total, self.constant(_MOST_BYTES)], self.index)
        sensible = self._compare(_AT_LEAST, smallest, zero)
        return self.value("arith.select", [sensible, total, smallest], self.index)

    def _compare(self, predicate: int, left: Any, right: Any) -> Any:
        attribute = {"predicate": ir.IntegerAttr.get(self.i64, predicate)}
        bit = ir.IntegerType.get_signless(1, self._context)
        return self.value("arith.cmpi", [left, right], bit, attribute)

    def pointer(self, memref: Any) -> Any:
        return self.value("memref.extract_aligned_pointer_as_index", [memref], self.index)

    def metadata(self, memref: Any) -> tuple[Any, list[Any], list[Any]]:
        """Offset, sizes and strides of a memref, in elements, as index values."""
        type_ = ir.MemRefType(memref.type)
        base = ir.MemRefType.get(
            [], type_.element_type, None, type_.memory_space, loc=ir.Location.unknown(self._context)
        )
        rank = type_.rank
        results = self.op(
            "memref.extract_strided_metadata", [memref], [base] + [self.index] * (1 + 2 * rank)
        ).results
        return results[1], list(results[2 : 2 + rank]), list(results[2 + rank :])

    def view(self, raw: Any, sizes: Iterable[Any], type_: Any) -> Any:
        """Bytes (``memref<?xi8>``) seen as ``type_``; ``sizes`` are its dynamic sizes."""
        return self.value("memref.view", [raw, self.constant(0), *sizes], type_)

    def bytes_type(self) -> Any:
        dynamic = ir.ShapedType.get_dynamic_size()
        i8 = ir.IntegerType.get_signless(8, self._context)
        return ir.MemRefType.get([dynamic], i8, loc=ir.Location.unknown(self._context))
