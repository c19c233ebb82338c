"""Control flow in the form that bufferisation can handle."""

from __future__ import annotations

from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.mlir_util import RunPasses
from devscope.lowering.pipelines import pipeline


def lift_control_flow(module: Any, run_passes: RunPasses) -> None:
    """Rewrite the functions of ``module`` so that each has a single block: ``cf`` becomes ``scf``."""
    run_passes(module.operation, pipeline("lift_control_flow"))
    for op in list(mlir_util.walk(module.operation)):
        if op.name == "ub.poison" and isinstance(op.results[0].type, ir.ShapedType):
            _replace_poison(op)
        elif op.name == "scf.index_switch" and any(_is_tensor(result) for result in op.results):
            _replace_switch(op)


def _is_tensor(value: Any) -> bool:
    return isinstance(value.type, ir.RankedTensorType)


def _replace_poison(op: Any) -> None:
    """The lifted code carries poison where a value is not needed; tensors and buffers must exist to be freed.

    Any value will do, so dynamic extents become 0.
    """
    type_ = op.results[0].type
    build = mlir_util.Builder(op)
    dynamic = ir.ShapedType.get_dynamic_size()
    sizes = [build.constant(0) for extent in ir.ShapedType(type_).shape if extent == dynamic]
    is_memref = mlir_util.is_memref(type_)
    mlir_util.replace_op(
        op, [build.alloc(type_, sizes, "memref.alloc") if is_memref else build.value("tensor.empty", sizes, type_)]
    )


def _replace_switch(op: Any) -> None:
    """A chain of ``scf.if``. A workaround: one-shot bufferisation of a switch (llvm-project pull request 67666)
    writes to tensors that it yields even if they are read-only.
    """
    selector = op.operands[0]
    default, *cases = [region.blocks[0] for region in op.regions]
    types = [result.type for result in op.results]
    with op.location, ir.InsertionPoint(op):
        outer = ir.Operation.create("scf.execute_region", results=types, regions=1)
    body = outer.regions[0]
    for number, case in zip(ir.DenseI64ArrayAttr(op.attributes["cases"]), cases, strict=True):
        block = ir.Block.create_at_start(body, [])
        with op.location, ir.InsertionPoint(block):
            branch = _branch_on(selector, number, types)
            ir.Operation.create("scf.yield", operands=branch.results)
        case.append_to(branch.regions[0])
        body = branch.regions[1]
    default.append_to(body)
    mlir_util.replace_op(op, outer.results)


def _branch_on(selector: Any, number: int, types: list[Any]) -> Any:
    """An ``scf.if`` on ``selector == number`` whose regions are empty, at the current insertion point."""
    index = selector.type
    i1 = ir.IntegerType.get_signless(1, index.context)
    equal = ir.IntegerAttr.get(ir.IntegerType.get_signless(64, index.context), 0)
    constant = ir.Operation.create(
        "arith.constant", results=[index], attributes={"value": ir.IntegerAttr.get(index, number)}
    )
    condition = ir.Operation.create(
        "arith.cmpi", operands=[selector, constant.result], results=[i1], attributes={"predicate": equal}
    )
    return ir.Operation.create("scf.if", operands=[condition.result], results=types, regions=2)
