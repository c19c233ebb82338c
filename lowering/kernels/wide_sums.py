"""Sums of f16 and bf16 that no kernel computes are computed in f32, too, and rounded once.

A long sum of bf16 stands still where an element is less than half of its last digit. What sums up is a buffer of
f32 beside that of the result. Extrema are the same in f32, which vectors have: for narrow ones, and for chains of
conversions, LLVM has no reductions.
"""

from collections.abc import Collection
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop import bindings
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.accumulators import filled_before
from devscope.lowering.kernels.contraction_match import WIDE_SUMS
from devscope.lowering.kernels.library import KernelLibrary
from devscope.lowering.kernels.normalise import contractions_of
from devscope.lowering.kernels.packed_constants import PackedConstants
from devscope.lowering.kernels.table import Schedules
from devscope.lowering.mlir_util import Builder

_EXTREMA = ("arith.maximumf", "arith.minimumf", "arith.maxnumf", "arith.minnumf")


def call_wide_sums(module: Any, schedules: Schedules, library: KernelLibrary, packed: PackedConstants) -> None:
    """The same, and calls of kernels for contractions that there are now: parts of sums may be kernels'."""
    if widened := widen_sums(module, _EXTREMA):
        from devscope.lowering.kernels.contractions import call_contractions

        call_contractions([op for op in contractions_of(module) if op in widened], schedules, library, packed)


def widen_sums(module: Any, others: Collection[str] = ()) -> list[Any]:
    """Change operations on buffers that add to a result of such a type, or do one of ``others``; gives them."""
    combiners = {"arith.addf", *others}
    combined = ((op, _combiner(op, combiners)) for op in mlir_util.walk(module.operation))
    found = [(op, combiner) for op, combiner in combined if combiner is not None]
    for op, combiner in found:
        _widen(op, combiner)
    return [op for op, _ in found]


def _combiner(op: Any, names: Collection[str]) -> Any | None:
    """The one of ``names`` that ``op`` combines its result by, which is of a type that is too narrow for sums."""
    if not op.name.startswith("linalg.") or list(op.results) or not len(op.regions):
        return None
    *_, result = op.operands
    if not mlir_util.is_memref(result.type) or str(ir.MemRefType(result.type).element_type) not in WIDE_SUMS:
        return None
    *inputs, _ = maps = bindings.load("_mlir_libs._mlirDialectsLinalg").get_indexing_maps(op)
    *_, end = mlir_util.children(op)
    block = mlir_util.entry_block(op)
    if len(inputs) + 1 != len(op.operands) or len(end.operands) != 1:
        return None
    last = ir.AffineMapAttr(maps[len(inputs)]).value
    if len(last.results) == last.n_dims and last.is_permutation:
        return None  # every element is written once
    total, old = end.operands[0], block.arguments[len(inputs)]
    if isinstance(total.owner, ir.Block) or total.owner.operation.name not in names:
        return None
    combiner = total.owner.operation
    is_last = len(list(old.uses)) == 1 and old in list(combiner.operands) and len(list(total.uses)) == 1
    return combiner if is_last else None


def _widen(op: Any, combiner: Any) -> None:
    (*_, result), (*_, old) = op.operands, mlir_util.entry_block(op).arguments
    type_ = ir.MemRefType(result.type)
    narrow, wide = str(type_.element_type), WIDE_SUMS[str(type_.element_type)]
    dynamic = [axis for axis in range(type_.rank) if type_.is_dynamic_dim(axis)]
    lines = [f"%a{axis} = arith.constant {axis} : index" for axis in dynamic]
    lines += [f"%d{axis} = memref.dim %0, %a{axis} : {type_}" for axis in dynamic]
    sizes = "".join("?x" if axis in dynamic else f"{type_.shape[axis]}x" for axis in range(type_.rank))
    buffer = f"memref<{sizes}{wide}>"
    lines.append(f"%wide = memref.alloc({', '.join(f'%d{axis}' for axis in dynamic)}) : {buffer}")
    operands = [result]
    if (filled := filled_before(op, result)) is not None:
        fill, _ = filled
        begin = ir.FloatAttr(fill.operands[0].owner.operation.attributes["value"]).value
        f32 = ir.Type.parse(wide, op.context)
        operands.append(
            Builder(op).value("arith.constant", [], f32, {"value": ir.FloatAttr.get(f32, begin, op.location)})
        )
        lines.append(f"linalg.fill ins(%1 : {wide}) outs(%wide : {buffer})")
        fill.erase()
    else:
        lines.append(_converted("extf", "%0", type_, narrow, "%wide", buffer, wide, type_.rank))
    made = mlir_util.insert(op, "\n".join(lines), operands)
    sums = next(one for one in made if one.name == "memref.alloc").results[0]
    following = next(mlir_util.ops_behind(op))
    mlir_util.insert(
        following, _converted("truncf", "%0", buffer, wide, "%1", type_, narrow, type_.rank), [sums, result]
    )
    op.operands[len(op.operands) - 1] = sums
    build, f32 = Builder(combiner), ir.Type.parse(wide, op.context)
    (added,) = [value for value in combiner.operands if value != old]
    product = None if isinstance(added.owner, ir.Block) else added.owner.operation
    is_product = product is not None and product.name == "arith.mulf" and len(list(added.uses)) == 1
    old.set_type(f32)
    if product is not None and is_product and combiner.name == "arith.addf":
        factors = [build.value("arith.extf", [factor], f32) for factor in product.operands]
        more = build.value("arith.mulf", factors, f32)
    else:
        product, more = None, build.value("arith.extf", [added], f32)
    mlir_util.replace_op(combiner, [build.value(combiner.name, [old, more], f32)])
    if product is not None:
        product.erase()


def _converted(how: str, source: str, of: Any, narrow: str, target: str, to: Any, wide: str, rank: int) -> str:
    dims = ", ".join(f"d{axis}" for axis in range(rank))
    map_ = f"affine_map<({dims}) -> ({dims})>"
    kinds = ", ".join(['"parallel"'] * rank)
    return f"""
        linalg.generic {{indexing_maps = [{map_}, {map_}], iterator_types = [{kinds}]}}
            ins({source} : {of}) outs({target} : {to}) {{
        ^bb0(%x: {narrow}, %y: {wide}):
          %z = arith.{how} %x : {narrow} to {wide}
          linalg.yield %z : {wide}
        }}"""
