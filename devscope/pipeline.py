"""The stages of a compilation, in order: parse, plan, verify, move copies, split, simplify, lower."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from xdsl.dialects.builtin import ModuleOp, StringAttr, SymbolRefAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from devscope.analysis.function_values import has_function_values, takes_functions
from devscope.analysis.host_only import is_host_only
from devscope.analysis.manager import AnalysisManager
from devscope.analysis.program_state import check_state
from devscope.analysis.symbols import Symbols, is_public
from devscope.analysis.target_binding import TargetBinding, device_name, named_devices
from devscope.dialects.context import make_planning_context
from devscope.dialects.device import (
    COMPILER_ATTR,
    COMPOSITE_ATTR,
    PLACED_BY_ATTR,
    SCOPE_ATTR,
    STATE_ATTR,
    ScopeAttr,
    verify_device_attributes,
)
from devscope.dialects.location import source_location
from devscope.dialects.scope_attribute import drop_placed_by
from devscope.errors import BackendError, DevscopeWarning, LoweringError, OptionError, SourceLocation
from devscope.lowering import stages
from devscope.lowering.entries import (
    Dtypes,
    Names,
    declared_dtypes,
    described_entries,
    entry_names,
    entry_signatures,
    public_functions,
    require_entries,
)
from devscope.lowering.global_state import keep_globals
from devscope.lowering.input_forms import bring_into_form, is_in_form, lower_first
from devscope.lowering.interop.bindings import children, without_dialect_modules
from devscope.lowering.interop.session import Session
from devscope.lowering.memory.plan import MemoryOptions
from devscope.lowering.stages import Observer, compile_split_module
from devscope.lowering.target import Options
from devscope.parsed_source import ParsedSource, parse_source
from devscope.passes import simplify_across_functions
from devscope.passes.device_plan import Plan, PlanOptions, plan_module
from devscope.passes.device_plan.remarks import Remark
from devscope.passes.device_plan.report.source_names import SourceNames
from devscope.passes.device_split import DeviceSplitPass
from devscope.passes.device_verify import DeviceVerifyPass
from devscope.passes.device_verify_split import DeviceVerifySplitPass
from devscope.runtime.drivers import device_types
from devscope.runtime.program import Entry, signatures
from devscope.runtime.state import StateSpec, seen_entries

if TYPE_CHECKING:
    from devscope.analysis.machine import Machine
    from devscope.backends.backend import Selected
    from devscope.compile_options import CompileOptions
    from devscope.lowering.claimed.functions import ClaimedFunction
    from devscope.passes.device_partition import Partition, PartitionOptions
    from devscope.passes.device_partition.candidates import Candidate
    from devscope.passes.device_partition.cost_file import CostRow
    from devscope.passes.device_partition.costs import CostModel
    from devscope.passes.device_partition.graph import Graph
    from devscope.passes.device_partition.placement import Placed
    from devscope.runtime.program import Program
    from devscope.runtime.structure import Structure

#: The states of a program that can be looked at, in order.
STAGES = ("plan", "split", *stages.STAGES)


@dataclass
class PlannedProgram:
    """A planned module with the session that owns its payload."""

    session: Session
    module: ModuleOp
    plan: Plan
    literals: Mapping[str, memoryview]
    """See `ParsedSource.literals`."""
    machine: Machine | None
    """What the options say of the machine."""
    analyses: AnalysisManager
    names: Mapping[str, Names]
    """Of arguments and results, by public function."""
    dtypes: Dtypes
    """Of these, where the source has others than the module that is compiled."""
    structures: Mapping[str, Structure]
    """How they nest, by public function, where they do."""
    state: Mapping[str, StateSpec]
    """Which of them are kept from call to call, by public function, where any are."""
    backends: Sequence[Selected] = ()
    partition: Partition | None = None
    """Who took what, if anybody was asked."""
    placed: Sequence[Remark] = ()
    """What placing by attributes and rules has to say."""
    has_hints: bool = False
    """See `ParsedSource.has_hints`."""
    host_only: bool = False
    """Whether there is nothing to split, nor to verify."""


@contextmanager
def _depth_reported() -> Generator[None]:
    """xDSL walks regions recursively: turns the end of Python's stack into a LoweringError."""
    try:
        yield
    except RecursionError:
        raise LoweringError(
            "the program has too many regions inside each other", notes=["some hundreds are possible"]
        ) from None


