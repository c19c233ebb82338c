"""Gathers and scatters of other dialects as StableHLO's, which are lowered with those of frontends."""

from typing import Any

from devscope.dialects.device import SCOPE_ATTR
from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir


def expand_tosa_scatter(op: Any) -> None:
    """``out[n, indices[n, w]] = input[n, w]``, and what `values_in` has elsewhere; no index twice."""
    text = """
        %r = "stablehlo.scatter"(%0, %1, %2) ({{
        ^bb0(%old: tensor<{0}>, %new: tensor<{0}>):
          stablehlo.return %new : tensor<{0}>
        }}) {{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [1],
              input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1],
              index_vector_dim = 2>, unique_indices = true}} : ({1}, {2}, {3}) -> {4}
    """
    types = [value.type for value in (*op.operands, *op.results)]
    _replace(op, text.format(types[0].element_type, *types))


def expand_gather(op: Any) -> None:
    """``tensor.gather``, whose indices are inside of the tensor, by StableHLO's."""
    source, indices, result = (ir.RankedTensorType(value.type) for value in (*op.operands, *op.results))
    places, kept = _places(op.attributes["gather_dims"], indices, result.rank)
    dynamic, (lines, at) = ir.ShapedType.get_dynamic_size(), _index_vectors(indices, 1)
    sizes = [1 if dim in places else extent for dim, extent in enumerate(source.shape)]
    attributes = f"""dimension_numbers = #stablehlo.gather<offset_dims = {kept}, collapsed_slice_dims =
        {[] if len(kept) == source.rank else places}, start_index_map = {places},
        index_vector_dim = {indices.rank - 1}>"""
    operands, types = f"%0, {at}", f"{source}, {_of_integers(indices)}"
    if dynamic in sizes:
        for dim, extent in enumerate(sizes):
            lines.append(f"%d{dim} = arith.constant {dim if extent == dynamic else extent} : index")
            if extent == dynamic:
                lines.append(f"%e{dim} = tensor.dim %0, %d{dim} : {source}")
        named = ", ".join(f"%{'e' if extent == dynamic else 'd'}{dim}" for dim, extent in enumerate(sizes))
        lines.append(f"%sizes = tensor.from_elements {named} : tensor<{len(sizes)}xindex>")
        integers = f"tensor<{len(sizes)}xi64>"
        lines.append(f"%slice = arith.index_cast %sizes : tensor<{len(sizes)}xindex> to {integers}")
        operands, types = f"{operands}, %slice", f"{types}, {integers}"
    else:
        attributes += f", slice_sizes = array<i64: {', '.join(map(str, sizes))}>"
    name = "dynamic_gather" if dynamic in sizes else "gather"
    lines.append(f'%r = "stablehlo.{name}"({operands}) {{{attributes}}} : ({types}) -> {result}')
    _replace(op, "\n".join(lines))


def expand_scatter(op: Any) -> None:
    """``tensor.scatter``, whose indices are inside of the tensor and no two the same, by StableHLO's."""
    source, into, indices = (ir.RankedTensorType(value.type) for value in op.operands)
    places, kept = _places(op.attributes["scatter_dims"], indices, source.rank)
    element, (lines, at) = source.element_type, _index_vectors(indices, 2)
    _replace(
        op,
        f"""{"".join(lines)}
        %r = "stablehlo.scatter"(%1, {at}, %0) ({{
        ^bb0(%old: tensor<{element}>, %new: tensor<{element}>):
          stablehlo.return %new : tensor<{element}>
        }}) {{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = {kept}, inserted_window_dims =
              {[] if len(kept) == into.rank else places}, scatter_dims_to_operand_dims = {places},
              index_vector_dim = {indices.rank - 1}>, unique_indices = true}}
          : ({into}, {_of_integers(indices)}, {source}) -> {into}""",
    )


def _places(dims: Any, indices: Any, batched_rank: int) -> tuple[list[int], list[int]]:
    """The dimensions that an index vector is about, and those of the result that are a slice's."""
    return list(ir.DenseI64ArrayAttr(dims)), list(range(indices.rank - 1, batched_rank))


def _of_integers(indices: Any) -> str:
    """The type of ``indices`` for StableHLO, which has no ``index``."""
    return str(indices).replace("index", "i64")


def _index_vectors(indices: Any, number: int) -> tuple[list[str], str]:
    """Lines for operand ``number`` in a type that StableHLO takes, and its name then."""
    if not isinstance(indices.element_type, ir.IndexType):
        return [], f"%{number}"
    return [f"%at = arith.index_cast %{number} : {indices} to {_of_integers(indices)}"], "%at"


def _replace(op: Any, text: str) -> None:
    """By the last operation of ``text``; what it makes is where ``op`` is."""
    made = mlir_util.insert(op, text, list(op.operands))
    for new in made:
        if SCOPE_ATTR in op.attributes and isinstance(new.results[0].type, ir.RankedTensorType):
            new.attributes[SCOPE_ATTR] = op.attributes[SCOPE_ATTR]
    mlir_util.replace_op(op, made[-1].results)
