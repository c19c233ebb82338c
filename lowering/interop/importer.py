"""From MLIR to xDSL without text: a walk over the bindings' operations that creates xDSL's."""

# pyright: reportPrivateUsage=false

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from xdsl.context import Context
from xdsl.dialects.builtin import UNKNOWN_LOC, ModuleOp, StringAttr, UnrealizedConversionCastOp, UnregisteredOp
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue, Use
from xdsl.ir.core import SSAValues
from xdsl.irdl import AttrSizedSegments, IRDLOperation

from devscope.errors import ParseError
from devscope.gc_pause import gc_paused
from devscope.lowering.interop.attributes import AttributeBridge
from devscope.lowering.interop.bindings import children, ir, not_text, repair_casters
from devscope.lowering.interop.diagnostics import decode_location
from devscope.lowering.interop.mixed_types import ORIGINALS
from devscope.lowering.interop.payload import PayloadLocation
from devscope.lowering.interop.properties import HiddenProperties
from devscope.lowering.interop.unregister_incompatible import (
    REAL_NAME,
    Signature,
    UnregisterIncompatible,
    foreign_class,
    signature,
)

_UNKNOWN: type = ir.UnknownLoc
_SYMBOL = "sym_name"
_NO_VALUES: Any = SSAValues[Any]()


class _OpClass(NamedTuple):
    """What is known of all operations of one name."""

    cls: type[Operation]
    properties: frozenset[str]
    """The inherent attributes that xDSL's definition has as properties."""
    name: StringAttr | None
    """The name as an attribute, when xDSL does not know the operation."""
    hidden: bool
    """Whether operations of this name can have properties that the bindings do not show."""
    registered: bool
    """Whether MLIR knows the operation."""


class Importer:
    """Imports modules of one context; what it learns about operations serves all of them."""

    def __init__(self, bridge: AttributeBridge, hidden: HiddenProperties, context: Context) -> None:
        self.bridge = bridge
        self.hidden = hidden
        self.incompatible = UnregisterIncompatible(hidden.is_registered)
        self.op_class: Callable[[str], _OpClass] = cache(self._learn)
        """What is known of the operations of a name."""
        self._context = context

    def module(self, module: Any, whole: bool = True) -> ModuleOp:
        """The xDSL twin of ``module``, an ``ir.Module``, which stays as it is.

        Unless it is ``whole``, functions have nothing but their arguments, the last operation and what makes its
        operands, of operands that are stand-ins. Raises `ParseError` for what cannot be carried over faithfully.
        """
        with gc_paused():
            started = _Import(self, hash)
            try:
                result = started.run(module.operation, whole)
                if started.confused:
                    started = _Import(self, _itself)
                    result = started.run(module.operation, whole)
            except RuntimeError as error:
                if not not_text(error):
                    raise
                message = "a name in this operation is not UTF-8, which MLIR's Python bindings cannot read"
                raise ParseError(message, decode_location(started.current.location)) from None
        assert isinstance(result, ModuleOp)
        return result

    def _learn(self, name: str) -> _OpClass:
        if name in ORIGINALS:
            cls = self._context.get_op(ORIGINALS[name])
            return _OpClass(cls, frozenset(), None, hidden=False, registered=True)
        cls = self._context.get_op(name)
        real_name = None
        if issubclass(cls, UnregisteredOp):
            cls, real_name = foreign_class(name), StringAttr(name)
        if not self.hidden.is_registered(name):
            # What is a property then is for the text to say, not for xDSL's definition.
            return _OpClass(cls, frozenset(), real_name, hidden=True, registered=False)
        properties: frozenset[str] = frozenset()
        if issubclass(cls, IRDLOperation):
            definition = cls.get_irdl_definition()
            segments = [o for o in definition.options if isinstance(o, AttrSizedSegments) and o.as_property]
            properties = frozenset(definition.properties) | {option.attribute_name for option in segments}
        return _OpClass(cls, properties, real_name, hidden=bool(self.hidden.names(name)), registered=True)


