"""The pass ``device-verify-split``: checks that a split module keeps its promises.

It shares no code with the split but what functions and calls are (`analysis/split_functions.py`). The promises:

* every function has a ``device.target``, and a ``device.scope`` with a device type and an id;
* a function for a device is private and has a body; it holds nothing that only the host can do;
* a function for the host holds no work of a device;
* every value is defined in the function that uses it;
* launches stand in code for a device and name a user kernel of its target, whose parameters they fit;
* calls name a function of the module and agree with its signature; code for a device calls its own device only,
  a kernel its own target only; no function is both launched and called as an external one.
"""

from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation

from devscope.analysis.manager import AnalysisManager, ManagedPass
from devscope.analysis.scope_analysis import ScopeAnalysis
from devscope.analysis.split_functions import CallKind, call_kind, is_host_code
from devscope.analysis.symbols import CALL, callee_name, has_foreign_body, is_public
from devscope.analysis.user_kernels import check_launch
from devscope.dialects.device import CALL_ATTR, SCOPE_ATTR, TARGET_ATTR, LaunchOp, ScopeAttr, TargetAttr
from devscope.dialects.location import error_at, note_at
from devscope.dialects.names import op_name
from devscope.errors import VerifyError

_BEFORE_THE_SPLIT = frozenset({"device.region", "device.on_device"})
_HOST_ONLY = frozenset({"device.device_copy", "func.call_indirect", "func.constant"})
"""What only host code can do: move data between places, and call what is known at run time only."""
_HOST_ONLY_DIALECTS = frozenset({"async", "bufferization", "gpu", "llvm", "memref"})


@dataclass
class _Verifier:
    """Of the functions of one module."""

    analysis: ScopeAnalysis
    first: dict[str, dict[CallKind, Operation]] = field(default_factory=dict[str, dict[CallKind, Operation]])
    """The first call of each kind, by callee."""

    def check_function(self, function: FuncOp) -> None:
        name = function.sym_name.data
        target, scope = function.attributes.get(TARGET_ATTR), function.attributes.get(SCOPE_ATTR)
        if not isinstance(target, TargetAttr):
            raise error_at(function, f"function '{name}' has no '{TARGET_ATTR}'; device-bind-target gives it one")
        if not isinstance(scope, ScopeAttr) or not scope.type_name or scope.id_value < 0:
            raise error_at(function, f"function '{name}' needs '{SCOPE_ATTR}' with a device type and an id")
        if is_host_code(function):
            return
        if is_public(function):
            raise error_at(function, f"function '{name}' is for target '{target.kind_name}' and must be private")
        if not function.body.blocks and not has_foreign_body(function):
            raise error_at(function, f"function '{name}' is for target '{target.kind_name}' and needs a body")

    def check_body(self, function: FuncOp) -> None:
        on_host = is_host_code(function)
        blocks: set[Block | None] = {block for op in function.walk() for r in op.regions for block in r.blocks}
        for op in function.body.walk():
            name = op_name(op)
            if name in _BEFORE_THE_SPLIT:
                raise error_at(op, f"'{name}' must not remain after the split")
            for number, value in enumerate(op.operands):
                owner = value.owner
                if (owner if isinstance(owner, Block) else owner.parent) not in blocks:
                    what = f"operand #{number} of '{name}' is defined outside of function"
                    raise error_at(op, f"{what} '{function.sym_name.data}'")
            if isinstance(op, LaunchOp):
                self._check_launch(op, function)
            if on_host:
                self._check_on_host(op, name, function)
            elif name in _HOST_ONLY or name.partition(".")[0] in _HOST_ONLY_DIALECTS:
                raise error_at(op, f"only the host can do '{name}', but it stands in code for {_device(function)}")
            if name == CALL:
                self._check_call(op, function)

    def _check_on_host(self, op: Operation, name: str, function: FuncOp) -> None:
        if not self.analysis.executes(op):
            return
        scope, own = self.analysis.of_op(op), function.attributes[SCOPE_ATTR]
        if isinstance(own, ScopeAttr) and not scope.is_open and not scope.same_device(own):
            raise error_at(op, f"'{name}' runs on {scope.short()}, but stands in code for {_device(function)}")

    def _check_launch(self, op: LaunchOp, function: FuncOp) -> None:
        check_launch(op)
        name = op.kernel.string_value()
        kernel = self.analysis.symbols.kernels[name]
        if is_host_code(function) or call_kind(function, kernel) is not CallKind.PLAIN:
            where = f"is for {_device(kernel)}, but is launched in code for {_device(function)}"
            remedy = "device-bind-target gives each device and target a kernel of its own"
            raise error_at(op, f"kernel '{name}' {where}", remedy)

    def _check_call(self, op: Operation, caller: FuncOp) -> None:
        name, callee = callee_name(op) or "", self.analysis.symbols.callee(op)
        if callee is None:
            raise error_at(op, f"'{name}' is called, but the module has no such function")
        _check_signature(op, callee)
        kind = call_kind(caller, callee)
        inside = self.analysis.computation(op) is not op
        if not is_host_code(caller) and (kind is CallKind.LAUNCH or (inside and kind is not CallKind.PLAIN)):
            where = "the host" if is_host_code(callee) else _device(callee)
            message = f"'{name}' is called by code for {_device(caller)}, but runs on {where}"
            remedy = "put the operation with the call there, or the callee's body in place of the call"
            raise error_at(op, message, remedy)
        mark = op.attributes.get(CALL_ATTR)
        if mark is not None and mark != StringAttr(kind.value):
            raise error_at(op, f"'{CALL_ATTR}' is {mark}, but the targets say that this is a {kind.value} call")
        calls = self.first.setdefault(name, {})
        calls.setdefault(kind, op)
        if (launch := calls.get(CallKind.LAUNCH)) and (extern := calls.get(CallKind.EXTERN)):
            raise error_at(
                callee,
                f"function '{name}' is launched and called as an external function, too",
                note_at(launch, "it is launched here"),
                note_at(extern, "it is called by code for another target here"),
                "give one of the calls a copy of the function",
            )


