"""Indices and divisions that are checked as the program runs: as an option, since this costs time.

Code of the host asserts, which leaves the call. A kernel cannot: there an assertion that does not hold notes its
number in memory of the device, if none is there, and the kernel goes on with index 0. The runtime reads the number
when it waits for the device.
"""

import re
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.checks.assertions import CHECK, RANGE, compare
from devscope.lowering.checks.labels import Checks
from devscope.lowering.interop.bindings import ir
from devscope.lowering.interop.diagnostics import decode_location
from devscope.lowering.mlir_util import Builder

STATUS = "devscope_status"
"""The memory where kernels of a device note what does not hold: a ``memref.global`` until it is a runtime call."""

_ACCESSES = {"tensor.extract": 0, "memref.load": 0, "tensor.insert": 1, "memref.store": 1}
_DIVISIONS = ("divsi", "divui", "remsi", "remui", "ceildivsi", "ceildivui", "floordivsi")


def check_indices(module: Any) -> None:
    """Add the assertions to ``module``, whose code is over buffers."""
    check_accesses(module)
    check_divisions(module)


def check_accesses(module: Any) -> None:
    """Those of indices: before anything is simplified, since an element of a fill is taken to be anywhere."""
    for op in mlir_util.walk(module.operation):
        if op.name in _ACCESSES:
            _check_access(op, _ACCESSES[op.name])


def check_divisions(module: Any) -> None:
    """Those of divisions: where what is computed by elements stands in bodies."""
    for op in mlir_util.walk(module.operation):
        if op.name.removeprefix("arith.") in _DIVISIONS and isinstance(
            op.results[0].type, ir.IntegerType | ir.IndexType
        ):
            _check_division(op)


def _assert(op: Any, holds: Any, text: str) -> None:
    attributes = {"msg": ir.StringAttr.get(text, op.context), CHECK: ir.UnitAttr.get(op.context)}
    Builder(op).op("cf.assert", [holds], attributes=attributes)


def _check_access(op: Any, position: int) -> None:
    build = Builder(op)
    data = op.operands[position]
    shape = ir.ShapedType(data.type).shape
    for axis, extent in enumerate(shape):
        index = op.operands[position + 1 + axis]
        if extent == ir.ShapedType.get_dynamic_size():
            name = "memref.dim" if mlir_util.is_memref(data.type) else "tensor.dim"
            size = build.value(name, [data, build.constant(axis)], build.index)
        else:
            size = build.constant(extent)
        inside = compare(build, "ult", index, size)
        _assert(op, inside, f"{RANGE}: index {{0}} in dimension {axis} of '{op.name}', which has {{1}} elements")
        # Where the assertion does not leave: there is memory at 0, even of what has no elements.
        op.operands[position + 1 + axis] = build.value(
            "arith.select", [inside, index, build.constant(0)], build.index
        )


def _check_division(op: Any) -> None:
    build = Builder(op)
    dividend, divisor = op.operands
    type_ = divisor.type
    _assert(op, compare(build, "ne", divisor, build.constant(0, type_)), f"division by zero in '{op.name}'")
    if op.name.endswith("si"):
        width = 64 if isinstance(type_, ir.IndexType) else type_.width
        fits = compare(build, "ne", dividend, build.constant(-(1 << (width - 1)), type_))
        harmless = compare(build, "ne", divisor, build.constant(-1, type_))
        holds = build.value("arith.ori", [fits, harmless], fits.type)
        _assert(op, holds, f"overflow in '{op.name}': the least number is divided by -1")


def note_in_kernel(module: Any, root: list[Any], space: Any, checks: Checks) -> None:
    """Have the assertions in the operations of ``root``, which become a kernel, note what does not hold.

    The memory for that is in ``space``.
    """
    asserts = _assertions(root)
    if asserts:
        _note(asserts, status_memory(module, root[0], space), checks)


def note_in_function(kernel: Any, checks: Checks) -> bool:
    """The same for a kernel over buffers, which gets one more argument, if it asserts something."""
    asserts = _assertions([kernel])
    if asserts:
        i32 = ir.IntegerType.get_signless(32, kernel.context)
        status = mlir_util.entry_block(kernel).add_argument(mlir_util.buffer_type([1], i32), kernel.location)
        _note(asserts, status, checks)
    return bool(asserts)


def status_memory(module: Any, before: Any, space: Any) -> Any:
    """The memory of the device of ``space`` for what kernels note, in front of ``before``."""
    type_ = mlir_util.buffer_type([1], ir.IntegerType.get_signless(32, module.context), space)
    tops = mlir_util.children(module.operation)
    if STATUS not in [mlir_util.symbol_name(op) for op in tops if "sym_name" in op.attributes]:
        status = mlir_util.append(module, f'memref.global "private" @{STATUS} : {type_} = uninitialized')
        status.move_before(tops[0])
    name = {"name": ir.FlatSymbolRefAttr.get(STATUS, module.context)}
    return Builder(before).value("memref.get_global", [], type_, name)


def _assertions(root: list[Any]) -> list[Any]:
    return [op for part in root for op in mlir_util.walk(part) if op.name == "cf.assert"]


def _note(asserts: list[Any], status: Any, checks: Checks) -> None:
    for op in asserts:
        text = f"""
            %true = arith.constant true
            %fails = arith.xori %0, %true : i1
            scf.if %fails {{
              %c0 = arith.constant 0 : index
              %none = arith.constant 0 : i32
              %number = arith.constant {_number(op, checks.messages)} : i32
              %old = memref.load %1[%c0] : {status.type}
              %first = arith.cmpi eq, %old, %none : i32
              scf.if %first {{
                memref.store %number, %1[%c0] : {status.type}
              }}
            }}
        """
        mlir_util.insert(op, text, [op.operands[0], status])
        op.erase()


def _number(op: Any, messages: list[str]) -> int:
    """The number of the message of an assertion: as that of code of the host, but without numbers."""
    message = mlir_util.text_of(op, "msg")
    if CHECK in op.attributes:
        text = re.sub(r"index \{0\}", "an index", re.sub(r", which has \{1\} elements", "", message))
    else:
        text = f"assertion failed: {message}" if message else "assertion failed"
    location = decode_location(op.location)
    text = text if location is None else f"{location}: {text}"
    if text not in messages:
        messages.append(text)
    return messages.index(text) + 1
