"""Sizes of values, told from their types."""

import math
import re
from collections.abc import Sequence
from functools import cache, lru_cache, partial

from xdsl.dialects.builtin import MemRefType, ShapedType, TensorType, VectorType
from xdsl.ir import Attribute

_TEXT = re.compile(r"(?:tensor|memref|vector)<((?:(?:\?|[0-9]+)x)*)([^,>x][^,>]*)")
_BITS = re.compile(r"[0-9]+")


class Sizes:
    """Shapes and bytes, with an assumed size for dimensions that are known at run time only."""

    def __init__(self, dynamic_size: int) -> None:
        self._shape_and_width = cache(partial(_measure, dynamic_size))  # of a method it would be a cycle

    def shape(self, type_: Attribute) -> tuple[int, ...]:
        """The dimensions of a type, assumed where they are not known; () for scalars."""
        return self._shape_and_width(type_)[0]

    def bytes(self, type_: Attribute) -> int:
        """The size of a value's data; 0 for what is no array."""
        shape, width = self._shape_and_width(type_)
        return math.prod(shape) * width


def _measure(dynamic: int, type_: Attribute) -> tuple[tuple[int, ...], int]:
    if isinstance(type_, TensorType | MemRefType | VectorType):
        shape: Sequence[int] = type_.get_shape()
        return tuple(dynamic if size < 0 else size for size in shape), element_bytes(type_.element_type)
    match = _TEXT.match(str(type_)) if not isinstance(type_, ShapedType) else None
    if match is not None:
        sizes = match[1].split("x")[:-1]
        shape = tuple(dynamic if size == "?" else int(size) for size in sizes)
        return shape, _text_bytes(match[2])
    element = getattr(type_, "element_type", None)
    return ((dynamic,), element_bytes(element)) if isinstance(element, Attribute) else ((), 0)


@lru_cache(maxsize=256)
def element_bytes(element: Attribute | None) -> int:
    """Bytes of one element in memory: at least 1, 8 for an index; 4 where the element's type is not known."""
    return _text_bytes(str(element)) if element is not None else 4


def _text_bytes(text: str) -> int:
    """From the name of a type: the first number in it is its width."""
    digits = _BITS.search(text)
    bytes_ = max(int(digits[0]) // 8, 1) if digits is not None else 8
    return bytes_ * 2 if text.startswith("complex") else bytes_
