"""The stages of a compilation, in order: parse, plan, verify (all in planning.py), move copies, split, simplify,
lower."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ModuleOp

from devscope.analysis.function_values import has_function_values, takes_functions
from devscope.analysis.manager import AnalysisManager
from devscope.analysis.symbols import Symbols, is_public
from devscope.analysis.target_binding import TargetBinding, named_devices
from devscope.dialects.device import PLACED_BY_ATTR
from devscope.dialects.scope_attribute import drop_placed_by
from devscope.errors import BackendError, DevscopeWarning, OptionError, depth_reported
from devscope.lowering import stages
from devscope.lowering.entries import entry_signatures, require_entries
from devscope.lowering.interop.bindings import without_dialect_modules
from devscope.lowering.memory.plan import MemoryOptions
from devscope.lowering.stages import Observer, compile_split_module
from devscope.lowering.target import Options
from devscope.partitioning import find_backends_of
from devscope.passes import simplify_across_functions
from devscope.passes.device_plan import Plan
from devscope.passes.device_split import DeviceSplitPass
from devscope.passes.device_verify import DeviceVerifyPass
from devscope.passes.device_verify_split import DeviceVerifySplitPass
from devscope.planning import PlannedProgram, has_claimed, plan_source
from devscope.runtime.drivers import device_types
from devscope.runtime.program import Entry
from devscope.runtime.state import seen_entries

if TYPE_CHECKING:
    from devscope.backends.backend import Selected
    from devscope.compile_options import CompileOptions
    from devscope.lowering.claimed.functions import ClaimedFunction
    from devscope.runtime.program import Program

#: The states of a program that can be looked at, in order.
STAGES = ("plan", "split", *stages.STAGES)

Admission = Callable[[Mapping[str, Entry], list[str], Mapping[str, str]], Mapping[str, Options]]
"""Called with a program's entries, its public functions that are none, and the target kinds of its devices. Gives
options of targets of these, which count where the program says no others."""


def compile_source(
    source: Any, options: CompileOptions, observe: Observer | None = None, admit: Admission | None = None
) -> Program:
    """Compile a program; ``observe`` is called with the name and the IR of every stage in `STAGES`.

    ``admit`` is called before anything is lowered, which is what takes time, and may raise an error. Where a
    backend with the option ``fallback`` fails, the program is compiled again without the pattern, with a warning.
    """
    without: dict[str, frozenset[str]] = {}
    while True:
        try:
            return _compile_source(source, options, observe, admit, without)
        except BackendError as error:
            if not _falls_back(error, options, without):
                raise


@depth_reported()
@without_dialect_modules()
def _compile_source(
    source: Any,
    options: CompileOptions,
    observe: Observer | None,
    admit: Admission | None,
    without: Mapping[str, frozenset[str]],
) -> Program:
    planned = plan_source(source, options, without)
    show: Observer = observe or (lambda stage, payload: None)
    if observe is not None:
        observe("plan", planned.session.to_mlir(planned.module))
    require_entries(planned.module)
    _check_targets(planned.module, options)
    report = planned.plan.to_json()  # names values, which the split and the lowering replace
    _finish_placing(planned, report)
    binding = TargetBinding(dict(options.targets))
    analyses = planned.analyses
    closed = _call_by_name(analyses)
    claimed = _take_out_claimed(planned.module, planned.backends)
    if _leave_rest_to_host(analyses, planned) or planned.plan.copies:
        _move_copies(analyses, planned.plan, report)
    analyses.run(DeviceSplitPass(targets=tuple(f"{device}={kind}" for device, kind in options.targets.items())))
    if not planned.host_only:
        analyses.run(DeviceVerifySplitPass())
    if simplify_across_functions(analyses):
        _order_for_devices(analyses, options.chunks)
        analyses.run(DeviceVerifyPass())
        analyses.run(DeviceVerifySplitPass())
    if observe is not None:
        observe("split", planned.session.to_mlir(planned.module))
    shared = planned.machine.shared_pairs() if planned.machine is not None else frozenset[frozenset[str]]()
    memory = MemoryOptions(options.storage == "planned", options.memory_limits, shared)
    types = entry_signatures(planned.module, planned.names, planned.dtypes)
    device_options: Mapping[str, Options] = {}
    if admit is not None:
        named = () if planned.host_only else named_devices(planned.module)
        kinds = {name: binding.kind_of(name) for name in named if name != "cpu:0"}
        signatures_ = {name: Entry("", *signature) for name, signature in types.items()}
        device_options = admit(seen_entries(signatures_, planned.state), closed, kinds)
    program = compile_split_module(
        planned.session,
        planned.module,
        binding,
        show,
        planned.literals,
        memory,
        types,
        options.checks == "on",
        options.all_rows(),
        device_options,
        claimed,
        planned.state,
    )
    program.report["plan"] = report
    if planned.partition is not None:
        program.report["partition"] = planned.partition.to_json()
    program.report["options"] = options.to_json()
    if planned.machine is not None:
        described = planned.machine.devices.values()
        program.report["cores"] = {device.name: device.cores for device in described if device.cores is not None}
    if closed:
        program.report["closed"] = closed
    if planned.structures:
        program.report["structures"] = {name: asdict(found) for name, found in planned.structures.items()}
    if claimed:
        program.report["backends"] = [taken for one in claimed for taken in one.to_json()]
    return program


# Most programs, and those for the host alone, do without what these import.


def _call_by_name(analyses: AnalysisManager) -> list[str]:
    """Leave no function value in a module; the public functions that take or return any, which are no entries."""
    symbols = analyses.get(Symbols)
    if not has_function_values(symbols):
        return []
    from devscope.passes.device_defunctionalize import DeviceDefunctionalizePass

    closed = [
        name for name, function in symbols.functions.items() if is_public(function) and takes_functions(function)
    ]
    analyses.run(DeviceDefunctionalizePass())
    return closed


def _falls_back(error: BackendError, options: CompileOptions, without: dict[str, frozenset[str]]) -> bool:
    """Whether to try again without the patterns that failed, which are then added to ``without``."""
    asked = any(one.name == error.backend and one.fallback for one in find_backends_of(options.backends, {}))
    known = without.get(error.backend, frozenset[str]())
    if not asked or error.patterns <= known:
        return False
    without[error.backend] = known | error.patterns
    warnings.warn(DevscopeWarning(f"{error.message}; devscope compiles it"), stacklevel=2)
    return True


def _finish_placing(planned: PlannedProgram, report: dict[str, object]) -> None:
    """The report has all reasons: operations that differ by these alone become one."""
    report["placing"] = [one.text for one in planned.placed if one.severity == "warning"]
    annotated = (op for part in planned.plan.parts for op in part.system.annotated)
    if planned.has_hints or any(PLACED_BY_ATTR in op.attributes for op in annotated):
        drop_placed_by(planned.module)


def _take_out_claimed(module: ModuleOp, backends: Sequence[Selected]) -> Sequence[ClaimedFunction]:
    """The functions that backends compile; what comes next sees their signatures."""
    if backends:
        from devscope.backends.backend import Phase
        from devscope.backends.registry import run_passes_of

        for one in backends:
            run_passes_of(one.backend, Phase.AFTER_PARTITIONING_1, module)
    if not has_claimed(module):
        return ()
    from devscope.lowering.claimed.functions import take_out

    return take_out(module)


def _leave_rest_to_host(analyses: AnalysisManager, planned: PlannedProgram) -> bool:
    """What backends with devices of their own did not claim there."""
    named = () if planned.host_only else named_devices(planned.module)
    types = {name.partition(":")[0] for name in named}.difference(device_types())
    if not types:
        return False
    from devscope.lowering.claimed.functions import own_devices
    from devscope.rewriting.host_rest import leave_to_host

    return leave_to_host(analyses, own_devices(types), planned.plan.placed_operations())


def _move_copies(analyses: AnalysisManager, plan: Plan, report: dict[str, object]) -> None:
    from devscope.passes.device_move_copies import DeviceMoveCopiesPass

    warnings = [remark for remark in plan.remarks if remark.severity == "warning"]
    if analyses.run(DeviceMoveCopiesPass()):
        report["warnings"] = [warning.text for warning in warnings if warning.holds]


def _order_for_devices(analyses: AnalysisManager, chunks: int) -> None:
    """Few copies, devices that start early, and a host that waits late, in a split and simplified module."""
    from devscope.passes.device_move_copies import DeviceMoveCopiesPass
    from devscope.passes.device_overlap import DeviceOverlapPass
    from devscope.passes.device_pipeline_loops import DevicePipelineLoopsPass

    analyses.run(DeviceMoveCopiesPass())  # once more: dead operations needed copies, too
    if chunks > 1:
        from devscope.passes import device_chunk_copies

        analyses.run(device_chunk_copies.DeviceChunkCopiesPass(chunks, device_chunk_copies.LEAST_BYTES))
    analyses.run(DevicePipelineLoopsPass())
    analyses.run(DeviceOverlapPass())


def _check_targets(module: ModuleOp, options: CompileOptions) -> None:
    """Raise OptionError for a virtual device that the options name but that does not occur."""
    targets = {name for name in options.targets if ":" in name}
    if not targets and not options.memory_limits:
        return
    used = sorted({"cpu:0", *named_devices(module)})
    for what, named in (("device mapping names", targets), ("memory limits name", {*options.memory_limits})):
        unused = sorted(named.difference(used))
        if unused:
            raise OptionError(
                f"the {what} '{unused[0]}', which the program does not use",
                notes=[f"the program uses: {', '.join(used)}"],
            )
