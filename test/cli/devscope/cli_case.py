"""What the tests of the command line share: a program, and what a command leaves behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

SCOPES = """\
#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
"""

#: A program with one operation on the device, in lines 4 and 5 of the text.
TANH = f"""\
{SCOPES}func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
  %0 = math.tanh %x {{device.scope = #dev}} : tensor<4xf32>
  return %0 : tensor<4xf32>
}}
"""


@dataclass
class Outcome:
    """What a command left: its status, what it printed, and the files that it made."""

    status: int
    out: str
    err: str
    files: list[str]


Cli = Callable[..., Outcome]


def assert_one_error(outcome: Outcome, start: str, note: str = "", status: int = 1) -> None:
    """One message on stderr that begins with ``start``, notes below it, and nothing else anywhere."""
    assert outcome.status == status, outcome
    assert outcome.out == ""
    assert outcome.files == []
    first, *rest = outcome.err.splitlines()
    assert first.startswith(start), outcome.err
    assert "internal error" not in first
    assert all(line.startswith("  note: ") for line in rest), outcome.err
    assert note in "\n".join(rest), outcome.err


def assert_usage_error(outcome: Outcome, start: str, note: str = "") -> None:
    """The same for what is wrong with the command line itself."""
    assert_one_error(outcome, start, note, status=2)
