"""What MLIR's pass registry knows, asked through its pipeline parser: the bindings offer no other way."""

import os
import re
import sys
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from importlib import resources
from typing import Any

from devscope.errors import OptionError, SourceLocation

SAME_NAME = "MLIR has a pass of this name too: mlir.{}"
"""A note on the error of xDSL's pass."""

_RESTRICTED = re.compile(r"Can't add pass '.*' restricted to '([\w.]+)'")
_NOT_ON_MODULE = "unable to schedule pass"
_NOT_REGISTERED = "does not refer to a registered pass"
_NO_OPTION = re.compile(r"no such option (\S+)")


def is_pass(name: str) -> bool:
    return _NOT_REGISTERED not in _parse_problem(name)


def known_passes() -> list[str]:
    """Names for suggestions and listings: upstream's, less those that this build of MLIR lacks."""
    names = (resources.files("devscope.cli") / "mlir_passes.txt").read_text().split()
    return [name for name in names if is_pass(name)]


def check_element(element: str, location: SourceLocation) -> None:
    """Raises OptionError unless ``element`` may stand inside ``builtin.module(...)``."""
    if problem := _parse_problem(element):
        raise OptionError(f"MLIR refuses the pipeline '{element}'", location, [_one_line(problem)])


def schedulable_element(name: str, options: str | None, location: SourceLocation) -> str:
    """The text that runs one pass on a module: ``name{options}``, nested where the pass needs another anchor.

    Raises OptionError for options that the pass does not take.
    """
    nested = _nested(name, "" if options is None else f"{{{options}}}")
    if problem := _parse_problem(nested):
        unknown = _NO_OPTION.search(problem)
        what = f"has no option '{unknown[1]}'" if unknown else f"refuses the options '{options}'"
        raise OptionError(f"MLIR pass '{name}' {what}", location, [_one_line(problem), _legal_options(name)])
    return nested


@cache
def _nested(name: str, options: str = "") -> str:
    """The pass as it stands under the module: as it is, or nested on the operation that it must be nested on."""
    problem = _parse_problem(name)
    restricted = _RESTRICTED.search(problem)
    anchor = restricted[1] if restricted else None
    if not problem and _NOT_ON_MODULE in _run_problem(name):
        anchor = "func.func"
    return f"{name}{options}" if anchor is None else f"{anchor}({name}{options})"


def _legal_options(name: str) -> str:
    """MLIR prints a parsed pass with every option and its default."""
    try:
        text = str(_manager(_nested(name)))
    except ValueError:
        return f"see MLIR's documentation of '{name}'"
    match = re.search(re.escape(name) + r"\{(.*)\}", text, re.DOTALL)
    if match is None:
        return f"'{name}' has no options"
    return f"options of '{name}' with their defaults are: {_one_line(match[1])}"


@cache
def _context() -> Any:
    # A context of its own: probing leaves no trace in the one that holds the user's module.
    from devscope.lowering.interop.bindings import ir, register_stablehlo_passes

    register_stablehlo_passes()
    return ir.Context()


def _manager(element: str) -> Any:
    from devscope.lowering.interop.bindings import passmanager

    return passmanager.PassManager.parse(f"builtin.module({element})", _context())


@cache
def _parse_problem(element: str) -> str:
    """Why MLIR does not accept the pipeline ``builtin.module(element)``; empty when it does."""
    with _captured_stderr() as captured:
        try:
            _manager(element)
        except ValueError as error:
            return f"{error}\n{captured()}"
    return ""


def _run_problem(element: str) -> str:
    """What a run on an empty module complains about; nothing else tells where a pass may be scheduled."""
    from devscope.lowering.interop.bindings import ir

    with _captured_stderr():
        try:
            _manager(element).run(ir.Module.parse("", _context()).operation)
        except ir.MLIRError as error:
            return str(error)
    return ""


@contextmanager
def _captured_stderr() -> Generator[Callable[[], str]]:
    """Keeps what C++ writes to file descriptor 2; the value given is a function that returns it so far.

    LLVM's command line library reports ill-typed options there, out of Python's sight.
    """
    sys.stderr.flush()
    saved = os.dup(2)
    with tempfile.TemporaryFile() as stream:

        def text() -> str:
            stream.seek(0)
            return stream.read().decode(errors="replace")

        os.dup2(stream.fileno(), 2)
        try:
            yield text
        finally:
            os.dup2(saved, 2)
            os.close(saved)


def _one_line(text: str) -> str:
    return " ".join(text.split())
