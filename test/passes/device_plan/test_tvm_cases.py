"""What TVM's planner tests ask of queries and of the order of functions. The programs themselves: tvm_*.mlir."""

from __future__ import annotations

from devscope.analysis.scope_analysis import ScopeAnalysis


def test_left_add_on_cpu_via_copy_as_map(plan) -> None:
    """The scopes as recovered from the planned module; a copy is on its destination."""
    planned = plan(
        """func.func @main(%a: !t, %b: !t, %c: !t, %d: !t) -> !t {
          %0 = arith.addf %a, %b : !t
          %1 = "device.device_copy"(%0) {src = #cpu0, dst = #gpu0} : (!t) -> !t
          %2 = arith.addf %c, %d : !t
          %3 = arith.subf %1, %2 : !t
          func.return %3 : !t
        }""",
        default="cuda:0",
    )
    func, analysis = planned.function("main"), ScopeAnalysis(planned.module)
    assert [analysis.of_value(argument).short() for argument in func.args] == ["cpu:0"] * 2 + ["cuda:0"] * 2
    assert analysis.of_result(func, 0).short() == "cuda:0"
    values = [(op.name, analysis.of_value(op.results[0]).short()) for op in func.body.block.ops if op.results]
    assert values == [
        ("arith.addf", "cpu:0"),
        ("device.device_copy", "cuda:0"),
        ("arith.addf", "cuda:0"),
        ("arith.subf", "cuda:0"),
    ]


def test_function_order_and_names_do_not_matter(plan) -> None:
    """Two callers disagree about a shared function's argument: each gets the same function in any order."""
    shared = """func.func private @NAME(%x: !t) -> !t {
      %0 = arith.negf %x : !t
      func.return %0 : !t
    }"""
    callers = [
        f"""func.func @{name}(%x: !t) -> !t {{
          %0 = "device.on_device"(%x) {{scope = {scope}, constrain_result = true}} : (!t) -> !t
          %1 = func.call @NAME(%0) : (!t) -> !t
          func.return %1 : !t
        }}"""
        for name, scope in (("A", "#cpu0"), ("B", "#gpu0"))
    ]
    outcomes = {
        (planned.signature("A"), planned.signature("B"), planned.signature(name))
        for name in ("f", "zz")
        for order in ((0, 1, 2), (1, 0, 2), (2, 1, 0), (0, 2, 1))
        for planned in [
            plan("\n".join([callers[0], callers[1], shared][i] for i in order).replace("@NAME", f"@{name}"))
        ]
    }
    assert len(outcomes) == 1
