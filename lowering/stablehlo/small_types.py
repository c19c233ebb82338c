"""Floats of 8 bits and integers of 2 and 4: stored in a byte, computed with in f32 and i8.

What moves elements keeps them as they are. Everything else is computed in the wider type, each result rounded.
"""

from dataclasses import dataclass
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.mlir_util import Builder
from devscope.lowering.stablehlo.templates import element, expand, shape, tensor


@dataclass(frozen=True)
class _Format:
    """``mantissa`` bits, the exponent's ``bias``, the code of NaN, the largest finite one, that of infinity."""

    mantissa: int
    bias: int
    nan: int
    largest: int
    infinity: int | None

    @property
    def has_negative_zero(self) -> bool:
        return self.nan != 0x80


_FLOATS = {
    "f8E5M2": _Format(2, 15, 0x7E, 0x7B, 0x7C),
    "f8E4M3": _Format(3, 7, 0x7C, 0x77, 0x78),
    "f8E3M4": _Format(4, 3, 0x78, 0x6F, 0x70),
    "f8E4M3FN": _Format(3, 7, 0x7F, 0x7E, None),
    "f8E5M2FNUZ": _Format(2, 16, 0x80, 0x7F, None),
    "f8E4M3FNUZ": _Format(3, 8, 0x80, 0x7F, None),
    "f8E4M3B11FNUZ": _Format(3, 11, 0x80, 0x7F, None),
}
_INTEGERS = {"i2": 2, "i4": 4, "ui2": 2, "ui4": 4, "si2": 2, "si4": 4}

_MOVES = frozenset(
    f"stablehlo.{name}"
    for name in [
        "bitcast_convert",
        "broadcast_in_dim",
        "broadcast",
        "case",
        "concatenate",
        "constant",
        "custom_call",
        "dynamic_broadcast_in_dim",
        "dynamic_gather",
        "dynamic_pad",
        "dynamic_reshape",
        "dynamic_slice",
        "dynamic_update_slice",
        "gather",
        "if",
        "optimization_barrier",
        "pad",
        "real_dynamic_slice",
        "reduce",
        "reduce_window",
        "reshape",
        "return",
        "reverse",
        "scatter",
        "select",
        "select_and_scatter",
        "slice",
        "sort",
        "transpose",
        "while",
        "get_dimension_size",
        "composite",
        "map",
    ]
)


def store_in_bytes(module: Any) -> None:
    ops = mlir_util.walk(module.operation)
    if not any(_small(type_) for type_, _ in mlir_util.types(ops[1:])) and not _in_signatures(module):
        return
    for op in ops:
        if op.name.startswith("stablehlo.") and op.name not in _MOVES and op.name != "stablehlo.convert":
            _compute_wide(op)
    for op in mlir_util.named(module.operation, "stablehlo.convert"):
        _convert(op)
    for op in mlir_util.walk(module.operation):
        _retype(op)
    for op in mlir_util.named(module.operation, "builtin.unrealized_conversion_cast"):
        if op.operands[0].type == op.results[0].type:
            mlir_util.replace_op(op, list(op.operands))


def _in_signatures(module: Any) -> bool:
    return any(
        _small(type_)
        for function in mlir_util.functions(module)
        for type_ in (*mlir_util.function_type(function).inputs, *mlir_util.function_type(function).results)
    )


def _small(type_: Any) -> str:
    """The name of a small element type, if it is one."""
    name = str(element(type_)) if isinstance(type_, ir.RankedTensorType) else str(type_)
    return name if name in _FLOATS or name in _INTEGERS else ""


def _wide(name: str) -> str:
    return "f32" if name in _FLOATS else ("ui8" if name[0] == "u" else "i8")


def _storage(name: str) -> str:
    return "ui8" if name[0] == "u" else "i8"


def _with_element(type_: Any, name: str) -> Any:
    if isinstance(type_, ir.RankedTensorType):
        return ir.Type.parse(tensor(shape(type_), name), type_.context)
    return ir.Type.parse(name, type_.context)


def _compute_wide(op: Any) -> None:
    build = Builder(op)
    for number, value in enumerate(op.operands):
        if name := _small(value.type):
            op.operands[number] = build.value("stablehlo.convert", [value], _with_element(value.type, _wide(name)))
    for result in op.results:
        if name := _small(result.type):
            old = result.type
            result.set_type(_with_element(old, _wide(name)))
            with op.location:
                back = ir.Operation.create(
                    "stablehlo.convert", results=[old], operands=[result], ip=ir.InsertionPoint.after(op)
                )
            result.replace_all_uses_except(back.results[0], back)


