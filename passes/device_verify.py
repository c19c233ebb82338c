"""The pass ``device-verify``: checks that a planned module keeps its promises.

It shares no code with the planner. From the module alone it recovers where everything is (`ScopeAnalysis`) and
checks that data only ever moves by ``device.device_copy``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from devscope.dialects.device import SCOPE_ATTR, DeviceCopyOp, OnDeviceOp, RegionOp, ScopeAttr
from devscope.dialects.location import source_location
from devscope.dialects.names import op_name
from devscope.errors import VerifyError
from devscope.passes.placed_types import HOST, TENSOR, kind_of
from devscope.passes.scope_analysis import (
    CALLS,
    CHOICES,
    CONTROL,
    QUERIES,
    ScopeAnalysis,
    captured_uses,
)
from devscope.passes.signature import ARGUMENTS, RESULTS, signature_attributes

_SHAPE_OPERANDS = {
    "tensor.reshape": (1,),
    "memref.reshape": (1,),
    "stablehlo.dynamic_reshape": (1,),
    "stablehlo.dynamic_broadcast_in_dim": (1,),
    "stablehlo.dynamic_iota": (0,),
    "stablehlo.real_dynamic_slice": (1, 2, 3),
    "stablehlo.dynamic_pad": (2, 3, 4),
}
"""Operands that are shapes: on the host."""

_FOREIGN = ("device.compiler", "device.primitive")


def verify_module(module: ModuleOp, host: ScopeAttr | None = None) -> None:
    """Raise `VerifyError`, located at the operation, for the first promise that ``module`` breaks.

    The promises: every tensor argument and result of a function names its scope, with device type and id; an
    operation's operands and results are where it executes; copies go from where their operand is to another
    scope; what flows along calls, returns, branches and yields is where the other end expects it; no
    annotation is left; control flow and scalar operations carry no scope.
    """
    analysis = ScopeAnalysis(module) if host is None else ScopeAnalysis(module, host)
    for func in analysis.functions.values():
        _Verifier(analysis, func).check()


@dataclass
class _Verifier:
    analysis: ScopeAnalysis
    func: FuncOp

    def check(self) -> None:
        self._check_signature()
        if self.func.body.first_block is None or any(mark in self.func.attributes for mark in _FOREIGN):
            return
        for op in self.analysis.planned_operations(self.func):
            self._check(op, op_name(op))

    def _check_signature(self) -> None:
        signature = self.func.function_type
        for side, noun, types in (
            (ARGUMENTS, "argument", signature.inputs.data),
            (RESULTS, "result", signature.outputs.data),
        ):
            for index, scope in enumerate(signature_attributes(self.func, side, len(types))):
                if kind_of(types[index]) == TENSOR and not _is_closed(scope):
                    shown = scope.short() if isinstance(scope, ScopeAttr) else "missing"
                    raise _error(
                        self.func,
                        f"{noun} #{index} of @{self.func.sym_name.data} needs '{SCOPE_ATTR}' with a device type "
                        f"and an id; it is {shown}",
                    )

    def _check(self, op: Operation, name: str) -> None:
        if isinstance(op, OnDeviceOp | RegionOp):
            raise _error(op, f"'{name}' must not remain after planning; run device-plan")
        if isinstance(op, DeviceCopyOp):
            self._check_copy(op)
        elif name in CONTROL or name in QUERIES:
            if SCOPE_ATTR in op.attributes:
                raise _error(op, f"'{name}' runs on the host and must not carry '{SCOPE_ATTR}'")
            self._check_flow(op, name)
        else:
            self._check_execution(op, name)

    def _check_copy(self, op: DeviceCopyOp) -> None:
        if kind_of(op.operand.type) == HOST:
            raise _error(op, "'device.device_copy' of a scalar; scalars are on the host everywhere")
        actual = self.analysis.of_value(op.operand)
        if op.src != actual:
            raise _error(op, f"'src' is {op.src.short()}, but the operand is on {actual.short()}")
        if not _is_closed(op.dst):
            raise _error(op, f"'dst' needs a device type and an id; it is {op.dst.short()}")
        if op.src == op.dst:
            raise _error(op, f"the copy goes from {op.src.short()} to itself")

    def _check_execution(self, op: Operation, name: str) -> None:
        scope = self.analysis.of_op(op)
        own = op.attributes.get(SCOPE_ATTR)
        if own is not None and own != scope:
            raise _error(op, f"'{name}' touches no data, runs on the host and must not carry '{SCOPE_ATTR}'")
        if not _is_closed(scope):
            raise _error(op, f"'{name}' needs a scope with a device type and an id; it is {scope.short()}")
        shapes = _SHAPE_OPERANDS.get(name, ())
        for index, value in enumerate(op.operands):
            expected = self.analysis.host if index in shapes else scope
            self._expect(op, f"operand #{index}", value, expected)
        if op.regions:
            for inner, index in captured_uses(op):
                self._expect(inner, f"operand #{index}, captured by '{name}',", inner.operands[index], scope)
            self._check_body(op, name, scope)

    def _check_body(self, op: Operation, name: str, scope: ScopeAttr) -> None:
        """Nothing inside a computation may say that it runs, or wants its data, elsewhere."""
        for inner in op.walk():
            own = inner.attributes.get(SCOPE_ATTR)
            if inner is not op and own is not None and own != scope:
                raise _error(inner, f"'{op_name(inner)}' stands in '{name}', which runs on {scope.short()}")
            if op_name(inner) == "func.call":
                callee = self.analysis.callee_of(inner)
                for index, value in enumerate(inner.operands if callee is not None else ()):
                    assert callee is not None
                    at = self.analysis.of_argument(callee, index)
                    if kind_of(value.type) != HOST and at != scope:
                        raise _error(inner, _differs(f"argument #{index} of the callee", at, scope))

    # Control flow

    def _check_flow(self, op: Operation, name: str) -> None:
        parent = op.parent_op()
        if name in CALLS:
            self._check_call(op, name)
        elif name == "func.return":
            for index, value in enumerate(op.operands):
                self._expect(op, f"operand #{index}", value, self.analysis.of_result(self.func, index))
        elif name.startswith("cf."):
            targets = [argument for block in op.successors for argument in block.args]
            self._check_same(op, len(op.operands) - len(targets), targets)
        elif name == "scf.for":
            self._check_same(op, 3, op.results)
            self._check_same(op, 3, op.regions[0].blocks[0].args[1:])
        elif name == "scf.while":
            self._check_same(op, 0, op.regions[0].blocks[0].args)
        elif name == "scf.condition" and parent is not None:
            self._check_same(op, 1, parent.results)
            self._check_same(op, 1, parent.regions[1].blocks[0].args)
        elif name == "scf.yield" and parent is not None:
            self._check_yield(op, parent, op_name(parent))

    def _check_yield(self, op: Operation, parent: Operation, name: str) -> None:
        if name == "scf.while":
            self._check_same(op, 0, parent.regions[0].blocks[0].args)
        elif name in CHOICES or name == "scf.for":
            self._check_same(op, 0, parent.results)

    def _check_call(self, op: Operation, name: str) -> None:
        callee = self.analysis.callee_of(op)
        if name == "func.constant":
            return
        first = 1 if name == "func.call_indirect" else 0
        for index, value in enumerate(op.operands[first:]):
            if callee is not None:
                expected = self.analysis.of_argument(callee, index)
            else:
                expected = self.analysis.of_value(op.operands[0])
            self._expect(op, f"operand #{index + first}", value, expected)

    def _check_same(self, op: Operation, first: int, targets: Sequence[SSAValue]) -> None:
        for index, target in enumerate(targets, first):
            if kind_of(target.type) != HOST:
                self._expect(op, f"operand #{index}", op.operands[index], self.analysis.of_value(target))

    def _expect(self, op: Operation, what: str, value: SSAValue, expected: ScopeAttr) -> None:
        if kind_of(value.type) != HOST and (actual := self.analysis.of_value(value)) != expected:
            raise _error(op, _differs(f"{what} of '{op_name(op)}'", actual, expected))


def _differs(what: str, actual: ScopeAttr, expected: ScopeAttr) -> str:
    return f"{what} is on {actual.short()}, but is used on {expected.short()} without a device.device_copy"


def _is_closed(scope: object) -> bool:
    return isinstance(scope, ScopeAttr) and bool(scope.type_name) and scope.id_value >= 0


def _error(op: Operation, message: str) -> VerifyError:
    return VerifyError(message, source_location(op))


@dataclass(frozen=True)
class DeviceVerifyPass(ModulePass):
    """Check a planned module, see `verify_module`. Changes nothing."""

    name = "device-verify"

    host: str = "cpu:0"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        verify_module(op, ScopeAttr.parse_text(self.host))
