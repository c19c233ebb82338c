"""Attributes and types: faithful whatever the value, and large ones never in Python."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    DenseResourceAttr,
    DictionaryAttr,
    FloatAttr,
    FunctionType,
    IntegerAttr,
    StringAttr,
    TensorType,
    f32,
    i32,
)

from devscope.errors import LoweringError
from devscope.lowering.interop.payload import PayloadAttr, PayloadType
from devscope.lowering.interop.session import Session

SESSION = Session()
FLOAT_BITS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64, "f8E4M3FN": 8, "f8E5M2": 8}
SPECIAL = {
    16: [0x7C00, 0xFC00, 0x7E00, 0x7C01, 0x0001, 0x8000],
    32: [0x7F800000, 0x7FC00001, 0x7F800001, 0x80000000],
}


def import_attributes(text: str, session: Session = SESSION):
    """The attributes of an operation written with them, and the round trip's verdict."""
    module = session.parse(f'"test.op"() {{{text}}} : () -> ()')
    imported = session.to_xdsl(module)
    assert str(session.to_mlir(imported)) == str(module)
    assert str(session.to_mlir(imported.clone())) == str(module)
    (op,) = imported.body.block.ops
    return op.attributes


@st.composite
def float_literals(draw):
    name, bits = draw(st.sampled_from(sorted(FLOAT_BITS.items())))
    values = st.integers(0, 2**bits - 1) | st.sampled_from(SPECIAL.get(bits, [0]))
    patterns = draw(st.lists(values, min_size=1, max_size=20))
    return name, [f"0x{pattern:0{bits // 4}X}" for pattern in patterns]


@given(float_literals())
@settings(max_examples=20, deadline=None)
def test_any_float_survives(literal):
    name, patterns = literal
    import_attributes(f"a = {patterns[0]} : {name}")
    import_attributes(f"a = dense<[{', '.join(patterns)}]> : tensor<{len(patterns)}x{name}>")
    import_attributes(f"a = dense<{patterns[0]}> : vector<{len(patterns)}x{name}>")


@st.composite
def integer_literals(draw):
    width = draw(st.integers(2, 130))
    sign = draw(st.sampled_from(["i", "si", "ui"]))
    low, high = (0, 2**width - 1) if sign == "ui" else (-(2 ** (width - 1)), 2 ** (width - 1) - 1)
    values = st.integers(low, high) | st.sampled_from([low, high, 0])
    return f"{sign}{width}", [str(v) for v in draw(st.lists(values, min_size=1, max_size=18))]


@given(integer_literals())
@settings(max_examples=150, deadline=None)
def test_any_integer_survives(literal):
    name, values = literal
    import_attributes(f"a = {values[0]} : {name}")
    import_attributes(f"a = dense<[{', '.join(values)}]> : tensor<{len(values)}x{name}>")
    import_attributes(f"a = dense<{values[0]}> : tensor<{len(values)}x{name}>")


@given(st.binary(max_size=40))
@settings(max_examples=100, deadline=None)
def test_any_string_survives(data):
    escaped = "".join(f"\\{byte:02X}" for byte in data)
    import_attributes(f'a = "{escaped}", b = ["{escaped}"]')


@given(st.text(max_size=20))
@settings(max_examples=100, deadline=None)
def test_any_name_survives(name):
    escaped = "".join(f"\\{byte:02X}" for byte in name.encode("utf-8", "replace"))
    import_attributes(f'"k{escaped}" = 1 : i8, b = {{"k{escaped}" = 1 : i8}}, c = @"k{escaped}"::@"k{escaped}"')


def test_what_xdsl_holds_is_xdsl():
    attributes = import_attributes(
        'a = 3 : i32, b = "s", c = [1 : i8], d = {k = f32}, e = 1.5 : f32, f = dense<[1, 2]> : tensor<2xi32>,'
        " g = (i32) -> f32, h = 0xFF800000 : f32"
    )
    kinds = [IntegerAttr, StringAttr, ArrayAttr, DictionaryAttr, FloatAttr, DenseIntOrFPElementsAttr]
    assert [type(attributes[key]) for key in "abcdef"] == kinds
    assert attributes["g"] == FunctionType.from_lists([i32], [f32])
    assert attributes["h"] == FloatAttr(float("-inf"), f32)


