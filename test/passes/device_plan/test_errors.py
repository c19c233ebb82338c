"""Contradictory demands are errors that show both chains of reasons, with positions."""

from __future__ import annotations

import pytest

from devscope.errors import OptionError, PlanError
from devscope.passes.device_plan import PlanOptions, plan_module


def error_of(parse, text: str, arguments: str = "open") -> PlanError:
    module = parse(text)
    before = str(module)
    with pytest.raises(PlanError) as caught:
        plan_module(module, PlanOptions(arguments=arguments))
    assert str(module) == before, "a module that cannot be planned must not change"
    return caught.value


def test_two_annotations_of_one_operation(parse) -> None:
    error = error_of(
        parse,
        """func.func @main(%a: !t) -> !t {
          %n = arith.negf %a : !t loc("m.mlir":2:3)
          %0 = "device.on_device"(%n) {scope = #cpu0} : (!t) -> !t loc("m.mlir":3:3)
          %1 = "device.on_device"(%n) {scope = #gpu0} : (!t) -> !t loc("m.mlir":4:3)
          %2 = arith.subf %0, %1 : !t
          func.return %2 : !t
        }""",
    )
    assert str(error) == (
        "m.mlir:4:3: error: %n must be on cpu:0 and on cuda:0\n"
        "  note: m.mlir:3:3: on cpu:0 because 'device.on_device' puts %n on cpu:0\n"
        "  note: m.mlir:4:3: and on cuda:0 because 'device.on_device' puts %n on cuda:0\n"
        "  note: one operation executes on one scope: drop one annotation, or let this one have constrain_body = "
        "false and constrain_result = true, which copies the value there"
    )


def test_attribute_against_fixed_annotation(parse) -> None:
    error = error_of(
        parse,
        """func.func @main(%a: !t) -> !t {
          %n = "ml.op"(%a) {device.scope = #gpu0} : (!t) -> !t loc("m.mlir":2:3)
          %0 = "device.on_device"(%n) {scope = #cpu0, constrain_result = true} : (!t) -> !t loc("m.mlir":3:3)
          func.return %0 : !t
        }""",
    )
    assert "m.mlir:2:3: on cuda:0 because device.scope on 'ml.op' says cuda:0" in str(error)
    assert "m.mlir:3:3: and on cpu:0 because 'device.on_device' puts %n on cpu:0" in str(error)


def test_two_call_sites_of_a_declaration(parse) -> None:
    """A declaration is on one scope; the error names both calls' annotations."""
    error = error_of(
        parse,
        """func.func private @f(%a: !t) -> !t
        func.func @main(%x: !t, %y: !t) -> !t {
          %p = func.call @f(%x) : (!t) -> !t
          %1 = "device.on_device"(%p) {scope = #cpu0, constrain_result = true} : (!t) -> !t loc("m.mlir":7:3)
          %q = func.call @f(%y) : (!t) -> !t
          %3 = "device.on_device"(%q) {scope = #gpu0, constrain_result = true} : (!t) -> !t loc("m.mlir":9:3)
          %4 = arith.subf %1, %3 : !t
          func.return %4 : !t
        }""",
    )
    assert "m.mlir:7:3" in error.notes[0]
    assert "m.mlir:9:3" in error.notes[1]


def test_buffers_are_not_copied(parse) -> None:
    """The chain leads from the clash through a view to the buffer's own placement."""
    error = error_of(
        parse,
        """func.func @main(%x: !t) {
          %m = "memref.alloc"() {device.scope = #gpu0, operandSegmentSizes = array<i32: 0, 0>}
             : () -> memref<5x7xf32> loc("m.mlir":2:3)
          %k = "ml.touch"(%m) : (memref<5x7xf32>) -> memref<5x7xf32> loc("m.mlir":3:3)
          "ml.touch"(%k) {device.scope = #cpu0} : (memref<5x7xf32>) -> () loc("m.mlir":4:3)
          func.return
        }""",
    )
    assert error.message == "%k must be on cuda:0 and on cpu:0"
    assert error.notes[:3] == (
        "m.mlir:3:3: on cuda:0 because 'ml.touch' uses %m",
        "m.mlir:2:3: and device.scope on 'memref.alloc' says cuda:0",
        "m.mlir:4:3: and on cpu:0 because device.scope on 'ml.touch' says cpu:0",
    )
    assert "bufferization.to_tensor" in error.notes[3]


