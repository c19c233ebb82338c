"""Parallel loops become tasks of the runtime's threads.

A loop's body becomes a function of a task's number, and of the values that it uses, which the loop's function
writes into a struct on its stack. (MLIR's ways to threads need more: ``convert-openmp-to-llvm`` a runtime library
whose threads disturb those of others, ``async-parallel-for`` coroutines and their runtime.)
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir

_RUN = "devscope_run_tasks"
_POINTER = "!llvm.ptr"


def outline_tasks(module: Any, prefix: str = "devscope_task") -> None:
    """Every ``scf.parallel`` of ``module`` over one range from 0 in steps of 1, without results.

    ``prefix``: of the names of the functions.
    """
    ops = mlir_util.walk(module.operation)
    loops = [op for op in ops if op.name == "scf.parallel" and not list(op.results)]
    if not loops:
        return
    mlir_util.append(module, f"func.func private @{_RUN}(({_POINTER}, i64) -> (), {_POINTER}, i64)")
    constants = mlir_util.constants(module.operation)
    # Outer ones first, which takes inner ones along.
    tasks = [_outline(module, loop, constants, f"{prefix}_{number}") for number, loop in enumerate(loops)]
    _merge(tasks)


def _merge(tasks: Sequence[tuple[Any, Any]]) -> None:
    """Leave one of equal functions; ``tasks`` are these, and the operations that name them, inner ones last."""
    lengths = [len(mlir_util.children(function)) for function, _ in tasks]
    often = {length for length, count in Counter(lengths).items() if count > 1}
    known: dict[str, Any] = {}
    for (function, constant), length in zip(reversed(tasks), reversed(lengths), strict=True):
        if length not in often:  # to write its text takes longer
            continue
        one = known.setdefault(mlir_util.text_but_name(function), function)
        if one is not function:
            name = mlir_util.symbol_name(one)
            constant.attributes["value"] = ir.FlatSymbolRefAttr.get(name, function.context)
            function.erase()


def _outline(module: Any, loop: Any, constants: dict[Any, Any], name: str) -> tuple[Any, Any]:
    """Returns the function, and the operation that names it where the loop was."""
    function = loop.parent
    while function.name != "func.func":
        function = function.parent
    used = _captured(loop)
    captured = [value for value in used if value not in constants]
    types = [_converted(value.type) for value in captured]
    environment, given = f"!llvm.struct<({', '.join(types)})>", f"%{len(captured) + 1}"
    begin = mlir_util.first_child(function)
    _, room = mlir_util.insert(
        begin,
        f"""%one = llvm.mlir.constant(1 : i64) : i64
            %room = llvm.alloca %one x {environment} : (i64) -> {_POINTER}""",
    )
    lines = [
        f"%task = func.constant @{name} : ({_POINTER}, i64) -> ()",
        f"%count = arith.index_cast %{len(captured)} : index to i64",
    ]
    for number, (value, type_) in enumerate(zip(captured, types, strict=True)):
        lines += [
            f"%c{number} = builtin.unrealized_conversion_cast %{number} : {value.type} to {type_}",
            f"%p{number} = {_field(given, number, environment)}",
            f"llvm.store %c{number}, %p{number} : {type_}, {_POINTER}",
        ]
    body = [f"func.func private @{name}(%environment: {_POINTER}, %number: i64) {{"]
    body.append("%i = arith.index_cast %number : i64 to index")
    for number, (value, type_) in enumerate(zip(captured, types, strict=True)):
        body += [
            f"%p{number} = {_field('%environment', number, environment)}",
            f"%c{number} = llvm.load %p{number} : {_POINTER} -> {type_}",
            f"%v{number} = builtin.unrealized_conversion_cast %c{number} : {type_} to {value.type}",
        ]
    task = mlir_util.append(module, "\n".join([*body, "return }"]), loop.location)
    *inside, end = mlir_util.children(task)
    index, values = inside[0].results[0], [op.results[0] for op in inside[3::3]]
    mapping = dict(zip([mlir_util.entry_block(loop).arguments[0], *captured], [index, *values], strict=True))
    *ops, reduce = mlir_util.children(loop)
    reduce.erase()
    for value in used:
        if value in constants:
            clone = constants[value].clone(ip=ir.InsertionPoint(end)).operation
            mapping[value] = clone.results[0]
            constants[clone.results[0]] = clone
    for op in ops:
        op.move_before(end)
        mlir_util.remap_operands(op, mapping)
    call = [
        *lines,
        f"func.call @{_RUN}(%task, {given}, %count) : (({_POINTER}, i64) -> (), {_POINTER}, i64) -> ()",
    ]
    # The text is verified as a module of its own, in which the functions are declared.
    declared = [
        f"func.func private @{name}({_POINTER}, i64)",
        f"func.func private @{_RUN}(({_POINTER}, i64) -> (), {_POINTER}, i64)",
    ]
    made = mlir_util.insert(loop, "\n".join([*declared, *call]), [*captured, loop.operands[1], room.results[0]])
    for declaration in made[:2]:
        declaration.erase()
    loop.erase()
    return task, made[2]


def _captured(loop: Any) -> list[Any]:
    """The values that the body uses and does not define."""
    _, *inside = mlir_util.walk(loop)
    defined = {value for op in (loop, *inside) for value in mlir_util.defined_values(op)}
    return list(dict.fromkeys(value for op in inside for value in op.operands if value not in defined))


def _field(pointer: str, number: int, struct: str) -> str:
    return f"llvm.getelementptr {pointer}[0, {number}] : ({_POINTER}) -> {_POINTER}, {struct}"


def _converted(type_: Any) -> str:
    """The type of LLVM's dialect that MLIR converts ``type_`` to."""
    if mlir_util.is_memref(type_):
        rank = ir.MemRefType(type_).rank
        sizes = f", array<{rank} x i64>, array<{rank} x i64>" if rank else ""
        return f"!llvm.struct<(ptr, ptr, i64{sizes})>"
    if isinstance(type_, ir.ComplexType):
        return f"!llvm.struct<({type_.element_type}, {type_.element_type})>"
    return "i64" if isinstance(type_, ir.IndexType) else str(type_)
