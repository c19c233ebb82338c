"""Transfers of vectors across the end of a buffer, for code generators without masks: in pieces there."""

from collections.abc import Sequence
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir

_LOAD, _STORE, _GATHER = "vector.maskedload", "vector.maskedstore", "vector.gather"
_READ, _WRITE = "vector.transfer_read", "vector.transfer_write"


def expand_edges(root: Any) -> None:
    """Every transfer of a vector of one axis that may go beyond the end, or is no piece of the last axis."""
    for op in mlir_util.named(root.operation, _READ, _WRITE, _LOAD, _STORE, _GATHER):
        operands = list(op.operands)
        if op.name in (_READ, _WRITE):
            text = _expansion(op)
        else:
            bounds = _bounds(op, operands[-2])
            known = [_constant(bound) for bound in bounds]
            (lanes,) = ir.VectorType(operands[-1].type).shape
            if op.name != _GATHER and len(known) == 1 and known[0] is not None and 1 < known[0] < lanes:
                text = _first_lanes(op, known[0])
            else:
                text = _masked(op, bounds)
                operands += bounds
        if text:
            made = mlir_util.insert(op, text, operands)
            mlir_util.replace_op(op, made[-1].results if op.results else ())


def _bounds(op: Any, mask: Any) -> list[Any]:
    """The lane behind the last one of ``mask``, and the first one if that may not be 0; nothing if not known."""
    if (end := _end_of(op, mask)) is not None:
        return [end]
    both = _made_by(mask, "arith.andi")
    for high, low in () if both is None else (both.operands, reversed(list(both.operands))):
        before = _made_by(low, "arith.xori")
        if before is not None:  # the other operand is a constant of ones
            ends = [end for each in (high, before.operands[0]) if (end := _end_of(op, each)) is not None]
            if len(ends) == 2:
                return ends
    return []


def _end_of(op: Any, mask: Any) -> Any | None:
    """The lane from which on a mask that begins with the first lane has none."""
    if (made := _made_by(mask, "vector.create_mask")) is not None:
        return made.operands[0]
    if (made := _made_by(mask, "vector.constant_mask")) is not None:
        (end,) = list(ir.DenseI64ArrayAttr(made.attributes["mask_dim_sizes"]))
        return mlir_util.Builder(op).constant(end)
    return None


def _made_by(value: Any, name: str) -> Any | None:
    owner = None if isinstance(value.owner, ir.Block) else value.owner.operation
    return owner if owner is not None and owner.name == name else None


def _constant(value: Any) -> int | None:
    made = _made_by(value, "arith.constant")
    return None if made is None else ir.IntegerAttr(made.attributes["value"]).value


def _first_lanes(op: Any, count: int) -> str:
    """A load or store of the first ``count`` elements, several but not all: by two pieces that may overlap."""
    is_store, last = op.name == _STORE, len(op.operands) - 1
    memref, type_ = op.operands[0].type, op.operands[last].type
    (lanes,), element = ir.VectorType(type_).shape, ir.VectorType(type_).element_type
    size = 1 << count.bit_length() - 1
    piece, offsets = f"vector<{size}x{element}>", [0] if size == count else [0, count - size]
    at = [f"%{1 + axis}" for axis in range(ir.MemRefType(memref).rank)]
    lines: list[str] = []
    for number, offset in enumerate(offsets):
        lines.append(f"%offset{number} = arith.constant {offset} : index")
        lines.append(f"%behind{number} = arith.addi {at[-1]}, %offset{number} : index")
        place = f"%0[{', '.join([*at[:-1], f'%behind{number}'])}] : {memref}"
        if is_store:
            order = list(range(offset, offset + size))
            lines.append(f"%piece{number} = vector.shuffle %{last}, %{last} {order} : {type_}, {type_}")
            lines.append(f"vector.store %piece{number}, {place}, {piece}")
        else:
            lines.append(f"%piece{number} = vector.load {place}, {piece}")
    if not is_store:
        rest = [size + lane - offsets[-1] for lane in range(size, count)]
        order = [*range(size), *rest, *[0] * (lanes - count)]
        lines.append(f"%first = vector.shuffle %piece0, %piece{len(offsets) - 1} {order} : {piece}, {piece}")
        order = [*range(count), *range(lanes + count, 2 * lanes)]
        lines.append(f"%made = vector.shuffle %first, %{last} {order} : {type_}, {type_}")
    return "\n".join(lines)


