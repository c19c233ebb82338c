"""What is done with each element of a kernel's result before it is stored: an elementwise operation behind it."""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from devscope.dialects.op_facts import facts
from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.memory.effects import buffer_of, is_new

#: Operations that vectors have instructions for.
_MATH = "absf absi ceil copysign floor fma sqrt"
_ARITH = """
    addf subf mulf divf negf maximumf minimumf maxnumf minnumf cmpf extf truncf sitofp uitofp
    addi subi muli andi ori xori maxsi minsi maxui minui cmpi extsi extui trunci select bitcast
"""
_OPERATIONS = frozenset({f"math.{name}" for name in _MATH.split()} | {f"arith.{name}" for name in _ARITH.split()})


class Epilogue(NamedTuple):
    """``op``: the operation that follows. ``result``: the buffer that it writes. ``operands``: those that it reads
    beside the kernel's result, each with the axes of the result that its own axes are.

    ``steps``: lines of MLIR in which ``$block`` is the shape of a block of elements, followed by ``x``; they
    compute ``done`` from ``%sums`` and from ``%operand0``, ``%operand1`` and so on. ``view``: what ``op`` alone
    reads the kernel's result through, if anything.
    """

    op: Any
    result: Any
    operands: list[tuple[Any, tuple[int, ...]]]
    steps: tuple[str, ...]
    done: str
    view: Any | None = None

    def erase(self) -> None:
        """Once the kernel does all."""
        self.op.erase()
        if self.view is not None:
            self.view.erase()


def epilogue_of(op: Any, buffer: Any, functions: Collection[str], sources: Sequence[Any]) -> Epilogue | None:
    """The elementwise operation right behind ``op``, with what writes zeros before it the only user of ``buffer``,
    or the one that overwrites it.

    ``functions``: operations that vectors have arithmetic for. ``sources``: what the kernel reads.
    """
    if isinstance(buffer.owner, ir.Block) or buffer.owner.operation.name != "memref.alloc":
        return None
    follower = _next_user(op, buffer)
    view, seen = None, buffer
    groups = [[axis] for axis in range(ir.MemRefType(buffer.type).rank)]
    if follower is not None and (without_ones := _without_ones(follower)) is not None:
        view, groups = follower, without_ones
        seen = view.results[0]
        follower = _next_user(view, seen)
    if follower is None or follower.name != "linalg.generic":
        return None
    if "reduction" in str(follower.attributes["iterator_types"]):
        return None
    inputs, outputs = ir.DenseI32ArrayAttr(follower.attributes["operandSegmentSizes"])
    operands = list(follower.operands)
    maps = [ir.AffineMapAttr(map_).value for map_ in ir.ArrayAttr(follower.attributes["indexing_maps"])]
    result = operands[-1]
    element = ir.MemRefType(buffer.type).element_type
    if outputs != 1 or not mlir_util.is_memref(result.type) or ir.MemRefType(result.type).element_type != element:
        return None
    identity = ir.AffineMap.get_identity(len(groups), op.context)
    reads = [number for number, operand in enumerate(operands) if operand == seen]
    if any(maps[number] != identity for number in (*reads, len(operands) - 1)) or not reads:
        return None
    if not all(map_.is_projected_permutation for map_ in maps):
        return None
    steps = _steps(follower, reads, _OPERATIONS.union(functions))
    others = {number for number in range(inputs) if number not in reads}
    if steps is None or not all(mlir_util.is_memref(operands[number].type) for number in others):
        return None
    users = {use.owner.operation for value in {buffer, seen} for use in value.uses} - {view}
    if result != seen and (inputs in steps.read or result in operands[:-1] or len(users) > 3):
        return None  # what was there before is read, now or later
    written = _written(follower, buffer, seen, groups, sources)
    if written is None:
        return None
    wide = [_wide(buffer, group) for group in groups]
    axes = {
        number: tuple(wide[ir.AffineDimExpr(axis).position] for axis in maps[number].results) for number in others
    }
    read = [(operands[number], axes[number]) for number in sorted(others)]
    return Epilogue(follower, written, read, steps.lines, steps.done, view)


def _written(
    follower: Any, buffer: Any, seen: Any, groups: Sequence[Sequence[int]], sources: Sequence[Any]
) -> Any | None:
    """The buffer that the kernel writes, with the axes of ``buffer``; None if there is none.

    Parts of it are written while ``sources`` are still read for others.
    """
    result = follower.operands[len(follower.operands) - 1]
    if result == seen:
        return buffer
    whole = buffer_of(result)
    if whole == buffer or not is_new(whole):
        return None
    if whole in map(buffer_of, sources):
        return buffer if _takes_place(buffer, result, follower) else None
    if seen == buffer:
        return result
    return _with_ones(follower, result, buffer, groups) if mlir_util.is_whole_buffer(result.type) else None


def _takes_place(buffer: Any, result: Any, follower: Any) -> bool:
    """Let all that comes behind ``follower`` use ``buffer`` instead of ``result``; False if that cannot be."""
    if result.type != buffer.type or not is_new(result):
        return False
    made, other = result.owner.operation, buffer.owner.operation
    if str(made.attributes) != str(other.attributes) or made.block != follower.block:
        return False
    uses = _uses_behind(result, follower)
    if uses is None:
        return False
    for user, number in uses:
        user.operands[number] = buffer
    return True


