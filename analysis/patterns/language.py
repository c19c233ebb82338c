"""What a pattern is made of. `matcher` says when one matches.

A pattern is about a *value*: ``op`` about the results of an operation, ``wildcard`` about any. Patterns do not
change; a pattern may be a part of several others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Self

from xdsl.ir import Operation, SSAValue

from devscope.errors import OptionError

Answer = bool | str | None
"""True and None are yes, False is no, a text is no and why."""

Check = Callable[[SSAValue], Answer]
"""Looks at a value."""


def objection(answer: Answer, without: str) -> str | None:
    """Why an answer is no, ``without`` if it does not say; None if it is yes. Raises TypeError if neither."""
    if answer is None or answer is True:
        return None
    if answer is not False and not isinstance(answer, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"it answers {answer!r}, neither True nor False nor why not")
    return answer or without


@dataclass(frozen=True, eq=False)
class Pattern:
    """``name``: the value is kept under it; a name that stands twice means one value. ``checks`` must all hold."""

    name: str = field(default="", kw_only=True)
    checks: tuple[Check, ...] = field(default=(), kw_only=True)

    def named(self, name: str) -> Self:
        """This pattern; what it matches is ``match[name]``."""
        return replace(self, name=name)

    def where(self, check: Check) -> Self:
        """This pattern, for values that ``check`` says yes to."""
        return replace(self, checks=(*self.checks, check))

    def has_type(self, element: str | None = None, rank: int | None = None, static: bool = False) -> Self:
        """This pattern, for tensors of this element type (``"f32"``), this rank, and known sizes if ``static``."""
        return self.where(_TypeCheck(element, rank, static))

    def __or__(self, other: Pattern) -> Either:
        """What either matches; this one is tried first."""
        first = self.alternatives if isinstance(self, Either) and not (self.name or self.checks) else (self,)
        return Either((*first, other))

    def optional(self, step: Callable[[Pattern], Pattern]) -> Either:
        """What ``step`` makes of this pattern if that matches, else this pattern."""
        return step(self) | self

    def parts(self) -> Sequence[Pattern]:
        """The patterns that this one is made of, in order."""
        return ()

    def text(self) -> str:
        """The pattern for messages."""
        return self.name or "anything"


@dataclass(frozen=True)
class _TypeCheck:
    element: str | None
    rank: int | None
    static: bool

    def __call__(self, value: SSAValue) -> bool | str:
        from xdsl.dialects.builtin import DYNAMIC_INDEX, ShapedType

        type_ = value.type
        if self.element is not None and str(getattr(type_, "element_type", type_)) != self.element:
            return f"{type_} is not of {self.element}"
        if self.rank is not None and (not isinstance(type_, ShapedType) or type_.get_num_dims() != self.rank):
            return f"{type_} is not of rank {self.rank}"
        if self.static and (not isinstance(type_, ShapedType) or DYNAMIC_INDEX in type_.get_shape()):
            return f"the sizes of {type_} are not all known"
        return True


@dataclass(frozen=True, eq=False)
class Wildcard(Pattern):
    """Any value. What makes it is no part of the match."""


@dataclass(frozen=True, eq=False)
class Constant(Pattern):
    """A constant, or a tensor that is filled with one; all of its elements are ``value`` unless that is None."""

    value: float | None = None

    def text(self) -> str:
        return "a constant" if self.value is None else f"the constant {self.value:g}"


@dataclass(frozen=True, eq=False)
class Op(Pattern):
    """An operation. ``names`` may have ``*`` in them; operands beyond ``operands`` may be anything."""

    names: tuple[str, ...]
    operands: tuple[Pattern, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    commutative: bool = False
    result: int = 0

    def parts(self) -> Sequence[Pattern]:
        return self.operands

    def text(self) -> str:
        return " or ".join(f"'{name}'" for name in self.names)


@dataclass(frozen=True, eq=False)
class Elementwise(Pattern):
    """An operation of `elements.KINDS` on all elements, however it is written."""

    kind: str
    operands: tuple[Pattern, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def parts(self) -> Sequence[Pattern]:
        return self.operands

    def text(self) -> str:
        return f"elementwise {self.kind}"


@dataclass(frozen=True, eq=False)
class Broadcast(Pattern):
    """``operand`` along some dimensions, which are those of its own: ``(-1,)`` for a vector along the last."""

    operand: Pattern
    dimensions: tuple[int, ...] | None = None

    def parts(self) -> Sequence[Pattern]:
        return (self.operand,)

    def text(self) -> str:
        return f"{self.operand.text()}, broadcast"


@dataclass(frozen=True, eq=False)
class Either(Pattern):
    """The first of ``alternatives`` that matches."""

    alternatives: tuple[Pattern, ...]

    def parts(self) -> Sequence[Pattern]:
        return self.alternatives

    def text(self) -> str:
        return " or ".join(pattern.text() for pattern in self.alternatives)


@dataclass(frozen=True, eq=False)
class OneOrMore(Pattern):
    """``step`` of ``start``, of that again, and so on: as often as it matches."""

    step: Callable[[Pattern], Pattern]
    start: Pattern
    link: Pattern = field(init=False)
    """``step`` of ``start`` or of itself."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "link", self.step(Either((Again(self), self.start))))
        if Again in map(type, of_the_same_value(self.link)):
            raise OptionError(
                "a step of one_or_more adds no operation", notes=["write such as: lambda x: op('math.tanh', x)"]
            )

    def parts(self) -> Sequence[Pattern]:
        return (self.link,)

    def text(self) -> str:
        return f"one or more of {self.link.text()}"


