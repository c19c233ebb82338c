"""Operations that move a window over an image, on buffers, and text that their kernels share."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.images import Image, ImageAxis
from devscope.lowering.kernels.library import KernelLibrary
from devscope.lowering.memory.effects import mark_written


@dataclass(frozen=True)
class Axis:
    """The index ``outer * step + inner * dilation`` along an axis, of loops of the result and of sums."""

    outer: int | None
    step: int
    inner: int | None
    dilation: int
    place: ImageAxis


@dataclass(frozen=True)
class Element:
    """One of operand ``operand``; ``extend``: what makes it longer, or nothing; ``minus``: its zero point."""

    operand: int
    extend: str
    minus: Any | None


@dataclass
class Windowed:
    """``weights``: filters, or what says how large the windows of pooling are; ``w`` is None for the latter.

    ``element``: the type that is computed in. ``combine``: the operation on the result so far. ``loops``: how many
    there are.
    """

    op: Any
    image: Image
    axes: list[Axis]
    weights: Any | None
    axes_of_weights: dict[int, int]
    result: Any
    axes_of_result: dict[int, int]
    element: str
    combine: str
    x: Element
    w: Element | None
    loops: int

    def axis_with(self, loop: int) -> int | None:
        """The axis of the image whose index ``loop`` is in."""
        return next((n for n, axis in enumerate(self.axes) if loop in (axis.outer, axis.inner)), None)

    def place_of(self, loop: int) -> tuple[int, int] | None:
        """An operand (0: image, 1: filters, 2: result) and an axis of it that is as large as the loop."""
        if loop in self.axes_of_weights:
            return 1, self.axes_of_weights[loop]
        if loop in self.axes_of_result:
            return 2, self.axes_of_result[loop]
        for axis in self.axes:
            if axis.inner == loop and axis.outer is None and axis.dilation == 1 and not axis.place.checked:
                return None if axis.place.source is None else (0, axis.place.source)
        return None

    def extent(self, loop: int) -> int | None:
        place = self.place_of(loop)
        if place is None:
            return None
        value = (self.image.value, self.weights, self.result)[place[0]]
        assert value is not None
        extent = ir.MemRefType(value.type).shape[place[1]]
        return None if extent == ir.ShapedType.get_dynamic_size() else extent

    def size(self, loops: Sequence[int]) -> int | None:
        total = 1
        for loop in loops:
            extent = self.extent(loop)
            if extent is None:
                return None
            total *= extent
        return total


def element_of(value: Any) -> str:
    return str(ir.MemRefType(value.type).element_type)


def strides_of(value: Any) -> list[int | None]:
    """None for those that are not known."""
    strides, _ = ir.MemRefType(value.type).get_strides_and_offset()
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    return [None if stride == dynamic else stride for stride in strides]


def zero(element: str) -> str:
    return "0" if element.startswith("i") else "0.0"


def converted(to: str, value: str, element: str, of: str, shape: str, each: Element) -> list[str]:
    """Lines for ``to``: ``value``, a vector of elements of one type, as one of ``of`` less a zero point."""
    source, target = (f"vector<{shape}x{type_}>" for type_ in (element, of))
    name = f"{to}_long" if each.minus is not None else to
    if element == of:
        lines = [f"{name} = arith.bitcast {value} : {source} to {target}"]
    else:
        lines = [f"{name} = {each.extend or 'arith.extf'} {value} : {source} to {target}"]
    if each.minus is not None:
        point = "%zero_x" if each.operand == 0 else "%zero_w"
        lines += [
            f"{to}_point = vector.broadcast {point} : {of} to {target}",
            f"{to} = arith.subi {name}, {to}_point : {target}",
        ]
    return lines


@dataclass
class Arguments:
    """Operands of a kernel beside its buffers: names and types in the kernel, and what they are in the caller."""

    names: list[str] = field(default_factory=list[str])
    types: list[str] = field(default_factory=list[str])
    values: list[str] = field(default_factory=list[str])

    def add(self, name: str, value: str, type_: str = "index") -> None:
        self.names.append(name)
        self.types.append(type_)
        self.values.append(value)

    def text(self) -> str:
        return ", ".join(f"{name}: {type_}" for name, type_ in zip(self.names, self.types, strict=True))


class Caller:
    """Lines of a call: ``%sizesN``, ``%stridesN`` and ``%offsetN`` are those of image, filters and result."""

    def __init__(self, found: Windowed, weights: Any | None, result: Any) -> None:
        self.found = found
        self.operands: list[Any] = []
        self.lines = ["%c0 = arith.constant 0 : index", "%c1 = arith.constant 1 : index"]
        self.buffers = [found.image.value, weights, result]
        self.count = 0
        for number, value in enumerate(self.buffers):
            if value is not None:
                self.add_buffer(number, value)

    def add_buffer(self, number: int, value: Any) -> str:
        name = self.operand(value)
        type_ = ir.MemRefType(value.type)
        types = ", ".join([f"memref<{type_.element_type}>", *["index"] * (1 + 2 * type_.rank)])
        parts = [f"%{part}{number}:{type_.rank}" for part in ("sizes", "strides") if type_.rank]
        self.lines.append(
            f"{', '.join([f'%base{number}', f'%offset{number}', *parts])} = "
            f"memref.extract_strided_metadata {name} : {type_} -> {types}"
        )
        self.lines.append(f"%buffer{number} = memref.cast {name} : {type_} to {type_}")
        return name

    def operand(self, value: Any) -> str:
        self.operands.append(value)
        return f"%{len(self.operands) - 1}"

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def constant(self, number: int) -> str:
        name = self.name()
        self.lines.append(f"{name} = arith.constant {number} : index")
        return name

    def compute(self, operation: str, left: str, right: str) -> str:
        name = self.name()
        self.lines.append(f"{name} = arith.{operation} {left}, {right} : index")
        return name

    def extent(self, loop: int) -> str:
        extent, place = self.found.extent(loop), self.found.place_of(loop)
        assert place is not None
        return f"%sizes{place[0]}#{place[1]}" if extent is None else self.constant(extent)

    def product(self, values: Sequence[str]) -> str:
        total = "%c1"
        for value in values:
            total = value if total == "%c1" else self.compute("muli", total, value)
        return total

    def low(self, place: ImageAxis) -> str:
        total = "%c0"
        for part in place.low:
            value = self.constant(part) if isinstance(part, int) else self.operand(part)
            total = value if total == "%c0" else self.compute("addi", total, value)
        return total

    def flat(self, number: int, offset: str) -> tuple[str, str]:
        """A buffer as one that is not ended, from ``offset`` on, and its type."""
        value = self.buffers[number]
        assert value is not None
        name, type_ = self.name(), f"memref<?x{element_of(value)}, strided<[1], offset: ?>>"
        self.lines.append(
            f"{name} = memref.reinterpret_cast %{self.operands.index(value)} to offset: [{offset}], "
            f"sizes: [%c1], strides: [1] : {value.type} to {type_}"
        )
        return name, type_

    def call(
        self,
        before: Any,
        symbol: str,
        operands: Sequence[tuple[str, str]],
        written: Sequence[int],
        library: KernelLibrary,
        ends: str = "",
    ) -> None:
        """Put all lines and a call of ``symbol`` in front of ``before``; ``ends`` closes the loops around it."""
        types = ", ".join(type_ for _, type_ in operands)
        text = [
            f"func.func private @{symbol}({types})",
            *self.lines,
            f"func.call @{symbol}({', '.join(name for name, _ in operands)}) : ({types}) -> ()",
            ends,
        ]
        declaration, *made = mlir_util.insert(before, "\n".join(text), self.operands)
        declaration.erase()
        library.declare(before, symbol, [type_ for _, type_ in operands])
        (call,) = (op for outer in made for op in mlir_util.walk(outer) if op.name == "func.call")
        mark_written(call, list(written))


def add_image(found: Windowed, caller: Caller, arguments: Arguments) -> None:
    """What kernels are told of the image: strides, and where axes are checked, where they begin and end."""
    for number, axis in enumerate(found.axes):
        place = axis.place
        stride = "%c0" if place.source is None else f"%strides0#{place.source}"
        arguments.add(f"%stride{number}", stride)
        if place.checked:
            arguments.add(f"%size{number}", "%c1" if place.source is None else f"%sizes0#{place.source}")
            arguments.add(f"%low{number}", caller.low(place))


def checked_axes(found: Windowed) -> Iterator[tuple[int, Axis]]:
    return ((number, axis) for number, axis in enumerate(found.axes) if axis.place.checked)


def window_begin(found: Windowed, index_of: dict[int, str], into: str) -> list[str]:
    """Lines for where the window of a pixel begins.

    ``index_of``: what the indices of the loops of the result are in the kernel. The lines define ``%off{into}``,
    to which axes without holes are added, and ``%u{axis}{into}`` for each axis that is checked.
    """
    lines: list[str] = []
    at = "%0"
    for number, axis in enumerate(found.axes):
        index = None if axis.outer is None else index_of.get(axis.outer)
        name = f"%u{number}{into}"
        if index is not None:
            lines.append(f"%step{number}{into} = arith.constant {axis.step} : index")
            lines.append(f"{name}_ = arith.muli {index}, %step{number}{into} : index")
        elif axis.place.checked:
            lines.append(f"{name}_ = arith.constant 0 : index")
        else:
            continue
        lines.append(f"{name} = arith.subi {name}_, {f'%low{number}' if axis.place.checked else '%0'} : index")
        if axis.place.holes == 1:
            lines.append(f"%o{number}{into} = arith.muli {name}, %stride{number} : index")
            lines.append(f"%at{number}{into} = arith.addi {at}, %o{number}{into} : index")
            at = f"%at{number}{into}"
    lines.append(f"%off{into} = arith.addi {at}, %0 : index")
    return lines


def decode(flat: str, extents: Sequence[str], into: str) -> tuple[list[str], list[str]]:
    """Lines, and the names of the indices of number ``flat`` in loops of ``extents``, the last one fastest."""
    lines: list[str] = []
    names: list[str] = []
    rest = flat
    for number in reversed(range(len(extents))):
        if number == 0:
            names.append(rest)
            break
        lines.append(f"%i{number}{into} = arith.remui {rest}, {extents[number]} : index")
        lines.append(f"%r{number}{into} = arith.divui {rest}, {extents[number]} : index")
        names.append(f"%i{number}{into}")
        rest = f"%r{number}{into}"
    return lines, names[::-1]


def is_inside(index: str, number: int, axis: Axis, into: str) -> list[str]:
    """Lines for ``%ok{number}{into}``: whether the image has an element at ``index`` of a checked axis.

    For an axis with holes also ``%in{number}{into}``: its index in memory, times the stride.
    """
    if axis.place.holes == 1:  # one comparison: what is negative is a large unsigned number
        return [f"%ok{number}{into} = arith.cmpi ult, {index}, %size{number} : index"]
    return [
        f"%holes{number}{into} = arith.constant {axis.place.holes} : index",
        f"%index{number}{into} = arith.divui {index}, %holes{number}{into} : index",
        f"%left{number}{into} = arith.remui {index}, %holes{number}{into} : index",
        f"%full{number}{into} = arith.cmpi eq, %left{number}{into}, %0 : index",
        # what is negative is a large number here, too, whatever is left
        f"%low_ok{number}{into} = arith.cmpi sge, {index}, %0 : index",
        f"%high_ok{number}{into} = arith.cmpi ult, %index{number}{into}, %size{number} : index",
        f"%both{number}{into} = arith.andi %low_ok{number}{into}, %high_ok{number}{into} : i1",
        f"%ok{number}{into} = arith.andi %both{number}{into}, %full{number}{into} : i1",
        f"%in{number}{into} = arith.muli %index{number}{into}, %stride{number} : index",
    ]
