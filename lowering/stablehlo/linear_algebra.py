"""Factors and triangular systems: a column, or a row, at a time, of all matrices of a batch at once."""

from typing import Any

from devscope.lowering.stablehlo.templates import commas, element, enum, expand, flag, shape, tensor


def expand_cholesky(op: Any) -> None:
    text, result = cholesky(op.operands[0].type, flag(op, "lower"))
    expand(op, f'{text}\n"devscope.return"({result}) : ({op.results[0].type}) -> ()')


def expand_triangular_solve(op: Any) -> None:
    transpose = enum(op, "transpose_a", "NO_TRANSPOSE")
    text, result = triangular_solve(
        op.operands[0].type,
        op.operands[1].type,
        flag(op, "left_side"),
        flag(op, "lower"),
        flag(op, "unit_diagonal"),
        transpose,
    )
    expand(op, f'{text}\n"devscope.return"({result}) : ({op.results[0].type}) -> ()')


class _Text:
    """Lines of operations; every method adds some and returns the name of a value of a type."""

    def __init__(self, of: Any) -> None:
        self.of = str(of)
        self.lines: list[str] = []
        self.is_complex = self.of.startswith("complex")
        self.real = self.of.removeprefix("complex<").rstrip(">") if self.is_complex else self.of

    def add(self, line: str) -> str:
        name = f"%t{len(self.lines)}"
        self.lines.append(f"{name} = {line}")
        return name

    def op(self, name: str, *values: str, type_: str) -> str:
        return self.add(f"stablehlo.{name} {commas(values)} : {type_}")

    def transpose(self, value: str, extents: list[int]) -> tuple[str, list[int]]:
        """Of the last two dimensions."""
        rank = len(extents)
        dims = [*range(rank - 2), rank - 1, rank - 2]
        new = [extents[dim] for dim in dims]
        old = tensor(extents, self.of)
        return self.add(f"stablehlo.transpose {value}, dims = {dims} : ({old}) -> {tensor(new, self.of)}"), new

    def conjugate(self, value: str, extents: list[int]) -> str:
        if not self.is_complex:
            return value
        type_, part = tensor(extents, self.of), tensor(extents, self.real)
        real = self.add(f"stablehlo.real {value} : ({type_}) -> {part}")
        imaginary = self.add(f"stablehlo.imag {value} : ({type_}) -> {part}")
        negated = self.op("negate", imaginary, type_=part)
        return self.add(f"stablehlo.complex {real}, {negated} : {type_}")

    def constant(self, number: int, extents: list[int], of: str) -> str:
        value = (
            f"({number}.0, 0.0)" if of.startswith("complex") else f"{number}" if of[0] == "i" else f"{number}.0"
        )
        return self.add(f"stablehlo.constant dense<{value}> : {tensor(extents, of)}")

    def iota(self, extents: list[int], axis: int) -> str:
        return self.add(f"stablehlo.iota dim = {axis} : {tensor(extents, 'i64')}")

    def compare(self, direction: str, a: str, b: str, extents: list[int]) -> str:
        type_, mask = tensor(extents, "i64"), tensor(extents, "i1")
        return self.add(f"stablehlo.compare {direction}, {a}, {b}, SIGNED : ({type_}, {type_}) -> {mask}")

    def select(self, mask: str, a: str, b: str, extents: list[int]) -> str:
        return self.op("select", mask, a, b, type_=f"{tensor(extents, 'i1')}, {tensor(extents, self.of)}")

    def slice(self, value: str, extents: list[int], starts: list[str], sizes: list[int]) -> str:
        types = commas([tensor(extents, self.of), *["tensor<i64>"] * len(extents)])
        return self.add(
            f"stablehlo.dynamic_slice {value}, {commas(starts)}, sizes = {sizes} : ({types}) -> {tensor(sizes, self.of)}"
        )

    def update(self, value: str, part: str, extents: list[int], starts: list[str], sizes: list[int]) -> str:
        types = commas([tensor(extents, self.of), tensor(sizes, self.of), *["tensor<i64>"] * len(extents)])
        return self.add(
            f"stablehlo.dynamic_update_slice {value}, {part}, {commas(starts)} : ({types}) -> {tensor(extents, self.of)}"
        )

    def dot(self, a: str, b: str, left: list[int], right: list[int], axes: tuple[int, int], out: list[int]) -> str:
        rank = len(left)
        batch = list(range(rank - 2))
        batching = f"batching_dims = {batch} x {batch}, " if batch else ""
        types = f"({tensor(left, self.of)}, {tensor(right, self.of)}) -> {tensor(out, self.of)}"
        return self.add(
            f"stablehlo.dot_general {a}, {b}, {batching}contracting_dims = [{rank - 2 + axes[0]}] x [{rank - 2 + axes[1]}] : {types}"
        )

    def broadcast(self, value: str, old: list[int], new: list[int]) -> str:
        dims = list(range(len(old)))
        return self.add(
            f"stablehlo.broadcast_in_dim {value}, dims = {dims} : ({tensor(old, self.of)}) -> {tensor(new, self.of)}"
        )

    def loop(self, count: int, start: str, extents: list[int]) -> str:
        """Begin a loop over rows; its number is ``%row``, a tensor, what it carries ``%carried``."""
        type_ = tensor(extents, self.of)
        self.lines.append(
            f"%zero = arith.constant 0 : index\n%one = arith.constant 1 : index\n%count = arith.constant {count} : index"
        )
        self.lines.append(
            f"%solved = scf.for %i = %zero to %count step %one iter_args(%carried = {start}) -> ({type_}) {{"
        )
        self.lines.append(
            "%number = arith.index_cast %i : index to i64\n%row = tensor.from_elements %number : tensor<i64>"
        )
        return "%carried"

    def end(self, value: str, extents: list[int]) -> str:
        self.lines.append(f"scf.yield {value} : {tensor(extents, self.of)}\n}}")
        return "%solved"


