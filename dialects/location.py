"""From xDSL locations to the ``file:line:col`` that error messages show."""

import re
from collections.abc import Callable, Iterable, Iterator

from xdsl.dialects.builtin import ArrayAttr, CallSiteLoc, FileLineColLoc, FusedLoc, NameLoc
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from devscope.errors import Note, SourceLocation, VerifyError


def source_location(op: Operation) -> SourceLocation | None:
    """Where ``op`` stands in its source file, or None when its location does not say."""
    return decode_location(op.location)


def note_at(op: Operation, text: str) -> Note:
    """A note that shows where ``op`` stands."""
    return Note(text, source_location(op))


def error_at(op: Operation, message: str, *notes: str) -> VerifyError:
    """A `VerifyError` that shows where ``op`` stands."""
    return VerifyError(message, source_location(op), notes)


def value_location(value: SSAValue) -> SourceLocation | None:
    """Where ``value`` is defined: its operation, or the block argument itself.

    A block argument without a position of its own stands where the operation that holds its block does.
    """
    owner = value.owner
    if isinstance(owner, Operation):
        return source_location(owner)
    own = decode_location(value.location) if isinstance(value, BlockArgument) else None
    parent = owner.parent_op()
    return source_location(parent) if own is None and parent is not None else own


def decode_location(location: Attribute) -> SourceLocation | None:
    """The first file position in ``location``, depth first, or None.

    A call site gives the callee's position (where the operation is written), a name the position that
    it names, a fusion its first part that has one.
    """
    for leaf in _leaves(location):
        if isinstance(leaf, FileLineColLoc):
            return _position(leaf)
        # Another library's may decode itself, as the MLIR bridge's does. It is looked up by name: to check for a
        # protocol takes fifty times as long.
        decode: Callable[[], tuple[str, int, int] | None] | None = getattr(leaf, "file_line_col", None)
        if decode is not None and (position := decode()) is not None:
            return SourceLocation(*position)
    return None


def location_parts(location: Attribute) -> Iterator[str | SourceLocation]:
    """The names and positions in ``location``: a name before what it names, a callee before its caller."""
    for leaf in _leaves(location):
        match leaf:
            case FileLineColLoc():
                yield _position(leaf)
            case NameLoc():
                yield leaf.desc.data
            case _:
                inside: Callable[[], Iterable[str | tuple[str, int, int]]] | None = getattr(leaf, "parts", None)
                for part in inside() if inside is not None else ():
                    yield part if isinstance(part, str) else SourceLocation(*part)


def _leaves(location: Attribute) -> Iterator[Attribute]:
    """What ``location`` is made of, depth first: positions, names before what they name, and other libraries'."""
    stack = [location]
    while stack:
        current = stack.pop()
        match current:
            case CallSiteLoc():
                stack += (current.caller, current.callee)
            case FusedLoc(locations=ArrayAttr(data=parts)):
                stack += reversed(parts)
            case NameLoc():
                yield current
                stack.append(current.location)
            case _:
                yield current


def _position(location: FileLineColLoc) -> SourceLocation:
    return SourceLocation(location.filename.data, location.line.data, location.column.data)


KIND_MARK = "devscope.kind:"
"""Begins names in locations that say what an operation was made of, ``aten.linear``."""


def source_parts(op: Operation) -> list[str | SourceLocation]:
    """The names and positions that the source has for ``op``; what is called comes before its callers."""
    return [part for part in location_parts(op.location) if not _is_kind(part)]


def source_kinds(op: Operation) -> list[str]:
    """The names of what ``op`` was made of, what the source has last: ``["aten.mm", "aten.linear"]``."""
    return [
        part.removeprefix(KIND_MARK)
        for part in location_parts(op.location)
        if isinstance(part, str) and _is_kind(part)
    ]


def source_name(op: Operation) -> str | None:
    """What the source calls ``op``: the path of a module, the name of a node or a scope. None: it has no name."""
    for part in location_parts(op.location):  # as they come: the first ones decide
        if isinstance(part, SourceLocation):
            return None
        if not part.startswith((PRAGMA, KIND_MARK)):
            return part
    return None


def _is_kind(part: str | SourceLocation) -> bool:
    return isinstance(part, str) and part.startswith(KIND_MARK)


PRAGMA = "devscope.on"
"""``devscope.on(DEVICE)`` is what names in locations say of such a ``with``."""

_PRAGMA = re.compile(r"devscope\.on\(([^(),]*)(?:, ([^()]*))?\)")


def pragma_in(parts: Iterable[str | SourceLocation]) -> tuple[str, str] | None:
    """The device of the innermost ``with devscope.on(DEVICE)`` that names in a location tell of, and who says so.

    Ways in write ``devscope.on(DEVICE, WHO)`` for what the program says in another way.
    """
    for part in parts:
        if isinstance(part, str) and (found := _PRAGMA.findall(part)):
            device, who = found[-1]
            return device, who or f"devscope.on({device!r})"
    return None
