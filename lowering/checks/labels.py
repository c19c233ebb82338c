"""Which arguments of a program's public functions the functions of a split module are given."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from devscope.analysis.call_graph import CallGraph
from devscope.dialects.device import DeviceCopyOp
from devscope.dialects.op_facts import facts_of
from devscope.runtime.program import TensorSpec

Labels = Mapping[str, list[str]]
"""For functions by name: how users call what each argument holds, such as ``argument 0 'x'``; else ``""``."""


@dataclass
class Checks:
    """What is checked as the program runs: shapes always, ``indices`` and divisions as an option.

    ``messages``: what kernels report by a number, that of its position here, counted from 1.
    """

    labels: Labels
    indices: bool = False
    messages: list[str] = field(default_factory=list[str])


def argument_labels(module: ModuleOp, inputs: Mapping[str, Sequence[TensorSpec]]) -> Labels:
    """Labels of the tensors that functions take. An argument of a private function has one if all calls agree.

    ``inputs``: those of the public functions.
    """
    graph = CallGraph(module)
    labels = {
        name: _own_labels(inputs[name]) if name in inputs else [""] * len(f.function_type.inputs)
        for name, f in graph.symbols.functions.items()
    }
    calls: dict[func.FuncOp, list[Sequence[SSAValue]]] = {}
    for op, _, callee in graph.calls:
        if callee is not None and callee in graph.private:
            calls.setdefault(callee, []).append(op.operands)
    for component in reversed(graph.components):  # callers before callees
        names = [(f.sym_name.data, calls[f]) for f in component if f in calls]
        changed = True
        while changed:
            found = {
                name: [_common(values, labels) for values in zip(*sites, strict=True)] for name, sites in names
            }
            changed = len(component) > 1 and any(found[name] != labels[name] for name in found)
            labels |= found
    return labels


def _own_labels(inputs: Sequence[TensorSpec]) -> list[str]:
    return ["" if spec.scalar else f"argument {n} '{spec.name}'" for n, spec in enumerate(inputs)]


def _common(values: tuple[SSAValue, ...], labels: Labels) -> str:
    found = {_label(value, labels) for value in values}
    if len(found) > 1:  # several functions call the argument at this position by names of their own
        found = {label.partition(" '")[0] for label in found}
    return found.pop() if len(found) == 1 else ""


def _label(value: SSAValue, labels: Labels) -> str:
    """The label of an argument that has the shape of ``value``."""
    while not isinstance(value, BlockArgument):
        op = value.owner
        assert isinstance(op, Operation)
        if not isinstance(op, DeviceCopyOp) and not facts_of(op).same_shape:
            return ""
        value = op.operands[0]
    function = value.block.parent_op()
    if not isinstance(function, func.FuncOp) or value.block is not function.body.first_block:
        return ""
    known = labels[function.sym_name.data]
    return known[value.index] if value.index < len(known) else ""
