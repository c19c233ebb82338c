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
    Code,
    CSource,
    DeviceBinary,
    LibraryCall,
    LlvmIr,
    Mlir,
    ObjectCode,
    PythonCall,
)
from devscope.errors import DevscopeError
from devscope.lowering import mlir_util
from devscope.lowering.checks.labels import Labels
from devscope.lowering.claimed.adapters import (
    PREFIX,
    CallText,
    adapter,
    function_of,
    lifted_constants,
    usual_arguments,
)
from devscope.lowering.claimed.functions import ClaimedFunction, generate, wrong
from devscope.lowering.input_forms import bring_into_form, is_in_form
from devscope.lowering.interop.bindings import ir
from devscope.lowering.interop.session import Session
from devscope.lowering.memory.link_functions import merge_modules
from devscope.lowering.truth_bytes import store_truths_as_bytes
from devscope.runtime.linker import CLOSE_BACKENDS
from devscope.runtime.object_file import is_allowed, read_symbols, runtime_symbols
from devscope.runtime.plugins import python_symbol

LAUNCH = "devscope_launch"
"""The function of the runtime that enqueues a kernel."""
LEND, LEND_DONE = "devscope_lend", "devscope_lend_done"
"""Those around what a library enqueues."""

CCode = LibraryCall | CSource | ObjectCode | LlvmIr
"""What is called as a C function."""

CompileIr = Callable[[str], bytes]
"""Object code of LLVM IR text, for the host that the program is compiled for."""


@dataclass
class HostParts:
    """What host code is linked with, besides the runtime.

    ``definitions``: MLIR text of the functions over buffers, and where each stands in the source. ``objects``:
    those of backends. ``uses``: for each backend, the functions of its `devscope.runtime.plugins.Runtime` that are
    called.
    """

    definitions: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])
    objects: list[bytes] = field(default_factory=list[bytes])
    uses: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    close: list[str] = field(default_factory=list[str])
    """Functions to call before the code is unloaded."""
    _declared: dict[str, str] = field(default_factory=dict[str, str])
    _defined: dict[str, bytes] = field(default_factory=dict[str, bytes])
    _owners: dict[str, ClaimedFunction] = field(default_factory=dict[str, ClaimedFunction])

    def use_runtime(self, claimed: ClaimedFunction, name: str) -> None:
        """Note that a function of the backend's `Runtime` is called; it has no name that means another one."""
        if is_allowed(name):
            raise wrong(claimed, f"calls '{name}', which is a function of C or of devscope: give it another name")
        self.use(claimed, [name])

    def use(self, claimed: ClaimedFunction, names: Sequence[str]) -> None:
        for name in names:
            if is_allowed(name):
                continue  # of the C library
            for backend, known in self.uses.items():
                if name in known and backend != claimed.backend.name:
                    raise wrong(claimed, f"calls '{name}', which backend '{backend}' has, too")
            known = self.uses.setdefault(claimed.backend.name, [])
            if name not in known:
                known.append(name)

    def declare(self, claimed: ClaimedFunction, symbol: str, type_: str) -> None:
        """Declare a C function. Raises LoweringError if it is declared with other types."""
        known = self._declared.setdefault(symbol, type_)
        if known != type_:
            raise wrong(claimed, f"calls '{symbol}' as {type_}, and elsewhere as {known}")
        self._owners[symbol] = claimed

    def add_object(self, claimed: ClaimedFunction, data: bytes, symbol: str) -> None:
        try:
            symbols = read_symbols(data)
        except DevscopeError as error:
            raise wrong(claimed, f"gave an object that cannot be linked: {error.message}") from None
        if symbol not in symbols.defined:
            raise wrong(claimed, f"gave an object that does not define '{symbol}'")
        if data in self.objects:
            return
        for name in symbols.defined:
            self._owners[name] = claimed
            if is_allowed(name) or name in runtime_symbols():
                raise wrong(claimed, f"gave an object that defines '{name}', a function of C or of devscope")
            if name in self._defined:
                raise wrong(claimed, f"gave two objects that define '{name}': name functions after Claimed.name")
            self._defined[name] = data
        self.objects.append(data)

    def _check_imports(self) -> None:
        """Objects call what programs may call, their backend's runtime and each other."""
        known = {*self._defined, *(name for names in self.uses.values() for name in names)}
        for symbol, data in self._defined.items():
            denied = sorted(one for one in read_symbols(data).imported if not is_allowed(one) and one not in known)
            if denied:
                raise wrong(
                    self._owners[symbol],
                    f"gave an object that calls what is neither of C's functions on numbers and memory nor among "
                    f"its 'calls': {', '.join(denied)}",
                )

    def define(self, module: Any) -> None:
        """Put the functions over buffers into host code whose memory is planned."""
        if not self.definitions:
            return
        for function in mlir_util.functions(module):
            owner = self._owners.get(mlir_util.symbol_name(function))
            if owner is not None and mlir_util.has_body(function):
                name = mlir_util.symbol_name(function)
                raise wrong(
                    owner, f"uses '{name}', which is a function of the program: name it after Claimed.name"
                )
        self._check_imports()
        declared = {
            mlir_util.symbol_name(op) for op in mlir_util.children(module.operation) if "sym_name" in op.attributes
        }
        for name, type_ in sorted(self._declared.items()):
            if name not in declared:
                mlir_util.append(module, f"func.func private @{name}{type_}")
        declarations = [f"func.func private @{name}{type_}" for name, type_ in sorted(self._declared.items())]
        for text, location in self.definitions:
            parsed = ir.Module.parse("\n".join([*declarations, text]), module.context)
            for op in mlir_util.walk(parsed.operation):
                op.location = location
            for op in mlir_util.children(parsed.operation):
                if "sym_name" in op.attributes and mlir_util.symbol_name(op) in (LAUNCH, LEND, LEND_DONE):
                    op.erase()  # declared with the rest of the runtime
            merge_modules(module, parsed)
        if self.close:
            calls = "".join(f"func.call @{name}() : () -> ()\n" for name in self.close)
            declared = "".join(f"func.func private @{name}()\n" for name in self.close)
            closing = f"{declared}func.func @{CLOSE_BACKENDS}() {{\n{calls}return\n}}"
            merge_modules(module, ir.Module.parse(closing, module.context))