def _masked(op: Any, bounds: list[Any]) -> str:
    """A load or store of some elements: by pieces where the mask has these `_bounds`."""
    last = len(op.operands) - 1
    has_pieces = op.name == _STORE or (op.name != _GATHER and _is_uniform(op.operands[last]))
    if not bounds or not has_pieces:
        return _by_elements(op, bounds)
    memref, vector = op.operands[0].type, f"%{last}"
    at = [f"%{1 + axis}" for axis in range(ir.MemRefType(memref).rank)]
    begin = f"%{last + 2}" if len(bounds) > 1 else None
    transfer = _store_some if op.name == _STORE else _load_some
    return transfer(vector, op.operands[last].type, f"%{last + 1}", begin, "%0", memref, at)


def _by_elements(op: Any, bounds: list[Any]) -> str:
    is_store, is_gather = op.name == _STORE, op.name == _GATHER
    memref, count = op.operands[0].type, len(op.operands)
    vector_type, mask_type = op.operands[count - 1].type, op.operands[count - 2].type
    (lanes,), element = ir.VectorType(vector_type).shape, ir.VectorType(vector_type).element_type
    at = [f"%{1 + axis}" for axis in range(ir.MemRefType(memref).rank)]
    index, lines = "%lane", ""
    if is_gather:
        apart = op.operands[count - 3].type
        index, lines = "%apart", f"%apart = vector.extract %{count - 3}[%lane] : index from {apart}"
    lines += f"\n%behind = arith.addi {at[-1]}, {index} : index"
    place = f"%0[{', '.join([*at[:-1], '%behind'])}] : {memref}"
    if is_store:
        carried, yields, keeps = "", "", ""
        lines += f"""
            %element = vector.extract %{count - 1}[%lane] : {element} from {vector_type}
            memref.store %element, {place}"""
    else:
        carried = f"iter_args(%so_far = %{count - 1}) -> ({vector_type})"
        yields, keeps = f"scf.yield %with : {vector_type}", f"else {{ scf.yield %so_far : {vector_type} }}"
        lines += f"""
            %element = memref.load {place}
            %with = vector.insert %element, %so_far[%lane] : {element} into {vector_type}"""
    text = f"""
        %zero = arith.constant 0 : index
        %one = arith.constant 1 : index
        %lanes = arith.constant {lanes} : index"""
    read = "" if is_store else "%read ="
    if not bounds:
        taken, ends = ("", "") if is_store else ("%next = ", f"scf.yield %next : {vector_type}")
        results = "" if is_store else f"-> ({vector_type})"
        return f"""{text}
            {read} scf.for %lane = %zero to %lanes step %one {carried} {{
              %there = vector.extract %{count - 2}[%lane] : i1 from {mask_type}
              {taken}scf.if %there {results} {{
                {lines}
                {yields}
              }} {keeps}
              {ends}
            }}"""
    return f"""{text}
        %end = arith.minsi %{count}, %lanes : index
        %begin = arith.maxsi {f"%{count + 1}" if len(bounds) > 1 else "%zero"}, %zero : index
        {read} scf.for %lane = %begin to %end step %one {carried} {{
          {lines}
          {yields}
        }}"""


