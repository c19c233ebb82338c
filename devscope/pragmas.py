"""Places of operations that are written where the operations are, in the source of JAX and PyTorch programs."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

from devscope.analysis.placement import Rule
from devscope.dialects.location import PRAGMA


def on(device: str) -> AbstractContextManager[None]:
    """``with devscope.on("opencl:0"):`` in a function that becomes a program: what is computed inside is there.

    JAX functions have it in the names of their operations (``jax.named_scope``), through ``jit``, ``grad``, loops
    and export; graphs of PyTorch in the metadata of their nodes. Of several around an operation, the innermost
    counts. Where nothing is traced, it does nothing.

    Raises OptionError for what is no device.
    """
    torch: Any = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "fx") and torch.compiler.is_dynamo_compiling():
        return torch.fx.traceback.annotate({PRAGMA: device})  # what Dynamo can trace
    return _on(Rule(device, op="*").device, torch)  # a rule checks the device


@contextmanager
def _on(device: str, torch: Any) -> Generator[None]:
    name = f"{PRAGMA}({device})"
    with ExitStack() as stack:
        if torch is not None and hasattr(torch, "fx"):  # not while it is being imported
            stack.enter_context(torch.fx.traceback.preserve_node_meta())  # else the nodes would not get it
            stack.enter_context(torch.fx.traceback.annotate({PRAGMA: device}))
        jax: Any = sys.modules.get("jax")
        if jax is not None and hasattr(jax, "named_scope"):
            stack.enter_context(jax.named_scope(name))
        yield
