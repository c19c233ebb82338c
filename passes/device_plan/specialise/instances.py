"""Functions planned for one assignment each: the function itself, or a clone of it.

While planning is under way there is one ``func.constant`` per use, so that each use of a function may be planned
for other scopes; afterwards those that name one function are one again.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from xdsl.dialects.builtin import IntAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.rewriter import InsertPoint, Rewriter

from devscope.passes.device_plan.report.diagnostics import DiagnosticFormatter
from devscope.passes.device_plan.report.plan import Clone
from devscope.passes.device_plan.scope_table import OPEN
from devscope.passes.device_plan.signatures import Assignment, CallSite, InstanceRequest, Signature
from devscope.passes.device_plan.specialise.call_graph import Unit, has_frame
from devscope.passes.device_plan.system import System
from devscope.rewriting.functions import redirect, taken_names

_GROUP = "device.constant_group"
"""Marks constants that were one, also in clones of their functions. Never leaves planning."""


@dataclass(eq=False)
class Instance:
    """A unit planned for one assignment."""

    unit: Unit
    functions: dict[str, FuncOp]
    """By the names that the unit has for them: the functions themselves, or clones."""
    system: System
    request: InstanceRequest | None
    """The first one, which it was planned for."""
    asked: set[tuple[str, Assignment, int]] = field(default_factory=set[tuple[str, Assignment, int]])
    """The keys of all requests that it serves."""

    def assignment(self, name: str) -> Assignment:
        return final_assignment(self.system, self.system.signatures[name])

    def serves(self, request: InstanceRequest) -> bool:
        """Whether another request may use this instance, too."""
        frame = self.request.frame if self.request is not None else OPEN
        return request.frame in (OPEN, frame) and self.assignment(request.name) == request.assignment


def final_assignment(system: System, signature: Signature) -> Assignment:
    """The scopes of a signature in a completed system."""
    return tuple(map(system.domains.scope_of, system.domains.first_order(signature.node)))


def request_of(system: System, site: CallSite) -> InstanceRequest:
    """What a use of a function in a completed system asks for."""
    assignment = final_assignment(system, site.signature)
    # The scope of a placed call may have left the device's number open.
    frame = assignment[0] if assignment and site.frame != OPEN else site.frame
    return InstanceRequest(site.name, assignment, site.op, OPEN if has_frame(site.signature.op) else frame)


def insert_clones(module: ModuleOp, instances: Sequence[Instance], formatter: DiagnosticFormatter) -> list[Clone]:
    """Put the clones of completed instances into the module, each after its original, and name them.

    Makes every use name the instance that was planned for it. Returns the clones.
    """
    taken = taken_names(module)
    last: dict[FuncOp, Operation] = {}
    clones: list[Clone] = []
    reached: dict[tuple[str, Assignment, int], FuncOp] = {}
    for instance in instances:
        for name, original in instance.unit.functions.items():
            func = instance.functions[name]
            if func is not original:
                func.properties["sym_name"] = StringAttr(_clone_name(instance, name, taken))
                module.body.block.insert_op_after(func, last.get(original, original))
                last[original] = func
                user = instance.request.op if instance.request is not None else None
                clones.append(Clone(func.sym_name.data, name, formatter.op(user)))
        reached.update((key, instance.functions[key[0]]) for key in instance.asked)
    for instance in instances:
        for site in instance.system.sites:
            target = instance.functions.get(site.name)
            if target is None:
                target = reached[request_of(instance.system, site).key]
            if target.sym_name.data != site.name:
                redirect(site.op, target.sym_name.data)
    return clones


def _clone_name(instance: Instance, name: str, taken: set[str]) -> str:
    """A name that says where the clone runs: ``f_cuda_0``; of several scopes, each once, arguments first."""
    scopes = dict.fromkeys(instance.assignment(name))
    texts = [instance.system.scopes.attributes[scope].short() for scope in scopes]
    base = "_".join([name, *("".join(c if c.isalnum() else "_" for c in text) for text in texts)])
    found, number = base, 1
    while found in taken:
        found, number = f"{base}_{number}", number + 1
    taken.add(found)
    return found


@contextmanager
def one_constant_per_use(functions: Sequence[FuncOp]) -> Generator[list[FuncOp]]:
    """Split the constants of ``functions``; clones made meanwhile are to be added to the list that is yielded."""
    # A single function can only name itself, and is planned once.
    split = [func for func in functions if _split(func)] if len(functions) > 1 else []
    try:
        yield split
    finally:
        for func in dict.fromkeys(split):
            _merge(func)


def _constants(func: FuncOp) -> list[Operation]:
    return [op for op in func.walk() if op.name == "func.constant"]


def _split(func: FuncOp) -> bool:
    """Whether a constant had more than one use."""
    constants = [op for op in _constants(func) if not op.results[0].has_one_use()]
    if not constants:
        return False
    position = {op: number for number, op in enumerate(func.walk())}
    for group, op in enumerate(constants):
        uses = sorted(op.results[0].uses, key=lambda use: (position[use.operation], use.index))
        op.attributes[_GROUP] = IntAttr(group)
        last = op
        for use in uses[1:]:
            clone = op.clone()
            Rewriter.insert_op(clone, InsertPoint.after(last))
            use.operation.operands[use.index] = clone.results[0]
            last = clone
    return True


def _merge(func: FuncOp) -> None:
    first: dict[tuple[object, ...], Operation] = {}
    for op in _constants(func):
        group = op.attributes.pop(_GROUP, None)
        if group is None:
            continue
        kept = first.setdefault((group, op.get_attr_or_prop("value")), op)
        if kept is not op:
            op.results[0].replace_all_uses_with(kept.results[0])
            Rewriter.erase_op(op)
