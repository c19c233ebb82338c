"""The host: bufferised functions -> loops -> LLVM dialect -> LLVM IR -> an object."""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from devscope.dialects.target import get_target_kind
from devscope.errors import LoweringError
from devscope.lowering import expansions, mlir_util
from devscope.lowering.codegen.host_object import (
    HostObject,
    Kernels,
    check_host_options,
    compile_host_object,
    compile_ir,
)
from devscope.lowering.codegen.instruction_sets import product_instructions, vector_instructions
from devscope.lowering.codegen.llvm_text import to_llvm_ir
from devscope.lowering.complex_functions import lower_complex
from devscope.lowering.constants import ConstantTable
from devscope.lowering.copies import copy_as_linalg, is_whole_copy
from devscope.lowering.cpu import math_functions
from devscope.lowering.cpu.accesses import access_as_integers
from devscope.lowering.cpu.kernel_tables import FOLDER, built_in_rows
from devscope.lowering.cpu.short_floats import expand_short_floats
from devscope.lowering.divisions import by_floats, guard_rounding
from devscope.lowering.expansions import Expansion
from devscope.lowering.interop.bindings import ir
from devscope.lowering.interop.diagnostics import decode_location
from devscope.lowering.kernels.calls import call_kernels
from devscope.lowering.kernels.library import KernelLibrary
from devscope.lowering.kernels.nests import lower_nests
from devscope.lowering.kernels.packed_constants import PackedConstants
from devscope.lowering.kernels.parallel_loops import lower_parallel_loops
from devscope.lowering.kernels.table import Row, Schedules
from devscope.lowering.memory.link_functions import merge_modules
from devscope.lowering.mlir_util import RunPasses
from devscope.lowering.pipelines import pipeline
from devscope.lowering.polls import poll_in_loops, poll_in_scalar_loops
from devscope.lowering.target import HostTarget, Options, Rule, Schedule
from devscope.lowering.tasks import outline_tasks


def _loops(order: tuple[int, ...], *names: str) -> Rule[Schedule]:
    return Rule(Schedule("cpu/interchange", "interchange", order), [f"linalg.{name}" for name in names])


#: The dimension with unit stride in the result goes innermost, where LLVM vectorises it.
_SCHEDULES = (
    _loops((0, 2, 1), "matmul"),
    _loops((0, 1, 3, 2), "batch_matmul"),
    _loops((1, 0), "vecmat"),
)


_EXPM1 = "math.expm1"
_LIBM = {"f32": "expm1f", "f64": "expm1"}
_DIVISIONS = dict.fromkeys(("arith.divsi", "arith.divui", "arith.remsi", "arith.remui"), by_floats)
_EXPANSIONS = {**expansions.FOR_ALL, **_DIVISIONS, _EXPM1: expansions.by_wide_elements}


class _Instructions(NamedTuple):
    """``vector_bytes``: of a register. ``expansions``: of functions, too, where arithmetic computes them faster.
    ``functions``: those of them that kernels may have."""

    vector_bytes: int
    expansions: Mapping[str, Expansion]
    functions: Collection[str] = ()


_WITH_FMA = {**_EXPANSIONS, **math_functions.WITH_FMA}
_INSTRUCTIONS = {
    "avx512": _Instructions(64, _WITH_FMA, math_functions.OF_VECTORS),
    "avx2": _Instructions(32, _WITH_FMA, math_functions.OF_VECTORS),
    "other": _Instructions(16, _EXPANSIONS),
}

#: Functions that LLVM computes by itself. C's library has the others, but of these types not everywhere.
_OF_F128 = {
    *("math.absf", "math.ceil", "math.clampf", "math.copysign", "math.floor", "math.isfinite", "math.isnan"),
    *("math.round", "math.roundeven", "math.trunc"),
}
_OF_WIDE_FLOATS = {"f80": {*_OF_F128, "math.sqrt"}, "f128": _OF_F128}


def _check_wide_floats(ops: Sequence[Any]) -> None:
    """Raise LoweringError, located, for a function of f80 or f128 that programs have no library for."""
    for op in ops:
        if not op.name.startswith("math."):
            continue
        type_ = str(expansions.element_type(op.operands[0].type))
        if op.name not in _OF_WIDE_FLOATS.get(type_, (op.name,)):
            raise LoweringError(
                f"target 'cpu' cannot compute {op.name} of {type_}",
                decode_location(op.location),
                ["convert to f64 and back around it"],
            )


def _call_expm1(module: Any, ops: Sequence[Any]) -> None:
    """Let libm compute it: convert-math-to-llvm subtracts 1 from an exponential, which has no digits near 0."""
    declared = {mlir_util.symbol_name(function) for function in mlir_util.functions(module)} if ops else set[str]()
    for op in ops:
        type_ = op.results[0].type
        name = _LIBM.get(str(type_))
        if name is None:
            continue
        if name not in declared:
            declared.add(name)
            mlir_util.declare(module, name, ir.FunctionType.get([type_], [type_], context=op.context))
        mlir_util.replace_op(op, mlir_util.Builder(op).call(name, op.operands, [type_]).results)


def _read_schedules(options: Options, rows: Sequence[Row]) -> Schedules:
    instructions = vector_instructions(*_cpu_and_features(options))
    others = product_instructions(*_cpu_and_features(options))
    return Schedules([*rows, *built_in_rows(instructions)], instructions, *others)


