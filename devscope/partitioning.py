"""Who takes which part of a program: what rules place and backends claim, before anything is planned.

Most programs, and those for the host alone, do without what these functions import.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from devscope.analysis.target_binding import device_name, named_devices
from devscope.dialects.context import make_planning_context
from devscope.dialects.device import COMPOSITE_ATTR, PLACED_BY_ATTR, SCOPE_ATTR, ScopeAttr
from devscope.errors import SourceLocation, depth_reported
from devscope.lowering.global_state import keep_globals
from devscope.lowering.input_forms import bring_into_form, is_in_form, lower_first
from devscope.lowering.interop.bindings import children, without_dialect_modules
from devscope.lowering.interop.session import Session
from devscope.parsed_source import ParsedSource, parse_source
from devscope.passes.device_plan.remarks import Remark

if TYPE_CHECKING:
    from devscope.backends.backend import Selected
    from devscope.compile_options import CompileOptions
    from devscope.passes.device_partition import Partition, PartitionOptions
    from devscope.passes.device_partition.candidates import Candidate
    from devscope.passes.device_partition.cost_file import CostRow
    from devscope.passes.device_partition.costs import CostModel
    from devscope.passes.device_partition.graph import Graph
    from devscope.passes.device_partition.placement import Placed


def find_backends_of(names: Sequence[str], without: Mapping[str, frozenset[str]]) -> Sequence[Selected]:
    """The backends of these names. ``without``: patterns that they are not offered."""
    if not names:
        return ()
    from devscope.backends.registry import find_backends

    return [replace(one, without=without.get(one.name, frozenset())) for one in find_backends(names)]


def read_hints_of(parsed: ParsedSource, options: CompileOptions) -> list[Remark]:
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


def place_by_rules(module: ModuleOp, parsed: ParsedSource, options: CompileOptions) -> list[Remark]:
    """Apply rules, and the pragmas of the source."""
    if options.placement is None and not parsed.has_pragmas:
        return []
    from devscope.passes.device_place import place_module

    return place_module(module, options.placement)


def partition_by_backends(
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


class OfStableHlo(NamedTuple):
    """What backends take of StableHLO before it becomes linalg."""

    rest: Any
    """The module without the bodies of functions that stay StableHLO."""
    functions: Sequence[FuncOp] = ()
    """These, also those that stood in the program."""
    partition: Partition | None = None
    in_vain: tuple[str, ...] = ()
    """How warnings begin of rules that place what backends took."""


def claim_stablehlo(
    session: Session, parsed: ParsedSource, backends: Sequence[Selected], options: CompileOptions
) -> OfStableHlo:
    payload = parsed.module
    has_claimed = any(COMPOSITE_ATTR in op.attributes for op in children(payload.operation))
    if not backends and not has_claimed:
        return OfStableHlo(payload)
    from devscope.lowering.claimed.stablehlo import claim, hold, of_stablehlo

    own, found, rules = of_stablehlo(backends), None, set[str]()
    if not own and not has_claimed:
        return OfStableHlo(payload)
    module = session.to_xdsl(payload)
    if own:
        placed = _place_for_now(module, parsed, options)
        found = claim(module, own, _partition_options(module, own, options))
        for op in placed:  # what is left is placed when it is linalg
            rule = op.attributes.pop(PLACED_BY_ATTR)
            rules.add(f"{rule.data if isinstance(rule, StringAttr) else rule} fits nothing")
            del op.attributes[SCOPE_ATTR]
    held = hold(module)
    return OfStableHlo(session.to_mlir(module) if held else payload, held, found, tuple(rules))


def _place_for_now(module: ModuleOp, parsed: ParsedSource, options: CompileOptions) -> list[Operation]:
    """The operations that rules place which were not before."""
    known = {op for op in module.walk() if PLACED_BY_ATTR in op.attributes}
    place_by_rules(module, parsed, options)
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


@dataclass
class Offers:
    """What there is to choose from in a program, see `devscope.passes.device_partition`."""

    session: Session
    candidates: Sequence[tuple[Graph, Sequence[Candidate]]]
    """Per function."""
    costs: CostModel
    search: Callable[[Sequence[CostRow]], Sequence[Placed]]
    """What a search decides of the functions, with rows of costs."""
    literals: Mapping[str, memoryview]
    """See `ParsedSource.literals`."""


@depth_reported()
@without_dialect_modules()
def offers_of(source: Any, options: CompileOptions) -> Offers:
    """The candidates of a program's functions, for a search."""
    from devscope.backends.backend import Phase
    from devscope.backends.registry import run_passes_of
    from devscope.passes.device_partition import offers, searched
    from devscope.passes.device_partition.costs import Costs

    backends = find_backends_of(options.backends, {})
    parsed = parse_source(source)
    session = Session(make_planning_context(), parsed.context)
    read_hints_of(parsed, options)
    lower_first(parsed.module, session.run_passes, options.needs_kinds)
    keep_globals(parsed.module)
    found: list[tuple[Graph, Sequence[Candidate]]] = []
    if not is_in_form(parsed.module):
        found += _offers_of_stablehlo(session, parsed, backends, options)
        bring_into_form(parsed.module, session.run_passes, options.needs_kinds)
    module = session.to_xdsl(parsed.module)
    place_by_rules(module, parsed, options)
    for one in backends:
        run_passes_of(one.backend, Phase.BEFORE_PARTITIONING, module)
    chosen = _partition_options(module, backends, options)
    assert chosen is not None
    assert chosen.costs is not None

    def search(rows: Sequence[CostRow]) -> Sequence[Placed]:
        assert chosen is not None
        assert isinstance(chosen.costs, Costs)
        return searched(module, backends, replace(chosen, costs=replace(chosen.costs, rows=rows)))

    return Offers(session, [*found, *offers(module, backends, chosen)], chosen.costs, search, parsed.literals)


def _offers_of_stablehlo(
    session: Session, parsed: ParsedSource, backends: Sequence[Selected], options: CompileOptions
) -> list[tuple[Graph, Sequence[Candidate]]]:
    from devscope.lowering.claimed.stablehlo import of_stablehlo
    from devscope.passes.device_partition import offers

    if not (own := of_stablehlo(backends)):
        return []
    module = session.to_xdsl(parsed.module)
    place_by_rules(module, parsed, options)
    chosen = _partition_options(module, own, options)
    assert chosen is not None
    return [*offers(module, own, chosen)]
