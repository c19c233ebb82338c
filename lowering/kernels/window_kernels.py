"""Windows over an image, computed where it is: ``window.mlir`` of the target."""

from dataclasses import dataclass

from devscope.lowering.kernels.accumulators import filled_before
from devscope.lowering.kernels.library import KernelLibrary
from devscope.lowering.kernels.table import Row, Schedules
from devscope.lowering.kernels.windowed import (
    Arguments,
    Caller,
    Windowed,
    add_image,
    converted,
    decode,
    element_of,
    is_inside,
    strides_of,
    window_begin,
    zero,
)

KIND = "window"


def plan(found: Windowed) -> "_Plan | None":
    """How ``found`` is computed; None if its result has no elements that stand side by side."""
    if not found.axes_of_result or strides_of(found.result)[-1] != 1:
        return None
    by_axis = sorted(found.axes_of_result, key=lambda loop: found.axes_of_result[loop])
    sums = [axis.inner for axis in found.axes if axis.inner is not None]
    sums += [loop for loop in found.axes_of_weights if loop not in sums and loop not in by_axis]
    return _Plan(found, by_axis[:-1], by_axis[-1], sums)


@dataclass
class _Plan:
    """``side_by_side``: the loop along which vectors are; ``rows``: the other ones of the result."""

    found: Windowed
    rows: list[int]
    side_by_side: int
    sums: list[int]

    def sizes(self) -> dict[str, int | None]:
        found = self.found
        return {
            "rows": found.size(self.rows),
            "columns": found.extent(self.side_by_side),
            "sums": found.size(self.sums),
        }

    def replace(self, row: Row, schedules: Schedules, library: KernelLibrary) -> None:
        del schedules
        found, op = self.found, self.found.op
        filled = filled_before(op, found.result)
        if filled is not None and not filled[1]:
            filled = None
        products = found.w is not None
        weights = found.weights if products else None
        caller = Caller(found, found.weights, found.result)
        arguments = Arguments()
        for number, loop in enumerate(self.rows):
            arguments.add(f"%n{number}", caller.extent(loop))
            arguments.add(f"%c_stride{number}", f"%strides2#{found.axes_of_result[loop]}")
        arguments.add("%extent_v", caller.extent(self.side_by_side))
        for number, loop in enumerate(self.sums):
            arguments.add(f"%e{number}", caller.extent(loop))
        add_image(found, caller, arguments)
        if products:
            for axis in found.axes_of_weights.values():
                arguments.add(f"%w_stride{axis}", f"%strides1#{axis}")
        for each, name in ((found.x, "%zero_x"), (found.w, "%zero_w")):
            if each is not None and each.minus is not None:
                arguments.add(name, caller.operand(each.minus), found.element)
        image, result = caller.flat(0, "%offset0"), caller.flat(2, "%offset2")
        operands = [image, *zip(arguments.values, arguments.types, strict=True)]
        if weights is not None:
            operands.append(caller.flat(1, "%offset1"))
        operands.append(result)
        values = self._values(row, arguments, None if filled is None else filled[1])
        symbol = library.symbol(row.template, values)
        caller.call(op, symbol, operands, [len(operands) - 1], library)
        if filled is not None:
            filled[0].erase()
        op.erase()

    def _values(self, row: Row, arguments: Arguments, begin: str | None) -> dict[str, object]:
        found, lanes, of = self.found, row.numbers["lanes"], self.found.element
        x, c = element_of(found.image.value), element_of(found.result)
        weights = None if found.w is None else found.weights
        sums, stored, mask = (f"vector<{lanes}x{type_}>" for type_ in (of, c, "i1"))
        buffer = f"memref<?x{c}, strided<[1], offset: ?>>"
        if begin is not None:
            first = [f"%begin_ = arith.constant dense<{begin}> : {stored}"]
        else:
            first = [
                f"%begin_ = vector.maskedload %C[%c_at], %inside, %nothing : {buffer}, {mask}, {stored} "
                f"into {stored}"
            ]
        first.append(
            f"%begin = arith.bitcast %begin_ : {stored} to {sums}"
            if c == of
            else f"%begin = arith.extf %begin_ : {stored} to {sums}"
        )
        last = [
            f"%end_ = arith.bitcast %sums : {sums} to {stored}"
            if c == of
            else f"%end_ = arith.truncf %sums : {sums} to {stored}",
            f"vector.maskedstore %C[%c_at], %inside, %end_ : {buffer}, {mask}, {stored}",
        ]
        rows = ["%rows0 = arith.constant 1 : index"]
        rows += [f"%rows{n + 1} = arith.muli %rows{n}, %n{n} : index" for n in range(len(self.rows))]
        rows.append(f"%rows = arith.addi %rows{len(self.rows)}, %0 : index")
        constants: list[str] = []
        if weights is not None:
            w = element_of(weights)
            constants.append(f"%no_w = arith.constant dense<{zero(w)}> : vector<{lanes}x{w}>")
        return {
            "X": f"memref<?x{x}, strided<[1], offset: ?>>",
            "INDICES": arguments.text(),
            "WEIGHTS": ""
            if weights is None
            else f"%W: memref<?x{element_of(weights)}, strided<[1], offset: ?>>, ",
            "C": buffer,
            "RESULT": c,
            "ZERO_OF_C": zero(c),
            "ELEMENT_OF_X": x,
            "PAD": (found.image.outside or "").rpartition(" : ")[0] or zero(x),
            "LANES": lanes,
            "PART": row.numbers["part"],
            "ROWS": "\n".join(rows),
            "CONSTANTS": "\n".join(constants),
            "LOCATE": "\n".join(self._locate(weights is not None)),
            "BEGIN": "\n".join(first),
            "SUMS": "\n".join(self._sums(lanes)),
            "END": "\n".join(last),
        }

    def _locate(self, products: bool) -> list[str]:
        """Lines for where a row's elements are in the result, the image and the filters."""
        found = self.found
        lines, names = decode("%row", [f"%n{n}" for n in range(len(self.rows))], "p")
        index_of = dict(zip(self.rows, names, strict=True))
        lines += window_begin(found, index_of, "p")
        at = "%0"
        for n, name in enumerate(names):
            lines += [
                f"%c_behind{n} = arith.muli {name}, %c_stride{n} : index",
                f"%c_sum{n} = arith.addi {at}, %c_behind{n} : index",
            ]
            at = f"%c_sum{n}"
        lines.append(f"%c_row = arith.addi {at}, %0 : index")
        at = "%0"
        for loop, name in index_of.items():
            axis = found.axes_of_weights.get(loop)
            if products and axis is not None:
                lines += [
                    f"%w_behind{axis} = arith.muli {name}, %w_stride{axis} : index",
                    f"%w_sum{axis} = arith.addi {at}, %w_behind{axis} : index",
                ]
                at = f"%w_sum{axis}"
        if products:
            lines.append(f"%w_row = arith.addi {at}, %0 : index")
        return lines

    def _sums(self, lanes: int) -> list[str]:
        found, of = self.found, self.found.element
        sums = f"vector<{lanes}x{of}>"
        lines: list[str] = []
        so_far = "%begin"
        for n in range(len(self.sums)):
            to = "%sums" if n == 0 else f"%inner{n}"
            lines.append(
                f"{to} = scf.for %q{n} = %0 to %e{n} step %1 iter_args(%acc{n} = {so_far}) -> ({sums}) {{"
            )
            so_far = f"%acc{n}"
        lines += self._image(lanes)
        if found.w is None:
            lines.append(f"%more = {found.combine} {so_far}, %x : {sums}")
        else:
            lines += self._filters(lanes)
            if zero(of) == "0":
                lines += [
                    f"%product = arith.muli %x, %w : {sums}",
                    f"%more = arith.addi {so_far}, %product : {sums}",
                ]
            else:
                lines.append(f"%more = vector.fma %x, %w, {so_far} : {sums}")
        if not self.sums:
            return [*lines, f"%sums = arith.bitcast %more : {sums} to {sums}"]
        lines += [f"scf.yield %more : {sums}", "}"]
        for n in range(1, len(self.sums)):
            lines += [f"scf.yield %inner{len(self.sums) - n} : {sums}", "}"]
        return lines

    def _image(self, lanes: int) -> list[str]:  # noqa: C901
        """Lines for ``%x``: elements of the image at one place of the window, as they are computed with."""
        found, of = self.found, self.found.element
        x = element_of(found.image.value)
        number = found.axis_with(self.side_by_side)
        lines: list[str] = []
        off, checks = "%offp", []
        for axis_number, axis in enumerate(found.axes):
            inner = None if axis.inner is None else f"%q{self.sums.index(axis.inner)}"
            behind = "%0"
            if inner is not None:
                behind = f"%ahead{axis_number}"
                lines += [
                    f"%dilation{axis_number} = arith.constant {axis.dilation} : index",
                    f"{behind} = arith.muli {inner}, %dilation{axis_number} : index",
                ]
            if axis_number == number:
                lines += [
                    f"%v_step = arith.constant {axis.step} : index",
                    "%v_at = arith.muli %v, %v_step : index",
                    f"%v_ahead = arith.addi {behind}, %v_at : index",
                ]
                behind = "%v_ahead"
            if axis.place.holes == 1 and behind != "%0":
                lines += [
                    f"%x_ahead{axis_number} = arith.muli {behind}, %stride{axis_number} : index",
                    f"%x_off{axis_number} = arith.addi {off}, %x_ahead{axis_number} : index",
                ]
                off = f"%x_off{axis_number}"
            if axis.place.checked:
                lines.append(f"%x{axis_number} = arith.addi %u{axis_number}p, {behind} : index")
                if axis_number != number:
                    lines += is_inside(f"%x{axis_number}", axis_number, axis, "")
                    checks.append(f"%ok{axis_number}")
                    if axis.place.holes != 1:
                        lines.append(f"%x_in{axis_number} = arith.addi {off}, %in{axis_number} : index")
                        off = f"%x_in{axis_number}"
        ok: str | None = None
        for check in checks:
            if ok is None:
                ok = check
            else:
                lines.append(f"{check}_all = arith.andi {ok}, {check} : i1")
                ok = f"{check}_all"
        mask, source = f"vector<{lanes}xi1>", f"vector<{lanes}x{x}>"
        buffer = f"memref<?x{x}, strided<[1], offset: ?>>"
        if number is None:  # one element for all
            load = f"memref.load %X[{off}] : {buffer}"
            if ok is None:
                lines.append(f"%x_one = {load}")
            else:
                lines += [
                    f"%x_one = scf.if {ok} -> ({x}) {{",
                    f"%x_there = {load}",
                    f"scf.yield %x_there : {x}",
                    "} else {",
                    f"%x_pad = vector.extract %pad[0] : {x} from {source}",
                    f"scf.yield %x_pad : {x}",
                    "}",
                ]
            lines.append(f"%x_read = vector.broadcast %x_one : {x} to {source}")
            return [*lines, *converted("%x", "%x_read", x, of, str(lanes), found.x)]
        axis = found.axes[number]
        stride = None if axis.place.source is None else strides_of(found.image.value)[axis.place.source]
        which = "%inside"
        if ok is not None:
            lines += [
                f"%x_all = vector.broadcast {ok} : i1 to {mask}",
                f"%x_ok = arith.andi {which}, %x_all : {mask}",
            ]
            which = "%x_ok"
        if axis.step == 1 and stride == 1 and axis.place.holes == 1:
            if axis.place.checked:
                lines += [
                    f"%x_left = arith.subi %size{number}, %x{number} : index",
                    f"%x_low = arith.subi %0, %x{number} : index",
                    f"%x_left_mask = vector.create_mask %x_left : {mask}",
                    f"%x_low_mask = vector.create_mask %x_low : {mask}",
                    f"%x_true = arith.constant dense<true> : {mask}",
                    f"%x_not_low = arith.xori %x_low_mask, %x_true : {mask}",
                    f"%x_range = arith.andi %x_left_mask, %x_not_low : {mask}",
                    f"%x_mask = arith.andi {which}, %x_range : {mask}",
                ]
                which = "%x_mask"
            lines.append(
                f"%x_read = vector.maskedload %X[{off}], {which}, %pad : {buffer}, {mask}, {source} into {source}"
            )
            return [*lines, *converted("%x", "%x_read", x, of, str(lanes), found.x)]
        index = f"vector<{lanes}xindex>"
        lines += [
            f"%lane = vector.step : {index}",
            f"%lane_step = vector.broadcast %v_step : index to {index}",
            f"%lane_ahead = arith.muli %lane, %lane_step : {index}",
            f"%lane_stride = vector.broadcast %stride{number} : index to {index}",
        ]
        if axis.place.checked:
            lines += [
                f"%lane_first = vector.broadcast %x{number} : index to {index}",
                f"%lane_u = arith.addi %lane_first, %lane_ahead : {index}",
                f"%lane_size = vector.broadcast %size{number} : index to {index}",
            ]
            if axis.place.holes == 1:
                lines.append(f"%lane_ok = arith.cmpi ult, %lane_u, %lane_size : {index}")
            else:
                lines += [
                    f"%lane_zero = arith.constant dense<0> : {index}",
                    f"%lane_holes = arith.constant dense<{axis.place.holes}> : {index}",
                    f"%lane_left = arith.remsi %lane_u, %lane_holes : {index}",
                    f"%lane_in = arith.divsi %lane_u, %lane_holes : {index}",
                    f"%lane_full = arith.cmpi eq, %lane_left, %lane_zero : {index}",
                    f"%lane_high = arith.cmpi ult, %lane_in, %lane_size : {index}",
                    f"%lane_ok = arith.andi %lane_full, %lane_high : {mask}",
                ]
            lines.append(f"%x_mask = arith.andi {which}, %lane_ok : {mask}")
            which = "%x_mask"
        ahead = "%lane_ahead" if axis.place.holes == 1 else "%lane_in"
        lines += [
            f"%lane_at = arith.muli {ahead}, %lane_stride : {index}",
            f"%x_read = vector.gather %X[{off}][%lane_at], {which}, %pad : {buffer}, {index}, {mask}, {source} "
            f"into {source}",
        ]
        return [*lines, *converted("%x", "%x_read", x, of, str(lanes), found.x)]

    def _filters(self, lanes: int) -> list[str]:
        """Lines for ``%w``: elements of the filters."""
        found, of = self.found, self.found.element
        assert found.w is not None
        assert found.weights is not None
        w = element_of(found.weights)
        lines: list[str] = []
        at = "%w_row"
        for loop, axis in found.axes_of_weights.items():
            if loop in self.sums or loop == self.side_by_side:
                index = "%v" if loop == self.side_by_side else f"%q{self.sums.index(loop)}"
                lines += [
                    f"%w_ahead{axis} = arith.muli {index}, %w_stride{axis} : index",
                    f"%w_at{axis} = arith.addi {at}, %w_ahead{axis} : index",
                ]
                at = f"%w_at{axis}"
        buffer = f"memref<?x{w}, strided<[1], offset: ?>>"
        mask, source, index = (f"vector<{lanes}x{type_}>" for type_ in ("i1", w, "index"))
        axis = found.axes_of_weights.get(self.side_by_side)
        if axis is None:
            lines += [
                f"%w_one = memref.load %W[{at}] : {buffer}",
                f"%w_read = vector.broadcast %w_one : {w} to {source}",
            ]
        elif strides_of(found.weights)[axis] == 1:
            lines.append(
                f"%w_read = vector.maskedload %W[{at}], %inside, %no_w : {buffer}, {mask}, {source} into {source}"
            )
        else:
            lines += [
                f"%w_lane = vector.step : {index}",
                f"%w_lane_stride = vector.broadcast %w_stride{axis} : index to {index}",
                f"%w_lane_at = arith.muli %w_lane, %w_lane_stride : {index}",
                f"%w_read = vector.gather %W[{at}][%w_lane_at], %inside, %no_w : {buffer}, {index}, {mask}, "
                f"{source} into {source}",
            ]
        return [*lines, *converted("%w", "%w_read", w, of, str(lanes), found.w)]
