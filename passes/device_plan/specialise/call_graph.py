"""Who calls whom: the units that planning solves one by one, in an order that does not depend on names.

Where planning must choose (one value, two demands), the first one wins. So that renaming or moving functions
does not change the plan, "first" is told from what the functions do: callers come before callees, and
functions that do not call each other are ordered by a fingerprint of their bodies.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from devscope.analysis.strongly_connected import strongly_connected_components
from devscope.analysis.symbols import is_kernel, is_public, named_function
from devscope.dialects.device import SCOPE_ATTR, TARGET_ATTR
from devscope.dialects.location import source_location
from devscope.dialects.names import op_name
from devscope.dialects.scope_attribute import ARGUMENTS, RESULTS, signature_attributes
from devscope.errors import PlanError
from devscope.passes.device_plan.signatures import has_plan

_ROUNDS = 3
"""How far along the call graph two functions with equal bodies are told apart."""


def functions_of(module: ModuleOp) -> list[FuncOp]:
    """The functions that planning is about. Those in a ``gpu.module``, and kernels, are device code.

    Raises `PlanError` for a module inside the module: nothing outside says where its functions are called from.
    """
    for op in module.body.ops:
        if isinstance(op, ModuleOp) and any(isinstance(inner, FuncOp) for inner in op.walk()):
            raise PlanError(
                "a module inside a module is not planned",
                source_location(op),
                ["move its functions into the outer module, or plan it as a module of its own"],
            )
    return [op for op in module.body.ops if isinstance(op, FuncOp) and not is_kernel(op)]


def has_frame(func: FuncOp) -> bool:
    """Whether a function itself says where its body runs."""
    return SCOPE_ATTR in func.attributes or TARGET_ATTR in func.attributes


@dataclass(eq=False)
class Unit:
    """Functions that are planned together: one, or several that call each other in cycles."""

    functions: dict[str, FuncOp]
    """By name."""
    called: set[str] = field(default_factory=set[str])
    """The names of those that functions of other units call or use as values."""

    @property
    def is_public(self) -> bool:
        return any(map(is_public, self.functions.values()))


@dataclass
class CallGraph:
    """The functions of a module, in units."""

    units: list[Unit]
    """Callees before callers."""
    unit_of: dict[str, Unit]
    """Per name of a function with a plan."""
    externals: dict[str, FuncOp]
    """Declarations, and functions whose body is not planned."""


def build_call_graph(functions: Sequence[FuncOp]) -> CallGraph:
    """The units of ``functions``; their order depends neither on names nor on the order in the module."""
    callees: dict[FuncOp, list[FuncOp]] = {func: [] for func in functions}
    ordered = list(functions)
    if len(functions) > 1:  # Nobody asks whether a single function calls itself.
        ordered = _callers_first(_by_fingerprint(functions, callees), callees)
    planned = [func for func in ordered if has_plan(func)]
    externals = {func.sym_name.data: func for func in ordered if not has_plan(func)}
    position = {func: number for number, func in enumerate(planned)}
    # From the last function to the first: what comes out last, the callers, is in canonical order then.
    backwards = {
        func: [c for c in dict.fromkeys(callees[func]) if c in position][::-1] for func in reversed(planned)
    }
    components = (sorted(c, key=position.__getitem__) for c in strongly_connected_components(backwards))
    units = [Unit({func.sym_name.data: func for func in component}) for component in components]
    unit_of = {name: unit for unit in units for name in unit.functions}
    for func, targets in backwards.items():
        for name in (target.sym_name.data for target in targets):
            if unit_of[name] is not unit_of[func.sym_name.data]:
                unit_of[name].called.add(name)
    return CallGraph(units, unit_of, externals)


def _by_fingerprint(functions: Sequence[FuncOp], callees: dict[FuncOp, list[FuncOp]]) -> list[FuncOp]:
    """``functions`` in the order of what they do; equal ones keep theirs. Fills in ``callees``."""
    by_name = {func.sym_name.data: func for func in functions}
    prints: dict[FuncOp, bytes] = {}
    callers: dict[FuncOp, list[FuncOp]] = {func: [] for func in functions}
    for func in functions:
        prints[func], names = _fingerprint(func)
        callees[func] = [by_name[name] for name in names if name in by_name]
        for callee in callees[func]:
            callers[callee].append(func)
    for _ in range(_ROUNDS):  # Tell functions apart by whom they call and who calls them, too.
        prints = {
            func: hashlib.blake2b(
                b"".join(
                    [own, *(prints[c] for c in callees[func]), b"|", *sorted(prints[c] for c in callers[func])]
                ),
                digest_size=16,
            ).digest()
            for func, own in prints.items()
        }
    return sorted(functions, key=prints.__getitem__)


def _fingerprint(func: FuncOp) -> tuple[bytes, list[str]]:
    """A digest of what a function does, less the names it uses, and those names in order of appearance."""
    inputs, outputs = func.function_type.inputs.data, func.function_type.outputs.data
    scopes = [
        *signature_attributes(func, ARGUMENTS, len(inputs)),
        *signature_attributes(func, RESULTS, len(outputs)),
        func.attributes.get(SCOPE_ATTR),
    ]
    digest = hashlib.blake2b(digest_size=16)
    digest.update(f"{func.function_type}|{[str(scope) for scope in scopes]}".encode())
    numbers: dict[SSAValue, int] = {}
    callees: list[str] = []
    for op in func.walk():
        if op is not func:
            digest.update(_line(op, numbers).encode())
            if (name := named_function(op)) is not None:
                callees.append(name)
        arguments = (argument for region in op.regions for block in region.blocks for argument in block.args)
        for value in (*arguments, *op.results):
            numbers[value] = len(numbers)
    return digest.digest(), callees


def _line(op: Operation, numbers: dict[SSAValue, int]) -> str:
    operands = ",".join([str(numbers.get(value, -1)) for value in op.operands])
    scopes = [f"{key}={op.attributes[key]}" for key in (SCOPE_ATTR, "scope", "dst") if key in op.attributes]
    return f"{op_name(op)}({operands}){''.join(scopes)}\n"


def _callers_first(functions: Sequence[FuncOp], callees: dict[FuncOp, list[FuncOp]]) -> list[FuncOp]:
    """Reverse post-order of the call graph; functions that nobody calls are its roots, in the given order."""
    called = {callee for targets in callees.values() for callee in targets}
    roots = [func for func in functions if func not in called] + [func for func in functions if func in called]
    order: list[FuncOp] = []
    seen: set[FuncOp] = set()
    # The last root first: reversed at the end, the first one comes out first.
    for root in reversed(roots):
        if root in seen:
            continue
        seen.add(root)
        stack = [(root, iter(callees[root][::-1]))]
        while stack:
            func, targets = stack[-1]
            target = next((target for target in targets if target not in seen), None)
            if target is None:
                order.append(func)
                stack.pop()
            else:
                seen.add(target)
                stack.append((target, iter(callees[target][::-1])))
    return order[::-1]
