"""Which pass a name in a pipeline means.

A plain name means devscope's pass of that name, else xDSL's, else MLIR's; ``devscope.``, ``xdsl.`` and
``mlir.`` in front force one. A name with parentheses is always MLIR's: ``func.func(cse)`` as in mlir-opt, and
``mlir(...)`` or ``builtin.module(...)`` around any MLIR pipeline.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from devscope.cli import mlir_pass_manager
from devscope.cli.pass_options import make_pass
from devscope.cli.pass_syntax import PassItem, parse_pipeline
from devscope.errors import OptionError

if TYPE_CHECKING:
    from xdsl.passes import ModulePass

    PassTable: TypeAlias = Mapping[str, Callable[[], type[ModulePass]]]

_MLIR_WRAPPERS = ("mlir", "builtin.module")


@dataclass(frozen=True)
class PythonStage:
    """A pass that runs on the xDSL module."""

    name: str
    pass_: ModulePass


@dataclass(frozen=True)
class MlirStage:
    """An MLIR pass or nest of passes; ``element`` is what stands for it inside ``builtin.module(...)``."""

    name: str
    element: str


Stage: TypeAlias = PythonStage | MlirStage


def parse_stages(text: str) -> list[Stage]:
    """The passes of a pipeline, with all names and options checked.

    Raises OptionError for a name that nobody knows (with the closest ones), for illegal options (with the
    legal ones) and for text that is not a pipeline (with its column).
    """
    stages: list[Stage] = []
    for item in parse_pipeline(text):
        stages += _resolve(item)
    return stages


def devscope_passes() -> PassTable:
    from devscope.passes import get_all_passes

    return get_all_passes()


def xdsl_passes() -> PassTable:
    """The passes of xDSL and of the plugins installed beside it."""
    from xdsl.universe import Universe

    own = devscope_passes()
    return {name: load for name, load in Universe.get_multiverse().all_passes.items() if name not in own}


def _xdsl_own_passes() -> PassTable:
    from xdsl.transforms import get_all_passes

    return get_all_passes()


def _resolve(item: PassItem) -> list[Stage]:
    if item.nested is not None:
        return _nested_stages(item)
    prefix, _, name = item.name.partition(".")
    match prefix if name else "":
        case "devscope":
            return [_python_stage(item, name, devscope_passes)]
        case "xdsl":
            return [_python_stage(item, name, xdsl_passes)]
        case "mlir":
            return [_mlir_stage(item, name)]
        case _:
            return [_plain_stage(item)]


def _nested_stages(item: PassItem) -> list[Stage]:
    """One stage per pass of a wrapped pipeline, so that each can be timed and printed on its own."""
    assert item.nested is not None
    if item.name in _MLIR_WRAPPERS:
        stages: list[Stage] = []
        for inner in parse_pipeline(item.nested, item.nested_offset):
            if inner.nested is not None and inner.name in _MLIR_WRAPPERS:
                stages += _nested_stages(inner)
            elif inner.nested is not None:
                stages.append(_nest(inner))
            else:
                stages.append(_mlir_stage(inner, inner.name))
        return stages
    return [_nest(item)]


def _nest(item: PassItem) -> Stage:
    element = f"{item.name}({item.nested})"
    mlir_pass_manager.check_element(element, item.location)
    return MlirStage(element, element)


def _plain_stage(item: PassItem) -> Stage:
    # Plugins come last: finding them reads the metadata of every installed package.
    for passes in (devscope_passes, _xdsl_own_passes):
        if item.name in passes():
            return _python_stage(item, item.name, passes)
    if mlir_pass_manager.is_pass(item.name):
        return _mlir_stage(item, item.name)
    if item.name in xdsl_passes():
        return _python_stage(item, item.name, xdsl_passes)
    known = [*devscope_passes(), *xdsl_passes(), *mlir_pass_manager.known_passes()]
    raise _unknown_pass(item, item.name, known, "devscope, xDSL or MLIR")


def _python_stage(item: PassItem, name: str, passes: Callable[[], PassTable]) -> Stage:
    table = passes()
    if name not in table:
        raise _unknown_pass(item, name, list(table), item.name.partition(".")[0])
    try:
        return PythonStage(name, make_pass(table[name](), item))
    except OptionError as error:
        if item.name != name or not mlir_pass_manager.is_pass(name):
            raise
        hint = f"MLIR has a pass of this name too: mlir.{name}"
        raise OptionError(error.message, error.location, [*error.notes, hint]) from error


def _mlir_stage(item: PassItem, name: str) -> Stage:
    if not mlir_pass_manager.is_pass(name):
        raise _unknown_pass(item, name, mlir_pass_manager.known_passes(), "MLIR")
    return MlirStage(name, mlir_pass_manager.schedulable_element(name, item.options, item.location))


def _unknown_pass(item: PassItem, name: str, known: list[str], owner: str) -> OptionError:
    notes = ["all passes are listed by: devscope-opt --list-passes"]
    close = difflib.get_close_matches(name, known, n=3)
    if close:
        notes.insert(0, f"did you mean {' or '.join(repr(one) for one in close)}?")
    return OptionError(f"no pass of {owner} is called '{name}'", item.location, notes)
