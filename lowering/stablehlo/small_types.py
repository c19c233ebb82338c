"""Floats of 4, 6 and 8 bits and integers of 2 and 4: stored in a byte, computed with in f32 and i8.

What moves elements keeps them as they are. Everything else is computed in the wider type, each result rounded.
"""

from collections.abc import Callable
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.mlir_util import Builder
from devscope.lowering.stablehlo.small_bitcasts import expand_small_bitcast
from devscope.lowering.stablehlo.small_codes import FLOATS, INTEGERS, Conversion, storage
from devscope.lowering.stablehlo.templates import BOUNDS, element, expand, shape, tensor

_MOVES = frozenset(
    f"stablehlo.{name}"
    for name in [
        "bitcast_convert",
        "broadcast_in_dim",
        "broadcast",
        "case",
        "collective_permute",
        "concatenate",
        "constant",
        "custom_call",
        "dynamic_broadcast_in_dim",
        "dynamic_gather",
        "dynamic_pad",
        "dynamic_reshape",
        "dynamic_slice",
        "dynamic_update_slice",
        "gather",
        "if",
        "optimization_barrier",
        "pad",
        "real_dynamic_slice",
        "reduce",
        "reduce_window",
        "reshape",
        "return",
        "reverse",
        "scatter",
        "select",
        "select_and_scatter",
        "slice",
        "sort",
        "transpose",
        "while",
        "get_dimension_size",
        "composite",
        "map",
    ]
)


_BITS = frozenset(
    f"stablehlo.{name}"
    for name in ["count_leading_zeros", "popcnt", "shift_right_arithmetic", "shift_right_logical"]
)
_PASSES = frozenset({"func.func", "func.return", "func.call"})


def only_passes_types(module: Any) -> bool:
    """Whether functions alone have values of small types, of integers with a sign or without, or of bounded sizes."""
    if not any(_is_foreign(type_) for type_ in _signatures(module)):
        return False
    return all(
        op.name in _PASSES or not any(_is_foreign(v.type) for v in (*mlir_util.defined_values(op), *op.operands))
        for op in mlir_util.walk(module.operation)[1:]
    )


def _is_foreign(type_: Any) -> bool:
    if isinstance(type_, ir.RankedTensorType) and str(type_.encoding).startswith(BOUNDS):
        return True
    of = element(type_) if isinstance(type_, ir.RankedTensorType) else type_
    return bool(_small(of)) or (isinstance(of, ir.IntegerType) and not of.is_signless)


def store_in_bytes(module: Any) -> None:
    ops = mlir_util.walk(module.operation)
    if not any(_small(type_) for type_, _ in mlir_util.types(ops[1:])) and not any(
        _small(type_) for type_ in _signatures(module)
    ):
        return
    for op in mlir_util.named(module.operation, "stablehlo.bitcast_convert"):
        expand_small_bitcast(op)
    for op in mlir_util.walk(module.operation):
        if op.name in _BITS and _small(op.results[0].type):
            _compute_in_width(op)
    for op in mlir_util.walk(module.operation):
        if op.name.startswith("stablehlo.") and op.name not in _MOVES and op.name != "stablehlo.convert":
            compute_as(op, _wide_name)
    for op in mlir_util.named(module.operation, "stablehlo.convert"):
        _convert(op)
    with module.context:
        for op in mlir_util.walk(module.operation):
            _retype(op)
    for op in mlir_util.named(module.operation, "builtin.unrealized_conversion_cast"):
        if op.operands[0].type == op.results[0].type:
            mlir_util.replace_op(op, list(op.operands))


def _signatures(module: Any) -> list[Any]:
    types = [mlir_util.function_type(function) for function in mlir_util.functions(module)]
    return [type_ for function in types for type_ in (*function.inputs, *function.results)]


def _small(type_: Any) -> str:
    """The name of a small element type, if it is one."""
    name = str(element(type_)) if isinstance(type_, ir.RankedTensorType) else str(type_)
    return name if name in FLOATS or name in INTEGERS else ""


def _wide(name: str) -> str:
    return "f32" if name in FLOATS else ("ui8" if name[0] == "u" else "i8")


def _wide_name(type_: Any) -> str:
    name = _small(type_)
    return name and _wide(name)


def _with_element(type_: Any, name: str) -> Any:
    if isinstance(type_, ir.RankedTensorType):
        return ir.Type.parse(tensor(shape(type_), name), type_.context)
    return ir.Type.parse(name, type_.context)


def compute_as(op: Any, wide: Callable[[Any], str]) -> None:
    """Convert operands and results of those types for which ``wide`` says which element type to compute in."""
    build = Builder(op)
    for number, value in enumerate(op.operands):
        if name := wide(value.type):
            op.operands[number] = build.value("stablehlo.convert", [value], _with_element(value.type, name))
    for result in op.results:
        if name := wide(result.type):
            convert_result(result, name)


