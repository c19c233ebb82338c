"""devscope in the pass managers and contexts of others, and their modules given back."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

import devscope
import devscope.mlir
from devscope.dialects.context import make_context
from devscope.dialects.device import Device
from devscope.dialects.irdl_export import export_dialect
from devscope.errors import InputError, OptionError, PlanError
from devscope.lowering.interop.bindings import PACKAGE, ir, passmanager

TEXT = """
#dev = #device.scope<"opencl", 0 : i64, "", "">
module attributes {my.name = "m"} {
  func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
    %e = tensor.empty() : tensor<8xf32>
    %0 = linalg.exp {device.scope = #dev} ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
    func.return %0 : tensor<8xf32>
  }
}
"""
X = np.linspace(-1, 1, 8, dtype=np.float32)


@pytest.fixture
def module() -> Any:
    context = ir.Context()
    devscope.mlir.load_dialect(context)
    devscope.mlir.load_dialect(context)  # which is there
    return ir.Module.parse(TEXT, context)


def test_plan_in_a_pass_manager(module: Any) -> None:
    operation = module.operation
    with module.context:
        manager = passmanager.PassManager()
        manager.add("func.func(cse)")
        devscope.mlir.add_plan_pass(manager, arguments="host")
        manager.add("canonicalize")
        manager.run(operation)
    assert module.operation == operation
    assert str(module).count("device.device_copy") == 2
    assert 'my.name = "m"' in str(module)
    with devscope.compile(module, cache=False) as executable:
        np.testing.assert_allclose(executable(X), np.exp(X), rtol=1e-6)


def test_passes_one_by_one(module: Any) -> None:
    devscope.mlir.run_pass(module, "device-plan", arguments="host")
    devscope.mlir.run_pass(module, "device-verify")
    devscope.mlir.run_pass(module, "device-split")
    devscope.mlir.run_pass(module, "device-verify-split")
    assert "device.target" in str(module)
    assert len(list(module.body.operations)) == 2


def test_a_pass_that_fails(module: Any) -> None:
    wrong = '#other = #device.scope<"cpu", 0 : i64, "", "">' + TEXT.replace(
        "func.return %0",
        """%1 = "device.on_device"(%0) {scope = #other, constrain_result = true} : (tensor<8xf32>) -> tensor<8xf32>
    func.return %1""",
    ).replace("%x: tensor<8xf32>) -> tensor<8xf32>", "%x: tensor<8xf32>) -> (tensor<8xf32> {device.scope = #dev})")
    bad = ir.Module.parse(wrong, module.context)
    manager = passmanager.PassManager(context=module.context)
    devscope.mlir.add_plan_pass(manager, module.context)
    with pytest.raises(ir.MLIRError, match=r"(?s)Failure while executing pass pipeline.*must be on"):
        manager.run(bad.operation)
    with pytest.raises(PlanError):
        devscope.mlir.run_pass(bad, "device-plan")


def test_unknown_passes_and_options(module: Any) -> None:
    with pytest.raises(OptionError, match="no pass 'plan'"):
        devscope.mlir.run_pass(module, "plan")
    with pytest.raises(OptionError, match=r"'device-plan' has no option 'x'\n.*it has: default, host"):
        devscope.mlir.run_pass(module, "device-plan", x=1)
    with pytest.raises(OptionError, match=r"option 'default' of pass 'device-plan' is of type str, not 3"):
        devscope.mlir.run_pass(module, "device-plan", default=3)
    with module.context:
        manager = passmanager.PassManager()
    with pytest.raises(OptionError, match="no current context"):
        devscope.mlir.add_plan_pass(manager)
    devscope.mlir.add_plan_pass(manager, module.context)


def test_plans_give_back_what_they_were_given(module: Any) -> None:
    before = str(module)
    planned = devscope.plan(module).module
    assert isinstance(planned, ir.Module)
    assert planned.context is module.context
    assert str(module) == before
    text = devscope.plan(TEXT).module
    assert text == str(planned)
    generic = module.operation.get_asm(print_generic_op_form=True)
    given = Parser(make_context(), generic).parse_module()
    back = devscope.plan(given).module
    assert isinstance(back, ModuleOp)
    back.verify()
    assert str(back).count("device.device_copy") == 2
    with devscope.compile(back, cache=False) as executable:
        np.testing.assert_allclose(executable(X), np.exp(X), rtol=1e-6)


def test_shipped_dialect_is_the_dialect() -> None:
    """To mend it: python -m devscope.dialects.irdl_export > dialects/device.irdl.mlir"""
    assert devscope.mlir.irdl_file().read_text() == export_dialect(Device)


def test_bindings_verify_planned_code_without_devscope() -> None:
    script = f"""
import sys
from {PACKAGE} import ir
from {PACKAGE}._mlir_libs._mlirDialectsIRDL import load_dialects
irdl, planned = sys.stdin.read().split("-----")
with ir.Context(), ir.Location.unknown():
    load_dialects(ir.Module.parse(irdl))
    module = ir.Module.parse(planned)
    assert module.operation.verify()
    try:
        ir.Module.parse(planned.replace("dst = #", "to = #"))
    except ir.MLIRError as error:
        assert "dst" in str(error), error
    else:
        raise AssertionError("a copy without a target was accepted")
assert "devscope" not in sys.modules
"""
    text = f"{devscope.mlir.irdl_file().read_text()}-----{devscope.plan(TEXT).module}"
    subprocess.run([sys.executable, "-c", script], input=text, text=True, check=True)


def test_bindings_without_irdl() -> None:
    jaxlib = pytest.importorskip("jaxlib.mlir.ir")
    context = jaxlib.Context()
    with pytest.raises(InputError, match=r"'jaxlib\.mlir' cannot load dialects"):
        devscope.mlir.load_dialect(context)
    context.allow_unregistered_dialects = True
    devscope.mlir.load_dialect(context)


def test_a_pass_on_a_module_of_jax() -> None:
    jaxlib = pytest.importorskip("jaxlib.mlir.ir")
    make_ir_context = pytest.importorskip("jax._src.interpreters.mlir").make_ir_context
    with make_ir_context() as context:
        context.allow_unregistered_dialects = True
        module = jaxlib.Module.parse(
            "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
            "  %0 = stablehlo.abs %x : tensor<2xf32>\n  return %0 : tensor<2xf32>\n}"
        )
        devscope.mlir.run_pass(module, "device-plan", default="cpu:0")
        assert "device.scope" in str(module)


def test_a_pass_on_functions(module: Any) -> None:
    manager = passmanager.PassManager("func.func", module.context)
    devscope.mlir.add_plan_pass(manager, module.context)
    with pytest.raises(ir.MLIRError, match=r"runs on builtin\.module, and was added for 'func\.func'"):
        manager.run(next(iter(module.body.operations)).operation)
