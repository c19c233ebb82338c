"""Bodies of operations of linalg as text, and how work-items combine what each of them has."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.gpu.index_text import Text
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.nest_bodies import combiners, has_neutral, neutral_text
from devscope.lowering.target import Lanes

_NAN = {"f16": "0x7E00", "bf16": "0x7FC0", "f32": "0x7FC00000", "f64": "0x7FF8000000000000"}
_NUMBERS = ("arith.maxnumf", "arith.minnumf")
"""These give the other one for NaN."""


def is_simple(op: Any) -> bool:
    """Whether each operation of the body of ``op`` makes one number of numbers."""
    numbers = ir.IntegerType | ir.FloatType | ir.IndexType
    *steps, _ = mlir_util.children(op)
    return all(
        len(step.results) == 1
        and not list(step.regions)
        and all(isinstance(value.type, numbers) for value in (*step.operands, *step.results))
        for step in steps
    )


def own_combiners(op: Any) -> list[Any] | None:
    """For each result, the operation of the body that work-items may combine what they have with, too; None if
    there is none for one of them."""
    found = combiners(op, _NUMBERS)
    known = [combiner for combiner in found if combiner is not None]
    types = [value.type for value in list(mlir_util.entry_block(op).arguments)[-len(found) :]]
    if len(known) < len(found):
        return None
    return known if all(map(_can_begin, known, types)) else None


def _can_begin(combiner: Any, type_: Any) -> bool:
    if combiner.name in _NUMBERS:
        return str(type_) in _NAN
    return has_neutral(combiner.name, type_)


def beginning(combiner: Any) -> str:
    """The number that ``combiner`` combines with any other to that one."""
    type_ = combiner.results[0].type
    return _NAN[str(type_)] if combiner.name in _NUMBERS else neutral_text(combiner.name, type_)


def captured(op: Any) -> list[Any]:
    """The values from outside that the body uses, but constants."""
    inside = [inner for child in mlir_util.children(op) for inner in mlir_util.walk(child)]
    own = {value for inner in inside for value in inner.results} | set(mlir_util.entry_block(op).arguments)
    used = dict.fromkeys(value for inner in inside for value in inner.operands if value not in own)
    return [value for value in used if not _is_constant(value)]


def _is_constant(value: Any) -> bool:
    return not isinstance(value.owner, ir.Block) and value.owner.operation.name == "arith.constant"


def used_arguments(op: Any) -> set[int]:
    """The numbers of the operands whose elements the body uses."""
    used = {value for inner in mlir_util.children(op) for value in inner.operands}
    return {n for n, argument in enumerate(mlir_util.entry_block(op).arguments) if argument in used}


def body_text(text: Text, op: Any, given: Mapping[Any, str], indices: Mapping[int, str]) -> list[str]:
    """One iteration: the names of what the body yields.

    ``given``: names of what it is called with and of captured values; ``indices``: those of loops.
    """
    names = body_names(text, op, given, indices)
    return [names[value] for value in mlir_util.children(op)[-1].operands]


def body_names(text: Text, op: Any, given: Mapping[Any, str], indices: Mapping[int, str]) -> dict[Any, str]:
    """The same: of all values."""
    names = dict(given)
    for inner in mlir_util.children(op):
        for value in inner.operands:
            if value not in names:
                names[value] = text.value(f"arith.constant {value.owner.operation.attributes['value']}")
        if inner.name == "linalg.index":
            names[inner.results[0]] = indices[ir.IntegerAttr(inner.attributes["dim"]).value]
        elif inner.name != "linalg.yield":
            names[inner.results[0]] = text.value(like(inner, [names[value] for value in inner.operands]))
    return names


def like(op: Any, operands: Sequence[str]) -> str:
    attributes = ", ".join(f"{named} = {op.attributes[named]}" for named in op.attributes)
    types = ", ".join(str(value.type) for value in op.operands)
    return f'"{op.name}"({", ".join(operands)}) {{{attributes}}} : ({types}) -> {op.results[0].type}'


Values = Sequence[str]
Combine = Callable[[Text, Values, Values], Values]


@dataclass(frozen=True)
class Room:
    """Local memory in which each work-item, or each few of them, leaves a number: ``name``, ``type`` of memory."""

    name: str
    element: str
    size: int

    @property
    def type(self) -> str:
        return f"memref<{self.size}x{self.element}, #gpu.address_space<workgroup>>"

    def store(self, text: Text, value: str, place: str) -> None:
        text.lines.append(f"memref.store {value}, %{self.name}[{place}] : {self.type}")

    def load(self, text: Text, place: str) -> str:
        return text.value(f"memref.load %{self.name}[{place}] : {self.type}")


@dataclass
class Workgroup:
    """``threads`` work-items, of which ``share`` side by side, or ``distance`` apart, compute a result.

    ``lanes``: which of them give each other numbers without memory; ``rooms``: those that are needed otherwise.
    """

    threads: int
    share: int
    distance: int
    lanes: Lanes
    rooms: list[Room] = field(default_factory=list[Room])
    _turn: int = 0
    _taken: tuple[list[Room], list[Room]] = field(default_factory=lambda: ([], []))

    def _take_rooms(self, elements: Values) -> list[Room]:
        """One for each; those of the last time but one are free: before work-items met in the last one, they had
        read them."""
        self._turn += 1
        free = self._taken[self._turn % 2]
        taken: list[Room] = []
        for element in elements:
            room = next((room for room in free if room.element == element), None)
            if room is None:
                room = Room(f"room{len(self.rooms)}", element, self.threads)
                self.rooms.append(room)
            else:
                free.remove(room)
            taken.append(room)
        free += taken
        return taken

    def parameters(self, others: Sequence[str] = ()) -> str:
        """What a launch says of local memory."""
        rooms = [*(f"%{room.name}: {room.type}" for room in self.rooms), *others]
        return f"workgroup({', '.join(rooms)})" if rooms else ""

    def combine(self, text: Text, values: Values, elements: Values, combine: Combine) -> Values:
        """What all work-items of a result have together; each of them gets it.

        ``%share`` is which of these a work-item is, and ``%first_of_share`` the first of them.
        """
        if self.share == 1:
            return values
        exchanges = set(elements) <= set(self.lanes.elements) and self.distance == 1
        if exchanges and self.threads % self.lanes.width == 0:
            return self._exchange(text, values, elements, combine)
        rooms = self._take_rooms(elements)
        for room, value in zip(rooms, values, strict=True):
            room.store(text, value, "%thread")
        share = self.share
        while share > 1:
            share //= 2
            half, far = text.constant(share), text.constant(share * self.distance)
            text.lines += ["gpu.barrier", f"scf.if {text.value(f'arith.cmpi ult, %share, {half} : index')} {{"]
            one = [room.load(text, "%thread") for room in rooms]
            there = text.index("addi", "%thread", far)
            other = [room.load(text, there) for room in rooms]
            for room, both in zip(rooms, combine(text, one, other), strict=True):
                room.store(text, both, "%thread")
            text.lines.append("}")
        text.lines.append("gpu.barrier")
        return [room.load(text, "%first_of_share") for room in rooms]

    def _exchange(self, text: Text, values: Values, elements: Values, combine: Combine) -> Values:
        """Lanes exchange theirs with those at a distance of each power of two; then one of each leaves it."""
        width = text.value(f"arith.constant {self.lanes.width} : i32")
        distance = min(self.share, self.lanes.width)
        while distance > 1:
            distance //= 2
            far = text.value(f"arith.constant {distance} : i32")
            others: list[str] = []
            for value, element in zip(values, elements, strict=True):
                given, type_ = value, element
                if element == "index":
                    given, type_ = text.value(f"arith.index_cast {value} : index to i64"), "i64"
                other = text.value(f"gpu.shuffle xor {given}, {far}, {width} : {type_}", 2)
                others.append(other if given is value else text.value(f"arith.index_cast {other} : i64 to index"))
            values = combine(text, values, others)
        if self.share <= self.lanes.width:
            return values
        lanes, rooms = text.constant(self.lanes.width), self._take_rooms(elements)
        is_first = text.value(f"arith.cmpi eq, {text.index('remui', '%thread', lanes)}, %c0 : index")
        text.lines.append(f"scf.if {is_first} {{")
        for room, value in zip(rooms, values, strict=True):
            room.store(text, value, "%thread")
        text.lines += ["}", "gpu.barrier"]
        places = [text.plus("%first_of_share", n) for n in range(0, self.share, self.lanes.width)]
        values = [room.load(text, places[0]) for room in rooms]
        for place in places[1:]:
            values = combine(text, values, [room.load(text, place) for room in rooms])
        return values
