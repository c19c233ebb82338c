"""The bodies of operations of linalg: copies of them, and how they combine new values with old ones."""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.mlir_util import Builder

PRODUCT = "arith.mulf"
"""In another order products may be infinite on the way, or 0, and NaN is what infinity times 0 is: they are no
combiner but for `vector_products`."""

#: What combines two partial results into one, with what changes nothing.
_NEUTRAL = {
    "arith.addf": "-0.0",
    "arith.addi": "0",
    "arith.muli": "1",
    "arith.andi": "-1",
    "arith.ori": "0",
    "arith.xori": "0",
}
_EXTREMA = ("arith.maximumf", "arith.minimumf", "arith.maxsi", "arith.minsi", "arith.maxui", "arith.minui")


def uses(of: Any) -> Counter[Any]:
    """How often the body of an operation uses each value."""
    return Counter(
        value for child in mlir_util.children(of) for op in mlir_util.walk(child) for value in op.operands
    )


def clone_body(
    build: Builder, of: Any, mapping: dict[Any, Any], indices: Mapping[int, Any], reassociate: bool
) -> list[Any]:
    """What the body of the operation ``of`` yields, computed in front of ``build``'s place."""
    *ops, end = mlir_util.children(of)
    sums = {combiner for combiner in combiners(of) if combiner is not None} if reassociate else set[Any]()
    for op in ops:
        if op.name == "linalg.index":
            mapping[op.results[0]] = indices[ir.IntegerAttr(op.attributes["dim"]).value]
            continue
        copy = build.clone(op)
        mlir_util.remap_operands(copy, mapping)
        for inner in mlir_util.walk(copy)[1:]:
            if inner.name == "linalg.index":
                mlir_util.replace_op(inner, [indices[ir.IntegerAttr(inner.attributes["dim"]).value]])
        if op in sums and op.name == "arith.addf":
            _allow_reassociation(copy)
        mapping.update(zip(op.results, copy.results, strict=True))
    return [mapping.get(value, value) for value in end.operands]


def _allow_reassociation(op: Any) -> None:
    flags = str(op.attributes["fastmath"]).partition("<")[2].rstrip(">") if "fastmath" in op.attributes else "none"
    flags = (
        "reassoc" if flags == "none" else flags if "reassoc" in flags or flags == "fast" else f"{flags},reassoc"
    )
    op.attributes["fastmath"] = ir.Attribute.parse(f"#arith.fastmath<{flags}>", op.context)


def combiners(of: Any, others: Collection[str] = ()) -> list[Any | None]:
    """For each result: the operation that combines what was there with a new value; None if there is none.

    ``others``: names of operations that may do so, too.
    """
    *ops, end = mlir_util.children(of)
    makers = {result: op for op in ops for result in op.results}
    arguments = list(mlir_util.entry_block(of).arguments)[-len(end.operands) :]
    used = uses(of)
    found: list[Any | None] = []
    for value, argument in zip(end.operands, arguments, strict=True):
        op = makers.get(value)
        known = op is not None and (op.name in _NEUTRAL or op.name in _EXTREMA or op.name in others)
        is_last = op is not None and used[argument] == 1 and list(op.operands).count(argument) == 1
        found.append(op if is_last and known and used[value] == 1 else None)
    return found


def mostly_stays(of: Any, carried: int) -> bool:
    """Whether all results are carried, and are what they were or chosen anew, such as those of an argmax."""
    *ops, end = mlir_util.children(of)
    makers = {result: op for op in ops for result in op.results}
    arguments = list(mlir_util.entry_block(of).arguments)[-len(end.operands) :]
    chosen = 0
    for value, argument in zip(end.operands, arguments, strict=True):
        op = makers.get(value)
        if op is None or argument not in list(op.operands):
            return False
        chosen += op.name == "arith.select"
        if op.name != "arith.select" and op.name not in _EXTREMA:
            return False
    numbers = all(isinstance(value.type, ir.IntegerType | ir.FloatType | ir.IndexType) for value in arguments)
    return chosen > 0 and numbers and carried == len(arguments)


_INFINITY = {
    "f16": ("0x7C00", "0xFC00"),
    "bf16": ("0x7F80", "0xFF80"),
    "f32": ("0x7F800000", "0xFF800000"),
    "f64": ("0x7FF0000000000000", "0xFFF0000000000000"),
}


def has_neutral(name: str, type_: Any) -> bool:
    """Whether there is a number that ``name``, a combiner, combines with any other to that one."""
    if isinstance(type_, ir.ComplexType | ir.IndexType):
        return False
    return name not in _EXTREMA or not isinstance(type_, ir.FloatType) or str(type_) in _INFINITY


def neutral_text(name: str, type_: Any) -> str:
    """The number of `has_neutral`, as MLIR writes it."""
    text = "1.0" if name == PRODUCT else _NEUTRAL.get(name)
    if text is None and isinstance(type_, ir.FloatType):
        text = _INFINITY[str(type_)][name.startswith("arith.max")]
    elif text is None:
        bits = type_.width
        low, high = (0, 2**bits - 1) if name.endswith("ui") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        text = str(low if name.startswith("arith.max") else high)
    return text


def neutral(build: Builder, name: str, type_: Any) -> Any:
    """The number of `has_neutral`."""
    value = ir.Attribute.parse(f"{neutral_text(name, type_)} : {type_}", type_.context)
    return build.value("arith.constant", [], type_, {"value": value})
