"""What callers outside compiled code see of a program: its public functions, their signatures, how to enter them.

For each public function ``F`` a wrapper ``devscope_entry_F`` is made, with every input and output a memref in host
memory. It loads scalar inputs from rank-0 memrefs, copies inputs that the plan keeps on a device, calls ``F``, and
brings results back the same way. State that the plan has on a device stays there.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from keyword import iskeyword
from typing import Any

from xdsl.dialects import func
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloat,
    ComplexType,
    DictionaryAttr,
    IndexType,
    IntegerType,
    ModuleOp,
    NoneAttr,
    StringAttr,
    TensorType,
)
from xdsl.ir import Attribute, SSAValue

from devscope.analysis.symbols import is_public
from devscope.dialects.location import source_location, value_location
from devscope.dialects.op_facts import facts
from devscope.errors import LoweringError, SourceLocation
from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.mlir_util import Builder
from devscope.lowering.stablehlo.templates import BOUNDS
from devscope.runtime.dtypes import DTYPES, ENTRY_DTYPES
from devscope.runtime.program import Entry, TensorSpec

_LONGEST = 200
"""Types with more characters than this are shown in part."""


def public_functions(module: ModuleOp) -> list[func.FuncOp]:
    """Functions with a body that are not private, in module order."""
    return [op for op in module.body.block.ops if isinstance(op, func.FuncOp) and op.body.blocks and is_public(op)]


Names = tuple[list[str], list[str]]
"""Of a function's arguments and results: those of its source, or ``arg0``, ``result0``."""

Signature = tuple[list[TensorSpec], list[TensorSpec]]

Dtypes = Mapping[str, tuple[list[str], list[str]]]
"""Of each public function's arguments and results, as the source has them: what they are stored as may differ."""

_OF_TUPLES = frozenset((*dir(tuple), "names"))
"""Attributes that several results have anyway: see `devscope.runtime.executable.Results`."""


def entry_names(module: ModuleOp, name_of: Callable[[SSAValue], str | None]) -> dict[str, Names]:
    """The names of each public function's arguments and results; results are called like what is returned.

    ``name_of``: the name of a value in the source, with its ``%``. A name that is no keyword of Python, nor a path
    from one, of a result one that tuples have as an attribute, and a name that two have are left out.
    """
    found: dict[str, Names] = {}
    for function in public_functions(module):
        end, count = function.body.blocks[-1].last_op, len(function.function_type.outputs)
        returned: Sequence[SSAValue | None] = end.operands if isinstance(end, func.ReturnOp) else [None] * count
        arguments, results = ([_name(value, name_of) for value in part] for part in (function.args, returned))
        said = function.res_attrs.data if function.res_attrs is not None else ()
        if said:
            results = [_path(one) or name for name, one in zip(results, said, strict=True)]
        found[function.sym_name.data] = _good("arg", arguments), _good("result", results, _OF_TUPLES)
    return found


def _name(value: SSAValue | None, name_of: Callable[[SSAValue], str | None]) -> str:
    return ((None if value is None else name_of(value)) or "%")[1:]


def _path(attributes: DictionaryAttr) -> str:
    """What JAX says of a result: ``result['norm'][0]``; older ones leave out the first word."""
    match attributes.data.get("jax.result_info"):
        case StringAttr(data=said):
            return said if said.startswith("result") else f"result{said}"
        case _:
            return ""


_PATH = re.compile(r"[A-Za-z_]\w*(\[[^\[\]]+\]|\.[A-Za-z_]\w*)*", re.ASCII)
"""``params['dense'].bias[0]``."""


def _good(prefix: str, given: Sequence[str], reserved: Collection[str] = ()) -> list[str]:
    numbered = [f"{prefix}{number}" for number in range(len(given))]
    taken = Counter([*given, *numbered])

    def is_good(name: str, number: str) -> bool:
        is_free = taken[name] == 1 + (name == number) and name not in reserved
        return is_free and (name.isidentifier() or _PATH.fullmatch(name) is not None) and not iskeyword(name)

    return [name if is_good(name, number) else number for name, number in zip(given, numbered, strict=True)]


def require_entries(module: ModuleOp) -> None:
    """Raise LoweringError for a program that nobody can call."""
    if public_functions(module):
        return
    functions = [op for op in module.body.block.ops if isinstance(op, func.FuncOp)]
    raise LoweringError(
        "the module has no public function with a body",
        source_location(functions[0]) if functions else None,
        ["what a program offers to its callers is its public functions: drop 'private' from one"],
    )


def declared_dtypes(module: ModuleOp) -> Dtypes:
    """Of a module that is as the source has it."""
    return {
        name: ([spec.dtype for spec in entry.inputs], [spec.dtype for spec in entry.outputs])
        for name, entry in described_entries(module, {}, {}).items()
    }


