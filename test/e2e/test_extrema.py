"""``arith.maximumf`` and ``minimumf`` give NaN if an operand is NaN, and -0 is less than +0; ``maxnumf`` and
``minnumf`` give the number beside a NaN (IEEE 754: maximum, minimum, maxNum, minNum). Wherever they stand.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import devscope
from devscope.compile_options import CompileOptions
from devscope.runtime.executable import Executable

Array = np.ndarray[Any, np.dtype[Any]]
OPERATIONS = ("maximumf", "minimumf", "maxnumf", "minnumf")
DTYPES: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}
TYPES = {"cpu": [*DTYPES], "opencl": ["f16", "f32", "f64"]}
SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -2.0)
#: Constants beside an operand: all of them for one type.
CONSTANTS = {type_: SPECIAL if type_ == "f32" else (np.nan, -0.0) for type_ in DTYPES}
PAIRS = list(itertools.product(SPECIAL, SPECIAL))
N = len(PAIRS)


def expected(operation: str, values: Sequence[float]) -> float:
    numbers = [value for value in values if not np.isnan(value)]
    if "imum" in operation and len(numbers) < len(values):
        return np.nan
    if not numbers:
        return np.nan
    # Of equal numbers a zero is the only one whose sign may differ.
    key = functools.partial(max if operation.startswith("max") else min, key=lambda x: (x, np.copysign(1, x)))
    return key(numbers)


def check(operation: str, found: Array, operands: Sequence[Sequence[float]]) -> None:
    wanted = np.array([expected(operation, values) for values in operands])
    np.testing.assert_array_equal(found.astype(np.float64), wanted, operation)
    if "imum" in operation:  # the others may give either zero
        there = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(found)[there], np.signbit(wanted)[there], operation)


def literal(value: float, type_: str) -> str:
    number = np.array(value, DTYPES[type_])
    return f"0x{int(number.view(f'u{number.itemsize}')):0{2 * number.itemsize}X}"


def entry(operation: str, type_: str) -> str:
    """x, y and both beside a third column: results of pairs, with constants on either side, of constants, by rows
    and as a whole, and by the operations of linalg that combine with `operation`."""
    t, rows, scalar = f"tensor<{N}x{type_}>", f"tensor<{N}x3x{type_}>", f"tensor<{type_}>"
    numbers = [f"%k{k} = arith.constant {literal(v, type_)} : {type_}" for k, v in enumerate(SPECIAL)]
    body = [f"%r0 = arith.{operation} %a, %b : {type_}"]
    folded: list[str] = []
    for k, value in enumerate(CONSTANTS[type_]):
        numbers.append(f"%c{k} = arith.constant {literal(value, type_)} : {type_}")
        body.append(f"%r{2 * k + 1} = arith.{operation} %c{k}, %b : {type_}")
        body.append(f"%r{2 * k + 2} = arith.{operation} %a, %c{k} : {type_}")
    for k in range(len(SPECIAL)):
        folded += [f"%f{k}_{j} = arith.{operation} %k{k}, %k{j} : {type_}" for j in range(len(SPECIAL))]
    count = len(body)
    constants = ", ".join(f"%f{k}_{j}" for k in range(len(SPECIAL)) for j in range(len(SPECIAL)))
    results = [(f"%0#{number}", t) for number in range(count)]
    results += [("%1", t), ("%2", t), ("%3", scalar)]
    neutral = -np.inf if operation.startswith("max") else np.inf
    short = operation[:3]
    named = f"""
      %4 = linalg.{short} ins(%x, %y : {t}, {t}) outs(%e : {t}) -> {t}
      %p = tensor.expand_shape %rows [[0, 1], [2, 3]] output_shape [1, {N}, 3, 1]
        : {rows} into tensor<1x{N}x3x1x{type_}>
      %w = tensor.empty() : tensor<1x3x{type_}>
      %pi = tensor.expand_shape %init [[0, 1, 2, 3]] output_shape [1, {N}, 1, 1]
        : {t} into tensor<1x{N}x1x1x{type_}>
      %q = linalg.pooling_nhwc_{short} {{strides = dense<1> : vector<2xi64>, dilations = dense<1> : vector<2xi64>}}
        ins(%p, %w : tensor<1x{N}x3x1x{type_}>, tensor<1x3x{type_}>) outs(%pi : tensor<1x{N}x1x1x{type_}>)
        -> tensor<1x{N}x1x1x{type_}>
      %5 = tensor.collapse_shape %q [[0, 1, 2, 3]] : tensor<1x{N}x1x1x{type_}> into {t}
    """
    has_named = "imum" in operation and type_ == "f32"
    if has_named:
        results += [("%4", t), ("%5", t)]
    return f"""
    func.func @{operation}_{type_}(%x: {t}, %y: {t}, %rows: {rows}) -> ({", ".join(t for _, t in results)}) {{
      {" ".join([*numbers, *folded])}
      %neutral = arith.constant {literal(neutral, type_)} : {type_}
      %e = tensor.empty() : {t}
      %0:{count} = linalg.generic {{indexing_maps = [{", ".join(["affine_map<(i) -> (i)>"] * (count + 2))}],
          iterator_types = ["parallel"]}}
          ins(%x, %y : {t}, {t}) outs({", ".join(["%e"] * count)} : {", ".join([t] * count)}) {{
      ^bb0(%a: {type_}, %b: {type_}, {", ".join(f"%o{n}: {type_}" for n in range(count))}):
        {" ".join(body)}
        linalg.yield {", ".join(f"%r{n}" for n in range(count))} : {", ".join([type_] * count)}
      }} -> ({", ".join([t] * count)})
      %1 = tensor.from_elements {constants} : {t}
      %init = linalg.fill ins(%neutral : {type_}) outs(%e : {t}) -> {t}
      %2 = linalg.reduce {{arith.{operation}}} ins(%rows : {rows}) outs(%init : {t}) dimensions = [1]
      %one = tensor.empty() : {scalar}
      %none = linalg.fill ins(%neutral : {type_}) outs(%one : {scalar}) -> {scalar}
      %3 = linalg.reduce {{arith.{operation}}} ins(%rows : {rows}) outs(%none : {scalar}) dimensions = [0, 1]
      {named if has_named else ""}
      return {", ".join(v for v, _ in results)} : {", ".join(t for _, t in results)}
    }}
    """


@functools.cache
def compiled(target: str) -> Executable:
    text = "".join(entry(operation, type_) for operation in OPERATIONS for type_ in TYPES[target])
    return devscope.compile(text + TOSA, default=f"{target}:0")


#: What has a start of its own keeps it: the last result.
TOSA = """
func.func @tosa(%x: tensor<1x2x2x1xf32>, %y: tensor<2x3xf32>)
    -> (tensor<1x2x2x1xf32>, tensor<2x1xf32>, tensor<2x1xf32>, tensor<2xf32>) {
  %0 = tosa.max_pool2d %x {kernel = array<i64: 2, 2>, pad = array<i64: 1, 0, 1, 0>, stride = array<i64: 1, 1>}
    : (tensor<1x2x2x1xf32>) -> tensor<1x2x2x1xf32>
  %1 = tosa.reduce_max %y {axis = 1 : i32} : (tensor<2x3xf32>) -> tensor<2x1xf32>
  %2 = tosa.reduce_min %y {axis = 1 : i32} : (tensor<2x3xf32>) -> tensor<2x1xf32>
  %least = arith.constant dense<0xFF7FFFFF> : tensor<2xf32>
  %3 = linalg.reduce {arith.maximumf} ins(%y : tensor<2x3xf32>) outs(%least : tensor<2xf32>) dimensions = [1]
  return %0, %1, %2, %3 : tensor<1x2x2x1xf32>, tensor<2x1xf32>, tensor<2x1xf32>, tensor<2xf32>
}
"""


@pytest.mark.parametrize("target", TYPES)
def test_extrema_of_infinities_in_tosa(target: str) -> None:
    inf = np.float32(np.inf)
    found: Any = compiled(target).run(
        "tosa", np.float32([-inf, -inf, -inf, 3]).reshape(1, 2, 2, 1), np.float32([[-inf] * 3, [inf] * 3])
    )
    wanted = ([-inf, -inf, -inf, 3], [-inf, inf], [-inf, inf], [np.finfo(np.float32).min, inf])
    for value, numbers in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(value.ravel(), np.float32(numbers))


@pytest.mark.parametrize(("target", "type_"), [(target, t) for target in TYPES for t in TYPES[target]])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_pair(operation: str, target: str, type_: str) -> None:
    third = [(-5.0, np.nan, 0.0)[number % 3] for number in range(N)]
    x, y = (np.array(column, DTYPES[type_]) for column in zip(*PAIRS, strict=True))
    rows = np.stack([x, y, np.array(third, DTYPES[type_])], axis=1)
    results: Any = compiled(target).run(f"{operation}_{type_}", x, y, rows)
    count = 2 * len(CONSTANTS[type_]) + 1
    pairs, (constants, by_row, whole, *named) = results[:count], results[count:]
    triples = [(*pair, other) for pair, other in zip(PAIRS, third, strict=True)]
    check(operation, pairs[0], PAIRS)
    for k, value in enumerate(CONSTANTS[type_]):
        check(operation, pairs[2 * k + 1], [(value, b) for _, b in PAIRS])
        check(operation, pairs[2 * k + 2], [(a, value) for a, _ in PAIRS])
    check(operation, constants, PAIRS)
    check(operation, by_row, triples)
    check(operation, whole.reshape(1), [[x for row in triples for x in row]])
    for found, operands in zip(named, (PAIRS, triples), strict=False):
        check(operation, found, operands)


def test_numbers_of_rows_beside_nan() -> None:
    """LLVM's vectoriser aborted on rows of these lengths."""
    types = {"f16": (4, "0xFC00"), "f32": (31, "0xFF800000"), "f64": (7, "0xFFF0000000000000")}
    text = "".join(
        f"""
        func.func @{type_}(%x: tensor<3x{count}x{type_}>) -> tensor<3x{type_}> {{
          %least = arith.constant dense<{least}> : tensor<3x{type_}>
          %0 = linalg.reduce {{arith.maxnumf}} ins(%x : tensor<3x{count}x{type_}>) outs(%least : tensor<3x{type_}>)
            dimensions = [1]
          return %0 : tensor<3x{type_}>
        }}
        """
        for type_, (count, least) in types.items()
    )
    rows = devscope.compile(text)
    for type_, (count, _) in types.items():
        x = np.resize(np.array([np.nan, 2, -3, np.nan, 5, np.inf, 0.5], DTYPES[type_]), (3, count))
        np.testing.assert_array_equal(rows.run(type_, x), np.fmax.reduce(x, axis=1))


