"""A module that lives in MLIR or in xDSL, wherever the next pass runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from devscope.cli import mlir_passes
from devscope.cli.pass_pipeline import MlirStage, PythonStage, Stage
from devscope.cli.timing import Timer
from devscope.errors import DevscopeError, LoweringError

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from devscope.lowering.interop.session import Session


class ModuleState:
    """A module in the representation that was last asked for; the other one is dropped when it changes."""

    def __init__(self, session: Session, module: Any, timer: Timer) -> None:
        self._session = session
        self._timer = timer
        self._mlir: Any = module
        self._xdsl: ModuleOp | None = None
        self._unverified: list[str] = []

    def run(self, stages: Sequence[Stage], name: str, tell: Callable[[Any], None]) -> None:
        """Runs MLIR passes, in one pass manager, or a single pass of another kind; ``tell`` gets its remarks.

        Raises what a pass raises; an exception that is not a DevscopeError becomes a LoweringError.
        """
        if isinstance(stages[0], PythonStage):
            self._run_python(stages[0], tell)
            return
        elements = ",".join(stage.element for stage in stages if isinstance(stage, MlirStage))
        module = self.in_mlir()
        with self._timer.measure(name):
            self._session.run_passes(module, f"builtin.module({elements})")

    def _run_python(self, stage: PythonStage, tell: Callable[[Any], None]) -> None:
        module = self._in_xdsl()
        self._unverified.append(stage.name)
        apply: Any = getattr(stage.pass_, "apply_with_remarks", stage.pass_.apply)
        with self._timer.measure(stage.name):
            try:
                remarks = apply(self._session.xdsl_context, module) or ()
            except DevscopeError:
                raise
            except Exception as error:  # xDSL's own passes raise whatever Python raises in them
                raise _pass_failure(stage.name, error) from error
        for remark in remarks:
            tell(remark)

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

    def snapshot(self) -> Any:
        """The module in MLIR, to look at only, without verification."""
        return self._mlir if self._xdsl is None else self._session.to_mlir(self._xdsl, verify=False)

    def _in_xdsl(self) -> ModuleOp:
        if self._xdsl is None:
            with self._timer.measure("(MLIR to xDSL)"):
                self._xdsl = self._session.to_xdsl(self._mlir)
            self._mlir = None
        return self._xdsl

    def _exported(self, module: ModuleOp) -> Any:
        try:
            return self._session.to_mlir(module)
        except DevscopeError as error:
            passes = ", ".join(f"'{name}'" for name in self._unverified)
            note = f"the module was valid before the passes: {passes}"
            raise type(error)(error.message, error.location, [*error.notes, note], error.others) from error


def _pass_failure(name: str, error: Exception) -> LoweringError:
    first, *rest = (str(error).strip() or "no message").splitlines()
    if mlir_passes.is_pass(name):
        rest.append(mlir_passes.SAME_NAME.format(name))
    return LoweringError(f"pass '{name}' failed: {type(error).__name__}: {first}", notes=rest)