@_depth_reported()
@without_dialect_modules()
def plan_source(
    source: Any, options: CompileOptions, without: Mapping[str, frozenset[str]] | None = None
) -> PlannedProgram:
    """Parse, partition and plan. ``without``: patterns that backends are not offered."""
    backends = _find_backends(options.backends, without or {})
    parsed = source if isinstance(source, ParsedSource) else parse_source(source)
    session = Session(make_planning_context(), parsed.context)
    placed = _read_hints(parsed, options)
    lower_first(parsed.module, session.run_passes, options.needs_kinds)
    globals_ = keep_globals(parsed.module)
    dtypes: Dtypes = {}
    given = parsed.imported.names if parsed.imported is not None else {}
    source_names = SourceNames(parsed.texts, {name: arguments for name, (arguments, _) in given.items()})
    names: dict[str, Names] | None = None
    early = _OfStableHlo(parsed.module)
    if not is_in_form(parsed.module):
        ends = session.ends_to_xdsl(parsed.module)
        dtypes = declared_dtypes(ends)
        names = entry_names(ends, source_names.name)
        early = _claim_stablehlo(session, parsed, backends, options)
        bring_into_form(early.rest, session.run_passes, options.needs_kinds)
    module = session.to_xdsl(early.rest)
    if early.functions:
        from devscope.lowering.claimed.stablehlo import put_back

        put_back(module, early.functions)
    placed += [one for one in _place(module, parsed, options) if not one.message.startswith(early.in_vain)]
    partition = None
    if backends or options.partition == "search":
        partition = _partition(session, module, backends, options)
        if early.partition is not None:
            partition.taken[:0] = early.partition.taken
            partition.refusals[:0] = early.partition.refusals
    if _has_claimed(module):
        from devscope.lowering.claimed.functions import place

        place(module, backends)
    placed[:0] = [Remark("warning", text, source_location(op)) for op, text in verify_device_attributes(module)]
    machine = None
    if options.machine_text is not None:
        from devscope.analysis.machine import with_devices
        from devscope.analysis.machine_file import parse_machine

        machine = parse_machine(options.machine_text, options.machine_name)
        if options.machine is None:
            machine = with_devices(machine, named_devices(module))
    plan_options = PlanOptions(
        default=ScopeAttr.parse_text(options.default),
        arguments=options.arguments,
        completion=options.completion,
        machine=machine if options.completion == "min-cost" else None,
    )
    if names is None:  # planning puts copies in front of what is returned
        names = entry_names(module, source_names.name)
    if parsed.imported is not None:
        names |= {name: ends for name, ends in given.items() if name in names}
        dtypes = {**dtypes, **parsed.imported.dtypes}
    names |= _names_of_globals(names, globals_)
    state = _state(module, parsed, names)
    plan = plan_module(module, plan_options, source_names)
    plan.said = [*placed, *plan.said]
    if options.placement is not None and options.placement.default is not None:
        plan.default_reason = options.placement.default.text
    plan.signatures = signatures(described_entries(module, names, dtypes))
    analyses = AnalysisManager(module)
    host_only = is_host_only(module)
    if not host_only:
        analyses.run(DeviceVerifyPass())
    structures = parsed.imported.structures if parsed.imported is not None else {}
    return PlannedProgram(
        session,
        module,
        plan,
        parsed.literals,
        machine,
        analyses,
        names,
        dtypes,
        structures,
        state,
        backends,
        partition,
        placed,
        parsed.has_hints,
        host_only,
    )


def _names_of_globals(
    names: Mapping[str, Names], globals_: Mapping[str, tuple[str, list[str]]]
) -> dict[str, Names]:
    """Names of arguments and results where the last are globals, which `keep_globals` has made state."""
    found: dict[str, Names] = {}
    for function, (initial, kept) in globals_.items():
        inputs, outputs = names[function]
        found[function] = [*inputs[: -len(kept)], *kept], [*outputs[: -len(kept)], *kept]
        found[initial] = [], kept
    return found


def _state(module: ModuleOp, parsed: ParsedSource, names: Mapping[str, Names]) -> dict[str, StateSpec]:
    """What ``device.state`` on functions says, which is written on those of an imported source."""
    given = parsed.imported.state if parsed.imported is not None else {}
    for function in public_functions(module) if given else ():
        if (spec := given.get(function.sym_name.data)) is not None:
            function.attributes[STATE_ATTR] = SymbolRefAttr(spec.initial)
    found = check_state(module)
    state = {name: spec for name, spec in given.items() if name in found}
    for name, initial in found.items():
        if name not in state:
            count = len(names[initial][1])
            state[name] = StateSpec(names[name][0][-count:], initial)
    return state


