"""What every target does to tensor code first: schedule named operations, turn into linalg, fuse.

Runs on modules whose functions still have tensors. Afterwards all payload is linalg (or ``tensor``) and
producers that cost nothing to recompute have been fused into their consumers.
"""

from __future__ import annotations

from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.mlir_util import RunPasses
from devscope.lowering.pipelines import apply_schedule, pipeline
from devscope.lowering.target import Options, Rule, Schedule, Target, choose

#: Operations that upstream decomposes into generics through an interface, not through a pass.
_DECOMPOSED = ("linalg.softmax",)

#: Named elementwise ops become ``linalg.generic`` so that producers fuse into consumers. Contractions,
#: convolutions and pooling keep their names: fusing a producer into their inner loops would recompute it.
_ELEMENTWISE = """
    abs add broadcast ceil div div_unsigned elementwise erf exp floor log map max min mul negf powf reciprocal
    round rsqrt select sqrt square sub tanh transpose
"""

#: What holds for all targets, after the rules of their own.
_SCHEDULES = (
    Rule(Schedule("linalg", "decompose"), _DECOMPOSED),
    Rule(Schedule("linalg", "generalize"), [f"linalg.{name}" for name in _ELEMENTWISE.split()]),
)

_MARK = "devscope.schedule"
"""On an operation: the schedule that is chosen for it. Transforms find it by this."""


def prepare_tensors(module: Any, run_passes: RunPasses, target: Target, options: Options) -> None:
    """Schedule, generalise and fuse the tensor code of ``module`` in place."""
    rules = (*target.schedules, *_SCHEDULES)
    chosen: dict[Schedule, None] = {}
    for op in mlir_util.walk(module.operation):
        schedule = choose(rules, op, options)
        if schedule is not None:
            chosen[schedule] = None
            op.attributes[_MARK] = ir.StringAttr.get(schedule.mark, module.context)
    for schedule in chosen:
        apply_schedule(
            module, schedule.file, schedule.sequence, mark=schedule.mark, order=str(list(schedule.order))
        )
    for op in mlir_util.walk(module.operation) if chosen else ():
        if _MARK in op.attributes:  # what is made from a marked operation keeps its attributes
            del op.attributes[_MARK]
    run_passes(module.operation, pipeline("fuse"))
    _fill_splat_constants(module)


def _fill_splat_constants(module: Any) -> None:
    """Splat tensor constants become fills: they then cost no memory in the executable and no copy."""
    for op in list(mlir_util.walk(module.operation)):
        if op.name != "arith.constant" or not isinstance(op.results[0].type, ir.RankedTensorType):
            continue
        value = op.attributes["value"]
        if not isinstance(value, ir.DenseElementsAttr) or not value.is_splat:
            continue
        type_ = op.results[0].type
        text = f"""
            %value = arith.constant {value.get_splat_value()}
            %empty = tensor.empty() : {type_}
            %fill = linalg.fill ins(%value : {type_.element_type}) outs(%empty : {type_}) -> {type_}
        """
        mlir_util.replace_op(op, mlir_util.insert(op, text)[-1].results)
