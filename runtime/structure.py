"""How the arguments and results of an entry nest, where they are more than arrays: JAX's pytrees, in JSON.

A tree is ``"*"`` for an array, null for None, ``{"tuple": [tree, ...]}``, ``{"list": [...]}``,
``{"dict": [[key, tree], ...]}`` or ``{"namedtuple": [name, [field, ...], [tree, ...]]}``.
``{"constant": [value]}`` is a number or a text that the program was compiled for, ``{"enum": [class, member]}`` a
member of an enumeration. The arrays of a tree, in this order, are what the entry takes or gives.
"""

from __future__ import annotations

import collections
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from typing import Any

import numpy as np

from devscope.errors import ArgumentError, ExecutableFormatError
from devscope.runtime.program import Entry, Program

LEAF = "*"
CONVERSIONS = {
    *("int64:int32", "uint64:uint32", "float64:float32", "complex128:complex64"),
    *("bool:bool", "int:int32", "int:int64", "float:float32", "float:float64"),
    *("complex:complex64", "complex:complex128"),
}
"""What JAX makes of arguments before it traces: of arrays of 64 bits where ``jax_enable_x64`` is not set, and of
Python's numbers."""
Tree = Any
_KEYS = (str, int, float, bool)


@dataclass(frozen=True)
class Structure:
    """Of one entry: parameters by name, the tree of each, and that of what it returns.

    The first ``positional`` parameters can be given by position. ``conversions`` has one of `CONVERSIONS`, or an
    empty text, for each array.
    """

    parameters: list[str]
    inputs: list[Tree]
    output: Tree
    positional: int
    conversions: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        """Raises ValueError for what is no structure, as a damaged file may have."""
        if len(self.parameters) != len(self.inputs) or not 0 <= self.positional <= len(self.inputs):
            raise ValueError("a structure has other parameters than trees")
        for tree in (*self.inputs, self.output):
            check_tree(tree)
        if self.conversions and len(self.conversions) != self.counts[0]:
            raise ValueError("a structure has other arrays than conversions")
        if not set(self.conversions) <= {"", *CONVERSIONS}:
            raise ValueError("a structure has an unknown conversion")

    @property
    def counts(self) -> tuple[int, int]:
        """How many arrays it takes and gives."""
        return sum(map(count_leaves, self.inputs)), count_leaves(self.output)

    def arrays(self, name: str, given: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        """The arrays in the arguments of a call, in order. Raises ArgumentError."""
        if len(given) > self.positional:
            raise _error(name, f"takes {self.positional} arguments by position, got {len(given)}", self)
        values = dict(zip(self.parameters, given, strict=False))
        for key, value in named.items():
            if key not in self.parameters:
                raise _error(name, f"has no argument '{key}'", self)
            if key in values:
                raise _error(name, f"got argument '{key}' twice: by position and by name", self)
            values[key] = value
        if missing := [repr(key) for key in self.parameters if key not in values]:
            raise _error(name, f"lacks {', '.join(missing)}", self)
        found: list[Any] = []
        for key, tree in zip(self.parameters, self.inputs, strict=True):
            _flatten(tree, values[key], key, found)
        for number, conversion in enumerate(self.conversions):
            if conversion:
                found[number] = _converted(found[number], number, *conversion.split(":"))
        return found

    def result(self, arrays: Sequence[Any]) -> Any:
        """What a call returns whose results are ``arrays``."""
        return build(self.output, iter(arrays))


def structures_of(program: Program, entries: Mapping[str, Entry]) -> dict[str, Structure]:
    """Of ``entries`` whose arguments or results nest. Raises ExecutableFormatError for what is no structure."""
    found: dict[str, Structure] = {}
    try:
        for name, fields in program.report.get("structures", {}).items():
            entry, found[name] = entries[name], Structure(**fields)
            if found[name].counts != (len(entry.inputs), len(entry.outputs)):
                raise ValueError(f"the structure of '{name}' has other arrays than the entry")
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise ExecutableFormatError(f"the program says wrongly how arguments nest: {error}") from None
    return found


def check_tree(tree: Tree) -> None:
    """Raise ValueError unless ``tree`` is one."""
    if tree is None or tree == LEAF:
        return
    kind, parts = _node(tree)
    if kind == "dict" and _are_pairs(parts):
        if not all(isinstance(key, _KEYS) for key, _ in parts):
            raise ValueError("a key of a structure is neither text nor a number")
        children = [child for _, child in parts]
    elif kind == "namedtuple" and len(parts) == 3 and _are_lists(parts[1:]) and len(parts[1]) == len(parts[2]):
        _named_type(parts[0], tuple(parts[1]))
        children = parts[2]
    elif kind in ("tuple", "list"):
        children = parts
    elif _is_constant(kind, parts):
        children = []
    else:
        raise ValueError(f"a structure has a wrong part of kind {kind!r}")
    for child in children:
        check_tree(child)


def _is_constant(kind: str, parts: list[Any]) -> bool:
    if kind == "enum":
        return len(parts) == 2 and all(isinstance(part, str) for part in parts)
    return kind == "constant" and len(parts) == 1 and isinstance(parts[0], _KEYS)


def _node(tree: Any) -> tuple[str, Any]:
    items: Any = list(tree.items()) if isinstance(tree, dict) else []  # pyright: ignore[reportUnknownArgumentType]
    if len(items) != 1 or not isinstance(items[0][1], list):
        raise ValueError("a part of a structure is no tree")
    return items[0]


def _are_lists(parts: Any) -> bool:
    return all(isinstance(part, list) for part in parts)


def _are_pairs(parts: Any) -> bool:
    return _are_lists(parts) and all(len(part) == 2 for part in parts)


def count_leaves(tree: Tree) -> int:
    """How many arrays a tree has."""
    if tree is None or tree == LEAF:
        return int(tree == LEAF)
    return sum(count_leaves(child) for _, child in _children(tree))


def leaf_paths(tree: Tree, path: str) -> Iterator[str]:
    """Where each array of a tree is, as Python writes it: ``params['w'][0]``."""
    if tree == LEAF:
        yield path
    elif tree is not None:
        for key, child in _children(tree):
            yield from leaf_paths(child, path + key)


def _children(tree: Tree) -> list[tuple[str, Tree]]:
    ((kind, parts),) = tree.items()
    if kind in ("constant", "enum"):
        return []
    if kind == "dict":
        return [(f"[{key!r}]", child) for key, child in parts]
    if kind == "namedtuple":
        return [(f".{field}", child) for field, child in zip(parts[1], parts[2], strict=True)]
    return [(f"[{number}]", child) for number, child in enumerate(parts)]


def _converted(value: Any, number: int, given: str, dtype: str) -> Any:
    """As JAX does it. Raises ArgumentError for integers that do not fit, some of which JAX would wrap around."""
    found = getattr(value, "dtype", None)
    if found == dtype or (found != given and type(value).__name__ != given):
        return value
    array = np.asarray(value)
    if array.dtype.kind in "iu" and array.size:
        limits = np.iinfo(dtype)
        if array.min() < limits.min or array.max() > limits.max:
            raise ArgumentError(
                f"argument {number}: the program was traced for {dtype}, and an element does not fit",
                notes=["JAX has 64-bit types where jax.config.update('jax_enable_x64', True) was called before"],
            )
    return array.astype(dtype)


def _flatten(tree: Tree, value: Any, path: str, found: list[Any]) -> None:
    """Append the arrays in ``value``. Raises ArgumentError, which says where it is not as ``tree`` says."""
    if tree == LEAF:
        found.append(value)
        return
    if tree is None:
        if value is not None:
            raise _mismatch(path, "None", value)
        return
    ((kind, parts),) = tree.items()
    values: list[Any]
    if kind in ("constant", "enum"):
        _require_constant(path, kind, parts, value)
        return
    if kind == "dict":
        keys = [key for key, _ in parts]
        if not isinstance(value, Mapping):
            raise _mismatch(path, "a dictionary", value)
        given: Any = value
        if set(given) != set(keys):
            wanted, has = (sorted(some, key=repr) for some in (keys, given))
            raise ArgumentError(f"argument '{path}': expected the keys {wanted}; the keys are {has}")
        values = [given[key] for key in keys]
    elif kind == "namedtuple" and all(hasattr(value, field) for field in parts[1]):
        values = [getattr(value, field) for field in parts[1]]  # data classes, too
    elif isinstance(value, list if kind == "list" else tuple):
        values = list(value)  # pyright: ignore[reportUnknownArgumentType]
    else:
        raise _mismatch(path, "a list" if kind == "list" else "a tuple", value)
    children = _children(tree)
    if len(children) != len(values):
        raise ArgumentError(f"argument '{path}': expected {len(children)} parts, got {len(values)}")
    for (key, child), part in zip(children, values, strict=True):
        _flatten(child, part, path + key, found)


def _require_constant(path: str, kind: str, wanted: list[Any], value: Any) -> None:
    number = value.item() if hasattr(value, "item") and not getattr(value, "ndim", 0) else value
    if kind == "enum":
        is_same = isinstance(value, Enum) and member_of(value) == wanted
    else:
        is_same = type(number) is type(wanted[0]) and number == wanted[0]
    if not is_same:
        shown = ".".join(wanted) if kind == "enum" else repr(wanted[0])
        raise ArgumentError(
            f"argument '{path}': the program was compiled for {shown}, got {value!r}",
            notes=[
                "numbers, text and members of enumerations are constants of a program: compile it for other ones"
            ],
        )


def member_of(value: Enum) -> list[str]:
    """What a tree has of a member of an enumeration: its class and its name."""
    return [type(value).__qualname__, value.name]


def _mismatch(path: str, wanted: str, value: Any) -> ArgumentError:
    return ArgumentError(f"argument '{path}': expected {wanted}, got {type(value).__name__}")


def build(tree: Tree, leaves: Iterator[Any]) -> Any:
    """A tree with arrays in it."""
    if tree is None:
        return None
    if tree == LEAF:
        return next(leaves)
    ((kind, parts),) = tree.items()
    if kind == "constant":
        return parts[0]
    if kind == "dict":
        return {key: build(child, leaves) for key, child in parts}
    if kind == "namedtuple":
        return _named_type(parts[0], tuple(parts[1]))(*[build(child, leaves) for child in parts[2]])
    built = [build(child, leaves) for child in parts]
    return built if kind == "list" else tuple(built)


@cache
def _named_type(name: str, fields: tuple[str, ...]) -> Any:
    try:
        return collections.namedtuple(name, fields)  # pyright: ignore[reportUntypedNamedTuple]
    except (TypeError, ValueError) as error:
        raise ValueError(f"a structure has a named tuple without names: {error}") from None


def _error(name: str, what: str, structure: Structure) -> ArgumentError:
    return ArgumentError(f"'{name}' {what}", notes=[f"its arguments are: ({', '.join(structure.parameters)})"])
