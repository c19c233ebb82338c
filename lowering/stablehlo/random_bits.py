"""Random bits by the algorithms of XLA, so that programs of JAX get the same numbers.

Threefry 2x32 with 20 rounds and Philox 4x32 with 10 (Salmon et al., Parallel random numbers: as easy as 1, 2, 3, 2011).
"""

import math
import zlib
from typing import Any

from devscope.lowering.stablehlo.templates import commas, element, enum, expand, shape, tensor

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


class _Bits:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def add(self, line: str) -> str:
        self.lines.append(f"%b{len(self.lines)} = {line}")
        return f"%b{len(self.lines) - 1}"

    def binary(self, name: str, a: str, b: str, extents: list[int], of: str = "ui32") -> str:
        return self.add(f"stablehlo.{name} {a}, {b} : {tensor(extents, of)}")

    def constant(self, number: int, extents: list[int], of: str = "ui32") -> str:
        return self.add(f"stablehlo.constant dense<{number}> : {tensor(extents, of)}")

    def number(self, number: float, extents: list[int]) -> str:
        return self.add(f"stablehlo.constant dense<{number!r}> : {tensor(extents, 'f32')}")

    def convert(self, value: str, extents: list[int], old: str, new: str) -> str:
        if old == new:
            return value
        return self.add(f"stablehlo.convert {value} : ({tensor(extents, old)}) -> {tensor(extents, new)}")

    def spread(self, value: str, extents: list[int], of: str) -> str:
        return self.add(f"stablehlo.broadcast_in_dim {value}, dims = [] : (tensor<{of}>) -> {tensor(extents, of)}")

    def reshape(self, value: str, old: list[int], new: list[int], of: str) -> str:
        return (
            value
            if old == new
            else self.add(f"stablehlo.reshape {value} : ({tensor(old, of)}) -> {tensor(new, of)}")
        )

    def halves(self, value: str, extents: list[int]) -> tuple[str, str]:
        """The low and the high 32 bits of 64."""
        width = self.constant(32, extents, "ui64")
        high = self.binary("shift_right_logical", value, width, extents, "ui64")
        return self.convert(value, extents, "ui64", "ui32"), self.convert(high, extents, "ui64", "ui32")

    def whole(self, low: str, high: str, extents: list[int]) -> str:
        width = self.constant(32, extents, "ui64")
        up = self.binary("shift_left", self.convert(high, extents, "ui32", "ui64"), width, extents, "ui64")
        return self.binary("or", self.convert(low, extents, "ui32", "ui64"), up, extents, "ui64")

    def word(self, state: str, place: int, size: int) -> str:
        part = self.add(f"stablehlo.slice {state} [{place}:{place + 1}] : (tensor<{size}xui64>) -> tensor<1xui64>")
        return self.reshape(part, [1], [], "ui64")

    def threefry(self, counters: tuple[str, str], keys: tuple[str, str], extents: list[int]) -> tuple[str, str]:
        third = self.binary("xor", self.binary("xor", keys[0], keys[1], []), self.constant(0x1BD11BDA, []), [])
        wide = [self.spread(key, extents, "ui32") for key in (*keys, third)]
        x, y = (self.binary("add", c, k, extents) for c, k in zip(counters, wide[:2], strict=True))
        for turn in range(5):
            for amount in _ROTATIONS[turn % 2]:
                x = self.binary("add", x, y, extents)
                up = self.binary("shift_left", y, self.constant(amount, extents), extents)
                down = self.binary("shift_right_logical", y, self.constant(32 - amount, extents), extents)
                y = self.binary("xor", x, self.binary("or", up, down, extents), extents)
            x = self.binary("add", x, wide[(turn + 1) % 3], extents)
            y = self.binary("add", y, wide[(turn + 2) % 3], extents)
            y = self.binary("add", y, self.constant(turn + 1, extents), extents)
        return x, y

    def philox(self, counters: list[str], keys: tuple[str, str], extents: list[int]) -> list[str]:
        first, second = (self.spread(key, extents, "ui32") for key in keys)
        x = counters
        for _ in range(10):
            products = [
                self.halves(
                    self.binary(
                        "multiply",
                        self.convert(x[place], extents, "ui32", "ui64"),
                        self.constant(factor, extents, "ui64"),
                        extents,
                        "ui64",
                    ),
                    extents,
                )
                for place, factor in ((0, 0xD2511F53), (2, 0xCD9E8D57))
            ]
            (low0, high0), (low1, high1) = products
            x = [
                self.binary("xor", self.binary("xor", high1, x[1], extents), first, extents),
                low1,
                self.binary("xor", self.binary("xor", high0, x[3], extents), second, extents),
                low0,
            ]
            first = self.binary("add", first, self.constant(0x9E3779B9, extents), extents)
            second = self.binary("add", second, self.constant(0xBB67AE85, extents), extents)
        return x

    def interleave(self, parts: list[str], count: int, extents: list[int], of: str) -> str:
        """Element ``n`` of part ``k`` becomes element ``len(parts) * n + k`` of all, as a tensor of ``extents``."""
        columns = [self.reshape(part, [count], [count, 1], of) for part in parts]
        total = count * len(parts)
        joined = self.add(
            f"stablehlo.concatenate {commas(columns)}, dim = 1 : "
            f"({commas([tensor([count, 1], of)] * len(parts))}) -> {tensor([count, len(parts)], of)}"
        )
        flat = self.reshape(joined, [count, len(parts)], [total], of)
        wanted = math.prod(extents)
        cut = self.add(f"stablehlo.slice {flat} [0:{wanted}] : ({tensor([total], of)}) -> {tensor([wanted], of)}")
        return self.reshape(cut, [wanted], extents, of)