@pytest.mark.parametrize(
    "text",
    [
        "0x7F800001 : f32",  # a signalling NaN: Python's floats are f64
        "dense<[0xFF800000, 1.0]> : tensor<2xf32>",  # xDSL reads 4286578688.0
        "dense_resource<blob> : tensor<2xf32>",
        "sparse<[[0]], [1.0]> : tensor<4xf32>",
        f"dense<[{', '.join(map(str, range(17)))}]> : tensor<17xi32>",
    ],
)
def test_typed_payloads_are_dense_resources_of_the_right_type(text):
    value = import_attributes(f"a = {text}")["a"]
    assert isinstance(value, DenseResourceAttr)
    imported_type = import_attributes(f"t = {text.rpartition(' : ')[2]}")["t"]
    assert value.get_type() == imported_type


@pytest.mark.parametrize("text", ["distinct[0]<1 : i32>", f"array<i64: {', '.join('7' * 2000)}>", r'"\FF"'])
def test_untyped_payloads(text):
    assert isinstance(import_attributes(f"a = {text}")["a"], PayloadAttr)


def test_payloads_print_as_mlir_and_long_ones_elided():
    attributes = import_attributes(f"a = distinct[0]<1 : i32>, b = array<i64: {', '.join('7' * 2000)}>")
    assert str(attributes["a"]) == "distinct[0]<1 : i32>"
    assert str(attributes["b"]) == "array<__elided__: 2000 elements>"


def test_a_large_splat_is_one_element():
    value = import_attributes("a = dense<2.5> : tensor<100000x1000xf32>")["a"]
    assert isinstance(value, DenseIntOrFPElementsAttr)
    assert value.is_splat()
    assert value.get_values() == (2.5,)
    assert str(value) == "dense<2.500000e+00> : tensor<100000x1000xf32>"


def test_a_small_constant_is_held_whole():
    value = import_attributes("a = dense<[1, 2, 3]> : tensor<3xi64>")["a"]
    assert isinstance(value, DenseIntOrFPElementsAttr)
    assert value.get_values() == (1, 2, 3)


def test_equal_attributes_are_one_object():
    attributes = import_attributes("a = [7 : i32], b = [7 : i32]")
    assert attributes["a"] is attributes["b"]


def test_types_that_xdsl_lacks_are_payloads_inside_types_that_it_has():
    text = (
        "(tensor<4xf32, #sparse_tensor.encoding<{map = (d0) -> (d0 : compressed)}>>, !quant.uniform<i8:f32, 0.5>)"
    )
    function = import_attributes(f"a = {text} -> ()")["a"]
    assert isinstance(function, FunctionType)
    tensor, quantised = function.inputs
    assert isinstance(tensor, TensorType)
    assert tensor.get_shape() == (4,)
    assert "quant.uniform" in str(quantised)


def test_type_payloads_print_as_mlir():
    module = SESSION.parse('%0 = "test.op"() : () -> !quant.uniform<i8:f32, 0.5>')
    (op,) = SESSION.to_xdsl(module).body.block.ops
    (result_type,) = op.result_types
    if isinstance(result_type, PayloadType):
        assert str(result_type) == str(result_type.data)
    assert str(result_type) == "!quant.uniform<i8:f32, 5.000000e-01>"


def test_payloads_in_new_containers_are_exported():
    session = Session()
    module = session.parse('"test.op"() {a = dense_resource<blob> : tensor<2xf32>} : () -> ()')
    imported = session.to_xdsl(module)
    (op,) = imported.body.block.ops
    op.attributes["b"] = ArrayAttr([op.attributes["a"], DictionaryAttr({"c": op.attributes["a"]})])
    text = str(session.to_mlir(imported))
    assert "b = [dense_resource<blob> : tensor<2xf32>, {c = dense_resource<blob> : tensor<2xf32>}]" in text


def test_a_dense_resource_of_unknown_origin_is_refused():
    imported = SESSION.to_xdsl(SESSION.parse('"test.op"() : () -> () loc("m.mlir":3:4)'))
    (op,) = imported.body.block.ops
    op.attributes["a"] = DenseResourceAttr.from_params("elsewhere", TensorType(f32, [4]))
    with pytest.raises(LoweringError, match=r"m\.mlir:3:4: error: the data of constant 'elsewhere' is unknown"):
        SESSION.to_mlir(imported)


def test_payloads_of_another_session_are_refused():
    imported = SESSION.to_xdsl(SESSION.parse('"test.op"() {a = distinct[0]<1 : i32>} : () -> ()'))
    (op,) = imported.body.block.ops
    other = Session()
    target = other.to_xdsl(other.parse('"test.op"() : () -> ()'))
    next(iter(target.body.block.ops)).attributes["a"] = op.attributes["a"]
    with pytest.raises(LoweringError, match="another session"):
        other.to_mlir(target)
