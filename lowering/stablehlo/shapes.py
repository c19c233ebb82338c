"""Shapes as values, and what has no elements."""

import math
import re
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.checks.assertions import compare
from devscope.lowering.checks.demands import require_same
from devscope.lowering.interop.bindings import ir
from devscope.lowering.mlir_util import Builder
from devscope.lowering.stablehlo.templates import (
    axes_map,
    commas,
    element,
    expand,
    extents_of,
    fold_empty,
    integers,
    listed,
    shape,
    tensor,
)
from devscope.lowering.stablehlo.windows import HELD, padded_extent

_LONG_ROW = 64
"""Elements of one operand that lie side by side in a concatenation, from which on copies are worth it."""


def expand_size(op: Any) -> None:
    """The size of a dimension, as a tensor on the host."""
    type_ = op.results[0].type
    build = Builder(op)
    axis = build.constant(ir.IntegerAttr(op.attributes["dimension"]).value)
    size = build.value("tensor.dim", [op.operands[0], axis], build.index)
    number = build.value("arith.index_cast", [size], ir.RankedTensorType(type_).element_type)
    mlir_util.replace_op(op, [build.value("tensor.from_elements", [number], type_)])


def expand_set_size(op: Any) -> None:
    """The first elements of a dimension: no more than there are."""
    old, new = op.operands[0].type, op.results[0].type
    axis, extents = ir.IntegerAttr(op.attributes["dimension"]).value, shape(old)
    if new == old and extents[axis] >= 0:
        mlir_util.replace_op(op, [op.operands[0]])
        return
    lines: list[str] = []
    extents_of(lines.append, "d", "%0", old)
    lines += [
        "%number = tensor.extract %1[] : tensor<i32>",
        "%asked = arith.index_cast %number : i32 to index",
        "%zero = arith.constant 0 : index",
        "%least = arith.maxsi %asked, %zero : index",
        f"%size = arith.minsi %least, %d{axis} : index",
    ]
    sizes = ["%size" if place == axis else f"%d{place}" for place in range(len(extents))]
    known = [extent >= 0 and place != axis for place, extent in enumerate(extents)]
    ends = commas(extent if fixed else size for size, extent, fixed in zip(sizes, extents, known, strict=True))
    cut = tensor([extent if fixed else -1 for extent, fixed in zip(extents, known, strict=True)], element(old))
    starts, steps = commas([0] * len(extents)), commas([1] * len(extents))
    lines.append(f"%cut = tensor.extract_slice %0[{starts}] [{ends}] [{steps}] : {old} to {cut}")
    lines.append(f"%r = tensor.cast %cut : {cut} to {new}")
    expand(op, "\n".join([*lines, f'"devscope.return"(%r) : ({new}) -> ()']))


def fold_whole_slice(op: Any) -> None:
    """What is cut out begins inside: a whole tensor at 0. Upstream's pattern ends where there is no dimension."""
    if op.results[0].type == op.operands[0].type and op.results[0].type.has_static_shape:
        mlir_util.replace_op(op, [op.operands[0]])
    else:
        fold_empty(op)


def fold_empty_reduce(op: Any) -> None:
    types, reduced = [result.type for result in op.results], integers(op, "dimensions")
    if not reduced:
        mlir_util.replace_op(op, list(op.operands)[: len(types)])
        return
    if 0 not in shape(op.operands[0].type):
        return
    build, scalar = Builder(op), {"broadcast_dimensions": ir.DenseI64ArrayAttr.get([])}
    broadcast, sizes = "stablehlo.broadcast_in_dim", list[Any]()
    if not all(type_.has_static_shape for type_ in types):
        kept = [build.constant(axis) for axis in range(op.operands[0].type.rank) if axis not in reduced]
        found = [build.value("tensor.dim", [op.operands[0], axis], build.index) for axis in kept]
        extents = ir.RankedTensorType.get([len(kept)], build.index, loc=op.location)
        broadcast = "stablehlo.dynamic_broadcast_in_dim"
        sizes = [build.value("tensor.from_elements", found, extents)]
    initial = zip(list(op.operands)[len(types) :], types, strict=True)
    mlir_util.replace_op(op, [build.value(broadcast, [v, *sizes], t, scalar) for v, t in initial])


