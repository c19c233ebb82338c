"""Assertions of torch-mlir that are none of the program's."""

from importlib import import_module
from typing import Any

_AT_LEAST = 5
"""The predicate of `arith.cmpi` of signed numbers."""


def drop_wrong_assertions(module: Any) -> None:
    """torch-mlir asserts that no reciprocal is one of 0, which is an infinity, and that no reshape is empty."""
    ir: Any = import_module("torch_mlir.ir")
    wrong: list[Any] = []

    def look(op: Any) -> Any:
        message = op.attributes["msg"].value if op.name == "cf.assert" else ""
        if "tensor with zero element" in message:
            wrong.append(op)
        elif message == "Expected dim size > 0.":
            _let_be_zero(ir, op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(look)
    for op in wrong:
        op.erase()


def _let_be_zero(ir: Any, assertion: Any) -> None:
    compared = assertion.operands[0].owner
    with assertion.location, ir.InsertionPoint(assertion):
        predicate = {"predicate": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), _AT_LEAST)}
        made = ir.Operation.create("arith.cmpi", [assertion.operands[0].type], [*compared.operands], predicate)
    assertion.operands[0] = made.result
