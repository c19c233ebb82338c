"""Options of an xDSL-style pass: text to the type that the pass's dataclass field declares."""

from __future__ import annotations

import dataclasses
import difflib
import types
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin, get_type_hints

from devscope.cli.pass_syntax import PassItem, PassOption, parse_options
from devscope.errors import OptionError

if TYPE_CHECKING:
    from xdsl.passes import ModulePass


def make_pass(pass_type: type[ModulePass], item: PassItem) -> ModulePass:
    """Builds the pass with the options that the item gives it.

    ``-`` and ``_`` are equal in option names, as in xDSL. Raises OptionError for an option that the pass does
    not have, for a value of a wrong type, and for a value that the pass itself refuses.
    """
    given = parse_options(item.options or "", item.options_offset)
    fields = _fields(pass_type)
    arguments: dict[str, Any] = {}
    for option in given:
        name = option.key.replace("-", "_")
        if name not in fields:
            raise _unknown_option(pass_type, option, fields)
        arguments[name] = _convert(pass_type, option, fields[name].annotation)
    for name, field in fields.items():
        if name not in arguments and field.required:
            raise OptionError(
                f"pass '{pass_type.name}' needs the option '{_spelling(name)}'",
                item.location,
                [_legal(pass_type.name, fields)],
            )
    try:
        return pass_type(**arguments)
    except OptionError as error:
        raise OptionError(error.message, error.location or item.location, error.notes) from error
    except (TypeError, ValueError) as error:
        raise OptionError(f"pass '{pass_type.name}': {error}", item.location) from error


def describe_options(pass_type: type[ModulePass]) -> list[str]:
    """One text ``name: type = default`` per option, in the order of declaration."""
    return [f"{_spelling(name)}: {field.describe()}" for name, field in _fields(pass_type).items()]


@dataclasses.dataclass(frozen=True)
class _Field:
    annotation: Any
    required: bool
    default: Any

    def describe(self) -> str:
        text = _type_text(self.annotation)
        if self.required:
            return text
        return f"{text} = {_value_text(self.default)}"


def _fields(pass_type: type[ModulePass]) -> dict[str, _Field]:
    hints = get_type_hints(pass_type)
    found: dict[str, _Field] = {}
    for field in dataclasses.fields(pass_type):
        if field.name == "name" or not field.init:
            continue
        default: Any = field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        required = default is dataclasses.MISSING
        if required and types.NoneType in get_args(hints[field.name]):
            # xDSL reads an optional field without a default as None.
            required, default = False, None
        found[field.name] = _Field(hints[field.name], required, default)
    return found


def _spelling(name: str) -> str:
    return name.replace("_", "-")


def _legal(pass_name: str, fields: dict[str, _Field]) -> str:
    if not fields:
        return f"'{pass_name}' has no options"
    described = ", ".join(f"{_spelling(name)}: {field.describe()}" for name, field in fields.items())
    return f"options of '{pass_name}' are: {described}"


def _unknown_option(pass_type: type[ModulePass], option: PassOption, fields: dict[str, _Field]) -> OptionError:
    notes = [_legal(pass_type.name, fields)]
    close = difflib.get_close_matches(option.key.replace("_", "-"), [_spelling(name) for name in fields], n=1)
    if close:
        notes.insert(0, f"did you mean '{close[0]}'?")
    return OptionError(f"pass '{pass_type.name}' has no option '{option.key}'", option.location, notes)


def _convert(pass_type: type[ModulePass], option: PassOption, annotation: Any) -> Any:
    for alternative in _alternatives(annotation):
        try:
            return _convert_values(option.values, alternative)
        except ValueError:
            continue
    given = ",".join(option.values) if option.values else "no value"
    raise OptionError(
        f"option '{option.key}' of pass '{pass_type.name}' expects {_type_text(annotation)}, got {given}",
        option.location,
    )


def _alternatives(annotation: Any) -> list[Any]:
    """The members of a union, text last: any word is a valid text."""
    if get_origin(annotation) in (Union, types.UnionType):
        return sorted(get_args(annotation), key=lambda member: member is str)
    return [annotation]


def _convert_values(values: Sequence[str], annotation: Any) -> Any:
    if get_origin(annotation) is tuple:
        return _convert_tuple(values, get_args(annotation))
    if not values:
        if annotation is bool:
            return True
        if annotation is types.NoneType:
            return None
        raise ValueError
    if annotation is str:
        # A list separator inside a text option is part of the text.
        return ",".join(values)
    if len(values) != 1:
        raise ValueError
    return _convert_scalar(values[0], annotation)


def _convert_tuple(values: Sequence[str], elements: Sequence[Any]) -> tuple[Any, ...]:
    if len(elements) == 2 and elements[1] is Ellipsis:
        elements = [elements[0]] * len(values)
    if len(elements) != len(values):
        raise ValueError
    return tuple(_first_scalar(value, element) for value, element in zip(values, elements, strict=True))


def _first_scalar(value: str, annotation: Any) -> Any:
    for alternative in _alternatives(annotation):
        try:
            return _convert_scalar(value, alternative)
        except ValueError:
            continue
    raise ValueError


def _convert_scalar(value: str, annotation: Any) -> Any:
    if get_origin(annotation) is Literal:
        matches = [legal for legal in get_args(annotation) if str(legal) == value]
        if not matches:
            raise ValueError
        return matches[0]
    readers: dict[Any, Callable[[str], Any]] = {bool: _bool, int: _int, float: float, str: str}
    if annotation not in readers:
        raise ValueError
    return readers[annotation](value)


def _bool(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError
    return text == "true"


def _int(text: str) -> int:
    return int(text, 0)


def _type_text(annotation: Any) -> str:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return " or ".join(_type_text(member) for member in arguments if member is not types.NoneType)
    if origin is Literal:
        return " or ".join(str(legal) for legal in arguments)
    if origin is tuple:
        elements = [argument for argument in arguments if argument is not Ellipsis]
        return f"list of {' or '.join(dict.fromkeys(_type_text(element) for element in elements))}"
    words = {bool: "true or false", int: "integer", float: "number", str: "text"}
    return words.get(annotation, str(annotation))


def _value_text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, tuple):
        return ",".join(_value_text(element) for element in value) or "none"
    return str(value)
