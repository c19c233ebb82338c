"""What operations and functions of a planned module are to the split.

An operation is device work, host work, or free scalar code; a private function may run on one device as a whole.
"""

from collections.abc import Iterable, Sequence
from enum import Enum

from xdsl.dialects.builtin import MemRefType, TensorType, UnrankedMemRefType, UnrankedTensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from devscope.analysis.captured_values import free_values
from devscope.analysis.scope_analysis import ScopeAnalysis
from devscope.analysis.symbols import callee_name, is_public
from devscope.analysis.value_kinds import BUFFER, HOST, kind_of
from devscope.dialects.device import DeviceCopyOp, ScopeAttr
from devscope.dialects.location import source_location
from devscope.dialects.names import op_name
from devscope.dialects.op_facts import ENDS, OPERATIONS, Control, facts_of
from devscope.dialects.scope_attribute import ARGUMENTS, RESULTS, scope_on, signature_attributes
from devscope.errors import LoweringError

CONTROL_FLOW = frozenset(name for name, row in OPERATIONS.items() if name.startswith("scf.") and row.is_entered)
"""Region operations that the host executes; their bodies hold operations of their own scopes."""

_SCALAR_DIALECTS = frozenset({"affine", "arith", "complex", "index", "math"})


class Role(Enum):
    SCALAR = "scalar"
    """Pure scalar or shape code: cloned to wherever its result is needed."""
    DEVICE = "device"
    """Work on one scope: becomes part of a device function."""
    HOST = "host"
    """Everything else: stays in the host function, in order where it has side effects."""


def is_tensor(value: SSAValue) -> bool:
    return isinstance(value.type, TensorType | UnrankedTensorType)


def _is_buffer(value: SSAValue) -> bool:
    return kind_of(value.type) == BUFFER


def touches_tensors(op: Operation) -> bool:
    return any(is_tensor(v) for v in (*op.operands, *op.results))


def _works_on_tensors(op: Operation) -> bool:
    """Whether an operation has tensors, or captures some, as a parallel loop may that returns a scalar."""
    return touches_tensors(op) or (bool(op.regions) and any(is_tensor(value) for value in free_values(op)))


def is_terminator(op: Operation) -> bool:
    control = facts_of(op).control
    return control in ENDS or control is Control.UNREACHABLE


def is_scalar_code(op: Operation) -> bool:
    """True for pure operations on scalars, and for queries of the shapes of tensors."""
    if op.regions:
        return False
    if any(is_tensor(value) for value in op.operands):
        return facts_of(op).query and not any(is_tensor(result) for result in op.results)
    if op_name(op).partition(".")[0] not in _SCALAR_DIALECTS and not facts_of(op).rematerialised:
        return False
    return not any(is_tensor(v) for v in op.results) and not any(_is_buffer(v) for v in op.operands)


def is_rematerialised(op: Operation) -> bool:
    """Whether it is cheaper to make the results again, from scalars, than to pass them around."""
    row = facts_of(op)
    return (row.rematerialised or row.fills) and not any(is_tensor(value) for value in op.operands)


def is_free(op: Operation) -> bool:
    """Whether the host computes nothing: copies between devices, and views."""
    return isinstance(op, DeviceCopyOp) or (facts_of(op).view_of is not None and touches_tensors(op))


def executed_blocks(op: Operation) -> list[Block]:
    """The blocks in a function or in control flow that the host executes: all but those of computations."""
    blocks = [block for region in op.regions for block in region.blocks]
    for block in blocks:
        entered = (inner for inner in block.ops if op_name(inner) in CONTROL_FLOW)
        blocks += (nested for inner in entered for region in inner.regions for nested in region.blocks)
    return blocks


def executed_operations(op: Operation) -> list[Operation]:
    """The operations in `executed_blocks`, without terminators."""
    return [inner for block in executed_blocks(op) for inner in block.ops if not is_terminator(inner)]


def _stays(op: Operation) -> bool:
    """Whether an operation is a copy between code for different targets on one device, which moves nothing."""
    return isinstance(op, DeviceCopyOp) and op.src.memory_location == op.dst.memory_location


def _only_tensors(op: Operation, what: str, scope: ScopeAttr, remedy: str) -> LoweringError:
    message = f"'{op_name(op)}' has {what} on {scope.short()}; only tensors can be there"
    return LoweringError(message, source_location(op), [remedy])


