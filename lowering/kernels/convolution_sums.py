"""The innermost loops of a convolution's kernel: sums of products of some pixels with a panel of filters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from devscope.lowering.kernels import convolution_padding as padding
from devscope.lowering.kernels.contraction_words import is_safe, multiply_apart, multiply_words
from devscope.lowering.kernels.convolution_filters import fetch_filters, read_filters
from devscope.lowering.kernels.convolution_words import IMAGE_TASKS
from devscope.lowering.kernels.windowed import FLAT

if TYPE_CHECKING:
    from devscope.lowering.kernels.convolution_calls import Call


def sums_of_block(call: Call) -> str:
    """Lines for ``%sums``: ``%begin``, with the products of some steps added."""
    rows, columns, of, words = call.rows, call.columns, call.found.element, call.found.words
    block = f"vector<{rows}x{columns}x{of}>"
    if words is None:
        types = f"vector<{rows}x{of}>, vector<{columns}x{of}>"
        return _loops(call, "%sums", f"%more = vector.outerproduct %a, %b_row, %so_far : {types}")
    return f"""%sums = scf.if %is_safe -> ({block}) {{
          {_loops(call, "%sums_at_once", multiply_words(words, False, rows, columns))}
          scf.yield %sums_at_once : {block}
        }} else {{
          {_loops(call, "%sums_apart", multiply_apart(rows, columns))}
          scf.yield %sums_apart : {block}
        }}"""


def find_if_safe(call: Call) -> str:
    """Lines for ``%is_safe``: whether no product of words, and no sum of them, can be subnormal."""
    if call.found.words is None:
        return ""
    return f"""%most_exponent = arith.constant -1 : i16
        %counted = arith.constant {IMAGE_TASKS} : index
        %image_bits = scf.for %number = %0 to %counted step %1 iter_args(%lower = %most_exponent) -> (i16) {{
          %one_of_all = memref.load %least[%number] : {FLAT.format("i16")}
          %lowest = arith.minui %lower, %one_of_all : i16
          scf.yield %lowest : i16
        }}
        %digits = arith.constant 8 : i16
        %a_exponent = arith.shrui %image_bits, %digits : i16
        %b_exponent = arith.index_cast %filter_exponent : index to i16
        {is_safe()}"""


def _loops(call: Call, to: str, multiply: str) -> str:
    """Lines for ``to``; ``multiply``: those for ``%more``, which is ``%so_far`` with products of a step added."""
    block = f"vector<{call.rows}x{call.columns}x{call.found.element}>"
    return f"""{to} = scf.for %run = %0 to %runs step %1 iter_args(%of_runs = %begin) -> ({block}) {{
          {padding.steps_inside(call)}
          // What is fetched ahead is outside of the innermost loop, which needs all registers for itself.
          %of_run = scf.for %fetching = %k_from to %k_to step %fetch_steps
              iter_args(%before = %of_runs) -> ({block}) {{
            {fetch_filters(call)}
            %fetching_next = arith.addi %fetching, %fetch_steps : index
            %fetching_end = arith.minsi %fetching_next, %k_to : index
            %after = scf.for %k = %fetching to %fetching_end step %1 iter_args(%so_far = %before) -> ({block}) {{
              %entry = arith.addi %pixels, %k : index
              %k_behind = memref.load %table[%entry] : memref<?xindex>
              {_read_pixels(call)}
              %line = arith.muli %k, %columns : index
              %line_at = arith.addi %panel, %line : index
              {read_filters(call)}
              {multiply}
              scf.yield %more : {block}
            }}
            scf.yield %after : {block}
          }}
          scf.yield %of_run : {block}
        }}"""


def _read_pixels(call: Call) -> str:
    """Lines for ``%a``: of each pixel, what it has of a step."""
    of, rows = call.found.packed, range(call.rows)
    lines = [f"%e{n}_ = memref.load %from{n}[%k_behind] : {FLAT.format(of)}" for n in rows]
    elements = ", ".join(f"%e{n}_" for n in rows)
    return "\n".join([*lines, f"%a = vector.from_elements {elements} : vector<{call.rows}x{of}>"])
