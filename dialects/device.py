"""The ``device`` dialect: which device data is stored on and code runs on.

The data of every operation stands in attributes, not properties, and attribute parameters are strings,
integers and dictionaries: so the dialect loads into plain MLIR through IRDL (see `irdl_export`).
Besides the operations, ``device.scope`` and ``device.target`` may stand as discardable attributes on any
operation and in the argument and result attributes of functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i1
from xdsl.interfaces import HasFolderInterface
from xdsl.ir import Attribute, Block, Dialect, Operation, Region, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    VarConstraint,
    attr_def,
    irdl_op_definition,
    lazy_traits_def,
    operand_def,
    opt_attr_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    HasParent,
    IsTerminator,
    Pure,
    RecursiveMemoryEffect,
    ReturnLike,
    SingleBlockImplicitTerminator,
    ensure_terminator,
)
from xdsl.utils.exceptions import VerifyException

from devscope.dialects.launch import InOp, LaunchOp, OutOp
from devscope.dialects.lowered import EndViewOp, FlushOp, KeepOp, KeptOp, PublishOp
from devscope.dialects.names import op_name, type_list
from devscope.dialects.scope_attr import HOST_SCOPE, OPEN_ID, OPEN_SCOPE, PLACED_BY_ATTR, SCOPE_ATTR, ScopeAttr
from devscope.dialects.target_attr import (
    CALL_ATTR,
    COMPILER_ATTR,
    COMPOSITE_ATTR,
    HOST_TARGET_ATTR,
    KERNEL_ATTR,
    NOALIAS_ATTR,
    STATE_ATTR,
    TARGET_ATTR,
    TargetAttr,
)
from devscope.dialects.verifier import near_misses, verify_operation

__all__ = [
    "CALL_ATTR",
    "COMPILER_ATTR",
    "COMPOSITE_ATTR",
    "HOST_SCOPE",
    "HOST_TARGET_ATTR",
    "KERNEL_ATTR",
    "NOALIAS_ATTR",
    "OPEN_ID",
    "OPEN_SCOPE",
    "PLACED_BY_ATTR",
    "SCOPE_ATTR",
    "STATE_ATTR",
    "TARGET_ATTR",
    "Device",
    "DeviceCopyOp",
    "InOp",
    "LaunchOp",
    "OnDeviceOp",
    "OutOp",
    "RegionOp",
    "ScopeAttr",
    "TargetAttr",
    "YieldOp",
    "verify_device_attributes",
]


@irdl_op_definition
class OnDeviceOp(IRDLOperation):
    """An annotation: identity at run time.

    | constrain_body | constrain_result | meaning |
    |---|---|---|
    | true | false | the operand is computed on ``scope``; the result may be a copy elsewhere (the default) |
    | true | true | operand and result are on ``scope`` |
    | false | false | a copy is allowed here |
    | false | true | the result is on ``scope``, the operand may come from elsewhere |

    ```mlir
    %y = device.on_device %x on #device.scope<"opencl", 0 : i64, "", ""> : tensor<4xf32>
    ```
    """

    T: ClassVar = VarConstraint("T", AnyAttr())

    name = "device.on_device"
    operand = operand_def(T)
    result = result_def(T)
    scope = attr_def(ScopeAttr)
    constrain_body = opt_attr_def(IntegerAttr.constr(i1))
    constrain_result = opt_attr_def(IntegerAttr.constr(i1))
    traits = traits_def(Pure())
    assembly_format = "$operand `on` qualified($scope) attr-dict `:` type($operand)"

    def __init__(
        self,
        operand: SSAValue | Operation,
        scope: ScopeAttr,
        *,
        constrain_body: bool = True,
        constrain_result: bool = False,
    ) -> None:
        # The defaults are left out: what users write and what is printed for it are the same.
        flags = {
            "constrain_body": None if constrain_body else IntegerAttr.from_bool(False),
            "constrain_result": IntegerAttr.from_bool(True) if constrain_result else None,
        }
        super().__init__(
            operands=[operand],
            result_types=[SSAValue.get(operand).type],
            attributes={"scope": scope, **flags},
        )

    @property
    def constrains_body(self) -> bool:
        """Whether the operand must be computed on the scope; true when not stated."""
        return self.constrain_body is None or self.constrain_body.value.data != 0

    @property
    def constrains_result(self) -> bool:
        """Whether the result must be on the scope; false when not stated."""
        return self.constrain_result is not None and self.constrain_result.value.data != 0

    def verify_(self) -> None:
        if self.scope.is_open and (self.constrains_body or self.constrains_result):
            raise VerifyException(
                "device.on_device: a fully open scope constrains nothing; close one of its fields, such as "
                "the device type, or set constrain_body = false and leave constrain_result out"
            )


@irdl_op_definition
class DeviceCopyOp(IRDLOperation, HasFolderInterface):
    """The data of the operand, moved from scope ``src`` to scope ``dst``: the only way it moves.

    ```mlir
    %y = device.device_copy %x from #device.scope<"cpu", 0 : i64, "", "">
                               to #device.scope<"opencl", 0 : i64, "", ""> : tensor<4xf32>
    ```
    """

    T: ClassVar = VarConstraint("T", AnyAttr())

    name = "device.device_copy"
    operand = operand_def(T)
    result = result_def(T)
    src = attr_def(ScopeAttr)
    dst = attr_def(ScopeAttr)
    traits = traits_def(Pure())
    assembly_format = "$operand `from` qualified($src) `to` qualified($dst) attr-dict `:` type($operand)"

    def __init__(self, operand: SSAValue | Operation, src: ScopeAttr, dst: ScopeAttr) -> None:
        super().__init__(
            operands=[operand],
            result_types=[SSAValue.get(operand).type],
            attributes={"src": src, "dst": dst},
        )

    def verify_(self) -> None:
        for name, scope in (("src", self.src), ("dst", self.dst)):
            if not scope.type_name:
                raise VerifyException(
                    f"device.device_copy: '{name}' leaves the device type open; "
                    'a copy needs both ends, such as #device.scope<"cpu", 0 : i64, "", "">'
                )

    def fold(self) -> Sequence[SSAValue | Attribute] | None:
        return (self.operand,) if self.src == self.dst else None


@irdl_op_definition
class YieldOp(IRDLOperation):
    """The end of a ``device.region``; its operands are the region's results."""

    name = "device.yield"
    arguments = var_operand_def()
    traits = lazy_traits_def(lambda: (IsTerminator(), HasParent(RegionOp), Pure(), ReturnLike()))
    assembly_format = "attr-dict ($arguments^ `:` type($arguments))?"

    def __init__(self, *arguments: SSAValue | Operation) -> None:
        super().__init__(operands=[arguments])


