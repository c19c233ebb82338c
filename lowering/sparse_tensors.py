"""Sparse tensors become the arrays that they are stored in, and loops of the host over what is stored.

Upstream's sparsifier does it ("Compiler Support for Sparse Tensor Computations in MLIR", Bik et al. 2022; the
passes and their order are those of its mini-pipeline without a library). What is dense beside them stays as it is.
"""

from typing import Any

from devscope.analysis.target_binding import HOST_KIND
from devscope.dialects.device import SCOPE_ATTR
from devscope.errors import LoweringError
from devscope.lowering import mlir_util
from devscope.lowering.checks.demands import require_same
from devscope.lowering.global_state import is_public
from devscope.lowering.interop.bindings import ir
from devscope.lowering.interop.diagnostics import decode_location
from devscope.lowering.located_scopes import scopes_by_location
from devscope.lowering.mlir_util import Builder, RunPasses
from devscope.lowering.pipelines import SCHEDULE, apply_schedule, pipeline

_DIALECT = "sparse_tensor."
_ENCODING = "#sparse_tensor.encoding<"
_OF_FILES = frozenset({f"{_DIALECT}{name}" for name in ("new", "out", "print")})
_CONVERT = f"{_DIALECT}convert"
_TO_TENSOR, _TO_BUFFER = "bufferization.to_tensor", "bufferization.to_buffer"
_LOAD = "memref.load"
_NUMBER = "devscope.buffer"
"""On a ``to_buffer``: equal ones are not one."""


def lower_sparse_tensors(module: Any, run_passes: RunPasses) -> None:
    """Rewrite an ``ir.Module`` in place. Dense operations keep their names and scopes.

    Raises LoweringError, located, for sparse tensors on devices, in signatures of public functions and in files,
    and where upstream has no code.
    """
    sparse = [op for op in mlir_util.walk(module.operation) if _is_sparse(op)]
    if not sparse:
        return
    for op in mlir_util.walk(module.operation):
        _check(op)
    host = ir.Attribute.parse(f'#device.scope<"{HOST_KIND}", 0 : i64, "", "">', module.context)
    for op in sparse:
        if _computes(op):
            op.attributes[SCOPE_ATTR] = host
        if op.name.startswith("linalg."):
            op.attributes[SCHEDULE] = ir.StringAttr.get("generalize", module.context)
    apply_schedule(module, "linalg", "generalize", mark="generalize")
    for op in mlir_util.named(module.operation, "linalg.generic"):
        if SCHEDULE in op.attributes:
            del op.attributes[SCHEDULE]
            _demand_sizes(op)
    with scopes_by_location(module, _is_sparse, _computes):
        run_passes(module.operation, pipeline("sparse_tensors"))
    for number, op in enumerate(mlir_util.walk(module.operation)):
        if _is_sparse(op):
            what = f"upstream has no code for '{op.name}' of these sparse tensors"
            raise LoweringError(what, decode_location(op.location))
        if op.name == _TO_TENSOR:  # of the sparsifier; of others this is checked
            op.attributes["restrict"] = ir.UnitAttr.get(module.context)
        elif op.name == _TO_BUFFER:
            _keep_in_place(op, number)


def _is_sparse(op: Any) -> bool:
    values = (*op.operands, *mlir_util.defined_values(op))
    return op.name.startswith(_DIALECT) or any(_is_sparse_type(value.type) for value in values)


def _is_sparse_type(type_: Any) -> bool:
    encoding = type_.encoding if isinstance(type_, ir.RankedTensorType) else None
    return encoding is not None and str(encoding).startswith(_ENCODING)


def _is_structured(type_: Any) -> bool:
    """Whether so many elements of so many are stored, side by side."""
    return "structured[" in str(type_)


def _computes(op: Any) -> bool:
    """Whether a plan is to know where ``op`` runs: not what stands around others, calls and terminators."""
    if op.name.startswith(("scf.", "func.", f"{_DIALECT}yield")):
        return False
    shaped = (ir.RankedTensorType, ir.MemRefType)
    return op.name.startswith("llvm.") or any(isinstance(v.type, shaped) for v in (*op.operands, *op.results))


def _check(op: Any) -> None:
    notes: list[str] = []
    if op.name == "func.func":
        type_ = ir.FunctionType(ir.TypeAttr(op.attributes["function_type"]).value)
        if not is_public(op) or not any(map(_is_sparse_type, (*type_.inputs, *type_.results))):
            return
        what = f"public function '{mlir_util.symbol_name(op)}' takes or returns a sparse tensor"
        notes = ["pass the arrays that it is stored in: 'sparse_tensor.assemble' and 'sparse_tensor.disassemble'"]
    elif op.name in _OF_FILES:
        what = f"'{op.name}' reads or writes files, which programs cannot"
    elif op.name == _CONVERT and op.operands[0].type != op.results[0].type and _is_structured(op.results[0].type):
        what = f"'{op.name}' to a structured level: nothing checks that what is there has that structure"
        notes = ["assemble it from the arrays that it is stored in: 'sparse_tensor.assemble'"]
    elif op.name == _TO_TENSOR and "restrict" not in op.attributes:
        what = f"'{op.name}' without 'restrict' beside sparse tensors"
    elif SCOPE_ATTR in op.attributes and _is_sparse(op) and f'"{HOST_KIND}"' not in str(op.attributes[SCOPE_ATTR]):
        what = f"'{op.name}' of sparse tensors is on a device"
        notes = ["sparse tensors are on the host; what is dense can be on devices"]
    else:
        return
    raise LoweringError(what, decode_location(op.location), notes)


def _demand_sizes(op: Any) -> None:
    """Assert that the dimensions of a ``linalg.generic`` that one loop goes through have one size."""
    first: dict[int, tuple[int, int]] = {}
    for number, map_ in enumerate(ir.ArrayAttr(op.attributes["indexing_maps"])):
        for axis, result in enumerate(ir.AffineMapAttr(map_).value.results):
            if not isinstance(result, ir.AffineDimExpr):
                continue
            places = [first.setdefault(result.position, (number, axis)), (number, axis)]
            if any(op.operands[n].type.is_dynamic_dim(a) for n, a in places):
                build = Builder(op)
                sizes = [
                    build.value("tensor.dim", [op.operands[n], build.constant(a)], build.index) for n, a in places
                ]
                require_same(build, op, sizes, [f"dimension {a} of operand {n}" for n, a in places])


def _keep_in_place(buffer: Any, number: int) -> None:
    """Bufferisation takes ``to_buffer`` for all that is read and written behind it: equal ones are to stay apart.

    What nobody writes need not be copied.
    """
    buffer.attributes[_NUMBER] = ir.IntegerAttr.get(ir.IndexType.get(buffer.context), number)
    if _is_never_written(buffer.operands[0]) and all(use.owner.name == _LOAD for use in buffer.results[0].uses):
        buffer.attributes["read_only"] = ir.UnitAttr.get(buffer.context)


def _is_never_written(tensor: Any) -> bool:
    """By bufferisation, in place: what a caller owns, and constants."""
    owner = tensor.owner
    if isinstance(owner, ir.Block):
        return owner.owner.name == "func.func" and is_public(owner.owner)
    return owner.name == "arith.constant"
