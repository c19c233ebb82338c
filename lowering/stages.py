"""From a split module to a `Program`: every function through its target's pipeline, then one object file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from devscope.analysis.target_binding import HOST_KIND, TargetBinding
from devscope.dialects.device import TARGET_ATTR, TargetAttr
from devscope.dialects.location import source_location
from devscope.errors import LoweringError, OptionError, SourceLocation
from devscope.lowering import mlir_util
from devscope.lowering.boundary import DevicePart, VirtualDevice, cut_module
from devscope.lowering.bufferize import to_buffers
from devscope.lowering.checks.labels import Checks, argument_labels
from devscope.lowering.constants import ConstantTable
from devscope.lowering.copies import copy_directly
from devscope.lowering.entries import ENTRY_PREFIX, Signature, add_entry, add_state_entries, kept_on_devices
from devscope.lowering.interop.bindings import ir
from devscope.lowering.interop.session import Session
from devscope.lowering.kernels.schedule_report import ScheduleReport
from devscope.lowering.kernels.table import Row
from devscope.lowering.legal import check_names
from devscope.lowering.memory.link_functions import hidden_launches, link_functions, merge_modules
from devscope.lowering.memory.plan import MemoryOptions, count_state, memory_of_devices, plan_memory
from devscope.lowering.pipelines import pipeline
from devscope.lowering.results import mark_results
from devscope.lowering.runtime_calls import lower_to_runtime_calls, mark_flushes
from devscope.lowering.single_tasks import release_single_tasks
from devscope.lowering.target import (
    HOST_SLOT,
    ClaimedTarget,
    DeviceBinary,
    HostTarget,
    Options,
    Target,
    find_target,
)
from devscope.rewriting.functions import taken_names
from devscope.runtime.native import call_symbol
from devscope.runtime.program import Entry, Program
from devscope.runtime.seal import seal
from devscope.runtime.state import StateSpec

if TYPE_CHECKING:
    from devscope.lowering.claimed.functions import ClaimedFunction
    from devscope.lowering.claimed.host import CompileIr, HostParts

#: The states of a program that an observer sees, in order.
STAGES = ("schedule", "host-buffers", "launchers", "kernels", "memory", "host", "host-llvm")

#: Called with a stage and a module of the bindings, which it must not change; for ``host-llvm`` it is LLVM IR, as
#: text, for ``schedule`` a `ScheduleReport`.
Observer = Callable[[str, Any], None]

_HOST_NAME = "cpu:0"


def compile_split_module(
    session: Session,
    module: ModuleOp,
    binding: TargetBinding,
    observe: Observer,
    literals: Mapping[str, memoryview],
    memory_options: MemoryOptions,
    signatures: Mapping[str, Signature],
    check_indices: bool = False,
    rows: Sequence[Row] = (),
    device_options: Mapping[str, Options] | None = None,
    claimed: Sequence[ClaimedFunction] = (),
    state: Mapping[str, StateSpec] | None = None,
) -> Program:
    """Compile a split xDSL module, which is consumed. ``observe`` is shown the program on its way.

    ``signatures`` are those of its public functions, ``literals`` is the data of dense resources that MLIR does
    not have, by name. Raises LoweringError for what a target cannot compile, with its location in the source, and
    PlanError when a device needs more memory than its limit. ``check_indices``: whether indices and divisions are
    checked as the program runs. ``rows``: schedules that come before the built-in ones. ``device_options``: by
    virtual device, options that targets have where functions say no others. ``claimed``: what backends compile, of
    which ``module`` has declarations. ``state``: of public functions.
    """
    check_names(module)
    host = find_target(HOST_KIND)
    assert isinstance(host, HostTarget)
    options = _host_options(module, host)
    checks = Checks(
        argument_labels(module, {name: inputs for name, (inputs, _) in signatures.items()}), check_indices
    )
    devices = cut_module(module, binding)
    _check_claimed(module, claimed)
    for virtual, part in [(owner, part) for owner in devices for part in owner.parts]:
        part.given = (device_options or {}).get(virtual.spec.name, {})
        _check_options(part.target, part.attribute, part.location)
        part.target.prepare()
    with session.context:
        return _compile(
            session,
            module,
            host,
            options,
            devices,
            signatures,
            ConstantTable(literals),
            memory_options,
            checks,
            rows,
            observe,
            claimed,
            state or {},
        )


def _compile(
    session: Session,
    host_part: ModuleOp,
    host: HostTarget,
    options: Options,
    devices: list[VirtualDevice],
    signatures: Mapping[str, Signature],
    constants: ConstantTable,
    memory_options: MemoryOptions,
    checks: Checks,
    rows: Sequence[Row],
    observe: Observer,
    claimed: Sequence[ClaimedFunction],
    state: Mapping[str, StateSpec],
) -> Program:
    """Lower the host's code and all devices', whose binaries are filled in, and make a program of them."""
    module = session.to_mlir(host_part)
    linked = _link_claimed(module, session, host, options, claimed, checks) if claimed else None
    if release_single_tasks(module.operation):
        session.run_passes(module, pipeline("clean_up"))
    to_buffers(module, host, options, session.run_passes, constants, checks, for_kernels=True)
    schedules = host.read_schedules(options, rows)
    kernels_of_host = host.call_kernels(module, schedules, constants, options, session.run_passes)
    observe("schedule", ScheduleReport(module, schedules))
    if devices:
        copy_directly(module)
    session.run_passes(module, pipeline("own"))
    observe("host-buffers", module)
    kernels: dict[str, int] = {}
    taken = {mlir_util.symbol_name(op) for op in mlir_util.functions(module)}
    taken |= {name for virtual in devices for part in virtual.parts for name in taken_names(part.module)}
    for virtual, part in [(owner, part) for owner in devices for part in owner.parts]:
        if isinstance(part.target, ClaimedTarget):
            launchers = _lower_claimed(
                session, virtual, part, claimed, constants, checks, linked, partial(host.compile_ir, options)
            )
        else:
            launchers, binary = _lower_device(session, part, constants, taken, checks, rows, observe)
            kernels.update(virtual.add(binary))
        mark_flushes(launchers, virtual.spec.slot)
        merge_modules(module, launchers)
    functions = link_functions(module, session.run_passes)
    signatures, state = dict(signatures), dict(state)
    symbols = _add_entries(module, functions, signatures, state)
    scopes = {scope: virtual.spec.slot for virtual in devices for scope in virtual.scopes}
    # By the text of the memory space that a scope becomes in MLIR.
    slots = {str(ir.Attribute.parse(str(scope))): slot for scope, slot in scopes.items()}
    names = {HOST_SLOT: _HOST_NAME, **{virtual.spec.slot: virtual.spec.name for virtual in devices}}
    with hidden_launches(module):
        roots = {name: f"{ENTRY_PREFIX}{name}" for name in signatures}
        spaces = {"": HOST_SLOT, **slots}
        shared: list[tuple[int, int]] = []
        if devices and memory_options.shared:
            from devscope.lowering.shared_memory import share_memory, slot_pairs

            shared = share_memory(module, spaces, slot_pairs(names, memory_options.shared))
        arenas = plan_memory(module, spaces, roots, memory_options.planned)
        for name, spec in state.items():
            count_state(arenas, spaces, list(mlir_util.entry_block(functions[name]).arguments)[-len(spec.names) :])
        mark_results(module, roots.values())
        observe("memory", module)
        memory = memory_of_devices(arenas, names, constants.arrays, memory_options.limits)
    if linked is not None:
        linked.define(module)
    lower_to_runtime_calls(module, slots, kernels, checks.messages)
    observe("host", module)
    text, text_of_kernels = host.to_llvm(module, schedules, kernels_of_host, session.run_passes)
    observe("host-llvm", f"{text}\n{text_of_kernels}")
    code = host.compile_object(text, list(symbols.values()), options, kernels_of_host)
    program = Program(
        entries={name: Entry(call_symbol(symbols[name]), *signature) for name, signature in signatures.items()},
        host_object=code.data,
        host_triple=code.triple,
        host_cpu=code.cpu,
        host_features=code.features,
        devices=[virtual.spec for virtual in devices],
        constants=constants.specs(),
        constant_data=constants.arrays,
        arenas=[arena.spec for arena in memory.values() if arena.spec.places],
        shared=shared,
        objects=[] if linked is None else linked.objects,
        uses={} if linked is None else linked.uses,
        report={"memory": {name: needed.to_json() for name, needed in memory.items()}},
    )
    if state:
        program.report["state"] = {name: asdict(spec) for name, spec in state.items()}
    return seal(program)


def _add_entries(
    module: Any, functions: Mapping[str, Any], signatures: dict[str, Signature], state: dict[str, StateSpec]
) -> dict[str, str]:
    """The C symbols of the entries. What is kept on devices goes from ``signatures``; ``state`` says so then."""
    symbols: dict[str, str] = {}
    numbered = 0
    for name, (inputs, outputs) in list(signatures.items()):
        spec = state.get(name)
        kept = kept_on_devices(functions[name], len(spec.names), numbered) if spec is not None else []
        numbered += len(kept)
        symbols[name] = add_entry(module, functions[name], name, kept)
        if spec is None or not kept:
            continue
        arguments, results = {one.argument for one in kept}, {one.result for one in kept}
        first = len(inputs) - len(spec.names)
        spec = state[name] = replace(spec, on_devices=[spec.names[one.argument - first] for one in kept])
        given = [inputs[one.argument] for one in kept]
        signatures[name] = (
            [one for number, one in enumerate(inputs) if number not in arguments],
            [one for number, one in enumerate(outputs) if number not in results],
        )
        signatures[spec.load], signatures[spec.read] = (given, []), ([], given)
        loaded, read = add_state_entries(module, spec.load, spec.read, kept)
        symbols[spec.load], symbols[spec.read] = loaded, read
    return symbols


def _check_claimed(host_part: ModuleOp, claimed: Sequence[ClaimedFunction]) -> None:
    """Raise LoweringError, located, for what a backend claimed for its devices, which became the host's."""
    by_name = {one.name: one for one in claimed if one.device_type != HOST_KIND}
    for op in host_part.body.block.ops if by_name else ():
        if isinstance(op, func.FuncOp) and op.sym_name.data in by_name and TARGET_ATTR in op.attributes:
            one = by_name[op.sym_name.data]
            raise LoweringError(
                f"backend '{one.backend.name}' computes on devices of type '{one.device_type}', but what it "
                "claimed is built for the host",
                one.location,
                ["leave the backend out, or build for a device of its type"],
            )


