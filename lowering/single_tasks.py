"""Parallel loops of one iteration, which stay such until it is decided where they run.

Canonicalisation would leave what is in them: loops over one element after the other, whose control flow is the
host's. On a device that is a launch for each element; the loop as a whole is one kernel.
"""

from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir

_MAPPING = "mapping"
"""The attribute of ``scf.forall`` with which it is not folded; what it says is not used."""
_BLOCK = "#gpu.block<linear_dim_0>"


def keep_single_tasks(module: Any) -> None:
    """Mark each ``scf.forall`` of ``module`` that is known to be of one iteration, and writes elements."""
    any_ = ir.ShapedType.get_dynamic_size()
    for op in mlir_util.named(module.operation, "scf.forall"):
        lower, upper, step, _ = mlir_util.operand_groups(op)
        numbers = [*ir.DenseI64ArrayAttr(op.attributes["staticUpperBound"])]
        is_known = not lower and not step and all(number in (1, any_) for number in numbers)
        is_single = is_known and all(mlir_util.constant_integer(size) == 1 for size in upper)
        if is_single and mlir_util.named(op, "tensor.insert"):
            op.attributes[_MAPPING] = ir.Attribute.parse(f"[{', '.join([_BLOCK] * len(numbers))}]", op.context)


def release_single_tasks(root: Any) -> bool:
    """Let what is marked in ``root`` be folded. Whether anything was."""
    marked = [op for op in mlir_util.named(root, "scf.forall") if _MAPPING in op.attributes]
    for op in marked:
        del op.attributes[_MAPPING]
    return bool(marked)
