"""Runs Python tools in forks of a process that has their libraries loaded, which takes longer than most tests."""

from __future__ import annotations

import atexit
import importlib
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

LIBRARIES = ("devscope.lowering.interop.session", "devscope.passes.device_plan", "devscope.dialects.context")


def preload(modules: Sequence[str]) -> type[subprocess.Popen[Any]]:
    """What starts ``python -P -m MODULE`` as a fork of this process, for ``modules``, whose ``main`` is the tool.

    All else starts as always.
    """
    for module in (*modules, *LIBRARIES):
        importlib.import_module(module)

    class Preloaded(subprocess.Popen[Any]):
        def __init__(self, args: Sequence[str], **options: Any) -> None:
            if list(args[:3]) == [sys.executable, "-P", "-m"] and args[3] in modules:
                options["preexec_fn"] = partial(_become, args[3:], options.get("env"))
            super().__init__(args, **options)

    return Preloaded


def _become(words: Sequence[str], environment: Mapping[str, str] | None) -> None:
    """The tool, in the child, which has its descriptors and directory."""
    os.closerange(3, 1 << 10)  # so that the parent goes on
    atexit._clear()  # what the parent does at its end
    sys.argv = list(words)
    if environment is not None:
        os.environ.clear()
        os.environ.update(environment)
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(n, mode) for n, mode in enumerate(("r", "w", "w")))
    # As in any process: a tool may put another stream in place of one, whose descriptor stays open.
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr  # pyright: ignore
    status = 1
    try:
        status = importlib.import_module(words[0]).main()
    except SystemExit as end:
        status = end.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status if isinstance(status, int) else 0 if status is None else 1)
