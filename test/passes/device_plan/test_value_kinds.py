"""Which values are data, by their types: those of other dialects are, vectors and scalars are not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from planned import Planned
from xdsl.dialects.builtin import ModuleOp

from devscope.errors import PlanError, VerifyError
from devscope.passes.device_verify import verify_module

HOST, DEVICE = "cpu:0", "opencl:0"
DEV = 'device.scope = #device.scope<"opencl", 0 : i64, "", "">'
CPU = 'device.scope = #device.scope<"cpu", 0 : i64, "", "">'
BOX = "!rt.box"
TYPES = (BOX, "!async.value<tensor<4xf32>>", "!ml_program.token", "tuple<tensor<4xf32>, !rt.box>", "!llvm.ptr")

SIZES = "operandSegmentSizes = array<i32: 1, 1, 1, 0>"
TRANSFER = f"<{{in_bounds = [false], permutation_map = affine_map<(d0) -> (d0)>, {SIZES}}}>"

Plan = Callable[..., Planned]


def boxes(type_: str, box: str = "", use: str = "") -> str:
    """A value of ``type_`` that is made in one place, goes through a call and a branch, and is used in another."""
    return f"""
      func.func private @through(%b: {type_}, %p: i1) -> {type_} {{
        %0 = "scf.if"(%p) ({{
          %1 = "rt.same"(%b) : ({type_}) -> {type_}
          "scf.yield"(%1) : ({type_}) -> ()
        }}, {{
          "scf.yield"(%b) : ({type_}) -> ()
        }}) : (i1) -> {type_}
        func.return %0 : {type_}
      }}
      func.func @main(%x: tensor<4xf32>, %p: i1) -> tensor<4xf32> {{
        %0 = "rt.box"(%x) {{{box}}} : (tensor<4xf32>) -> {type_}
        %1 = func.call @through(%0, %p) : ({type_}, i1) -> {type_}
        %2 = "rt.unbox"(%1) {{{use}}} : ({type_}) -> tensor<4xf32>
        func.return %2 : tensor<4xf32>
      }}"""


@pytest.mark.parametrize("type_", TYPES)
def test_what_uses_a_value_of_another_dialects_type_is_where_it_is_made(plan: Plan, type_: str) -> None:
    for box, use in ((CPU, ""), ("", CPU)):
        planned = plan(boxes(type_, box, use), default=DEVICE)
        assert planned.scopes() == "rt.box cpu:0, rt.unbox cpu:0"
        assert planned.scopes("through") == "rt.same cpu:0"
        assert planned.signature("through") == "cpu:0, - -> cpu:0"


@pytest.mark.parametrize("type_", TYPES)
def test_it_is_not_copied(plan: Plan, parse: Callable[[str], ModuleOp], type_: str) -> None:
    with pytest.raises(PlanError) as planning:
        plan(boxes(type_, CPU, DEV))
    assert "must be on cpu:0 and on opencl:0" in planning.value.message
    assert any(note.text.startswith("planning copies tensors only") for note in planning.value.notes)
    broken = parse(
        f"""func.func @main(%x: tensor<4xf32> {{{CPU}}}) attributes {{{CPU}}} {{
          %0 = "rt.box"(%x) : (tensor<4xf32>) -> {type_}
          "rt.use"(%0) {{{DEV}}} : ({type_}) -> ()
          func.return
        }}"""
    )
    with pytest.raises(VerifyError) as verifying:
        verify_module(broken)
    assert "operand #0 of 'rt.use' is on cpu:0, but is used on opencl:0" in verifying.value.message
    assert type_ in verifying.value.notes[0].text


def test_a_copy_that_the_program_makes_of_it_is_kept(plan: Plan) -> None:
    """Who writes one says that the type can be copied."""
    text = boxes(BOX, CPU, DEV).replace(
        '%2 = "rt.unbox"(%1)',
        f'%c = "device.device_copy"(%1) {{src = {CPU[15:]}, dst = {DEV[15:]}}} : ({BOX}) -> {BOX}\n'
        '%2 = "rt.unbox"(%c)',
    )
    assert plan(text).copies() == ["cpu:0>opencl:0"]


def test_shapes_are_data_that_is_asked_for_on_the_host(plan: Plan) -> None:
    planned = plan(
        """func.func @main(%x: tensor<?xf32>) -> index {
          %0 = "shape.shape_of"(%x) : (tensor<?xf32>) -> !shape.shape
          %1 = "shape.const_size"() {value = 0 : index} : () -> !shape.size
          %2 = "shape.get_extent"(%0, %1) : (!shape.shape, !shape.size) -> !shape.size
          %3 = "shape.size_to_index"(%2) : (!shape.size) -> index
          func.return %3 : index
        }""",
        default=DEVICE,
    )
    assert set(planned.scopes().split(", ")) == {
        f"shape.{name} {HOST}" for name in ("const_size", "get_extent", "size_to_index")
    }
    assert planned.signature("main") == "opencl:0 -> -"


def test_vectors_are_on_the_host_and_tensors_are_copied_to_them(plan: Plan) -> None:
    planned = plan(
        f"""
        func.func private @twice(%v: vector<4xf32>) -> vector<4xf32> {{
          %0 = "arith.addf"(%v, %v) : (vector<4xf32>, vector<4xf32>) -> vector<4xf32>
          func.return %0 : vector<4xf32>
        }}
        func.func @main(%v: vector<4xf32>, %x: tensor<4xf32>, %i: index, %p: f32)
            -> (vector<4xf32>, tensor<4xf32>) {{
          %y = "math.absf"(%x) : (tensor<4xf32>) -> tensor<4xf32>
          %0 = "vector.transfer_read"(%y, %i, %p) {TRANSFER}
              : (tensor<4xf32>, index, f32) -> vector<4xf32>
          %1 = func.call @twice(%0) : (vector<4xf32>) -> vector<4xf32>
          %2 = "arith.addf"(%1, %v) : (vector<4xf32>, vector<4xf32>) -> vector<4xf32>
          %3 = "vector.transfer_write"(%2, %y, %i) {TRANSFER}
              : (vector<4xf32>, tensor<4xf32>, index) -> tensor<4xf32>
          %4 = "math.exp"(%3) : (tensor<4xf32>) -> tensor<4xf32>
          func.return %2, %4 : vector<4xf32>, tensor<4xf32>
        }}""",
        default=DEVICE,
    )
    assert planned.scopes() == (
        "math.absf opencl:0, vector.transfer_read cpu:0, vector.transfer_write cpu:0, math.exp opencl:0"
    )
    assert planned.signature("main") == "-, opencl:0, -, - -> -, opencl:0"
    assert planned.signature("twice") == "- -> -"
    assert planned.copies() == ["opencl:0>cpu:0", "cpu:0>opencl:0"]
