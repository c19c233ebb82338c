"""A function is cloned for what its callers pass a limited number of times; further calls choose by number."""

from __future__ import annotations

import pytest
from xdsl.parser import Parser

from devscope.analysis.manager import AnalysisManager
from devscope.dialects.context import make_context
from devscope.passes import device_defunctionalize

FUNCTIONS = range(4)
PROGRAM = "\n".join(
    (
        *(f"func.func private @f{n}(%x: f32) -> f32 {{ func.return %x : f32 }}" for n in FUNCTIONS),
        "func.func private @apply(%f: (f32) -> f32, %x: f32) -> f32 {",
        "  %0 = func.call_indirect %f(%x) : (f32) -> f32",
        "  func.return %0 : f32",
        "}",
        "func.func @main(%x: f32) {",
        *(
            f"%f{n} = func.constant @f{n} : (f32) -> f32\n"
            f"%r{n} = func.call @apply(%f{n}, %x) : ((f32) -> f32, f32) -> f32"
            for n in FUNCTIONS
        ),
        "  func.return",
        "}",
    )
)


@pytest.mark.parametrize("most", [0, 2, 4])
def test_clones_are_limited(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(device_defunctionalize, "MOST_CLONES", most)
    module = Parser(make_context(), PROGRAM).parse_module()
    device_defunctionalize.DeviceDefunctionalizePass().run(AnalysisManager(module))
    module.verify()
    text = str(module)
    assert text.count("func.func private @apply_f") == most
    assert text.count("func.call @apply(") == len(FUNCTIONS) - most
    assert text.count("case ") == max(len(FUNCTIONS) - most - 1, 0)
