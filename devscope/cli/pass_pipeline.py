"""Which passes the text of a pipeline means, with options of the types that their dataclass fields declare.

A plain name means devscope's pass of that name, else that of xDSL or a plugin, else MLIR's; ``devscope.``,
``xdsl.`` and ``mlir.`` in front force one. A name with parentheses is always MLIR's: ``func.func(cse)`` as in
mlir-opt, and ``mlir(...)`` or ``builtin.module(...)`` around any MLIR pipeline.
"""

import dataclasses
import difflib
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

from xdsl.passes import ModulePass

from devscope.cli import mlir_passes
from devscope.cli.pass_syntax import PassItem, PassOption, parse_options, parse_pipeline
from devscope.errors import Note, OptionError

PassTable: TypeAlias = Mapping[str, Callable[[], type[ModulePass]]]
"""Passes on xDSL's IR, by names with their owner's prefix."""

_MLIR_WRAPPERS = ("mlir", "builtin.module")
_OWNERS = ("devscope", "xdsl", "mlir")

_REQUIRED = dataclasses.MISSING
_WITHOUT_WORDS: dict[Any, Any] = {bool: True, types.NoneType: None}
_READERS: dict[Any, Callable[[str], Any]] = {
    bool: {"true": True, "false": False}.__getitem__,
    int: lambda word: int(word, 0),
    float: float,
}
_WORDS: dict[Any, str] = {bool: "true or false", int: "integer", float: "number", str: "text"}


@dataclass(frozen=True)
class Stage:
    """A pass that runs on the xDSL module, or an MLIR pass or nest of passes.

    ``element`` is what stands for the latter inside ``builtin.module(...)``.
    """

    name: str
    pass_: ModulePass | None = None
    element: str = ""


def parse_stages(text: str, passes: PassTable) -> list[Stage]:
    """The passes of a pipeline, with all names and options checked.

    Raises OptionError for a name that nobody knows (with the closest ones), for illegal options (with the
    legal ones) and for text that is not a pipeline (with its column).
    """
    stages: list[Stage] = []
    for item in parse_pipeline(text):
        stages += [_stage(item, passes)] if item.nested is None else _mlir_stages(item)
    return stages


def _mlir_stages(outer: PassItem) -> Iterator[Stage]:
    """One stage per pass of a wrapped pipeline, so that each can be timed and printed on its own."""
    waiting = [outer]
    while waiting:
        item = waiting.pop()
        if item.nested is None:
            yield _owned_stage(item, item.name, {}, ["mlir"])
        elif item.name in _MLIR_WRAPPERS:
            waiting += reversed(parse_pipeline(item.nested, item.inside))
        elif "." not in item.name and item.name != "any":
            raise OptionError(
                f"'{item.name}' is no operation, on which MLIR's passes could be nested",
                item.location,
                ["a pass has its options in braces: name{key=value}"],
            )
        else:
            element = f"{item.name}({item.nested})"
            mlir_passes.check_element(element, item.location)
            yield Stage(element, element=element)


def _stage(item: PassItem, passes: PassTable) -> Stage:
    owner, _, name = item.name.partition(".")
    if name and owner in _OWNERS:
        return _owned_stage(item, name, passes, [owner])
    return _owned_stage(item, item.name, passes, _OWNERS)


def _owned_stage(item: PassItem, name: str, passes: PassTable, owners: Sequence[str]) -> Stage:
    """The pass ``name`` of the first of ``owners`` that has one: there is a canonicalize and a cse of two."""
    for load in (passes.get(f"{owner}.{name}") for owner in owners):
        if load is not None:
            try:
                return Stage(name, make_pass(load(), item))
            except OptionError as error:
                if len(owners) > 1 and mlir_passes.is_pass(name):
                    error.notes += (Note(mlir_passes.SAME_NAME.format(name)),)
                raise
    if "mlir" in owners and mlir_passes.is_pass(name):
        return Stage(name, element=mlir_passes.schedulable_element(name, item.options, item.location))
    known = [full.partition(".")[2] for full in passes if full.partition(".")[0] in owners]
    known += mlir_passes.known_passes() if "mlir" in owners else []
    notes = ["all passes are listed by: devscope-opt --list-passes"]
    # Several owners have passes of one name.
    if close := difflib.get_close_matches(name, dict.fromkeys(known), n=3):
        notes.insert(0, f"did you mean {' or '.join(map(repr, close))}?")
    named = "devscope, xDSL or MLIR" if len(owners) > 1 else owners[0].replace("mlir", "MLIR")
    raise OptionError(f"no pass of {named} is called '{name}'", item.location, notes)


