"""Sets of operations and what may be taken as one: the cases of Collage's sub-graphs and partition rules.

Sources: TVM, tests/python/relay/collage/test_sub_graph.py and tests/cpp/relay/collage/partition_rule_test.cc.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from partitioned import Claimer, Mock, chain, module_of, partitioned
from partitioned import registered_kinds as registered_kinds

from devscope.analysis.machine import nominal_machine
from devscope.dialects.device import ScopeAttr
from devscope.dialects.names import op_name
from devscope.passes.device_partition.candidates import candidates, pruned
from devscope.passes.device_partition.claims import Claims
from devscope.passes.device_partition.costs import Costs
from devscope.passes.device_partition.graph import Graph, Limits, Quotient, invalid
from devscope.passes.device_partition.kinds import Kind, kind_of
from devscope.patterns import elementwise, op, wildcard

TANH, ABS, ADD = (
    "  {r} = math.tanh {a} : !t\n",
    "  {r} = math.absf {a} : !t\n",
    "  {r} = arith.addf {a}, {b} : !t\n",
)
CPU = ScopeAttr.get("cpu", 0)
RELU = ("relu", op("math.tanh", wildcard()), None)
SUM = ("add", elementwise("add", wildcard(), wildcard()), None)


def graph_of(body: str, results: str = "%r", count: int = 1) -> Graph:
    """Nodes count from 0 in the order of the lines."""
    _, module = module_of(chain(body, results, count))
    return Graph(next(one for one in module.walk() if one.name == "func.func"))  # type: ignore[arg-type]


def is_valid(graph: Graph, *nodes: int, **limits: Any) -> bool:
    return invalid(graph, frozenset(nodes), CPU, Limits(**limits)) is None


def step(text: str, r: str, a: str, b: str = "") -> str:
    return text.format(r=r, a=a, b=b)


LINE = step(TANH, "%0", "%x") + step(ABS, "%1", "%0") + step(TANH, "%r", "%1")
DIAMOND = step(TANH, "%0", "%x") + step(ABS, "%1", "%0") + step(TANH, "%2", "%0") + step(ADD, "%r", "%1", "%2")


SCOPE = '#device.scope<"cpu", 0 : i64, "", "">'


def test_single_op() -> None:
    graph = graph_of(LINE)
    inside = frozenset([1])
    assert (graph.entries(inside), graph.exits(inside), graph.depth(inside)) == ([1], [1], 1)
    assert is_valid(graph, 1)


def test_multi_output() -> None:
    """Two results used outside: not with one exit at most."""
    graph = graph_of(step(TANH, "%0", "%x") + step(ABS, "%1", "%x"), "%0, %1", 2)
    assert not is_valid(graph, 0, 1)
    assert is_valid(graph, 0, 1, exits=2)
    assert is_valid(graph, 0, 1, exits=0)


def test_classic_conv2d_add_relu() -> None:
    types = [f"tensor<{shape}xf32>" for shape in ("1x4x4x2", "1x1x2x3", "1x4x4x3")]
    _, module = module_of(f"""func.func @f(%x: {types[0]}, %w: {types[1]}, %b: {types[2]}) -> {types[2]} {{
      %z = arith.constant dense<0.0> : {types[2]}
      %0 = linalg.conv_2d_nhwc_hwcf ins(%x, %w : {types[0]}, {types[1]}) outs(%z : {types[2]}) -> {types[2]}
      %1 = arith.addf %0, %b : {types[2]}
      %2 = arith.maximumf %1, %z : {types[2]}
      return %2 : {types[2]}
    }}""")
    graph = Graph(next(one for one in module.walk() if one.name == "func.func"))  # type: ignore[arg-type]
    assert len(graph) == 3  # the constant is none
    assert is_valid(graph, 0, 1, 2)
    assert [kind_of(node.op) for node in graph.nodes] == [Kind.FUSABLE, Kind.ELEMENTWISE, Kind.ELEMENTWISE]
    assert graph.entries(frozenset([1, 2])) == [1]
    assert graph.depth(frozenset([0, 1, 2])) == 3


def test_diamond_single_output() -> None:
    assert is_valid(graph_of(DIAMOND), 0, 1, 2, 3)


def test_diamond_multi_output() -> None:
    graph = graph_of(DIAMOND)
    assert not is_valid(graph, 0, 1, 2)
    assert is_valid(graph, 0, 1, 2, exits=2)


def test_with_tap() -> None:
    """What is used inside and outside, too."""
    graph = graph_of(step(TANH, "%0", "%x") + step(ABS, "%1", "%0"), "%0, %1", 2)
    assert not is_valid(graph, 0, 1, exits=2)
    assert is_valid(graph, 0, 1, exits=2, taps=True)


def test_no_cycles() -> None:
    """Nodes 1 and 3 would wait for 2, which waits for 1."""
    graph = graph_of(LINE + step(ADD, "%s", "%0", "%r"), "%s")
    assert not is_valid(graph, 1, 3, exits=0, taps=True)
    assert not is_valid(graph, 0, 3, exits=0, taps=True)
    assert is_valid(graph, 1, 2, 3)


def test_depth() -> None:
    graph = graph_of(LINE)
    assert [is_valid(graph, 0, 1, 2, depth=depth) for depth in (0, 1, 2, 3)] == [True, False, False, True]


def test_one_block() -> None:
    body = (
        "  %c0 = arith.constant 0 : index\n  %c8 = arith.constant 8 : index\n"
        + step(TANH, "%0", "%x")
        + "  %r = scf.for %i = %c0 to %c8 step %c8 iter_args(%a = %0) -> !t {\n"
        + step(ABS, "%1", "%a")
        + "    scf.yield %1 : !t\n  }\n"
    )
    graph = graph_of(body)
    inner = next(node.index for node in graph.nodes if "absf" in str(node.op))
    outer = next(node.index for node in graph.nodes if "tanh" in str(node.op))
    found = invalid(graph, frozenset([inner, outer]), CPU, Limits(exits=0))
    assert found == "it crosses the border of a region"


@pytest.mark.parametrize("effect", ["false", "true"])
def test_effects(effect: str) -> None:
    """What does more than to compute stays where it is."""
    attributes = f'{{call_target_name = "f", has_side_effect = {effect}}}'
    graph = graph_of(f'  %r = "stablehlo.custom_call"(%x) {attributes} : (!t) -> !t\n')
    found = invalid(graph, frozenset([0]), CPU, Limits())
    said = "it has an operation with effects, or one that controls others"
    assert found == (said if effect == "true" else None)


def test_what_nobody_uses() -> None:
    """It would be a function without results, which no code generator expects; no part of others either, since
    not all of these would lead to their exit.
    """
    graph = graph_of("  %r = math.tanh %x : !t\n  %0 = math.absf %x : !t\n")
    assert invalid(graph, frozenset([0]), CPU, Limits()) is None
    for nodes in ([1], [0, 1]):
        assert invalid(graph, frozenset(nodes), CPU, Limits()) == "nothing uses what it makes"


def test_what_stands_in_a_loop() -> None:
    """That the loop needs it is no use outside: neighbours there are taken together, and what is dead is not."""
    body = (
        "  %c0 = arith.constant 0 : index\n  %c8 = arith.constant 8 : index\n"
        + "  %r = scf.for %i = %c0 to %c8 step %c8 iter_args(%a = %x) -> !t {\n"
        + step(TANH, "%0", "%a")
        + step(ABS, "%1", "%0")
        + "    %2 = math.log %1 : !t\n    scf.yield %1 : !t\n  }\n"
    )
    graph = graph_of(body)
    assert [op_name(node.op) for node in graph.nodes] == ["math.tanh", "math.absf", "math.log", "scf.for"]
    assert graph.exits(frozenset([0, 1])) == [1]
    assert invalid(graph, frozenset([0]), CPU, Limits()) is None
    assert invalid(graph, frozenset([2]), CPU, Limits()) == "nothing uses what it makes"
    backend = Claimer("byoc", [("both", op("math.absf", op("math.tanh", wildcard())), None)])
    for strategy, costs in (("eager", None), ("search", Mock({"byoc": 1, "cpu": 2}))):
        text, found = partitioned(chain(body), [backend], strategy=strategy, costs=costs)
        assert "func.call @f_byoc_both(%arg2)" in text
        assert ("math.tanh", "math.absf") in {row.operations for row in found.taken}


@pytest.mark.parametrize("value", ["%x", "%0", "%1"])
def test_sizes_are_asked_of_operands(value: str) -> None:
    """Not of what is inside of a match, which would be used outside then."""
    text = f"""func.func @f(%x: !t, %b: !t, %w: tensor<4x4xf32>, %n: index) -> !t {{
      %c0 = arith.constant 0 : index
      %z = arith.constant 0.0 : f32
      %m = tensor.dim %x, %c0 : !t
      %e = tensor.empty(%m) : !t
      %f = linalg.fill ins(%z : f32) outs(%e : !t) -> !t
      %0 = linalg.matmul ins(%x, %w : !t, tensor<4x4xf32>) outs(%f : !t) -> !t
      %1 = math.tanh %0 : !t
      %2 = arith.addf %1, %b : !t
      %d = tensor.dim {value}, %c0 : !t
      %e1 = tensor.empty(%d) : !t
      %3 = linalg.exp ins(%2 : !t) outs(%e1 : !t) -> !t
      return %3 : !t
    }}""".replace("!t", "tensor<?x4xf32>")
    pattern = elementwise("add", op("math.tanh", op("linalg.matmul")), wildcard())
    caller = partitioned(text, [Claimer("byoc", [("layer", pattern, None)])])[0].partition("return")[0]
    assert "call @f_byoc_layer(%arg0, %arg2, %arg1)" in caller
    assert "tensor.empty(%dim)" in caller
    assert "tensor.dim %arg0" in caller


def test_blocks_in_any_order() -> None:
    """What a block makes is used outside of it, also by one that stands before it."""
    _, module = module_of("""func.func @f(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
      cf.br ^second
    ^first:
      %2 = math.exp %0 : tensor<8xf32>
      return %1, %2 : tensor<8xf32>, tensor<8xf32>
    ^second:
      %0 = math.tanh %x : tensor<8xf32>
      %1 = math.absf %0 : tensor<8xf32>
      cf.br ^first
    }""")
    graph = Graph(next(one for one in module.walk() if one.name == "func.func"))  # type: ignore[arg-type]
    assert [op_name(node.op) for node in graph.nodes] == ["math.tanh", "math.absf", "math.exp"]
    assert graph.exits(frozenset([0, 1])) == [0, 1]


def test_regions_of_a_device() -> None:
    """What stands in one is annotated with its scope."""
    body = """  %r = "device.region"() ({
    %0 = math.tanh %x : !t
    "device.yield"(%0) : (!t) -> ()
  }) {scope = #device.scope<"opencl", 0 : i64, "", "">} : () -> !t
"""
    graph = graph_of(body)
    (tanh,) = (node.index for node in graph.nodes if "tanh" in str(node.op) and not node.op.regions)
    found = invalid(graph, frozenset([tanh]), CPU, Limits())
    assert found == "its operations are annotated with opencl:0, which is not cpu:0"


@pytest.mark.parametrize("frame", ["device.region", "scf.execute_region"])
def test_what_is_elsewhere_than_what_it_stands_in(frame: str) -> None:
    """A call there would be where that is."""
    name, end = ("scope", "device.yield") if frame == "device.region" else ("device.scope", "scf.yield")
    body = f"""  %r = "{frame}"() ({{
    %0 = math.tanh %x {{device.scope = {SCOPE}}} : !t
    "{end}"(%0) : (!t) -> ()
  }}) {{{name} = {SCOPE.replace("cpu", "opencl")}}} : () -> !t
"""
    graph = graph_of(body)
    found = invalid(graph, frozenset([0]), CPU, Limits())
    assert found == "it stands in what is on opencl:0, which is not cpu:0"


def test_inputs_once_and_results_in_order() -> None:
    """A shared input is one parameter; several exits are several results, in the order of evaluation."""
    body = step(ADD, "%0", "%x", "%x") + step(TANH, "%1", "%0") + step(ADD, "%2", "%0", "%x")
    backend = Claimer("byoc", [RELU, SUM])
    text, _ = partitioned(chain(body, "%2, %1", 2), [backend], strategy="eager")
    assert "%0:2 = call @f_byoc_region(%arg0)" in text
    assert "return %0#1, %0#0" in text


class Numbered:
    """Edges alone: what `Quotient` looks at."""

    def __init__(self, outputs: list[list[int]]) -> None:
        self.outputs = outputs

    def __len__(self) -> int:
        return len(self.outputs)


def depends_on_itself(outputs: list[list[int]], merged: list[frozenset[int]], nodes: frozenset[int]) -> bool:
    """By all paths between sets."""
    sets = [nodes, *merged]
    whole = {n: next((one for one in sets if n in one), frozenset([n])) for n in range(len(outputs))}
    reached, stack = set[frozenset[int]](), [nodes]
    while stack:
        for node in stack.pop():
            for user in outputs[node]:
                if whole[user] == nodes and node not in nodes:
                    return True
                if whole[user] not in reached and whole[user] != nodes:
                    reached.add(whole[user])
                    stack.append(whole[user])
    return False


@settings(max_examples=200, deadline=None)
@given(st.randoms(use_true_random=False))
def test_sets_that_wait_for_themselves(random: Any) -> None:
    """On random graphs with sets that are one each already, against all paths."""
    count = random.randint(2, 12)
    later = [range(n + 1, count) for n in range(count)]
    outputs = [sorted(random.sample(users, min(random.randint(0, 2), len(users)))) for users in later]
    quotient, merged = Quotient(Numbered(outputs)), list[frozenset[int]]()  # type: ignore[arg-type]
    free = list(range(count))
    random.shuffle(free)
    for _ in range(random.randint(0, 4)):
        nodes = frozenset(free[: random.randint(1, 3)])
        if not nodes or depends_on_itself(outputs, merged, nodes):
            continue
        free = [node for node in free if node not in nodes]
        merged.append(nodes)
        quotient.add(nodes)
    asked = frozenset(free[: random.randint(1, 3)]) or frozenset([merged[0]][0])
    assert quotient.makes_cycle(asked) == depends_on_itself(outputs, merged, asked)


# ------------------------------------------------------------------------------------------------ rules


def offered(body: str, depth: int = 1, backend_depth: int = 1, **backend: Any) -> dict[str, set[frozenset[int]]]:
    """Per spec the sets of nodes that are offered."""
    claimer = Claimer("byoc", [RELU, SUM], **backend)
    found = candidates(Claims(graph_of(body)), [claimer], ["cpu:0"], depth, backend_depth)
    sets: dict[str, set[frozenset[int]]] = {}
    for one in found:
        sets.setdefault(one.spec.name, set()).add(one.nodes)
    return sets


def sets(*texts: str) -> set[frozenset[int]]:
    return {frozenset(map(int, text)) for text in texts}


def test_rule_pattern_overlap() -> None:
    """A candidate per match; what a wildcard matched is not inside; matches may overlap."""
    claimer = Claimer("byoc", [RELU, ("two", op("math.tanh", op("math.tanh", wildcard())), None)])
    graph = graph_of(step(TANH, "%0", "%x") + step(TANH, "%1", "%0") + step(TANH, "%r", "%1"))
    found = [one.nodes for one in candidates(Claims(graph), [claimer], [], 1, 1)]
    assert sorted(map(sorted, found)) == [[0], [0, 1], [1], [1, 2], [2]]


def test_rule_pattern_alternatives() -> None:
    """A search gets all that a pattern matches at an operation, table order the first."""
    tanh, row = op("math.tanh", wildcard()), wildcard().optional(lambda x: op("math.absf", x))
    claimer = Claimer("byoc", [("abs", op("math.absf", tanh) | row, None)])
    body = step(TANH, "%0", "%x") + step(ABS, "%r", "%0")
    found = [one.nodes for one in candidates(Claims(graph_of(body)), [claimer], [], 1, 1)]
    assert sorted(map(sorted, found)) == [[0, 1], [1]]
    _, taken = partitioned(chain(body), [claimer])
    assert [row.operations for row in taken.taken] == [("math.tanh", "math.absf")]


def test_rule_predicate() -> None:
    claimer = Claimer("byoc", [(*RELU[:2], lambda match: "not today")])
    claims = Claims(graph_of(LINE))
    assert candidates(claims, [claimer], [], 1, 1) == []
    assert {one.reason for one in claims.refusals({})} == {"not today"}


def test_rule_single_operations() -> None:
    """Generated code is offered every operation that must be lowered, and what follows fuses up to the depth."""
    assert offered(LINE)["cpu:0"] == sets("0", "1", "2")
    assert offered(LINE, depth=2)["cpu:0"] == sets("0", "1", "2", "01", "12")
    assert offered(LINE, depth=3)["cpu:0"] == sets("0", "1", "2", "01", "12", "012")


OF_KINDS = {
    "matmul": "  {r} = linalg.matmul ins({a}, {a} : !s, !s) outs(%z : !s) -> !s\n",
    "exp": "  {r} = math.exp {a} : !s\n",
    "transpose": "  {r} = linalg.transpose ins({a} : !s) outs(%z : !s) permutation = [1, 0]\n",
    "softmax": "  {r} = linalg.softmax dimension(1) ins({a} : !s) outs(%z : !s) -> !s\n",
}


@pytest.mark.parametrize(
    ("first", "second", "fuses"),
    [
        ("matmul", "exp", True),
        ("exp", "matmul", False),
        ("matmul", "matmul", False),
        ("matmul", "transpose", False),
        ("exp", "transpose", True),
        ("transpose", "exp", True),
        ("transpose", "transpose", True),
        ("exp", "softmax", True),
        ("transpose", "softmax", False),
        ("softmax", "exp", True),
        ("matmul", "softmax", False),
    ],
)
def test_rule_kinds(first: str, second: str, fuses: bool) -> None:
    """Which operation may follow which in one kernel of generated code, as in `Combine_ByKind`."""
    body = "  %z = arith.constant dense<0.0> : !s\n" + step(OF_KINDS[first], "%0", "%x")
    text = f"func.func @f(%x: !s) -> !s {{\n{body}{step(OF_KINDS[second], '%r', '%0')}  return %r : !s\n}}"
    _, module = module_of(text.replace("!s", "tensor<4x4xf32>"))
    graph = Graph(next(one for one in module.walk() if one.name == "func.func"))  # type: ignore[arg-type]
    found = {one.nodes for one in candidates(Claims(graph), [], ["cpu:0"], 2, 1)}
    assert (frozenset((0, 1)) in found) == fuses
    assert {frozenset((0,)), frozenset((1,))} <= found


def test_rule_kinds_of_sets() -> None:
    """A set is of the largest kind in it: a product with what follows it is no part of a reduction."""
    body = "  %z = arith.constant dense<0.0> : !s\n" + step(OF_KINDS["matmul"], "%0", "%x")
    body += step(OF_KINDS["exp"], "%1", "%0") + step(OF_KINDS["softmax"], "%r", "%1")
    text = f"func.func @f(%x: !s) -> !s {{\n{body}  return %r : !s\n}}".replace("!s", "tensor<4x4xf32>")
    _, module = module_of(text)
    graph = Graph(next(one for one in module.walk() if one.name == "func.func"))  # type: ignore[arg-type]
    found = {one.nodes for one in candidates(Claims(graph), [], ["cpu:0"], 3, 1)}
    assert found == sets("0", "1", "2", "01", "12")


GENERIC = """  %r = linalg.generic {{indexing_maps = [affine_map<(i, j) -> ({of})>, affine_map<(i, j) -> ({to})>],
      iterator_types = ["parallel", "{iterator}"]}} ins(%x : !s) outs({out}) {{
    ^bb0(%a: f32, %o: f32):
      %v = arith.addf %a, {other} : f32
      linalg.yield %v : f32
  }} -> {type}
"""


def generic(of: str, to: str = "i, j") -> str:
    whole = to == "i, j"
    out = "%z : !s" if whole else "%y : tensor<4xf32>"
    return GENERIC.format(
        of=of,
        to=to,
        iterator="parallel" if whole else "reduction",
        out=out,
        other="%a" if whole else "%o",
        type=out.partition(" : ")[2],
    )


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("  %r = math.exp %x : !s\n", Kind.ELEMENTWISE),
        (generic("i, j"), Kind.ELEMENTWISE),
        ("  %r = linalg.broadcast ins(%y : tensor<4xf32>) outs(%z : !s) dimensions = [0]\n", Kind.BROADCAST),
        (generic("i, 0"), Kind.BROADCAST),
        (generic("j, i"), Kind.INJECTIVE),
        ("  %r = tensor.concat dim(0) %x, %x : (!s, !s) -> tensor<8x4xf32>\n", Kind.INJECTIVE),
        ("  %r = tensor.extract_slice %x[0, 0] [2, 4] [1, 1] : !s to tensor<2x4xf32>\n", Kind.INJECTIVE),
        (generic("i, j", "i"), Kind.REDUCTION),
        (OF_KINDS["matmul"].format(r="%r", a="%x"), Kind.FUSABLE),
        ('  %r = "stablehlo.custom_call"(%x) {call_target_name = "f"} : (!s) -> !s\n', Kind.OPAQUE),
    ],
)
def test_kinds(line: str, kind: Kind) -> None:
    """An operation that nobody knows is opaque."""
    text = f"""func.func @f(%x: !s, %y: tensor<4xf32>) {{
      %z = arith.constant dense<0.0> : !s
    {line}  return
    }}"""
    _, module = module_of(text.replace("!s", "tensor<4x4xf32>"))
    graph = Graph(next(one for one in module.walk() if one.name == "func.func"))  # type: ignore[arg-type]
    assert [kind_of(node.op) for node in graph.nodes] == [kind]


def test_rule_operations_of_several_values() -> None:
    """In place of Collage's rules for tuples: each of what a concatenation takes may be fused to it."""
    body = step(TANH, "%0", "%x") + step(ABS, "%1", "%x")
    body += "  %c = tensor.concat dim(0) %0, %1 : (!t, !t) -> tensor<16xf32>\n"
    body += "  %r = tensor.extract_slice %c[4] [8] [1] : tensor<16xf32> to !t\n"
    assert offered(body, depth=2)["cpu:0"] == sets("0", "1", "2", "02", "12")
    assert offered(body, depth=3)["cpu:0"] == sets("0", "1", "2", "02", "12", "012")


def test_rule_backends_combine_only_if_they_merge() -> None:
    body = step(TANH, "%0", "%x") + step(TANH, "%1", "%0") + step(TANH, "%r", "%1")
    assert offered(body, backend_depth=3, merge=False)["byoc"] == sets("0", "1", "2")
    assert offered(body, backend_depth=3)["byoc"] == sets("0", "1", "2", "01", "12", "012")


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_rule_combinations_are_all_that_are_valid(depth: int) -> None:
    """Against every subset of a diamond with a tail. As in Collage, two are joined whose depths together are small
    enough, so that both sides of the diamond come to their sum at depth 3 only.
    """
    body = DIAMOND + step(TANH, "%s", "%r")
    graph = graph_of(body, "%s")
    claimer = Claimer("byoc", [RELU, SUM, ("abs", op("math.absf", wildcard()), None)])
    found = {one.nodes for one in candidates(Claims(graph), [claimer], [], 1, depth)}
    subsets = [frozenset(one) for count in range(1, 6) for one in combinations(range(5), count)]
    valid = {nodes for nodes in subsets if is_valid(graph, *nodes, depth=depth) and _is_linked(graph, nodes)}
    assert found == valid - (sets("123") if depth == 2 else set())


def _is_linked(graph: Graph, nodes: frozenset[int]) -> bool:
    reached, stack = set[int](), [min(nodes)]
    while stack:
        node = stack.pop()
        if node in nodes and node not in reached:
            reached.add(node)
            stack += [*graph.inputs[node], *graph.outputs[node]]
    return reached == nodes


@pytest.mark.parametrize(
    "line",
    [
        "  %r = tensor.cast %x : !t to !t\n",
        "  %r = func.call @g(%x) : (!t) -> !t\n",
        f'  %r = "device.on_device"(%x) {{scope = {SCOPE}, constrain_body = true}} : (!t) -> !t\n',
        f'  %r = "device.device_copy"(%x) {{src = {SCOPE}, dst = {SCOPE}}} : (!t) -> !t\n',
    ],
    ids=["view", "call", "annotation", "copy"],
)
def test_rule_nobody(line: str) -> None:
    """What the host does by itself has a candidate, and no other, that costs nothing."""
    _, module = module_of(chain(line) + chain("", "%x").replace("@f", "private @g"))
    graph = Graph(next(one for one in module.walk() if one.name == "func.func"))  # type: ignore[arg-type]
    (found,) = candidates(
        Claims(graph), [Claimer("byoc", [("any", op(["func.*", "device.*"]), None)])], ["cpu:0"], 1, 1
    )
    assert (found.spec.name, found.nodes) == ("host", frozenset([0]))
    assert Costs(nominal_machine(["cpu:0"], "cpu:0")).of(graph, found).seconds == 0


def test_pruning_bridges_gaps() -> None:
    """Maximal candidates that overlap are joined by smaller ones."""
    claimer = Claimer("byoc", [RELU, ("two", op("math.tanh", op("math.tanh", wildcard())), None)])
    graph = graph_of(step(TANH, "%0", "%x") + step(TANH, "%1", "%0") + step(TANH, "%r", "%1"))
    kept = pruned(candidates(Claims(graph), [claimer], [], 1, 1))
    assert {one.nodes for one in kept} == sets("01", "12", "0", "1", "2")


def test_table_order_over_the_whole_function() -> None:
    """As in `MergeComposite`: a row takes what it matches anywhere before the next one is tried."""
    rows = [
        ("first", op("math.absf", op("math.tanh", wildcard())), None),
        ("second", op("math.exp", op("math.absf", wildcard())), None),
    ]
    body = step(TANH, "%0", "%x") + step(ABS, "%1", "%0") + "  %r = math.exp %1 : !t\n"
    for table in (rows, rows[::-1]):
        _, found = partitioned(chain(body), [Claimer("byoc", table, merge=False)])
        assert [row.by for row in found.taken] == [f"byoc.{table[0][0]}"]


def test_the_first_backend_takes_it() -> None:
    backends = [Claimer(name, [RELU]) for name in ("byoc", "second")]
    for order in (backends, backends[::-1]):
        _, found = partitioned(chain(step(TANH, "%r", "%x")), order)
        assert [row.by for row in found.taken] == [f"{order[0].name}.relu"]


def test_from_the_end_of_the_function() -> None:
    """Of overlapping matches of a row the last one is taken."""
    body = step(TANH, "%0", "%x") + step(TANH, "%1", "%0") + step(TANH, "%r", "%1")
    two = [("two", op("math.tanh", op("math.tanh", wildcard())), None)]
    text, _ = partitioned(chain(body), [Claimer("byoc", two)])
    caller = text.partition("return")[0]
    assert caller.index("math.tanh %arg0") < caller.index("call @f_byoc_two(%0)")


def test_neighbours_in_the_order_of_their_uses() -> None:
    """Of two that are merged, the one that begins first uses what the other makes."""
    rows = [
        ("sum", elementwise("add", op("math.tanh", wildcard()), wildcard()), None),
        ("abs", op("math.absf", op("math.exp", wildcard())), None),
    ]
    body = step(TANH, "%0", "%x") + "  %1 = math.exp %x : !t\n" + step(ABS, "%2", "%1")
    text, _ = partitioned(chain(body + step(ADD, "%r", "%0", "%2")), [Claimer("byoc", rows)])
    region = text.partition("@f_byoc_region(")[2].rpartition("@f_byoc_region(")[2]
    assert region.index("@f_byoc_abs") < region.index("@f_byoc_sum")


def test_a_result_that_is_returned_twice() -> None:
    """Is one result of the function that makes it, also of neighbours that are merged."""
    body = step(TANH, "%0", "%x") + step(TANH, "%r", "%0")
    text, _ = partitioned(chain(body, "%r, %0, %r", 3), [Claimer("byoc", [RELU])])
    assert "%0:2 = call @f_byoc_region(%arg0)" in text
    assert "return %0#1, %0#0, %0#1" in text


# ------------------------------------------------------------------------------------------------ costs


def test_a_candidate_that_costs_infinitely_is_never_taken() -> None:
    costs = Mock({"byoc": float("inf"), "cpu": 5.0})
    _, found = partitioned(chain(LINE), [Claimer("byoc", [RELU])], strategy="search", costs=costs)
    assert {row.by for row in found.taken} == {"cpu:0"}
    assert math.isfinite(found.decisions[0].seconds)


def test_functions_of_compilers_are_not_partitioned() -> None:
    text = chain(LINE).replace("{\n", 'attributes {device.compiler = "byoc"} {\n', 1)
    for strategy in ("eager", "search"):
        assert "call" not in partitioned(text, [Claimer("byoc", [RELU])], strategy=strategy)[0]