def _convert(op: Any) -> None:
    """A conversion from or to a small type, by integer arithmetic on its bits."""
    source, result = op.operands[0].type, op.results[0].type
    old, new = _small(source), _small(result)
    if not old and not new:
        return
    if old == new:
        mlir_util.replace_op(op, list(op.operands))
        return
    text = _Text(source)
    value = "%0"
    if old in _FLOATS:
        value = text.decode(value, old, _FLOATS[old])
        kind = "f32"
    elif old:
        kind = _storage(old)
        value = text.whole_byte(value, old)
    else:
        kind = str(element(source))
    if new in _FLOATS:
        value = text.op("convert", value, kind, "f32")
        value = text.encode(value, new, _FLOATS[new])
    elif new:
        value = text.low_bits(text.op("convert", value, kind, _storage(new)), new)
    else:
        value = text.op("convert", value, kind, str(element(result)))
    text.lines.append(f'"devscope.return"({value}) : ({result}) -> ()')
    expand(op, "\n".join(text.lines))


class _Text:
    def __init__(self, source: Any) -> None:
        self.source, self.extents = source, shape(source)
        self.lines: list[str] = []

    def add(self, line: str) -> str:
        self.lines.append(f"%v{len(self.lines)} = {line}")
        return f"%v{len(self.lines) - 1}"

    def type_(self, of: str) -> str:
        return tensor(self.extents, of)

    def op(self, name: str, value: str, old: str, new: str) -> str:
        if old == new:
            return value
        if name == "cast":
            return self.add(f"builtin.unrealized_conversion_cast {value} : {self.type_(old)} to {self.type_(new)}")
        return self.add(f"stablehlo.{name} {value} : ({self.type_(old)}) -> {self.type_(new)}")

    def two(self, name: str, a: str, b: str, of: str) -> str:
        return self.add(f"stablehlo.{name} {a}, {b} : {self.type_(of)}")

    def number(self, value: int | float, of: str) -> str:
        shown = repr(float(value)) if of[0] == "f" else str(value)
        if -1 not in self.extents:
            return self.add(f"stablehlo.constant dense<{shown}> : {self.type_(of)}")
        scalar = self.add(f"stablehlo.constant dense<{shown}> : tensor<{of}>")
        sizes = self.add(f"shape.shape_of %0 : {self.source} -> tensor<{len(self.extents)}xindex>")
        return self.add(
            f"stablehlo.dynamic_broadcast_in_dim {scalar}, {sizes}, dims = [] : "
            f"(tensor<{of}>, tensor<{len(self.extents)}xindex>) -> {self.type_(of)}"
        )

    def compare(self, direction: str, a: str, b: str, of: str) -> str:
        kind = "FLOAT" if of[0] == "f" else "SIGNED"
        return self.add(
            f"stablehlo.compare {direction}, {a}, {b}, {kind} : ({self.type_(of)}, {self.type_(of)}) -> {self.type_('i1')}"
        )

    def select(self, mask: str, a: str, b: str, of: str) -> str:
        return self.add(f"stablehlo.select {mask}, {a}, {b} : {self.type_('i1')}, {self.type_(of)}")

    def low_bits(self, value: str, name: str) -> str:
        """A byte as it is stored: what is above the number is zero, as in ml_dtypes."""
        of = _storage(name)
        return self.op("cast", self.two("and", value, self.number((1 << _INTEGERS[name]) - 1, of), of), of, name)

    def whole_byte(self, value: str, name: str) -> str:
        """The number that a stored byte means."""
        of = _storage(name)
        value = self.op("cast", value, name, of)
        by = self.number(8 - _INTEGERS[name], of)
        right = "shift_right_logical" if of == "ui8" else "shift_right_arithmetic"
        return self.two(right, self.two("shift_left", value, by, of), by, of)

    def decode(self, value: str, name: str, form: _Format) -> str:
        bits = self.op("convert", self.op("cast", value, name, "i8"), "i8", "i32")
        code = self.two("and", bits, self.number(0xFF, "i32"), "i32")
        size = self.two("and", bits, self.number(0x7F, "i32"), "i32")
        number = self._finite(size, form)
        if form.infinity is not None:
            infinity = self.op("bitcast_convert", self.number(0x7F800000, "i32"), "i32", "f32")
            number = self.select(
                self.compare("EQ", size, self.number(form.infinity, "i32"), "i32"), infinity, number, "f32"
            )
        nan = self.op("bitcast_convert", self.number(0x7FC00000, "i32"), "i32", "f32")
        if form.nan == 0x80:
            is_nan = self.compare("EQ", code, self.number(0x80, "i32"), "i32")
        else:
            is_nan = self.compare(
                "GE" if form.infinity is None else "GT",
                size,
                self.number(form.nan if form.infinity is None else form.infinity, "i32"),
                "i32",
            )
        number = self.select(is_nan, nan, number, "f32")
        negative = self.compare("GT", code, self.number(0x7F, "i32"), "i32")
        return self.select(negative, self.add(f"stablehlo.negate {number} : {self.type_('f32')}"), number, "f32")

    def _finite(self, size: str, form: _Format) -> str:
        """Without subnormal numbers of f32, which some devices take for zero."""
        shifted = self.two("shift_left", size, self.number(23 - form.mantissa, "i32"), "i32")
        rebased = self.two("add", shifted, self.number((127 - form.bias) << 23, "i32"), "i32")
        normal = self.op("bitcast_convert", rebased, "i32", "f32")
        small = self.op("convert", size, "i32", "f32")
        small = self.two("multiply", small, self.number(2.0 ** (1 - form.bias - form.mantissa), "f32"), "f32")
        is_small = self.compare("LT", size, self.number(1 << form.mantissa, "i32"), "i32")
        return self.select(is_small, small, normal, "f32")

    def encode(self, value: str, name: str, form: _Format) -> str:
        """To nearest, ties to even; too large ones become infinite, or NaN where there are no infinities."""
        bits = self.op("bitcast_convert", value, "f32", "i32")
        size = self.two("and", bits, self.number(0x7FFFFFFF, "i32"), "i32")
        shift = 23 - form.mantissa
        by = self.number(shift, "i32")
        odd = self.two("and", self.two("shift_right_logical", size, by, "i32"), self.number(1, "i32"), "i32")
        up = self.two("add", self.two("add", size, self.number((1 << (shift - 1)) - 1, "i32"), "i32"), odd, "i32")
        code = self.two("shift_right_logical", up, by, "i32")
        code = self.two("subtract", code, self.number((127 - form.bias) << form.mantissa, "i32"), "i32")
        # Below the normal numbers: an addition rounds at the right place.
        magic = 2.0 ** (1 - form.bias - form.mantissa + 23)
        absolute = self.op("bitcast_convert", size, "i32", "f32")
        moved = self.op(
            "bitcast_convert", self.two("add", absolute, self.number(magic, "f32"), "f32"), "f32", "i32"
        )
        base = self.op("bitcast_convert", self.number(magic, "f32"), "f32", "i32")
        small = self.two("subtract", moved, base, "i32")
        is_small = self.compare("LT", absolute, self.number(2.0 ** (1 - form.bias), "f32"), "f32")
        code = self.select(is_small, small, code, "i32")
        over = self.compare("GT", code, self.number(form.largest, "i32"), "i32")
        beyond = form.nan & 0x7F if form.infinity is None else form.infinity
        is_nan = self.compare("GT", size, self.number(0x7F800000, "i32"), "i32")
        is_infinite = self.compare("EQ", size, self.number(0x7F800000, "i32"), "i32")
        over = self.add(f"stablehlo.or {over}, {is_infinite} : {self.type_('i1')}")
        sign = self.two(
            "and",
            self.two("shift_right_logical", bits, self.number(24, "i32"), "i32"),
            self.number(0x80, "i32"),
            "i32",
        )
        if form.has_negative_zero:
            code = self.select(over, self.number(beyond, "i32"), code, "i32")
            code = self.select(is_nan, self.number(form.nan, "i32"), code, "i32")
            code = self.two("or", code, sign, "i32")
        else:
            none = self.compare("EQ", code, self.number(0, "i32"), "i32")
            code = self.select(none, code, self.two("or", code, sign, "i32"), "i32")
            strange = self.add(f"stablehlo.or {over}, {is_nan} : {self.type_('i1')}")
            code = self.select(strange, self.number(0x80, "i32"), code, "i32")
        return self.op("cast", self.op("convert", code, "i32", "i8"), "i8", name)


