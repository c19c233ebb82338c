"""``stablehlo.select_and_scatter``: every window finds its element, then every element folds the windows that found it.

Reductions of windows whose extents are known as the program runs, or of whose padding the body would make something.
"""

import math
from collections.abc import Sequence
from typing import Any

from devscope.lowering.constants import constant_value
from devscope.lowering.interop.bindings import ir
from devscope.lowering.mlir_util import entry_block
from devscope.lowering.stablehlo.templates import (
    applied_block,
    axes_map,
    commas,
    element,
    expand,
    extents_of,
    fold_empty,
    integers,
    shape,
    tensor,
)


def expand_select_and_scatter(op: Any) -> None:
    operand, source, _ = op.operands
    extents, outs = shape(operand.type), shape(source.type)
    rank, of = len(extents), element(operand.type)
    window = integers(op, "window_dimensions", [1] * rank)
    strides = integers(op, "window_strides", [1] * rank)
    padding = integers(op, "padding", [0] * (2 * rank))
    low = padding[::2]
    if not rank or 0 in extents:
        return
    lines: list[str] = []
    emit = lines.append
    emit("%zero = arith.constant 0 : index\n%one = arith.constant 1 : index")
    for axis in range(rank):
        emit(f"%axis{axis} = arith.constant {axis} : index")
        for name, extent, tensor_name, type_ in (
            ("n", extents[axis], "%0", operand.type),
            ("m", outs[axis], "%1", source.type),
        ):
            emit(
                f"%{name}{axis} = "
                + (
                    f"arith.constant {extent} : index"
                    if extent >= 0
                    else f"tensor.dim {tensor_name}, %axis{axis} : {type_}"
                )
            )
        emit(f"%w{axis} = arith.constant {window[axis]} : index")
        emit(f"%s{axis} = arith.constant {strides[axis]} : index")
        emit(f"%p{axis} = arith.constant {low[axis]} : index")
    places, parallel, own = tensor(outs, "i64"), commas(['"parallel"'] * rank), axes_map(rank, range(rank))
    emit(f"%init = tensor.extract %2[] : tensor<{of}>")
    emit(f"%room = tensor.empty({commas(f'%m{axis}' for axis in range(rank) if outs[axis] < 0)}) : {places}")
    emit(
        f"%chosen = linalg.generic {{indexing_maps = [{own}], iterator_types = [{parallel}]}} outs(%room : {places}) {{\n^bb0(%o: i64):"
    )
    emit("%none = arith.constant -1 : i64")
    for axis in range(rank):
        emit(f"%d{axis} = linalg.index {axis} : index\n%b{axis} = arith.muli %d{axis}, %s{axis} : index")
        emit(f"%f{axis} = arith.subi %b{axis}, %p{axis} : index")
    # The place of the best element and what it is: divisions that find it again take long.
    both, carried, best = f"i64, {of}", "%none", "%init"
    for axis in range(rank):
        emit(
            f"%l{axis}:2 = scf.for %k{axis} = %zero to %w{axis} step %one "
            f"iter_args(%c{axis} = {carried}, %e{axis} = {best}) -> ({both}) {{"
        )
        carried, best = f"%c{axis}", f"%e{axis}"
    inside = ""
    flat = "%zero"
    for axis in range(rank):
        emit(f"%i{axis} = arith.addi %f{axis}, %k{axis} : index")
        emit(f"%x{axis} = arith.cmpi ult, %i{axis}, %n{axis} : index")  # one before the first is large
        if inside:
            emit(f"%in{axis} = arith.andi {inside}, %x{axis} : i1")
        inside = f"%in{axis}" if inside else f"%x{axis}"
        emit(f"%g{axis} = arith.muli {flat}, %n{axis} : index\n%h{axis} = arith.addi %g{axis}, %i{axis} : index")
        flat = f"%h{axis}"
    at = commas(f"%i{axis}" for axis in range(rank))
    emit(f"%place = arith.index_cast {flat} : index to i64\n%noplace = arith.constant 0 : i64")
    emit(f"%new:2 = scf.if {inside} -> ({both}) {{\n%isfirst = arith.cmpi slt, {carried}, %noplace : i64")
    emit(f"%bv = tensor.extract %0[{at}] : {operand.type}")
    emit(f"%best:2 = scf.if %isfirst -> ({both}) {{ scf.yield %place, %bv : {both} }} else {{")
    emit(f"%at = tensor.from_elements {best} : tensor<{of}>\n%bt = tensor.from_elements %bv : tensor<{of}>")
    emit(f'%kt = "devscope.apply"(%at, %bt) {{region = 0}} : (tensor<{of}>, tensor<{of}>) -> tensor<i1>')
    emit(f"%keep = tensor.extract %kt[] : tensor<i1>\n%r = arith.select %keep, {carried}, %place : i64")
    emit(f"%rv = arith.select %keep, {best}, %bv : {of}\nscf.yield %r, %rv : {both}\n}}")
    emit(f"scf.yield %best#0, %best#1 : {both}\n}} else {{ scf.yield {carried}, {best} : {both} }}")
    result = "%new"
    for axis in reversed(range(rank)):
        emit(f"scf.yield {result}#0, {result}#1 : {both}\n}}")
        result = f"%l{axis}"
    emit(f"linalg.yield {result}#0 : i64\n}} -> {places}")
    _fold(op, emit, rank, of, outs, extents)
    expand(op, "\n".join(lines))


