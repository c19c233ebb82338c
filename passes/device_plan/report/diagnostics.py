"""Reasons in words. `domains.Reason` is a key and an operation; here it becomes a sentence with a position."""

import re
from collections.abc import Callable, Mapping, Sequence

from xdsl.ir import BlockArgument, Operation, SSAValue

from devscope.analysis.symbols import named_function
from devscope.dialects.device import SCOPE_ATTR, DeviceCopyOp
from devscope.dialects.location import source_location, source_name
from devscope.dialects.names import op_name
from devscope.dialects.scope_attribute import ARGUMENTS, RESULTS, placed_by
from devscope.errors import Note
from devscope.passes.device_plan.domains import Reason
from devscope.passes.device_plan.report.source_names import SourceNames

TEXTS: dict[str, str] = {
    "use": "{use}",
    "view": "{op} looks at {value}",
    "same": "{op} is on one scope",
    "carried": "result #{index} of {op} is the value that it carries",
    "propagated": "nothing else places it, and {use} on {scope}",
    "attribute": f"{SCOPE_ATTR} on {{op}} says {{scope}}",
    "called": "{op} was placed on {scope}, and what it calls with it",
    "frame": f"{SCOPE_ATTR} on the enclosing {{op}} says {{scope}}",
    "on_call": f"{SCOPE_ATTR} on {{op}} says {{scope}}",
    "on_device": "{op} puts {value} on {scope}",
    "copy_operand": "{op} copies from {scope}",
    "copy_result": "{op} copies to {scope}",
    "memory_space": "the type of buffer #{index} of {op} is in memory {scope}",
    "condition": "{op} decides on the host ({scope}) by {value}",
    "buffer": "{op} makes a buffer, which is on the host ({scope})",
    "shape": "{op} reads the shape {value} on the host ({scope})",
    "vector": "{op} has vectors, which are registers of the host ({scope})",
    "shape_result": "{op} gives a shape, on the host ({scope})",
    "scalar": "{op} reads a scalar of a constant on the host ({scope})",
    "body_call": "{op} stands in a parallel loop, which runs on one scope",
    "public_function": "a function value given to the public {function} is on one scope",
    "state": "argument #{index} of the public {function} is state, and a result is what it is for the next call",
    ARGUMENTS: f"{SCOPE_ATTR} on argument #{{index}} of {{function}} says {{scope}}",
    RESULTS: f"{SCOPE_ATTR} on result #{{index}} of {{function}} says {{scope}}",
    f"pinned_{ARGUMENTS}": "argument #{index} of the public {function} is pinned to the host ({scope})",
    f"pinned_{RESULTS}": "result #{index} of the public {function} is pinned to the host ({scope})",
    "callee": "{op} uses {callee}, which has {slot} on {scope}",
    "assigned": "{op} uses {callee} with its {slot} on {scope}",
    "through": "{op} uses {callee}, in which a loop carries its {slot}",
    "preferred": "nothing else places it, and {op} uses {callee}, which would like its {slot} on {scope}",
    "refined": "{op} uses {callee}, which was planned for {scope}",
    "first_result": "nothing places argument #{index} of {function}: it is where the first result is ({scope})",
    "chosen": "nothing places it: {scope} has the least cost",
    "default": "default scope",
    "program": "the program demands it",
    "rematerialised": "made again on every scope that needs it",
}
"""Per kind of reason, its text. ``{scope}`` is empty where the reason is a link and not a demand."""

_BY_OTHERS = {
    "attribute": "{op} is on {scope} by {placed_by}",
    "on_device": "{value} is on {scope} by {placed_by}",
    ARGUMENTS: "argument #{index} of {function} is on {scope} by {placed_by}",
    RESULTS: "result #{index} of {function} is on {scope} by {placed_by}",
}
"""Of what a rule, a pragma or a hint placed, where it is not shown beside it."""

_LINKS: dict[str, str] = {"on_device": "{op} marks {value}"}
"""Texts for kinds that stand for demands and links both, where they are links."""

_USES: dict[str, str] = {
    "func.return": "{op} returns {value} as result #{index}",
    "func.call": "{op} passes {value} as argument #{index} of {callee}",
    "func.call_indirect": "{op} passes {value} to the function that it calls",
    "scf.for": "{op} starts with {value}",
    "scf.while": "{op} starts with {value}",
    "affine.for": "{op} starts with {value}",
    "stablehlo.while": "{op} starts with {value}",
    "scf.yield": "{op} gives {value} to {parent}",
    "affine.yield": "{op} gives {value} to {parent}",
    "stablehlo.return": "{op} gives {value} to {parent}",
    "scf.condition": "{op} gives {value} to {parent}",
    "cf.br": "{op} passes {value} on",
    "cf.cond_br": "{op} passes {value} on",
    "cf.switch": "{op} passes {value} on",
    "device.on_device": "{op} marks {value}",
}
"""Per operation, what using an operand means."""

