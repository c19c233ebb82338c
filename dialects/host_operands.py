"""Operations that have an operand or all they ask for on the host, whatever scope their data is on.

Analyses that recover scopes from a planned module read this; the planner has rules of its own. A plugin that
registers a planning rule of this kind (`plan.register_rule`) says so here, too.
"""

from __future__ import annotations

_QUERIES = {
    "tensor.dim",
    "tensor.rank",
    "memref.dim",
    "memref.rank",
    "memref.extract_aligned_pointer_as_index",
    "shape.shape_of",
    "stablehlo.get_dimension_size",
}

_SHAPES: dict[str, tuple[int, ...]] = {
    "tensor.reshape": (1,),
    "memref.reshape": (1,),
    "stablehlo.dynamic_reshape": (1,),
    "stablehlo.dynamic_broadcast_in_dim": (1,),
    "stablehlo.dynamic_iota": (0,),
    "stablehlo.real_dynamic_slice": (1, 2, 3),
    "stablehlo.dynamic_pad": (2, 3, 4),
}


def is_query(name: str) -> bool:
    """Whether operations of this name read no data: they run on the host, their operands are anywhere."""
    return name in _QUERIES


def host_operands(name: str) -> tuple[int, ...]:
    """The numbers of the operands that are shapes or sizes, and so on the host."""
    return _SHAPES.get(name, ())


def register_query(name: str) -> None:
    """Say that operations of this name read no data of their operands."""
    _QUERIES.add(name)


def register_host_operands(name: str, *operands: int) -> None:
    """Say that operations of this name take these operands on the host."""
    _SHAPES[name] = operands
