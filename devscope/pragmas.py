"""Places of operations that are written where the operations are, in the source of JAX and PyTorch programs."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from typing import Any

from devscope.analysis.placement import Rule


@contextmanager
def on(device: str) -> Generator[None]:
    """``with devscope.on("opencl:0"):`` in a function that becomes a program: what is computed inside is there.

    JAX functions have it in the names of their operations (``jax.named_scope``), through ``jit``, ``grad``, loops
    and export. Of several around an operation, the innermost counts. Where nothing is traced, it does nothing.

    Raises OptionError for what is no device.
    """
    name = f"devscope.on({Rule(device, op='*').device})"
    with ExitStack() as stack:
        jax: Any = sys.modules.get("jax")
        if jax is not None and hasattr(jax, "named_scope"):  # not while it is being imported
            stack.enter_context(jax.named_scope(name))
        yield