@dataclass(frozen=True, eq=False)
class Again(Pattern):
    """The repetition inside of itself."""

    whole: OneOrMore

    def text(self) -> str:
        return "another"


def of_the_same_value(pattern: Pattern) -> list[Pattern]:
    """``pattern``, and those of its parts that may be about the very value that it is about."""
    found = [pattern]
    for one in found:
        match one:
            case Either():
                found += one.alternatives
            case Broadcast():
                found.append(one.operand)
            case OneOrMore():
                found.append(one.link)
            case Dominated():
                found.append(one.child)
            case _:
                pass
    return found


@dataclass(frozen=True, eq=False)
class Dominated(Pattern):
    """``child``, ``parent``, and between them only what matches ``path``: all ways from the parent lead to the
    child.
    """

    parent: Pattern
    path: Pattern
    child: Pattern

    def parts(self) -> Sequence[Pattern]:
        return (self.child, self.path, self.parent)

    def text(self) -> str:
        return self.child.text()


@dataclass(frozen=True, eq=False)
class Custom(Pattern):
    """What ``function`` says of the operation that makes a value: the operations that belong to the match, and
    values by name; or, in a text, why it does not match."""

    function: Callable[[Operation], tuple[Sequence[Operation], Mapping[str, SSAValue]] | str]
    description: str = "an operation"
    roots: tuple[str, ...] = ("*",)
    """The names of operations that it may match."""

    def text(self) -> str:
        return self.description


def wildcard() -> Wildcard:
    """Any value; what makes it is no part of the match."""
    return Wildcard()


def constant(value: float | None = None) -> Constant:
    """A constant, or a tensor filled with one; with ``value``, one whose elements all are that."""
    return Constant(value)


def op(
    names: str | Sequence[str],
    *operands: Pattern,
    attributes: Mapping[str, Any] | None = None,
    commutative: bool = False,
    result: int = 0,
) -> Op:
    """Result ``result`` of an operation of this name, or of one of these names, which may have ``*`` in them.

    ``operands``: patterns of the first operands; others may be anything. ``attributes``: what attributes must be,
    as Python values, or functions that say whether a Python value is right. ``commutative``: the first two
    operands may change places.
    """
    found = (names,) if isinstance(names, str) else tuple(names)
    if not found or not all(isinstance(one, str) and "." in one for one in found):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise OptionError(
            f"{names!r} is no name of an operation",
            notes=["write DIALECT.NAME, such as 'linalg.matmul' or 'linalg.pooling_*'"],
        )
    if commutative and len(operands) < 2:
        raise OptionError("a commutative operation has at least two operands", notes=["give patterns of both"])
    return Op(found, operands, dict(attributes or {}), commutative, result)


def elementwise(kind: str, *operands: Pattern, attributes: Mapping[str, Any] | None = None) -> Elementwise:
    """An operation on all elements: ``"add"``, ``"max"``, ``"exp"``, ..., see `elements.KINDS`.

    Matches the operations of linalg, StableHLO and TOSA, those of arith and math on tensors, and what stands in
    the body of a ``linalg.generic``, alone or with others. Operands have the result's shape, unless `broadcast`
    says otherwise; those of commutative kinds may change places.
    """
    from devscope.analysis.patterns.elements import KINDS

    if kind not in KINDS:
        raise OptionError(f"'{kind}' is no elementwise operation", notes=[f"legal: {', '.join(sorted(KINDS))}"])
    count = KINDS[kind].operands
    if len(operands) != count:
        raise OptionError(f"elementwise '{kind}' has {count} operands, not {len(operands)}")
    return Elementwise(kind, operands, dict(attributes or {}))


def broadcast(operand: Pattern, dimensions: Sequence[int] | None = None) -> Broadcast:
    """A tensor of fewer dimensions, repeated along the others; a scalar; or one of all dimensions, as it is.

    ``dimensions``: those of the result that the operand has, negative ones from the end.
    """
    return Broadcast(operand, None if dimensions is None else tuple(dimensions))


_COUNT = count()
"""Of values that patterns name by themselves."""


def relu(operand: Pattern) -> Pattern:
    """``max(x, 0)``, also written as a comparison and a choice that keeps NaNs."""
    x, zero = operand.named(operand.name or f"_relu{next(_COUNT)}"), constant(0.0)
    greater = elementwise("cmp", x, zero, attributes={"predicate": _keeps_nans})
    return elementwise("max", x, zero) | elementwise("select", greater, x, zero)


def _keeps_nans(predicate: object) -> bool:
    return predicate in (9, "ugt")  # of arith.cmpf; not uge, which keeps -0.0


def one_or_more(step: Callable[[Pattern], Pattern], start: Pattern) -> OneOrMore:
    """``step(start)``, ``step(step(start))``, and so on; the longest such chain."""
    return OneOrMore(step, start)


def dominated(parent: Pattern, path: Pattern, child: Pattern) -> Dominated:
    """All that lies between ``parent`` and ``child``, if every operation there matches ``path``."""
    return Dominated(parent, path, child)
