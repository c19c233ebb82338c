"""Functions of the host: arithmetic that LLVM vectorises, where the processor has fma; others are libm's."""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from devscope.lowering import expansions, mlir_util
from devscope.lowering.arithmetic import Value
from devscope.lowering.elementary_functions import OF_ONE, OF_TWO, remainder_near
from devscope.lowering.expansions import Expansion
from devscope.lowering.interop.bindings import ir
from devscope.lowering.memory.link_functions import merge_modules
from devscope.lowering.trigonometric_functions import is_far

_PERIODIC = ("sin", "cos", "tan")
_FAR = "devscope.far"
"""Marks a function of an argument that is so large that libm computes it."""
_REMAINDER = "arith.remf"


def _function(op: Any) -> str:
    type_ = op.results[0].type
    element, name = str(expansions.element_type(type_)), op.name.partition(".")[2]
    if element in ("f16", "bf16"):
        return expansions.in_single(op)
    if _FAR in op.attributes or element not in ("f32", "f64"):
        return ""
    if isinstance(type_, ir.VectorType):
        shape = "x".join(map(str, ir.VectorType(type_).shape))
        return expansions.by_elements(op) if name in _PERIODIC else _text(name, element, shape)
    return _text(name, element, "")


@cache
def _text(name: str, element: str, shape: str) -> str:
    lines: list[str] = []
    x, y = (Value(lines, f"%{number}", element, shape) for number in range(2))
    result = OF_ONE[name](x) if name in OF_ONE else OF_TWO[name](x, y)
    if name in _PERIODIC:
        lines += _or_far(f"math.{name} %0", is_far(x), result)
    return "\n".join(lines)


def _or_far(text: str, far: Value, near: Value) -> list[str]:
    """A branch of its own: LLVM makes one for each element of a vector, and would call libm for all otherwise."""
    return [
        f"%result = scf.if {far.name} -> {near.element} {{",
        f"%far = {text} {{{_FAR}}} : {near.element}",
        f"scf.yield %far : {near.element} }} else {{ scf.yield {near.name} : {near.element} }}",
    ]


def _remainder(op: Any) -> str:
    element = str(expansions.element_type(op.results[0].type))
    if element in ("f16", "bf16"):
        return expansions.in_single(op)
    if _FAR in op.attributes or element not in ("f32", "f64"):
        return ""
    if isinstance(op.results[0].type, ir.VectorType):
        return expansions.by_elements(op)
    lines: list[str] = []
    far, near = remainder_near(*(Value(lines, f"%{number}", element) for number in range(2)))
    return "\n".join([*lines, *_or_far(f"{_REMAINDER} %0, %1", far, near)])


#: For processors that have fma, which is a slow function of libm on others.
WITH_FMA: Mapping[str, Expansion] = {
    **{f"math.{name}": _function for name in (*OF_ONE, *OF_TWO)},
    _REMAINDER: _remainder,
    "math.sincos": expansions.sincos,
}


#: Those that are arithmetic without branches.
OF_VECTORS = frozenset(f"math.{name}" for name in {*OF_ONE, *OF_TWO}.difference(_PERIODIC))


def has_far_functions(ops: Iterable[Any]) -> bool:
    return any(_FAR in op.attributes for op in ops)


def call_far_functions(module: Any, bytes_: int) -> str:
    """Functions of large arguments become calls of functions that LLVM neither inlines nor computes ahead.

    ``bytes_``: the size of a vector. Where LLVM vectorises a loop, it calls the same function of a vector and of a
    mask, mostly of zeros. Returns what is to be appended to the LLVM IR: nothing else there needs these.
    """
    names: list[str] = []
    made: set[str] = set()
    for op in mlir_util.walk(module):
        if _FAR not in op.attributes:
            continue
        function, (type_,) = op.name, (result.type for result in op.results)
        name = f"devscope_far_{function.partition('.')[2]}_{type_}"
        if name not in made:
            made.add(name)
            count = bytes_ * 8 // ir.FloatType(type_).width
            names.append(f"{name}_{count}")
            functions = ir.Module.parse(
                _far_functions(name, function, len(op.operands), str(type_), count), module.context
            )
            merge_modules(module, functions)
        mlir_util.replace_op(op, mlir_util.Builder(op).call(name, op.operands, [type_]).results)
    if not names:
        return ""
    pointers = ", ".join(f"ptr @{name}" for name in names)
    return f'\n@llvm.compiler.used = appending global [{len(names)} x ptr] [{pointers}], section "llvm.metadata"\n'


_PURE = "llvm.readnone, llvm.no_inline, llvm.no_unwind, llvm.will_return"


def _far_functions(name: str, function: str, operands: int, type_: str, count: int) -> str:
    """The function ``name``, and the one of vectors of ``count`` numbers."""
    vector, mask, variant = f"vector<{count}x{type_}>", f"vector<{count}xi1>", f"{name}_{count}"
    abi = f"_ZGV_LLVM_M{count}{'v' * operands}_{name}({variant})"
    known = f'llvm.passthrough = [["vector-function-abi-variant", "{abi}"]]'

    def each(text: str) -> str:
        return ", ".join(text.replace("#", str(number)) for number in range(operands))

    numbers = "\n".join(f"%number{n} = vector.extract %x{n}[%i] : {type_} from {vector}" for n in range(operands))
    return f"""
        func.func private @{name}({each(f"%x#: {type_}")}) -> {type_} attributes {{{_PURE}, {known}}} {{
          %y = {function} {each("%x#")} : {type_}
          return %y : {type_}
        }}
        func.func private @{variant}({each(f"%x#: {vector}")}, %mask: {mask}) -> {vector} attributes {{{_PURE}}} {{
          %any = vector.reduction <or>, %mask : {mask} into i1
          %all = scf.if %any -> {vector} {{
            %zero = arith.constant 0 : index
            %one = arith.constant 1 : index
            %count = arith.constant {count} : index
            %found = scf.for %i = %zero to %count step %one iter_args(%so_far = %x0) -> {vector} {{
              %is_far = vector.extract %mask[%i] : i1 from {mask}
              %with = scf.if %is_far -> {vector} {{
                {numbers}
                %far = func.call @{name}({each("%number#")}) : ({each(type_)}) -> {type_}
                %made = vector.insert %far, %so_far[%i] : {type_} into {vector}
                scf.yield %made : {vector}
              }} else {{
                scf.yield %so_far : {vector}
              }}
              scf.yield %with : {vector}
            }}
            scf.yield %found : {vector}
          }} else {{
            scf.yield %x0 : {vector}
          }}
          return %all : {vector}
        }}
    """
