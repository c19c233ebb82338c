"""The call graph of a module: callers, components and cycles."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from devscope.analysis.call_graph import CallGraph

MODULE = """
func.func @main() { func.call @a() : () -> () func.call @a() : () -> () func.return }
func.func private @a() { func.call @b() : () -> () func.return }
func.func private @b() { func.call @c() : () -> () func.return }
func.func private @c() { func.call @b() : () -> () func.call @leaf() : () -> () func.return }
func.func private @leaf() { func.return }
func.func private @value() { func.return }
func.func private @declared()
func.func private @user() { %f = func.constant @value : () -> () func.call @declared() : () -> () func.return }
"""


def graph_of(parse_program: Callable[[str], ModuleOp]) -> CallGraph:
    return CallGraph(parse_program(MODULE))


def names(functions: Iterable[FuncOp | None] | None) -> list[str]:
    return [function.sym_name.data for function in functions or () if function is not None]


def test_callees_in_the_order_of_calls(parse_program: Callable[[str], ModuleOp]) -> None:
    graph = graph_of(parse_program)
    assert {f.sym_name.data: names(callees) for f, callees in graph.callees.items()} == {
        **{"main": ["a", "a"], "a": ["b"], "b": ["c"], "c": ["b", "leaf"], "leaf": []},
        **{"value": [], "declared": [], "user": ["declared"]},
    }
    assert [(names([c.caller]), names([c.callee])) for c in graph.calls][:2] == [(["main"], ["a"])] * 2


def test_components_come_callees_first(parse_program: Callable[[str], ModuleOp]) -> None:
    found = [sorted(names(component)) for component in graph_of(parse_program).components]
    assert found == [["leaf"], ["b", "c"], ["a"], ["main"], ["value"], ["declared"], ["user"]]


def test_only_functions_that_nothing_but_calls_reach_are_private(parse_program: Callable[[str], ModuleOp]) -> None:
    assert sorted(names(graph_of(parse_program).private)) == ["a", "b", "c", "leaf", "user"]


def test_cycles_are_found_below_their_callers(parse_program: Callable[[str], ModuleOp]) -> None:
    graph = graph_of(parse_program)
    functions = graph.symbols.functions
    assert names(graph.cycle_below(functions["main"])) == ["b", "c", "b"]
    assert names(graph.cycle_below(functions["c"])) == ["c", "b", "c"]
    assert graph.cycle_below(functions["leaf"]) is None
