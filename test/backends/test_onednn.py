"""The backend ``onednn`` beside the host's own code."""

from __future__ import annotations

import ctypes.util
import re
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest

import devscope
from devscope.backend_check import check_backend
from devscope.backends.onednn.programs import ACTIVATIONS, program
from devscope.backends.onednn.runtime import OnednnRuntime
from devscope.errors import DevscopeError
from devscope.runtime.child_process import python

pytestmark = pytest.mark.sampled(2)

try:
    OnednnRuntime().function("dnnl_version")
except OSError:
    pytest.skip("oneDNN is not installed", allow_module_level=True)


def arrays(text: str, sizes: dict[str, int] | None = None, seed: int = 0) -> list[np.ndarray]:
    """Random inputs for ``@main``; ``?`` in turn by ``sizes``."""
    head = text[text.index("@main(") :]
    head = head[: head.index(") ->")]
    random = np.random.default_rng(seed)
    unknown = iter((sizes or {}).values())
    shapes = [
        [next(unknown) if size == "?" else int(size) for size in shape.split("x") if size]
        for shape in re.findall(r"tensor<((?:[\d?]+x)*)f32>", head)
    ]
    return [random.standard_normal(shape).astype(np.float32) for shape in shapes]


def taken(executable: devscope.Executable) -> list[str]:
    return [row["pattern"] for row in executable.program.report.get("backends", [])]


def both(text: str, patterns: list[str], *inputs: np.ndarray, options: str = "") -> devscope.Executable:
    """Compile with and without the backend, and compare; the program with it."""
    executable = devscope.compile(text, backends=[f"onednn{options}"], cache=False)
    assert taken(executable) == patterns
    inputs = inputs or tuple(arrays(text))
    expected = devscope.compile(text, cache=False)(*inputs)
    for _ in range(2):
        np.testing.assert_allclose(executable(*inputs), expected, rtol=2e-5, atol=2e-5)
    return executable


@pytest.mark.long
def test_conformance() -> None:
    assert [outcome for outcome in check_backend("onednn:finite=true") if outcome.problem] == []


@pytest.mark.parametrize(
    ("activation", "bias", "sum_"),
    [("relu", False, False), ("gelu", False, True), ("gelu_tanh", True, True), ("tanh", True, True)],
)
def test_what_follows_a_product(activation: str, bias: bool, sum_: bool) -> None:
    """What the suite has not got; relu has code of its own unless numbers are finite."""
    text = program("linalg.matmul", bias, sum_, activation)
    both(text, [f"matmul_{activation}"], options="" if activation == "relu" else ":finite=true")


@pytest.mark.parametrize("activation", [name for name in ACTIVATIONS if name])
def test_values_that_are_no_numbers(activation: str) -> None:
    """What follows keeps NaNs, infinities and the results at zeros of both signs as the host's code has them."""
    text = program("linalg.matmul", activation=activation)
    a, b = np.zeros((6, 5), np.float32), np.zeros((5, 7), np.float32)
    a[:, 0], b[0, :2] = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40], 1
    executable, plain = (devscope.compile(text, backends=each, cache=False) for each in (["onednn"], []))
    assert taken(executable) == ["matmul" if activation == "gelu" else f"matmul_{activation}"]
    others = np.zeros((6, 7), np.float32), np.zeros(7, np.float32)
    np.testing.assert_allclose(executable(a, b, *others), plain(a, b, *others), rtol=1e-5, atol=1e-6)


CONVOLUTIONS = [
    ("conv_1d_nwc_wcf", "2x9x3", "2x3x4", "2x?x4"),
    ("conv_1d_ncw_fcw", "2x3x9", "4x3x2", "2x4x?"),
    ("conv_2d_nhwc_hwcf", "2x8x9x3", "3x2x3x4", "2x?x?x4"),
    ("conv_2d_nhwc_fhwc", "2x8x9x3", "4x3x2x3", "2x?x?x4"),
    ("conv_2d_nchw_fchw", "2x3x8x9", "4x3x3x2", "2x4x?x?"),
    ("conv_2d_ngchw_gfchw", "2x3x2x8x9", "3x4x2x3x2", "2x3x4x?x?"),
    ("conv_2d_nhwgc_gfhwc", "2x8x9x3x2", "3x4x3x2x2", "2x?x?x3x4"),
    ("conv_3d_ndhwc_dhwcf", "1x6x7x8x2", "2x3x2x2x4", "1x?x?x?x4"),
    ("conv_3d_ncdhw_fcdhw", "1x2x6x7x8", "4x2x2x3x2", "1x4x?x?x?"),
    ("depthwise_conv_1d_nwc_wc", "2x9x3", "2x3", "2x?x3"),
    ("depthwise_conv_2d_nhwc_hwc", "2x8x9x3", "3x2x3", "2x?x?x3"),
    ("depthwise_conv_2d_nhwc_hwcm", "2x8x9x3", "3x2x3x2", "2x?x?x3x2"),
    ("depthwise_conv_2d_nchw_chw", "2x3x8x9", "3x3x2", "2x3x?x?"),
]


