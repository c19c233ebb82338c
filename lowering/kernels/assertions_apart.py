"""Assertions in the bodies of operations on buffers become operations of their own, where they are for whole rows.

What can fail runs element by element on the thread of the call. An index of a gather is checked once this way, not
for each element of the row that it stands for, and what copies the rows has vectors and tasks.
"""

from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop import bindings
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.nest import Nest, match
from devscope.lowering.mlir_util import Builder

_PURE = frozenset({"arith", "math", "index"})


def keep_assertions_apart(module: Any) -> None:
    """Move the assertions of the bodies of ``module``, bufferised code of the host, in front of the operations.

    They stay where each element decides by itself, or an element of what the operation writes or of other memory.
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
    if not loops or not others or 0 in extents:
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
    made = _checks(nest, used, loops)
    (end,) = mlir_util.children(made)
    inside = Builder(end)
    mapping = dict(zip((arguments[number] for number in used), mlir_util.entry_block(made).arguments, strict=True))
    for inner in needed:
        copy = inside.clone(inner)
        mlir_util.remap_operands(copy, mapping)
        mapping.update(zip(inner.results, copy.results, strict=True))
        if inner.name == "linalg.index":
            dim = ir.IntegerAttr(inner.attributes["dim"])
            copy.attributes["dim"] = ir.IntegerAttr.get(dim.type, loops.index(dim.value))
        elif inner.name == "cf.assert":
            if nothing is not None:
                holds = copy.operands[0]
                copy.operands[0] = Builder(copy).value("arith.ori", [holds, nothing], holds.type)
            inner.erase()


def _checks(nest: Nest, used: list[int], loops: list[int]) -> Any:
    """An operation that reads the operands ``used``, through ``loops``, and does nothing with them."""
    operands = [nest.operands[number] for number in used]
    names = ", ".join(f"d{loop}" for loop in loops)
    maps = ", ".join(f"affine_map<({names}) -> ({', '.join(f'd{x}' for x in o.dims)})>" for o in operands)
    kinds = ", ".join(['"parallel"'] * len(loops))
    types = ", ".join(str(o.value.type) for o in operands)
    elements = [ir.MemRefType(o.value.type).element_type if o.is_buffer else o.value.type for o in operands]
    text = (
        f"linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}} "
        f"ins({', '.join(f'%{n}' for n in range(len(used)))} : {types}) {{\n"
        f"^bb0({', '.join(f'%a{n}: {element}' for n, element in enumerate(elements))}):\nlinalg.yield\n}}"
    )
    return mlir_util.insert(nest.op, text, [o.value for o in operands])[0]
