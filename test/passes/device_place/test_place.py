"""Rules: which operations they fit, what wins over them, and what is wrong with them."""

import re

import numpy as np
import pytest

import devscope
from devscope.analysis.placement import Placement, Rule, fits_location, unwrapped
from devscope.analysis.placement_forms import placement_of
from devscope.errors import DevscopeWarning, InputError, OptionError, SourceLocation

MATMUL = """
func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %e = tensor.empty() : tensor<4x4xf32>
  %z = arith.constant 0.0 : f32
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %0 = linalg.matmul ins(%x, %x : tensor<4x4xf32>, tensor<4x4xf32>) outs(%f : tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = math.tanh %0 : tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
}
"""


def placed(source, place, **options):
    plan = devscope.plan(source, place=place, **options)
    return [
        (one.op, one.scope.short(), one.reason)
        for one in plan.placements
        if one.op.startswith(("linalg.ma", "math"))
    ]


class TestPatterns:
    @pytest.mark.parametrize(
        ("pattern", "part", "fits"),
        [
            ("layer1", "jit(f)/layer1/dot_general", True),
            ("layer1", "jit(f)/transpose(jvp(layer1))/mul", True),
            ("layer1/*", "jit(f)/layer1/dot_general", True),
            ("layer1", "jit(f)/layer10/dot_general", False),
            ("layer1.*", "layer1.0.conv1", True),
            ("layer1.*", "net.layer1", True),
            ("layer1/*", "jit(f)/jvp(layer1)", True),
            ("layer1.*", "layer10", False),
            ("layer1.*.conv?", "net.layer1", False),
            ("layer1.*.conv?", "net.layer1.0.conv1", True),
            ("layer1", "layer1.0.conv1", True),
            ("conv1", "layer1.0.conv1", True),
            ("conv", "layer1.0.conv1", False),
            ("MaxPool.*", "MaxPool.0", True),
            ("*", "anything", True),
            ("layer[12]", "layer2.0", True),
            ("model.py:12", SourceLocation("/a/b/model.py", 12, 3), True),
            ("b/model.py:12:3", SourceLocation("/a/b/model.py", 12, 3), True),
            ("model.py:12", SourceLocation("/a/b/model.py", 123, 3), False),
            ("model.py:10-20", SourceLocation("/a/b/model.py", 20, 1), True),
            ("model.py:10-20", SourceLocation("/a/b/model.py", 21, 1), False),
            ("model.py", SourceLocation("/a/b/model.py", 21, 1), True),
            ("odel.py", SourceLocation("/a/b/model.py", 21, 1), False),
        ],
    )
    def test_of_locations(self, pattern, part, fits):
        assert fits_location([pattern], [part]) is fits

    def test_what_jax_wraps_is_looked_through(self):
        assert unwrapped("jit(f)/transpose(jvp(a))/vmap(b)/mul") == "f/a/b/mul"


