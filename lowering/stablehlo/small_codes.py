"""Numbers of fewer than 8 bits, and floats of 8, from and to the bytes that hold them, by integer arithmetic."""

from dataclasses import dataclass
from typing import Any

from devscope.lowering.stablehlo.templates import shape, tensor


@dataclass(frozen=True)
class Format:
    """``mantissa`` bits, the exponent's ``bias``, the code of NaN, the largest finite one, that of infinity, the sign.

    Without a mantissa there is no sign, either, and no 0: the code is an exponent. What has neither NaN nor infinity makes the largest number of what is too large, and of NaN what XLA does: -0.
    """

    mantissa: int
    bias: int
    nan: int | None
    largest: int
    infinity: int | None = None
    sign: int = 0x80

    @property
    def has_negative_zero(self) -> bool:
        return self.nan != 0x80

    @property
    def beyond(self) -> int:
        """The code of what is too large, without sign."""
        if self.infinity is not None:
            return self.infinity
        return self.largest if self.nan is None else self.nan & 0x7F


FLOATS = {
    "f8E5M2": Format(2, 15, 0x7E, 0x7B, 0x7C),
    "f8E4M3": Format(3, 7, 0x7C, 0x77, 0x78),
    "f8E3M4": Format(4, 3, 0x78, 0x6F, 0x70),
    "f8E4M3FN": Format(3, 7, 0x7F, 0x7E),
    "f8E5M2FNUZ": Format(2, 16, 0x80, 0x7F),
    "f8E4M3FNUZ": Format(3, 8, 0x80, 0x7F),
    "f8E4M3B11FNUZ": Format(3, 11, 0x80, 0x7F),
    "f8E8M0FNU": Format(0, 127, 0xFF, 0xFE, sign=0),
    "f4E2M1FN": Format(1, 1, None, 0x7, sign=0x8),
    "f6E2M3FN": Format(3, 1, None, 0x1F, sign=0x20),
    "f6E3M2FN": Format(2, 3, None, 0x1F, sign=0x20),
}
INTEGERS = {"i2": 2, "i4": 4, "ui2": 2, "ui4": 4, "si2": 2, "si4": 4}


def storage(name: str) -> str:
    return "ui8" if name[0] == "u" else "i8"