def _fold(op: Any, emit: Any, rank: int, of: Any, outs: list[int], extents: list[int]) -> None:
    source, result = op.operands[1], op.results[0].type
    places, parallel, own = tensor(outs, "i64"), commas(['"parallel"'] * rank), axes_map(rank, range(rank))
    emit(f"%space = tensor.empty({commas(f'%n{axis}' for axis in range(rank) if extents[axis] < 0)}) : {result}")
    emit(
        f"%folded = linalg.generic {{indexing_maps = [{own}], iterator_types = [{parallel}]}} outs(%space : {result}) {{\n^bb0(%oo: {of}):"
    )
    flat = "%zero"
    for axis in range(rank):
        emit(f"%fd{axis} = linalg.index {axis} : index\n%fg{axis} = arith.muli {flat}, %n{axis} : index")
        emit(f"%ff{axis} = arith.addi %fg{axis}, %fd{axis} : index")
        flat = f"%ff{axis}"
        # Windows that reach the element: from ceil((d + p - w + 1) / s), not below 0, to floor((d + p) / s).
        emit(
            f"%fe{axis} = arith.addi %fd{axis}, %p{axis} : index\n%fl{axis} = arith.subi %fe{axis}, %w{axis} : index"
        )
        emit(f"%fm{axis} = arith.addi %fl{axis}, %one : index\n%fn{axis} = arith.maxsi %fm{axis}, %zero : index")
        emit(f"%fo{axis} = arith.addi %fn{axis}, %s{axis} : index\n%fp{axis} = arith.subi %fo{axis}, %one : index")
        emit(f"%fa{axis} = arith.divui %fp{axis}, %s{axis} : index")
        emit(
            f"%fq{axis} = arith.divui %fe{axis}, %s{axis} : index\n%fr{axis} = arith.addi %fq{axis}, %one : index"
        )
        emit(f"%fb{axis} = arith.minui %fr{axis}, %m{axis} : index")
    emit(f"%mine = arith.index_cast {flat} : index to i64")
    carried = "%init"
    for axis in range(rank):
        emit(
            f"%fl_{axis} = scf.for %u{axis} = %fa{axis} to %fb{axis} step %one iter_args(%fc{axis} = {carried}) -> ({of}) {{"
        )
        carried = f"%fc{axis}"
    at = commas(f"%u{axis}" for axis in range(rank))
    emit(f"%whose = tensor.extract %chosen[{at}] : {places}\n%ismine = arith.cmpi eq, %whose, %mine : i64")
    emit(f"%sum = scf.if %ismine -> {of} {{\n%sv = tensor.extract %1[{at}] : {source.type}")
    emit(f"%st = tensor.from_elements %sv : tensor<{of}>\n%ct = tensor.from_elements {carried} : tensor<{of}>")
    emit(f'%rt = "devscope.apply"(%ct, %st) {{region = 1}} : (tensor<{of}>, tensor<{of}>) -> tensor<{of}>')
    emit(
        f"%rv = tensor.extract %rt[] : tensor<{of}>\nscf.yield %rv : {of}\n}} else {{ scf.yield {carried} : {of} }}"
    )
    final = "%sum"
    for axis in reversed(range(rank)):
        emit(f"scf.yield {final} : {of}\n}}")
        final = f"%fl_{axis}"
    emit(f'linalg.yield {final} : {of}\n}} -> {result}\n"devscope.return"(%folded) : ({result}) -> ()')


_WINDOW = """
%d{axis} = linalg.index {axis} : index
%b{axis} = arith.muli %d{axis}, %s{axis} : index
%f{axis} = arith.subi %b{axis}, %p{axis} : index
"""