@dataclass
class Offers:
    """What there is to choose from in a program, see `devscope.passes.device_partition`."""

    session: Session
    candidates: Sequence[tuple[Graph, Sequence[Candidate]]]
    """Per function."""
    costs: CostModel
    search: Callable[[Sequence[CostRow]], Sequence[Placed]]
    """What a search decides of the functions, with rows of costs."""


@without_dialect_modules()
def offers_of(source: Any, options: CompileOptions) -> Offers:
    """The candidates of a program's functions, for a search."""
    from devscope.backends.backend import Phase
    from devscope.backends.registry import run_passes_of
    from devscope.passes.device_partition import offers, searched
    from devscope.passes.device_partition.costs import Costs

    backends = _find_backends(options.backends, {})
    parsed = parse_source(source)
    session = Session(make_planning_context(), parsed.context)
    _read_hints(parsed, options)
    lower_first(parsed.module, session.run_passes, options.needs_kinds)
    keep_globals(parsed.module)
    found: list[tuple[Graph, Sequence[Candidate]]] = []
    if not is_in_form(parsed.module):
        found += _offers_of_stablehlo(session, parsed, backends, options)
        bring_into_form(parsed.module, session.run_passes, options.needs_kinds)
    module = session.to_xdsl(parsed.module)
    _place(module, parsed, options)
    for one in backends:
        run_passes_of(one.backend, Phase.BEFORE_PARTITIONING, module)
    chosen = _partition_options(module, backends, options)
    assert chosen is not None
    assert chosen.costs is not None

    def search(rows: Sequence[CostRow]) -> Sequence[Placed]:
        assert chosen is not None
        assert isinstance(chosen.costs, Costs)
        return searched(module, backends, replace(chosen, costs=replace(chosen.costs, rows=rows)))

    return Offers(session, [*found, *offers(module, backends, chosen)], chosen.costs, search)


def _offers_of_stablehlo(
    session: Session, parsed: ParsedSource, backends: Sequence[Selected], options: CompileOptions
) -> list[tuple[Graph, Sequence[Candidate]]]:
    from devscope.lowering.claimed.stablehlo import of_stablehlo
    from devscope.passes.device_partition import offers

    if not (own := of_stablehlo(backends)):
        return []
    module = session.to_xdsl(parsed.module)
    _place(module, parsed, options)
    chosen = _partition_options(module, own, options)
    assert chosen is not None
    return [*offers(module, own, chosen)]


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


@_depth_reported()
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


def _find_backends(names: Sequence[str], without: Mapping[str, frozenset[str]]) -> Sequence[Selected]:
    if not names:
        return ()
    from devscope.backends.registry import find_backends

    return [replace(one, without=without.get(one.name, frozenset())) for one in find_backends(names)]


def _falls_back(error: BackendError, options: CompileOptions, without: dict[str, frozenset[str]]) -> bool:
    """Whether to try again without the patterns that failed, which are then added to ``without``."""
    asked = any(one.name == error.backend and one.fallback for one in _find_backends(options.backends, {}))
    known = without.get(error.backend, frozenset[str]())
    if not asked or error.patterns <= known:
        return False
    without[error.backend] = known | error.patterns
    warnings.warn(DevscopeWarning(f"{error.message}; devscope compiles it"), stacklevel=2)
    return True


def _partition(
    session: Session, module: ModuleOp, backends: Sequence[Selected], options: CompileOptions
) -> Partition:
    """Make what backends claim functions of theirs, before anything is planned."""
    from devscope.backends.backend import Phase
    from devscope.backends.registry import check_operations, run_passes_of
    from devscope.passes.device_partition import partition_module

    for one in backends:
        run_passes_of(one.backend, Phase.BEFORE_PARTITIONING, module)
    check_operations(backends, partial(_may_have, session))
    found = partition_module(module, backends, _partition_options(module, backends, options))
    for one in backends:
        run_passes_of(one.backend, Phase.AFTER_PARTITIONING_0, module)
    return found


def _may_have(session: Session, operation: str) -> bool:
    """Whether patterns may see such an operation."""
    return "*" in operation or session.may_have(operation)


class _OfStableHlo(NamedTuple):
    """What backends take of StableHLO before it becomes linalg."""

    rest: Any
    """The module without the bodies of functions that stay StableHLO."""
    functions: Sequence[FuncOp] = ()
    """These, also those that stood in the program."""
    partition: Partition | None = None
    in_vain: tuple[str, ...] = ()
    """How warnings begin of rules that place what backends took."""


