"""JSON of strangers as records: dataclasses whose fields have exactly the types that they declare."""

import json
from functools import cache
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

_MOST = 2**63


def read_json(data: bytes) -> Any:
    """The value of a JSON text. Raises :class:`ValueError`, for a key that occurs twice and for NaN too."""
    return json.loads(data.decode(), object_pairs_hook=_unique, parse_constant=_refuse)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name occurs twice")
    return found


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number")


_types = cache(get_type_hints)


def decode(type_: Any, value: Any) -> Any:
    """What JSON made of a value of this type, which may be a dataclass; integers have at most 64 bits.

    Raises :class:`TypeError` for values of other types, missing fields and unknown ones.
    """
    kind = type(value)
    if kind is type_ and kind in (int, str, bool, bytes):  # most of them
        if kind is int and not -_MOST <= value < _MOST:
            raise TypeError("a number has more than 64 bits")
        return value
    if hasattr(type_, "__dataclass_fields__") and kind is dict:
        types = _types(type_)
        return type_(**{name: decode(types[name], item) for name, item in value.items()})
    origin, arguments = get_origin(type_), get_args(type_)
    if origin is list and kind is list:
        return [decode(arguments[0], item) for item in value]
    if origin is tuple and kind is list:
        return tuple(decode(part, item) for part, item in zip(arguments, value, strict=True))
    if (origin is dict or type_ is dict) and kind is dict:
        return {key: decode(arguments[1], item) for key, item in value.items()}
    if origin is UnionType and kind in arguments:
        return decode(kind, value) if value is not None else None
    if type_ is not Any:
        raise TypeError(f"{value!r:.80} is not of type {getattr(type_, '__name__', type_)}")
    return value
