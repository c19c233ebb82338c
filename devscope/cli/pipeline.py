"""Runs the stages of a pipeline over one module, which lives in MLIR or in xDSL, wherever it is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeAlias

from devscope.cli import mlir_pass_manager
from devscope.cli.pass_registry import MlirStage, PythonStage, Stage
from devscope.cli.timing import Timer
from devscope.errors import DevscopeError, LoweringError

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from devscope.lowering.interop.session import Session
    from devscope.passes.plan.remarks import Remark


Hook: TypeAlias = "Callable[[str, ModuleState], None]"
"""Called with the names of the passes of a stage and the module."""


@dataclass(frozen=True)
class Hooks:
    """What to call around every stage."""

    before: Hook | None = None
    after: Hook | None = None
    remark: Callable[[Remark], None] | None = None
    """Called with what a pass has to say about a module that it accepts."""


class ModuleState:
    """A module in the representation that was last asked for; the other one is dropped when it changes."""

    def __init__(self, session: Session, module: Any, timer: Timer) -> None:
        self.session = session
        self._timer = timer
        self._mlir: Any = module
        self._xdsl: ModuleOp | None = None
        self._unverified: list[str] = []

    def in_mlir(self) -> Any:
        """The module in MLIR, verified, to read or to change.

        Raises the verifier's error, with a note that names the passes which ran since the last verification.
        """
        if self._xdsl is not None:
            with self._timer.measure("(xDSL to MLIR)"):
                self._mlir = self._exported(self._xdsl)
            self._xdsl = None
        self._unverified.clear()
        return self._mlir

    def in_xdsl(self, changed_by: str) -> ModuleOp:
        """The module in xDSL, for the pass ``changed_by`` to change."""
        if self._xdsl is None:
            with self._timer.measure("(MLIR to xDSL)"):
                self._xdsl = self.session.to_xdsl(self._mlir)
            self._mlir = None
        self._unverified.append(changed_by)
        return self._xdsl

    def snapshot(self) -> Any:
        """The module in MLIR, to look at only, without verification."""
        return self._mlir if self._xdsl is None else self.session.to_mlir(self._xdsl, verify=False)

    def _exported(self, module: ModuleOp) -> Any:
        try:
            return self.session.to_mlir(module)
        except DevscopeError as error:
            passes = ", ".join(f"'{name}'" for name in self._unverified)
            note = f"the module was valid before the passes: {passes}"
            raise type(error)(error.message, error.location, [*error.notes, note], error.others) from error


def run_stages(state: ModuleState, stages: Sequence[Stage], timer: Timer, hooks: Hooks, each: bool) -> None:
    """Runs all stages. Consecutive MLIR passes share one pass manager unless ``each`` asks for one apiece.

    Raises what a pass raises; an exception that is not a DevscopeError becomes a LoweringError.
    """
    for group in _groups(stages, each):
        name = ",".join(stage.name for stage in group)
        if hooks.before is not None:
            hooks.before(name, state)
        if isinstance(group[0], PythonStage):
            _run_python(state, group[0], timer, hooks)
        else:
            _run_mlir(state, group, name, timer)
        if hooks.after is not None:
            hooks.after(name, state)


def _groups(stages: Sequence[Stage], each: bool) -> Iterator[list[Stage]]:
    """Stages that run together: a run of MLIR passes, or a single pass."""
    for is_mlir, group in groupby(stages, lambda stage: isinstance(stage, MlirStage)):
        if is_mlir and not each:
            yield list(group)
        else:
            for stage in group:
                yield [stage]


def _run_python(state: ModuleState, stage: PythonStage, timer: Timer, hooks: Hooks) -> None:
    module, context = state.in_xdsl(stage.name), state.session.xdsl_context
    apply_with_remarks = getattr(stage.pass_, "apply_with_remarks", None)
    remarks: Sequence[Remark] = ()
    with timer.measure(stage.name):
        try:
            if apply_with_remarks is None or hooks.remark is None:
                stage.pass_.apply(context, module)
            else:
                remarks = apply_with_remarks(context, module)
        except DevscopeError:
            raise
        except Exception as error:  # xDSL's own passes raise whatever Python raises in them
            raise _pass_failure(stage.name, error) from error
    if hooks.remark is not None:
        for remark in remarks:
            hooks.remark(remark)


def _run_mlir(state: ModuleState, group: Sequence[Stage], name: str, timer: Timer) -> None:
    elements = ",".join(stage.element for stage in group if isinstance(stage, MlirStage))
    module = state.in_mlir()
    with timer.measure(name):
        state.session.run_passes(module, f"builtin.module({elements})")


def _pass_failure(name: str, error: Exception) -> LoweringError:
    first, *rest = (str(error).strip() or "no message").splitlines()
    if mlir_pass_manager.is_pass(name):
        rest.append(f"MLIR has a pass of this name too: mlir.{name}")
    return LoweringError(f"pass '{name}' failed: {type(error).__name__}: {first}", notes=rest)
