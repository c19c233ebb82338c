"""The call of a kernel for a windowed operation, as text: views of buffers, sizes, memory for what is packed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.contraction_operands import element_bytes
from devscope.lowering.kernels.image_blocks import ImageBlock
from devscope.lowering.kernels.index_text import Index, IndexText
from devscope.lowering.kernels.library import KernelLibrary, Parameter
from devscope.lowering.kernels.windowed import FLAT, Windowed, element_of
from devscope.lowering.memory.effects import mark_written


class TaskMemory:
    """Memory of tasks: on their stacks, up to ``most`` bytes where sizes are known, else parts of buffers of the
    caller's."""

    def __init__(self, most: int) -> None:
        self._left = most
        self._on_stack: dict[str, str] = {}

    def add(self, caller: Caller, name: str, element: str, size: Index, slots: Index) -> None:
        """``size`` elements for each of at most ``slots`` tasks."""
        bytes_ = size * element_bytes(element) if isinstance(size, int) else self._left + 1
        if bytes_ <= self._left:
            self._left -= bytes_
            self._on_stack[name] = element
        else:
            caller.add_scratch(name, element, caller.mul(slots, size))

    def begin(self, text: IndexText, name: str, size: Index) -> Index:
        """Where the memory of ``%task`` begins in buffer ``name``; ``size``: as a value of the kernel."""
        if name not in self._on_stack:
            return text.mul("%task", size)
        type_ = f"memref<?x{self._on_stack[name]}>"
        text.lines.append(f"{name} = memref.alloca({text.value(size)}) {{alignment = 64 : i64}} : {type_}")
        return 0

    def add_image(self, caller: Caller, image: ImageBlock, slots: Index) -> None:
        """A part of the image, packed if that is necessary."""
        if not image.in_place:
            self.add(caller, "%packed_x", image.found.packed, packed_size(caller, image), slots)

    def begin_image(self, text: IndexText, image: ImageBlock) -> None:
        if not image.in_place:
            text.name("%x_room", self.begin(text, "%packed_x", packed_size(text, image)))


def packed_size(text: IndexText, image: ImageBlock) -> Index:
    """Elements of a packed block, and those that vectors have behind the last one."""
    return text.add(image.strides(text)[1], image.behind)


IMAGE, FILTERS, RESULT = range(3)
"""Numbers of buffers; those of an epilogue's operands come behind."""


