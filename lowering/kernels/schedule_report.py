"""What the stage ``schedule`` shows: which row each operation of the host got, and which stay loops."""

from collections.abc import Iterator, Mapping
from typing import Any

from devscope.errors import SourceLocation
from devscope.lowering import mlir_util
from devscope.lowering.interop import bindings
from devscope.lowering.interop.bindings import ir
from devscope.lowering.interop.diagnostics import decode_location, location_parts
from devscope.lowering.kernels.table import Choice, Schedules

NOTED = "devscope.noted"
"""On an operation that is there until kernels are outlined, by the row that was chosen for it."""


class ScheduleReport:
    """Of a bufferised module, when kernels have been called. ``str()`` has a line for each operation::

    model.mlir:4:8: linalg.contract, m 64, n 512, f32: contraction with rows 8 (avx512.toml, contraction 10)
    model.mlir:9:8: linalg.generic, 64 x 512, f32: loops
    """

    def __init__(self, module: Any, schedules: Schedules) -> None:
        self._module = module
        self.chosen = schedules.chosen
        self.instructions = schedules.instructions

    def __str__(self) -> str:
        lines = [
            *((choice.location, _line(choice)) for choice in self.chosen),
            *((op.location, _loops(op)) for op in _operations(self._module)),
        ]
        lines.sort(key=lambda line: _order(decode_location(line[0])))
        return "".join(f"{place_of(location)}: {text}\n" for location, text in lines)


def place_of(location: Any) -> str:
    """For people: the position in the source, else what the operation is called there, as a node of ONNX is."""
    names = (part for part in location_parts(location) if isinstance(part, str))
    return str(decode_location(location) or next(names, "-"))


def _order(location: SourceLocation | None) -> tuple[bool, str, int, int]:
    if location is None:
        return True, "", 0, 0
    return False, location.file, location.line, location.column


def _line(choice: Choice) -> str:
    what = f"{choice.operation}, {named_sizes(choice.sizes)}, {choice.element}"
    if choice.within is not None:
        whose = "loops" if choice.kind == "loops" else "kernel"
        place = place_of(choice.within.location)
        return f"{what}: in the {whose} of {choice.within.operation if place == '-' else place}"
    if choice.row is None:
        return f"{what}: loops over rows"
    return f"{what}: {choice.row.template} with {named_sizes(choice.row.numbers)} ({choice.row.place})"


def named_sizes(sizes: Mapping[str, int | None]) -> str:
    """``m 64, n 512``; ``?`` is not known."""
    return ", ".join(f"{name} {'?' if size is None else size}" for name, size in sizes.items())


def _operations(module: Any) -> Iterator[Any]:
    ops = mlir_util.walk(module.operation)
    inside = ("linalg.index", "linalg.yield")
    found = (op for op in ops if op.name.startswith("linalg.") and op.name not in inside)
    return (op for op in found if NOTED not in op.attributes)


def _loops(op: Any) -> str:
    linalg = bindings.load("_mlir_libs._mlirDialectsLinalg")
    extents: dict[int, int] = {}
    maps = [ir.AffineMapAttr(attribute).value for attribute in linalg.get_indexing_maps(op) or ()]
    for operand, map_ in zip(op.operands, maps, strict=False):
        if isinstance(operand.type, ir.ShapedType):
            for extent, loop in zip(ir.ShapedType(operand.type).shape, map_.results, strict=True):
                if isinstance(loop, ir.AffineDimExpr):
                    extents.setdefault(ir.AffineDimExpr(loop).position, extent)
    unknown = ir.ShapedType.get_dynamic_size()
    shape = " x ".join("?" if extents[loop] == unknown else str(extents[loop]) for loop in sorted(extents))
    last = op.operands[-1].type
    element = ir.ShapedType(last).element_type if isinstance(last, ir.ShapedType) else last
    return ", ".join(filter(None, (op.name, shape, str(element)))) + ": loops"
