"""Which passes the text of a pipeline means.

A plain name means devscope's pass of that name, else that of xDSL or a plugin, else MLIR's; ``devscope.``,
``xdsl.`` and ``mlir.`` in front force one. A name with parentheses is always MLIR's: ``func.func(cse)`` as in
mlir-opt, and ``mlir(...)`` or ``builtin.module(...)`` around any MLIR pipeline.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from xdsl.passes import ModulePass

from devscope.cli import mlir_passes
from devscope.cli.pass_options import make_pass
from devscope.cli.pass_syntax import PassItem, parse_pipeline
from devscope.errors import OptionError

PassTable: TypeAlias = Mapping[str, Callable[[], type[ModulePass]]]
"""Passes on xDSL's IR, by names with their owner's prefix."""

_MLIR_WRAPPERS = ("mlir", "builtin.module")


@dataclass(frozen=True)
class PythonStage:
    """A pass that runs on the xDSL module."""

    in_mlir: ClassVar = False
    name: str
    pass_: ModulePass


@dataclass(frozen=True)
class MlirStage:
    """An MLIR pass or nest of passes; ``element`` is what stands for it inside ``builtin.module(...)``."""

    in_mlir: ClassVar = True
    name: str
    element: str


Stage: TypeAlias = PythonStage | MlirStage


def parse_stages(text: str, passes: PassTable) -> list[Stage]:
    """The passes of a pipeline, with all names and options checked.

    Raises OptionError for a name that nobody knows (with the closest ones), for illegal options (with the
    legal ones) and for text that is not a pipeline (with its column).
    """
    stages: list[Stage] = []
    for item in parse_pipeline(text):
        stages += [_stage(item, passes)] if item.nested is None else _nested_stages(item, item.nested)
    return stages


def _nested_stages(item: PassItem, nested: str) -> Iterator[Stage]:
    """One stage per pass of a wrapped pipeline, so that each can be timed and printed on its own."""
    if item.name not in _MLIR_WRAPPERS:
        element = f"{item.name}({nested})"
        mlir_passes.check_element(element, item.location)
        yield MlirStage(element, element)
        return
    for inner in parse_pipeline(nested, item.nested_offset):
        if inner.nested is None:
            yield _mlir_stage(inner, inner.name)
        else:
            yield from _nested_stages(inner, inner.nested)


def _stage(item: PassItem, passes: PassTable) -> Stage:
    owner, _, name = item.name.partition(".")
    if name and owner == "mlir":
        return _mlir_stage(item, name)
    if name and owner in ("devscope", "xdsl"):
        if item.name not in passes:
            own = [known.partition(".")[2] for known in passes if known.startswith(owner)]
            raise _unknown_pass(item, name, own, owner)
        return PythonStage(name, make_pass(passes[item.name](), item))
    # Both have a canonicalize and a cse.
    for full_name in (f"devscope.{item.name}", f"xdsl.{item.name}"):
        if full_name in passes:
            return _python_stage(item, passes[full_name]())
    if mlir_passes.is_pass(item.name):
        return _mlir_stage(item, item.name)
    known = [*(full_name.partition(".")[2] for full_name in passes), *mlir_passes.known_passes()]
    raise _unknown_pass(item, item.name, known, "devscope, xDSL or MLIR")


def _python_stage(item: PassItem, pass_type: type[ModulePass]) -> Stage:
    try:
        return PythonStage(item.name, make_pass(pass_type, item))
    except OptionError as error:
        if not mlir_passes.is_pass(item.name):
            raise
        notes = [*error.notes, mlir_passes.SAME_NAME.format(item.name)]
        raise OptionError(error.message, error.location, notes) from error


def _mlir_stage(item: PassItem, name: str) -> Stage:
    if not mlir_passes.is_pass(name):
        raise _unknown_pass(item, name, mlir_passes.known_passes(), "MLIR")
    return MlirStage(name, mlir_passes.schedulable_element(name, item.options, item.location))


def _unknown_pass(item: PassItem, name: str, known: list[str], owner: str) -> OptionError:
    notes = ["all passes are listed by: devscope-opt --list-passes"]
    close = difflib.get_close_matches(name, known, n=3)
    if close:
        notes.insert(0, f"did you mean {' or '.join(map(repr, close))}?")
    return OptionError(f"no pass of {owner} is called '{name}'", item.location, notes)
