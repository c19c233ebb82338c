"""Quantised types that upstream takes for others, or leaves: storage without sign, scales along other dimensions than the
last, and operations that move such numbers or have regions.
"""

import math
import re
from functools import partial
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir, load
from devscope.lowering.mlir_util import Builder
from devscope.lowering.stablehlo.templates import commas, element, expand, extents_of, shape, tensor

_UNSIGNED = re.compile(r"(!quant\.uniform<)u(\d+)(?:<(\d+):(\d+)>)?:")
_KEPT = frozenset({"func.func", "func.call", "stablehlo.bitcast_convert", "stablehlo.constant"})
"""What says how a value is stored: it is so, and what computes with it has a wider storage, with a sign."""
_GIVEN = frozenset({"func.return", "func.call", "stablehlo.bitcast_convert"})


def widen_storage(module: Any) -> None:
    """Compute with ``u8`` as with ``i16<0:255>``, and so on."""
    ops = mlir_util.walk(module.operation)[1:]
    for op in ops:
        for number, value in enumerate(op.operands) if op.name in _GIVEN else ():
            if wide := _wide(value.type):
                op.operands[number] = _converted(Builder(op), value, wide, value.type)
    for op in ops:
        for value in mlir_util.defined_values(op):
            if not (wide := _wide(value.type)):
                continue
            if op.name not in _KEPT:
                value.set_type(wide)
                continue
            users = list(value.uses)
            new = _converted(_behind(op), value, value.type, wide)
            for use in users:
                use.owner.operands[use.operand_number] = new


def _behind(op: Any) -> Builder:
    if op.name == "func.func":
        return Builder(mlir_util.first_child(op))
    return Builder(next(iter(mlir_util.ops_behind(op))))


def _converted(build: Builder, value: Any, old: Any, new: Any) -> Any:
    """Its integers, of the width of the other storage."""
    for name, type_ in (("bitcast_convert", _storage(old)), ("convert", _storage(new)), ("bitcast_convert", new)):
        value = build.value(f"stablehlo.{name}", [value], type_)
    return value


def _wide(type_: Any) -> Any:
    """The type with the wider storage, None for others."""
    if not (found := _UNSIGNED.search(str(type_))) or not isinstance(type_, ir.RankedTensorType):
        return None
    width = int(found[2])
    least, most = found[3] or 0, found[4] or 2**width - 1
    text = _UNSIGNED.sub(rf"\g<1>i{2 * width}<{least}:{most}>:", str(type_))
    return ir.Type.parse(text, type_.context)


def _storage(type_: Any) -> Any:
    name = re.search(r"!quant\.uniform<(u|i)(\d+)", str(type_))
    assert name is not None
    sign = "ui" if name[1] == "u" else "i"
    return ir.Type.parse(tensor(shape(type_), f"{sign}{name[2]}"), type_.context)


_MOVED = tuple(
    f"stablehlo.{name}"
    for name in [
        *("case", "if", "map", "reduce", "scatter", "select_and_scatter", "sort", "while"),
        *("dynamic_update_slice", "optimization_barrier", "reverse"),
    ]
)


def move_as_integers(module: Any) -> None:
    """Give to what upstream leaves the integers that numbers are stored as; regions compute with the numbers."""
    for op in mlir_util.named(module.operation, *_MOVED):
        _give_integers(op)
        for result in op.results:
            if _is_uniform(result.type):
                mlir_util.retype_result(result, _storage(result.type), _BITS)
        for block in mlir_util.blocks_of(op):
            first, *_ = body = [inner.operation for inner in block.operations]
            _give_integers(body[-1])
            for argument in block.arguments:
                if _is_uniform(old := argument.type):
                    argument.set_type(_storage(old))
                    back = Builder(first).op(_BITS, [argument], [old])
                    argument.replace_all_uses_except(back.results[0], back)


def _give_integers(op: Any) -> None:
    for number, value in enumerate(op.operands):
        if _is_uniform(value.type):
            op.operands[number] = Builder(op).value(_BITS, [value], _storage(value.type))


_BITS = "stablehlo.bitcast_convert"


def _is_uniform(type_: Any) -> bool:
    return "!quant.uniform" in str(type_)


_COMPUTED = ("stablehlo.add", "stablehlo.convolution", "stablehlo.dot_general")


def compute_with_real_numbers(module: Any) -> None:
    """Sums and products are those of real numbers, rounded once, as they are defined.

    Upstream cuts off parts of what it stores in few bits, and wraps around. Sums in 32 bits stay sums of integers.
    """
    for op in mlir_util.named(module.operation, *_COMPUTED):
        result = op.results[0]
        if not any(_is_uniform(value.type) for value in (*op.operands, result)) or _is_sum_of_integers(op):
            continue
        for number, value in enumerate(op.operands):
            op.operands[number] = _real(op, value)
        if _is_quantised(result):
            mlir_util.retype_result(result, _real_type(result.type), "stablehlo.uniform_quantize")


