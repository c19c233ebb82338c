"""``blas``: matrix products by OpenBLAS, called from compiled host code.

Products of matrices, of batches of them, and of a matrix and a vector, of f32 and f64; transposed operands, a
factor, and what is added (a matrix, or the same row to all rows) are part of the call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import TensorType

from devscope.analysis.patterns import Match, op_name, splat_value, transposes
from devscope.backends.backend import Backend, Claimed, Code, Mlir, Row
from devscope.backends.contractions import (
    is_zero,
    operand_of,
    product_of,
    product_programs,
    product_rows,
    rank_of,
    refusal,
)

_LETTERS = {"f32": "s", "f64": "d"}
_MOST = 2**31 - 1
"""The largest size that this OpenBLAS, whose integers have 32 bits, can be given."""

_ROWS = 101
_PLAIN, _TRANSPOSED = 111, 112


def _accepts(match: Match) -> bool | str:
    """Whether OpenBLAS computes it as it is written."""
    return refusal(match, [(element, element) for element in _LETTERS], _MOST) or True


class Blas(Backend):
    name: ClassVar[str] = "blas"
    patterns: Sequence[Row] = product_rows(_accepts)
    programs: Sequence[str] = product_programs()

    def codegen(self, function: Claimed) -> Code:
        assert function.match is not None
        return _Call(function, function.match).code()


class _Call:
    """Text of a function over buffers that calls OpenBLAS."""

    def __init__(self, function: Claimed, match: Match) -> None:
        self.function, self.match = function, match
        self.product = product_of(match)
        self.types = function.buffers
        self.result = len(self.types) - 1
        type_ = self.product.results[0].type
        assert isinstance(type_, TensorType)
        self.element = str(type_.get_element_type())
        self.lines: list[str] = []

    def new(self, text: str) -> str:
        self.lines.append(f"%v{len(self.lines)} = {text}")
        return f"%v{len(self.lines) - 1}"

    def code(self) -> Code:
        name = op_name(self.product)
        beta = self._initial()
        factor = splat_value(self.match["factor"]) if "factor" in self.match else 1.0
        alpha, beta = (self.new(f"arith.constant {float(x)!r} : {self.element}") for x in (factor, beta))  # pyright: ignore
        is_vector = name in ("linalg.matvec", "linalg.vecmat")
        symbol = f"scipy_cblas_{_LETTERS[self.element]}{'gemv' if is_vector else 'gemm'}"
        call = self._vector if is_vector else self._matrices
        types = call(symbol, alpha, beta, name)
        arguments = ", ".join(f"%a{number}: {type_}" for number, type_ in enumerate(self.types))
        body = "\n  ".join(self.lines)
        text = (
            f"func.func private @{symbol}({', '.join(types)})\n"
            f"func.func @{self.function.name}({arguments}) {{\n  {body}\n  return\n}}\n"
        )
        return Mlir(text, [symbol])

    # ------------------------------------------------------------------------------------------- what is added

    def _initial(self) -> float:
        """Put what is added into the result; the factor of what is there."""
        added = self.match["bias"] if "bias" in self.match else self.match["init"]
        if "bias" not in self.match and is_zero(added):
            return 0.0
        out = f"outs(%a{self.result} : {self.types[self.result]})"
        splat = splat_value(added)
        if splat is not None:
            value = self.new(f"arith.constant {float(splat)!r} : {self.element}")
            self.lines.append(f"linalg.fill ins({value} : {self.element}) {out}")
            return 1.0
        number = self.function.operand(added)
        given, rank = self.types[number], rank_of(self.product.results[0])
        if rank_of(added) == rank:
            self.lines.append(f"linalg.copy ins(%a{number} : {given}) {out}")
        else:
            dimensions = ", ".join(map(str, range(rank - 1)))
            self.lines.append(f"linalg.broadcast ins(%a{number} : {given}) {out} dimensions = [{dimensions}]")
        return 1.0

    # ------------------------------------------------------------------------------------------- the call

    def _operand(self, position: int) -> tuple[int, bool]:
        return operand_of(self.function, self.product.operands[position])

    def _size(self, value: int, axis: int) -> str:
        """A size as an i32; an assertion that it is one, where it is not known."""
        at = self.new(f"arith.constant {axis} : index")
        size = self.new(f"memref.dim %a{value}, {at} : {self.types[value]}")
        most = self.new(f"arith.constant {_MOST} : index")
        fits = self.new(f"arith.cmpi sle, {size}, {most} : index")
        self.lines.append(f'cf.assert {fits}, "a matrix has more than {_MOST} rows or columns"')
        return self.new(f"arith.index_cast {size} : index to i32")

    def _leading(self, value: int, axis: int) -> str:
        """The distance of two rows, which BLAS wants to be 1 at least."""
        return self.new(f"arith.maxsi {self._size(value, axis)}, {self._number(1)} : i32")

    def _number(self, number: int) -> str:
        return self.new(f"arith.constant {number} : i32")

    def _address(self, value: int) -> str:
        index = self.new(f"memref.extract_aligned_pointer_as_index %a{value} : {self.types[value]} -> index")
        return self.new(f"arith.index_cast {index} : index to i64")

    def _emit(self, symbol: str, arguments: Sequence[tuple[str, str]]) -> list[str]:
        values, types = zip(*arguments, strict=True)
        self.lines.append(f"func.call @{symbol}({', '.join(values)}) : ({', '.join(types)}) -> ()")
        return list(types)

    def _matrices(self, symbol: str, alpha: str, beta: str, name: str) -> list[str]:
        batch = 1 if name == "linalg.batch_matmul" else 0
        own = transposes(self.product)
        assert own is not None
        (a, a_before), (b, b_before) = self._operand(0), self._operand(1)
        a_turned, b_turned = a_before != own[0], b_before != own[1]
        c = self.result
        m, n = self._size(c, batch), self._size(c, batch + 1)
        k = self._size(a, batch + (0 if a_turned else 1))
        leading = [self._leading(value, batch + 1) for value in (a, b, c)]
        numbers = [self._number(_TRANSPOSED if turned else _PLAIN) for turned in (a_turned, b_turned)]
        rows = self._number(_ROWS)
        pointers = [self._address(value) for value in (a, b, c)]
        types: list[str] = []

        def call() -> None:
            at = [self.new(f"llvm.inttoptr {pointer} : i64 to !llvm.ptr") for pointer in pointers]
            arguments = [
                (rows, "i32"),
                *((number, "i32") for number in numbers),
                (m, "i32"),
                (n, "i32"),
                (k, "i32"),
            ]
            arguments += [(alpha, self.element), (at[0], "!llvm.ptr"), (leading[0], "i32"), (at[1], "!llvm.ptr")]
            arguments += [(leading[1], "i32"), (beta, self.element), (at[2], "!llvm.ptr"), (leading[2], "i32")]
            types.extend(self._emit(symbol, arguments))

        if not batch:
            call()
            return types
        count, zero, one = (self.new(text) for text in self._loop_bounds(c))
        steps = [self._matrix_bytes(value) for value in (a, b, c)]
        loop = f"%i{len(self.lines)}"
        self.lines.append(f"scf.for {loop} = {zero} to {count} step {one} {{")
        number = self.new(f"arith.index_cast {loop} : index to i64")
        offsets = [self.new(f"arith.muli {number}, {step} : i64") for step in steps]
        pointers = [
            self.new(f"arith.addi {pointer}, {offset} : i64")
            for pointer, offset in zip(pointers, offsets, strict=True)
        ]
        call()
        self.lines.append("}")
        return types

    def _loop_bounds(self, value: int) -> list[str]:
        at = self.new("arith.constant 0 : index")
        return [
            f"memref.dim %a{value}, {at} : {self.types[value]}",
            "arith.constant 0 : index",
            "arith.constant 1 : index",
        ]

    def _matrix_bytes(self, value: int) -> str:
        total = self.new(f"arith.constant {4 if self.element == 'f32' else 8} : i64")
        for axis in (1, 2):
            at = self.new(f"arith.constant {axis} : index")
            size = self.new(f"memref.dim %a{value}, {at} : {self.types[value]}")
            total = self.new(f"arith.muli {total}, {self.new(f'arith.index_cast {size} : index to i64')} : i64")
        return total

    def _vector(self, symbol: str, alpha: str, beta: str, name: str) -> list[str]:
        is_first = name == "linalg.matvec"
        matrix, _ = self._operand(0 if is_first else 1)
        vector, _ = self._operand(1 if is_first else 0)
        one = self._number(1)
        arguments = [
            (self._number(_ROWS), "i32"),
            (self._number(_PLAIN if is_first else _TRANSPOSED), "i32"),
            (self._size(matrix, 0), "i32"),
            (self._size(matrix, 1), "i32"),
            (alpha, self.element),
        ]
        at = [
            self.new(f"llvm.inttoptr {self._address(value)} : i64 to !llvm.ptr")
            for value in (matrix, vector, self.result)
        ]
        arguments += [(at[0], "!llvm.ptr"), (self._leading(matrix, 1), "i32"), (at[1], "!llvm.ptr"), (one, "i32")]
        arguments += [(beta, self.element), (at[2], "!llvm.ptr"), (one, "i32")]
        return self._emit(symbol, arguments)