def _row_extremum(operation: str, type_: str) -> str:
    start = literal(-np.inf if operation == "maximumf" else np.inf, type_)
    return f"""
        func.func @{operation}_{type_}(%x: tensor<8x?x{type_}>) -> tensor<8x{type_}> {{
          %start = arith.constant dense<{start}> : tensor<8x{type_}>
          %0 = linalg.reduce {{arith.{operation}}} ins(%x : tensor<8x?x{type_}>) outs(%start : tensor<8x{type_}>)
            dimensions = [1]
          return %0 : tensor<8x{type_}>
        }}
    """


@pytest.mark.parametrize("target", ["cpu:0", "opencl:0"])
def test_extrema_along_rows(target: str) -> None:
    """By their bits, where rows fill vectors: of zeros, of negative numbers, and where a NaN has a sign."""
    operations, types = ("maximumf", "minimumf"), ("f16", "f32", "f64")
    source = "".join(_row_extremum(name, type_) for name in operations for type_ in types)
    rows = devscope.compile(source, default=target)
    rng = np.random.default_rng(0)
    few = (
        (0.0, -0.0),
        (-0.0, -1),
        (0.0, 3),
        (-1, -2, -1e-40),
        (1, np.inf),
        (-np.inf, -3),
        (1, np.nan),
        (-1, -np.nan),
    )
    for length in (0, 1, 16, 37, 300):
        x = np.stack([rng.choice(np.array(numbers), length) for numbers in few])
        for name, type_ in itertools.product(operations, types):
            with np.errstate(under="ignore"):
                given = x.astype(DTYPES[type_])
            start = -np.inf if name == "maximumf" else np.inf
            found: Any = rows.run(f"{name}_{type_}", given)
            check(name, found, [(start, *row) for row in given])


