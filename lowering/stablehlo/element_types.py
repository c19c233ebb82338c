"""Operations that mean something of their own for elements of some types, which upstream leaves, or takes as others."""

import re
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.mlir_util import Builder
from devscope.lowering.stablehlo import small_bitcasts
from devscope.lowering.stablehlo.small_types import convert_result
from devscope.lowering.stablehlo.templates import commas, element, enum, expand, shape, tensor


def expand_add(op: Any) -> None:
    """A sum of two masks is where one of them is."""
    type_ = op.results[0].type
    if str(element(type_)) == "i1":
        expand(op, f'%r = stablehlo.or %0, %1 : {type_}\n"devscope.return"(%r) : ({type_}) -> ()')


def expand_extremum(op: Any) -> None:
    """Complex numbers are in order of their real parts, then of their imaginary parts; a first one with NaN is taken."""
    type_ = op.results[0].type
    if not (of := part_type(type_)):
        return
    direction = "GT" if op.name == "stablehlo.maximum" else "LT"
    part, mask = tensor(shape(type_), of), tensor(shape(type_), "i1")
    lines = [
        f"%{name}{n} = stablehlo.{name} %{n} : ({type_}) -> {part}" for name in ("real", "imag") for n in (0, 1)
    ]

    def compare(name: str, how: str, a: str, b: str) -> None:
        lines.append(f"%{name} = stablehlo.compare {how}, {a}, {b}, FLOAT : ({part}, {part}) -> {mask}")

    compare("equal", "EQ", "%real0", "%real1")
    compare("first", direction, "%real0", "%real1")
    compare("second", direction, "%imag0", "%imag1")
    compare("strange_real", "NE", "%real0", "%real0")
    compare("strange_imag", "NE", "%imag0", "%imag0")
    lines += [
        f"%known = stablehlo.select %equal, %second, %first : {mask}, {mask}",
        f"%strange = stablehlo.or %strange_real, %strange_imag : {mask}",
        f"%take = stablehlo.or %known, %strange : {mask}",
        f"%r = stablehlo.select %take, %0, %1 : {mask}, {type_}",
        f'"devscope.return"(%r) : ({type_}) -> ()',
    ]
    expand(op, "\n".join(lines))


def expand_bitcast(op: Any) -> None:
    """Between complex numbers of two widths: the parts of the narrow ones are halves of a part of a wide one.

    Of dynamic extents between numbers of two widths: upstream asks for sizes that this operation cannot say, and ends.
    """
    old, new = op.operands[0].type, op.results[0].type
    static = ir.RankedTensorType(old).has_static_shape and ir.RankedTensorType(new).has_static_shape
    if not static and len(shape(old)) != len(shape(new)):
        if part_type(old) or part_type(new):
            raise ValueError("complex numbers of dynamic extents")
        small_bitcasts.expand_bitcast(op)
        return
    if old == new or not (part_type(old) and part_type(new)) or not ir.RankedTensorType(old).has_static_shape:
        return
    if len(shape(old)) < len(shape(new)):
        _split(op, shape(old), part_type(old), part_type(new))
    else:
        _join(op, shape(new), part_type(new), part_type(old))


def _split(op: Any, extents: list[int], wide: str, narrow: str) -> None:
    old, new = op.operands[0].type, op.results[0].type
    whole, halves, one = tensor(extents, wide), tensor([*extents, 2], narrow), tensor([*extents, 1], narrow)
    outer = [f"0:{extent}" for extent in extents]
    lines: list[str] = []
    for name in ("real", "imag"):
        lines.append(f"%{name} = stablehlo.{name} %0 : ({old}) -> {whole}")
        lines.append(f"%{name}_bits = stablehlo.bitcast_convert %{name} : ({whole}) -> {halves}")
        for n in (0, 1):
            place = commas([*outer, f"{n}:{n + 1}"])
            lines.append(f"%{name}{n} = stablehlo.slice %{name}_bits [{place}] : ({halves}) -> {one}")
    for n in (0, 1):
        both = f"dim = {len(extents)} : ({one}, {one}) -> {halves}"
        lines.append(f"%part{n} = stablehlo.concatenate %real{n}, %imag{n}, {both}")
    lines.append(f"%r = stablehlo.complex %part0, %part1 : {new}")
    expand(op, "\n".join([*lines, f'"devscope.return"(%r) : ({new}) -> ()']))


