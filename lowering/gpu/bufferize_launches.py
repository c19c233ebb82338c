"""Launches of hand-written kernels through bufferisation.

One-shot bufferisation knows no ``device.launch``. What it knows is ``linalg.generic``, whose outputs are initial
values of its results just as what ``device.out`` names: so a launch goes through it in the body of one, which
reads all tensors and writes all outputs. Where results can have the memory of their initial values, and where
these have to be copied, is then decided by the rules for all tensors. The launch itself is about elements there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.gpu.user_kernels import UserKernel
from devscope.lowering.interop.bindings import ir
from devscope.lowering.mlir_util import Builder

_LAUNCH, _OUT = "device.launch", "device.out"


def carry_launches(module: Any) -> None:
    """Put the launches of ``module`` into the bodies of ``linalg.generic``. To be done right before bufferisation:
    these are no loops over elements, which might be fused.
    """
    for op in list(mlir_util.walk(module.operation)):
        if op.name == _LAUNCH:
            _carry(op)


def _carry(launch: Any) -> None:
    context = launch.context
    arguments = [op for op in _arguments(launch) if isinstance(op.operands[0].type, ir.RankedTensorType)]
    tensors = [op.operands[0] for op in arguments]
    outs = len(launch.results)
    maps, iterators = _loops([ir.RankedTensorType(value.type).rank for value in tensors], outs)
    attributes = {
        "indexing_maps": ir.Attribute.parse(maps, context),
        "iterator_types": ir.Attribute.parse(iterators, context),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(tensors) - outs, outs], context),
    }
    types = [result.type for result in launch.results]
    generic = Builder(launch).op("linalg.generic", tensors, types, attributes, regions=1)
    elements = [ir.RankedTensorType(value.type).element_type for value in tensors]
    body = ir.Block.create_at_start(generic.regions[0], elements, [launch.location] * len(elements))
    for result, new in zip(launch.results, generic.results, strict=True):
        result.replace_all_uses_with(new)
    launch.detach_from_parent()
    body.append(launch)
    for op, element in zip(arguments, body.arguments, strict=True):
        op.operands[0] = element
    for result, element in zip(launch.results, elements[len(tensors) - outs :], strict=True):
        result.set_type(element)
    body.append(ir.Operation.create("linalg.yield", operands=list(launch.results), loc=launch.location))


def _arguments(launch: Any) -> list[Any]:
    """What name the arguments of a kernel, in the order of its parameters."""
    return sorted(mlir_util.children(launch), key=lambda op: op.name == _OUT)


def _loops(ranks: Sequence[int], outs: int) -> tuple[str, str]:
    """Indexing maps and iterators, as text, in which every operand has loops of its own.

    An input and an output are then not read and written element by element, which could be in one buffer.
    """
    loops = ", ".join(f"d{number}" for number in range(sum(ranks)))
    maps: list[str] = []
    iterators: list[str] = []
    for number, rank in enumerate(ranks):
        own = ", ".join(f"d{len(iterators) + axis}" for axis in range(rank))
        maps.append(f"affine_map<({loops}) -> ({own})>")
        kind = "parallel" if number >= len(ranks) - outs else "reduction"
        iterators += [f"#linalg.iterator_type<{kind}>"] * rank
    return f"[{', '.join(maps)}]", f"[{', '.join(iterators)}]"


def call_kernels(module: Any, kernels: Mapping[str, UserKernel]) -> None:
    """Replace what carries a launch in ``module``, which is bufferised, by a call of a function over buffers.

    The functions have the names of the kernels, and no bodies yet.
    """
    declared: set[str] = set()
    for generic in list(mlir_util.walk(module.operation)):
        launch = _carried_by(generic) if generic.name == "linalg.generic" else None
        if launch is None:
            continue
        kernel = kernels[ir.FlatSymbolRefAttr(launch.attributes["kernel"]).value]
        if kernel.name not in declared:
            declared.add(kernel.name)
            sizes = [ir.IndexType.get(module.context)] * len(launch.operands)
            type_ = ir.FunctionType.get([*kernel.parameters, *sizes], [], context=module.context)
            mlir_util.declare(module.body, kernel.name, type_, kernel.func.location)
        _call(generic, launch, kernel)


def _carried_by(generic: Any) -> Any | None:
    return next((op for op in mlir_util.children(generic) if op.name == _LAUNCH), None)


def _call(generic: Any, launch: Any, kernel: UserKernel) -> None:
    build = Builder(generic)
    block = mlir_util.entry_block(generic)
    buffer_of = dict(zip(block.arguments, generic.operands, strict=True))
    values: list[Any] = []
    copied: list[tuple[Any, Any]] = []
    for op, parameter in zip(_arguments(launch), kernel.parameters, strict=True):
        value = op.operands[0]
        if value not in buffer_of:
            values.append(value)
            continue
        buffer = buffer_of[value]
        dense = _dense(build, buffer)
        if dense is not buffer and op.name == _OUT:
            copied.append((dense, buffer))
        # A kernel may leave open what the program knows of a shape.
        values.append(build.cast(dense, parameter))
    build.call(kernel.name, [*values, *launch.operands])
    for dense, buffer in copied:
        build.op("memref.copy", [dense, buffer])
    generic.erase()


def _dense(build: Builder, buffer: Any) -> Any:
    """``buffer``, or a copy of it where it is part of another one."""
    if mlir_util.is_whole_buffer(buffer.type):
        return buffer
    type_ = ir.MemRefType(buffer.type)
    dense = mlir_util.buffer_type(type_.shape, type_.element_type)
    copy = build.alloc(dense, build.dynamic_sizes(buffer))
    build.op("memref.copy", [buffer, copy])
    return copy
