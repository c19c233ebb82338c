"""Transfers of vectors across the end of a buffer, for code generators without masks: element by element there."""

from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir

_MASKED = "vector.maskedload"
_READ, _WRITE = "vector.transfer_read", "vector.transfer_write"


def expand_edges(root: Any) -> None:
    """Every transfer of a vector of one axis that may go beyond the end, or is no piece of the last axis."""
    for op in mlir_util.named(root.operation, _READ, _WRITE, _MASKED):
        text = _masked(op) if op.name == _MASKED else _expansion(op)
        if text:
            made = mlir_util.insert(op, text, op.operands)
            mlir_util.replace_op(op, made[-1].results if op.results else ())


def _masked(op: Any) -> str:
    """A load of the first elements, as many as ``vector.create_mask`` says."""
    _, *at, mask, _ = list(op.operands)
    if isinstance(mask.owner, ir.Block) or mask.owner.operation.name != "vector.create_mask":
        return ""
    memref, type_ = op.operands[0].type, op.results[0].type
    element, places = ir.VectorType(type_).element_type, [f"%{n + 1}" for n in range(len(at))]
    last = len(op.operands)
    op.operands[last - 2] = mask.owner.operation.operands[0]
    return f"""
        %zero = arith.constant 0 : index
        %one = arith.constant 1 : index
        %read = scf.for %lane = %zero to %{last - 2} step %one iter_args(%so_far = %{last - 1}) -> ({type_}) {{
          %behind = arith.addi {places[-1]}, %lane : index
          %element = memref.load %0[{", ".join([*places[:-1], "%behind"])}] : {memref}
          %with = vector.insert %element, %so_far[%lane] : {element} into {type_}
          scf.yield %with : {type_}
        }}"""


def _expansion(op: Any) -> str:
    is_read = op.name == _READ
    groups = mlir_util.operand_groups(op)
    vector_type = op.results[0].type if is_read else groups[0][0].type
    memref = groups[0 if is_read else 1][0].type
    map_ = ir.AffineMapAttr(op.attributes["permutation_map"]).value
    if not mlir_util.is_memref(memref) or ir.VectorType(vector_type).rank != 1:
        return ""
    (index,) = map_.results
    if not isinstance(index, ir.AffineDimExpr):
        return ""
    axis, rank = ir.AffineDimExpr(index).position, ir.MemRefType(memref).rank
    strides, _ = ir.MemRefType(memref).get_strides_and_offset()
    is_piece = axis == rank - 1 and strides[axis] == 1
    if str(op.attributes["in_bounds"]) == "[true]" and is_piece:
        return ""
    (lanes,) = ir.VectorType(vector_type).shape
    first = 1 if is_read else 2  # of the indices among the operands
    at = [f"%{first + n}" for n in range(rank)]
    buffer = "%0" if is_read else "%1"
    element = ir.VectorType(vector_type).element_type
    inside = ", ".join([*at[:axis], "%behind", *at[axis + 1 :]])
    lines = f"""
        %zero = arith.constant 0 : index
        %one = arith.constant 1 : index
        %axis = arith.constant {axis} : index
        %lanes = arith.constant {lanes} : index
        %extent = memref.dim {buffer}, %axis : {memref}
        %rest = arith.subi %extent, {at[axis]} : index
        %some = arith.minsi %rest, %lanes : index
        %fits = arith.cmpi eq, %some, %lanes : index
    """
    if is_read:
        pad = f"%{first + rank}"
        by_elements = f"""
            %none = vector.broadcast {pad} : {element} to {vector_type}
            %read = scf.for %lane = %zero to %some step %one iter_args(%so_far = %none) -> ({vector_type}) {{
              %behind = arith.addi {at[axis]}, %lane : index
              %element = memref.load {buffer}[{inside}] : {memref}
              %with = vector.insert %element, %so_far[%lane] : {element} into {vector_type}
              scf.yield %with : {vector_type}
            }}
        """
        if not is_piece:
            return lines + by_elements
        return f"""{lines}
            %made = scf.if %fits -> ({vector_type}) {{
              %all = vector.load {buffer}[{", ".join(at)}] : {memref}, {vector_type}
              scf.yield %all : {vector_type}
            }} else {{
              {by_elements}
              scf.yield %read : {vector_type}
            }}"""
    by_elements = f"""
        scf.for %lane = %zero to %some step %one {{
          %behind = arith.addi {at[axis]}, %lane : index
          %element = vector.extract %0[%lane] : {element} from {vector_type}
          memref.store %element, {buffer}[{inside}] : {memref}
        }}
    """
    if not is_piece:
        return lines + by_elements
    return f"""{lines}
        scf.if %fits {{
          vector.store %0, {buffer}[{", ".join(at)}] : {memref}, {vector_type}
        }} else {{
          {by_elements}
        }}"""
