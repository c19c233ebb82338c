"""Names of operations, registered with xDSL or not, and lists of types as messages show them."""

from collections.abc import Iterable
from typing import cast

from xdsl.dialects.builtin import StringAttr, UnregisteredOp
from xdsl.ir import Attribute, Operation


def op_name(op: Operation) -> str:
    """The name of ``op`` as MLIR writes it, such as ``"linalg.batch_matmul"``.

    xDSL gives every operation that it does not know the name ``builtin.unregistered`` and keeps the
    real one in an attribute.
    """
    if op.name != UnregisteredOp.name:
        return op.name
    # Asked for so often that the checks of its class's property took a twentieth of a compilation.
    return cast("StringAttr", op.attributes["op_name__"]).data


def type_list(types: Iterable[Attribute]) -> str:
    """Types as MLIR writes those of a function's arguments: ``(f32, index)``."""
    return f"({', '.join(map(str, types))})"


SAME_SIZE = "devscope.same_size"
"""On a ``cf.assert`` that two sizes are equal, two strings: what they are. The lowering words the message with
these, or by where the sizes come from. The assertion's own says where they must be equal."""
