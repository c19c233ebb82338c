"""A module that lives in MLIR or in xDSL, wherever the next pass runs, and where the wall time goes."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from devscope.cli import mlir_passes
from devscope.cli.pass_pipeline import Stage
from devscope.errors import DevscopeError, LoweringError, Note

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.passes import ModulePass

    from devscope.lowering.interop.session import Session


class Timer:
    """Wall time by label, in the order of first use; a repeated label adds up."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}

    @contextmanager
    def measure(self, label: str) -> Generator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self._seconds[label] = self._seconds.get(label, 0.0) + time.perf_counter() - start

    def table(self) -> str:
        """Seconds and share of the total, one line per label."""
        total = sum(self._seconds.values())
        lines = [f"{'seconds':>10}  {'share':>6}  name"]
        for label, seconds in [*self._seconds.items(), ("total", total)]:
            share = seconds / total if total > 0.0 else 0.0
            lines.append(f"{seconds:10.4f}  {share:6.1%}  {label}")
        return "\n".join(lines) + "\n"


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
        first = stages[0]
        if first.pass_ is not None:
            self._run_python(first.name, first.pass_, tell)
            return
        elements = ",".join(stage.element for stage in stages)
        module = self.in_mlir()
        with self._timer.measure(name):
            self._session.run_passes(module, f"builtin.module({elements})")

    def _run_python(self, name: str, pass_: ModulePass, tell: Callable[[Any], None]) -> None:
        if self._xdsl is None:
            with self._timer.measure("(MLIR to xDSL)"):
                self._xdsl = self._session.to_xdsl(self._mlir)
            self._mlir = None
        module = self._xdsl
        self._unverified.append(name)
        apply: Any = getattr(pass_, "apply_with_remarks", pass_.apply)
        with self._timer.measure(name):
            try:
                remarks = apply(self._session.xdsl_context, module) or ()
            except (DevscopeError, RecursionError):
                raise
            except Exception as error:  # xDSL's own passes raise whatever Python raises in them
                raise _pass_failure(name, error) from error
        for remark in remarks:
            tell(remark)

    def in_mlir(self) -> Any:
        """The module in MLIR, verified, to read or to change.

        Raises the verifier's error, with a note that names the passes which ran since the last verification.
        """
        if self._xdsl is not None:
            with self._timer.measure("(xDSL to MLIR)"):
                try:
                    self._mlir = self._session.to_mlir(self._xdsl)
                except DevscopeError as error:
                    passes = ", ".join(f"'{name}'" for name in self._unverified)
                    error.notes += (Note(f"the module was valid before the passes: {passes}"),)
                    raise
            self._xdsl = None
        self._unverified.clear()
        return self._mlir

    def snapshot(self) -> Any:
        """The module in MLIR, to look at only, without verification."""
        return self._mlir if self._xdsl is None else self._session.to_mlir(self._xdsl, verify=False)


def _pass_failure(name: str, error: Exception) -> LoweringError:
    first, *rest = (str(error).strip() or "no message").splitlines()
    if mlir_passes.is_pass(name):
        rest.append(mlir_passes.SAME_NAME.format(name))
    return LoweringError(f"pass '{name}' failed: {type(error).__name__}: {first}", notes=rest)
