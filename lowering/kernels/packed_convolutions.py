"""Convolutions as products of matrices, one of them packed from an image: ``convolution.mlir`` of the target."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.accumulators import zeros_before
from devscope.lowering.kernels.epilogue import Epilogue, epilogue_of
from devscope.lowering.kernels.library import KernelLibrary
from devscope.lowering.kernels.phases import Phase, phases
from devscope.lowering.kernels.table import Row, Schedules
from devscope.lowering.kernels.windowed import (
    Arguments,
    Caller,
    Windowed,
    add_image,
    checked_axes,
    converted,
    decode,
    element_of,
    is_inside,
    strides_of,
    window_begin,
    zero,
)

KIND = "convolution"

_LINE_BEHIND = 16
"""Elements between lines of A, so that lines do not all fall into the same part of a cache."""


def plan(found: Windowed) -> "_Plan | None":
    """How ``found`` is a product of matrices; None if it is none."""
    if found.w is None or found.weights is None or not found.combine.startswith("arith.add"):
        return None
    result, weights = found.axes_of_result, found.axes_of_weights
    in_image = {loop for axis in found.axes for loop in (axis.outer, axis.inner) if loop is not None}
    pixels = [loop for loop in result if loop in in_image and loop not in weights]
    filters = [loop for loop in result if loop not in in_image and loop in weights]
    groups = [loop for loop in result if loop in in_image and loop in weights]
    sums = [axis.inner for axis in found.axes if axis.inner is not None]
    if len(pixels) + len(filters) + len(groups) != len(result) or not filters or not pixels:
        return None
    if set(sums) != {loop for loop in weights if loop not in result} or not sums:
        return None
    by_axis = sorted(result, key=lambda loop: result[loop])
    strides = strides_of(found.result)
    last = by_axis[-1]
    if strides[-1] != 1 or last in groups:
        return None
    image_is_a = last in filters
    candidates = [loop for loop in by_axis if loop not in groups and (loop not in filters or not image_is_a)]
    rows = [loop for loop in by_axis if loop in pixels]
    # Pixels that are side by side in the result are one axis of a matrix.
    chain = [rows[-1]]
    whole = mlir_util.is_whole_buffer(found.result.type)
    while whole and len(rows) > len(chain) and result[rows[-len(chain) - 1]] == result[chain[0]] - 1:
        chain.insert(0, rows[-len(chain) - 1])
    if not image_is_a and chain[-1] != last:
        return None
    del candidates
    others = [loop for loop in rows if loop not in chain]
    filter_ = last if image_is_a else filters[-1]
    batch = others[-1] if others else None
    outer = [loop for loop in by_axis if loop not in (*chain, filter_, batch)]
    for loop in outer:
        number = found.axis_with(loop)
        if number is not None and (found.axes[number].place.checked or found.axes[number].place.holes != 1):
            return None
    return _Plan(found, image_is_a, chain, filter_, batch, outer, sums)


@dataclass
class _Plan:
    """``chain``: pixels as one axis of a matrix. ``outer``: loops around the call. ``sums``: as their axes are."""

    found: Windowed
    image_is_a: bool
    chain: list[int]
    filter: int
    batch: int | None
    outer: list[int]
    sums: list[int]

    def sizes(self) -> dict[str, int | None]:
        found = self.found
        return {
            "pixels": found.size(self.chain),
            "filters": found.extent(self.filter),
            "sums": found.size(self.sums),
        }

    def replace(self, row: Row, schedules: Schedules, library: KernelLibrary) -> None:
        found, op = self.found, self.found.op
        fill = zeros_before(op, found.result)
        if fill is not None and element_of(found.result) == found.element and (parts := phases(found)) is not None:
            self._call_phases(parts, row, library)
            for old in (fill, op):
                old.erase()
            return
        follows = epilogue_of(op, found.result, library.functions) if fill is not None and not self.outer else None
        if element_of(found.result) != found.element:
            follows = None
        if follows is not None and any(self._places(axes) is None for _, axes in follows.operands):
            follows = None
        place, result = (op, found.result) if follows is None else (follows.op, follows.result)
        if follows is not None:
            schedules.include(follows.op, element_of(result), self.sizes())
        if element_of(result) != found.element:
            result = _longer(op, result, found.element, fill)
            if fill is not None:
                fill.erase()
                fill = None
            self._call(op, result, row, True, None, library)
            _shorten(op, result, found.result)
        else:
            self._call(place, result, row, fill is None, follows, library)
        for old in (fill, op, None if follows is None else follows.op):
            if old is not None:
                old.erase()

    def _call_phases(self, parts: Sequence[Phase], row: Row, library: KernelLibrary) -> None:
        op = self.found.op
        for part in parts:
            made = plan(part.found)
            assert made is not None
            made._call(op, part.found.result, row, False, None, library)
            mlir_util.Builder(op).op("memref.copy", [part.found.result, part.place])

    def _places(self, axes: Sequence[int]) -> tuple[bool, bool, bool] | None:
        """Whether an operand with these axes of the result has pixels and filters, and is all of a batch."""
        result = self.found.axes_of_result
        has = [result[loop] in axes for loop in self.chain]
        if any(has) != all(has):
            return None
        return (self.batch is not None and result[self.batch] in axes, has[0], result[self.filter] in axes)

    def _call(  # noqa: C901
        self, place: Any, result: Any, row: Row, adds: bool, follows: Epilogue | None, library: KernelLibrary
    ) -> None:
        found = self.found
        weights, axes_of_weights = self._weights(place)
        caller = Caller(found, weights, result)
        arguments = Arguments()
        numbers = row.numbers
        for number, loop in enumerate(self.chain):
            arguments.add(f"%n{number}", caller.extent(loop))
        for number, loop in enumerate(self.sums):
            arguments.add(f"%e{number}", caller.extent(loop))
        pixels = caller.product([caller.extent(loop) for loop in self.chain])
        filters = caller.extent(self.filter)
        steps = caller.product([caller.extent(loop) for loop in self.sums])
        batch = "%c1" if self.batch is None else caller.extent(self.batch)
        extents = [caller.extent(loop) for loop in self.outer]
        add_image(found, caller, arguments)
        for each, name in ((found.x, "%zero_x"), (found.w, "%zero_w")):
            if each is not None and each.minus is not None:
                arguments.add(name, caller.operand(each.minus), found.element)
        scratch = self._scratch(caller, numbers, (batch, pixels, filters, steps))
        loops = [f"scf.for %at{n} = %c0 to {extent} step %c1 {{" for n, extent in enumerate(extents)]
        extras = [] if follows is None else list(follows.operands)
        for number, (value, _) in enumerate(extras, 3):
            caller.add_buffer(number, value)
        caller.lines += loops
        offsets = ["%offset0", "%offset1", "%offset2"]
        for number, loop in enumerate(self.outer):
            at = f"%at{number}"
            axis = found.axis_with(loop)
            if axis is not None and found.axes[axis].place.source is not None:
                stride = f"%strides0#{found.axes[axis].place.source}"
                behind = caller.product([stride, at, caller.constant(found.axes[axis].step)])
                offsets[0] = caller.compute("addi", offsets[0], behind)
            for buffer, axes in ((1, axes_of_weights), (2, found.axes_of_result)):
                if loop in axes:
                    behind = caller.compute("muli", at, f"%strides{buffer}#{axes[loop]}")
                    offsets[buffer] = caller.compute("addi", offsets[buffer], behind)
        image = caller.flat(0, offsets[0])
        last = self.sums[-1] if self.image_is_a else self.filter
        w_type = f"memref<?x?x{element_of(weights)}, strided<[?, 1], offset: ?>>"
        w_name = caller.name()
        sizes = [steps, filters] if self.image_is_a else [filters, steps]
        caller.lines.append(
            f"{w_name} = memref.reinterpret_cast %buffer1 to offset: [{offsets[1]}], sizes: [{', '.join(sizes)}], "
            f"strides: [%strides1#{axes_of_weights[last]}, 1] : {weights.type} to {w_type}"
        )
        c_type, c_name = _matrix(element_of(result)), caller.name()
        m, n = (self.chain[-1], self.filter) if self.image_is_a else (self.filter, self.chain[-1])
        sizes = [batch, pixels, filters] if self.image_is_a else [batch, filters, pixels]
        axes = found.axes_of_result
        batch_stride = "%c0" if self.batch is None else f"%strides2#{axes[self.batch]}"
        caller.lines.append(
            f"{c_name} = memref.reinterpret_cast %buffer2 to offset: [{offsets[2]}], sizes: [{', '.join(sizes)}], "
            f"strides: [{batch_stride}, %strides2#{axes[m]}, 1] : {result.type} to {c_type}"
        )
        operands = [
            image,
            *zip(arguments.values, arguments.types, strict=True),
            (w_name, w_type),
            (c_name, c_type),
        ]
        extra_types: list[str] = []
        for number, (value, its_axes) in enumerate(extras, 3):
            strides: list[str] = []
            for loop in (self.batch, m, n):
                is_there = loop is not None and axes[loop] in its_axes
                strides.append(
                    f"%strides{number}#{its_axes.index(axes[loop])}" if is_there and loop is not None else "%c0"
                )
            contiguous = axes[n] in its_axes and strides_of(value)[its_axes.index(axes[n])] == 1
            if contiguous:
                strides[2] = "1"
            type_ = f"memref<?x?x?x{element_of(value)}, strided<[?, ?, {1 if contiguous else '?'}], offset: ?>>"
            name = caller.name()
            caller.lines.append(
                f"{name} = memref.reinterpret_cast %buffer{number} to offset: [%offset{number}], "
                f"sizes: [{', '.join(sizes)}], strides: [{', '.join(strides)}] : {value.type} to {type_}"
            )
            operands.append((name, type_))
            extra_types.append(type_)
        operands += [("%slots", "index"), *scratch]
        values = self._values(row, weights, result, arguments, adds, follows, extra_types)
        symbol = library.symbol(row.template, values)
        count = len(operands)
        written = [operands.index((c_name, c_type)), count - 3, count - 2, count - 1]
        caller.call(place, symbol, operands, written, library, "}" * len(self.outer))

    def _weights(self, place: Any) -> tuple[Any, dict[int, int]]:
        """The filters in the order that packing wants: sums as they are in the image, behind or before filters."""
        found = self.found
        assert found.weights is not None
        axes = found.axes_of_weights
        order = [*self.sums, self.filter] if self.image_is_a else [self.filter, *self.sums]
        sums = [axes[loop] for loop in self.sums]
        side_by_side = sums == list(range(sums[0], sums[0] + len(sums)))
        last = axes[order[-1]] == ir.MemRefType(found.weights.type).rank - 1
        if side_by_side and last and mlir_util.is_whole_buffer(found.weights.type):
            return found.weights, axes
        outer = [loop for loop in axes if loop not in order]
        wanted = [axes[loop] for loop in (*outer, *order)]
        build = mlir_util.Builder(place)
        type_ = ir.MemRefType(found.weights.type)
        shape = [type_.shape[axis] for axis in wanted]
        dynamic = [build.dim(found.weights, axis) for axis in wanted if type_.is_dynamic_dim(axis)]
        made = build.alloc(mlir_util.buffer_type(shape, type_.element_type), dynamic)
        mlir_util.insert(
            place,
            f"linalg.transpose ins(%0 : {type_}) outs(%1 : {made.type}) permutation = {wanted}",
            [found.weights, made],
        )
        return made, {loop: axis for axis, loop in enumerate((*outer, *order))}

    def _scratch(self, caller: Caller, numbers: Any, extents: Sequence[str]) -> list[tuple[str, str]]:
        """Lines for ``%slots`` and for memory: packed filters and pixels, the table of where windows begin."""
        batch, pixels, filters, steps = extents
        sizes = self.sizes()
        of = self.found.element
        depth, part = numbers["steps"], self._pixels(numbers)
        line = depth + _LINE_BEHIND if self.image_is_a else depth
        most = caller.constant(numbers["tasks"])
        parts = caller.compute("ceildivui", pixels, caller.constant(part))
        blocks = caller.compute("muli", parts, batch)
        caller.lines.append(f"%slots = arith.minui {blocks}, {most} : index")
        width = numbers["columns"] if self.image_is_a else numbers["rows"]
        padded = caller.compute(
            "muli", caller.compute("ceildivui", filters, caller.constant(width)), caller.constant(width)
        )
        if self.image_is_a:
            amount_w = caller.compute("muli", padded, steps)
        else:
            ranges = caller.compute("ceildivui", steps, caller.constant(depth))
            lines = caller.compute("muli", padded, caller.constant(depth + _LINE_BEHIND))
            amount_w = caller.compute("muli", ranges, lines)
        amount_x = caller.compute("muli", "%slots", caller.constant(part * line))
        amount_t = caller.compute("muli", "%slots", caller.constant(part * self._record()))
        known = None
        n_batch = 1 if self.batch is None else self.found.extent(self.batch)
        if None not in (*sizes.values(), n_batch):
            p, f, k = sizes["pixels"] or 0, sizes["filters"] or 0, sizes["sums"] or 0
            slots = min(numbers["tasks"], -(-p // part) * (n_batch or 0))
            round_up = -(-f // width) * width
            w = round_up * k if self.image_is_a else -(-k // depth) * round_up * (depth + _LINE_BEHIND)
            known = [max(w, 1), max(slots * part * line, 1), max(slots * part * self._record(), 1)]
        made: list[tuple[str, str]] = []
        for number, (amount, type_) in enumerate(((amount_w, of), (amount_x, of), (amount_t, "index"))):
            name, dynamic = caller.name(), f"memref<?x{type_}>"
            alloc = caller.name()
            its_type = dynamic if known is None else f"memref<{known[number]}x{type_}>"
            size = amount if known is None else ""
            caller.lines.append(f"{alloc} = memref.alloc({size}) {{alignment = 64 : i64}} : {its_type}")
            caller.lines.append(f"{name} = memref.cast {alloc} : {its_type} to {dynamic}")
            made.append((name, dynamic))
        return made

    def _pixels(self, numbers: Mapping[str, int]) -> int:
        """How many are packed at a time: whole panels."""
        width = numbers["rows"] if self.image_is_a else numbers["columns"]
        return -(-numbers["pixels"] // width) * width

    def _record(self) -> int:
        """Numbers in the table for each line: an offset, the begin of each checked axis, and for pixels side by
        side where they are packed and how many they are."""
        return 1 + len(list(checked_axes(self.found))) + (0 if self.image_is_a else 2)

    def _values(
        self,
        row: Row,
        weights: Any,
        result: Any,
        arguments: Arguments,
        adds: bool,
        follows: Epilogue | None,
        extras: Sequence[str],
    ) -> dict[str, object]:
        found, numbers = self.found, row.numbers
        rows, columns, steps, lanes = (numbers[name] for name in ("rows", "columns", "steps", "lanes"))
        pixels = self._pixels(numbers)
        of, c = found.element, element_of(result)
        x, w = element_of(found.image.value), element_of(weights)
        line = steps + _LINE_BEHIND
        block = f"vector<{rows}x{columns}x{of}>"
        read = f"%old = vector.transfer_read %C_[%row, %column], %nothing : {_matrix(c, 2)}, {block}"
        write = f"vector.transfer_write %sums, %C_[%row, %column] : {block}, {_matrix(c, 2)}"
        begin = read.replace("%old", "%begin")
        if not adds:
            begin = f"""%begin = scf.if %is_first -> ({block}) {{
                %none = arith.constant dense<{zero(of)}> : {block}
                scf.yield %none : {block}
            }} else {{
                {read}
                scf.yield %old : {block}
            }}"""
        if follows is not None:
            write = self._with_epilogue(follows, write, extras, f"{rows}x{columns}x")
        a_panel = f"memref<{rows}x{line}x{of}, strided<[{line}, 1], offset: ?>>"
        reads: list[str] = []
        for number in range(rows):
            reads.append(f"%r{number} = arith.constant {number} : index")
            reads.append(f"%e{number}_ = memref.load %a_packed[%r{number}, %k] : {a_panel}")
        elements = ", ".join(f"%e{number}_" for number in range(rows))
        reads.append(f"%a = vector.from_elements {elements} : vector<{rows}x{of}>")
        if self.image_is_a:
            panels = """%row = arith.addi %p0, %i : index
              %column = arith.addi %j, %0 : index
              %a_behind = arith.muli %i, %line : index
              %a_offset = arith.addi %x_begin, %a_behind : index
              %b_panel = arith.muli %j, %K : index
              %b_behind = arith.muli %k0, %columns : index
              %b_offset = arith.addi %b_panel, %b_behind : index"""
        else:
            panels = """%row = arith.addi %i, %0 : index
              %column = arith.addi %p0, %j : index
              %a_number = arith.divui %k0, %most_steps : index
              %a_lines = arith.muli %a_number, %w_block : index
              %a_line = arith.addi %a_lines, %i : index
              %a_offset = arith.muli %a_line, %line : index
              %b_behind = arith.muli %j, %most_steps : index
              %b_offset = arith.addi %x_begin, %b_behind : index"""
        stored = line if self.image_is_a else steps
        return {
            "X": f"memref<?x{x}, strided<[1], offset: ?>>",
            "INDICES": arguments.text(),
            "W": f"memref<?x?x{w}, strided<[?, 1], offset: ?>>",
            "C": _matrix(c),
            "C_MATRIX": _matrix(c, 2),
            "EXTRAS": "".join(f", %extra{number}: {type_}" for number, type_ in enumerate(extras)),
            "SUM": of,
            "RESULT": c,
            "ZERO": zero(c),
            "OUTSIDE": zero(of),
            "ELEMENT_OF_X": x,
            "ZERO_OF_X": zero(x),
            "ELEMENT_OF_W": w,
            "ZERO_OF_W": zero(w),
            "LANES": lanes,
            "ROWS": rows,
            "COLUMNS": columns,
            "STEPS": steps,
            "LINE": line,
            "PIXELS": pixels,
            "WIDTH": rows if self.image_is_a else columns,
            "RECORD": self._record(),
            "X_SIZE": pixels * stored,
            "T_SIZE": pixels * self._record(),
            "AXIS_OF_K": "%0" if self.image_is_a else "%1",
            "P": "%M" if self.image_is_a else "%N",
            "J_END": "%N" if self.image_is_a else "%count",
            "I_END": "%count" if self.image_is_a else "%M",
            "A_FROM": "%packed_x" if self.image_is_a else "%packed_w",
            "B_FROM": "%packed_w" if self.image_is_a else "%packed_x",
            "A_PANEL": a_panel,
            "B_PANEL": f"memref<?x{columns}x{of}, strided<[{columns}, 1], offset: ?>>",
            "PANELS": panels,
            "BLOCK": block,
            "BEGIN": begin,
            "END": write,
            "READ_A": "\n".join(reads),
            "PACK_W": "\n".join(self._pack_filters(w, columns, lanes)),
            "LOCATE": "\n".join(self._locate()),
            "PACK_X": "\n".join(self._pack_image(x, lanes, line)),
        }

    def _with_epilogue(self, follows: Epilogue, write: str, extras: Sequence[str], block: str) -> str:
        lines: list[str] = []
        for number, ((value, axes), type_) in enumerate(zip(follows.operands, extras, strict=True)):
            element = element_of(value)
            places = self._places(axes)
            assert places is not None
            has = places[1:] if self.image_is_a else places[:0:-1]
            target = f"vector<{block}{element}>"
            if not any(has):
                lines.append(f"%element{number} = memref.load %extra{number}[%b, %row, %column] : {type_}")
                lines.append(f"%operand{number} = vector.broadcast %element{number} : {element} to {target}")
                continue
            map_ = f"affine_map<(b, m, n) -> ({'m' if has[0] else '0'}, {'n' if has[1] else '0'})>"
            lines.append(f"%pad{number} = arith.constant {zero(element)} : {element}")
            lines.append(
                f"%operand{number} = vector.transfer_read %extra{number}[%b, %row, %column], %pad{number} "
                f"{{permutation_map = {map_}}} : {type_}, {target}"
            )
        steps = [line.replace("$block", block) for line in follows.steps]
        done = write.replace("transfer_write %sums", f"transfer_write {follows.done}")
        inside = "\n".join([*lines, *steps, done])
        return f"scf.if %is_last {{\n{inside}\n}} else {{\n{write}\n}}"

    def _pack_filters(self, w: str, columns: int, lanes: int) -> list[str]:
        of = self.found.element
        assert self.found.w is not None
        if self.image_is_a:  # [k][f] as panels of columns
            vector, shape = f"vector<{columns}x{w}>", f"{columns}"
            return [
                "%w_panels = arith.ceildivui %N, %columns : index",
                "%w_tasks = arith.minui %w_panels, %slots : index",
                "scf.parallel (%task) = (%0) to (%w_tasks) step (%1) {",
                "scf.for %panel = %task to %w_panels step %w_tasks {",
                "%at = arith.muli %panel, %columns : index",
                "%panel_at = arith.muli %at, %K : index",
                "scf.for %k = %0 to %K step %1 {",
                f"%read = vector.transfer_read %W[%k, %at], %no_w : {_matrix(w, 2)}, {vector}",
                *converted("%made", "%read", w, of, shape, self.found.w),
                "%behind = arith.muli %k, %columns : index",
                "%to = arith.addi %panel_at, %behind : index",
                f"vector.store %made, %packed_w[%to] : memref<?x{of}>, vector<{columns}x{of}>",
                "} } scf.reduce }",
            ]
        vector = f"vector<{lanes}x{w}>"
        return [
            "%w_tasks = arith.minui %M, %slots : index",
            "scf.parallel (%task) = (%0) to (%w_tasks) step (%1) {",
            "scf.for %f = %task to %M step %w_tasks {",
            "scf.for %k = %0 to %K step %lanes {",
            f"%read = vector.transfer_read %W[%f, %k], %no_w : {_matrix(w, 2)}, {vector}",
            *converted("%made", "%read", w, of, str(lanes), self.found.w),
            "%number = arith.divui %k, %most_steps : index",
            "%in_line = arith.remui %k, %most_steps : index",
            "%lines = arith.muli %number, %w_block : index",
            "%line_ = arith.addi %lines, %f : index",
            "%line_at = arith.muli %line_, %line : index",
            "%to = arith.addi %line_at, %in_line : index",
            f"vector.store %made, %packed_w[%to] : memref<?x{of}>, vector<{lanes}x{of}>",
            "} } scf.reduce }",
        ]

    def _indices(self, flat: str) -> tuple[list[str], dict[int, str]]:
        """Lines for what the loops of the result are at a pixel."""
        lines, names = decode(flat, [f"%n{number}" for number in range(len(self.chain))], "p")
        index_of = dict(zip(self.chain, names, strict=True))
        if self.batch is not None:
            index_of[self.batch] = "%b"
        return lines, index_of

    def _locate(self) -> list[str]:
        """Lines that fill the table, with ``%entries`` records."""
        store = [f"%t{n} = arith.constant {n} : index" for n in range(self._record())]
        lines, index_of = self._indices("%p")
        values = ["%offp", *(f"%u{number}p" for number, _ in checked_axes(self.found))]
        values += [] if self.image_is_a else ["%to", "%long"]
        inside = [*lines, *window_begin(self.found, index_of, "p")]
        for number, value in enumerate(values):
            inside.append(f"%slot{number} = arith.addi %record_at, %t{number} : index")
            inside.append(f"memref.store {value}, %table[%slot{number}] : memref<?xindex>")
        if self.image_is_a:
            return [
                *store,
                "%panels = arith.ceildivui %count, %rows : index",
                "%entries = arith.muli %panels, %rows : index",
                "%last_p = arith.subi %M, %1 : index",
                "scf.for %r = %0 to %entries step %1 {",
                "%p_ = arith.addi %p0, %r : index",
                "%p = arith.minui %p_, %last_p : index",
                "%r_behind = arith.muli %r, %record : index",
                "%record_at = arith.addi %t_begin, %r_behind : index",
                *inside,
                "}",
            ]
        last = len(self.chain) - 1
        alone = self._is_alone()
        return [
            *store,
            "%pair:2 = scf.while (%in_block = %0, %r = %0) : (index, index) -> (index, index) {",
            "%more = arith.cmpi ult, %in_block, %count : index",
            "scf.condition(%more) %in_block, %r : index, index",
            "} do {",
            "^bb0(%in_block: index, %r: index):",
            "%p = arith.addi %p0, %in_block : index",
            f"%in_row = arith.remui %p, %n{last} : index",
            f"%in_row_left = arith.subi %n{last}, %in_row : index",
            "%in_panel = arith.remui %in_block, %columns : index",
            "%in_panel_left = arith.subi %columns, %in_panel : index",
            "%block_left = arith.subi %count, %in_block : index",
            "%shorter = arith.minui %in_row_left, %in_panel_left : index",
            f"%long = arith.minui {'%1' if alone else '%shorter'}, %block_left : index",
            "%panel_begin = arith.subi %in_block, %in_panel : index",
            "%panel_at = arith.muli %panel_begin, %most_steps : index",
            "%to = arith.addi %panel_at, %in_panel : index",
            "%r_behind = arith.muli %r, %record : index",
            "%record_at = arith.addi %t_begin, %r_behind : index",
            *inside,
            "%next_in_block = arith.addi %in_block, %long : index",
            "%next_r = arith.addi %r, %1 : index",
            "scf.yield %next_in_block, %next_r : index, index",
            "}",
            "%entries = arith.addi %pair#1, %0 : index",
        ]

    def _vector_axis(self) -> int | None:
        """The axis of the image along which elements are packed side by side."""
        loop = self.sums[-1] if self.image_is_a else self.chain[-1]
        return self.found.axis_with(loop)

    def _is_alone(self) -> bool:
        """Whether elements are packed one by one: those of an image with holes."""
        number = self._vector_axis()
        assert number is not None
        return self.found.axes[number].place.holes != 1

    def _run(self) -> int:
        """How many of the last loops of sums are one run of elements side by side in the image."""
        found = self.found
        if self._is_alone():
            return 0
        if not self.image_is_a or len(self.sums) < 2:
            return 1
        last, before = (found.axes[found.axis_with(loop) or 0] for loop in (self.sums[-1], self.sums[-2]))
        type_ = found.image.value.type
        side_by_side = (
            mlir_util.is_whole_buffer(type_)
            and last.outer is None
            and not last.place.checked
            and last.dilation == before.dilation == 1
            and before.place.holes == 1
            and last.place.source is not None
            and last.place.source == ir.MemRefType(type_).rank - 1
            and before.place.source == last.place.source - 1
        )
        return 2 if side_by_side else 1

    def _pack_image(self, x: str, lanes: int, line: int) -> list[str]:
        found = self.found
        number = self._vector_axis()
        assert number is not None
        vector_axis = found.axes[number]
        run = self._run() if self.image_is_a else 0
        outer = self.sums[: len(self.sums) - run]
        if run == 2:
            number = found.axis_with(self.sums[-2]) or 0
        lines: list[str] = []
        load = ["%off0 = memref.load %table[%record_at] : memref<?xindex>"]
        inner_at: dict[int, str] = {}  # by axis, what the loops of sums add to the begin of a window
        dilations: list[str] = []
        offset = "%0"
        for position, loop in enumerate(outer):
            axis_number = found.axis_with(loop)
            assert axis_number is not None
            axis = found.axes[axis_number]
            dilations += [
                f"%d{position} = arith.constant {axis.dilation} : index",
                f"%du{position} = arith.muli %q{position}, %d{position} : index",
            ]
            inner_at[axis_number] = f"%du{position}"
            if axis.place.holes == 1:
                dilations += [
                    f"%ds{position} = arith.muli %du{position}, %stride{axis_number} : index",
                    f"%doff{position} = arith.addi {offset}, %ds{position} : index",
                ]
                offset = f"%doff{position}"
        # What is inside of the image: of all axes but the one along which elements are packed, and of that one.
        checks: list[str] = []
        ok, off, low, high = None, "%off1", "%0", "%len"
        checks.append(f"%off1 = arith.addi %off0, {'%k_off' if self.image_is_a else offset} : index")
        for position, (axis_number, axis) in enumerate(checked_axes(found), 1):
            load += [
                f"%at{position}_ = arith.addi %record_at, %t{position} : index",
                f"%w{axis_number} = memref.load %table[%at{position}_] : memref<?xindex>",
            ]
            checks.append(
                f"%x{axis_number} = arith.addi %w{axis_number}, {inner_at.get(axis_number, '%0')} : index"
            )
            if axis_number == number and vector_axis.place.holes == 1:
                scale = vector_axis.dilation if self.image_is_a else vector_axis.step
                each = f"%e{len(self.sums) - 1}" if run == 2 else None
                checks += [
                    f"%factor = arith.constant {scale if each is None else 1} : index",
                    f"%before = arith.subi %0, %x{axis_number} : index",
                    "%least = arith.maxsi %before, %0 : index",
                    f"%behind = arith.subi %size{axis_number}, %x{axis_number} : index",
                    "%most = arith.maxsi %behind, %0 : index",
                ]
                if each is not None:
                    checks += [
                        f"%low_all = arith.muli %least, {each} : index",
                        f"%high_all = arith.muli %most, {each} : index",
                    ]
                else:
                    checks += [
                        "%low_all = arith.ceildivui %least, %factor : index"
                        if scale != 1
                        else "%low_all = arith.addi %least, %0 : index",
                        "%high_all = arith.ceildivui %most, %factor : index"
                        if scale != 1
                        else "%high_all = arith.addi %most, %0 : index",
                    ]
                from_ = "%j0" if self.image_is_a else "%0"
                checks += [
                    f"%low_run = arith.subi %low_all, {from_} : index",
                    f"%high_run = arith.subi %high_all, {from_} : index",
                    "%low_some = arith.maxsi %low_run, %0 : index",
                    "%low_at = arith.minsi %low_some, %len : index",
                    "%high_some = arith.maxsi %high_run, %0 : index",
                    "%high_at = arith.minsi %high_some, %len : index",
                ]
                low, high = "%low_at", "%high_at"
                continue
            checks += is_inside(f"%x{axis_number}", axis_number, axis, "")
            if axis.place.holes != 1:
                checks.append(f"%off_{axis_number} = arith.addi {off}, %in{axis_number} : index")
                off = f"%off_{axis_number}"
            if ok is None:
                ok = f"%ok{axis_number}"
            else:
                checks.append(f"%all{axis_number} = arith.andi {ok}, %ok{axis_number} : i1")
                ok = f"%all{axis_number}"
        if ok is not None:
            checks.append(f"%high_if = arith.select {ok}, {high}, %0 : index")
            high = "%high_if"
        checks += self._copy(x, lanes, off, low, high, number if run == 2 else None)
        if self.image_is_a:
            extents = [f"%e{len(outer) + n}" for n in range(run)]
            length = [f"%run{n + 1} = arith.muli %run{n}, {extent} : index" for n, extent in enumerate(extents)]
            decoded, names = decode("%q", [f"%e{n}" for n in range(len(outer))], "k")
            renamed = [f"%q{n} = arith.addi {name}, %0 : index" for n, name in enumerate(names)]
            scale = f"%scale = arith.constant {vector_axis.dilation} : index"
            lines += [
                "%run0 = arith.constant 1 : index",
                *length,
                scale,
                "%done = scf.while (%k = %k0) : (index) -> index {",
                "%more = arith.cmpi ult, %k, %k_end : index",
                "scf.condition(%more) %k : index",
                "} do {",
                "^bb0(%k: index):",
                f"%q = arith.divui %k, %run{run} : index",
                f"%j0 = arith.remui %k, %run{run} : index",
                f"%run_left = arith.subi %run{run}, %j0 : index",
                "%k_left = arith.subi %k_end, %k : index",
                "%len = arith.minui %run_left, %k_left : index",
                *decoded,
                *renamed,
                *dilations,
                "%j_scaled = arith.muli %j0, %scale : index",
                f"%j_off = arith.muli %j_scaled, %stride{self._vector_axis()} : index",
                f"%k_off = arith.addi {offset}, %j_off : index",
                "%k_in = arith.subi %k, %k0 : index",
                "%x_at = arith.addi %x_begin, %k_in : index",
                "scf.for %r = %0 to %entries step %1 {",
                "%r_behind = arith.muli %r, %record : index",
                "%record_at = arith.addi %t_begin, %r_behind : index",
                "%line_behind = arith.muli %r, %line : index",
                "%to = arith.addi %x_at, %line_behind : index",
                *load,
                *checks,
                "}",
                "%next_k = arith.addi %k, %len : index",
                "scf.yield %next_k : index",
                "}",
            ]
            return lines
        decoded, names = decode("%k0", [f"%e{n}" for n in range(len(outer))], "k")
        count = len(outer)
        counters = ", ".join(f"%q{n} = {name}" for n, name in enumerate(names))
        carries: list[str] = ["%carry_one = arith.addi %1, %0 : index"]
        carry = "%carry_one"
        for n in reversed(range(count)):
            carries += [
                f"%sum{n} = arith.addi %q{n}, {carry} : index",
                f"%full{n}_ = arith.cmpi eq, %sum{n}, %e{n} : index",
                f"%next{n} = arith.select %full{n}_, %0, %sum{n} : index",
                f"%carry{n} = arith.select %full{n}_, %1, %0 : index",
            ]
            carry = f"%carry{n}"
        types = ", ".join(["index"] * count)
        position = self._record()
        return [
            *decoded,
            f"%counted:{count} = scf.for %k = %k0 to %k_end step %1 iter_args({counters}) -> ({types}) {{",
            *dilations,
            "%k_in = arith.subi %k, %k0 : index",
            "%k_behind = arith.muli %k_in, %columns : index",
            "%x_at = arith.addi %x_begin, %k_behind : index",
            "scf.for %r = %0 to %entries step %1 {",
            "%r_behind = arith.muli %r, %record : index",
            "%record_at = arith.addi %t_begin, %r_behind : index",
            f"%to_at = arith.addi %record_at, %t{position - 2} : index",
            f"%len_at = arith.addi %record_at, %t{position - 1} : index",
            "%in_x = memref.load %table[%to_at] : memref<?xindex>",
            "%len = memref.load %table[%len_at] : memref<?xindex>",
            "%to = arith.addi %x_at, %in_x : index",
            *load,
            *checks,
            "}",
            *carries,
            f"scf.yield {', '.join(f'%next{n}' for n in range(count))} : {types}",
            "}",
        ]

    def _copy(self, x: str, lanes: int, off: str, low: str, high: str, merged: int | None) -> list[str]:
        """Lines that pack elements ``low`` to ``high`` of ``%len`` that stand at ``off``; others are outside."""
        found, of = self.found, self.found.element
        axis_number = self._vector_axis()
        assert axis_number is not None
        axis = found.axes[axis_number]
        scale = axis.dilation if self.image_is_a else axis.step
        strides = strides_of(found.image.value)
        stride = None if axis.place.source is None else strides[axis.place.source]
        mask, source, target = (f"vector<{lanes}x{type_}>" for type_ in ("i1", x, of))
        buffer = f"memref<?x{x}, strided<[1], offset: ?>>"
        lines: list[str] = []
        if (low, high) != ("%0", "%len"):
            lines += [
                f"%given = arith.subi {high}, {low} : index",
                "%is_short = arith.cmpi slt, %given, %len : index",
                "scf.if %is_short {",
                "scf.for %j_ = %0 to %len step %lanes {",
                "%z_left = arith.subi %len, %j_ : index",
                f"%z_mask = vector.create_mask %z_left : {mask}",
                "%z_to = arith.addi %to, %j_ : index",
                f"vector.maskedstore %packed_x[%z_to], %z_mask, %outside : memref<?x{of}>, {mask}, {target}",
                "} }",
            ]
        del merged
        if scale == 1 and stride == 1 and axis.place.holes == 1:
            return [
                *lines,
                f"%c_all = arith.subi {high}, {low} : index",
                "%c_vectors = arith.divsi %c_all, %lanes : index",
                "%c_in_vectors = arith.muli %c_vectors, %lanes : index",
                f"%c_whole = arith.addi {low}, %c_in_vectors : index",
                f"scf.for %j_ = {low} to %c_whole step %lanes {{",
                f"%c_from = arith.addi {off}, %j_ : index",
                f"%c_read = vector.load %X[%c_from] : {buffer}, {source}",
                *converted("%c_made", "%c_read", x, of, str(lanes), found.x),
                "%c_to = arith.addi %to, %j_ : index",
                f"vector.store %c_made, %packed_x[%c_to] : memref<?x{of}>, {target}",
                "}",
                f"%c_left = arith.subi {high}, %c_whole : index",
                "%c_some = arith.cmpi sgt, %c_left, %0 : index",
                "scf.if %c_some {",
                f"%c_mask = vector.create_mask %c_left : {mask}",
                f"%c_from = arith.addi {off}, %c_whole : index",
                f"%c_read = vector.maskedload %X[%c_from], %c_mask, %pad : {buffer}, {mask}, {source} "
                f"into {source}",
                *converted("%c_made", "%c_read", x, of, str(lanes), found.x),
                "%c_to = arith.addi %to, %c_whole : index",
                f"vector.maskedstore %packed_x[%c_to], %c_mask, %c_made : memref<?x{of}>, {mask}, {target}",
                "}",
            ]
        return [
            *lines,
            f"%c_scale = arith.constant {scale} : index",
            f"%c_stride = arith.muli %c_scale, %stride{axis_number} : index",
            f"scf.for %j_ = {low} to {high} step %1 {{",
            "%c_behind = arith.muli %j_, %c_stride : index",
            f"%c_from = arith.addi {off}, %c_behind : index",
            f"%c_element = memref.load %X[%c_from] : {buffer}",
            f"%c_read = vector.broadcast %c_element : {x} to vector<1x{x}>",
            *converted("%c_made", "%c_read", x, of, "1", found.x),
            "%c_to = arith.addi %to, %j_ : index",
            f"vector.store %c_made, %packed_x[%c_to] : memref<?x{of}>, vector<1x{of}>",
            "}",
        ]


def _matrix(element: str, rank: int = 3) -> str:
    return f"memref<{'?x' * rank}{element}, strided<[{'?, ' * (rank - 1)}1], offset: ?>>"


def _longer(op: Any, result: Any, element: str, fill: Any | None) -> Any:
    """A buffer of sums for ``result``, with what it holds in front of ``op``."""
    build = mlir_util.Builder(op)
    type_ = ir.MemRefType(result.type)
    made = build.alloc(
        mlir_util.buffer_type(type_.shape, ir.Type.parse(element, op.context)), build.dynamic_sizes(result)
    )
    if fill is not None:
        text = f"%zero = arith.constant 0.0 : {element}\nlinalg.fill ins(%zero : {element}) outs(%0 : {made.type})"
        mlir_util.insert(op, text, [made])
    else:
        mlir_util.insert(op, _cast_text("extf", result, made), [result, made])
    return made


def _shorten(op: Any, sums: Any, result: Any) -> None:
    mlir_util.insert(op, _cast_text("truncf", sums, result), [sums, result])


def _cast_text(cast: str, source: Any, target: Any) -> str:
    rank = ir.MemRefType(source.type).rank
    loops = ", ".join(f"d{axis}" for axis in range(rank))
    map_ = f"affine_map<({loops}) -> ({loops})>"
    kinds = ", ".join(['"parallel"'] * rank)
    a, b = element_of(source), element_of(target)
    return f"""linalg.generic {{indexing_maps = [{map_}, {map_}], iterator_types = [{kinds}]}}
        ins(%0 : {source.type}) outs(%1 : {target.type}) {{
        ^bb0(%a: {a}, %b: {b}):
          %c = arith.{cast} %a : {a} to {b}
          linalg.yield %c : {b}
        }}"""
