"""Completion min-cost against independent judges: costs read off planned modules, every assignment tried."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from random_modules import Generator
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation

from devscope.analysis.machine import Device, Link, Machine
from devscope.analysis.scope_analysis import ScopeAnalysis
from devscope.analysis.target_binding import device_name
from devscope.dialects.device import DeviceCopyOp, ScopeAttr
from devscope.dialects.names import op_name
from devscope.errors import PlanError
from devscope.passes.device_plan import PlanOptions, min_cost, plan_module
from devscope.passes.device_plan.min_cost.model import Model, machine_of
from devscope.passes.device_plan.min_cost.optimiser import optimise
from devscope.passes.device_plan.solve import complete, unify, unify_and_propagate
from devscope.passes.device_plan.system import System

SIZES = {"!s": 8, "!m": 64, "!l": 256}
RELAXED = settings(
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),  # A seed does not shrink to anything simpler.
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much],
)


def machine(rng: random.Random, names: Sequence[str]) -> Machine:
    """Any rates and links; direct links between devices other than the host are there or not."""
    devices = {
        name: Device(name, 10 ** rng.uniform(8, 11), 10 ** rng.uniform(8, 11), rng.choice((0.0, 1e-6, 1e-4)))
        for name in names
    }
    links = {
        pair: Link(*pair, 10 ** rng.uniform(8, 10.5), rng.choice((0.0, 1e-6, 5e-5)))
        for pair in itertools.permutations(names, 2)
        if names[0] in pair or rng.random() < 0.5
    }
    return Machine(devices, links, names[0])


# What a plan costs, told from the planned module alone.


def _bytes(type_: Attribute) -> int:
    assert isinstance(type_, TensorType)
    return 4 * math.prod(type_.get_shape())


def _is_empty(owner: Operation | Block) -> bool:
    return isinstance(owner, Operation) and op_name(owner) == "tensor.empty"


def _times(op: Operation) -> float:
    """How often an operation runs."""
    times = 1.0
    parent = op.parent_op()
    while parent is not None:
        if op_name(parent) == "scf.if":
            times /= 2
        elif op_name(parent) == "scf.for":
            count = parent.operands[1].owner.get_attr_or_prop("value")
            assert isinstance(count, IntegerAttr)
            times *= count.value.data
        parent = parent.parent_op()
    return times


def module_seconds(module: ModuleOp, described: Machine) -> float:
    """Computing and copying in a planned module."""
    analysis = ScopeAnalysis(module)
    total = 0.0
    for op in module.walk():
        name = op_name(op)
        if isinstance(op, DeviceCopyOp):
            pair = device_name(op.src), device_name(op.dst)
            total += described.copy_seconds(*pair, _bytes(op.operand.type)) * _times(op)
        elif name in ("ml.op", "linalg.matmul"):
            device = described.devices[device_name(analysis.of_op(op))]
            inputs = list(dict.fromkeys(v for v in op.operands if not _is_empty(v.owner)))
            moved = sum(map(_bytes, [v.type for v in (*inputs, *op.results)]))
            if name == "linalg.matmul":
                size = SIZES["!m"]
                flops = 2 * size**3
            else:
                flops = max(_bytes(v.type) for v in (*op.operands, *op.results)) // 4
            seconds = max(flops / device.flops, moved / device.bandwidth) + device.launch
            total += seconds * _times(op)
    return total


class Programs:
    """Small programs: operations on tensors of three sizes, matrix products, branches, loops, annotations."""

    def __init__(self, rng: random.Random, devices: int) -> None:
        self.rng = rng
        self.scopes = [f"#dev{number}" for number in range(devices - 1)] + ["#cpu0"]
        self.count = 0

    def scope(self, chance: float) -> str:
        return f"{{device.scope = {self.rng.choice(self.scopes)}}}" if self.rng.random() < chance else ""

    def text(self) -> str:
        values = {"%a": "!m", "%b": "!l"}
        lines = ["%zero = arith.constant 0 : index", "%one = arith.constant 1 : index"]
        lines += ["%five = arith.constant 5 : index", "%e = tensor.empty() : !m"]
        for _ in range(self.rng.randint(1, 3)):
            lines += self.rng.choice((self.op, self.op, self.product, self.branch, self.loop, self.note))(values)
        name, type_ = self.rng.choice(list(values.items()))
        arguments = f"%a: !m {self.scope(0.4)}, %b: !l {self.scope(0.4)}, %p: i1"
        body = "\n  ".join([*lines, f"func.return {name} : {type_}"])
        text = f"func.func @main({arguments}) -> ({type_} {self.scope(0.4)}) {{\n  {body}\n}}"
        for short, size in SIZES.items():
            text = text.replace(short, f"tensor<{size}x{size}xf32>")
        return text

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def op(self, values: dict[str, str]) -> list[str]:
        new, type_ = self.name(), self.rng.choice(list(SIZES))
        (x, tx), (y, ty) = (self.rng.choice(list(values.items())) for _ in range(2))
        values[new] = type_
        return [f'{new} = "ml.op"({x}, {y}) {self.scope(0.3)} : ({tx}, {ty}) -> {type_}']

    def product(self, values: dict[str, str]) -> list[str]:
        new = self.name()
        x, y = (self.rng.choice([v for v, t in values.items() if t == "!m"]) for _ in range(2))
        values[new] = "!m"
        return [f"{new} = linalg.matmul {self.scope(0.3)} ins({x}, {y} : !m, !m) outs(%e : !m) -> !m"]

    def note(self, values: dict[str, str]) -> list[str]:
        new, (x, type_) = self.name(), self.rng.choice(list(values.items()))
        values[new] = type_
        return [
            f'{new} = "device.on_device"({x}) {{scope = {self.rng.choice(self.scopes)}}} : ({type_}) -> {type_}'
        ]

    def branch(self, values: dict[str, str]) -> list[str]:
        new = self.name()
        sides = [self._body(values) for _ in range(2)]
        values[new] = "!m"
        return [f"{new} = scf.if %p -> (!m) {{", *sides[0], "} else {", *sides[1], "}"]

    def loop(self, values: dict[str, str]) -> list[str]:
        new, carried = self.name(), self.name()
        start = self.rng.choice([v for v, t in values.items() if t == "!m"])
        body = self._body({**values, carried: "!m"})
        values[new] = "!m"
        head = f"{new} = scf.for %i{new[1:]} = %zero to %five step %one iter_args({carried} = {start}) -> (!m) {{"
        return [head, *body, "}"]

    def _body(self, values: dict[str, str]) -> list[str]:
        inner = dict(values)
        lines = self.op(inner) if self.rng.random() < 0.7 else self.product(inner)
        chosen = self.rng.choice([v for v, t in inner.items() if t == "!m"])
        return [*lines, f"scf.yield {chosen} : !m"]


class EveryAssignment:
    """In place of the solver: takes the assignment with a given number, of all that demands allow."""

    def __init__(self) -> None:
        self.number = 0
        self.count = 1

    def __call__(self, system: System, described: Machine) -> None:
        if not system.signatures:
            return  # The declarations, of which there are none.
        domains, scopes = system.domains, system.scopes
        rest = self.number
        self.count = 1
        for root in domains.roots():
            options = [
                scopes.closed(joined, _scope(name))
                for name in described.devices
                if (joined := scopes.join(domains.scope[root], scopes.number(_scope(name)))) >= 0
            ]
            domains.scope[root] = options[rest % len(options)]
            rest //= len(options)
            self.count *= len(options)


def _scope(name: str) -> ScopeAttr:
    return ScopeAttr.parse_text(name)


def _planned(parse: Callable[[str], ModuleOp], text: str, described: Machine, arguments: str) -> ModuleOp:
    module = parse(text)
    options = PlanOptions(arguments=arguments, completion="min-cost", machine=described)
    plan_module(module, options)
    return module


def least_seconds(
    parse: Callable[[str], ModuleOp], text: str, described: Machine, arguments: str, most: int
) -> float | None:
    """The cost of the best assignment; None when there are more than ``most``."""
    every = EveryAssignment()
    best = math.inf
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(min_cost, "solve_min_cost", every)
        while every.number < every.count:
            module = _planned(parse, text, described, arguments)
            if every.count > most:
                return None
            best = min(best, module_seconds(module, described))
            every.number += 1
    return best


@settings(RELAXED, max_examples=10)
@given(seed=st.integers(0, 2**32), devices=st.sampled_from((2, 2, 3)), arguments=st.sampled_from(("host", "open")))
def test_no_assignment_costs_less(seed: int, devices: int, arguments: str, plan: Any, parse: Any) -> None:
    """Also: what is planned verifies, keeps its meaning, and stays as it is when planned again."""
    rng = random.Random(seed)
    described = machine(rng, ("cpu:0", "opencl:0", "opencl:1")[:devices])
    text = Programs(rng, devices).text()
    try:
        least = least_seconds(parse, text, described, arguments, 128)
    except PlanError:
        assume(False)
    assume(least is not None)
    planned = plan(text, arguments=arguments, completion="min-cost", machine=described)
    assert module_seconds(planned.module, described) == pytest.approx(least, rel=1e-6)
    (prediction,) = (remark.message for remark in planned.plan.remarks if "min-cost" in remark.message)
    assert f"predicted time {min_cost.duration(least)}" in prediction


class BesideDefault:
    """In place of the solver: compares what it finds with what the default completion does, in the same model."""

    def __init__(self) -> None:
        self.compared = 0

    def __call__(self, system: System, described: Machine) -> None:
        model = Model(system, described).build()
        labels = optimise(model.problem)
        unify(system)
        complete(system, unify_and_propagate(system))
        scopes = system.scopes.attributes
        by_default = [
            model.devices.index(device_name(scopes[system.domains.scope_of(root)])) for root in model.roots
        ]
        for label, options in zip(by_default, model.closed, strict=True):
            assert label in options
        assert model.problem.cost(labels) <= model.problem.cost(by_default)
        self.compared += 1


@settings(RELAXED, max_examples=10)
@given(seed=st.integers(0, 2**32))
def test_costs_no_more_than_the_default(seed: int, parse: Any) -> None:
    rng = random.Random(seed)
    module = parse(Generator(rng, rng.choice((0.0, 0.2, 0.5))).module())
    default = ScopeAttr.parse_text(rng.choice(("cpu:0", "opencl:0")))
    described = machine(rng, list(machine_of(module, _scope("cpu:0"), default).devices))
    beside = BesideDefault()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(min_cost, "solve_min_cost", beside)
        try:
            plan_module(module, PlanOptions(default, completion="min-cost", machine=described))
        except PlanError:
            assume(False)
    assert beside.compared


@settings(RELAXED, max_examples=10)
@given(seed=st.integers(0, 2**32))
def test_random_modules(seed: int, plan: Any) -> None:
    """Planned twice, the second time nothing changes; see `conftest.plan`."""
    rng = random.Random(seed)
    text = Generator(rng, rng.choice((0.1, 0.3, 0.5))).module()
    default = rng.choice(("cpu:0", "opencl:0", "opencl:1"))
    try:
        plan(text, default, rng.choice(("open", "host")), completion="min-cost")
    except PlanError:
        assume(False)


@settings(RELAXED, max_examples=5)
@given(seed=st.integers(0, 2**32))
@pytest.mark.long
def test_the_order_of_functions_does_not_matter(seed: int, parse: Any) -> None:
    texts: list[list[str]] = []
    rng = random.Random(seed)
    source = Generator(rng, 0.3).module()
    for backwards in (False, True):
        module = parse(source)
        functions = [op for op in module.ops if isinstance(op, FuncOp)]
        if backwards:
            for func in functions:
                func.detach()
            module.body.block.add_ops(reversed(functions))
        try:
            plan_module(module, PlanOptions(completion="min-cost"))
        except PlanError:
            assume(False)
        texts.append(sorted(map(str, module.ops)))
    assert texts[0] == texts[1]