def expand_rng_bit_generator(op: Any) -> None:
    algorithm, result = enum(op, "rng_algorithm", "DEFAULT"), op.results[1].type
    extents, of = shape(result), str(element(result))
    given = op.operands[0].type
    text, state, size = _Bits(), "%0", shape(given)[0]
    width = int(of.lstrip("uisbf"))
    if str(element(given)) in ("ui32", "i32"):  # words of a state, the low ones first
        size //= 2
        state = text.add(f"stablehlo.reshape %0 : ({given}) -> {tensor([size, 2], element(given))}")
        state = text.add(
            f"stablehlo.bitcast_convert {state} : ({tensor([size, 2], element(given))}) -> tensor<{size}xui64>"
        )
    elif str(element(given)) == "i64":
        state = text.add(f"stablehlo.bitcast_convert %0 : ({given}) -> tensor<{size}xui64>")
    key, counter = text.word(state, 0, size), text.word(state, 1, size)
    words = "ui64" if width == 64 else "ui32"
    if 0 in extents:
        bits, new = text.constant(0, extents, words), [key, *(text.word(state, n, size) for n in range(1, size))]
    elif algorithm == "THREE_FRY":
        bits, new = _threefry(text, key, counter, extents, words)
    else:
        high = text.word(state, 2, size) if size > 2 else key  # as XLA does
        bits, new = _philox(text, key, counter, high, extents, words)
        new = new[:size]
    rows = [text.reshape(word, [], [1], "ui64") for word in new]
    final = text.add(
        f"stablehlo.concatenate {commas(rows)}, dim = 0 : ({commas(['tensor<1xui64>'] * size)}) -> tensor<{size}xui64>"
    )
    if str(element(given)) in ("ui32", "i32"):
        pairs = tensor([size, 2], element(given))
        final = text.add(f"stablehlo.bitcast_convert {final} : (tensor<{size}xui64>) -> {pairs}")
        final = text.add(f"stablehlo.reshape {final} : ({pairs}) -> {given}")
    elif str(element(given)) == "i64":
        final = text.add(f"stablehlo.bitcast_convert {final} : (tensor<{size}xui64>) -> {given}")
    bits = text.convert(bits, extents, words, f"ui{width}")
    if of != f"ui{width}":
        bits = text.add(f"stablehlo.bitcast_convert {bits} : ({tensor(extents, f'ui{width}')}) -> {result}")
    text.lines.append(f'"devscope.return"({final}, {bits}) : ({given}, {result}) -> ()')
    expand(op, "\n".join(text.lines))


def _threefry(text: _Bits, key: str, counter: str, extents: list[int], of: str) -> tuple[str, list[str]]:
    """Bits, and the new state. For 32 bits, the two words of a counter are neighbours along one dimension."""
    grid = list(extents)
    axis = -1
    if of == "ui32":
        grid = grid or [1]
        even = [dim for dim, extent in enumerate(grid) if extent % 2 == 0]
        axis = even[0] if even else grid.index(max(grid))
        grid[axis] = (grid[axis] + 1) // 2
    numbers = text.spread(counter, grid, "ui64")
    stride = 1
    for dim in reversed(range(len(grid))):
        if grid[dim] > 1:
            place = text.add(f"stablehlo.iota dim = {dim} : {tensor(grid, 'ui64')}")
            step = text.binary("multiply", place, text.constant(stride, grid, "ui64"), grid, "ui64")
            numbers = text.binary("add", numbers, step, grid, "ui64")
            stride *= grid[dim]
    words = text.threefry(text.halves(numbers, grid), text.halves(key, []), grid)
    new = text.binary("add", counter, text.constant(math.prod(grid), [], "ui64"), [], "ui64")
    if of == "ui64":
        return text.whole(*words, grid), [key, new]
    if not extents:
        return text.reshape(words[0], grid, [], of), [key, new]
    apart = [*grid[: axis + 1], 1, *grid[axis + 1 :]]
    both = [*grid[: axis + 1], 2, *grid[axis + 1 :]]
    parts = [text.reshape(word, grid, apart, of) for word in words]
    joined = text.add(
        f"stablehlo.concatenate {commas(parts)}, dim = {axis + 1} : ({tensor(apart, of)}, {tensor(apart, of)}) -> {tensor(both, of)}"
    )
    full = [*grid[:axis], 2 * grid[axis], *grid[axis + 1 :]]
    bits = text.reshape(joined, both, full, of)
    if full != extents:
        limits = commas(f"0:{extent}" for extent in extents)
        bits = text.add(f"stablehlo.slice {bits} [{limits}] : ({tensor(full, of)}) -> {tensor(extents, of)}")
    return bits, [key, new]


