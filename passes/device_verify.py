"""The pass ``device-verify``: checks that a planned module keeps its promises.

It shares no code with the planner, only the facts of operations (`dialects.op_facts`). From the module alone it
recovers where everything is (`ScopeAnalysis`) and checks that data only ever moves by ``device.device_copy``.
"""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation

from devscope.analysis.manager import AnalysisManager, ManagedPass
from devscope.analysis.scope_analysis import Need, ScopeAnalysis
from devscope.analysis.symbols import CALL, CONSTANT, has_foreign_body
from devscope.analysis.value_flow import planned_operations
from devscope.analysis.value_kinds import BUFFER, HOST, holds_data, kind_of, memory_space_of
from devscope.dialects.device import HOST_SCOPE, SCOPE_ATTR, DeviceCopyOp, OnDeviceOp, RegionOp, ScopeAttr
from devscope.dialects.location import error_at
from devscope.dialects.names import op_name
from devscope.dialects.op_facts import CALLS, CONTROL_FLOW, facts_of
from devscope.dialects.scope_attribute import ARGUMENTS, RESULTS, signature_attributes
from devscope.errors import VerifyError

_REMEDY = "device-plan keeps what still holds of a plan and inserts the copies that are missing"
_STAYS = "planning copies tensors only: put what makes a {} and what uses it on one scope"


def verify_module(module: ModuleOp, host: ScopeAttr = HOST_SCOPE) -> None:
    """`verify` for a module that nobody has analysed."""
    verify(AnalysisManager(module, host))


def verify(analyses: AnalysisManager, partial: bool = False) -> None:
    """Raise `VerifyError`, located at the operation, for the first promise that a module breaks.

    The promises: every argument and result of a function that holds data names its scope, with device type and
    id; an operation's operands and results are where it executes; copies go from where their operand is to
    another scope; what flows along calls, returns, branches and yields is where the other end expects it,
    whichever function a function value turns out to be; nothing in the body of a computation is elsewhere; no
    annotation is left; control flow and scalar operations carry no scope. With ``partial``, a function need not
    name the scope of all arguments and results, if it names any.
    """
    analysis = analyses.get(ScopeAnalysis)
    for func in analysis.symbols.functions.values():
        _Verifier(analysis, func, partial).check()


