"""Operations on tensors in the forms that kernels are made for.

Contractions, whatever they are called, become ``linalg.contract``, in whose indexing maps the transposes and
broadcasts of their operands are folded: packing reads any layout.
"""

from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop import bindings
from devscope.lowering.interop.bindings import ir

_SIGNED = {"arith.extsi": "cast_signed", "arith.extui": "cast_unsigned"}


def contractions_of(module: Any) -> list[Any]:
    """Those of two operands, on tensors or on buffers."""
    linalg = bindings.load("_mlir_libs._mlirDialectsLinalg")
    ops = [op for op in mlir_util.walk(module.operation) if op.name.startswith("linalg.")]
    return [op for op in ops if len(op.operands) == 3 and linalg.isa_contraction_op(op)]


def normalise_contractions(module: Any) -> None:
    """Rewrite the contractions on tensors of ``module`` that compute with real numbers."""
    linalg = bindings.load("_mlir_libs._mlirDialectsLinalg")
    for op in contractions_of(module):
        if len(op.results) == 1 and isinstance(op.results[0].type, ir.RankedTensorType):
            _normalise(op, linalg)


def _normalise(op: Any, linalg: Any) -> None:
    cast = _cast(op)
    if cast is None or any(isinstance(_element(value), ir.ComplexType) for value in op.operands):
        return
    maps = [ir.AffineMapAttr(attribute).value for attribute in linalg.get_indexing_maps(op)]
    operands = list(op.operands)
    for number in (0, 1):
        operands[number], maps[number] = _source(operands[number], maps[number], linalg)
    text = f"""
        %made = linalg.contract indexing_maps = [{", ".join(f"affine_map<{map_}>" for map_ in maps)}] {cast}
          ins(%0, %1 : {operands[0].type}, {operands[1].type})
          outs(%2 : {operands[2].type}) -> {op.results[0].type}
    """
    (made,) = mlir_util.insert(op, text, operands)
    mlir_util.replace_op(op, made.results)


def _element(value: Any) -> Any:
    return ir.ShapedType(value.type).element_type if isinstance(value.type, ir.ShapedType) else value.type


def _cast(op: Any) -> str | None:
    """How the elements are extended, as ``linalg.contract`` says it; None if it cannot say so."""
    casts = {inner.name for inner in mlir_util.children(op) if inner.name in _SIGNED}
    if len(casts) > 1:
        return None
    return "".join(f"{{cast = #linalg.type_fn<{_SIGNED[name]}>}}" for name in casts)


def _source(tensor: Any, map_: Any, linalg: Any) -> tuple[Any, Any]:
    """What ``tensor`` is a transpose or a broadcast of, and the map for that."""
    while not isinstance(tensor.owner, ir.Block):
        op = tensor.owner.operation
        maps = _moved(op, linalg)
        if maps is None:
            break
        source, target = maps
        by_loop = {
            ir.AffineDimExpr(loop).position: expression
            for loop, expression in zip(target.results, map_.results, strict=True)
        }
        results = [by_loop[ir.AffineDimExpr(loop).position] for loop in source.results]
        tensor, map_ = op.operands[0], ir.AffineMap.get(map_.n_dims, 0, results, op.context)
    return tensor, map_


def _moved(op: Any, linalg: Any) -> tuple[Any, Any] | None:
    """The maps of an operation that puts elements elsewhere and does nothing else."""
    if op.name not in ("linalg.transpose", "linalg.broadcast", "linalg.generic") or len(op.operands) != 2:
        return None
    if not isinstance(op.operands[0].type, ir.RankedTensorType):
        return None
    if op.name == "linalg.generic":
        block = mlir_util.entry_block(op)
        (end,) = [inner for inner in mlir_util.children(op)][-1:]
        if len(mlir_util.children(op)) != 1 or end.operands[0] != block.arguments[0]:
            return None
    source, target = (ir.AffineMapAttr(attribute).value for attribute in linalg.get_indexing_maps(op))
    return (source, target) if source.is_projected_permutation and target.is_permutation else None
