"""The constraint system: what the rules of `constraints` write and the solver reads.

**Nodes.** Every value with a scope has a node (see `domains`): an operation that executes has one node for
itself and its results; function arguments, results and values carried by control flow have one each.

**Edges.** A use of a value is an edge from the value's node to the node of where it is used. An edge says
"these should be one scope"; where they are not, the value is copied. How hard planning tries is the edge's kind:

* `FIRM`: TVM's rule. Both ends are one scope unless demands elsewhere forbid it.
* `BOUNDARY`: into or out of a loop. As firm, but decided after all firm edges, so that what happens inside the
  loop decides where a carried value lives.
* `LOOSE`: next to a placed operation (one that carries ``device.scope``, or stands in a frame that does), out
  of a body-only ``device.on_device``, or at an argument or result that is pinned to the host. Never tried: a
  copy is expected here, and an annotation never drags its neighbours along.
* `FREE`: through a ``device.on_device`` that constrains nothing. Tried once; taken back when it fails.

Uses of buffers and function values are no edges: no copy can stand for them, so both ends are made one at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from xdsl.dialects.builtin import FunctionType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from devscope.dialects.device import SCOPE_ATTR, ScopeAttr
from devscope.dialects.location import source_location
from devscope.dialects.names import op_name
from devscope.errors import PlanError
from devscope.passes.placed_types import FUNCTION, HOST, TENSOR, kind_of
from devscope.passes.plan.blocks import Dominators
from devscope.passes.plan.domains import HOST_NODE, Clash, Domains, Reason
from devscope.passes.plan.scopes import OPEN, ScopeTable

REMATERIALISED = -2
"""In place of a node, for values that are computed again on every scope that needs them, never copied."""

FIRM, BOUNDARY, LOOSE, FREE = range(4)
"""Kinds of edges."""

PLAIN, PLACED, ANNOTATED, CARRIED_OUT, NOT_COMPUTED, HEADER = 0, 1, 2, 4, 8, 16
"""Flags of nodes.

* `PLACED`: all its edges are loose.
* `ANNOTATED`: a body-only ``device.on_device``; its edges are loose, except to a ``func.return``: an annotated
  result fixes the function's result (TVM's rewrite of top-level annotations).
* `CARRIED_OUT`: a loop's result; its edges are boundaries.
* `HEADER`: an argument of a block that begins a loop; its edges to uses outside the loop are boundaries.
* `NOT_COMPUTED`: an argument, a carried value or a copy. An annotation of it that cannot hold means "a copy of
  it there"; on a computed value it is an error, since one operation cannot execute on two scopes.
"""


class Edge(NamedTuple):
    """A use of a value: operand number ``operand`` of ``op``."""

    src: int
    dst: int
    op: Operation
    operand: int
    kind: int


class RematUse(NamedTuple):
    """A use of a rematerialised value on the scope of node ``dst``."""

    dst: int
    op: Operation
    operand: int


class Frame(NamedTuple):
    """An operation with regions whose ``device.scope`` holds for everything inside without its own."""

    scope: int
    op: Operation


@dataclass
class Signature:
    """The nodes of a function's arguments and results, and the function as a value."""

    op: FuncOp
    arguments: list[int]
    results: list[int]
    node: int
    has_plan: bool
    """Whether the body is planned: there is one, and nobody else (an external compiler) owns it."""
    frame: Frame | None = None
    """What the function itself says about its body."""
    executed: range = range(0)
    remats: range = range(0)
    """The operations of the body, as indices into `System.executed` and `System.remats`."""


