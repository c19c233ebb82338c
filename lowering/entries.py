"""The functions that callers outside compiled code reach: every input and output a memref in host memory.

For each public function ``F`` a wrapper ``devscope_entry_F`` is made. It loads scalar inputs from rank-0
memrefs, copies inputs that the plan keeps on a device, calls ``F``, and brings results back the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from devscope.dialects.op_facts import facts
from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir

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
        f"func.func {wrapper_name}({parameters}) -> ({', '.join(results)})"
        f" attributes {{llvm.emit_c_interface}} {{\n    {body}\n"
        f"    func.return {', '.join(returned)}{' : ' if returned else ''}{', '.join(results)}\n}}"
    )
    parsed = ir.Module.parse(text, context)  # must outlive the move below
    wrapper = mlir_util.children(parsed.operation)[1]
    module.body.append(wrapper)
    return f"_mlir_ciface_{ENTRY_PREFIX}{name}"


def _host_type(type_: Any) -> str:
    if not mlir_util.is_memref(type_):
        return f"memref<{type_}>"
    return str(mlir_util.with_memory_space(type_, None))


def _dynamic_sizes(lines: list[str], value: str, type_: str, memref: Any) -> str:
    """Emit the sizes of the dynamic dimensions of ``value``; returns them as an operand list."""
    names: list[str] = []
    for axis, extent in enumerate(ir.MemRefType(memref).shape):
        if extent == ir.ShapedType.get_dynamic_size():
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
    sizes = _dynamic_sizes(lines, name, host, type_)
    lines.append(f"%{name}_device = memref.alloc({sizes}) : {type_}")
    lines.append(f"memref.copy %{name}, %{name}_device : {host} to {type_}")
    return f"%{name}_device"


def _bring_out(lines: list[str], name: str, type_: Any) -> str:
    host = _host_type(type_)
    if not mlir_util.is_memref(type_):
        lines.append(f"%{name}_host = memref.alloc() : {host}")
        lines.append(f"memref.store %{name}, %{name}_host[] : {host}")
        return f"%{name}_host"
    if mlir_util.memory_space(type_) is None:
        return f"%{name}"
    sizes = _dynamic_sizes(lines, name, str(type_), type_)
    lines.append(f"%{name}_host = memref.alloc({sizes}) {{alignment = 64 : i64}} : {host}")
    lines.append(f"memref.copy %{name}, %{name}_host : {type_} to {host}")
    return f"%{name}_host"


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
