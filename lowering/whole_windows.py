"""Pooling over whole images as reductions, which need no window: rows are reduced by vectors, and what is computed
of each element in front is computed where it is read."""

from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop import bindings
from devscope.lowering.interop.bindings import ir
from devscope.lowering.windows import sum_of_loops


def reduce_whole_windows(module: Any) -> None:
    """Rewrite the pooling on tensors of ``module`` whose windows have one place each.

    Images are cut to what windows cover (`windows.cut_windows`).
    """
    linalg = bindings.load("_mlir_libs._mlirDialectsLinalg")
    for op in [op for op in mlir_util.walk(module.operation) if op.name.startswith("linalg.pooling_")]:
        if len(op.results) == 1:
            _reduce(op, linalg)


def _reduce(op: Any, linalg: Any) -> None:
    image, _, old = op.operands
    if not isinstance(image.owner, ir.Block) and image.owner.operation.name == "tensor.pad":
        return  # made by nobody, if a kernel for windows reads it
    of_image, windows, of_result = (ir.AffineMapAttr(map_).value for map_ in linalg.get_indexing_maps(op))
    summed = {index.position for index in windows.results}
    shape = ir.RankedTensorType(op.results[0].type).shape
    single = {index.position for index, extent in zip(of_result.results, shape, strict=True) if extent == 1}
    indices: list[Any] = []
    for index in of_image.results:
        terms = sum_of_loops(index) or []
        if len(terms) > 1:
            terms = [(loop, factor) for loop, factor in terms if loop not in single]
        if len(terms) != 1 or terms[0][1] != 1:
            return
        indices.append(ir.AffineDimExpr.get(terms[0][0], op.context))
    if not summed <= {index.position for index in indices}:
        return
    kinds = ["reduction" if loop in summed else "parallel" for loop in range(of_image.n_dims)]
    maps = [ir.AffineMap.get(of_image.n_dims, 0, indices, op.context), of_result]
    attributes = {
        "indexing_maps": ir.ArrayAttr.get([ir.AffineMapAttr.get(map_) for map_ in maps]),
        "iterator_types": ir.Attribute.parse(f"[{', '.join(f'#linalg.iterator_type<{kind}>' for kind in kinds)}]"),
    }
    made = mlir_util.Builder(op).grouped(
        "linalg.generic", [[image], [old]], [op.results[0].type], attributes, regions=1
    )
    block = op.regions[0].blocks[0]
    block.append_to(made.regions[0])
    block.erase_argument(1)
    mlir_util.replace_op(op, made.results)