HELD = """
%x{axis} = arith.cmpi ult, %i{axis}, %long{axis} : index
%q{axis} = arith.divui %i{axis}, %h{axis} : index
%r{axis} = arith.remui %i{axis}, %h{axis} : index
%y{axis} = arith.cmpi eq, %r{axis}, %zero : index
%z{axis} = arith.andi %x{axis}, %y{axis} : i1
"""
"""Whether place ``%i`` of a dilated base holds an element, ``%z``, and which, ``%q``. One in front of the first is a
large number."""

_PLACE = f"""
%o{{axis}} = arith.muli %k{{axis}}, %g{{axis}} : index
%i{{axis}} = arith.addi %f{{axis}}, %o{{axis}} : index
{HELD}
"""


def expand_dynamic_reduce_window(op: Any) -> None:
    """JAX's call ``stablehlo.dynamic_reduce_window``: inputs, what they begin with, then extents, strides, dilations of
    the base and of the window (``[rank]``) and padding (``[rank, 2]``), all tensors; a function folds two elements."""
    count, rank = len(op.results), len(shape(op.operands[0].type))
    lines: list[str] = []
    for number, name in enumerate("wshgp"):
        type_ = op.operands[2 * count + number].type
        for axis in range(rank):
            sides = (
                {f"{name}{axis}": [axis, 0], f"high{axis}": [axis, 1]}
                if name == "p"
                else {f"{name}{axis}": [axis]}
            )
            for side, places in sides.items():
                at = [f"%{side}_at{n}" for n in range(len(places))]
                lines += [f"{at} = arith.constant {place} : index" for at, place in zip(at, places, strict=True)]
                lines.append(f"%{side}_e = tensor.extract %{2 * count + number}[{commas(at)}] : {type_}")
                lines.append(f"%{side} = arith.index_cast %{side}_e : {element(type_)} to index")
    _reduce_windows(op, lines, entry_block(_called(op)))


def expand_reduce_window(op: Any) -> None:
    """Of dynamic extents, of which upstream lowers pooling alone, and of padding that is left out, as in XLA.

    Upstream pads with what the fold begins with, as StableHLO's specification does. Where that is not neutral
    (``a + b + a * b`` of infinity and 0, sums that begin with 2), XLA folds the elements alone. Where padding is
    negative, upstream cuts, also where there is nothing to cut from.
    """
    if fold_empty(op):
        return
    extents = shape(op.operands[0].type)
    rank = len(extents)
    padding = integers(op, "padding", [0] * (2 * rank))
    dilations = [integers(op, name, [1] * rank) for name in ("base_dilations", "window_dilations")]
    strides = integers(op, "window_strides", [1] * rank)
    windows = integers(op, "window_dimensions")
    is_plain = not any(padding) and dilations == [[1] * rank] * 2
    is_padded = any(padding) or dilations[0] != [1] * rank
    counts = shape(op.results[0].type)
    # Of several results there may be a first of equal ones.
    in_steps = IN_STEPS in op.attributes or len(op.results) > 1
    boxes = _boxes(extents, counts, windows, strides, dilations, padding) if in_steps else []
    is_known = (
        is_plain and _is_pooling(op, windows, strides) if -1 in extents else not is_padded or pads_neutrally(op)
    )
    if is_known and not boxes:
        return
    named = {
        "w": windows,
        "s": strides,
        "h": dilations[0],
        "g": dilations[1],
        "p": padding[::2],
        "high": padding[1::2],
    }
    lines = [
        f"%{name}{axis} = arith.constant {value} : index"
        for name, values in named.items()
        for axis, value in enumerate(values)
    ]
    _reduce_windows(op, lines, op.regions[0].blocks[0], boxes)


IN_STEPS = "devscope.in_steps"
"""Windows whose sums are rounded at each step have such an attribute: the order of steps is that of XLA."""


def _boxes(
    extents: list[int],
    counts: list[int],
    windows: list[int],
    strides: list[int],
    dilations: list[list[int]],
    padding: list[int],
) -> list[list[tuple[int, int]]]:
    """Parts of a window, ranges of each dimension, one after the other; none where row-major order is the same.

    XLA cuts off the last step of the last loop over a window of which all other steps are inside, or there is but one
    (its pass PeelLoops).
    """
    if -1 in extents + counts:
        return []
    for axis in reversed(range(len(windows))):
        window, by, low = windows[axis], dilations[1][axis], padding[2 * axis]
        beyond = strides[axis] * (counts[axis] - 1) + by * (window - 1) - low - (extents[axis] - 1)
        is_cut = low > 0 or dilations[0][axis] > 1
        if window == 1 or (not is_cut and beyond <= 0) or (window > 2 and (is_cut or beyond > by)):
            continue
        if max(windows[:axis], default=1) == 1:
            return []
        whole = [(0, each) for each in windows]
        parts = [(0, window - 1), (window - 1, window)]
        return [[*whole[:axis], part, *whole[axis + 1 :]] for part in parts]
    return []