def concatenate_by_copies(op: Any) -> None:
    """Operands with long rows are copied each as a whole.

    Upstream makes a loop that chooses an operand for each element. With short rows that fuses with elementwise
    operations around it; long ones cost a choice per element, and a contraction that it is fused into matches no kernel.
    """
    axis, result = ir.IntegerAttr(op.attributes["dimension"]).value, op.results[0].type
    shapes = [shape(value.type) for value in op.operands]
    if len(shapes) < 2 or any(-1 in extents for extents in [*shapes, shape(result)]) or _is_unsigned(result):
        return
    if min(math.prod(extents[axis:]) for extents in shapes) >= _LONG_ROW:
        dim = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), axis)
        mlir_util.replace_op(op, [Builder(op).value("tensor.concat", list(op.operands), result, {"dim": dim})])


def _is_unsigned(type_: Any) -> bool:
    of = element(type_)
    return isinstance(of, ir.IntegerType) and of.is_unsigned


def expand_dynamic_reshape(op: Any) -> None:
    """The same elements, in a shape that is a value."""
    mlir_util.replace_op(op, [Builder(op).value("tensor.reshape", list(op.operands), op.results[0].type)])


def expand_dynamic_broadcast(op: Any) -> None:
    """Upstream lowers a broadcast whose dimensions it knows to grow or not to.

    One of size 1 grows. Others whose size is known as the program runs only do not if StableHLO computes the shape of
    the result, as in what JAX makes of symbolic shapes; else that is decided when it runs.
    """
    growing, deciding = _growing_dimensions(op)
    type_ = op.operands[0].type
    if not deciding:
        others = [axis for axis in range(type_.rank) if axis not in growing]
        op.attributes["known_expanding_dimensions"] = ir.DenseI64ArrayAttr.get(growing)
        op.attributes["known_nonexpanding_dimensions"] = ir.DenseI64ArrayAttr.get(others)
        return
    made, dims = _Elements(op), integers(op, "broadcast_dimensions")
    body, at = [], []
    for axis, dim in enumerate(dims):
        if axis in deciding:
            made.size("%0", type_, axis, f"%n{axis}")
            made.lines.append(f"%grows{axis} = arith.cmpi eq, %n{axis}, %one : index")
            body.append(f"%at{axis} = arith.select %grows{axis}, %zero, %d{dim} : index")
        at.append(f"%at{axis}" if axis in deciding else "%zero" if axis in growing else f"%d{dim}")
    for dim, extent in enumerate(made.extents):
        if extent < 0:
            made.index_of("%1", op.operands[1].type, dim, f"%s{dim}")
    made.build([f"%s{dim}" for dim in range(len(made.extents))], body, at)


def demand_sizes(op: Any) -> None:
    """Assert that dimensions of a dynamic broadcast that do not grow have the size that the result is to have."""
    operand, sizes = op.operands
    type_, result = ir.RankedTensorType(operand.type), ir.RankedTensorType(op.results[0].type)
    of = ir.RankedTensorType(sizes.type).element_type
    growing, deciding = _growing_dimensions(op)
    for axis, dim in enumerate(integers(op, "broadcast_dimensions")):
        if axis in growing or not (type_.is_dynamic_dim(axis) or result.is_dynamic_dim(dim)):
            continue
        build = Builder(op)
        size = build.value("tensor.dim", [operand, build.constant(axis)], build.index)
        wanted = build.value("tensor.extract", [sizes, build.constant(dim)], of)
        if of != build.index:
            wanted = build.value("arith.index_cast", [wanted], build.index)
        if axis in deciding:
            one = compare(build, "eq", size, build.constant(1))
            fits = build.value("arith.ori", [one, compare(build, "eq", size, wanted)], one.type)
            message = f"dimension {axis} of the operand of '{op.name}' is neither 1 nor that of the result"
            build.op("cf.assert", [fits], attributes={"msg": ir.StringAttr.get(message, op.context)})
        else:
            pair = [(size, f"dimension {axis} of operand 0"), (wanted, f"dimension {dim} of the result")]
            if not type_.is_dynamic_dim(axis):
                pair.reverse()  # what is folded puts constants second
            require_same(build, op, [number for number, _ in pair], [name for _, name in pair])