def make_pass(pass_type: type[ModulePass], item: PassItem) -> ModulePass:
    """Builds the pass with the options that the item gives it.

    ``-`` and ``_`` are equal in option names, as in xDSL. Raises OptionError for an option that the pass does
    not have, for a value of a wrong type, and for a value that the pass itself refuses: xDSL's ``from_spec`` would
    say neither where, nor what is legal.
    """
    declared = _declared(pass_type)
    arguments = {name: default for name, (_, default) in declared.items() if default is None}
    for option in parse_options(item.options or "", item.inside):
        name = option.key.replace("-", "_")
        if name not in declared:
            raise _unknown_option(pass_type, option)
        arguments[name] = _checked(pass_type.name, option, declared[name][0])
    for name, (_, default) in declared.items():
        if default is _REQUIRED and name not in arguments:
            message = f"pass '{pass_type.name}' needs the option '{_spelling(name)}'"
            raise OptionError(message, item.location, [_legal(pass_type)])
    try:
        return pass_type(**arguments)
    except OptionError as error:
        error.location = error.location or item.location
        raise
    except (TypeError, ValueError) as error:
        raise OptionError(f"pass '{pass_type.name}': {error}", item.location) from error


def describe_options(pass_type: type[ModulePass]) -> list[str]:
    """One text ``name: type = default`` per option, in the order of declaration."""
    return [
        f"{_spelling(name)}: {_type_text(annotation)}"
        + ("" if default is _REQUIRED else f" = {_value_text(default)}")
        for name, (annotation, default) in _declared(pass_type).items()
    ]


def _declared(pass_type: type[ModulePass]) -> dict[str, tuple[Any, Any]]:
    """Type and default (`_REQUIRED`: none) of each option."""
    hints = get_type_hints(pass_type)
    found: dict[str, tuple[Any, Any]] = {}
    for field in dataclasses.fields(pass_type):
        if field.name == "name" or not field.init:
            continue
        default: Any = field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        if default is _REQUIRED and types.NoneType in get_args(hints[field.name]):
            default = None  # as xDSL reads an optional field without a default
        found[field.name] = hints[field.name], default
    return found


def _spelling(name: str) -> str:
    return name.replace("_", "-")


def _legal(pass_type: type[ModulePass]) -> str:
    described = ", ".join(describe_options(pass_type))
    return f"options of '{pass_type.name}' are: {described}" if described else f"'{pass_type.name}' has no options"


def _unknown_option(pass_type: type[ModulePass], option: PassOption) -> OptionError:
    close = difflib.get_close_matches(_spelling(option.key), map(_spelling, _declared(pass_type)), n=1)
    notes = [*(f"did you mean '{name}'?" for name in close), _legal(pass_type)]
    return OptionError(f"pass '{pass_type.name}' has no option '{option.key}'", option.location, notes)


def _checked(pass_name: str, option: PassOption, annotation: Any) -> Any:
    try:
        return _convert(option.values, annotation)
    except (ValueError, KeyError):
        given = ",".join(option.values) or "no value"
        expected = f"option '{option.key}' of pass '{pass_name}' expects {_type_text(annotation)}"
        raise OptionError(f"{expected}, got {given}", option.location) from None


def _convert(words: Sequence[str], annotation: Any) -> Any:
    """The words as a value of the declared type. Raises ValueError or KeyError."""
    origin, legal = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        for member in sorted(legal, key=lambda member: member is str):  # text last: any word is a valid text
            with suppress(ValueError, KeyError):
                return _convert(words, member)
        raise ValueError
    if origin is tuple:
        elements = [legal[0]] * len(words) if legal[1:] == (Ellipsis,) else legal
        return tuple(_convert([word], element) for word, element in zip(words, elements, strict=True))
    if annotation in _WITHOUT_WORDS and not words:
        return _WITHOUT_WORDS[annotation]
    if annotation is str and words:
        return ",".join(words)  # a list separator inside of a text is part of the text
    (word,) = words
    if origin is Literal:
        return {str(value): value for value in legal}[word]
    return _READERS[annotation](word)


def _type_text(annotation: Any) -> str:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return " or ".join(_type_text(member) for member in arguments if member is not types.NoneType)
    if origin is Literal:
        return " or ".join(map(str, arguments))
    if origin is tuple:
        elements = dict.fromkeys(_type_text(element) for element in arguments if element is not Ellipsis)
        return f"list of {' or '.join(elements)}"
    return _WORDS.get(annotation, str(annotation))


def _value_text(value: Any) -> str:
    match value:
        case None | ():
            return "none"
        case bool():
            return str(value).lower()
        case str():
            return f'"{value}"'
        case tuple():
            return ",".join(map(_value_text, value))  # pyright: ignore[reportUnknownArgumentType]
        case _:
            return str(value)
