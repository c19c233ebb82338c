"""The order of it all."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from devscope.errors import LoweringError
from devscope.lowering import mlir_util
from devscope.lowering.checks.demands import keep_demands
from devscope.lowering.divisions import guard_equal_operands
from devscope.lowering.interop.bindings import ir, register_stablehlo_passes
from devscope.lowering.interop.diagnostics import decode_location
from devscope.lowering.located_scopes import scopes_by_location
from devscope.lowering.mlir_util import RunPasses
from devscope.lowering.pipelines import pipeline
from devscope.lowering.single_tasks import keep_single_tasks
from devscope.lowering.stablehlo.control_flow import CARRIERS, carry_elements, drop_tokens
from devscope.lowering.stablehlo.element_types import SIZES, part_type, saturate, sign_sizes
from devscope.lowering.stablehlo.extents import agree_on_extents, drop_bounds
from devscope.lowering.stablehlo.shapes import demand_sizes
from devscope.lowering.stablehlo.small_types import store_in_bytes
from devscope.lowering.stablehlo.wide_results import keep_digits, round_steps

_DIALECTS = ("stablehlo.", "chlo.", "tm_tensor.")

_EXPANSIONS: Mapping[str, str] = {
    "stablehlo.case": "control_flow.lower_choice",
    "stablehlo.if": "control_flow.lower_choice",
    "stablehlo.while": "control_flow.lower_while",
    "stablehlo.scatter": "scatter.expand_scatter",
    "stablehlo.sort": "sort.expand_sort",
    "stablehlo.compare": "element_types.expand_total_order",
    "stablehlo.get_dimension_size": "shapes.expand_size",
    "stablehlo.set_dimension_size": "shapes.expand_set_size",
    "stablehlo.select_and_scatter": "windows.expand_select_and_scatter",
    "stablehlo.reduce_window": "running.expand_reduce_window",
    "stablehlo.batch_norm_inference": "batch_norm.expand_inference",
    "stablehlo.batch_norm_training": "batch_norm.expand_training",
    "stablehlo.batch_norm_grad": "batch_norm.expand_gradients",
    "stablehlo.cholesky": "linear_algebra.expand_cholesky",
    "stablehlo.triangular_solve": "linear_algebra.expand_triangular_solve",
    "stablehlo.fft": "fourier.expand_fft",
    "stablehlo.rng_bit_generator": "random_bits.expand_rng_bit_generator",
    "stablehlo.rng": "random_bits.expand_rng",
    "stablehlo.custom_call": "calls.expand_custom_call",
    "stablehlo.all_gather": "calls.expand_collective",
    "stablehlo.all_reduce": "calls.expand_collective",
    "stablehlo.all_to_all": "calls.expand_collective",
    "stablehlo.collective_broadcast": "calls.expand_collective",
    "stablehlo.collective_permute": "calls.expand_permutation",
    "stablehlo.cross-replica-sum": "calls.expand_collective",
    "stablehlo.reduce_scatter": "calls.expand_collective",
    "stablehlo.partition_id": "calls.expand_number",
    "stablehlo.replica_id": "calls.expand_number",
    "stablehlo.optimization_barrier": "calls.expand_barrier",
    "stablehlo.dynamic_broadcast_in_dim": "shapes.expand_dynamic_broadcast",
    "stablehlo.dynamic_reshape": "shapes.expand_dynamic_reshape",
    "stablehlo.gather": "shapes.expand_gather",
    "stablehlo.dynamic_gather": "shapes.expand_dynamic_gather",
    "stablehlo.dynamic_update_slice": "shapes.expand_dynamic_update_slice",
    "stablehlo.dynamic_pad": "shapes.expand_dynamic_pad",
    "stablehlo.reverse": "shapes.expand_reverse",
    "stablehlo.convolution": "convolutions.expand_convolution",
    "stablehlo.dynamic_conv": "convolutions.expand_convolution",
    "stablehlo.slice": "templates.fold_empty",
    "stablehlo.pad": "padding.expand_pad",
    "stablehlo.dynamic_slice": "shapes.fold_whole_slice",
    "stablehlo.concatenate": "shapes.concatenate_by_copies",
    "stablehlo.reduce": "shapes.fold_empty_reduce",
    "stablehlo.add": "element_types.expand_add",
    "stablehlo.maximum": "element_types.expand_extremum",
    "stablehlo.minimum": "element_types.expand_extremum",
    "stablehlo.cbrt": "complex_numbers.expand_cube_root",
    "stablehlo.abs": "complex_numbers.expand_function",
    "stablehlo.sign": "complex_numbers.expand_function",
    "stablehlo.exponential_minus_one": "complex_numbers.expand_function",
    "stablehlo.tan": "complex_numbers.expand_function",
    "stablehlo.tanh": "complex_numbers.expand_function",
    "stablehlo.multiply": "complex_numbers.expand_multiply",
    "stablehlo.divide": "complex_numbers.expand_divide",
    "stablehlo.power": "complex_numbers.expand_power",
    "stablehlo.atan2": "complex_numbers.expand_atan2",
    "stablehlo.bitcast_convert": "element_types.expand_bitcast",
    "stablehlo.einsum": "einsum.expand_einsum",
    "stablehlo.dot": "element_types.widen_products",
    "stablehlo.dot_general": "element_types.expand_dot",
    "stablehlo.reduce_precision": "element_types.expand_reduced_precision",
    "stablehlo.tuple": "element_types.expand_tuple",
    "stablehlo.get_tuple_element": "element_types.expand_part_of_tuple",
    "tm_tensor.scatter": "tm_tensor.expand_scatter",
    "tm_tensor.sort": "tm_tensor.expand_sort",
    "tm_tensor.topk": "tm_tensor.expand_topk",
    "tm_tensor.scan": "tm_tensor.expand_scan",
    "tm_tensor.attention": "attention.expand_attention",
}
"""Operations that upstream cannot lower, or not in all forms, and what replaces them or leaves them alone."""

SHAPES = "builtin.module(func.func(convert-shape-constraints, canonicalize, shape-to-shape-lowering), convert-shape-to-std)"
"""What computes with shapes becomes arithmetic, constraints become assertions."""

_DEPRECATED = "builtin.module(func.func(stablehlo-legalize-deprecated-ops{fail-on-unused=false}))"
_CHLO = "builtin.module(func.func(chlo-legalize-to-stablehlo))"
_COMPLEX = "builtin.module(func.func(stablehlo-complex-math-expander, chlo-legalize-to-stablehlo))"
"""As XLA expands functions of complex numbers before it compiles; constants of dynamic extents are CHLO's."""
_EXPANDED = {f"stablehlo.{name}" for name in ("exponential", "log", "log_plus_one", "sqrt")}