def _growing_dimensions(op: Any) -> tuple[list[int], list[int]]:
    """Dimensions of the operand of a dynamic broadcast that grow, and those of which that is not known."""
    type_ = op.operands[0].type
    static = [axis for axis in range(type_.rank) if not type_.is_dynamic_dim(axis)]
    growing = {*(axis for axis in static if type_.shape[axis] == 1), *integers(op, "known_expanding_dimensions")}
    same = {*static, *integers(op, "known_nonexpanding_dimensions")}
    open_ = [axis for axis in range(type_.rank) if axis not in growing and axis not in same]
    return sorted(growing), open_ if open_ and not _is_of_sizes(op.operands[1], set()) else []


def _is_of_sizes(value: Any, seen: set[Any]) -> bool:
    """Whether StableHLO alone computes a value, of sizes and constants."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return False
    made = owner.operation
    if made in seen or made.name == "stablehlo.get_dimension_size":
        return True
    seen.add(made)
    return made.name.startswith("stablehlo.") and all(_is_of_sizes(operand, seen) for operand in made.operands)


class _Elements:
    """A tensor whose elements are read one by one, each from its own place of ``%0``."""

    def __init__(self, op: Any) -> None:
        self.op, self.result = op, op.results[0].type
        self.lines: list[str] = []
        self.extents = shape(self.result)

    def index_of(self, tensor_: str, type_: Any, place: int, name: str) -> None:
        """Element ``place`` of a tensor of integers, as ``name``."""
        of = element(type_)
        self.lines.append(
            f"{name}_p = arith.constant {place} : index\n{name}_e = tensor.extract {tensor_}[{name}_p] : {type_}"
        )
        cast = (
            f"arith.index_cast {name}_e : {of} to index"
            if str(of) != "index"
            else f"arith.addi {name}_e, %zero : index"
        )
        self.lines.append(f"{name} = {cast}")

    def size(self, value: str, type_: Any, axis: int, name: str) -> None:
        extent = shape(type_)[axis]
        self.lines.append(
            f"{name} = arith.constant {extent} : index"
            if extent >= 0
            else f"{name}_a = arith.constant {axis} : index\n{name} = tensor.dim {value}, {name}_a : {type_}"
        )

    def build(self, sizes: list[str], body: list[str], at: list[str], inside: str = "") -> None:
        """``sizes``: the names of the extents of the result; ``body`` computes the indices ``at``.

        Where ``inside`` is false the element is the second operand.
        """
        rank, of, source = len(self.extents), element(self.result), self.op.operands[0].type
        dynamic = commas(sizes[axis] for axis in range(rank) if self.extents[axis] < 0)
        self.lines.append(f"%room = tensor.empty({dynamic}) : {self.result}")
        parallel = commas(['"parallel"'] * rank)
        self.lines.append(
            f"%out = linalg.generic {{indexing_maps = [{axes_map(rank, range(rank))}], iterator_types = [{parallel}]}} "
            f"outs(%room : {self.result}) {{\n^bb0(%o: {of}):"
        )
        self.lines += [f"%d{axis} = linalg.index {axis} : index" for axis in range(rank)]
        self.lines += body
        read = f"tensor.extract %0[{commas(at)}] : {source}"
        if inside:
            self.lines.insert(0, f"%other = tensor.extract %1[] : tensor<{of}>")
            read = (
                f"scf.if {inside} -> {of} {{\n%own = {read}\nscf.yield %own : {of}\n}} "
                f"else {{ scf.yield %other : {of} }}"
            )
        self.lines.append(f"%v = {read}\nlinalg.yield %v : {of}\n}} -> {self.result}")
        self.lines.append(f'"devscope.return"(%out) : ({self.result}) -> ()')
        expand(
            self.op, "\n".join(["%zero = arith.constant 0 : index\n%one = arith.constant 1 : index", *self.lines])
        )


def expand_reverse(op: Any) -> None:
    if -1 not in shape(op.results[0].type):
        return
    made, rank, turned = _Elements(op), len(shape(op.results[0].type)), integers(op, "dimensions")
    body, at = [], []
    for axis in range(rank):
        made.size("%0", op.operands[0].type, axis, f"%n{axis}")
        body.append(
            f"%l{axis} = arith.subi %n{axis}, %one : index\n%r{axis} = arith.subi %l{axis}, %d{axis} : index"
        )
        at.append(f"%r{axis}" if axis in turned else f"%d{axis}")
    made.build([f"%n{axis}" for axis in range(rank)], body, at)


def expand_dynamic_pad(op: Any) -> None:
    """Padding whose amounts, also negative ones, are values."""
    made, source = _Elements(op), op.operands[0].type
    body, at, inside = [], [], []
    for axis in range(len(made.extents)):
        made.size("%0", source, axis, f"%n{axis}")
        for number, name in ((2, "p"), (3, "high"), (4, "holes")):
            made.index_of(f"%{number}", op.operands[number].type, axis, f"%{name}{axis}")
        made.lines.append(f"%h{axis} = arith.addi %holes{axis}, %one : index")
        padded_extent(made.lines.append, axis, f"%n{axis}")
        body.append(f"%i{axis} = arith.subi %d{axis}, %p{axis} : index{HELD.format(axis=axis)}")
        if axis:
            body.append(f"%in{axis} = arith.andi {inside[-1]}, %z{axis} : i1")
        inside.append(f"%in{axis}" if axis else "%z0")
        at.append(f"%q{axis}")
    made.build([f"%padded{axis}" for axis in range(len(at))], body, at, inside[-1] if inside else "")


def expand_dynamic_update_slice(op: Any) -> None:
    """Of extents that are known when the program runs; what would begin outside is moved inside."""
    operand, update, *starts = op.operands
    extents, sizes = shape(operand.type), shape(update.type)
    if -1 not in extents + sizes:
        return
    lines = ["%zero = arith.constant 0 : index"]
    extents_of(lines.append, "n", "%0", operand.type)
    extents_of(lines.append, "m", "%1", update.type)
    for axis, start in enumerate(starts):
        of = element(start.type)
        cast = "index_castui" if of.is_unsigned else "index_cast"
        lines.append(f"%e{axis} = tensor.extract %{axis + 2}[] : {start.type}")
        if of.is_unsigned:
            lines.append(f"%u{axis} = builtin.unrealized_conversion_cast %e{axis} : {of} to i{of.width}")
        lines.append(f"%s{axis} = arith.{cast} {'%u' if of.is_unsigned else '%e'}{axis} : i{of.width} to index")
        lines.append(f"%last{axis} = arith.subi %n{axis}, %m{axis} : index")
        lines.append(f"%low{axis} = arith.maxsi %s{axis}, %zero : index")
        lines.append(f"%at{axis} = arith.minsi %low{axis}, %last{axis} : index")
    rank = range(len(extents))
    where = commas(f"%at{axis}" for axis in rank)
    size = commas(f"%m{axis}" if sizes[axis] < 0 else sizes[axis] for axis in rank)
    lines.append(
        f"%new = tensor.insert_slice %1 into %0[{where}] [{size}] [{commas(1 for _ in rank)}] : "
        f'{update.type} into {operand.type}\n"devscope.return"(%new) : ({operand.type}) -> ()'
    )
    expand(op, "\n".join(lines))


def expand_gather(op: Any) -> None:
    """Of batches the numbers of an index come last: upstream takes places of batches as if they did."""
    operand, indices = (value.type for value in op.operands)
    numbers = str(op.attributes["dimension_numbers"])
    batching, (vector, *_) = (
        listed(numbers)("start_indices_batching_dims"),
        listed(numbers)("index_vector_dim") or [0],
    )
    if all(place < vector for place in batching):
        return
    dims = [*(dim for dim in range(len(shape(indices))) if dim != vector), vector]
    moved = tensor([shape(indices)[dim] for dim in dims], element(indices))
    places = [place - (place > vector) for place in batching]
    numbers = re.sub(
        r"start_indices_batching_dims = \[[^]]*\]", f"start_indices_batching_dims = {places}", numbers
    )
    numbers = (
        re.sub(r", index_vector_dim = \d+", "", numbers).rstrip("> ") + f", index_vector_dim = {len(dims) - 1}>"
    )
    result, sizes = op.results[0].type, op.attributes["slice_sizes"]
    text = (
        f"%moved = stablehlo.transpose %1, dims = {dims} : ({indices}) -> {moved}\n"
        f'%r = "stablehlo.gather"(%0, %moved) <{{dimension_numbers = {numbers}, slice_sizes = {sizes}}}> '
        f': ({operand}, {moved}) -> {result}\n"devscope.return"(%r) : ({result}) -> ()'
    )
    expand(op, text)


def expand_dynamic_gather(op: Any) -> None:
    """Slices whose extents are known when the program runs. What begins outside is moved inside."""
    operand, indices, given = (value.type for value in op.operands)
    get = listed(op.attributes["dimension_numbers"])
    offsets, collapsed = get("offset_dims"), get("collapsed_slice_dims")
    batching, index_batching = get("operand_batching_dims"), get("start_indices_batching_dims")
    mapped, vector = get("start_index_map"), (get("index_vector_dim") or [0])[0]
    made, rank = _Elements(op), len(shape(operand))
    batch = [dim for dim in range(len(made.extents)) if dim not in offsets]
    index_dims = [dim for dim in range(len(shape(indices))) if dim != vector]
    windowed = [dim for dim in range(rank) if dim not in collapsed and dim not in batching]
    in_result = dict(zip(windowed, offsets, strict=True))
    for axis in range(rank):
        made.index_of("%2", given, axis, f"%s{axis}")
        made.size("%0", operand, axis, f"%n{axis}")
        made.lines.append(f"%last{axis} = arith.subi %n{axis}, %s{axis} : index")
    sizes = [""] * len(made.extents)
    for dim, place in in_result.items():
        sizes[place] = f"%s{dim}"
    for dim, place in zip(index_dims, batch, strict=True):
        made.size("%1", indices, dim, f"%m{dim}")
        sizes[place] = f"%m{dim}"
    wide = tensor(shape(indices), "i64")
    made.lines.append(f"%where = stablehlo.convert %1 : ({indices}) -> {wide}")
    body: list[str] = []
    start: dict[int, str] = {}
    for number, dim in enumerate(mapped):
        at = [f"%d{place}" for place in batch]
        if vector < len(shape(indices)):
            body.append(f"%k{number} = arith.constant {number} : index")
            at.insert(vector, f"%k{number}")
        body.append(f"%w{number} = tensor.extract %where[{commas(at)}] : {wide}")
        body.append(
            f"%x{number} = arith.index_cast %w{number} : i64 to index\n%y{number} = arith.minsi %x{number}, %last{dim} : index"
        )
        body.append(f"%z{number} = arith.maxsi %y{number}, %zero : index")
        start[dim] = f"%z{number}"
    for dim, place in zip(batching, index_batching, strict=True):
        start[dim] = f"%d{batch[index_dims.index(place)]}"
    at = []
    for dim in range(rank):
        first, inside = start.get(dim, "%zero"), f"%d{in_result[dim]}" if dim in in_result else "%zero"
        body.append(f"%a{dim} = arith.addi {first}, {inside} : index")
        at.append(f"%a{dim}")
    made.build(sizes, body, at)
