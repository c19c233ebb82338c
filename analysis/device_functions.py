"""Which private functions run on one device as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import DictionaryAttr
from xdsl.ir import Operation, SSAValue

from devscope.analysis.classify import (
    CONTROL_FLOW,
    Classifier,
    body_operations,
    is_scalar_code,
    is_tensor,
    is_terminator,
)
from devscope.analysis.scope_analysis import ScopeAnalysis
from devscope.analysis.symbols import callee_name, is_public
from devscope.analysis.value_kinds import HOST, kind_of
from devscope.dialects.device import SCOPE_ATTR, ScopeAttr
from devscope.dialects.names import op_name
from devscope.dialects.scope_attribute import scope_on


def device_functions(
    functions: Sequence[func.FuncOp], scopes: ScopeAnalysis, host: ScopeAttr
) -> dict[str, ScopeAttr]:
    """The functions that run on one device, and its scope: code over tensors of that device, and portable
    functions (`portable_functions`) that were bound to it.

    Starts from the assumption that all candidates are and drops those that break it, so that recursive
    functions are found too.
    """
    candidates: dict[str, ScopeAttr] = {}
    bodies: dict[str, list[Operation]] = {}
    for function in functions:
        if is_public(function) or not function.body.blocks:
            continue
        scope = _signature_scope(function)
        if scope is not None and not scope.same_device(host):
            name = function.sym_name.data
            candidates[name] = scope
            bodies[name] = _function_operations(function)
    changed = True
    while changed:
        classifier = Classifier(scopes, host, candidates)
        wrong = [name for name in candidates if classifier.uniform_scope(bodies[name]) != candidates[name]]
        for name in wrong:
            del candidates[name]
        changed = bool(wrong)
    for function in portable_functions(functions):
        own = scope_on(function)
        if own is not None and not own.same_device(host):
            candidates[function.sym_name.data] = own
    return candidates


def portable_functions(functions: Iterable[func.FuncOp]) -> list[func.FuncOp]:
    """Private functions over scalars that any target can run: scalar code, control flow, calls of their like."""
    found = {
        function.sym_name.data: function
        for function in functions
        if not is_public(function)
        and function.body.blocks
        and all(kind_of(v.type) == HOST for v in _values(function))
    }
    changed = True
    while changed:
        wrong = [
            name
            for name, function in found.items()
            if not all(op is function or _is_portable(op) or callee_name(op) in found for op in function.walk())
        ]
        for name in wrong:
            del found[name]
        changed = bool(wrong)
    return list(found.values())


def _is_portable(op: Operation) -> bool:
    return is_scalar_code(op) or is_terminator(op) or op_name(op) in CONTROL_FLOW


def _values(function: func.FuncOp) -> Iterator[SSAValue]:
    for op in function.walk():
        yield from op.results
        for region in op.regions:
            for block in region.blocks:
                yield from block.args


def _function_operations(function: func.FuncOp) -> list[Operation]:
    found: list[Operation] = []
    for block in function.body.blocks:
        for op in block.ops:
            if op is not block.last_op:
                found.append(op)
                found.extend(body_operations(op) if op_name(op) in CONTROL_FLOW else [])
    return found


def _signature_scope(function: func.FuncOp) -> ScopeAttr | None:
    """The scope of all tensor parameters and results; None if there is no single one."""
    found: set[ScopeAttr] = set()
    attributes = function.arg_attrs.data if function.arg_attrs is not None else ()
    for value, dictionary in zip(function.body.blocks[0].args, attributes, strict=False):
        if is_tensor(value):
            found |= _scope_in(dictionary)
    for dictionary in function.res_attrs.data if function.res_attrs is not None else ():
        found |= _scope_in(dictionary)
    return found.pop() if len(found) == 1 else None


def _scope_in(dictionary: DictionaryAttr) -> set[ScopeAttr]:
    scope = dictionary.data.get(SCOPE_ATTR)
    return {scope} if isinstance(scope, ScopeAttr) else set()
