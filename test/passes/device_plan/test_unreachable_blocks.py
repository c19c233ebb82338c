"""Blocks that nothing reaches: planned like all others, and no reason to go round in circles."""

from __future__ import annotations

from collections.abc import Callable

from devscope.analysis.dominance import Dominators


def test_a_cycle_of_unreachable_blocks(plan: Callable[..., object]) -> None:
    plan(
        """func.func @main(%x: !t, %p: i1) -> !t {
          %0 = "ml.op"(%x) {device.scope = #dev0} : (!t) -> !t
          cf.br ^end(%0 : !t)
        ^one(%a: !t):
          %1 = "ml.op"(%a) {device.scope = #dev0} : (!t) -> !t
          cf.br ^two(%1 : !t)
        ^two(%b: !t):
          %2 = "ml.op"(%b) : (!t) -> !t
          cf.cond_br %p, ^one(%2 : !t), ^end(%b : !t)
        ^end(%y: !t):
          func.return %y : !t
        }"""
    )


def test_unreachable_blocks_dominate_nothing(parse: Callable[..., object]) -> None:
    module = parse(
        """func.func @main(%p: i1) {
          cf.br ^end
        ^one:
          cf.br ^two
        ^two:
          cf.cond_br %p, ^one, ^end
        ^end:
          func.return
        }"""
    )
    (func,) = module.ops  # pyright: ignore[reportAttributeAccessIssue]
    entry, one, two, end = func.body.blocks
    graph = Dominators(func.body)
    assert graph.order == [entry, end, one, two]
    assert graph.nearest_common([two, end]) is entry
    assert graph.nearest_common([one, two]) is entry
