"""Claimed functions whose data is in the host's memory: what their backends' code becomes in host code.

MLIR on tensors is the function's new body. All else is called with buffers: the function becomes an *adapter* over
tensors, which checks shapes, allocates results and calls a function over buffers; that is defined when memory is
planned, since it takes the addresses of buffers, whose lifetimes could not be followed any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from devscope.backends.backend import (
    Argument,
    Arguments,
    Code,
    CSource,
    DeviceBinary,
    LibraryCall,
    LlvmIr,
    Mlir,
    ObjectCode,
    PythonCall,
)
from devscope.errors import DevscopeError, LoweringError
from devscope.lowering import mlir_util
from devscope.lowering.checks.labels import Labels
from devscope.lowering.checks.shapes import check_shapes
from devscope.lowering.claimed.functions import ClaimedFunction, generate
from devscope.lowering.interop.bindings import ir
from devscope.lowering.interop.session import Session
from devscope.lowering.memory.effects import mark_written
from devscope.lowering.memory.link_functions import merge_modules
from devscope.lowering.mlir_util import Builder
from devscope.runtime.object_file import is_allowed, read_symbols

_PREFIX = "devscope_claimed_"
"""Of functions over buffers."""

_SIZES = (
    "builtin.module(func.func(convert-elementwise-to-linalg),resolve-ranked-shaped-type-result-dims,"
    "func.func(canonicalize,cse))"
)
"""Sizes of results are computed from those of operands; what only had a size is gone."""

CompileIr = Callable[[str], bytes]
"""Object code of LLVM IR text, for the host that the program is compiled for."""


@dataclass
class HostParts:
    """What host code is linked with, besides the runtime.

    ``definitions``: MLIR text of the functions over buffers, and where each stands in the source. ``objects``: that of backends. ``uses``: for each
    backend, the functions of its `devscope.runtime.plugins.Runtime` that are called.
    """

    definitions: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])
    objects: list[bytes] = field(default_factory=list[bytes])
    uses: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    _declared: dict[str, str] = field(default_factory=dict[str, str])
    _defined: dict[str, bytes] = field(default_factory=dict[str, bytes])

    def use(self, claimed: ClaimedFunction, names: Sequence[str]) -> None:
        for name in names:
            if is_allowed(name):
                continue  # of the C library
            for backend, known in self.uses.items():
                if name in known and backend != claimed.backend.name:
                    raise _wrong(claimed, f"calls '{name}', which backend '{backend}' has, too")
            known = self.uses.setdefault(claimed.backend.name, [])
            if name not in known:
                known.append(name)

    def declare(self, claimed: ClaimedFunction, symbol: str, type_: str) -> None:
        """Declare a C function. Raises LoweringError if it is declared with other types."""
        known = self._declared.setdefault(symbol, type_)
        if known != type_:
            raise _wrong(claimed, f"calls '{symbol}' as {type_}, and elsewhere as {known}")

    def add_object(self, claimed: ClaimedFunction, data: bytes, symbol: str) -> None:
        try:
            symbols = read_symbols(data)
        except DevscopeError as error:
            raise _wrong(claimed, f"gave an object that cannot be linked: {error.message}") from None
        if symbol not in symbols.defined:
            raise _wrong(claimed, f"gave an object that does not define '{symbol}'")
        if data in self.objects:
            return
        for name in symbols.defined:
            if name in self._defined:
                raise _wrong(claimed, f"gave two objects that define '{name}': name functions after Claimed.name")
            self._defined[name] = data
        self.objects.append(data)

    def define(self, module: Any) -> None:
        """Put the functions over buffers into host code whose memory is planned."""
        if not self.definitions:
            return
        declared = {
            mlir_util.symbol_name(op) for op in mlir_util.children(module.operation) if "sym_name" in op.attributes
        }
        for name, type_ in sorted(self._declared.items()):
            if name not in declared:
                mlir_util.append(module, f"func.func private @{name}{type_}")
        for text, location in self.definitions:
            declarations = [f"func.func private @{name}{type_}" for name, type_ in sorted(self._declared.items())]
            parsed = ir.Module.parse("\n".join([*declarations, text]), module.context)
            for op in mlir_util.walk(parsed.operation):
                op.location = location
            merge_modules(module, parsed)


def put_back(
    module: Any, session: Session, claimed: Sequence[ClaimedFunction], labels: Labels, compile_ir: CompileIr
) -> HostParts:
    """Give the declarations of claimed functions in ``module``, host code over tensors, bodies.

    Raises LoweringError, located, for what cannot be.
    """
    parts = HostParts()
    for one in claimed:
        code = generate(one, session)
        if isinstance(code, Mlir) and (body := _on_tensors(code, one, module)) is not None:
            merge_modules(module, body)
            continue
        adapter, types = _adapter(session, one, labels)
        location = mlir_util.children(_function(adapter, one))[-1].location
        merge_modules(module, adapter)
        parts.definitions.append((_definition(parts, one, code, types, compile_ir, module.context), location))
    return parts


def _wrong(claimed: ClaimedFunction, what: str) -> LoweringError:
    return LoweringError(f"{claimed.describe()} {what}", claimed.location)


# --------------------------------------------------------------------------------------------------- adapters


def _on_tensors(code: Mlir, claimed: ClaimedFunction, module: Any) -> Any | None:
    """The module of MLIR code on tensors, its functions private; None where the code is on buffers."""
    parsed = _parse(code.text, claimed, module.context)
    function = _function(parsed, claimed)
    if any(mlir_util.is_memref(type_) for type_ in mlir_util.function_type(function).inputs):
        return None
    declared = next(f for f in mlir_util.functions(module) if mlir_util.symbol_name(f) == claimed.name)
    if mlir_util.function_type(function) != mlir_util.function_type(declared):
        raise _wrong(
            claimed, f"gave a function of type {mlir_util.function_type(function)}, not {_type_text(declared)}"
        )
    for one in mlir_util.functions(parsed):
        one.attributes["sym_visibility"] = ir.StringAttr.get("private", module.context)
    return parsed


def _type_text(function: Any) -> str:
    return str(mlir_util.function_type(function))


def _parse(text: str, claimed: ClaimedFunction, context: Any) -> Any:
    try:
        return ir.Module.parse(text, context)
    except (ir.MLIRError, ValueError) as error:
        first = (str(error).strip().splitlines() or ["no message"])[-1]
        raise LoweringError(
            f"{claimed.describe()} gave MLIR that is none", claimed.location, [first.strip()]
        ) from error


def _function(module: Any, claimed: ClaimedFunction) -> Any:
    for function in mlir_util.functions(module):
        if mlir_util.symbol_name(function) == claimed.name and mlir_util.has_body(function):
            return function
    raise _wrong(claimed, f"gave MLIR without a function '{claimed.name}'")


def lifted_constants(function: Any) -> list[Any]:
    """The constants that code gets as further operands: those that are no splats, in order."""
    found = (op for op in mlir_util.walk(function) if op.name == "arith.constant")
    return [op for op in found if isinstance(op.results[0].type, ir.RankedTensorType) and not _is_splat(op)]


def _is_splat(op: Any) -> bool:
    value = op.attributes["value"]
    return isinstance(value, ir.DenseElementsAttr) and ir.DenseElementsAttr(value).is_splat


def shape_function(session: Session, claimed: ClaimedFunction, labels: Labels) -> tuple[Any, Any, list[Any]]:
    """A module whose function computes the dynamic sizes of the results, and checks shapes as it goes.

    Gives the module, the function, and the types of the results. Raises LoweringError if sizes depend on data.
    """
    own = session.to_mlir(claimed.module())
    if len(claimed.functions) > 1:
        session.run_passes(own, "builtin.module(inline,symbol-dce)")
    check_shapes(own, labels)
    function = _function(own, claimed)
    end = mlir_util.children(function)[-1]
    results = list(end.operands)
    types = [value.type for value in results]
    if not all(isinstance(type_, ir.RankedTensorType) for type_ in types):
        raise _wrong(claimed, "claims what gives a number, not a tensor")
    constants = lifted_constants(function)
    build = Builder(end)
    dims = [
        build.value("tensor.dim", [value, build.constant(axis)], build.index)
        for value in results
        for axis, size in enumerate(value.type.shape)
        if size == ir.ShapedType.get_dynamic_size()
    ]
    # Constants that code gets are kept over the passes as what the function returns.
    kept = [op.results[0] for op in constants]
    _return(function, end, [*dims, *kept])
    session.run_passes(own, _SIZES)
    left = [op for op in mlir_util.walk(function) if op.name.startswith(("linalg.", "tosa."))]
    if left:
        raise _wrong(claimed, f"claims what gives a shape that depends on data: '{left[0].name}'")
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


def _adapter(session: Session, claimed: ClaimedFunction, labels: Labels) -> tuple[Any, list[Any]]:
    """The claimed function, which calls one over buffers; and the types of that one's operands and results."""
    module, function, types = shape_function(session, claimed, labels)
    end = mlir_util.children(function)[-1]
    build = Builder(end)
    values = list(end.operands)
    count = sum(_dynamic(type_) for type_ in types)
    sizes = iter(values[:count])
    given = [*mlir_util.entry_block(function).arguments, *values[count:]]
    passed = [_buffer(build, value) for value in given]
    made: list[Any] = []
    for type_ in types:
        memref = mlir_util.buffer_type(type_.shape, type_.element_type)
        made.append(build.alloc(memref, [next(sizes) for _ in range(_dynamic(type_))]))
    call = build.call(f"{_PREFIX}{claimed.name}", [*passed, *made])
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
        module, f"{_PREFIX}{claimed.name}", ir.FunctionType.get(operands, [], context=function.context)
    )
    return module, operands


