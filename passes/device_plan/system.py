"""The constraint system: what the rules of `rules` write and the solver reads.

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

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from xdsl.dialects.builtin import FunctionType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, Region, SSAValue

from devscope.analysis.dominance import Dominators
from devscope.analysis.value_kinds import FUNCTION, HOST, TENSOR, kind_of, memory_space_of
from devscope.dialects.device import SCOPE_ATTR, ScopeAttr
from devscope.dialects.location import source_location
from devscope.dialects.names import op_name
from devscope.errors import PlanError
from devscope.passes.device_plan.domains import (
    ANNOTATED,
    CARRIED_OUT,
    FIXED,
    HEADER,
    HOST_NODE,
    INDIRECT,
    NOT_COMPUTED,
    PLACED,
    PLAIN,
    REMATERIALISED,
    UNMOVABLE,
    Conflict,
    Domains,
    Reason,
)
from devscope.passes.device_plan.edges import BOUNDARY, FIRM, LOOSE, Edge, Edges, SoftConstraint
from devscope.passes.device_plan.remarks import Remark
from devscope.passes.device_plan.scope_table import OPEN, ScopeTable
from devscope.passes.device_plan.signatures import CallSite, Frame, Signature

Seconds: TypeAlias = Sequence[float]
"""A time per device of a machine; empty where nobody counts."""


@dataclass(eq=False)
class System:
    """Constraints of one unit of the call graph. Rules add to it; nothing in it changes the module."""

    host: ScopeAttr
    default: ScopeAttr
    find_signature: Callable[[System, str, Operation], Signature | None]
    """The signature of a function of another unit, for its use by an operation; None when there is no such one."""
    scopes: ScopeTable = field(default_factory=ScopeTable)
    remat_uses: list[Edge] = field(default_factory=list[Edge])
    """Uses of rematerialised values."""
    remats: list[Operation] = field(default_factory=list[Operation])
    remat_scopes: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    """Rematerialised values that stand on a scope in the input."""
    executed: list[tuple[Operation, int]] = field(default_factory=list["tuple[Operation, int]"])
    """Operations that have a scope, and its node, in the order of the walk."""
    annotated: list[Operation] = field(default_factory=list[Operation])
    """Operations that carry ``device.scope`` in the input."""
    transparent: list[Operation] = field(default_factory=list[Operation])
    """``on_device`` and ``region``: identities that planning consumes."""
    copies: list[Operation] = field(default_factory=list[Operation])
    """``device_copy`` operations of the input."""
    origins: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """Results of transparent operations, and the values they stand for."""
    signatures: dict[str, Signature] = field(default_factory=dict[str, Signature])
    """The functions of the unit, by the names that its calls use."""
    externals: dict[str, Signature] = field(default_factory=dict[str, Signature])
    """Declarations that the unit uses: one signature for all uses."""
    sites: list[CallSite] = field(default_factory=list[CallSite])
    """Every use of a function with a body, in the order of the walk."""
    soft_constraints: list[SoftConstraint] = field(default_factory=list[SoftConstraint])
    imported: dict[int, tuple[System, int]] = field(default_factory=dict[int, "tuple[System, int]"])
    """Nodes of calls, and the nodes of the called function's system that they stand for."""
    imported_seconds: list[tuple[int, Operation, Seconds]] = field(
        default_factory=list["tuple[int, Operation, Seconds]"]
    )
    """What executes in called functions where a node of a call is, and the call."""
    yield_targets: dict[Region, list[int]] = field(default_factory=dict[Region, list[int]])
    """What the operands of a region's terminator flow to."""
    graphs: dict[Region, Dominators] = field(default_factory=dict[Region, Dominators])
    """The control flow of every region of several blocks."""
    remarks: list[Remark] = field(default_factory=list[Remark])
    unknown_names: set[str] = field(default_factory=set[str])
    """Operations without a rule that were remarked upon."""
    errors: list[PlanError] = field(default_factory=list[PlanError])
    """What is wrong with the program, besides the conflicts of `Domains`."""
    choices: dict[int, Reason] = field(default_factory=dict[int, Reason])
    """How completion chose scopes: per node whose class no demand gave a device, if not by default."""
    completed_unions: int | None = None
    """How many unions there were when completion ended: later ones refine, and explain no placement."""
    summarised: tuple[int, int] | None = None
    """How many unions and demands there were when callers got to know the functions."""
    frame: Frame | None = None
    function: Signature | None = None

    def __post_init__(self) -> None:
        self.domains = Domains(self.scopes)
        self.edges: Edges = self.domains.edges
        self.nodes: dict[SSAValue, int] = {}
        """Per value with a scope, its node or `REMATERIALISED`."""
        self.flags = self.domains.flags
        self.host_scope = self.scopes.number(self.host)
        self.undefined: dict[SSAValue, int] = {}
        """Values that were used before the walk met their definition, with the nodes they got."""

    # Nodes

    def fresh(self, type_: Attribute, flags: int = NOT_COMPUTED) -> int:
        """A node for any value of this type; `HOST_NODE` for those on the host by type."""
        kind = kind_of(type_)
        if kind == HOST:
            return HOST_NODE
        if kind != FUNCTION:
            return self.domains.new(flags if kind == TENSOR else flags | UNMOVABLE)
        assert isinstance(type_, FunctionType)
        arguments = [self.fresh(argument, flags) for argument in type_.inputs]
        return self.domains.new_function(arguments, [self.fresh(result, flags) for result in type_.outputs])

    def demanded(self, scope: int, reason: Reason, flags: int = PLAIN) -> int:
        """A fresh node that must be on ``scope``."""
        node = self.domains.new(flags)
        self.domains.demand(node, scope, reason)
        return node

    def signature_of(self, name: str, op: Operation, frame: int = OPEN) -> Signature | None:
        """The signature of a function for its use by ``op``.

        Functions of the unit and declarations have one for all uses, others a new one for each. ``frame`` is the
        scope that ``op`` was placed on.
        """
        signature = self.signatures.get(name)
        if signature is None:
            signature = self.find_signature(self, name, op)
        if signature is not None and name not in self.externals:
            self.sites.append(CallSite(op, name, signature, frame))
        return signature

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
        if node >= 0 and kind_of(value.type) != TENSOR:
            self.flags[node] |= UNMOVABLE
            self._agree_with_type(value, node)
        self.nodes[value] = node
        if self.undefined and (early := self.undefined.pop(value, None)) is not None and node >= 0:
            self.domains.link(early, node, ("same", None, 0))

    def _agree_with_type(self, value: SSAValue, node: int) -> None:
        """A buffer is in the memory that its type names. A cast between memories changes no more than the type."""
        space = memory_space_of(value.type)
        if space is None:
            return
        op = value.owner if isinstance(value.owner, Operation) else value.owner.parent_op()
        if op is not None and op_name(op) != "memref.memory_space_cast":
            assert isinstance(value, OpResult | BlockArgument)
            self.require(node, self.scopes.number(space), ("memory_space", op, value.index))

    def _forward(self, value: SSAValue) -> int:
        """A node for a value that is used before the walk meets its definition, as unreachable blocks may."""
        node = self.nodes[value] = self.undefined[value] = self.fresh(value.type)
        return node

    def representative(self, node: int) -> int:
        """The first-order node that an attribute speaks of: a function value's first result, else argument."""
        function = self.domains.functions.get(node)
        if function is None:
            return node
        parts = (part for side in (function.results, function.arguments) for part in side)
        return next((first for part in parts for first in self.domains.first_order(part)), HOST_NODE)

    def root(self, value: SSAValue) -> SSAValue:
        """The value that ``value`` stands for, through annotations and frames."""
        while (origin := self.origins.get(value)) is not None:
            value = origin
        return value

    # Scopes

    def scope_number(self, attribute: Attribute, op: Operation) -> int:
        if not isinstance(attribute, ScopeAttr):
            text = f"'{SCOPE_ATTR}' on '{op_name(op)}' is not a scope: {attribute}"
            note = 'a scope is written #device.scope<"opencl", 0 : i64, "", "">'
            self.errors.append(PlanError(text, source_location(op), [note]))
            return OPEN
        return self.scopes.number(attribute)

    def placement(self, op: Operation, kind: str = "attribute") -> tuple[int, Reason] | None:
        """The scope that ``op`` was placed on by itself, which is a reason of this kind, or the nearest frame."""
        attribute = op.attributes.get(SCOPE_ATTR) if op.attributes else None
        if attribute is not None and (scope := self.scope_number(attribute, op)) != OPEN:
            return scope, (kind, op, 0)
        frame = self.frame
        if frame is None:
            return None
        return frame.scope, ("called" if frame.op.name == "func.call" else "frame", frame.op, 0)

    def call_placement(self, op: Operation) -> tuple[int, Reason] | None:
        """As `placement`, for calls. What a function says of its body does not speak of the functions it calls."""
        placement = self.placement(op, "on_call")
        return None if placement is not None and isinstance(placement[1][1], FuncOp) else placement

    def require(self, node: int, scope: int, reason: Reason) -> None:
        """Demand a scope of every part of a node; where it cannot be, that is a conflict."""
        for part in self.domains.first_order(node):
            if not self.domains.demand(part, scope, reason):
                self.domains.conflicts.append(Conflict(part, self.demanded(scope, reason), reason))

    # Uses

    def use(
        self, op: Operation, index: int, value: SSAValue, dst: int, kind: int = FIRM, returns: bool = False
    ) -> None:
        """Operand ``index`` of ``op``, which is ``value``, is used on the scope of ``dst``."""
        src = self.node_of(value)
        if src != HOST_NODE and dst != HOST_NODE:
            self.connect(op, index, value, src, dst, kind, returns)

    def connect(
        self,
        op: Operation,
        index: int,
        value: SSAValue,
        src: int,
        dst: int,
        kind: int = FIRM,
        returns: bool = False,
    ) -> None:
        """`use` of a value whose node is ``src``, for callers that know it. Neither is `HOST_NODE`."""
        if src == REMATERIALISED:
            self.remat_uses.append(Edge(REMATERIALISED, dst, op, index, kind))
            return
        source_flags = self.flags[src]
        flags = source_flags | self.flags[dst]
        if not flags:
            self.edges.add(src, dst, op, index, kind)
            return
        if source_flags & UNMOVABLE and kind_of(value.type) != TENSOR:
            self.domains.link(src, dst, ("use", op, index))
            return
        kind = _edge_kind(flags, kind, returns)
        if kind == FIRM and flags & HEADER and isinstance(value.owner, Block) and self.is_outside(value.owner, op):
            kind = BOUNDARY
        number = self.edges.add(src, dst, op, index, kind)
        if source_flags & INDIRECT:
            self.edges.indirect.append(number)
        if source_flags & FIXED and kind == FIRM:
            self.domains.unify_edge(number)

    def is_outside(self, header: Block, op: Operation) -> bool:
        """Whether ``header`` begins a loop in its region that ``op`` is outside of."""
        region = header.parent
        graph = self.graphs.get(region) if region is not None else None
        if region is None or graph is None or header not in graph.loops[header]:
            return False
        inside = region.find_ancestor_block_in_region(op.parent) if op.parent is not None else None
        return inside is None or header not in graph.loops[inside]


def _edge_kind(flags: int, kind: int, returns: bool) -> int:
    if flags & PLACED or (flags & ANNOTATED and not returns):
        return LOOSE
    return BOUNDARY if flags & CARRIED_OUT and kind == FIRM else kind
