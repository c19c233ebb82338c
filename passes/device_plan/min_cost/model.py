"""From the constraints of a unit and a machine description to the optimisation problem.

Classes of nodes become variables. Only demands and what no copy can stand for have made nodes one; every use,
whatever its kind, costs the same copy where it is not on its value's device. What costs what, and where the model
ends, is in ``docs/machine.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, SSAValue

from devscope.analysis.frequencies import Frequencies
from devscope.analysis.machine import Machine, nominal_machine
from devscope.analysis.target_binding import device_name, named_devices
from devscope.dialects.device import DeviceCopyOp, OnDeviceOp, RegionOp, ScopeAttr
from devscope.dialects.target import computes_anything
from devscope.errors import OptionError
from devscope.passes.device_plan.domains import HOST_NODE, REMATERIALISED
from devscope.passes.device_plan.min_cost.problem import Problem, Transfer, place_tree
from devscope.passes.device_plan.min_cost.work import NOTHING, Estimator, Work
from devscope.passes.device_plan.scope_table import CONFLICT, ScopeTable
from devscope.passes.device_plan.system import Seconds, System

Path = Sequence[tuple[object, float]]


class Model:
    """The problem of one system, and what its variables and labels are.

    Raises OptionError for a device that the machine lacks.
    """

    def __init__(self, system: System, machine: Machine) -> None:
        self._system, self._machine = system, machine
        machine.check_describes((device_name(system.host), device_name(system.default)))
        preferred = (device_name(system.default), device_name(system.host))
        self.devices = list(dict.fromkeys([*preferred, *machine.devices]))
        """Per label: the device."""
        self._scopes = [_scope_of(device, system.default) for device in self.devices]
        self._estimator = Estimator(machine.dynamic_size, machine.trip_count, system.root)
        self._frequencies = Frequencies(machine.trip_count, system.graphs)
        self.problem = Problem(len(self.devices))
        self.roots: list[int] = []
        """Per variable: the root of its class."""
        self.closed: list[dict[int, int]] = []
        """Per variable: for each candidate label, the number of the closed scope."""
        self._variable: dict[int, int] = {}
        # Of functions, not of methods: that would be a cycle, which nobody collects while a module is planned.
        self._options = cache(partial(_options, system.scopes, machine, self._scopes))
        self._seconds = cache(partial(_seconds, machine, device_name(system.host), self.devices))
        self._copy_seconds = cache(partial(_copy_seconds, machine, self.devices))

    def build(self) -> Model:
        domains = self._system.domains
        self.roots = [root for root in domains.roots() if root not in domains.functions]
        for number, root in enumerate(self.roots):
            self._variable[root] = number
            self.closed.append(self._options(domains.scope[root], bool(domains.computes[root])))
            self.problem.candidates.append(tuple(self.closed[-1]))
        self._drop_too_small()
        self._add_preferences()
        self._add_work()
        self._add_transfers()
        return self

    def class_seconds(self) -> dict[int, Seconds]:
        """What executes in each class takes per device, by root; the devices as in every model."""
        self._variable = {root: root for root in self._system.domains.roots()}
        self._add_work()
        return dict(self.problem.work)

    # Variables and labels

    def _variable_of(self, node: int) -> int:
        return self._variable[self._system.domains.find(node)]

    def _drop_too_small(self) -> None:
        """Keep values off devices whose memory they alone exceed, where there is another one."""
        sizes = ((label, self._machine.devices[device].memory) for label, device in enumerate(self.devices))
        memories = {label: size for label, size in sizes if size is not None}
        if not memories:
            return
        largest: dict[int, int] = {}
        for value, node in self._system.nodes.items():
            if node >= 0 and node not in self._system.domains.functions:
                variable = self._variable_of(node)
                largest[variable] = max(largest.get(variable, 0), self._estimator.bytes(value.type))
        for variable, size in largest.items():
            candidates = self.problem.candidates[variable]
            large = tuple(label for label in candidates if memories.get(label, size) >= size)
            self.problem.candidates[variable] = large or candidates

    def _add_preferences(self) -> None:
        """A carried value that only a placed constant flows into may as well be where that was placed."""
        system = self._system
        find, computes = system.domains.find, system.domains.computes
        for use in system.remat_uses:
            scope = system.remat_scopes.get(system.root(use.value))
            device = device_name(system.scopes.attributes[scope]) if scope is not None else ""
            if scope is None or device not in self.devices:
                continue
            variable, label = self._variable_of(use.dst), self.devices.index(device)
            if self.problem.preferred.setdefault(variable, label) != label or computes[find(use.dst)]:
                continue
            closed = self.closed[variable]
            joined = system.scopes.join(closed[label], scope) if label in closed else CONFLICT
            if joined != CONFLICT:
                # Its memory too; a copy, since classes of one scope share their options.
                self.closed[variable] = {**closed, label: joined}

    # Work

    def _add_work(self) -> None:
        for op, node in self._system.executed:
            work = self._estimator.work(op)
            if work != NOTHING and node != HOST_NODE:
                self._add_seconds(node, self._seconds(work), self._frequency(op))
        for node, call, seconds in self._system.imported_seconds:
            self._add_seconds(node, seconds, self._frequency(call))

    def _add_seconds(self, node: int, seconds: Seconds, times: float) -> None:
        variable = self._variable_of(node)
        before = self.problem.work.setdefault(variable, [0.0] * len(seconds))
        self.problem.work[variable] = [b + s * times for b, s in zip(before, seconds, strict=True)]

    def _frequency(self, op: Operation) -> float:
        return self._frequencies.of_block(op.parent) if op.parent is not None else 1.0

    # Transfers

    def _add_transfers(self) -> None:
        """One transfer for every value that is used somewhere else than where it is made."""
        uses: dict[SSAValue, list[tuple[int, Path]]] = {}
        system = self._system
        for edge in system.edges:
            if not isinstance(edge.op, OnDeviceOp | RegionOp):
                self._use(uses, edge.op, edge.operand, edge.dst)
        for op in system.copies:
            self._use(uses, op, 0, system.nodes[op.results[0]])
        available, moved = self._copied_from(), self._moved()
        for value, users in uses.items():
            source, there = self._variable_of(system.nodes[value]), available.get(value, frozenset[int]())
            seconds = self._copy_seconds(self._estimator.bytes(value.type), value not in moved)
            self.problem.transfers.append(Transfer(source, seconds, place_tree(users), there))
        for constraint in system.soft_constraints:
            # Copies in called functions: of arguments to where these would have them, and of results from there.
            source, user = self._variable_of(constraint.src), self._variable_of(constraint.dst)
            if source != user:
                seconds = self._copy_seconds(self._estimator.bytes(constraint.value.type), False)
                path = [(constraint.op.parent, self._frequency(constraint.op))]
                self.problem.transfers.append(Transfer(source, seconds, place_tree([(user, path)])))

    def _made_in(self, value: SSAValue) -> int | None:
        """The variable that makes a value; None where it is on the host by its type, or made anew."""
        node = self._system.nodes.get(value, HOST_NODE)
        return self._variable_of(node) if node not in (HOST_NODE, REMATERIALISED) else None

    def _use(self, uses: dict[SSAValue, list[tuple[int, Path]]], op: Operation, operand: int, dst: int) -> None:
        value = self._system.root(op.operands[operand])
        source = self._made_in(value)
        if source is not None and source != self._variable_of(dst):
            path = [(block, self._frequencies.of_block(block)) for block in self._frequencies.places(value, op)]
            uses.setdefault(value, []).append((self._variable_of(dst), path))

    def _moved(self) -> set[SSAValue]:
        """What shared memory spares no copy of: arguments are the caller's, and so are results."""
        used = ((edge.op, self._system.root(edge.value)) for edge in self._system.edges)
        return {value for op, value in used if isinstance(op, ReturnOp) or _is_argument(value)}

    def _copied_from(self) -> dict[SSAValue, frozenset[int]]:
        """Results of explicit copies, and where what they copy is: copying it back is folded."""
        found: dict[SSAValue, frozenset[int]] = {}
        for op in self._system.copies:
            assert isinstance(op, DeviceCopyOp)
            value = self._system.root(op.operand)
            source = self._made_in(value)
            if source is not None:
                labels = self.problem.candidates[source]
                there = frozenset(labels if len(labels) == 1 else ())
                found[op.result] = found.get(value, frozenset()) | there
        return found