class Conversion:
    """The text of a conversion of a tensor, ``%0``, of type ``source``."""

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
        of = storage(name)
        return self.op("cast", self.two("and", value, self.number((1 << INTEGERS[name]) - 1, of), of), of, name)

    def whole_byte(self, value: str, name: str) -> str:
        """The number that a stored byte means."""
        of = storage(name)
        value = self.op("cast", value, name, of)
        by = self.number(8 - INTEGERS[name], of)
        right = "shift_right_logical" if of == "ui8" else "shift_right_arithmetic"
        return self.two(right, self.two("shift_left", value, by, of), by, of)

    def decode(self, value: str, name: str, form: Format) -> str:
        bits = self.op("convert", self.op("cast", value, name, "i8"), "i8", "i32")
        if form.mantissa == 0:
            return self._decode_power(bits)
        code = self.two("and", bits, self.number(2 * form.sign - 1, "i32"), "i32")
        size = self.two("and", bits, self.number(form.sign - 1, "i32"), "i32")
        number = self._finite(size, form)
        if form.infinity is not None:
            infinity = self.op("bitcast_convert", self.number(0x7F800000, "i32"), "i32", "f32")
            number = self.select(
                self.compare("EQ", size, self.number(form.infinity, "i32"), "i32"), infinity, number, "f32"
            )
        if form.nan is not None:
            if form.nan == 0x80:
                is_nan = self.compare("EQ", code, self.number(0x80, "i32"), "i32")
            elif form.infinity is None:
                is_nan = self.compare("GE", size, self.number(form.nan, "i32"), "i32")
            else:
                is_nan = self.compare("GT", size, self.number(form.infinity, "i32"), "i32")
            nan = self.op("bitcast_convert", self.number(0x7FC00000, "i32"), "i32", "f32")
            number = self.select(is_nan, nan, number, "f32")
        negative = self.compare("GE", code, self.number(form.sign, "i32"), "i32")
        return self.select(negative, self.add(f"stablehlo.negate {number} : {self.type_('f32')}"), number, "f32")

    def _decode_power(self, bits: str) -> str:
        code = self.two("and", bits, self.number(0xFF, "i32"), "i32")
        number = self.two("shift_left", code, self.number(23, "i32"), "i32")
        least = self.compare("EQ", code, self.number(0, "i32"), "i32")
        number = self.select(least, self.number(0x400000, "i32"), number, "i32")
        is_nan = self.compare("EQ", code, self.number(0xFF, "i32"), "i32")
        number = self.select(is_nan, self.number(0x7FC00000, "i32"), number, "i32")
        return self.op("bitcast_convert", number, "i32", "f32")

    def _encode_power(self, bits: str) -> str:
        """To nearest, ties up, as in XLA; what is not positive, and what is too large, is NaN."""
        up = self.two("add", bits, self.number(0x400000, "i32"), "i32")
        code = self.two("shift_right_logical", up, self.number(23, "i32"), "i32")
        is_least = self.compare("LT", bits, self.number(0x600000, "i32"), "i32")
        code = self.select(is_least, self.number(0, "i32"), code, "i32")
        strange = self.add(
            f"stablehlo.or {self.compare('LE', bits, self.number(0, 'i32'), 'i32')}, "
            f"{self.compare('GE', bits, self.number(0x7F400000, 'i32'), 'i32')} : {self.type_('i1')}"
        )
        return self.select(strange, self.number(0xFF, "i32"), code, "i32")

    def _finite(self, size: str, form: Format) -> str:
        """Without subnormal numbers of f32, which some devices take for zero."""
        shifted = self.two("shift_left", size, self.number(23 - form.mantissa, "i32"), "i32")
        rebased = self.two("add", shifted, self.number((127 - form.bias) << 23, "i32"), "i32")
        normal = self.op("bitcast_convert", rebased, "i32", "f32")
        small = self.op("convert", size, "i32", "f32")
        small = self.two("multiply", small, self.number(2.0 ** (1 - form.bias - form.mantissa), "f32"), "f32")
        is_small = self.compare("LT", size, self.number(1 << form.mantissa, "i32"), "i32")
        return self.select(is_small, small, normal, "f32")

    def encode(self, value: str, name: str, form: Format) -> str:
        """To nearest, ties to even; too large ones become infinite, or NaN where there are no infinities."""
        bits = self.op("bitcast_convert", value, "f32", "i32")
        if form.mantissa == 0:
            return self.op("cast", self.op("convert", self._encode_power(bits), "i32", "i8"), "i8", name)
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
        is_nan = self.compare("GT", size, self.number(0x7F800000, "i32"), "i32")
        is_infinite = self.compare("EQ", size, self.number(0x7F800000, "i32"), "i32")
        over = self.add(f"stablehlo.or {over}, {is_infinite} : {self.type_('i1')}")
        sign = self.two(
            "and",
            self.two("shift_right_logical", bits, self.number(32 - form.sign.bit_length(), "i32"), "i32"),
            self.number(form.sign, "i32"),
            "i32",
        )
        if form.nan is None:
            code = self.two("or", self.select(over, self.number(form.beyond, "i32"), code, "i32"), sign, "i32")
            code = self.select(is_nan, self.number(form.sign, "i32"), code, "i32")
        elif form.has_negative_zero:
            code = self.select(over, self.number(form.beyond, "i32"), code, "i32")
            code = self.select(is_nan, self.number(form.nan, "i32"), code, "i32")
            code = self.two("or", code, sign, "i32")
        else:
            none = self.compare("EQ", code, self.number(0, "i32"), "i32")
            code = self.select(none, code, self.two("or", code, sign, "i32"), "i32")
            strange = self.add(f"stablehlo.or {over}, {is_nan} : {self.type_('i1')}")
            code = self.select(strange, self.number(0x80, "i32"), code, "i32")
        return self.op("cast", self.op("convert", code, "i32", "i8"), "i8", name)