def _declare(specs: list[TensorSpec], dtypes: Sequence[str]) -> None:
    """Give ``specs`` the dtypes of the source."""
    for spec, dtype in zip(specs, dtypes, strict=True) if len(specs) == len(dtypes) else ():
        if dtype in ENTRY_DTYPES:
            spec.dtype = dtype


def described_entries(module: ModuleOp, names: Mapping[str, Names], declared: Dtypes) -> dict[str, Entry]:
    """All public functions, for people to read: types that cannot be passed are there, too."""
    found: dict[str, Entry] = {}
    for function in public_functions(module):
        types, name = function.function_type, function.sym_name.data
        given = names.get(name, ([""] * len(types.inputs), [""] * len(types.outputs)))
        dtypes = declared.get(name, ([], []))
        entry = Entry("", [], [])
        for specs, part, called, stored in (
            (entry.inputs, types.inputs, given[0], dtypes[0]),
            (entry.outputs, types.outputs, given[1], dtypes[1]),
        ):
            specs += [_described(type_, name) for type_, name in zip(part, called, strict=True)]
            _declare(specs, stored)
        found[name] = entry
    return found


def entry_signatures(module: ModuleOp, names: Mapping[str, Names], declared: Dtypes) -> dict[str, Signature]:
    """The inputs and outputs of all public functions. Raises LoweringError for a type that no array can hold."""
    found: dict[str, Signature] = {}
    for function in public_functions(module):
        name = function.sym_name.data
        found[name] = signature = _signature(function, names[name])
        for specs, dtypes in zip(signature, declared.get(name, ([], [])), strict=True):
            _declare(specs, dtypes)
    return found


def _signature(function: func.FuncOp, names: Names) -> Signature:
    entry = f"of public function '{function.sym_name.data}'"
    inputs = [
        _spec(value.type, name, f"argument {number} {entry}", value_location(value))
        for number, (value, name) in enumerate(zip(function.args, names[0], strict=True))
    ]
    outputs = [
        _spec(type_, name, f"result {number} {entry}", source_location(function))
        for number, (type_, name) in enumerate(zip(function.function_type.outputs, names[1], strict=True))
    ]
    return inputs, outputs


def _spec(type_: Attribute, name: str, what: str, location: SourceLocation | None) -> TensorSpec:
    spec = _described(type_, name)
    if spec.dtype not in DTYPES:
        text = str(type_)
        shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
        raise LoweringError(
            f"{what} has type {shown}, which cannot be passed",
            location,
            [f"public functions take and return scalars and dense ranked tensors of {', '.join(DTYPES)}"],
        )
    return spec


def _described(type_: Attribute, name: str) -> TensorSpec:
    """Of types that cannot be passed, their text is the dtype."""
    if isinstance(type_, TensorType) and (
        isinstance(type_.encoding, NoneAttr) or str(type_.encoding).startswith(BOUNDS)
    ):
        element = type_.get_element_type()
        stored = _UNSIGNED.match(str(element))
        if stored is not None or isinstance(element, IntegerType | IndexType | AnyFloat | ComplexType):
            sizes = [None if size == DYNAMIC_INDEX else size for size in type_.get_shape()]
            return TensorSpec(f"ui{stored[1]}" if stored else str(element), sizes, False, name)
    return TensorSpec(str(type_), [], True, name)


_UNSIGNED = re.compile(r"!quant\.uniform<u(\d+)\b")

ENTRY_PREFIX = "devscope_entry_"

KEPT, KEEP = "device.kept", "device.keep"
"""What the last call left as a state, and what this one leaves."""

_FUNCTION_PREFIX = "devscope_function_"


def separate_names(module: Any) -> dict[str, Any]:
    """Rename every function with a body, so that none has the name of a library's or the runtime's.

    Returns the functions by their old names.
    """
    functions = {mlir_util.symbol_name(f): f for f in mlir_util.functions(module) if mlir_util.has_body(f)}
    context = module.context
    for op in mlir_util.walk(module.operation):
        key = facts(op.name).symbol
        callee = ir.FlatSymbolRefAttr(op.attributes[key]).value if key else None
        if callee in functions:
            op.attributes[key] = ir.FlatSymbolRefAttr.get(f"{_FUNCTION_PREFIX}{callee}", context)
    for name, function in functions.items():
        function.attributes["sym_name"] = ir.StringAttr.get(f"{_FUNCTION_PREFIX}{name}", context)
    return functions


@dataclass(frozen=True)
class Kept:
    """State on a device: its number in the program, its memref, which argument and result of a function it is."""

    number: int
    type_: Any
    argument: int
    result: int


