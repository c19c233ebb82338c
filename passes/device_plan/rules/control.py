"""Rules for control flow: values flow along it, and it executes on the host."""

from collections.abc import Sequence

from xdsl.ir import Attribute, Operation, Region, SSAValue

from devscope.analysis.symbols import named_function
from devscope.analysis.value_kinds import FUNCTION, kind_of
from devscope.dialects.device import COMPILER_ATTR, SCOPE_ATTR
from devscope.dialects.location import source_location
from devscope.dialects.names import op_name
from devscope.errors import PlanError
from devscope.passes.device_plan.domains import CARRIED_OUT, HOST_NODE, NOT_COMPUTED, PLACED
from devscope.passes.device_plan.edges import BOUNDARY, FIRM
from devscope.passes.device_plan.rules.compute import compute
from devscope.passes.device_plan.scope_table import OPEN
from devscope.passes.device_plan.signatures import Signature
from devscope.passes.device_plan.system import System


def call(system: System, op: Operation) -> None:
    """Operands flow to the callee's arguments, its results to the call's.

    ``device.scope`` on a call, or a frame around it, is a demand on the whole signature, and a frame for the body
    of the callee. As with all placed operations, what stands before and after the call is not pulled along.
    """
    placement = system.call_placement(op)
    signature = _callee(system, op, placement[0] if placement is not None else OPEN)
    if placement is not None:
        system.require(signature.node, *placement)
        site = system.sites[-1] if system.sites else None
        if site is not None and signature is site.signature and site.name not in system.signatures:
            for node in system.domains.first_order(signature.node):
                system.flags[node] = system.flags[node] & ~NOT_COMPUTED | PLACED
    if COMPILER_ATTR in signature.op.attributes:
        _place_foreign(system, signature)
    _flow_through(system, op, 0, signature.arguments, signature.results)


def _place_foreign(system: System, signature: Signature) -> None:
    """What another compiler computes is placed where its signature says: it drags no neighbour along."""
    for node in system.domains.first_order(signature.node):
        if system.domains.scope[system.domains.find(node)] != OPEN:
            system.flags[node] = system.flags[node] & ~NOT_COMPUTED | PLACED


def constant_function(system: System, op: Operation) -> None:
    """``func.constant``: the function's own domain."""
    system.define(op.results[0], _callee(system, op).node)


def select(system: System, op: Operation) -> None:
    """``arith.select``: of data, a computation; of functions, a choice, so that both and the result are one."""
    result = op.results[0]
    if kind_of(result.type) != FUNCTION:
        compute(system, op)
        return
    node = system.fresh(result.type)
    for index in (1, 2):
        system.use(op, index, op.operands[index], node)
    system.define(result, node)
    representative = system.representative(node)
    if representative != HOST_NODE:
        if (attribute := op.attributes.get(SCOPE_ATTR)) is not None:
            system.require(representative, system.scope_number(attribute, op), ("attribute", op, 0))
        system.executed.append((op, representative))


def call_indirect(system: System, op: Operation) -> None:
    """As a call, through the domain of the function value."""
    node = system.node_of(op.operands[0])
    function = system.domains.functions.get(node)
    if function is None:
        compute(system, op)
        return
    placement = system.call_placement(op)
    if placement is not None:
        system.require(node, *placement)
    _flow_through(system, op, 1, function.arguments, function.results)


def _callee(system: System, op: Operation, frame: int = OPEN) -> Signature:
    name = named_function(op)
    signature = system.signature_of(name, op, frame) if name is not None else None
    if signature is None:
        raise PlanError(
            f"'{op_name(op)}' names @{name}, which is no func.func of this module", source_location(op)
        )
    return signature


def _flow_through(
    system: System, op: Operation, first: int, arguments: Sequence[int], results: Sequence[int]
) -> None:
    for index, node in enumerate(arguments, first):
        system.use(op, index, op.operands[index], node)
    for result, node in zip(op.results, results, strict=True):
        system.define(result, node)


def return_(system: System, op: Operation) -> None:
    """Operands flow to the function's results."""
    assert system.function is not None
    for index, (value, node) in enumerate(zip(op.operands, system.function.results, strict=True)):
        system.use(op, index, value, node, returns=True)


