"""Places of operations that are written where the operations are, in the source of JAX and PyTorch programs."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from typing import Any

from devscope.analysis.placement import Rule
from devscope.dialects.location import PRAGMA


@contextmanager
def on(device: str) -> Generator[None]:
    """``with devscope.on("opencl:0"):`` in a function that becomes a program: what is computed inside is there.

    JAX functions have it in the names of their operations (``jax.named_scope``), through ``jit``, ``grad``, loops
    and export; graphs of PyTorch in the metadata of their nodes. Of several around an operation, the innermost
    counts. Where nothing is traced, it does nothing.

    Raises OptionError for what is no device.
    """
    device = Rule(device, op="*").device  # checks it
    name = f"{PRAGMA}({device})"
    with ExitStack() as stack:
        torch: Any = sys.modules.get("torch")
        if torch is not None and hasattr(torch, "fx"):
            stack.enter_context(torch.fx.traceback.preserve_node_meta())  # else the nodes would not get it
            stack.enter_context(torch.fx.traceback.annotate({PRAGMA: device}))
        jax: Any = sys.modules.get("jax")
        if jax is not None and hasattr(jax, "named_scope"):  # not while it is being imported
            stack.enter_context(jax.named_scope(name))
        yield
