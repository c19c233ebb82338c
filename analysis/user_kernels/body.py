"""What the body of a user kernel may hold: code of one work-item."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import MemRefType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from devscope.dialects.location import source_location
from devscope.dialects.names import op_name
from devscope.dialects.op_facts import facts_of
from devscope.errors import VerifyError

_DIALECTS = frozenset({"arith", "cf", "complex", "index", "math", "memref", "scf", "ub", "vector"})
_GPU = frozenset(
    {
        *("gpu.barrier", "gpu.block_dim", "gpu.block_id", "gpu.dynamic_shared_memory", "gpu.global_id"),
        *("gpu.grid_dim", "gpu.thread_id"),
    }
)
_OTHERS = frozenset({"affine.apply", "affine.max", "affine.min", "func.call", "func.return"})
_NOT_IN_KERNELS = frozenset(
    {
        *("memref.alloc", "memref.copy", "memref.dealloc", "memref.get_global", "memref.prefetch"),
        *("memref.realloc", "memref.reshape", "scf.forall", "scf.parallel", "vector.print"),
    }
)
_DYNAMIC = "gpu.dynamic_shared_memory"
_SOURCES = frozenset({"memref.alloca", _DYNAMIC})
"""Where a kernel gets buffers from, apart from its parameters and from views."""


def check_body(kernel: FuncOp) -> None:
    """Raise `VerifyError`, located, for the first operation that a kernel cannot have, calls left aside."""
    dynamic = 0
    name = kernel.sym_name.data
    for op in _operations(kernel):
        what = op_name(op)
        if not _is_device_code(what):
            raise VerifyError(
                f"'{what}' cannot stand in kernel '{name}', which runs on a device",
                source_location(op),
                [f"what can: memref, arith, math, scf, cf, vector, index, {', '.join(sorted(_GPU))}"],
            )
        dynamic += what == _DYNAMIC
        if dynamic > 1:
            raise VerifyError(
                f"kernel '{name}' asks for dynamic local memory twice",
                source_location(op),
                ["ask once, and make several views of it"],
            )
        _check_buffers(op, what)
        if what == "memref.alloca" and op.operands:
            raise VerifyError(
                f"kernel '{name}' allocates memory whose size it computes",
                source_location(op),
                ["for local memory, gpu.dynamic_shared_memory has the size that the launch says"],
            )
        if what == "memref.dim" and _is_dynamic_memory(op.operands[0]):
            raise VerifyError(
                f"kernel '{name}' asks how large its dynamic local memory is",
                source_location(op),
                ["pass the size as an argument"],
            )


def _is_dynamic_memory(value: SSAValue) -> bool:
    owner = value.owner
    return isinstance(owner, Operation) and op_name(owner) == _DYNAMIC


def _is_device_code(name: str) -> bool:
    if name in _NOT_IN_KERNELS:
        return False
    return name in _GPU or name in _OTHERS or name.partition(".")[0] in _DIALECTS


def _check_buffers(op: Operation, name: str) -> None:
    """Buffers do not flow through control flow: so what a kernel writes to is known."""
    is_source = name in _SOURCES or facts_of(op).view_of is not None
    values: list[SSAValue] = [] if is_source else list(op.results)
    if name.startswith("cf."):
        values += op.operands
    values += (argument for region in op.regions for block in region.blocks for argument in block.args)
    if any(isinstance(value.type, MemRefType) for value in values):
        raise VerifyError(
            f"'{name}' in a kernel hands buffers on",
            source_location(op),
            ["use buffers where they are, and let control flow carry numbers"],
        )


def uses_local_memory(kernel: FuncOp) -> Operation | None:
    """Where a kernel asks for dynamic local memory."""
    return next((op for op in _operations(kernel) if op_name(op) == _DYNAMIC), None)


def first_store(kernel: FuncOp, parameter: int) -> Operation | None:
    """The first operation that writes to a parameter, or to a view of it."""
    aliases: set[SSAValue] = {kernel.body.blocks[0].args[parameter]}
    work = list(aliases)
    while work:
        for use in work.pop().uses:
            if facts_of(use.operation).view_of == use.index:
                result = use.operation.results[0]
                if result not in aliases:
                    aliases.add(result)
                    work.append(result)
    for op in _operations(kernel):
        if any(op.operands[target] in aliases for target in facts_of(op).writes or ()):
            return op
    return None


def _operations(kernel: FuncOp) -> Iterator[Operation]:
    """The operations of a body as they stand, outer before inner; no deeper on Python's stack for deeper nests."""
    stack: list[Operation] = [kernel]
    while stack:
        op = stack.pop()
        if op is not kernel:
            yield op
        stack += [inner for region in op.regions for block in region.blocks for inner in block.ops][::-1]