def branch(system: System, op: Operation) -> None:
    """``cf``: the trailing operands flow to the successors' arguments, in order.

    What enters a loop crosses its boundary.
    """
    targets = [(argument, block) for block in op.successors for argument in block.args]
    first = len(op.operands) - len(targets)
    for index, (argument, block) in enumerate(targets, first):
        kind = BOUNDARY if system.is_outside(block, op) else FIRM
        system.use(op, index, op.operands[index], system.node_of(argument), kind)


def yield_(system: System, op: Operation) -> None:
    """Operands flow to what the parent of the region says."""
    _end_region(system, op, 0)


def condition(system: System, op: Operation) -> None:
    """``scf.condition``: a flag for the host, then values that flow into the body and out of the loop."""
    _end_region(system, op, 1)


def _end_region(system: System, op: Operation, first: int) -> None:
    region = op.parent_region()
    targets = system.yield_targets.get(region) if region is not None else None
    for index, node in enumerate(targets or (), first):
        value = op.operands[index]
        source = system.node_of(value)
        # What merely passes through may be carried on another scope than the one that it comes from.
        passes = source >= 0 and node >= 0 and system.flags[source] & system.flags[node] & NOT_COMPUTED
        system.use(op, index, value, node, BOUNDARY if passes else FIRM)


def _condition_node(system: System, op: Operation | None) -> int:
    """Where operand 0 of ``op``, a tensor, decides which way control takes: on the host; it drags nothing."""
    return system.demanded(system.host_scope, ("condition", op, 0), NOT_COMPUTED | PLACED)


def choose(system: System, op: Operation) -> None:
    """``scf.if``, ``scf.index_switch``, ``affine.if`` and their like: each region's yields flow to the results."""
    targets = [system.fresh(result.type) for result in op.results]
    for region in op.regions:
        system.yield_targets[region] = targets
    for result, node in zip(op.results, targets, strict=True):
        system.define(result, node)


def choose_by_tensor(system: System, op: Operation) -> None:
    """``stablehlo.if``, ``stablehlo.case``: as `choose`; operand 0, a tensor, decides."""
    system.use(op, 0, op.operands[0], _condition_node(system, op))
    choose(system, op)


def for_(system: System, op: Operation) -> None:
    """``scf.for``, ``affine.for``: per carried value, the last operands, all is one that carries it.

    That is initial value, argument, yielded value and result.
    """
    carried = _enter_loop(system, op, len(op.operands) - len(op.results))
    _carry(system, op.regions[0], op.regions[0].block.args[1:], carried, carried)
    _leave_loop(system, op, carried)


def while_(system: System, op: Operation) -> None:
    """``scf.while``: what enters the first region, and what leaves it for the second and the results."""
    before, after = op.regions
    entering = _enter_loop(system, op, 0)
    leaving = [system.fresh(result.type) for result in op.results]
    _carry(system, before, before.block.args, entering, leaving)
    _carry(system, after, after.block.args, leaving, entering)
    _leave_loop(system, op, leaving)


def while_by_tensor(system: System, op: Operation) -> None:
    """``stablehlo.while``: both regions take all carried values; the first gives the tensor that decides."""
    test, body = op.regions
    carried = _enter_loop(system, op, 0)
    _carry(system, test, test.block.args, carried, [_condition_node(system, test.block.last_op)])
    _carry(system, body, body.block.args, carried, carried)
    _leave_loop(system, op, carried)


def _carry(
    system: System, region: Region, arguments: Sequence[SSAValue], nodes: Sequence[int], targets: list[int]
) -> None:
    """What enters a loop's region, in its arguments, and where what its end gives goes."""
    system.yield_targets[region] = targets
    for argument, node in zip(arguments, nodes, strict=True):
        system.define(argument, node)


def _enter_loop(system: System, op: Operation, first: int) -> list[int]:
    types: Sequence[Attribute] = [value.type for value in op.operands[first:]]
    carried = [system.fresh(type_) for type_ in types]
    for index, node in enumerate(carried, first):
        system.use(op, index, op.operands[index], node, BOUNDARY)
    return carried


def _leave_loop(system: System, op: Operation, carried: Sequence[int]) -> None:
    for index, (result, node) in enumerate(zip(op.results, carried, strict=True)):
        if node == HOST_NODE or node in system.domains.functions:
            system.define(result, node)
            continue
        outer = system.domains.new(CARRIED_OUT | NOT_COMPUTED)
        system.domains.unify(outer, node, ("carried", op, index))
        system.define(result, outer)