class _Import:
    """One import: the values and blocks known so far, and the blocks still to fill.

    Values are known by their ``key``, a hash: the bindings' objects would hold those of all operations, which
    leave holes among xDSL's when they go, a third of an import's memory.
    """

    def __init__(self, importer: Importer, key: Callable[[Any], object]) -> None:
        self._importer = importer
        self._types = importer.bridge.types
        self._attributes = importer.bridge.attributes
        self._key = key
        self._locations: dict[int, PayloadLocation] = {}
        self._values: dict[object, SSAValue] = {}
        self._defined = 0
        self._forward: dict[Any, SSAValue] = {}
        self._samples: dict[Signature, Operation] = {}
        self._unfilled: list[tuple[Any, dict[Any, Block]]] = []
        self.current: Any = None
        """The operation that is imported."""

    @property
    def confused(self) -> bool:
        """Whether two values have one key."""
        return len(self._values) != self._defined

    def run(self, root: Any, whole: bool) -> Operation:
        self.current = root
        inside = children if whole else _ends
        result = self._operation(root, {})
        # A body is filled after the block that holds its operation (the list grows on the way): nesting costs no
        # stack, and values exist when they are used.
        for parent, blocks in self._unfilled:
            only = next(iter(blocks.values())) if len(blocks) == 1 else None
            found = inside(parent)
            found.reverse()
            while found:
                inner = found.pop()  # not held any longer
                block = blocks[inner.block] if only is None else only
                self.current = inner
                append(block, self._operation(inner, blocks))
        if not whole:
            return result
        for value, placeholder in self._forward.items():
            placeholder.replace_all_uses_with(self._values[self._key(value)])
        self._importer.incompatible.run(result, self._samples)
        return result

    def _operation(self, op: Any, blocks: dict[Any, Block]) -> Operation:
        known = self._importer.op_class(op.name)
        attributes, properties = self._inherent(op, known)
        values, key, types = self._values, self._key, self._types
        try:
            operands = [values[key(operand)] for operand in op.operands]
        except KeyError:  # used before it is defined: graph regions, blocks not in order of dominance
            operands = [self._value(operand) for operand in op.operands]
        results, regions, successors = list(op.results), op.regions, op.successors
        result_types = [types(result.type) for result in results]
        new = make_operation(
            known.cls, operands, result_types, properties, attributes, self._location(op.location)
        )
        for result, new_result in zip(results, new.results, strict=True):
            values[key(result)] = new_result
        self._defined += len(results)
        if len(successors):
            new.successors = [blocks[successor] for successor in successors]
        if len(regions):
            inside: dict[Any, Block] = {}
            for region in regions:
                new.add_region(self._region(region, inside))
            self._unfilled.append((op, inside))
        if known.name is None:
            self._samples.setdefault(signature(known.cls, operands, result_types, properties, attributes), new)
        return new

    def _inherent(self, op: Any, known: _OpClass) -> tuple[dict[str, Attribute], dict[str, Attribute]]:
        """The attributes and the properties of ``op`` as xDSL's definition divides them."""
        attributes: dict[str, Attribute] = {}
        properties: dict[str, Attribute] = {}
        converted, declared = self._attributes, known.properties
        try:
            items = op.attributes.items()
        except (TypeError, RuntimeError):
            items = self._repaired_items(op)
        for name, value in items:
            if name == _SYMBOL:
                _require_text(value)
            (properties if name in declared else attributes)[name] = converted(value)
        if known.hidden:
            for name, value in self._importer.hidden.read(op).items():
                if name in attributes and known.registered:
                    raise _ambiguous(op, name)
                is_property = name in declared or not known.registered
                (properties if is_property else attributes)[name] = converted(value)
        if known.name is not None:
            attributes[REAL_NAME] = known.name
        return attributes, properties

    @staticmethod
    def _repaired_items(op: Any) -> list[tuple[str, Any]]:
        repair_casters(op.context)
        try:
            return op.attributes.items()
        except (TypeError, RuntimeError) as error:  # RuntimeError: a name that is not UTF-8
            message = f"an attribute of '{op.name}' cannot be read through MLIR's Python bindings: {error}"
            raise ParseError(message, decode_location(op.location)) from None

    def _region(self, region: Any, twins: dict[Any, Block]) -> Region:
        """The twin of ``region``; its blocks have arguments, are to be filled, and are added to ``twins``."""
        blocks: list[Block] = []
        for source in region.blocks:
            arguments = list(source.arguments)
            block = Block(arg_types=[self._types(argument.type) for argument in arguments])
            for argument, new_argument in zip(arguments, block.args, strict=True):
                new_argument.location = self._location(argument.location)
                self._values[self._key(argument)] = new_argument
            self._defined += len(arguments)
            twins[source] = block
            blocks.append(block)
        return Region(blocks)

    def _value(self, value: Any) -> SSAValue:
        """The twin of ``value``, or a placeholder until there is one."""
        found = self._values.get(self._key(value)) or self._forward.get(value)
        if found is None:
            cast = UnrealizedConversionCastOp.create(result_types=[self._types(value.type)])
            found = self._forward[value] = cast.results[0]
        return found

    def _location(self, location: Any) -> Any:
        """One for all that is there, which is decoded once: expansions give many operations one place."""
        if type(location) is _UNKNOWN:
            return UNKNOWN_LOC
        key = hash(location.attr)
        found = self._locations.get(key)
        if found is None or found.data != location:
            found = self._locations[key] = PayloadLocation.wrap(location)
        return found


