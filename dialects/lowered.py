"""Operations of the ``device`` dialect that stand for calls of the runtime while a program is lowered.

Only the lowering makes them, on memrefs that have the scope they live in as memory space: no program holds them,
and `verify_device_attributes` says so.
"""

from xdsl.dialects.builtin import IntegerAttr, MemRefType, i64
from xdsl.irdl import IRDLOperation, attr_def, irdl_op_definition, operand_def, result_def, traits_def
from xdsl.traits import OpTrait
from xdsl.utils.exceptions import VerifyException


class MadeByLowering(OpTrait):
    """The operation stands for a call of the runtime; no program holds it."""


@irdl_op_definition
class FlushOp(IRDLOperation):
    """The device with this number starts what was enqueued on it; the host goes on beside it.

    ```mlir
    device.flush 1
    ```
    """

    name = "device.flush"
    slot = attr_def(IntegerAttr.constr(i64))
    traits = traits_def(MadeByLowering())
    assembly_format = "$slot attr-dict"

    def verify_(self) -> None:
        if self.slot.value.data < 0:
            raise VerifyException(f"device.flush: {self.slot.value.data} is no number of a device")


@irdl_op_definition
class PublishOp(IRDLOperation):
    """Unmaps a device's buffer that the host has filled: the contents made through ``view`` are complete.

    ```mlir
    device.publish %v : memref<4xf32>
    ```
    """

    name = "device.publish"
    view = operand_def(MemRefType)
    traits = traits_def(MadeByLowering())
    assembly_format = "$view attr-dict `:` type($view)"


@irdl_op_definition
class EndViewOp(IRDLOperation):
    """Ends a device's view of a buffer: what uses ``view`` comes before what uses ``buffer`` from here on.

    ```mlir
    device.end_view %v of %b : memref<4xf32, #opencl1> of memref<4xf32, #opencl0>
    ```
    """

    name = "device.end_view"
    buffer = operand_def(MemRefType)
    view = operand_def(MemRefType)
    traits = traits_def(MadeByLowering())
    assembly_format = "$view `of` $buffer attr-dict `:` type($view) `of` type($buffer)"

    def verify_(self) -> None:
        one, other = self.buffer.type, self.view.type
        assert isinstance(one, MemRefType)
        assert isinstance(other, MemRefType)
        if one.element_type != other.element_type or one.shape != other.shape:
            raise VerifyException(f"device.end_view: {other} is no view of all of {one}")


@irdl_op_definition
class KeptOp(IRDLOperation):
    """The buffer in which the last call left the state of this number.

    ```mlir
    %b = device.kept 0 : memref<4xf32, #opencl0>
    ```
    """

    name = "device.kept"
    number = attr_def(IntegerAttr.constr(i64))
    buffer = result_def(MemRefType)
    traits = traits_def(MadeByLowering())
    assembly_format = "$number attr-dict `:` type($buffer)"


@irdl_op_definition
class KeepOp(IRDLOperation):
    """Gives ``buffer`` to the runtime: if the call succeeds, the next one finds the state of this number there.

    ```mlir
    device.keep %b as 0 : memref<4xf32, #opencl0>
    ```
    """

    name = "device.keep"
    buffer = operand_def(MemRefType)
    number = attr_def(IntegerAttr.constr(i64))
    traits = traits_def(MadeByLowering())
    assembly_format = "$buffer `as` $number attr-dict `:` type($buffer)"
