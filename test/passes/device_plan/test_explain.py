"""Reasons: every placement and every copy has a chain of them that ends where the scope was decided."""

from __future__ import annotations

import json
import os
import random

import pytest
from test_random_modules import Generator

from devscope.errors import PlanError

SEED = int(os.environ["DEVSCOPE_TEST_SEED"])  # set in test/conftest.py
CIRCLES = (1001323, 3593926392)
"""Programs in which two open classes choose one scope because of each other."""
NO_DEMAND = "no demand reaches it: default scope"


def chain(planned, name: str) -> list[str]:
    """Why the operation of this name is where it is."""
    (op,) = (p.operation for p in planned.plan.placements if p.op == name)
    return [str(note) for note in planned.plan.why_placed(op)]


@pytest.mark.sampled(3)
@pytest.mark.fuzz
@pytest.mark.parametrize("seed", [*range(SEED, SEED + 24), *CIRCLES])
def test_every_placement_and_every_copy_has_a_reason(plan, seed: int) -> None:
    """And that reason speaks of the device that was chosen."""
    text = Generator(random.Random(seed), 0.3).module()
    try:
        planned = plan(text, arguments="host" if seed % 2 else "open")
    except PlanError:
        return
    whole = planned.plan
    for placement in whole.placements:
        notes = whole.why_placed(placement.operation)
        assert placement.scope.type_name in notes[-1].text or "made again" in notes[-1].text
        assert placement.reason
    for copy in whole.copies:
        source, destination = whole.why_copied(copy.operation)
        assert copy.src.type_name in source[-1].text
        assert copy.dst.type_name in destination[-1].text or "the program copies it" in destination[-1].text
    assert sum("is copied from" in remark.message for remark in whole.copy_remarks) == len(whole.copies)
    json.dumps(whole.to_json(chains=True))


def test_the_chain_leads_through_every_operation(plan) -> None:
    planned = plan(
        """func.func @main(%x: !t) -> !t {
          %0 = "ml.a"(%x) : (!t) -> !t loc("m.mlir":2:3)
          %1 = "ml.b"(%0) : (!t) -> !t loc("m.mlir":3:3)
          %2 = "ml.c"(%1) : (!t) -> !t loc("m.mlir":4:3)
          %3 = "device.on_device"(%2) {scope = #dev0} : (!t) -> !t loc("m.mlir":5:3)
          func.return %3 : !t
        }"""
    )
    assert chain(planned, "ml.a") == [
        "m.mlir:3:3: 'ml.b' uses the result of 'ml.a' (m.mlir:2:3)",
        "m.mlir:4:3: 'ml.c' uses the result of 'ml.b' (m.mlir:3:3)",
        "m.mlir:5:3: 'device.on_device' puts the result of 'ml.c' (m.mlir:4:3) on opencl:0",
    ]


def test_an_adopted_scope_is_explained_by_the_neighbour(plan) -> None:
    planned = plan(
        """func.func @main(%x: !t, %n: index) -> !t {
          %a = arith.constant 0 : index
          %b = arith.constant 1 : index
          %r = scf.for %i = %a to %n step %b iter_args(%p = %x) -> (!t) {
            %q = "ml.exp"(%p) {device.scope = #dev0} : (!t) -> !t loc("m.mlir":5:3)
            scf.yield %q : !t
          }
          %v = tensor.extract %r[%a, %a] : !t
          func.return %r : !t
        }"""
    )
    (op,) = (p.operation for p in planned.plan.placements if p.op == "tensor.extract")
    notes = [note.text for note in planned.plan.why_placed(op)]
    assert notes[-1] == "device.scope on 'ml.exp' says opencl:0"
    assert any(note.startswith("nothing else places it, and 'ml.exp' uses %p") for note in notes)


def test_the_default_of_arguments(plan) -> None:
    """Arguments that nothing places are where the first result is, which is said."""
    planned = plan(
        """func.func @main(%x: !t) -> (!t {device.scope = #dev0}) {
          "ml.use"(%x) : (!t) -> ()
          %c = tensor.empty() : !t
          func.return %c : !t
        }"""
    )
    assert chain(planned, "ml.use") == [
        "'ml.use' uses %x",
        "nothing places argument #0 of @main: it is where the first result is (opencl:0)",
        "device.scope on result #0 of @main says opencl:0",
    ]


def test_no_demand(plan) -> None:
    planned = plan('func.func @main(%x: !t) { "ml.use"(%x) : (!t) -> () func.return }', default="opencl:1")
    assert chain(planned, "ml.use") == [f"{NO_DEMAND}, opencl:1"]


