"""Small helpers over the MLIR Python bindings that several lowering steps share."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from math import prod
from typing import Any

from devscope.lowering.interop.bindings import children, first_child, ir, walk

RunPasses = Callable[[Any, str], None]
"""Runs a pass pipeline on an operation: `Session.run_passes`."""


def blocks_of(op: Any) -> Iterator[Any]:
    for region in op.regions:
        yield from region.blocks


def defined_values(op: Any) -> list[Any]:
    """The results of ``op`` and the arguments of its blocks."""
    return [*op.results, *(argument for block in blocks_of(op) for argument in block.arguments)]


def types(ops: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    """The types of the values that ``ops`` define, each once, and the first operation that has it."""
    known: set[Any] = set()
    for op in ops:
        for value in defined_values(op):
            if value.type not in known:
                known.add(value.type)
                yield value.type, op


def ops_behind(op: Any) -> Iterator[Any]:
    """The operations behind ``op`` in its block, in order.

    The bindings have no next operation. An element of ``block.operations`` is found without objects for those
    before it, and MLIR numbers the operations of a block: large blocks are not gone through for each of theirs.
    """
    ops = op.block.operations
    first = bisect_left(ops, True, key=lambda other: not other.operation.is_before_in_block(op)) + 1
    for number in range(first, len(ops)):
        yield ops[number].operation


def around(op: Any) -> Iterator[Any]:
    """The operations that ``op`` is in, the innermost one first, up to its function."""
    while (op := op.parent) is not None and op.name != "func.func":
        yield op.operation


def is_in_body(op: Any) -> bool:
    """Whether ``op`` is a part of what an operation of linalg does to elements."""
    return any(outer.name.startswith("linalg.") for outer in around(op))


def by_block(ops: Iterable[Any]) -> list[list[Any]]:
    """``ops``, none of which is a module, by the blocks that they are in."""
    found: dict[Any, list[Any]] = {}
    for op in ops:
        found.setdefault(op.block, []).append(op)
    return list(found.values())


def named(root: Any, *names: str) -> list[Any]:
    """The operations under ``root`` with one of these names.

    For those that are replaced: a walk over all would go on to what was inside of them, freed memory by then.
    """
    return [op for op in walk(root) if op.name in names]


def functions(module: Any) -> list[Any]:
    """The ``func.func`` operations of a module, in order."""
    return [op for op in children(module.operation) if op.name == "func.func"]


def text_of(op: Any, name: str) -> str:
    """The string that an attribute of ``op`` holds, which in MLIR can have any bytes."""
    return ir.StringAttr(op.attributes[name]).value_bytes.decode(errors="backslashreplace")


def symbol_name(op: Any) -> str:
    return ir.StringAttr(op.attributes["sym_name"]).value


def text_but_name(func: Any) -> str:
    """The text of a function without its name, the same for equal functions of a module."""
    # Attributes are written out, not by aliases, which have names by the order in which they occur.
    return func.get_asm(use_local_scope=True).replace(f"@{symbol_name(func)}(", "@(", 1)


def has_body(func: Any) -> bool:
    return len(func.regions[0].blocks) > 0


def append(parent: Any, text: str, location: Any | None = None) -> Any:
    """Append the operation of ``text`` to ``parent``, a module of any kind."""
    context = parent.operation.context
    parsed = ir.Module.parse(text, context)  # must outlive the move below
    (op,) = children(parsed.operation)
    op.location = ir.Location.unknown(context) if location is None else location
    parent.operation.regions[0].blocks[0].append(op)
    return op


def declare(parent: Any, name: str, type_: Any, location: Any | None = None) -> Any:
    """Append a private function without a body."""
    symbol = ir.FlatSymbolRefAttr.get(name, type_.context)
    return append(parent, f"func.func private {symbol}{type_}", location)


def add_body(function: Any) -> Any:
    """Give a declared function a body of one block; returns its terminator, which returns nothing yet."""
    types = function_type(function).inputs
    location = function.location
    block = ir.Block.create_at_start(function.regions[0], types, [location] * len(types))
    return ir.Operation.create("func.return", loc=location, ip=ir.InsertionPoint(block))


def entry_block(func: Any) -> Any:
    return func.regions[0].blocks[0]


def function_type(func: Any) -> Any:
    return ir.FunctionType(ir.TypeAttr(func.attributes["function_type"]).value)


def is_memref(type_: Any) -> bool:
    return isinstance(type_, ir.MemRefType)


def memory_space(type_: Any) -> Any | None:
    """The memory space attribute of a memref type; None for other types and for the default space."""
    return ir.MemRefType(type_).memory_space if is_memref(type_) else None


def is_on_device(value: Any) -> bool:
    """Whether a value is a buffer in another memory than the host's."""
    return memory_space(value.type) is not None


def buffer_type(shape: Sequence[int], element: Any, space: Any | None = None) -> Any:
    """The memref type of a whole buffer: its elements stand side by side."""
    return ir.MemRefType.get_unchecked(shape, element, None, space, element.context)


