"""The functions of a module, and which of them nothing but calls in the module can reach."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, SymbolRefAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation

from devscope.analysis.call_graph import CALL, is_public, named_function
from devscope.analysis.user_kernels import is_kernel
from devscope.dialects.names import op_name


class Symbols:
    """Names of one module as they are when this is made."""

    def __init__(self, module: ModuleOp) -> None:
        self.functions: dict[str, FuncOp] = {
            op.sym_name.data: op for op in module.body.block.ops if isinstance(op, FuncOp) and not is_kernel(op)
        }
        self.calls: list[Operation] = []
        """All calls, function by function, outer before inner."""
        named: set[str] = set()
        for op in module.walk():
            if op_name(op) == CALL:
                self.calls.append(op)
            else:
                named.update(_names(op))
        self.private: set[FuncOp] = {
            function
            for name, function in self.functions.items()
            if name not in named and not is_public(function) and function.body.blocks
        }
        """Functions with a body all of whose callers are calls here: not public, and no function values."""

    def callee(self, call: Operation) -> FuncOp | None:
        """The function that a ``func.call`` calls."""
        return named_function(call, self.functions)


def function_of(op: Operation) -> FuncOp | None:
    """The function that an operation stands in."""
    current = op.parent_op()
    while current is not None and not isinstance(current, FuncOp):
        current = current.parent_op()
    return current


def _names(op: Operation) -> Iterator[str]:
    """The symbols in an operation's attributes."""
    stack: list[Attribute] = [*op.attributes.values(), *op.properties.values()]
    while stack:
        attribute = stack.pop()
        if isinstance(attribute, SymbolRefAttr):
            yield attribute.root_reference.data
        elif isinstance(attribute, ArrayAttr):
            stack += attribute.data
        elif isinstance(attribute, DictionaryAttr):
            stack += attribute.data.values()