def _link_claimed(
    module: Any,
    session: Session,
    host: HostTarget,
    options: Options,
    claimed: Sequence[ClaimedFunction],
    checks: Checks,
) -> HostParts:
    from devscope.lowering.claimed.host import HostParts, put_back  # most programs have no such functions

    linked, on_host = HostParts(), [one for one in claimed if one.device_type == HOST_KIND]
    put_back(module, session, on_host, checks.labels, partial(host.compile_ir, options), linked)
    return linked


def _lower_claimed(
    session: Session,
    virtual: VirtualDevice,
    part: DevicePart,
    claimed: Sequence[ClaimedFunction],
    constants: ConstantTable,
    checks: Checks,
    linked: HostParts | None,
    compile_ir: CompileIr,
) -> Any:
    """The adapters of a part whose code its backend compiles, and whose binaries are added to the device."""
    from devscope.lowering.claimed.device import check_part, lower_claimed

    own = check_part(part, claimed)
    assert linked is not None
    numbers = virtual.spec.slot, len(virtual.spec.kernels)
    launchers, binaries = lower_claimed(session, part, *numbers, own, constants, checks, linked, compile_ir)
    for binary in binaries:
        virtual.add(binary)
    return launchers


def _host_options(module: ModuleOp, target: HostTarget) -> Options:
    """The options for all host code, which becomes one object: what functions say of them must agree."""
    chosen = TargetAttr.get(target.name)
    for op in module.body.block.ops:
        attribute = op.attributes.get(TARGET_ATTR) if isinstance(op, func.FuncOp) else None
        if not isinstance(attribute, TargetAttr) or attribute.kind != chosen.kind or not attribute.option_values:
            continue
        if chosen.option_values and attribute != chosen:
            raise LoweringError(
                f"'{TARGET_ATTR}' is {attribute.short()} here and {chosen.short()} on another function",
                source_location(op),
                ["all functions on the host are compiled for one target"],
            )
        chosen = attribute
        _check_options(target, chosen, source_location(op))
    return chosen.option_values


