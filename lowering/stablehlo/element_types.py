"""Operations that mean something of their own for elements of some types, which upstream leaves, or takes as others."""

from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.mlir_util import Builder
from devscope.lowering.stablehlo import small_bitcasts
from devscope.lowering.stablehlo.templates import commas, element, expand, shape, tensor


def expand_add(op: Any) -> None:
    """A sum of two masks is where one of them is."""
    type_ = op.results[0].type
    if str(element(type_)) == "i1":
        expand(op, f'%r = stablehlo.or %0, %1 : {type_}\n"devscope.return"(%r) : ({type_}) -> ()')


def expand_extremum(op: Any) -> None:
    """Complex numbers are in order of their real parts, then of their imaginary parts; a first one with NaN is taken."""
    type_ = op.results[0].type
    if not (of := _real(type_)):
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


def expand_cube_root(op: Any) -> None:
    """Of complex numbers the power, as in XLA."""
    type_ = op.results[0].type
    if _real(type_):
        lines = [
            "%third = stablehlo.constant dense<(0.33333333333333331, 0.0)> : "
            + tensor(shape(type_), element(type_)),
            f"%r = stablehlo.power %0, %third : {type_}",
            f'"devscope.return"(%r) : ({type_}) -> ()',
        ]
        if ir.RankedTensorType(type_).has_static_shape:
            expand(op, "\n".join(lines))


def expand_bitcast(op: Any) -> None:
    """Between complex numbers of two widths: the parts of the narrow ones are halves of a part of a wide one.

    Of dynamic extents between numbers of two widths: upstream asks for sizes that this operation cannot say, and ends.
    """
    old, new = op.operands[0].type, op.results[0].type
    static = ir.RankedTensorType(old).has_static_shape and ir.RankedTensorType(new).has_static_shape
    if not static and len(shape(old)) != len(shape(new)):
        if _real(old) or _real(new):
            raise ValueError("complex numbers of dynamic extents")
        small_bitcasts.expand_bitcast(op)
        return
    if old == new or not (_real(old) and _real(new)) or not ir.RankedTensorType(old).has_static_shape:
        return
    if len(shape(old)) < len(shape(new)):
        _split(op, shape(old), _real(old), _real(new))
    else:
        _join(op, shape(new), _real(new), _real(old))


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
    _expand_each(op, [f'%r = "stablehlo.reduce_precision"(%0) <{{{form}}}> : ({one}) -> {one}'])


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
    extents = shape(source) if ir.RankedTensorType(source).has_static_shape else []
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
        *chosen("r" if to.is_unsigned else "below", "GT", "%low", "%above", "%least"),
    ]
    if not to.is_unsigned:
        lines += chosen("r", "EQ", "%x", "%below", "%zero")
    _expand_each(op, lines)


_IN_RANGE = "devscope.in_range"


def _expand_each(op: Any, lines: list[str]) -> None:
    """Replace ``op`` by what makes ``%r`` of ``%0``: whole tensors, or if extents are dynamic, their elements."""
    source, result = op.operands[0].type, op.results[0].type
    if not ir.RankedTensorType(source).has_static_shape:
        lines = [
            f'%all = "stablehlo.map"(%0) <{{dimensions = array<i64: {commas(range(len(shape(source))))}>}}> ({{',
            f"^bb0(%e: {tensor([], element(source))}):",
            *(line.replace("%0", "%e") for line in lines),
            f"stablehlo.return %r : {tensor([], element(result))}",
            f"}}) : ({source}) -> {result}",
        ]
    name = "%r" if ir.RankedTensorType(source).has_static_shape else "%all"
    expand(op, "\n".join([*lines, f'"devscope.return"({name}) : ({result}) -> ()']))


def expand_dot(op: Any) -> None:
    """An algorithm says how exact a product is at least; what has all digits of its operands is so."""
    if "algorithm" in op.attributes:
        del op.attributes["algorithm"]
    widen_unsigned(op)


def widen_unsigned(op: Any) -> None:
    """Convert operands of a product to the type of its result, where upstream would extend them with a sign."""
    to, build = element(op.results[0].type), Builder(op)
    for number, value in enumerate(list(op.operands)[:2]):
        of = element(value.type)
        if isinstance(of, ir.IntegerType) and of.is_unsigned and of != to:
            type_ = ir.Type.parse(tensor(shape(value.type), to), op.context)
            op.operands[number] = build.value("stablehlo.convert", [value], type_)


def expand_part_of_tuple(op: Any) -> None:
    made = op.operands[0].owner
    if not isinstance(made, ir.Block) and made.name == "stablehlo.tuple":
        mlir_util.replace_op(op, [made.operands[ir.IntegerAttr(op.attributes["index"]).value]])


def expand_tuple(op: Any) -> None:
    if not list(op.results[0].uses):
        op.erase()


def _real(type_: Any) -> str:
    """What the parts of complex elements are, if elements are complex."""
    name = str(element(type_))
    return name.removeprefix("complex<").rstrip(">") if name.startswith("complex<") else ""
