"""`verify_device_attributes`: every illegal use is one error that is located and says what is legal."""

from __future__ import annotations

import pytest
from xdsl.dialects import test
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FileLineColLoc,
    IntAttr,
    ModuleOp,
    StringAttr,
    UnregisteredOp,
    f32,
)
from xdsl.ir import Attribute, BuiltinAttribute, Operation, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from devscope.dialects.context import make_context
from devscope.dialects.device import (
    OnDeviceOp,
    ScopeAttr,
    TargetAttr,
    verify_device_attributes,
)
from devscope.errors import SourceLocation, VerifyError

CPU = ScopeAttr.get("cpu", 0)


@irdl_attr_definition
class Held(ParametrizedAttribute, BuiltinAttribute):
    """An attribute that xDSL could not hold and that prints as the text it came from."""

    name = "test.held"

    text: StringAttr

    def print_builtin(self, printer: Printer) -> None:
        printer.print_string(self.text.data)


def parse(text: str) -> ModuleOp:
    return Parser(make_context(), text).parse_module()


def unregistered(name: str, attributes: dict[str, Attribute] | None = None, line: int = 1) -> Operation:
    location = FileLineColLoc(StringAttr("m.mlir"), IntAttr(line), IntAttr(3))
    return UnregisteredOp.with_name(name).create(attributes=attributes or {}, location=location)


def error_of(*ops: Operation) -> VerifyError:
    with pytest.raises(VerifyError) as caught:
        verify_device_attributes(ModuleOp(ops))
    return caught.value


def test_a_legal_module() -> None:
    verify_device_attributes(
        parse("""
#dev = #device.scope<"cuda", 0>
module {
  func.func private @g(f32 {device.scope = #device.scope<"cpu">}) -> (f32 {device.scope = #device.scope<>})
  func.func @f(%x: tensor<4xf32> {device.scope = #dev, other.attr = 1 : i64}) -> tensor<4xf32>
      attributes {device.scope = #dev, device.target = #device.target<"cuda">, device.compiler = "x"} {
    %0 = "foreign.op"(%x) <{key = 3 : i64}> {device.scope = #dev} : (tensor<4xf32>) -> tensor<4xf32>
    %1 = device.device_copy %0 from #dev to #device.scope<"cpu"> : tensor<4xf32>
    func.return %1 : tensor<4xf32>
  }
}
""")
    )


def test_the_error_is_located() -> None:
    error = error_of(unregistered("foreign.op"), unregistered("foreign.op", {"device.scope": IntAttr(1)}, 12))
    assert error.location == SourceLocation("m.mlir", 12, 3)
    assert str(error).startswith("m.mlir:12:3: error: foreign.op: attribute 'device.scope' must be a scope")


@pytest.mark.parametrize(
    ("name", "attribute", "message"),
    [
        (
            "device.scope",
            StringAttr("cpu"),
            'attribute \'device.scope\' must be a scope, such as #device.scope<"cpu", 0 : i64, "", "">: '
            'it is "cpu"',
        ),
        (
            "device.target",
            CPU,
            "attribute 'device.target' must be a target, such as #device.target<\"cpu\", {opt = 3 : i64}>: "
            'it is #device.scope<"cpu", 0 : i64, "", "">',
        ),
        (
            "device.scop",
            CPU,
            "attribute 'device.scop' has no meaning; legal names are: device.scope, device.target, "
            "device.host_target; did you mean 'device.scope'?",
        ),
    ],
)
def test_discardable_attributes(name: str, attribute: Attribute, message: str) -> None:
    assert error_of(unregistered("a.b", {name: attribute})).message == f"a.b: {message}"


def test_scope_and_target_agree() -> None:
    attributes: dict[str, Attribute] = {"device.scope": CPU, "device.target": TargetAttr.get("cuda")}
    assert error_of(unregistered("a.b", attributes)).message == (
        "a.b: attribute 'device.target' is for devices of type 'cuda', but 'device.scope' is on 'cpu'; "
        "the device types must be equal"
    )


@pytest.mark.parametrize(("key", "noun"), [("arg_attrs", "argument"), ("res_attrs", "result")])
def test_function_arguments_and_results(key: str, noun: str) -> None:
    entries = ArrayAttr([DictionaryAttr({}), DictionaryAttr({"device.scope": StringAttr("x")})])
    as_attribute = unregistered("llvm.func", {key: entries})
    as_property = unregistered("llvm.func")
    as_property.properties[key] = entries
    for op in (as_attribute, as_property):
        assert error_of(op).message.startswith(f"llvm.func: {noun} 1, attribute 'device.scope' must be a scope")


