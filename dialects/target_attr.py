"""`TargetAttr`, the attribute that says how to compile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn, Self

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, StringAttr, i1, i64
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import AttrConstraint, irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.utils.exceptions import VerifyException

from devscope.dialects.target import OptionValue, get_target_kind
from devscope.errors import OptionError

TARGET_ATTR = "device.target"
"""Name of the attribute that says what a function is compiled for."""

HOST_TARGET_ATTR = "device.host_target"
"""Name of the attribute that says what the host's part of a function for a device is compiled for."""

COMPILER_ATTR = "device.compiler"
"""Name of the attribute of functions that a backend compiles: the backend's name."""

COMPOSITE_ATTR = "device.composite"
"""Name of the attribute of functions made of one match of a backend's pattern: ``BACKEND.PATTERN``."""

KERNEL_ATTR = "device.kernel"
"""Name of the mark of functions that are launched: code of another device calls them."""

NOALIAS_ATTR = "device.noalias"
"""Name of the mark of functions that write no memory that an argument reaches."""

STATE_ATTR = "device.state"
"""Name of the attribute of public functions whose last arguments and results are kept from call to call: the
symbol of a function without arguments that returns what they are at first."""

CALL_ATTR = "device.call"
"""Name of the attribute of a call that says how the callee is reached: ``"launch"`` or ``"extern"``."""


def raise_verify_exception(error: OptionError) -> NoReturn:
    """Raise ``error`` as xDSL's attribute verifiers must: without a location and on one line."""
    raise VerifyException("; ".join((error.message, *error.notes))) from error


def parse_with_defaults(
    attribute: type[ParametrizedAttribute], parser: AttrParser, defaults: Sequence[Attribute | None], form: str
) -> Sequence[Attribute]:
    """The parameters of ``attribute``, where each that is left out at the end is that of ``defaults``.

    What `verify` has against them becomes an error of ``parser``: xDSL verifies an attribute after it was parsed,
    when its place in the source is no longer known. ``form`` says how the attribute is written.
    """
    start = parser.pos
    given = parser.parse_paramattr_parameters()
    parameters = [one for one in (*given, *defaults[len(given) :]) if one is not None]
    kinds = [definition.constr for _, definition in attribute.get_irdl_definition().parameters]
    if len(parameters) != len(kinds) or not all(map(AttrConstraint.verifies, kinds, parameters)):
        parser.raise_error(form, start, parser.pos)
    try:
        attribute.new(parameters)
    except VerifyException as error:
        parser.raise_error(str(error), start, parser.pos)
    return parameters


def _option_value(attribute: Attribute) -> OptionValue | Attribute:
    """The Python value of a target option, or ``attribute`` itself when it is of no legal type."""
    match attribute:
        case StringAttr(data=text):
            return text
        case IntegerAttr() if attribute.type == i1:
            return bool(attribute.value.data)
        case IntegerAttr() if attribute.type == i64:
            return attribute.value.data
        case _:
            return attribute


def _option_attribute(value: OptionValue) -> Attribute:
    match value:
        case bool():
            return IntegerAttr(int(value), i1)
        case int():
            return IntegerAttr(value, i64)
        case str():
            return StringAttr(value)


@irdl_attr_definition
class TargetAttr(ParametrizedAttribute):
    """How to compile: a registered target kind and the options that differ from their defaults.

    ```mlir
    #device.target<"cuda", {arch = "sm_90"}>
    ```
    """

    name = "device.target"

    kind: StringAttr
    options: DictionaryAttr

    @classmethod
    def new(cls, params: Sequence[Attribute]) -> Self:
        kind, options = params
        if isinstance(options, DictionaryAttr):
            options = DictionaryAttr(dict(sorted(options.data.items())))
        return super().new((kind, options))

    @classmethod
    def get(cls, kind: str, options: Mapping[str, OptionValue] | None = None) -> TargetAttr:
        """The target of this kind. Raises `OptionError` that lists the legal kinds or options."""
        options = options or {}
        get_target_kind(kind).check_options(options)
        attributes = {name: _option_attribute(value) for name, value in options.items()}
        return cls.new((StringAttr(kind), DictionaryAttr(attributes)))

    @property
    def kind_name(self) -> str:
        """The name of the target kind."""
        return self.kind.data

    @property
    def device_type(self) -> str:
        """The type of the devices that code for this target runs on."""
        return get_target_kind(self.kind.data).device_type

    @property
    def option_values(self) -> dict[str, OptionValue]:
        """The options as Python values."""
        values = {name: _option_value(value) for name, value in self.options.data.items()}
        return {name: value for name, value in values.items() if not isinstance(value, Attribute)}

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        form = (
            "a target is written #device.target<KIND, {OPTION = VALUE, ...}> with a string and a "
            "dictionary; the dictionary may be left out"
        )
        return parse_with_defaults(cls, parser, (None, DictionaryAttr({})), form)

    def verify(self) -> None:
        options = {name: _option_value(value) for name, value in self.options.data.items()}
        try:
            get_target_kind(self.kind.data).check_options(options)
        except OptionError as error:
            raise_verify_exception(error)

    def short(self) -> str:
        """The target for tables and messages, such as ``cuda arch="sm_90"``."""
        options = (f"{name}={value}" for name, value in self.options.data.items())
        return " ".join((self.kind.data, *options))