def test_parallel_loop_runs_on_one_scope(parse) -> None:
    text = """func.func @main(%x: !t) -> !t {
      %0 = "scf.forall"(%x) ({
        ^bb0(%i: index, %o: !t):
        %1 = "ml.op"(%o) {device.scope = #gpu0} : (!t) -> !t loc("m.mlir":4:3)
        "scf.forall.in_parallel"() ({ "ml.end"() : () -> () }) : () -> ()
      }) {device.scope = #cpu0} : (!t) -> !t loc("m.mlir":2:3)
      func.return %0 : !t
    }"""
    error = error_of(parse, text)
    assert "m.mlir:2:3: on cpu:0 because device.scope on 'scf.forall' says cpu:0" in str(error)
    assert "m.mlir:4:3: and on cuda:0 because device.scope on 'ml.op' says cuda:0" in str(error)
    assert "place the loop as a whole" in error.notes[-1]
    annotated = text.replace('"ml.op"(%o) {device.scope = #gpu0}', '"device.on_device"(%o) {scope = #gpu0}')
    assert "put device.scope on the 'scf.forall'" in str(error_of(parse, annotated))


def test_call_against_callee(parse) -> None:
    error = error_of(
        parse,
        """func.func private @f(%a: !t {device.scope = #cpu0}) -> !t {
          func.return %a : !t
        }
        func.func @main(%x: !t) -> !t {
          %0 = func.call @f(%x) {device.scope = #gpu0} : (!t) -> !t loc("m.mlir":5:3)
          func.return %0 : !t
        }""",
    )
    assert "m.mlir:5:3: on cpu:0 because 'func.call' uses @f, which has argument #0 on cpu:0" in str(error)
    assert "device.scope on argument #0 of @f says cpu:0" in str(error)
    assert "m.mlir:5:3: and on cuda:0 because device.scope on 'func.call' says cuda:0" in str(error)
    assert "drop device.scope from the call" in error.notes[-1]


def test_not_a_scope(parse) -> None:
    error = error_of(
        parse,
        """func.func @main(%x: !t) {
          "ml.op"(%x) {device.scope = "gpu"} : (!t) -> () loc("m.mlir":2:3)
          func.return
        }""",
    )
    assert str(error).startswith("m.mlir:2:3: error: 'device.scope' on 'ml.op' is not a scope")


def test_unknown_function(parse) -> None:
    error = error_of(
        parse,
        """func.func @main(%x: !t) {
          func.call @missing(%x) : (!t) -> () loc("m.mlir":2:3)
          func.return
        }""",
    )
    assert str(error) == "m.mlir:2:3: error: 'func.call' names @missing, which is no func.func of this module"


def test_all_errors_in_the_order_of_the_source(parse) -> None:
    """One planning run reports every clash and every other mistake, once, and nothing that follows from them."""
    error = error_of(
        parse,
        """func.func @main(%x: !t) -> !t {
          %a = "ml.make"() {device.scope = #cpu0} : () -> memref<5x7xf32> loc("m.mlir":12:3)
          "ml.use"(%a) {device.scope = #gpu0} : (memref<5x7xf32>) -> () loc("m.mlir":13:3)
          "ml.op"(%x) {device.scope = "gpu"} : (!t) -> () loc("m.mlir":14:3)
          %0 = func.call @f(%x) : (!t) -> !t loc("m.mlir":15:3)
          %1 = func.call @f(%0) : (!t) -> !t loc("m.mlir":16:3)
          %2 = func.call @nowhere(%1) : (!t) -> !t loc("m.mlir":17:3)
          func.return %2 : !t
        }
        func.func private @f(%x: !t) -> !t {
          %n = arith.negf %x : !t loc("m.mlir":2:3)
          %0 = "device.on_device"(%n) {scope = #cpu0} : (!t) -> !t loc("m.mlir":3:3)
          %1 = "device.on_device"(%n) {scope = #gpu0} : (!t) -> !t loc("m.mlir":4:3)
          %2 = arith.subf %0, %1 : !t
          func.return %2 : !t
        }""",
    )
    everything = (error, *error.others)
    assert [(str(one.location), one.message) for one in everything] == [
        ("m.mlir:4:3", "%n must be on cpu:0 and on cuda:0"),
        ("m.mlir:13:3", "%a must be on cpu:0 and on cuda:0"),
        ("m.mlir:14:3", "'device.scope' on 'ml.op' is not a scope: \"gpu\""),
        ("m.mlir:17:3", "'func.call' names @nowhere, which is no func.func of this module"),
    ]
    assert str(error).count("error: ") == 4
    assert [note.location is not None for note in error.notes] == [True, True, False]


