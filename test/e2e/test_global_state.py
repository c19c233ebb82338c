"""Globals that programs write: calls find in them what earlier ones have left there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import devscope

T = "tensor<8xf32>"
TEXT = f"""
ml_program.global private mutable @total(dense<$TOTAL> : {T}) : {T}
ml_program.global private mutable @calls : tensor<i64> $HERE
ml_program.global private mutable @read(dense<2.0> : {T}) : {T}
func.func private @count() -> tensor<i64> {{
  %one = arith.constant dense<1> : tensor<i64>
  %0 = ml_program.global_load @calls : tensor<i64>
  %1 = arith.addi %0, %one : tensor<i64>
  ml_program.global_store @calls = %1 : tensor<i64>
  return %1 : tensor<i64>
}}
func.func @main(%x: {T}, %times: index, %adds: i1) -> ({T}, tensor<i64>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %true = arith.constant true
  scf.for %i = %c0 to %times step %c1 {{
    %0 = ml_program.global_load @total : {T}
    %1 = arith.addf %0, %x {{device.scope = $SCOPE}} : {T}
    scf.if %adds {{
      ml_program.global_store @total = %1 : {T}
      %n = func.call @count() : () -> tensor<i64>
    }}
  }}
  scf.while (%goes = %true) : (i1) -> () {{
    scf.condition(%goes)
  }} do {{
    %0 = ml_program.global_load @total : {T}
    %2 = ml_program.global_load @read : {T}
    %1 = arith.mulf %0, %2 {{device.scope = $SCOPE}} : {T}
    ml_program.global_store @total = %1 : {T}
    %false = arith.constant false
    scf.yield %false : i1
  }}
  %n = func.call @count() : () -> tensor<i64>
  %found = scf.if %adds -> ({T}) {{
    %0 = ml_program.global_load @total : {T}
    scf.yield %0 : {T}
  }} else {{
    scf.yield %x : {T}
  }}
  return %found, %n : {T}, tensor<i64>
}}
"""
AT_FIRST = "[0.0, 1.0, 2.0, 3.0, -0.0, 0x7FC00000, 0x7F800000, 7.0]"
TOTAL = np.array([0, 1, 2, 3, -0.0, np.nan, np.inf, 7], np.float32)
X = np.array([1, -1, 0.5, np.nan, 0.0, 1, -np.inf, 3], np.float32)


def compiled(device: str, here: str = "") -> Any:
    text = (
        TEXT.replace("$TOTAL", AT_FIRST)
        .replace("$SCOPE", f'#device.scope<"{device}", 0 : i64, "", "">')
        .replace("$HERE", here)
    )
    return devscope.compile(text, cache=False)


@pytest.mark.filterwarnings("ignore:invalid value encountered")
@pytest.mark.parametrize("device", ["cpu", "opencl"])
def test_calls_find_what_earlier_ones_left(device: str, tmp_path: Path) -> None:
    with compiled(device) as exe:
        exe.save(tmp_path / "a.dsx")
        with devscope.load(tmp_path / "a.dsx") as loaded:
            for one in (exe, loaded):
                assert [spec.name for spec in one.entry("main").inputs] == ["x", "times", "adds"]
                assert list(one.state()) == ["total", "calls"]
                total, calls = TOTAL, 0
                for times, adds in ((2, True), (3, False), (0, True), (1, True)):
                    calls += 1 + times * adds
                    for _ in range(times * adds):
                        total = total + X
                    total = total * np.float32(2)
                    found, count = one(X, times, adds)
                    np.testing.assert_array_equal(found, total if adds else X)
                    assert count == calls
                np.testing.assert_array_equal(one.state()["total"], total)
                one.reset()
                np.testing.assert_array_equal(one.state()["total"], TOTAL)
                assert one.state()["calls"] == 0


def test_a_global_stays_on_its_device() -> None:
    with compiled("opencl") as exe:
        exe(X, 1, False)
        exe.reset_counters()
        exe(X, 1, True)
        exe(X, 1, False)
        counters = exe.counters()
        assert (counters.h2d.bytes, counters.d2h.bytes) == (2 * X.nbytes, X.nbytes)


def test_a_global_is_where_it_says() -> None:
    scope = '{device.scope = #device.scope<"opencl", 0 : i64, "", "">}'
    with compiled("cpu", scope) as exe:
        assert list(exe.devices) == ["cpu:0", "opencl:0"]
        for calls in (1, 2):
            assert exe(X, 0, True)[1] == calls


@pytest.mark.parametrize("device", ["cpu", "opencl"])
@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("tensor<2xcomplex<f32>>", ""),
        ("tensor<2xcomplex<f64>>", "(dense<(1.0, -2.0)> : tensor<2xcomplex<f64>>)"),
        ("tensor<0xf32>", ""),
        ("tensor<1x1xf64>", ""),
        ("tensor<bf16>", ""),
        ("tensor<3xui8>", "(dense<254> : tensor<3xui8>)"),
    ],
)
def test_types(type_: str, value: str, device: str) -> None:
    text = f"""
    ml_program.global private mutable @x{value} : {type_}
    func.func @main(%x: {type_}) -> {type_} {{
      %0 = ml_program.global_load @x : {type_}
      %1 = stablehlo.add %0, %x {{device.scope = #device.scope<"{device}", 0 : i64, "", "">}} : {type_}
      ml_program.global_store @x = %1 : {type_}
      return %1 : {type_}
    }}
    """
    with devscope.compile(text, cache=False) as exe:
        at_first = exe.state()["x"]
        assert (at_first == (0 if not value else 1 - 2j if "complex" in type_ else 254)).all()
        for count in (1, 2):
            expected = at_first + np.full_like(at_first, count)
            np.testing.assert_array_equal(exe(x=np.ones_like(at_first)), expected)
        np.testing.assert_array_equal(exe.state()["x"], expected)
