"""Where upstream's lowering of TOSA goes wrong.

``tosa-to-linalg`` starts from the greatest finite number and pads with it, so that the maximum of infinities below
zero would be finite. TOSA's range of a floating-point type ends with the infinities.

The folder of ``tosa.cast`` makes -1.0 of a constant that is true, and x / x is 1 even if x is 0. ``tosa.matmul_t``
is not lowered at all.
"""

import math
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir

_STARTED = ("linalg.pooling_nhwc_max", "linalg.reduce")
_GREATEST = {"f16": 65504.0, "bf16": 255 * 2.0**120, "f32": (2**24 - 1) * 2.0**104}
_OWN = "devscope.own"
"""On operations that the source has: what they start from is what it says."""


def prepare(module: Any) -> None:
    """Before TOSA is lowered: pooling pads with an operation of its own, truth becomes numbers without TOSA."""
    for op in mlir_util.walk(module.operation):
        if op.name in _STARTED:
            op.attributes[_OWN] = ir.UnitAttr.get(module.context)
        elif op.name == "tosa.max_pool2d" and _is_float(op.results[0]):
            _pad_apart(op)
        elif op.name == "tosa.matmul_t":
            _transpose_apart(op)
        elif op.name == "tosa.intdiv" and op.operands[0] == op.operands[1]:
            mlir_util.replace_op(
                op, mlir_util.Builder(op).op("arith.divsi", op.operands, [op.results[0].type]).results
            )
        elif op.name == "tosa.cast" and _is_float(op.results[0]) and _is_truth(op.operands[0]):
            mlir_util.replace_op(
                op, mlir_util.Builder(op).op("arith.uitofp", op.operands, [op.results[0].type]).results
            )


def _is_truth(value: Any) -> bool:
    return str(ir.ShapedType(value.type).element_type) == "i1"


def _is_float(value: Any) -> bool:
    return isinstance(ir.ShapedType(value.type).element_type, ir.FloatType)


def _transpose_apart(op: Any) -> None:
    batch, columns, depth = op.operands[1].type.shape
    with op.location:
        type_ = ir.RankedTensorType.get([batch, depth, columns], op.operands[1].type.element_type)
    build = mlir_util.Builder(op)
    permutation = {"perms": ir.DenseI32ArrayAttr.get([0, 2, 1], op.context)}
    operands = list(op.operands)
    operands[1] = build.value("tosa.transpose", [operands[1]], type_, permutation)
    mlir_util.replace_op(op, build.op("tosa.matmul", operands, [op.results[0].type]).results)


def _pad_apart(op: Any) -> None:
    top, bottom, left, right = pads = list(ir.DenseI64ArrayAttr(op.attributes["pad"]))
    type_ = ir.RankedTensorType(op.operands[0].type)
    if not any(pads):
        return
    sizes = list(type_.shape)
    for axis, more in ((1, top + bottom), (2, left + right)):
        sizes[axis] = type_.shape[axis] if type_.is_dynamic_dim(axis) else sizes[axis] + more
    with op.location:
        one = ir.RankedTensorType.get([1], type_.element_type)
        padded = ir.RankedTensorType.get(sizes, type_.element_type)
        least = ir.DenseElementsAttr.get_splat(one, ir.FloatAttr.get(type_.element_type, float("-inf")))
    around = [0, 0, *pads, 0, 0]
    text = f"""
        %shape = tosa.const_shape {{values = dense<{around}> : tensor<8xindex>}} : () -> !tosa.shape<8>
        %least = "tosa.const"() {{values = {least}}} : () -> {one}
        %padded = tosa.pad %0, %shape, %least : ({type_}, !tosa.shape<8>, {one}) -> {padded}
    """
    op.operands[0] = mlir_util.insert(op, text, [op.operands[0]])[-1].results[0]
    op.attributes["pad"] = ir.DenseI64ArrayAttr.get([0] * 4, op.context)


def finish(module: Any) -> None:
    """After TOSA was lowered."""
    for op in mlir_util.walk(module.operation):
        if op.name not in _STARTED:
            continue
        if _OWN in op.attributes:
            del op.attributes[_OWN]
            continue
        fill = op.operands[len(op.operands) - 1].owner
        if isinstance(fill, ir.Block) or fill.name != "linalg.fill":
            continue
        constant = fill.operands[0].owner
        if isinstance(constant, ir.Block) or constant.name != "arith.constant":
            continue
        number = constant.attributes["value"]
        if isinstance(number, ir.FloatAttr) and abs(number.value) == _GREATEST.get(str(number.type)):
            infinity = ir.FloatAttr.get(number.type, math.copysign(math.inf, number.value), loc=op.location)
            value = mlir_util.Builder(fill).value
            fill.operands[0] = value("arith.constant", [], number.type, {"value": infinity})
