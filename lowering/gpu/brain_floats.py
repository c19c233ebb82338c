"""bf16 for targets without it: 16 bits in memory, computed in f32 and rounded after each operation."""

import re
from collections.abc import Mapping
from string import Template
from typing import Any

from devscope.errors import LoweringError
from devscope.lowering import expansions, mlir_util
from devscope.lowering.codegen.llvm_text import literal_bits
from devscope.lowering.interop.bindings import ir
from devscope.lowering.interop.diagnostics import decode_location
from devscope.lowering.mlir_util import Builder, RunPasses
from devscope.lowering.pipelines import pipeline

_MOVES = frozenset({"arith.bitcast", "arith.constant", "arith.select"})
"""Operations of `arith` that do not compute."""

_OF_VECTORS = frozenset({"vector.fma", "vector.reduction"})


def store_as_integers(gpu_modules: Any, run_passes: RunPasses) -> None:
    """Replace bf16 in kernels. Raises LoweringError for atomic operations."""
    every = mlir_util.walk(gpu_modules.operation)
    if all(_as_integer(type_) == type_ for type_, _ in mlir_util.types(every)):
        return
    for op in filter(_has_any, every):
        if op.name.startswith("memref.atomic") or op.name == "memref.generic_atomic_rmw":
            raise LoweringError(
                "atomic operations on bf16 cannot be compiled for this target",
                decode_location(op.location),
                ["compute with f32, or place the operation on another device"],
            )
        elif op.name in ("arith.sitofp", "arith.uitofp") and _width(op.operands[0].type) > _SINGLE_BITS:
            _convert_integer(op)
        elif op.name in ("arith.extf", "arith.truncf"):
            _convert_by_f32(op)
        elif (op.name.startswith(("arith.", "math.")) and op.name not in _MOVES) or op.name in _OF_VECTORS:
            _compute_in_f32(op)
    run_passes(gpu_modules.operation, pipeline("gpu/expand_brain_floats"))
    constants = [op for op in mlir_util.named(gpu_modules.operation, "arith.constant") if _has_any(op)]
    mlir_util.retype(gpu_modules.operation, _as_integer)
    for op in constants:
        _constant_bits(op)
    for op in mlir_util.named(gpu_modules.operation, "arith.bitcast"):
        if op.operands[0].type == op.results[0].type:
            mlir_util.replace_op(op, [op.operands[0]])


def _has_any(op: Any) -> bool:
    return any(_as_integer(value.type) != value.type for value in (*op.operands, *mlir_util.defined_values(op)))


def _as_integer(type_: Any) -> Any:
    return _with_element(type_, ir.IntegerType.get_signless(16, type_.context))


def _as_single(type_: Any) -> Any:
    return _with_element(type_, ir.F32Type.get(type_.context))


def _with_element(type_: Any, element: Any) -> Any:
    """``type_`` with ``element`` in the place of bf16."""
    if isinstance(type_, ir.BF16Type):
        return element
    if isinstance(type_, ir.VectorType) and isinstance(type_.element_type, ir.BF16Type):
        return ir.VectorType.get_unchecked(type_.shape, element, context=type_.context)
    if mlir_util.is_memref(type_) and isinstance(ir.MemRefType(type_).element_type, ir.BF16Type):
        old = ir.MemRefType(type_)
        return ir.MemRefType.get_unchecked(old.shape, element, old.layout, old.memory_space, type_.context)
    return type_


_NUMBER = re.compile(r"0x[0-9A-F]+|-?\d[\d.Ee+-]*")


def _constant_bits(op: Any) -> None:
    """Give a constant the bits of what it was."""
    text, _, _ = str(op.attributes["value"]).rpartition(" : ")
    bits = _NUMBER.sub(lambda found: str(_bits(found[0])), text)
    op.attributes["value"] = ir.Attribute.parse(f"{bits} : {op.results[0].type}", op.context)


def _bits(number: str) -> int:
    """Of a number that bf16 has, as MLIR writes it, in as few digits as are read as this number: as an i16."""
    bits = int(number, 16) if number.startswith("0x") else literal_bits(number, "bfloat")
    return bits - (1 << 16 if bits >= 1 << 15 else 0)