def cholesky(type_: Any, lower: bool) -> tuple[str, str]:
    """Of ``%0``: the text, and the name of the result, whose other triangle is zero."""
    text, extents = _Text(element(type_)), shape(type_)
    *batch, n, _ = extents
    matrix = "%0"
    if not lower:
        matrix, _ = text.transpose(text.conjugate(matrix, extents), extents)
    nought = text.add("stablehlo.constant dense<0> : tensor<i64>")
    start = text.constant(0, extents, text.of)
    edge = [nought] * len(batch)
    factor = text.loop(n, start, extents)
    column, line, one = [*batch, n, 1], [*batch, 1, n], [*batch, 1, 1]
    row = text.conjugate(text.slice(factor, extents, [*edge, "%row", nought], line), line)
    known = text.dot(factor, row, extents, line, (1, 1), column)
    left = text.op(
        "subtract",
        text.slice(matrix, extents, [*edge, nought, "%row"], column),
        known,
        type_=tensor(column, text.of),
    )
    pivot = text.slice(left, column, [*edge, "%row", nought], one)
    if text.is_complex:
        part, whole = tensor(one, text.real), tensor(one, text.of)
        real = text.add(f"stablehlo.real {pivot} : ({whole}) -> {part}")
        root = text.op("sqrt", real, type_=part)
        none = text.constant(0, one, text.real)
        pivot = text.add(f"stablehlo.complex {root}, {none} : {whole}")
    else:
        pivot = text.op("sqrt", pivot, type_=tensor(one, text.of))
    divided = text.op("divide", left, text.broadcast(pivot, one, column), type_=tensor(column, text.of))
    places = text.iota(column, len(batch))
    here = text.add(f"stablehlo.broadcast_in_dim %row, dims = [] : (tensor<i64>) -> {tensor(column, 'i64')}")
    none = text.constant(0, column, text.of)
    below = text.select(text.compare("GT", places, here, column), divided, none, column)
    new = text.select(text.compare("EQ", places, here, column), text.broadcast(pivot, one, column), below, column)
    result = text.end(text.update(factor, new, extents, [*edge, nought, "%row"], column), extents)
    if not lower:
        result, _ = text.transpose(text.conjugate(result, extents), extents)
    return "\n".join(text.lines), result


def triangular_solve(
    type_: Any, other: Any, left: bool, lower: bool, unit: bool, transpose: str
) -> tuple[str, str]:
    """``%0`` times X, or X times it, is ``%1``: the text, and the name of X."""
    text, extents, sides = _Text(element(type_)), shape(type_), shape(other)
    matrix, known = "%0", "%1"
    if transpose == "ADJOINT":
        matrix = text.conjugate(matrix, extents)
    if transpose in ("ADJOINT", "TRANSPOSE"):
        matrix, _ = text.transpose(matrix, extents)
        lower = not lower
    if not left:
        matrix, _ = text.transpose(matrix, extents)
        known, sides = text.transpose(known, sides)
        lower = not lower
    *batch, n, m = sides
    nought = text.add("stablehlo.constant dense<0> : tensor<i64>")
    edge = [nought] * len(batch)
    strictly = text.compare(
        "GT" if lower else "LT", text.iota(extents, len(batch)), text.iota(extents, len(batch) + 1), extents
    )
    inside = text.select(strictly, matrix, text.constant(0, extents, text.of), extents)
    last = text.add(f"stablehlo.constant dense<{n - 1}> : tensor<i64>")
    solved = text.loop(n, text.constant(0, sides, text.of), sides)
    row = "%row" if lower else text.op("subtract", last, "%row", type_="tensor<i64>")
    line, right, one = [*batch, 1, n], [*batch, 1, m], [*batch, 1, 1]
    part = text.slice(inside, extents, [*edge, row, nought], line)
    done = text.dot(part, solved, line, sides, (1, 0), right)
    rest = text.op(
        "subtract", text.slice(known, sides, [*edge, row, nought], right), done, type_=tensor(right, text.of)
    )
    if not unit:
        pivot = text.broadcast(text.slice(matrix, extents, [*edge, row, row], one), one, right)
        rest = text.op("divide", rest, pivot, type_=tensor(right, text.of))
    result = text.end(text.update(solved, rest, sides, [*edge, row, nought], right), sides)
    if not left:
        result, _ = text.transpose(result, sides)
    return "\n".join(text.lines), result
