"""Links host functions and launchers into one program: inlined, their buffers freed, under names of their own."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.entries import separate_names
from devscope.lowering.interop.bindings import ir
from devscope.lowering.memory.deallocation import lower_deallocations
from devscope.lowering.memory.inline import inline_functions
from devscope.lowering.mlir_util import RunPasses


def link_functions(module: Any, run_passes: RunPasses) -> dict[str, Any]:
    """Returns the functions of ``module`` with a body by the names that they had, less those inlined everywhere.

    Of host functions the ownership of buffers is computed, but what frees them not lowered yet.
    """
    inline_functions(module)
    with hidden_launches(module):
        lower_deallocations(module, run_passes)
    return separate_names(module)


def merge_modules(target: Any, source: Any) -> None:
    """Move all operations of ``source`` into ``target``; definitions replace declarations of their name."""
    present = {
        mlir_util.symbol_name(op): op for op in mlir_util.children(target.operation) if "sym_name" in op.attributes
    }
    for op in mlir_util.children(source.operation):
        old = present.get(mlir_util.symbol_name(op))
        if old is not None and old.name == "func.func" and not mlir_util.has_body(old):
            old.erase()
        elif old is not None and (op.name != "memref.global" or op.attributes["type"] == old.attributes["type"]):
            continue  # a shared helper or constant that stands there already
        elif old is not None:
            _rename_global(source, op, f"{mlir_util.symbol_name(op)}_{len(present)}")
        target.body.append(op)


def _rename_global(module: Any, global_: Any, name: str) -> None:
    """A constant may be in several memories: then it is several globals."""
    old = ir.FlatSymbolRefAttr.get(mlir_util.symbol_name(global_), module.context)
    new = ir.FlatSymbolRefAttr.get(name, module.context)
    for op in mlir_util.walk(module.operation):
        if op.name == "memref.get_global" and op.attributes["name"] == old:
            op.attributes["name"] = new
    global_.attributes["sym_name"] = ir.StringAttr.get(name, module.context)


@contextmanager
def hidden_launches(module: Any) -> Generator[None]:
    """Only declarations of the functions that launch kernels: MLIR does not accept a launch without its kernel."""
    hidden: list[tuple[Any, Any]] = []
    for func in mlir_util.functions(module):
        if any(op.name == "gpu.launch_func" for op in mlir_util.walk(func)):
            hidden.append((func, _declare(func)))
            func.detach_from_parent()
    yield
    for func, declaration in hidden:
        module.body.append(func)
        declaration.erase()


def _declare(func: Any) -> Any:
    return ir.Operation.create(
        "func.func",
        attributes={name: func.attributes[name] for name in ("sym_name", "sym_visibility", "function_type")},
        regions=1,
        loc=func.location,
        ip=ir.InsertionPoint(func),
    )
