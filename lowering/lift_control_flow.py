"""Functions of several blocks become functions of one, which bufferisation can handle: ``cf`` becomes ``scf``."""

from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.mlir_util import RunPasses
from devscope.lowering.pipelines import pipeline


def lift_control_flow(module: Any, run_passes: RunPasses) -> None:
    """Rewrite the functions of ``module`` so that each has a single block, which bufferisation can handle: ``cf``
    becomes ``scf``."""
    run_passes(module.operation, pipeline("lift_control_flow"))
    for op in mlir_util.named(module.operation, "ub.poison", "scf.index_switch"):
        if op.name == "ub.poison" and isinstance(op.results[0].type, ir.RankedTensorType | ir.MemRefType):
            _replace_poison(op)
        elif op.name == "scf.index_switch" and any(
            isinstance(result.type, ir.RankedTensorType) for result in op.results
        ):
            _replace_switch(op)


def _replace_poison(op: Any) -> None:
    """The lifted code carries poison where a value is not needed; tensors and buffers must exist to be freed.

    Any value will do, so dynamic extents become 0.
    """
    type_ = op.results[0].type
    build = mlir_util.Builder(op)
    dynamic = ir.ShapedType.get_dynamic_size()
    sizes = [build.constant(0) for extent in ir.ShapedType(type_).shape if extent == dynamic]
    is_memref = mlir_util.is_memref(type_)
    value = build.alloc(type_, sizes) if is_memref else build.value("tensor.empty", sizes, type_)
    mlir_util.replace_op(op, [value])


def _replace_switch(op: Any) -> None:
    """A chain of ``scf.if``. A workaround: one-shot bufferisation of a switch (llvm-project pull request 67666)
    writes to tensors that it yields even if they are read-only.
    """
    default, *cases = [region.blocks[0] for region in op.regions]
    types = [result.type for result in op.results]
    outer = mlir_util.Builder(op).op("scf.execute_region", results=types, regions=1)
    body = outer.regions[0]
    for number, case in zip(ir.DenseI64ArrayAttr(op.attributes["cases"]), cases, strict=True):
        comparison = f"""
            %number = arith.constant {number} : index
            %equal = arith.cmpi eq, %0, %number : index
        """
        _, equal = mlir_util.insert(outer, comparison, op.operands)
        block = ir.Block.create_at_start(body, [])
        with op.location, ir.InsertionPoint(block):
            branch = ir.Operation.create("scf.if", operands=[equal.result], results=types, regions=2)
            ir.Operation.create("scf.yield", operands=branch.results)
        case.append_to(branch.regions[0])
        body = branch.regions[1]
    default.append_to(body)
    mlir_util.replace_op(op, outer.results)