@dataclass
class _Verifier:
    """Of one function; ``partial`` is that of `verify`."""

    analysis: ScopeAnalysis
    func: FuncOp
    partial: bool

    def check(self) -> None:
        self._check_signature()
        if self.func.body.first_block is None or has_foreign_body(self.func):
            return
        own = self.func.attributes.get(SCOPE_ATTR)
        if own is not None and not _is_closed(own):
            raise _needs_closed_scope(self.func, f"function @{self.func.sym_name.data}", own)
        for op in planned_operations(self.func):
            self._check(op, op_name(op))

    def _check_signature(self) -> None:
        type_ = self.func.function_type
        sides = [
            (noun, types, signature_attributes(self.func, side, len(types)))
            for side, noun, types in (
                (ARGUMENTS, "argument", type_.inputs.data),
                (RESULTS, "result", type_.outputs.data),
            )
        ]
        says = SCOPE_ATTR in self.func.attributes or any(any(scopes) for _, _, scopes in sides)
        for noun, types, scopes in sides:
            for index, scope in enumerate(scopes):
                if isinstance(scope, ScopeAttr):
                    _check_memory(self.func, f"{noun} #{index}", types[index], scope)
                if (
                    holds_data(types[index])
                    and not _is_closed(scope)
                    and not (scope is None and self.partial and says)
                ):
                    shown = scope.short() if isinstance(scope, ScopeAttr) else "missing"
                    raise error_at(
                        self.func,
                        f"{noun} #{index} of @{self.func.sym_name.data} needs '{SCOPE_ATTR}' with a device type "
                        f"and an id; it is {shown}",
                        "device-plan gives every argument and result a scope",
                    )

    def _check(self, op: Operation, name: str) -> None:
        if isinstance(op, OnDeviceOp | RegionOp):
            raise error_at(op, f"'{name}' must not remain after planning; run device-plan")
        if isinstance(op, DeviceCopyOp):
            self._check_copy(op)
        elif (known := facts_of(op)).control in CONTROL_FLOW or known.query:
            if SCOPE_ATTR in op.attributes:
                raise error_at(op, f"'{name}' runs on the host and must not carry '{SCOPE_ATTR}'")
            self._check_calls(op, name)
        else:
            self._check_execution(op, name)
        for need in self.analysis.needs(op):
            self._check_need(op, need)

    def _check_copy(self, op: DeviceCopyOp) -> None:
        if kind_of(op.operand.type) == HOST:
            raise error_at(op, "'device.device_copy' of a scalar or vector; these are on the host everywhere")
        if SCOPE_ATTR in op.attributes:
            raise error_at(op, f"'device.device_copy' names its ends and must not carry '{SCOPE_ATTR}'")
        actual = self.analysis.of_value(op.operand)
        if op.src != actual:
            raise error_at(op, f"'src' is {op.src.short()}, but the operand is on {actual.short()}")
        if not _is_closed(op.dst):
            raise error_at(op, f"'dst' needs a device type and an id; it is {op.dst.short()}")
        if op.src == op.dst:
            raise error_at(op, f"the copy goes from {op.src.short()} to itself")

    def _check_execution(self, op: Operation, name: str) -> None:
        own = op.attributes.get(SCOPE_ATTR)
        scope = self.analysis.of_op(op)
        if own is not None and own != scope and not self.analysis.executes(op):
            raise error_at(op, f"'{name}' touches no data, runs on the host and must not carry '{SCOPE_ATTR}'")
        if (own is not None and not _is_closed(own)) or not _is_closed(scope):
            raise _needs_closed_scope(op, f"'{name}'", scope if own is None else own)
        if name != "memref.memory_space_cast":
            for index, result in enumerate(op.results):
                if kind_of(result.type) == BUFFER:
                    _check_memory(op, f"result #{index}", result.type, self.analysis.of_value(result))
        if op.regions:
            self._check_body(op, name, scope)

    def _check_body(self, op: Operation, name: str, scope: ScopeAttr) -> None:
        """Nothing inside a computation may say that it runs, or wants its data, elsewhere."""
        for inner in op.walk():
            if inner is op:
                continue
            inner_name = op_name(inner)
            own = inner.attributes.get(SCOPE_ATTR)
            if own is not None and own != scope:
                raise error_at(inner, f"'{inner_name}' stands in '{name}', which runs on {scope.short()}")
            if isinstance(inner, DeviceCopyOp | OnDeviceOp | RegionOp):
                raise error_at(inner, f"'{inner_name}' stands in '{name}', which runs on one scope as a whole")
            if facts_of(inner).control in CALLS:
                self._check_inner_call(inner, scope)

    def _check_inner_call(self, op: Operation, scope: ScopeAttr) -> None:
        """A call in the body of a computation: the callee's whole signature is on the computation's scope."""
        for func in self.analysis.callees_of(op).functions:
            for noun, of, types in (
                ("argument", self.analysis.of_argument, func.function_type.inputs.data),
                ("result", self.analysis.of_result, func.function_type.outputs.data),
            ):
                for index, type_ in enumerate(types):
                    if holds_data(type_) and (at := of(func, index)) != scope:
                        what = f"{noun} #{index} of the callee @{func.sym_name.data}"
                        raise _mixed(op, what, at, scope, type_)

    def _check_calls(self, op: Operation, name: str) -> None:
        if facts_of(op).control not in CALLS:
            return
        callees = self.analysis.callees_of(op)
        if name in (CALL, CONSTANT):
            if not callees.functions:
                raise error_at(op, f"'{name}' names no func.func of this module")
            return
        # One operand list serves them all (`ScopeAnalysis.needs`); one result must, too.
        for index, result in enumerate(op.results):
            if kind_of(result.type) == HOST:
                continue
            taken = self.analysis.of_value(result)
            for func in callees.functions:
                if (left := self.analysis.of_result(func, index)) != taken:
                    what = f"result #{index}, as the possible callee @{func.sym_name.data} leaves it,"
                    raise _mixed(op, what, left, taken, result.type)
            if not callees.complete and (spoken := self.analysis.of_value(op.operands[0])) != taken:
                raise _mixed(op, "what an unknown function leaves", spoken, taken, result.type)

    def _check_need(self, op: Operation, need: Need) -> None:
        value = need.op.operands[need.operand]
        actual = self.analysis.of_value(value)
        if actual == need.scope or isinstance(op, DeviceCopyOp):
            return
        what = f"operand #{need.operand}"
        if need.op is not op:
            what += f", captured by '{op_name(op)}',"
        raise _mixed(need.op, f"{what} of '{op_name(need.op)}'", actual, need.scope, value.type)


def _check_memory(op: Operation, what: str, type_: Attribute, scope: ScopeAttr) -> None:
    """The memory space in a buffer's type is that of its scope."""
    space = memory_space_of(type_)
    if space is not None and space.join(scope) != scope:
        raise error_at(op, f"{what} is on {scope.short()}, but its type is in memory {space.short()}")


def _is_closed(scope: object) -> bool:
    return isinstance(scope, ScopeAttr) and bool(scope.type_name) and scope.id_value >= 0


def _needs_closed_scope(op: Operation, who: str, scope: Attribute) -> VerifyError:
    shown = scope.short() if isinstance(scope, ScopeAttr) else f"{scope}, which is no #device.scope"
    return error_at(op, f"{who} needs a scope with a device type and an id; it is {shown}")


def _mixed(op: Operation, what: str, actual: ScopeAttr, expected: ScopeAttr, type_: Attribute) -> VerifyError:
    used = f"{what} is on {actual.short()}, but is used on {expected.short()} without a device.device_copy"
    return error_at(op, used, _STAYS.format(type_) if kind_of(type_) == BUFFER else _REMEDY)


@dataclass(frozen=True)
class DeviceVerifyPass(ManagedPass):
    """Check a planned module, see `verify`. Changes nothing."""

    name = "device-verify"

    host: str = "cpu:0"

    def run(self, analyses: AnalysisManager) -> bool:
        verify(analyses)
        return False


class PlannedModulePass(ManagedPass):
    """A pass over planned modules. By itself, outside of a compilation, it refuses others.

    Arguments and results that say nothing are on the host, where a function says anything at all.
    """

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        analyses = self.analyses(op)
        try:
            verify(analyses, partial=True)
        except VerifyError as error:
            advice = f"'{self.name}' is for planned modules: run device-plan before it"
            raise VerifyError(error.message, error.location, [*error.notes, advice]) from None
        self.run(analyses)
