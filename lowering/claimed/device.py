"""Claimed functions whose data is in the memory of their backend's device: host code that launches a kernel.

They become adapters as those of the host do (`host`), over buffers of the device; what these call launches the
kernel that the backend's code generator gave a binary for. Where devscope drives the device, it may also call a C
function, which enqueues work.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from devscope.backends.backend import Argument
from devscope.backends.backend import DeviceBinary as BackendBinary
from devscope.dialects.location import source_location
from devscope.dialects.names import op_name
from devscope.errors import LoweringError, Note
from devscope.lowering import mlir_util
from devscope.lowering.boundary import DevicePart
from devscope.lowering.bufferize import to_buffers
from devscope.lowering.checks.labels import Checks
from devscope.lowering.claimed.adapters import PREFIX, CallText, adapter, usual_arguments
from devscope.lowering.claimed.functions import ClaimedFunction, generate, wrong
from devscope.lowering.claimed.host import (
    LAUNCH,
    LEND,
    LEND_DONE,
    CCode,
    CompileIr,
    HostParts,
    add_call,
    check_status,
    link,
)
from devscope.lowering.constants import ConstantTable
from devscope.lowering.interop.bindings import ir
from devscope.lowering.interop.session import Session
from devscope.lowering.memory.link_functions import merge_modules
from devscope.lowering.pipelines import pipeline
from devscope.lowering.target import DeviceBinary
from devscope.rewriting.host_rest import NEEDS_NO_CODE


def check_part(part: DevicePart, claimed: Sequence[ClaimedFunction]) -> list[ClaimedFunction]:
    """The claimed functions of a part. Raises LoweringError, located, for other code on a backend's device."""
    by_name = {one.name: one for one in claimed}
    found: list[ClaimedFunction] = []
    for function in part.module.body.block.ops:
        if not isinstance(function, FuncOp):
            continue
        name = function.sym_name.data
        if name in by_name:
            found.append(by_name[name])
            continue
        for op in function.body.walk():
            if not _is_host_work(op):
                name, runs = part.attribute.kind_name, "its device runs what its patterns match, if it is asked"
                raise LoweringError(
                    f"'{op_name(op)}' is on {part.scope.short()}, but backend '{name}' did not claim it",
                    source_location(op),
                    [Note(f"{runs}: backends=['{name}']", flags=f"{runs}: --backend {name}")],
                )
    return found


_HOST_WORK = NEEDS_NO_CODE | {"func.call", "func.return"}


def _is_host_work(op: Operation) -> bool:
    """Whether the host does an operation of a device function: it calls, and branches, and knows sizes."""
    if op_name(op) in _HOST_WORK or op_name(op).startswith("scf."):
        return True
    return not any(isinstance(value.type, TensorType) for value in (*op.operands, *op.results))


def lower_claimed(
    session: Session,
    part: DevicePart,
    slot: int,
    first_kernel: int,
    claimed: Sequence[ClaimedFunction],
    constants: ConstantTable,
    checks: Checks,
    linked: HostParts,
    compile_ir: CompileIr,
) -> tuple[Any, list[DeviceBinary]]:
    """The adapters of a part, and the binaries of its kernels, which count from ``first_kernel``.

    What launches them, or has libraries enqueue work, is added to ``linked``.
    """
    module = session.to_mlir(part.module)
    space = ir.Attribute.parse(str(part.scope), module.context)
    binaries: dict[bytes, DeviceBinary] = {}
    launches: list[tuple[str, tuple[bytes, int], Sequence[Any], Any]] = []
    calls: list[tuple[ClaimedFunction, CCode, Sequence[Any], Any]] = []
    for one in claimed:
        code = generate(one, session)
        is_own = one.device_type == one.backend.name
        if not isinstance(code, BackendBinary if is_own else CCode):
            what = "a device of its own, which runs device binaries"
            if not is_own:
                what = f"a device of type '{one.device_type}', where C functions enqueue work"
            raise wrong(one, f"gave {type(code).__name__} for {what}")
        made, types, location = adapter(session, one, checks.labels)
        merge_modules(module, made)
        if not isinstance(code, BackendBinary):
            calls.append((one, code, types, location))
            continue
        binary = binaries.setdefault(code.data, DeviceBinary(code.data, []))
        kernel = code.kernel, [_bytes(argument, types) for argument in usual_arguments(types)]
        if kernel not in binary.kernels:
            binary.kernels.append(kernel)
        launches.append((one.name, (code.data, binary.kernels.index(kernel)), types, location))
    first: dict[bytes, int] = {}
    for data, binary in binaries.items():
        first[data] = first_kernel
        first_kernel += len(binary.kernels)
    to_buffers(module, part.target, part.options, session.run_passes, constants, checks)
    mlir_util.retype_memrefs(module.operation, space, lambda old: old is None)
    session.run_passes(module.operation, pipeline("deallocate"))
    for name, (data, kernel), types, location in launches:
        text = _launch_text(f"{PREFIX}{name}", _on_device(types, space), slot, first[data] + kernel)
        linked.definitions.append((text, location))
    for one, code, types, location in calls:
        text = _library_text(linked, one, code, _on_device(types, space), slot, compile_ir)
        linked.definitions.append((text, location))
    return module, list(binaries.values())