def convert(module: Any, run_passes: RunPasses) -> None:
    """Rewrite an ``ir.Module`` in place. Scopes stay; what nothing can lower stays, too.

    Raises LoweringError, located, for what a pass cannot rewrite.
    """
    if not register_stablehlo_passes():
        return
    with module.context, scopes_by_location(module, _is_ours):
        _prepare(module, run_passes)
        store_in_bytes(module)
        keep_demands(module)
        for op in mlir_util.named(module.operation, "stablehlo.dynamic_broadcast_in_dim"):
            demand_sizes(op)
        _expand(module)
        keep_single_tasks(module)
        guard_equal_operands(module)
        run_passes(module.operation, pipeline("stablehlo"))
        _inline_scalars(module)
        for op in mlir_util.named(module.operation, *CARRIERS):
            if _is_in_loop(op):
                carry_elements(op)
        run_passes(module.operation, pipeline("clean_up"))


def _prepare(module: Any, run_passes: RunPasses) -> None:
    drop_bounds(module)
    drop_tokens(module)
    for op in mlir_util.named(module.operation, *SIZES):
        sign_sizes(op)
    agree_on_extents(module)
    for op in mlir_util.named(module.operation, "stablehlo.convert"):
        saturate(op)
    keep_digits(module)
    round_steps(module)
    if any("!quant." in str(type_) for type_, _ in mlir_util.types(mlir_util.walk(module.operation)[1:])):
        from devscope.lowering.stablehlo.quantised import (
            compute_with_real_numbers,
            move_as_integers,
            scale_along_axes,
            widen_storage,
        )

        widen_storage(module)
        move_as_integers(module)
        compute_with_real_numbers(module)
        scale_along_axes(module)
        run_passes(module.operation, "builtin.module(func.func(stablehlo-legalize-quant-to-math))")
    names = {op.name for op in mlir_util.walk(module.operation)}
    if "stablehlo.composite" in names:
        run_passes(module.operation, "builtin.module(func.func(stablehlo-legalize-composite-to-call))")
    if "stablehlo.unary_einsum" in names:
        run_passes(module.operation, _DEPRECATED)
    if any(op.name == "func.call" for op in mlir_util.walk(module.operation)) and _is_plain(module):
        run_passes(module.operation, "builtin.module(inline, symbol-dce)")
    if "stablehlo.custom_call" in names:
        from devscope.lowering.stablehlo.calls import recompose

        for op in mlir_util.named(module.operation, "stablehlo.custom_call"):
            _attempt(recompose, op)
        names = {op.name for op in mlir_util.walk(module.operation)}
    if any(name.startswith("chlo.") for name in names):
        run_passes(module.operation, _CHLO)
    if any(op.name in _EXPANDED and part_type(op.results[0].type) for op in mlir_util.walk(module.operation)):
        run_passes(module.operation, _COMPLEX)
    if any(op.name.startswith("shape.") for op in mlir_util.walk(module.operation)):
        run_passes(module.operation, SHAPES)


