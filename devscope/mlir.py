"""devscope inside MLIR's Python bindings: its dialect in a context, its passes in a pass manager.

```python
from torch_mlir import ir, passmanager
import devscope.mlir

with ir.Context() as context:
    devscope.mlir.load_dialect(context)
    module = ir.Module.parse(text)
    pm = passmanager.PassManager()
    pm.add("canonicalize")
    devscope.mlir.add_plan_pass(pm, default="opencl:0")
    pm.run(module.operation)
```

Any package with MLIR's bindings will do (``mlir``, ``torch_mlir``). Modules are changed in place and stay in their
context.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from devscope.errors import DevscopeError, OptionError, depth_reported
from devscope.frontends.mlir import load_dialect, read_module, replace_contents

if TYPE_CHECKING:
    from xdsl.passes import ModulePass

__all__ = ["add_pass", "add_plan_pass", "irdl_file", "load_dialect", "run_pass"]


def irdl_file() -> Path:
    """The ``device`` dialect in IRDL, for ``mlir-opt --irdl-file`` and whatever else reads it."""
    from devscope.dialects.irdl_file import IRDL_FILE

    return IRDL_FILE


def add_plan_pass(pm: Any, context: Any = None, **options: Any) -> None:
    """Add the pass ``device-plan`` to a ``PassManager`` of any bindings; its options are keywords.

    Operations are planned as they are; `devscope.plan` brings them into the compiler's form first. Of a ``pm``
    that was made without a current context, ``context`` is its context. Raises as `add_pass` does.
    """
    add_pass(pm, "device-plan", context, **options)


def add_pass(pm: Any, name: str, context: Any = None, /, **options: Any) -> None:
    """Add one of devscope's passes (``devscope-opt --help`` lists them), which runs on ``builtin.module``.

    What it finds wrong is a diagnostic of MLIR's, and the pass fails. The dialect is loaded now, since no context
    takes a new one while passes run.

    Raises OptionError for an unknown pass or option, or where there is no context.
    """
    import importlib

    made = _make(name, options)
    bindings: Any = importlib.import_module(type(pm).__module__.partition("._mlir_libs")[0] + ".ir")
    context = context or bindings.Context.current
    if context is None:
        raise OptionError("there is no current context", notes=["say which: add_pass(pm, name, context)"])
    load_dialect(context)

    def run(op: Any, manager: Any) -> None:
        try:
            if op.name != "builtin.module":
                raise OptionError(f"'{name}' runs on builtin.module, and was added for '{op.name}'")
            _apply(made, op)
        except DevscopeError as error:
            op.location.emit_error(str(error).removeprefix("error: "))
            manager.signal_pass_failure()

    pm.add(run, name=name, argument=name)  # for any operation, as the manager is that names none


def run_pass(module: Any, name: str, /, **options: Any) -> None:
    """Run one of devscope's passes on a module of any bindings, in place. Raises a DevscopeError."""
    load_dialect(module.context)
    _apply(_make(name, options), module.operation)


def _make(name: str, options: dict[str, Any]) -> ModulePass:
    from devscope.passes import get_all_passes

    found = get_all_passes().get(name)
    if found is None:
        raise OptionError(f"there is no pass '{name}'", notes=[f"they are: {', '.join(get_all_passes())}"])
    made = found()
    hints = get_type_hints(made)
    kinds = {field.name: hints[field.name] for field in dataclasses.fields(made)}
    for option, value in options.items():
        if option not in kinds:
            notes = [f"it has: {', '.join(kinds)}"] if kinds else ["it has none"]
            raise OptionError(f"pass '{name}' has no option '{option}'", notes=notes)
        if (kind := kinds[option]) in (bool, int, str) and type(value) is not kind:
            raise OptionError(f"option '{option}' of pass '{name}' is of type {kind.__name__}, not {value!r}")
    return made(**options)


@depth_reported()
def _apply(made: ModulePass, op: Any) -> None:
    from xdsl.utils.exceptions import DiagnosticException

    from devscope.dialects.context import make_planning_context
    from devscope.errors import VerifyError
    from devscope.lowering.interop.other_bindings import written
    from devscope.lowering.interop.session import Session

    session = Session(make_planning_context())
    twin = session.to_xdsl(session.parse(read_module(op).data))
    try:
        made.apply(session.xdsl_context, twin)
    except DiagnosticException as error:
        raise VerifyError(str(error)) from error
    replace_contents(op, written(session.to_mlir(twin)))
