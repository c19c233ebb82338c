"""The example of a vendor's package: a device with memory of its own, and its conformance."""

import ctypes
import importlib.resources
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import devscope
from devscope import backend_check
from devscope.backend_check import check_backend
from devscope.cli.main import main
from devscope.errors import DeviceError, LoweringError
from devscope.runtime.drivers.plugin_devices import VERSION, DeviceTable, read_table, table_of
from devscope.runtime.plugins import Runtime, register_runtime

EXAMPLE = Path(__file__).parents[2] / "examples/backends/vanilla"
sys.path.append(str(EXAMPLE))

from installed import offer  # noqa: E402
from vanilla.backend import Vanilla  # noqa: E402
from vanilla.runtime import UNITS, Accelerator, VanillaRuntime  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def registered(registries: None) -> None:  # pyright: ignore[reportUnusedParameter]
    devscope.register_backend(Vanilla)
    register_runtime(VanillaRuntime)


TWO = """
func.func @main(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %z = arith.constant dense<0.0> : tensor<4x4xf32>
  %w = arith.constant dense<[[1.,2.,3.,4.],[1.,2.,3.,5.],[1.,2.,3.,6.],[7.,2.,3.,5.]]> : tensor<4x4xf32>
  %r = linalg.matmul ins(%a, %b : tensor<4x4xf32>, tensor<4x4xf32>) outs(%z : tensor<4x4xf32>) -> tensor<4x4xf32>
  %s = linalg.matmul ins(%r, %w : tensor<4x4xf32>, tensor<4x4xf32>) outs(%z : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %s : tensor<4x4xf32>
}
"""


@pytest.mark.long
def test_conformance(tmp_path: Path) -> None:
    offer(EXAMPLE, tmp_path)
    outcomes = list(check_backend("vanilla"))
    assert [outcome for outcome in outcomes if outcome.problem] == []
    assert len(outcomes) > 20


