"""Rules for operations that compute on data, look at it or alias it. `rules` says which is whose."""

from collections.abc import Container, Iterator

from xdsl.dialects.builtin import MemRefType, NoneAttr, TensorType
from xdsl.ir import Operation, SSAValue

from devscope.analysis.symbols import callee_name
from devscope.analysis.value_kinds import FUNCTION, HOST, TENSOR, kind_of
from devscope.dialects.device import SCOPE_ATTR
from devscope.dialects.location import source_location
from devscope.dialects.names import op_name
from devscope.errors import PlanError
from devscope.passes.device_plan.domains import HOST_NODE, NOT_COMPUTED, PLACED, PLAIN, REMATERIALISED
from devscope.passes.device_plan.edges import FIRM
from devscope.passes.device_plan.system import System

NOTHING: frozenset[int] = frozenset()


def host(system: System, op: Operation) -> None:
    """Executes on the host: scalars only, or control flow. No constraints."""


def compute(system: System, op: Operation, host_operands: Container[int] = NOTHING) -> None:
    """One scope for all operands and results; operands in ``host_operands`` (shapes, sizes) on the host.

    Values captured by the operation's regions belong to the operation. What its regions define is the
    operation's own business and not planned. An operation that touches no data is the host's.
    """
    nodes, flags, node, plain = system.nodes, system.flags, HOST_NODE, False
    edges = system.edges
    for index, value in enumerate(op._operands):  # pyright: ignore[reportPrivateUsage]
        source = nodes.get(value)
        if source is None:
            source = system.node_of(value)
            if source == HOST_NODE:
                continue
        if host_operands and index in host_operands:
            shape = system.demanded(system.host_scope, ("shape", op, index), NOT_COMPUTED)
            system.connect(op, index, value, source, shape)
        else:
            if node == HOST_NODE:
                node = execution(system, op)
                plain = not flags[node]
            if plain and source >= 0 and not flags[source]:
                edges.src.append(source)  # as `Edges.add` without the call: most edges are made here
                edges.dst.append(node)
                edges.op.append(op)
                edges.operand.append(index)
                edges.kind.append(FIRM)
            else:
                system.connect(op, index, value, source, node)
    for result in op.results:
        type_ = result.type
        kind = TENSOR if type_.__class__ is TensorType else kind_of(type_)
        if kind == HOST:
            continue
        if node == HOST_NODE:
            node = execution(system, op)
        if kind == TENSOR and not system.undefined:
            nodes[result] = node
        else:
            _define(system, op, result, kind, node)
    if op.regions:
        _capture(system, op, node)


def _define(system: System, op: Operation, result: SSAValue, kind: int, node: int) -> None:
    """A result that is computed on ``node``. A function value has a node of its own, which is there too."""
    system.define(result, node)
    if kind == FUNCTION:
        function = system.nodes[result] = system.fresh(result.type)
        system.domains.link(function, node, ("same", op, 0))


def execution(system: System, op: Operation) -> int:
    """The node of an operation that executes. Where the user placed it, its edges are loose."""
    placement = system.placement(op) if op.attributes or system.frame is not None else None
    if placement is None:
        node = system.domains.new(PLAIN, True)
    else:
        node = system.domains.new(PLACED, True)
        system.domains.demand(node, *placement)
    system.executed.append((op, node))
    return node


def _capture(system: System, op: Operation, node: int) -> None:
    """The values that the regions of ``op`` use from outside are used by ``op``."""
    for inner in _nested(op):
        for index, value in enumerate(inner.operands):
            if value in system.nodes:
                node = node if node != HOST_NODE else execution(system, op)
                system.use(inner, index, value, node)


def loop_body(system: System, op: Operation) -> None:
    """A parallel loop: one scope for it, its operands and results, and everything in its body.

    A ``device.scope`` in the body counts for the whole loop, and a function called there runs on its scope.
    """
    compute(system, op)
    last, node = system.executed[-1] if system.executed else (None, HOST_NODE)
    if last is not op:
        return
    for inner in _nested(op):
        name = op_name(inner)
        if name.startswith("device."):
            raise PlanError(
                f"'{name}' inside '{op_name(op)}': a parallel loop runs on one scope as a whole",
                source_location(inner),
                [f"put {SCOPE_ATTR} on the '{op_name(op)}' or move '{name}' out of it"],
            )
        if (attribute := inner.attributes.get(SCOPE_ATTR)) is not None:
            system.annotated.append(inner)
            system.require(node, system.scope_number(attribute, inner), ("attribute", inner, 0))
        callee = callee_name(inner)
        if callee is not None and (signature := system.signature_of(callee, inner)) is not None:
            system.domains.link(signature.node, node, ("body_call", inner, 0))


