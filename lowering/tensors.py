"""What every target does to tensor code first: decompose, turn into linalg, fuse.

Runs on modules whose functions still have tensors. Afterwards all payload is linalg (or ``tensor``) and
producers that cost nothing to recompute have been fused into their consumers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from devscope.lowering import mlir_util, pipelines
from devscope.lowering.interop import bindings
from devscope.lowering.interop.bindings import ir
from devscope.lowering.mlir_util import RunPasses

#: Operations that upstream decomposes into generics through an interface, not through a pass.
_DECOMPOSED = ("linalg.softmax",)

#: Loop order for targets that run loops one after another: the dimension with unit stride in the result goes
#: innermost, where LLVM vectorises it. Numbers are iterator positions of the named op.
UNIT_STRIDE_INNERMOST: Mapping[str, Sequence[int]] = {
    "linalg.matmul": (0, 2, 1),
    "linalg.batch_matmul": (0, 1, 3, 2),
    "linalg.vecmat": (1, 0),
    "linalg.conv_2d_nchw_fchw": (0, 1, 4, 5, 6, 2, 3),
    "linalg.conv_2d_nhwc_hwcf": (0, 1, 2, 4, 5, 6, 3),
    "linalg.pooling_nchw_max": (0, 1, 4, 5, 2, 3),
    "linalg.pooling_nchw_sum": (0, 1, 4, 5, 2, 3),
    "linalg.pooling_nhwc_max": (0, 1, 2, 4, 5, 3),
    "linalg.pooling_nhwc_sum": (0, 1, 2, 4, 5, 3),
}


def prepare_tensors(module: Any, run_passes: RunPasses, loop_order: Mapping[str, Sequence[int]]) -> None:
    """Decompose, generalise and fuse the tensor code of ``module`` in place.

    Named ops in ``loop_order`` become generics with that order of loops; other contractions keep their names.
    """
    present = {op.name for op in mlir_util.walk(module.operation)}
    _transform(module, [_for_each([name], _DECOMPOSE) for name in _DECOMPOSED if name in present])
    run_passes(module.operation, pipelines.ELEMENTWISE_TO_LINALG)
    present = {op.name for op in mlir_util.walk(module.operation)}
    elementwise = [name for name in pipelines.ELEMENTWISE_NAMED_OPS if name in present]
    sequence = [_for_each(elementwise, _GENERALIZE)] if elementwise else []
    sequence += [
        _for_each([name], _INTERCHANGE.format(order=", ".join(map(str, order))))
        for name, order in loop_order.items()
        if name in present
    ]
    _transform(module, sequence)
    run_passes(module.operation, pipelines.FUSE)
    _fill_splat_constants(module)


_ANY = "!transform.any_op"
_DECOMPOSE = f"%new = transform.structured.decompose_interface %op : ({_ANY}) -> {_ANY}"
_GENERALIZE = f"%new = transform.structured.generalize %op : ({_ANY}) -> {_ANY}"
_INTERCHANGE = (
    f"{_GENERALIZE}\n      "
    f"%newer = transform.structured.interchange %new iterator_interchange = [{{order}}] : ({_ANY}) -> {_ANY}"
)


def _for_each(names: Sequence[str], body: str) -> str:
    ops = ", ".join(f'"{name}"' for name in names)
    return (
        f"%ops = transform.structured.match ops{{[{ops}]}} in %root : ({_ANY}) -> {_ANY}\n"
        f"    transform.foreach %ops : {_ANY} {{\n    ^bb0(%op: {_ANY}):\n      {body}\n    }}"
    )


def _transform(module: Any, sequences: Sequence[str]) -> None:
    for sequence in sequences:
        script = ir.Module.parse(
            "module attributes {transform.with_named_sequence} {\n"
            f"  transform.named_sequence @main(%root: {_ANY} {{transform.readonly}}) {{\n"
            f"    {sequence}\n    transform.yield\n  }}\n}}",
            module.context,
        )
        bindings.transform_interpreter().apply_named_sequence(
            module.operation, mlir_util.children(script.operation)[0], script.operation
        )


def _fill_splat_constants(module: Any) -> None:
    """Splat tensor constants become fills: they then cost no memory in the executable and no copy."""
    for op in list(mlir_util.walk(module.operation)):
        if op.name != "arith.constant" or not isinstance(op.results[0].type, ir.RankedTensorType):
            continue
        value = op.attributes["value"]
        if not isinstance(value, ir.DenseElementsAttr) or not ir.DenseElementsAttr(value).is_splat:
            continue
        build = mlir_util.Builder(op)
        type_ = op.results[0].type
        splat = ir.DenseElementsAttr(value).get_splat_value()
        scalar = build.value("arith.constant", [], ir.RankedTensorType(type_).element_type, {"value": splat})
        empty = build.value("tensor.empty", [], type_)
        mlir_util.replace_op(op, [_fill(build, scalar, empty, op)])


def _fill(build: mlir_util.Builder, scalar: Any, empty: Any, before: Any) -> Any:
    element = ir.RankedTensorType(empty.type).element_type
    fill = ir.Operation.create(
        "linalg.fill",
        operands=[scalar, empty],
        results=[empty.type],
        attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1], before.context)},
        regions=1,
        loc=before.location,
        ip=ir.InsertionPoint(before),
    )
    body = ir.Block.create_at_start(fill.regions[0], [element, element], [before.location] * 2)
    body.append(ir.Operation.create("linalg.yield", operands=[body.arguments[0]], loc=before.location))
    return fill.results[0]
