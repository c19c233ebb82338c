"""What a program is brought to before it is planned, so that plans and the split see one form of each thing.

Control flow of ``affine``, TOSA and StableHLO becomes ``scf``, shapes those of ``tensor``, variables of TOSA
globals, globals that nobody writes constants, and operations of ``bufferization`` on values what they mean. Passes
of upstream do what they can.
"""

from collections.abc import Callable, Set
from typing import Any

from devscope.dialects.location import KIND_MARK
from devscope.lowering import gathers, mlir_util
from devscope.lowering.global_state import GLOBAL, LOADS
from devscope.lowering.interop.bindings import ir, not_text
from devscope.lowering.located_scopes import scope_of, scopes_by_location
from devscope.lowering.mlir_util import Builder, RunPasses
from devscope.lowering.stablehlo.small_types import only_passes_types

_AFFINE = frozenset({"affine.for", "affine.if"})
_TOSA_CONTROL = frozenset({"tosa.cond_if", "tosa.while_loop"})
_SCATTER = "tosa.scatter"
_TOSA_VARIABLES = frozenset({"tosa.variable", "tosa.variable_read", "tosa.variable_write"})
_SHAPES = frozenset({"shape.shape_of", "shape.dim", "shape.const_shape", "shape.num_elements"})
_ASSUMPTIONS = frozenset({"shape.assuming"})

_REALLOCATION = "memref.realloc"

_DIALECTS = ("stablehlo.", "chlo.", "tm_tensor.")
_QUANTISED = "quant."
_SPARSE = "sparse_tensor."
_STORAGE_CAST = "quant.scast"
_KINDS = (*_DIALECTS, _QUANTISED, "tensor.gather", "tensor.scatter")

_ELEMENTS = (ir.DenseElementsAttr, ir.DenseResourceElementsAttr)

_BECOMES = {
    "affine.for": "scf.for",
    "affine.if": "scf.if",
    "affine.parallel": "scf.parallel",
    "affine.load": "memref.load",
    "affine.store": "memref.store",
    "affine.vector_load": "vector.load",
    "affine.vector_store": "vector.store",
    "tosa.cond_if": "scf.if",
    "tosa.while_loop": "scf.while",
    "tosa.variable_read": f"{GLOBAL}_load",
    "tosa.variable_write": f"{GLOBAL}_store",
}


def is_in_form(module: Any) -> bool:
    """Whether ``module`` is as `bring_into_form` leaves it."""
    names = _names(module)
    if not names:
        return True  # the import says which name is no text
    rewritten = {GLOBAL, _REALLOCATION} | _AFFINE | _SHAPES | _ASSUMPTIONS | _REWRITES.keys()
    if not names.isdisjoint(rewritten) or has_stablehlo(names) or _has_quantised(names):
        return False
    return not only_passes_types(module)


def has_stablehlo(names: Set[str]) -> bool:
    return any(name.startswith(_DIALECTS) for name in names)


def _has_quantised(names: Set[str]) -> bool:
    return any(name.startswith(_QUANTISED) for name in names)


def lower_first(module: Any, run_passes: RunPasses, kinds: bool = False) -> None:
    """Sparse tensors, and control flow, variables and scatters of TOSA, in place.

    ``kinds`` as for `bring_into_form`. Before `keep_globals`, which variables are for, and what writes them in
    branches and loops. Scopes stay. Raises LoweringError, located, for sparse tensors that cannot be.
    """
    names = _names(module)
    if any(name.startswith(_SPARSE) for name in names):
        from devscope.lowering.sparse_tensors import lower_sparse_tensors

        lower_sparse_tensors(module, run_passes)
    for op in mlir_util.walk(module.operation) if kinds and names & (_TOSA_CONTROL | {_SCATTER}) else ():
        if op.name in _TOSA_CONTROL or op.name == _SCATTER:
            _mark_kind(op)
    for op in mlir_util.named(module.operation, _SCATTER) if _SCATTER in names else ():
        gathers.expand_tosa_scatter(op)  # which ``tosa-to-scf`` makes loops of
    for found, passes in ((_TOSA_CONTROL, "func.func(tosa-to-scf)"), (_TOSA_VARIABLES, "tosa-to-mlprogram")):
        if names & found:
            _keep_scopes(module, run_passes, f"builtin.module({passes})")


def _names(module: Any) -> Set[str]:
    """Of all operations; none where one is not text."""
    try:
        return {op.name for op in mlir_util.walk(module.operation)}
    except RuntimeError as error:
        if not not_text(error):
            raise
        return frozenset()


def _mark_kind(op: Any) -> None:
    op.location = ir.Location.name(f"{KIND_MARK}{op.name}", op.location, op.context)


