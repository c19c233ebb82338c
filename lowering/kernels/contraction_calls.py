"""The call of a kernel for a contraction, as text: views of the buffers, memory for packing, outer loops."""

from collections.abc import Sequence
from math import prod
from typing import Any

from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.contraction_match import Contraction, Group, Operand, Place
from devscope.lowering.kernels.contraction_operands import Extra, element_bytes, matrix_type, operand_type
from devscope.lowering.kernels.contraction_panels import apart, steps_of_k
from devscope.lowering.kernels.contraction_values import DOTS, NARROW, PACKED
from devscope.lowering.kernels.library import Parameter
from devscope.lowering.kernels.table import Row

_PACKED_BYTES = 1 << 17
"""Of all matrices of a batch that are worked on at once, if that is more than one."""

_ANY = 1 << 40

_MOST_AT_ONCE = 16
_AT_ONCE_UNKNOWN = 4
"""Where the sizes of matrices are not known."""


class CallText:
    """``buffers`` are ``%0``, ``%1`` and so on in ``lines``: A, B, C, then those of ``extras``.

    ``adds``: whether the result is added to what C holds. ``inside``: of the outer loops.
    """

    def __init__(self, found: Contraction, row: Row, adds: bool, extras: Sequence[Extra]) -> None:
        self._found = found
        self._row = row
        self.buffers: list[Any] = [found.a.value, found.b.value, found.c.value, *(extra.value for extra in extras)]
        self._lines = ["%c0 = arith.constant 0 : index", "%c1 = arith.constant 1 : index"]
        self._flag("adds", adds)
        for number, buffer in enumerate(self.buffers):
            self._metadata(number, ir.MemRefType(buffer.type))
        self._extents = {name: self._product(name, group) for name, group in found.loops.items()}
        self.parameters = [
            Parameter("A", operand_type(found.a), "%matrix0"),
            Parameter("B", operand_type(found.b), "%matrix1"),
            Parameter("C", matrix_type(found.c.element), "%matrix2", written=True),
            *(
                Parameter(f"extra{number}", extra.kernel_type, f"%matrix{number + 3}")
                for number, extra in enumerate(extras)
            ),
            Parameter("adds", "i1", "%adds"),
            Parameter("K", "index", self._extents["k"]),
        ]
        if row.template == PACKED:
            self._scratch()
        elif row.template == NARROW:
            self._sums()
        elif row.template == DOTS:
            self._vectors()
        for loop in found.outer:
            self._lines.append(f"scf.for %at{loop} = %c0 to {self._extent(loop)} step %c1 {{")
        for number, (operand, names) in enumerate(
            zip((found.a, found.b, found.c), ("bmk", "bnk", "bmn"), strict=True)
        ):
            self._matrix(number, operand, names)
        for number, extra in enumerate(extras, 3):
            self._extra(number, extra)

    def with_call(self, symbol: str) -> str:
        """All lines, with a declaration of the function, which is the first operation."""
        types = ", ".join(parameter.type for parameter in self.parameters)
        values = ", ".join(parameter.value for parameter in self.parameters)
        call = f"func.call @{symbol}({values}) : ({types}) -> ()"
        declaration = f"func.func private @{symbol}({types})"
        return "\n".join([declaration, *self._lines, call, *["}"] * len(self._found.outer)])

    @property
    def written(self) -> list[int]:
        """The positions of the operands of the call that the kernel writes."""
        return [number for number, parameter in enumerate(self.parameters) if parameter.written]

    def _flag(self, name: str, value: bool) -> None:
        self._lines.append(f"%{name} = arith.constant {str(value).lower()}")

    def _metadata(self, number: int, type_: Any) -> None:
        types = ", ".join([f"memref<{type_.element_type}>", *["index"] * (1 + 2 * type_.rank)])
        parts = [f"%{part}{number}:{type_.rank}" for part in ("sizes", "strides") if type_.rank]
        self._lines.append(
            f"{', '.join([f'%base{number}', f'%offset{number}', *parts])} = "
            f"memref.extract_strided_metadata %{number} : {type_} -> {types}"
        )

    def _extent(self, loop: int) -> str:
        operands = {2: self._found.c, 0: self._found.a, 1: self._found.b}
        number, operand = next(
            (n, x) for n, x in operands.items() if loop in x.axes and x.place is not Place.PANELS
        )
        return f"%sizes{number}#{operand.axes[loop]}"

    def _product(self, name: str, group: Group) -> str:
        made = "%c1"
        for number, loop in enumerate(group):
            if number:
                self._lines.append(f"%{name}{number} = arith.muli {made}, {self._extent(loop)} : index")
            made = f"%{name}{number}" if number else self._extent(loop)
        return made

    def _matrix(self, number: int, operand: Operand, names: str) -> None:
        """A view of A, B or C with the axes that the kernel wants, k or the lines' axis last."""
        if operand.place is Place.PANELS:
            batch = "%c0" if operand.type.shape[0] == 1 else f"%strides{number}#0"
            self._view(number, "%c0", [self._extents["b"], f"%sizes{number}#1"], [batch], operand_type(operand))
            return
        at = f"%offset{number}"
        for loop in self._found.outer:
            if loop in operand.axes:
                behind, begin = f"%behind{number}_{loop}", f"%begin{number}_{loop}"
                self._lines += [
                    f"{behind} = arith.muli %at{loop}, %strides{number}#{operand.axes[loop]} : index",
                    f"{begin} = arith.addi {at}, {behind} : index",
                ]
                at = begin
        if number != 2 and not self._found.is_lines(operand):
            names = names[0] + names[2] + names[1]
        groups = [self._found.loops[name] for name in names[:2]]
        axes = [operand.axes.get(group[-1]) if group else None for group in groups]
        strides = ["%c0" if axis is None else f"%strides{number}#{axis}" for axis in axes]
        sizes = [self._extents[name] for name in names]
        self._view(number, at, sizes, strides, operand_type(operand))

    def _extra(self, number: int, extra: Extra) -> None:
        strides: list[str] = []
        for name in "bmn":
            axes = [extra.axes[loop] for loop in self._found.loops[name][-1:] if loop in extra.axes]
            strides.append(f"%strides{number}#{axes[0]}" if axes else "%c0")
        sizes = [self._extents[name] for name in "bmn"]
        strides = strides[:2] if extra.side_by_side else strides
        self._view(number, f"%offset{number}", sizes, strides, extra.kernel_type)

    def _view(self, number: int, at: str, sizes: Sequence[str], strides: Sequence[str], to: str) -> None:
        """``strides`` without the last one where that is 1."""
        all_strides = [*strides, "1"][: len(sizes)]
        self._lines.append(
            f"%matrix{number} = memref.reinterpret_cast %{number} to offset: [{at}], sizes: [{', '.join(sizes)}], "
            f"strides: [{', '.join(all_strides)}] : {self.buffers[number].type} to {to}"
        )

    def _scratch(self) -> None:
        """Memory for what the kernel packs, and how many matrices of a batch it works on at once."""
        found, numbers = self._found, self._row.numbers
        packs = {"a": found.a.place is Place.TO_PACK, "b": found.b.place is Place.TO_PACK}
        limits = {
            "m": (numbers["most_rows"], numbers["rows"]),
            "n": (numbers["most_columns"], numbers["columns"]),
            "k": (steps_of_k(found, self._row), numbers["depth"]),
        }
        sizes = found.sizes()
        amounts = {
            name: None if (size := sizes[name]) is None else -(-min(size, most) // step) * step
            for name, (most, step) in limits.items()
        }
        if amounts["k"] is not None:
            amounts["k"] = apart(amounts["k"] // found.steps_at_once)
        at_once = 1 if not found.loops["b"] else _AT_ONCE_UNKNOWN
        widths = [amounts[name] for name, operand in (("m", "a"), ("n", "b")) if packs[operand]]
        known = [width * amounts["k"] for width in widths if width is not None and amounts["k"] is not None]
        if len(known) == len(widths):
            bytes_ = element_bytes(found.packed) * sum(known)
            at_once = max(1, min(_MOST_AT_ONCE, sizes["b"] or 1 << 30, _PACKED_BYTES // max(1, bytes_)))
        self._lines += [
            f"%most = arith.constant {at_once} : index",
            f"%slots = arith.minsi {self._extents['b']}, %most : index",
        ]
        self.parameters.append(Parameter("slots", "index", "%slots"))
        for name, operand in (("m", "a"), ("n", "b")):
            if not packs[operand]:
                continue
            size, depth = amounts[name], amounts["k"]
            if size is not None and depth is not None:
                self._allocate_packed(operand, at_once * size * depth)
                continue
            padded = [self._padded(operand + axis, axis, *limits[axis]) for axis in (name, "k")]
            self._lines += [
                f"%word_{operand} = arith.constant {found.steps_at_once} : index",
                f"%turns_{operand} = arith.divui {padded[1]}, %word_{operand} : index",
                f"%one_{operand} = arith.constant 1 : index",
                f"%words_{operand} = arith.ori %turns_{operand}, %one_{operand} : index",
                f"%deep_{operand} = arith.muli %words_{operand}, %slots : index",
            ]
            self._lines.append(f"%size_{operand} = arith.muli %deep_{operand}, {padded[0]} : index")
            self._allocate_packed(operand, None)

    def _allocate_packed(self, operand: str, size: int | None) -> None:
        """Memory for what is packed of ``operand``: so many elements, or as many as ``%size_OPERAND`` says."""
        element = self._found.packed
        type_, name = f"memref<?x{element}>", f"%packed_{operand}"
        if size is None:
            self._lines.append(f"{name} = memref.alloc(%size_{operand}) {{alignment = 64 : i64}} : {type_}")
        else:
            static = f"memref<{size}x{element}>"
            self._lines += [
                f"%alloc_{operand} = memref.alloc() {{alignment = 64 : i64}} : {static}",
                f"{name} = memref.cast %alloc_{operand} : {static} to {type_}",
            ]
        self.parameters.append(Parameter(f"packed_{operand}", type_, name, written=True))

    def _vectors(self) -> None:
        """Memory for operands whose elements do not stand side by side along k."""
        numbers = self._row.numbers
        for name, axis, operand in (("a", "m", self._found.a), ("b", "n", self._found.b)):
            if operand.place is not Place.TO_PACK:
                continue
            steps = {axis: numbers["depth"], "k": numbers["lanes"]}
            all_ = [self._found.extent("b")]
            for name_, step in steps.items():
                size = self._found.extent(name_)
                all_.append(None if size is None else -(-size // step) * step)
            if None not in all_:
                self._allocate_packed(name, prod(n for n in all_ if n is not None))
                continue
            padded = [self._padded(name + x, x, _ANY, step) for x, step in steps.items()]
            self._lines.append(f"%each_{name} = arith.muli {padded[0]}, {padded[1]} : index")
            self._lines.append(f"%size_{name} = arith.muli %each_{name}, {self._extents['b']} : index")
            self._allocate_packed(name, None)

    def _sums(self) -> None:
        """Memory for the sums of few rows, an odd number of blocks apart: of powers of two of them, those of a
        column would stand in one set of a cache."""
        found, columns = self._found, self._row.numbers["columns"]
        rows, b, n = found.limit("m") or 1, found.extent("b"), found.extent("n")
        to = f"memref<?x?x?x{found.element}>"
        if b is not None and n is not None:
            type_ = f"memref<{b}x{rows}x{apart(-(-n // columns)) * columns}x{found.element}>"
            alloc = f"memref.alloc() {{alignment = 64 : i64}} : {type_}"
        else:
            type_ = f"memref<?x{rows}x?x{found.element}>"
            self._padded("sums", "n", _ANY, columns)
            self._lines += [
                "%blocks_apart = arith.ori %sums_parts, %c1 : index",
                "%sums_apart = arith.muli %blocks_apart, %sums_step : index",
            ]
            alloc = f"memref.alloc({self._extents['b']}, %sums_apart) {{alignment = 64 : i64}} : {type_}"
        self._lines += [f"%alloc_sums = {alloc}", f"%sums = memref.cast %alloc_sums : {type_} to {to}"]
        self.parameters.append(Parameter("sums", to, "%sums", written=True))

    def _padded(self, prefix: str, name: str, most: int, step: int) -> str:
        self._lines += [
            f"%{prefix}_most = arith.constant {most} : index",
            f"%{prefix}_step = arith.constant {step} : index",
            f"%{prefix}_at_most = arith.minui {self._extents[name]}, %{prefix}_most : index",
            f"%{prefix}_parts = arith.ceildivui %{prefix}_at_most, %{prefix}_step : index",
            f"%{prefix}_padded = arith.muli %{prefix}_parts, %{prefix}_step : index",
        ]
        return f"%{prefix}_padded"
