"""From functions to their constraint system: signatures first, then one walk over the bodies."""

from collections.abc import Iterator, Mapping

from xdsl.dialects.builtin import UnregisteredOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, Region

from devscope.analysis.dominance import Dominators
from devscope.analysis.program_state import kept_pairs
from devscope.analysis.symbols import is_public
from devscope.analysis.value_kinds import FUNCTION, TENSOR, kind_of, memory_space_of
from devscope.dialects.device import SCOPE_ATTR, TARGET_ATTR, RegionOp, ScopeAttr, TargetAttr
from devscope.dialects.location import source_location
from devscope.dialects.names import op_name
from devscope.dialects.op_facts import CALLS, facts_of
from devscope.dialects.scope_attribute import ARGUMENTS, RESULTS, signature_attributes
from devscope.errors import PlanError
from devscope.passes.device_plan.domains import HEADER, HOST_NODE, NOT_COMPUTED, PLACED
from devscope.passes.device_plan.remarks import Remark
from devscope.passes.device_plan.rules import Row, row_of, unknown
from devscope.passes.device_plan.scope_table import OPEN
from devscope.passes.device_plan.signatures import Frame, InstanceRequest, Signature, positions_of
from devscope.passes.device_plan.system import System


def build_unit(
    system: System,
    functions: Mapping[str, FuncOp],
    pin_to_host: bool = False,
    requests: Mapping[str, InstanceRequest] | None = None,
) -> None:
    """Add the constraints of ``functions``, by the names that calls among them use.

    ``pin_to_host`` pins the tensors in public functions' signatures to the host, unless they carry a scope.
    ``requests`` are what callers chose for signatures. Errors are kept in the system. The module is
    not changed.
    """
    for name, func in functions.items():
        signature = system.signatures[name] = build_signature(system, func, pin_to_host)
        if requests is not None and name in requests:
            demand_assignment(system, signature, requests[name])
    placed = [request for request in (requests or {}).values() if request.frame != OPEN and request.op is not None]
    outer = Frame(placed[0].frame, placed[0].op) if placed and placed[0].op is not None else None
    rows: dict[type[Operation] | str, Row] = {}
    for signature in list(system.signatures.values()):
        _walk(system, signature, outer, rows)


def build_signature(system: System, func: FuncOp, pin_to_host: bool = False) -> Signature:
    """The nodes of a function's arguments and results, with the demands of their attributes."""
    inputs, outputs = func.function_type.inputs.data, func.function_type.outputs.data
    public = is_public(func)
    pinned = public and pin_to_host
    kept = kept_pairs(func)
    arguments = _side(system, func, ARGUMENTS, inputs, pinned, {argument for argument, _ in kept})
    results = _side(system, func, RESULTS, outputs, pinned, {result for _, result in kept})
    for argument, result in kept:
        system.domains.link(arguments[argument], results[result], ("state", func, argument))
    for type_, node in zip(inputs, arguments, strict=True):
        if public and kind_of(type_) == FUNCTION:
            # Whoever passes a function in from outside sees one attribute for it, so it is on one scope.
            system.domains.link(node, system.domains.new(NOT_COMPUTED), ("public_function", func, 0))
    node = system.domains.new_function(arguments, results)
    return Signature(func, arguments, results, node)


def demand_assignment(system: System, signature: Signature, request: InstanceRequest) -> None:
    """Require of a signature what a caller chose."""
    for node, position, scope in zip(
        system.domains.first_order(signature.node),
        positions_of(system.domains, signature),
        request.assignment,
        strict=True,
    ):
        system.require(node, scope, ("assigned", request.op, position))


def _side(
    system: System, func: FuncOp, side: str, types: tuple[Attribute, ...], pinned: bool, kept: set[int]
) -> list[int]:
    """The nodes of all arguments, or all results, with the demands of attributes; ``kept`` are not pinned."""
    nodes: list[int] = []
    for index, scope in enumerate(signature_attributes(func, side, len(types))):
        number = system.scope_number(scope, func) if scope is not None else OPEN
        by_default = number == OPEN and pinned and kind_of(types[index]) == TENSOR and index not in kept
        node = system.fresh(types[index], NOT_COMPUTED | (PLACED if by_default else 0))
        if by_default:
            system.domains.demand(node, system.host_scope, (f"pinned_{side}", func, index))
        elif number != OPEN and (first := system.representative(node)) != HOST_NODE:
            system.require(first, number, (side, func, index))
        space = memory_space_of(types[index])
        if space is not None:
            system.require(node, system.scopes.number(space), ("memory_space", func, index))
        nodes.append(node)
    return nodes