@dataclass
class System:
    """Constraints of one module. Rules add to it; nothing in it changes the module."""

    host: ScopeAttr
    default: ScopeAttr
    scopes: ScopeTable = field(default_factory=ScopeTable)
    edges: list[Edge] = field(default_factory=list[Edge])
    remat_uses: list[RematUse] = field(default_factory=list[RematUse])
    remats: list[Operation] = field(default_factory=list[Operation])
    remat_scopes: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    """Rematerialised values that stand on a scope in the input."""
    executed: list[tuple[Operation, int]] = field(default_factory=list[tuple[Operation, int]])
    """Operations that have a scope, with its node, in the order of the walk."""
    annotated: list[Operation] = field(default_factory=list[Operation])
    """Operations that carry ``device.scope`` in the input."""
    transparent: list[Operation] = field(default_factory=list[Operation])
    """``on_device`` and ``region``: identities that planning consumes."""
    copies: list[Operation] = field(default_factory=list[Operation])
    """``device_copy`` operations of the input."""
    origins: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """Results of transparent operations, and the values they stand for."""
    signatures: dict[str, Signature] = field(default_factory=dict[str, Signature])
    slots: dict[Region, list[int]] = field(default_factory=dict[Region, list[int]])
    """What the operands of a region's terminator flow to."""
    graphs: dict[Region, Dominators] = field(default_factory=dict[Region, Dominators])
    """The control flow of every region of several blocks."""
    remarks: list[str] = field(default_factory=list[str])
    frame: Frame | None = None
    function: Signature | None = None

    def __post_init__(self) -> None:
        self.domains = Domains(self.scopes)
        self.nodes: dict[SSAValue, int] = {}
        self.flags: list[int] = []
        self.host_scope = self.scopes.number(self.host)
        self._unknown_names: set[str] = set()
        self._undefined: dict[SSAValue, int] = {}

    # Nodes

    def new(self, flags: int = PLAIN, computes: bool = False) -> int:
        self.flags.append(flags)
        return self.domains.new(computes)

    def new_function(self, arguments: Iterable[int], results: Iterable[int]) -> int:
        self.flags.append(PLAIN)
        return self.domains.new_function(tuple(arguments), tuple(results))

    def fresh(self, type_: Attribute, flags: int = NOT_COMPUTED) -> int:
        """A node for any value of this type; `HOST_NODE` for those on the host by type."""
        kind = kind_of(type_)
        if kind == HOST:
            return HOST_NODE
        if kind != FUNCTION:
            return self.new(flags)
        assert isinstance(type_, FunctionType)
        arguments = [self.fresh(argument, flags) for argument in type_.inputs]
        return self.new_function(arguments, [self.fresh(result, flags) for result in type_.outputs])

    def demanded(self, scope: int, reason: Reason, flags: int = PLAIN) -> int:
        """A fresh node that must be on ``scope``."""
        node = self.new(flags)
        self.domains.demand(node, scope, reason)
        return node

    def node_of(self, value: SSAValue) -> int:
        """The node of a value, `HOST_NODE` or `REMATERIALISED`."""
        node = self.nodes.get(value)
        if node is None:
            node = HOST_NODE if kind_of(value.type) == HOST else self._forward(value)
        return node

    def define(self, value: SSAValue, node: int) -> None:
        """Give a value its node. Values on the host by type need none."""
        if node == HOST_NODE:
            return
        self.nodes[value] = node
        if self._undefined and (early := self._undefined.pop(value, None)) is not None and node >= 0:
            self.domains.link(early, node, ("same", None, 0))

    def _forward(self, value: SSAValue) -> int:
        """A node for a value that is used before the walk meets its definition, as unreachable blocks may."""
        node = self.nodes[value] = self._undefined[value] = self.fresh(value.type)
        return node

    def root(self, value: SSAValue) -> SSAValue:
        """The value that ``value`` stands for, through annotations and frames."""
        while (origin := self.origins.get(value)) is not None:
            value = origin
        return value

    def final(self, node: int) -> int:
        """The number of the scope of a node's class; closed once planning is complete."""
        return self.domains.scope[self.domains.find(node)]

    # Scopes

    def scope_number(self, attribute: Attribute, op: Operation) -> int:
        if not isinstance(attribute, ScopeAttr):
            raise PlanError(
                f"'{SCOPE_ATTR}' on '{op_name(op)}' is not a scope: {attribute}",
                source_location(op),
                ['a scope is written #device.scope<"opencl", 0 : i64, "", "">'],
            )
        return self.scopes.number(attribute)

    def placement(self, op: Operation) -> tuple[int, Reason] | None:
        """The scope that ``op`` was placed on by itself or the nearest frame, and why."""
        attribute = op.attributes.get(SCOPE_ATTR)
        if attribute is not None and (scope := self.scope_number(attribute, op)) != OPEN:
            return scope, ("attribute", op, 0)
        return (self.frame.scope, ("frame", self.frame.op, 0)) if self.frame is not None else None

    def require(self, node: int, scope: int, reason: Reason) -> None:
        """Demand a scope of every part of a node. Raises `Clash`."""
        for part in self.domains.first_order(node):
            if not self.domains.demand(part, scope, reason):
                raise Clash(part, self.demanded(scope, reason), reason)

    # Uses

    def use(
        self, op: Operation, index: int, value: SSAValue, dst: int, kind: int = FIRM, returns: bool = False
    ) -> None:
        """Operand ``index`` of ``op``, which is ``value``, is used on the scope of ``dst``. Raises `Clash`."""
        src = self.node_of(value)
        if HOST_NODE in (src, dst):
            return
        if src == REMATERIALISED:
            self.remat_uses.append(RematUse(dst, op, index))
        elif kind_of(value.type) != TENSOR:
            self.domains.link(src, dst, ("use", op, index))
        else:
            flags = self.flags[src] | self.flags[dst]
            if flags:
                kind = _edge_kind(flags, kind, returns)
                if kind == FIRM and flags & HEADER and self._leaves_loop(value, op):
                    kind = BOUNDARY
            self.edges.append(Edge(src, dst, op, index, kind))

    def is_outside(self, header: Block, op: Operation) -> bool:
        """Whether ``header`` begins a loop in its region that ``op`` is outside of."""
        region = header.parent
        graph = self.graphs.get(region) if region is not None else None
        if graph is None or not graph.is_header(header):
            return False
        inside: Operation | None = op
        while inside is not None and inside.parent_region() is not region:
            inside = inside.parent_op()
        return inside is None or inside.parent is None or not graph.in_loop(header, inside.parent)

    def _leaves_loop(self, value: SSAValue, op: Operation) -> bool:
        """Whether ``value`` is carried by a loop of blocks, and ``op`` is outside of that loop."""
        owner = value.owner
        return isinstance(owner, Block) and self.is_outside(owner, op)

    def remark_unknown(self, op: Operation, name: str) -> None:
        """Say once per name that an operation is planned by the rule for unknown ones."""
        if name not in self._unknown_names:
            self._unknown_names.add(name)
            where = source_location(op)
            self.remarks.append(
                f"{where or '<unknown>'}: remark: no planning rule for '{name}'; "
                "all its operands and results are put on one scope"
            )


def _edge_kind(flags: int, kind: int, returns: bool) -> int:
    if flags & PLACED or (flags & ANNOTATED and not returns):
        return LOOSE
    return BOUNDARY if flags & CARRIED_OUT and kind == FIRM else kind
