"""What planning decided and why: the `Plan`, and errors that show both chains of reasons."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from xdsl.ir import BlockArgument, Operation, SSAValue

from devscope.dialects.device import SCOPE_ATTR, DeviceCopyOp, ScopeAttr
from devscope.dialects.location import source_location
from devscope.dialects.names import op_name
from devscope.errors import PlanError
from devscope.passes.placed_types import byte_size
from devscope.passes.plan.domains import Clash, Demand, Reason
from devscope.passes.plan.system import REMATERIALISED, System
from devscope.passes.signature import ARGUMENTS, RESULTS


@dataclass(frozen=True)
class Placement:
    """Where an operation executes, and why there."""

    op: str
    """Its name."""
    scope: ScopeAttr
    reason: str
    operation: Operation


@dataclass(frozen=True)
class Copy:
    """A ``device.device_copy`` of the planned module."""

    value: str
    """What is copied, in words."""
    src: ScopeAttr
    dst: ScopeAttr
    bytes: int | None
    """Size of the data; None when it is known at run time only."""
    asked_by: str
    """The first use that needs the copy."""
    operation: Operation


@dataclass
class Plan:
    """The outcome of planning one module. Stays valid when the module is transformed further."""

    remarks: list[str]
    _copies: list[tuple[DeviceCopyOp, SSAValue, Operation | None]]
    """Copy, value, first use that asked."""
    _placed: list[tuple[Operation, int, int]]
    """Operation, class, number of the scope."""
    _reasons: Reasons
    _scopes: list[ScopeAttr]

    @cached_property
    def placements(self) -> list[Placement]:
        """Every operation that has a scope, function by function, in the order of the program."""
        return [
            Placement(op_name(op), self._scopes[scope], self._reasons.text(root), op)
            for op, root, scope in self._placed
        ]

    @cached_property
    def copies(self) -> list[Copy]:
        """Every copy of the module."""
        return [
            Copy(
                name_of_value(value),
                op.src,
                op.dst,
                byte_size(value.type),
                name_of_op(user) if user is not None else "the input",
                op,
            )
            for op, value, user in self._copies
        ]

    def to_json(self) -> dict[str, object]:
        """The plan as lists and texts. Locations are ``file:line:col`` or None, sizes in bytes or None."""
        return {
            "placements": [
                {
                    "op": placement.op,
                    "location": _where(placement.operation),
                    "scope": placement.scope.short(),
                    "reason": placement.reason,
                }
                for placement in self.placements
            ],
            "copies": [
                {
                    "value": copy.value,
                    "location": _where(copy.operation),
                    "src": copy.src.short(),
                    "dst": copy.dst.short(),
                    "bytes": copy.bytes,
                    "asked_by": copy.asked_by,
                }
                for copy in self.copies
            ],
            "remarks": list(self.remarks),
        }


class Reasons:
    """Why each class is where it is: the first demand on it, in words.

    Made before the module changes. Texts that name operands are made at once, since planning erases some of
    the operations they speak of; all others when somebody asks.
    """

    def __init__(self, system: System) -> None:
        self._demands: dict[int, Demand] = {}
        self._texts: dict[int, str] = {REMATERIALISED: "made again on every scope that needs it"}
        self._system = system
        for demand in system.domains.demands:
            self._demands.setdefault(system.domains.find(demand.node), demand)
        for root, demand in self._demands.items():
            if demand.reason[0] in NAMES_OPERANDS:
                self.text(root)

    def text(self, root: int) -> str:
        found = self._texts.get(root)
        if found is None:
            demand = self._demands.get(root)
            found = "default scope" if demand is None else _text(self._system, demand.reason, demand.scope)
            self._texts[root] = found
        return found


def clash_error(system: System, clash: Clash) -> PlanError:
    """The error for two demands that no scope satisfies: both chains, with their positions."""
    left, right = system.domains.scope_of(clash.left), system.domains.scope_of(clash.right)
    first = _chain(system, clash.left, right)
    second = _chain(system, clash.right, left)
    op = clash.reason[1]
    subject = _subject(clash.reason)
    return PlanError(
        f"{subject} must be on {system.scopes.short(left)} and on {system.scopes.short(right)}",
        source_location(op) if op is not None else None,
        [
            f"{subject} must be on {system.scopes.short(left)} because {first}",
            f"and on {system.scopes.short(right)} because {second}",
            "make the two scopes agree, drop one of them, or put a device.device_copy where the data may move",
        ],
    )


def _chain(system: System, node: int, opposing: int) -> str:
    found = system.domains.chain(node, opposing)
    assert found is not None
    reasons, demand = found
    steps = [_text(system, reason, None) for reason in reasons if reason[1] is not None]
    return "; ".join([*dict.fromkeys(steps), _text(system, demand.reason, demand.scope)])


def _text(system: System, reason: Reason, scope: int | None) -> str:
    kind, op, index = reason
    return TEXTS[kind](op, index, system.scopes.short(scope) if scope is not None else "")


def name_of_op(op: Operation | None) -> str:
    """An operation for messages: its name and position."""
    if op is None:
        return "the program"
    where = source_location(op)
    return f"'{op_name(op)}'" + (f" ({where})" if where is not None else "")


def name_of_value(value: SSAValue) -> str:
    """A value for messages: its name in the source, else what defines it."""
    if value.name_hint is not None:
        return f"%{value.name_hint}"
    if isinstance(value, BlockArgument):
        parent = value.block.parent_op()
        owner = _function(parent) if parent is not None and parent.name == "func.func" else name_of_op(parent)
        return f"argument #{value.index} of {owner}"
    owner = value.owner
    assert isinstance(owner, Operation)
    number = f" #{owner.results.index(value)}" if len(owner.results) > 1 else ""
    return f"the result{number} of {name_of_op(owner)}"


def _where(op: Operation) -> str | None:
    where = source_location(op)
    return str(where) if where is not None else None


def _operand(op: Operation, index: int) -> str:
    return name_of_value(op.operands[index])


def _function(op: Operation | None) -> str:
    symbol = op.get_attr_or_prop("sym_name") if op is not None else None
    name = getattr(symbol, "data", "?")
    where = source_location(op) if op is not None else None
    return f"@{name}" + (f" ({where})" if where is not None else "")


def _subject(reason: Reason) -> str:
    """What a clash is about."""
    kind, op, index = reason
    match kind:
        case _ if op is None:
            return "a value"
        case "use" | "on_device" | "adopted" | "copy_operand":
            return _operand(op, index)
        case "arg_attrs" | "res_attrs":
            return TEXTS[kind](op, index, "").removeprefix(f"{SCOPE_ATTR} on ").removesuffix(" says ")
        case _:
            return name_of_op(op)


def _with_op(template: str) -> Callable[[Operation | None, int, str], str]:
    return lambda op, index, scope: template.format(op=name_of_op(op), index=index, scope=scope)


def _with_operand(template: str) -> Callable[[Operation | None, int, str], str]:
    def text(op: Operation | None, index: int, scope: str) -> str:
        value = _operand(op, index) if op is not None else "a value"
        return template.format(op=name_of_op(op), value=value, index=index, scope=scope)

    return text


def _with_function(template: str) -> Callable[[Operation | None, int, str], str]:
    return lambda op, index, scope: template.format(function=_function(op), index=index, scope=scope)


TEXTS: dict[str, Callable[[Operation | None, int, str], str]] = {
    "use": _with_operand("{op} uses {value}"),
    "same": _with_op("{op} is on one scope"),
    "carried": _with_op("result #{index} of {op} is the value that it carries"),
    "adopted": _with_operand("{op} uses {value} on {scope}"),
    "attribute": _with_op(f"{SCOPE_ATTR} on {{op}} says {{scope}}"),
    "frame": _with_op(f"{SCOPE_ATTR} on the enclosing {{op}} says {{scope}}"),
    "on_call": _with_op(f"{SCOPE_ATTR} on {{op}} says {{scope}}"),
    "on_device": _with_operand("{op} puts {value} on {scope}"),
    "copy_operand": _with_op("{op} copies from {scope}"),
    "copy_result": _with_op("{op} copies to {scope}"),
    "shape": _with_operand("{op} reads the shape {value} on the host ({scope})"),
    "shape_result": _with_op("{op} gives a shape, on the host ({scope})"),
    "scalar": _with_op("{op} reads a scalar of a constant on the host ({scope})"),
    "body_call": _with_op("{op} stands in a parallel loop, which runs on one scope"),
    "public_function": _with_function("a function value given to the public {function} is on one scope"),
    ARGUMENTS: _with_function(f"{SCOPE_ATTR} on argument #{{index}} of {{function}} says {{scope}}"),
    RESULTS: _with_function(f"{SCOPE_ATTR} on result #{{index}} of {{function}} says {{scope}}"),
    f"pinned_{ARGUMENTS}": _with_function(
        "argument #{index} of the public {function} is pinned to the host ({scope})"
    ),
    f"pinned_{RESULTS}": _with_function(
        "result #{index} of the public {function} is pinned to the host ({scope})"
    ),
}
"""Per kind of reason, its text. ``{scope}`` is empty where the reason is a link and not a demand."""

NAMES_OPERANDS = frozenset({"use", "adopted", "on_device", "shape"})
"""Kinds whose text needs the operands of the operation."""
