"""What callers outside compiled code see of a program: its public functions, their signatures, how to enter them.

For each public function ``F`` a wrapper ``devscope_entry_F`` is made, with every input and output a memref in host
memory. It loads scalar inputs from rank-0 memrefs, copies inputs that the plan keeps on a device, calls ``F``, and
brings results back the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xdsl.dialects import func
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloat,
    IndexType,
    IntegerType,
    ModuleOp,
    NoneAttr,
    TensorType,
)
from xdsl.ir import Attribute

from devscope.analysis.symbols import is_public
from devscope.dialects.location import source_location, value_location
from devscope.dialects.op_facts import facts
from devscope.errors import LoweringError, SourceLocation
from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.runtime.program import DTYPES, TensorSpec

_LONGEST = 200
"""Types with more characters than this are shown in part."""


def public_functions(module: ModuleOp) -> list[func.FuncOp]:
    """Functions with a body that are not private, in module order."""
    return [op for op in module.body.block.ops if isinstance(op, func.FuncOp) and op.body.blocks and is_public(op)]


def function_signature(function: func.FuncOp) -> tuple[list[TensorSpec], list[TensorSpec]]:
    """Inputs and outputs of ``function``; raises LoweringError for a type that no array can hold."""
    name = function.sym_name.data
    inputs = [
        _spec(a.type, a.name_hint or f"arg{n}", f"argument {n} of public function '{name}'", value_location(a))
        for n, a in enumerate(function.args)
    ]
    outputs = [
        _spec(type_, f"result{n}", f"result {n} of public function '{name}'", source_location(function))
        for n, type_ in enumerate(function.function_type.outputs)
    ]
    return inputs, outputs


def _spec(type_: Attribute, name: str, what: str, location: SourceLocation | None) -> TensorSpec:
    is_tensor = isinstance(type_, TensorType)
    element = type_.get_element_type() if is_tensor else type_
    dtype = str(element) if isinstance(element, IntegerType | IndexType | AnyFloat) else ""
    if dtype not in DTYPES or (is_tensor and not isinstance(type_.encoding, NoneAttr)):
        text = str(type_)
        shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
        raise LoweringError(
            f"{what} has type {shown}, which cannot be passed",
            location,
            [f"public functions take and return scalars and dense ranked tensors of {', '.join(DTYPES)}"],
        )
    shape = type_.get_shape() if is_tensor else ()
    sizes = [None if size == DYNAMIC_INDEX else size for size in shape]
    return TensorSpec(dtype, sizes, not is_tensor, name)


ENTRY_PREFIX = "devscope_entry_"
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


def add_entry(module: Any, func: Any, name: str) -> str:
    """Append the entry ``name``, which calls ``func``, a bufferised function of ``module``.

    Returns the entry's C symbol.
    """
    context = module.context
    callee = ir.FlatSymbolRefAttr.get(mlir_util.symbol_name(func), context)
    wrapper_name = ir.FlatSymbolRefAttr.get(f"{ENTRY_PREFIX}{name}", context)
    type_ = mlir_util.function_type(func)
    lines: list[str] = []
    arguments = [_host_type(t) for t in type_.inputs]
    results = [_host_type(t) for t in type_.results]
    passed = [_bring_in(lines, f"a{i}", t) for i, t in enumerate(type_.inputs)]
    values = ", ".join(f"%r{i}" for i in range(len(results)))
    assign = f"{values} = " if results else ""
    signature = f"({', '.join(map(str, type_.inputs))}) -> ({', '.join(map(str, type_.results))})"
    lines.append(f"{assign}func.call {callee}({', '.join(passed)}) : {signature}")
    for i, argument in enumerate(type_.inputs):
        if mlir_util.memory_space(argument) is not None:
            lines.append(f"memref.dealloc %a{i}_device : {argument}")
    returned = [_bring_out(lines, f"r{i}", t) for i, t in enumerate(type_.results)]
    _free_results(lines, {f"r{i}": t for i, t in enumerate(type_.results)})
    parameters = ", ".join(f"%a{i}: {t}" for i, t in enumerate(arguments))
    body = "\n    ".join(lines)
    text = (
        f"func.func private {callee}{signature}\n"
        f"func.func {wrapper_name}({parameters}) -> ({', '.join(map(str, results))})"
        f" attributes {{llvm.emit_c_interface}} {{\n    {body}\n"
        f"    func.return {', '.join(returned)}{' : ' if returned else ''}{', '.join(map(str, results))}\n}}"
    )
    parsed = ir.Module.parse(text, context)  # must outlive the move below
    wrapper = mlir_util.children(parsed.operation)[1]
    module.body.append(wrapper)
    return f"_mlir_ciface_{ENTRY_PREFIX}{name}"


def _host_type(type_: Any) -> Any:
    if not mlir_util.is_memref(type_):
        return mlir_util.buffer_type([], type_)
    return mlir_util.with_memory_space(type_, None)


def _dynamic_sizes(lines: list[str], value: str, type_: Any) -> str:
    """Emit the sizes of the dynamic dimensions of ``value``; returns them as an operand list."""
    names: list[str] = []
    for axis in range(type_.rank):
        if type_.is_dynamic_dim(axis):
            lines.append(f"%{value}_c{axis} = arith.constant {axis} : index")
            lines.append(f"%{value}_d{axis} = memref.dim %{value}, %{value}_c{axis} : {type_}")
            names.append(f"%{value}_d{axis}")
    return ", ".join(names)


def _bring_in(lines: list[str], name: str, type_: Any) -> str:
    host = _host_type(type_)
    if not mlir_util.is_memref(type_):
        lines.append(f"%{name}_scalar = memref.load %{name}[] : {host}")
        return f"%{name}_scalar"
    if mlir_util.memory_space(type_) is None:
        return f"%{name}"
    return _copy(lines, name, host, "device", "", type_)


def _bring_out(lines: list[str], name: str, type_: Any) -> str:
    host = _host_type(type_)
    if not mlir_util.is_memref(type_):
        lines.append(f"%{name}_host = memref.alloc() : {host}")
        lines.append(f"memref.store %{name}, %{name}_host[] : {host}")
        return f"%{name}_host"
    if mlir_util.memory_space(type_) is None:
        return f"%{name}"
    return _copy(lines, name, type_, "host", " {alignment = 64 : i64}", host)


def _copy(lines: list[str], value: str, source: Any, where: str, attributes: str, target: Any) -> str:
    """Emit a copy of the buffer ``value``, of type ``source``, in a new one of type ``target``; returns that."""
    sizes = _dynamic_sizes(lines, value, source)
    lines.append(f"%{value}_{where} = memref.alloc({sizes}){attributes} : {target}")
    lines.append(f"memref.copy %{value}, %{value}_{where} : {source} to {target}")
    return f"%{value}_{where}"


def _free_results(lines: list[str], results: Mapping[str, Any]) -> None:
    """Free the results that live on a device: once each, since one buffer may be several results."""
    freed: list[str] = []
    for name, type_ in results.items():
        if mlir_util.memory_space(type_) is None:
            continue
        pointer, dealloc = f"%{name}_pointer", f"memref.dealloc %{name} : {type_}"
        lines.append(f"{pointer} = memref.extract_aligned_pointer_as_index %{name} : {type_} -> index")
        for number, other in enumerate(freed):
            lines.append(f"%{name}_new{number} = arith.cmpi ne, {pointer}, {other} : index")
            dealloc = f"scf.if %{name}_new{number} {{ {dealloc} }}"
        lines.append(dealloc)
        freed.append(pointer)
