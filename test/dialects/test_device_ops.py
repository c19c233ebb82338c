"""The operations of the ``device`` dialect: both written forms, constructors, rules, traits."""

from __future__ import annotations

from io import StringIO

import pytest
from xdsl.context import Context
from xdsl.dialects import test
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, ModuleOp, TensorType, f32, i32
from xdsl.ir import Block, Operation, Region
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import is_side_effect_free
from xdsl.transforms.canonicalize import CanonicalizePass
from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination
from xdsl.utils.exceptions import ParseError, VerifyException

from devscope.dialects.context import make_context
from devscope.dialects.device import OPEN_SCOPE, DeviceCopyOp, OnDeviceOp, RegionOp, ScopeAttr, YieldOp

CPU = ScopeAttr.get("cpu", 0)
OPENCL = ScopeAttr.get("opencl", 0)
T4 = TensorType(f32, [4])

PROGRAM = """
#dev = #device.scope<"opencl", 0>
#host = #device.scope<"cpu", 0>
func.func @f(%x: tensor<4xf32>, %i: tensor<2xi32>) -> (tensor<4xf32>, tensor<2xi32>) {
  %0 = device.on_device %x on #dev : tensor<4xf32>
  %1 = device.on_device %0 on #dev {constrain_result = true} : tensor<4xf32>
  %2 = device.on_device %1 on #device.scope<> {constrain_body = false} : tensor<4xf32>
  %3 = device.device_copy %2 from #dev to #host {note = "n"} : tensor<4xf32>
  %4, %5 = device.region on #dev -> tensor<4xf32>, tensor<2xi32> {
    device.region on #host {
    } {empty}
    device.yield %3, %i : tensor<4xf32>, tensor<2xi32>
  }
  func.return %4, %5 : tensor<4xf32>, tensor<2xi32>
}
"""


def parse(text: str) -> ModuleOp:
    return Parser(make_context(), text).parse_module()


def generic(op: Operation) -> str:
    stream = StringIO()
    Printer(stream=stream, print_generic_format=True).print_op(op)
    return stream.getvalue()


def a_value(type: TensorType = T4):
    return test.TestOp(result_types=[type]).results[0]


def test_custom_and_generic_form_round_trip() -> None:
    module = parse(PROGRAM)
    module.verify()
    for text in (str(module), generic(module)):
        again = parse(text)
        assert again.is_structurally_equivalent(module)
        assert str(again) == str(module)
        assert generic(again) == generic(module)


def test_data_stands_in_attributes() -> None:
    for op in parse(PROGRAM).walk():
        assert not op.name.startswith("device.") or not op.properties


def test_the_three_modes_of_on_device() -> None:
    normal = OnDeviceOp(a_value(), OPENCL)
    fixed = OnDeviceOp(a_value(), OPENCL, constrain_result=True)
    free = OnDeviceOp(a_value(), OPEN_SCOPE, constrain_body=False)
    for op, body, result in ((normal, True, False), (fixed, True, True), (free, False, False)):
        op.verify()
        assert (op.constrains_body, op.constrains_result) == (body, result)
        assert op.result.type == T4
    assert set(normal.attributes) == {"scope"}


def test_constrained_flags_may_be_spelled_out() -> None:
    flags = "constrain_body = true, constrain_result = false"
    module = parse(
        f"""
        %x = "test.op"() : () -> f32
        %y = "device.on_device"(%x) {{scope = #device.scope<"cpu">, {flags}}} : (f32) -> f32"""
    )
    module.verify()
    op = module.body.block.last_op
    assert isinstance(op, OnDeviceOp)
    assert op.constrains_body
    assert not op.constrains_result


@pytest.mark.parametrize(("body", "result"), [(True, False), (True, True), (False, True)])
def test_an_open_scope_cannot_constrain(body: bool, result: bool) -> None:
    op = OnDeviceOp(a_value(), OPEN_SCOPE, constrain_body=body, constrain_result=result)
    with pytest.raises(VerifyException, match="a fully open scope constrains nothing; close one of its fields"):
        op.verify_()


@pytest.mark.parametrize(("src", "dst", "name"), [(OPEN_SCOPE, CPU, "src"), (CPU, OPEN_SCOPE, "dst")])
def test_a_copy_needs_both_device_types(src: ScopeAttr, dst: ScopeAttr, name: str) -> None:
    with pytest.raises(VerifyException, match=f"'{name}' leaves the device type open; a copy needs both ends"):
        DeviceCopyOp(a_value(), src, dst).verify_()


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ('{src = #device.scope<"cpu">}', "attribute 'dst' expected in operation 'device.device_copy'"),
        ('{dst = #device.scope<"cpu">}', "attribute 'src' expected in operation 'device.device_copy'"),
        ('{src = "cpu", dst = #device.scope<"cpu">}', '"cpu" should be of base attribute device.scope'),
    ],
)
def test_a_copy_needs_both_scopes(attributes: str, message: str) -> None:
    text = f'%x = "test.op"() : () -> f32\n%y = "device.device_copy"(%x) {attributes} : (f32) -> f32'
    with pytest.raises(VerifyException, match=message):
        parse(text).verify()


