"""What the conformance suite finds in backends that are wrong."""

from __future__ import annotations

import numpy as np
import pytest
import toy
from toy import registered_toy as registered_toy

from devscope import backend_check
from devscope.backend_check import check_backend
from devscope.backends import Claimed, LlvmIr, PythonCall, Row
from devscope.errors import OptionError
from devscope.patterns import op, wildcard

ARGUMENTS = "ptr %a, i64 %m, i64 %k, ptr %b, i64 %k1, i64 %n, ptr %out, i64 %m1, i64 %n1"


def python(function: Claimed) -> PythonCall:
    return PythonCall("toy_matmul")


def llvm(body: str) -> object:
    def code(function: Claimed) -> LlvmIr:
        return LlvmIr(f"define i32 @{function.name}({ARGUMENTS}) {{ {body} }}", function.name)

    return code


def beside(pointer: str, index: int) -> object:
    return llvm(f"%p = getelementptr float, ptr {pointer}, i64 {index}\n store float 7.0, ptr %p\n ret i32 0")


def wrong(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    np.add(a @ b, 0.1, out=out)


def fails(*_: object) -> float:
    raise ValueError("not today")


MATMUL = toy.Toy.patterns[0]
UNMATCHED = Row("other", op("linalg.matmul", op("linalg.matmul"), wildcard()))


@pytest.mark.parametrize(
    ("attributes", "what", "problem"),
    [
        ({}, "", ""),
        ({"code": lambda _: PythonCall("wrong")}, "runs with", "the result differs from the host's"),
        ({"code": llvm("store float 7.0, ptr %a\n ret i32 0")}, "runs with", "it writes to its operands"),
        ({"code": beside("%out", 42)}, "runs with", "it writes behind result 0"),
        ({"code": beside("%b", -1)}, "runs with", "it writes in front of operand 1"),
        ({"code": llvm("ret i32 3")}, "runs with", "failed with status 3"),
        ({"code": fails}, "compiles", "cannot compile what it claimed: ValueError: not today"),
        ({"cost": fails}, "is searched, with its costs", "the cost of 'toy.matmul' failed: ValueError: not today"),
        ({"cost": lambda *_: -1.0}, "is searched", "is -1.0, which is no time"),
        ({"patterns": [MATMUL, UNMATCHED]}, "pattern 'other'", "it matched in no program"),
        ({"patterns": [Row(*MATMUL[:2], fails)]}, "compiles", "the predicate of 'toy.matmul' failed"),
    ],
)
def test_faults(attributes: dict[str, object], what: str, problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    small = {name: text for name, text in backend_check.programs().items() if name == "matmul f32 static"}
    monkeypatch.setattr(backend_check, "programs", lambda: small)
    monkeypatch.setattr(backend_check._Saved, "outcomes", lambda _: iter(()))  # needs an installed package
    functions = {"toy_matmul": toy.matmul, "wrong": wrong}
    monkeypatch.setattr(toy.ToyRuntime, "function", lambda _, name: functions.get(name))
    for name, value in {"code": python, **attributes}.items():
        is_code = name == "code"
        monkeypatch.setattr(toy.Toy, name, staticmethod(value) if is_code else value, raising=not is_code)  # type: ignore[arg-type]
    found = [one for one in check_backend("toy") if one.problem]
    if not problem:
        assert found == []
        return
    assert any(what in one.what and problem in one.problem for one in found), found


@pytest.mark.parametrize("version", [fails, lambda _: 5])
def test_versions(version: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toy.Toy, "version", version)
    with pytest.raises(OptionError, match="backend 'toy' cannot say its version"):
        list(check_backend("toy"))