class Caller(IndexText):
    """Lines of a call: ``%sizesN``, ``%stridesN`` and ``%offsetN`` are those of buffer N."""

    def __init__(self, found: Windowed, result: Any, extras: Sequence[Any] = ()) -> None:
        super().__init__("v")
        self.found = found
        self.parameters: list[Parameter] = []
        self._operands: list[Any] = []
        self.buffers = [found.image.value, found.weights, result, *extras]
        for number, value in enumerate(self.buffers):
            if value is not None:
                self._add_buffer(number, value)

    def _add_buffer(self, number: int, value: Any) -> None:
        type_ = ir.MemRefType(value.type)
        types = ", ".join([f"memref<{type_.element_type}>", *["index"] * (1 + 2 * type_.rank)])
        parts = [f"%{part}{number}:{type_.rank}" for part in ("sizes", "strides") if type_.rank]
        name = self.operand(value)
        self.lines += [
            f"%buffer{number} = memref.cast {name} : {type_} to {type_}",
            f"{', '.join([f'%base{number}', f'%offset{number}', *parts])} = "
            f"memref.extract_strided_metadata {name} : {type_} -> {types}",
        ]

    def operand(self, value: Any) -> str:
        """A value of the program."""
        self._operands.append(value)
        return f"%{len(self._operands) - 1}"

    def extent(self, loop: int) -> Index:
        extent, place = self.found.extent(loop), self.found.place_of(loop)
        assert place is not None
        return f"%sizes{place[0]}#{place[1]}" if extent is None else extent

    def add_index(self, name: str, index: Index) -> None:
        """A parameter of type index."""
        self.parameters.append(Parameter(name, "index", self.value(index)))

    def add_image(self) -> None:
        """What kernels are told of the image: strides, where axes are checked, where they begin and end, and
        zero points."""
        found = self.found
        for number, axis in enumerate(found.axes):
            place = axis.place
            self.add_index(f"%stride{number}", 0 if place.source is None else f"%strides0#{place.source}")
            if place.checked:
                self.add_index(f"%size{number}", 1 if place.source is None else f"%sizes0#{place.source}")
                low = [part if isinstance(part, int) else self.operand(part) for part in place.low]
                self.add_index(f"%low{number}", self.add(*low))
        for each, name in ((found.x, "%zero_x"), (found.w, "%zero_w")):
            if each is not None and each.minus is not None:
                self.parameters.append(Parameter(name, found.element, self.operand(each.minus)))

    def add_flat(self, name: str, number: int, offset: Index, written: bool = False) -> None:
        """A buffer as one that is not ended, from ``offset`` on."""
        type_ = FLAT.format(element_of(self.buffers[number]))
        self._add_view(name, f"%buffer{number}", self.buffers[number], offset, [1], [1], type_, written)

    def add_value(self, name: str, value: Any) -> None:
        """A buffer of the program, whole, as one that is not ended."""
        self._add_view(name, self.operand(value), value, 0, [1], [1], FLAT.format(element_of(value)), False)

    def add_view(
        self,
        name: str,
        number: int,
        offset: Index,
        sizes: Sequence[Index],
        strides: Sequence[Index],
        written: bool,
    ) -> str:
        """A view of a buffer, whose last stride may be 1, and its type."""
        value = self.buffers[number]
        layout = ", ".join("1" if stride == 1 else "?" for stride in strides)
        type_ = f"memref<{'?x' * len(sizes)}{element_of(value)}, strided<[{layout}], offset: ?>>"
        self._add_view(name, f"%buffer{number}", value, offset, sizes, strides, type_, written)
        return type_

    def _add_view(
        self,
        name: str,
        buffer: str,
        value: Any,
        offset: Index,
        sizes: Sequence[Index],
        strides: Sequence[Index],
        type_: str,
        written: bool,
    ) -> None:
        named = ["1" if stride == 1 else self.value(stride) for stride in strides]
        parts = f"offset: [{self.value(offset)}], sizes: [{', '.join(map(self.value, sizes))}]"
        view = self.define(
            f"memref.reinterpret_cast {buffer} to {parts}, strides: [{', '.join(named)}] : {value.type} to {type_}"
        )
        self.parameters.append(Parameter(name, type_, view, written))

    def add_scratch(self, name: str, element: str, amount: Index) -> None:
        """Memory for ``amount`` elements."""
        type_ = f"memref<?x{element}>"
        if isinstance(amount, int):
            static = f"memref<{max(amount, 1)}x{element}>"
            made = self.define(f"memref.alloc() {{alignment = 64 : i64}} : {static}")
            made = self.define(f"memref.cast {made} : {static} to {type_}")
        else:
            made = self.define(f"memref.alloc({amount}) {{alignment = 64 : i64}} : {type_}")
        self.parameters.append(Parameter(name, type_, made, written=True))

    def text_of_parameters(self) -> str:
        return ", ".join(f"{parameter.name}: {parameter.type}" for parameter in self.parameters)

    def call(self, before: Any, symbol: str, library: KernelLibrary, loops: int = 0) -> None:
        """Put all lines and a call of ``symbol`` in front of ``before``; the lines begin ``loops``."""
        types = ", ".join(parameter.type for parameter in self.parameters)
        values = ", ".join(parameter.value for parameter in self.parameters)
        text = [
            f"func.func private @{symbol}({types})",
            *self.lines,
            f"func.call @{symbol}({values}) : ({types}) -> ()",
            "}" * loops,
        ]
        declaration, *made = mlir_util.insert(before, "\n".join(text), self._operands)
        declaration.erase()
        library.declare(before, symbol, [parameter.type for parameter in self.parameters])
        (call,) = (op for outer in made for op in mlir_util.walk(outer) if op.name == "func.call")
        mark_written(call, [n for n, parameter in enumerate(self.parameters) if parameter.written])