class TestForms:
    def test_a_mapping(self):
        found = placed(MATMUL, {"matmul": "opencl:0", "*": "opencl:1"})
        assert found == [
            ("linalg.matmul", "opencl:0", "rule 1: 'matmul'"),
            ("math.tanh", "opencl:1", "rule 2: the default"),
        ]

    def test_dictionaries_rules_and_files_in_one_list(self, tmp_path):
        file = tmp_path / "more.toml"
        file.write_text('[[rule]]\nop = "tanh"\ndevice = "opencl:1"\n')
        found = placed(MATMUL, [{"op": "linalg.*", "device": "opencl:0"}, file, Rule("cpu:0")])
        assert found == [
            ("linalg.matmul", "opencl:0", "rule 1: op 'linalg.*'"),
            ("math.tanh", "opencl:1", "rule 1 of more.toml: op 'tanh'"),
        ]

    def test_predicates_see_operations(self):
        seen = []

        def wide(op):
            seen.append((op.name, op.shapes, op.dtypes, op.operand_shapes[0], op.function, op.elements, op.flops))
            return op.shapes == [(4, 4)] and "operandSegmentSizes" in op.attributes

        assert placed(MATMUL, Rule("opencl:0", when=wide))[0][1:] == ("opencl:0", "rule 1: when 'wide'")
        assert ("linalg.matmul", [(4, 4)], ["f32"], (4, 4), "main", 16, 128.0) in seen

    def test_kinds_of_the_source(self):
        source = """
        func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
          %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0]
            : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
          %1 = stablehlo.tanh %0 : tensor<4x4xf32>
          return %1 : tensor<4x4xf32>
        }"""
        plan = devscope.plan(source, place={"stablehlo.dot_general": "opencl:0"})
        assert {(one.op, one.scope.short()) for one in plan.placements if one.op != "tensor.empty"} >= {
            ("linalg.matmul", "opencl:0"),
            ("linalg.generic", "cpu:0"),
        }

    @pytest.mark.parametrize(
        ("place", "message"),
        [
            ([{"op": "x", "device": "gpu:0"}], "rule 1: unknown device type 'gpu'"),
            ([{"op": "x", "divice": "opencl:0", "device": "cpu:0"}], "rule 1: 'divice' is no part of a rule"),
            ([{"op": 3, "device": "cpu:0"}], "rule 1: 'op' is 3"),
            ([{"op": "x", "device": 3}], "rule 1: 3 is not a device"),
            ([{"op": "x", "min_flops": -1, "device": "cpu:0"}], "rule 1: 'min_flops' is -1"),
            ([{"op": "x", "min_bytes": "many", "device": "cpu:0"}], "rule 1: 'many' is not an amount of memory"),
            ([{"op": "x", "when": "big", "device": "cpu:0"}], "rule 1: 'when' is 'big'"),
            (
                [{"device": "cpu:0"}, {"op": "x", "device": "cpu:0"}],
                "rule 1 fits every operation and is not the last",
            ),
            ({"*": "cpu:0", "x": "cpu:0"}, "rule 1 fits every operation"),
            ({"matmul": "gpu:0"}, "'matmul=gpu:0': unknown device type 'gpu'"),
            ([{"op": "x", "device": "auto"}], "rule 1: 'auto' is no device"),
            (3, "'place' is 3"),
            (["a.toml", 3], "cannot read the rules 'a.toml'"),
        ],
    )
    def test_what_is_wrong_is_said(self, place, message):
        with pytest.raises((OptionError, InputError), match=re.escape(message)) as raised:
            placement_of(place)
        assert raised.value.message.startswith(message)

    def test_two_defaults_are_refused(self):
        with pytest.raises(OptionError, match="rule 1: the default is opencl:0, and 'default' is opencl:1"):
            devscope.plan(MATMUL, place={"*": "opencl:0"}, default="opencl:1")


class TestWhatWins:
    ANNOTATED = MATMUL.replace(
        "linalg.matmul ins", 'linalg.matmul {device.scope = #device.scope<"opencl", 1 : i64, "", "">} ins'
    )

    def test_the_program_wins_and_that_is_said(self):
        plan = devscope.plan(self.ANNOTATED, place={"matmul": "opencl:0"})
        assert "linalg.matmul on opencl:1" not in repr(plan)
        assert [one.scope.short() for one in plan.placements if one.op == "linalg.matmul"] == ["opencl:1"]
        texts = [remark.text for remark in plan.remarks]
        assert any(
            "the program says opencl:1, which wins over opencl:0\n  note: of rule 1: 'matmul'" in t for t in texts
        )
        assert any("rule 1: 'matmul' places nothing: earlier rules, or the program" in text for text in texts)

    @pytest.mark.parametrize(
        "source",
        [
            MATMUL.replace(
                "-> tensor<4x4xf32> {",
                '-> tensor<4x4xf32> attributes {device.scope = #device.scope<"opencl", 1 : i64, "", "">} {',
                1,
            ),
            MATMUL.replace("math.tanh %0", "math.tanh %m").replace(
                "  %1 =",
                '  %m = device.on_device %0 on #device.scope<"opencl", 1 : i64, "", ""> : tensor<4x4xf32>\n  %1 =',
            ),
        ],
    )
    def test_frames_and_on_device_win(self, source):
        found = placed(source, {"matmul": "opencl:0"})
        assert found[0][:2] == ("linalg.matmul", "opencl:1")


