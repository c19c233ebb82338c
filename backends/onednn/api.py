"""oneDNN's C API as text of MLIR: what a claimed function's code is written with.

Primitives are made in the first call, and again when sizes that are not known before are others than in the call
before. What is made is kept in an array of 64-bit cells, which every instance of a program has of its own, and
destroyed before it is made again, and as the instance ends. The numbers are those of oneDNN's dnnl_types.h.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from math import prod
from typing import NamedTuple

from devscope.backends.backend import Claimed, Mlir

CPU, IN_ORDER, F32, ANY_FORMAT, INFERENCE, DIRECT, ACCURATE = 1, 1, 3, 1, 96, 1, 0x30000
_CONFLICTING, _LINE = 256, 16
"""Numbers of f32: rows of multiples of the former fall into the same sets of caches; a cache line."""

USER_SCRATCHPAD, LIBRARY_ALLOCATES = 1, -1
ELTWISE = {"relu": 0x20, "tanh": 0x21, "gelu_tanh": 0x2B, "gelu": 0x31}
"""dnnl_alg_kind_t."""


class Argument(IntEnum):
    """DNNL_ARG_*."""

    SOURCE = 1
    DESTINATION = 17
    WEIGHTS = 33
    BIAS = 41
    SCRATCHPAD = 80


QUERY = {Argument.SOURCE: 129, Argument.WEIGHTS: 131, Argument.DESTINATION: 133, Argument.SCRATCHPAD: 136}
"""dnnl_query_t of the memory descriptor."""

_DESTROYED_BY = {
    "primitive": "dnnl_primitive_destroy",
    "memory": "dnnl_memory_destroy",
    "pd": "dnnl_primitive_desc_destroy",
    "md": "dnnl_memory_desc_destroy",
    "attr": "dnnl_primitive_attr_destroy",
    "post_ops": "dnnl_post_ops_destroy",
    "stream": "dnnl_stream_destroy",
    "engine": "dnnl_engine_destroy",
}
"""In the order in which things are destroyed."""


class Size(NamedTuple):
    """A product of a number and of sizes of operands: (operand, axis)."""

    number: int
    sizes: tuple[tuple[int, int], ...] = ()

    def __mul__(self, other: object) -> Size:
        assert isinstance(other, Size)
        return Size(self.number * other.number, (*self.sizes, *other.sizes))


class Tensor(NamedTuple):
    """An operand or a result of the code, and how the primitive sees it.

    ``is_free``: the library may want it in another layout. ``is_constant``: then it is put into that once.
    ``is_read``: the primitive adds to what is there. ``spread``: strides of the library's copy of a free tensor
    that it would else take as it is.
    """

    operand: int
    argument: Argument
    dims: Sequence[Size]
    strides: Sequence[Size]
    is_free: bool = False
    is_constant: bool = False
    is_read: bool = True
    spread: Sequence[Size] = ()


class Text:
    """The function of one claim, on its way."""

    def __init__(self, function: Claimed) -> None:
        self.name, self.types = function.name, function.buffers
        self._lines: list[str] = []
        self._count = 0
        self._cells = 0
        self._declared: dict[str, str] = {}
        self._kept: dict[str, list[int]] = {kind: [] for kind in _DESTROYED_BY}
        self._scratch = self.cells(4 * 12)
        self.engine_cell = self.keep("engine")

    # ------------------------------------------------------------------------------------------- values

    def line(self, text: str) -> None:
        self._lines.append(text)

    def fresh(self) -> str:
        """Of a value of its own."""
        self._count += 1
        return f"%v{self._count}"

    def new(self, text: str) -> str:
        name = self.fresh()
        self.line(f"{name} = {text}")
        return name

    def number(self, number: int, type_: str = "i64") -> str:
        return self.new(f"arith.constant {number} : {type_}")

    def real(self, number: float) -> str:
        return self.new(f"arith.constant {number!r} : f32")

    def pointer(self, number: str) -> str:
        return self.new(f"llvm.inttoptr {number} : i64 to !llvm.ptr")

    def null(self) -> str:
        return self.new("llvm.mlir.zero : !llvm.ptr")

    def size(self, size: Size) -> str:
        value = self.number(size.number)
        for operand, axis in size.sizes:
            at = self.number(axis, "index")
            index = self.new(f"memref.dim %a{operand}, {at} : {self.types[operand]}")
            value = self.new(f"arith.muli {value}, {self.new(f'arith.index_cast {index} : index to i64')} : i64")
        return value

    def data(self, operand: int) -> str:
        index = self.new(f"memref.extract_aligned_pointer_as_index %a{operand} : {self.types[operand]} -> index")
        return self.pointer(self.new(f"arith.index_cast {index} : index to i64"))

    @contextmanager
    def when(self, condition: str) -> Generator[None]:
        self.line(f"scf.if {condition} {{")
        yield
        self.line("}")

    # ------------------------------------------------------------------------------------------- cells

    def cells(self, count: int = 1) -> int:
        self._cells += count
        return self._cells - count

    def keep(self, kind: str) -> int:
        """A cell for a handle that is destroyed in the end."""
        self._kept[kind].append(self.cells())
        return self._kept[kind][-1]

    def cell(self, number: int) -> str:
        return self.new(f"llvm.getelementptr %state[{number}] : (!llvm.ptr) -> !llvm.ptr, i64")

    def load(self, number: int, type_: str = "!llvm.ptr") -> str:
        return self.new(f"llvm.load {self.cell(number)} : !llvm.ptr -> {type_}")

    def store(self, value: str, number: int, type_: str = "!llvm.ptr") -> None:
        self.line(f"llvm.store {value}, {self.cell(number)} : {type_}, !llvm.ptr")

    def is_set(self, number: int) -> str:
        return self.new(f"arith.cmpi ne, {self.load(number, 'i64')}, {self.number(0)} : i64")

    # ------------------------------------------------------------------------------------------- calls

    def call(self, symbol: str, *arguments: str | tuple[str, str], result: str = "") -> str:
        """A call; arguments are pointers unless they have another type. ``result``: its type, if there is one."""
        given = [(one, "!llvm.ptr") if isinstance(one, str) else one for one in arguments]
        type_ = f"({', '.join(kind for _, kind in given)}) -> {result or '()'}"
        assert self._declared.setdefault(symbol, type_) == type_, symbol
        text = f"func.call @{symbol}({', '.join(value for value, _ in given)}) : {type_}"
        if result:
            return self.new(text)
        self.line(text)
        return ""

    def checked(self, symbol: str, *arguments: str | tuple[str, str]) -> None:
        """A call whose status ends the program's if it is not 0."""
        status = self.call(symbol, *arguments, result="i32")
        index = self.new(f"arith.index_cast {status} : i32 to index")
        good = self.new(f"arith.cmpi eq, {index}, {self.number(0, 'index')} : index")
        self.line(f"cf.assert {good}, \"backend 'onednn': {symbol} failed with status {{0}}\" {{devscope.check}}")

    def engine(self) -> str:
        return self.load(self.engine_cell)

    def i32(self, number: int) -> tuple[str, str]:
        return self.number(number, "i32"), "i32"

    def sizes(self, sizes: Sequence[Size], place: int = 0) -> str:
        """An array of sizes; ``place``: 0 to 3, so that there are four at a time."""
        for number, size in enumerate(sizes):
            self.store(self.size(size), self._scratch + 12 * place + number, "i64")
        return self.cell(self._scratch + 12 * place)

    def destroy(self) -> None:
        """Everything that was made."""
        for kind, cells in self._kept.items():
            for cell in cells:
                with self.when(self.is_set(cell)):
                    self.destroy_one(kind, cell)

    def destroy_one(self, kind: str, cell: int) -> None:
        handle = self.load(cell)
        self.store(self.number(0), cell, "i64")
        self.call(_DESTROYED_BY[kind], handle, result="i32")

    def module(self, body: Sequence[str], close: Sequence[str]) -> Mlir:
        arguments = ", ".join(f"%a{number}: {type_}" for number, type_ in enumerate(self.types))
        state = f"%state = llvm.mlir.addressof @{self.name}_state : !llvm.ptr"
        array = f"!llvm.array<{self._cells} x i64>"
        lines = [
            *(f"func.func private @{symbol}{type_}" for symbol, type_ in self._declared.items()),
            f"llvm.mlir.global internal @{self.name}_state(dense<0> : tensor<{self._cells}xi64>) : {array}",
            f"func.func @{self.name}({arguments}) {{",
            state,
            *body,
            "return",
            "}",
            f"func.func @{self.name}_close() {{",
            state,
            *close,
            "return",
            "}",
        ]
        own = {"devscope_threads"}
        calls = [symbol for symbol in self._declared if symbol not in own]
        return Mlir("\n".join(lines) + "\n", calls, close=f"{self.name}_close")

    @contextmanager
    def lines(self) -> Generator[list[str]]:
        """Collects what is written meanwhile."""
        before, self._lines = self._lines, []
        yield self._lines
        self._lines = before


def row_major(sizes: Sequence[Size]) -> list[Size]:
    """The strides of contiguous data."""
    strides = [Size(1)]
    for size in reversed(sizes[1:]):
        strides.append(strides[-1] * size)
    return strides[::-1][-len(sizes) :] if sizes else []


def spread_rows(sizes: Sequence[Size]) -> list[Size]:
    """The strides of row-major data whose rows would else begin in few sets of a cache; none if they do not.

    So oneDNN's own `rnn_utils::get_good_ld` chooses leading dimensions. Without AVX-512, oneDNN 3.2 takes the
    right side of a product as it is if it is aligned: rows of 1024 numbers take twice as long as those of 1040.
    """
    row = known(sizes[-1:])
    if len(sizes) < 2 or not row or row % _CONFLICTING:
        return []
    return row_major([*sizes[:-1], Size(row + _LINE)])


def known(sizes: Sequence[Size]) -> int | None:
    """The product of sizes, if they are known."""
    return None if any(size.sizes for size in sizes) else prod(size.number for size in sizes)