KERNEL = """
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func private @extrema(%x: memref<?xf32>, %y: memref<?xf32>, %p: memref<?xf32>, %q: memref<?xf32>,
    %a: memref<?xf32>) attributes {device.kernel} {
  %i = gpu.global_id x
  %0 = memref.load %x[%i] : memref<?xf32>
  %1 = memref.load %y[%i] : memref<?xf32>
  %2 = vector.from_elements %0, %1 : vector<2xf32>
  %3 = vector.from_elements %1, %0 : vector<2xf32>
  %4 = arith.KIND %2, %3 : vector<2xf32>
  %5 = vector.extract %4[1] : f32 from vector<2xf32>
  memref.store %5, %p[%i] : memref<?xf32>
  %6 = vector.reduction <KIND>, %2 : vector<2xf32> into f32
  memref.store %6, %q[%i] : memref<?xf32>
  %7 = memref.atomic_rmw KIND %0, %a[%i] : (f32, memref<?xf32>) -> f32
  return
}
func.func @main(%x: tensor<Nxf32>, %y: tensor<Nxf32>) -> (tensor<Nxf32>, tensor<Nxf32>, tensor<Nxf32>) {
  %c1 = arith.constant 1 : index
  %n = arith.constant N : index
  %e = tensor.empty() : tensor<Nxf32>
  %0:3 = "device.launch"(%n, %c1, %c1, %c1, %c1, %c1) ({
    "device.in"(%x) : (tensor<Nxf32>) -> ()
    "device.in"(%y) : (tensor<Nxf32>) -> ()
    "device.out"(%e) : (tensor<Nxf32>) -> ()
    "device.out"(%e) : (tensor<Nxf32>) -> ()
    "device.out"(%y) : (tensor<Nxf32>) -> ()
  }) {kernel = @extrema, device.scope = #dev} : (index, index, index, index, index, index)
    -> (tensor<Nxf32>, tensor<Nxf32>, tensor<Nxf32>)
  return %0#0, %0#1, %0#2 : tensor<Nxf32>, tensor<Nxf32>, tensor<Nxf32>
}
"""


