"""``device-sccp``: constants, extents and known results flow across the border of host and device, both ways.

What is known to be one scalar becomes a constant, also in and through other functions; a branch that is always
taken replaces its choice. A tensor that a device function is given and that is known to have one value
everywhere is made on the device, and one that the host gets from a device is made on the host: nothing is copied.
Constants' data that stays in MLIR is never looked at.
"""

from xdsl.dialects.builtin import TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from devscope.analysis.call_graph import CallGraph
from devscope.analysis.manager import AnalysisManager, ManagedPass
from devscope.analysis.scope_analysis import ScopeAnalysis
from devscope.analysis.split_functions import scope_of_function
from devscope.analysis.symbols import CALL, Symbols, function_of, is_claimed
from devscope.analysis.value_flow import first_carried, first_operand
from devscope.dialects.device import SCOPE_ATTR, DeviceCopyOp
from devscope.dialects.names import op_name
from devscope.passes.device_sccp.facts import Fact, splat
from devscope.passes.device_sccp.propagation import Propagation

_VALUE = "value"


class DeviceSccpPass(ManagedPass):
    """Propagate constants and extents through all calls of a split module, and fold what they decide."""

    name = "device-sccp"
    preserved = frozenset({Symbols})

    def run(self, analyses: AnalysisManager) -> bool:
        found = Propagation(analyses.get(CallGraph))
        scopes = analyses.get(ScopeAnalysis)
        # Found before anything changes, since the scope of a value is read off what carries it.
        claimed = any(map(is_claimed, found.graph.symbols.functions.values()))
        constants = [
            (value, constant)
            for value, fact in found.facts.items()
            if value.uses
            and not (claimed and _is_claimed(value))
            and (constant := _constant(value, fact, scopes)) is not None
        ]
        like = next((value.owner for value in found.facts if _is_constant(value)), None)
        assert not isinstance(like, Block)
        for value, constant in constants:
            found.facts[_replace(value, constant, like)] = found.facts[value]
        folded = False
        for function in found.graph.symbols.functions.values():
            if is_claimed(function):
                continue
            if function.body.blocks and function.body.blocks[0] in found.reached:
                folded |= _fold_control_flow(function.body, found)
        return folded or bool(constants)


def _is_claimed(value: SSAValue) -> bool:
    """Whether a value is of a function that a backend compiles."""
    owner = value.owner if isinstance(value.owner, Operation) else value.owner.parent_op()
    function = function_of(owner) if owner is not None and not isinstance(owner, FuncOp) else owner
    return isinstance(function, FuncOp) and is_claimed(function)


def _constant(value: SSAValue, fact: Fact, scopes: ScopeAnalysis) -> Attribute | None:
    """The constant that ``value`` should become, None if it should stay."""
    element = fact.element
    if element is None or _is_constant(value):
        return None
    if value.type == element.type:
        return element
    if not isinstance(value.type, TensorType) or not _crosses(value, scopes):
        return None
    type_: TensorType[Attribute] = value.type
    return splat(element, type_)


def _is_constant(value: SSAValue) -> bool:
    return isinstance(value, OpResult) and op_name(value.op) == "arith.constant"


def _crosses(value: SSAValue, scopes: ScopeAnalysis) -> bool:
    """Whether a tensor comes over the border to where this function could make it."""
    if isinstance(value, BlockArgument):
        parent = value.block.parent_op()
        if not isinstance(parent, FuncOp) or value.block is not parent.body.first_block:
            return False
        return scope_of_function(parent) is not None
    if not isinstance(value, OpResult) or not (isinstance(value.op, DeviceCopyOp) or op_name(value.op) == CALL):
        return False
    return scopes.of_value(value).same_device(scopes.host)


def _replace(value: SSAValue, attribute: Attribute, like: Operation | None) -> SSAValue:
    """Put a constant in the place of ``value``."""
    constant = _make(value.type, attribute, like)
    owner = value.owner
    where = InsertPoint.after(owner) if isinstance(owner, Operation) else InsertPoint.at_start(owner)
    holder = owner if isinstance(owner, Operation) else owner.parent_op()
    if holder is not None:
        constant.location = holder.location
    constant.results[0].name_hint = value.name_hint
    value.replace_all_uses_with(constant.results[0])
    Rewriter.insert_op(constant, where)
    return constant.results[0]


def _make(type_: Attribute, attribute: Attribute, like: Operation | None) -> Operation:
    """An ``arith.constant`` of the class of ``like``: importing xDSL's takes longer than all that happens here."""
    if like is None:
        from xdsl.dialects.arith import ConstantOp

        return ConstantOp.create(properties={_VALUE: attribute}, result_types=[type_])
    attributes, properties = dict(like.attributes), dict(like.properties)
    attributes.pop(SCOPE_ATTR, None)
    (properties if _VALUE in properties else attributes)[_VALUE] = attribute
    return type(like).create(result_types=[type_], attributes=attributes, properties=properties)


def _fold_control_flow(body: Region, found: Propagation) -> bool:
    """Replace choices by what is chosen, drop loops that do not run, and erase blocks that are not reached.

    Whether there was anything of that.
    """
    folded = False
    regions = [body]
    while regions:
        work, changed = _reached_operations(regions.pop(), found)
        folded |= changed
        while work:
            op = work.pop()
            taken = found.taken_region(op)
            if taken is not None:
                work += _take(op, taken)
            elif found.is_skipped(op):
                Rewriter.replace_op(op, (), op.operands[first_carried(op) :])
            else:
                regions += op.regions
                continue
            folded = True
    return folded


def _reached_operations(region: Region, found: Propagation) -> tuple[list[Operation], bool]:
    """What control reaches in a region, which loses all else; whether there was anything to lose."""
    reached = [block for block in region.blocks if block in found.reached]
    if not reached:
        return [], False  # The body of a loop that never runs: it must have one.
    branches = [op for block in reached if (op := block.last_op) is not None and op_name(op) == "cf.cond_br"]
    known = [branch for branch in branches if len(found.taken_successors(branch)) == 1]
    for branch in known:
        _fold_branch(branch, found)
    dead = [block for block in region.blocks if block not in found.reached]
    for block in dead:
        for op in block.walk():
            op.drop_all_references()
    for block in dead:
        region.detach_block(block)
        block.erase(safe_erase=False)
    return [op for block in reached for op in block.ops], bool(known or dead)


def _take(op: Operation, region: Region) -> list[Operation]:
    """Put the body of ``region`` in the place of ``op``; returns what stood in there."""
    block = region.first_block
    if block is None:  # an scf.if without else
        Rewriter.replace_op(op, (), ())
        return []
    *moved, end = block.ops
    Rewriter.inline_block(block, InsertPoint.before(op))
    Rewriter.replace_op(op, (), end.operands)
    Rewriter.erase_op(end)
    return moved


def _fold_branch(branch: Operation, found: Propagation) -> None:
    from xdsl.dialects.cf import BranchOp  # few programs have branches, and fewer known ones

    (number,) = found.taken_successors(branch)
    block, first = branch.successors[number], first_operand(branch, number)
    new = BranchOp(block, *branch.operands[first : first + len(block.args)])
    new.location = branch.location
    Rewriter.replace_op(branch, new)
