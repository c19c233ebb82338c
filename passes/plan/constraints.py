"""The one table that says how an operation constrains the scopes of its operands and results.

A row maps an operation's name, or the prefix of a dialect, to a rule: a function that reads one operation and
adds nodes, edges and demands to the `System`. Plugins add rows with `register_rule`. An operation without a row
is planned by `compute_rules.compute`: all its operands and results are on one scope; unless its dialect is
known to behave so, the plan carries a remark.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.ir import Operation

from devscope.passes.plan import compute_rules, control_rules, device_rules
from devscope.passes.plan.compute_rules import compute, fill, generate, host, inspect, read, view
from devscope.passes.plan.compute_rules import with_host_operands as on_host
from devscope.passes.plan.system import System

Rule: TypeAlias = Callable[[System, Operation], None]


@dataclass(frozen=True)
class Row:
    """A rule, and whether the operations in the regions are planned one by one."""

    rule: Rule
    enters: bool = False


TABLE: dict[str, Row] = {
    # Made anew on every scope that needs it.
    "arith.constant": Row(generate),
    "stablehlo.constant": Row(generate),
    "chlo.constant": Row(generate),
    "tosa.const": Row(generate),
    "ub.poison": Row(generate),
    "tensor.empty": Row(generate),
    "bufferization.alloc_tensor": Row(generate),
    "tensor.splat": Row(fill),
    "linalg.fill": Row(fill),
    # Aliases: where their source is. The second operand of a reshape is a shape, and on the host.
    "tensor.cast": Row(view),
    "tensor.collapse_shape": Row(view),
    "tensor.expand_shape": Row(view),
    "tensor.extract_slice": Row(view),
    "tensor.bitcast": Row(view),
    "tensor.reshape": Row(on_host(view, 1)),
    "memref.cast": Row(view),
    "memref.view": Row(view),
    "memref.subview": Row(view),
    "memref.collapse_shape": Row(view),
    "memref.expand_shape": Row(view),
    "memref.reinterpret_cast": Row(view),
    "memref.memory_space_cast": Row(view),
    "memref.transpose": Row(view),
    "memref.assume_alignment": Row(view),
    "memref.reshape": Row(on_host(view, 1)),
    "memref.dealloc": Row(view),
    "bufferization.to_tensor": Row(view),
    "bufferization.to_buffer": Row(view),
    "bufferization.clone": Row(view),
    "bufferization.dealloc_tensor": Row(view),
    "stablehlo.reshape": Row(view),
    "stablehlo.dynamic_reshape": Row(on_host(view, 1)),
    # Scalars out of data: a read-back where the data is.
    "tensor.extract": Row(read),
    "memref.load": Row(read),
    "memref.store": Row(compute),
    # Shapes and addresses: nothing of the data is read.
    "tensor.dim": Row(inspect),
    "tensor.rank": Row(inspect),
    "memref.dim": Row(inspect),
    "memref.rank": Row(inspect),
    "memref.extract_aligned_pointer_as_index": Row(inspect),
    "shape.shape_of": Row(inspect),
    "stablehlo.get_dimension_size": Row(inspect),
    # Data computed with shapes that are tensors themselves, on the host.
    "stablehlo.dynamic_broadcast_in_dim": Row(on_host(compute, 1)),
    "stablehlo.dynamic_iota": Row(on_host(compute, 0)),
    "stablehlo.real_dynamic_slice": Row(on_host(compute, 1, 2, 3)),
    "stablehlo.dynamic_pad": Row(on_host(compute, 2, 3, 4)),
    # Functions.
    "arith.select": Row(control_rules.select),
    "func.call": Row(control_rules.call),
    "func.constant": Row(control_rules.constant_function),
    "func.call_indirect": Row(control_rules.call_indirect),
    "func.return": Row(control_rules.return_),
    # Control flow.
    "scf.if": Row(control_rules.choose, enters=True),
    "scf.index_switch": Row(control_rules.choose, enters=True),
    "scf.execute_region": Row(control_rules.choose, enters=True),
    "scf.for": Row(control_rules.for_, enters=True),
    "scf.while": Row(control_rules.while_, enters=True),
    "scf.yield": Row(control_rules.yield_),
    "scf.condition": Row(control_rules.condition),
    "affine.if": Row(control_rules.choose, enters=True),
    "affine.for": Row(control_rules.for_, enters=True),
    "affine.yield": Row(control_rules.yield_),
    "affine.parallel": Row(compute_rules.loop_body),
    "affine.load": Row(read),
    "affine.vector_load": Row(read),
    "stablehlo.if": Row(control_rules.choose_by_tensor, enters=True),
    "stablehlo.case": Row(control_rules.choose_by_tensor, enters=True),
    "stablehlo.while": Row(control_rules.while_by_tensor, enters=True),
    "stablehlo.return": Row(control_rules.yield_),
    "scf.forall": Row(compute_rules.loop_body),
    "scf.parallel": Row(compute_rules.loop_body),
    "cf.br": Row(control_rules.branch),
    "cf.cond_br": Row(control_rules.branch),
    "cf.switch": Row(control_rules.branch),
    "cf.assert": Row(host),
    # One computation: what stands in its body are its arguments.
    "device.launch": Row(device_rules.launch),
    # Users' demands.
    "device.on_device": Row(device_rules.on_device),
    "device.device_copy": Row(device_rules.device_copy),
    "device.region": Row(device_rules.region, enters=True),
    "device.yield": Row(device_rules.yield_),
}

_COMPUTE = Row(compute)

DIALECTS: dict[str, Row] = {
    name: _COMPUTE
    for name in (
        "affine", "arith", "bufferization", "chlo", "complex", "index", "linalg", "math", "memref", "ml_program",
        "quant", "shape", "sparse_tensor", "stablehlo", "tensor", "tosa", "vector",
    )
}  # fmt: skip
"""Rows for whole dialects, for operations that have none of their own."""


def register_rule(name: str, rule: Rule, enters: bool = False) -> None:
    """Add or replace the row of an operation (``"my.op"``) or of a dialect (``"my"``).

    With ``enters``, the operations in the regions are planned one by one, and the rule must define the
    regions' block arguments and slots; without it, the values that the regions use from outside belong to the
    operation.
    """
    (TABLE if "." in name else DIALECTS)[name] = Row(rule, enters)


def row_of(name: str) -> Row | None:
    """The row of an operation of this name; None when nothing is known about it."""
    return TABLE.get(name) or DIALECTS.get(name.partition(".")[0])


def unknown(system: System, op: Operation, name: str) -> None:
    """The conservative rule: everything that the operation touches is on one scope."""
    before = len(system.executed)
    compute(system, op)
    if len(system.executed) > before:
        system.remark_unknown(op, name)