def _on_device(types: Sequence[Any], space: Any) -> list[Any]:
    return [mlir_util.with_memory_space(type_, space) if mlir_util.is_memref(type_) else type_ for type_ in types]


def _bytes(argument: Argument, types: Sequence[Any]) -> int:
    """Of a cell, as a `KernelSpec` has it."""
    if argument.what == "scalar":
        return mlir_util.element_bytes(types[argument.value])
    return 0 if argument.what == "pointer" else 8


def _launch_text(name: str, types: Sequence[Any], slot: int, kernel: int) -> str:
    text = CallText(types)
    cells = text.cells()
    one, count = text.constant(1, "index"), text.constant(cells.length, "i64")
    numbers = f"{text.constant(slot, 'i64')}, {text.constant(kernel, 'i64')}"
    arguments = f"{numbers}, {', '.join([one] * 6)}, {cells.address}, {count}"
    text.lines.append(f"func.call @{LAUNCH}({arguments}) : (i64, i64, {'index, ' * 7}i64) -> ()")
    return f"func.func private @{LAUNCH}(i64, i64, {'index, ' * 7}i64)\n{text.function(name)}"


def _library_text(
    linked: HostParts,
    claimed: ClaimedFunction,
    code: CCode,
    types: Sequence[Any],
    slot: int,
    compile_ir: CompileIr,
) -> str:
    """The function gets the queue, and of buffers the addresses on the device, or what its driver has for them."""
    status = link(linked, claimed, code, compile_ir)
    text = CallText(types)
    buffers = [number for number, type_ in enumerate(types) if mlir_util.is_memref(type_)]
    array = text.new(f"memref.alloca() : memref<{len(buffers)}xi64>")
    for place, number in enumerate(buffers):
        at = text.constant(place, "index")
        text.lines.append(f"memref.store {text.address(number)}, {array}[{at}] : memref<{len(buffers)}xi64>")
    cells = text.new(f"memref.extract_aligned_pointer_as_index {array} : memref<{len(buffers)}xi64> -> index")
    numbers = text.constant(slot, "i64"), text.constant(len(buffers), "i64")
    queue = text.new(f"func.call @{LEND}({numbers[0]}, {cells}, {numbers[1]}) : (i64, index, i64) -> index")
    is_there = text.new(f"arith.cmpi ne, {queue}, {text.constant(0, 'index')} : index")
    text.lines.append(f"scf.if {is_there} {{")
    for place, number in enumerate(buffers):
        at = text.constant(place, "index")
        address = text.new(f"memref.load {array}[{at}] : memref<{len(buffers)}xi64>")
        text.lent[number] = text.new(f"llvm.inttoptr {address} : i64 to !llvm.ptr")
    handle = text.new(f"llvm.inttoptr {text.new(f'arith.index_cast {queue} : index to i64')} : i64 to !llvm.ptr")
    given = add_call(text, linked, claimed, code, status, handle)
    text.lines.append(f"func.call @{LEND_DONE}({numbers[0]}) : (i64) -> ()")
    if given:
        check_status(text, claimed, code.symbol, given)
    text.lines.append("}")
    declared = f"func.func private @{LEND}(i64, index, i64) -> index\nfunc.func private @{LEND_DONE}(i64)"
    return f"{declared}\n{text.function(f'{PREFIX}{claimed.name}')}"
