"""The planner's warnings about a program that is built or run."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from devscope.runtime.program import Program


def print_warnings(program: Program) -> None:
    """Print to stderr what ``devscope plan`` warns of; a program from the cache still knows."""
    for text in program.report.get("plan", {}).get("warnings", ()):
        print(text, file=sys.stderr)
