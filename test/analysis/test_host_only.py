"""Programs for the host alone are found, and the split leaves of them what it does without knowing that."""

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from devscope.analysis.host_only import is_host_only
from devscope.dialects.context import make_planning_context
from devscope.passes import device_split
from devscope.passes.device_plan import DevicePlanPass
from devscope.passes.device_split import DeviceSplitPass

HOST = """
func.func private @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = "arith.addf"(%x, %x) <{fastmath = #arith.fastmath<none>}> : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32>, %c: i1) -> tensor<4xf32> {
  %y = "scf.if"(%c) ({
    %z = func.call @twice(%x) : (tensor<4xf32>) -> tensor<4xf32>
    "scf.yield"(%z) : (tensor<4xf32>) -> ()
  }, {
    "scf.yield"(%x) : (tensor<4xf32>) -> ()
  }) : (i1) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
"""
DEVICE = 'device.scope = #device.scope<"opencl", 0 : i64, "", "">'
PLACED = {
    "operation": HOST.replace("fastmath<none>}>", f"fastmath<none>}}> {{{DEVICE}}}"),
    "argument": HOST.replace("@main(%x: tensor<4xf32>", f"@main(%x: tensor<4xf32> {{{DEVICE}}}"),
    "memory": 'func.func @main(%x: memref<4xf32, #device.scope<"opencl", 0 : i64, "", "">>) { func.return }',
}


def planned(text: str) -> tuple[Context, ModuleOp]:
    context = make_planning_context()
    module = Parser(context, text).parse_module()
    DevicePlanPass(arguments="host").apply(context, module)
    return context, module


def test_split_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    context, module = planned(HOST)
    assert is_host_only(module)
    DeviceSplitPass().apply(context, module)
    assert is_host_only(module)
    monkeypatch.setattr(device_split, "is_host_only", lambda *_: False)
    context, other = planned(HOST)
    DeviceSplitPass().apply(context, other)
    assert str(module) == str(other)


@pytest.mark.parametrize("text", PLACED.values(), ids=PLACED)
def test_devices_are_seen(text: str) -> None:
    assert not is_host_only(planned(text)[1])