class _Kernels(NamedTuple):
    """``text``: LLVM IR of the functions of ``library``, of which there may be none; ``code``: these, compiled."""

    library: KernelLibrary
    text: str = ""
    code: Kernels | None = None


def _call_kernels(
    module: Any, schedules: Schedules, constants: ConstantTable, options: Options, run_passes: RunPasses
) -> _Kernels:
    machine = _INSTRUCTIONS[schedules.instructions]
    library = KernelLibrary(FOLDER, schedules.loops, machine.functions)
    call_kernels(module, schedules, library, PackedConstants(module, constants))
    kernels = library.definitions(module.context)
    if kernels is None:
        return _Kernels(library)
    expansions.expand(mlir_util.walk(kernels.operation), machine.expansions)
    expand_short_floats(mlir_util.walk(kernels.operation))
    outline_tasks(kernels, "devscope_kernel_task")
    run_passes(kernels.operation, pipeline("cpu/kernels"))
    text = _to_llvm_ir(kernels, run_passes)
    return _Kernels(library, text, Kernels(text, *_cpu_and_features(options), _level(options)))


_MANY_BYTES = 1 << 20
"""A copy of so many is work for several threads."""


def _to_llvm(module: Any, schedules: Schedules, kernels: _Kernels, run_passes: RunPasses) -> tuple[str, str]:
    """LLVM IR of a bufferised host module without memory spaces or device operations; of its kernels, if any."""
    library = kernels.library
    merge_modules(module, library.of_operations(module.context))
    ops = lower_complex(module, run_passes)
    _check_wide_floats(ops)
    machine = _INSTRUCTIONS[schedules.instructions]
    ops = expansions.expand(ops, machine.expansions)
    has_far = math_functions.has_far_functions(ops)
    guard_rounding(ops)
    copies = [op for op in ops if op.name == "memref.copy"]
    is_parallel = any(op.name in ("scf.forall", "scf.parallel") for op in ops)
    _call_expm1(module, [op for op in ops if op.name == _EXPM1])
    for op in copies:
        # A strided one would call a C++ support library; as linalg it becomes loops, and large ones become tasks.
        bytes_ = mlir_util.static_bytes(op.operands[0].type)
        if not is_whole_copy(op) or (bytes_ is not None and bytes_ >= _MANY_BYTES):
            copy_as_linalg(op)
    if is_parallel:
        run_passes(module.operation, pipeline("cpu/to_parallel"))
        lower_parallel_loops(module, library.loops)
        run_passes(module.operation, pipeline("cpu/one_after_the_other"))
    poll_in_scalar_loops(module)
    lower_nests(module, library.loops)
    run_passes(module.operation, pipeline("cpu/to_loops"))
    poll_in_loops(module)
    far = math_functions.call_far_functions(module, machine.vector_bytes) if has_far else ""
    expand_short_floats(mlir_util.walk(module.operation))
    outline_tasks(module, "devscope_task")
    return _to_llvm_ir(module, run_passes) + far, kernels.text


def _to_llvm_ir(module: Any, run_passes: RunPasses) -> str:
    _inline_many_results(module)
    run_passes(module.operation, pipeline("cpu/to_llvm"))
    access_as_integers(mlir_util.walk(module.operation))
    return _NUM.sub(r"@llvm.\1imumnum.", to_llvm_ir(module, "cpu"))


def _inline_many_results(module: Any) -> None:
    """Have LLVM put functions with many results into what calls them, if that is one place.

    Their results are one struct, for whose fields LLVM's code generation takes quadratic time.
    """
    many = {
        mlir_util.symbol_name(function): function
        for function in mlir_util.functions(module)
        if mlir_util.has_body(function) and len(mlir_util.function_type(function).results) > _MANY_RESULTS
    }
    ops = mlir_util.walk(module.operation) if many else ()
    calls = Counter(ir.FlatSymbolRefAttr(op.attributes["callee"]).value for op in ops if op.name == "func.call")
    for name, function in many.items():
        if calls[name] <= 1:
            function.attributes["llvm.passthrough"] = ir.Attribute.parse('["alwaysinline"]', module.context)


_MANY_RESULTS = 8

_NUM = re.compile(r"@llvm\.(max|min)num\.")
"""LLVM 22 fails an assertion of its own ("VPlan cost model and legacy cost model disagreed") where it vectorises
reductions by these, and takes the process with it. ``llvm.maximumnum`` gives the same but for the sign of a zero.
"""


def _compile_object(text: str, entries: Sequence[str], options: Options, kernels: _Kernels) -> HostObject:
    return compile_host_object(text, entries, *_cpu_and_features(options), _level(options), kernels.code)


def _level(options: Options) -> int:
    return int(options.get("opt", 3))


def _cpu_and_features(options: Options) -> tuple[str, str]:
    return str(options.get("cpu", "")), str(options.get("features", ""))


TARGET = HostTarget(
    kind=get_target_kind("cpu"),
    schedules=_SCHEDULES,
    check_options=lambda options: check_host_options(*_cpu_and_features(options)),
    inline_elements=16,
    read_schedules=_read_schedules,
    call_kernels=_call_kernels,
    to_llvm=_to_llvm,
    compile_object=_compile_object,
    compile_ir=lambda options, text: compile_ir(text, *_cpu_and_features(options), _level(options)),
)
