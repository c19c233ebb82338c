"""The stages of a compilation, in order: parse, plan, verify, split, lower."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ModuleOp

from devscope.dialects.device import ScopeAttr, verify_device_attributes
from devscope.lowering import compiler
from devscope.lowering.compiler import Observer, compile_split_module
from devscope.lowering.interop.session import Session
from devscope.passes.device_split import split_module
from devscope.passes.device_verify import verify_module
from devscope.passes.plan import Plan, PlanOptions, plan_module
from devscope.passes.split.targets import TargetBinding

if TYPE_CHECKING:
    from devscope.api import CompileOptions
    from devscope.runtime.program import Program

HOST = ScopeAttr.get("cpu", 0)

#: The states of a program that can be looked at, in order.
STAGES = ("plan", "split", *compiler.STAGES)


@dataclass
class PlannedProgram:
    """A planned module with the session that owns its payload."""

    session: Session
    module: ModuleOp
    plan: Plan


def import_source(session: Session, source: Any) -> Any:
    """An MLIR module from a path, text, bytecode, or a module of the bindings. Raises ParseError."""
    if isinstance(source, os.PathLike) or (isinstance(source, str) and _is_path(source)):
        return session.parse_file(os.fspath(source))
    if isinstance(source, str | bytes):
        return session.parse(source)
    # A module of another context: bytecode carries it over, locations included.
    import io

    buffer = io.BytesIO()
    source.operation.write_bytecode(buffer)
    return session.parse(buffer.getvalue())


def _is_path(text: str) -> bool:
    return "\n" not in text and len(text) < 4096 and os.path.exists(text)


def plan_source(source: Any, options: CompileOptions) -> PlannedProgram:
    session = Session()
    module = session.to_xdsl(import_source(session, source))
    verify_device_attributes(module)
    plan_options = PlanOptions(
        default=ScopeAttr.parse_text(options.default), host=HOST, arguments=options.arguments
    )
    plan = plan_module(module, plan_options)
    verify_module(module)
    return PlannedProgram(session, module, plan)


def compile_source(source: Any, options: CompileOptions, observe: Observer | None = None) -> Program:
    """Compile a program; ``observe`` is called with the name and the IR of every stage in `STAGES`."""
    planned = plan_source(source, options)
    show = observe or _ignore
    if observe is not None:
        observe("plan", planned.session.to_mlir(planned.module))
    binding = TargetBinding(dict(options.targets))
    split_module(planned.module, HOST, binding)
    verify_module(planned.module)
    if observe is not None:
        observe("split", planned.session.to_mlir(planned.module))
    program = compile_split_module(planned.session, planned.module, binding, show)
    program.report["plan"] = planned.plan.to_json()
    return program


def _ignore(stage: str, payload: Any) -> None:
    """Nobody watches."""
