"""`ScopeAnalysis`: the scope of any operation or value, recovered from the module alone.

What a planned module says, and how to read it:

* an argument or result of a function is where its ``device.scope`` attribute says; for a function value, the
  attribute says where the first result (else argument) of that function is;
* an operation executes where its own ``device.scope`` says, else that of the nearest operation around it, else
  on the host; its results are there too;
* scalars, shapes and control flow are on the host;
* a copy, and its result, are on its destination;
* the results of calls are where the callee's result attributes say; results and arguments of control flow are
  where the values are that flow into them.

This module knows nothing of the planner; `device_verify` and `scope_rewriter` build on it, as may any pass that
moves code.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue
from xdsl.pattern_rewriter import PatternRewriterListener

from devscope.analysis.captured_values import captured_uses
from devscope.analysis.function_values import Callees, FunctionValues, arguments_of
from devscope.analysis.manager import AnalysisManager
from devscope.analysis.symbols import CONSTANT, INDIRECT, Symbols
from devscope.analysis.value_flow import ValueFlow, constrains, decides, targets
from devscope.analysis.value_kinds import FUNCTION, HOST, holds_data, kind_of
from devscope.dialects.device import HOST_SCOPE, DeviceCopyOp, OnDeviceOp, RegionOp, ScopeAttr
from devscope.dialects.names import op_name
from devscope.dialects.op_facts import CALLS, CONTROL_FLOW, facts_of
from devscope.dialects.scope_attribute import ARGUMENTS, RESULTS, scope_on, signature_attribute

_FUNCTION = "func.func"
_OUTERMOST = frozenset({_FUNCTION, "builtin.module"})
_WITHOUT_SCOPE = _OUTERMOST | {"device.region", "device.device_copy", "device.on_device"}


class Need(NamedTuple):
    """Operand number ``operand`` of ``op`` must be on ``scope``."""

    op: Operation
    operand: int
    scope: ScopeAttr


class ScopeAnalysis:
    """Scopes of one module. ``host`` is the scope of scalars, shapes and control flow.

    **While the module changes.** What operations and straight-line values say is read off the module at each
    query and so is never out of date. Remembered is only what takes a walk to find out: functions by name,
    what control flow carries, what function values may be. Give `listener` to whatever rewrites the module
    (`PatternRewriteWalker(..., listener=analysis.listener)`), and what an event may change is found again when it
    is next asked for: then every query answers as a new ``ScopeAnalysis`` of the module would.

    xDSL tells no listener when blocks are moved or merged (`PatternRewriter.inline_block`, `inline_region`,
    `move_region_contents_to_new_regions`) or anything is changed without a rewriter: call `invalidate` after
    that. A `ScopePreservingRewriter` does so itself.
    """

    def __init__(self, module: ModuleOp, host: ScopeAttr = HOST_SCOPE, symbols: Symbols | None = None) -> None:
        self.module = module
        self.host = host
        self.flow = ValueFlow()
        self._symbols = symbols
        self._function_values: FunctionValues | None = None
        self.listener = PatternRewriterListener(
            operation_insertion_handler=[self._changed],
            operation_removal_handler=[self._changed],
            operation_modification_handler=[self._changed],
            block_creation_handler=[lambda _: self.flow.invalidate()],
        )

    @classmethod
    def of(cls, analyses: AnalysisManager) -> Self:
        return cls(analyses.module, analyses.host, analyses.get(Symbols))

    # Queries

    @property
    def symbols(self) -> Symbols:
        """The functions of the module, by name."""
        if self._symbols is None:
            self._symbols = Symbols(self.module)
        return self._symbols

    def of_value(self, value: SSAValue) -> ScopeAttr:
        """Where a value is. A value inside a computation's own body is where the computation runs."""
        if kind_of(value.type) == HOST:
            return self.host
        owner = value.owner
        op = owner if isinstance(owner, Operation) else owner.parent_op()
        if op is None:
            return self.host
        if self.computation(op) is not op:
            return self.of_op(op)
        origin = value
        if facts_of(op).is_entered or isinstance(op, OnDeviceOp) or isinstance(value, BlockArgument):
            origin = self.flow.origin(value)
        if isinstance(origin, OpResult):
            return self._of_result_value(origin)
        return self._of_argument_value(origin) if isinstance(origin, BlockArgument) else self.host

    def of_op(self, op: Operation) -> ScopeAttr:
        """Where an operation executes. For a function: where its body does, unless an operation says otherwise."""
        planned = self.computation(op)
        if planned.name == _FUNCTION or self._has_scope(planned):
            return self.lexical(planned)
        if isinstance(planned, DeviceCopyOp):
            return planned.dst
        if isinstance(planned, OnDeviceOp):
            return planned.scope if constrains(planned) else self.of_value(planned.result)
        return self.host

    def lexical(self, op: Operation) -> ScopeAttr:
        """What an operation's own attribute or that of the nearest operation around it says, else the host."""
        current: Operation | None = op
        while current is not None:
            found = current.scope if isinstance(current, RegionOp) else scope_on(current)
            if found is not None:
                return found
            current = current.parent_op() if current.name != _FUNCTION else None
        return self.host

    def executes(self, op: Operation) -> bool:
        """Whether an operation has a scope of its own to be on, and so may carry ``device.scope``.

        Control flow, copies, scalar code, shape queries and what stands in the body of a computation have none.
        """
        return self._has_scope(op) and self.computation(op) is op

    def computation(self, op: Operation) -> Operation:
        """The outermost computation in whose body ``op`` stands, and with which it runs; else ``op`` itself."""
        found = op
        current = op.parent_op()
        while current is not None and current.name not in _OUTERMOST:
            if not facts_of(current).is_entered:
                found = current
            current = current.parent_op()
        return found

    def callees_of(self, op: Operation) -> Callees:
        """The functions that a call, or a ``func.constant``, may reach: directly, or through a function value."""
        if self._function_values is None:
            self._function_values = FunctionValues(self.symbols, self.flow)
        return self._function_values.callees(op)

    def of_argument(self, func: FuncOp, index: int) -> ScopeAttr:
        """Where a function takes an argument."""
        return self._of_signature(func, ARGUMENTS, func.function_type.inputs.data, index)

    def of_result(self, func: FuncOp, index: int) -> ScopeAttr:
        """Where a function leaves a result."""
        return self._of_signature(func, RESULTS, func.function_type.outputs.data, index)

    def needs(self, op: Operation) -> Iterator[Need]:
        """Where an operation needs its operands, and what its body captures, to be. Nothing for scalars."""
        if isinstance(op, DeviceCopyOp):
            found = [(0, op.src)]
        elif facts_of(op).control in CONTROL_FLOW:
            found = self._control_needs(op, op_name(op))
        elif self.executes(op):
            scope = self.lexical(op)
            shapes = facts_of(op).host_operands
            found = [(i, self._on_host(v) if i in shapes else scope) for i, v in enumerate(op.operands)]
            for inner, index in captured_uses(op) if op.regions else ():
                if holds_data(inner.operands[index].type):
                    yield Need(inner, index, scope)
        else:
            return
        operands = op.operands
        for index, scope in found:
            if holds_data(operands[index].type):
                yield Need(op, index, scope)

    # Changes

    def invalidate(self) -> None:
        """Forget what is remembered. Answers are found again when they are next asked for."""
        self.flow.invalidate()
        self._symbols = self._function_values = None

    def _changed(self, op: Operation) -> None:
        self.flow.invalidate()
        flows = facts_of(op).control is not None or op.regions or op.successors
        if flows or any(kind_of(value.type) == FUNCTION for value in (*op.operands, *op.results)):
            self._function_values = None
        if isinstance(op, FuncOp):
            self._symbols = None

    # How it is found

    def _has_scope(self, op: Operation) -> bool:
        known = facts_of(op)
        if known.control in CONTROL_FLOW or known.query or op_name(op) in _WITHOUT_SCOPE:
            return False
        for values in (op.results, op.operands):
            for value in values:
                if kind_of(value.type) != HOST:
                    return True
        return bool(op.regions) and any(True for _ in captured_uses(op))

    def _of_result_value(self, result: OpResult) -> ScopeAttr:
        op = result.op
        name = op_name(op)
        if facts_of(op).control not in CALLS:
            return self.of_op(op)
        functions = self.callees_of(op).functions
        if name == CONSTANT:
            return self._of_function(functions[0]) if functions else self.host
        if functions:
            return self.of_result(functions[0], result.index)
        return self.of_value(op.operands[0]) if op.operands and name == INDIRECT else self.host

    def _of_argument_value(self, argument: BlockArgument) -> ScopeAttr:
        parent = argument.block.parent_op()
        if parent is None:
            return self.host
        if isinstance(parent, FuncOp) and argument.block is parent.body.first_block:
            return self.of_argument(parent, argument.index)
        return self.of_op(parent)

    def _on_host(self, value: SSAValue) -> ScopeAttr:
        """Where the host reads a tensor: in whichever of its memories that is."""
        actual = self.of_value(value)
        return actual if self.host.join(actual) == actual else self.host

    def _control_needs(self, op: Operation, name: str) -> list[tuple[int, ScopeAttr]]:
        if name == "func.return":
            func = op.parent_op()
            assert isinstance(func, FuncOp)
            return [(index, self.of_result(func, index)) for index in range(len(op.operands))]
        if name == CONSTANT:
            return []
        if facts_of(op).control not in CALLS:
            decided = [(0, self._on_host(op.operands[0]))] if decides(op) else []
            return decided + [(index, self.of_value(target)) for index, target in targets(op)]
        callees = self.callees_of(op)
        first = len(op.operands) - len(arguments_of(op))
        found = [
            (index, self.of_argument(func, index - first))
            for func in callees.functions
            for index in range(first, len(op.operands))
        ]
        if name == INDIRECT and not callees.complete:
            scope = self.of_value(op.operands[0])
            found += [(index, scope) for index in range(first, len(op.operands))]
        return found

    def _of_signature(self, func: FuncOp, side: str, types: Sequence[Attribute], index: int) -> ScopeAttr:
        scope = signature_attribute(func, side, index)
        return scope if isinstance(scope, ScopeAttr) and kind_of(types[index]) != HOST else self.host

    def _of_function(self, func: FuncOp) -> ScopeAttr:
        """Where a function value is said to be: where its first result or else argument with data is."""
        type_ = func.function_type
        for of, types in ((self.of_result, type_.outputs), (self.of_argument, type_.inputs)):
            for index, one in enumerate(types):
                if kind_of(one) != HOST:
                    return of(func, index)
        return self.host
