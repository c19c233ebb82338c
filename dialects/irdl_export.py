"""From a pyrdl dialect to IRDL text, with which plain MLIR loads and verifies the dialect.

``python -m devscope.dialects.irdl_export`` prints the ``device`` dialect. xDSL's `pyrdl_to_irdl` keeps the names
of operands, results and parameters, but no constraint, and neither attributes nor regions of operations.

What IRDL can say is exported: names, arities, kinds of attributes, equal types, blocks per region. What it
cannot is left to xDSL: terminators (who loads the text attaches the trait to ``device.yield``), the types of
optional attributes, and the Python verifiers. IRDL has no properties and no optional regions: a dialect with
any is refused. Every constraint is a variable in IRDL: the values of a variadic operand or result have one
type even where pyrdl leaves them free, and MLIR refuses a ``device.region`` with results of different types; see
`devscope.lowering.interop.mixed_types`.
"""

import keyword
from collections.abc import Iterable, Sequence

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IntegerAttr,
    MemRefType,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
)
from xdsl.ir import Attribute, Dialect, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import (
    AnyOf,
    AttrConstraint,
    BaseAttr,
    IRDLOperation,
    OptionalDef,
    ParamAttrConstraint,
    RangeConstraint,
    RangeLengthConstraint,
    RangeOf,
    SingleBlockRegionDef,
    VarConstraint,
    VariadicDef,
)

_IN_MLIR = (ArrayAttr, DictionaryAttr, IntegerAttr, MemRefType, StringAttr, SymbolRefAttr, UnitAttr)
"""The builtin attributes and types that are one class of the same name in MLIR; others have no twin there."""


class _Body:
    """The lines of one definition, and the constraint values that they define."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.lines: list[str] = []
        self.count = 0
        self.variables: dict[str, str] = {}

    def define(self, operation: str) -> str:
        """Append ``operation`` and return the name of its result."""
        name = f"%{self.count}"
        self.count += 1
        self.lines.append(f"{name} = {operation}")
        return name

    def list(self, keyword_: str, entries: Iterable[tuple[str, str]]) -> None:
        """Append ``irdl.<keyword_>(name: value, ...)`` unless there are no entries."""
        if text := ", ".join(f"{_mlir_name(name)}: {value}" for name, value in entries):
            self.lines.append(f"irdl.{keyword_}({text})")

    def constraint(self, constraint: AttrConstraint) -> str:
        """The value that stands for ``constraint``, or for the nearest weaker one that IRDL has.

        A value used twice demands equality, which is what a pyrdl constraint variable means; everything
        else gets a value of its own.
        """
        match constraint:
            case VarConstraint(name=name, constraint=inner):
                if name not in self.variables:
                    self.variables[name] = self.constraint(inner)
                return self.variables[name]
            case AnyOf(attr_constrs=choices):
                return self.define(f"irdl.any_of({', '.join([self.constraint(choice) for choice in choices])})")
            case BaseAttr(attr=attribute) | ParamAttrConstraint(base_attr=attribute):
                base = self._base(attribute)
                return self.define(f"irdl.base {base}" if base else "irdl.any")
            case _:
                return self.define("irdl.any")

    def range(self, constraint: RangeConstraint) -> str:
        """The value that every element of a range has to satisfy."""
        while isinstance(constraint, RangeLengthConstraint):
            constraint = constraint.constraint
        return self.constraint(constraint.constr) if isinstance(constraint, RangeOf) else self.define("irdl.any")

    def _base(self, attribute: type[Attribute]) -> str | None:
        if attribute in self.dialect.attributes:
            return f"@{self.dialect.name}::@{_short_name(attribute.name)}"
        sigil = "!" if issubclass(attribute, TypeAttribute) else "#"
        return f'"{sigil}builtin.{attribute.name}"' if attribute in _IN_MLIR else None


def _mlir_name(name: str) -> str:
    """``name`` without the underscore that keeps it from being a Python keyword."""
    return name[:-1] if name.endswith("_") and keyword.iskeyword(name[:-1]) else name


def _short_name(name: str) -> str:
    return name.split(".", 1)[1]


def _arity(definition: object) -> str:
    if isinstance(definition, OptionalDef):
        return "optional "
    return "variadic " if isinstance(definition, VariadicDef) else ""


def _attribute_lines(attribute: type[Attribute], dialect: Dialect) -> list[str]:
    if not issubclass(attribute, ParametrizedAttribute):
        raise ValueError(f"{attribute.name}: IRDL knows attributes with parameters, not Python data")
    body = _Body(dialect)
    parameters = attribute.get_irdl_definition().parameters
    body.list("parameters", [(name, body.constraint(definition.constr)) for name, definition in parameters])
    kind = "type" if issubclass(attribute, TypeAttribute) else "attribute"
    return _block(f"irdl.{kind} @{_short_name(attribute.name)}", body.lines)


def _operation_lines(operation: type[IRDLOperation], dialect: Dialect) -> list[str]:
    definition = operation.get_irdl_definition()
    if definition.properties:
        raise ValueError(f"{operation.name}: IRDL has no properties; use attr_def instead of prop_def")
    body = _Body(dialect)
    for keyword_, values in (("operands", definition.operands), ("results", definition.results)):
        body.list(keyword_, [(name, f"{_arity(value)}{body.range(value.constr)}") for name, value in values])
    required = [
        f'"{name}" = {body.constraint(attribute.constr)}'
        for name, attribute in definition.attributes.items()
        if not isinstance(attribute, OptionalDef)
    ]
    if required:
        body.lines.append(f"irdl.attributes {{{', '.join(required)}}}")
    regions: list[tuple[str, str]] = []
    for name, region in definition.regions:
        if isinstance(region, VariadicDef):
            raise ValueError(f"{operation.name}: IRDL has no optional or variadic regions")
        size = " with size 1" if isinstance(region, SingleBlockRegionDef) else ""
        regions.append((name, body.define(f"irdl.region{size}")))
    body.list("regions", regions)
    return _block(f"irdl.operation @{_short_name(operation.name)}", body.lines)


def _block(header: str, lines: Sequence[str]) -> list[str]:
    return [f"{header} {{", *(f"  {line}" for line in lines), "}"]


def export_dialect(dialect: Dialect) -> str:
    """``dialect`` as the text of one ``irdl.dialect``, attributes first.

    Raises ValueError for what IRDL has no word for: properties, optional or variadic regions, and attributes
    that hold Python data.
    """
    lines: list[str] = []
    for attribute in dialect.attributes:
        lines += _attribute_lines(attribute, dialect)
    for operation in dialect.operations:
        if not issubclass(operation, IRDLOperation):
            raise ValueError(f"{operation.name}: only operations defined with pyrdl can be exported")
        lines += _operation_lines(operation, dialect)
    return "\n".join(_block(f"irdl.dialect @{dialect.name}", lines)) + "\n"


def main() -> None:
    """Print the ``device`` dialect."""
    from devscope.dialects.device import Device

    print(export_dialect(Device), end="")


if __name__ == "__main__":
    main()