def _is_sum_of_integers(op: Any) -> bool:
    """Whether the integers that are stored are summed, or their products, to what is stored in 32 bits.

    A scale that is the product of those of the operands, but for its last digits, becomes that product.
    """
    quant: Any = load("_mlir_libs._mlirDialectsQuant")  # which knows the types of elements from here on
    left, right, made = (element(value.type) for value in (*op.operands, *op.results))
    if not (_is_uniform(left) and _is_uniform(right) and _is_uniform(made)):
        return False
    if made.storage_type_integral_width < 32 or any(_scales(value.type) for value in (*op.operands, *op.results)):
        return False
    if op.name == "stablehlo.add":
        return left == right == made
    is_one = isinstance(made, quant.UniformQuantizedType)
    if not isinstance(left, quant.UniformQuantizedType) or isinstance(right, quant.UniformQuantizedType) != is_one:
        return False
    scales, zeros = ([made.scale], [made.zero_point]) if is_one else (made.scales, made.zero_points)
    exact = [left.scale * scale for scale in ([right.scale] if is_one else right.scales)]
    if any(zeros) or not all(map(partial(math.isclose, rel_tol=1e-6), scales, exact)):
        return False
    stored, limits = (
        (made.flags, made.storage_type, made.expressed_type),
        (made.storage_type_min, made.storage_type_max),
    )
    if is_one:
        of = quant.UniformQuantizedType.get(*stored, exact[0], 0, *limits)
    else:
        of = quant.UniformQuantizedPerAxisType.get(*stored, exact, zeros, made.quantized_dimension, *limits)
    if of != made:
        result = op.results[0]
        mlir_util.retype_result(result, ir.Type.parse(tensor(shape(result.type), of), op.context), _BITS)
    return True


def scale_along_axes(module: Any) -> None:
    """Expand what makes and takes numbers with scales along a dimension that is not the last: upstream leaves these."""
    for op in mlir_util.named(module.operation, "stablehlo.uniform_quantize"):
        given, made = op.operands[0], op.results[0].type
        if _is_quantised(given) and (_scales(given.type) or _scales(made)):
            op.operands[0] = _real(op, given)
        if scales := _scales(made):
            _expand(op, made, op.operands[0].type, scales)
    for op in mlir_util.named(module.operation, "stablehlo.uniform_dequantize"):
        if scales := _scales(op.operands[0].type):
            _expand(op, op.operands[0].type, op.results[0].type, scales)


def _is_quantised(value: Any) -> bool:
    return not isinstance(element(value.type), ir.FloatType)


def _real(op: Any, value: Any) -> Any:
    if not _is_quantised(value):
        return value
    return Builder(op).value("stablehlo.uniform_dequantize", [value], _real_type(value.type))


def _real_type(type_: Any) -> Any:
    quantised: Any = load("_mlir_libs._mlirDialectsQuant").QuantizedType
    return ir.Type.parse(tensor(shape(type_), quantised(element(type_)).expressed_type), type_.context)


def _scales(type_: Any) -> Any:
    """The element type, if it has scales along a dimension that is not the last."""
    of = element(type_)
    per_axis: Any = load("_mlir_libs._mlirDialectsQuant").UniformQuantizedPerAxisType
    return of if isinstance(of, per_axis) and of.quantized_dimension < len(shape(type_)) - 1 else None


def _expand(op: Any, type_: Any, real: Any, scales: Any) -> None:
    """Make numbers of ``type_`` of real ones, or real ones of them."""
    axis, extents = scales.quantized_dimension, shape(real)
    one, of = tensor([len(scales.scales)], element(real)), tensor(extents, element(real))
    stored, makes, lines = _storage(type_), op.name == "stablehlo.uniform_quantize", list[str]()
    if not makes:
        lines.append(f"%stored = stablehlo.bitcast_convert %0 : ({type_}) -> {stored}")
    sizes = f"tensor<{len(extents)}xindex>"
    if not (static := -1 not in extents):
        extents_of(lines.append, "n", *(("%0", real) if makes else ("%stored", stored)))
        lines.append(f"%sizes = tensor.from_elements {commas(f'%n{n}' for n in range(len(extents)))} : {sizes}")

    def along(name: str, values: Any, given: str) -> None:
        lines.append(f"%{name}_all = stablehlo.constant dense<{[float(value) for value in values]}> : {given}")
        spread = "broadcast_in_dim" if static else "dynamic_broadcast_in_dim"
        more, types = ("", given) if static else (" %sizes,", f"{given}, {sizes}")
        lines.append(f"%{name} = stablehlo.{spread} %{name}_all,{more} dims = [{axis}] : ({types}) -> {of}")

    along("scale", scales.scales, one)
    along("zero", scales.zero_points, one)
    if makes:
        scalar = tensor([], element(real))
        lines += [
            f"%least = stablehlo.constant dense<{float(scales.storage_type_min)}> : {scalar}",
            f"%most = stablehlo.constant dense<{float(scales.storage_type_max)}> : {scalar}",
            f"%x = stablehlo.divide %0, %scale : {of}",
            f"%moved = stablehlo.add %x, %zero : {of}",
            f"%inside = stablehlo.clamp %least, %moved, %most : ({scalar}, {of}, {scalar}) -> {of}",
            f"%nearest = stablehlo.round_nearest_even %inside : {of}",
            f"%stored = stablehlo.convert %nearest : ({of}) -> {stored}",
            f"%r = stablehlo.bitcast_convert %stored : ({stored}) -> {type_}",
        ]
    else:
        lines += [
            f"%x = stablehlo.convert %stored : ({stored}) -> {of}",
            f"%moved = stablehlo.subtract %x, %zero : {of}",
            f"%r = stablehlo.multiply %moved, %scale : {of}",
        ]
    expand(op, "\n".join([*lines, f'"devscope.return"(%r) : ({op.results[0].type}) -> ()']))
