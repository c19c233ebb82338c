"""The part of an image that a block of results is computed from: what is read, and how it is packed.

A packed part has all its elements inside, with padding and zeros between elements made, converted to the type that
is computed in, and in an order that suits the kernel. An image without any of these is read where it is.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.contraction_operands import element_bytes
from devscope.lowering.kernels.index_text import Index, IndexText
from devscope.lowering.kernels.windowed import FLAT, Windowed, converted, element_of, mask_text, strides_of, zero

_MOST_SPREAD = 8
"""Vectors, at most, of which a step of a row is packed; of more, elements are packed one by one."""


_LITTLE = 256
"""Bytes of a plane."""


@dataclass(frozen=True)
class ImageBlock:
    """``order``: axes of the image, as they are in a packed block, outermost first. ``vectors``: along which axis
    the kernel reads vectors, the last one of ``order``; those steps apart stand side by side then. None is any.

    ``extent``: the iterations of a loop; ``block``: how many of a loop of the result a block has at most.
    """

    found: Windowed
    order: Sequence[int]
    vectors: int | None
    lanes: int
    extent: Callable[[int], Index]
    block: Callable[[int], Index]

    @property
    def in_place(self) -> bool:
        """Whether the image is read where it is."""
        found = self.found
        if element_of(found.image.value) != found.packed or found.x.minus is not None:
            return False
        if any(axis.place.checked or axis.place.holes != 1 or axis.repeats > 1 for axis in found.axes):
            return False
        if self.vectors is not None:
            return self._stride(self.vectors) == 1 and found.axes[self.vectors].step == 1
        # Elements along an axis of pixels would be read a plane apart: of large ones, in few sets of a cache.
        planes = [self._stride(number) for number, axis in enumerate(found.axes) if axis.inner is not None]
        if all(plane is not None and plane * element_bytes(found.packed) <= _LITTLE for plane in planes):
            return True
        last = self.order[-1] if self.order else None
        return last is None or (self._stride(last) == 1 and found.axes[last].outer is None)

    def spread(self, number: int) -> int:
        """Elements that are so far apart stand side by side."""
        return self.found.axes[number].step if number == self.vectors else 1

    def sizes(self, text: IndexText, of: Callable[[int], Index]) -> dict[int, Index]:
        """How many elements along each axis are read for ``of`` iterations of loops of the result."""
        return {number: self._size(text, number, of) for number in self.order}

    def strides(self, text: IndexText) -> tuple[dict[int, Index], Index]:
        """Of a packed block, by axis, and how many elements it has."""
        strides: dict[int, Index] = {}
        total: Index = 1
        for number, size in reversed(self.sizes(text, self.block).items()):
            strides[number] = total
            spread = self.spread(number)
            apart = spread > 1 or self.found.axes[number].repeats > 1
            total = text.mul(total, text.mul(self._part(text, number), spread) if apart else size)
        return strides, total

    def strides_in_place(self) -> dict[int, Index]:
        """Of a block of the image where it is."""
        return {n: f"%stride{n}" if (stride := self._stride(n)) is None else stride for n in self.order}

    def _part(self, text: IndexText, number: int) -> Index:
        """How far elements behind each other, which do not stand side by side, are apart in a packed block."""
        size = text.mul(self._size(text, number, self.block), self.found.axes[number].repeats)
        return text.mul(text.ceildiv(size, self.spread(number) * self.lanes), self.lanes)

    @property
    def behind(self) -> int:
        """Elements that may be stored behind the last one of a packed block."""
        return max(2, self._repeats) * self.lanes

    def offset(self, text: IndexText, indices: Mapping[int, Index], strides: Mapping[int, Index]) -> Index:
        """Of the element at ``indices``, by loop, of a block with ``strides``; loops that are missing are at 0."""
        terms: list[Index] = []
        for number in self.order:
            axis = self.found.axes[number]
            spread = self.spread(number)
            outer, inner = (0 if loop is None else indices.get(loop, 0) for loop in (axis.outer, axis.inner))
            at = text.mul(inner, axis.dilation)
            if spread > 1:
                terms += [outer, text.mul(text.rem(at, spread), self._part(text, number)), text.div(at, spread)]
            else:
                terms.append(text.mul(text.add(text.mul(outer, axis.step), at), strides[number]))
        return text.add(*terms)

    def begins(self, text: IndexText, first: Mapping[int, Index]) -> dict[int, Index]:
        """Where a block whose results begin at ``first`` begins in the image, or in front of it."""
        begins: dict[int, Index] = {}
        for number, axis in enumerate(self.found.axes):
            outer = 0 if axis.outer is None else text.div(first.get(axis.outer, 0), axis.repeats)
            at: Index = text.mul(outer, axis.step)
            begins[number] = text.sub(at, f"%low{number}") if axis.place.checked else at
        return begins

    def base(self, text: IndexText, begins: Mapping[int, Index]) -> Index:
        """The offset of a block that is read in place."""
        return text.add(*(text.mul(begin, f"%stride{number}") for number, begin in begins.items()))

    def pack(
        self,
        text: IndexText,
        to: Index,
        here: Callable[[int], Index],
        begins: Mapping[int, Index],
        part: tuple[Index, Index] | None = None,
    ) -> None:
        """Lines that pack a block at offset ``to`` of ``%packed_x``; ``here``: how many iterations it has.

        ``part``: a number, and of how many parts along the outermost axis.
        """
        sizes = self.sizes(text, here)
        strides, _ = self.strides(text)
        # Axes that are not in the block: its results are at one index of them.
        source = text.add(*(text.mul(at, f"%stride{n}") for n, at in begins.items() if n not in self.order))
        run = self._run()
        row = self.order[: len(self.order) - len(run)]
        target: Index = to
        inside: str | None = None
        loops = 0
        for number in row:
            axis = self.found.axes[number]
            index = text.new()
            begin: Index = 0
            end = sizes[number]
            if part is not None and number == row[0]:
                begin = text.div(text.mul(end, part[0]), part[1])
                end = text.div(text.mul(end, text.add(part[0], 1)), part[1])
            names = [text.value(each) for each in (begin, end, 1)]
            text.lines.append(f"scf.for {index} = {names[0]} to {names[1]} step {names[2]} {{")
            loops += 1
            at = text.add(begins[number], index)
            if axis.place.checked:
                at, ok = self._inside(text, number, at)
                inside = ok if inside is None else text.define(f"arith.andi {inside}, {ok} : i1")
            source = text.add(source, text.mul(at, f"%stride{number}"))
            target = text.add(target, text.mul(index, strides[number]))
        if run:
            self._pack_run(text, run, source, target, inside, sizes, begins, part is None)
        else:
            self._pack_element(text, source, target, inside)
        text.lines += ["}"] * loops

    def _stride(self, number: int) -> int | None:
        """In the image, where it is known."""
        source = self.found.axes[number].place.source
        return None if source is None else strides_of(self.found.image.value)[source]

    def _size(self, text: IndexText, number: int, of: Callable[[int], Index]) -> Index:
        axis = self.found.axes[number]
        outer = 1 if axis.outer is None else text.div(of(axis.outer), axis.repeats)
        inner = 1 if axis.inner is None else self.extent(axis.inner)
        # No result or no window is a block of nothing.
        size = text.add(text.mul(text.sub(outer, 1), axis.step), text.mul(text.sub(inner, 1), axis.dilation), 1)
        return text.max(size, 0)

    @property
    def has_parts(self) -> bool:
        """Whether parts of a block can be packed."""
        return len(self._run()) < len(self.order)

    def _run(self) -> list[int]:
        """The last axes of ``order`` along which elements are packed in one go: one, or two whose elements are in
        the image as they are in the block."""
        if not self.order:
            return []
        last = self.order[-1]
        if len(self.order) < 2 or self.vectors is not None or self._stride(last) != 1:
            return [last]
        before = self.order[-2]
        axis = self.found.axes[last]
        source = axis.place.source
        if source is None or axis.outer is not None or axis.place.checked or axis.inner is None:
            return [last]
        size = ir.MemRefType(self.found.image.value.type).shape[source]
        if self._stride(before) != size or self.found.extent(axis.inner) != size or axis.dilation != 1:
            return [last]
        return [last] if self.found.axes[before].place.holes != 1 else [before, last]

    def _inside(self, text: IndexText, number: int, at: Index) -> tuple[Index, str]:
        """The index in memory of ``at``, one of a checked axis, and whether there is an element."""
        axis, size = self.found.axes[number], f"%size{number}"
        at = text.value(at)
        if axis.place.holes == 1:  # one comparison: what is negative is a large unsigned number
            return at, text.define(f"arith.cmpi ult, {at}, {size} : index")
        holes, zero_ = text.value(axis.place.holes), text.value(0)
        index = text.define(f"arith.divsi {at}, {holes} : index")
        left = text.define(f"arith.remsi {at}, {holes} : index")
        full = text.define(f"arith.cmpi eq, {left}, {zero_} : index")
        below = text.define(f"arith.cmpi ult, {index}, {size} : index")
        return index, text.define(f"arith.andi {full}, {below} : i1")

    def _pack_element(self, text: IndexText, source: Index, target: Index, inside: str | None) -> None:
        """One element, if it is ``inside``, or what is outside."""
        found, of = self.found, self.found.packed
        x = element_of(found.image.value)
        load = f"memref.load %X[{text.value(source)}] : {FLAT.format(x)}"
        if inside is None:
            element = text.define(load)
        else:
            element = text.new()
            there = text.new()
            text.lines += [
                f"{element} = scf.if {inside} -> ({x}) {{",
                f"{there} = {load}",
                f"scf.yield {there} : {x}",
                "} else {",
                f"scf.yield %outside_x : {x}",
                "}",
            ]
        read, made = text.define(f"vector.broadcast {element} : {x} to vector<1x{x}>"), text.new()
        text.lines += converted(made, read, x, of, "1", found.x)
        text.lines.append(f"vector.store {made}, %packed_x[{text.value(target)}] : memref<?x{of}>, vector<1x{of}>")

    def _pack_run(
        self,
        text: IndexText,
        run: Sequence[int],
        source: Index,
        target: Index,
        inside: str | None,
        sizes: Mapping[int, Index],
        begins: Mapping[int, Index],
        in_order: bool,
    ) -> None:
        """A row of a block. ``inside``: whether the image has this row; None is yes. ``in_order``: whether what is
        behind it is packed later, or not read."""
        first, last = run[0], run[-1]
        axis, spread = self.found.axes[first], self.spread(last)
        if self._stride(last) != 1 or axis.place.holes != 1 or self._read_at_once > _MOST_SPREAD * self.lanes:
            with text.loop(0, sizes[last]) as index:
                at: Index = text.add(begins[last], index)
                ok = inside
                if axis.place.checked:
                    at, here = self._inside(text, last, at)
                    ok = here if ok is None else text.define(f"arith.andi {ok}, {here} : i1")
                to = text.mul(text.div(index, spread), axis.repeats)
                if spread > 1:
                    to = text.add(text.mul(text.rem(index, spread), self._part(text, last)), to)
                at = text.add(source, text.mul(at, f"%stride{last}"))
                for number in range(axis.repeats):
                    self._pack_element(text, at, text.add(target, to, number), ok)
            return
        width: Index = 1 if first == last else sizes[last]
        size = text.mul(sizes[first], width)
        source = text.add(source, text.mul(begins[first], f"%stride{first}" if width != 1 else 1))
        low: Index = 0
        high = size
        if axis.place.checked:
            low = text.mul(text.clamp(text.sub(0, begins[first]), sizes[first]), width)
            high = text.mul(text.clamp(text.sub(f"%size{first}", begins[first]), sizes[first]), width)
        if inside is not None:
            high = text.select(inside, high, 0)
        part = self._part(text, last) if spread > 1 else 0
        self._pack_vectors(text, source, target, size, low, high, spread, part, in_order)

    def _pack_vectors(
        self,
        text: IndexText,
        source: Index,
        target: Index,
        size: Index,
        low: Index,
        high: Index,
        spread: int,
        part: Index,
        in_order: bool,
    ) -> None:
        """Elements ``low`` to ``high`` of ``size`` are in the image. Only where rows are ``in_order``, more may be
        written behind them."""
        of, lanes, repeats = self.found.packed, self.lanes, self._repeats
        stored = f"vector<{lanes}x{of}>"
        with text.loop(0, size, self._read_at_once) as index:
            to = text.add(target, text.mul(text.div(index, spread), repeats))
            read = [self._read(text, source, index, first, count, low, high) for first, count in self._reads]
            # In this order: behind what there is of a residue, vectors have elements in the place of the next one.
            for residue, (number, (first, count)) in product(range(spread), enumerate(self._reads)):
                each = read[number]
                if spread > 1 or repeats > 1:
                    groups = ((number * lanes + lane) // repeats for lane in range(lanes))
                    places = [group * spread + residue - first for group in groups]
                    type_ = f"vector<{count}x{of}>"
                    each = text.define(f"vector.shuffle {each}, {each} {places} : {type_}, {type_}")
                at = text.value(text.add(to, text.mul(residue, part), number * lanes))
                if in_order:
                    text.lines.append(f"vector.store {each}, %packed_x[{at}] : memref<?x{of}>, {stored}")
                    continue
                assert spread == repeats == 1
                left, types = mask_text(text, text.sub(size, index), None, lanes), f"vector<{lanes}xi1>, {stored}"
                text.lines.append(f"vector.maskedstore %packed_x[{at}], {left}, {each} : memref<?x{of}>, {types}")

    def _read(
        self, text: IndexText, source: Index, index: Index, first: int, count: int, low: Index, high: Index
    ) -> str:
        """``count`` elements of a row from ``index + first`` on, of which those ``low`` to ``high`` are there."""
        x, begin = element_of(self.found.image.value), text.add(index, first)
        mask = mask_text(text, text.sub(high, begin), None if low == 0 else text.sub(low, begin), count)
        made, wide = text.new(), f"vector<{count}x{x}>"
        at = text.value(text.add(source, begin))
        types = f"{FLAT.format(x)}, vector<{count}xi1>, {wide} into {wide}"
        read = text.define(f"vector.maskedload %X[{at}], {mask}, %outside_{count} : {types}")
        text.lines += converted(made, read, x, self.found.packed, str(count), self.found.x)
        return made

    @property
    def _repeats(self) -> int:
        return 1 if self.vectors is None else self.found.axes[self.vectors].repeats

    @property
    def _read_at_once(self) -> int:
        """Elements along the axis of vectors that become whole ones."""
        groups = self.lanes // self._repeats if self.lanes % self._repeats == 0 else self.lanes
        return groups * (1 if self.vectors is None else self.spread(self.vectors))

    @property
    def _reads(self) -> list[tuple[int, int]]:
        """Where these begin that a vector of the block has elements of, or vectors of the same place, and how many
        are read, a power of two: of other vectors LLVM makes single elements."""
        spread, repeats = 1 if self.vectors is None else self.spread(self.vectors), self._repeats
        made: list[tuple[int, int]] = []
        for begin in range(0, self._read_at_once // spread * repeats, self.lanes):
            first, last = begin // repeats, (begin + self.lanes - 1) // repeats
            made.append((first * spread, 1 << ((last - first + 1) * spread - 1).bit_length()))
        return made

    def constants(self) -> list[str]:
        """Lines for what is outside of the image."""
        found = self.found
        x = element_of(found.image.value)
        outside = (found.image.outside or "").rpartition(" : ")[0] or zero(x)
        counts = {count for _, count in self._reads}
        return [
            f"%outside_x = arith.constant {outside} : {x}",
            *(f"%outside_{n} = arith.constant dense<{outside}> : vector<{n}x{x}>" for n in sorted(counts)),
        ]
