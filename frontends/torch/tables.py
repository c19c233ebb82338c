"""Tables of decompositions: a function for each overload of an operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Decomposition = Callable[..., Any]

MASKS = (torch.bool, torch.uint8)
"""The types of indices that are masks."""


class Table(dict[Any, Decomposition]):
    """A function that returns NotImplemented leaves the operation as it is."""

    def of(self, *overloads: Any) -> Callable[[Decomposition], Decomposition]:
        """Decorates the decomposition of ``overloads``."""

        def register(function: Decomposition) -> Decomposition:
            self.update(dict.fromkeys(overloads, function))
            return function

        return register
