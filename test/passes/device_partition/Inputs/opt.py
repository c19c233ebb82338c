"""``devscope-opt`` with backends that only claim: ``host_lib`` on the host, ``acc`` and ``other`` on devices.

With ``COSTS`` of the environment such as ``cpu=100,acc=99,copy=0``, operations cost so much, those after the
first of a candidate 0.9 times as much as the one before, as in Collage's tests.
"""

import os
import sys
from typing import Any, ClassVar

from devscope.backends.backend import Backend
from devscope.backends.registry import register_backend
from devscope.cli.opt import main
from devscope.dialects.target import OptionSpec
from devscope.patterns import broadcast, constant, elementwise, op, relu, wildcard

X, W, B = (wildcard().named(name) for name in "xwb")
MATMUL = op("linalg.matmul", X, W, constant(0.0))


def even(match: Any) -> str | bool:
    sizes = match["x"].type.get_shape()
    return True if all(size % 2 == 0 for size in sizes) else f"sizes {list(sizes)} are not even"


class HostLib(Backend):
    name = "host_lib"
    options: ClassVar = {"threads": OptionSpec(int, minimum=1)}
    patterns = (
        ("matmul_bias_relu", relu(elementwise("add", MATMUL, broadcast(B, [-1]))), even),
        ("matmul", MATMUL, even),
    )


class Acc(Backend):
    name = device_type = "acc"
    patterns = (
        ("relu", op("math.absf", wildcard()), None),
        ("add", elementwise("add", wildcard(), wildcard()), None),
        ("tanh", op("math.tanh", wildcard()), None),
    )
    merge = True


class Other(Backend):
    name = device_type = "other"
    patterns = (("add", elementwise("add", wildcard(), wildcard()), None),)


for backend in (HostLib, Acc, Other):
    register_backend(backend)


def mock() -> None:
    """Costs as the environment says, in place of those of a machine."""
    from devscope.passes.device_partition import costs
    from devscope.passes.device_partition.candidates import NOBODY

    said = {name: float(value) for name, value in (one.split("=") for one in os.environ["COSTS"].split(","))}

    class Mock:
        def of(self, graph: Any, candidate: Any) -> costs.Cost:
            if candidate.spec is NOBODY:
                return costs.Cost(0.0, "")
            base = said[candidate.spec.name.partition(":")[0]]
            return costs.Cost(sum(base * 0.9**n for n in range(len(candidate.nodes))), "mock")

        def copy(self, source: str, destination: str, bytes_: float) -> float:
            return said.get("copy", 0.0)

        def bytes(self, value: Any) -> float:
            return 1.0

    costs.cost_model = lambda devices, machine=None, rows=(): Mock()  # type: ignore[assignment]


if "COSTS" in os.environ:
    mock()
sys.exit(main())