def _is_plain(module: Any) -> bool:
    """Whether nothing is said of functions and calls that inlining would lose."""
    return not any(
        name.startswith("device.")
        for op in mlir_util.walk(module.operation)
        if op.name == "func.call" or (op.name == "func.func" and mlir_util.has_body(op))
        for name in op.attributes
    )


def _expand(module: Any) -> None:
    """Expansions may need others, also of their own kind. What upstream lowers, and what nobody knows, is left."""
    left: tuple[int, list[str]] = 0, []
    while True:
        ops = mlir_util.walk(module.operation)
        found = [op for op in ops if op.name in _EXPANSIONS]
        state = len(ops), [op.name for op in found]
        if state == left:
            return
        for op in reversed(found):  # inner ones first: what is expanded copies its regions
            _attempt(_expansion(op.name), op)
        left = state


def _attempt(expand: Callable[[Any], None], op: Any) -> None:
    name, location = op.name, decode_location(op.location)
    try:
        expand(op)
    except (ir.MLIRError, IndexError, KeyError, ValueError):
        raise LoweringError(f"'{name}' cannot be lowered in this form", location) from None


def _expansion(name: str) -> Callable[[Any], None]:
    module, _, function = _EXPANSIONS[name].partition(".")
    return getattr(import_module(f"devscope.lowering.stablehlo.{module}"), function)


def _is_ours(op: Any) -> bool:
    return op.name.startswith(_DIALECTS)


def _inline_scalars(module: Any) -> None:
    """Generics on single elements become what they do to elements, inside of parallel loops and between numbers."""
    for op in mlir_util.named(module.operation, "linalg.generic"):
        if op.parent.name == "func.func" or len(op.operands) == 0:
            continue
        if any(ir.RankedTensorType(value.type).rank for value in op.operands):
            continue
        if not _is_in_loop(op) and not _is_between_numbers(op):
            continue
        build = mlir_util.Builder(op)
        scalars = [
            build.value("tensor.extract", [value], ir.RankedTensorType(value.type).element_type)
            for value in op.operands
        ]
        block = op.regions[0].blocks[0]
        known = dict(zip(block.arguments, scalars, strict=True))
        *body, end = block.operations
        for inner in body:
            copy = inner.operation.clone(ip=ir.InsertionPoint(op)).operation
            mlir_util.remap_operands(copy, known)
            known.update(zip(inner.operation.results, copy.results, strict=True))
        results = [
            build.value("tensor.from_elements", [known.get(value, value)], result.type)
            for value, result in zip(end.operands, op.results, strict=True)
        ]
        mlir_util.replace_op(op, results)


def _is_between_numbers(op: Any) -> bool:
    """Whether numbers are made tensors for ``op`` alone, as in the body of a scatter, and its results numbers."""
    inputs = list(op.operands)[: len(op.operands) - len(op.results)]
    users = [use.owner.operation.name for result in op.results for use in result.uses]
    given = all(mlir_util.maker(value, "tensor.from_elements") is not None for value in inputs)
    return given and all(name in ("tensor.extract", "linalg.generic") for name in users)


def _is_in_loop(op: Any) -> bool:
    loops = ("scf.forall", "scf.parallel")
    return mlir_util.is_in_body(op) or any(outer.name in loops for outer in mlir_util.around(op))