def _uses_behind(value: Any, follower: Any) -> list[tuple[Any, int]] | None:
    """Users and numbers of operands; None if one uses a view from before, or ends the life of ``value``."""
    found: list[tuple[Any, int]] = []
    views: list[Any] = []
    for use in value.uses:
        user = use.owner.operation
        place = user
        while place.block != follower.block:
            place = place.parent
        if follower.is_before_in_block(place):
            if facts(user.name).frees or user.name == "bufferization.dealloc":
                return None
            found.append((user, use.operand_number))
        elif user != follower and facts(user.name).view_of is not None:
            views.extend(user.results)
    return None if any(_uses_behind(view, follower) != [] for view in views) else found


def _without_ones(op: Any) -> list[list[int]] | None:
    """The axes of a buffer that each axis of ``op``, a view without some that have one element, is made of."""
    if op.name != "memref.collapse_shape":
        return None
    type_ = ir.MemRefType(op.operands[0].type)
    groups = [
        [ir.IntegerAttr(axis).value for axis in ir.ArrayAttr(group)]
        for group in ir.ArrayAttr(op.attributes["reassociation"])
    ]
    some = all(sum(type_.shape[axis] != 1 for axis in group) < 2 for group in groups)
    return groups if groups and some and type_.has_static_shape else None


def _wide(buffer: Any, group: Sequence[int]) -> int:
    return max(group, key=lambda axis: ir.MemRefType(buffer.type).shape[axis])


def _with_ones(before: Any, result: Any, buffer: Any, groups: Sequence[Sequence[int]]) -> Any:
    """``result`` with the shape of ``buffer``."""
    type_, shape = ir.MemRefType(result.type), ir.MemRefType(buffer.type).shape
    wanted = mlir_util.buffer_type(shape, type_.element_type)
    places = [list(group) for group in groups]
    text = f"%made = memref.expand_shape %0 {places} output_shape {list(shape)} : {type_} into {wanted}"
    return mlir_util.insert(before, text, [result])[0].results[0]


def _next_user(op: Any, buffer: Any) -> Any | None:
    """The operation that uses ``buffer`` next, if it is in the same block and nothing between changes memory."""
    users = [use.owner.operation for use in buffer.uses]
    for other in mlir_util.ops_behind(op):
        if other in users:
            return other
        if not _is_quiet(other):
            return None
    return None


def _is_quiet(op: Any) -> bool:
    known = facts(op.name)
    return (known.allocates or known.pure is True) and not list(op.regions)


class _Steps(NamedTuple):
    lines: tuple[str, ...]
    done: str
    read: frozenset[int]
    """Positions of the operands that are used."""


def _steps(op: Any, sums: list[int], allowed: Collection[str]) -> _Steps | None:  # noqa: C901
    block = mlir_util.entry_block(op)
    names: dict[Any, str] = {}
    count = 0
    for number, argument in enumerate(block.arguments):
        if number in sums:
            names[argument] = "%sums"
        else:
            names[argument] = f"%operand{count}"
            count += 1
    positions = {argument: number for number, argument in enumerate(block.arguments)}
    read: set[int] = set()
    lines: list[str] = []

    def name_of(value: Any) -> str | None:
        if value in positions:
            read.add(positions[value])
        if value not in names:
            owner = None if isinstance(value.owner, ir.Block) else value.owner.operation
            if owner is None or owner.name != "arith.constant":
                return None
            number, _, type_ = str(owner.attributes["value"]).rpartition(" : ")
            if not number:  # true and false
                number, type_ = str(owner.attributes["value"]), "i1"
            names[value] = f"%constant{len(names)}"
            lines.append(f"{names[value]} = arith.constant dense<{number}> : vector<$block{type_}>")
        return names[value]

    for inner in mlir_util.children(op):
        if inner.name == "linalg.yield":
            done = name_of(inner.operands[0])
            if done is None:
                return None
            return _Steps(tuple(lines), done, frozenset(read))
        if len(inner.results) != 1 or list(inner.regions) or not _is_allowed(inner, allowed):
            return None
        operands = [name_of(value) for value in inner.operands]
        if any(operand is None for operand in operands):
            return None
        attributes = ", ".join(f"{named} = {inner.attributes[named]}" for named in inner.attributes)
        types = ", ".join(f"vector<$block{value.type}>" for value in inner.operands)
        names[inner.results[0]] = f"%step{len(names)}"
        lines.append(
            f'{names[inner.results[0]]} = "{inner.name}"({", ".join(map(str, operands))}) {{{attributes}}} : '
            f"({types}) -> vector<$block{inner.results[0].type}>"
        )
    return None


def _is_allowed(op: Any, names: Collection[str]) -> bool:
    types = [value.type for value in (*op.operands, *op.results)]
    return op.name in names and all(isinstance(type_, ir.IntegerType | ir.FloatType) for type_ in types)
