"""Matches patterns against operations, and says of those that nearly match what is missing.

Matching goes from a value to what makes it, and tries alternatives in order (depth first, with backtracking). A
*place* is a value, or, in the body of a ``linalg.generic``, one element of it: so that an elementwise operation is
found whether it stands alone or with others in one body.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from xdsl.ir import BlockArgument, Operation, SSAValue

from devscope.analysis.patterns.attributes import splat_value
from devscope.analysis.patterns.elements import (
    KINDS,
    Body,
    axes_of,
    elementwise_body,
    is_identity,
    kind_of_scalar,
    kind_of_tensor,
    repeats,
    repetition_of,
)
from devscope.analysis.patterns.language import (
    Again,
    Broadcast,
    Constant,
    Custom,
    Dominated,
    Either,
    Elementwise,
    OneOrMore,
    Op,
    Pattern,
    Wildcard,
    objection,
)
from devscope.analysis.patterns.matches import Match, NearMiss, in_order
from devscope.analysis.patterns.python_values import python_value
from devscope.analysis.patterns.roots import is_named
from devscope.dialects.names import op_name
from devscope.dialects.op_facts import facts_of


class _Place(NamedTuple):
    """A value, or if ``body`` is not None an element: ``value`` is of the body's block, or used there."""

    value: SSAValue
    body: Body | None = None


@dataclass(frozen=True)
class _State:
    """What is matched so far. ``again``: repetitions, and where they must match once more."""

    ops: frozenset[Operation] = frozenset()
    values: tuple[tuple[str, SSAValue], ...] = ()
    again: tuple[tuple[OneOrMore, _Place], ...] = ()

    def with_op(self, op: Operation) -> _State:
        return self if op in self.ops else _State(self.ops | {op}, self.values, self.again)