def _retype(op: Any) -> None:
    """Say what an operation's small types are stored as."""
    for value in mlir_util.defined_values(op):
        if name := _small(value.type):
            value.set_type(_with_element(value.type, _storage(name)))
    for attribute in ("value", "function_type"):
        if attribute not in op.attributes:
            continue
        text = str(op.attributes[attribute])
        if attribute == "function_type":
            old = mlir_util.function_type(op)
            inputs, results = (
                [_with_element(t, _storage(_small(t))) if _small(t) else t for t in types]
                for types in (old.inputs, old.results)
            )
            op.attributes[attribute] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results, context=op.context))
        elif isinstance(
            op.attributes[attribute], ir.ElementsAttr if hasattr(ir, "ElementsAttr") else ir.Attribute
        ):
            type_ = getattr(op.attributes[attribute], "type", None)
            name = _small(type_) if type_ is not None else ""
            if name in _INTEGERS:
                op.attributes[attribute] = ir.Attribute.parse(
                    text.replace(f"x{name}>", f"x{_storage(name)}>").replace(
                        f"tensor<{name}>", f"tensor<{_storage(name)}>"
                    ),
                    op.context,
                )
            elif name:
                op.attributes[attribute] = _bits_of(op, type_)


def _bits_of(op: Any, type_: Any) -> Any:
    """The elements of a constant, as MLIR casts them."""
    text = str(op.attributes["value"])
    module = ir.Module.parse(
        f"%0 = arith.constant {text}\n%1 = arith.bitcast %0 : {type_} to {_with_element(type_, 'i8')}\n"
        f'"devscope.keep"(%1) : ({_with_element(type_, "i8")}) -> ()',
        op.context,
    )
    from devscope.lowering.interop.bindings import passmanager

    passmanager.PassManager.parse("builtin.module(canonicalize)", op.context).run(module.operation)
    return next(o for o in mlir_util.walk(module.operation) if o.name == "arith.constant").attributes["value"]
