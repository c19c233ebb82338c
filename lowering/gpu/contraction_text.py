"""What the template of contractions for GPUs is filled with."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from devscope.lowering.gpu.contraction_match import Contraction, Operand
from devscope.lowering.gpu.index_text import Extent, Text
from devscope.lowering.kernels.contraction_operands import is_float, zero
from devscope.lowering.kernels.epilogue import Epilogue

_PAD = 4
"""Elements behind a line of a tile: the lines begin in different banks of local memory."""

_NAMES = ("A", "B", "C")


@dataclass(frozen=True)
class Extra:
    """An operand of an epilogue: its type and its elements', and the axes of the result that its axes are."""

    type: str
    element: str
    axes: Sequence[int]


def vector(width: int, element: str) -> str:
    """One element is none: SPIR-V has no vectors of one."""
    return element if width == 1 else f"vector<{width}x{element}>"


class KernelText:
    """For the template ``contraction``.

    ``numbers``: those of the row. ``adds``: whether the result is added to what C holds."""

    _before_barrier: Sequence[str] = ()

    def __init__(
        self,
        found: Contraction,
        numbers: Mapping[str, int],
        adds: bool,
        follows: Epilogue | None,
        extras: Sequence[Extra],
    ) -> None:
        self._found = found
        self._of = numbers
        self._adds = adds
        self._follows = follows
        self._extras = extras
        self._numbers = count()
        self._divide(numbers)

    def _divide(self, numbers: Mapping[str, int]) -> None:
        """How a tile of the result is divided among work-items, and the names and type of the sums of one."""
        self._across = numbers["columns"] // numbers["thread_columns"]
        self._down = numbers["rows"] // numbers["thread_rows"]
        self._threads = self._across * self._down
        self._wide = min(4, numbers["thread_columns"])
        self._high = min(4, numbers["thread_rows"])
        self._sums = [
            f"%sums{row}_{part}"
            for row in range(numbers["thread_rows"])
            for part in range(numbers["thread_columns"] // self._wide)
        ]
        self._sums_type = vector(self._wide, self._found.element)

    @property
    def _operands(self) -> list[Operand]:
        return [self._found.a, self._found.b, self._found.c]

    def values(self) -> dict[str, object]:
        found, of = self._found, self._of
        read, prepare = self._read()
        values_read = [name for names in read.values() for name in names]
        elements = [found.a.element] * len(read["a"]) + [found.b.element] * len(read["b"])
        types_read = ", ".join(elements)
        sum_ = self._sums_type
        carried = [f"%read{n}" for n in range(len(values_read))]
        zeros = ["%zero_of_a"] * len(read["a"]) + ["%zero_of_b"] * len(read["b"])
        pairs = [f"{name} = %no_sum" for name in self._sums]
        pairs += [f"{name} = %first{n}" for n, name in enumerate(carried)]
        parameters = [f"%{name}: {operand.type}" for name, operand in zip(_NAMES, self._operands, strict=True)]
        parameters += [f"%extra{n}: {extra.type}" for n, extra in enumerate(self._extras)]
        splat = f"dense<{zero(found.element)}>" if sum_.startswith("vector") else zero(found.element)
        return {
            **{name.upper(): number for name, number in of.items()},
            "PARAMETERS": ", ".join(parameters),
            "THREADS": self._threads,
            "SIZES": self._sizes("", "bmn"),
            "SIZES_INSIDE": self._sizes("inside_", "bmnk"),
            "TILES_A": self._tiles("rows"),
            "TILES_B": self._tiles("columns"),
            "ELEMENT_OF_A": found.a.element,
            "ELEMENT_OF_B": found.b.element,
            "ZERO_OF_A": zero(found.a.element),
            "ZERO_OF_B": zero(found.b.element),
            "PREPARE": prepare,
            "READ_FIRST": self._first(values_read, zeros, types_read),
            "READ": self._text_read,
            "NO_SUMS": f"%no_sum = arith.constant {splat} : {sum_}",
            "ALL_SUMS": ", ".join(
                [*(f"%all_{name[1:]}" for name in self._sums), *(f"%rest{n}" for n, _ in enumerate(carried))]
            ),
            "CARRIED": ", ".join(pairs),
            "TYPES_CARRIED": ", ".join([*[sum_] * len(self._sums), *elements]),
            "STORE": self._store(carried, len(read["a"])),
            "MULTIPLY": self._multiply(),
            "YIELDED": ", ".join([*self._more, *values_read]),
            "END": self._end(),
        }

    def _first(self, values: Sequence[str], zeros: Sequence[str], types: str) -> str:
        """The first tiles are read if there are any."""
        begin = f"%at_k = arith.constant 0 : index\n{self._text_read}"
        if not values:
            return f"scf.if %is_some {{\n{begin}\n}}"
        names = ", ".join(f"%first{n}" for n in range(len(values)))
        return f"""{names} = scf.if %is_some -> ({types}) {{
          {begin}
          scf.yield {", ".join(values)} : {types}
        }} else {{
          scf.yield {", ".join(zeros)} : {types}
        }}"""

    def _tiles(self, lines: str) -> str:
        shape = f"2x{self._of['depth']}x{self._of[lines] + _PAD}"
        return f"memref<{shape}x{self._found.element}, #gpu.address_space<workgroup>>"

    def _sizes(self, prefix: str, names: str) -> str:
        products = {"b": "batch", "m": "M", "n": "N", "k": "K"}
        text = Text([], self._numbers)
        for name in names:
            text.sizes(prefix, products[name], self._found.loops[name], self._extent)
        return text.joined()

    def _extent(self, loop: int) -> Extent:
        number, operand = self._found.operand_of(loop)
        return Extent(self._found.extents[loop], _NAMES[number], operand.axis(loop) or 0, str(operand.type))

    def _in_tile(self, operand: Operand, step: str, line: str) -> str:
        return f"{step}, {line}"

    def _is_copied(self, operand: Operand) -> bool:
        """Whether pieces of ``operand`` get into tiles past the registers."""
        return False

    def _copy(self, text: Text, letter: str, source: str, in_tile: str, exists: str) -> None:
        raise NotImplementedError

    def _inside(self, text: Text, operand: Operand, index: str, last: str) -> str:
        """``index``, or that of an element that exists."""
        return text.index("minui", index, last)

    def _split(self, text: Text, index: str, name: str) -> dict[int, str]:
        return text.split(index, self._found.loops[name])

    def _read(self) -> tuple[dict[str, list[str]], str]:
        """The names of what a work-item reads of each operand; text for its rows and columns, which do not change.

        What reads is `_text_read`, for the steps from ``%at_k`` on.
        """
        before, inside = Text([], self._numbers), Text([], self._numbers)
        batch = self._split(before, "%b", "b")
        self._batch = batch
        names: dict[str, list[str]] = {}
        self._stored: dict[str, list[str]] = {}
        for name, operand, lines, loop in (
            ("a", self._found.a, "rows", "m"),
            ("b", self._found.b, "columns", "n"),
        ):
            names[name], self._stored[name] = [], []
            last, first = ("%last_row", "%first_row") if name == "a" else ("%last_column", "%first_column")
            steps: dict[str, tuple[str, dict[int, str]]] = {}
            for line, step in self._shares(before, operand, lines):
                at = self._inside(before, operand, before.index("addi", first, line), last)
                if step not in steps:
                    wanted = inside.index("addi", "%at_k", step)
                    exists = inside.value(f"arith.cmpi ult, {wanted}, %inside_K : index")
                    steps[step] = (
                        exists,
                        self._split(inside, self._inside(inside, operand, wanted, "%last_k"), "k"),
                    )
                exists, sums = steps[step]
                loops = {**batch, **self._split(before, at, loop), **sums}
                place = inside.place(operand.indices, loops)
                in_tile = self._in_tile(operand, step, line)
                if self._is_copied(operand):
                    self._copy(inside, name, f"%{name.upper()}[{place}]", in_tile, exists)
                    continue
                value = inside.value(f"memref.load %{name.upper()}[{place}] : {operand.type}")
                names[name].append(
                    inside.value(f"arith.select {exists}, {value}, %zero_of_{name} : {operand.element}")
                )
                self._stored[name].append(in_tile)
        self._text_read = inside.joined()
        return names, before.joined()

    def _shares(self, text: Text, operand: Operand, lines: str) -> list[tuple[str, str]]:
        """For each element of a tile that a work-item reads: its line and its step of k.

        Neighbours read neighbours: along k, if elements stand side by side so.
        """
        depth, wide, threads = self._of["depth"], self._of[lines], self._threads
        number = depth * wide // threads
        if operand.innermost() in self._found.loops["k"][-1:]:
            step = text.index("remui", "%thread", text.constant(depth))
            line = text.index("divui", "%thread", text.constant(depth))
            return [(text.plus(line, n * (threads // depth)), step) for n in range(number)]
        if wide >= threads:
            steps = [text.constant(step) for step in range(depth)]
            in_line = wide // threads
            return [(text.plus("%thread", n % in_line * threads), steps[n // in_line]) for n in range(number)]
        line = text.index("remui", "%thread", text.constant(wide))
        step = text.index("divui", "%thread", text.constant(wide))
        return [(line, text.plus(step, n * (threads // wide))) for n in range(number)]

    def _store(self, carried: Sequence[str], of_a: int) -> str:
        text = Text([], self._numbers)
        for n, name in enumerate(carried):
            letter, operand = ("a", self._found.a) if n < of_a else ("b", self._found.b)
            place = self._stored[letter][n if n < of_a else n - of_a]
            value = self._to_store(text, name, operand.element)
            type_ = self._tiles("rows" if letter == "a" else "columns")
            text.lines.append(f"memref.store {value}, %tiles_{letter}[%turn, {place}] : {type_}")
        text.lines += self._before_barrier
        return text.joined()

    def _to_store(self, text: Text, value: str, element: str) -> str:
        return self._extended(text, value, element)

    def _extended(self, text: Text, value: str, element: str) -> str:
        to = self._found.element
        return value if element == to else text.value(f"{self._found.extend} {value} : {element} to {to}")

    def _lines_of(self, text: Text, position: str, width: int, items: int, amount: int) -> list[str]:
        """The first of each ``width`` lines of a tile, of which a work-item has ``amount``."""
        first = text.index("muli", position, text.constant(width))
        return [text.plus(first, n * items * width) for n in range(amount // width)]

    def _multiply(self) -> str:
        """One step of k after the other: a line of each tile."""
        of, element = self._of, self._found.element
        text = Text([], self._numbers)
        self._positions(text)
        rows = self._lines_of(text, "%thread_row", self._high, self._down, of["thread_rows"])
        columns = self._lines_of(text, "%thread_column", self._wide, self._across, of["thread_columns"])
        high, wide = vector(self._high, element), vector(self._wide, element)
        sums = list(self._sums)
        for step in range(of["depth"]):
            at = text.constant(step)
            a = [self._load(text, "a", at, row, self._high) for row in rows]
            b = [self._load(text, "b", at, column, self._wide) for column in columns]
            before, sums = iter(sums), list[str]()
            for row in range(of["thread_rows"]):
                value = a[row // self._high]
                if self._high > 1:
                    value = text.value(f"vector.extract {value}[{row % self._high}] : {element} from {high}")
                if self._wide > 1:
                    value = text.value(f"vector.broadcast {value} : {element} to {wide}")
                sums += [self._add(text, value, line, next(before), wide) for line in b]
        self._more = sums
        return text.joined()

    def _positions(self, text: Text) -> None:
        across = text.constant(self._across)
        text.lines.append(f"%thread_row = arith.divui %thread, {across} : index")
        text.lines.append(f"%thread_column = arith.remui %thread, {across} : index")

    def _load(self, text: Text, letter: str, step: str, line: str, width: int) -> str:
        tiles = self._tiles("rows" if letter == "a" else "columns")
        place = f"%tiles_{letter}[%turn, {step}, {line}]"
        if width == 1:
            return text.value(f"memref.load {place} : {tiles}")
        tile = f"{tiles}, {vector(width, self._found.element)}"
        return text.value(f"vector.load {place} {{alignment = {self._alignment(width)} : i64}} : {tile}")

    def _alignment(self, width: int) -> int:
        """Of lines of a tile, which begins at a multiple of 16 bytes."""
        bytes_ = int(self._found.element.strip("bfi")) // 8
        return min(16, width * bytes_, _PAD * bytes_)

    def _add(self, text: Text, a: str, b: str, sums: str, type_: str) -> str:
        if is_float(self._found.element):
            fma = "vector.fma" if self._wide > 1 else "math.fma"
            return text.value(f"{fma} {a}, {b}, {sums} : {type_}")
        return text.value(f"arith.addi {sums}, {text.value(f'arith.muli {a}, {b} : {type_}')} : {type_}")

    def _end(self) -> str:
        """The sums are added to what C holds, go through the epilogue, are rounded and written."""
        text = Text([], self._numbers)
        rows, columns = self._results(text)
        parts: list[tuple[list[str], list[str], list[dict[int, str]]]] = []
        for column in columns:
            first = text.index("addi", "%first_column", column)
            wanted = [text.plus(first, n) for n in range(self._wide)]
            exist = [text.value(f"arith.cmpi ult, {each}, %inside_N : index") for each in wanted]
            clamped = [text.index("minui", each, "%last_column") for each in wanted]
            parts.append((wanted, exist, [self._split(text, each, "n") for each in clamped]))
        for row, line in enumerate(rows):
            at = text.index("addi", "%first_row", line)
            text.lines.append(f"scf.if {text.value(f'arith.cmpi ult, {at}, %inside_M : index')} {{")
            loops = {**self._batch, **self._split(text, at, "m")}
            for part, (_, exist, of_columns) in enumerate(parts):
                self._finish(
                    text, self._sums_of(text, row, part), exist, [{**loops, **each} for each in of_columns]
                )
            text.lines.append("}")
        return text.joined()

    def _results(self, text: Text) -> tuple[list[str], list[str]]:
        """The rows of the results of a work-item, in the tile, and the first of each few columns side by side."""
        of = self._of
        self._positions(text)
        first = self._lines_of(text, "%thread_row", self._high, self._down, of["thread_rows"])
        rows = [text.plus(line, n) for line in first for n in range(self._high)]
        return rows, self._lines_of(text, "%thread_column", self._wide, self._across, of["thread_columns"])

    def _sums_of(self, text: Text, row: int, part: int) -> str:
        """The sums of the results of a row and of columns that are side by side."""
        return f"%all_sums{row}_{part}"

    def _finish(self, text: Text, sums: str, exist: Sequence[str], loops: Sequence[Mapping[int, str]]) -> None:
        """Write elements of the result side by side, those that ``exist``."""
        found, c, width = self._found, self._found.c, len(exist)
        places = [text.place(c.indices, each) for each in loops]
        if self._adds:
            held: list[str] = []
            for there, place in zip(exist, places, strict=True):
                value = text.value(f"scf.if {there} -> ({c.element}) {{")
                inner = text.nested()
                read = inner.value(f"memref.load %C[{place}] : {c.type}")
                nothing = inner.value(f"arith.constant {zero(c.element)} : {c.element}")
                text.lines += [inner.lines[0], f"scf.yield {read} : {c.element}", "} else {"]
                text.lines += [inner.lines[1], f"scf.yield {nothing} : {c.element}", "}"]
                held.append(self._extended(text, value, c.element))
            add = "arith.addf" if is_float(found.element) else "arith.addi"
            all_held = self._together(text, held, found.element)
            sums = text.value(f"{add} {sums}, {all_held} : {vector(width, found.element)}")
        if c.element != found.element:
            sums = text.value(
                f"arith.truncf {sums} : {vector(width, found.element)} to {vector(width, c.element)}"
            )
        if self._follows is not None:
            sums = self._after(text, self._follows, sums, loops)
        for n, (there, place) in enumerate(zip(exist, places, strict=True)):
            one = sums
            if width > 1:
                one = text.value(f"vector.extract {sums}[{n}] : {c.element} from {vector(width, c.element)}")
            text.lines += [f"scf.if {there} {{", f"memref.store {one}, %C[{place}] : {c.type}", "}"]

    def _after(self, text: Text, follows: Epilogue, sums: str, loops: Sequence[Mapping[int, str]]) -> str:
        """The epilogue; names of its steps get a number of their own."""
        width, names = len(loops), dict[str, str]()
        indices = self._found.c.indices
        for number, extra in enumerate(self._extras):
            read: list[str] = []
            for each in loops:
                of_result = [each[indices[axis][0][0]] if indices[axis] else "%c0" for axis in extra.axes]
                read.append(text.value(f"memref.load %extra{number}[{', '.join(of_result)}] : {extra.type}"))
            names[f"%operand{number}"] = self._together(text, read, extra.element)
        tag = f"_{next(self._numbers)}"
        for line in follows.steps:
            text.lines.append(_renamed(_shaped(line, width), sums, names, tag))
        return _renamed(follows.done, sums, names, tag)

    def _together(self, text: Text, values: Sequence[str], element: str) -> str:
        if len(values) == 1:
            return values[0]
        return text.value(f"vector.from_elements {', '.join(values)} : {vector(len(values), element)}")


def _shaped(line: str, width: int) -> str:
    """A step of an epilogue for so many elements side by side."""
    if width > 1:
        return line.replace("$block", f"{width}x")
    line = re.sub(r"dense<([^>]*)> : vector<\$block(\w+)>", r"\1 : \2", line)
    return re.sub(r"vector<\$block(\w+)>", r"\1", line)


def _renamed(line: str, sums: str, names: Mapping[str, str], tag: str) -> str:
    def name(found: re.Match[str]) -> str:
        old = found.group()
        return sums if old == "%sums" else names.get(old, old + tag)

    return re.sub(r"%\w+", name, line)