def _itself(value: Any) -> object:
    return value


def _ends(op: Any) -> list[Any]:
    """What is directly in a module; of a function, its last operation, behind what makes its operands."""
    found = children(op)
    if op.name == "builtin.module" or not found:
        return found
    if op.name != "func.func":
        return []
    owners = (operand.owner for operand in found[-1].operands)
    return [*dict.fromkeys(owner.operation for owner in owners if not isinstance(owner, ir.Block)), found[-1]]


def _ambiguous(op: Any, name: str) -> ParseError:
    """The bindings would read, and write, one of the two for the other."""
    return ParseError(
        f"'{op.name}' has a property '{name}', and an attribute of the same name besides",
        decode_location(op.location),
        notes=["properties stand between <{ and }>: drop the other one, or call it something else"],
    )


def _require_text(name: Any) -> None:
    """Raise RuntimeError (`not_text`) for a symbol that is not UTF-8; as a payload no pass could find it."""
    if isinstance(name, ir.StringAttr):
        _ = name.value


def make_operation(
    cls: type[Operation],
    operands: list[SSAValue],
    result_types: list[Attribute],
    properties: dict[str, Attribute],
    attributes: dict[str, Attribute],
    location: Any,
) -> Operation:
    """A detached operation without regions and successors, made without xDSL's checks; it keeps the dictionaries.

    An import makes 100,000 operations whose parts are known to be right; ``Operation.create`` and ``Block.add_op``
    take longer over each than reading it from MLIR. Only these two functions write private fields of xDSL's IR; a
    test compares what they make with what xDSL's own functions make. Unlike the constructors this fills in no
    default properties: what MLIR does not hold is not there.
    """
    op = cls.__new__(cls)
    op._operands = SSAValues(operands) if operands else _NO_VALUES
    op._operand_uses = uses = tuple([Use(op, index) for index in range(len(operands))])
    for operand, use in zip(operands, uses, strict=True):
        operand.add_use(use)
    results = [OpResult(type, op, index) for index, type in enumerate(result_types)]
    op.results = SSAValues(results) if results else _NO_VALUES
    op.properties = properties
    op.attributes = attributes
    op.location = location
    return op


def append(block: Block, op: Operation) -> None:
    """Put ``op``, which is in no block, at the end of ``block``, which is not inside ``op``."""
    last = block._last_op
    if last is None:
        block._first_op = op
    else:
        last._next_op = op
        op._prev_op = last
    block._last_op = op
    op.parent = block
