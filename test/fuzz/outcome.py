"""What one trial of the fuzzer came to."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from devscope.errors import DevscopeError

GOOD = ("right", "refused")
BAD = ("wrong", "traceback", "crash", "hang")


@dataclass
class Outcome:
    """``kind``: one of `GOOD` and `BAD`. ``message``: why it was refused or is bad, in one line."""

    kind: str
    message: str = ""
    trials: int = 1

    @property
    def reason(self) -> str:
        """The message without what differs from program to program: such messages are counted together."""
        text = re.sub(r"'[^']*'|\"[^\"]*\"|#?\b[a-z]+<.*?>|[%@#]\w+|\S*\.(mlir|dsx)\S*", "_", self.message)
        return re.sub(r"\d+", "N", text)[:110]


Check = Callable[[int, Path], Outcome]
"""One trial of a part: everything follows from the seed. What it tries, it first writes to the folder."""


def from_error(error: BaseException) -> Outcome:
    """A typed error refuses; anything else is a defect."""
    if isinstance(error, DevscopeError) and "internal error" not in error.message:
        return Outcome("refused", f"{type(error).__name__}: {error.message}".splitlines()[0])
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    text = (str(error) or "").splitlines() or [""]
    return Outcome("traceback", f"{type(error).__name__}: {text[0]}{place}")
