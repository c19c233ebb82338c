"""What claimed functions become in code over tensors: *adapters*, which call functions over buffers; and how the
text of the latter is written.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

from devscope.backends.backend import Argument
from devscope.lowering import mlir_util
from devscope.lowering.checks.labels import Labels
from devscope.lowering.checks.shapes import check_shapes
from devscope.lowering.claimed.constants import PASSED_ATTR
from devscope.lowering.claimed.functions import ClaimedFunction, wrong
from devscope.lowering.input_forms import bring_into_form, is_in_form
from devscope.lowering.interop.bindings import ir
from devscope.lowering.interop.session import Session
from devscope.lowering.memory.effects import mark_written
from devscope.lowering.mlir_util import Builder
from devscope.lowering.truth_bytes import in_memory

PREFIX = "devscope_claimed_"
"""Of functions over buffers."""

_SIZES = (
    "builtin.module(func.func(convert-elementwise-to-linalg),resolve-ranked-shaped-type-result-dims,"
    "func.func(canonicalize,cse))"
)
"""Sizes of results are computed from those of operands; what only had a size is gone."""


def function_of(module: Any, claimed: ClaimedFunction) -> Any:
    for function in mlir_util.functions(module):
        if mlir_util.symbol_name(function) == claimed.name and mlir_util.has_body(function):
            return function
    raise wrong(claimed, f"gave MLIR without a function '{claimed.name}'")


def lifted_constants(function: Any) -> list[Any]:
    """The constants that code gets as further operands, in order."""
    return [op for op in mlir_util.walk(function) if PASSED_ATTR in op.attributes]


def shape_function(session: Session, claimed: ClaimedFunction, labels: Labels) -> tuple[Any, Any, list[Any]]:
    """A module whose function computes the dynamic sizes of the results, and checks shapes as it goes.

    Gives the module, the function, and the types of the results. Raises LoweringError if sizes depend on data.
    """
    own = session.to_mlir(claimed.module())
    caller = function_of(own, claimed)
    end = mlir_util.children(caller)[-1]
    count = len(end.operands)
    # Passes would drop, reorder and merge constants, which code gets, that are not returned.
    _return(caller, end, [*end.operands, *(op.results[0] for op in lifted_constants(caller))])
    if len(claimed.functions) > 1:
        visibility = caller.attributes["sym_visibility"]
        del caller.attributes["sym_visibility"]  # what is private and not called is dropped
        session.run_passes(own, "builtin.module(inline,symbol-dce)")
        function_of(own, claimed).attributes["sym_visibility"] = visibility
    if not is_in_form(own):
        bring_into_form(own, session.run_passes)
    check_shapes(own, labels)
    function = function_of(own, claimed)
    end = mlir_util.children(function)[-1]
    results, kept = list(end.operands)[:count], list(end.operands)[count:]
    types = [value.type for value in results]
    if not all(isinstance(type_, ir.RankedTensorType) for type_ in types):
        raise wrong(claimed, "claims what gives a number, not a tensor")
    build = Builder(end)
    dims = [
        build.value("tensor.dim", [value, build.constant(axis)], build.index)
        for value in results
        for axis, size in enumerate(value.type.shape)
        if size == ir.ShapedType.get_dynamic_size()
    ]
    _return(function, end, [*dims, *kept])
    session.run_passes(own, _SIZES)
    left = [op for op in mlir_util.walk(function) if op.name.startswith(("linalg.", "tosa."))]
    if left:
        raise wrong(claimed, f"claims what gives a shape that depends on data: '{left[0].name}'")
    return own, function, types


def _return(function: Any, end: Any, values: Sequence[Any]) -> Any:
    """Replace the end of a function of one block, and its type."""
    new = Builder(end).op("func.return", values)
    end.erase()
    inputs = mlir_util.function_type(function).inputs
    type_ = ir.FunctionType.get(inputs, [value.type for value in values], context=function.context)
    function.attributes["function_type"] = ir.TypeAttr.get(type_)
    if "res_attrs" in function.attributes:
        del function.attributes["res_attrs"]
    return new


class Adapter(NamedTuple):
    """``module``: with the claimed function, which calls one over buffers of these ``types``."""

    module: Any
    types: list[Any]
    location: Any


def adapter(session: Session, claimed: ClaimedFunction, labels: Labels) -> Adapter:
    module, function, types = shape_function(session, claimed, labels)
    end = mlir_util.children(function)[-1]
    build = Builder(end)
    values = list(end.operands)
    count = sum(_dynamic(type_) for type_ in types)
    sizes = iter(values[:count])
    arguments = list(mlir_util.entry_block(function).arguments)
    given = [*(arguments[position] for position in claimed.passed), *values[count:]]
    passed = [_buffer(build, value) for value in given]
    made: list[Any] = []
    for type_ in types:
        memref = mlir_util.buffer_type(type_.shape, type_.element_type)
        made.append(build.alloc(memref, [next(sizes) for _ in range(_dynamic(type_))]))
    call = build.call(f"{PREFIX}{claimed.name}", [*passed, *made])
    mark_written(call, range(len(passed), len(passed) + len(made)))
    unit = ir.UnitAttr.get(function.context)
    attributes = {"restrict": unit, "writable": unit}
    returned = [
        build.value("bufferization.to_tensor", [buffer], type_, attributes)
        for buffer, type_ in zip(made, types, strict=True)
    ]
    _return(function, end, returned)
    operands = [value.type for value in (*passed, *made)]
    mlir_util.declare(
        module, f"{PREFIX}{claimed.name}", ir.FunctionType.get(operands, [], context=function.context)
    )
    return Adapter(module, operands, mlir_util.children(function)[-1].location)


def _dynamic(type_: Any) -> int:
    return sum(size == ir.ShapedType.get_dynamic_size() for size in type_.shape)


def _buffer(build: Builder, value: Any) -> Any:
    if not isinstance(value.type, ir.RankedTensorType):
        return value
    memref = mlir_util.buffer_type(value.type.shape, value.type.element_type)
    read = {"read_only": ir.UnitAttr.get(value.type.context)}
    return build.value("bufferization.to_buffer", [value], memref, read)


def usual_arguments(types: Sequence[Any]) -> list[Argument]:
    """Of buffers the address, then the sizes; numbers."""
    found: list[Argument] = []
    for number, type_ in enumerate(types):
        if not mlir_util.is_memref(type_):
            found.append(Argument.scalar(number))
            continue
        found.append(Argument.pointer(number))
        found += [Argument.size(number, axis) for axis in range(ir.MemRefType(type_).rank)]
    return found


class Cells(NamedTuple):
    """``address``: of an array of ``length`` 8-byte cells, a value of type index."""

    address: str
    length: int


class CallText:
    """The body of a function over buffers, on its way."""

    def __init__(self, types: Sequence[Any]) -> None:
        self.types = list(map(in_memory, types))
        self.lines: list[str] = []
        self.lent: dict[int, str] = {}
        """Of buffers of a device, the addresses that a library gets."""

    def new(self, text: str) -> str:
        self.lines.append(f"%v{len(self.lines)} = {text}")
        return f"%v{len(self.lines) - 1}"

    def constant(self, number: int | float, type_: str) -> str:
        shown = _float_text(number, type_) if "f" in type_ else str(int(number))
        return self.new(f"arith.constant {shown} : {type_}")

    def address(self, value: int) -> str:
        index = self.new(f"memref.extract_aligned_pointer_as_index %a{value} : {self.types[value]} -> index")
        return self.new(f"arith.index_cast {index} : index to i64")

    def size(self, value: int, axis: int, type_: str) -> str:
        number = self.constant(axis, "index")
        size = self.new(f"memref.dim %a{value}, {number} : {self.types[value]}")
        return size if type_ == "index" else self.new(f"arith.index_cast {size} : index to {type_}")

    def pointer(self, value: int) -> str:
        if value in self.lent:
            return self.lent[value]
        return self.new(f"llvm.inttoptr {self.address(value)} : i64 to !llvm.ptr")

    def check(self, status: str, message: str) -> None:
        """A status other than 0 ends the call."""
        index, zero = self.new(f"arith.index_cast {status} : i32 to index"), self.constant(0, "index")
        is_good = self.new(f"arith.cmpi eq, {index}, {zero} : index")
        self.lines.append(f'cf.assert {is_good}, "{message}" {{devscope.check}}')

    def cells(self) -> Cells:
        """What `usual_arguments` says, in an array."""
        cells = [_cell(self, argument) for argument in usual_arguments(self.types)]
        type_ = f"memref<{max(len(cells), 1)}xi64>"
        array = self.new(f"memref.alloca() : {type_}")
        for number, cell in enumerate(cells):
            self.lines.append(f"memref.store {cell}, {array}[{self.constant(number, 'index')}] : {type_}")
        return Cells(self.new(f"memref.extract_aligned_pointer_as_index {array} : {type_} -> index"), len(cells))

    def function(self, name: str) -> str:
        arguments = ", ".join(f"%a{number}: {type_}" for number, type_ in enumerate(self.types))
        return "\n".join([f"func.func private @{name}({arguments}) {{", *self.lines, "return", "}"])


def _float_text(number: int | float, type_: str) -> str:
    """As MLIR reads it: what is not finite by its bits."""
    if math.isfinite(number):
        return f"{number:.17e}"
    formats = {"f16": ("<e", "<H"), "bf16": ("<f", "<I"), "f32": ("<f", "<I"), "f64": ("<d", "<Q")}
    written, read = formats[type_]
    (bits,) = struct.unpack(read, struct.pack(written, number))
    return f"0x{bits >> 16 if type_ == 'bf16' else bits:0{4 if '16' in type_ else struct.calcsize(read) * 2}X}"


def _cell(text: CallText, argument: Argument) -> str:
    if argument.what == "pointer":
        return text.address(argument.value)
    if argument.what == "size":
        return text.size(argument.value, argument.dim, "i64")
    value, type_ = f"%a{argument.value}", text.types[argument.value]
    if isinstance(type_, ir.IndexType):
        return text.new(f"arith.index_cast {value} : index to i64")
    bits = mlir_util.element_bytes(type_) * 8
    if isinstance(type_, ir.FloatType):
        value = text.new(f"arith.bitcast {value} : {type_} to i{bits}")
    width = bits if isinstance(type_, ir.FloatType) else ir.IntegerType(type_).width
    return value if width == 64 else text.new(f"arith.extui {value} : i{width} to i64")