def add_entry(module: Any, func: Any, name: str, kept: Sequence[Kept] = ()) -> str:
    """Append the entry ``name``, which calls ``func``, a bufferised function of ``module``.

    What is ``kept`` on devices the entry neither takes nor gives. Returns the entry's C symbol.
    """
    type_ = mlir_util.function_type(func)
    inputs, outputs = ({one.argument: one for one in kept}, {one.result: one for one in kept})
    taken = [t for number, t in enumerate(type_.inputs) if number not in inputs]
    given = [t for number, t in enumerate(type_.results) if number not in outputs]
    values, end = _declare_entry(module, name, taken, given)
    build, arguments = Builder(end), iter(values)
    passed = [
        _bring_in(build, next(arguments), t) if number not in inputs else _state(build, inputs[number])
        for number, t in enumerate(type_.inputs)
    ]
    made = list(build.call(mlir_util.symbol_name(func), passed, type_.results).results)
    for number, value in enumerate(passed):
        if mlir_util.is_on_device(value) and number not in inputs:
            build.op("memref.dealloc", [value])
    left = [value for number, value in enumerate(made) if number not in outputs]
    returned = [_bring_out(build, value) for value in left]
    for number, one in outputs.items():
        _keep(build, made[number], one)
    _free(end, [value for value in left if mlir_util.is_on_device(value)], [made[number] for number in outputs])
    build.op("func.return", returned)
    end.erase()
    return f"_mlir_ciface_{ENTRY_PREFIX}{name}"


def kept_on_devices(func: Any, count: int, first: int) -> list[Kept]:
    """What of the last ``count`` arguments and results of a bufferised function is state on devices.

    They are numbered from ``first`` on. Only what both are in one memory, and of static shape, is kept there.
    """
    type_, found = mlir_util.function_type(func), list[Kept]()
    arguments, results = len(type_.inputs) - count, len(type_.results) - count
    for number in range(count):
        given, left = type_.inputs[arguments + number], type_.results[results + number]
        is_on_device = mlir_util.is_memref(given) and mlir_util.memory_space(given) is not None
        if given == left and is_on_device and mlir_util.static_bytes(given) is not None:
            found.append(Kept(first + len(found), given, arguments + number, results + number))
    return found


def add_state_entries(module: Any, load: str, read: str, kept: Sequence[Kept]) -> list[str]:
    """Append the entries that bring state to devices, and from them. Returns their C symbols."""
    values, end = _declare_entry(module, load, [one.type_ for one in kept], [])
    build = Builder(end)
    for value, one in zip(values, kept, strict=True):
        _keep(build, build.copy(value, one.type_), one)
    build.op("func.return")
    end.erase()
    _, end = _declare_entry(module, read, [], [one.type_ for one in kept])
    build = Builder(end)
    build.op("func.return", [_bring_out(build, _state(build, one)) for one in kept])
    end.erase()
    return [f"_mlir_ciface_{ENTRY_PREFIX}{name}" for name in (load, read)]


def _declare_entry(module: Any, name: str, inputs: Sequence[Any], outputs: Sequence[Any]) -> tuple[Any, Any]:
    """The arguments of a new entry, and the end of its body, to be erased."""
    arguments, results = ([_host_type(t) for t in types] for types in (inputs, outputs))
    entry_type = ir.FunctionType.get(arguments, results, context=module.context)
    entry = mlir_util.declare(module, f"{ENTRY_PREFIX}{name}", entry_type)
    del entry.attributes["sym_visibility"]
    entry.attributes["llvm.emit_c_interface"] = ir.UnitAttr.get(module.context)
    end = mlir_util.add_body(entry)
    return mlir_util.entry_block(entry).arguments, end


def _state(build: Builder, one: Kept) -> Any:
    return build.value(KEPT, [], one.type_, {"number": ir.IntegerAttr.get(build.i64, one.number)})


def _keep(build: Builder, value: Any, one: Kept) -> None:
    build.op(KEEP, [value], [], {"number": ir.IntegerAttr.get(build.i64, one.number)})


def _host_type(type_: Any) -> Any:
    is_memref = mlir_util.is_memref(type_)
    return mlir_util.with_memory_space(type_, None) if is_memref else mlir_util.buffer_type([], type_)


def _bring_in(build: Builder, value: Any, type_: Any) -> Any:
    if not mlir_util.is_memref(type_):
        return build.value("memref.load", [value], type_)
    return value if value.type == type_ else build.copy(value, type_)


def _bring_out(build: Builder, value: Any) -> Any:
    type_ = _host_type(value.type)
    if mlir_util.is_memref(value.type):
        return build.copy(value, type_) if mlir_util.is_on_device(value) else value
    cell = build.alloc(type_)
    build.op("memref.store", [value, cell])
    return cell


def _free(end: Any, results: list[Any], kept: list[Any]) -> None:
    """Free ``results``, which live on a device, in front of ``end``: once each, since some may be one buffer, and
    none that is ``kept``."""
    freed: list[Any] = [Builder(end).pointer(value) for value in kept] if results else []
    for result in results:
        pointer = Builder(end).pointer(result)
        text = f"memref.dealloc %0 : {result.type}"
        for number in range(len(freed)):
            text = f"""
                %is_new{number} = arith.cmpi ne, %1, %{number + 2} : index
                scf.if %is_new{number} {{ {text} }}
            """
        mlir_util.insert(end, text, [result, pointer, *freed])
        freed.append(pointer)