def _compute_in_f32(op: Any) -> None:
    build = Builder(op)
    wide = [
        value
        if _as_single(value.type) == value.type
        else build.value("arith.extf", [value], _as_single(value.type))
        for value in op.operands
    ]
    copy = build.clone(op)
    for number, value in enumerate(wide):
        copy.operands[number] = value
    results: list[Any] = []
    for old, new in zip(op.results, copy.results, strict=True):
        new.set_type(_as_single(old.type))
        results.append(new if new.type == old.type else build.value("arith.truncf", [new], old.type))
    mlir_util.replace_op(op, results)


_SINGLE_BITS = 24
"""Of integers that f32 has exactly."""

_INTEGER = """
    %zero = arith.constant $zero : $i
    %one = arith.constant $one : $i
    %width = arith.constant $width : $i
    %bits = arith.constant $bits : $i
    %below = arith.cmpi slt, %0, %zero : $i
    %minus = arith.subi %zero, %0 : $i
    %negative = arith.andi %below, %signed : $i1
    %size = arith.select %negative, %minus, %0 : $i1, $i
    %unused = math.ctlz %size : $i
    %used = arith.subi %width, %unused : $i
    %more = arith.subi %used, %bits : $i
    %shift = arith.maxsi %more, %zero : $i
    %high = arith.shrui %size, %shift : $i
    %kept = arith.shli %high, %shift : $i
    %inexact = arith.cmpi ne, %kept, %size : $i
    %last = arith.shli %one, %shift : $i
    %odd = arith.ori %kept, %last : $i
    %chosen = arith.select %inexact, %odd, %kept : $i1, $i
    %plus = arith.uitofp %chosen : $i to $f32
    %less = arith.negf %plus : $f32
    %number = arith.select %negative, %less, %plus : $i1, $f32
"""
"""The same of an integer, whose first bits f32 has."""


def _width(type_: Any) -> int:
    return getattr(type_, "element_type", type_).width


def _convert_integer(op: Any) -> None:
    (value,), (result,) = op.operands, op.results
    width = _width(value.type)
    constants = {"zero": "0", "one": "1", "width": str(width), "bits": str(_SINGLE_BITS)}
    number = _inserted(
        op,
        f"%signed = arith.constant $signed : $i1\n{_INTEGER}",
        value,
        f"i{width}",
        {**constants, "signed": "true" if op.name == "arith.sitofp" else "false"},
    )
    mlir_util.replace_op(op, [Builder(op).value("arith.truncf", [number], result.type)])


def _inserted(op: Any, text: str, value: Any, integer: str, constants: Mapping[str, str]) -> Any:
    """The last result of ``text``, of numbers or of vectors as ``value`` is."""
    shape = "x".join(map(str, value.type.shape)) if isinstance(value.type, ir.VectorType) else ""
    types = {name: f"vector<{shape}x{name}>" if shape else name for name in ("f64", "f32", "i32", "i1", integer)}
    values = {name: f"dense<{number}>" if shape else number for name, number in constants.items()}
    text = Template(text).substitute({"i": types[integer], **types, **values})
    if not shape:
        text = text.replace(": i1, ", ": ")  # `arith.select` of numbers
    if not shape and "signed" in constants:
        text = text.replace(f"arith.constant {constants['signed']} : i1", f"arith.constant {constants['signed']}")
    return mlir_util.insert(op, text, [value])[-1].results[0]


def _convert_by_f32(op: Any) -> None:
    """Conversions from and to f64."""
    (value,), (result,) = op.operands, op.results
    wide = value if op.name == "arith.truncf" else result
    if str(getattr(wide.type, "element_type", wide.type)) != "f64":
        return
    build, single = Builder(op), _as_single(result.type if op.name == "arith.truncf" else value.type)
    if op.name == "arith.extf":
        mlir_util.replace_op(op, [build.value("arith.extf", [build.value(op.name, [value], single)], result.type)])
        return
    number = mlir_util.insert(op, expansions.single_to_odd(value.type), [value])[-1].results[0]
    mlir_util.replace_op(op, [build.value("arith.truncf", [number], result.type)])