def put_back(
    module: Any,
    session: Session,
    claimed: Sequence[ClaimedFunction],
    labels: Labels,
    compile_ir: CompileIr,
    parts: HostParts,
) -> None:
    """Give the declarations of claimed functions in ``module``, host code over tensors, bodies.

    Raises LoweringError, located, for what cannot be.
    """
    for one in claimed:
        code = generate(one, session)
        if isinstance(code, Mlir) and (body := _on_tensors(code, one, module, session)) is not None:
            merge_modules(module, body)
            continue
        made = adapter(session, one, labels)
        merge_modules(module, made.module)
        text = _definition(parts, one, code, made.types, compile_ir, module.context)
        parts.definitions.append((text, made.location))


def _on_tensors(code: Mlir, claimed: ClaimedFunction, module: Any, session: Session) -> Any | None:
    """The module of MLIR code on tensors, its functions private; None where the code is on buffers."""
    parsed = _parse(code.text, claimed, module.context)
    function = function_of(parsed, claimed)
    if any(mlir_util.is_memref(type_) for type_ in mlir_util.function_type(function).inputs):
        return None
    if not is_in_form(parsed):
        # Nothing calls it here.
        function.attributes["sym_visibility"] = ir.StringAttr.get("public", module.context)
        bring_into_form(parsed, session.run_passes)
        function = function_of(parsed, claimed)
    declared = next(f for f in mlir_util.functions(module) if mlir_util.symbol_name(f) == claimed.name)
    if mlir_util.function_type(function) != mlir_util.function_type(declared):
        _bind_constants(function, mlir_util.function_type(declared), claimed, session)
    if mlir_util.function_type(function) != mlir_util.function_type(declared):
        raise wrong(
            claimed, f"gave a function of type {mlir_util.function_type(function)}, not {_type_text(declared)}"
        )
    for one in mlir_util.functions(parsed):
        one.attributes["sym_visibility"] = ir.StringAttr.get("private", module.context)
    return parsed


