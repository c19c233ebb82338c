"""Object code for the host from LLVM IR text."""

import subprocess
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any, NamedTuple

from devscope.errors import LoweringError, OptionError
from devscope.lowering.codegen.instruction_sets import host_machine, instruction_sets
from devscope.lowering.codegen.parts import Parts, run_passes, split
from devscope.runtime.child_process import ending, python
from devscope.runtime.linker import CLOSE_BACKENDS
from devscope.runtime.native import call_symbol
from devscope.runtime.seal import SEAL_IR, SEAL_SYMBOL


class HostObject(NamedTuple):
    """Object code, and the machine that it is for, in LLVM's terms."""

    data: bytes
    triple: str
    cpu: str
    features: str


_TRY = """
import llvmlite.binding as llvm

print("started", flush=True)
llvm.initialize_native_target()
llvm.initialize_native_asmprinter()
llvm.Target.from_default_triple().create_target_machine(cpu=sys.argv[1], features=sys.argv[2])
"""


@cache
def check_host_options(cpu: str, features: str) -> None:
    """Raise OptionError unless LLVM knows this processor and these features; ``""`` asks for the default.

    LLVM has no way to ask: it prints a warning and goes on without an unknown name, and ends the process at a
    malformed list of features. So another process tries them.
    """
    if not cpu and not features:
        return
    for feature in filter(None, features.split(",")):
        if feature[0] not in "+-" or not feature[1:]:
            raise OptionError(
                f"option 'features' of target kind 'cpu': '{feature}' is not a feature",
                notes=["write features like +avx2,-fma"],
            )
    result = subprocess.run(python(_TRY, cpu, features), capture_output=True, text=True, check=False)
    if not result.stdout:
        how = ending(result.returncode, result.stderr)
        raise LoweringError(f"the process that asks LLVM for the host's processors failed: {how}")
    if result.returncode or "not a recognized" in result.stderr:
        first = (result.stderr.strip().splitlines() or ["no message"])[0]
        raise OptionError(
            "LLVM refuses option 'cpu' or 'features' of target kind 'cpu'",
            notes=[first.partition(" (ignoring")[0], "they are those of llc's -mcpu and -mattr"],
        )


_INEXACT = "@llvm.x86.avx512bf16."
"""Kernels that call these instructions themselves see to it that there are no such numbers."""


class Kernels(Parts):
    """Functions that host code calls, compiled on threads while the rest of a program is lowered.

    Their vectors and unrolled loops are written out, so that LLVM only cleans up; but that takes longer than all
    the rest. They become assembly, which `compile_host_object` takes in: so there is one object.
    """

    def __init__(self, text: str, cpu: str, features: str, level: int) -> None:
        super().__init__(
            split(text),
            lambda: host_machine(cpu, features, level, exact=_INEXACT not in text)[0],
            _parser,
            lambda module, machine: _clean_up(module, machine) if level else None,
        )


def compile_host_object(
    text: str,
    entries: Sequence[str],
    cpu: str = "",
    features: str = "",
    level: int = 3,
    kernels: Kernels | None = None,
) -> HostObject:
    """Relocatable object code, which calls the native runtime; only what calls ``entries`` is visible outside.

    ``entries`` are functions of ``text``; the loader calls them through their `call_symbol`. ``kernels``: those
    that ``text`` declares. ``cpu`` and ``features`` default to those of this machine, ``features`` to none when
    ``cpu`` is given.
    Raises OptionError for a CPU or features that do not exist, LoweringError if LLVM refuses the text.
    """
    check_host_options(cpu, features)
    import llvmlite.binding as llvm

    needed = sorted(f"+{name}" for name in instruction_sets(cpu, features)) if cpu or features else ()
    machine, cpu, features = host_machine(cpu, features, level)

    def optimize(module: Any, machine: Any) -> None:
        # What higher levels have beside the vectorisers takes a third of their time and gains nothing where MLIR
        # has hoisted and merged: measured on JAX's sorts, scans, scatters, windows, solvers and whole models.
        _optimize(module, machine, level, simplify=min(level, 1))

    try:
        with _parser(llvm, machine) as parse:
            module = parse(text)
            own = packed_entries(_parameter_counts(module, entries)) + SEAL_IR
            exported = {CLOSE_BACKENDS, *entries}
            parts = split(text, is_inlined=True, exported=exported)
            if len(parts) > 1:
                code = Parts(
                    parts, lambda: host_machine(cpu, features, level)[0], _parser, optimize, "m", {CLOSE_BACKENDS}
                )
                module = parse(own)
                module.link_in(parse(code.as_module()))
            else:
                module.link_in(parse(own))
                _hide(module, {SEAL_SYMBOL, CLOSE_BACKENDS, *map(call_symbol, entries)})
                optimize(module, machine)
            if kernels is not None:
                module.link_in(parse(kernels.as_module()))
            data = machine.emit_object(module)
    except RuntimeError as error:
        raise LoweringError("LLVM refused the host code", notes=[str(error)]) from None
    return HostObject(data, machine.triple, cpu, ",".join(filter(None, [features, *needed])))


