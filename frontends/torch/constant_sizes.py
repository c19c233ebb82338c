"""Where in the user's program PyTorch's trace makes a constant of a size that is to be dynamic."""

from __future__ import annotations

import linecache
import os
import traceback
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import sympy
import torch
from torch._dynamo.exc import UserError, UserErrorType
from torch.fx.experimental.sym_node import SymNode
from torch.fx.experimental.symbolic_shapes import DimConstraints, ShapeEnv

from devscope.frontends.torch.places import users_frame

_replace, _number = vars(ShapeEnv)["_set_replacement"], SymNode.guard_int
_advice = DimConstraints.prettify_results
_TRACERS = tuple(os.path.dirname(str(package.__file__)) + os.sep for package in (torch, sympy))
_MOST = 2


def is_constraint(error: Exception) -> bool:
    """Whether PyTorch says that a dimension cannot be what it shall be."""
    return isinstance(error, UserError) and error.error_type == UserErrorType.CONSTRAINT_VIOLATION


class _IntegerKind(type):
    """``int`` in all but this: of a dynamic size, it is one."""

    def __call__(cls, *arguments: Any, **named: Any) -> Any:
        if len(arguments) == 1 and isinstance(arguments[0], torch.SymInt | torch.SymFloat):
            return torch.sym_int(arguments[0])
        return int(*arguments, **named)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, int)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, int)

    def __eq__(cls, other: object) -> bool:
        return other is int or other is cls

    def __hash__(cls) -> int:
        return hash(int)


class _Integer(int, metaclass=_IntegerKind):
    pass


class Constants:
    """What has made constants of sizes, by one thread at a time."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        """On the first lines."""
        self._globals: dict[str, dict[str, Any]] = {}
        """Of functions that call ``int``, by their files."""

    def note(self) -> None:
        frames = {
            (frame.f_code.co_filename, str(line)): frame
            for frame, line in reversed([*traceback.walk_stack(None)])
            if not frame.f_code.co_filename.startswith(_TRACERS)
        }
        place = users_frame(frames)
        if place is None:
            return
        if "int" in frames[place].f_code.co_names:
            self._globals[place[0]] = frames[place].f_globals
        text = (
            f"{':'.join(place)} makes a constant of a size: {linecache.getline(place[0], int(place[1])).strip()}"
        )
        if text not in self.notes and len(self.notes) < _MOST:
            self.notes.append(text)

    @contextmanager
    def as_sizes(self) -> Generator[bool]:
        """While it is entered, ``int`` makes no constants in what has called it; whether there is such."""
        with ExitStack() as stack:
            for names in self._globals.values():
                stack.enter_context(mock.patch.dict(names, {"int": _Integer}))
            yield bool(self._globals)


@contextmanager
def noted_constants() -> Generator[Constants]:
    """What makes constants of sizes while it is entered."""
    found = Constants()

    def replace(self: Any, symbol: Any, value: Any, why: str) -> None:
        if value.is_number:
            found.note()
        _replace(self, symbol, value, why)

    def number(self: Any, file: str, line: int) -> int:
        if not self.expr.is_number:
            found.note()
        return _number(self, file, line)

    def advice(self: Any, *arguments: Any) -> str:
        """PyTorch asserts that there are no fractions in it."""
        try:
            return _advice(self, *arguments)
        except AssertionError:
            return ""

    with ExitStack() as stack:
        for owner, name, function in (
            (ShapeEnv, "_set_replacement", replace),
            (SymNode, "guard_int", number),
            (DimConstraints, "prettify_results", advice),
        ):
            stack.enter_context(mock.patch.object(owner, name, function))
        yield found