_MOVED = frozenset(f"stablehlo.{name}" for name in ("broadcast_in_dim", "convert", "reshape"))
_NEUTRAL = {"stablehlo.add": 0.0, "stablehlo.xor": 0.0, "stablehlo.multiply": 1.0}
IDEMPOTENT = frozenset(f"stablehlo.{name}" for name in ("and", "maximum", "minimum", "or"))


def pads_neutrally(op: Any) -> bool:
    """Whether it changes nothing to fold what the fold begins with once more."""
    *body, _ = [inner.operation for inner in op.regions[0].blocks[0].operations]
    if len(op.results) > 1 or len(body) != 1:
        return False
    if min(integers(op, "padding", [0])) < 0:
        return False
    return body[0].name in IDEMPOTENT or _number(op.operands[1]) == _NEUTRAL.get(body[0].name, math.nan)


def _number(value: Any) -> float | None:
    """The real number that a tensor of one element is known to be."""
    while not isinstance(value.owner, ir.Block) and value.owner.name in _MOVED:
        (value,) = value.owner.operands
    if isinstance(value.owner, ir.Block) or value.owner.name != "stablehlo.constant":
        return None
    text = str(constant_value(value.owner)).removeprefix("dense<").partition(">")[0]
    real, _, imaginary = text.strip("()").partition(",")
    if imaginary and float(imaginary) != 0:
        return None
    return float({"false": 0, "true": 1}.get(real, real)) if not real.startswith("0x") else None


def _is_pooling(op: Any, windows: list[int], strides: list[int]) -> bool:
    """Of the dimensions between the first and the last one, as upstream knows it."""
    outer = [*windows[::3], *strides[::3]] if len(windows) == 4 else [*windows[::4], *strides[::4]]
    if len(windows) not in (4, 5) or set(outer) != {1} or len(op.results) > 1:
        return False
    body = [inner.operation.name for inner in op.regions[0].blocks[0].operations]
    is_float = isinstance(element(op.results[0].type), (ir.F32Type, ir.F64Type))
    return is_float and len(body) == 2 and body[0] in ("stablehlo.add", "stablehlo.maximum", "stablehlo.minimum")


def _reduce_windows(
    op: Any, lines: list[str], block: Any, boxes: Sequence[Sequence[tuple[int, int]]] = ()
) -> None:
    """``lines`` define extents ``%w``, strides ``%s``, dilations ``%h`` and ``%g``, padding ``%p`` and ``%high``.

    ``boxes``: the parts of a window that are folded one after the other; without them the whole one is.
    """
    count, rank = len(op.results), len(shape(op.operands[0].type))
    inputs, results = [value.type for value in op.operands][:count], [result.type for result in op.results]
    kinds, emit = [element(type_) for type_ in results], lines.append
    emit("%zero = arith.constant 0 : index\n%one = arith.constant 1 : index")
    extents_of(emit, "n", "%0", inputs[0])
    for axis in range(rank):
        window_count(emit, axis, f"%n{axis}", f"%w{axis}")
    outs = shape(results[0])
    sizes = commas(f"%m{axis}" for axis in range(rank) if outs[axis] < 0)
    for number, type_ in enumerate(results):
        emit(f"%room{number} = tensor.empty({sizes}) : {type_}")
        emit(f"%init{number} = tensor.extract %{count + number}[] : {op.operands[count + number].type}")
    own, parallel = axes_map(rank, range(rank)), commas(['"parallel"'] * rank)
    rooms, types = commas(f"%room{n}" for n in range(count)), commas(results)
    emit(
        f"%folded{f':{count}' if count > 1 else ''} = linalg.generic {{indexing_maps = [{commas([own] * count)}], "
        f"iterator_types = [{parallel}]}} outs({rooms} : {types}) {{"
    )
    emit(f"^bb0({commas(f'%old{n}: {of}' for n, of in enumerate(kinds))}):")
    for axis in range(rank):
        emit(_WINDOW.format(axis=axis))
    carried = [f"%init{n}" for n in range(count)]
    for number, box in enumerate(boxes):
        for axis, (first, end) in enumerate(box):
            emit(f"%from{number}_{axis} = arith.constant {first} : index")
            emit(f"%to{number}_{axis} = arith.constant {end} : index")
        bounds = [(f"%from{number}_{axis}", f"%to{number}_{axis}") for axis in range(rank)]
        carried = _fold_window(emit, block, bounds, inputs, kinds, carried, f"%part{number}")
    if not boxes:
        bounds = [("%zero", f"%w{axis}") for axis in range(rank)]
        carried = _fold_window(emit, block, bounds, inputs, kinds, carried, "%part")
    emit(f"linalg.yield {commas(carried)} : {commas(kinds)}")
    names = [f"%folded#{n}" for n in range(count)] if count > 1 else ["%folded"]
    emit(f'}} -> {f"({types})" if count > 1 else types}\n"devscope.return"({commas(names)}) : ({types}) -> ()')
    expand(op, "\n".join(lines), blocks=[block])