def test_a_registered_function_is_checked_too() -> None:
    module = parse('func.func @f(%x: f32 {device.scope = "cpu"}) { func.return }')
    with pytest.raises(VerifyError, match=r"func\.func: argument 0, attribute 'device\.scope' must be a scope"):
        verify_device_attributes(module)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            'device.scope<"tpu", 0 : i64, "", "">',
            "unknown device type 'tpu'; legal device types are: cpu, cuda",
        ),
        (
            'device.scope<"cpu", 0 : i64, "cuda", "">',
            "target 'cuda' compiles for devices of type 'cuda', not 'cpu'",
        ),
        ('device.scope<"cpu", "0">', "a scope is written #device.scope<TYPE, ID, TARGET, MEMORY>"),
    ],
)
def test_an_attribute_that_the_importer_could_not_hold(text: str, reason: str) -> None:
    held = Held(StringAttr(f"#{text}"))
    assert reason in error_of(unregistered("a.b", {"device.scope": held})).message
    in_list = Held(StringAttr(f"[{{device.scope = #{text}}}]"))
    assert error_of(unregistered("a.func", {"arg_attrs": in_list})).message.startswith(
        f"a.func: attribute 'arg_attrs': {reason}"
    )
    copy = parse("""
      %x = "test.op"() : () -> f32
      %y = device.device_copy %x from #device.scope<"cpu"> to #device.scope<"cpu"> : f32""")
    op = copy.body.block.last_op
    assert op is not None
    op.attributes["src"] = held
    with pytest.raises(VerifyError) as caught:
        verify_device_attributes(copy)
    assert caught.value.message.startswith("device.device_copy: attribute 'src'")
    assert reason in caught.value.message


def test_scopes_are_not_lost_in_a_list_that_the_importer_could_not_hold() -> None:
    held = Held(StringAttr('[{device.scope = #device.scope<"cpu", 0 : i64, "", "">}]'))
    assert "what it says of devices would be lost" in error_of(unregistered("a.func", {"res_attrs": held})).message
    verify_device_attributes(ModuleOp([unregistered("a.func", {"res_attrs": Held(StringAttr("[{a.b}]"))})]))


def test_unknown_attributes_of_the_dialect() -> None:
    module = parse("""
      %x = "test.op"() {device.scope = #device.scop<"cpu">} : () -> f32""")
    with pytest.raises(VerifyError, match=r"must be a scope, .*: it is #device\.scop<"):
        verify_device_attributes(module)


def test_unknown_operations_of_the_dialect() -> None:
    assert error_of(unregistered("device.on")).message == (
        "device.on: no such operation; the operations of the device dialect are: "
        "device.on_device, device.device_copy, device.region, device.yield, device.launch, device.in, device.out"
    )


def test_operations_that_only_the_lowering_makes() -> None:
    module = parse("device.flush 0")
    module.verify()
    with pytest.raises(VerifyError, match=r"device\.flush: only the lowering makes this operation"):
        verify_device_attributes(module)


def test_what_the_lowering_makes_is_verified() -> None:
    with pytest.raises(VerifyException, match="-1 is no number of a device"):
        parse("device.flush -1").verify()
    module = parse("""
      func.func @f(%b: memref<4xf32>, %v: memref<8xf32>) {
        device.end_view %v of %b : memref<8xf32> of memref<4xf32>
        func.return
      }""")
    with pytest.raises(VerifyException, match="is no view of all of memref<4xf32>"):
        module.verify()


def test_operations_that_an_importer_left_unregistered() -> None:
    assert error_of(unregistered("device.on_device")).message.startswith("device.on_device: ")
    source = test.TestOp(result_types=[f32])
    malformed = UnregisteredOp.with_name("device.on_device").create(
        operands=source.results,
        result_types=[f32],
        attributes={"scope": Held(StringAttr('#device.scope<"cpu", 0 : i64, "cuda", "">'))},
    )
    assert error_of(source, malformed).message.startswith(
        "device.on_device: attribute 'scope': target 'cuda' compiles for devices of type 'cuda', not 'cpu'"
    )


def test_operations_are_verified() -> None:
    module = parse("""
      %x = "test.op"() : () -> f32
      %y = device.on_device %x on #device.scope<"cpu"> : f32""")
    op = module.body.block.last_op
    assert isinstance(op, OnDeviceOp)
    op.attributes["scope"] = ScopeAttr.get()
    op.location = FileLineColLoc(StringAttr("m.mlir"), IntAttr(7), IntAttr(1))
    with pytest.raises(VerifyError) as caught:
        verify_device_attributes(module)
    assert str(caught.value).startswith(
        "m.mlir:7:1: error: device.on_device: a fully open scope constrains nothing"
    )


def test_long_modules() -> None:
    verify_device_attributes(ModuleOp([unregistered("a.b", {"device.scope": CPU}) for _ in range(20_000)]))
