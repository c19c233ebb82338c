"""Kernels in which workgroups share tiles, those of GPUs: compiled for the device here, and beside numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from test_contractions import EPILOGUES, K, M, N, epilogue_function
from test_contractions import Case as Contraction
from test_convolutions import Case as Convolution

import devscope
from devscope.lowering.cuda import target as cuda_target
from devscope.lowering.opencl import target
from devscope.runtime.executable import Executable

GPU = """
#gpu = #device.scope<"opencl", 0 : i64, #device.target<"opencl", {type = "gpu"}>, "">
func.func @main(%a: tensor<64x128xf32>, %b: tensor<128x96xf32>) -> tensor<64x96xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x96xf32>
  %0 = linalg.fill {device.scope = #gpu} ins(%zero : f32) outs(%e : tensor<64x96xf32>) -> tensor<64x96xf32>
  %1 = linalg.matmul {device.scope = #gpu} ins(%a, %b : tensor<64x128xf32>, tensor<128x96xf32>)
    outs(%0 : tensor<64x96xf32>) -> tensor<64x96xf32>
  %2 = math.absf %1 {device.scope = #gpu} : tensor<64x96xf32>
  return %2 : tensor<64x96xf32>
}
"""


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that is compiled for OpenCL is compiled for a GPU."""
    choose = target.TARGET.choose_kernels
    monkeypatch.setitem(
        target.TARGET.__dict__, "choose_kernels", lambda options, rows: choose({**options, "type": "gpu"}, rows)
    )


def compiled(*functions: str) -> Executable:
    return devscope.compile("\n".join(functions), default="opencl:0", cache=False)


def test_one_launch_does_all() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, shape).astype(np.float32) for shape in ((64, 128), (128, 96)))
    with devscope.compile(GPU, cache=False) as executable:
        np.testing.assert_array_equal(executable(a, b), np.abs(a @ b))
        assert executable.counters().launches["opencl:0"] == 1


def test_sizes_that_are_not_known(gpu: None) -> None:
    """Nothing, one, and more than tiles have, in one kernel."""
    cases = [
        Contraction("mk,kn->mn", {"m": m, "n": n, "k": k}, dynamic="mnk")
        for m, n, k in ((0, 5, 7), (5, 0, 7), (5, 7, 0), (1, 1, 1), (64, 64, 16), (65, 130, 33), (3, 300, 100))
    ]
    with compiled(cases[0].function("main")) as executable:
        for case in cases:
            arguments = case.arguments(np.random.default_rng(0))
            np.testing.assert_array_equal(executable(*arguments), case.expected(*arguments), str(case))


SIZES = {"b": 2, "d": 2, "m": 19, "n": 35, "k": 21, "p": 2, "q": 2, "r": 3}
CONTRACTIONS = [
    Contraction("km,nk->mn", SIZES),
    Contraction("mk,nk->nm", SIZES, adds=False),
    Contraction("bmdk,bndk->bdmn", SIZES, "f16"),
    Contraction("mpkr,rknq->npmq", SIZES, dynamic="mpkrnq"),
    Contraction("mk,kn->mn", {"m": 90, "n": 10, "k": 21}, "i8", "i32"),
    Contraction("mk,kn->mn", {"m": 5, "n": 200, "k": 21}, "f64"),
    Contraction("mk,kn->mn", {"m": 1030, "n": 1025, "k": 9}),
]


def test_contractions(gpu: None) -> None:
    """Layouts, several loops of a kind, element types, a row of each shape."""
    functions = [case.function(f"case_{number}") for number, case in enumerate(CONTRACTIONS)]
    with compiled(*functions) as executable:
        (device,) = executable.program.devices
        assert sum("_contraction_" in kernel.name for kernel in device.kernels) == len(CONTRACTIONS)
        for number, case in enumerate(CONTRACTIONS):
            arguments = case.arguments(np.random.default_rng(0))
            result = executable.run(f"case_{number}", *arguments)
            np.testing.assert_array_equal(result, case.expected(*arguments), str(case))


def test_epilogues(gpu: None) -> None:
    names = ("all", "gelu")
    rng = np.random.default_rng(0)
    shapes = {"a": (M, K), "b": (K, N), "bias": (N,), "residual": (M, N), "column": (M,), "scalar": ()}
    data = {name: np.asarray(rng.standard_normal(shape, dtype=np.float32)) for name, shape in shapes.items()}
    data["a"][:] /= 10
    functions = [epilogue_function(name, EPILOGUES[name][0], name == "gelu", "?") for name in names]
    with compiled(*functions) as executable:
        for name in names:
            expected = EPILOGUES[name][1](data["a"] @ data["b"], **data)
            result = executable.run(name, *data.values())
            np.testing.assert_allclose(result, expected, rtol=2e-4, atol=2e-4, err_msg=name)