def test_one_annotation_against_many_operations(parse) -> None:
    """The same two demands clash at every operation of the region: one error, at the first."""
    uses = "\n".join(f'"ml.use"(%a) : (memref<5x7xf32>) -> () loc("m.mlir":{i}:3)' for i in range(4, 9))
    error = error_of(
        parse,
        f"""func.func @main() {{
          %a = "ml.make"() {{device.scope = #cpu0}} : () -> memref<5x7xf32> loc("m.mlir":2:3)
          "device.region"() ({{
            {uses}
            "device.yield"() : () -> ()
          }}) {{scope = #gpu0}} : () -> () loc("m.mlir":3:3)
          func.return
        }}""",
    )
    assert error.others == ()
    assert (
        error.notes[1]
        == "m.mlir:3:3: and on cuda:0 because device.scope on the enclosing 'device.region' says cuda:0"
    )


def test_many_errors_are_cut(parse) -> None:
    """Nobody reads hundreds of errors; how many there are is said."""
    pairs = "\n".join(
        f"""%n{i} = arith.negf %x : !t
        %a{i} = "device.on_device"(%n{i}) {{scope = #cpu0}} : (!t) -> !t
        %b{i} = "device.on_device"(%n{i}) {{scope = #gpu0}} : (!t) -> !t loc("m.mlir":{i + 1}:3)"""
        for i in range(50)
    )
    error = error_of(parse, f"func.func @main(%x: !t) {{\n{pairs}\nfunc.return\n}}")
    assert len(error.others) == 19
    assert [note.text for note in error.others[-1].notes][-1] == "and 30 more such errors"


def test_a_clash_inside_a_called_function(parse) -> None:
    """The chain goes on in the functions that demand it; every step stands in its own place."""
    error = error_of(
        parse,
        """func.func private @inner(%m: memref<5x7xf32>) {
          "ml.use"(%m) {device.scope = #gpu0} : (memref<5x7xf32>) -> () loc("m.mlir":2:3)
          func.return
        }
        func.func private @outer(%m: memref<5x7xf32>) {
          func.call @inner(%m) : (memref<5x7xf32>) -> () loc("m.mlir":6:3)
          func.return
        }
        func.func @main() {
          %a = "ml.make"() {device.scope = #cpu0} : () -> memref<5x7xf32> loc("m.mlir":10:3)
          func.call @outer(%a) : (memref<5x7xf32>) -> () loc("m.mlir":11:3)
          func.return
        }""",
    )
    assert error.others == ()
    assert [str(note) for note in error.notes[:-1]] == [
        "m.mlir:10:3: on cpu:0 because device.scope on 'ml.make' says cpu:0",
        "m.mlir:11:3: and on cuda:0 because 'func.call' uses @outer, which has argument #0 on cuda:0",
        "m.mlir:6:3: and 'func.call' passes %m as argument #0 of @inner",
        "m.mlir:6:3: and 'func.call' uses @inner, which has argument #0 on cuda:0",
        "m.mlir:2:3: and 'ml.use' uses %m",
        "m.mlir:2:3: and device.scope on 'ml.use' says cuda:0",
    ]


def test_long_chains_are_cut(parse) -> None:
    """A chain through hundreds of views and uses shows how it begins and how it ends."""
    links = "\n".join(f'%m{i} = "ml.touch"(%m{i - 1}) : (memref<4xf32>) -> memref<4xf32>' for i in range(1, 300))
    error = error_of(
        parse,
        f"""func.func @main() {{
          %m0 = "ml.make"() {{device.scope = #cpu0}} : () -> memref<4xf32>
          {links}
          "ml.touch"(%m299) {{device.scope = #gpu0}} : (memref<4xf32>) -> ()
          func.return
        }}""",
    )
    assert len(error.notes) < 20
    assert any("more steps" in note for note in error.notes)
    assert "'ml.touch' uses %m298" in error.notes[0]
    assert "device.scope on 'ml.make' says cpu:0" in "\n".join(error.notes)


@pytest.mark.parametrize("option", [{"arguments": "device"}, {"completion": "magic"}])
def test_options(option: dict[str, str]) -> None:
    with pytest.raises(OptionError, match="is not a value of"):
        PlanOptions(**option)
