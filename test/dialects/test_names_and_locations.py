"""Real names of unregistered operations; positions out of every kind of location."""

from __future__ import annotations

import pytest
from xdsl.dialects import test
from xdsl.dialects.builtin import (
    ArrayAttr,
    CallSiteLoc,
    FileLineColLoc,
    FusedLoc,
    IntAttr,
    ModuleOp,
    NameLoc,
    NoneAttr,
    StringAttr,
    UnknownLoc,
    UnregisteredOp,
    f32,
)
from xdsl.ir import Attribute, Block, ParametrizedAttribute, Region
from xdsl.irdl import irdl_attr_definition

from devscope.dialects.location import decode_location, location_parts, pragma_in, source_location, value_location
from devscope.dialects.names import op_name
from devscope.errors import SourceLocation


def at(line: int) -> FileLineColLoc:
    return FileLineColLoc(StringAttr("a.mlir"), IntAttr(line), IntAttr(2))


@irdl_attr_definition
class Foreign(ParametrizedAttribute):
    """A location that another library decodes; line 0 stands for one that it cannot."""

    name = "test.foreign_location"

    line: IntAttr

    def file_line_col(self) -> tuple[str, int, int] | None:
        return ("b.py", self.line.data, 1) if self.line.data else None


def test_names() -> None:
    assert op_name(ModuleOp([])) == "builtin.module"
    assert op_name(UnregisteredOp.with_name("stablehlo.add").create()) == "stablehlo.add"


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        (UnknownLoc(), None),
        (at(3), SourceLocation("a.mlir", 3, 2)),
        (NameLoc(StringAttr("n"), at(4)), SourceLocation("a.mlir", 4, 2)),
        (NameLoc(StringAttr("n"), NoneAttr()), None),
        (CallSiteLoc(at(5), at(6)), SourceLocation("a.mlir", 5, 2)),
        (CallSiteLoc(UnknownLoc(), at(6)), SourceLocation("a.mlir", 6, 2)),
        (FusedLoc(ArrayAttr([UnknownLoc(), at(7), at(8)]), NoneAttr()), SourceLocation("a.mlir", 7, 2)),
        (FusedLoc(ArrayAttr([]), NoneAttr()), None),
        (Foreign(IntAttr(9)), SourceLocation("b.py", 9, 1)),
        (Foreign(IntAttr(0)), None),
    ],
)
def test_positions(location: Attribute, expected: SourceLocation | None) -> None:
    assert decode_location(location) == expected


def test_deeply_nested_locations() -> None:
    location: Attribute = at(1)
    for _ in range(200):
        location = CallSiteLoc(location, UnknownLoc())
    assert decode_location(location) == SourceLocation("a.mlir", 1, 2)


def test_positions_of_operations_and_values() -> None:
    block = Block()
    own = block.insert_arg(f32, 0, at(1))
    inherited = block.insert_arg(f32, 1)
    op = test.TestOp(result_types=[f32], regions=[Region(block)])
    op.location = at(5)
    assert source_location(op) == value_location(op.results[0]) == SourceLocation("a.mlir", 5, 2)
    assert value_location(own) == SourceLocation("a.mlir", 1, 2)
    assert value_location(inherited) == SourceLocation("a.mlir", 5, 2)
    assert value_location(Block(arg_types=[f32]).args[0]) is None


def test_parts_of_nested_locations() -> None:
    inner = FusedLoc(ArrayAttr([NameLoc(StringAttr("inner"), at(1)), UnknownLoc()]), NoneAttr())
    caller = NameLoc(StringAttr("f/devscope.on(opencl:0)/devscope.on(cpu:0)/g"), at(2))
    parts = list(location_parts(CallSiteLoc(inner, caller)))
    names = ["inner", "f/devscope.on(opencl:0)/devscope.on(cpu:0)/g"]
    assert parts == [names[0], SourceLocation("a.mlir", 1, 2), names[1], SourceLocation("a.mlir", 2, 2)]
    assert pragma_in(parts) == ("cpu:0", "devscope.on('cpu:0')")
    assert pragma_in(["devscope.on(cpu:0, a model)"]) == ("cpu:0", "a model")
    assert pragma_in(parts[:2]) is None