_USE = "{op} uses {value}"
"""What it means to all others."""


_MOST_STEPS = 12
"""Longer chains have their middle left out: one note per operation would be a quadratic amount of text."""


def without_middle(notes: Sequence[Note]) -> list[Note]:
    """``notes``, or the first and the last of many."""
    half = _MOST_STEPS // 2
    if len(notes) <= _MOST_STEPS:
        return list(notes)
    return [*notes[:half], Note(f"({len(notes) - 2 * half} more steps)"), *notes[-half:]]


_NAMED = 3
"""Of more operations than this, only the first ones are named."""


class DiagnosticFormatter:
    """Says what values, operations and reasons are called. ``originals``: of clones, by their names; ``default``:
    who chose the default scope."""

    def __init__(
        self, names: SourceNames | None = None, originals: Mapping[str, str] | None = None, default: str = ""
    ) -> None:
        self._names = names or SourceNames()
        self._originals = originals or {}
        self.default = default or TEXTS["default"]

    def op(self, op: Operation | None, position: bool = True) -> str:
        """An operation: its name, and on request where it stands."""
        if op is None:
            return "the program"
        return f"'{op_name(op)}'{_place(op) if position else ''}"

    def operations(self, ops: Sequence[Operation]) -> str:
        """Several operations; of many, the first ones and how many more there are."""
        more = f" and {len(ops) - _NAMED} more" if len(ops) > _NAMED else ""
        return ", ".join(map(self.op, ops[:_NAMED])) + more

    def function(self, op: Operation | None, position: bool = True) -> str:
        symbol = op.get_attr_or_prop("sym_name") if op is not None else None
        return f"@{getattr(symbol, 'data', '?')}{_place(op) if op is not None and position else ''}"

    def value(self, value: SSAValue) -> str:
        """A value: its name in the source, else what defines it."""
        name = self._names.name(value) or self._names.of_argument(value)
        if name is not None:
            return name
        if isinstance(value, BlockArgument):
            parent = value.block.parent_op()
            is_function = parent is not None and parent.name == "func.func"
            return f"argument #{value.index} of {self.function(parent) if is_function else self.op(parent)}"
        owner = value.owner
        assert isinstance(owner, Operation)
        number = f" #{owner.results.index(value)}" if len(owner.results) > 1 else ""
        return f"the result{number} of {self.op(owner)}"

    def operand(self, op: Operation, index: int) -> str:
        """An operand, as it was called before planning copied it."""
        value = op.operands[index]
        while isinstance(value.owner, DeviceCopyOp) and self._names.name(value) is None:
            value = value.owner.operand
        return self.value(value)

    def callee(self, op: Operation | None) -> str:
        """The function that a call or ``func.constant`` names, as the source calls it."""
        name = named_function(op) if op is not None else None
        return f"@{self._originals.get(name, name)}" if name is not None else "the function"

    def reason(self, reason: Reason, scope: str = "", position: bool = True) -> str:
        """A reason as a sentence; without ``position``, its operation is named alone."""
        kind, op, index = reason
        text = TEXTS[kind] if scope else _LINKS.get(kind, TEXTS[kind])
        if kind in _BY_OTHERS and scope and op is not None and placed_by(op, kind, index):
            text = "{placed_by}" if position else _BY_OTHERS[kind]
        elif kind == "default":
            text = "{default}"
        text = text.replace("{use}", _USES.get(op_name(op), _USE) if op is not None else _USE)
        fields: dict[str, Callable[[], str]] = {
            "scope": lambda: scope,
            "index": lambda: str(index),
            "default": lambda: self.default,
            "placed_by": lambda: placed_by(op, kind, index) if op is not None else "",
            "op": lambda: self.op(op, position),
            "function": lambda: self.function(op, position),
            "value": lambda: self.operand(op, index) if op is not None else "a value",
            "callee": lambda: self.callee(op),
            "parent": lambda: self.op(op.parent_op() if op is not None else None),
            "slot": lambda: f"argument #{index}" if index >= 0 else f"result #{~index}",
        }
        return re.sub(r"\{(\w+)\}", lambda field: fields[field[1]](), text)

    def note(self, reason: Reason, scope: str = "") -> Note:
        """A reason as a note that stands where its operation does."""
        op = reason[1]
        where = source_location(op) if op is not None else None
        return Note(self.reason(reason, scope, position=False), where)


def _place(op: Operation) -> str:
    known = [str(part) for part in (source_name(op), source_location(op)) if part is not None]
    return f" ({', '.join(known)})" if known else ""
