"""What a node of the constraint system says besides its scope: flags, and a mark for values without a node."""

from __future__ import annotations

REMATERIALISED = -2
"""In place of a node, for values that are computed again on every scope that needs them, never copied."""

PLAIN, PLACED, ANNOTATED, CARRIED_OUT, NOT_COMPUTED, HEADER, INDIRECT, UNMOVABLE, FIXED = (
    0,
    1,
    2,
    4,
    8,
    16,
    32,
    64,
    128,
)
"""Flags of nodes.

* `PLACED`: all its edges are loose.
* `ANNOTATED`: a body-only ``device.on_device``; its edges are loose, except to a ``func.return``: an annotated
  result fixes the function's result (TVM's rewrite of top-level annotations).
* `CARRIED_OUT`: a loop's result; its edges are boundaries.
* `HEADER`: an argument of a block that begins a loop; its edges to uses outside the loop are boundaries.
* `NOT_COMPUTED`: an argument, a carried value or a copy. An annotation of it that cannot hold means "a copy of
  it there"; on a computed value it is an error, since one operation cannot execute on two scopes.
* `INDIRECT`: the result of an annotation or a copy. Planning replaces it by what it stands for, which may turn out
  to be elsewhere.
* `UNMOVABLE`: some value with this node is no tensor.
* `FIXED`: a copy, or a result that an annotation fixes. Its users follow it before they follow other operands.
"""
