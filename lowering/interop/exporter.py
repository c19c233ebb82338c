"""From xDSL to MLIR without text: a walk over xDSL's operations that creates MLIR's through the bindings."""

# Operands and successors are read where xDSL keeps them: the public accessors make a view object per access.
# pyright: reportPrivateUsage=false

from typing import Any, NamedTuple

from xdsl.dialects.builtin import UNKNOWN_LOC, ModuleOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from devscope.dialects.location import source_location
from devscope.dialects.names import op_name
from devscope.errors import LoweringError
from devscope.lowering.interop.attributes import AttributeBridge
from devscope.lowering.interop.bindings import ir
from devscope.lowering.interop.mixed_types import name_in_mlir
from devscope.lowering.interop.payload import PayloadLocation
from devscope.lowering.interop.properties import HiddenProperties
from devscope.lowering.interop.unregister_incompatible import REAL_NAME

_BY_OPERANDS = ("device.", "rocdl._")
"""How operations begin whose name in MLIR depends on their operands: see `name_in_mlir`."""


_Kind = type[Operation] | tuple[type[Operation], int]
"""Of an operation with one result: its class, and the identity of the type, which the form holds."""


class _Form(NamedTuple):
    """What operations have in common that differ in operands and locations only, in xDSL and in MLIR."""

    properties: dict[str, Attribute]
    attributes: dict[str, Attribute]
    result: Attribute | None
    """The type of the only result, if there is one."""
    results: int
    regions: int
    name: str
    types: list[Any]
    named_attributes: dict[str, Any] | None


