"""``tensor.reshape`` on devices, whose shape is a tensor on the host, by operations that take sizes: scalars.

A device function takes data of its own device only, and scalars. So the source is collapsed to one dimension, and
that is expanded by what the host reads from the shape.
"""

from math import prod

from xdsl.dialects import arith, cf, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    IndexType,
    IntegerAttr,
    StringAttr,
    TensorType,
    UnregisteredOp,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from devscope.dialects.device import SCOPE_ATTR, ScopeAttr
from devscope.dialects.names import SAME_SIZE, op_name


def reshape_by_sizes(op: Operation, scope: ScopeAttr, host: ScopeAttr) -> bool:
    """Replace ``op``, on ``scope``, if it is a ``tensor.reshape`` between ranked tensors; whether it is."""
    if op_name(op) != "tensor.reshape":
        return False
    (source, shape), result = op.operands, op.results[0]
    if not isinstance(source.type, TensorType) or not isinstance(result.type, TensorType):
        return False
    build = _Builder(op, scope, host)
    sizes: list[SSAValue] = []
    for number, extent in enumerate(result.type.get_shape()):
        size = build.size(shape, number)
        if extent == DYNAMIC_INDEX:
            sizes.append(size)
        else:
            build.require_equal(size, extent, number)
    Rewriter.replace_op(op, [], [build.unflattened(build.flattened(source), result.type, sizes)])
    return True


class _Builder:
    """Puts operations before ``op``: those on tensors are on its scope, what reads the shape is on the host."""

    def __init__(self, op: Operation, scope: ScopeAttr, host: ScopeAttr) -> None:
        self._op, self._scope, self._host = op, scope, host

    def _insert(self, op: Operation, scope: ScopeAttr | None = None) -> SSAValue:
        op.location = self._op.location
        if scope is not None:
            op.attributes[SCOPE_ATTR] = scope
        Rewriter.insert_op(op, InsertPoint.before(self._op))
        return op.results[0]

    def size(self, shape: SSAValue, number: int) -> SSAValue:
        """An element of a shape, as an index. Of one that is put together from scalars, the scalar."""
        owner = shape.owner
        if isinstance(owner, UnregisteredOp | tensor.FromElementsOp) and op_name(owner) == "tensor.from_elements":
            element = owner.operands[number]
        else:
            assert isinstance(shape.type, TensorType)
            position = self._insert(arith.ConstantOp(IntegerAttr(number, IndexType())))
            extract = tensor.ExtractOp(shape, position, shape.type.get_element_type())
            element = self._insert(extract, self._host)
        if isinstance(element.type, IndexType):
            return element
        return self._insert(arith.IndexCastOp(element, IndexType()))

    def require_equal(self, size: SSAValue, extent: int, number: int) -> None:
        """The host asserts that an element of the shape is what the type of the result says."""
        known = self._insert(arith.ConstantOp(IntegerAttr(extent, IndexType())))
        check = cf.AssertOp(self._insert(arith.CmpiOp(size, known, "eq")), "in 'tensor.reshape'")
        names = (f"element {number} of the shape", "that of the result")
        check.attributes[SAME_SIZE] = ArrayAttr([StringAttr(name) for name in names])
        check.location = self._op.location
        Rewriter.insert_op(check, InsertPoint.before(self._op))

    def flattened(self, source: SSAValue) -> SSAValue:
        """``source`` with one dimension."""
        assert isinstance(source.type, TensorType)
        shape, element = source.type.get_shape(), source.type.get_element_type()
        if len(shape) == 1:
            return source
        if not shape:
            return self._expanded(source, TensorType(element, [1]), [])
        return self._collapsed(source, TensorType(element, [_count(shape)]))

    def unflattened(self, flat: SSAValue, type_: TensorType[Attribute], sizes: list[SSAValue]) -> SSAValue:
        """``flat`` as a tensor of another type, whose dynamic extents are ``sizes``."""
        assert isinstance(flat.type, TensorType)
        shape = type_.get_shape()
        cast = TensorType(type_.get_element_type(), [_count(shape)])
        if cast != flat.type:
            flat = self._insert(tensor.CastOp(flat, cast), self._scope)
        return self._expanded(flat, type_, sizes) if shape else self._collapsed(flat, type_)

    def _collapsed(self, value: SSAValue, type_: TensorType[Attribute]) -> SSAValue:
        properties = {"reassociation": _all_as_one(value.type, type_)}
        op = tensor.CollapseShapeOp.create(operands=[value], result_types=[type_], properties=properties)
        return self._insert(op, self._scope)

    def _expanded(self, value: SSAValue, type_: TensorType[Attribute], sizes: list[SSAValue]) -> SSAValue:
        reassociation = _all_as_one(type_, value.type)
        op = tensor.ExpandShapeOp(value, sizes, reassociation, list(type_.get_shape()), type_)
        return self._insert(op, self._scope)


def _all_as_one(expanded: Attribute, collapsed: Attribute) -> ArrayAttr[ArrayAttr[IntegerAttr]]:
    """All dimensions of the type of higher rank as one of the other, which has none or one."""
    assert isinstance(expanded, TensorType)
    assert isinstance(collapsed, TensorType)
    group = [IntegerAttr(number, i64) for number in range(len(expanded.get_shape()))]
    return ArrayAttr([ArrayAttr(group)] if collapsed.get_shape() else [])


def _count(shape: tuple[int, ...]) -> int:
    return DYNAMIC_INDEX if DYNAMIC_INDEX in shape else prod(shape)
