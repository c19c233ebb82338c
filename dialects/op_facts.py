"""The one table of facts of operations: what each is, for every pass that must know.

A row is what an operation *is* (a view, a shape query, a choice between regions, pure, ...). What follows from
that is the business of whoever asks: planning rules, `device-verify`, the split, copy motion, memory planning,
lowering. A plugin adds a row once, with `register_facts`.

Ask by name (`facts("tensor.cast")`, so that operations of MLIR's bindings can be asked about, too), or with an
operation of xDSL (`facts_of`). An operation without a row has the facts of its dialect, else those of `Facts()`:
nothing is known of it.
"""

from enum import Enum
from functools import cache
from typing import NamedTuple

from xdsl.ir import Operation

from devscope.dialects.names import op_name


class Control(Enum):
    """What an operation is to control flow."""

    CHOICE = "choice"
    """One of its regions runs, and what that yields are the results."""
    COUNTED = "counted loop"
    """Its last operands are what it carries; the body takes a counter and then that."""
    WHILE = "while loop"
    """The first region says whether to go on."""
    PARALLEL = "parallel loop"
    """One computation: its body runs for many indices."""
    FRAME = "frame"
    """A region around operations, which yields the results: ``device.region``."""
    YIELD = "yield"
    CONDITION = "condition"
    """The end of a while loop's first region: a flag, then what flows on."""
    BRANCH = "branch"
    RETURN = "return"
    UNREACHABLE = "unreachable"
    CALL = "call"
    CALL_INDIRECT = "indirect call"
    FUNCTION = "function constant"


LOOPS = frozenset({Control.COUNTED, Control.WHILE})
ENTERED = LOOPS | {Control.CHOICE, Control.FRAME}
"""Operations with regions that hold operations of scopes of their own. The regions of all others run as one."""
CALLS = frozenset({Control.CALL, Control.CALL_INDIRECT, Control.FUNCTION})
ENDS = frozenset({Control.YIELD, Control.CONDITION, Control.BRANCH, Control.RETURN})
"""Terminators that pass values on."""
CONTROL_FLOW = LOOPS | ENDS | CALLS | {Control.CHOICE}
"""What the host executes by itself, and what has no scope of its own."""


class Facts(NamedTuple):
    """What is known of an operation. Numbers are positions of operands."""

    known: bool = True
    """Whether there is a row for the operation or its dialect."""
    view_of: int | None = None
    """The first result is an alias of this operand: another name for its memory, or a part of it."""
    whole: bool = False
    """A view of all elements."""
    elements_of: int | None = None
    """Every element of the result is one of this operand's."""
    same_shape: bool = False
    """... and stands where it stood."""
    rematerialised: bool = False
    """From scalars only: cheaper to make again than to copy. Not so if an operand is data."""
    fills: bool = False
    """Spreads a scalar over its result: can be made again wherever its other operands are."""
    query: bool = False
    """Asks for a shape or an address: it runs on the host, and does not touch the data, wherever that is."""
    host_operands: tuple[int, ...] = ()
    """Shapes and sizes that are tensors, and so on the host, whatever scope the operation is on."""
    reads_scalars: bool = False
    """Reads elements of operand 0."""
    control: Control | None = None
    by_tensor: bool = False
    """Control flow that a tensor decides, and that carries values as StableHLO does."""
    symbol: str = ""
    """The attribute that names a function."""
    chooses_from: int | None = None
    """The result is one of the operands, from this one on."""
    pure: bool | None = None
    """It does nothing but compute its results, unless it is given a buffer. What stands in its regions speaks for
    itself. None: as its dialect, see `Facts.pure` of `facts`, which is never None."""
    writes: tuple[int, ...] | None = None
    """The buffers that it writes to; None if that is not known."""
    destination: int | None = None
    """Writes operand 0 into this operand, the rest of which is kept."""
    allocates: bool = False
    """Its result is memory without contents."""
    frees: bool = False
    with_source: bool = False
    """It is where operand 0 is, though its result is not a view."""
    elementwise: bool | None = None
    """Every element of the result is computed from the elements at the same position. None: as its dialect."""
    moves: bool = False
    """Moves data inside a memory, and computes nothing."""
    registers: bool = False
    """Has vectors, which are registers, among its operands or results. As its dialect, if that has."""
    free: bool = False
    """Neither computes nor moves anything. True of views, and what allocates and frees, as well."""

    @property
    def follows(self) -> bool:
        """Whether it is where its source is, unless somebody placed it: it does not compute."""
        return self.view_of is not None or self.with_source

    @property
    def costs_nothing(self) -> bool:
        return self.free or self.view_of is not None or self.allocates or self.frees

    @property
    def is_entered(self) -> bool:
        """Whether its regions hold operations that have scopes of their own."""
        return self.control in ENTERED


