"""What Python programs see: names of arguments and results, representations, the public names."""

from __future__ import annotations

import copy
import pickle
import pydoc
from collections.abc import Callable

import numpy as np
import pytest

import devscope
from devscope.errors import ArgumentError, InputError, OptionError
from devscope.runtime.signatures import check_signature

PROGRAM = """\
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<?x2xf32>, %w: tensor<2xf32>, %scale: f32) -> (tensor<?x2xf32>, tensor<2xf32>, f32) {
  %tanh = math.tanh %x {device.scope = #dev} : tensor<?x2xf32>
  %1 = math.exp %w : tensor<2xf32>
  return %tanh, %1, %scale : tensor<?x2xf32>, tensor<2xf32>, f32
}
func.func @other(%0: f32, %class: f32, %a-b: f32, %arg0: f32) -> f32 {
  return %0 : f32
}
"""
X, W = np.ones((3, 2), np.float32), np.zeros(2, np.float32)


@pytest.fixture(scope="module")
def exe(tmp_path_factory: pytest.TempPathFactory) -> devscope.Executable:
    """Saved and loaded: names are in the file."""
    path = tmp_path_factory.mktemp("api") / "program.dsx"
    devscope.compile(PROGRAM, devices={"opencl:0": "opencl:0"}).save(path)
    return devscope.load(path)


def test_arguments_by_name(exe: devscope.Executable) -> None:
    expected = exe(X, W, 2.0)
    for results in (exe(X, scale=2.0, w=W), exe(w=W, x=X, scale=2.0), exe.run("main", X, W, scale=2.0)):
        for one, other in zip(results, expected, strict=True):
            np.testing.assert_array_equal(one, other)
    assert exe.run("other", 1.0, 2.0, 3.0, arg3=4.0)  # a second arg0 would be none == 1.0


@pytest.mark.parametrize(
    ("arguments", "named", "message"),
    [
        ((X, W), {"sclae": 2.0}, "'main' has no argument 'sclae'"),
        ((X, W, 2.0), {"x": X}, "'main' got argument 'x' twice: by position and by name"),
        ((X,), {"scale": 2.0}, "'main' lacks 'w'"),
        ((), {"scale": 2.0}, "'main' lacks 'x', 'w'"),
        ((X, W, 2.0, 3.0), {}, "'main' takes 3 arguments, got 4"),
        ((X, W, 2.0, 3.0), {"w": W}, "'main' got argument 'w' twice: by position and by name"),
    ],
)
def test_wrong_names(
    exe: devscope.Executable, arguments: tuple[object, ...], named: dict[str, object], message: str
) -> None:
    for kind in (TypeError, InputError, ArgumentError):
        with pytest.raises(kind) as caught:
            exe(*arguments, **named)
    assert caught.value.message == message
    assert caught.value.notes == ("its arguments are: (x: ?x2xf32, w: 2xf32, scale: f32)",)


def test_results_by_name(exe: devscope.Executable) -> None:
    results = exe(X, W, 2.0)
    assert isinstance(results, tuple)
    assert results.names == ("tanh", "result1", "scale")
    assert results.tanh is results[0]
    assert results.scale == 2.0
    with pytest.raises(AttributeError, match="there is no result 'tan'; the results are: tanh, result1, scale"):
        results.tan  # noqa: B018
    again = pickle.loads(pickle.dumps(results))
    np.testing.assert_array_equal(again.tanh, results.tanh)


def test_representations(exe: devscope.Executable) -> None:
    assert repr(exe) == (
        "<Executable main(x: ?x2xf32, w: 2xf32, scale: f32) -> (tanh: ?x2xf32, result1: 2xf32, scale: f32); "
        "other(arg0: f32, arg1: f32, arg2: f32, arg3: f32) -> (result0: f32) on cpu:0, opencl:0>"
    )
    assert repr(devscope.plan(PROGRAM)) == (
        "<Plan main(x: ?x2xf32, w: 2xf32, scale: f32) -> (tanh: ?x2xf32, result1: 2xf32, scale: f32); "
        "other(arg0: f32, arg1: f32, arg2: f32, arg3: f32) -> (result0: f32): "
        "operations: 1 on cpu:0, 1 on opencl:0; copies: %x from cpu:0 to opencl:0, %tanh from opencl:0 to cpu:0>"
    )
    assert repr(exe.program) == repr(exe).replace("Executable", "Program").replace(" on ", " for ")
    assert repr(devscope.plan(PROGRAM.encode())) == repr(devscope.plan(PROGRAM))
    host = devscope.list_devices()[0]
    assert repr(host) == f"<Device {host.describe()}>"
    assert repr(host).startswith("<Device cpu:0: ")