def _philox(text: _Bits, key: str, low: str, high: str, extents: list[int], of: str) -> tuple[str, list[str]]:
    count = math.prod(extents) * (2 if of == "ui64" else 1)
    blocks = -(-count // 4)
    grid = [blocks]

    def advance(by: str, at: list[int]) -> tuple[str, str]:
        a, b = text.spread(low, at, "ui64"), text.spread(high, at, "ui64")
        total = text.binary("add", a, by, at, "ui64")
        types = tensor(at, "ui64")
        over = text.add(f"stablehlo.compare LT, {total}, {a}, UNSIGNED : ({types}, {types}) -> {tensor(at, 'i1')}")
        carry = text.convert(over, at, "i1", "ui64")
        return total, text.binary("add", b, carry, at, "ui64")

    number = text.add(f"stablehlo.iota dim = 0 : {tensor(grid, 'ui64')}")
    a, b = advance(number, grid)
    words = text.philox([*text.halves(a, grid), *text.halves(b, grid)], text.halves(key, []), grid)
    new = advance(text.constant(blocks, [], "ui64"), [])
    if of == "ui64":
        words = [text.whole(words[0], words[1], grid), text.whole(words[2], words[3], grid)]
    return text.interleave(words, blocks, extents, of), [key, *new]


_SEED = 0x5DEECE66D


def expand_rng(op: Any) -> None:
    """Any numbers of the distribution: the same at every call, others for other operations of a program."""
    _a, _b, _ = op.operands
    result = op.results[0].type
    extents, of = shape(result), str(element(result))
    if -1 in extents:
        return
    text = _Bits()
    seed = zlib.crc32(str(op.location).encode()) ^ _SEED
    text.lines.append(f"%state = stablehlo.constant dense<[{seed}, 1]> : tensor<2xui64>")
    types = tensor(extents, of)
    wide = tensor(extents, "ui32")

    def bits(name: str) -> str:
        text.lines.append(
            f"%s{name}, %r{name} = stablehlo.rng_bit_generator %state, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, {wide})"
        )
        return f"%r{name}"

    spread = [
        text.add(f"stablehlo.broadcast_in_dim {v}, dims = [] : (tensor<{of}>) -> {types}") for v in ("%0", "%1")
    ]
    if of[0] in "iu":
        span = text.binary("subtract", spread[1], spread[0], extents, of)
        raw = text.binary("remainder", text.convert(bits("i"), extents, "ui32", of), span, extents, of)
        if of[0] == "i":
            raw = text.add(f"stablehlo.abs {raw} : {types}")
    else:
        shifted = text.binary("shift_right_logical", bits("u"), text.constant(8, extents), extents)
        raw = text.convert(shifted, extents, "ui32", "f32")
        raw = text.binary("multiply", raw, text.number(2.0**-24, extents), extents, "f32")
        if enum(op, "rng_distribution") == "NORMAL":
            raw = text.binary("add", raw, text.number(2.0**-25, extents), extents, "f32")
            raw = text.binary("multiply", raw, text.number(2.0, extents), extents, "f32")
            raw = text.binary("subtract", raw, text.number(1.0, extents), extents, "f32")
            single = tensor(extents, "f32")
            raw = text.add(f"chlo.erf_inv {raw} : {single} -> {single}")
            raw = text.binary("multiply", raw, text.number(math.sqrt(2), extents), extents, "f32")
            factor = spread[1]
        else:
            factor = text.binary("subtract", spread[1], spread[0], extents, of)
        raw = text.binary("multiply", text.convert(raw, extents, "f32", of), factor, extents, of)
    value = text.binary("add", spread[0], raw, extents, of)
    text.lines.append(f'"devscope.return"({value}) : ({types}) -> ()')
    expand(op, "\n".join(text.lines))