def _dynamic(type_: Any) -> int:
    return sum(size == ir.ShapedType.get_dynamic_size() for size in type_.shape)


def _buffer(build: Builder, value: Any) -> Any:
    if not isinstance(value.type, ir.RankedTensorType):
        return value
    memref = mlir_util.buffer_type(value.type.shape, value.type.element_type)
    read = {"read_only": ir.UnitAttr.get(value.type.context)}
    return build.value("bufferization.to_buffer", [value], memref, read)


# --------------------------------------------------------------------------------------------------- definitions


def _definition(
    parts: HostParts,
    claimed: ClaimedFunction,
    code: Code,
    types: Sequence[Any],
    compile_ir: CompileIr,
    context: Any,
) -> str:
    """MLIR text of the function over buffers."""
    name = f"{_PREFIX}{claimed.name}"
    match code:
        case Mlir():
            parts.use(claimed, code.calls)
            return _renamed(code, claimed, name, types, context)
        case LibraryCall():
            parts.use(claimed, [code.symbol])
            return _call_text(parts, claimed, name, types, code.symbol, code.arguments, code.status)
        case PythonCall():
            parts.use(claimed, [code.name])
            return _python_text(parts, claimed, name, types, code.name)
        case DeviceBinary():
            raise _wrong(claimed, "gave a device's binary for a target whose device type is 'cpu'")
        case CSource():
            data = code.toolchain(code.text)
        case ObjectCode():
            data = code.data
        case LlvmIr():
            data = compile_ir(code.text)
    parts.use(claimed, code.calls)
    parts.add_object(claimed, data, code.symbol)
    return _call_text(parts, claimed, name, types, code.symbol, code.arguments, True)