def test_run_by_name() -> None:
    expected = devscope.run(PROGRAM, X, W, 2.0)
    text = PROGRAM.replace("%scale", "%chunks").replace("%1", "%count")
    found = devscope.run(text, X, W, 2.0, chunks=1)
    for results in (devscope.run(PROGRAM, X, scale=2.0, w=W), found):
        for one, other in zip(results, expected, strict=True):
            np.testing.assert_array_equal(one, other)
    assert found.names == ("tanh", "result1", "chunks")  # 'count' is a method of tuples


def test_plans_of_types_that_cannot_be_passed() -> None:
    text = """
    func.func @main(%x: tensor<4xi4>, %f: () -> (), %v: vector<2xf32>, %u: tensor<*xf32>) -> vector<2xf32> {
      return %v : vector<2xf32>
    }"""
    assert repr(devscope.plan(text)).startswith(
        "<Plan main(x: 4xi4, f: () -> (), v: vector<2xf32>, u: tensor<*xf32>) -> (v: vector<2xf32>): "
        "operations: nothing"
    )


def test_public_names() -> None:
    assert dir(devscope) == sorted(devscope.__all__)
    page = pydoc.plain(pydoc.render_doc(devscope))
    for name in devscope.__all__:
        assert name in page or name == "__version__"
        assert getattr(devscope, name).__doc__
    assert "exe = devscope.compile(" in page
    with pytest.raises(AttributeError, match="has no attribute 'comple'"):
        devscope.comple  # noqa: B018


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (
            lambda: devscope.compile(PROGRAM, devices="opencl:0"),
            OptionError,
            "'devices' is 'opencl:0', which is no map",
        ),
        (
            lambda: devscope.compile(PROGRAM, devices=["opencl:0"]),
            OptionError,
            r"such as devices=\{'cuda:0': 'opencl:0'\}",
        ),
        (
            lambda: devscope.compile(PROGRAM, memory_limits="64MiB"),
            OptionError,
            "'memory_limits' is '64MiB', which is no",
        ),
        (lambda: devscope.compile(PROGRAM, default=None), OptionError, "None is not a scope"),
        (lambda: devscope.compile(PROGRAM, chunks=True), OptionError, "True is not a number of chunks"),
        (lambda: devscope.build(PROGRAM, {"default": "cpu:0"}), OptionError, "give devscope.CompileOptions"),
        (
            lambda: devscope.run(PROGRAM, X, chunk=2),
            ArgumentError,
            r"'main' has no argument 'chunk'\n.*\n.* keywords of run\(\) are options: entry, .*, chunks, ",
        ),
        (
            lambda: devscope.run(PROGRAM.replace("%scale", "%chunks"), X, W, chunks=2),
            ArgumentError,
            "takes 3 arguments, got 2\n.*\n.*by position",
        ),
        (lambda: devscope.run(PROGRAM, X), ArgumentError, "'main' takes 3 arguments, got 1"),
        (
            lambda: check_signature("program.dsx", b"", b"", "maker.pub"),
            OptionError,
            r"'maker.pub' is no list of trusted keys\n.*trusted_keys=\['maker.pub'\]",
        ),
        (
            lambda: check_signature("program.dsx", b"", b"", 3),
            OptionError,
            r"3 is no list of .*\n.*\['maker.pub'\]",
        ),  # type: ignore[arg-type]
        (lambda: devscope.compile(PROGRAM).save("a\0b"), InputError, "which is no path"),
        (lambda: copy.copy(devscope.compile(PROGRAM)), TypeError, r"save\(\) writes"),
        (lambda: devscope.plan(PROGRAM, machine="m.toml"), OptionError, "give completion='min-cost'"),
        (lambda: devscope.compile(PROGRAM).run(X, W), InputError, "the name of an entry comes first"),
        (
            lambda: devscope.compile(PROGRAM.replace("@main", "@a"))(X),
            InputError,
            r"by its name: run\('a', \.\.\.\)",
        ),
    ],
)
def test_wrong_calls(call: Callable[[], object], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        call()
