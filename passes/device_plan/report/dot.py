"""The plan as a graph for Graphviz: a cluster per function, a colour per scope, copies as labelled edges."""

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from devscope.analysis.scope_analysis import ScopeAnalysis
from devscope.analysis.value_flow import planned_operations
from devscope.analysis.value_kinds import HOST, byte_size, kind_of
from devscope.dialects.device import DeviceCopyOp
from devscope.dialects.names import op_name
from devscope.dialects.op_facts import facts_of
from devscope.passes.device_plan.report.plan import Plan

_COLOURS = (
    "#e8e8e8", "#a6cee3", "#fdbf6f", "#b2df8a", "#cab2d6", "#fb9a99", "#ffff99", "#8dd3c7", "#d9b38c", "#9ecae1",
)  # fmt: skip
"""Fill colours of scopes, in the order of first appearance; the first is grey, for the host mostly."""


def dot_text(plan: Plan, module: ModuleOp) -> str:
    """A planned module as one directed graph in the DOT language.

    Nodes are arguments, operations that touch data, and control flow. Edges are the data that flows; a copy is one
    edge, with the scopes, how often it runs and the number of bytes on it. What the regions of an operation do
    that runs as a whole belongs to that operation.
    """
    return "\n".join(_Graph(plan, module).lines()) + "\n"


class _Graph:
    def __init__(self, plan: Plan, module: ModuleOp) -> None:
        self._plan, self._module = plan, module
        self._scopes = {p.operation: p.scope.short() for p in plan.placements}
        self._analysis = ScopeAnalysis(module)
        self._numbers: dict[Operation | SSAValue, str] = {}
        self._colours: dict[str, str] = {}
        self._users: dict[Operation, Operation | None] = {}

    def lines(self) -> Iterator[str]:
        yield "digraph plan {"
        yield "  rankdir=TB; compound=true; fontname=Helvetica;"
        yield "  node [shape=box, style=filled, fillcolor=white, fontname=Helvetica];"
        yield "  edge [fontname=Helvetica];"
        for number, func in enumerate(op for op in self._module.ops if isinstance(op, FuncOp)):
            yield from self._function(func, number)
        yield from self._legend()
        yield "}"

    def _function(self, func: FuncOp, number: int) -> Iterator[str]:
        yield f"  subgraph cluster_{number} {{"
        yield f"    label={_quoted(f'@{func.sym_name.data}')};"
        edges: list[str] = []
        for block in func.body.blocks:
            for argument in block.args:
                if kind_of(argument.type) != HOST:
                    yield f"    {self._argument(argument)}"
        for op in planned_operations(func):
            if isinstance(op, DeviceCopyOp):
                if self._user(op) is None:
                    yield f'    {self._number(op)} [shape=point, label=""];'
                    edges.append(f"    {self._copy(op, op)}")
                continue
            if not _touches_data(op):
                continue
            yield f"    {self._operation(op)}"
            edges += (f"    {edge}" for edge in (*self._edges(op), *self._onward(op)))
        yield from edges
        yield "  }"

    def _argument(self, value: BlockArgument) -> str:
        label = f"{self._plan.formatter.value(value)}\n{value.type}"
        return self._node(value, label, self._analysis.of_value(value).short(), "shape=ellipse, ")

    def _operation(self, op: Operation) -> str:
        results = [self._plan.names.name(value) for value in op.results]
        names = ", ".join(name for name in results if name is not None)
        label = f"{names} = {op_name(op)}" if names else op_name(op)
        scope = self._scopes.get(op)
        if scope is None:
            return self._node(op, label, None, "shape=box, style=dashed, ")
        return self._node(op, label, scope)

    def _node(self, key: Operation | SSAValue, label: str, scope: str | None, style: str = "") -> str:
        colour = f", fillcolor={_quoted(self._colour(scope))}" if scope is not None else ""
        tip = f", tooltip={_quoted(scope)}" if scope is not None else ""
        return f"{self._number(key)} [{style}label={_quoted(label)}{colour}{tip}];"

    def _edges(self, op: Operation) -> Iterator[str]:
        users = [op] if facts_of(op).is_entered else list(op.walk())
        seen: set[SSAValue] = set()
        for user in users:
            for value in user.operands:
                if kind_of(value.type) == HOST or value in seen or op.is_ancestor(value.owner):
                    continue
                seen.add(value)
                yield self._edge(value, op)

    def _onward(self, op: Operation) -> Iterator[str]:
        """From the end of a block to what carries its data on: the operation around it, or other blocks."""
        parent = op.parent_op()
        if parent is not None and facts_of(parent).is_entered and op.next_op is None and not op.successors:
            yield f"{self._number(op)} -> {self._number(parent)} [style=dashed, constraint=false];"
        for block in op.successors:
            for value in block.args:
                if kind_of(value.type) != HOST and isinstance(parent, FuncOp):
                    yield f"{self._number(op)} -> {self._number(value)};"

    def _edge(self, value: SSAValue, op: Operation) -> str:
        owner = value.owner
        if isinstance(owner, DeviceCopyOp) and self._user(owner) is op:
            return self._copy(owner, op)
        return f"{self._number(self._source(value))} -> {self._number(op)};"

    def _copy(self, copy: DeviceCopyOp, into: Operation) -> str:
        """The one edge of a copy: to what uses it or, where that is not one operation, to a point."""
        size, often = byte_size(copy.operand.type), str(self._plan.repetitions.of(copy))
        amount = f"{size:,} bytes" if size is not None else "dynamic size"
        label = f"{copy.src.short()} -> {copy.dst.short()}{often and f', {often}'}\n{amount}"
        attributes = f"label={_quoted(label)}, color=red, fontcolor=red, penwidth=2"
        return f"{self._number(self._source(copy.operand))} -> {self._number(into)} [{attributes}];"

    def _user(self, copy: DeviceCopyOp) -> Operation | None:
        """The operation of the graph that alone uses a copy, if there is one."""
        if copy not in self._users:
            users = {self._analysis.computation(use.operation) for use in copy.result.uses}
            alone = users.pop() if len(users) == 1 else None
            self._users[copy] = None if isinstance(alone, DeviceCopyOp) else alone
        return self._users[copy]

    def _source(self, value: SSAValue) -> Operation | SSAValue:
        """The node that a value comes out of: what a loop or branch carries comes out of that operation."""
        owner = value.owner
        if isinstance(owner, Operation):
            return owner
        parent = owner.parent_op()
        return value if parent is None or isinstance(parent, FuncOp) else parent

    def _number(self, key: Operation | SSAValue) -> str:
        return self._numbers.setdefault(key, f"n{len(self._numbers)}")

    def _colour(self, scope: str) -> str:
        return self._colours.setdefault(scope, _COLOURS[len(self._colours) % len(_COLOURS)])

    def _legend(self) -> Iterator[str]:
        yield "  subgraph cluster_legend {"
        yield '    label="scopes";'
        for number, (scope, colour) in enumerate(self._colours.items()):
            yield f"    legend{number} [label={_quoted(scope)}, fillcolor={_quoted(colour)}];"
        yield "  }"


def _touches_data(op: Operation) -> bool:
    return any(kind_of(value.type) != HOST for value in (*op.operands, *op.results)) or any(
        kind_of(value.type) != HOST for inner in op.walk() for value in inner.operands
    )


def _quoted(text: str) -> str:
    r"""A string of the DOT language. Only ``"`` and ``\`` need escapes; ``\n`` breaks lines."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
