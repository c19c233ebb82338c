"""What an operation says about the scopes of its operands and results: a rule for each.

A rule reads one operation and adds nodes, edges and demands to the `System`. Which rule, follows from the facts of
the operation (`dialects.op_facts`): who adds a row there needs nothing here. `register_rule` is for operations
that none of the rules fits. An operation of which nothing is known is planned by `compute.compute`, all its
operands and results on one scope, and the plan carries a remark.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeAlias

from xdsl.ir import Operation

from devscope.dialects.location import source_location
from devscope.dialects.names import op_name
from devscope.dialects.op_facts import OPERATIONS, Control, Facts, facts
from devscope.passes.device_plan.remarks import Remark
from devscope.passes.device_plan.rules import compute, control, device
from devscope.passes.device_plan.system import System

Rule: TypeAlias = Callable[[System, Operation], None]


class Row(NamedTuple):
    """A rule, and whether the operations in the regions are planned one by one."""

    rule: Rule
    enters: bool = False


RULES: dict[str, Row] = {
    "arith.select": Row(control.select),
    "bufferization.to_buffer": Row(compute.buffer),
    "cf.assert": Row(compute.host),
    "device.launch": Row(device.launch),
    "device.on_device": Row(device.on_device),
    "device.device_copy": Row(device.device_copy),
    "device.region": Row(device.region, enters=True),
    "device.yield": Row(device.yield_),
}
"""Operations, and dialects, with a rule that no fact tells."""

CONTROL: dict[Control, Row] = {
    Control.CALL: Row(control.call),
    Control.FUNCTION: Row(control.constant_function),
    Control.CALL_INDIRECT: Row(control.call_indirect),
    Control.RETURN: Row(control.return_),
    Control.CHOICE: Row(control.choose, enters=True),
    Control.COUNTED: Row(control.for_, enters=True),
    Control.WHILE: Row(control.while_, enters=True),
    Control.YIELD: Row(control.yield_),
    Control.CONDITION: Row(control.condition),
    Control.PARALLEL: Row(compute.loop_body),
    Control.BRANCH: Row(control.branch),
    Control.FRAME: Row(device.region, enters=True),
    Control.UNREACHABLE: Row(compute.host),
}
BY_TENSOR: dict[Control, Row] = {
    Control.CHOICE: Row(control.choose_by_tensor, enters=True),
    Control.WHILE: Row(control.while_by_tensor, enters=True),
}


def register_rule(name: str, rule: Rule, enters: bool = False) -> None:
    """Add or replace the rule of an operation (``"my.op"``) or of a dialect (``"my"``).

    With ``enters``, the operations in the regions are planned one by one, and the rule must define the
    regions' block arguments and `System.yield_targets`; without it, the values that the regions use from outside
    belong to the operation.
    """
    RULES[name] = Row(rule, enters)


def row_of(name: str) -> Row | None:
    """The row of an operation of this name; None when nothing is known about it."""
    row = RULES.get(name)
    if row is None and name not in OPERATIONS:
        row = RULES.get(name.partition(".")[0])
    return row or _row_by_facts(facts(name))


def _row_by_facts(known: Facts) -> Row | None:
    if known.control is not None:
        by_tensor = BY_TENSOR.get(known.control) if known.by_tensor else None
        return by_tensor or CONTROL[known.control]
    if known.query:
        return Row(compute.inspect)
    if known.rematerialised:
        return Row(compute.rematerialise)
    if known.fills:
        return Row(compute.fill)
    if known.reads_scalars:
        return Row(compute.read)
    if known.registers:
        return Row(compute.registers)
    shapes = frozenset(known.host_operands)
    if known.follows:
        return Row(partial(compute.view, host_operands=shapes, source=known.view_of or 0))
    if not known.known:
        return None
    return Row(partial(compute.compute, host_operands=shapes) if shapes else compute.compute)


def unknown(system: System, op: Operation) -> None:
    """The conservative rule: everything that the operation touches is on one scope. Says so once per name."""
    before = len(system.executed)
    compute.compute(system, op)
    name = op_name(op)
    if len(system.executed) > before and name not in system.unknown_names:
        system.unknown_names.add(name)
        text = f"no planning rule for '{name}'; all its operands and results are put on one scope"
        system.remarks.append(Remark("remark", text, source_location(op)))