def test_special_values(gpu: None) -> None:
    """Infinities and NaNs get into the sums that they belong to, and into no others."""
    case = Contraction("mk,kn->mn", {"m": 33, "n": 67, "k": 70}, dynamic="m", adds=False)
    a, b, c = case.arguments(np.random.default_rng(0))
    a[3, 5], a[32, 69], b[69, 66], b[1, 0] = np.nan, np.inf, -np.inf, np.nan
    with compiled(case.function("main")) as executable, np.errstate(all="ignore"):
        np.testing.assert_array_equal(executable(a, b, c), a.astype(np.float64) @ b)


CONVOLUTIONS = {
    "nhwc": Convolution(("nhwc", "hwcf", "nhwf"), strides=2, dilations=2, size=17),
    "nchw": Convolution(("nchw", "fchw", "nfhw"), low=1, high=1, relu=True, dynamic="dhw"),
    "groups": Convolution(("ngchw", "gfchw", "ngfhw"), groups=3),
}


def test_convolutions(gpu: None) -> None:
    rng = np.random.default_rng(7)
    with compiled(*(case.text(name) for name, case in CONVOLUTIONS.items())) as executable:
        for name, case in CONVOLUTIONS.items():
            arguments = [rng.integers(-2, 3, case.shape(n)).astype(np.float32) for n in range(3)]
            found = executable.run(name, *arguments)
            np.testing.assert_array_equal(found.astype(np.float64), case.reference(*arguments), name)


TENSOR = [
    Contraction("mk,kn->mn", {"m": 70, "n": 136, "k": 40}, "f16", "f32"),
    Contraction("km,nk->mn", {"m": 72, "n": 67, "k": 48}, "f16", "f32", adds=False),
    Contraction("mk,kn->mn", {"m": 33, "n": 40, "k": 24}, "bf16", "f32"),
    Contraction("bmk,bkn->bmn", {"b": 2, "m": 19, "n": 35, "k": 37}, "f16", dynamic="mnk"),
    Contraction("mk,kn->mn", {"m": 520, "n": 520, "k": 33}, "f16", "f32"),
]


def test_tensor_cores(cuda: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles copied past the registers and through them, in all layouts, with edges."""
    monkeypatch.setattr(cuda_target, "_DEFAULT", "sm_80")
    functions = [case.function(f"case_{number}") for number, case in enumerate(TENSOR)]
    with cuda(), devscope.compile("\n".join(functions), default="cuda:0", cache=False) as executable:
        code = executable.program.devices[0].binaries[0].decode()
        assert "nvvm.mma." in code
        assert "cp.async" in code
        for number, case in enumerate(TENSOR):
            arguments = case.arguments(np.random.default_rng(0))
            result = executable.run(f"case_{number}", *arguments)
            np.testing.assert_array_equal(result, case.expected(*arguments), str(case))


ROUNDED = [
    Contraction("mk,kn->mn", {"m": 70, "n": 136, "k": 40}),
    Contraction("km,nk->mn", {"m": 72, "n": 67, "k": 45}, adds=False),
    Contraction("bmk,bnk->bmn", {"b": 2, "m": 19, "n": 35, "k": 37}, dynamic="mnk"),
    Contraction("km,kn->mn", {"m": 520, "n": 513, "k": 17}),
]


def test_tf32(cuda: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Products of f32 by tensor cores, if the target says so: factors are rounded to 11 bits, NaN stays."""
    monkeypatch.setattr(cuda_target, "_DEFAULT", "sm_80")
    choose = cuda_target.TARGET.choose_kernels
    monkeypatch.setitem(
        cuda_target.TARGET.__dict__,
        "choose_kernels",
        lambda options, rows: choose({**options, "tf32": True}, rows),
    )
    functions = [case.function(f"case_{number}") for number, case in enumerate(ROUNDED)]
    with cuda(), devscope.compile("\n".join(functions), default="cuda:0", cache=False) as executable:
        assert "nvvm.mma.m16n8k8.row.col.tf32" in executable.program.devices[0].binaries[0].decode()
        for number, case in enumerate(ROUNDED):
            arguments = case.arguments(np.random.default_rng(0))
            result = executable.run(f"case_{number}", *arguments)
            np.testing.assert_array_equal(result, case.expected(*arguments), str(case))
        a, b, c = ROUNDED[0].arguments(np.random.default_rng(0))
        a[:] = np.random.default_rng(1).standard_normal(a.shape)
        a[3, 5], a[69, 39] = np.nan, np.inf
        a[8] = np.frombuffer(np.uint32(0x3F801000).tobytes(), np.float32)  # half way between two: away from zero
        rounded = ((a.view(np.uint32) + 0x1000) & 0xFFFFE000).view(np.float32)
        with np.errstate(invalid="ignore"):
            expected = np.where(np.isfinite(a), rounded, a).astype(np.float64) @ b + c
        found = executable.run("case_0", a, b, c)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-4)


