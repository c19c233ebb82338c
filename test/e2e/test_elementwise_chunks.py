"""Elementwise operations on a GPU, whose work-items move several elements at once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import numpy as np
import pytest
from test_workgroup_tiles import gpu  # noqa: F401

import devscope

TYPES = {"f16": np.float16, "f32": np.float32, "i64": np.int64}
SIZES = ("65536", "65543", "?")


def program() -> str:
    """Per type and size: two results of different types, with a scalar; and with an operand of one element."""
    functions: list[str] = []
    for element in TYPES:
        kind = "f" if element[0] == "f" else "i"
        for number, size in enumerate(SIZES):
            t, flags = f"tensor<{size}x{element}>", f"tensor<{size}xi8>"
            functions.append(f"""
func.func @{element}_{number}(%x: {t}, %y: {t}, %s: {element}, %w: {flags}, %row: tensor<1x{element}>)
    -> ({t}, {flags}, {t}) {{
  %r, %q = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> ()>,
      affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}}
      ins(%x, %y, %s, %w : {t}, {t}, {element}, {flags}) outs(%y, %w : {t}, {flags}) {{
  ^bb0(%a: {element}, %b: {element}, %c: {element}, %d: i8, %o: {element}, %p: i8):
    %0 = arith.mul{kind} %a, %b : {element}
    %1 = arith.add{kind} %0, %c : {element}
    %2 = arith.addi %d, %p : i8
    linalg.yield %1, %2 : {element}, i8
  }} -> ({t}, {flags})
  %z = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (0)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]}} ins(%r, %row : {t}, tensor<1x{element}>) outs(%r : {t}) {{
  ^bb0(%a: {element}, %b: {element}, %o: {element}):
    %0 = arith.add{kind} %a, %b : {element}
    linalg.yield %0 : {element}
  }} -> {t}
  return %r, %q, %z : {t}, {flags}, {t}
}}""")
    return "".join(functions)


@pytest.mark.parametrize("device", ["opencl:0", "cuda:0"])
def test_chunks(device: str, gpu: None, cuda: Callable[[], AbstractContextManager[object]]) -> None:  # noqa: F811
    """Sizes that chunks divide and others, known before and not."""
    rng = np.random.default_rng(0)
    with cuda() if device == "cuda:0" else nullcontext():
        run = devscope.compile(program(), default=device, cache=False)
        for element, dtype in TYPES.items():
            for number, size in enumerate(SIZES):
                for length in [int(size)] if size != "?" else [0, 1, 15, 16, 1003]:
                    x, y, row = (rng.integers(-8, 9, shape).astype(dtype) for shape in (length, length, 1))
                    w = rng.integers(-9, 9, length).astype(np.int8)
                    r, q, z = run.run(f"{element}_{number}", x, y, dtype(3), w, row)
                    np.testing.assert_array_equal(r, x * y + dtype(3), err_msg=f"{element} {length}")
                    np.testing.assert_array_equal(q, w + w)
                    np.testing.assert_array_equal(z, x * y + dtype(3) + row)
