"""Assertions in the bodies of operations on buffers become operations of their own.

What can fail runs element by element on the thread of the call. An index of a gather is checked once this way, not
for each element of the row that it stands for, and what copies the rows has vectors and tasks. Of many elements of
which each has an assertion, it is found first whether all hold.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.checks.assertions import CHECK
from devscope.lowering.interop import bindings
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.nest import Nest, match, product_of
from devscope.lowering.mlir_util import Builder

_PURE = frozenset({"arith", "math", "index"})

_MANY = 1 << 12
_CHEAP = 16
"""From so many elements on it is faster to go through them twice, if assertions need no more operations."""


def keep_assertions_apart(module: Any) -> None:
    """Move the assertions of the bodies of ``module``, bufferised code of the host, in front of the operations.

    They stay where there are few elements, each with its own, and where an element of what the operation writes
    decides, or of other memory.
    """
    asserted = [
        op
        for op in mlir_util.named(module.operation, "linalg.generic")
        if any(inner.name == "cf.assert" for inner in mlir_util.children(op))
    ]
    for op in asserted:
        nest = match(op, bindings.load("_mlir_libs._mlirDialectsLinalg"))
        needed = None if nest is None else _needed(op)
        if nest is not None and needed is not None:
            _move(nest, needed)


def _needed(op: Any) -> list[Any] | None:
    """What the assertions in the body of ``op`` need of it, and they; None if that is not only arithmetic."""
    *body, _ = mlir_util.children(op)
    values: set[Any] = set()
    needed: list[Any] = []
    for inner in reversed(body):
        if inner.name == "cf.assert" or any(result in values for result in inner.results):
            if inner.name not in ("cf.assert", "linalg.index") and inner.name.partition(".")[0] not in _PURE:
                return None
            values.update(inner.operands)
            needed.append(inner)
        elif any(nested.name == "cf.assert" for nested in mlir_util.walk(inner)):
            return None
    return needed[::-1]


def _move(nest: Nest, needed: list[Any]) -> None:
    arguments = list(mlir_util.entry_block(nest.op).arguments)
    read = {value for inner in needed for value in inner.operands}
    used = [number for number, argument in enumerate(arguments) if argument in read]
    loops = sorted({loop for number in used for loop in nest.operands[number].dims})
    others = [loop for loop in range(len(nest.parallel)) if loop not in loops]
    extents = [nest.static_extent(loop) for loop in others]
    indices = [ir.IntegerAttr(inner.attributes["dim"]).value for inner in needed if inner.name == "linalg.index"]
    if any(number >= nest.inputs for number in used) or not set(indices) <= set(loops):
        return
    if not loops or 0 in extents:
        return
    if not others:
        size = product_of(nest.static_extent(loop) for loop in loops)
        if (size is None or size >= _MANY) and len(needed) <= _CHEAP and not any(map(_says_numbers, needed)):
            _assert_for_all(nest, used, loops, needed)
        return
    build = Builder(nest.op)
    # Without an iteration nothing is asserted.
    nothing: Any = None
    for loop, extent in zip(others, extents, strict=True):
        if extent is None:
            none = build.insert(
                "%c0 = arith.constant 0 : index\n%none = arith.cmpi eq, %0, %c0 : index",
                [nest.extent(build, loop)],
            )[-1].results[0]
            nothing = none if nothing is None else build.value("arith.ori", [nothing, none], none.type)
    made = _over(nest, used, loops)
    for inner, copy in _copied(nest, used, loops, needed, made):
        if inner.name == "cf.assert":
            if nothing is not None:
                holds = copy.operands[0]
                copy.operands[0] = Builder(copy).value("arith.ori", [holds, nothing], holds.type)
            inner.erase()


def _says_numbers(op: Any) -> bool:
    return op.name == "cf.assert" and CHECK in op.attributes


def _assert_for_all(nest: Nest, used: list[int], loops: list[int], needed: list[Any]) -> None:
    """Whether all elements have what each assertion wants is found by an operation that tasks do parts of."""
    assertions = [op for op in needed if op.name == "cf.assert"]
    build = Builder(nest.op)
    i8 = ir.IntegerType.get_signless(8, nest.op.context)
    holds = [build.alloc(mlir_util.buffer_type([], i8)) for _ in assertions]
    for each in holds:
        build.insert("linalg.fill ins(%0 : i8) outs(%1 : memref<i8>)", [build.constant(-1, i8), each])
    made = _over(nest, used, loops, holds)
    end = mlir_util.children(made)[-1]
    before = list(mlir_util.entry_block(made).arguments)[len(used) :]
    for inner, copy in _copied(nest, used, loops, needed, made):
        if inner.name == "cf.assert":
            number = assertions.index(inner)
            wide = Builder(end).value("arith.extsi", [copy.operands[0]], i8)
            end.operands[number] = Builder(end).value("arith.andi", [before[number], wide], i8)
            copy.erase()
    for assertion, each in zip(assertions, holds, strict=True):
        found = build.value("memref.load", [each], i8)
        test = build.insert("%zero = arith.constant 0 : i8\n%test = arith.cmpi ne, %0, %zero : i8", [found])[-1]
        assertion.operands[0] = test.results[0]
        assertion.move_before(nest.op)


def _copied(
    nest: Nest, used: list[int], loops: list[int], needed: list[Any], made: Any
) -> Iterator[tuple[Any, Any]]:
    """Operations of a body, and their copies in the one that `_over` made."""
    arguments = list(mlir_util.entry_block(nest.op).arguments)
    inside = Builder(mlir_util.children(made)[-1])
    mapping = dict(
        zip((arguments[number] for number in used), mlir_util.entry_block(made).arguments, strict=False)
    )
    for inner in needed:
        copy = inside.clone(inner)
        mlir_util.remap_operands(copy, mapping)
        mapping.update(zip(inner.results, copy.results, strict=True))
        if inner.name == "linalg.index":
            dim = ir.IntegerAttr(inner.attributes["dim"])
            copy.attributes["dim"] = ir.IntegerAttr.get(dim.type, loops.index(dim.value))
        yield inner, copy


def _over(nest: Nest, used: list[int], loops: list[int], results: Sequence[Any] = ()) -> Any:
    """An operation that reads the operands ``used``, through ``loops``, and yields what ``results`` hold."""
    operands = [nest.operands[number] for number in used]
    values = [*(operand.value for operand in operands), *results]
    names = ", ".join(f"d{loop}" for loop in loops)
    dims = [", ".join(f"d{loop}" for loop in operand.dims) for operand in operands] + [""] * len(results)
    maps = ", ".join(f"affine_map<({names}) -> ({each})>" for each in dims)
    kinds = ", ".join(['"reduction"' if results else '"parallel"'] * len(loops))
    groups = [("ins", range(len(used)))] + ([("outs", range(len(used), len(values)))] if results else [])
    given = " ".join(
        f"{name}({', '.join(f'%{n}' for n in numbers)} : {', '.join(str(values[n].type) for n in numbers)})"
        for name, numbers in groups
    )
    types = [str(ir.MemRefType(v.type).element_type if mlir_util.is_memref(v.type) else v.type) for v in values]
    arguments = ", ".join(f"%a{number}: {type_}" for number, type_ in enumerate(types))
    ends = ", ".join(f"%a{number}" for number in range(len(used), len(values)))
    yields = f"linalg.yield {ends} : {', '.join(types[len(used) :])}" if results else "linalg.yield"
    text = (
        f"linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}} {given} {{\n"
        f"^bb0({arguments}):\n{yields}\n}}"
    )
    return mlir_util.insert(nest.op, text, values)[0]