_PURE = Facts(pure=True)
_EFFECT = Facts(pure=False)
_CONSTANT = Facts(rematerialised=True, pure=True, elementwise=False)
_EMPTY = _CONSTANT._replace(allocates=True)
_VIEW = Facts(view_of=0, whole=True, elements_of=0, writes=(), pure=True, elementwise=False)
_PART = _VIEW._replace(whole=False)
_BITS = _VIEW._replace(elements_of=None)
_MEMORY = _VIEW._replace(elements_of=None, whole=False)
_QUERY = Facts(query=True, writes=(), pure=True, elementwise=False)
_READ = Facts(reads_scalars=True, writes=(), pure=True)
_FREE = Facts(frees=True, with_source=True, pure=False)
_MOVE = Facts(moves=True)
_CHOICE = Facts(control=Control.CHOICE, pure=True)
_CHOICE_BY_TENSOR = _CHOICE._replace(by_tensor=True)
_COUNTED = Facts(control=Control.COUNTED, pure=True)
_WHILE = Facts(control=Control.WHILE, pure=True)
_PARALLEL = Facts(control=Control.PARALLEL, pure=True)
_YIELD = Facts(control=Control.YIELD, pure=True)
_BRANCH = Facts(control=Control.BRANCH, pure=True)


def _stores(operand: int) -> Facts:
    return Facts(writes=(operand,), pure=False)


def _on_host(*operands: int) -> Facts:
    return Facts(host_operands=operands)


def _each(row: Facts, dialect: str, names: str) -> dict[str, Facts]:
    """``row`` for the operations of a dialect with these names, which spaces separate."""
    return {f"{dialect}.{name}": row for name in names.split()}


OPERATIONS: dict[str, Facts] = {
    # Made from scalars.
    "arith.constant": _CONSTANT,
    "stablehlo.constant": _CONSTANT,
    "chlo.constant": _CONSTANT,
    **_each(_CONSTANT, "tosa", "const const_shape"),
    "ub.poison": _CONSTANT,
    "tensor.empty": _EMPTY,
    "bufferization.alloc_tensor": _EMPTY,
    "tensor.splat": Facts(fills=True),
    "linalg.fill": Facts(fills=True, elementwise=True),
    # Views. The second operand of a reshape is a shape, and on the host.
    "tensor.cast": _VIEW._replace(same_shape=True),
    "tensor.collapse_shape": _VIEW,
    "tensor.expand_shape": _VIEW,
    "tensor.extract_slice": _PART,
    "tensor.bitcast": _BITS,
    "tensor.reshape": _VIEW._replace(host_operands=(1,)),
    **_each(_VIEW, "memref", "cast collapse_shape expand_shape memory_space_cast transpose assume_alignment"),
    "memref.view": _MEMORY,
    "memref.subview": _PART,
    "memref.reinterpret_cast": _MEMORY,
    "memref.reshape": _VIEW._replace(host_operands=(1,)),
    "memref.extract_strided_metadata": _MEMORY,
    "bufferization.to_tensor": _VIEW,
    "bufferization.to_buffer": _VIEW,
    "stablehlo.reshape": _VIEW,
    "stablehlo.dynamic_reshape": _VIEW._replace(host_operands=(1,)),
    "stablehlo.bitcast_convert": _BITS,
    # Memory.
    "memref.alloc": Facts(allocates=True, writes=(), pure=False),
    "memref.alloca": Facts(allocates=True, writes=(), pure=False),
    "memref.dealloc": _FREE,
    "memref.get_global": Facts(free=True, writes=(), pure=True),
    "bufferization.dealloc_tensor": _FREE,
    "bufferization.dealloc": Facts(pure=False),
    "bufferization.materialize_in_destination": Facts(free=True, pure=False),
    # Elements in and out.
    "tensor.extract": _READ,
    "memref.load": _READ,
    "affine.load": _READ,
    "affine.vector_load": _READ,
    "tensor.insert": Facts(destination=1),
    "tensor.insert_slice": Facts(destination=1),
    "tensor.parallel_insert_slice": Facts(destination=1),
    "memref.store": _stores(1)._replace(destination=1),
    "affine.store": _stores(1),
    "affine.vector_store": _stores(1),
    "memref.copy": _stores(1)._replace(moves=True),
    "memref.atomic_rmw": _stores(1),
    "memref.generic_atomic_rmw": _stores(0),
    "vector.store": _stores(1),
    "vector.transfer_write": Facts(writes=(1,)),
    **_each(_stores(0), "vector", "maskedstore scatter compressstore"),
    "vector.print": _EFFECT,
    # Shapes and addresses.
    "tensor.dim": _QUERY,
    "tensor.rank": _QUERY,
    **_each(_QUERY, "memref", "dim rank extract_aligned_pointer_as_index"),
    "shape.shape_of": _QUERY,
    "stablehlo.get_dimension_size": _QUERY,
    # Shapes as tensors.
    "stablehlo.dynamic_broadcast_in_dim": Facts(host_operands=(1,), moves=True),
    "stablehlo.dynamic_iota": _on_host(0),
    "stablehlo.real_dynamic_slice": _on_host(1, 2, 3),
    "stablehlo.dynamic_pad": _on_host(2, 3, 4),
    "stablehlo.dynamic_conv": _on_host(2),
    # Data in another place of the same memory.
    "linalg.transpose": Facts(moves=True, elements_of=0),
    "linalg.broadcast": Facts(moves=True, elements_of=0),
    "linalg.copy": Facts(moves=True, elements_of=0, elementwise=True),
    "bufferization.clone": _MOVE._replace(with_source=True, writes=(), pure=False),
    **_each(_MOVE, "linalg", "pack unpack"),
    **_each(_MOVE, "tensor", "concat gather pack pad scatter unpack"),
    **_each(_MOVE, "stablehlo", "broadcast_in_dim concatenate copy gather iota pad scatter slice transpose"),
    **_each(_MOVE, "tosa", "concat gather pad slice tile transpose"),
    # Functions.
    "arith.select": Facts(chooses_from=1),
    "func.call": Facts(control=Control.CALL, symbol="callee", pure=False),
    "func.constant": Facts(control=Control.FUNCTION, symbol="value", pure=True),
    "func.call_indirect": Facts(control=Control.CALL_INDIRECT, pure=False),
    "func.return": Facts(control=Control.RETURN, pure=True),
    # Control flow.
    **_each(_CHOICE, "scf", "if index_switch execute_region"),
    "scf.for": _COUNTED,
    "scf.while": _WHILE,
    "scf.forall": _PARALLEL,
    "scf.parallel": _PARALLEL,
    "scf.yield": _YIELD,
    "scf.condition": Facts(control=Control.CONDITION, pure=True),
    **_each(_PURE, "scf", "reduce reduce.return forall.in_parallel"),
    "affine.if": _CHOICE,
    "affine.for": _COUNTED,
    "affine.parallel": _PARALLEL,
    "affine.yield": _YIELD,
    "stablehlo.if": _CHOICE_BY_TENSOR,
    "stablehlo.case": _CHOICE_BY_TENSOR,
    "stablehlo.while": _WHILE._replace(by_tensor=True),
    "stablehlo.return": _YIELD,
    **_each(_BRANCH, "cf", "br cond_br switch"),
    "cf.assert": _EFFECT,
    "ub.unreachable": Facts(control=Control.UNREACHABLE, pure=False),
    # Scopes.
    "device.on_device": Facts(chooses_from=0, pure=True),
    "device.device_copy": Facts(elements_of=0, same_shape=True, pure=True),
    "device.region": Facts(control=Control.FRAME, pure=True),
    "device.yield": _YIELD,
    "device.launch": Facts(symbol="kernel", pure=True),
    **_each(_PURE, "device", "in out"),
    # Named operations on elements at one position.
    **_each(
        Facts(elementwise=True),
        "linalg",
        "abs add ceil div div_unsigned elementwise erf exp floor log map max min mul negf powf reciprocal round "
        "rsqrt select sqrt square sub tanh",
    ),
    # Others with effects, in dialects without: the world outside, other participants, state.
    **_each(
        _EFFECT,
        "stablehlo",
        "after_all all_gather all_reduce all_to_all collective_broadcast collective_permute composite "
        "create_token cross-replica-sum custom_call infeed optimization_barrier outfeed recv "
        "reduce_scatter rng send",
    ),
    **_each(_EFFECT, "tosa", "custom variable variable_read variable_write"),
}