def convolution(
    name: str, image: str, filters: str, result: str, stride: int, dilation: int, init: str = "zero"
) -> str:
    """``result`` has ``?`` where sizes follow from the others. ``init``: zero, or another argument."""
    from devscope.backends.onednn.patterns import LAYOUTS

    layout = LAYOUTS[f"linalg.{name}"]
    in_sizes, window = image.split("x"), filters.split("x")
    sizes: list[int] = []
    for axis, size in zip(layout.result, result.split("x"), strict=True):
        if size != "?":
            sizes.append(int(size))
            continue
        room = int(in_sizes[layout.image.index(axis)]) - (int(window[layout.filters.index(axis)]) - 1) * dilation
        sizes.append((room - 1) // stride + 1)
    count = len(layout.space)
    shape = "x".join(map(str, sizes))
    numbers = [f"dense<{number}> : tensor<{count}xi64>" for number in (stride, dilation)]
    start = f"%i = arith.constant dense<0.0> : tensor<{shape}xf32>" if init == "zero" else ""
    more = "" if init == "zero" else f", %i: tensor<{shape}xf32>"
    return f"""func.func @main(%a: tensor<{image}xf32>, %b: tensor<{filters}xf32>{more}) -> tensor<{shape}xf32> {{
      {start}
      %r = linalg.{name} {{strides = {numbers[0]}, dilations = {numbers[1]}}}
        ins(%a, %b : tensor<{image}xf32>, tensor<{filters}xf32>) outs(%i : tensor<{shape}xf32>)
        -> tensor<{shape}xf32>
      return %r : tensor<{shape}xf32>
    }}"""


@pytest.mark.parametrize("number", range(len(CONVOLUTIONS)), ids=[case[0] for case in CONVOLUTIONS])
def test_convolutions(number: int) -> None:
    settings = [(2, 1, "given"), (1, 2, "zero")]
    both(convolution(*CONVOLUTIONS[number], *settings[number % 2]), ["convolution"])


PADDED = """func.func @main(%x: tensor<?x6x7x3xf32>, %v: tensor<4xf32>) -> tensor<?x?x?x4xf32> {
  %zero = arith.constant $PAD : f32
  %null = arith.constant 0.0 : f32
  %w = arith.constant dense<$DATA> : tensor<3x3x3x4xf32>
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %n = tensor.dim %x, %c0 : tensor<?x6x7x3xf32>
  %p = tensor.pad %x low[0, 1, 2, 0] high[0, 1, 0, 0] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<?x6x7x3xf32> to tensor<?x8x9x3xf32>
  %e = tensor.empty(%n, %c3, %c4) : tensor<?x?x?x4xf32>
  %bias = linalg.broadcast ins(%v : tensor<4xf32>) outs(%e : tensor<?x?x?x4xf32>) dimensions = [0, 1, 2]
  %f = linalg.fill ins(%null : f32) outs(%e : tensor<?x?x?x4xf32>) -> tensor<?x?x?x4xf32>
  %0 = linalg.conv_2d_nhwc_hwcf {strides = dense<2> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}
    ins(%p, %w : tensor<?x8x9x3xf32>, tensor<3x3x3x4xf32>) outs(%f : tensor<?x?x?x4xf32>) -> tensor<?x?x?x4xf32>
  %1 = arith.addf %0, %bias : tensor<?x?x?x4xf32>
  %2 = linalg.max ins(%1, %f : tensor<?x?x?x4xf32>, tensor<?x?x?x4xf32>) outs(%e : tensor<?x?x?x4xf32>)
    -> tensor<?x?x?x4xf32>
  return %2 : tensor<?x?x?x4xf32>
}"""


@pytest.mark.parametrize("pad", [0.0, 1.0])
def test_padding_and_constant_filters(pad: float) -> None:
    """Zeros around the image are part of the call, other numbers are not; filters are reordered once."""
    data = np.random.default_rng(1).standard_normal((3, 3, 3, 4)).astype(np.float32)
    text = PADDED.replace("$DATA", f'"0x{data.tobytes().hex().upper()}"').replace("$PAD", str(pad))
    executable = both(text, ["convolution_relu"], *arrays(text, {"n": 2}))
    assert "dnnl_reorder_primitive_desc_create" in executable.program.uses["onednn"]
    plain = devscope.compile(text, cache=False)
    for batch in (1, 5, 0, 5, 2):
        inputs = arrays(text, {"n": batch}, seed=batch)
        np.testing.assert_allclose(executable(*inputs), plain(*inputs), rtol=2e-5, atol=2e-5)


def test_channels_first_with_all_that_follows() -> None:
    """oneDNN wants another layout: image, filters and what is added are put into that, the result is put back."""
    shape = "tensor<2x32x14x14xf32>"
    text = f"""func.func @main(%x: tensor<2x16x14x14xf32>, %w: tensor<32x16x1x1xf32>, %v: tensor<32xf32>,
        %s: {shape}) -> {shape} {{
      %z = arith.constant dense<0.0> : {shape}
      %e = tensor.empty() : {shape}
      %0 = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<2x16x14x14xf32>, tensor<32x16x1x1xf32>)
        outs(%z : {shape}) -> {shape}
      %b = linalg.broadcast ins(%v : tensor<32xf32>) outs(%e : {shape}) dimensions = [0, 2, 3]
      %1 = arith.addf %0, %b : {shape}
      %2 = arith.addf %1, %s : {shape}
      %3 = arith.maximumf %2, %z : {shape}
      return %3 : {shape}
    }}"""
    both(text, ["convolution_relu"])


SOFTMAX = """func.func @main(%x: tensor<?x?x?xf32>) -> tensor<?x?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %a = tensor.dim %x, %c0 : tensor<?x?x?xf32>
  %b = tensor.dim %x, %c1 : tensor<?x?x?xf32>
  %c = tensor.dim %x, %c2 : tensor<?x?x?xf32>
  %e = tensor.empty(%a, %b, %c) : tensor<?x?x?xf32>
  %r = linalg.softmax dimension($AXIS) ins(%x : tensor<?x?x?xf32>) outs(%e : tensor<?x?x?xf32>)
    -> tensor<?x?x?xf32>
  return %r : tensor<?x?x?xf32>
}"""


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_softmax(axis: int) -> None:
    text = SOFTMAX.replace("$AXIS", str(axis))
    executable = devscope.compile(text, backends=["onednn"], cache=False)
    assert taken(executable) == ["softmax"]
    for shape in ((2, 3, 4), (1, 1, 1), (0, 3, 4), (33, 2, 65)):
        x = np.random.default_rng(0).standard_normal(shape).astype(np.float32) * 10
        powers = np.exp(x - x.max(axis=axis, keepdims=True)) if x.size else x
        np.testing.assert_allclose(executable(x), powers / powers.sum(axis=axis, keepdims=True), rtol=1e-5)


def test_softmax_of_values_that_are_no_numbers() -> None:
    text = SOFTMAX.replace("$AXIS", "2")
    executable, plain = (devscope.compile(text, backends=b, cache=False) for b in (["onednn"], []))
    x = np.random.default_rng(0).standard_normal((1, 6, 37)).astype(np.float32)
    x[0, 0, 3], x[0, 1, 4], x[0, 2, 5], x[0, 3, :] = np.nan, np.inf, -np.inf, -np.inf
    np.testing.assert_allclose(executable(x), plain(x), rtol=1e-5, atol=1e-7)


DECOMPOSED = """#id = affine_map<(i, j) -> (i, j)>
#left = affine_map<(i, j) -> ($KEPT)>
#other = affine_map<(i, j) -> ($REDUCED)>
func.func @main(%x: tensor<5x5xf32>) -> tensor<5x5xf32> {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %e1 = tensor.empty() : tensor<5xf32>
  %e = tensor.empty() : tensor<5x5xf32>
  %f1 = linalg.fill ins(%low : f32) outs(%e1 : tensor<5xf32>) -> tensor<5xf32>
  %m = linalg.reduce ins(%x : tensor<5x5xf32>) outs(%f1 : tensor<5xf32>) dimensions = [$AXIS]
    (%a: f32, %b: f32) { %0 = arith.maximumf %a, %b : f32 linalg.yield %0 : f32 }
  %p = linalg.generic {indexing_maps = [#id, #left, #id], iterator_types = ["parallel", "parallel"]}
    ins(%x, %m : tensor<5x5xf32>, tensor<5xf32>) outs(%e : tensor<5x5xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.subf %a, %b : f32
    %g = math.exp %d : f32
    linalg.yield %g : f32 } -> tensor<5x5xf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<5xf32>) -> tensor<5xf32>
  %s = linalg.generic {indexing_maps = [#id, #left], iterator_types = [$KINDS]}
    ins(%p : tensor<5x5xf32>) outs(%f2 : tensor<5xf32>) {
  ^bb0(%a: f32, %b: f32):
    %d = arith.addf %b, %a : f32
    linalg.yield %d : f32 } -> tensor<5xf32>
  %r = linalg.generic {indexing_maps = [#id, #$BROADCAST, #id], iterator_types = ["parallel", "parallel"]}
    ins(%p, %s : tensor<5x5xf32>, tensor<5xf32>) outs(%e : tensor<5x5xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.divf %a, %b : f32
    linalg.yield %d : f32 } -> tensor<5x5xf32>
  return %r : tensor<5x5xf32>
}
"""


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("broadcast", ["left", "other"])
def test_softmax_as_frontends_write_it(axis: int, broadcast: str) -> None:
    """Sums that are broadcast along another axis than that of the sums make something else."""
    kinds = ", ".join('"reduction"' if axis == other else '"parallel"' for other in (0, 1))
    parts = {"$AXIS": str(axis), "$KEPT": "ji"[axis], "$REDUCED": "ij"[axis], "$KINDS": kinds}
    text = DECOMPOSED
    for key, value in {**parts, "$BROADCAST": broadcast}.items():
        text = text.replace(key, value)
    both(text, ["softmax"] if broadcast == "left" else [])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (SOFTMAX.replace("$AXIS", "0").replace("f32", "f64"), "it computes with f32, not with tensor"),
        (program("linalg.matmul").replace("f32", "f64"), "it computes with f32, not with tensor"),
        (
            """func.func @main(%a: tensor<3x?xf32>, %b: tensor<?x4xf32>) -> tensor<3x4xf32> {
          %z = arith.constant dense<0.0> : tensor<3x4xf32>
          %r = linalg.matmul ins(%a, %b : tensor<3x?xf32>, tensor<?x4xf32>) outs(%z : tensor<3x4xf32>)
            -> tensor<3x4xf32>
          return %r : tensor<3x4xf32>
        }""",
            "how many products it sums is not known, or none",
        ),
        (PADDED.replace("$DATA", "1.5").replace("$PAD", "0.0"), "one of its factors is the same number"),
    ],
)
def test_what_it_does_not_take(text: str, said: str) -> None:
    executable = devscope.compile(text, backends=["onednn"], cache=False)
    assert any(said in row["reason"] for row in executable.program.report["partition"]["refusals"])


