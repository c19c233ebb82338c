"""Integer division that MLIR leaves undefined has one meaning, on the host and on devices: docs/checks.md."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import devscope
from devscope.errors import ExecutionError
from devscope.runtime.executable import Executable

OPERATIONS = ("divsi", "remsi", "divui", "remui", "ceildivsi", "ceildivui", "floordivsi")
TYPES = ("i8", "i16", "i32", "i64")


def source() -> str:
    """One function per operation and type, over tensors and over scalars, and one that divides by constants."""
    texts: list[str] = []
    for op in OPERATIONS:
        for type_ in TYPES:
            texts.append(f"""
            func.func @{op}_{type_}(%x: tensor<?x{type_}>, %y: tensor<?x{type_}>, %a: {type_}, %b: {type_})
                -> (tensor<?x{type_}>, {type_}) {{
              %0 = arith.{op} %x, %y : tensor<?x{type_}>
              %1 = arith.{op} %a, %b {{device.scope = #device.scope<"cpu", 0 : i64, "", "">}} : {type_}
              return %0, %1 : tensor<?x{type_}>, {type_}
            }}""")
    return "\n".join(texts)


@cache
def executable(default: str) -> Executable:
    return devscope.compile(source(), default=default, cache=False)


def expected(op: str, x: int, y: int, bits: int) -> int:
    unsigned = op.endswith("ui")
    if unsigned:
        x, y = x % 2**bits, y % 2**bits
    if y == 0 or (op.startswith("rem") and y == -1):
        return 0
    if op.startswith("rem"):
        result = abs(x) % abs(y) * (-1 if x < 0 else 1)
    elif op.startswith("ceil"):
        result = -(-x // y)
    elif op.startswith("floor"):
        result = x // y
    else:
        result = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
    return (result + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)


EQUAL = """
func.func @scalars(%x: i8, %n: index) -> (i8, i8, i8, i8, i8, index) {
  %0 = arith.divsi %x, %x : i8
  %1 = arith.divui %x, %x : i8
  %2 = arith.ceildivsi %x, %x : i8
  %3 = arith.ceildivui %x, %x : i8
  %4 = arith.floordivsi %x, %x : i8
  %5 = arith.divui %n, %n : index
  return %0, %1, %2, %3, %4, %5 : i8, i8, i8, i8, i8, index
}
func.func @tensors(%x: tensor<?xi32>, %y: tensor<4xi32>)
    -> (tensor<?xi32>, tensor<4xi32>, tensor<4xi32>, tensor<?xi32>) {
  %0 = arith.floordivsi %x, %x : tensor<?xi32>
  %1 = tosa.intdiv %y, %y : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %empty = tensor.empty() : tensor<4xi32>
  %2 = linalg.div ins(%y, %y : tensor<4xi32>, tensor<4xi32>) outs(%empty : tensor<4xi32>) -> tensor<4xi32>
  %3 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
                       iterator_types = ["parallel"]}
    ins(%x, %x : tensor<?xi32>, tensor<?xi32>) outs(%x : tensor<?xi32>) {
  ^bb0(%a: i32, %b: i32, %c: i32):
    %d = arith.divsi %a, %b : i32
    linalg.yield %d : i32
  } -> tensor<?xi32>
  return %0, %1, %2, %3 : tensor<?xi32>, tensor<4xi32>, tensor<4xi32>, tensor<?xi32>
}
"""


@pytest.mark.parametrize("default", ["cpu:0", "opencl:0"])
def test_numbers_divided_by_themselves(default: str) -> None:
    program = devscope.compile(EQUAL, default=default)
    for number in (0, 1, -128, 77):
        assert program.run("scalars", np.int8(number), abs(number)) == (int(number != 0),) * 6
    x = np.array([0, 3, -1, -(2**31)], np.int32)
    for found in program.run("tensors", x, x):
        assert found.tolist() == [0, 1, 1, 1]
    checked = devscope.compile(EQUAL, default=default, checks="on")
    for name, arguments in (("scalars", (np.int8(0), 1)), ("tensors", (x, x))):
        with pytest.raises(ExecutionError, match="division by zero"):
            checked.run(name, *arguments)


@pytest.mark.parametrize("default", ["cpu:0", "opencl:0"])
@pytest.mark.parametrize("type_", TYPES)
def test_divisions(default: str, type_: str) -> None:
    bits = int(type_[1:])
    least, most = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    numbers = [least, least + 1, -7, -1, 0, 1, 2, 7, most]
    pairs = [(x, y) for x in numbers for y in numbers]
    dtype: Any = np.dtype(f"int{bits}")
    x, y = (np.array(values, dtype) for values in zip(*pairs, strict=True))
    for op in OPERATIONS:
        wanted = [expected(op, a, b, bits) for a, b in pairs]
        for number, (a, b) in enumerate(pairs):
            if (number % 9 in (3, 4)) or number == 0:
                tensor, scalar = executable(default).run(f"{op}_{type_}", x, y, a, b)
                assert scalar == wanted[number], (op, a, b)
                assert tensor.tolist() == wanted, op


@pytest.mark.parametrize("type_", TYPES[:3])
def test_quotients_of_many(type_: str) -> None:
    """All pairs of bytes; of others large numbers by those of all sizes, and those next to multiples of them."""
    bits = int(type_[1:])
    rng, dtype, limits = np.random.default_rng(0), np.dtype(f"int{bits}"), np.iinfo(f"int{bits}")
    if bits == 8:
        x, y = (each.ravel() for each in np.meshgrid(*[np.arange(-128, 128).astype(dtype)] * 2))
    else:
        x, y = rng.integers(limits.min, limits.max, (2, 6000), dtype, endpoint=True)
        y >>= rng.integers(0, bits, 6000).astype(dtype)
        y[y == 0] = 1
        x[::2] = x[::2] // y[::2] * y[::2] - rng.integers(-1, 2, 3000).astype(dtype)
    for op in OPERATIONS[:4]:
        numbers = (x, y) if op.endswith("si") else (x.view(f"u{dtype}"), y.view(f"u{dtype}"))
        a, b = (each.astype(np.int64) for each in numbers)
        quotients = np.sign(a) * np.sign(b) * (np.abs(a) // np.maximum(np.abs(b), 1))
        wanted = quotients if op.startswith("div") else np.where(b == 0, 0, a - quotients * b)
        result, _ = executable("cpu:0").run(f"{op}_{type_}", x, y, x[0], y[0])
        np.testing.assert_array_equal(result, wanted.astype(dtype), op)
