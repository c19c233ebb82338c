"""Tensors without elements, where upstream goes wrong: they are left out, or made anew."""

from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir


def drop_empty_parts(module: Any) -> bool:
    """Leave out what is put into a tensor and has no elements; whether sizes are to be resolved afterwards.

    Bufferisation makes a view of its place, which may be behind the end of the memory: upstream refuses that.
    """
    dropped = False
    for op in mlir_util.named(module.operation, "tensor.concat", "tensor.insert_slice", "tensor.pad"):
        type_ = op.results[0].type
        if _is_empty(op.results[0]):
            dropped = True
            mlir_util.replace_op(op, [_empty_like(op)])
        elif op.name == "tensor.insert_slice" and _is_empty(op.operands[0]):
            mlir_util.replace_op(op, [op.operands[1]])
        elif op.name == "tensor.pad" and _is_empty(op.operands[0]):
            dropped = True
            mlir_util.replace_op(op, [_padding(op)])
        elif op.name == "tensor.concat" and any(map(_is_empty, op.operands)):
            parts = [operand for operand in op.operands if not _is_empty(operand)]
            attributes = {"dim": op.attributes["dim"]}
            mlir_util.replace_op(op, [mlir_util.Builder(op).value(op.name, parts, type_, attributes)])
    return dropped


def _padding(op: Any) -> Any:
    """A tensor that is computed by the body of ``op`` everywhere."""
    sizes = list(_empty_like(op).owner.operands)
    made = ir.Operation.create(
        "tensor.generate", [op.results[0].type], sizes, regions=1, ip=ir.InsertionPoint(op), loc=op.location
    )
    op.regions[0].blocks[0].append_to(made.regions[0])
    return made.results[0]


def _is_empty(tensor: Any) -> bool:
    return 0 in tensor.type.shape


def _empty_like(op: Any) -> Any:
    """A tensor of the size of the result of ``op``, in front of it; a copy of it is asked for sizes."""
    type_ = op.results[0].type
    build = mlir_util.Builder(op)
    asked = op.clone(ip=ir.InsertionPoint(op)).results[0]
    axes = [build.constant(axis) for axis in range(type_.rank) if type_.is_dynamic_dim(axis)]
    sizes = [build.value("tensor.dim", [asked, axis], build.index) for axis in axes]
    return build.value("tensor.empty", sizes, type_)


def make_empty(module: Any) -> None:
    """Make what is collapsed anew where a size of 0 meets an unknown one: it has no elements.

    A workaround: MLIR takes the product for a known 0 on buffers (`CollapseShapeOp::computeCollapsedType`), for
    unknown on tensors, so that its own bufferisation of one does not verify.
    """
    unknown = ir.ShapedType.get_dynamic_size()
    for op in mlir_util.named(module.operation, "tensor.collapse_shape"):
        given, type_ = op.operands[0].type, op.results[0].type
        groups = [[ir.IntegerAttr(axis).value for axis in group] for group in op.attributes["reassociation"]]
        sizes = [[given.shape[axis] for axis in group] for group in groups]
        if not any(0 in group and unknown in group for group in sizes):
            continue
        build, dims = mlir_util.Builder(op), list[Any]()
        for axes, group in zip(groups, sizes, strict=True):
            if unknown in group:
                size = build.constant(0 if 0 in group else 1)
                for axis in axes if 0 not in group else ():
                    size = build.multiply(size, _size(build, op.operands[0], axis))
                dims.append(size)
        empty = build.value("tensor.empty", dims, type_)
        mlir_util.replace_op(op, [empty])


def _size(build: mlir_util.Builder, tensor: Any, axis: int) -> Any:
    return build.value("tensor.dim", [tensor, build.constant(axis)], build.index)