class Matcher:
    """Matches one pattern. ``nearest`` is what to say of the operations that it did not match, the best so far."""

    def __init__(self, pattern: Pattern, explain: bool = False) -> None:
        self.pattern = pattern
        self.nearest: NearMiss | None = None
        self._explain = explain

    def match(self, op: Operation) -> Match | None:
        """The first match whose root is ``op``."""
        return next(self.matches(op), None)

    def matches(self, op: Operation) -> Iterator[Match]:
        """All matches whose root is ``op``, in the order of the pattern's alternatives."""
        for result in op.results:
            for state in self._match(self.pattern, _Place(result), _State()):
                if op in state.ops:
                    shown = {name: value for name, value in state.values if not name.startswith("_")}
                    yield Match(op, in_order(state.ops), shown)

    def _miss(self, state: _State, op: Operation | None, text: str) -> None:
        if self._explain and (self.nearest is None or len(state.ops) > self.nearest.matched):
            self.nearest = NearMiss(len(state.ops), text, op)

    def _match(self, pattern: Pattern, place: _Place, state: _State) -> Iterator[_State]:
        for found in self._parts(pattern, place, state):
            if (final := self._kept(pattern, place, found)) is not None:
                yield final

    def _kept(self, pattern: Pattern, place: _Place, state: _State) -> _State | None:
        """``state`` with the name of the value; None if that is another one's, or a check says no."""
        if not pattern.checks and not pattern.name:
            return state
        value = _outer(place)
        owner = value.owner if isinstance(value.owner, Operation) else None
        for check in pattern.checks:
            if (reason := objection(check(value), "a check says no")) is not None:
                self._miss(state, owner, f"{pattern.text()}: {reason}")
                return None
        if pattern.name:
            known = dict(state.values).get(pattern.name)
            if known is None:
                return _State(state.ops, (*state.values, (pattern.name, value)), state.again)
            if known is not value:
                self._miss(state, owner, f"two different values would be '{pattern.name}'")
                return None
        return state

    def _parts(self, pattern: Pattern, place: _Place, state: _State) -> Iterator[_State]:
        match pattern:
            case Either():
                for alternative in pattern.alternatives:
                    yield from self._match(alternative, place, state)
            case OneOrMore():
                yield from self._one_or_more(pattern, place, state)
            case Again():
                yield _State(state.ops, state.values, (*state.again, (pattern.whole, place)))
            case Elementwise():
                yield from self._elementwise(pattern, place, state)
            case Broadcast():
                yield from self._broadcast(pattern, place, state)
            case Constant():
                yield from self._constant(pattern, place, state)
            case _:
                value = self._whole(place, state)
                if value is not None:
                    yield from self._value(pattern, value, state)

    def _one_or_more(self, pattern: OneOrMore, place: _Place, state: _State) -> Iterator[_State]:
        """A link, and those that it asks for, depth first; chains may be longer than Python's stack."""
        stack = [self._match(pattern.link, place, _State(state.ops, state.values))]
        while stack:
            found = next(stack[-1], None)
            if found is None:
                stack.pop()
                continue
            asked = next((one for one in found.again if one[0] is pattern), None)
            if asked is None:
                yield _State(found.ops, found.values, (*state.again, *found.again))
            else:
                rest = tuple(one for one in found.again if one is not asked)
                stack.append(self._match(pattern.link, asked[1], _State(found.ops, found.values, rest)))

    def _whole(self, place: _Place, state: _State) -> SSAValue | None:
        """The value whose elements a place has, each at its own position."""
        if place.body is None:
            return place.value
        value = place.value
        if isinstance(value, BlockArgument) and value.block is place.body.block:
            operand, map_ = place.body.operand_of(value)
            if is_identity(map_):
                return operand
            self._miss(state, place.body.op, "an operand is broadcast or permuted, which the pattern does not say")
            return None
        if _is_outside(place):
            return value  # a scalar from outside of the body
        self._miss(state, place.body.op, "the body computes more than the pattern says")
        return None

    def _value(self, pattern: Pattern, value: SSAValue, state: _State) -> Iterator[_State]:
        if isinstance(pattern, Wildcard):
            yield state
            return
        owner = value.owner
        if not isinstance(owner, Operation):
            self._miss(state, None, f"an argument stands where {pattern.text()} should be")
            return
        match pattern:
            case Op():
                yield from self._op(pattern, owner, value, state)
            case Dominated():
                yield from self._dominated(pattern, value, state)
            case Custom():
                yield from self._custom(pattern, owner, state)
            case _:
                raise TypeError(f"{type(pattern).__name__} is no pattern")

    def _op(self, pattern: Op, owner: Operation, value: SSAValue, state: _State) -> Iterator[_State]:
        name = op_name(owner)
        if not is_named(name, pattern.names):
            self._miss(state, owner, f"'{name}' stands where {pattern.text()} should be")
            return
        if pattern.result >= len(owner.results) or owner.results[pattern.result] is not value:
            self._miss(state, owner, f"another result of '{name}' is used")
            return
        if len(owner.operands) < len(pattern.operands):
            self._miss(state, owner, f"'{name}' has {len(owner.operands)} operands, not {len(pattern.operands)}")
            return
        if not self._attributes(pattern.attributes, owner, state):
            return
        places = [_Place(operand) for operand in owner.operands]
        yield from self._operands(pattern.operands, places, state.with_op(owner), pattern.commutative)

    def _attributes(self, wanted: Mapping[str, Any], op: Operation, state: _State) -> bool:
        for key, expected in wanted.items():
            found = python_value(op.get_attr_or_prop(key))
            right = expected(found) if callable(expected) else found == expected
            if not right:
                shown = "is not what it should be" if callable(expected) else f"is not {expected!r}"
                self._miss(state, op, f"'{key}' of '{op_name(op)}' is {found!r}, which {shown}")
                return False
        return True

    def _operands(
        self, patterns: Sequence[Pattern], places: Sequence[_Place], state: _State, commutative: bool
    ) -> Iterator[_State]:
        yield from self._in_order(patterns, places, state)
        if commutative:
            yield from self._in_order(patterns, (places[1], places[0], *places[2:]), state)

    def _in_order(self, patterns: Sequence[Pattern], places: Sequence[_Place], state: _State) -> Iterator[_State]:
        if not patterns:
            yield state
            return
        for found in self._match(patterns[0], places[0], state):
            yield from self._in_order(patterns[1:], places[1:], found)

    def _elementwise(self, pattern: Elementwise, place: _Place, state: _State) -> Iterator[_State]:
        owner = place.value.owner
        if place.body is not None and isinstance(owner, Operation) and not _is_outside(place):
            if kind_of_scalar(op_name(owner)) != pattern.kind:
                text = f"'{op_name(owner)}' stands in a body where {pattern.text()} should be"
                self._miss(state, place.body.op, text)
            elif self._attributes(pattern.attributes, owner, state):
                places = [_Place(operand, place.body) for operand in owner.operands]
                found = state.with_op(place.body.op)
                yield from self._operands(pattern.operands, places, found, KINDS[pattern.kind].commutative)
            return
        value = self._whole(place, state)
        if value is None:
            return
        owner = value.owner
        if not isinstance(owner, Operation):
            self._miss(state, None, f"an argument stands where {pattern.text()} should be")
            return
        body = elementwise_body(owner)
        if body is not None:
            end = body.block.last_op
            if end is not None and end.operands:
                yield from self._elementwise(pattern, _Place(end.operands[0], body), state)
            return
        name = op_name(owner)
        scalar = kind_of_scalar(name) == pattern.kind and _has_shape(value)
        if not scalar and kind_of_tensor(name) != pattern.kind:
            self._miss(state, owner, f"'{name}' stands where {pattern.text()} should be")
            return
        if not self._attributes(pattern.attributes, owner, state):
            return
        places = [_Place(operand) for operand in owner.operands[: len(pattern.operands)]]
        yield from self._operands(pattern.operands, places, state.with_op(owner), KINDS[pattern.kind].commutative)

    def _broadcast(self, pattern: Broadcast, place: _Place, state: _State) -> Iterator[_State]:
        value, body = place
        if body is not None and isinstance(value, BlockArgument) and value.block is body.block:
            operand, map_ = body.operand_of(value)
            if is_identity(map_):
                yield from self._broadcast(pattern, _Place(operand), state)
            elif repeats(map_):
                yield from self._repeated(pattern, operand, axes_of(map_), map_.num_dims, body.op, state)
            else:
                self._miss(state, body.op, f"{pattern.text()}: it is not broadcast along these dimensions")
            return
        whole = self._whole(place, state)
        if whole is None:
            return
        rank, made = _rank(whole), repetition_of(whole)
        if made is not None and isinstance(whole.owner, Operation):
            yield from self._repeated(pattern, *made, rank, whole.owner, state.with_op(whole.owner))
        if pattern.dimensions is None or len(pattern.dimensions) == rank:
            yield from self._match(pattern.operand, _Place(whole), state)

    def _repeated(
        self,
        pattern: Broadcast,
        value: SSAValue,
        axes: tuple[int | None, ...],
        rank: int,
        op: Operation,
        state: _State,
    ) -> Iterator[_State]:
        """``value``, whose dimensions are ``axes`` of a result of ``rank`` dimensions, or what that repeats."""
        if None not in axes and _are(axes, rank, pattern.dimensions):
            yield from self._match(pattern.operand, _Place(value), state)
        else:
            self._miss(state, op, f"{pattern.text()}: it is not broadcast along these dimensions")
        made = repetition_of(value)
        if made is not None and isinstance(value.owner, Operation):
            inner, kept = made
            composed = tuple(None if axis is None else axes[axis] for axis in kept)
            yield from self._repeated(pattern, inner, composed, rank, value.owner, state.with_op(value.owner))

    def _constant(self, pattern: Constant, place: _Place, state: _State) -> Iterator[_State]:
        value = _outer(place)
        owner = value.owner if isinstance(value.owner, Operation) else None
        known, wanted = splat_value(value), pattern.value
        if known == wanted if wanted is not None else known is not None or (owner and _is_constant(owner)):
            yield state
        elif known is not None and wanted is not None:
            self._miss(state, owner, f"the constant is {known:g}, not {wanted:g}")
        else:
            self._miss(state, owner, f"this is not {pattern.text()}")

    def _dominated(self, pattern: Dominated, value: SSAValue, state: _State) -> Iterator[_State]:
        for child in self._match(pattern.child, _Place(value), state):
            frontier = [operand for op in in_order(child.ops - state.ops) for operand in op.operands]
            yield from self._path(pattern, frontier, child, None)

    def _path(
        self, pattern: Dominated, frontier: Sequence[SSAValue], state: _State, parent: SSAValue | None
    ) -> Iterator[_State]:
        """Every value of ``frontier`` is the parent, on a path to it, or comes from elsewhere."""
        pending = list(frontier)
        seen: set[SSAValue] = {result for op in state.ops for result in op.results}
        while pending:
            value = pending.pop()
            if value in seen or not _has_shape(value):
                continue
            seen.add(value)
            if value is parent:
                continue
            if (
                parent is None
                and (found := next(self._match(pattern.parent, _Place(value), state), None)) is not None
            ):
                parent, state = value, found
                seen.update(result for op in found.ops for result in op.results)
                continue
            step = next(self._match(pattern.path, _Place(value), state), None)
            if step is not None:
                pending += (operand for op in in_order(step.ops - state.ops) for operand in op.operands)
                state = step
        if parent is None:
            self._miss(state, None, f"no {pattern.parent.text()} leads here")
            return
        yield state

    def _custom(self, pattern: Custom, owner: Operation, state: _State) -> Iterator[_State]:
        if not is_named(op_name(owner), pattern.roots):
            self._miss(state, owner, f"'{op_name(owner)}' stands where {pattern.text()} should be")
            return
        answer = pattern.function(owner)
        if isinstance(answer, str):
            self._miss(state, owner, answer)
            return
        ops, values = answer
        known = dict(state.values)
        if all(known.get(name, value) is value for name, value in values.items()):
            yield _State(state.ops | {*ops}, tuple((known | dict(values)).items()), state.again)


