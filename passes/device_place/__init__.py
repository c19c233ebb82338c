"""The pass ``device-place``: rules and pragmas of the source become ``device.scope`` on operations.

It runs before partitioning and planning, where operations have the names and locations that the lowering to linalg
leaves them, see docs/placing.md. What computes on tensors is placed; constants, fills, views, shapes, control flow
and scalars are left to planning, which has them where they are needed. What the program says itself wins over
rules, a pragma over those, and ``device.scope`` over all. ``device.placed_by`` says who placed an operation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, Region
from xdsl.passes import ModulePass

from devscope.analysis.placement import AUTO, Placement, Rule
from devscope.analysis.symbols import Symbols, has_foreign_body
from devscope.analysis.value_kinds import HOST, kind_of
from devscope.dialects.device import PLACED_BY_ATTR, SCOPE_ATTR, TARGET_ATTR, OnDeviceOp, ScopeAttr
from devscope.dialects.location import location_parts, pragma_in, source_location
from devscope.dialects.names import op_name
from devscope.dialects.op_facts import Control, facts
from devscope.errors import Note, OptionError
from devscope.passes.device_place.near_names import near_names
from devscope.passes.device_place.operation_view import OperationView
from devscope.passes.device_plan.remarks import Remark

__all__ = ["DevicePlacePass", "place_module"]


def place_module(module: ModuleOp, placement: Placement | None = None) -> list[Remark]:
    """Place the operations of ``module``, in place; without rules, by its pragmas alone.

    Returns warnings about rules that place nothing, and remarks where the program's own word wins over one.
    Raises OptionError for a pragma that names no device.
    """
    return _Placer(placement or Placement()).run(module)


class _Placer:
    def __init__(self, placement: Placement) -> None:
        self._rules = placement.conditional
        self._scopes = {rule: ScopeAttr.parse_text(rule.device) for rule in placement.rules if rule.device != AUTO}
        self._fitted = [0] * len(self._rules)
        self._placed = [0] * len(self._rules)
        self._overruled: dict[tuple[Rule, ScopeAttr], list[Operation]] = {}
        """What fits a rule and is elsewhere, as the program says."""
        self._by_rule: dict[Operation, Rule] = {}

    def run(self, module: ModuleOp) -> list[Remark]:
        operations = list(_operations(module))
        for op, said in operations:
            self._place(op, said)
        return [*self._what_wins(), *self._in_vain(module, [op for op, _ in operations])]

    def _place(self, op: Operation, said: ScopeAttr | None) -> None:
        pragma = pragma_in(location_parts(op.location))
        if said is None and pragma is not None:
            device, who = pragma
            said = op.attributes[SCOPE_ATTR] = _scope_of_pragma(device, op)
            op.attributes[PLACED_BY_ATTR] = StringAttr(who)
        rule = self._first(op)
        if rule is None:
            return
        scope = self._scopes[rule]
        if said is not None:
            if said.join(scope) is None:
                self._overruled.setdefault((rule, said), []).append(op)
            return
        if _is_scalar(op) and not self._continues(op, rule):
            return  # counters, flags: to and fro would take longer
        self._placed[self._rules.index(rule)] += 1
        self._by_rule[op] = rule
        op.attributes[SCOPE_ATTR] = scope
        op.attributes[PLACED_BY_ATTR] = StringAttr(rule.text)

    def _continues(self, op: Operation, rule: Rule) -> bool:
        """Whether a rule has placed what computes an operand."""
        return any(self._by_rule.get(v.owner) is rule for v in op.operands if isinstance(v.owner, Operation))

    def _first(self, op: Operation) -> Rule | None:
        """The first rule that fits; of all others, which have never fit before, is noted whether they do."""
        view = OperationView(op)
        first: Rule | None = None
        for number, rule in enumerate(self._rules):
            if (first is None or not self._fitted[number]) and rule.fits(view):
                self._fitted[number] += 1
                first = first or rule
        return first

    def _what_wins(self) -> Iterator[Remark]:
        for (rule, said), ops in self._overruled.items():
            more = f" and {len(ops) - 1} more" if len(ops) > 1 else ""
            text = f"'{op_name(ops[0])}'{more}: the program says {said.short()}, which wins over {rule.device}"
            yield Remark("remark", text, source_location(ops[0]), (Note(f"of {rule.text}", rule.at),))

    def _in_vain(self, module: ModuleOp, placed: Sequence[Operation]) -> Iterator[Remark]:
        """Warnings about rules that place nothing."""
        for number, rule in enumerate(self._rules):
            if self._placed[number]:
                continue
            if self._fitted[number]:
                why = "earlier rules, or the program, have placed all that it fits"
                yield Remark("warning", f"{rule.text} places nothing: {why}", rule.at)
            else:
                known = set(placed)
                others = [op for op in module.walk() if op not in known]
                notes = near_names(rule, [OperationView(op) for op in placed], map(OperationView, others))
                yield Remark(
                    "warning", f"{rule.text} fits nothing that computes", rule.at, tuple(map(Note, notes))
                )


def _scope_of_pragma(device: str, op: Operation) -> ScopeAttr:
    try:
        return ScopeAttr.parse_text(device)
    except OptionError as error:
        raise OptionError(f"devscope.on({device!r}): {error.message}", source_location(op), error.notes) from None


def _operations(module: ModuleOp) -> Iterator[tuple[Operation, ScopeAttr | None]]:
    """What computes, in program order, with the scope that the program gives it, if it does."""
    for function in Symbols(module).functions.values():
        if not has_foreign_body(function):
            yield from _inside(function.body, _own_scope(function))


def _inside(region: Region, frame: ScopeAttr | None) -> Iterator[tuple[Operation, ScopeAttr | None]]:
    stack = [iter([(op, frame) for block in region.blocks for op in block.ops])]
    while stack:
        found = next(stack[-1], None)
        if found is None:
            stack.pop()
            continue
        op, around = found
        said = _own_scope(op) or around
        if facts(op_name(op)).is_entered:
            stack.append(iter([(inner, said) for r in op.regions for block in r.blocks for inner in block.ops]))
        elif computes(op):
            yield op, said or _asked_scope(op)


def _own_scope(op: Operation) -> ScopeAttr | None:
    """What an operation with or without regions says itself."""
    scope = op.attributes.get(SCOPE_ATTR, op.attributes.get("scope") if op.name == "device.region" else None)
    if scope is None and isinstance(op, FuncOp) and TARGET_ATTR in op.attributes:
        scope = ScopeAttr.get(target=op.attributes[TARGET_ATTR])  # pyright: ignore[reportArgumentType]
    return scope if isinstance(scope, ScopeAttr) and not scope.is_open else None


def _asked_scope(op: Operation) -> ScopeAttr | None:
    """Where a ``device.on_device`` puts the operation that computes its operand."""
    for result in op.results:
        for use in result.uses:
            if isinstance(use.operation, OnDeviceOp) and use.operation.constrains_body:
                return use.operation.scope
    return None


def computes(op: Operation) -> bool:
    """Whether an operation computes or moves data, so that a rule may place it."""
    name = op_name(op)
    if name == "device.launch":
        return True
    known = facts(name)
    if name.startswith("device.") or (known.control is not None and known.control is not Control.PARALLEL):
        return False
    if known.query or known.rematerialised or known.fills or known.reads_scalars or known.registers:
        return False
    if known.follows or known.costs_nothing:
        return False
    return any(kind_of(value.type) != HOST for value in (*op.operands, *op.results))


def _is_scalar(op: Operation) -> bool:
    """Whether all that it takes and gives are single elements."""
    shapes = [value.type.get_shape() for value in (*op.operands, *op.results) if hasattr(value.type, "get_shape")]  # pyright: ignore
    return bool(shapes) and all(all(size == 1 for size in shape) for shape in shapes)


@dataclass(frozen=True)
class DevicePlacePass(ModulePass):
    """Place operations by rules, see `place_module`."""

    name = "device-place"

    rules: str = ""
    """A file, see docs/placing.md; without one, pragmas alone."""

    def apply_with_remarks(self, ctx: Context, op: ModuleOp) -> list[Remark]:
        """As `apply`, for tools that print what it has to say."""
        from devscope.analysis.placement_file import read_placement

        return place_module(op, read_placement(self.rules) if self.rules else None)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        self.apply_with_remarks(ctx, op)
