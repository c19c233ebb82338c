"""Attributes that are almost those of the device dialect, or stand where they have no meaning: nobody reads them.

Attributes of other dialects are left alone: a name without prefix counts if its value is a scope or a target, one
with another prefix if the whole name is close.
"""

from collections.abc import Iterable
from functools import lru_cache

from xdsl.ir import Attribute

from devscope.dialects.scope_attr import PLACED_BY_ATTR, SCOPE_ATTR, ScopeAttr
from devscope.dialects.target_attr import (
    CALL_ATTR,
    COMPILER_ATTR,
    COMPOSITE_ATTR,
    HOST_TARGET_ATTR,
    KERNEL_ATTR,
    NOALIAS_ATTR,
    STATE_ATTR,
    TARGET_ATTR,
    TargetAttr,
)

_DIALECT = "device"
_NAMES = (SCOPE_ATTR, TARGET_ATTR, HOST_TARGET_ATTR, KERNEL_ATTR, COMPILER_ATTR, STATE_ATTR, "device.primitive")
"""What users write on operations, functions, arguments and results."""
_OTHERS = (PLACED_BY_ATTR, CALL_ATTR, NOALIAS_ATTR, COMPOSITE_ATTR, "device.constant_group", "device.value")
"""What passes write."""
_OF_FUNCTIONS = (TARGET_ATTR, HOST_TARGET_ATTR, KERNEL_ATTR, COMPILER_ATTR, STATE_ATTR)
_MODULE = "builtin.module"
_OPERATIONS = ("device.on_device", "device.device_copy", "device.region", "device.launch")

_CLOSE, _CLOSE_SCOPE = 0.85, 0.75
"""How much of a name must agree (`difflib`): if its value may be anything, and if that is a scope or a target."""


def near_miss(name: str, value: Attribute) -> str | None:
    """What a user should know of an attribute of this name; None for most."""
    if name in _NAMES or name in _OTHERS:
        return None
    return _near_miss(name, isinstance(value, ScopeAttr | TargetAttr))


def misplaced(name: str, op_name: str, holders: str) -> str | None:
    """What a user should know of an attribute of this name on other than functions: ``holders``, in the plural."""
    if name in _OF_FUNCTIONS:
        instead = f"; '{SCOPE_ATTR}' places {holders}, and has a target as its third part"
        return f"'{name}' has no meaning here, only on functions{'' if op_name == _MODULE else instead}"
    if name == SCOPE_ATTR and op_name == _MODULE:
        return f"'{name}' has no meaning on a module; write it on functions, or say the default scope"
    return None


@lru_cache(maxsize=1024)
def _near_miss(name: str, is_placement: bool) -> str | None:
    prefix, dot, _ = name.partition(".")
    is_own = bool(dot) and prefix == _DIALECT
    if not (is_own or is_placement or dot):
        return None
    # Without a prefix, what follows it is compared, or all of ``device_scope``.
    short = not dot and not name.startswith(_DIALECT)
    names = {known.partition(".")[2] if short else known: known for known in (*_NAMES, *_OPERATIONS)}
    found = closest(name, names, _CLOSE_SCOPE if is_placement or is_own else _CLOSE)
    if found is None:
        return f"'{name}' has no meaning; legal names are: {', '.join(_NAMES)}" if is_own else None
    meant = names[found]
    what = "the operation " if meant in _OPERATIONS else ""
    return f"'{name}' has no meaning to devscope; did you mean {what}'{meant}'?"


def closest(name: str, names: Iterable[str], cutoff: float = _CLOSE_SCOPE) -> str | None:
    """The one of ``names`` that ``name`` is almost, if any: ``cutoff`` says how much of it must agree, up to 1."""
    from difflib import get_close_matches  # most programs do without

    return next(iter(get_close_matches(name, list(names), 1, cutoff)), None)