def _load_some(
    none: str, type_: Any, end: str, begin: str | None, buffer: str, memref: Any, at: Sequence[str]
) -> str:
    """Lines for lanes ``begin`` (None: the first one) to ``end`` of a vector that is at ``at`` of ``buffer``; the
    others are those of ``none``, which are all equal.

    Elements are loaded as pieces of 1, 2, 4 and so on, as many as there are of each: 0 or 1, the last ones first.
    """
    (lanes,), element = ir.VectorType(type_).shape, ir.VectorType(type_).element_type
    lines, made = [_range(type_, end, begin)], none
    for size in reversed(_halves(lanes)):
        place = f"{buffer}[{', '.join([*at[:-1], f'%at{size}'])}] : {memref}"
        wide = f"%wide{size} = vector.broadcast %piece{size} : {element} to {type_}"
        load = f"%piece{size} = memref.load {place}"
        if size > 1:
            piece, order = f"vector<{size}x{element}>", [min(lane, size - 1) for lane in range(lanes)]
            wide = f"%wide{size} = vector.shuffle %piece{size}, %piece{size} {order} : {piece}, {piece}"
            load = f"%piece{size} = vector.load {place}, {piece}"
        order = [*range(size), *range(lanes, 2 * lanes - size)]
        lines.append(f"""
          {_piece(size, at[-1])}
          %read{size} = scf.if %has{size} -> ({type_}) {{
            {load}
            {wide}
            %with{size} = vector.shuffle %wide{size}, {made} {order} : {type_}, {type_}
            scf.yield %with{size} : {type_}
          }} else {{
            scf.yield {made} : {type_}
          }}""")
        made = f"%read{size}"
    for size in _halves(lanes) if begin is not None else ():
        order = [*range(size), *range(lanes, 2 * lanes - size)]
        lines.append(f"""
          %up{size} = vector.shuffle {none}, {made} {order} : {type_}, {type_}
          {_choose(size, f"%moved{size}", f"%up{size}", made, type_)}""")
        made = f"%moved{size}"
    some = "\n".join(lines[1:])
    return f"""{lines[0]}
        %made = scf.if %has_all -> ({type_}) {{
          %all = vector.load {buffer}[{", ".join(at)}] : {memref}, {type_}
          scf.yield %all : {type_}
        }} else {{
          {some}
          scf.yield {made} : {type_}
        }}"""


def _store_some(
    vector: str, type_: Any, end: str, begin: str | None, buffer: str, memref: Any, at: Sequence[str]
) -> str:
    """Lines that store lanes ``begin`` to ``end`` of ``vector``, in pieces as those of `_load_some`."""
    (lanes,), element = ir.VectorType(type_).shape, ir.VectorType(type_).element_type
    lines, left = [_range(type_, end, begin)], vector
    for size in _halves(lanes) if begin is not None else ():
        lines.append(f"""
          %down{size} = {_down(left, size, lanes, type_)}
          {_choose(size, f"%moved{size}", f"%down{size}", left, type_)}""")
        left = f"%moved{size}"
    for size in _halves(lanes):
        place = f"{buffer}[{', '.join([*at[:-1], f'%at{size}'])}] : {memref}"
        if size > 1:
            order = list(range(size))
            store = f"""%piece{size} = vector.shuffle {left}, {left} {order} : {type_}, {type_}
            vector.store %piece{size}, {place}, vector<{size}x{element}>"""
        else:
            store = f"""%piece{size} = vector.extract {left}[0] : {element} from {type_}
            memref.store %piece{size}, {place}"""
        lines.append(f"""
          {_piece(size, at[-1])}
          scf.if %has{size} {{
            {store}
          }}
          %rest{size} = {_down(left, size, lanes, type_)}
          %left{size} = arith.select %has{size}, %rest{size}, {left} : {type_}""")
        left = f"%left{size}"
    some = "\n".join(lines[1:])
    return f"""{lines[0]}
        scf.if %has_all {{
          vector.store {vector}, {buffer}[{", ".join(at)}] : {memref}, {type_}
        }} else {{
          {some}
        }}"""


