"""Operations of the ``device`` dialect whose results have several types, in MLIR.

IRDL, through which MLIR knows the dialect, gives the values of a list one type. So ``device.region``,
``device.yield`` and ``device.launch`` have twins in a dialect ``hetero``, which MLIR does not know and so does not
verify: in MLIR, an operation with a list of several types is its twin. xDSL has the operations themselves, and
verifies them; so has text that devscope reads and prints. The names are equally long: positions in text stay.
"""

import re
from collections.abc import Sequence

from xdsl.ir import Attribute, Operation

_TWINS = {f"device.{name}": f"hetero.{name}" for name in ("region", "yield", "launch")}
ORIGINALS = {twin: name for name, twin in _TWINS.items()}
"""The operations by the names of their twins."""

_ORIGINAL = re.compile(r'"device(\.(?:region|yield|launch)"\s*\()')
_TWIN = re.compile(r'"hetero(\.(?:region|yield|launch)"\()')
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
    return _ORIGINAL.sub(r'"hetero\1', text)


def without_twins(text: str) -> str:
    """What MLIR printed, with the operations instead of their twins."""
    return _TWIN.sub(r'"device\1', text)