@irdl_op_definition
class RegionOp(IRDLOperation):
    """A body all of whose operations run on ``scope``. It uses values from outside directly.

    ```mlir
    %y = device.region on #device.scope<"opencl", 0 : i64, "", ""> -> tensor<4xf32> {
      %0 = math.tanh %x : tensor<4xf32>
      device.yield %0 : tensor<4xf32>
    }
    ```
    """

    name = "device.region"
    scope = attr_def(ScopeAttr)
    outputs = var_result_def()
    body = region_def("single_block")
    traits = traits_def(RecursiveMemoryEffect(), SingleBlockImplicitTerminator(YieldOp))

    def __init__(
        self, scope: ScopeAttr, result_types: Sequence[Attribute], body: Region | Sequence[Operation] | Block
    ) -> None:
        region = body if isinstance(body, Region) else Region(body if isinstance(body, Block) else Block(body))
        super().__init__(attributes={"scope": scope}, result_types=[result_types], regions=[region])
        for trait in self.get_traits_of_type(SingleBlockImplicitTerminator):
            ensure_terminator(self, trait)

    @classmethod
    def parse(cls, parser: Parser) -> RegionOp:
        parser.parse_keyword("on")
        start = parser.pos
        scope = parser.parse_attribute()
        if not isinstance(scope, ScopeAttr):
            parser.raise_error("a #device.scope must stand here", start, parser.pos)
        types = parser.parse_optional_punctuation("->") and parser.parse_comma_separated_list(
            parser.Delimiter.NONE, parser.parse_type
        )
        op = cls(scope, types or (), parser.parse_region())
        op.attributes |= parser.parse_optional_attr_dict()
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" on ")
        printer.print_attribute(self.scope)
        if self.outputs:
            printer.print_string(" -> ")
            printer.print_list(self.outputs.types, printer.print_attribute)
        printer.print_string(" ")
        printer.print_region(self.body, print_block_terminators=bool(self.outputs))
        printer.print_op_attributes(self.attributes, reserved_attr_names=("scope",))

    def verify_(self) -> None:
        if self.scope.is_open:
            raise VerifyException(
                "device.region: a fully open scope says nothing; close one of its fields, such as the device type"
            )
        block = self.body.block
        if block.args:
            raise VerifyException(
                f"device.region: the body takes no arguments, but has {len(block.args)}; "
                "use the values from outside directly"
            )
        yielded = block.last_op.operand_types if isinstance(block.last_op, YieldOp) else ()
        if tuple(yielded) != tuple(self.result_types):
            raise VerifyException(
                f"device.region: the body yields {type_list(yielded)}, "
                f"but the results are {type_list(self.result_types)}; they must be equal"
            )
        # MLIR does not look where results have several types.
        made: set[Operation | Block] = set()
        for op in block.ops:
            for user in op.walk():
                for operand in user.operands:
                    if operand.owner.parent is block and operand.owner not in made:
                        raise VerifyException(
                            f"device.region: '{op_name(user)}' in the body uses a value that is made behind it"
                        )
            made.add(op)


Device = Dialect(
    "device",
    [
        OnDeviceOp,
        DeviceCopyOp,
        RegionOp,
        YieldOp,
        LaunchOp,
        InOp,
        OutOp,
        FlushOp,
        PublishOp,
        EndViewOp,
        KeptOp,
        KeepOp,
    ],
    [TargetAttr, ScopeAttr],
)


def verify_device_attributes(module: ModuleOp) -> list[tuple[Operation, str]]:
    """Check ``device.scope`` and ``device.target`` wherever they stand, and the operations of this dialect.

    Raises `VerifyError`, located where the operation that carries it is: a value that is no scope or target
    (unknown device type, target kind or option, ...), a scope and a target that disagree, an operation of
    this dialect that does not exist, breaks its rules or is for the lowering to make. Returns what deserves a
    warning: operations with attributes whose names are almost those of this dialect.
    """
    found: list[tuple[Operation, str]] = []
    for op in module.walk():
        verify_operation(op, Device)
        found += ((op, text) for text in near_misses(op))
    return found