def _bind_constants(function: Any, type_: Any, claimed: ClaimedFunction, session: Session) -> None:
    """Replace the last parameters of ``function`` that ``type_`` lacks, if they are the constants of the match."""
    own = session.to_mlir(claimed.module())
    constants = lifted_constants(function_of(own, claimed))
    given = mlir_util.function_type(function)
    if [*given.inputs] != [*type_.inputs, *(op.results[0].type for op in constants)]:
        return
    block = mlir_util.entry_block(function)
    count = len(type_.inputs)
    build = mlir_util.Builder(mlir_util.children(function)[0])
    for number, constant in reversed(list(enumerate(constants, count))):
        value = {"value": constant.attributes["value"]}
        made = build.value("arith.constant", [], constant.results[0].type, value)
        block.arguments[number].replace_all_uses_with(made)
        block.erase_argument(number)
    if "arg_attrs" in function.attributes:
        kept = list(ir.ArrayAttr(function.attributes["arg_attrs"]))[:count]
        function.attributes["arg_attrs"] = ir.ArrayAttr.get(kept, function.context)
    new = ir.FunctionType.get(type_.inputs, given.results, context=function.context)
    function.attributes["function_type"] = ir.TypeAttr.get(new)


def _type_text(function: Any) -> str:
    return str(mlir_util.function_type(function))


def _parse(text: str, claimed: ClaimedFunction, context: Any) -> Any:
    try:
        return ir.Module.parse(text, context)
    except (ir.MLIRError, ValueError) as error:
        first = (str(error).strip().splitlines() or ["no message"])[-1]
        raise wrong(claimed, f"gave MLIR that is none: {first.strip()}") from error


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
    name = f"{PREFIX}{claimed.name}"
    match code:
        case Mlir():
            parts.use(claimed, code.calls)
            if code.close:
                parts.close.append(code.close)
            return _renamed(code, claimed, name, types, context)
        case PythonCall():
            parts.use(claimed, [python_symbol(claimed.backend.name, code.name)])
            return _python_text(parts, claimed, name, types, code.name)
        case DeviceBinary():
            raise wrong(claimed, "gave a device's binary for a target whose device type is 'cpu'")
        case _:
            status = link(parts, claimed, code, compile_ir)
    text = CallText(types)
    add_call(text, parts, claimed, code, status)
    return text.function(name)


def link(parts: HostParts, claimed: ClaimedFunction, code: CCode, compile_ir: CompileIr) -> bool:
    """Link host code with the C function of ``code``, or with what it calls. Gives whether it returns a status."""
    if isinstance(code, LibraryCall):
        parts.use_runtime(claimed, code.symbol)
        return code.status
    match code:
        case CSource():
            data = _compiled(claimed, "C", code.toolchain, code.text)
        case ObjectCode():
            data = code.data
        case LlvmIr():
            data = _compiled(claimed, "LLVM IR", compile_ir, code.text)
            if code.close:
                parts.declare(claimed, code.close, "() -> ()")
                parts.close.append(code.close)
    parts.use(claimed, code.calls)
    parts.add_object(claimed, data, code.symbol)
    return True


def _compiled(claimed: ClaimedFunction, what: str, compiler: Callable[[str], bytes], text: str) -> bytes:
    """Object code. Whatever stops a compiler, which may be the backend's own, is an error of the code."""
    try:
        data: Any = compiler(text)
        if not isinstance(data, bytes):
            raise TypeError(f"the toolchain gave {type(data).__name__}, not bytes")
        return data
    except Exception as error:
        reason = [error.message, *map(str, error.notes)] if isinstance(error, DevscopeError) else [str(error)]
        shown = " ".join(" ".join(reason).split())
        raise wrong(claimed, f"gave {what} that cannot be compiled: {type(error).__name__}: {shown}") from error


