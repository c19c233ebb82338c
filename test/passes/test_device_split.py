"""What ``device-split`` promises about the functions that it makes: parameters, names, marks."""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.parser import Parser

from devscope.analysis.manager import AnalysisManager
from devscope.analysis.target_binding import TargetBinding
from devscope.dialects.context import make_context
from devscope.dialects.device import NOALIAS_ATTR, ScopeAttr, TargetAttr
from devscope.passes.device_split import DeviceSplitPass
from devscope.passes.device_verify_split import DeviceVerifySplitPass

HOST = ScopeAttr.get("cpu", 0)


def split(body: str, others: str = "") -> ModuleOp:
    """Splits a function @main over eight arguments, whose tensors are on the device."""
    text = f"""
        func.func @main(%z: !t {{device.scope = DEV}}, %b: !t {{device.scope = DEV}}, %n: index, %f: f32,
                        %a: !t {{device.scope = DEV}}, %0: !t {{device.scope = DEV}}, %k: index,
                        %unused: !t {{device.scope = DEV}})
            -> (!t {{device.scope = DEV}}) {{
          {body}
          func.return %r : !t
        }}
        {others}
    """
    text = text.replace("DEV", '#device.scope<"opencl", 0 : i64, "", "">').replace("!t", "tensor<?xf32>")
    module = Parser(make_context(), text).parse_module()
    DeviceSplitPass().run(AnalysisManager(module))
    DeviceVerifySplitPass().run(AnalysisManager(module))
    return module


def functions(module: ModuleOp) -> dict[str, func.FuncOp]:
    return {op.sym_name.data: op for op in module.ops if isinstance(op, func.FuncOp)}


def names(function: func.FuncOp) -> list[str | None]:
    return [argument.name_hint for argument in function.args]


def test_parameters_are_buffers_then_scalars_by_name() -> None:
    at = "{device.scope = DEV} : !t"
    module = split(
        f"""
        %1 = arith.addf %0, %z {at}
        %2 = arith.addf %1, %b {at}
        %3 = tensor.splat %f[%n] {at}
        %4 = arith.addf %2, %3 {at}
        %5 = tensor.splat %f[%k] {at}
        %6 = arith.addf %4, %a {at}
        %r = arith.addf %6, %5 {at}
        """
    )
    piece = functions(module)["main_opencl0_0"]
    # Nothing for %unused. The value without a name of its own comes behind those with one.
    assert names(piece) == ["a", "b", "z", None, "f", "k", "n"]
    call = next(op for op in functions(module)["main"].walk() if isinstance(op, func.CallOp))
    assert [value.name_hint for value in call.operands] == names(piece)
    assert piece.attributes[NOALIAS_ATTR] == UnitAttr()


def test_names_do_not_collide() -> None:
    module = split(
        "%r = arith.addf %a, %b {device.scope = DEV} : !t",
        """
        func.func private @main_opencl0_0()
        "memref.global"() <{sym_name = "main_opencl0_1", type = memref<4xf32>, sym_visibility = "private",
                           initial_value}> : () -> ()
        """,
    )
    assert "main_opencl0_2" in functions(module)


def test_targets_of_functions_are_defaults_of_their_scopes() -> None:
    slim, wide = (TargetAttr.get("opencl", {"workgroup": size}) for size in (32, 128))
    plain, scoped = ScopeAttr.get("opencl", 0), ScopeAttr.get("opencl", 0, slim)
    assert TargetBinding().target_in(plain, None) == TargetAttr.get("opencl")
    assert TargetBinding().target_in(plain, wide) == wide
    assert TargetBinding().target_in(scoped, wide) == slim
    assert TargetBinding().target_in(plain, TargetAttr.get("cuda")) == TargetAttr.get("opencl")
    # What a device is built for is no function's to say.
    to_host = TargetBinding.parse(["opencl:0=cpu"])
    assert to_host.target_in(scoped, wide) == TargetAttr.get("cpu")
    to_opencl = TargetBinding.parse(["cuda=opencl"])
    assert to_opencl.target_in(ScopeAttr.get("cuda", 0), wide) == wide


def test_splitting_again_changes_nothing() -> None:
    module = split("%r = arith.addf %a, %b {device.scope = DEV} : !t")
    text = str(module)
    DeviceSplitPass().run(AnalysisManager(module))
    assert str(module) == text
