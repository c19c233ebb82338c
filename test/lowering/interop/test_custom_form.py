"""The custom forms of device operations: read in files of any dialects, printed, and the same either way."""

import pytest

from devscope.errors import ParseError, SourceLocation
from devscope.lowering.interop.custom_form import to_custom, to_generic
from devscope.lowering.interop.parsing import make_mlir_context, parse_file

ALIASES = '#a = #device.scope<"opencl", 0 : i64, "", "">\n#b = #device.scope<"cpu", 0 : i64, "", "">\n'

FORMS = [
    (
        "%1 = device.device_copy %0 from #a to #b : tensor<4xf32>",
        '%1 = "device.device_copy"(%0) {src = #a, dst = #b} : (tensor<4xf32>) -> tensor<4xf32>',
    ),
    (
        "%1 = device.on_device %0#1 on #a : !t",
        '%1 = "device.on_device"(%0#1) {scope = #a} : (!t) -> !t',
    ),
    (
        "%1 = device.on_device %0 on #a {constrain_result = true} : tensor<4xf32, #m<(d0) -> (d0)>>",
        '%1 = "device.on_device"(%0) {scope = #a, constrain_result = true} '
        ": (tensor<4xf32, #m<(d0) -> (d0)>>) -> tensor<4xf32, #m<(d0) -> (d0)>>",
    ),
    (
        '%1 = device.device_copy %0 from #device.scope<"a>", 0, #device.target<"x", {y = 1}>, ""> to #b : f32',
        '%1 = "device.device_copy"(%0) '
        '{src = #device.scope<"a>", 0, #device.target<"x", {y = 1}>, "">, dst = #b} : (f32) -> f32',
    ),
]


@pytest.mark.parametrize(("custom", "generic"), FORMS)
def test_expansion(custom, generic):
    assert to_generic(f"  {custom} // {custom}\n") == f"  {generic} // {custom}\n"
    assert to_generic(generic) == generic


def test_lines_keep_their_numbers():
    text = "%1 = device.device_copy\n  %0 from #a\n  to #b : f32\nfunc.return"
    assert to_generic(text).splitlines()[3] == "func.return"


SHARDED = """module {
  sdy.mesh @one = <["x"=1]> {stablehlo.mesh = {axes = []}} loc(unknown)
  func.func @main(%x: tensor<4x3xf32> {sdy.sharding = #sdy.sharding<@one, [{"x"}, {}]>}) -> tensor<4x3xf32> {
    %0 = sdy.sharding_constraint %x <@one, [{"x", ?}p1, {}], replicated={"x"}> : tensor<4x3xf32> loc(unknown)
    return %0 : tensor<4x3xf32>
  }
}
"""


def test_sharding_constraints_are_calls_and_meshes_nothing(session, tmp_path):
    path = tmp_path / "sharded.mlir"
    path.write_text(SHARDED)
    for module in (session.parse(SHARDED), parse_file(path, make_mlir_context())):
        assert "stablehlo.custom_call @Sharding(%arg0) : (tensor<4x3xf32>) -> tensor<4x3xf32>" in str(module)
        assert "sdy.mesh" not in str(module)
    with pytest.raises(ParseError, match=r"custom op 'sdy\.return'") as caught:
        session.parse(SHARDED.replace("return", "sdy.return"), "m.mlir")
    assert caught.value.location == SourceLocation("m.mlir", 5, 5)


@pytest.mark.parametrize("kept", ['"%1 = device.on_device %0 on #a : f32"', "// device.on_device %0 on #a : f32"])
def test_strings_and_comments_are_kept(kept):
    assert to_generic(kept) == kept


@pytest.mark.parametrize(
    "line",
    [
        '  %1 = "device.device_copy"(%0) {dst = #b, note, src = #a} : (f32) -> f32',
        '  %1 = "device.device_copy"(%0) {dst = #b, src = #a} : (f32) -> f64',
        '  "other.op"() {x = "\\22device.device_copy\\22(%0)"} : () -> ()',
    ],
)
def test_what_has_no_custom_form_stays(line):
    assert to_custom(line) == line


def test_printed_and_read_again(session):
    body = """  %0 = device.on_device %x on #a {constrain_body = false, constrain_result = true} : tensor<4xf32>
  %1 = device.device_copy %0 from #a to #b : tensor<4xf32>
"""
    text = f"{ALIASES}func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {{\n{body}  return %1 : tensor<4xf32>\n}}"
    module = session.parse(text)
    printed = to_custom(str(module))
    assert printed != str(module)
    assert "device.on_device %arg0 on #device.scope" in printed
    assert str(session.parse(printed)) == str(module)


def test_errors_have_their_lines(session):
    text = f"{ALIASES}func.func @f(%x: f32) {{\n  %0 = device.on_device %x on #a : f32\n  nope\n}}"
    with pytest.raises(ParseError, match="custom op 'nope' is unknown") as caught:
        session.parse(text, "m.mlir")
    assert caught.value.location == SourceLocation("m.mlir", 5, 3)
