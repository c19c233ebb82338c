"""Checks take steps in proportion to what they look at: counted, since times differ."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from xdsl.parser import Parser

from devscope.dialects.context import make_context
from devscope.lowering.checks.labels import argument_labels
from devscope.lowering.checks.shapes import check_shapes
from devscope.lowering.interop.bindings import ir
from devscope.runtime.program import TensorSpec


def steps(action: Callable[[], Any]) -> int:
    """How many calls of functions, of Python's or of C, ``action`` makes."""
    count = 0

    def profile(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(profile)
    try:
        action()
    finally:
        sys.setprofile(None)
    return count


def slices_in_a_loop(count: int) -> Any:
    part = """
        %e{0} = tensor.extract_slice %x[{0}] [1] [1] : tensor<?xf32> to tensor<1xf32>
        %a{1} = tensor.insert_slice %e{0} into %a{0}[{0}] [1] [1] : tensor<1xf32> into tensor<?xf32>
    """
    text = f"""
        func.func @main(%x: tensor<?xf32>, %n: index, %c1: index) -> tensor<?xf32> {{
          %r = scf.for %i = %n to %n step %c1 iter_args(%a0 = %x) -> tensor<?xf32> {{
            {"".join(part.format(n, n + 1) for n in range(count))}
            scf.yield %a{count} : tensor<?xf32>
          }}
          return %r : tensor<?xf32>
        }}
    """
    return ir.Module.parse(text, ir.Context())


def test_assertions_in_a_loop() -> None:
    """Each is hoisted, and each size is followed through all slices before it."""
    few, many = slices_in_a_loop(25), slices_in_a_loop(100)
    assert steps(lambda: check_shapes(many, {})) < 6 * steps(lambda: check_shapes(few, {}))
    assert str(many).count("cf.assert") == 199


def test_labels_through_calls() -> None:
    """Callees stand before their callers."""

    def labelled(count: int) -> int:
        body = "{{ %0 = call @f{1}(%x) : (!t) -> !t return %0 : !t }}"
        calls = [("func.func private @f{0}(%x: !t) -> !t " + body).format(n, n + 1) for n in range(count)]
        calls[0] = calls[0].replace("private ", "")
        text = "\n".join([f"func.func private @f{count}(!t) -> !t", *reversed(calls)])
        module = Parser(make_context(), text.replace("!t", "tensor<4xf32>")).parse_module()
        inputs = {"f0": [TensorSpec(name="x", dtype="f32", shape=[4])]}
        taken = steps(lambda: argument_labels(module, inputs))
        assert argument_labels(module, inputs)[f"f{count - 1}"] == ["argument 0 'x'"]
        return taken

    assert labelled(100) < 6 * labelled(25)
