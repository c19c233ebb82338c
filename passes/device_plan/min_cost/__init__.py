"""Completion ``min-cost``: open scopes by what computing and copying cost on a described machine.

`model` makes an optimisation problem of a unit's constraints, `work` and `analysis.frequencies` say what goes into
it, `optimiser` solves it with `cuts` (minimum cuts) and `program` (HiGHS).
"""

from collections.abc import Iterable
from dataclasses import dataclass

from devscope.analysis.machine import Machine, duration
from devscope.dialects.device import OnDeviceOp
from devscope.dialects.location import source_location
from devscope.passes.device_plan.min_cost.model import Model, machine_of
from devscope.passes.device_plan.min_cost.optimiser import optimise
from devscope.passes.device_plan.remarks import Remark
from devscope.passes.device_plan.signatures import has_plan
from devscope.passes.device_plan.system import Seconds, System

__all__ = ["MinCost", "Prediction", "duration", "machine_of", "solve_min_cost"]


@dataclass(frozen=True)
class Prediction:
    """What the model says that a unit takes, in seconds per call."""

    computing: dict[str, float]
    """Per device."""
    copying: dict[tuple[str, str], float]
    """Per pair of devices, from the first to the second."""

    def text(self) -> str:
        parts = [f"{duration(seconds)} computing on {device}" for device, seconds in self.computing.items()]
        parts += [f"{duration(seconds)} copying {src} to {dst}" for (src, dst), seconds in self.copying.items()]
        total = sum(self.computing.values()) + sum(self.copying.values())
        return f"predicted time {duration(total)}" + (f": {', '.join(parts)}" if parts else "")


class MinCost:
    """Chooses the scopes of units, and keeps what it predicts for them."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._predictions: dict[System, Prediction] = {}

    def __call__(self, system: System) -> None:
        self._predictions[system] = solve_min_cost(system, self._machine)

    def measure(self, system: System) -> dict[int, Seconds]:
        """What the operations of a unit take per device, by the root of their class."""
        return Model(system, self._machine).class_seconds()

    def remarks(self, systems: Iterable[System]) -> list[Remark]:
        """The predicted time of each unit that has code."""
        found: list[Remark] = []
        for system in systems:
            functions = [signature.op for signature in system.signatures.values() if has_plan(signature.op)]
            if functions and (prediction := self._predictions.get(system)) is not None:
                names = ", ".join(f"@{func.sym_name.data}" for func in functions)
                text = f"min-cost: {names}: {prediction.text()}"
                found.append(Remark("remark", text, source_location(functions[0])))
        return found


def solve_min_cost(system: System, machine: Machine) -> Prediction:
    """Close every class of ``system`` at the least cost; to be called instead of unification and completion.

    Raises OptionError for a device that ``machine`` does not describe.
    """
    _hold_results(system)
    model = Model(system, machine).build()
    labels = optimise(model.problem)
    for root, label, closed in zip(model.roots, labels, model.closed, strict=True):
        system.domains.scope[root] = closed[label]
        if len(closed) > 1:
            system.choices[root] = ("chosen", None, 0)
    return predict(model, labels)


def _hold_results(system: System) -> None:
    """What uses the result of an annotation that constrains its result is there, unless demands forbid it."""
    if not any(isinstance(op, OnDeviceOp) and op.constrains_result for op in system.transparent):
        return
    for edge in system.edges:
        owner = edge.value.owner
        if isinstance(owner, OnDeviceOp) and owner.constrains_result:
            system.domains.unify(edge.src, edge.dst, ("use", edge.op, edge.operand))


def predict(model: Model, labels: list[int]) -> Prediction:
    """The time that ``labels`` take."""
    computing: dict[str, float] = {}
    copying: dict[tuple[str, str], float] = {}
    for variable, seconds in model.problem.work.items():
        device = model.devices[labels[variable]]
        computing[device] = computing.get(device, 0.0) + seconds[labels[variable]]
    for source, destination, units in model.problem.copies(labels, model.problem.transfers):
        pair = (model.devices[source], model.devices[destination])
        copying[pair] = copying.get(pair, 0.0) + units * model.problem.unit
    return Prediction(dict(sorted(computing.items())), dict(sorted(copying.items())))
