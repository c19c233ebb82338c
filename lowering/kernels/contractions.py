"""Contractions on buffers become calls of a packed kernel: ``contraction.mlir`` and ``pack.mlir`` of the target.

The loops of a contraction are those of a batch (in both operands and the result), rows (m: in A and the result),
columns (n: in B and the result) and sums (k: in A and B), as upstream infers them. The kernel has one of each;
loops beside the innermost of each kind are made around the call.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop import bindings
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.epilogue import Epilogue, epilogue_of
from devscope.lowering.kernels.library import KernelLibrary
from devscope.lowering.kernels.table import Row, Schedules
from devscope.lowering.memory.effects import mark_written

KIND = "contraction"

_LEAST_WORK = 4096
"""Multiplications below which loops are as fast, and compiled sooner."""

_PACKED_BYTES = 8 << 20
"""Of all matrices of a batch that are worked on at once."""

_MOST_AT_ONCE = 16

_COMPUTED_IN = {"f16": "f32", "bf16": "f32"}

_ALL_STEPS = 1 << 40
"""What a result has fewer digits of than its sums is not stored between two parts of a sum."""


def call_contractions(module: Any, schedules: Schedules, library: KernelLibrary) -> None:
    """Replace the contractions of ``module``, bufferised host code, for which there are rows."""
    linalg = bindings.load("_mlir_libs._mlirDialectsLinalg")
    for op in mlir_util.walk(module.operation):
        if op.name.startswith("linalg.") and len(op.operands) == 3 and linalg.isa_contraction_op(op):
            found = _match(op, linalg)
            if found is None:
                continue
            row = schedules.choose(op, KIND, found.element, found.sizes(), found.contiguous_of_b())
            if row is not None:
                _replace(op, found, row, schedules, library)


@dataclass
class _Operand:
    """A buffer, and its axes by the loops of the contraction."""

    value: Any
    axes: dict[int, int]

    @property
    def element(self) -> Any:
        return ir.MemRefType(self.value.type).element_type

    def axis(self, loop: int | None) -> int | None:
        return None if loop is None else self.axes.get(loop)

    def extent(self, loop: int) -> int | None:
        extent = ir.MemRefType(self.value.type).shape[self.axes[loop]]
        return None if extent == ir.ShapedType.get_dynamic_size() else extent

    def contiguous(self) -> int | None:
        """The loop along which elements stand side by side."""
        strides, _ = ir.MemRefType(self.value.type).get_strides_and_offset()
        return next((loop for loop, axis in reversed(self.axes.items()) if strides[axis] == 1), None)


@dataclass
class _Contraction:
    """``loops``: those of the kernel by name, None where there is none; ``outer``: all others, sums last.

    ``element``: the type that sums are computed in. ``extend``: how integers become longer ones.
    """

    a: _Operand
    b: _Operand
    c: _Operand
    loops: dict[str, int | None]
    outer: list[int]
    sums_outside: bool
    element: str
    extend: str

    def extent(self, name: str) -> int | None:
        loop = self.loops[name]
        return 1 if loop is None else self.any_with(loop).extent(loop)

    def any_with(self, loop: int) -> _Operand:
        return next(operand for operand in (self.c, self.a, self.b) if loop in operand.axes)

    def contiguous_of_b(self) -> str:
        return "k" if self.b.contiguous() == self.loops["k"] else "n"

    def sizes(self) -> dict[str, int | None]:
        return {name: self.extent(name) for name in self.loops}


def _match(op: Any, linalg: Any) -> _Contraction | None:
    """None for what stays loops."""
    if not all(mlir_util.is_memref(operand.type) for operand in op.operands):
        return None
    maps = [ir.AffineMapAttr(attribute).value for attribute in linalg.get_indexing_maps(op)]
    if not all(map_.is_projected_permutation for map_ in maps):
        return None
    a, b, c = (
        _Operand(value, {ir.AffineDimExpr(expr).position: axis for axis, expr in enumerate(map_.results)})
        for value, map_ in zip(op.operands, maps, strict=True)
    )
    found = linalg.infer_contraction_dimensions(op)
    batch, rows, columns, sums = (list(group) for group in (found.batch, found.m, found.n, found.k))
    innermost = c.contiguous()
    if innermost in rows:  # the kernel's columns are what stands side by side in the result
        a, b, rows, columns = b, a, columns, rows
    if innermost not in columns or a.contiguous() is None or b.contiguous() is None:
        return None
    element = str(c.element)
    element = _COMPUTED_IN.get(element, element)
    casts = {inner.name for inner in mlir_util.children(op) if inner.name in ("arith.extsi", "arith.extui")}
    if len(casts) > 1:
        return None
    k = next((x.contiguous() for x in (a, b) if x.contiguous() in sums), sums[-1] if sums else None)
    loops = {"b": _last(batch), "m": _last(rows), "n": innermost, "k": k}
    outer = [loop for group in (batch, rows, columns, sums) for loop in group if loop not in loops.values()]
    made = _Contraction(
        a, b, c, loops, outer, any(loop in sums for loop in outer), element, casts.pop() if casts else "arith.extf"
    )
    for operand, lines in ((a, ("m", "k")), (b, ("n", "k"))):
        if operand.contiguous() not in [loops[name] for name in lines]:
            return None
    extents = [made.extent(name) for name in ("m", "n", "k")] + [
        made.any_with(x).extent(x) for x in (*batch, *outer)
    ]
    work = 1
    for extent in extents:
        if extent is None:
            return made
        work *= extent
    return made if work >= _LEAST_WORK else None


def _last(loops: Sequence[int]) -> int | None:
    return loops[-1] if loops else None


def _replace(op: Any, found: _Contraction, row: Row, schedules: Schedules, library: KernelLibrary) -> None:
    fill = None if found.sums_outside else _zeros_before(op, found.c.value)
    follows = epilogue_of(op, found.c.value) if fill is not None and not found.outer else None
    place, extras = (op, []) if follows is None else (follows.op, follows.operands)
    if follows is not None:
        found.c.value = follows.result
        schedules.include(follows.op, str(found.c.element), {name: found.extent(name) for name in ("b", "m", "n")})
    symbol = library.symbol(row.template, _values(found, row, fill is None, follows, library))
    buffers = [found.a.value, found.b.value, found.c.value, *(value for value, _ in extras)]
    made = mlir_util.insert(place, _call_text(found, row, extras), buffers)
    inner = [i for made_op in made for i in mlir_util.walk(made_op)]
    matrices = [i for i in inner if i.name == "memref.reinterpret_cast"]
    packed = [i for i in inner if i.name == "memref.cast"]
    slots = [i for i in inner if i.name == "arith.minsi"]
    last = place if matrices[-1].block == place.block else mlir_util.children(matrices[-1].parent)[-1]
    operands = [value.results[0] for value in (*matrices, *slots, *packed)]
    written = [2, *range(len(operands) - len(packed), len(operands))]
    mark_written(library.call(last, symbol, operands), written)
    for old in (fill, op, None if follows is None else follows.op):
        if old is not None:
            old.erase()


def _zeros_before(op: Any, buffer: Any) -> Any | None:
    """The operation that makes ``buffer`` zero right before ``op`` adds to it."""
    if isinstance(buffer.owner, ir.Block) or buffer.owner.operation.name != "memref.alloc":
        return None
    users = [use.owner.operation for use in buffer.uses]
    earlier: Any = None
    for other in op.block.operations:
        if other.operation == op:
            break
        if other.operation in users:
            earlier = other.operation
    if earlier is None or earlier.name != "linalg.fill" or isinstance(earlier.operands[0].owner, ir.Block):
        return None
    constant = earlier.operands[0].owner.operation
    is_zero = constant.name == "arith.constant" and float(constant.attributes["value"].value) == 0
    return earlier if is_zero else None


def _matrix(element: Any, rank: int = 3) -> str:
    return f"memref<{'?x' * rank}{element}, strided<[{'?, ' * (rank - 1)}1], offset: ?>>"


def _values(
    found: _Contraction, row: Row, adds: bool, follows: Epilogue | None, library: KernelLibrary
) -> dict[str, object]:
    """What the template is filled with. ``adds``: to what the result holds."""
    numbers = {"rows": found.extent("m") or 1, **row.numbers}
    rows, columns, depth = numbers["rows"], numbers["columns"], numbers.get("depth", 0)
    result, of = str(found.c.element), found.element
    rows_are_lines = found.a.contiguous() == found.loops["k"]
    columns_are_lines = found.contiguous_of_b() == "k"
    if row.template == "dots":
        rows = 1
    block, result_block = f"vector<{rows}x{columns}x{of}>", f"vector<{rows}x{columns}x{result}>"
    read = f"%old = vector.transfer_read %C_[%row, %column], %nothing : {_matrix(result, 2)}, {result_block}"
    write = f"vector.transfer_write %sums, %C_[%row, %column] : {result_block}, {_matrix(result, 2)}"
    if result != of:
        read = f"{read.replace('%old', '%held')}\n%old = arith.extf %held : {result_block} to {block}"
        write = f"%rounded = arith.truncf %sums : {block} to {result_block}\n{write.replace('%sums', '%rounded')}"
    begin = read.replace("%old", "%begin")
    if not adds:
        begin = f"""%begin = scf.if %is_first -> ({block}) {{
            %none = arith.constant dense<{_zero(of)}> : {block}
            scf.yield %none : {block}
        }} else {{
            {read}
            scf.yield %old : {block}
        }}"""
    extras = [] if follows is None else [_extra_type(value, axes, found) for value, axes in follows.operands]
    if follows is not None:
        write = _with_epilogue(found, follows, write, extras, f"{rows}x{columns}x")
    values: dict[str, object] = {
        "EXTRAS": "".join(f", %extra{number}: {type_}" for number, type_ in enumerate(extras)),
        "A": _matrix(found.a.element),
        "B": _matrix(found.b.element),
        "C": _matrix(result),
        "C_MATRIX": _matrix(result, 2),
        "AXIS_OF_K": 2 if rows_are_lines else 1,
        "SUM": of,
        "RESULT": result,
        "ZERO": _zero(result),
        "BLOCK": block,
        "BEGIN": begin,
        "END": write,
        **{name.upper(): number for name, number in numbers.items()},
    }
    if result != of:
        values["STEPS"] = _ALL_STEPS
    if row.template != "narrow":
        values |= {
            "A_MATRIX": _matrix(found.a.element, 2),
            "B_MATRIX": _matrix(found.b.element, 2),
            "SIZES_OF_A": "%M, %K" if rows_are_lines else "%K, %M",
        }
    if row.template == KIND:
        return values | {
            "A_PANEL": f"memref<?x{rows}x{of}, strided<[{rows}, 1], offset: ?>>",
            "B_PANEL": f"memref<?x{columns}x{of}, strided<[{columns}, 1], offset: ?>>",
            "PACK_A": _pack(found, found.a, rows, depth, rows_are_lines, library),
            "PACK_B": _pack(found, found.b, columns, depth, columns_are_lines, library),
            "SIZES_OF_B": "%N, %K" if columns_are_lines else "%K, %N",
        }
    values |= {"ELEMENT_OF_B": found.b.element, "ZERO_OF_B": _zero(str(found.b.element))}
    if row.template == "narrow":
        loads: list[str] = []
        for number in range(rows):
            at = f"%r{number}, %k" if rows_are_lines else f"%k, %r{number}"
            loads.append(f"%r{number} = arith.constant {number} : index")
            loads.append(f"%e{number} = memref.load %A[%b, {at}] : {values['A']}")
            loads.append(_extended(f"%a{number}", f"%e{number}", found.a.element, of, "", found.extend))
        elements = ", ".join(f"%a{number}" for number in range(rows))
        loads.append(f"%a = vector.from_elements {elements} : vector<{rows}x{of}>")
        return values | {
            "READ_A": "\n".join(loads),
            "CONVERT_B": _extended("%b_row", "%b_read", found.b.element, of, f"{columns}", found.extend),
        }
    lanes = row.numbers["lanes"]
    products = f"vector<{columns}x{lanes}x{of}>"
    multiply_add = f"%more = vector.fma %a_rows, %b_rows, %so_far : {products}"
    if _zero(of) == "0":
        multiply_add = f"""%product = arith.muli %a_rows, %b_rows : {products}
            %more = arith.addi %product, %so_far : {products}"""
    return values | {
        "ZERO_OF_SUM": _zero(of),
        "ELEMENT_OF_A": found.a.element,
        "ZERO_OF_A": _zero(str(found.a.element)),
        "AT_A": "%row, %k" if rows_are_lines else "%k, %row",
        "MAP_OF_A": "" if rows_are_lines else "{permutation_map = affine_map<(k, m) -> (k)>} ",
        "CONVERT_A": _extended("%a", "%a_read", found.a.element, of, f"{lanes}", found.extend),
        "CONVERT_B": _extended("%b_rows", "%b_read", found.b.element, of, f"{columns}x{lanes}", found.extend),
        "MULTIPLY_ADD": multiply_add,
    }


def _extended(to: str, value: str, element: Any, of: str, shape: str, extend: str) -> str:
    """``value``, of elements of one type, as the same of type ``of``."""
    before, behind = (f"vector<{shape}x", ">") if shape else ("", "")
    if str(element) == of:
        return f"{to} = arith.bitcast {value} : {before}{of}{behind} to {before}{of}{behind}"
    return f"{to} = {extend} {value} : {before}{element}{behind} to {before}{of}{behind}"


def _extra_type(value: Any, axes: Sequence[int], found: _Contraction) -> str:
    """An operand of an epilogue, as the kernel takes it: with all axes of the result."""
    strides, _ = ir.MemRefType(value.type).get_strides_and_offset()
    columns = found.c.axis(found.loops["n"])
    side_by_side = columns is not None and columns in axes and strides[axes.index(columns)] == 1
    element = ir.MemRefType(value.type).element_type
    return f"memref<?x?x?x{element}, strided<[?, ?, {1 if side_by_side else '?'}], offset: ?>>"


def _with_epilogue(found: _Contraction, follows: Epilogue, write: str, extras: Sequence[str], block: str) -> str:
    """What is done with sums: all parts are in them only behind the last steps."""
    lines: list[str] = []
    for number, ((value, axes), type_) in enumerate(zip(follows.operands, extras, strict=True)):
        element = ir.MemRefType(value.type).element_type
        has = [found.c.axis(found.loops[name]) in axes for name in ("m", "n")]
        if not any(has):
            lines.append(f"%element{number} = memref.load %extra{number}[%b, %row, %column] : {type_}")
            block_type = f"vector<{block}{element}>"
            lines.append(f"%operand{number} = vector.broadcast %element{number} : {element} to {block_type}")
            continue
        map_ = f"affine_map<(b, m, n) -> ({'m' if has[0] else '0'}, {'n' if has[1] else '0'})>"
        lines.append(f"%pad{number} = arith.constant {_zero(str(element))} : {element}")
        lines.append(
            f"%operand{number} = vector.transfer_read %extra{number}[%b, %row, %column], %pad{number} "
            f"{{permutation_map = {map_}}} : {type_}, vector<{block}{element}>"
        )
    before, last_write = write.rsplit("\n", 1) if "\n" in write else ("", write)
    sums = "%rounded" if before else "%sums"
    steps = [line.replace("$block", block).replace("%sums", sums) for line in follows.steps]
    done = last_write.replace(f"transfer_write {sums}", f"transfer_write {follows.done.replace('%sums', sums)}")
    inside = "\n".join([before, *lines, *steps, done])
    return f"scf.if %is_last {{\n{inside}\n}} else {{\n{write}\n}}"


def _pack(
    found: _Contraction, operand: _Operand, width: int, depth: int, lines: bool, library: KernelLibrary
) -> str:
    """``lines``: whether k is contiguous, so that blocks are transposed."""
    source, of = str(operand.element), found.element
    height = min(width, 16) if lines else width
    block = f"vector<{depth}x{height}x{source}>"
    if lines:
        line = f"vector<{height}x{depth}x{source}>"
        read = f"""%lines_ = vector.transfer_read %matrix[%at, %k], %nothing : {_matrix(source, 2)}, {line}
            %read = vector.transpose %lines_, [1, 0] : {line} to {block}"""
    else:
        read = f"%read = vector.transfer_read %matrix[%k, %at], %nothing : {_matrix(source, 2)}, {block}"
    values = {
        "FROM": source,
        "TO": of,
        "WIDTH": width,
        "LINES": height,
        "DEPTH": depth,
        "ZERO": _zero(source),
        "READ": read,
        "CONVERT": _extended("%block", "%read", source, of, f"{depth}x{height}", found.extend),
    }
    return library.symbol("pack", values)


def _zero(element: str) -> str:
    return "0" if element.startswith("i") else "0.0"


def _call_text(found: _Contraction, row: Row, extras: Sequence[tuple[Any, tuple[int, ...]]]) -> str:  # noqa: C901
    """The operands of the kernel; ``%0``, ``%1``, ``%2`` are the buffers, then come those of ``extras``."""
    lines = ["%c0 = arith.constant 0 : index", "%c1 = arith.constant 1 : index"]
    for number, value in enumerate([found.a.value, found.b.value, found.c.value, *(value for value, _ in extras)]):
        type_ = ir.MemRefType(value.type)
        types = ", ".join([f"memref<{type_.element_type}>", *["index"] * (1 + 2 * type_.rank)])
        parts = [f"%{part}{number}:{type_.rank}" for part in ("sizes", "strides") if type_.rank]
        lines.append(
            f"{', '.join([f'%base{number}', f'%offset{number}', *parts])} = "
            f"memref.extract_strided_metadata %{number} : {type_} -> {types}"
        )
    extents: dict[int | None, str] = {None: "%c1"}
    for number, operand in ((2, found.c), (0, found.a), (1, found.b)):
        for loop, axis in operand.axes.items():
            extents.setdefault(loop, f"%sizes{number}#{axis}")
    b, m, n, k = (extents[found.loops[name]] for name in ("b", "m", "n", "k"))
    if row.template == KIND:
        lines += _scratch(found, row.numbers, (b, m, n, k))
    for loop in found.outer:
        lines.append(f"scf.for %at{loop} = %c0 to {extents[loop]} step %c1 {{")
    for number, operand in enumerate((found.a, found.b, found.c)):
        at = f"%offset{number}"
        for loop in found.outer:
            if loop in operand.axes:
                behind = f"%behind{number}_{loop}"
                lines.append(f"{behind} = arith.muli %at{loop}, %strides{number}#{operand.axes[loop]} : index")
                lines.append(f"%begin{number}_{loop} = arith.addi {at}, {behind} : index")
                at = f"%begin{number}_{loop}"
        names = ("b", "m", "n") if number == 2 else ("b", "m", "k") if number == 0 else ("b", "n", "k")
        order = list(names)
        if number != 2 and operand.contiguous() != found.loops["k"]:
            order = [names[0], names[2], names[1]]
        sizes = [extents[found.loops[name]] for name in order]
        strides = [
            "%c0" if (axis := operand.axis(found.loops[name])) is None else f"%strides{number}#{axis}"
            for name in order[:2]
        ]
        lines.append(
            f"%matrix{number} = memref.reinterpret_cast %{number} to offset: [{at}], sizes: [{', '.join(sizes)}], "
            f"strides: [{', '.join(strides)}, 1] : {operand.value.type} to {_matrix(operand.element)}"
        )
    for number, (value, axes) in enumerate(extras, 3):
        strides: list[str] = []
        for name in ("b", "m", "n"):
            axis = found.c.axis(found.loops[name])
            strides.append("%c0" if axis is None or axis not in axes else f"%strides{number}#{axes.index(axis)}")
        type_ = _extra_type(value, axes, found)
        if type_.endswith(", 1], offset: ?>>"):
            strides[2] = "1"
        lines.append(
            f"%matrix{number} = memref.reinterpret_cast %{number} to offset: [%offset{number}], "
            f"sizes: [{b}, {m}, {n}], strides: [{', '.join(strides)}] : {value.type} to {type_}"
        )
    return "\n".join([*lines, *["}"] * len(found.outer)])


def _scratch(found: _Contraction, numbers: Mapping[str, int], extents: Sequence[str]) -> list[str]:
    """Memory for what the kernel packs, and how many matrices of a batch it works on at once."""
    steps = _ALL_STEPS if str(found.c.element) != found.element else numbers["steps"]
    b, m, n, k = extents
    sizes = found.sizes()
    bytes_ = _element_bytes(found.element)
    rows, columns = numbers["rows"], numbers["columns"]

    def padded(size: int, most: int, step: int) -> int:
        return -(-min(size, most) // step) * step

    limits = {
        "m": (numbers["most_rows"], rows),
        "n": (numbers["most_columns"], columns),
        "k": (steps, numbers["depth"]),
    }
    if all(sizes[name] is not None for name in "mnk"):
        amounts = {name: padded(sizes[name] or 0, *limits[name]) for name in limits}
        at_once = max(
            1, min(_MOST_AT_ONCE, _PACKED_BYTES // (bytes_ * max(1, amounts["k"] * (amounts["m"] + amounts["n"]))))
        )
        if sizes["b"] is not None:
            at_once = max(1, min(at_once, sizes["b"]))
        lines = [f"%most = arith.constant {at_once} : index", f"%slots = arith.minsi {b}, %most : index"]
        for name, operand in (("m", "a"), ("n", "b")):
            type_ = f"memref<{at_once * amounts[name] * amounts['k']}x{found.element}>"
            lines.append(f"%alloc_{operand} = memref.alloc() {{alignment = 64 : i64}} : {type_}")
            lines.append(
                f"%packed_{operand} = memref.cast %alloc_{operand} : {type_} to memref<?x{found.element}>"
            )
        return lines
    lines = [
        f"%most = arith.constant {1 if found.loops['b'] is None else 4} : index",
        f"%slots = arith.minsi {b}, %most : index",
    ]
    for name, extent in (("m", m), ("n", n), ("k", k)):
        most, step = limits[name]
        lines += [
            f"%most_{name} = arith.constant {most} : index",
            f"%step_{name} = arith.constant {step} : index",
            f"%at_most_{name} = arith.minui {extent}, %most_{name} : index",
            f"%parts_{name} = arith.ceildivui %at_most_{name}, %step_{name} : index",
            f"%padded_{name} = arith.muli %parts_{name}, %step_{name} : index",
        ]
    lines.append("%deep = arith.muli %padded_k, %slots : index")
    for name, operand in (("m", "a"), ("n", "b")):
        type_ = f"memref<?x{found.element}>"
        lines += [
            f"%size_{operand} = arith.muli %deep, %padded_{name} : index",
            f"%alloc_{operand} = memref.alloc(%size_{operand}) {{alignment = 64 : i64}} : {type_}",
            f"%packed_{operand} = memref.cast %alloc_{operand} : {type_} to {type_}",
        ]
    return lines


def _element_bytes(element: str) -> int:
    return int(element.strip("bfi")) // 8