@pytest.mark.parametrize("name", ["on_device", "device_copy"])
def test_operand_and_result_have_one_type(name: str) -> None:
    scopes = 'scope = #device.scope<"cpu">, src = #device.scope<"cpu">, dst = #device.scope<"cpu">'
    text = f'%x = "test.op"() : () -> f32\n%y = "device.{name}"(%x) {{{scopes}}} : (f32) -> i32'
    with pytest.raises(VerifyException, match="f32"):
        parse(text).verify()


def test_constrain_flags_are_booleans() -> None:
    text = '"device.on_device"(%x) {scope = #device.scope<"cpu">, constrain_body = 1 : i32} : (f32) -> f32'
    with pytest.raises(VerifyException, match="i32"):
        parse(f'%x = "test.op"() : () -> f32\n%y = {text}').verify()


def test_a_region_without_results_ends_by_itself() -> None:
    region = RegionOp(OPENCL, [], [test.TestOp()])
    region.verify()
    assert isinstance(region.body.block.last_op, YieldOp)


def test_region_results_are_what_it_yields() -> None:
    value = a_value()
    RegionOp(OPENCL, [T4], [YieldOp(value)]).verify()
    for types, body in (([T4], []), ([], [YieldOp(value)]), ([TensorType(i32, [4])], [YieldOp(value)])):
        with pytest.raises(
            VerifyException, match=r"the body yields .* but the results are .*; they must be equal"
        ):
            RegionOp(OPENCL, types, body).verify_()


def test_a_region_body_has_no_arguments() -> None:
    with pytest.raises(
        VerifyException, match="the body takes no arguments, but has 1; use the values from outside"
    ):
        RegionOp(OPENCL, [], Region(Block(arg_types=[T4]))).verify_()


def test_a_region_needs_a_scope() -> None:
    with pytest.raises(VerifyException, match="a fully open scope says nothing; close one of its fields"):
        RegionOp(OPEN_SCOPE, [], []).verify_()


def test_a_region_ends_with_a_yield() -> None:
    region = '"device.region"() ({ func.return }) {scope = #device.scope<"cpu">} : () -> ()'
    text = f"func.func @f() {{ {region} func.return }}"
    with pytest.raises(VerifyException, match=r"func\.return"):
        parse(text).verify()


def test_a_yield_stands_in_a_region() -> None:
    with pytest.raises(VerifyException, match=r"'device\.yield' expects parent op 'device\.region'"):
        parse('func.func @f() { "device.yield"() : () -> () }').verify()


@pytest.mark.parametrize("text", ['device.region on "x" {}', "device.region #device.scope<> {}"])
def test_malformed_region(text: str) -> None:
    with pytest.raises(ParseError):
        parse(text)


def run(pass_: type[CanonicalizePass] | type[CommonSubexpressionElimination], module: ModuleOp) -> list[str]:
    pass_().apply(Context(), module)
    return [op.name for op in module.walk() if op.name.startswith("device.")]


def test_effects() -> None:
    assert is_side_effect_free(OnDeviceOp(a_value(), CPU))
    assert is_side_effect_free(DeviceCopyOp(a_value(), CPU, OPENCL))
    assert is_side_effect_free(RegionOp(CPU, [T4], [YieldOp(a_value())]))
    assert not is_side_effect_free(RegionOp(CPU, [], [test.TestOp()]))


def test_canonicalize_folds_a_copy_to_itself_only() -> None:
    source = test.TestOp(result_types=[T4])
    same = DeviceCopyOp(source, OPENCL, OPENCL)
    other = DeviceCopyOp(same, OPENCL, CPU)
    module = ModuleOp([source, same, other, test.TestOp(operands=[other.result])])
    assert run(CanonicalizePass, module) == ["device.device_copy"]
    assert other.operand == source.results[0]


def test_cse_shares_equal_copies() -> None:
    source = test.TestOp(result_types=[T4])
    copies = [DeviceCopyOp(source, OPENCL, CPU), DeviceCopyOp(source, OPENCL, CPU)]
    module = ModuleOp([source, *copies, test.TestOp(operands=[copy.result for copy in copies])])
    assert run(CommonSubexpressionElimination, module) == ["device.device_copy"]


def test_values_of_any_type_can_be_placed() -> None:
    dense = DenseIntOrFPElementsAttr.from_list(T4, [0.0, 1.0, 2.0, 3.0])
    source = test.TestOp(result_types=[T4, f32], attributes={"value": dense})
    for value in source.results:
        OnDeviceOp(value, CPU).verify_()
        DeviceCopyOp(value, CPU, OPENCL).verify_()