def _renamed(code: Mlir, claimed: ClaimedFunction, name: str, types: Sequence[Any], context: Any) -> str:
    parsed = _parse(code.text, claimed, context)
    function = _function(parsed, claimed)
    given = list(mlir_util.function_type(function).inputs)
    if given != list(types):
        raise _wrong(claimed, f"gave a function over ({_shown(given)}), not ({_shown(types)})")
    ir.SymbolTable.replace_all_symbol_uses(claimed.name, name, parsed.operation)
    ir.SymbolTable.set_symbol_name(function, name)
    for one in mlir_util.functions(parsed):
        one.attributes["sym_visibility"] = ir.StringAttr.get("private", context)
    return "\n".join(str(op) for op in mlir_util.children(parsed.operation))


def _shown(types: Sequence[Any]) -> str:
    return ", ".join(map(str, types))


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


class _Text:
    """The body of a function over buffers, on its way."""

    def __init__(self, types: Sequence[Any]) -> None:
        self.types = types
        self.lines: list[str] = []

    def new(self, text: str) -> str:
        self.lines.append(f"%v{len(self.lines)} = {text}")
        return f"%v{len(self.lines) - 1}"

    def constant(self, number: int | float, type_: str) -> str:
        shown = repr(float(number)) if type_.startswith(("f", "bf")) else str(int(number))
        return self.new(f"arith.constant {shown} : {type_}")

    def address(self, value: int) -> str:
        index = self.new(f"memref.extract_aligned_pointer_as_index %a{value} : {self.types[value]} -> index")
        return self.new(f"arith.index_cast {index} : index to i64")

    def size(self, value: int, axis: int, type_: str) -> str:
        number = self.constant(axis, "index")
        size = self.new(f"memref.dim %a{value}, {number} : {self.types[value]}")
        return size if type_ == "index" else self.new(f"arith.index_cast {size} : index to {type_}")

    def pointer(self, value: int) -> str:
        return self.new(f"llvm.inttoptr {self.address(value)} : i64 to !llvm.ptr")

    def check(self, status: str, message: str) -> None:
        """A status other than 0 ends the call."""
        index, zero = self.new(f"arith.index_cast {status} : i32 to index"), self.constant(0, "index")
        is_good = self.new(f"arith.cmpi eq, {index}, {zero} : index")
        self.lines.append(f'cf.assert {is_good}, "{message}" {{devscope.check}}')

    def function(self, name: str) -> str:
        arguments = ", ".join(f"%a{number}: {type_}" for number, type_ in enumerate(self.types))
        return "\n".join([f"func.func private @{name}({arguments}) {{", *self.lines, "return", "}"])


