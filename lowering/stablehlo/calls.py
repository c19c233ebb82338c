"""Calls of what is known by name."""

from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.mlir_util import Builder
from devscope.lowering.stablehlo.linear_algebra import cholesky, triangular_solve
from devscope.lowering.stablehlo.templates import element, expand, shape, tensor

_NOTHING = frozenset(
    [
        "Sharding",
        "SPMDFullToShardShape",
        "SPMDShardToFullShape",
        "annotate_device_placement",
        "LayoutConstraint",
        "MoveToHost",
        "MoveToDevice",
        "PinToDevice",
        "xla.sdy.FuncResultSharding",
        "xla.sdy.LocalToGlobalShape",
        "xla.sdy.GlobalToLocalShape",
    ]
)
"""Calls that return what they are given: a program runs on one device of a kind."""


def expand_custom_call(op: Any) -> None:
    name = ir.StringAttr(op.attributes["call_target_name"]).value
    if name in _NOTHING and [v.type for v in op.operands] == [v.type for v in op.results]:
        mlir_util.replace_op(op, list(op.operands))
    elif name == "shape_assertion":
        _assert(op)
    elif name.startswith("lapack_") and name.endswith("potrf_ffi"):
        _potrf(op)
    elif name.startswith("lapack_") and name.endswith("trsm_ffi"):
        _trsm(op)


def _options(op: Any) -> dict[str, str]:
    """What a foreign function of XLA is told, characters by their numbers."""
    options = ir.DictAttr(op.attributes["mhlo.backend_config"])
    return {
        item.name: chr(ir.IntegerAttr(item.attr).value)
        for item in options
        if isinstance(item.attr, ir.IntegerAttr)
    }


def _potrf(op: Any) -> None:
    """LAPACK's: also whether there is a factor, 0 if so."""
    type_, count = op.results[0].type, op.results[1].type
    text, factor = cholesky(type_, _options(op)["uplo"] == "L")
    extents, of = shape(type_), str(element(type_))
    real = of.removeprefix("complex<").rstrip(">")
    batch, parts = extents[:-2], tensor(extents, real)
    mask, rank = tensor(extents, "i1"), len(extents)
    value = factor
    if real != of:
        text += f"\n%real = stablehlo.real {factor} : ({type_}) -> {parts}"
        value = "%real"
    text += f"""
      %bad = stablehlo.compare NE, {value}, {value}, FLOAT : ({parts}, {parts}) -> {mask}
      %flag = stablehlo.convert %bad : ({mask}) -> {tensor(extents, "i32")}
      %none = stablehlo.constant dense<0> : tensor<i32>
      %info = stablehlo.reduce(%flag init: %none) applies stablehlo.maximum across dimensions = [{rank - 2}, {rank - 1}]
        : ({tensor(extents, "i32")}, tensor<i32>) -> {tensor(batch, "i32")}
      "devscope.return"({factor}, %info) : ({type_}, {count}) -> ()"""
    expand(op, text)


def _trsm(op: Any) -> None:
    options = _options(op)
    transpose = {"N": "NO_TRANSPOSE", "T": "TRANSPOSE", "C": "ADJOINT"}[options["trans_x"]]
    text, result = triangular_solve(
        op.operands[0].type,
        op.operands[1].type,
        options["side"] == "L",
        options["uplo"] == "L",
        options["diag"] == "U",
        transpose,
    )
    expand(op, f'{text}\n"devscope.return"({result}) : ({op.results[0].type}) -> ()')


def _assert(op: Any) -> None:
    """Of sizes; what the message would say of them is left out."""
    build = Builder(op)
    test = build.value("tensor.extract", [op.operands[0]], ir.IntegerType.get_signless(1, op.context))
    message = (
        ir.StringAttr(op.attributes["error_message"]).value
        if "error_message" in op.attributes
        else "shapes disagree"
    )
    build.op("cf.assert", [test], [], {"msg": ir.StringAttr.get(message, op.context)})
    op.erase()


def expand_barrier(op: Any) -> None:
    mlir_util.replace_op(op, list(op.operands))