def reduction(name: str, spec: str, types: tuple[str, str], lines: str, begin: str) -> str:
    """A function that reduces a tensor; ``spec``: its axes and the result's, letters are loops."""
    axes = spec.split("->")
    kinds = ", ".join('"parallel"' if loop in axes[1] else '"reduction"' for loop in axes[0])
    maps = ", ".join(f"affine_map<({', '.join(axes[0])}) -> ({', '.join(each)})>" for each in axes)
    element = types[1].rpartition("x")[2].strip("tensor<>")
    return f"""
        func.func @{name}(%x: {types[0]}, %o: {types[1]}) -> {types[1]} {{
          %begin = arith.constant {begin} : {element}
          %f = linalg.fill ins(%begin : {element}) outs(%o : {types[1]}) -> {types[1]}
          %r = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}
              ins(%x : {types[0]}) outs(%f : {types[1]}) {{
          ^bb0(%e: {element}, %s: {element}):
            {lines}
            linalg.yield %y : {element}
          }} -> {types[1]}
          return %r : {types[1]}
        }}
    """


REDUCTIONS: dict[str, tuple[str, tuple[str, str], str, str, Callable[..., Any]]] = {
    "rows": (
        "ij->i",
        ("tensor<?x?xf32>", "tensor<?xf32>"),
        "%q = arith.mulf %e, %e : f32\n%y = arith.addf %q, %s : f32",
        "1.5",
        lambda x: (x * x).sum(1) + 1.5,
    ),
    "columns": (
        "ij->j",
        ("tensor<?x70xf32>", "tensor<70xf32>"),
        "%y = arith.maximumf %s, %e : f32",
        "0xFF800000",
        lambda x: x.max(0, initial=-np.inf),
    ),
    "line": (
        "i->",
        ("tensor<?xf32>", "tensor<f32>"),
        "%y = arith.addf %s, %e : f32",
        "0.0",
        lambda x: x.sum(),
    ),
    "all": (
        "ij->",
        ("tensor<500x1000xf32>", "tensor<f32>"),
        "%y = arith.addf %s, %e : f32",
        "0.0",
        lambda x: x.sum(),
    ),
    "outer": (
        "ijk->j",
        ("tensor<40x3x50xf32>", "tensor<3xf32>"),  # indices of 16 bits are enough
        "%y = arith.addf %s, %e : f32",
        "0.0",
        lambda x: x.sum((0, 2)),
    ),
    "middle": (
        "ijk->ik",
        ("tensor<3x?x4xf32>", "tensor<3x4xf32>"),  # fewer results than a workgroup has
        "%y = arith.addf %s, %e : f32",
        "0.0",
        lambda x: x.sum(1),
    ),
}
SHAPES = {
    "rows": ((37, 300), (5, 1), (0, 5), (5, 0), (2, 4000)),
    "columns": ((300, 70), (1, 70), (0, 70)),
    "line": ((3,), (0,), (9000,)),
    "all": ((500, 1000),),
    "outer": ((40, 3, 50),),
    "middle": ((3, 1, 4), (3, 67, 4)),
}


def test_reductions(gpu: None) -> None:
    """Along either axis, of sums that are not known, of nothing, to one result in two kernels; NaN stays."""
    rng = np.random.default_rng(0)
    functions = [reduction(name, *parts[:-1]) for name, parts in REDUCTIONS.items()]
    with compiled(*functions) as executable:
        (device,) = executable.program.devices
        assert sum("_reduction_" in kernel.name for kernel in device.kernels) == len(REDUCTIONS) + 3
        for name, (_, _, _, _, expected) in REDUCTIONS.items():
            for shape in SHAPES[name]:
                x = rng.integers(-5, 6, shape).astype(np.float32)
                if name == "columns" and len(x):
                    x[0, 3] = np.nan
                wanted = np.asarray(expected(x), np.float32)
                np.testing.assert_array_equal(executable.run(name, x, np.empty_like(wanted)), wanted, name)
