"""``device-merge``: equal private functions become one.

Equal are functions of one signature, target and scope whose bodies are the same operations in the same order
with the same attributes, whatever they and their values are called. What is checked as a program runs is equal
only to what comes from the same place, which an error names. Constants whose data stays in MLIR are equal if MLIR
holds them as one. xDSL's `is_structurally_equivalent` compares names of functions, too, and gives no key to look
functions up by.
"""

import re
from collections.abc import Hashable, Mapping

from xdsl.dialects.builtin import DYNAMIC_INDEX, ShapedType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from devscope.analysis.call_graph import CallGraph
from devscope.analysis.manager import AnalysisManager, ManagedPass
from devscope.analysis.symbols import named_function
from devscope.dialects.location import source_location
from devscope.dialects.names import op_name
from devscope.dialects.op_facts import facts_of
from devscope.rewriting.functions import redirect

_CHECKED = re.compile(
    r"cf\.assert|(tensor|memref)\.(extract|insert|load|store|cast|pad|reshape|expand_shape|\w+_slice)"
    r"|arith\.\w*(div|rem)[su]i"
)
"""What may be checked whatever its operands are."""


class DeviceMergePass(ManagedPass):
    """Merge private functions that are equal but for their names."""

    name = "device-merge"

    def run(self, analyses: AnalysisManager) -> bool:
        graph = analyses.get(CallGraph)
        if len(graph.private) < 2:
            return False
        stands_for: dict[str, str] = {}
        first: dict[Hashable, str] = {}
        # Callees before callers, which may be equal once their callees are.
        for function in (function for component in graph.components for function in component):
            if function in graph.private:
                name = function.sym_name.data
                other = first.setdefault(_fingerprint(function, stands_for), name)
                if other != name:
                    stands_for[name] = other
        for call, _, callee in graph.calls:
            if callee is not None and (name := stands_for.get(callee.sym_name.data)) is not None:
                redirect(call, name)
        for name in stands_for:
            Rewriter.erase_op(graph.symbols.functions[name], safe_erase=False)
        return bool(stands_for)


def _fingerprint(function: FuncOp, stands_for: Mapping[str, str]) -> Hashable:
    """What a function is but for its name, as a value that is equal for equal functions, and for no others."""
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
                source_location(op) if _is_checked(op) else None,
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