def is_whole_buffer(type_: Any) -> bool:
    memref = ir.MemRefType(type_)
    return memref == buffer_type(memref.shape, memref.element_type, memref.memory_space)


def with_memory_space(type_: Any, space: Any | None) -> Any:
    memref = ir.MemRefType(type_)
    return ir.MemRefType.get_unchecked(memref.shape, memref.element_type, memref.layout, space, memref.context)


def retype_memrefs(root: Any, space: Any | None, when: Callable[[Any | None], bool]) -> None:
    """Move every memref under ``root`` whose memory space satisfies ``when`` to ``space``, also in signatures."""

    def convert(type_: Any) -> Any:
        if is_memref(type_) and when(type_.memory_space):
            return with_memory_space(type_, space)
        return type_

    retype(root, convert)


def retype(root: Any, convert: Callable[[Any], Any]) -> None:
    """Convert the types of all values under ``root``, also in signatures; attributes stay."""
    for op in walk(root):
        for value in defined_values(op):
            new = convert(value.type)
            if new != value.type:
                value.set_type(new)
        if "function_type" in op.attributes:
            old = ir.TypeAttr(op.attributes["function_type"]).value
            if isinstance(old, ir.FunctionType):
                inputs, results = [convert(t) for t in old.inputs], [convert(t) for t in old.results]
                new = ir.FunctionType.get(inputs, results, context=op.context)
                op.attributes["function_type"] = ir.TypeAttr.get(new)
        elif op.name == "memref.global":
            op.attributes["type"] = ir.TypeAttr.get(convert(ir.TypeAttr(op.attributes["type"]).value))


def replace_op(op: Any, values: Iterable[Any]) -> None:
    for result, value in zip(op.results, values, strict=True):
        result.replace_all_uses_with(value)
    op.erase()


def retype_result(result: Any, type_: Any, cast: str) -> None:
    """Make a result be of another type; those who use it get it as it was, by an operation named ``cast``."""
    op, old = result.owner, result.type
    result.set_type(type_)
    with op.location:
        back = ir.Operation.create(cast, results=[old], operands=[result], ip=ir.InsertionPoint.after(op))
    result.replace_all_uses_except(back.results[0], back)


def captured_values(root: Any) -> list[Any]:
    """Values that ``root`` and what is nested in it use but do not define, in first-use order."""
    inside = walk(root)
    defined = {value for op in inside for value in defined_values(op)}
    return list(dict.fromkeys(v for op in inside for v in op.operands if v not in defined))


CONSTANTS = frozenset({"arith.constant", "complex.constant"})


def constants(root: Any) -> dict[Any, Any]:
    """The values of the constants under ``root``, and these operations."""
    return {op.results[0]: op for op in walk(root) if op.name in CONSTANTS}