class Exporter:
    """One export: the values and blocks known so far, and the blocks still to fill.

    Types, attributes and values are looked up by identity, which is safe while the module holds them: xDSL's own
    hashes of a few of them take longer than creating an operation.
    """

    def __init__(self, bridge: AttributeBridge, hidden: HiddenProperties) -> None:
        self._bridge = bridge
        self._hidden = hidden
        self._context = bridge.context
        self._types: dict[int, Any] = {}
        self._attributes: dict[int, Any] = {}
        self._values: dict[int, Any] = {}
        self._forward: dict[int, tuple[SSAValue, Any]] = {}
        self._unfilled: list[tuple[Block, Any, dict[Block, Any]]] = []
        self._unknown = ir.Location.unknown(self._context)
        self._locations: dict[str, Any] = {}
        self._forms: dict[tuple[object, ...], _Form] = {}
        self._recent: dict[_Kind, _Form] = {}
        self._bodies: dict[tuple[object, ...], Any] = {}

    def module(self, module: ModuleOp) -> Any:
        """The MLIR twin of ``module``, an ``ir.Module``, not verified.

        Raises `LoweringError` for what MLIR cannot hold.
        """
        result = ir.Module.create(self._location(module.location))
        attributes = {k: self._attribute(v) for k, v in (module.attributes | module.properties).items()}
        for name, attribute in attributes.items():
            result.operation.attributes[name] = attribute
        self._check(result.operation, attributes)
        self._unfilled.append((module.body.block, result.body, {}))
        # The list grows on the way; see the importer.
        for block, new_block, blocks in self._unfilled:
            self._fill(block, ir.InsertionPoint(new_block), blocks)
        for value, placeholder in self._forward.values():
            if id(value) not in self._values:
                user = next(iter(value.uses)).operation
                raise LoweringError("an operand is defined outside of the module", source_location(user))
            placeholder.result.replace_all_uses_with(self._values[id(value)])
        return result

    def _fill(self, block: Block, point: Any, blocks: dict[Block, Any]) -> None:  # noqa: C901
        # One function: a call per operation is a tenth of what the rest takes.
        values, create, context, like = self._values, ir.Operation.create, self._context, self._like
        op = block._first_op
        while op is not None:
            results, operands, regions, location = op.results, op._operands, op.regions, op.location
            try:
                form = like(op)
                if form is None:
                    new = self._operation(op, blocks, point)
                else:
                    _, _, _, _, _, name, types, attributes = form
                    try:
                        if len(operands) == 2:
                            left, right = operands
                            twins = [values[id(left)], values[id(right)]]
                        else:
                            twins = [values[id(operand)] for operand in operands] if operands else None
                    except KeyError:
                        twins = [self._value(operand) for operand in operands]
                    if location.__class__ is PayloadLocation and location.data.context is context:  # pyright: ignore
                        place = location.data  # pyright: ignore
                    else:
                        place = self._location(location)
                    if regions:
                        new, regions = self._with_regions(form, op, twins, place, point), ()
                    else:
                        new = create(name, types, twins, attributes, None, 0, place, point)
            except LoweringError as error:
                error.location = error.location or source_location(op)
                raise
            except (ir.MLIRError, ValueError) as error:
                raise _refused(error, op) from None
            for operand in operands:
                # The bindings' object of a value holds that of its operation: half of an export's memory.
                if operand.first_use._next_use is None:  # pyright: ignore
                    values.pop(id(operand), None)
            if len(results) == 1:
                (result,) = results
                values[id(result)] = new.result
            elif results:
                for old, new_result in zip(results, new.results, strict=True):
                    values[id(old)] = new_result
            if regions:
                for region, new_region in zip(regions, new.regions, strict=True):
                    self._region(region, new_region)
            op = op._next_op

    def _like(self, op: Operation) -> _Form | None:
        """What is known of operations like ``op``; None if nothing is."""
        results, kind = op.results, op.__class__
        count = len(results)
        if count == 1:
            (result,) = results
            kind = kind, id(result._type)
        # Mostly an operation is like the one before it of its class and type. Dictionaries are compared quickly:
        # what is equal in them is identical, but for a few.
        form = self._recent.get(kind)
        if form is not None:
            properties, attributes, _, known_count, regions, _, _, _ = form
            if (
                properties == op.properties
                and attributes == op.attributes
                and count == known_count < 2
                and regions == len(op.regions)
                and not op._successors
            ):
                return form
        if op._successors:
            return None
        form = self._forms.get(self._key(op))
        if form is not None:
            self._recent[kind] = form
        return form

    def _with_regions(self, form: _Form, op: Operation, operands: Any, place: Any, point: Any) -> Any:
        """The twin of ``op``, whose regions are full or to be filled."""
        body = self._body(form, op)
        if body is not None and (like := self._bodies.get(body)) is not None:
            new = like.clone(point)
            new.location = place
            if operands is not None:
                given = new.operands
                for index, operand in enumerate(operands):
                    given[index] = operand
            return new
        new = ir.Operation.create(
            form.name, form.types, operands, form.named_attributes, None, form.regions, place, point
        )
        for region, new_region in zip(op.regions, new.regions, strict=True):
            self._region(region, new_region)
        if body is not None:
            inner, new_inner, known = self._unfilled.pop()
            self._fill(inner, ir.InsertionPoint(new_inner), known)
            self._bodies[body] = new
        return new

    def _key(self, op: Operation) -> tuple[object, ...]:
        """By which the form of an operation is known; by identities, as the hashes of xDSL are slow."""
        properties, attributes = op.properties, op.attributes
        return (
            op.__class__,
            len(properties),
            *properties,
            *map(id, properties.values()),
            *attributes,
            *map(id, attributes.values()),
            *[id(result._type) for result in op.results],
            len(op.regions),
        )

    def _body(self, form: _Form, op: Operation) -> tuple[object, ...] | None:
        """What an operation and its region are known by, if that is as those that named operations hide.

        They are one block on values of its own, without places in the source. MLIR copies an operation with such a
        region in a third of the time that its parts take.
        """
        block = op.regions[0].first_block
        if block is None or block.next_block is not None or form.regions != 1:
            return None
        numbers: dict[int, int] = {}
        found: list[object] = [id(form), len(op._operands)]
        for argument in block._args:
            if argument.location is not UNKNOWN_LOC:
                return None
            numbers[id(argument)] = len(numbers)
            found.append(id(argument._type))
        inner = block._first_op
        while inner is not None:
            if inner.location is not UNKNOWN_LOC or inner.regions or inner._successors:
                return None
            known = self._like(inner)
            found.append(id(known) if known is not None else self._key(inner))
            for operand in inner._operands:
                number = numbers.get(id(operand))
                if number is None:
                    return None
                found.append(number)
            for result in inner.results:
                numbers[id(result)] = len(numbers)
            inner = inner._next_op
        return tuple(found)

    def _operation(self, op: Operation, blocks: dict[Block, Any], point: Any) -> Any:
        """The twin of ``op`` without its regions, the first one of its form or of none."""
        key = self._key(op)
        name = name_in_mlir(op, op_name(op))
        hidden: dict[str, Attribute] = {}
        if not self._hidden.is_registered(name):
            settable, hidden = op.attributes, op.properties
        else:
            settable = op.properties | op.attributes if op.attributes else op.properties
            if names := self._hidden.names(name):
                hidden = {key: value for key, value in settable.items() if key in names}
                settable = {key: value for key, value in settable.items() if key not in names}
        types, attributes, values = self._types, self._attributes, self._values
        try:
            operands = [values[key] for key in map(id, op._operands)]
        except KeyError:
            operands = [self._value(operand) for operand in op._operands]
        settable = {
            key: attributes.get(id(value)) or self._attribute(value)
            for key, value in settable.items()
            if key != REAL_NAME
        }
        result_types = [types.get(id(result.type)) or self._type(result.type) for result in op.results]
        new = ir.Operation.create(
            name,
            result_types,
            operands,
            settable,
            [blocks[successor] for successor in op._successors] if op._successors else None,
            len(op.regions),
            self._location(op.location),
            False if hidden else point,
        )
        if key not in self._forms:
            self._check(new, settable)
        if hidden:
            new = self._hidden.write(new, {k: self._attribute(v) for k, v in hidden.items()})
            point.insert(new)
        elif not name.startswith(_BY_OPERANDS):
            results = tuple(op.results)
            only = results[0]._type if len(results) == 1 else None
            held = dict(op.properties), dict(op.attributes), only, len(results), len(op.regions)
            self._forms[key] = _Form(*held, name, result_types, settable or None)
        return new

    def _check(self, op: Any, attributes: dict[str, Any]) -> None:
        """MLIR drops without a word an inherent attribute that is not of the kind it expects."""
        for key, value in attributes.items():
            if key not in op.attributes or op.attributes[key] != value:
                raise LoweringError(f"'{op.name}' cannot have {key} = {value}")

    def _region(self, region: Region, new_region: Any) -> None:
        """Give ``new_region`` the blocks of ``region``, with their arguments, to be filled."""
        blocks: dict[Block, Any] = {}
        known, values, new_blocks = self._types, self._values, new_region.blocks
        block = region.first_block
        while block is not None:
            arguments = block._args
            types = [known.get(id(argument.type)) or self._type(argument.type) for argument in arguments]
            locations = [self._location(argument.location) for argument in arguments]
            new_block = new_blocks.append(*types, arg_locs=locations)
            if arguments:
                for argument, new_argument in zip(arguments, new_block.arguments, strict=True):
                    values[id(argument)] = new_argument
            blocks[block] = new_block
            self._unfilled.append((block, new_block, blocks))
            block = block.next_block

    def _value(self, value: SSAValue) -> Any:
        """The twin of ``value``, or a placeholder until there is one."""
        found = self._values.get(id(value))
        if found is not None:
            return found
        if id(value) not in self._forward:
            name, types = "builtin.unrealized_conversion_cast", [self._type(value.type)]
            placeholder = ir.Operation.create(name, results=types, loc=self._unknown, ip=False)
            self._forward[id(value)] = (value, placeholder)
        return self._forward[id(value)][1].result

    def _type(self, type: Attribute) -> Any:
        found = self._types[id(type)] = self._bridge.mlir_types[type]
        return found

    def _attribute(self, attribute: Attribute) -> Any:
        found = self._attributes[id(attribute)] = self._bridge.mlir_attributes[attribute]
        return found

    def _location(self, location: Attribute) -> Any:
        if type(location) is PayloadLocation:
            if location.data.context is not self._context:
                raise _foreign()
            return location.data
        if location is UNKNOWN_LOC:
            return self._unknown
        # Made in xDSL: through the text of an operation, because the bindings parse no location alone.
        text = f"builtin.module {{}} {location}"
        found = self._locations.get(text)
        if found is None:
            found = self._locations[text] = ir.Operation.parse(text, context=self._context).location
        return found


def _foreign() -> LoweringError:
    return LoweringError("the module was imported by another session")


def _refused(error: Exception, op: Operation) -> LoweringError:
    """The error for an operation that the bindings do not create."""
    cause = str(error).splitlines()[0] if str(error) else type(error).__name__
    return LoweringError(f"MLIR cannot create '{op_name(op)}': {cause}", source_location(op))
