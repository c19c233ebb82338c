"""Reductions whose work-items exchange numbers in sub-groups: compiled for the device here, taken for a GPU."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import devscope
from devscope.runtime.drivers import opencl_api as cl
from devscope.runtime.drivers.opencl import opencl_devices

_SHUFFLE = 6 << 16 | 346
"""The first word of SPIR-V's OpGroupNonUniformShuffleXor."""


def has_shuffles(executable: Any) -> bool:
    (device,) = executable.program.devices
    return any(_SHUFFLE in np.frombuffer(binary, np.uint32) for binary in device.binaries)


@contextmanager
def as_gpu() -> Generator[None]:
    """Programs are compiled for what the device says of itself, but that it is a GPU."""
    device, patch = opencl_devices()[0][0], pytest.MonkeyPatch()
    patch.setattr(device, "device_type", cl.DEVICE_TYPE_GPU)
    yield
    patch.undo()


def reduction(name: str, element: str, combine: str, begin: str, spec: str = "ij->i") -> str:
    axes = spec.split("->")
    kinds = ", ".join('"parallel"' if loop in axes[1] else '"reduction"' for loop in axes[0])
    maps = ", ".join(f"affine_map<({', '.join(axes[0])}) -> ({', '.join(each)})>" for each in axes)
    given, made = (f"tensor<{'?x' * len(each)}{element}>" for each in axes)
    return f"""
        func.func @{name}(%x: {given}, %o: {made}) -> {made} {{
          %begin = arith.constant {begin} : {element}
          %f = linalg.fill ins(%begin : {element}) outs(%o : {made}) -> {made}
          %r = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}
              ins(%x : {given}) outs(%f : {made}) {{
          ^bb0(%e: {element}, %s: {element}):
            %y = arith.{combine} %s, %e : {element}
            linalg.yield %y : {element}
          }} -> {made}
          return %r : {made}
        }}
    """


# What they do to numbers, and numpy's name for that.
KINDS = {"sum": ("addf", "addi", "add"), "largest": ("maximumf", "maxsi", "maximum")}
ELEMENTS = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "i8": np.int8, "i64": np.int64}
LEAST = {"f16": "0xFC00", "f32": "0xFF800000", "f64": "0xFFF0000000000000"}


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("element", ELEMENTS)
def test_reductions(element: str) -> None:
    """Of rows, of all rows; shorter than a sub-group, than a workgroup, longer; NaN stays, and signs of zeros."""
    dtype, rng = ELEMENTS[element], np.random.default_rng(0)
    of_float = element in LEAST
    begin = {"sum": "0.0", "largest": LEAST[element]} if of_float else {"sum": "0", "largest": "-128"}
    functions = [
        reduction(f"{kind}_{to}", element, names[not of_float], begin[kind], spec)
        for kind, names in KINDS.items()
        for to, spec in (("rows", "ij->i"), ("all", "ij->"))
    ]
    with as_gpu(), devscope.compile("\n".join(functions), default="opencl:0", cache=False) as executable:
        assert has_shuffles(executable) == ("subgroup" in opencl_devices()[0][0].target_options)
        for columns in (1, 31, 33, 1000):
            x = rng.integers(-3, 4, (5, columns)).astype(dtype)
            x[4] = -0.0
            if of_float:
                x[3, columns // 2], x[2, -1], x[1, 0] = np.nan, np.inf, -np.inf
            for kind, names in KINDS.items():
                for axis, to in ((1, "rows"), (None, "all")):
                    wanted = getattr(np, names[2]).reduce(x, axis, dtype)
                    found = executable.run(f"{kind}_{to}", x, np.empty(np.shape(wanted), dtype))
                    np.testing.assert_array_equal(found, wanted, f"{kind} {to} {columns}")
                    if kind == "largest":
                        np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))