def is_unsigned(loop: Any) -> bool:
    """Whether the bounds of an ``scf.for`` are unsigned numbers."""
    return "unsignedCmp" in loop.attributes


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
    if isinstance(type_, ir.ComplexType):
        return 2 * element_bytes(type_.element_type)
    bits = ir.IntegerType(type_).width if isinstance(type_, ir.IntegerType) else ir.FloatType(type_).width
    return 1 << ((max(bits, 1) - 1) // 8).bit_length()


def static_bytes(memref: Any) -> int | None:
    """What a buffer of a type takes, if its size is known."""
    type_ = ir.MemRefType(memref)
    is_known = ir.ShapedType.get_dynamic_size() not in type_.shape
    return prod(type_.shape) * element_bytes(type_.element_type) if is_known else None


def insert(before: Any, text: str, operands: Sequence[Any] = ()) -> list[Any]:
    """Put the operations of ``text`` in front of ``before``, at its location, and return them.

    In ``text``, ``%0``, ``%1`` and so on are ``operands``.
    """
    stand_ins = [f"%{n} = builtin.unrealized_conversion_cast to {v.type}" for n, v in enumerate(operands)]
    parsed = ir.Module.parse("\n".join([*stand_ins, text]), before.context)  # must outlive the moves below
    made, location = children(parsed.operation), before.location
    for op in walk(parsed.operation):
        op.location = location
    for operand, stand_in in zip(operands, made, strict=False):
        replace_op(stand_in, [operand])
    del made[: len(operands)]
    for op in made:
        op.move_before(before)
    return made


def maker(value: Any, name: str = "") -> Any | None:
    """The operation that makes ``value``, if it has that name."""
    op = None if isinstance(value.owner, ir.Block) else value.owner.operation
    return op if op is not None and op.name.startswith(name) else None


def constant_integer(value: Any) -> int | None:
    """The number that an integer or an index is; None for what is no constant."""
    op = maker(value, "arith.constant")
    return None if op is None else ir.IntegerAttr(op.attributes["value"]).value


def operand_groups(op: Any) -> list[list[Any]]:
    """The operands of ``op`` in the groups that its ``operandSegmentSizes`` tells apart."""
    operands = iter(list(op.operands))
    return [list(islice(operands, size)) for size in ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])]


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
        regions: int = 0,
    ) -> Any:
        return ir.Operation.create(
            name,
            operands=list(operands),
            results=list(results),
            attributes=attributes or {},
            regions=regions,
            loc=self._before.location,
            ip=ir.InsertionPoint(self._before),
        )

    def grouped(
        self,
        name: str,
        groups: Sequence[Sequence[Any]],
        results: Iterable[Any] = (),
        attributes: dict[str, Any] | None = None,
        regions: int = 0,
    ) -> Any:
        """An operation whose operands are in groups, which its ``operandSegmentSizes`` tells apart."""
        operands = [value for group in groups for value in group]
        segments = ir.DenseI32ArrayAttr.get([len(group) for group in groups], self._context)
        return self.op(name, operands, results, {**(attributes or {}), "operandSegmentSizes": segments}, regions)

    def value(
        self, name: str, operands: Iterable[Any], result: Any, attributes: dict[str, Any] | None = None
    ) -> Any:
        return self.op(name, operands, [result], attributes).results[0]

    def insert(self, text: str, operands: Sequence[Any]) -> list[Any]:
        """The operations of a text, as `insert` does it."""
        return insert(self._before, text, operands)

    def at_begin_of_task(self) -> "Builder":
        """One at the beginning of the body of the parallel loop or of the function around."""
        op = self._before
        while op.parent.name not in ("scf.parallel", "scf.forall", "func.func"):
            op = op.parent
        return Builder(first_child(op.parent))

    def clone(self, op: Any) -> Any:
        """A copy of an operation, with the same operands."""
        return op.clone(ip=ir.InsertionPoint(self._before)).operation

    def constant(self, number: int, type_: Any | None = None) -> Any:
        type_ = self.index if type_ is None else type_
        return self.value("arith.constant", [], type_, {"value": ir.IntegerAttr.get(type_, number)})

    def call(self, callee: str, operands: Iterable[Any], results: Iterable[Any] = ()) -> Any:
        symbol = ir.FlatSymbolRefAttr.get(callee, self._context)
        return self.op("func.call", operands, results, {"callee": symbol})

    def multiply(self, left: Any, right: Any) -> Any:
        return self.value("arith.muli", [left, right], self.index)

    def alloc(self, type_: Any, sizes: Sequence[Any] = (), name: str = "memref.alloc") -> Any:
        """A new buffer; ``sizes`` are those of the dynamic dimensions."""
        return self.grouped(name, [sizes, []], [type_]).results[0]

    def alloc_on_stack(self, type_: Any) -> Any:
        """A new buffer, which begins where a line of memory does."""
        attributes = {"alignment": ir.IntegerAttr.get(self.i64, 64)}
        return self.grouped("memref.alloca", [[], []], [type_], attributes).results[0]

    def copy(self, memref: Any, type_: Any) -> Any:
        """A new buffer of ``type_``, which may know less or more of the shape, with the same elements."""
        made = ir.MemRefType(type_)
        copy = self.alloc(
            type_, [self.dim(memref, axis) for axis in range(made.rank) if made.is_dynamic_dim(axis)]
        )
        self.op("memref.copy", [memref, copy])
        return copy

    def cast(self, memref: Any, type_: Any) -> Any:
        fits = memref.type == type_
        return memref if fits else self.value("memref.cast", [memref], type_)

    def dim(self, memref: Any, axis: int) -> Any:
        size = ir.MemRefType(memref.type).shape[axis]
        if size != ir.ShapedType.get_dynamic_size():
            return self.constant(size)
        return self.value("memref.dim", [memref, self.constant(axis)], self.index)

    def dynamic_sizes(self, memref: Any) -> list[Any]:
        type_ = ir.MemRefType(memref.type)
        return [self.dim(memref, axis) for axis in range(type_.rank) if type_.is_dynamic_dim(axis)]

    def byte_size(self, memref: Any) -> Any:
        type_ = ir.MemRefType(memref.type)
        total = self.constant(element_bytes(type_.element_type))
        for axis in range(type_.rank):
            total = self.multiply(total, self.dim(memref, axis))
        return total

    def pointer(self, memref: Any) -> Any:
        return self.value("memref.extract_aligned_pointer_as_index", [memref], self.index)

    def metadata(self, memref: Any) -> tuple[Any, list[Any], list[Any]]:
        """Offset, sizes and strides of a memref, in elements, as index values."""
        type_ = ir.MemRefType(memref.type)
        rank = type_.rank
        types = [buffer_type([], type_.element_type, type_.memory_space)] + [self.index] * (1 + 2 * rank)
        results = self.op("memref.extract_strided_metadata", [memref], types).results
        return results[1], list(results[2 : 2 + rank]), list(results[2 + rank :])
