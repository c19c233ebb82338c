"""Bits of narrow numbers as those of wider ones, and of wider ones as theirs: the lowest come first."""

from typing import Any

from devscope.lowering.interop.bindings import ir
from devscope.lowering.mlir_util import Builder, retype_result
from devscope.lowering.stablehlo.small_codes import storage
from devscope.lowering.stablehlo.templates import (
    commas,
    element,
    expand,
    extents_of,
    shape,
    tensor,
)


def expand_small_bitcast(op: Any) -> None:
    """Where widths are equal, or all of them are bytes, upstream's is right of what is stored."""
    old, new = op.operands[0].type, op.results[0].type
    if _width(old) != _width(new) and min(_width(old), _width(new)) < 8:
        expand_bitcast(op)


def expand_bitcast(op: Any) -> None:
    """Shifts and sums of integers of as many bits as the wider numbers have."""
    _agree_on_extents(op)
    old, new = op.operands[0].type, op.results[0].type
    wide, narrow = max(_width(old), _width(new)), min(_width(old), _width(new))
    is_cut, parts = _width(old) == wide, shape(new if _width(old) == wide else old)
    rank, axis, of = len(parts), len(parts) - 1, f"ui{max(wide, 8)}"
    apart, whole, sizes = tensor(parts, of), tensor(parts[:-1], of), f"tensor<{len(parts)}xindex>"
    lines = _to_bits("%bits", "%0", old, of)
    extents_of(lines.append, "d", "%0", old)
    if is_cut:
        lines.append(f"%d{axis} = arith.constant {parts[-1]} : index")
    lines.append(f"%sizes = tensor.from_elements {commas(f'%d{n}' for n in range(rank))} : {sizes}")

    def spread(name: str, value: str, type_: str, dims: str = "") -> None:
        lines.append(
            f"%{name} = stablehlo.dynamic_broadcast_in_dim {value}, %sizes, dims = [{dims}] : "
            f"({type_}, {sizes}) -> {apart}"
        )

    for name, value in (("width", narrow), ("mask", (1 << narrow) - 1)):
        lines.append(f"%{name}_one = stablehlo.constant dense<{value}> : tensor<{of}>")
        spread(name, f"%{name}_one", f"tensor<{of}>")
    lines += [
        f"%place = stablehlo.dynamic_iota %sizes, dim = {axis} : ({sizes}) -> {apart}",
        f"%lane = stablehlo.multiply %place, %width : {apart}",
    ]
    if is_cut:
        spread("each", "%bits", whole, commas(range(axis)))
        lines += [
            f"%moved = stablehlo.shift_right_logical %each, %lane : {apart}",
            f"%part = stablehlo.and %moved, %mask : {apart}",
            *_of_bits("%r", "%part", new, of),
        ]
    else:
        lines += [
            f"%part = stablehlo.and %bits, %mask : {apart}",
            f"%moved = stablehlo.shift_left %part, %lane : {apart}",
            f"%none = stablehlo.constant dense<0> : tensor<{of}>",
            f"%all = stablehlo.reduce(%moved init: %none) applies stablehlo.or across dimensions = [{axis}] : "
            f"({apart}, tensor<{of}>) -> {whole}",
            *_of_bits("%r", "%all", new, of),
        ]
    expand(op, "\n".join([*lines, f'"devscope.return"(%r) : ({new}) -> ()']))


def _agree_on_extents(op: Any) -> None:
    """Both types know all extents that one of them knows, and how many narrow numbers a wide one has."""
    old, new = op.operands[0].type, op.results[0].type
    rank = min(len(shape(old)), len(shape(new)))
    extents = [max(pair) for pair in zip(shape(old)[:rank], shape(new)[:rank], strict=True)]
    parts = [max(_width(old), _width(new)) // min(_width(old), _width(new))]
    given, made = (
        ir.Type.parse(tensor(extents + parts[: len(shape(type_)) - rank], element(type_)), op.context)
        for type_ in (old, new)
    )
    if given != old:
        op.operands[0] = Builder(op).value("tensor.cast", [op.operands[0]], given)
    if made != new:
        retype_result(op.results[0], made, "tensor.cast")


def _width(type_: Any) -> int:
    of = element(type_)
    return of.width if isinstance(of, ir.IntegerType | ir.FloatType) else 2 * ir.ComplexType(of).element_type.width


def _to_bits(name: str, value: str, type_: Any, of: str) -> list[str]:
    """Integers ``of`` a type without sign from numbers, of which those of fewer bits are in bytes of their own."""
    bits = tensor(shape(type_), of)
    if _width(type_) >= 8:
        given = tensor(shape(type_), f"ui{_width(type_)}")
        return [
            f"{name}_given = stablehlo.bitcast_convert {value} : ({type_}) -> {given}",
            f"{name} = stablehlo.convert {name}_given : ({given}) -> {bits}",
        ]
    byte = tensor(shape(type_), storage(str(element(type_))))
    return [
        f"{name}_byte = builtin.unrealized_conversion_cast {value} : {type_} to {byte}",
        f"{name} = stablehlo.convert {name}_byte : ({byte}) -> {bits}",
    ]


def _of_bits(name: str, value: str, type_: Any, of: str) -> list[str]:
    bits = tensor(shape(type_), of)
    if _width(type_) >= 8:
        taken = tensor(shape(type_), f"ui{_width(type_)}")
        return [
            f"{name}_taken = stablehlo.convert {value} : ({bits}) -> {taken}",
            f"{name} = stablehlo.bitcast_convert {name}_taken : ({taken}) -> {type_}",
        ]
    byte = tensor(shape(type_), storage(str(element(type_))))
    return [
        f"{name}_byte = stablehlo.convert {value} : ({bits}) -> {byte}",
        f"{name} = builtin.unrealized_conversion_cast {name}_byte : {byte} to {type_}",
    ]