class Classifier:
    """Roles of the operations of one planned module."""

    def __init__(self, scopes: ScopeAnalysis, device_functions: dict[str, ScopeAttr]) -> None:
        self._scopes = scopes
        self._host = scopes.host
        self._device_functions = device_functions

    def role(self, op: Operation) -> tuple[Role, ScopeAttr]:
        """The role of an operation and the scope that it runs on (the host's for scalars)."""
        name = op_name(op)
        if is_scalar_code(op):
            return Role.SCALAR, self._host
        callee = callee_name(op)
        if name in CONTROL_FLOW or callee is not None:
            # Control flow belongs to a device function if all that it contains and carries does.
            functions = self._device_functions
            scope = functions.get(callee) if callee else self.uniform_scope([op, *executed_operations(op)])
            return (Role.HOST, self._host) if scope is None else (Role.DEVICE, scope)
        self._check_buffers(op)
        on_host = isinstance(op, DeviceCopyOp) or is_terminator(op) or not _works_on_tensors(op)
        scope = self._host if on_host else self._scopes.of_op(op)
        if self.is_host(scope):
            return Role.HOST, self._host
        if facts_of(op).control is Control.PARALLEL and not all(map(is_tensor, op.results)):
            raise LoweringError(
                f"'{name}' on {scope.short()} reduces to scalars, which parallel loops on devices cannot",
                source_location(op),
                ["write it as a linalg.reduce or linalg.generic, or leave it to the host"],
            )
        return Role.DEVICE, scope

    def _check_buffers(self, op: Operation) -> None:
        """Raise LoweringError for values on devices that no device function can take.

        Memrefs, which have no owner that could free them, and what is no tensor. A vector is in registers.
        """
        if any(_is_buffer(value) for value in (*op.operands, *op.results)):
            for value in (*op.operands, *op.results):
                if _is_buffer(value) and not self.is_host(scope := self._scopes.of_value(value)):
                    is_memref = isinstance(value.type, MemRefType | UnrankedMemRefType)
                    what = "a memref" if is_memref else f"a value of type {value.type}"
                    raise _only_tensors(
                        op, what, scope, "compute with tensors on devices, and with others on the host"
                    )
        elif facts_of(op).registers and touches_tensors(op) and not self.is_host(scope := self._scopes.of_op(op)):
            raise _only_tensors(
                op, "vectors", scope, "leave it to the host, or have it in the body of a computation"
            )

    def queried_scope(self, op: Operation) -> ScopeAttr | None:
        """Where the tensor lives whose shape ``op`` asks for; None if ``op`` is no shape query."""
        tensors = [value for value in op.operands if is_tensor(value)]
        return self._scopes.of_value(tensors[0]) if tensors and is_scalar_code(op) else None

    def is_host(self, scope: ScopeAttr) -> bool:
        return scope.is_open or scope.same_device(self._host)

    def uniform_scope(self, ops: list[Operation]) -> ScopeAttr | None:
        """The one device scope that all ``ops`` work on; None if there is no such scope.

        Control flow and scalar code run anywhere, but not with tensors of another place. Calls may be of code
        for other targets in that place: data of one device does not move between them.
        """
        work: set[ScopeAttr] = set()
        called: set[ScopeAttr] = set()
        carried: set[ScopeAttr] = set()
        for op in ops:
            if op_name(op) in CONTROL_FLOW or is_scalar_code(op) or _stays(op):
                carried.update(self._scopes.of_value(v) for v in (*op.operands, *op.results) if is_tensor(v))
                continue
            role, scope = self.role(op)
            if role is not Role.DEVICE:
                return None
            (work if callee_name(op) is None else called).add(scope)
        scopes = work or called
        if len(scopes) != 1:
            return None
        scope = next(iter(scopes))
        return scope if all(other.memory_location == scope.memory_location for other in called | carried) else None


def device_functions(functions: Sequence[FuncOp], scopes: ScopeAnalysis) -> dict[str, ScopeAttr]:
    """The functions that run on one device, and its scope: code over tensors of that device, and portable
    functions (`portable_functions`) that were bound to it.

    Starts from the assumption that all candidates are and drops those that break it, so that recursive
    functions are found too.
    """
    found: dict[str, ScopeAttr] = {}
    bodies: dict[str, list[Operation]] = {}
    for function in functions:
        scope = None if is_public(function) or not function.body.blocks else _signature_scope(function)
        if scope is not None and not scope.same_device(scopes.host):
            found[function.sym_name.data] = scope
            bodies[function.sym_name.data] = executed_operations(function)
    classifier = Classifier(scopes, found)
    while wrong := [name for name, scope in found.items() if classifier.uniform_scope(bodies[name]) != scope]:
        for name in wrong:
            del found[name]
    for function in portable_functions(functions):
        own = scope_on(function)
        if own is not None and not own.same_device(scopes.host):
            found[function.sym_name.data] = own
    return found


def _signature_scope(function: FuncOp) -> ScopeAttr | None:
    """The scope of all tensor parameters and results; None if there is no single one."""
    arguments = function.body.blocks[0].args
    scopes = signature_attributes(function, ARGUMENTS, len(arguments))
    found = {scope for value, scope in zip(arguments, scopes, strict=True) if is_tensor(value)}
    found.update(signature_attributes(function, RESULTS, len(function.function_type.outputs)))
    given = {scope for scope in found if isinstance(scope, ScopeAttr)}
    return given.pop() if len(given) == 1 else None


def portable_functions(functions: Iterable[FuncOp]) -> list[FuncOp]:
    """Private functions over scalars that any target can run: scalar code, control flow, calls of their like."""
    private = (function for function in functions if not is_public(function) and function.body.blocks)
    found = {function.sym_name.data: function for function in private if is_over_scalars(function)}
    while wrong := [
        name
        for name, function in found.items()
        if not all(
            is_scalar_code(op) or is_terminator(op) or op_name(op) in CONTROL_FLOW or callee_name(op) in found
            for op in function.body.walk()
        )
    ]:
        for name in wrong:
            del found[name]
    return list(found.values())


def is_over_scalars(function: FuncOp) -> bool:
    """Whether a function takes, computes and returns no data that has a scope."""
    types = (value.type for op in function.body.walk() for value in (*op.operands, *op.results))
    return all(kind_of(type_) == HOST for type_ in (*function.function_type.inputs, *types))
