"""Where in the user's program PyTorch's trace makes a constant of a size that is to be dynamic."""

from __future__ import annotations

import traceback
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from torch._dynamo.exc import UserError, UserErrorType
from torch.fx.experimental.sym_node import SymNode
from torch.fx.experimental.symbolic_shapes import DimConstraints, ShapeEnv

from devscope.frontends.torch.places import users_frame

_replace, _number = vars(ShapeEnv)["_set_replacement"], SymNode.guard_int
_advice = DimConstraints.prettify_results
_MOST = 2


def is_constraint(error: Exception) -> bool:
    """Whether PyTorch says that a dimension cannot be what it shall be."""
    return isinstance(error, UserError) and error.error_type == UserErrorType.CONSTRAINT_VIOLATION


@contextmanager
def noted_constants() -> Generator[list[str]]:
    """Notes on the first lines that make constants of sizes while it is entered, by one thread at a time."""
    notes: list[str] = []

    def note() -> None:
        if len(notes) > _MOST:
            return
        lines = {(frame.filename, str(frame.lineno)): frame.line or "" for frame in traceback.extract_stack()}
        place = users_frame(lines)
        text = f"{':'.join(place or ())} makes a constant of a size: {lines[place] if place else ''}"
        if place and text not in notes:
            notes.append(text)
            if "int(" in lines[place]:
                notes.append("int() of a size is its number in the example; quotients by // stay dynamic")

    def replace(self: Any, symbol: Any, value: Any, why: str) -> None:
        if value.is_number:
            note()
        _replace(self, symbol, value, why)

    def number(self: Any, file: str, line: int) -> int:
        if not self.expr.is_number:
            note()
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
        yield notes
