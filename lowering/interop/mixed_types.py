"""Operations of the ``device`` dialect whose results have several types, in MLIR.

IRDL, through which MLIR knows the dialect, gives the values of a list one type. So ``device.region``,
``device.yield`` and ``device.launch`` have twins, which MLIR does not verify: in MLIR, an operation with a list of
several types is its twin. xDSL has the operations themselves, and verifies them; so has text that devscope reads
and prints. The names are equally long: positions in text stay.

The twins are called like operations of ``rocdl``, one of the dialects of MLIR that let operations pass which they
do not define. An operation with one region in a dialect that MLIR does not know may be a symbol table
(``SymbolTable::getNearestSymbolTable``): every symbol used in the region, such as a function called there, would
be looked up in the region only, and not be found.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdsl.ir import Attribute, Operation

_PREFIX = "rocdl._"
_TWINS = {f"device.{name}": _PREFIX + name for name in ("region", "yield", "launch")}
ORIGINALS = {twin: name for name, twin in _TWINS.items()}
"""The operations by the names of their twins."""
LAUNCHES = frozenset({"device.launch", _TWINS["device.launch"]})
"""The names of a launch in MLIR."""

_ORIGINAL = re.compile(r'"device\.((?:region|yield|launch)"\s*\()')
_TWIN = re.compile(r'"rocdl\._((?:region|yield|launch)"\()')
_REFUSAL = re.compile(r"expected '.*' but got '.*'")


def name_in_mlir(op: Operation, name: str) -> str:
    """The name under which MLIR holds ``op``, which is called ``name``."""
    if name not in _TWINS:
        return name
    values = {"yield": op.operands, "launch": op.results[1:]}.get(name.removeprefix("device."), op.results)
    return name if _is_one([value.type for value in values]) else _TWINS[name]


def _is_one(types: Sequence[Attribute]) -> bool:
    return all(type_ == types[0] for type_ in types)


def refuses_a_type(message: str) -> bool:
    """Whether MLIR's error ``message`` may be about an operation that it takes as its twin only."""
    return _REFUSAL.fullmatch(message) is not None


def with_twins(text: str) -> str:
    """``text`` with the twins of all operations that have one."""
    return _ORIGINAL.sub(r'"rocdl._\1', text)


def without_twins(text: str) -> str:
    """What MLIR printed, with the operations instead of their twins."""
    return _TWIN.sub(r'"device.\1', text)


def in_message(message: str) -> str:
    """What MLIR says, with the names of the operations instead of those of their twins."""
    return message.replace(_PREFIX, "device.")
