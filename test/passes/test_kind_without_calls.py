"""A kind of target can say that its functions never call, and a target of it that they do."""

from __future__ import annotations

import pytest
from xdsl.parser import Parser

from devscope.analysis.manager import AnalysisManager
from devscope.dialects import target
from devscope.dialects.context import make_context
from devscope.dialects.target import OptionSpec, TargetKind, register_target_kind
from devscope.errors import LoweringError
from devscope.passes import device_inline as inline
from devscope.passes.device_inline import DeviceInlinePass

PROGRAM = """
#dev = #device.scope<"array", 0 : i64, "", "">
func.func private @callee(%x: tensor<4xf32> {{device.scope = #dev}}) -> (tensor<4xf32> {{device.scope = #dev}})
    attributes {{device.scope = #dev, device.target = #device.target<"array", {options}>}} {{
  %0 = math.exp %x : tensor<4xf32>
  {body}
  return %0 : tensor<4xf32>
}}
func.func private @caller(%x: tensor<4xf32> {{device.scope = #dev}}) -> (tensor<4xf32> {{device.scope = #dev}})
    attributes {{device.scope = #dev, device.target = #device.target<"array", {options}>}} {{
  %0 = call @callee(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}}
"""


@pytest.fixture(autouse=True)
def kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target, "_KINDS", dict(target.target_kinds()))
    register_target_kind(TargetKind("array", "array", {"calls": OptionSpec(bool)}, calls=False))


def inlined(options: str, body: str = "") -> str:
    module = Parser(make_context(), PROGRAM.format(options=options, body=body)).parse_module()
    DeviceInlinePass().run(AnalysisManager(module))
    module.verify()
    return str(module)


def test_calls_are_inlined() -> None:
    text = inlined("{}")
    assert "func.call" not in text
    assert "@callee" not in text
    assert text.count("math.exp") == 1


def test_a_target_of_the_kind_may_call() -> None:
    assert "func.call @callee" in inlined("{calls = true}")


def test_recursion_is_refused_without_advice_that_does_not_apply() -> None:
    with pytest.raises(LoweringError, match="'callee' -> 'callee'") as caught:
        inlined("{}", "%1 = call @callee(%x) : (tensor<4xf32>) -> tensor<4xf32>")
    assert not any("calls = false" in note for note in caught.value.notes)


def test_programs_that_grow_exponentially_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inline, "MOST_COPIES", 100)
    call = "call @f{} (%x) : (tensor<4xf32>) -> tensor<4xf32>"
    function = PROGRAM.split("func.func private @caller", maxsplit=1)[0].format(options="{}", body="BODY")
    header, function = function.split("func.func", maxsplit=1)
    text = header
    for level in range(8):
        body = "".join(f"  %{n} = {call.format(level + 1)}\n" for n in (1, 2)) if level < 7 else ""
        text += "func.func" + function.replace("@callee", f"@f{level}").replace("BODY", body)
    module = Parser(make_context(), text).parse_module()
    with pytest.raises(LoweringError, match="more than 100 calls to inline"):
        DeviceInlinePass().run(AnalysisManager(module))