def _walk(
    system: System, signature: Signature, outer: Frame | None, rows: dict[type[Operation] | str, Row]
) -> None:
    """Apply the table to every operation of a body, outer before inner, definitions before uses.

    ``outer`` is a frame around the whole function.
    """
    func = signature.op
    for argument, node in zip(func.body.blocks[0].args, signature.arguments, strict=True):
        system.define(argument, node)
    system.function = signature
    executed, remats = len(system.executed), len(system.remats)
    signature.frame = _frame(system, func, None)
    stack = [(_operations(system, func.body), signature.frame or outer)]
    while stack:
        operations, frame = stack[-1]
        system.frame = frame
        for op in operations:
            row = rows.get(op.__class__)
            if row is None:
                row = _row(op, rows)
            annotated = bool(op.attributes) and SCOPE_ATTR in op.attributes
            if annotated:
                system.annotated.append(op)
            before = len(system.executed), len(system.remats), len(system.sites)
            try:
                row.rule(system, op)
            except PlanError as error:
                system.errors.append(error)
                continue
            if annotated and before == (len(system.executed), len(system.remats), len(system.sites)):
                _say_if_in_vain(system, op)
            if row.enters:
                inner = _frame(system, op, frame)
                stack += ((_operations(system, region), inner) for region in reversed(op.regions))
                break
        else:
            stack.pop()
    system.frame = system.function = None
    signature.executed, signature.remats = system.executed[executed:], system.remats[remats:]


def _say_if_in_vain(system: System, op: Operation) -> None:
    """Warn of ``device.scope`` on an operation that planning places nowhere, and that holds none that it could."""
    control = facts_of(op).control
    if op.regions or control in CALLS:
        return
    if control is not None:
        why = "it is control flow, which the host executes"
    elif facts_of(op).query:
        why = "it asks for a shape or an address, on the host, wherever the data is"
    else:
        why = "its operands and results are scalars or vectors, which are on the host"
    text = f"'{SCOPE_ATTR}' on '{op_name(op)}' places nothing: {why}"
    remark = Remark("warning", text, source_location(op))
    if remark not in system.remarks:
        system.remarks.append(remark)


def _row(op: Operation, rows: dict[type[Operation] | str, Row]) -> Row:
    """The row of an operation. Kept by class, except for unregistered operations, which share one."""
    name = op_name(op)
    row = rows.get(name)
    if row is None:
        row = rows[name] = row_of(name) or Row(unknown)
    if not isinstance(op, UnregisteredOp):
        rows[op.__class__] = row
    return row


def _operations(system: System, region: Region) -> Iterator[Operation]:
    """The operations of a region, each after those that define its operands. Gives block arguments nodes.

    The arguments of the first block are the business of the operation that holds the region.
    """
    if len(region.blocks) <= 1:
        op = region.blocks[0].first_op if region.blocks else None
        while op is not None:
            yield op
            op = op.next_op
        return
    graph = system.graphs[region] = Dominators(region)
    for block in list(region.blocks)[1:]:
        flags = NOT_COMPUTED | (HEADER if block in graph.loops[block] else 0)
        for argument in block.args:
            system.define(argument, system.fresh(argument.type, flags))
    for block in graph.order:
        yield from block.ops


def _frame(system: System, op: Operation, outer: Frame | None) -> Frame | None:
    """The nearest frame around what is inside ``op``: what it says itself, else ``outer``.

    A function says so by ``device.scope``, else by the device type of its ``device.target``.
    """
    attribute = op.scope if isinstance(op, RegionOp) else op.attributes.get(SCOPE_ATTR)
    target = op.attributes.get(TARGET_ATTR) if isinstance(op, FuncOp) else None
    if attribute is None and isinstance(target, TargetAttr):
        attribute = ScopeAttr.get(target=target)
    if attribute is None or (scope := system.scope_number(attribute, op)) == OPEN:
        return outer
    return Frame(scope, op)