def match(pattern: Pattern, op: Operation) -> Match | None:
    """The first match of ``pattern`` whose root is ``op``."""
    return Matcher(pattern).match(op)


def near_miss(pattern: Pattern, op: Operation) -> NearMiss | None:
    """Why ``pattern`` does not match at ``op``: what stopped the attempt that got furthest. None if it matches."""
    matcher = Matcher(pattern, explain=True)
    return None if matcher.match(op) is not None else matcher.nearest


def _is_outside(place: _Place) -> bool:
    """Whether a place in a body is a value from outside of it."""
    assert place.body is not None
    owner = place.value.owner
    block = owner.parent if isinstance(owner, Operation) else owner
    return block is not place.body.block


def _outer(place: _Place) -> SSAValue:
    """The value that a place has elements of, wherever these stand; the element itself if the body makes it."""
    value, body = place
    if body is not None and isinstance(value, BlockArgument) and value.block is body.block:
        return body.operand_of(value)[0]
    return value


def _has_shape(value: SSAValue) -> bool:
    return hasattr(value.type, "element_type")


def _rank(value: SSAValue) -> int:
    return len(getattr(value.type, "shape", ()))


def _are(dimensions: tuple[int | None, ...], rank: int, wanted: tuple[int, ...] | None) -> bool:
    return wanted is None or tuple(d + rank if d < 0 else d for d in wanted) == dimensions


def _is_constant(op: Operation) -> bool:
    facts = facts_of(op)
    return facts.rematerialised and not facts.allocates and not op.operands
