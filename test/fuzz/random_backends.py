"""Backends that take whatever patterns match and compute it as devscope does: as MLIR, and by Python functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, ClassVar

import numpy as np
from xdsl.dialects.builtin import TensorType

import devscope
from devscope.backends import Backend, Claimed, Mlir, OptionSpec, PythonCall, Row, register_backend
from devscope.patterns import Match, broadcast, constant, dominated, elementwise, one_or_more, op, relu, wildcard
from devscope.runtime.plugins import Runtime, register_runtime

ANY = wildcard()
LINALG, SCALAR, STABLEHLO = ["linalg.*", "tensor.*"], ["arith.*", "math.*"], ["stablehlo.*", "chlo.*"]
PATTERNS = {
    "one": op("*.*"),
    "linalg": op(LINALG),
    "matmul": op(["linalg.*matmul*", "linalg.matvec", "linalg.dot"], ANY, ANY, constant(0.0)),
    "scalar": op(SCALAR),
    "chain": one_or_more(lambda x: op(SCALAR, x) | op(SCALAR, ANY, x), ANY),
    "pair": op([*LINALG, *SCALAR], op([*LINALG, *SCALAR])),
    "pairs": op([*LINALG, *SCALAR], op([*LINALG, *SCALAR]), op([*LINALG, *SCALAR])),
    "between": dominated(op([*LINALG, *SCALAR]), op(SCALAR), op([*LINALG, *SCALAR])),
    "add": elementwise("add", ANY, broadcast(ANY) | ANY),
    "relu": relu(ANY),
    "stablehlo": op(STABLEHLO),
    "chain_of_stablehlo": one_or_more(lambda x: op(STABLEHLO, x) | op(STABLEHLO, ANY, x), ANY),
    "pair_of_stablehlo": op(STABLEHLO, op(STABLEHLO)),
}
_COMPUTED: dict[str, tuple[str, str]] = {}
"""The functions that Python computes: their text and their names."""


def _takes(name: str) -> Callable[[Match], bool]:
    return lambda match: name in str(match.options.get("rows", "")).split("+")


class Taker(Backend):
    """The option ``rows`` has the names of the patterns that are asked, with ``+`` between."""

    name = "taker"
    options: ClassVar[Mapping[str, OptionSpec]] = {"rows": OptionSpec(str)}
    patterns = tuple(Row(name, pattern, _takes(name)) for name, pattern in PATTERNS.items())

    def codegen(self, function: Claimed) -> Mlir | PythonCall:
        digest = sha256(function.text.encode()).hexdigest()
        whole = len(function.inputs) == len(function.function.args) and not function.constants
        types = [*function.inputs, *function.outputs]
        if whole and int(digest, 16) % 2 and all(isinstance(type_, TensorType) for type_ in types):
            _COMPUTED[f"f{digest}"] = function.text, function.name
            return PythonCall(f"f{digest}")
        return Mlir(function.text)

    def cost(self, match: Match) -> float:
        return 0.0


class Merger(Taker):
    name = "merger"
    merge = True


class TakerRuntime(Runtime):
    name = "taker"

    def function(self, name: str) -> Callable[..., None] | None:
        if name not in _COMPUTED:
            return None
        text, called = _COMPUTED[name]
        text = re.sub(r"attributes \{.*\} \{$", "{", text, flags=re.MULTILINE)
        own = devscope.compile(text.replace(f"private @{called}(", f"@{called}("), cache=False)

        def compute(*arrays: np.ndarray[Any, Any]) -> None:
            count = len(own.entries[called].inputs)
            for out, result in zip(arrays[count:], own.run_arrays(called, arrays[:count]), strict=True):
                out[...] = result

        return compute


class MergerRuntime(TakerRuntime):
    name = "merger"


def random_backend(rng: np.random.Generator) -> str:
    """One as `devscope.compile` is told of it."""
    for backend, runtime in ((Taker, TakerRuntime), (Merger, MergerRuntime)):
        register_backend(backend)
        register_runtime(runtime)
    rows = rng.choice(list(PATTERNS), int(rng.integers(1, 5)), replace=False)
    return f"{('taker', 'merger')[int(rng.integers(2))]}:rows={'+'.join(rows)}"