def convert_result(result: Any, name: str) -> None:
    """Make a result have elements of type ``name``; those who use it get it converted back."""
    mlir_util.retype_result(result, _with_element(result.type, name), "stablehlo.convert")


def _compute_in_width(op: Any) -> None:
    """What depends on where an integer's bits end: above them is zero, or what the highest is that moves in."""
    type_, name = op.results[0].type, _small(op.results[0].type)
    text, of, kind = Conversion(type_), storage(name), op.name.removeprefix("stablehlo.")
    operands = [text.op("convert", f"%{n}", name, of) for n in range(len(op.operands))]
    if kind == "shift_right_arithmetic":
        by = text.number(8 - INTEGERS[name], of)
        value = text.two(kind, text.two("shift_left", operands[0], by, of), by, of)
    else:
        value = text.two("and", operands[0], text.number((1 << INTEGERS[name]) - 1, of), of)
    if kind.startswith("shift"):
        value = text.two(kind, value, operands[1], of)
    else:
        value = text.add(f"stablehlo.{kind} {value} : {text.type_(of)}")
    if kind == "count_leading_zeros":
        value = text.two("subtract", value, text.number(8 - INTEGERS[name], of), of)
    value = text.op("convert", value, of, name)
    expand(op, "\n".join([*text.lines, f'"devscope.return"({value}) : ({type_}) -> ()']))


def _convert(op: Any) -> None:
    """A conversion from or to a small type, by integer arithmetic on its bits."""
    source, result = op.operands[0].type, op.results[0].type
    old, new = _small(source), _small(result)
    if not old and not new:
        return
    if old == new:
        mlir_util.replace_op(op, list(op.operands))
        return
    text = Conversion(source)
    value = "%0"
    if old in FLOATS:
        value = text.decode(value, old, FLOATS[old])
        kind = "f32"
    elif old:
        kind = storage(old)
        value = text.whole_byte(value, old)
    else:
        kind = str(element(source))
    if new in FLOATS:
        value = text.op("convert", value, kind, "f32")
        value = text.encode(value, new, FLOATS[new])
    elif new:
        value = text.low_bits(text.op("convert", value, kind, storage(new)), new)
    else:
        value = text.op("convert", value, kind, str(element(result)))
    text.lines.append(f'"devscope.return"({value}) : ({result}) -> ()')
    expand(op, "\n".join(text.lines))


def _retype(op: Any) -> None:
    """Say what an operation's small types are stored as."""
    type_ = op.results[0].type if len(op.results) else None
    if type_ is not None and (name := _small(type_)) and "value" in op.attributes:
        op.attributes["value"] = _codes_of(op, type_) if name in INTEGERS else _bits_of(op, type_)
    for value in mlir_util.defined_values(op):
        if name := _small(value.type):
            value.set_type(_with_element(value.type, storage(name)))
    if "function_type" in op.attributes:
        old = mlir_util.function_type(op)
        inputs, results = (
            [_with_element(t, storage(_small(t))) if _small(t) else t for t in types]
            for types in (old.inputs, old.results)
        )
        new = ir.FunctionType.get(inputs, results, context=op.context)
        op.attributes["function_type"] = ir.TypeAttr.get(new)


def _codes_of(op: Any, type_: Any) -> Any:
    """The elements of a constant of integers, in bytes."""
    name, text = str(element(type_)), str(op.attributes["value"])
    for before in ("x", "tensor<"):
        text = text.replace(f"{before}{name}>", f"{before}{storage(name)}>")
    return ir.Attribute.parse(text, op.context)


def _bits_of(op: Any, type_: Any) -> Any:
    """The elements of a constant, as MLIR casts them."""
    text, width = str(op.attributes["value"]), ir.FloatType(element(type_)).width
    bits, byte = _with_element(type_, f"i{width}"), _with_element(type_, "i8")
    extend = f"arith.extui %1 : {bits} to {byte}" if width < 8 else f"arith.bitcast %1 : {bits} to {byte}"
    module = ir.Module.parse(
        f"%0 = arith.constant {text}\n%1 = arith.bitcast %0 : {type_} to {bits}\n%2 = {extend}\n"
        f'"devscope.keep"(%2) : ({byte}) -> ()',
        op.context,
    )
    from devscope.lowering.interop.bindings import passmanager

    passmanager.PassManager.parse("builtin.module(canonicalize)", op.context).run(module.operation)
    return next(o for o in mlir_util.walk(module.operation) if o.name == "arith.constant").attributes["value"]
