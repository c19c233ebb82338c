"""Integer division that never traps: what MLIR and LLVM leave undefined gets one meaning on all targets.

x / 0 and x rem 0 are 0; the least integer by -1 is itself, with remainder 0. Comparisons and selections say so,
which LLVM vectorises; a division by a constant needs none of them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.expansions import element_type, like
from devscope.lowering.interop.bindings import ir

_GUARDED = "devscope.guarded"
"""On the dividend of a division: it is 0 where the divisor is."""

_QUOTIENTS = frozenset({"llvm.sdiv", "llvm.udiv"})
_SIGNED = frozenset({"llvm.sdiv", "llvm.srem"})
_DIVISIONS = _QUOTIENTS | _SIGNED | {"llvm.urem"}
_ROUNDING = frozenset(
    f"{dialect}.{name}"
    for dialect, names in (("arith", "ceildivsi ceildivui floordivsi"), ("index", "ceildivs ceildivu floordivs"))
    for name in names.split()
)

_WIDE_QUOTIENTS = {8: ("f32", 32), 16: ("f32", 32), 32: ("f64", 64)}
"""By the bits of integers: floats that have them all, and the bits of integers that all quotients fit."""

_FOLDED = tuple(f"arith.{name}" for name in ("divsi", "divui", "ceildivsi", "ceildivui", "floordivsi"))


def guard_equal_operands(module: Any) -> None:
    """Quotients whose divisor may be 0: upstream takes x / x for 1. So dividends become 0 where divisors are."""
    for op in mlir_util.named(module.operation, *_FOLDED):
        dividend, divisor = op.operands
        maker = None if isinstance(dividend.owner, ir.Block) else dividend.owner.operation
        if maker is not None and _GUARDED in maker.attributes:
            continue
        source = None if isinstance(divisor.owner, ir.Block) else divisor.owner.operation
        if source is not None and source.name == "arith.constant":
            continue
        build = mlir_util.Builder(op)
        zero = filled_like(build, divisor, 0)
        # Not by a choice, of which upstream makes a maximum, and that is folded, too.
        more = {"predicate": ir.IntegerAttr.get(build.i64, 8)}  # without a sign
        some = build.value("arith.cmpi", [divisor, zero], booleans_like(divisor.type, op.location), more)
        element = getattr(divisor.type, "element_type", divisor.type)
        extended = "arith.index_cast" if isinstance(element, ir.IndexType) else "arith.extsi"
        mask = build.value(extended, [some], dividend.type)
        guarded = {_GUARDED: ir.UnitAttr.get(op.context)}
        op.operands[0] = build.value("arith.andi", [dividend, mask], dividend.type, guarded)


def booleans_like(type_: Any, location: Any) -> Any:
    return elements_like(type_, ir.IntegerType.get_signless(1, type_.context), location)


def elements_like(type_: Any, element: Any, location: Any) -> Any:
    """``element``, or the vector or tensor of as many of them as ``type_`` has."""
    if not isinstance(type_, ir.ShapedType):
        return element
    kind = ir.VectorType if isinstance(type_, ir.VectorType) else ir.RankedTensorType
    return kind.get(ir.ShapedType(type_).shape, element, loc=location)


def filled_like(build: mlir_util.Builder, value: Any, number: float) -> Any:
    """A value of the type of ``value``, of numbers or a tensor of such, with all elements ``number``."""
    type_ = value.type
    if not isinstance(type_, ir.ShapedType):
        return build.value("arith.constant", [], type_, {"value": _attribute(type_, number)})
    shape = ir.ShapedType(type_)
    attribute = _attribute(shape.element_type, number)
    if shape.has_static_shape:
        splat = ir.DenseElementsAttr.get_splat(type_, attribute)
        return build.value("arith.constant", [], type_, {"value": splat})
    axes = [build.constant(axis) for axis in range(shape.rank) if shape.is_dynamic_dim(axis)]
    sizes = [build.value("tensor.dim", [value, axis], build.index) for axis in axes]
    scalar = build.value("arith.constant", [], shape.element_type, {"value": attribute})
    return build.value("tensor.splat", [scalar, *sizes], type_)


def _attribute(type_: Any, number: float) -> Any:
    if isinstance(type_, ir.FloatType):
        return ir.FloatAttr.get(type_, number, loc=ir.Location.unknown(type_.context))
    return ir.IntegerAttr.get(type_, int(number))


def guard_rounding(ops: Sequence[Any]) -> None:
    """Divisions among ``ops`` that round up or down: upstream expands them to code that rounds x / 0 as well."""
    divisions = [op for op in ops if op.name in _ROUNDING]
    constants = _constants(ops, "arith.constant") if divisions else {}
    for op in divisions:
        if constants.get(op.operands[1]):
            continue
        type_ = op.operands[1].type
        text = f"""
            %zero = arith.constant {_literal(type_, 0)}
            %one = arith.constant {_literal(type_, 1)}
            %is_zero = arith.cmpi eq, %1, %zero : {type_}
            %dividend = arith.select %is_zero, %zero, %0 : {_condition(type_)}{type_}
            %divisor = arith.select %is_zero, %one, %1 : {_condition(type_)}{type_}
        """
        *_, dividend, divisor = mlir_util.insert(op, text, op.operands)
        op.operands[0], op.operands[1] = dividend.result, divisor.result


def by_floats(op: Any) -> str:
    """A division of elements that are no constants, as an expansion: no processor has it for vectors of integers.

    A quotient that is not whole is further from the next whole number than it is rounded.
    """
    type_, divisor = op.results[0].type, op.operands[1].owner
    is_constant = not isinstance(divisor, ir.Block) and divisor.operation.name == "arith.constant"
    if is_constant or not isinstance(type_, ir.IntegerType) or type_.width not in _WIDE_QUOTIENTS:
        return ""
    if not op.operation.parent.name.startswith("linalg."):
        return ""
    wide, bits = _WIDE_QUOTIENTS[type_.width]
    to_float, to_integer = (
        ("arith.sitofp", "arith.fptosi") if op.name[-2:] == "si" else ("arith.uitofp", "arith.fptoui")
    )
    lines = f"""
        %zero = arith.constant 0 : {type_}
        %one = arith.constant 1 : {type_}
        %is_zero = arith.cmpi eq, %1, %zero : {type_}
        %divisor = arith.select %is_zero, %one, %1 : {type_}
        %x = {to_float} %0 : {type_} to {wide}
        %y = {to_float} %divisor : {type_} to {wide}
        %inexact = arith.divf %x, %y : {wide}
        %whole = {to_integer} %inexact : {wide} to i{bits}
        %quotient = arith.trunci %whole : i{bits} to {type_}
    """
    if "rem" in op.name:
        return f"""{lines}
            %product = arith.muli %quotient, %divisor : {type_}
            %result = arith.subi %0, %product : {type_}
        """
    return f"{lines}\n%result = arith.select %is_zero, %zero, %quotient : {type_}"


def define_divisions(ops: Sequence[Any]) -> None:
    """All other divisions among ``ops``, which are of the LLVM dialect."""
    divisions = [op for op in ops if op.name in _DIVISIONS]
    constants = _constants(ops, "llvm.mlir.constant") if divisions else {}
    for op in divisions:
        divisor = constants.get(op.operands[1])
        if not divisor or (divisor == -1 and op.name in _SIGNED):
            made = mlir_util.insert(op, _defined(op), op.operands)
            mlir_util.replace_op(op, [made[-1].result])


def _defined(op: Any) -> str:
    type_ = op.operands[1].type
    bools = like(type_, "i1")
    lines = [
        *(
            f"%{name} = llvm.mlir.constant({_literal(type_, n)}) : {type_}"
            for name, n in (("zero", 0), ("one", 1))
        ),
        f'%is_zero = llvm.icmp "eq" %1, %zero : {type_}',
    ]
    refused = "%is_zero"
    if op.name in _SIGNED:
        least = -(1 << (element_type(type_).width - 1))
        lines += [
            f"%least = llvm.mlir.constant({_literal(type_, least)}) : {type_}",
            f"%minus = llvm.mlir.constant({_literal(type_, -1)}) : {type_}",
            f'%is_least = llvm.icmp "eq" %0, %least : {type_}',
            f'%is_minus = llvm.icmp "eq" %1, %minus : {type_}',
            f"%overflows = llvm.and %is_least, %is_minus : {bools}",
            f"%refused = llvm.or %is_zero, %overflows : {bools}",
        ]
        refused = "%refused"
    lines += [
        f"%divisor = llvm.select {refused}, %one, %1 : {bools}, {type_}",
        f"%result = {op.name} %0, %divisor : {type_}",
    ]
    if op.name in _QUOTIENTS:
        lines.append(f"%quotient = llvm.select %is_zero, %zero, %result : {bools}, {type_}")
    return "\n".join(lines)


def _literal(type_: Any, number: int) -> str:
    return f"dense<{number}> : {type_}" if isinstance(type_, ir.VectorType) else f"{number} : {type_}"


def _condition(type_: Any) -> str:
    """What ``arith.select`` writes in front of its type."""
    return f"{like(type_, 'i1')}, " if isinstance(type_, ir.VectorType) else ""


def _constants(ops: Sequence[Any], name: str) -> Mapping[Any, int]:
    """Values of constants among ``ops`` that are one integer."""
    values = ((op, op.attributes["value"]) for op in ops if op.name == name)
    return {
        op.results[0]: ir.IntegerAttr(attribute).value
        for op, attribute in values
        if isinstance(attribute, ir.IntegerAttr)
    }
