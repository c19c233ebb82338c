"""``device.launch``: a user (hand-written) kernel on tensors, and the operations that say what it gets.

Arguments stand one by one in the body because IRDL knows no list of operands of different types (`irdl_export`).
"""

from abc import ABC

from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerType, SymbolRefAttr, TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    attr_def,
    irdl_op_definition,
    lazy_traits_def,
    operand_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import HasParent, NoTerminator
from xdsl.utils.exceptions import VerifyException

from devscope.dialects.names import op_name, type_list

_SIZES = 6
"""Of the grid in workgroups, and of a workgroup: x, y, z each."""


class _ArgumentOp(IRDLOperation, ABC):
    operand = operand_def()
    traits = lazy_traits_def(lambda: (HasParent(LaunchOp),))
    assembly_format = "$operand attr-dict `:` type($operand)"


@irdl_op_definition
class InOp(_ArgumentOp):
    """One argument of a kernel: a tensor that it only reads, or a scalar."""

    name = "device.in"

    def verify_(self) -> None:
        if not isinstance(self.operand.type, TensorType | IndexType | IntegerType | AnyFloat):
            raise VerifyException(f"device.in: a kernel takes tensors and scalars, not {self.operand.type}")


@irdl_op_definition
class OutOp(_ArgumentOp):
    """A tensor whose elements are there when the kernel begins; what they are at its end is a result."""

    name = "device.out"

    def verify_(self) -> None:
        if not isinstance(self.operand.type, TensorType) and not _is_on_elements(self):
            raise VerifyException(f"device.out: a kernel leaves results in tensors, not in {self.operand.type}")


def _is_on_elements(argument: Operation) -> bool:
    """Whether an argument is of a launch in a ``linalg.generic``, as the lowering makes it."""
    launch = argument.parent_op()
    around = launch.parent_op() if launch is not None else None
    return around is not None and op_name(around) == "linalg.generic"


@irdl_op_definition
class LaunchOp(IRDLOperation):
    """Runs ``kernel``, a function with ``device.kernel``, once per work-item of a grid.

    ``sizes``: workgroups along x, y, z; work-items of a workgroup along x, y, z; and, if the kernel has dynamic
    local memory, its bytes per workgroup. The parameters of the kernel are what ``device.in`` name, in order, then
    what ``device.out`` name: memrefs for tensors. There is a result for each ``device.out``, of its type.
    Bufferisation takes a launch through the body of a ``linalg.generic``, in which elements stand for the tensors.

    ```mlir
    %r = device.launch @saxpy(%g, %one, %one, %b, %one, %one) {
      device.in %x : tensor<?xf32>
      device.out %y : tensor<?xf32>
    } -> tensor<?xf32>
    ```
    """

    name = "device.launch"
    sizes = var_operand_def(IndexType())
    first = result_def()
    others = var_result_def()
    kernel = attr_def(SymbolRefAttr)
    body = region_def("single_block")
    traits = traits_def(NoTerminator())
    assembly_format = "$kernel `(` $sizes `)` $body attr-dict-with-keyword `->` type($first) (`,` type($others)^)?"

    @property
    def local_bytes(self) -> SSAValue | None:
        """Bytes of dynamic local memory."""
        return self.sizes[_SIZES] if len(self.sizes) > _SIZES else None

    @property
    def ins(self) -> list[SSAValue]:
        """What the kernel reads, in order."""
        return [op.operand for op in self.body.block.ops if isinstance(op, InOp)]

    @property
    def outs(self) -> list[SSAValue]:
        """The initial values of the results, in order."""
        return [op.operand for op in self.body.block.ops if isinstance(op, OutOp)]

    def verify_(self) -> None:
        if len(self.sizes) not in (_SIZES, _SIZES + 1):
            raise VerifyException(
                "device.launch: its operands are the sizes of the grid (x, y, z) and of a workgroup (x, y, z), "
                f"and perhaps the bytes of local memory; it has {len(self.sizes)}"
            )
        if len(self.kernel.nested_references):
            raise VerifyException(f"device.launch: {self.kernel} is no function of this module")
        if self.body.block.args:
            raise VerifyException("device.launch: the body takes no arguments")
        for op in self.body.block.ops:
            if op_name(op) not in (InOp.name, OutOp.name):
                raise VerifyException(
                    f"device.launch: the body holds 'device.in' and 'device.out', but no '{op_name(op)}'"
                )
        # By name: an importer leaves an operation that is wrong, for which it has its own message, unregistered.
        outs = [op.operands[0].type for op in self.body.block.ops if op_name(op) == OutOp.name and op.operands]
        if outs != list(self.result_types):
            raise VerifyException(
                f"device.launch: the results are {type_list(self.result_types)}, but what 'device.out' name is "
                f"{type_list(outs)}; they must be equal"
            )