def _join(op: Any, extents: list[int], wide: str, narrow: str) -> None:
    old, new = op.operands[0].type, op.results[0].type
    whole, halves, one = tensor(extents, wide), tensor([*extents, 2], narrow), tensor([*extents, 1], narrow)
    outer = [f"0:{extent}" for extent in extents]
    lines = [f"%{name} = stablehlo.{name} %0 : ({old}) -> {halves}" for name in ("real", "imag")]
    for n in (0, 1):
        place = commas([*outer, f"{n}:{n + 1}"])
        for name in ("real", "imag"):
            lines.append(f"%{name}{n} = stablehlo.slice %{name} [{place}] : ({halves}) -> {one}")
        both = f"dim = {len(extents)} : ({one}, {one}) -> {halves}"
        lines.append(f"%bits{n} = stablehlo.concatenate %real{n}, %imag{n}, {both}")
        lines.append(f"%part{n} = stablehlo.bitcast_convert %bits{n} : ({halves}) -> {whole}")
    lines.append(f"%r = stablehlo.complex %part0, %part1 : {new}")
    expand(op, "\n".join([*lines, f'"devscope.return"(%r) : ({new}) -> ()']))


def expand_reduced_precision(op: Any) -> None:
    """Of dynamic extents element by element: upstream asks for sizes that this operation cannot say, and ends."""
    type_ = op.results[0].type
    if ir.RankedTensorType(type_).has_static_shape:
        return
    one = tensor([], element(type_))
    form = commas(f"{name} = {op.attributes[name]}" for name in ("exponent_bits", "mantissa_bits"))
    expand_each(op, [f'%result = "stablehlo.reduce_precision"(%0) <{{{form}}}> : ({one}) -> {one}'])


SIZES = {
    "stablehlo.dynamic_broadcast_in_dim": 1,
    "stablehlo.dynamic_conv": 2,
    "stablehlo.dynamic_gather": 1,
    "stablehlo.dynamic_iota": 0,
    "stablehlo.dynamic_pad": 2,
    "stablehlo.dynamic_reshape": 1,
    "stablehlo.dynamic_slice": 1,
    "stablehlo.dynamic_update_slice": 2,
    "stablehlo.gather": 1,
    "stablehlo.real_dynamic_slice": 1,
    "stablehlo.torch_index_select": 1,
}
"""Operations whose operands from this one on are sizes and places, which upstream takes as signed numbers."""


def sign_sizes(op: Any) -> None:
    """Sizes and places without sign become signed ones that hold them, or are as far outside."""
    build = Builder(op)
    for number in range(SIZES[op.name], len(op.operands)):
        value = op.operands[number]
        of = element(value.type)
        if isinstance(of, ir.IntegerType) and of.is_unsigned:
            signed = ir.Type.parse(tensor(shape(value.type), "i64"))
            if of.width == 64:
                one = ir.Type.parse(tensor([], of))
                bounds = [ir.DenseElementsAttr.parse(f"dense<{bound}> : {one}") for bound in (0, 2**63 - 1)]
                least, most = (build.op("stablehlo.constant", [], [one], {"value": b}).results[0] for b in bounds)
                value = build.value("stablehlo.clamp", [least, value, most], value.type)
            op.operands[number] = build.value("stablehlo.convert", [value], signed)


def saturate(op: Any) -> None:
    """Floats beyond an integer's range become the nearest that is in it, and what is not a number zero, as in XLA.

    Conversions with an attribute ``devscope.in_range`` are of numbers in range.
    """
    source, result = (value.type for value in (op.operands[0], op.results[0]))
    of, to = element(source), element(result)
    if not isinstance(of, ir.FloatType) or not isinstance(to, ir.IntegerType) or to.width == 1:
        return
    if _IN_RANGE in op.attributes:
        return
    extents = part_extents(op)
    bits, wide = to.width - (not to.is_unsigned), "f64" if str(of) == "f64" else "f32"
    given, x, y, mask = (tensor(extents, each) for each in (of, wide, to, "i1"))
    least, end = 0 if to.is_unsigned else -(2**bits), 2**bits

    def chosen(name: str, direction: str, bound: str, then: str, other: str) -> list[str]:
        return [
            f"%{name}_test = stablehlo.compare {direction}, %x, {bound}, FLOAT : ({x}, {x}) -> {mask}",
            f"%{name} = stablehlo.select %{name}_test, {then}, {other} : {mask}, {y}",
        ]

    lines = [
        f"%x = stablehlo.convert %0 : ({given}) -> {x}",
        f"%i = stablehlo.convert %x {{{_IN_RANGE}}} : ({x}) -> {y}",
        f"%low = stablehlo.constant dense<{float(least)!r}> : {x}",
        f"%high = stablehlo.constant dense<{float(end):.1f}> : {x}",
        f"%least = stablehlo.constant dense<{least}> : {y}",
        f"%most = stablehlo.constant dense<{end - 1}> : {y}",
        f"%zero = stablehlo.constant dense<0> : {y}",
        *chosen("above", "GE", "%high", "%most", "%i"),
        *chosen("result" if to.is_unsigned else "below", "GT", "%low", "%above", "%least"),
    ]
    if not to.is_unsigned:
        lines += chosen("result", "EQ", "%x", "%below", "%zero")
    expand_each(op, lines)


