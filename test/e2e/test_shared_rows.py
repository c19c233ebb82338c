"""Kernels in which work-items share rows: softmax, layer norm, argmax; for GPUs with and without sub-groups,
compiled for the device here, and for CUDA, emulated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from emulation import set_order
from test_subgroups import as_gpu
from test_workgroup_tiles import gpu  # noqa: F401  (a fixture)

import devscope
from devscope.runtime.executable import Executable

Array = np.ndarray[Any, np.dtype[Any]]
Devices = Callable[[], AbstractContextManager[object]]


@pytest.fixture(params=["opencl:0", "subgroups", "cuda:0"])
def device(request: pytest.FixtureRequest, gpu: None, cuda: Devices) -> Iterator[str]:  # noqa: F811
    with {"cuda:0": cuda, "subgroups": as_gpu}.get(request.param, nullcontext)():
        set_order(3)
        yield "cuda:0" if request.param == "cuda:0" else "opencl:0"


def compiled(device: str, *functions: str) -> Executable:
    return devscope.compile("\n".join(functions), default=device, cache=False)


def softmax(name: str, shape: str) -> str:
    axis = shape.count("x") - 1
    return f"""
        func.func @{name}(%x: tensor<{shape}>, %o: tensor<{shape}>) -> tensor<{shape}> {{
          %r = linalg.softmax dimension({axis}) ins(%x : tensor<{shape}>) outs(%o : tensor<{shape}>)
            -> tensor<{shape}>
          return %r : tensor<{shape}>
        }}
    """


#: Lengths that go into equal shares, and that do not; rows of several axes; nothing.
SOFTMAX = {
    "registers": ("9x1024xf32", (9, 1024)),
    "short": ("?x12xf32", (131, 12)),
    "odd": ("33x100xf32", (33, 100)),
    "long": ("3x9000xf32", (3, 9000)),
    "half": ("4x7x64xf16", (4, 7, 64)),
    "double": ("?x?xf64", (7, 300)),
    "nothing": ("?x?xf32", (0, 300)),
}


def test_softmax(device: str) -> None:
    rng = np.random.default_rng(0)
    with compiled(device, *(softmax(name, shape) for name, (shape, _) in SOFTMAX.items())) as executable:
        (used,) = executable.program.devices
        assert all("_rows_" in kernel.name for kernel in used.kernels), [kernel.name for kernel in used.kernels]
        for name, (type_, shape) in SOFTMAX.items():
            dtype = {"f16": np.float16, "f32": np.float32, "f64": np.float64}[type_.rpartition("x")[2]]
            x = rng.uniform(-4, 4, shape).astype(dtype)
            if len(x) > 1:
                x[1, ..., 0], x[0, ..., 0] = np.nan, -np.inf
            found = executable.run(name, x, np.empty_like(x))
            e = np.exp(x.astype(np.float64) - np.fmax.reduce(x, -1, keepdims=True, initial=-np.inf))
            tolerance = 4e-3 if dtype == np.float16 else 1e-5
            np.testing.assert_allclose(found, e / e.sum(-1, keepdims=True), tolerance, 1e-7, err_msg=name)
            assert sum(executable.counters().launches.values()) == 1 + list(SOFTMAX).index(name) - (
                "nothing" in name
            )


def test_sums_of_narrow_floats(device: str) -> None:
    """In bf16, 0.4 and 64 are 64.5; ours are computed in f32."""
    x = np.full((2, 20000), np.log(0.4), ml_dtypes.bfloat16)
    x[:, 0] = 0
    with compiled(device, softmax("main", "?x?xbf16")) as executable:
        found = executable(x, np.empty_like(x)).astype(np.float64)
        assert sum(executable.counters().launches.values()) == 1
    e = np.exp(x.astype(np.float64))
    np.testing.assert_allclose(found, e / e.sum(-1, keepdims=True), 0.01)


NORM = """
#full = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>
func.func @NAME(%x: tensor<TYPE>, %scale: tensor<COLUMNSxf32>, %rows: tensor<ROWSxf32>, %out: tensor<TYPE>)
    -> (tensor<TYPE>, tensor<ROWSxf32>) {
  %zero = arith.constant 0.0 : f32
  %epsilon = arith.constant 1.0e-5 : f32
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c1 : tensor<TYPE>
  %n32 = arith.index_cast %n : index to i32
  %width = arith.sitofp %n32 : i32 to f32
  %init = linalg.fill ins(%zero : f32) outs(%rows : tensor<ROWSxf32>) -> tensor<ROWSxf32>
  %sum = linalg.reduce {arith.addf} ins(%x : tensor<TYPE>) outs(%init : tensor<ROWSxf32>) dimensions = [1]
  %variance = linalg.generic {indexing_maps = [#full, #row, #row], iterator_types = ["parallel", "reduction"]}
    ins(%x, %sum : tensor<TYPE>, tensor<ROWSxf32>) outs(%init : tensor<ROWSxf32>) {
  ^bb0(%a: f32, %total: f32, %acc: f32):
    %mean = arith.divf %total, %width : f32
    %centred = arith.subf %a, %mean : f32
    %square = arith.mulf %centred, %centred : f32
    %0 = arith.addf %acc, %square : f32
    linalg.yield %0 : f32
  } -> tensor<ROWSxf32>
  %result = linalg.generic {indexing_maps = [#full, #row, #row, #column, #full],
                            iterator_types = ["parallel", "parallel"]}
    ins(%x, %sum, %variance, %scale : tensor<TYPE>, tensor<ROWSxf32>, tensor<ROWSxf32>, tensor<COLUMNSxf32>)
    outs(%out : tensor<TYPE>) {
  ^bb0(%a: f32, %total: f32, %squares: f32, %gamma: f32, %old: f32):
    %mean = arith.divf %total, %width : f32
    %centred = arith.subf %a, %mean : f32
    %mean_square = arith.divf %squares, %width : f32
    %stable = arith.addf %mean_square, %epsilon : f32
    %inverse = math.rsqrt %stable : f32
    %0 = arith.mulf %centred, %inverse : f32
    %1 = arith.mulf %0, %gamma : f32
    linalg.yield %1 : f32
  } -> tensor<TYPE>
  return %result, %sum : tensor<TYPE>, tensor<ROWSxf32>
}
"""


ONTO = """
func.func @main(%x: tensor<8x32xf32>, %init: tensor<8xf32>) -> (tensor<8x32xf32>, tensor<8xf32>) {
  %sum = linalg.reduce {arith.addf} ins(%x : tensor<8x32xf32>) outs(%init : tensor<8xf32>) dimensions = [1]
  %empty = tensor.empty() : tensor<8x32xf32>
  %wide = linalg.broadcast ins(%sum : tensor<8xf32>) outs(%empty : tensor<8x32xf32>) dimensions = [1]
  %0 = linalg.sub ins(%x, %wide : tensor<8x32xf32>, tensor<8x32xf32>) outs(%empty : tensor<8x32xf32>)
    -> tensor<8x32xf32>
  return %0, %sum : tensor<8x32xf32>, tensor<8xf32>
}
"""


def test_sums_onto_numbers(device: str) -> None:
    """All work-items of a row have read what it begins with before one of them writes the sum there."""
    x, init = np.arange(256, dtype=np.float32).reshape(8, 32), np.arange(8, dtype=np.float32)
    with compiled(device, ONTO) as executable:
        found, sums = executable(x, init)
        assert executable.counters().launches[device] == 1
    np.testing.assert_array_equal(sums, init + x.sum(1))
    np.testing.assert_array_equal(found, x - sums[:, None])


def test_many_sums(device: str) -> None:
    """Work-items combine what they have of a sum where they had what they had of the last one but one."""
    count, full, row = 7, "affine_map<(i, j) -> (i, j)>", "affine_map<(i, j) -> (i)>"
    steps = "\n".join(
        f"""
  %s{n} = linalg.generic {{indexing_maps = [{full}, {row}], iterator_types = ["parallel", "reduction"]}}
    ins(%y{n} : tensor<3x300xf64>) outs(%init : tensor<3xf64>) {{
  ^bb0(%a: f64, %acc: f64):
    %0 = arith.addf %acc, %a : f64
    linalg.yield %0 : f64
  }} -> tensor<3xf64>
  %y{n + 1} = linalg.generic {{indexing_maps = [{full}, {row}, {full}], iterator_types = ["parallel", "parallel"]}}
    ins(%y{n}, %s{n} : tensor<3x300xf64>, tensor<3xf64>) outs(%empty : tensor<3x300xf64>) {{
  ^bb0(%a: f64, %total: f64, %old: f64):
    %0 = arith.subf %total, %a : f64
    %1 = arith.divf %0, %length : f64
    linalg.yield %1 : f64
  }} -> tensor<3x300xf64>"""
        for n in range(count)
    )
    text = f"""
func.func @main(%y0: tensor<3x300xf64>) -> tensor<3x300xf64> {{
  %zero = arith.constant 0.0 : f64
  %length = arith.constant 300.0 : f64
  %rows = tensor.empty() : tensor<3xf64>
  %empty = tensor.empty() : tensor<3x300xf64>
  %init = linalg.fill ins(%zero : f64) outs(%rows : tensor<3xf64>) -> tensor<3xf64>
  {steps}
  return %y{count} : tensor<3x300xf64>
}}
"""
    x = np.random.default_rng(0).standard_normal((3, 300))
    with compiled(device, text) as executable:
        ((kernel,),) = (used.kernels for used in executable.program.devices)
        assert sum(-size for size in kernel.arg_sizes if size < 0) <= 16384 + 2 * 256 * 8
        found = executable(x)
    for _ in range(count):
        x = (x.sum(1, keepdims=True) - x) / 300
    np.testing.assert_allclose(found, x, 1e-12)


def test_layer_norm(device: str) -> None:
    """What only steps before the last one need is no result; sums of rows are one, too."""
    sizes = {"known": ("6", "768"), "rows_unknown": ("?", "96"), "unknown": ("?", "?")}
    functions: list[str] = []
    for name, (rows, columns) in sizes.items():
        text = NORM.replace("TYPE", "ROWSxCOLUMNSxf32").replace("NAME", name)
        functions.append(text.replace("ROWS", rows).replace("COLUMNS", columns))
    aliases, functions[1:] = functions[0].partition("func.func")[0], [f.split("\n", 4)[4] for f in functions[1:]]
    assert aliases
    rng = np.random.default_rng(0)
    with compiled(device, *functions) as executable:
        for number, (name, shape) in enumerate(
            (("known", (6, 768)), ("rows_unknown", (37, 96)), ("unknown", (5, 77)))
        ):
            x = rng.standard_normal(shape, np.float32) + 3
            scale = rng.standard_normal(shape[1], np.float32)
            found, sums = executable.run(name, x, scale, np.empty(shape[0], np.float32), np.empty_like(x))
            wide = x.astype(np.float64)
            centred = wide - wide.mean(1, keepdims=True)
            expected = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5) * scale
            np.testing.assert_allclose(found, expected, 1e-4, 1e-5, err_msg=name)
            np.testing.assert_allclose(sums, wide.sum(1), 1e-5)
            assert sum(executable.counters().launches.values()) == number + 1


def argmax(name: str, shape: str, element: str, steps: str, begin: str) -> str:
    return f"""
        func.func @{name}(%x: tensor<{shape}x{element}>, %v: tensor<?x{element}>, %w: tensor<?xindex>)
            -> (tensor<?x{element}>, tensor<?xindex>) {{
          %begin = arith.constant {begin} : {element}
          %c7 = arith.constant 7 : index
          %vf = linalg.fill ins(%begin : {element}) outs(%v : tensor<?x{element}>) -> tensor<?x{element}>
          %wf = linalg.fill ins(%c7 : index) outs(%w : tensor<?xindex>) -> tensor<?xindex>
          %r:2 = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>,
                                                  affine_map<(i, j) -> (i)>],
                                 iterator_types = ["parallel", "reduction"]}}
              ins(%x : tensor<{shape}x{element}>) outs(%vf, %wf : tensor<?x{element}>, tensor<?xindex>) {{
          ^bb0(%e: {element}, %best: {element}, %at: index):
            %j = linalg.index 1 : index
            {steps}
            %new_at = arith.select %better, %j, %at : index
            linalg.yield %new, %new_at : {element}, index
          }} -> (tensor<?x{element}>, tensor<?xindex>)
          return %r#0, %r#1 : tensor<?x{element}>, tensor<?xindex>
        }}
    """


_CHOSEN = "%better = arith.cmpf ogt, %e, %best : f32\n%new = arith.select %better, %e, %best : f32"
_LARGEST = "%better = arith.cmpf ogt, %e, %best : f32\n%new = arith.maximumf %e, %best : f32"
_LEAST = "%better = arith.cmpi slt, %e, %best : i32\n%new = arith.minsi %e, %best : i32"
ARGMAX = {
    "chosen": ("?x?", "f32", _CHOSEN, "0xFF800000"),
    "largest": ("?x256", "f32", _LARGEST, "-1.0"),
    "least": ("?x100", "i32", _LEAST, "3"),
}


def sequential(name: str, x: Array) -> tuple[Array, Array]:
    """Element by element, in order."""
    begin = {"chosen": -np.inf, "largest": -1.0, "least": 3}[name]
    values, places = np.full(len(x), begin, x.dtype), np.full(len(x), 7)
    for i, row in enumerate(x):
        for j, e in enumerate(row):
            if e < values[i] if name == "least" else e > values[i]:
                values[i], places[i] = e, j
            elif name == "largest" and np.isnan(e):
                values[i] = e
    return values, places


def test_argmax(device: str) -> None:
    """The first of the best ones; where NaN or zeros of both signs are, elements count in order."""
    rng = np.random.default_rng(0)
    with compiled(device, *(argmax(name, *parts) for name, parts in ARGMAX.items())) as executable:
        (used,) = executable.program.devices
        assert len(used.kernels) == len(ARGMAX)
        assert all("_rows_" in kernel.name for kernel in used.kernels)
        for name, (shape, element, _, _) in ARGMAX.items():
            for rows, columns in ((1, 1), (5, 256), (33, 100), (0, 4), (4, 0)):
                if not shape.endswith(("?", f"x{columns}")):
                    continue
                x = rng.integers(-9, 9, (rows, columns)).astype({"f32": np.float32, "i32": np.int32}[element])
                if element == "f32" and x.size > 1:
                    x[0] = -np.inf
                    x[1] = -abs(x[1]) - 1
                    x[1, 3], x[1, 5] = -0.0, 0.0
                    x[2, ::9], x[3, 40:60] = np.nan, 11
                found = executable.run(name, x, np.empty(rows, x.dtype), np.empty(rows, np.int64))
                for value, expected in zip(found, sequential(name, x), strict=True):
                    np.testing.assert_array_equal(value, expected, f"{name} {rows} {columns}")
                if element == "f32" and name == "chosen":
                    np.testing.assert_array_equal(np.signbit(found[0]), np.signbit(sequential(name, x)[0]))