@pytest.mark.parametrize("operation", OPERATIONS)
def test_vectors_reductions_and_atomics_of_kernels(operation: str) -> None:
    x, y = (np.array(column, np.float32) for column in zip(*PAIRS, strict=True))
    text = KERNEL.replace("Nx", f"{N}x").replace("constant N", f"constant {N}").replace("KIND", operation)
    with devscope.compile(text) as executable:
        for found in executable(x, y):
            check(operation, found, PAIRS)
    devscope.build(text.replace('"opencl"', '"cuda"'))


def test_ptx_has_instructions_for_nan() -> None:
    """What NVIDIA's instruction does: the PTX ISA says of ``max.NaN`` that it propagates NaN, and +0 > -0."""
    text = entry("maximumf", "f32") + entry("maxnumf", "f32")
    new = '"cuda", 0 : i64, #device.target<"cuda", {arch = "sm_80"}>, ""'
    scoped = re.sub(r"(%[xy]|%rows): (tensor<[^>]*>)", rf"\1: \2 {{device.scope = #device.scope<{new}>}}", text)
    (device,) = devscope.build(scoped, CompileOptions(default="cuda:0", arguments="open")).devices
    ptx = "".join(binary.decode() for binary in device.binaries)
    assert "max.NaN.f32" in ptx
    assert "max.f32" in ptx