def _renamed(code: Mlir, claimed: ClaimedFunction, name: str, types: Sequence[Any], context: Any) -> str:
    parsed = _parse(code.text, claimed, context)
    function = function_of(parsed, claimed)
    given = list(mlir_util.function_type(function).inputs)
    if given != list(types):
        raise wrong(claimed, f"gave a function over ({_shown(given)}), not ({_shown(types)})")
    ir.SymbolTable.replace_all_symbol_uses(claimed.name, name, parsed.operation)
    ir.SymbolTable.set_symbol_name(function, name)
    for one in mlir_util.functions(parsed):
        one.attributes["sym_visibility"] = ir.StringAttr.get("private", context)
    store_truths_as_bytes(parsed.operation)
    return "\n".join(str(op) for op in mlir_util.children(parsed.operation))


def _shown(types: Sequence[Any]) -> str:
    return ", ".join(map(str, types))


def add_call(
    text: CallText, parts: HostParts, claimed: ClaimedFunction, code: CCode, status: bool, queue: str = ""
) -> str:
    """Add the call of the C function of ``code``, and give its status; with a ``queue`` as its first argument the
    caller checks that."""
    symbol = code.symbol
    wanted = usual_arguments(text.types) if code.arguments is None else code.arguments
    made = [_argument(text, claimed, one) for one in wanted]
    made = [(queue, "!llvm.ptr"), *made] if queue else made
    values, kinds = [value for value, _ in made], [kind for _, kind in made]
    result = "i32" if status else "()"
    type_ = f"({', '.join(kinds)}) -> {result}"
    parts.declare(claimed, symbol, type_)
    call = f"func.call @{symbol}({', '.join(values)}) : {type_}"
    if not status:
        text.lines.append(call)
        return ""
    given = text.new(call)
    if not queue:
        check_status(text, claimed, symbol, given)
    return given


def check_status(text: CallText, claimed: ClaimedFunction, symbol: str, status: str) -> None:
    text.check(status, f"backend '{claimed.backend.name}': {symbol} failed with status {{0}}")


def _argument(text: CallText, claimed: ClaimedFunction, argument: Argument) -> tuple[str, str]:
    """A value and its type."""
    what, value = argument.what, argument.value
    if what == "constant":
        return text.constant(argument.number, argument.type), argument.type
    if not 0 <= value < len(text.types):
        raise wrong(claimed, f"gave a call with value {value} of {len(text.types)}")
    type_ = text.types[value]
    is_buffer = mlir_util.is_memref(type_)
    if what == "scalar" and not is_buffer:
        return f"%a{value}", str(type_)
    if what == "pointer" and is_buffer:
        return text.pointer(value), "!llvm.ptr"
    if what == "size" and is_buffer and 0 <= argument.dim < ir.MemRefType(type_).rank:
        return text.size(value, argument.dim, argument.type), argument.type
    raise wrong(claimed, f"gave a call with a {what} of value {value}, which is {type_}")


def _python_text(parts: HostParts, claimed: ClaimedFunction, name: str, types: Sequence[Any], python: str) -> str:
    """A call with a text of the types, and an array of the cells that `usual_arguments` says."""
    text = CallText(types)
    address = text.new(f"arith.index_cast {text.cells().address} : index to i64")
    data = text.new(f"llvm.inttoptr {address} : i64 to !llvm.ptr")
    described = ",".join(_described(types, len(claimed_outputs(claimed))))
    label = text.new(f"llvm.mlir.addressof @{name}_types : !llvm.ptr")
    type_, symbol = "(!llvm.ptr, !llvm.ptr) -> i32", python_symbol(claimed.backend.name, python)
    parts.declare(claimed, symbol, type_)
    text.check(
        text.new(f"func.call @{symbol}({label}, {data}) : {type_}"),
        f"backend '{claimed.backend.name}': the Python function '{python}' raised an exception",
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