def _claim_stablehlo(
    session: Session, parsed: ParsedSource, backends: Sequence[Selected], options: CompileOptions
) -> _OfStableHlo:
    payload = parsed.module
    if not backends and not any(COMPOSITE_ATTR in op.attributes for op in children(payload.operation)):
        return _OfStableHlo(payload)
    from devscope.lowering.claimed.stablehlo import claim, hold, of_stablehlo

    own, found, rules, module = of_stablehlo(backends), None, set[str](), session.to_xdsl(payload)
    if own:
        placed = _place_for_now(module, parsed, options)
        found = claim(module, own, _partition_options(module, own, options))
        for op in placed:  # what is left is placed when it is linalg
            rule = op.attributes.pop(PLACED_BY_ATTR)
            rules.add(f"{rule.data if isinstance(rule, StringAttr) else rule} fits nothing")
            del op.attributes[SCOPE_ATTR]
    held = hold(module)
    return _OfStableHlo(session.to_mlir(module) if held else payload, held, found, tuple(rules))


def _place_for_now(module: ModuleOp, parsed: ParsedSource, options: CompileOptions) -> list[Operation]:
    """The operations that rules place which were not before."""
    known = {op for op in module.walk() if PLACED_BY_ATTR in op.attributes}
    _place(module, parsed, options)
    return [op for op in module.walk() if PLACED_BY_ATTR in op.attributes and op not in known]


def _partition_options(
    module: ModuleOp, backends: Sequence[Selected], options: CompileOptions
) -> PartitionOptions | None:
    """How to partition; a search takes the devices that are described, or that the program names."""
    from devscope.passes.device_partition import PartitionOptions

    if options.partition != "search":
        return None
    from devscope.analysis.machine_file import parse_machine
    from devscope.passes.device_partition.cost_file import parse_costs
    from devscope.passes.device_partition.costs import cost_model

    own = {backend.device for backend in backends}
    machine = None
    if options.machine_text is not None:
        machine = parse_machine(options.machine_text, options.machine_name)
    described = machine.devices if machine is not None else ()
    default = device_name(ScopeAttr.parse_text(options.default))
    devices = ["cpu:0", *named_devices(module), default, *(one for one in described if one not in own)]
    rows = parse_costs(options.costs_text or "", os.fspath(options.costs or ""))
    if any(row.structure for row in rows):
        from devscope.machine_name import machine_name

        rows = [row for row in rows if not row.structure or row.machine == machine_name()]
    return PartitionOptions(
        "search",
        list(dict.fromkeys(device for device in devices if device == "cpu:0" or device not in own)),
        cost_model([*devices, *own], machine, rows),
        options.arguments == "host",
        time_limit=options.search_limit,
    )


def _read_hints(parsed: ParsedSource, options: CompileOptions) -> list[Remark]:
    """Make scopes of what the source says of places in words of others."""
    if not parsed.has_hints:
        return []
    from devscope.lowering.placement_hints import read_hints

    found: list[Remark] = []
    devices = options.placement.devices if options.placement is not None else ()

    def report(text: str, where: SourceLocation | None) -> None:
        found.append(Remark("remark", text, where))

    read_hints(parsed.module, options.default, devices, report)
    return found


def _place(module: ModuleOp, parsed: ParsedSource, options: CompileOptions) -> list[Remark]:
    """Apply rules, and the pragmas of the source."""
    if options.placement is None and not parsed.has_pragmas:
        return []
    from devscope.passes.device_place import place_module

    return place_module(module, options.placement)


def _finish_placing(planned: PlannedProgram, report: dict[str, object]) -> None:
    """The report has all reasons: operations that differ by these alone become one."""
    report["placing"] = [one.text for one in planned.placed if one.severity == "warning"]
    annotated = (op for part in planned.plan.parts for op in part.system.annotated)
    if planned.has_hints or any(PLACED_BY_ATTR in op.attributes for op in annotated):
        drop_placed_by(planned.module)


def _has_claimed(module: ModuleOp) -> bool:
    return any(COMPILER_ATTR in op.attributes for op in module.body.block.ops)


def _take_out_claimed(module: ModuleOp, backends: Sequence[Selected]) -> Sequence[ClaimedFunction]:
    """The functions that backends compile; what comes next sees their signatures."""
    if backends:
        from devscope.backends.backend import Phase
        from devscope.backends.registry import run_passes_of

        for one in backends:
            run_passes_of(one.backend, Phase.AFTER_PARTITIONING_1, module)
    if not _has_claimed(module):
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
