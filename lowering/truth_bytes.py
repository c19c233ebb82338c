"""Truth values are bytes in buffers: i1 becomes i8 there, of 0 or 1.

Code generators have no vectors of i1 in memory: they go element by element. What is only moved is moved as it is.
Operations on bits are the same on bytes: where these combine what memory has they do so as bytes, so that
reductions still begin with what is there, and end with it.
"""

from typing import Any

import numpy as np

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.interop.mixed_types import LAUNCHES

_BITWISE = {"arith.andi": (0, 1), "arith.ori": (0, 1), "arith.xori": (0, 1), "arith.select": (1, 2)}
"""Operations that make the byte of a truth value of bytes, and which operands these are."""

_WIDENINGS = ("arith.extui", "arith.uitofp")


def in_memory(type_: Any) -> Any:
    """``type_``, with elements of i8 in the place of i1 if it is a buffer."""
    if not mlir_util.is_memref(type_) or not _is_truth(ir.MemRefType(type_).element_type):
        return type_
    old = ir.MemRefType(type_)
    byte = ir.IntegerType.get_signless(8, old.context)
    return ir.MemRefType.get_unchecked(old.shape, byte, old.layout, old.memory_space, old.context)


def store_truths_as_bytes(root: Any) -> None:
    """Replace buffers of i1 in ``root``, functions on buffers, also in signatures."""
    ops = mlir_util.walk(root)
    concerned = [op for op in ops if any(in_memory(value.type) != value.type for value in op.operands)]
    mlir_util.retype(root, in_memory)
    for op in ops:
        if op.name == "memref.global":
            _convert_elements(op)
    if concerned:
        bytes_ = _Bytes()
        written = [write for op in concerned for write in bytes_.read(op)]
        for op, number in written:
            op.operands[number] = bytes_.of(op.operands[number])
        bytes_.widen()


class _Bytes:
    """What memory has, by the truth values that were read from it."""

    def __init__(self) -> None:
        self._of: dict[Any, Any] = {}
        self._read: list[Any] = []
        self._combines: dict[Any, bool] = {}

    def read(self, op: Any) -> list[tuple[Any, int]]:
        """Let ``op``, which has a buffer of bytes, read these. Returns operands that are to be bytes, too."""
        if op.name.startswith("linalg."):
            return self._read_in_body(op)
        if op.name == "memref.load":
            self._add(op.results[0], ir.InsertionPoint.after(op))
        return [(op, 0)] if op.name == "memref.store" else []

    def _read_in_body(self, op: Any) -> list[tuple[Any, int]]:
        block = mlir_util.entry_block(op)
        *inside, end = mlir_util.children(op)
        pairs = [(v, a) for v, a in zip(op.operands, block.arguments, strict=False) if _is_truth(a.type)]
        launch = next((inner for inner in inside if inner.name in LAUNCHES), None)
        if launch is not None:  # whose arguments stand for buffers
            for value in [*(a for v, a in pairs if mlir_util.is_memref(v.type)), *launch.results]:
                value.set_type(_byte(value) if _is_truth(value.type) else value.type)
            return []
        if op.name == "linalg.fill" and _is_truth(op.operands[0].type):
            for argument in block.arguments:
                argument.set_type(_byte(argument))
            return [(op, 0)]
        for value, argument in pairs:
            if mlir_util.is_memref(value.type):
                self._add(argument, ir.InsertionPoint.at_block_begin(block))
        outputs = list(op.operands)[len(op.operands) - len(end.operands) :]
        return [
            (end, number)
            for number, (value, output) in enumerate(zip(end.operands, outputs, strict=True))
            if _is_truth(value.type) and mlir_util.is_memref(output.type)
        ]

    def _add(self, byte: Any, place: Any) -> None:
        """Let ``byte``, which was a truth value, be one, and what uses it use the truth value that it is."""
        type_ = byte.type
        byte.set_type(_byte(byte))
        with ir.Location.unknown(type_.context):
            made = ir.Operation.create("arith.trunci", [type_], [byte], ip=place)
        byte.replace_all_uses_except(made.result, made)
        self._of[made.result] = byte
        self._read.append(made)

    def of(self, value: Any) -> Any:
        """The byte that ``value``, a truth value, is."""
        if value in self._of:
            return self._of[value]
        maker = None if isinstance(value.owner, ir.Block) else value.owner.operation
        place = ir.InsertionPoint.at_block_begin(value.owner) if maker is None else ir.InsertionPoint.after(maker)
        operands = [value]
        name = "arith.extui"
        if self._combines_bytes(value):
            assert maker is not None
            parts = {number: self.of(maker.operands[number]) for number in _BITWISE[maker.name]}
            operands = [parts.get(number, operand) for number, operand in enumerate(maker.operands)]
            name = maker.name
        with maker.location if maker is not None else ir.Location.unknown(value.type.context):
            made = ir.Operation.create(name, [_byte(value)], operands, ip=place)
        self._of[value] = made.result
        return made.result

    def _combines_bytes(self, value: Any) -> bool:
        """Whether ``value`` combines bits, some of which memory has."""
        if value not in self._combines:
            maker = None if isinstance(value.owner, ir.Block) else value.owner.operation
            parts = [maker.operands[n] for n in _BITWISE[maker.name]] if maker and maker.name in _BITWISE else []
            self._combines[value] = any(part in self._of or self._combines_bytes(part) for part in parts)
        return self._combines[value]

    def widen(self) -> None:
        """Make numbers of bytes where they were made of truth values; drop truth values that nothing uses."""
        for made in self._read:
            byte = self._of[made.result]
            for user in [use.owner.operation for use in made.result.uses]:
                if user.name not in _WIDENINGS:
                    continue
                if user.results[0].type == byte.type:
                    mlir_util.replace_op(user, [byte])
                elif not isinstance(user.results[0].type, ir.IntegerType) or user.results[0].type.width > 8:
                    user.operands[0] = byte
            if not list(made.result.uses):
                made.erase()


def _convert_elements(constant: Any) -> None:
    """Let the elements of a global have its type."""
    elements: Any = dict(constant.attributes.items()).get("initial_value")
    if isinstance(elements, ir.DenseElementsAttr) and _is_truth(ir.ShapedType(elements.type).element_type):
        array = np.ascontiguousarray(np.array(elements, copy=None), np.int8)
        constant.attributes["initial_value"] = ir.DenseElementsAttr.get(array, context=constant.context)


def _is_truth(type_: Any) -> bool:
    return isinstance(type_, ir.IntegerType) and type_.width == 1


def _byte(value: Any) -> Any:
    return ir.IntegerType.get_signless(8, value.type.context)