class TestScalars:
    LOOP = """
    func.func @main(%n: index, %x: tensor<8xf32>) -> (tensor<8xf32>, tensor<i32>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %zero = arith.constant dense<0> : tensor<i32>
      %one = arith.constant dense<1> : tensor<i32>
      %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%v = %x, %k = %zero) -> (tensor<8xf32>, tensor<i32>) {
        %y = math.sin %v : tensor<8xf32>
        %k2 = arith.addi %k, %one : tensor<i32>
        scf.yield %y, %k2 : tensor<8xf32>, tensor<i32>
      }
      return %r#0, %r#1 : tensor<8xf32>, tensor<i32>
    }"""

    def test_counters_stay_and_nothing_is_copied_in_the_loop(self):
        plan = devscope.plan(self.LOOP, place=[Rule("opencl:0", op="*")])
        assert {one.op: one.scope.short() for one in plan.placements if one.op in ("math.sin", "arith.addi")} == {
            "math.sin": "opencl:0",
            "arith.addi": "cpu:0",
        }
        assert {str(copy.repetition) for copy in plan.copies} == {""}

    def test_scalars_follow_what_makes_them(self):
        source = """
        func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {
          %z = arith.constant dense<0.0> : tensor<f32>
          %s = linalg.reduce ins(%x : tensor<64xf32>) outs(%z : tensor<f32>) dimensions = [0]
            (%a: f32, %b: f32) { %c = arith.addf %a, %b : f32  linalg.yield %c : f32 }
          %m = math.sqrt %s : tensor<f32>
          %e = tensor.empty() : tensor<64xf32>
          %y = linalg.broadcast ins(%m : tensor<f32>) outs(%e : tensor<64xf32>) dimensions = [0]
          return %y : tensor<64xf32>
        }"""
        plan = devscope.plan(source, place=[Rule("opencl:0", op="*")])
        assert len(plan.copies) == 2


class TestNothing:
    def test_a_rule_that_fits_nothing_says_what_is_close(self):
        with pytest.warns(
            DevscopeWarning,
            match=r"rule 1: 'matml' fits nothing that computes\n  note: close to 'matml': linalg.matmul",
        ):
            devscope.compile(MATMUL, place={"matml": "opencl:0"})

    def test_what_computes_nothing_is_named(self):
        plan = devscope.plan(MATMUL, place={"tensor.empty": "opencl:0"})
        assert "it fits tensor.empty: planning has them where they are needed" in plan.remarks[0].text

    def test_an_earlier_rule(self):
        plan = devscope.plan(MATMUL, place={"linalg.*": "opencl:0", "matmul": "opencl:1"})
        assert "rule 2: 'matmul' places nothing: earlier rules" in plan.remarks[0].text


class TestCache:
    def test_rules_are_in_the_key(self):
        keys = {
            devscope.CompileOptions(place=place).key()
            for place in (None, {"a": "cpu:0"}, {"a": "opencl:0"}, {"b": "cpu:0"})
        }
        assert len(keys) == 4

    def test_functions_cannot_be(self):
        assert not devscope.CompileOptions(place=Rule("cpu:0", when=lambda op: True)).is_cacheable
        assert devscope.CompileOptions(place=Rule("cpu:0", op="x")).is_cacheable


def test_results_do_not_change():
    x = np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32)
    expected = np.tanh(x @ x)
    for place in (
        {"matmul": "opencl:0"},
        {"tanh": "opencl:0"},
        [Rule("opencl:0", op="*")],
        {"*": "opencl:0"},
        "auto",
    ):
        np.testing.assert_allclose(devscope.compile(MATMUL, place=place)(x), expected, rtol=1e-5)


def test_the_planned_module_says_who_placed_what_and_the_split_one_not():
    stages = {}
    from devscope.pipeline import compile_source

    options = devscope.CompileOptions(place={"matmul": "opencl:0"})
    compile_source(MATMUL, options, observe=lambda stage, module: stages.setdefault(stage, str(module)))
    assert "device.placed_by = \"rule 1: 'matmul'\"" in stages["plan"]
    assert "placed_by" not in stages["split"]


def test_auto_names_every_device_of_the_program():
    plan = devscope.plan(TestWhatWins.ANNOTATED.replace("opencl", "cuda"), place="auto")
    assert [one.scope.short() for one in plan.placements if one.op == "linalg.matmul"] == ["cuda:1"]


def test_placements_are_made_of_rules():
    made = Placement([Rule("opencl:0", op="x"), {"device": "cpu:0"}], ["cpu:0"])
    assert placement_of(made).rules == made.rules
    assert made.to_json() == ["rule 1: op 'x': opencl:0", "rule 2: the default: cpu:0"]
