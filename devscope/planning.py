"""The first half of a compilation: parse, place, partition, plan and verify."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr

from devscope.analysis.host_only import is_host_only
from devscope.analysis.manager import AnalysisManager
from devscope.analysis.program_state import check_state
from devscope.analysis.target_binding import named_devices
from devscope.dialects.context import make_planning_context
from devscope.dialects.device import COMPILER_ATTR, STATE_ATTR, ScopeAttr, verify_device_attributes
from devscope.dialects.location import source_location
from devscope.errors import depth_reported
from devscope.lowering.entries import (
    Dtypes,
    Names,
    declared_dtypes,
    described_entries,
    entry_names,
    public_functions,
)
from devscope.lowering.global_state import keep_globals
from devscope.lowering.input_forms import bring_into_form, is_in_form, lower_first
from devscope.lowering.interop.bindings import without_dialect_modules
from devscope.lowering.interop.session import Session
from devscope.parsed_source import ParsedSource, parse_source
from devscope.partitioning import (
    OfStableHlo,
    claim_stablehlo,
    find_backends_of,
    partition_by_backends,
    place_by_rules,
    read_hints_of,
)
from devscope.passes.device_plan import Plan, PlanOptions, plan_module
from devscope.passes.device_plan.remarks import Remark
from devscope.passes.device_plan.report.source_names import SourceNames
from devscope.passes.device_verify import DeviceVerifyPass
from devscope.runtime.program import signatures
from devscope.runtime.state import StateSpec

if TYPE_CHECKING:
    from devscope.analysis.machine import Machine
    from devscope.backends.backend import Selected
    from devscope.compile_options import CompileOptions
    from devscope.passes.device_partition import Partition
    from devscope.runtime.structure import Structure


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


@depth_reported()
@without_dialect_modules()
def plan_source(
    source: Any, options: CompileOptions, without: Mapping[str, frozenset[str]] | None = None
) -> PlannedProgram:
    """Parse, partition and plan. ``without``: patterns that backends are not offered."""
    backends = find_backends_of(options.backends, without or {})
    parsed = source if isinstance(source, ParsedSource) else parse_source(source)
    session = Session(make_planning_context(), parsed.context)
    placed = read_hints_of(parsed, options)
    lower_first(parsed.module, session.run_passes, options.needs_kinds)
    globals_ = keep_globals(parsed.module)
    dtypes: Dtypes = {}
    given = parsed.imported.names if parsed.imported is not None else {}
    source_names = SourceNames(parsed.texts, {name: arguments for name, (arguments, _) in given.items()})
    names: dict[str, Names] | None = None
    early = OfStableHlo(parsed.module)
    if not is_in_form(parsed.module):
        ends = session.ends_to_xdsl(parsed.module)
        dtypes = declared_dtypes(ends)
        names = entry_names(ends, source_names.name)
        early = claim_stablehlo(session, parsed, backends, options)
        bring_into_form(early.rest, session.run_passes, options.needs_kinds)
    module = session.to_xdsl(early.rest)
    if early.functions:
        from devscope.lowering.claimed.stablehlo import put_back

        put_back(module, early.functions)
    placed += [one for one in place_by_rules(module, parsed, options) if not one.message.startswith(early.in_vain)]
    partition = None
    if backends or options.partition == "search":
        partition = partition_by_backends(session, module, backends, options)
        if early.partition is not None:
            partition.taken[:0] = early.partition.taken
            partition.refusals[:0] = early.partition.refusals
    if has_claimed(module):
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


def has_claimed(module: ModuleOp) -> bool:
    return any(COMPILER_ATTR in op.attributes for op in module.body.block.ops)


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
