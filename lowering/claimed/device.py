"""Claimed functions whose data is in the memory of their backend's device: host code that launches a kernel.

They become adapters as those of the host do (`host`), over buffers of the device; what these call launches the kernel
that the backend's code generator gave a binary for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.func import FuncOp

from devscope.backends.backend import DeviceBinary as BackendBinary
from devscope.dialects.location import source_location
from devscope.dialects.names import op_name
from devscope.errors import LoweringError
from devscope.lowering import mlir_util
from devscope.lowering.boundary import DevicePart
from devscope.lowering.bufferize import to_buffers
from devscope.lowering.checks.labels import Checks
from devscope.lowering.claimed.adapters import PREFIX, CallText, adapter, usual_arguments, wrong
from devscope.lowering.claimed.functions import ClaimedFunction, generate
from devscope.lowering.claimed.host import LAUNCH, HostParts
from devscope.lowering.constants import ConstantTable
from devscope.lowering.interop.bindings import ir
from devscope.lowering.interop.session import Session
from devscope.lowering.memory.link_functions import merge_modules
from devscope.lowering.pipelines import pipeline
from devscope.lowering.target import DeviceBinary


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
        elif function.body.blocks:
            first = next((op for op in function.body.walk() if op_name(op) != "func.return"), function)
            raise LoweringError(
                f"'{op_name(first)}' is on {part.scope.short()}, but backend '{part.attribute.kind_name}' did not "
                "claim it",
                source_location(first),
                ["its device runs what its patterns match: leave the rest to the host"],
            )
    return found


def lower_claimed(
    session: Session,
    part: DevicePart,
    slot: int,
    first_kernel: int,
    claimed: Sequence[ClaimedFunction],
    constants: ConstantTable,
    checks: Checks,
    linked: HostParts,
) -> tuple[Any, list[DeviceBinary]]:
    """The adapters of a part, and the binaries of its kernels, which count from ``first_kernel``.

    What launches them is added to ``linked``.
    """
    module = session.to_mlir(part.module)
    space = ir.Attribute.parse(str(part.scope), module.context)
    binaries: dict[bytes, DeviceBinary] = {}
    launches: list[tuple[ClaimedFunction, BackendBinary, list[Any], Any]] = []
    for one in claimed:
        code = generate(one, session)
        if not isinstance(code, BackendBinary):
            raise wrong(one, f"gave {type(code).__name__} for a device of its own, which runs device binaries")
        made, types, location = adapter(session, one, checks.labels)
        merge_modules(module, made)
        sizes = [_bytes(argument.what, types[argument.value]) for argument in usual_arguments(types)]
        binary = binaries.setdefault(code.data, DeviceBinary(code.data, []))
        if all(name != code.kernel for name, _ in binary.kernels):
            binary.kernels.append((code.kernel, sizes))
        launches.append((one, code, types, location))
    numbers: dict[tuple[bytes, str], int] = {}
    for data, binary in binaries.items():
        for name, _ in binary.kernels:
            numbers[data, name] = first_kernel + len(numbers)
    to_buffers(module, part.target, part.options, session.run_passes, constants, checks)
    mlir_util.retype_memrefs(module.operation, space, lambda old: old is None)
    session.run_passes(module.operation, pipeline("deallocate"))
    for one, code, types, location in launches:
        on_device = [
            mlir_util.with_memory_space(type_, space) if mlir_util.is_memref(type_) else type_ for type_ in types
        ]
        text = _launch_text(f"{PREFIX}{one.name}", on_device, slot, numbers[code.data, code.kernel])
        linked.definitions.append((text, location))
    return module, list(binaries.values())


def _bytes(what: str, type_: Any) -> int:
    return {"pointer": 0, "size": 8}.get(what) if what != "scalar" else mlir_util.element_bytes(type_)  # pyright: ignore


def _launch_text(name: str, types: Sequence[Any], slot: int, kernel: int) -> str:
    text = CallText(types)
    cells = text.cells()
    one, count = text.constant(1, "index"), text.constant(cells.count, "i64")
    numbers = f"{text.constant(slot, 'i64')}, {text.constant(kernel, 'i64')}"
    arguments = f"{numbers}, {', '.join([one] * 6)}, {cells.index}, {count}"
    text.lines.append(f"func.call @{LAUNCH}({arguments}) : (i64, i64, {'index, ' * 7}i64) -> ()")
    return f"func.func private @{LAUNCH}(i64, i64, {'index, ' * 7}i64)\n{text.function(name)}"
