"""The tests of single operators that come with the package onnx, on devscope."""

from __future__ import annotations

import functools
import itertools
import os
import traceback
import warnings
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

import devscope
from devscope.errors import DevscopeError


@functools.cache
def cases() -> dict[str, Any]:
    """All tests, by name."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found = {case.name: case for case in collect_testcases(None)}
    return dict(sorted(found.items()))


def outcome(case: Any, target: str) -> str:
    """``""`` if a test's results are right, else ``refused``, ``wrong`` or ``crash`` and why, in a line."""
    try:
        program = devscope.compile(case.model, cache=False, **_placed(target))
    except DevscopeError as error:
        if "internal error" in str(error):
            return _line("crash", str(error))
        return _line("refused", getattr(error, "message", str(error)))
    except Exception as error:
        return _line("crash", _where(error))
    for inputs, wants in case.data_sets:
        try:
            given = [_array(value) for value in inputs]
            got = program.run("main", *given)
        except DevscopeError as error:
            return _line("wrong", f"the call fails: {error}")
        except Exception as error:
            return _line("crash", _where(error))
        got = [*got] if isinstance(got, tuple | list) else [got]
        if text := differs(got, [_array(want) for want in wants], case.rtol, case.atol):
            return _line("wrong", text)
    return ""


def _placed(target: str) -> dict[str, Any]:
    """``mixed``: what computes is on ``opencl:0`` and on ``cpu:0`` in turn."""
    if target != "mixed":
        return {"default": target}
    turn = itertools.count()
    return {"place": [devscope.Rule("opencl:0", when=lambda _: next(turn) % 2 == 0)], "default": "cpu:0"}


def _array(value: Any) -> np.ndarray:
    """Some tests have protobufs."""
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    return value if isinstance(value, np.ndarray) else np.asarray(value)


def _where(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} at {os.path.basename(frame.filename)}:{frame.lineno}"


def _line(kind: str, text: str) -> str:
    return f"{kind} {' '.join(text.split())}"[:400]


def differs(got: list[Any], wants: list[np.ndarray], rtol: float, atol: float) -> str:
    """As onnx's own runner compares: dtypes, shapes, and elements within the tolerances of the test."""
    if len(got) != len(wants):
        return f"{len(got)} results, not {len(wants)}"
    for number, (one, want) in enumerate(zip(got, wants, strict=True)):
        one = np.asarray(one)
        if one.dtype != want.dtype:
            return f"result {number} is of {one.dtype}, not {want.dtype}"
        if one.shape != want.shape:
            return f"result {number} has shape {one.shape}, not {want.shape}"
        if want.dtype.kind not in "biufc":
            one, want = one.astype(np.float32), want.astype(np.float32)
        if want.dtype.kind in "fc":
            right = np.isclose(one, want, rtol=rtol, atol=atol, equal_nan=True)
        else:
            right = np.abs(one.astype(np.float64) - want) <= atol + rtol * np.abs(want.astype(np.float64))
        if not np.all(right):
            at = np.argwhere(~right)[0].tolist()
            values = f"{one[tuple(at)]}, not {want[tuple(at)]}"
            return f"result {number} differs in {np.sum(~right)} of {want.size}, at {at}: {values}"
    return ""
