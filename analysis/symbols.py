"""The symbols of a module: its functions by name, what operations name, and what they stand in."""

from typing import Self

from xdsl.dialects.builtin import MemRefType, ModuleOp, SymbolRefAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.utils.symbol_table import SymbolTable

from devscope.analysis.manager import AnalysisManager
from devscope.dialects.device import COMPILER_ATTR, KERNEL_ATTR
from devscope.dialects.names import op_name
from devscope.dialects.op_facts import facts_of

CALL, INDIRECT, CONSTANT, RETURN = "func.call", "func.call_indirect", "func.constant", "func.return"

_FOREIGN_BODY = (COMPILER_ATTR, "device.primitive")


class Symbols(SymbolTable):
    """xDSL's table of the symbols of a module, by kind of function."""

    def __init__(self, module: ModuleOp) -> None:
        super().__init__(module)
        functions = {name: op for name, op in self._symbol_table.items() if isinstance(op, FuncOp)}
        self.functions = {name: op for name, op in functions.items() if not is_kernel(op)}
        """The functions but for user kernels, in module order."""
        self.kernels = {name: op for name, op in functions.items() if is_kernel(op)}

    @classmethod
    def of(cls, analyses: AnalysisManager) -> Self:
        return cls(analyses.module)

    def callee(self, op: Operation) -> FuncOp | None:
        """The function that a ``func.call`` or ``func.constant`` names, if there is such a function."""
        name = named_function(op)
        return self.functions.get(name) if name is not None else None


def named_function(op: Operation) -> str | None:
    """The symbol that a ``func.call``, ``func.constant`` or ``device.launch`` names; None for other operations."""
    key = facts_of(op).symbol
    symbol = op.get_attr_or_prop(key) if key else None
    return symbol.string_value() if isinstance(symbol, SymbolRefAttr) else None


def callee_name(op: Operation) -> str | None:
    """The symbol that a ``func.call`` calls; None for other operations."""
    return named_function(op) if op_name(op) == CALL else None


def function_of(op: Operation) -> FuncOp | None:
    """The function that an operation stands in."""
    current = op.parent_op()
    while current is not None and not isinstance(current, FuncOp):
        current = current.parent_op()
    return current


def has_foreign_body(function: FuncOp) -> bool:
    """Whether another compiler owns the body of a function: only its signature is planned and verified."""
    return any(mark in function.attributes for mark in _FOREIGN_BODY)


def is_claimed(function: FuncOp) -> bool:
    """Whether a backend compiles a function: every pass leaves that alone."""
    return COMPILER_ATTR in function.attributes


def is_public(function: FuncOp) -> bool:
    """Whether code outside of the module may call a function."""
    return function.sym_visibility is None or function.sym_visibility.data != "private"


def is_kernel(function: FuncOp) -> bool:
    """Whether a function is a user kernel. The device functions of a split module are over tensors."""
    return KERNEL_ATTR in function.attributes and any(
        isinstance(type_, MemRefType) for type_ in function.function_type.inputs
    )
