"""State of public functions: the last arguments and results that are kept from call to call (``device.state``)."""

from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, SymbolRefAttr, TensorType
from xdsl.dialects.func import FuncOp

from devscope.analysis.symbols import is_public
from devscope.dialects.device import STATE_ATTR
from devscope.dialects.location import source_location
from devscope.errors import LoweringError


def initial_state(func: FuncOp) -> FuncOp | None:
    """The function that gives the state of ``func`` at first; None where it has none that fits."""
    symbol, module = func.attributes.get(STATE_ATTR), func.parent_op()
    if not isinstance(symbol, SymbolRefAttr) or not isinstance(module, ModuleOp):
        return None
    for op in module.body.block.ops:
        if isinstance(op, FuncOp) and op.sym_name.data == symbol.string_value():
            types, own = op.function_type, func.function_type
            kept, count = types.outputs.data, len(types.outputs)
            fits = count and not types.inputs and own.inputs.data[-count:] == own.outputs.data[-count:] == kept
            return op if fits and is_public(op) and is_public(func) else None
    return None


def kept_pairs(func: FuncOp) -> list[tuple[int, int]]:
    """The numbers of arguments and results that are one state each, of static shape: it may be anywhere."""
    if STATE_ATTR not in func.attributes or (initial := initial_state(func)) is None:
        return []
    types = initial.function_type.outputs.data
    arguments, results = (
        len(side) - len(types) for side in (func.function_type.inputs, func.function_type.outputs)
    )
    return [
        (arguments + number, results + number)
        for number, type_ in enumerate(types)
        if isinstance(type_, TensorType) and DYNAMIC_INDEX not in type_.get_shape()
    ]


def check_state(module: ModuleOp) -> dict[str, str]:
    """The functions that give the state of others at first, by the names of these. Raises LoweringError."""
    found: dict[str, str] = {}
    for op in module.body.block.ops:
        if isinstance(op, FuncOp) and STATE_ATTR in op.attributes:
            initial = initial_state(op)
            if initial is None:
                raise LoweringError(
                    f"'{STATE_ATTR}' is {op.attributes[STATE_ATTR]}, which says nothing of @{op.sym_name.data}",
                    source_location(op),
                    [
                        "it is the symbol of a public function without arguments, whose results have the types of "
                        "the last arguments and of the last results of this public function"
                    ],
                )
            found[op.sym_name.data] = initial.sym_name.data
    return found
