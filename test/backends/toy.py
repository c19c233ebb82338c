"""A backend whose code takes any form: it claims products of matrices, and computes them in several ways."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

import numpy as np
import pytest

from devscope.backends import Backend, Claimed, Code, Row, register_backend
from devscope.dialects.target import OptionSpec
from devscope.patterns import constant, op, wildcard
from devscope.runtime.plugins import Runtime, register_runtime

MATMUL = """
func.func @main(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %abs = math.absf %a : tensor<?x?xf32>
  %m = tensor.dim %a, %c0 : tensor<?x?xf32>
  %n = tensor.dim %b, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%m, %n) : tensor<?x?xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %r = linalg.matmul ins(%abs, %b : tensor<?x?xf32>, tensor<?x?xf32>) outs(%z : tensor<?x?xf32>) -> tensor<?x?xf32>
  %s = math.absf %r : tensor<?x?xf32>
  return %s : tensor<?x?xf32>
}
"""


class Toy(Backend):
    """``code`` makes code of a claimed function; a test sets it."""

    name = "toy"
    options: ClassVar[Mapping[str, OptionSpec]] = {
        "unit": OptionSpec(int, minimum=1),
        "text": OptionSpec(str),
        "flag": OptionSpec(bool),
    }
    patterns = (Row("matmul", op("linalg.matmul", wildcard().named("a"), wildcard().named("b"), constant(0.0))),)
    code: Callable[[Claimed], Code]

    def codegen(self, function: Claimed) -> Code:
        return type(self).code(function)


def matmul(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    assert not a.flags.writeable
    np.matmul(a, b, out=out)


def failing(*_: object) -> None:
    raise KeyError("nothing there")


class ToyRuntime(Runtime):
    name = "toy"
    advice = "buy a toy"

    def function(self, name: str) -> object:
        return {"toy_matmul": matmul, "toy_failing": failing}.get(name)


@pytest.fixture(scope="module", autouse=True)
def registered_toy(registries: None) -> None:  # pyright: ignore[reportUnusedParameter]
    """Makes both known to the tests of a module that imports this fixture."""
    register_backend(Toy)
    register_runtime(ToyRuntime)
