"""Checks of the ``device`` dialect that xDSL leaves out: discardable attributes, and errors with locations.

Operations of other dialects may be unregistered. An attribute that its importer could not hold in xDSL, as
happens to a malformed one, is parsed again from what it prints, to say what is wrong with it.
"""

from collections.abc import Iterator, Mapping

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, UnregisteredOp
from xdsl.ir import Attribute, Dialect, Operation
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException

from devscope.dialects.location import error_at
from devscope.dialects.lowered import MadeByLowering
from devscope.dialects.names import op_name
from devscope.dialects.near_misses import closest, misplaced, near_miss
from devscope.dialects.scope_attr import SCOPE_ATTR, ScopeAttr
from devscope.dialects.target_attr import HOST_TARGET_ATTR, TARGET_ATTR, TargetAttr

_NAME = "op_name__"
"""Where an `UnregisteredOp` keeps its real name."""

_EXPECTED: dict[str, tuple[type[Attribute], str]] = {
    SCOPE_ATTR: (ScopeAttr, 'a scope, such as #device.scope<"cpu", 0 : i64, "", "">'),
    TARGET_ATTR: (TargetAttr, 'a target, such as #device.target<"cpu", {opt = 3 : i64}>'),
    HOST_TARGET_ATTR: (TargetAttr, 'a target, such as #device.target<"cpu", {opt = 3 : i64}>'),
}


def near_misses(op: Operation) -> Iterator[str]:
    """What to know of attributes on ``op``, its arguments and its results that nobody reads: they are almost the
    dialect's, or do not belong there."""
    own = op_name(op)
    if own.startswith("device."):
        return
    is_function = own.endswith(".func")
    for place, attributes in _dictionaries(op):
        is_own = attributes is op.attributes
        holders = "operations" if is_own else f"{place.partition(' ')[0]}s"
        for name, attribute in attributes.items():
            said = near_miss(name, attribute)
            if said is None and not (is_own and is_function):
                said = misplaced(name, own, holders)
            if said is not None:
                yield f"'{own}': {place}{said}"


def verify_operation(op: Operation, dialect: Dialect) -> None:
    """Raise `VerifyError` for what ``dialect``, the device dialect, does not allow on or in ``op`` itself."""
    name = op_name(op)
    problem = _attribute_problem(op, dialect)
    if problem is None and name.startswith(f"{dialect.name}."):
        problem = _operation_problem(op, name, dialect)
    if problem is not None:
        # The dialect's own messages begin with the operation's name already.
        raise error_at(op, f"{name}: {problem.removeprefix(f'{name}: ')}")


def _operation_problem(op: Operation, name: str, dialect: Dialect) -> str | None:
    definition = next((known for known in dialect.operations if known.name == name), None)
    if definition is None or definition.has_trait(MadeByLowering):
        problem = "no such operation" if definition is None else "only the lowering makes this operation"
        legal = ", ".join(known.name for known in dialect.operations if not known.has_trait(MadeByLowering))
        return f"{problem}; the operations of the {dialect.name} dialect are: {legal}"
    for key, attribute in op.attributes.items():
        if not isinstance(attribute, ScopeAttr | IntegerAttr) and (reason := _why(attribute, dialect)):
            return f"attribute '{key}': {reason}"
    try:
        if isinstance(op, UnregisteredOp):
            # An importer leaves an operation that does not fit its definition unregistered.
            copy = _registered(op, definition, dialect)
            try:
                copy.verify(verify_nested_ops=False)
            finally:
                copy.erase(safe_erase=False)
        op.verify_()
    except VerifyException as error:
        return str(error)
    return None


def _registered(op: Operation, definition: type[Operation], dialect: Dialect) -> Operation:
    """A copy of ``op`` as an operation of class ``definition``, with the terminators of its regions likewise."""
    copy = definition.create(
        operands=op.operands,
        result_types=[result.type for result in op.results],
        attributes={name: value for name, value in op.attributes.items() if name != _NAME},
        regions=[region.clone() for region in op.regions],
    )
    for block in [block for region in copy.regions for block in region.blocks]:
        last = block.last_op
        if isinstance(last, UnregisteredOp):
            known = next((known for known in dialect.operations if known.name == op_name(last)), None)
            if known is not None:
                block.insert_op_after(_registered(last, known, dialect), last)
                last.detach()
    return copy


def _attribute_problem(op: Operation, dialect: Dialect) -> str | None:
    """What is wrong with the discardable attributes on ``op``, its arguments or its results, or None."""
    for place, attributes in _dictionaries(op):
        for name, attribute in attributes.items():
            if name.startswith(f"{dialect.name}.") and (problem := _entry_problem(name, attribute, dialect)):
                return f"{place}'{name}' {problem}"
        if problem := _disagreement(attributes.get(SCOPE_ATTR), attributes.get(TARGET_ATTR)):
            return f"{place}{problem}"
    for key, _, entries in _function_attributes(op):
        if not isinstance(entries, ArrayAttr) and f"#{dialect.name}." in str(entries):
            reason = _why(entries, dialect) or "could not be imported, and what it says of devices would be lost"
            return f"attribute '{key}': {reason}"
    return None


def _entry_problem(name: str, attribute: Attribute, dialect: Dialect) -> str | None:
    if name not in _EXPECTED:
        if isinstance(attribute, ScopeAttr | TargetAttr):
            meant = closest(name, _EXPECTED)
            hint = "" if meant is None else f"; did you mean '{meant}'?"
            return f"has no meaning; legal names are: {', '.join(_EXPECTED)}{hint}"
        return None
    expected, form = _EXPECTED[name]
    if isinstance(attribute, expected):
        return None
    return f"must be {form}: {_why(attribute, dialect) or f'it is {attribute}'}"


def _dictionaries(op: Operation) -> Iterator[tuple[str, Mapping[str, Attribute]]]:
    """The dictionaries in which discardable attributes of ``op`` can stand, and where that is, in words."""
    yield "attribute ", op.attributes
    for _, noun, entries in _function_attributes(op):
        if isinstance(entries, ArrayAttr):
            for index, entry in enumerate(entries):
                if isinstance(entry, DictionaryAttr):
                    yield f"{noun} {index}, attribute ", entry.data


def _function_attributes(op: Operation) -> Iterator[tuple[str, str, Attribute]]:
    """The lists of argument and result attributes: name, what one entry belongs to, value."""
    for key, noun in (("arg_attrs", "argument"), ("res_attrs", "result")):
        # A property where xDSL knows the operation, an attribute where it came in as unregistered.
        entries = op.properties.get(key, op.attributes.get(key))
        if entries is not None:
            yield key, noun, entries


def _disagreement(scope: Attribute | None, target: Attribute | None) -> str | None:
    if not (isinstance(scope, ScopeAttr) and isinstance(target, TargetAttr)):
        return None
    if scope.type_name in ("", target.device_type):
        return None
    return (
        f"'{TARGET_ATTR}' is for devices of type '{target.device_type}', but '{SCOPE_ATTR}' is on "
        f"'{scope.type_name}'; the device types must be equal"
    )


def _why(attribute: Attribute, dialect: Dialect) -> str | None:
    """Why ``attribute``, read as text, is not one of ``dialect``; None when it is or does not claim to be."""
    text = str(attribute)
    if f"#{dialect.name}." not in text:
        return None
    context = Context(allow_unregistered=True)
    context.load_dialect(dialect)
    try:
        Parser(context, text).parse_attribute()
    except VerifyException as error:
        return str(error)
    except ParseError as error:
        return error.msg
    return None