def padded_extent(emit: Any, axis: int, size: str) -> None:
    """The extent of the dilated base, ``%long``, and with padding, ``%padded``; without it is ``size``."""
    emit(f"%less{axis} = arith.subi {size}, %one : index\n%wide{axis} = arith.muli %less{axis}, %h{axis} : index")
    emit(f"%more{axis} = arith.addi %wide{axis}, %one : index")
    emit(f"%long{axis} = arith.maxsi %more{axis}, %zero : index")
    emit(f"%lower{axis} = arith.addi %long{axis}, %p{axis} : index")
    emit(f"%padded{axis} = arith.addi %lower{axis}, %high{axis} : index")


def window_count(emit: Any, axis: int, size: str, window: str) -> None:
    """How many windows there are, ``%m``, of extent ``window``."""
    padded_extent(emit, axis, size)
    emit(f"%lw{axis} = arith.subi {window}, %one : index\n%dw{axis} = arith.muli %lw{axis}, %g{axis} : index")
    emit(f"%rest{axis} = arith.subi %padded{axis}, %dw{axis} : index")  # one more than there are steps
    emit(
        f"%round{axis} = arith.addi %rest{axis}, %s{axis} : index\n%top{axis} = arith.subi %round{axis}, %one : index"
    )
    emit(f"%most{axis} = arith.maxsi %top{axis}, %zero : index")
    emit(f"%m{axis} = arith.divui %most{axis}, %s{axis} : index")


def _fold_window(
    emit: Any,
    block: Any,
    bounds: Sequence[tuple[str, str]],
    inputs: list[Any],
    kinds: list[Any],
    carried: list[str],
    made: str,
) -> list[str]:
    """The loops over a window, or over a part of it, and the values, which ``made`` names, that they make of others."""
    count, types, rank = len(kinds), commas(kinds), len(bounds)
    inside = ""
    several = f":{count}" if count > 1 else ""
    loops = [made, *(f"%l{axis}" for axis in range(1, rank))]
    for axis, (first, end) in enumerate(bounds):
        bound = commas(f"%c{axis}_{n} = {value}" for n, value in enumerate(carried))
        emit(
            f"{loops[axis]}{several} = scf.for %k{axis} = {first} to {end} step %one iter_args({bound}) -> ({types}) {{"
        )
        carried = [f"%c{axis}_{n}" for n in range(count)]
        emit(_PLACE.format(axis=axis))
        if inside:
            emit(f"%in{axis} = arith.andi {inside}, %z{axis} : i1")
        inside = f"%in{axis}" if inside else f"%z{axis}"
    at = commas(f"%q{axis}" for axis in range(rank))
    if rank:
        emit(f"%new{several} = scf.if {inside} -> ({types}) {{")
    for number, type_ in enumerate(inputs):
        emit(f"%v{number} = tensor.extract %{number}[{at}] : {type_}")
    values = [*carried, *(f"%v{n}" for n in range(count))]
    results = applied_block(block, emit, "t", list(zip(values, [*kinds, *kinds], strict=True)))
    if rank:
        emit(f"scf.yield {commas(results)} : {types}\n}} else {{ scf.yield {commas(carried)} : {types} }}")
        results = [f"%new#{n}" for n in range(count)] if count > 1 else ["%new"]
    for loop in reversed(loops[:rank]):
        emit(f"scf.yield {commas(results)} : {types}\n}}")
        results = [f"{loop}#{n}" for n in range(count)] if count > 1 else [loop]
    return results


def _called(op: Any) -> Any:
    """The function that a call names."""
    (name,) = op.attributes["called_computations"]
    module = op.parent
    while module.name != "builtin.module":
        module = module.parent
    symbols = ir.SymbolTable(module)
    return symbols[ir.FlatSymbolRefAttr(name).value].operation
