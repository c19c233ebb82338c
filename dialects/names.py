"""Names of operations, registered with xDSL or not, and lists of types as messages show them."""

from collections.abc import Iterable

from xdsl.dialects.builtin import UnregisteredOp
from xdsl.ir import Attribute, Operation


def op_name(op: Operation) -> str:
    """The name of ``op`` as MLIR writes it, such as ``"linalg.batch_matmul"``.

    xDSL gives every operation that it does not know the name ``builtin.unregistered`` and keeps the
    real one in an attribute.
    """
    return op.op_name.data if isinstance(op, UnregisteredOp) else op.name


def type_list(types: Iterable[Attribute]) -> str:
    """Types as MLIR writes those of a function's arguments: ``(f32, index)``."""
    return f"({', '.join(map(str, types))})"


SAME_SIZE = "devscope.same_size"
"""On a ``cf.assert`` that two sizes are equal, two strings: what they are. The lowering words the message with
these, or by where the sizes come from. The assertion's own says where they must be equal."""
