"""Passes over rows: of buffers that other operations write before, and of any length and type."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import devscope

TYPES: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    "i8": np.int8,
    "i32": np.int32,
    "i64": np.int64,
}
LENGTHS = (1, 3, 8, 31, 64, 65, 100, 257, 1000)

PROGRAM = """
func.func @main(%a: tensor<?x8xf32>, %n: index, %m: index) -> (tensor<?x?xf32>, tensor<?x?xf32>) {
  %one = arith.constant 1.0 : f32
  %0 = tensor.empty(%n, %m) : tensor<?x?x8xf32>
  %ones = linalg.fill ins(%one : f32) outs(%0 : tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
  %1 = tensor.empty(%n, %m) : tensor<?x?xf32>
  %begin = linalg.fill ins(%one : f32) outs(%1 : tensor<?x?xf32>) -> tensor<?x?xf32>
  %sums = linalg.batch_matvec ins(%ones, %a : tensor<?x?x8xf32>, tensor<?x8xf32>)
    outs(%begin : tensor<?x?xf32>) -> tensor<?x?xf32>
  %soft = linalg.softmax dimension(1) ins(%sums : tensor<?x?xf32>) outs(%1 : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %sums, %soft : tensor<?x?xf32>, tensor<?x?xf32>
}
"""


def test_a_fill_stays_in_front_of_what_adds_to_it() -> None:
    a = np.arange(16, dtype=np.float32).reshape(2, 8)
    with devscope.compile(PROGRAM, cache=False) as program:
        sums, soft = program(a, 2, 3)
    np.testing.assert_array_equal(sums, np.repeat(a.sum(axis=1)[:, None] + 1, 3, axis=1))
    np.testing.assert_allclose(soft, np.full((2, 3), 1 / 3, np.float32), rtol=1e-6)


PARTS = """
func.func @main(%x: tensor<{batch}x5x{width}x{element}>, %c: {element})
    -> (tensor<{batch}x9x{wide}x{element}>, tensor<{batch}x10x{width}x{element}>) {{
  %0 = tensor.pad %x low[0, 1, 0] high[0, 3, 2] {{
  ^bb0(%i: index, %j: index, %k: index):
    tensor.yield %c : {element}
  }} : tensor<{batch}x5x{width}x{element}> to tensor<{batch}x9x{wide}x{element}>
  %1 = tensor.concat dim(1) %x, %x
    : (tensor<{batch}x5x{width}x{element}>, tensor<{batch}x5x{width}x{element}>)
      -> tensor<{batch}x10x{width}x{element}>
  return %0, %1 : tensor<{batch}x9x{wide}x{element}>, tensor<{batch}x10x{width}x{element}>
}}
"""


@pytest.mark.parametrize("scope", ["cpu:0", "opencl:0"])
@pytest.mark.parametrize("element", ["f32", "bf16", "i8"])
@pytest.mark.parametrize(("batch", "width", "wide"), [(40, 6, 8), ("?", 6, 8), ("?", "?", "?"), (40, 0, 2)])
def test_parts_of_rows_are_written_one_by_one(scope: str, element: str, batch: Any, width: Any, wide: Any) -> None:
    text = PARTS.format(batch=batch, width=width, wide=wide, element=element)
    shape = (40, 5, width if isinstance(width, int) else 6)
    x = np.random.default_rng(0).integers(-99, 99, shape).astype(TYPES[element])
    with devscope.compile(text, default=scope, cache=False) as program:
        padded, joined = program(x, TYPES[element](7))
    widths = ((0, 0), (1, 3), (0, 2))
    np.testing.assert_array_equal(padded, np.pad(x.astype(np.float32), widths, constant_values=7).astype(x.dtype))
    np.testing.assert_array_equal(joined, np.concatenate([x, x], 1))


def test_steps_that_write_a_slice_keep_rows() -> None:
    text = """
func.func @main(%x: tensor<?x?x16xf32>) -> tensor<?x?x16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?x?x16xf32>
  %m = tensor.dim %x, %c1 : tensor<?x?x16xf32>
  %room = tensor.empty(%n, %m) : tensor<?x?x16xf32>
  %all = scf.forall (%i) in (%n) shared_outs(%out = %room) -> tensor<?x?x16xf32> {
    %part = tensor.extract_slice %x[%i, 0, 0] [1, %m, 16] [1, 1, 1] : tensor<?x?x16xf32> to tensor<?x16xf32>
    %to = tensor.extract_slice %out[%i, 0, 0] [1, %m, 16] [1, 1, 1] : tensor<?x?x16xf32> to tensor<?x16xf32>
    %soft = linalg.softmax dimension(1) ins(%part : tensor<?x16xf32>) outs(%to : tensor<?x16xf32>)
      -> tensor<?x16xf32>
    %once = linalg.exp ins(%soft : tensor<?x16xf32>) outs(%to : tensor<?x16xf32>) -> tensor<?x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %once into %out[%i, 0, 0] [1, %m, 16] [1, 1, 1]
        : tensor<?x16xf32> into tensor<?x?x16xf32>
    }
  }
  return %all : tensor<?x?x16xf32>
}
"""
    x = np.random.default_rng(0).standard_normal((3, 9, 16)).astype(np.float32)
    soft = np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True)
    with devscope.compile(text, cache=False) as program:
        np.testing.assert_allclose(program(x), np.exp(soft), rtol=1e-5)


def reductions(element: str, rows: str, columns: str) -> str:
    """Sums, products of integers, and extrema of rows."""
    kind, last = ("f", "f") if element in ("f16", "bf16", "f32", "f64") else ("i", "si")
    names = {"add": f"add{kind}", "max": f"max{'imum' if kind == 'f' else ''}{last}"}
    names |= {"min": f"min{'imum' if kind == 'f' else ''}{last}"}
    matrix, row = f"tensor<{rows}x{columns}x{element}>", f"tensor<{rows}x{element}>"
    lines = [
        f"%{name} = linalg.reduce ins(%x : {matrix}) outs(%start : {row}) dimensions = [1]\n"
        f"(%a: {element}, %b: {element}) {{\n%c = arith.{op} %b, %a : {element}\nlinalg.yield %c : {element}\n}}"
        for name, op in names.items()
    ]
    values = ", ".join(f"%{name}" for name in names)
    types = ", ".join([row] * len(names))
    return (
        f"func.func @main(%x: {matrix}, %start: {row}) -> ({types}) {{\n"
        + "\n".join([*lines, f"return {values} : {types}"])
        + "\n}"
    )


def check_reductions(program: devscope.Executable, element: str, rows: int, columns: int) -> None:
    rng = np.random.default_rng()
    dtype = TYPES[element]
    x = rng.integers(-4, 5, (rows, columns)).astype(dtype)  # sums are exact
    start = rng.integers(-4, 5, rows).astype(dtype)
    if element.endswith(("f16", "f32", "f64")) and rows > 3 and columns:
        x[1, columns // 2], x[2, -1], x[3, 0] = np.nan, np.inf, -np.inf
    both = np.concatenate([x, start[:, None]], axis=1)
    wide = both.astype(np.float64 if np.dtype(dtype).kind != "i" else np.int64)
    expected = [wide.sum(axis=1), wide.max(axis=1), wide.min(axis=1)]
    for found, numbers in zip(program(x, start), expected, strict=True):
        rounded = numbers.astype(dtype).astype(wide.dtype)
        np.testing.assert_array_equal(
            np.asarray(found).astype(wide.dtype), rounded, f"{element}, {rows} x {columns}"
        )


@pytest.mark.parametrize("element", TYPES)
def test_sums_and_extrema_of_rows(element: str) -> None:
    with devscope.compile(reductions(element, "?", "?"), cache=False) as program:
        for rows, columns in ((0, 5), (5, 0), (1, 4097), *((9, length) for length in LENGTHS)):
            check_reductions(program, element, rows, columns)


@pytest.mark.parametrize("length", LENGTHS)
def test_sums_and_extrema_of_rows_of_known_length(length: int) -> None:
    for element in ("bf16", "f32", "f64"):
        with devscope.compile(reductions(element, "33", str(length)), cache=False) as program:
            check_reductions(program, element, 33, length)


SOFTMAX = """
func.func @main(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?x?xf32>
  %m = tensor.dim %x, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%n, %m) : tensor<?x?xf32>
  %r = linalg.softmax dimension(1) ins(%x : tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}
"""


@pytest.mark.parametrize("device", ["cpu:0", "opencl:0"])
def test_softmax_of_linalg_in_one_pass(device: str) -> None:
    x = np.random.default_rng(0).standard_normal((70, 131), np.float32)
    x[1, 7], x[2, 130], x[3, 0], x[4] = np.nan, np.inf, -np.inf, -np.inf
    with np.errstate(invalid="ignore"), devscope.compile(SOFTMAX, default=device) as program:
        for rows in (x, x[:, :1], x[:5, :16], x[:0]):
            powers = np.exp(rows - rows.max(1, keepdims=True))
            found = program(np.ascontiguousarray(rows))
            np.testing.assert_allclose(found, powers / powers.sum(1, keepdims=True), rtol=1e-5, atol=1e-7)
            if len(rows) == 70 and device != "cpu:0":
                program.reset_counters()
                program(np.ascontiguousarray(rows))
                assert program.counters().launches[device] == 1
