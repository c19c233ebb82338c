"""What assertions may guard: work that must not be done earlier, since there are operands that it must not have.

An index that does not exist, extents that differ, a division by zero: `cf.assert` leaves the call before. Such
work has no side effects (`analysis.effects`), but is not speculatable, as MLIR's ConditionallySpeculatable says.
"""

import re

from xdsl.ir import Operation

from devscope.analysis.classify import is_rematerialised, is_scalar_code
from devscope.dialects.device import DeviceCopyOp
from devscope.dialects.names import op_name

_DIVISION = re.compile(r"\w+\.\w*(div|rem)[su]i?")


def is_assertion(op: Operation) -> bool:
    return op_name(op) == "cf.assert"


def asserts(op: Operation) -> bool:
    """Whether an operation, or one in its regions, is an assertion."""
    return any(is_assertion(inner) for inner in op.walk())


def may_be_guarded(op: Operation) -> bool:
    """Whether an assertion before an operation may be there for its sake."""
    if isinstance(op, DeviceCopyOp):
        return False
    is_total = is_scalar_code(op) or is_rematerialised(op)
    return not is_total or _DIVISION.fullmatch(op_name(op)) is not None
