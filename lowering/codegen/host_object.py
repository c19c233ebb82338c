"""Object code for the host from LLVM IR text, with the native runtime linked in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from devscope.errors import LoweringError


@dataclass(frozen=True)
class HostMachine:
    """The machine that host code is compiled for, in LLVM's terms."""

    triple: str
    cpu: str
    features: str


@dataclass(frozen=True)
class HostObject:
    data: bytes
    machine: HostMachine


def compile_host_object(
    text: str, runtime_text: str, exported: Sequence[str], cpu: str = "", features: str = "", level: int = 3
) -> HostObject:
    """Relocatable object code; every function but ``exported`` and the runtime's context is internal.

    ``cpu`` and ``features`` default to those of this machine. Raises LoweringError if LLVM refuses the text.
    """
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    cpu = cpu or llvm.get_host_cpu_name()
    # Without this, LLVM splits 512-bit vectors on CPUs whose tuning prefers 256 bits.
    features = features or llvm.get_host_cpu_features().flatten() + ",-prefer-256-bit"
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=cpu, features=features, opt=level, reloc="pic", codemodel="default"
    )
    try:
        module = llvm.parse_assembly(text)
        module.link_in(llvm.parse_assembly(runtime_text))
        _internalize(module, {*exported, "devscope_context"})
        module.triple = machine.triple
        module.data_layout = str(machine.target_data)
        _optimize(llvm, module, machine, level)
        data = machine.emit_object(module)
    except RuntimeError as error:
        raise LoweringError("LLVM refused the host code", notes=[str(error)]) from None
    return HostObject(data, HostMachine(machine.triple, cpu, features))


def _internalize(module: Any, exported: set[str]) -> None:
    missing = exported - {f.name for f in module.functions} - {g.name for g in module.global_variables}
    if missing:
        raise LoweringError(f"host code lacks the symbols {', '.join(sorted(missing))}")
    for value in [*module.functions, *module.global_variables]:
        if not value.is_declaration and value.name not in exported:
            value.linkage = "internal"


def _optimize(llvm: Any, module: Any, machine: Any, level: int) -> None:
    tuning = llvm.create_pipeline_tuning_options(speed_level=level)
    tuning.loop_vectorization = True
    tuning.slp_vectorization = True
    # Unrolling on top of vectorising and interleaving makes LLVM take twice as long and gains no speed: measured
    # on matmul, softmax, reductions and elementwise code; convolutions even lose by it.
    tuning.loop_unrolling = False
    tuning.loop_interleaving = True
    passes = llvm.create_pass_builder(machine, tuning)
    passes.getModulePassManager().run(module, passes)