def bring_into_form(module: Any, run_passes: RunPasses, kinds: bool = False) -> None:
    """Rewrite an ``ir.Module`` in place. Scopes stay. With ``kinds``, locations say what operations were made of.

    Raises LoweringError, located, for what a pass cannot rewrite.
    """
    if kinds:
        for op in [op for op in mlir_util.walk(module.operation) if op.name.startswith(_KINDS)]:
            _mark_kind(op)
    _inline_globals(module)
    for op in [op for op in mlir_util.walk(module.operation) if op.name in _REWRITES]:
        _REWRITES[op.name](op)
    names = {op.name for op in mlir_util.walk(module.operation)}
    if names & (_SHAPES | _ASSUMPTIONS):
        last = ", canonicalize" if names & _ASSUMPTIONS else ""  # inlines them: constraints are assertions by then
        lower = "func.func(shape-to-shape-lowering, convert-shape-constraints), convert-shape-to-std"
        run_passes(module.operation, f"builtin.module({lower}{last})")
    if _has_quantised(names):
        with scopes_by_location(module, lambda op: op.name.startswith(_QUANTISED)):
            run_passes(module.operation, "builtin.module(func.func(lower-quant-ops), strip-func-quant-types)")
            _fold_storage_casts(module)
    if _REALLOCATION in names:  # buffers are freed behind their last use
        run_passes(module.operation, "builtin.module(expand-realloc{emit-deallocs=false})")
    if has_stablehlo(names) or only_passes_types(module):
        from devscope.lowering.stablehlo.convert import convert

        convert(module, run_passes)
    if names & _AFFINE:
        _keep_scopes(module, run_passes, "builtin.module(lower-affine)")


def _keep_scopes(module: Any, run_passes: RunPasses, text: str) -> None:
    """MLIR's passes fold some operations and drop the attributes of others."""
    with scopes_by_location(module, lambda op: op.name in _BECOMES, lambda op: op.name in _BECOMES.values()):
        run_passes(module.operation, text)


def _inline_globals(module: Any) -> None:
    """A global that nobody writes is its value; one that nobody reads is nothing."""
    ops = [op for op in mlir_util.walk(module.operation) if op.name.startswith(GLOBAL)]
    users: dict[str, list[Any]] = {}
    for op in ops:
        if op.name != GLOBAL:
            users.setdefault(str(op.attributes["global"]), []).append(op)
    for op in [op for op in ops if op.name == GLOBAL]:
        uses = users.get(str(ir.FlatSymbolRefAttr.get(mlir_util.symbol_name(op), module.context)), [])
        is_constant = "is_mutable" not in op.attributes and "value" in op.attributes
        is_read = is_constant and isinstance(op.attributes["value"], _ELEMENTS)
        if not all(is_read and user.name in LOADS for user in uses):
            continue
        for user in uses:
            value = {"value": op.attributes["value"]}
            new = Builder(user).op("arith.constant", [], [user.results[0].type], value)
            mlir_util.replace_op(user, new.results)
        op.erase()


def _lower_allocation(op: Any) -> None:
    """A tensor is a value: its copy is itself, and one without contents is empty."""
    sizes, copied, _ = mlir_util.operand_groups(op)
    value = copied or [Builder(op).value("tensor.empty", sizes, op.results[0].type, scope_of(op))]
    mlir_util.replace_op(op, value)


def _lower_materialisation(op: Any) -> None:
    """What a tensor holds that another one is written to. Into a buffer it is written by bufferisation."""
    if len(op.results):
        source, type_ = op.operands[0], op.results[0].type
        same = source.type == type_
        mlir_util.replace_op(op, [source if same else Builder(op).value("tensor.cast", [source], type_)])


def _fold_storage_casts(module: Any) -> None:
    """What the passes leave: from the type in memory to the quantised one and back."""
    for op in mlir_util.named(module.operation, _STORAGE_CAST):
        owner = op.operands[0].owner
        if not isinstance(owner, ir.Block) and owner.name == _STORAGE_CAST:
            source = owner.operands[0]
            if source.type == op.results[0].type:
                mlir_util.replace_op(op, [source])
    for op in reversed(mlir_util.named(module.operation, _STORAGE_CAST)):
        if not any(True for _ in op.results[0].uses):
            op.erase()


_REWRITES: dict[str, Callable[[Any], None]] = {
    "tensor.gather": gathers.expand_gather,
    "tensor.scatter": gathers.expand_scatter,
    "bufferization.alloc_tensor": _lower_allocation,
    "bufferization.dealloc_tensor": lambda op: op.erase(),
    "memref.dealloc": lambda op: op.erase(),  # buffers are freed behind their last use
    "bufferization.materialize_in_destination": _lower_materialisation,
}
