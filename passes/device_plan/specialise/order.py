"""An order of functions that depends neither on their names nor on their order in the module.

Where planning must choose (one value, two demands), the first one wins. So that renaming or moving functions
does not change the plan, "first" is told from what the functions do: callers come before callees, and
functions that do not call each other are ordered by a fingerprint of their bodies.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from devscope.analysis.symbols import named_function
from devscope.dialects.device import SCOPE_ATTR
from devscope.dialects.names import op_name
from devscope.dialects.signature import ARGUMENTS, RESULTS, signature_attributes

_ROUNDS = 3
"""How far along the call graph two functions with equal bodies are told apart."""


def canonical_order(functions: Sequence[FuncOp]) -> list[FuncOp]:
    """``functions``, callers before callees, else by fingerprint. Equal functions keep their order."""
    if len(functions) < 2:
        return list(functions)
    by_name = {func.sym_name.data: func for func in functions}
    callees: dict[FuncOp, list[FuncOp]] = {}
    prints: dict[FuncOp, bytes] = {}
    for func in functions:
        prints[func], names = _fingerprint(func)
        callees[func] = [by_name[name] for name in names if name in by_name]
    prints = _refine(prints, callees)
    return _callers_first(sorted(functions, key=prints.__getitem__), callees)


def _fingerprint(func: FuncOp) -> tuple[bytes, list[str]]:
    """A digest of what a function does, less the names it uses, and those names in order of appearance."""
    digest = hashlib.blake2b(digest_size=16)
    inputs, outputs = func.function_type.inputs.data, func.function_type.outputs.data
    scopes = [
        *signature_attributes(func, ARGUMENTS, len(inputs)),
        *signature_attributes(func, RESULTS, len(outputs)),
        func.attributes.get(SCOPE_ATTR),
    ]
    digest.update(f"{func.function_type}|{[str(scope) for scope in scopes]}".encode())
    numbers: dict[SSAValue, int] = {}
    callees: list[str] = []
    for op in func.walk():
        if op is not func:
            digest.update(_line(op, numbers).encode())
            if (name := named_function(op)) is not None:
                callees.append(name)
        for region in op.regions:
            for block in region.blocks:
                _number(block.args, numbers)
        _number(op.results, numbers)
    return digest.digest(), callees


def _number(values: Sequence[SSAValue], numbers: dict[SSAValue, int]) -> None:
    for value in values:
        numbers[value] = len(numbers)


def _line(op: Operation, numbers: dict[SSAValue, int]) -> str:
    operands = ",".join([str(numbers.get(value, -1)) for value in op.operands])
    scopes = [f"{key}={op.attributes[key]}" for key in (SCOPE_ATTR, "scope", "dst") if key in op.attributes]
    return f"{op_name(op)}({operands}){''.join(scopes)}\n"


def called_names(func: FuncOp) -> list[str]:
    """The functions that a body calls or uses as values, in order of appearance."""
    return list(dict.fromkeys(name for op in func.walk() if (name := named_function(op)) is not None))


def _refine(prints: dict[FuncOp, bytes], callees: dict[FuncOp, list[FuncOp]]) -> dict[FuncOp, bytes]:
    """Fingerprints that also tell functions apart by whom they call and who calls them."""
    callers: dict[FuncOp, list[FuncOp]] = {func: [] for func in prints}
    for func, called in callees.items():
        for callee in called:
            callers[callee].append(func)
    for _ in range(_ROUNDS):
        prints = {
            func: hashlib.blake2b(
                b"".join(
                    [own, *(prints[c] for c in callees[func]), b"|", *sorted(prints[c] for c in callers[func])]
                ),
                digest_size=16,
            ).digest()
            for func, own in prints.items()
        }
    return prints


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