_ELEMENTWISE = Facts(pure=True, elementwise=True)

DIALECTS: dict[str, Facts] = {
    "affine": _PURE,
    "arith": _ELEMENTWISE,
    "bufferization": Facts(),
    "chlo": _PURE,
    "complex": _ELEMENTWISE,
    "index": _PURE,
    "linalg": _PURE,
    "math": _ELEMENTWISE,
    "memref": Facts(),
    "ml_program": Facts(),
    "quant": _PURE,
    "shape": Facts(),
    "sparse_tensor": Facts(),
    "stablehlo": _PURE,
    "tensor": _PURE,
    "tosa": _PURE,
    "vector": Facts(pure=True, registers=True),
}
"""Rows for whole dialects, for operations that have none of their own and for what a row leaves open."""

UNKNOWN = Facts(known=False, pure=False, elementwise=False)


@cache
def facts(name: str) -> Facts:
    """The facts of operations of this name."""
    dialect = DIALECTS.get(name.partition(".")[0], UNKNOWN)
    found = OPERATIONS.get(name, dialect)
    return found._replace(
        pure=bool(dialect.pure if found.pure is None else found.pure),
        elementwise=bool(dialect.elementwise if found.elementwise is None else found.elementwise),
        registers=found.registers or dialect.registers,
    )


def facts_of(op: Operation) -> Facts:
    """The facts of an operation of xDSL, registered or not."""
    return facts(op_name(op))


def register_facts(name: str, row: Facts) -> None:
    """Add or replace the row of an operation (``"my.op"``) or of a dialect (``"my"``)."""
    (OPERATIONS if "." in name else DIALECTS)[name] = row
    facts.cache_clear()