def test_a_frame(plan) -> None:
    planned = plan(
        """func.func @main(%x: !t) -> !t {
          %r = "device.region"() ({
            %0 = "ml.exp"(%x) : (!t) -> !t
            "device.yield"(%0) : (!t) -> ()
          }) {scope = #dev0} : () -> !t loc("m.mlir":2:3)
          func.return %r : !t
        }"""
    )
    assert chain(planned, "ml.exp") == ["m.mlir:2:3: device.scope on the enclosing 'device.region' says opencl:0"]


def test_the_reasons_of_a_copy(plan) -> None:
    planned = plan(
        """func.func @main(%x: !t) -> !t {
          %0 = "ml.a"(%x) {device.scope = #dev0} : (!t) -> !t loc("m.mlir":2:3)
          %1 = "ml.b"(%0) {device.scope = #dev1} : (!t) -> !t loc("m.mlir":3:3)
          func.return %1 : !t
        }"""
    )
    (copy,) = planned.plan.copies
    source, destination = planned.plan.why_copied(copy.operation)
    assert list(source) == ["m.mlir:2:3: device.scope on 'ml.a' says opencl:0"]
    assert [str(note) for note in destination] == [
        "m.mlir:3:3: 'ml.b' uses the result of 'ml.a' (m.mlir:2:3)",
        "m.mlir:3:3: device.scope on 'ml.b' says opencl:1",
    ]
    assert str(planned.plan.copy_remarks[0]) == (
        "m.mlir:3:3: remark: the result of 'ml.a' (m.mlir:2:3) is copied from opencl:0 to opencl:1 (140 bytes) "
        "for 'ml.b' (m.mlir:3:3)"
    )


def test_a_copy_of_the_program(plan) -> None:
    planned = plan(
        """func.func @main(%x: !t) -> !t {
          %0 = "device.device_copy"(%x) {src = #cpu0, dst = #dev0} : (!t) -> !t loc("m.mlir":2:3)
          func.return %0 : !t
        }"""
    )
    (copy,) = planned.plan.copies
    _, destination = planned.plan.why_copied(copy.operation)
    assert [str(note) for note in destination] == ["m.mlir:2:3: the program copies it there"]


def test_chains_across_calls(plan) -> None:
    """A callee's demand explains the caller's value; a caller's choice explains the clone's."""
    planned = plan(
        """func.func private @exp(%x: !t) -> !t {
          %0 = "ml.exp"(%x) {device.scope = #dev0} : (!t) -> !t loc("m.mlir":2:3)
          func.return %0 : !t
        }
        func.func private @neg(%x: !t) -> !t {
          %0 = arith.negf %x : !t
          func.return %0 : !t
        }
        func.func @main(%x: !t) -> !t {
          %0 = func.call @exp(%x) : (!t) -> !t loc("m.mlir":6:3)
          %1 = func.call @neg(%0) : (!t) -> !t loc("m.mlir":7:3)
          %2 = "device.on_device"(%1) {scope = #dev0} : (!t) -> !t loc("m.mlir":8:3)
          func.return %2 : !t
        }"""
    )
    assert chain(planned, "arith.negf") == [
        "'arith.negf' uses %x",
        "m.mlir:7:3: 'func.call' uses @neg with its argument #0 on opencl:0",
        "m.mlir:8:3: 'device.on_device' puts the result of 'func.call' (m.mlir:7:3) on opencl:0",
    ]


def test_long_chains_are_cut_in_json(plan) -> None:
    """Reasons for a chain of operations of any length take space linear in their number."""
    links = "\n".join(f'%v{i} = "ml.op"(%v{i - 1}) : (!t) -> !t' for i in range(1, 400))
    planned = plan(
        f"""func.func @main(%v0: !t) {{
          {links}
          %d = "device.on_device"(%v399) {{scope = #dev0}} : (!t) -> !t
          func.return
        }}"""
    )
    placements = planned.plan.to_json(chains=True)["placements"]
    assert isinstance(placements, list)
    assert max(len(placement["chain"]) for placement in placements) == 13
    assert placements[0]["chain"][6] == {"text": "(387 more steps)", "location": None}


def test_a_memory_scope_alone_places_nothing(plan) -> None:
    """What flows out of a constant that names a memory, but no device, has no device from there."""
    planned = plan(
        """func.func @main(%p: i1) -> !t {
          %c = "arith.constant"() {value = dense<1.0> : !t, device.scope = #any@global} : () -> !t
          func.return %c : !t
        }"""
    )
    assert planned.signature("main") == "- -> cpu:0"
