"""Properties that the bindings do not show: read and written through the generic text of one operation.

``op.attributes`` lists the properties that are attributes. It lists neither those that are not (the flags of
``llvm.getelementptr``) nor any property of an operation that MLIR does not know. MLIR's generic form has them
all, between ``<{`` and ``}>``, and prints those that are not attributes even at their default.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from devscope.dialects.names import type_list
from devscope.errors import LoweringError, ParseError
from devscope.lowering.interop.bindings import dictionary_items, ir, with_repaired_casters
from devscope.lowering.interop.diagnostics import decode_location, translate

_MAX_ELEMENTS = 16
_RESOURCE = "dense_resource<"
_ELIDED = "__elided__"
_OPERANDS_AND_SUCCESSORS = re.compile(r'"\([^)]*\)(?:\[[^\]]*\])?')
_BRACE_OR_STRING = re.compile(r'[{}]|"(?:[^"\\]|\\.)*"')


class HiddenProperties:
    """Which properties of which operations the bindings hide, found out once per operation name."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self.is_registered: Callable[[str], bool] = cache(context.is_registered_operation)
        """Whether MLIR knows the operation of a name."""
        self.names: Callable[[str], frozenset[str]] = cache(self._find_names)
        """The hidden properties of the operations of a name, which MLIR knows."""

    def _find_names(self, name: str) -> frozenset[str]:
        # An operation with nothing set: it has, at their defaults, all properties that are no attributes.
        blank = ir.Operation.create(name, loc=ir.Location.unknown(self._context), ip=False)
        return frozenset(self._properties(blank)) - frozenset(blank.attributes)

    def read(self, op: Any) -> dict[str, Any]:
        """The hidden properties of ``op`` as ``ir.Attribute``s.

        Raises `ParseError` when one holds a dense resource: text does not identify the resource.
        """
        names = self.names(op.name) if self.is_registered(op.name) else None
        if names is not None and not names:
            return {}
        # The text of an operation inside a function costs a walk over the function; that of a clone does not.
        properties = self._properties(op.clone(ip=False))
        if names is not None:
            return {key: properties[key] for key in names if key in properties}
        # To clone, MLIR puts an attribute of an unknown operation in the place of a property of the same name.
        return properties if properties.keys().isdisjoint(op.attributes) else self._properties(op)

    def write(self, op: Any, hidden: Mapping[str, Any]) -> Any:
        """An operation in place of ``op``, which is detached and has no bodies yet, with properties ``hidden``.

        Raises `LoweringError` when MLIR does not accept them.
        """
        if len(op.successors):
            message = f"'{op.name}' has successors and properties that MLIR's bindings cannot set"
            raise LoweringError(message, decode_location(op.location))
        properties = {**self._properties(op), **hidden}
        attributes = dict(op.attributes.items())
        # An attribute of the same name as a property can only be told from it in the text.
        ambiguous = {} if self.is_registered(op.name) else {k: v for k, v in attributes.items() if k in properties}
        dictionaries = [ir.DictAttr.get(d, self._context) for d in (properties, ambiguous)]
        holder = self._parse_module(op, _operation_text(op, *dictionaries))
        made = list(holder.body.operations)[-1].operation
        for index, operand in enumerate(op.operands):
            made.operands[index] = operand
        for key, value in attributes.items():
            if key not in properties:
                made.attributes[key] = value
        made.location = op.location
        return made.detach_from_parent()

    def _parse_module(self, op: Any, text: str) -> Any:
        """The module in ``text``, which was made for ``op``."""
        if _RESOURCE in text:
            message = f"a property of '{op.name}' holds a dense resource, which cannot be written"
            raise LoweringError(message, decode_location(op.location))
        try:
            return ir.Module.parse(text, self._context)
        except ir.MLIRError as error:
            translated = translate(error, LoweringError, f"MLIR does not accept '{op.name}'")
            translated.location = decode_location(op.location)  # not the position in the text made here
            raise translated from None

    def _properties(self, op: Any) -> dict[str, Any]:
        """All properties of ``op``. Raises `ParseError` when one holds a dense resource."""
        text = _properties_text(op, large_elements_limit=_MAX_ELEMENTS, large_resource_limit=_MAX_ELEMENTS)
        if _ELIDED in text:
            text = _properties_text(op)
        if _RESOURCE in text:
            raise ParseError(
                f"a property of '{op.name}' holds a dense resource, which cannot be read",
                decode_location(op.location),
                notes=["hold it in an attribute of the operation, or in an arith.constant"],
            )
        dictionary = ir.Attribute.parse(text, self._context)
        return with_repaired_casters(self._context, dictionary_items, dictionary)


def _properties_text(op: Any, **limits: int) -> str:
    """The text of the property dictionary of ``op``: ``{...}``. ``limits`` keep large attributes out of it."""
    text: str = op.get_asm(print_generic_op_form=True, use_local_scope=True, skip_regions=True, **limits)
    head = _OPERANDS_AND_SUCCESSORS.search(text)
    assert head is not None  # the generic form of every operation has an operand list
    if not text.startswith(" <{", head.end()):
        return "{}"
    start = head.end() + len(" <")
    depth = 0
    for token in _BRACE_OR_STRING.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(token[0], 0)
        if depth == 0:
            return text[start : token.end()]
    raise AssertionError(f"unbalanced text from MLIR: {text}")


def _operation_text(op: Any, properties: Any, attributes: Any) -> str:
    """A module that holds an operation like ``op`` behind one that makes values of its operands' types."""
    operand_types = [operand.type for operand in op.operands]
    result_types = [result.type for result in op.results]
    operands = ", ".join(f"%0#{index}" for index in range(len(operand_types)))
    regions = f" ({', '.join(['{}'] * len(op.regions))})" if len(op.regions) else ""
    lines = ['"builtin.module"() ({']
    if operand_types:
        values = f"%0:{len(operand_types)}"
        lines.append(f'{values} = "builtin.unrealized_conversion_cast"() : () -> {type_list(operand_types)}')
    results = f"%1:{len(result_types)} = " if result_types else ""
    name = op.name.replace("\\", "\\\\").replace('"', '\\"')
    lines.append(f'{results}"{name}"({operands}) <{properties}>{regions} {attributes} :')
    lines += [f"{type_list(operand_types)} -> {type_list(result_types)}", "}) : () -> ()"]
    return "\n".join(lines)
