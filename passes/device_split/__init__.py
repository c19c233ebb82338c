"""``device-split``: one planned module -> host functions that call private device functions.

Afterwards every function carries ``device.target``, the only truth about where it runs, and
``device.scope``, the virtual device it runs on. A host function holds host code, copies and calls; a device
function holds code of one scope. See `device_regions` for how they are found.

For those who read the module, calls say how they reach their callee, see `devscope.analysis.split_functions`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp, StringAttr, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation
from xdsl.rewriter import InsertPoint, Rewriter

from devscope.analysis.call_graph import CallGraph
from devscope.analysis.captured_values import users_in
from devscope.analysis.classify import CONTROL_FLOW, Classifier, device_functions
from devscope.analysis.function_values import has_function_values
from devscope.analysis.host_only import is_host_only
from devscope.analysis.manager import AnalysisManager
from devscope.analysis.scope_analysis import ScopeAnalysis
from devscope.analysis.split_functions import CallKind, call_kind
from devscope.analysis.symbols import Symbols, is_claimed
from devscope.analysis.target_binding import HOST_KIND, TargetBinding
from devscope.dialects.device import (
    CALL_ATTR,
    COMPILER_ATTR,
    HOST_TARGET_ATTR,
    KERNEL_ATTR,
    NOALIAS_ATTR,
    PLACED_BY_ATTR,
    SCOPE_ATTR,
    TARGET_ATTR,
    DeviceCopyOp,
    ScopeAttr,
    TargetAttr,
)
from devscope.dialects.location import error_at, source_location
from devscope.dialects.names import op_name
from devscope.dialects.op_facts import facts_of
from devscope.dialects.scope_attribute import (
    ARGUMENTS,
    RESULTS,
    drop_scopes,
    set_signature_attributes,
    signature_attributes,
)
from devscope.errors import LoweringError
from devscope.passes.device_bind_target import DeviceBindTargetPass
from devscope.passes.device_split.device_regions import BlockSplit, outline_region
from devscope.passes.device_verify import PlannedModulePass
from devscope.rewriting.blocks import erase_operations, reorder
from devscope.rewriting.functions import (
    clone_function,
    drop_idle_kernels,
    fresh_name,
    redirect,
    taken_names,
    unique_name,
)


@dataclass(frozen=True)
class DeviceSplitPass(PlannedModulePass, DeviceBindTargetPass):
    """Outline maximal same-scope regions of a planned module into device functions.

    The module must be planned: ``device-verify`` holds for it. Functions without a target are bound first, with
    the same options.
    """

    name = "device-split"

    def run(self, analyses: AnalysisManager) -> bool:
        if _is_whole(analyses):
            _bind_to_host(analyses.module, analyses.host, TargetBinding.parse(self.targets))
            return True
        super().run(analyses)
        if _copy_shapes(analyses.module):
            analyses.invalidate()
        binding = TargetBinding.parse(self.targets)
        scopes = analyses.get(ScopeAnalysis)
        functions = list(scopes.symbols.functions.values())
        _reshape_by_sizes(functions, scopes)
        on_device = device_functions(functions, scopes)
        classifier = Classifier(scopes, on_device)
        taken = taken_names(analyses.module)
        functions = [function for function in functions if not is_claimed(function)]
        for function in functions:
            if function.sym_name.data not in on_device and function.body.blocks:
                _split_function(function, scopes, classifier, binding, taken)
        for function in functions:
            scope = on_device.get(function.sym_name.data)
            if scope is None:
                _finish_host_code(function, analyses.host, binding)
            else:
                _finish_device_function(function, scope, binding)
                drop_scopes(function.body)
        _reduce_to_memory_locations(analyses.module)
        drop_idle_kernels(analyses.module)
        analyses.invalidate()
        _mark_calls(analyses)
        return True


def _is_whole(analyses: AnalysisManager) -> bool:
    """Whether nothing can be taken out of the functions of a module, none of which is bound to anything."""
    symbols = analyses.get(Symbols)
    is_bound = any(not _BINDINGS.isdisjoint(function.attributes) for function in symbols.functions.values())
    return not is_bound and not has_function_values(symbols) and is_host_only(analyses.module, analyses.host)


_BINDINGS = frozenset({TARGET_ATTR, HOST_TARGET_ATTR, KERNEL_ATTR, COMPILER_ATTR})


def _bind_to_host(module: ModuleOp, host: ScopeAttr, binding: TargetBinding) -> None:
    _copy_shapes(module)
    for op in module.walk():
        for name in (SCOPE_ATTR, PLACED_BY_ATTR, CALL_ATTR):
            op.attributes.pop(name, None)
        if isinstance(op, FuncOp):
            op.attributes |= {SCOPE_ATTR: host, TARGET_ATTR: binding.target_of(host)}


def _copy_shapes(module: ModuleOp) -> bool:
    """A shape of TOSA is known where it is used: a function cannot take one. Those of other blocks are copied."""
    shapes = [op for op in module.walk() if op_name(op) == "tosa.const_shape"]
    uses = [(op, use) for op in shapes for use in list(op.results[0].uses)]
    moved = [(op, use) for op, use in uses if use.operation.parent is not op.parent]
    for op, use in moved:
        copy = op.clone()
        Rewriter.insert_op(copy, InsertPoint.before(use.operation))
        use.operation.operands[use.index] = copy.results[0]
    return bool(moved)


def _reshape_by_sizes(functions: Sequence[FuncOp], scopes: ScopeAnalysis) -> None:
    """A device function takes no tensor of the host. Raises LoweringError, located, for a shape that is one."""
    shaped = [op for function in functions for op in function.body.walk() if facts_of(op).host_operands]
    on_device = [op for op in shaped if not scopes.of_op(op).same_device(scopes.host)]
    if not on_device:
        return
    from devscope.passes.device_split.reshapes import reshape_by_sizes

    for op in on_device:
        scope = scopes.of_op(op)
        if not reshape_by_sizes(op, scope, scopes.host):
            raise LoweringError(
                f"'{op_name(op)}' on {scope.short()} takes a shape that is a tensor on the host, not scalars",
                source_location(op),
                ["leave it to the host, or write it with linalg and tensor, whose sizes are scalars"],
            )
    scopes.flow.invalidate()


def _finish_host_code(function: FuncOp, host: ScopeAttr, binding: TargetBinding) -> None:
    """What is left of a function once its regions are gone is compiled for its host part."""
    part = function.attributes.pop(HOST_TARGET_ATTR, None)
    target = function.attributes[TARGET_ATTR]
    if not isinstance(target, TargetAttr) or target.kind_name != HOST_KIND:
        function.attributes[TARGET_ATTR] = part or binding.target_of(host)
    function.attributes[SCOPE_ATTR] = host


def _finish_device_function(function: FuncOp, scope: ScopeAttr, binding: TargetBinding) -> None:
    own = function.attributes[TARGET_ATTR]
    target = binding.target_in(scope, own)
    if isinstance(own, TargetAttr) and own.device_type not in (target.device_type, scope.type_name):
        message = (
            f"function '{function.sym_name.data}' is for target '{own.kind_name}', but runs on {scope.short()}"
        )
        remedy = f"drop its '{TARGET_ATTR}': where a function runs follows from '{SCOPE_ATTR}'"
        raise error_at(function, message, remedy)
    function.attributes.pop(HOST_TARGET_ATTR, None)
    function.attributes |= {SCOPE_ATTR: scope, TARGET_ATTR: target, NOALIAS_ATTR: UnitAttr()}


def _split_function(
    function: FuncOp, scopes: ScopeAnalysis, classifier: Classifier, binding: TargetBinding, taken: set[str]
) -> None:
    blocks = list(function.body.blocks)
    split_blocks: list[Block] = []
    while blocks:
        block = blocks.pop()
        split = BlockSplit(block, classifier)
        for inner in split.control_flow:
            if op_name(inner) in CONTROL_FLOW:
                blocks.extend(b for region in inner.regions for b in region.blocks)
        dead = _only_cloned(block, split)
        if split.regions:
            _reorder(block, split)
        prefix = function.sym_name.data
        names = [unique_name(f"{prefix}_{region.scope.symbol_name}", taken) for region in split.regions]
        # Last region first: a region then sees the original values of the regions before it.
        for region, name in reversed(list(zip(split.regions, names, strict=True))):
            target = binding.target_in(region.scope, function.attributes[TARGET_ATTR])
            outlined = outline_region(region, split.clonable_on(region.scope), dead, name, target)
            if outlined is not None:
                Rewriter.insert_op(outlined, InsertPoint.after(function))
        erase_operations(dead)
        scopes.invalidate()  # Values of inner blocks may now be results of calls of new functions.
        split_blocks.append(block)
    # Not before all is split: what a block says holds for the blocks inside it.
    for block in split_blocks:
        for op in block.ops:
            op.attributes.pop(SCOPE_ATTR, None)


def _reorder(block: Block, split: BlockSplit) -> None:
    """Order by level; regions come first on theirs, so that each becomes contiguous."""
    position = {op: number for number, op in enumerate(block.ops)}
    region_of = {op: number for number, region in enumerate(split.regions) for op in region.members}
    movable = [op for op in position if op in split.levels]
    movable.sort(key=lambda op: (split.levels[op], op not in region_of, region_of.get(op, 0), position[op]))
    reorder(block, movable)


def _only_cloned(block: Block, split: BlockSplit) -> set[Operation]:
    """Scalar code that only regions use, each through a copy of its own, so that the original will go."""
    outlined = [region for region in split.regions if not region.is_call]
    region_scopes = {op: region.scope for region in outlined for op in region.members}
    used_on: dict[Operation, set[ScopeAttr]] = {}
    dead: set[Operation] = set()
    for op in reversed([op for op in block.ops if op in split.clonable]):
        users = users_in(block, op)
        scopes = {region_scopes[user] for user in users if user is not None and user in region_scopes}
        scopes.update(scope for user in users if user is not None for scope in used_on.get(user, ()))
        used_on[op] = scopes
        if all(user in region_scopes or user in dead for user in users) and all(
            split.can_clone(op, scope) for scope in scopes
        ):
            dead.add(op)
    return dead


def _reduce_to_memory_locations(module: ModuleOp) -> None:
    """Drop the targets of all scopes; copies that thereby go nowhere are dropped too."""
    for op in list(module.walk()):
        scope = op.attributes.get(SCOPE_ATTR)
        if isinstance(scope, ScopeAttr):
            op.attributes[SCOPE_ATTR] = scope.memory_location
        if isinstance(op, DeviceCopyOp):
            op.src, op.dst = op.src.memory_location, op.dst.memory_location
            if op.src == op.dst:
                Rewriter.replace_op(op, [], [op.operand])
        elif isinstance(op, FuncOp):
            types = op.function_type
            for side, count in ((ARGUMENTS, len(types.inputs)), (RESULTS, len(types.outputs))):
                scopes = signature_attributes(op, side, count)
                locations = [s.memory_location if isinstance(s, ScopeAttr) else s for s in scopes]
                set_signature_attributes(op, side, locations)


def _mark_calls(analyses: AnalysisManager) -> None:
    """Mark calls with ``device.call`` and launched functions with ``device.kernel``; marks that stand go.

    Functions that are both launched and called as external ones get a private copy for the latter: what is
    launched runs as a unit of its own, so that it must not be a part of another one at the same time.
    """
    for function in analyses.get(Symbols).functions.values():
        function.attributes.pop(KERNEL_ATTR, None)
    marked: dict[FuncOp, dict[CallKind, list[Operation]]] = {}
    for op, caller, callee in analyses.get(CallGraph).calls:
        if caller is None or callee is None:
            continue
        kind = call_kind(caller, callee)
        if kind is CallKind.PLAIN:
            op.attributes.pop(CALL_ATTR, None)
        else:
            op.attributes[CALL_ATTR] = StringAttr(kind.value)
            marked.setdefault(callee, {}).setdefault(kind, []).append(op)
    taken = taken_names(analyses.module)
    for callee, calls in marked.items():
        if len(calls) > 1:
            copy = clone_function(callee, fresh_name(f"{callee.sym_name.data}_extern", taken))
            for op in calls[CallKind.EXTERN]:
                redirect(op, copy.sym_name.data)
        if CallKind.LAUNCH in calls:
            callee.attributes[KERNEL_ATTR] = UnitAttr()
    analyses.invalidate()