def _check_options(target: Target, attribute: TargetAttr, location: SourceLocation | None) -> None:
    """Raise OptionError, located, for options that ``target`` cannot compile for."""
    try:
        target.check_options(attribute.option_values)
    except OptionError as error:
        error.location = location
        raise


def _lower_device(
    session: Session,
    part: DevicePart,
    constants: ConstantTable,
    taken: set[str],
    checks: Checks,
    rows: Sequence[Row],
    observe: Observer,
) -> tuple[Any, DeviceBinary]:
    """The launchers of a part, which are host code, and its kernels, compiled."""
    from devscope.lowering.gpu.outline_kernels import lower_device_functions
    from devscope.lowering.gpu.to_llvm import check_types, take_kernels

    target, options = part.target, part.options
    module = session.to_mlir(part.module)
    kernels = target.choose_kernels(options, rows)
    lower_device_functions(module, part, kernels, session.run_passes, constants, taken, checks, observe)
    observe("launchers", module)
    gpu_modules = take_kernels(module)
    observe("kernels", gpu_modules)
    if not gpu_modules.body.operations:
        return module, DeviceBinary()
    if "bf16" not in target.floats:
        from devscope.lowering.gpu.brain_floats import store_as_integers

        store_as_integers(gpu_modules, session.run_passes)
    check_types(gpu_modules, target, options)
    return module, target.compile_kernels(gpu_modules, session.run_passes, options)
