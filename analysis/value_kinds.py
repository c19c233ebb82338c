"""Which values have a scope, told from their type."""

import re
from functools import lru_cache

from xdsl.dialects.builtin import (
    CompileTimeFixedBitwidthType,
    FunctionType,
    MemRefType,
    ShapedType,
    StringAttr,
    TensorType,
    TupleType,
    UnrankedMemRefType,
    UnrankedTensorType,
    UnregisteredAttr,
    VectorType,
)
from xdsl.ir import Attribute, Data
from xdsl.utils.type import get_element_type_or_self

from devscope.dialects.device import ScopeAttr

HOST, TENSOR, BUFFER, FUNCTION = range(4)
"""Kinds of values.

* ``HOST``: scalars (``index``, ``iN``, ``fN``, ``complex``, ``none``) and vectors, which are registers: always on
  the host, by type.
* ``TENSOR``: immutable data, that a ``device.device_copy`` can move.
* ``BUFFER``: data with identity (memrefs), in an aggregate (tuples), or of a type that another dialect defines,
  whatever that holds: it has a scope, but planning makes no copy of it.
* ``FUNCTION``: a function value; its scope is that of its arguments and results.
"""

_KINDS: dict[type[Attribute], int] = {
    TensorType: TENSOR,
    UnrankedTensorType: TENSOR,
    MemRefType: BUFFER,
    UnrankedMemRefType: BUFFER,
    VectorType: HOST,
    TupleType: BUFFER,
    FunctionType: FUNCTION,
}

_BUILTIN = TensorType.__module__

#: The value of a ``!tosa.shape`` is known to the compiler.
_TEXTS = (("tensor<", TENSOR), ("memref<", BUFFER), ("tuple<", BUFFER), ("!tosa.shape", HOST), ("!", BUFFER))


def kind_of(type_: Attribute) -> int:
    """The kind of a value of this type."""
    cls = type_.__class__
    kind = _KINDS.get(cls)
    if kind is not None:
        return kind
    if issubclass(cls, Data | UnregisteredAttr):
        return _kind_of_foreign(type_)
    kind = _KINDS[cls] = HOST if cls.__module__ == _BUILTIN else BUFFER
    return kind


@lru_cache(maxsize=1024)
def _kind_of_foreign(type_: Attribute) -> int:
    """The kind of a type that xDSL holds without knowing it, told from MLIR's text of it.

    Such are tensors whose encoding or element type xDSL lacks, and types of dialects that it lacks.
    """
    text = str(type_)
    return next((kind for prefix, kind in _TEXTS if text.startswith(prefix)), HOST)


@lru_cache(maxsize=1024)
def holds_data(type_: Attribute) -> bool:
    """Whether a value of this type has a scope: it is data, or a function that takes or gives any."""
    stack: list[Attribute] = [type_]
    while stack:
        current = stack.pop()
        if isinstance(current, FunctionType):
            stack += (*current.inputs, *current.outputs)
        elif kind_of(current) != HOST:
            return True
    return False


@lru_cache(maxsize=1024)
def memory_space_of(type_: Attribute) -> ScopeAttr | None:
    """What a buffer's type says about where it is; None when it says nothing that devscope knows.

    A memory space is a scope, or a string that is a scope's memory, such as ``"global"``, or one of gpu's address
    spaces, which are the memories ``global``, ``workgroup`` and ``private``. What a number means is the target's
    business.
    """
    if not isinstance(type_, MemRefType | UnrankedMemRefType):
        return None
    space = type_.memory_space
    if isinstance(space, ScopeAttr):
        return None if space.is_open else space
    if isinstance(space, StringAttr):
        return ScopeAttr.get(memory=space.data) if space.data else None
    named = re.fullmatch(r"#gpu(?:\.|<)address_space ?<(\w+)>>?", str(space))
    return ScopeAttr.get(memory=named[1]) if named is not None else None


def byte_size(type_: Attribute) -> int | None:
    """Bytes of data in a value of this type, None when its shape or its element type does not say."""
    if not isinstance(type_, ShapedType) or not type_.has_static_shape():
        return None
    element = get_element_type_or_self(type_)
    if not isinstance(element, CompileTimeFixedBitwidthType):
        return None
    try:
        return type_.element_count() * element.compile_time_size
    except NotImplementedError:  # xDSL has sizes of the usual widths only
        return None


def scalar_size(type_: Attribute) -> int:
    """Bytes of a scalar or vector in host memory; those of an index where its type does not say."""
    if isinstance(type_, CompileTimeFixedBitwidthType):
        return type_.compile_time_size
    return byte_size(type_) or 8
