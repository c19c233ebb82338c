"""The ``func`` dialect with the two operations that xDSL's lacks: first-class functions.

`FuncExt` is registered in place of xDSL's ``Func``; it contains xDSL's own operation classes, so that
passes written for them keep working. Mirrors https://mlir.llvm.org/docs/Dialects/Func/.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import FlatSymbolRefAttrConstr, FunctionType, SymbolRefAttr
from xdsl.dialects.func import Func, FuncOp
from xdsl.ir import Attribute, Dialect, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import ConstantLike, Pure, SymbolTable, SymbolUserOpInterface
from xdsl.utils.exceptions import VerifyException

from devscope.dialects.names import type_list


class ConstantOpSymbolUser(SymbolUserOpInterface):
    """The symbol that a ``func.constant`` names is a function of the constant's type."""

    def verify(self, op: Operation) -> None:
        assert isinstance(op, ConstantOp)
        callee = SymbolTable.lookup_symbol(op, op.value)
        if not isinstance(callee, FuncOp):
            raise VerifyException(f"func.constant: {op.value} does not name a func.func in the module")
        if callee.function_type != op.result.type:
            raise VerifyException(
                f"func.constant: the result type must be that of {op.value}, "
                f"{callee.function_type}, not {op.result.type}"
            )


@irdl_op_definition
class ConstantOp(IRDLOperation):
    """A function as a value.

    ```mlir
    %f = func.constant @relu : (tensor<4xf32>) -> tensor<4xf32>
    ```
    """

    name = "func.constant"
    value = prop_def(FlatSymbolRefAttrConstr)
    result = result_def(FunctionType)
    traits = traits_def(ConstantLike(), Pure(), ConstantOpSymbolUser())
    assembly_format = "attr-dict $value `:` type($result)"

    def __init__(self, value: str | SymbolRefAttr, function_type: FunctionType) -> None:
        symbol = SymbolRefAttr(value) if isinstance(value, str) else value
        super().__init__(properties={"value": symbol}, result_types=[function_type])


@irdl_op_definition
class CallIndirectOp(IRDLOperation):
    """A call of a function value.

    ```mlir
    %y = func.call_indirect %f(%x) : (tensor<4xf32>) -> tensor<4xf32>
    ```
    """

    name = "func.call_indirect"
    callee = operand_def(FunctionType)
    callee_operands = var_operand_def()
    outputs = var_result_def()

    def __init__(self, callee: SSAValue | Operation, arguments: Sequence[SSAValue | Operation]) -> None:
        function_type = SSAValue.get(callee).type
        outputs: Sequence[Attribute] = (
            function_type.outputs.data if isinstance(function_type, FunctionType) else ()
        )
        super().__init__(operands=[callee, arguments], result_types=[outputs])

    @classmethod
    def parse(cls, parser: Parser) -> CallIndirectOp:
        callee = parser.parse_unresolved_operand()
        arguments = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, parser.parse_unresolved_operand, " in call arguments"
        )
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        start = parser.pos
        function_type = parser.parse_type()
        if not isinstance(function_type, FunctionType):
            parser.raise_error("func.call_indirect needs the callee's function type here", start, parser.pos)
        operands = parser.resolve_operands(arguments, function_type.inputs.data, start)
        op = cls(parser.resolve_operand(callee, function_type), operands)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.callee)
        with printer.in_parens():
            printer.print_list(self.callee_operands, printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.callee.type)

    def verify_(self) -> None:
        function_type = self.callee.type
        assert isinstance(function_type, FunctionType)  # the operand's constraint
        expected, given = function_type.inputs.data, self.callee_operands.types
        if expected != given:
            raise VerifyException(
                f"func.call_indirect: the callee takes {type_list(expected)}, but is given {type_list(given)}"
            )
        if function_type.outputs.data != self.result_types:
            raise VerifyException(
                f"func.call_indirect: the callee returns {type_list(function_type.outputs.data)}, "
                f"but the results are {type_list(self.result_types)}"
            )


FuncExt = Dialect("func", [*Func.operations, ConstantOp, CallIndirectOp], [*Func.attributes])
