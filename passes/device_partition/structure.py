"""What operations are, as a text that is the same for the same operations in every program and process."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from xdsl.dialects.builtin import DenseResourceAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from devscope.dialects.device import PLACED_BY_ATTR, SCOPE_ATTR
from devscope.dialects.names import op_name
from devscope.passes.device_partition.graph import Graph
from devscope.passes.device_partition.outline import with_what_it_makes


def structure_of(graph: Graph, nodes: Iterable[int]) -> str:
    """A digest of operations with what they make for themselves; of large constants, the type counts."""
    numbers: dict[SSAValue, int] = {}
    lines: list[str] = []

    def number(value: SSAValue) -> str:
        known = numbers.setdefault(value, len(numbers))
        return f"{known}:{value.type}"

    def add(op: Operation) -> None:
        operands = ",".join(map(number, op.operands))
        attributes = {**op.attributes, **op.properties}
        attributes.pop(SCOPE_ATTR, None)
        attributes.pop(PLACED_BY_ATTR, None)
        attributes.pop("op_name__", None)
        text = ",".join(f"{key}={_text(attributes[key])}" for key in sorted(attributes))
        lines.append(f"{op_name(op)}({operands}){{{text}}}")
        for region in op.regions:
            for block in region.blocks:
                add_block(block)
        lines.append(",".join(map(number, op.results)))

    def add_block(block: Block) -> None:
        lines.append(f"^({','.join(map(number, block.args))})")
        for inner in block.ops:
            add(inner)

    for op in with_what_it_makes([graph.nodes[node].op for node in sorted(nodes)]):
        add(op)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:24]


def _text(attribute: Attribute) -> str:
    if isinstance(attribute, DenseResourceAttr):  # names a constant of this module
        return f"constant of {attribute.type}"
    return str(attribute)