LARGE = """func.func @main(%a: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %z = arith.constant dense<0.0> : tensor<256x256xf32>
  %r = linalg.matmul ins(%a, %a : tensor<256x256xf32>, tensor<256x256xf32>) outs(%z : tensor<256x256xf32>)
    -> tensor<256x256xf32>
  return %r : tensor<256x256xf32>
}"""


def child(code: str, *arguments: str) -> str:
    done = subprocess.run(python(code, *arguments), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("threads", [1, 3])
def test_threads_are_those_of_the_program(threads: int) -> None:
    """The thread that calls, and as many others as the program may use; OpenMP's number is as before then."""
    code = """
import os, sys
import numpy as np
import devscope
from devscope.backends.onednn.runtime import OnednnRuntime
program = devscope.compile(sys.argv[1], backends=["onednn"], threads=int(sys.argv[2]), cache=False)
library = OnednnRuntime().opened
library.omp_set_num_threads(7)
before = len(os.listdir("/proc/self/task"))
a = np.ones((256, 256), np.float32)
program(a)
assert library.omp_get_max_threads() == 7
print(len(os.listdir("/proc/self/task")) - before)
"""
    assert child(code, LARGE, str(threads)) == str(threads - 1)


def test_calls_after_a_fork() -> None:
    code = """
import os, sys
import numpy as np
import devscope
program = devscope.compile(sys.argv[1], backends=["onednn"], threads=2, cache=False)
a = np.ones((256, 256), np.float32)
program(a)
if os.fork() == 0:
    os._exit(0 if (program(a) == 256).all() else 1)
print(os.waitstatus_to_exitcode(os.wait()[1]), (program(a) == 256).all())
"""
    assert child(code, LARGE) == "0 True"


def test_constant_rows_of_conflicting_lengths() -> None:
    """Weights that the library would take as they are get rows of another length; sizes change between calls."""
    text = """
func.func @main(%x: tensor<?x24xf32>) -> tensor<?x512xf32> {
  %w = arith.constant dense<"0xDATA"> : tensor<24x512xf32>
  %axis = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %rows = tensor.dim %x, %axis : tensor<?x24xf32>
  %empty = tensor.empty(%rows) : tensor<?x512xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x512xf32>) -> tensor<?x512xf32>
  %y = linalg.matmul ins(%x, %w : tensor<?x24xf32>, tensor<24x512xf32>)
    outs(%zeros : tensor<?x512xf32>) -> tensor<?x512xf32>
  return %y : tensor<?x512xf32>
}
"""
    data = np.random.default_rng(1).standard_normal((24, 512)).astype(np.float32)
    executable = devscope.compile(
        text.replace("DATA", data.tobytes().hex().upper()), backends=["onednn"], cache=False
    )
    assert taken(executable) == ["matmul"]
    for rows in (3, 70, 0, 3):
        (x,) = arrays(text, {"rows": rows}, seed=rows)
        np.testing.assert_allclose(executable(x), x @ data, rtol=2e-5, atol=2e-5)


def test_what_was_made_is_released() -> None:
    """Packed weights and memory of primitives go with the program."""
    code = """
import os, sys
import numpy as np
import devscope
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGESIZE") >> 20
data = np.random.default_rng(0).standard_normal((2048, 1024)).astype(np.float32)
text = sys.argv[1].replace("$DATA", '"0x' + data.tobytes().hex().upper() + '"')
devscope.compile(text, backends=["onednn"], cache=False).save(sys.argv[2])
x = np.ones((64, 2048), np.float32)
for number in range(24):
    program = devscope.load(sys.argv[2])
    program(x)
    del program
    if number == 7:
        before = resident()
print(resident() - before)
"""
    text = """func.func @main(%x: tensor<64x2048xf32>) -> tensor<64x1024xf32> {
      %w = arith.constant dense<$DATA> : tensor<2048x1024xf32>
      %z = arith.constant dense<0.0> : tensor<64x1024xf32>
      %r = linalg.matmul ins(%x, %w : tensor<64x2048xf32>, tensor<2048x1024xf32>)
        outs(%z : tensor<64x1024xf32>) -> tensor<64x1024xf32>
      return %r : tensor<64x1024xf32>
    }"""
    with tempfile.TemporaryDirectory() as folder:
        assert int(child(code, text, f"{folder}/p.dsx")) < 64  # 8 MiB for each of 16 programs if nothing were


def test_which_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that a variable names; a file that is none of oneDNN's is refused."""
    monkeypatch.setenv("DEVSCOPE_ONEDNN", ctypes.util.find_library("c") or "")
    with pytest.raises(OSError, match="is not oneDNN"):
        OnednnRuntime().function("dnnl_version")


def test_the_newest_is_taken_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from devscope.backends.onednn import runtime

    for number in ("3.2", "3.10", "3.9.1"):
        (tmp_path / f"libdnnl.so.{number}").touch()
    (tmp_path / "libdnnl.so.3").symlink_to(tmp_path / "libdnnl.so.3.10")
    monkeypatch.setattr(runtime, "_files", tmp_path.iterdir)
    monkeypatch.setattr(runtime, "find_library", lambda name: None)
    assert [path.rpartition(".so.")[2] for path in runtime._installed()] == ["3.10", "3.9.1", "3.2"]  # pyright: ignore[reportPrivateUsage]


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    from devscope.runtime import plugins

    monkeypatch.setitem(plugins._registered, "onednn", OnednnRuntime())  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setenv("DEVSCOPE_ONEDNN", "/nowhere/libdnnl.so")
    with pytest.raises(DevscopeError, match="backend 'onednn': what its programs need is missing") as raised:
        devscope.compile(LARGE, backends=["onednn"], cache=False)
    assert "note: pip install 'devscope[onednn]'" in str(raised.value)
