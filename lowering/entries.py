"""The functions that callers outside compiled code reach: every input and output a memref in host memory.

For each public function ``F`` a wrapper ``devscope_entry_F`` is made. It loads scalar inputs from rank-0
memrefs, copies inputs that the plan keeps on a device, calls ``F``, and brings results back the same way.
"""

from __future__ import annotations

from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir

ENTRY_PREFIX = "devscope_entry_"


def add_entry(module: Any, func: Any) -> str:
    """Append the wrapper of ``func``, a bufferised function of ``module``; returns the wrapper's C symbol."""
    name = mlir_util.symbol_name(func)
    type_ = mlir_util.function_type(func)
    lines: list[str] = []
    arguments = [_host_type(t) for t in type_.inputs]
    results = [_host_type(t) for t in type_.results]
    passed = [_bring_in(lines, f"a{i}", t) for i, t in enumerate(type_.inputs)]
    values = ", ".join(f"%r{i}" for i in range(len(results)))
    assign = f"{values} = " if results else ""
    signature = f"({', '.join(map(str, type_.inputs))}) -> ({', '.join(map(str, type_.results))})"
    lines.append(f'{assign}func.call @"{name}"({", ".join(passed)}) : {signature}')
    for i, argument in enumerate(type_.inputs):
        if mlir_util.memory_space(argument) is not None:
            lines.append(f"memref.dealloc %a{i}_device : {argument}")
    returned = [_bring_out(lines, f"r{i}", t) for i, t in enumerate(type_.results)]
    parameters = ", ".join(f"%a{i}: {t}" for i, t in enumerate(arguments))
    body = "\n    ".join(lines)
    text = (
        f'func.func private @"{name}"{signature}\n'
        f'func.func @"{ENTRY_PREFIX}{name}"({parameters}) -> ({", ".join(results)})'
        f" attributes {{llvm.emit_c_interface}} {{\n    {body}\n"
        f"    func.return {', '.join(returned)}{' : ' if returned else ''}{', '.join(results)}\n}}"
    )
    parsed = ir.Module.parse(text, module.context)  # must outlive the move below
    wrapper = mlir_util.children(parsed.operation)[1]
    wrapper.detach_from_parent()
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
    lines.append(f"memref.dealloc %{name} : {type_}")
    return f"%{name}_host"
