"""What convolutions and contractions begin with, if it is the same along some axes, is added behind them.

PyTorch's convolutions begin with a bias. As an operation behind, that is done before the result is written, with
what follows it; otherwise the bias would be written to all of the result first, and read again.
"""

from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop import bindings
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.normalise import contractions_of, moved_axes

_ADDED = {"f32": ("addf", "0.0"), "f64": ("addf", "0.0"), "i32": ("addi", "0"), "i64": ("addi", "0")}
"""Not of types that sums are rounded to."""


def add_biases_behind(module: Any) -> None:
    """Rewrite the operations on tensors of ``module`` that add to a broadcast."""
    linalg = bindings.load("_mlir_libs._mlirDialectsLinalg")
    convolutions = [
        op
        for op in mlir_util.walk(module.operation)
        if op.name.startswith(("linalg.conv_", "linalg.depthwise_conv_"))
    ]
    for op in (*convolutions, *contractions_of(module)):
        if len(op.results) == 1 and isinstance(op.results[0].type, ir.RankedTensorType):
            _rewrite(op, linalg)


def _rewrite(op: Any, linalg: Any) -> None:
    begin = list(op.operands)[-1]
    type_ = ir.RankedTensorType(op.results[0].type)
    element = str(type_.element_type)
    if isinstance(begin.owner, ir.Block) or element not in _ADDED:
        return
    maker = begin.owner.operation
    axes = moved_axes(maker, linalg)
    if axes is None or len(axes) == type_.rank:
        return
    source, target = maker.operands
    add, zero = _ADDED[element]
    filled = f"""
        %zero = arith.constant {zero} : {element}
        %fill = linalg.fill ins(%zero : {element}) outs(%0 : {type_}) -> {type_}
    """
    fill = mlir_util.insert(op, filled, [target])[-1].results[0]
    sums = op.clone(ip=ir.InsertionPoint(op))
    sums.operands[len(op.operands) - 1] = fill
    loops = ", ".join(f"d{axis}" for axis in range(type_.rank))
    read = ", ".join(f"d{axis}" for axis in sorted(axes, key=lambda axis: axes[axis]))
    kinds = ", ".join('"parallel"' for _ in range(type_.rank))
    text = f"""
        %made = linalg.generic {{indexing_maps = [affine_map<({loops}) -> ({loops})>,
            affine_map<({loops}) -> ({read})>, affine_map<({loops}) -> ({loops})>], iterator_types = [{kinds}]}}
            ins(%0, %1 : {type_}, {source.type}) outs(%2 : {type_}) {{
        ^bb0(%sum: {element}, %bias: {element}, %out: {element}):
          %total = arith.{add} %sum, %bias : {element}
          linalg.yield %total : {element}
        }} -> {type_}
    """
    mlir_util.replace_op(op, mlir_util.insert(op, text, [sums.results[0], source, target])[0].results)