def compile_ir(text: str, cpu: str = "", features: str = "", level: int = 3) -> bytes:
    """Object code of LLVM IR text by itself. Raises OptionError and LoweringError as `compile_host_object`."""
    check_host_options(cpu, features)
    import llvmlite.binding as llvm

    machine, *_ = host_machine(cpu, features, level)
    try:
        with _parser(llvm, machine) as parse:
            module = parse(text)
            _optimize(module, machine, level)
            return machine.emit_object(module)
    except RuntimeError as error:
        raise LoweringError("LLVM refuses the text", notes=[str(error)]) from None


@contextmanager
def _parser(llvm: Any, machine: Any) -> Generator[Callable[[str], Any]]:
    """Reads modules, which are there until the end, in a context of their own: several threads may do so at once.

    Garbage collection would take a context before its modules.
    """
    with ExitStack() as stack:
        context = stack.enter_context(llvm.create_context())

        def parse(text: str) -> Any:
            module = stack.enter_context(llvm.parse_assembly(text, context))
            module.triple = machine.triple
            module.data_layout = str(machine.target_data)
            return module

        yield parse


def _hide(module: Any, exported: Collection[str]) -> None:
    for value in [*module.functions, *module.global_variables]:
        is_ours = not value.is_declaration and not value.name.startswith("llvm.")
        if is_ours and value.name not in exported:
            value.linkage = "internal"


def _parameter_counts(module: Any, entries: Sequence[str]) -> dict[str, int]:
    functions = {function.name: function for function in module.functions}
    missing = sorted(set(entries) - functions.keys())
    if missing:
        raise LoweringError(f"host code lacks the symbols {', '.join(missing)}")
    return {entry: len(list(functions[entry].arguments)) for entry in entries}


def packed_entries(parameter_counts: Mapping[str, int]) -> str:
    """LLVM IR text of the `call_symbol` of every entry, given the numbers of parameters of their C symbols.

    Each loads the arguments, which are pointers, from an array and calls the entry.
    """
    texts: list[str] = []
    for entry, count in parameter_counts.items():
        pointers = ", ".join(["ptr"] * count)
        values = ", ".join(f"ptr %p{index}" for index in range(count))
        texts.append(f"declare void {_quoted(entry)}({pointers})\n")
        texts.append(f"define void {_quoted(call_symbol(entry))}(ptr %pointers) {{\n")
        for index in range(count):
            texts.append(f"  %p{index}.p = getelementptr ptr, ptr %pointers, i64 {index}\n")
            texts.append(f"  %p{index} = load ptr, ptr %p{index}.p\n")
        texts.append(f"  call void {_quoted(entry)}({values})\n  ret void\n}}\n")
    return "".join(texts)


def _quoted(name: str) -> str:
    """A symbol in LLVM's syntax: every byte that could not stand in a quoted name is escaped."""
    plain = "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in name.encode())
    return f'@"{plain}"'


_CLEAN_UP = (
    *("sroa", "simplify_cfg", "instruction_combine", "new_gvn", "loop_rotate"),
    *("instruction_combine", "simplify_cfg"),
)
"""LLVM's passes for kernels: they take a third of the time of all that level 1 has, for code as fast."""


def _clean_up(module: Any, machine: Any) -> None:
    import llvmlite.binding as llvm

    passes = llvm.create_new_module_pass_manager()
    for name in _CLEAN_UP:
        getattr(passes, f"add_{name}_pass")()
    tuning = llvm.create_pipeline_tuning_options(speed_level=1)
    run_passes(llvm, passes, module, llvm.create_pass_builder(machine, tuning))


def _optimize(module: Any, machine: Any, level: int, simplify: int | None = None) -> None:
    """``simplify``: LLVM's level for all but the vectorisers, if that is another."""
    import llvmlite.binding as llvm

    tuning = llvm.create_pipeline_tuning_options(speed_level=level if simplify is None else simplify)
    tuning.loop_vectorization = level > 1
    tuning.slp_vectorization = level > 1
    # Unrolling on top of vectorising and interleaving makes LLVM take twice as long and gains no speed: measured
    # on matmul, softmax, reductions and elementwise code; convolutions even lose by it.
    tuning.loop_unrolling = False
    tuning.loop_interleaving = True
    builder = llvm.create_pass_builder(machine, tuning)
    run_passes(llvm, builder.getModulePassManager(), module, builder)
