"""What loops carry stays where it is used: no copy in a loop that a brute-force search can do without."""

from __future__ import annotations

import os
import random

import pytest
from loop_programs import CopyOracle, LoopProgram

from devscope.dialects.device import ScopeAttr

FIRST = int(os.environ["DEVSCOPE_TEST_SEED"])  # set in test/conftest.py
SEEDS = range(FIRST, FIRST + int(os.environ.get("DEVSCOPE_TEST_PROGRAMS") or 12))
SCOPES = [ScopeAttr.get("cpu", 0), ScopeAttr.get("opencl", 0)]
MOST_CHOICES = 9
"""Programs with more values that may move take the search too long."""


@pytest.mark.fuzz
@pytest.mark.parametrize("arguments", ["host", "open"])
@pytest.mark.parametrize("default", ["cpu:0", "opencl:0"])
def test_no_copy_in_a_loop_is_needless(plan, default: str, arguments: str) -> None:
    tried = 0
    for seed in SEEDS:
        text = LoopProgram(random.Random(seed), ("#cpu0", "#dev0")).text()
        planned = plan(text, default, arguments)
        oracle = CopyOracle(planned.module, arguments == "host")
        if len(set(oracle.variables.values())) > MOST_CHOICES:
            continue
        tried += 1
        actual, fewest = oracle.actual(), oracle.fewest(SCOPES)
        assert actual[:-1] == fewest[:-1], text
        assert actual[-1] <= fewest[-1] + 1, text
    assert tried > len(SEEDS) / 2


@pytest.mark.parametrize(
    "loop",
    [
        """%r = "scf.for"(%i, %i, %i, %x) ({ ^bb0(%k: index, %a: !t):
             BODY
             scf.yield %e : !t
           }) : (index, index, index, !t) -> !t""",
        """%r = "scf.while"(%x) ({ ^bb0(%b: !t):
             scf.condition(%p) %b : !t
           }, { ^bb0(%a: !t):
             BODY
             scf.yield %e : !t
           }) : (!t) -> !t""",
        """%r = "scf.while"(%x) ({ ^bb0(%a: !t):
             BODY
             scf.condition(%p) %e : !t
           }, { ^bb0(%b: !t):
             scf.yield %b : !t
           }) : (!t) -> !t""",
        """cf.br ^head(%x : !t)
           ^head(%a: !t):
             BODY
             cf.cond_br %p, ^head(%e : !t), ^end(%e : !t)
           ^end(%r: !t):""",
        """%r = "scf.for"(%i, %i, %i, %x) ({ ^bb0(%k: index, %o: !t):
             %s = "scf.for"(%i, %i, %i, %o) ({ ^bb0(%l: index, %a: !t):
               BODY
               scf.yield %e : !t
             }) : (index, index, index, !t) -> !t
             scf.yield %s : !t
           }) : (index, index, index, !t) -> !t""",
    ],
    ids=["for", "while", "before", "blocks", "nested"],
)
@pytest.mark.parametrize(
    "body",
    [
        '%e = "ml.op"(%a) {device.scope = #dev0} : (!t) -> !t',
        # Nothing in the loop uses what it carries.
        '%e = "ml.op"(%w) {device.scope = #dev0} : (!t) -> !t',
        # The placed operation is behind an annotation.
        '%q = "ml.op"(%a) : (!t) -> !t\n%e = "device.on_device"(%q) {scope = #dev0} : (!t) -> !t',
        '%q = "ml.op"(%w) : (!t) -> !t\n%e = "device.on_device"(%q) {scope = #dev0} : (!t) -> !t',
        # Two operations on the device, and one in between that only looks.
        '%q = "ml.op"(%a) {device.scope = #dev0} : (!t) -> !t\n'
        '%e = "ml.op"(%q) {device.scope = #dev0} : (!t) -> !t\n'
        '%s0 = "tensor.extract"(%q, %i, %i) : (!t, index, index) -> f32',
    ],
    ids=["used", "unused", "annotated", "annotated_unused", "two"],
)
def test_one_copy_before_and_one_after(plan, loop: str, body: str) -> None:
    """Arguments and results on the host, the body on a device."""
    planned = plan(
        f"""func.func @main(%x: !t, %w: !t, %p: i1, %i: index) -> !t {{
          {loop.replace("BODY", body)}
          func.return %r : !t
        }}""",
        arguments="host",
    )
    oracle = CopyOracle(planned.module, pinned=True)
    assert oracle.actual() == (0, 0, 0, 0, len(planned.copies()))
    values = 2 if "%w" in body else 1
    assert sorted(planned.copies()) == ["cpu:0>opencl:0"] * values + ["opencl:0>cpu:0"]
