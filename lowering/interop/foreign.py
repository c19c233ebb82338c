"""The class of operations that xDSL does not know, or whose definition there is out of date."""

from __future__ import annotations

from functools import cache

from xdsl.dialects.builtin import UnregisteredOp
from xdsl.ir import Operation
from xdsl.traits import IsolatedFromAbove, IsTerminator, NoTerminator, OpTrait

_RESTRICTING = (IsolatedFromAbove, IsTerminator, NoTerminator)
"""Traits that forbid more than they permit to a pass that moves, merges or folds operations."""


@cache
def foreign_class(name: str) -> type[Operation]:
    """The class of unregistered operations ``name``: an `UnregisteredOp` that admits only to restricting traits.

    xDSL's own claims every trait. Its passes then take it for a constant, for one, and move it out of the loop
    that computes its operands.
    """

    class ForeignOp(UnregisteredOp.with_name(name)):
        @classmethod
        def has_trait(cls, trait: type[OpTrait] | OpTrait, *, value_if_unregistered: bool = True) -> bool:
            kind = trait if isinstance(trait, type) else type(trait)
            return value_if_unregistered and issubclass(kind, _RESTRICTING)

    return ForeignOp
