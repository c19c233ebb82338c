"""Makes a failure smaller: python test/fuzz/shrink.py FOLDER, with a folder that `make fuzz` has kept.

Candidates are tried in processes forked from this one, so that they may die or hang. The smallest that fails in
the same way is written to FOLDER/reduced.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import search_path  # noqa: F401
from outcome import BAD, Outcome

SECONDS = 180.0
_LONGEST = 40


def outcome_of(check: Callable[[], Outcome]) -> Outcome:
    """What came of it in a process of its own."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        signal.alarm(_LONGEST)
        try:
            outcome = check()
        except BaseException as error:
            outcome = Outcome("invalid", repr(error))
        os.write(writer, f"{outcome.kind}\n{outcome.message}".encode()[:4000])
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        text = answer.read().decode(errors="replace")
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return Outcome("hang" if os.WTERMSIG(status) == signal.SIGALRM else "crash", "")
    kind, _, message = text.partition("\n")
    return Outcome(kind, message)


def same(one: Outcome, other: Outcome) -> bool:
    if one.kind != other.kind:
        return False
    if one.kind == "wrong":
        return one.message.split(":")[0] == other.message.split(":")[0]
    return one.kind not in ("traceback", "refused") or one.reason == other.reason


def shrink_program(seed: int, folder: Path, wanted: Outcome, end: float) -> None:
    """Statements become arguments, then annotations and other lines go."""
    from part_programs import Trial, trial

    best = trial(seed)
    smaller = True
    while smaller and time.monotonic() < end:
        smaller = False
        for candidate in best.smaller():
            if time.monotonic() > end:
                break
            if same(outcome_of(candidate.outcome), wanted):
                best, smaller = candidate, True
                break
    text = best.program.text

    def still(candidate: str) -> bool:
        made = Trial(Text(candidate, best.program), best.options, best.calls)  # pyright: ignore[reportArgumentType]
        return same(outcome_of(made.outcome), wanted)

    text = smallest(text, still, end)
    made = Trial(Text(text, best.program), best.options, best.calls)  # pyright: ignore[reportArgumentType]
    made.write(folder)
    print(f"{folder}:\n{(folder / 'program.mlir').read_text()}")
    for call, runs in zip(made.calls, made.runs, strict=True):
        print(f"arguments: {[c if getattr(c, 'size', 1) < 40 else c.shape for c in call]}\nwanted: {runs[0]}")


class Text:
    """A program whose text was changed; what it computes was not."""

    def __init__(self, text: str, program: object) -> None:
        self.text, self._program = text, program

    def __getattr__(self, name: str) -> object:
        return getattr(self._program, name)


_MARK = re.compile(r" (?:attrs = )?\{device\.scope = #\w+\}|, device\.scope = #\w+")


def smallest(text: str, still: Callable[[str], bool], end: float) -> str:
    """Delta debugging: annotations first, then ever smaller runs of lines."""
    for match in reversed(list(_MARK.finditer(text))):
        candidate = text[: match.start()] + text[match.end() :]
        if time.monotonic() < end and still(candidate):
            text = candidate
    size = max(len(text.splitlines()) // 2, 1)
    while size and time.monotonic() < end:
        for candidate in _without_lines(text, size):
            if time.monotonic() > end:
                break
            if still(candidate):
                text = candidate
                break
        else:
            size //= 2
    return text


def _without_lines(text: str, size: int) -> Iterator[str]:
    lines = text.splitlines()
    for start in range(0, len(lines), size):
        yield "\n".join([*lines[:start], *lines[start + size :]]) + "\n"


def main() -> int:
    place = Path(sys.argv[1])
    part, _, seed = place.name.rpartition("-")
    kind, _, message = (place / "README").read_text().splitlines()[0].partition(": ")
    wanted = Outcome(kind, message)
    assert kind in BAD or kind == "refused"
    folder = place / "reduced"
    folder.mkdir(exist_ok=True)
    end = time.monotonic() + SECONDS
    if part == "programs":
        shrink_program(int(seed), folder, wanted, end)
    elif part == "modules":
        from part_modules import shrink_module

        shrink_module(place, folder, lambda outcome: same(outcome, wanted), smallest, end)
    return 0


if __name__ == "__main__":
    sys.exit(main())