_IN_RANGE = "devscope.in_range"


def part_extents(op: Any) -> list[int]:
    """The extents of what `expand_each` computes: whole tensors, or if some extents are dynamic, their elements."""
    return shape(op.results[0].type) if _is_static(op) else []


def _is_static(op: Any) -> bool:
    return all(ir.RankedTensorType(value.type).has_static_shape for value in (*op.operands, *op.results))


def expand_each(op: Any, lines: list[str]) -> None:
    """Replace ``op`` by what makes ``%result`` of ``%0``, ``%1`` and so on, of the extents `part_extents`."""
    result, types = op.results[0].type, [value.type for value in op.operands]
    if _is_static(op):
        expand(op, "\n".join([*lines, f'"devscope.return"(%result) : ({result}) -> ()']))
        return
    names = [f"%{number}" for number in range(len(types))]
    elements = commas(f"%e{number}: {tensor([], element(type_))}" for number, type_ in enumerate(types))
    lines = [
        f'%all = "stablehlo.map"({commas(names)}) <{{dimensions = array<i64: {commas(range(len(shape(types[0]))))}>}}> ({{',
        f"^bb0({elements}):",
        *(re.sub(r"%(\d+)\b", r"%e\1", line) for line in lines),
        f"stablehlo.return %result : {tensor([], element(result))}",
        f"}}) : ({commas(types)}) -> {result}",
    ]
    expand(op, "\n".join([*lines, f'"devscope.return"(%all) : ({result}) -> ()']))


def expand_dot(op: Any) -> None:
    """An algorithm says how exact a product is at least; what has all digits of its operands is so."""
    if "algorithm" in op.attributes:
        del op.attributes["algorithm"]
    widen_products(op)


def widen_products(op: Any) -> None:
    """Operands of a product upstream converts to the type of its result, integers with their sign.

    So what is without sign is converted before; of floats that the result's type cannot hold it is what is rounded.
    """
    to, build = element(op.results[0].type), Builder(op)
    types = [element(value.type) for value in list(op.operands)[:2]]
    if any(_loses(of, to) for of in types):
        convert_result(op.results[0], "f64" if any(str(of) == "f64" for of in types) else "f32")
        return
    for number, (value, of) in enumerate(zip(list(op.operands)[:2], types, strict=True)):
        if isinstance(of, ir.IntegerType) and of.is_unsigned and of != to:
            type_ = ir.Type.parse(tensor(shape(value.type), to), op.context)
            op.operands[number] = build.value("stablehlo.convert", [value], type_)


def _loses(of: Any, to: Any) -> bool:
    """Whether floats of type ``of`` lose digits or range in the other."""
    if not isinstance(of, ir.FloatType):
        return False
    if not isinstance(to, ir.FloatType):
        return isinstance(to, ir.IntegerType)
    return to.width < of.width or (of != to and to.width == of.width)


def expand_part_of_tuple(op: Any) -> None:
    made = op.operands[0].owner
    if not isinstance(made, ir.Block) and made.name == "stablehlo.tuple":
        mlir_util.replace_op(op, [made.operands[ir.IntegerAttr(op.attributes["index"]).value]])


def expand_tuple(op: Any) -> None:
    if not list(op.results[0].uses):
        op.erase()


def part_type(type_: Any) -> str:
    """What the parts of complex elements are, if elements are complex."""
    name = str(element(type_))
    return name.removeprefix("complex<").rstrip(">") if name.startswith("complex<") else ""


def expand_total_order(op: Any) -> None:
    """Of the bits as integers: those of negative numbers but their sign are turned round."""
    if enum(op, "compare_type") != "TOTALORDER":
        return
    from devscope.lowering.stablehlo.arrays import Array, Text  # few programs need them

    type_ = op.operands[0].type
    width = {"f64": 64, "f32": 32, "f16": 16, "bf16": 16}.get(str(element(type_)), 8)
    text, of = Text(type_), f"i{width}"
    extents = text.operand(0, type_).extents
    bits = tensor(extents, of)
    places, one = (text.full(extents, of, count).name for count in (width - 1, 1))
    keys: list[str] = []
    for n in range(2):
        own = text.add(f"stablehlo.bitcast_convert %{n} : ({type_}) -> {bits}")
        signs = text.add(f"stablehlo.shift_right_arithmetic {own}, {places} : {bits}")
        turned = text.add(f"stablehlo.shift_right_logical {signs}, {one} : {bits}")
        keys.append(text.add(f"stablehlo.xor {own}, {turned} : {bits}"))
    result = op.results[0].type
    direction = enum(op, "comparison_direction")
    less = text.add(f"stablehlo.compare {direction}, {commas(keys)}, SIGNED : ({bits}, {bits}) -> {result}")
    expand(op, text.result([Array(text, less, extents, "i1")]))
