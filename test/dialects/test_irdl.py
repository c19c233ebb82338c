"""The exported dialect, verified by plain MLIR."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Data, Dialect
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    attr_def,
    irdl_attr_definition,
    irdl_op_definition,
    opt_operand_def,
    opt_prop_def,
    opt_region_def,
    region_def,
    result_def,
    var_operand_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer

from devscope.dialects.context import make_context
from devscope.dialects.device import Device
from devscope.dialects.irdl_export import export_dialect, main

PROGRAM = """
#dev = #device.scope<"opencl", 0 : i64, #device.target<"opencl", {fp64 = true}>, "global">
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func @f(%x: tensor<4xf32> {device.scope = #dev}) -> (tensor<4xf32> {device.scope = #host})
    attributes {device.scope = #host, device.target = #device.target<"cpu", {opt = 3 : i64}>} {
  %0 = "device.on_device"(%x) {scope = #dev, constrain_result = true} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "device.region"() ({
    %2 = math.tanh %0 {device.scope = #dev} : tensor<4xf32>
    "device.region"() ({
      "device.yield"() : () -> ()
    }) {scope = #host} : () -> ()
    "device.yield"(%2) : (tensor<4xf32>) -> ()
  }) {scope = #dev} : () -> tensor<4xf32>
  %3 = "device.device_copy"(%1) {src = #dev, dst = #host} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %3 : tensor<4xf32>
}
func.func @launch(%x: tensor<4xf32>, %y: tensor<?xi8>, %n: index) -> tensor<?xi8> {
  %0:3 = "device.launch"(%n, %n, %n, %n, %n, %n, %n) ({
    "device.in"(%n) : (index) -> ()
    "device.in"(%x) : (tensor<4xf32>) -> ()
    "device.out"(%x) : (tensor<4xf32>) -> ()
    "device.out"(%y) : (tensor<?xi8>) -> ()
    "device.out"(%y) : (tensor<?xi8>) -> ()
  }) {kernel = @k, device.scope = #dev}
    : (index, index, index, index, index, index, index) -> (tensor<4xf32>, tensor<?xi8>, tensor<?xi8>)
  func.return %0#1 : tensor<?xi8>
}
"""


@pytest.fixture(scope="module")
def ir() -> Any:
    """The bindings' `ir` module, inside a context that has the dialect and allows no unregistered ones."""
    from torch_mlir import ir
    from torch_mlir.dialects import irdl

    with ir.Context(), ir.Location.unknown():
        irdl.load_dialects(ir.Module.parse(export_dialect(Device)))
        ir.IsTerminatorTrait.attach("device.yield")
        ir.NoTerminatorTrait.attach("device.launch")
        yield ir


def parse(text: str) -> ModuleOp:
    return Parser(make_context(), text).parse_module()


def test_the_command_prints_the_dialect_that_mlir_loads(capsys: pytest.CaptureFixture[str]) -> None:
    main()
    assert capsys.readouterr().out == export_dialect(Device)


def test_round_trip_through_mlir(ir: Any) -> None:
    module = parse(PROGRAM)
    module.verify()
    stream = StringIO()
    Printer(stream=stream, print_generic_format=True).print_op(module)
    in_mlir = ir.Module.parse(stream.getvalue())
    assert in_mlir.operation.verify()
    back = parse(in_mlir.operation.get_asm(print_generic_op_form=True, use_local_scope=True))
    back.verify()
    assert back.is_structurally_equivalent(module)


def test_mlir_reads_the_written_form_and_keeps_it(ir: Any) -> None:
    text = '#device.scope<"cuda", 0 : i64, #device.target<"cuda", {arch = "sm_90"}>, "">'
    assert str(ir.Attribute.parse(text)) == text
    assert str(Parser(make_context(), text).parse_attribute()) == text


COPY, ON = '"device.device_copy"(%x)', '"device.on_device"(%x)'


@pytest.mark.parametrize(
    ("op", "attributes", "type", "message"),
    [
        (COPY, "src = #d", "(f32) -> f32", 'attribute "dst" is expected but not provided'),
        (COPY, "dst = #d", "(f32) -> f32", 'attribute "src" is expected but not provided'),
        (COPY, 'src = #d, dst = "cpu"', "(f32) -> f32", "expected base attribute 'device.scope'"),
        (COPY, "src = #d, dst = #d", "(f32) -> f64", "expected 'f32' but got 'f64'"),
        (
            '"device.device_copy"()',
            "src = #d, dst = #d",
            "() -> f32",
            "exactly 1 operands, but got 0",
        ),
        (ON, "", "(f32) -> f32", 'attribute "scope" is expected but not provided'),
        (ON, "scope = #d", "(f32) -> i32", "expected 'f32' but got 'i32'"),
        (ON, 'scope = #device.scope<"cpu">', "(f32) -> f32", "expected 4 type arguments, but had 1"),
        (ON, 'scope = #device.scope<"", "", "", "">', "(f32) -> f32", "base attribute 'builtin.integer'"),
        (ON, 'scope = #device.scope<"", 0 : i64, [], "">', "(f32) -> f32", "does not satisfy the constraint"),
        ('"device.region"()', "scope = #d", "() -> f32", "expected 1 but got 0"),
        ('"device.on"(%x)', "", "(f32) -> f32", "unregistered operation 'device.on'"),
    ],
)
def test_mlir_refuses(ir: Any, op: str, attributes: str, type: str, message: str) -> None:
    text = f"""
      #d = #device.scope<"cpu", 0 : i64, "", "">
      func.func @f(%x: f32) {{
        %y = {op} {{{attributes}}} : {type}
        func.return
      }}"""
    with pytest.raises(ir.MLIRError, match=message):
        ir.Module.parse(text)


def test_results_of_a_region_have_one_type_in_mlir(ir: Any) -> None:
    """A limit of IRDL, not of the dialect: it has no word for a range of different types."""
    text = """
      func.func @f(%x: f32, %y: f64) {
        %0:2 = "device.region"() ({
          "device.yield"(%x, %y) : (f32, f64) -> ()
        }) {scope = #device.scope<"cpu", 0 : i64, "", "">} : () -> (f32, f64)
        func.return
      }"""
    parse(text).verify()
    with pytest.raises(ir.MLIRError, match="expected 'f32' but got 'f64'"):
        ir.Module.parse(text)


@irdl_op_definition
class ManyOp(IRDLOperation):
    name = "t.many"
    from_ = opt_operand_def()
    rest = var_operand_def()
    irdl_options = (AttrSizedOperandSegments(),)
    out = result_def()
    note = attr_def(StringAttr)
    body = region_def()


@irdl_op_definition
class OptionalRegionOp(IRDLOperation):
    name = "t.optional_region"
    body = opt_region_def()


@irdl_op_definition
class PropertyOp(IRDLOperation):
    name = "t.property"
    note = opt_prop_def(StringAttr)


@irdl_attr_definition
class PythonData(Data[int]):
    name = "t.data"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> int:
        return parser.parse_integer()

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(str(self.data))


def test_arities() -> None:
    assert export_dialect(Dialect("t", [ManyOp])) == (
        """irdl.dialect @t {
  irdl.operation @many {
    %0 = irdl.any
    %1 = irdl.any
    irdl.operands(from: optional %0, rest: variadic %1)
    %2 = irdl.any
    irdl.results(out: %2)
    %3 = irdl.any
    %4 = irdl.base "#builtin.string"
    irdl.attributes {"operandSegmentSizes" = %3, "note" = %4}
    %5 = irdl.region
    irdl.regions(body: %5)
  }
}
"""
    )


@pytest.mark.parametrize(
    ("dialect", "message"),
    [
        (Dialect("t", [PropertyOp]), "t.property: IRDL has no properties; use attr_def instead of prop_def"),
        (Dialect("t", [OptionalRegionOp]), "t.optional_region: IRDL has no optional or variadic regions"),
        (Dialect("t", [], [PythonData]), "t.data: IRDL knows attributes with parameters, not Python data"),
    ],
)
def test_what_irdl_cannot_say_is_refused(dialect: Dialect, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        export_dialect(dialect)