def _check_signature(op: Operation, callee: FuncOp) -> None:
    name, type_ = callee.sym_name.data, callee.function_type
    for noun, given, taken in (
        ("arguments", op.operand_types, type_.inputs.data),
        ("results", op.result_types, type_.outputs.data),
    ):
        if len(given) != len(taken):
            raise error_at(op, f"the call of '{name}' has {len(given)} {noun}, the function has {len(taken)}")
        for number, (one, other) in enumerate(zip(given, taken, strict=True)):
            if one != other:
                raise error_at(op, f"{noun[:-1]} #{number} of the call of '{name}' is {one}, not {other}")


def _device(function: FuncOp) -> str:
    scope, target = function.attributes.get(SCOPE_ATTR), function.attributes.get(TARGET_ATTR)
    assert isinstance(scope, ScopeAttr)
    assert isinstance(target, TargetAttr)
    options = f" <{target.short()}>" if target.option_values else ""
    return f"{scope.short()}{options}"


@dataclass(frozen=True)
class DeviceVerifySplitPass(ManagedPass):
    """Check a split module. Changes nothing."""

    name = "device-verify-split"

    host: str = "cpu:0"

    def run(self, analyses: AnalysisManager) -> bool:
        """Raise `VerifyError`, located, for the first promise that the module breaks."""
        analysis = analyses.get(ScopeAnalysis)
        verifier = _Verifier(analysis)
        functions = analysis.symbols.functions.values()
        for function in (*functions, *analysis.symbols.kernels.values()):
            verifier.check_function(function)
        for function in functions:
            verifier.check_body(function)
        return False


class SplitModulePass(ManagedPass):
    """A pass over split modules. By itself, outside of a compilation, it refuses others."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        analyses = self.analyses(op)
        try:
            DeviceVerifySplitPass().run(analyses)
        except VerifyError as error:
            advice = f"'{self.name}' is for split modules: run device-plan and device-split before it"
            raise VerifyError(error.message, error.location, [*error.notes, advice]) from None
        self.run(analyses)
