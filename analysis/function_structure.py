"""Functions that are equal but for their names: a value per function that is equal for those, and for no others.

Constants whose data stays in MLIR are equal if MLIR holds them as one. xDSL's `is_structurally_equivalent`
compares names of functions, too, and gives no key to look functions up by.
"""

import re
from collections.abc import Hashable, Mapping

from xdsl.dialects.builtin import DYNAMIC_INDEX, ShapedType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from devscope.analysis.symbols import named_function
from devscope.dialects.location import source_location
from devscope.dialects.names import op_name
from devscope.dialects.op_facts import facts_of

_CHECKED = re.compile(
    r"cf\.assert|(tensor|memref)\.(extract|insert|load|store|cast|pad|reshape|expand_shape|\w+_slice)"
    r"|arith\.\w*(div|rem)[su]i"
)
"""What may be checked whatever its operands are."""


def fingerprint(function: FuncOp, stands_for: Mapping[str, str], checks: bool = True) -> Hashable:
    """What a function is but for its name, as a value that is equal for equal functions, and for no others.

    ``stands_for``: names of functions that are as good as others. ``checks``: whether what is checked in it, as
    the program runs, must come from the same place.
    """
    numbers: dict[SSAValue, int] = {}
    blocks: dict[Block, int] = {}
    found: list[Hashable] = []
    for op in function.walk():
        # Regions and blocks as they come, so that their arguments and successors have numbers.
        shape: list[Hashable] = []
        for region in op.regions:
            shape.append(len(region.blocks))
            for block in region.blocks:
                blocks[block] = len(blocks)
                shape.append((len(block.ops), tuple(block.arg_types)))
                for argument in block.args:
                    numbers[argument] = len(numbers)
        for result in op.results:
            numbers[result] = len(numbers)
        found.append(
            (
                op_name(op),
                tuple(shape),
                tuple(result.type for result in op.results),
                _attributes(op, function, stands_for),
                source_location(op) if checks and _is_checked(op) else None,
                tuple(blocks.get(block, -1) for block in op.successors),
            )
        )
    # A second round: in a loop of branches, a value may stand before its definition.
    found += (tuple(numbers.get(value, -1) for value in op.operands) for op in function.walk())
    return tuple(found)


def _is_checked(op: Operation) -> bool:
    """Whether there is, or with ``checks="on"`` will be, a check for ``op`` (docs/checks.md)."""
    if _CHECKED.fullmatch(op_name(op)) is not None:
        return True
    shapes = [value.type.get_shape() for value in op.operands if isinstance(value.type, ShapedType)]
    return len(shapes) > 1 and any(DYNAMIC_INDEX in shape for shape in shapes) and facts_of(op).control is None


def _attributes(op: Operation, function: FuncOp, stands_for: Mapping[str, str]) -> Hashable:
    entries: set[tuple[str, Attribute | str]] = set()
    for container in (op.attributes, op.properties):
        entries |= {entry for entry in container.items() if entry[0] not in ("sym_name", facts_of(op).symbol)}
    name = named_function(op)
    if name is not None:
        name = stands_for.get(name, name)
        # Functions that call themselves are equal if they do so in the same places.
        entries.add(("", "" if name == function.sym_name.data else name))
    return frozenset(entries)
