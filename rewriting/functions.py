"""Symbols of a module: which names are taken, how functions are cloned and calls are sent elsewhere."""

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, StringAttr, SymbolRefAttr
from xdsl.ir import Operation

from devscope.analysis.symbols import Symbols, named_function
from devscope.dialects.op_facts import facts_of
from devscope.rewriting.blocks import erase_operations


def taken_names(module: ModuleOp) -> set[str]:
    """The symbols of a module, whatever they stand for."""
    names = (op.get_attr_or_prop("sym_name") for op in module.body.block.ops)
    return {name.data for name in names if isinstance(name, StringAttr)}


def fresh_name(base: str, taken: set[str]) -> str:
    """``base``, or else ``base_0``, ``base_1``, ...: the first that is free, which is then taken."""
    if base in taken:
        return unique_name(base, taken)
    taken.add(base)
    return base


def unique_name(base: str, taken: set[str]) -> str:
    """``base_0``, ``base_1``, ...: the first that is free, which is then taken."""
    number = 0
    while f"{base}_{number}" in taken:
        number += 1
    taken.add(f"{base}_{number}")
    return f"{base}_{number}"


def redirect(op: Operation, name: str) -> None:
    """Make a ``func.call``, ``func.constant`` or ``device.launch`` name another function."""
    key = facts_of(op).symbol
    place = op.properties if key in op.properties else op.attributes
    place[key] = SymbolRefAttr(name)


def clone_function(function: func.FuncOp, name: str) -> func.FuncOp:
    """A private copy under a new name, right behind ``function``."""
    clone = function.clone()
    clone.properties["sym_name"] = StringAttr(name)
    clone.properties["sym_visibility"] = StringAttr("private")
    block = function.parent
    assert block is not None
    block.insert_op_after(clone, function)
    return clone


def drop_idle_kernels(module: ModuleOp) -> None:
    """Erase the user kernels that nothing names: only launches do, see `check_kernels`."""
    kernels = Symbols(module).kernels
    launched = {named_function(op) for op in module.walk()} if kernels else set[str | None]()
    erase_operations(kernel for name, kernel in kernels.items() if name not in launched)
