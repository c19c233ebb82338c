"""Bodies of operations of linalg, computed for several neighbouring iterations at once."""

from collections.abc import Mapping
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.nest import Nest
from devscope.lowering.mlir_util import Builder

_IN_MEMORY = frozenset({"f16", "bf16", "f32", "f64", "i8", "i16", "i32", "i64"})
"""Elements that stand in memory as they do in vectors."""

_MATH = frozenset(
    f"math.{name}"
    for name in ("absf", "absi", "ceil", "copysign", "floor", "fma", "roundeven", "rsqrt", "sqrt", "trunc")
)
"""What LLVM has for vectors; other functions may become calls for one number after the other."""


def is_vectorisable(nest: Nest, loop: int) -> bool:
    """Whether iterations of ``loop`` can be done with vectors: all operands have elements side by side, or one."""
    for operand in nest.operands:
        if operand.is_buffer and loop in operand.dims:
            element = ir.MemRefType(operand.value.type).element_type
            if operand.contiguous() != loop or operand.dims[-1] != loop or str(element) not in _IN_MEMORY:
                return False
    for op in mlir_util.children(nest.op):
        types = [value.type for value in (*op.operands, *op.results)]
        if not all(isinstance(type_, ir.IntegerType | ir.FloatType | ir.IndexType) for type_ in types):
            return False
        if not op.name.startswith(("arith.", "linalg.")) and op.name not in _MATH:
            return False
    return True


def load_vector(build: Builder, buffer: Any, at: list[Any], lanes: int) -> Any:
    element = ir.MemRefType(buffer.type).element_type
    return build.value("vector.load", [buffer, *at], _vector(lanes, element))


def clone_as_vectors(
    build: Builder, of: Any, mapping: dict[Any, Any], indices: Mapping[int, Any], loop: int, lanes: int
) -> list[Any]:
    """What the body of ``of`` yields in ``lanes`` iterations of ``loop``, the first of which is in ``indices``.

    ``mapping``: values for those of the body, vectors or numbers for all iterations; results are of either kind.
    """
    *ops, end = mlir_util.children(of)
    for op in ops:
        if op.name == "linalg.index":
            number = ir.IntegerAttr(op.attributes["dim"]).value
            mapping[op.results[0]] = indices[number]
            if number == loop:
                type_ = _vector(lanes, build.index)
                first = build.value("vector.broadcast", [indices[number]], type_)
                mapping[op.results[0]] = build.value(
                    "arith.addi", [first, build.value("vector.step", [], type_)], type_
                )
            continue
        operands = [mapping.get(value, value) for value in op.operands]
        if not any(isinstance(value.type, ir.VectorType) for value in operands):
            copy = build.clone(op)
            mlir_util.remap_operands(copy, mapping)
        else:
            types = [_vector(lanes, result.type) for result in op.results]
            attributes = dict(op.attributes.items())
            copy = build.op(op.name, [as_vector(build, value, lanes) for value in operands], types, attributes)
        mapping.update(zip(op.results, copy.results, strict=True))
    return [mapping.get(value, value) for value in end.operands]


def as_vector(build: Builder, value: Any, lanes: int) -> Any:
    """``value`` in all lanes, if it is a number."""
    if isinstance(value.type, ir.VectorType):
        return value
    return build.value("vector.broadcast", [value], _vector(lanes, value.type))


def _vector(lanes: int, element: Any) -> Any:
    return ir.VectorType.get_unchecked([lanes], element, context=element.context)
