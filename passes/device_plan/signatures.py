"""Functions and their uses, as the constraint system sees them: nodes for arguments and results."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from devscope.analysis.symbols import has_foreign_body
from devscope.passes.device_plan.domains import Domains
from devscope.passes.device_plan.scope_table import OPEN

Assignment: TypeAlias = tuple[int, ...]
"""A scope for every first-order node of a function's signature: arguments, then results."""


class Frame(NamedTuple):
    """An operation with regions whose ``device.scope`` holds for everything inside without its own."""

    scope: int
    op: Operation


class InstanceRequest(NamedTuple):
    """What a use of a function chose for its signature."""

    name: str
    assignment: Assignment
    op: Operation | None
    """The call or ``func.constant``; None for a declaration."""
    frame: int = OPEN
    """The scope that the call was placed on, and with it what its function does."""

    @property
    def key(self) -> tuple[str, Assignment, int]:
        """Requests with one key get one instance of the function."""
        return self.name, self.assignment, self.frame


@dataclass
class Signature:
    """The nodes of a function's arguments and results, and the function as a value."""

    op: FuncOp
    arguments: list[int]
    results: list[int]
    node: int
    frame: Frame | None = None
    """What the function itself says about its body."""
    executed: Sequence[tuple[Operation, int]] = ()
    remats: Sequence[Operation] = ()
    """The operations of the body, of `System.executed` and `System.remats`."""


class CallSite(NamedTuple):
    """A use of a function by name, with the nodes that its signature has there."""

    op: Operation
    name: str
    signature: Signature
    frame: int
    """The scope that the call was placed on."""


def positions_of(domains: Domains, signature: Signature) -> list[int]:
    """Per first-order node of a signature, what it belongs to: argument ``i`` is ``i``, result ``j`` is ``~j``."""
    return [
        position
        for nodes, sign in ((signature.arguments, 1), (signature.results, -1))
        for index, node in enumerate(nodes)
        for position in [index if sign > 0 else ~index] * len(domains.first_order(node))
    ]


def has_plan(func: FuncOp) -> bool:
    """Whether the body is planned: there is one, and nobody else owns it."""
    return bool(func.body.blocks) and not has_foreign_body(func)
