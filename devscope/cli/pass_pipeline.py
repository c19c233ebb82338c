"""Which passes the text of a pipeline means.

A plain name means devscope's pass of that name, else that of xDSL or a plugin, else MLIR's; ``devscope.``,
``xdsl.`` and ``mlir.`` in front force one. A name with parentheses is always MLIR's: ``func.func(cse)`` as in
mlir-opt, and ``mlir(...)`` or ``builtin.module(...)`` around any MLIR pipeline.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.passes import ModulePass

from devscope.cli import mlir_passes
from devscope.cli.pass_options import make_pass
from devscope.cli.pass_syntax import PassItem, parse_pipeline
from devscope.errors import Note, OptionError

PassTable: TypeAlias = Mapping[str, Callable[[], type[ModulePass]]]
"""Passes on xDSL's IR, by names with their owner's prefix."""

_MLIR_WRAPPERS = ("mlir", "builtin.module")
_OWNERS = ("devscope", "xdsl", "mlir")


@dataclass(frozen=True)
class Stage:
    """A pass that runs on the xDSL module, or an MLIR pass or nest of passes.

    ``element`` is what stands for the latter inside ``builtin.module(...)``.
    """

    name: str
    pass_: ModulePass | None = None
    element: str = ""


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
        yield Stage(element, element=element)
        return
    for inner in parse_pipeline(nested, item.inside):
        if inner.nested is None:
            yield _owned_stage(inner, inner.name, {}, ["mlir"])
        else:
            yield from _nested_stages(inner, inner.nested)


def _stage(item: PassItem, passes: PassTable) -> Stage:
    owner, _, name = item.name.partition(".")
    if name and owner in _OWNERS:
        return _owned_stage(item, name, passes, [owner])
    return _owned_stage(item, item.name, passes, _OWNERS)


def _owned_stage(item: PassItem, name: str, passes: PassTable, owners: Sequence[str]) -> Stage:
    """The pass ``name`` of the first of ``owners`` that has one: there is a canonicalize and a cse of two."""
    for load in (passes.get(f"{owner}.{name}") for owner in owners):
        if load is not None:
            try:
                return Stage(name, make_pass(load(), item))
            except OptionError as error:
                if len(owners) > 1 and mlir_passes.is_pass(name):
                    error.notes += (Note(mlir_passes.SAME_NAME.format(name)),)
                raise
    if "mlir" in owners and mlir_passes.is_pass(name):
        return Stage(name, element=mlir_passes.schedulable_element(name, item.options, item.location))
    known = [full.partition(".")[2] for full in passes if full.partition(".")[0] in owners]
    known += mlir_passes.known_passes() if "mlir" in owners else []
    notes = ["all passes are listed by: devscope-opt --list-passes"]
    if close := difflib.get_close_matches(name, known, n=3):
        notes.insert(0, f"did you mean {' or '.join(map(repr, close))}?")
    named = "devscope, xDSL or MLIR" if len(owners) > 1 else owners[0].replace("mlir", "MLIR")
    raise OptionError(f"no pass of {named} is called '{name}'", item.location, notes)
