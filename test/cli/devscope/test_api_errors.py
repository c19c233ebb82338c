"""Bad use of the Python API: one exception of `devscope.errors`, with the text that the command line prints."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_case import SCOPES, TANH

import devscope
from devscope.errors import (
    DeviceNotFoundError,
    DevscopeError,
    DevscopeWarning,
    ExecutableFormatError,
    InputError,
    LoweringError,
    OptionError,
    ParseError,
    PlanError,
    VerifyError,
)
from devscope.runtime.file_format import save_program
from devscope.runtime.signatures import sign

ON_HOST = {"opencl:0": "cpu:0"}


@pytest.mark.parametrize(
    ("source", "kind", "message"),
    [
        ("none.mlir", InputError, "cannot read 'none.mlir': No such file or directory"),
        ("none", InputError, "cannot read 'none': No such file or directory"),
        ("folder (1).mlir", InputError, "cannot read 'folder (1).mlir': No such file"),
        (Path("none.mlir"), InputError, "cannot read 'none.mlir': No such file or directory"),
        (Path("."), InputError, "cannot read '.': Is a directory"),
        (3, InputError, "a program cannot be an object of type int"),
        (None, InputError, "a program cannot be an object of type NoneType"),
        (np.zeros(3), InputError, "a program cannot be an object of type ndarray"),
        ("", InputError, "'<input>' is an empty program"),
        (b"", InputError, "'<input>' is an empty program"),
        ("module {", ParseError, "expected"),
        ("func.func @main() { return 3 }", ParseError, "expected"),
        (b"\xff\xfe\x00", ParseError, "neither MLIR bytecode nor UTF-8 text"),
        ("// \udcff\n" + TANH, DevscopeError, "not Unicode"),
        (TANH.replace("= #dev}", "= 3 : i32}"), VerifyError, "must be a scope"),
        (TANH.replace("math.tanh", "math.nothing"), ParseError, "custom op 'math.nothing' is unknown"),
        (TANH.replace('"opencl"', '"rocm"'), LoweringError, "no code generator for target 'rocm'"),
        (TANH.replace('"opencl"', '"cuda"'), DeviceNotFoundError, "needs device 'cuda:0'"),
        (TANH.replace('"opencl", 0', '"opencl", 77'), DeviceNotFoundError, "needs device 'opencl:77'"),
        (
            TANH.replace("%x: tensor<4xf32>", "%x: tensor<4xf32> {device.scope = #host}")
            .replace(
                "math.tanh %x {device.scope = #dev} :",
                '"device.on_device"(%x) {scope = #dev, constrain_body = true, constrain_result = true} :',
            )
            .replace("} : tensor<4xf32>", "} : (tensor<4xf32>) -> tensor<4xf32>"),
            PlanError,
            "must be on",
        ),
    ],
)
@pytest.mark.parametrize("cache", [True, False])
def test_sources(folder: Path, source: Any, kind: type[DevscopeError], message: str, cache: bool) -> None:
    with pytest.raises(kind) as caught:
        devscope.compile(source, cache=cache)
    assert message in str(caught.value)
    assert "error: " in str(caught.value)


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"default": "tpu:0"}, OptionError, "unknown device type 'tpu'"),
        ({"default": "opencl:x"}, OptionError, "'opencl:x' is not a scope"),
        ({"arguments": "device"}, OptionError, "'device' is not a way to treat arguments"),
        ({"devices": {"opencl:0": "tpu:0"}}, OptionError, "unknown device type 'tpu'"),
        ({"devices": {"opencl:0": 3}}, OptionError, "3 is not a device"),
        ({"devices": {0: "opencl:0"}}, OptionError, "0 is not a device"),
        ({"devices": {"opencl": "cpu"}}, OptionError, "'opencl' is not a device"),
        ({"devices": {"opencl:1": "cpu:0"}}, OptionError, "names 'opencl:1', which the program does not use"),
        ({"devices": {"cuda:0": "opencl:0"}}, OptionError, "names 'cuda:0', which the program does not use"),
        ({"devices": {"opencl:0": "opencl:77"}}, DeviceNotFoundError, "mapped to 'opencl:77'"),
        ({"devices": {"opencl:0": "rocm:0"}}, LoweringError, "no code generator for target 'rocm'"),
    ],
)
@pytest.mark.parametrize("cache", [True, False])
def test_options(options: dict[str, Any], kind: type[DevscopeError], message: str, cache: bool) -> None:
    with pytest.raises(kind) as caught:
        devscope.compile(TANH, cache=cache, **options)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ([], "'main' takes 1 argument"),
        ([np.zeros(4, np.float32)] * 2, "'main' takes 1 argument"),
        ([np.zeros(4)], "expected dtype float32, got float64"),
        ([np.zeros(4, ">f4")], "expected dtype float32, got float32 in foreign byte order"),
        ([np.zeros(3, np.float32)], "expected shape [4], got [3]"),
        ([[0.0] * 4], "got list"),
        (["x"], "got str"),
        ([None], "got NoneType"),
    ],
)
def test_arguments(arrays: list[Any], message: str) -> None:
    executable = devscope.compile(TANH, devices=ON_HOST)
    with pytest.raises(InputError) as caught:
        executable(*arrays)
    assert message in str(caught.value)
    strided = np.arange(8, dtype=np.float32)[::2]
    np.testing.assert_allclose(executable(strided), np.tanh(strided), rtol=1e-5)


def test_entries() -> None:
    executable = devscope.compile(TANH, devices=ON_HOST)
    with pytest.raises(InputError, match="the program has no entry 'f'"):
        executable.run("f")
    two = TANH.replace("@main", "@a") + TANH.replace(SCOPES, "").replace("@main", "@b")
    with pytest.raises(InputError, match="none is called 'main'"):
        devscope.run(two, np.zeros(4, np.float32), devices=ON_HOST)
    result = devscope.run(two, np.zeros(4, np.float32), entry="b", devices=ON_HOST)
    np.testing.assert_array_equal(result, np.zeros(4, np.float32))


def test_functions_of_functions_are_no_entries(tmp_path: Path) -> None:
    text = """
    func.func @twice(%f: (f32) -> f32, %x: f32) -> f32 {
      %0 = func.call_indirect %f(%x) : (f32) -> f32
      %1 = func.call_indirect %f(%0) : (f32) -> f32
      return %1 : f32
    }
    func.func @square(%x: f32) -> f32 {
      %0 = arith.mulf %x, %x : f32
      return %0 : f32
    }
    func.func @fourth(%x: f32) -> f32 {
      %f = func.constant @square : (f32) -> f32
      %0 = call @twice(%f, %x) : ((f32) -> f32, f32) -> f32
      return %0 : f32
    }"""
    devscope.compile(text).save(tmp_path / "program.dsx")
    executable = devscope.load(tmp_path / "program.dsx")
    assert (executable.run("square", 3.0), executable.run("fourth", 3.0)) == (9.0, 81.0)
    with pytest.raises(InputError, match=r"no entry 'twice'\n.*'twice' takes or returns a function.*\n.*'square'"):
        executable.run("twice", 3.0)


def test_errors_carry_the_position() -> None:
    with pytest.raises(ParseError) as caught:
        devscope.plan(TANH.replace("%0 :", "%0"))
    assert str(caught.value) == "<input>:5:12: error: expected ':'"
    location = caught.value.location
    assert location is not None
    assert (location.file, location.line, location.column) == ("<input>", 5, 12)


def test_a_module_of_the_bindings_keeps_its_positions(folder: Path) -> None:
    from devscope.lowering.interop.bindings import ir

    context = ir.Context()
    context.allow_unregistered_dialects = True
    text = (
        TANH.replace("math.tanh %x", '"foo.bar"(%x)')
        .replace("#dev}", "3 : i32}")
        .replace(": tensor<4xf32>\n  return", ": (tensor<4xf32>) -> tensor<4xf32>\n  return")
    )
    (folder / "foreign.mlir").write_text(text.replace(SCOPES, "\n\n"))
    module = ir.Module.parseFile("foreign.mlir", context)
    with pytest.raises(VerifyError) as caught:
        devscope.compile(module)
    assert str(caught.value).startswith("foreign.mlir:4:8: error: foo.bar: attribute 'device.scope' must be")


def test_loading(folder: Path) -> None:
    with pytest.raises(ExecutableFormatError, match="No such file"):
        devscope.load("none.dsx")
    with pytest.raises(ExecutableFormatError, match="not a devscope executable"):
        devscope.load("tanh.mlir")
    with pytest.raises(ExecutableFormatError, match="cannot be written"):
        devscope.compile(TANH).save("none/x.dsx")
    assert os.listdir() == ["tanh.mlir"]


def test_a_compiled_program_is_no_source(folder: Path) -> None:
    devscope.compile(TANH).save("x.dsx")
    with pytest.raises(InputError) as caught:
        devscope.compile("x.dsx")
    assert "is a compiled program" in str(caught.value)
    assert "devscope.load" in str(caught.value)


def test_an_unreadable_cache_is_no_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "file").write_text("")
    monkeypatch.setenv("DEVSCOPE_CACHE_DIR", "file")
    with pytest.warns(DevscopeWarning, match="cannot be a folder"):
        result = devscope.run(TANH, np.zeros(4, np.float32))
    np.testing.assert_array_equal(result, np.zeros(4, np.float32))


def test_attributes_that_nobody_reads_are_warned_of() -> None:
    text = 'module attributes {device.target = #device.target<"cpu", {}>} { func.func @main() { return } }'
    with pytest.warns(DevscopeWarning, match=r":1:1: warning: .*'device.target' has no meaning here"):
        devscope.compile(text)


@pytest.mark.parametrize("path", [1, b"a.dsx", 0.5])
def test_what_is_no_path(path: Any) -> None:
    """A number would be the file that is open under it: 1 is standard output."""
    program: Any = None  # the path is looked at first
    with pytest.raises(InputError, match=rf"the file to load is {path!r}, which is no path"):
        devscope.load(path)
    with pytest.raises(InputError, match=rf"the file to write is {path!r}, which is no path"):
        save_program(program, path)
    with pytest.raises(OptionError, match=rf"'machine' is {path!r}, which is no path"):
        devscope.compile(TANH, machine=path)
    with pytest.raises(OptionError, match=rf"a key is {path!r}, which is no path"):
        sign(b"", path)


@pytest.mark.parametrize("call", [devscope.compile, devscope.load, devscope.run])
def test_no_folder_is_a_cache(call: Any) -> None:
    with pytest.raises(OptionError, match=r"'cache' is 'folder', and not True or False\n.*DEVSCOPE_CACHE_DIR"):
        call(TANH, cache="folder")
