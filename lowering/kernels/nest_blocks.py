"""Inputs whose elements stand side by side along another loop than those of the rest: transposed block by block.

A block is copied to memory of the task, in the other order, by tiles of registers; what computes reads it there.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.nest import Nest, Operand
from devscope.lowering.kernels.tiles import ELEMENTS, LINE, move_tile
from devscope.lowering.mlir_util import Builder


def turned_inputs(nest: Nest, innermost: int, tiled: Mapping[int, int]) -> dict[int, int]:
    """By number, the inputs to transpose, and the loop along which their elements stand side by side.

    ``tiled``: loops that go by blocks, and how large those are.
    """
    found: dict[int, int] = {}
    for number, operand in enumerate(nest.operands[: nest.inputs]):
        other = operand.contiguous()
        if other is None or other == innermost or set(operand.dims).intersection(tiled) != {other, innermost}:
            continue
        if str(ir.MemRefType(operand.value.type).element_type) in ELEMENTS and nest.is_pure:
            found[number] = other
    return found


def lines_of(operand: Operand) -> int:
    """Elements of a tile, each way."""
    return LINE // mlir_util.element_bytes(ir.MemRefType(operand.value.type).element_type)


def room(build: Builder, operand: Operand, sizes: Sequence[int]) -> Any:
    """Memory of the task for a block, on its stack."""
    type_ = mlir_util.buffer_type(sizes, ir.MemRefType(operand.value.type).element_type)
    return build.at_begin_of_task().alloc_on_stack(type_)


def turn(build: Builder, operand: Operand, at: Sequence[Any], sizes: tuple[Any, Any], inner: int, to: Any) -> None:
    """Copy a block that begins where the axes of ``operand`` are indexed by ``at`` to ``to``, transposed.

    ``sizes``: of the loop of which elements stand side by side, and of ``inner``, an axis.
    """
    type_, target = operand.value.type, ir.MemRefType(to.type)
    element, rank = str(target.element_type), len(at)
    bytes_ = mlir_util.element_bytes(target.element_type)
    lines = [
        f"%base, %offset, %sizes:{rank}, %strides:{rank} = memref.extract_strided_metadata %0 : {type_} -> "
        f"memref<{element}>, {', '.join(['index'] * (1 + 2 * rank))}",
        "%c0 = arith.constant 0 : index",
        "%c1 = arith.constant 1 : index",
        f"%tile = arith.constant {LINE // bytes_} : index",
        f"%target_j = arith.constant {target.shape[1]} : index",
        f"%source = memref.reinterpret_cast %0 to offset: [0], sizes: [%c1], strides: [1] : {type_} "
        f"to memref<?x{element}>",
        f"%target = memref.reinterpret_cast %1 to offset: [0], sizes: [%c1], strides: [1] : {to.type} "
        f"to memref<?x{element}>",
        "%at0 = arith.addi %offset, %c0 : index",
    ]
    for axis in range(rank):
        lines.append(f"%behind{axis} = arith.muli %{axis + 4}, %strides#{axis} : index")
        lines.append(f"%at{axis + 1} = arith.addi %at{axis}, %behind{axis} : index")
    move = move_tile(element, bytes_, streams=False)
    text = f"""
        {chr(10).join(lines)}
        %source_i = arith.addi %strides#{inner}, %c0 : index
        %rest_j = arith.remui %2, %tile : index
        %rest_i = arith.remui %3, %tile : index
        %rest = arith.ori %rest_j, %rest_i : index
        %is_whole = arith.cmpi eq, %rest, %c0 : index
        scf.if %is_whole {{
          scf.for %j = %c0 to %2 step %tile {{
            %from_j = arith.addi %at{rank}, %j : index
            %to_j = arith.muli %j, %target_j : index
            scf.for %i = %c0 to %3 step %tile {{
              %from_i = arith.muli %i, %source_i : index
              %in = arith.addi %from_j, %from_i : index
              %out = arith.addi %to_j, %i : index
              {move}
            }}
          }}
        }} else {{
          scf.for %i = %c0 to %3 step %c1 {{
            %from_i = arith.muli %i, %source_i : index
            %in = arith.addi %at{rank}, %from_i : index
            scf.for %j = %c0 to %2 step %c1 {{
              %from = arith.addi %in, %j : index
              %to_j = arith.muli %j, %target_j : index
              %to = arith.addi %to_j, %i : index
              %x = memref.load %source[%from] : memref<?x{element}>
              memref.store %x, %target[%to] : memref<?x{element}>
            }}
          }}
        }}"""
    build.insert(text, [operand.value, to, *sizes, *at])