def _range(type_: Any, end: str, begin: str | None) -> str:
    """Lines for ``%begin`` and ``%count`` of the lanes from ``begin`` to ``end``, and whether these are all."""
    (lanes,) = ir.VectorType(type_).shape
    return f"""
        %zero = arith.constant 0 : index
        %lanes = arith.constant {lanes} : index
        %end = arith.minsi {end}, %lanes : index
        %begin = arith.maxsi {begin or "%zero"}, %zero : index
        %range = arith.subi %end, %begin : index
        %count = arith.maxsi %range, %zero : index
        %has_all = arith.cmpi eq, %count, %lanes : index"""


def _halves(lanes: int) -> list[int]:
    """Powers of two that numbers below ``lanes`` are sums of, the largest first."""
    return [1 << bit for bit in reversed(range((lanes - 1).bit_length()))]


def _piece(size: int, at: str) -> str:
    """Lines for whether there is a piece of ``size``, and for its place behind the larger ones."""
    return f"""
        %bit{size} = arith.constant {size} : index
        %part{size} = arith.andi %count, %bit{size} : index
        %has{size} = arith.cmpi ne, %part{size}, %zero : index
        %larger{size} = arith.constant {-2 * size} : index
        %before{size} = arith.andi %count, %larger{size} : index
        %first{size} = arith.addi {at}, %begin : index
        %at{size} = arith.addi %first{size}, %before{size} : index"""


def _choose(size: int, made: str, moved: str, other: str, type_: Any) -> str:
    """Lines for ``made``: ``moved``, by ``size`` lanes, if ``%begin`` has that bit, or ``other``."""
    return f"""
        %step{size} = arith.constant {size} : index
        %in_begin{size} = arith.andi %begin, %step{size} : index
        %moves{size} = arith.cmpi ne, %in_begin{size}, %zero : index
        {made} = arith.select %moves{size}, {moved}, {other} : {type_}"""


def _down(vector: str, distance: int, lanes: int, type_: Any) -> str:
    """A vector whose lanes are those of ``vector`` from ``distance`` on; nobody reads the last ones."""
    order = [min(lane + distance, lanes - 1) for lane in range(lanes)]
    return f"vector.shuffle {vector}, {vector} {order} : {type_}, {type_}"


def _is_uniform(value: Any) -> bool:
    """Whether all elements of a vector are known to be equal."""
    if _made_by(value, "vector.broadcast") is not None:
        return True
    made = _made_by(value, "arith.constant")
    return made is not None and ir.DenseElementsAttr(made.attributes["value"]).is_splat


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
    lines = f"""
        %axis = arith.constant {axis} : index
        %extent = memref.dim {buffer}, %axis : {memref}
        %rest = arith.subi %extent, {at[axis]} : index"""
    if is_read:
        lines += f"\n%none = vector.broadcast %{first + rank} : {element} to {vector_type}"
    if is_piece:
        vector, transfer = ("%none", _load_some) if is_read else ("%0", _store_some)
        return lines + transfer(vector, vector_type, "%rest", None, buffer, memref, at)
    inside = ", ".join([*at[:axis], "%behind", *at[axis + 1 :]])
    lines += f"""
        %zero = arith.constant 0 : index
        %one = arith.constant 1 : index
        %lanes = arith.constant {lanes} : index
        %some = arith.minsi %rest, %lanes : index"""
    if is_read:
        return f"""{lines}
            %read = scf.for %lane = %zero to %some step %one iter_args(%so_far = %none) -> ({vector_type}) {{
              %behind = arith.addi {at[axis]}, %lane : index
              %element = memref.load {buffer}[{inside}] : {memref}
              %with = vector.insert %element, %so_far[%lane] : {element} into {vector_type}
              scf.yield %with : {vector_type}
            }}"""
    return f"""{lines}
        scf.for %lane = %zero to %some step %one {{
          %behind = arith.addi {at[axis]}, %lane : index
          %element = vector.extract %0[%lane] : {element} from {vector_type}
          memref.store %element, {buffer}[{inside}] : {memref}
        }}"""
