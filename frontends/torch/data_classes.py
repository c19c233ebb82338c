"""Data classes that PyTorch was not told of: as they are, it can neither take nor give them."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import torch

pytree: Any = importlib.import_module("torch.utils._pytree")


@contextmanager
def data_classes(module: torch.nn.Module, *arguments: Any) -> Generator[None]:
    """While it is entered, PyTorch takes apart those among ``arguments`` and in the result of ``module``.

    Which are in the result is known once ``forward`` has run, and before PyTorch looks at what it returned.
    """
    added: list[type] = []

    def add(value: Any) -> None:
        for leaf in pytree.tree_leaves(value):
            if not dataclasses.is_dataclass(leaf) or isinstance(leaf, type):
                continue
            kind = type(leaf)
            if kind not in pytree.SUPPORTED_NODES:
                pytree.register_dataclass(kind, serialized_type_name=f"devscope.{id(kind)}")
                added.append(kind)
            for part in dataclasses.fields(leaf):
                add(getattr(leaf, part.name))

    def add_result(_: torch.nn.Module, __: Any, result: Any) -> None:
        add(result)

    hook = module.register_forward_hook(add_result)
    try:
        add(arguments)
        yield
    finally:
        hook.remove()
        for kind in added:
            pytree._deregister_pytree_node(kind)