def past_the_end(_: Any, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    a.base[-1] = 0
    return a @ b


def into_operands(_: Any, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    a += 1
    return a @ b


@pytest.mark.parametrize(
    ("unit", "problem"),
    [(past_the_end, "it writes behind the end of a buffer"), (into_operands, "a launch writes to 2 buffers")],
)
def test_what_is_written_outside_of_results(unit: Any, problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    small = {name: text for name, text in backend_check.programs().items() if name == "matmul f32 static"}
    monkeypatch.setattr(backend_check, "programs", lambda: small)
    monkeypatch.setattr(Vanilla, "programs", [])
    monkeypatch.setattr(backend_check._Saved, "outcomes", lambda _: iter(()))
    monkeypatch.setitem(UNITS, "matmul", unit)
    assert any(problem in one.problem for one in check_backend("vanilla"))


def test_data_stays_on_the_device() -> None:
    executable = devscope.compile(TWO, backends=["vanilla"], cache=False)
    a = np.arange(16, dtype=np.float32).reshape(4, 4)
    for _ in range(2):
        executable(a, a)
    counters = executable.counters()
    assert counters.launches["vanilla:0"] == 4
    assert (counters.h2d.copies, counters.d2h.copies) == (2 * 2 + 1, 2)  # the constant goes there once


def test_it_is_in_no_shared_library(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (program := tmp_path / "p.mlir").write_text(TWO)
    assert main(["build", str(program), "--backend", "vanilla", "--shared", "-o", str(tmp_path / "p.so")]) == 2
    assert "note: build it without the backend that has this device" in capsys.readouterr().err


def test_constants_without_elements() -> None:
    """They are memory of the device, too."""
    text = """func.func @main(%a: tensor<4x0xf32>) -> tensor<4x4xf32> {
      %z = arith.constant dense<0.0> : tensor<4x4xf32>
      %w = arith.constant dense<> : tensor<0x4xf32>
      %r = linalg.matmul ins(%a, %w : tensor<4x0xf32>, tensor<0x4xf32>)
                         outs(%z : tensor<4x4xf32>) -> tensor<4x4xf32>
      return %r : tensor<4x4xf32>
    }"""
    executable = devscope.compile(text, backends=["vanilla"], cache=False)
    np.testing.assert_array_equal(executable(np.zeros((4, 0), np.float32)), np.zeros((4, 4)))
    assert executable.counters().launches["vanilla:0"] == 1


CONVOLUTIONS = [
    ("1x5x5x1", "3x3x1x1", (1, 1), (1, 1), "1x3x3x1"),
    ("2x8x9x3", "3x2x3x4", (1, 1), (1, 1), "2x6x8x4"),
    ("1x9x9x2", "3x3x2x5", (2, 1), (1, 1), "1x4x7x5"),
    ("1x9x9x2", "2x3x2x1", (1, 2), (3, 2), "1x6x3x1"),
    ("3x4x4x1", "4x4x1x8", (1, 1), (1, 1), "3x1x1x8"),
]


def test_convolutions() -> None:
    """Five, as in `test_lower_with_uma`: with strides and dilations, with filters as large as images."""
    arguments, body, results = [], "", []
    for n, (image, filters, strides, dilations, result) in enumerate(CONVOLUTIONS):
        x, w, r = (f"tensor<{shape}xf32>" for shape in (image, filters, result))
        arguments += [f"%x{n}: {x}", f"%w{n}: {w}"]
        results.append((f"%r{n}", r))
        body += f"""
      %z{n} = arith.constant dense<0.0> : {r}
      %r{n} = linalg.conv_2d_nhwc_hwcf {{strides = dense<[{strides[0]}, {strides[1]}]> : tensor<2xi64>,
          dilations = dense<[{dilations[0]}, {dilations[1]}]> : tensor<2xi64>}}
        ins(%x{n}, %w{n} : {x}, {w}) outs(%z{n} : {r}) -> {r}"""
    names, types = (", ".join(one) for one in zip(*results, strict=True))
    text = f"func.func @main({', '.join(arguments)}) -> ({types}) {{{body}\n  return {names} : {types}\n}}"
    random = np.random.default_rng(0)
    shapes = [shape for row in CONVOLUTIONS for shape in row[:2]]
    given = [random.standard_normal([*map(int, shape.split("x"))], np.float32) for shape in shapes]
    executable = devscope.compile(text, backends=["vanilla"], cache=False)
    for found, expected in zip(executable(*given), devscope.compile(text, cache=False)(*given), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert executable.counters().launches["vanilla:0"] == len(CONVOLUTIONS)


def test_functions_in_a_program_run_where_the_backend_does() -> None:
    text = """func.func @main(%a: !t, %b: !t) -> !t {
      %0 = call @mine(%a, %b) : (!t, !t) -> !t
      return %0 : !t
    }
    func.func private @mine(%a: !t, %b: !t) -> !t attributes {
        device.compiler = "vanilla", device.composite = "vanilla.matmul"} {
      %z = arith.constant dense<0.0> : !t
      %0 = linalg.matmul ins(%a, %b : !t, !t) outs(%z : !t) -> !t
      return %0 : !t
    }""".replace("!t", "tensor<4x4xf32>")
    for chosen, device in (("vanilla:device=vanilla:1,bank=7", "vanilla:1"), ("vanilla", "vanilla:0")):
        plan = devscope.plan(text, backends=[chosen])
        assert {copy.dst.short() for copy in plan.copies} == {device, "cpu:0"}
        assert ("bank = 7" in str(plan.module)) == ("bank" in chosen)


BETWEEN = {
    "reshapes": """
      %e = tensor.expand_shape %r [[0], [1, 2]] output_shape [4, 2, 2] : !t into tensor<4x2x2xf32>
      %v = tensor.collapse_shape %e [[0], [1, 2]] : tensor<4x2x2xf32> into !t""",
    "slices": """
      %e = tensor.extract_slice %r[1, 0] [2, 4] [1, 1] : !t to tensor<2x4xf32>
      %v = tensor.insert_slice %e into %r[2, 0] [2, 4] [1, 1] : tensor<2x4xf32> into !t""",
    "computations": "%v = math.absf %r : !t",
    "a fill, carried": """
      %n = tensor.empty() : !t
      %x = tensor.extract %a[%c0, %c1] : !t
      %f = linalg.fill ins(%x : f32) outs(%n : !t) -> !t
      %v = scf.for %i = %c0 to %c2 step %c1 iter_args(%c = %f) -> !t {
        %l = linalg.matmul ins(%c, %b : !t, !t) outs(%z : !t) -> !t
        scf.yield %l : !t
      }""",
    "a branch": """
      %x = tensor.extract %a[%c0, %c1] : !t
      %c = arith.cmpf ogt, %x, %zero : f32
      %v = scf.if %c -> !t {
        %s = tensor.splat %x : !t
        scf.yield %s : !t
      } else {
        %l = linalg.matmul ins(%r, %b : !t, !t) outs(%z : !t) -> !t
        scf.yield %l : !t
      }""",
}


@pytest.mark.parametrize("completion", ["default", "min-cost"])
@pytest.mark.parametrize("between", BETWEEN)
def test_what_stands_between_is_left_to_the_host(between: str, completion: str) -> None:
    text = f"""func.func @main(%a: !t, %b: !t) -> !t {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %zero = arith.constant 0.0 : f32
      %z = arith.constant dense<0.0> : !t
      %r = linalg.matmul ins(%a, %b : !t, !t) outs(%z : !t) -> !t
      {BETWEEN[between]}
      %s = linalg.matmul ins(%v, %b : !t, !t) outs(%z : !t) -> !t
      return %s : !t
    }}""".replace("!t", "tensor<4x4xf32>")
    given = np.random.default_rng(0).standard_normal((2, 4, 4), np.float32)
    expected = devscope.compile(text, cache=False)(*given)
    executable = devscope.compile(text, backends=["vanilla"], cache=False, completion=completion)
    np.testing.assert_allclose(executable(*given), expected, rtol=1e-5)
    counters = executable.counters()
    assert counters.launches["vanilla:0"] >= 2
    if between == "reshapes":
        assert (counters.h2d.copies, counters.d2h.copies) == (2, 1)


def test_a_device_error_has_words(monkeypatch: pytest.MonkeyPatch) -> None:
    executable = devscope.compile(TWO, backends=["vanilla"], cache=False)
    monkeypatch.setattr(Accelerator, "capacity", 0)
    a = np.zeros((4, 4), np.float32)
    with pytest.raises(DeviceError, match=r"vanilla:0 \(Vanilla.*\): allocating 64 bytes failed: out of memory"):
        executable(a, a)
    monkeypatch.undo()
    np.testing.assert_array_equal(executable(a, a), a)


def test_the_header_is_the_table(tmp_path: Path) -> None:
    """What a vendor's C compiler makes of it is what devscope reads."""
    if not shutil.which("cc"):
        pytest.skip("this machine has no C compiler")
    fields = [name for name, *_ in DeviceTable._fields_]
    offsets = ", ".join(f"offsetof(DevscopeDeviceTable, {name})" for name in fields)
    text = f"""#include "plugin.h"
#include <stddef.h>
const int64_t version = DEVSCOPE_DEVICE_TABLE_VERSION, offsets[] = {{{offsets}, sizeof(DevscopeDeviceTable)}};
"""
    folder = str(importlib.resources.files("devscope.runtime.native"))
    command = ["cc", "-x", "c", "-Wall", "-Werror", "-shared", "-I", folder, "-o", tmp_path / "table.so", "-"]
    subprocess.run(command, input=text.encode(), check=True)
    library = ctypes.CDLL(str(tmp_path / "table.so"))
    assert ctypes.c_int64.in_dll(library, "version").value == VERSION
    found = list((ctypes.c_int64 * (len(fields) + 1)).in_dll(library, "offsets"))
    assert found == [*(getattr(DeviceTable, name).offset for name in fields), ctypes.sizeof(DeviceTable)]


class Larger(ctypes.Structure):
    """A table of a later version, with functions that this devscope does not know."""

    _fields_ = (("table", DeviceTable), ("more", ctypes.c_void_p * 3))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, ""),
        ({"size": ctypes.sizeof(Larger)}, ""),
        ({"version": 2}, "a device table of version 2 and [0-9]+ bytes; this devscope wants version 1"),
        ({"size": 24}, "a device table of version 1 and 24 bytes; this devscope wants version 1"),
        ({"launch": DeviceTable().launch}, "the device table of 'other' lacks 'launch'"),
    ],
    ids=["as it is", "later", "other version", "earlier", "lacks one"],
)
def test_tables_of_other_versions(changes: dict[str, Any], said: str) -> None:
    larger = Larger(table_of(Accelerator().functions()))
    for name, value in changes.items():
        setattr(larger.table, name, value)
    runtime = type("Other", (Runtime,), {"name": "other", "device_table": lambda _: ctypes.addressof(larger)})()
    if said:
        with pytest.raises(DeviceError, match=said):
            read_table(runtime)
    else:
        table = read_table(runtime)
        assert table is not None
        assert table.count() == 1


def test_other_code_on_its_device_is_refused() -> None:
    scope = '#device.scope<"vanilla", 0 : i64, "", "">'
    text = f"""func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
      %0 = math.exp %x {{device.scope = {scope}}} : tensor<4xf32>
      return %0 : tensor<4xf32>
    }}"""
    with pytest.raises(
        LoweringError, match=r"'math\.exp' is on vanilla:0, but backend 'vanilla' did not claim it"
    ):
        devscope.compile(text, backends=["vanilla"], cache=False)


MATMUL = """func.func @main(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %z = arith.constant dense<0.0> : tensor<4x4xf32>
  %r = linalg.matmul ins(%a, %b : tensor<4x4xf32>, tensor<4x4xf32>) outs(%z : tensor<4x4xf32>) -> tensor<4x4xf32>
  %s = math.exp %r : tensor<4x4xf32>
  return %s : tensor<4x4xf32>
}"""


@pytest.mark.parametrize(
    "options",
    [
        {"place": {"matmul": "vanilla:0"}},
        {"default": "vanilla:0"},
        {"default": "vanilla:0", "completion": "min-cost"},
        {"place": {"matmul": "vanilla:0"}, "partition": "search"},
        {"devices": {"vanilla:0": "vanilla:0"}},
    ],
)
def test_options_name_its_device(options: dict[str, Any]) -> None:
    """Rules say where its patterns may take something; what it does not take by default is the host's."""
    executable = devscope.compile(MATMUL, backends=["vanilla"], cache=False, **options)
    a = np.eye(4, dtype=np.float32)
    np.testing.assert_allclose(executable(a, a), np.exp(a), rtol=1e-6)
    assert executable.counters().launches["vanilla:0"] == 1
    elsewhere = devscope.compile(MATMUL, backends=["vanilla"], cache=False, place={"matmul": "cpu:0"})
    assert not elsewhere.program.devices


def test_the_least_cost_is_of_what_it_can_compute() -> None:
    """Between two products it passes data on, and computes nothing that its backend did not claim."""
    text = """func.func @main(%a: !t, %b: !t) -> !t {
      %z = arith.constant dense<0.0> : !t
      %r = linalg.matmul ins(%a, %b : !t, !t) outs(%z : !t) -> !t
      %v = math.absf %r : !t
      %c = tensor.collapse_shape %v [[0, 1]] : !t into tensor<16xf32>
      %d = tensor.expand_shape %c [[0, 1]] output_shape [4, 4] : tensor<16xf32> into !t
      %s = linalg.matmul ins(%d, %b : !t, !t) outs(%z : !t) -> !t
      return %s : !t
    }""".replace("!t", "tensor<4x4xf32>")
    plan = devscope.plan(text, backends=["vanilla"], completion="min-cost")
    assert [one.scope.short() for one in plan.placements if one.op == "math.absf"] == ["cpu:0"]
    (predicted,) = (remark.text for remark in plan.remarks if "predicted time" in remark.text)
    assert "30 us copying cpu:0 to vanilla:0, 20 us copying vanilla:0 to cpu:0" in predicted


def test_a_search_generates_no_code_for_its_devices(tmp_path: Path) -> None:
    """Also for one that the backend is not asked for, though it were fast."""
    machine = tmp_path / "machine.toml"
    text = "".join(
        f'[devices."{name}"]\nflops = {rate}\nbandwidth = {rate}\n'
        for name, rate in (("cpu:0", "1e9"), ("vanilla:0", "1e15"), ("vanilla:1", "1e15"))
    )
    for there in ("vanilla:0", "vanilla:1"):
        for ends in ((there, "cpu:0"), ("cpu:0", there)):
            text += '[[links]]\nfrom = "{}"\nto = "{}"\nbandwidth = 1e15\n'.format(*ends)
    machine.write_text(text)
    for completion in ("default", "min-cost"):
        executable = devscope.compile(
            MATMUL, backends=["vanilla"], partition="search", machine=machine, completion=completion, cache=False
        )
        (decision,) = executable.program.report["partition"]["decisions"]
        assert {*decision["known"]} == {"table order", "vanilla alone", "cpu:0 alone"}
        a = np.eye(4, dtype=np.float32)
        np.testing.assert_allclose(executable(a, a), np.exp(a), rtol=1e-6)


def test_it_is_among_the_devices(capsys: pytest.CaptureFixture[str]) -> None:
    assert "vanilla:0" in [device.name for device in devscope.list_devices()]
    assert main(["devices"]) == 0
    assert "vanilla:0  Vanilla, simulated" in capsys.readouterr().out


_OTHER_PROCESS = """
import sys, devscope
try:
    devscope.load(sys.argv[1], devices=dict.fromkeys(sys.argv[3:], "vanilla:0"))
except devscope.DevscopeError as error:
    print(error)
print(*({"xdsl", "vanilla"} & sys.modules.keys()))
try:
    devscope.compile(sys.argv[2])
except devscope.DevscopeError as error:
    print(error)
"""


def test_programs_that_need_it_know_it_if_it_is_installed(tmp_path: Path) -> None:
    """Also those that name its device by themselves; else the error names what is missing."""
    (tmp_path / "pip").mkdir()
    compiled = tmp_path / "p.dsx"
    devscope.compile(MATMUL, backends=["vanilla"], cache=False).save(compiled)
    scope = '{device.scope = #device.scope<"vanilla", 0 : i64, "", "">}'
    program = tmp_path / "p.mlir"
    program.write_text(MATMUL.replace("%r :", f"%r {scope} :"))

    def said(*mapped: str) -> str:
        command = [sys.executable, "-c", _OTHER_PROCESS, str(compiled), str(program), *mapped]
        paths = os.pathsep.join([str(EXAMPLE), str(tmp_path / "pip")])
        return subprocess.run(
            command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": paths}
        ).stdout

    found = said().splitlines()
    assert found[0] == "error: the program needs backend 'vanilla', which is not installed"
    assert "unknown device type 'vanilla'" in found[-1]
    assert said("vanilla:0").startswith("error: unknown device type 'vanilla'")
    offer(EXAMPLE, tmp_path / "pip")
    found = said("vanilla:0").splitlines()
    assert found[0] == "vanilla"
    assert "'math.exp' is on vanilla:0, but backend 'vanilla' did not claim it" in found[1]
    assert "backends=['vanilla']" in found[2]


def test_a_predicate_sees_the_options() -> None:
    assert not devscope.compile(TWO, backends=["vanilla:bank=3"], cache=False).program.devices


@pytest.mark.long
def test_profile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What it takes is timed on its device, copies aside; and not again."""
    costs = tmp_path / "costs.json"
    command = ["profile", str(EXAMPLE / "model.mlir"), "-o", str(costs), "--backend", "vanilla"]
    for measured in (13, 0):
        assert main(command) == 0
        printed = capsys.readouterr()
        assert f"13 candidates, {measured} of them measured now" in printed.out
        assert "not timed" not in printed.err
    rows = json.loads(costs.read_text())["cost"]
    timed = {row["pattern"]: row["seconds"] for row in rows if row["where"] == "vanilla"}
    assert timed.keys() == {"vanilla.matmul", "vanilla.dense"}
    assert all(seconds > 0 for seconds in timed.values())