def _options(
    table: ScopeTable, machine: Machine, preferences: Sequence[ScopeAttr], scope: int, computes: bool
) -> dict[int, int]:
    """The labels that a class may have which must be on ``scope``, each with the closed scope.

    What only passes data on does not take the default's memory: `solve.refine` gives it a neighbour's. What
    computes is on no device that runs what a backend claims only, unless it must be.
    """
    attribute = table.attributes[scope]
    options: dict[int, int] = {}
    for label, preferred in enumerate(preferences):
        device = ScopeAttr.get(preferred.type_name, preferred.id_value)
        if computes and not attribute.type_name and not computes_anything(device.type_name):
            continue
        if attribute.join(device) is not None:
            options[label] = table.closed(scope, preferred if computes else device)
    if not options:
        machine.check_describes([device_name(attribute)] if attribute.id_value >= 0 else [])
        raise OptionError(
            f"{machine.source}: devices: none can be {attribute.short()}, which the program uses",
            notes=[f"described are: {', '.join(machine.devices)}"],
        )
    return options


def _seconds(machine: Machine, host: str, devices: Sequence[str], work: Work) -> list[float]:
    """Per device."""
    if work.readback:
        return [machine.copy_seconds(device, host, work.readback) for device in devices]
    return [machine.compute_seconds(device, work.flops, work.bytes) for device in devices]


def _copy_seconds(machine: Machine, devices: Sequence[str], bytes_: int, elided: bool) -> list[list[float]]:
    """From the first label to the second; see `Machine.copy_seconds`."""
    return [[machine.copy_seconds(source, to, bytes_, elided) for to in devices] for source in devices]


def _is_argument(value: SSAValue) -> bool:
    return isinstance(value.owner, Block) and isinstance(value.owner.parent_op(), FuncOp)


def _scope_of(device: str, default: ScopeAttr) -> ScopeAttr:
    """The scope that closes what goes to a device; the default's own where it names that device."""
    if device == device_name(default):
        return default
    kind, _, number = device.partition(":")
    return ScopeAttr.get(kind, int(number))


def machine_of(module: ModuleOp, host: ScopeAttr, default: ScopeAttr) -> Machine:
    """A machine of nominal devices: those that the module names, the default's and the host's."""
    return nominal_machine([device_name(default), *named_devices(module)], device_name(host))
