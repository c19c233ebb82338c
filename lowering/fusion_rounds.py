"""Elementwise operations are fused, thousands in a row in rounds.

Upstream's ``linalg-fuse-elementwise-ops`` copies the body that it has so far for each producer that it takes in:
its time grows with the square of how many these are. The first rounds fuse some tens at a time, each of the next
as many of what these have become. So does the time of ``resolve-ranked-shaped-type-result-dims`` grow, which goes
back from each operation of unknown size to where its size is known.
"""

from itertools import islice
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop import bindings
from devscope.lowering.interop.bindings import ir, walk
from devscope.lowering.kernels.operands_apart import insert_copy, is_elementwise, join_operands
from devscope.lowering.mlir_util import RunPasses
from devscope.lowering.pipelines import pipeline

_MANY = 128
"""Operations that become one, from which on it takes rounds."""
_AT_ONCE = 32
_CUT = "devscope.cut"
"""On a copy that a round does not look through."""


def fuse(module: Any, run_passes: RunPasses) -> None:
    """Fuse what is elementwise, into operations that are not, too."""
    before = 0
    while True:
        largest, cuts = _cuts(module)
        if largest < _MANY or largest == before:  # the same again: upstream does not fuse these
            cuts = []
        for user, number in cuts:
            insert_copy(user, number, _CUT)
        _ask_for_sizes(module, run_passes)
        run_passes(module.operation, pipeline("fuse"))
        if not cuts:
            return
        join_operands(module, _CUT)
        before = largest


def _ask_for_sizes(module: Any, run_passes: RunPasses) -> None:
    """Have sizes of results asked of what these are written to."""
    types = [value.type for op in _operations(module) for value in op.results]
    if sum(isinstance(type_, ir.RankedTensorType) and not type_.has_static_shape for type_ in types) < _MANY:
        return
    run_passes(module.operation, pipeline("empty_outputs"))
    for op in mlir_util.named(module.operation, "tensor.dim"):
        while (source := mlir_util.maker(op.operands[0])) is not None:
            if not source.name.startswith("linalg.") and _CUT not in source.attributes:
                break
            outputs = list(source.operands)[-len(source.results) :]
            op.operands[0] = outputs[op.operands[0].result_number]


def _operations(module: Any) -> list[Any]:
    return [op for op in walk(module.operation) if op.name.startswith(("linalg.", "arith.", "math."))]


def _cuts(module: Any) -> tuple[int, list[tuple[Any, int]]]:
    """Of how many operations fusion makes one, at most; where a round ends: the operations that have an operand
    made of so many, and its number."""
    ops = _operations(module)
    if len(ops) < _MANY:
        return 0, []
    linalg = bindings.load("_mlir_libs._mlirDialectsLinalg")
    all_of: dict[Any, int] = {}  # by a value with one user
    since_cut: dict[Any, int] = {}
    largest, cuts = 0, list[tuple[Any, int]]()
    for op in ops:
        if len(op.results) != 1 or not isinstance(op.results[0].type, ir.RankedTensorType):
            continue
        if not is_elementwise(op, linalg):
            continue
        whole = part = 1
        for number, value in enumerate(op.operands):
            size = since_cut.get(value, 0)
            if size < _AT_ONCE:
                part += since_cut.pop(value, 0)
            else:
                cuts.append((op, number))
            whole += all_of.pop(value, 0)
        largest = max(largest, whole)
        users = {use.owner.operation for use in islice(op.results[0].uses, _AT_ONCE)}
        if len(users) == 1:
            all_of[op.results[0]], since_cut[op.results[0]] = whole, part
    return largest, cuts
