"""Constants that a kernel reads in panels stand packed in the table of constants: nothing packs them in a call.

A constant of which nobody else reads the plain form has only the packed one.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from devscope.lowering import mlir_util
from devscope.lowering.constants import CONSTANT_PREFIX, ConstantTable, constant_number
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.contraction_words import WORD, Words, in_words

_GET = "memref.get_global"
_RESHAPES = ("memref.collapse_shape", "memref.expand_shape")
_PART = "memref.subview"
_VIEWS = (*_RESHAPES, _PART, "memref.cast", "memref.extract_strided_metadata")


class PackedConstants:
    """Of one module, whose constants are in ``table``; the first ``others`` are other modules', too."""

    def __init__(self, module: Any, table: ConstantTable, others: int = 0) -> None:
        self._others = range(others)
        self._module = module
        self._table = table
        self._packed: dict[Any, str] = {}

    @staticmethod
    def has(value: Any) -> bool:
        """Whether ``value`` is a constant that can be packed."""
        return _number(value) is not None

    def is_finite(self, value: Any) -> bool:
        """Whether ``value``, a constant, is known to have no infinity and no NaN."""
        number = _number(value)
        if number is None:
            return False
        array = self._table.arrays[number]
        if str(ir.MemRefType(value.type).element_type) == "bf16":
            return bool(np.all(~array.view(np.uint16) & np.uint16(0x7F80)))
        return array.dtype.kind in "iu" or bool(np.all(np.isfinite(array)))

    def least_exponent(self, value: Any) -> int:
        """Of the numbers of ``value``, a constant of bf16, that are not 0, as it is stored; 255 without any."""
        number = _number(value)
        assert number is not None
        bits = self._table.arrays[number].view(np.uint16) << np.uint16(1)
        return int(np.min(bits - np.uint16(1), initial=0xFFFF)) >> 8

    def pack(
        self,
        op: Any,
        value: Any,
        groups: Sequence[Sequence[int]],
        width: int,
        words: Words | None = None,
        is_a: bool = False,
        shifts: Sequence[int] = (0,),
    ) -> Any | None:
        """``value``, an operand of ``op``, packed for a kernel in panels of ``width`` lines: as
        [batch][panels][k][width] in a buffer of rank 2, with zeros behind the last line. ``groups``: the axes that
        are batch, lines and k. ``words``: what elements along k are packed as; ``is_a``: in those of A.
        ``shifts``: how many elements later each of as many tensors of this type begins, which are one batch.

        None if it is no constant, or if zeros would be more than half of it.
        """
        number = _number(value)
        if number is None:
            return None
        operand = ir.MemRefType(value.type)
        shape = operand.shape
        batch, count, steps = (math.prod(shape[axis] for axis in group) for group in groups)
        batch *= len(shifts)
        panels, element = -(-count // width), str(operand.element_type)
        if words is not None:
            steps, element = -(-steps // words.steps), WORD
        if batch * count * steps == 0 or panels * width > 2 * count:
            return None
        order = (0, *(1 + axis for group in groups for axis in group))
        size = panels * steps * width
        strides, begin = operand.get_strides_and_offset()
        places = tuple(begin + shift for shift in shifts), tuple(strides), tuple(shape)
        key = number, places, tuple(map(tuple, groups)), width, words, is_a
        if key not in self._packed:
            flat = self._table.arrays[number].reshape(-1)
            apart = [stride * flat.itemsize for stride in strides]
            parts = [np.lib.stride_tricks.as_strided(flat[place:], shape, apart) for place in places[0]]
            plain = np.stack(parts).transpose(order).reshape(batch, count, -1)
            plain = plain if words is None else in_words(plain, words, is_a)
            packed = np.zeros((batch, panels, steps, width), plain.dtype)
            lines, whole = packed.transpose(0, 1, 3, 2), count // width
            end = whole * width
            lines[:, :whole] = plain[:, :end].reshape(batch, whole, width, steps)
            lines[:, whole:, : count - end] = plain[:, None, end:]
            made = self._table.add(packed.reshape(batch, size), element)
            self._packed[key] = f"{CONSTANT_PREFIX}{made}"
            first = mlir_util.first_child(self._module)
            text = f'memref.global "private" @{self._packed[key]} : memref<{batch}x{size}x{element}>'
            mlir_util.insert(first, text)
        type_ = mlir_util.buffer_type([batch, size], ir.Type.parse(element, op.context))
        symbol = ir.FlatSymbolRefAttr.get(self._packed[key], op.context)
        return mlir_util.Builder(op).value(_GET, [], type_, {"name": symbol})

    def finish(self) -> None:
        """Leave out of the table what nobody reads any more."""
        if not self._packed:
            return
        reads, globals_ = list[Any](), list[Any]()
        for op in reversed([*mlir_util.named(self._module.operation, *_VIEWS)]):
            if not any(True for result in op.results for _ in result.uses):
                op.erase()
        for op in mlir_util.walk(self._module.operation):
            if op.name == _GET and _number(op.results[0]) is not None:
                if any(True for _ in op.results[0].uses):
                    reads.append(op)
                else:
                    op.erase()
            elif op.name == "memref.global" and mlir_util.symbol_name(op).startswith(CONSTANT_PREFIX):
                globals_.append(op)
        read = {number for op in reads if (number := _number(op.results[0])) is not None}
        numbers = self._table.keep(read.union(self._others))
        for op in reads:
            name = f"{CONSTANT_PREFIX}{numbers[constant_number(_symbol(op))]}"
            op.attributes["name"] = ir.FlatSymbolRefAttr.get(name, op.context)
        for op in globals_:
            number = numbers.get(constant_number(mlir_util.symbol_name(op)))
            if number is None:
                op.erase()
            else:
                op.attributes["sym_name"] = ir.StringAttr.get(f"{CONSTANT_PREFIX}{number}", op.context)


def _symbol(op: Any) -> str:
    return ir.FlatSymbolRefAttr(op.attributes["name"]).value


def _number(value: Any) -> int | None:
    """That of the constant in the table that ``value``, a buffer, is."""
    while not isinstance(value.owner, ir.Block) and value.owner.operation.name in (*_RESHAPES, _PART):
        value = value.owner.operation.operands[0]
    if isinstance(value.owner, ir.Block) or value.owner.operation.name != _GET:
        return None
    symbol = _symbol(value.owner.operation)
    return constant_number(symbol) if symbol.startswith(CONSTANT_PREFIX) else None