def _nested(op: Operation) -> Iterator[Operation]:
    """Every operation inside ``op``, at any depth."""
    stack = [block for region in op.regions for block in region.blocks]
    while stack:
        for inner in stack.pop().ops:
            yield inner
            stack += (block for region in inner.regions for block in region.blocks)


def view(system: System, op: Operation, host_operands: Container[int] = NOTHING, source: int = 0) -> None:
    """An alias of operand 0, its source: it moves no data, so unless the user placed it, it is there."""
    if system.placement(op) is not None or not op.operands:
        compute(system, op, host_operands)
        return
    node = system.node_of(op.operands[source])
    if node == REMATERIALISED and all(i == source or kind_of(v.type) == HOST for i, v in enumerate(op.operands)):
        _mark_rematerialised(system, op)
    elif node in (HOST_NODE, REMATERIALISED):
        compute(system, op, host_operands)
    else:
        follow(system, op, node, source)
        for result in op.results:
            if kind_of(result.type) != HOST:
                system.define(result, node)
        for index, value in enumerate(op.operands):
            if index in host_operands:
                shape = system.demanded(system.host_scope, ("shape", op, index), NOT_COMPUTED)
                system.use(op, index, value, shape)
            elif index != source:
                system.use(op, index, value, node)


def follow(system: System, op: Operation, node: int, source: int = 0) -> None:
    """``op`` executes where its operand ``source`` is."""
    system.executed.append((op, node))
    value = op.operands[source]
    if value in system.origins and kind_of(value.type) == TENSOR:
        # The annotation goes away, and what it stands for may turn out to be elsewhere.
        system.edges.indirect.append(system.edges.add(node, node, op, source))


def read(system: System, op: Operation) -> None:
    """Reads scalars out of operand 0, where that is: a read-back when it is on a device.

    Placed by the user, it executes there, and the data is copied there first.
    """
    node = system.node_of(op.operands[0])
    if system.placement(op) is not None or node == HOST_NODE:
        compute(system, op)
        return
    if node == REMATERIALISED:
        node = system.demanded(system.host_scope, ("scalar", op, 0))
        system.executed.append((op, node))
        system.use(op, 0, op.operands[0], node)
    else:
        follow(system, op, node)
    for index, value in enumerate(op.operands[1:], 1):
        system.use(op, index, value, node)
    for result in op.results:
        if kind_of(result.type) != HOST:  # an element of a type that another dialect defines
            system.define(result, node)


def buffer(system: System, op: Operation) -> None:
    """Memory of a tensor: the host's, unless the user placed it or its type names a memory."""
    type_ = op.results[0].type
    if system.placement(op) is not None or not isinstance(type_, MemRefType) or type_.memory_space != NoneAttr():
        view(system, op)
        return
    node = system.demanded(system.host_scope, ("buffer", op, 0))
    system.executed.append((op, node))
    system.use(op, 0, op.operands[0], node)
    system.define(op.results[0], node)


def registers(system: System, op: Operation) -> None:
    """Moves data between memory and vectors, which are registers of the host: so tensors are there.

    Buffers stay where they are, and what the user placed is there.
    """
    data = [value for value in (*op.operands, *op.results) if kind_of(value.type) != HOST]
    if system.placement(op) is not None or not data or any(kind_of(value.type) != TENSOR for value in data):
        compute(system, op)
        return
    node = system.demanded(system.host_scope, ("vector", op, 0), PLACED)
    system.executed.append((op, node))
    for index, value in enumerate(op.operands):
        system.use(op, index, value, node)
    for result in op.results:
        if kind_of(result.type) != HOST:
            system.define(result, node)
    _capture(system, op, node)


def inspect(system: System, op: Operation) -> None:
    """Asks for a shape or an address. The answer is on the host; the data is not touched, wherever it is."""
    for result in op.results:
        if kind_of(result.type) != HOST:
            system.define(result, system.demanded(system.host_scope, ("shape_result", op, 0)))


def rematerialise(system: System, op: Operation) -> None:
    """A constant or uninitialised tensor: made again on every scope that needs it, never copied."""
    if all(kind_of(result.type) == HOST for result in op.results):
        return
    if any(kind_of(value.type) != HOST for value in op.operands):
        compute(system, op)
    else:
        _mark_rematerialised(system, op)


def fill(system: System, op: Operation) -> None:
    """A scalar spread over a tensor that is itself rematerialised, is rematerialised too."""
    if op.results and all(system.node_of(value) in (HOST_NODE, REMATERIALISED) for value in op.operands):
        _mark_rematerialised(system, op)
    else:
        compute(system, op)


def _mark_rematerialised(system: System, op: Operation) -> None:
    system.remats.append(op)
    placement = system.placement(op)
    for result in op.results:
        system.define(result, REMATERIALISED)
        if placement is not None:
            system.remat_scopes[result] = placement[0]