def _call_text(
    parts: HostParts,
    claimed: ClaimedFunction,
    name: str,
    types: Sequence[Any],
    symbol: str,
    arguments: Arguments,
    status: bool,
) -> str:
    text = _Text(types)
    made = [_argument(text, claimed, one) for one in (usual_arguments(types) if arguments is None else arguments)]
    values, kinds = [value for value, _ in made], [kind for _, kind in made]
    result = "i32" if status else "()"
    type_ = f"({', '.join(kinds)}) -> {result}"
    parts.declare(claimed, symbol, type_)
    call = f"func.call @{symbol}({', '.join(values)}) : {type_}"
    if status:
        message = f"backend '{claimed.backend.name}': {symbol} failed with status {{0}}"
        text.check(text.new(call), message)
    else:
        text.lines.append(call)
    return text.function(name)


def _argument(text: _Text, claimed: ClaimedFunction, argument: Argument) -> tuple[str, str]:
    """A value and its type."""
    what, value = argument.what, argument.value
    if what == "constant":
        return text.constant(argument.number, argument.type), argument.type
    if not 0 <= value < len(text.types):
        raise _wrong(claimed, f"gave a call with value {value} of {len(text.types)}")
    type_ = text.types[value]
    is_buffer = mlir_util.is_memref(type_)
    if what == "scalar" and not is_buffer:
        return f"%a{value}", str(type_)
    if what == "pointer" and is_buffer:
        return text.pointer(value), "!llvm.ptr"
    if what == "size" and is_buffer and 0 <= argument.dim < ir.MemRefType(type_).rank:
        return text.size(value, argument.dim, argument.type), argument.type
    raise _wrong(claimed, f"gave a call with a {what} of value {value}, which is {type_}")


def _python_text(parts: HostParts, claimed: ClaimedFunction, name: str, types: Sequence[Any], symbol: str) -> str:
    """A call with a text of the types, and an array of the cells that `usual_arguments` says."""
    text = _Text(types)
    cells = [_cell(text, argument) for argument in usual_arguments(types)]
    array = text.new(f"memref.alloca() : memref<{max(len(cells), 1)}xi64>")
    for number, cell in enumerate(cells):
        place = text.constant(number, "index")
        text.lines.append(f"memref.store {cell}, {array}[{place}] : memref<{max(len(cells), 1)}xi64>")
    data = text.new(f"memref.extract_aligned_pointer_as_index {array} : memref<{max(len(cells), 1)}xi64> -> index")
    data = text.new(f"llvm.inttoptr {text.new(f'arith.index_cast {data} : index to i64')} : i64 to !llvm.ptr")
    described = ",".join(_described(types, len(claimed_outputs(claimed))))
    label = text.new(f"llvm.mlir.addressof @{name}_types : !llvm.ptr")
    type_ = "(!llvm.ptr, !llvm.ptr) -> i32"
    parts.declare(claimed, symbol, type_)
    text.check(
        text.new(f"func.call @{symbol}({label}, {data}) : {type_}"),
        f"backend '{claimed.backend.name}': the Python function '{symbol}' raised an exception",
    )
    length = len(described) + 1
    constant = f'llvm.mlir.global private constant @{name}_types("{described}\\00") : !llvm.array<{length} x i8>'
    return f"{constant}\n{text.function(name)}"


def claimed_outputs(claimed: ClaimedFunction) -> Sequence[Any]:
    return claimed.functions[0].function_type.outputs.data


def _described(types: Sequence[Any], results: int) -> Iterator[str]:
    """Of each value its rank, or nothing for a number, and the type of elements; results begin with ``>``."""
    for number, type_ in enumerate(types):
        mark = ">" if number >= len(types) - results else ""
        if mlir_util.is_memref(type_):
            memref = ir.MemRefType(type_)
            yield f"{mark}{memref.rank}:{memref.element_type}"
        else:
            yield f"{mark}:{type_}"


def _cell(text: _Text, argument: Argument) -> str:
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
