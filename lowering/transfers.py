"""Copies between host and devices, and shape queries of device data, as operations on buffers."""

from xdsl.dialects import arith, bufferization, func, memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, IntegerAttr, MemRefType, TensorType, UnitAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter

from devscope.dialects.device import DeviceCopyOp, ScopeAttr
from devscope.dialects.names import op_name


def lower_copy(copy: DeviceCopyOp, source: ScopeAttr | None, target: ScopeAttr | None) -> None:
    """Move data between ``source`` and ``target``, where None is host memory.

    The copy stands right behind the read of its source: bufferisation orders only tensor reads.
    """
    if source == target:
        Rewriter.replace_op(copy, [], [copy.operand])
        return
    ops: list[Operation] = []
    operand: SSAValue = copy.operand
    if source is None:
        type_ = _host_buffer_type(operand.type)
        read = bufferization.ToBufferOp.create(
            operands=[operand], result_types=[type_], properties={"read_only": UnitAttr()}
        )
        ops.append(read)
        operand = read.memref
    sizes = _dynamic_sizes(operand, ops)
    type_ = _host_buffer_type(copy.result.type) if target is None else copy.result.type
    alloc = memref.AllocOp(sizes, [], type_, IntegerAttr(64, 64))
    ops += [alloc, memref.CopyOp(operand, alloc.memref)]
    result: SSAValue = alloc.memref
    if target is None:
        tensor = bufferization.ToTensorOp(result, restrict=True, writable=True)
        ops.append(tensor)
        result = tensor.tensor
    for op in ops:
        op.location = copy.location
    Rewriter.replace_op(copy, ops, [result])


def _host_buffer_type(type_: Attribute) -> MemRefType[Attribute]:
    assert isinstance(type_, TensorType | MemRefType)
    return MemRefType(type_.get_element_type(), type_.get_shape())


def _dynamic_sizes(buffer: SSAValue, ops: list[Operation]) -> list[SSAValue]:
    assert isinstance(buffer.type, MemRefType)
    sizes: list[SSAValue] = []
    for axis, extent in enumerate(buffer.type.get_shape()):
        if extent == DYNAMIC_INDEX:
            index = arith.ConstantOp(IntegerAttr(axis, IndexType()))
            size = memref.DimOp(buffer, index)
            ops += [index, size]
            sizes.append(size.result)
    return sizes


def lower_dims(function: func.FuncOp) -> None:
    """Shape queries of device data: the host knows the shape of a buffer without reading it."""
    for op in list(function.walk()):
        if op_name(op) == "tensor.dim" and isinstance(op.operands[0].type, MemRefType):
            dim = memref.DimOp(op.operands[0], op.operands[1])
            dim.location = op.location
            Rewriter.replace_op(op, dim)
