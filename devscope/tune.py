"""Searches rows of schedules for the kernels of a program, by compiling the program with them and timing it.

A row is searched for every class of operations that the program has: those of one kind, element type and
contiguous loop whose sizes lie between the same powers of two. The search goes through the numbers of a row, one
after the other, and keeps what makes the whole program faster; other templates for the kind begin with the numbers
of their first built-in row. The order depends on nothing but the program.
"""

from __future__ import annotations

import math
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from devscope.api import executable_for
from devscope.compile_options import CompileOptions
from devscope.errors import LoweringError, ScheduleFileError
from devscope.lowering.cpu.kernel_tables import built_in_rows, templates, user_rows
from devscope.lowering.kernels.row_file import row_toml
from devscope.lowering.kernels.schedule_report import named_sizes, place_of
from devscope.lowering.kernels.table import Choice, Row
from devscope.lowering.kernels.templates import Template
from devscope.pipeline import compile_source
from devscope.runtime.executable import Executable
from devscope.runtime.state import seen_entries, states_of

LEAST_GAIN = 1.02
"""What a row must make the program faster by to be taken, twice: times are not more exact."""

REGISTERS = {"avx512": 32 * 64, "avx2": 16 * 32, "other": 16 * 16}
"""Bytes of vector registers: larger blocks are not tried."""

_PAIRS = 7
"""Times that are compared of two programs."""

_LONG_ENOUGH = 2e-3
"""Seconds that are timed at least, by several calls if one takes less."""

_LARGEST_ERROR = 1e-2
"""Of the largest element: results that differ by more are not those of another order of sums."""

Call = Callable[[Executable], Any]


class Progress(Protocol):
    """What is told of a search: a class begins, of so many; a row has been tried; the class is done."""

    def begin(self, what: str, number: int, count: int) -> None: ...
    def tried(self, row: Row, ratio: float | None) -> None: ...


@dataclass(frozen=True)
class SizeClass:
    """``operation`` is for people; ``now`` is the row that operations get, ``pattern`` one that holds for them.

    ``table``: whose built-in rows are for them.
    """

    operation: str
    now: Row
    pattern: Row
    dynamic: bool
    table: str

    def row(self, template: str, numbers: Mapping[str, int]) -> Row:
        return replace(self.pattern, template=template, numbers=dict(numbers))


@dataclass
class Found:
    """What a search gave: ``row`` is the one that was there before where ``gain``, a ratio of times, is 1."""

    of: SizeClass
    row: Row
    gain: float
    tried: int
    problems: list[str] = field(default_factory=list[str])


class Tuner:
    """A program, and what its operations get now. Raises as compiling does."""

    def __init__(
        self, source: Any, options: CompileOptions, mapping: Mapping[str, str], threads: int | None
    ) -> None:
        self._source, self._options, self._mapping, self._threads = source, options, mapping, threads
        classes: list[SizeClass] = []

        def observe(stage: str, payload: Any) -> None:
            if stage == "schedule":  # of the host, and of each device
                new = size_classes(payload.chosen, payload.instructions)
                classes.extend(each for each in new if each.pattern not in [other.pattern for other in classes])

        program = compile_source(source, options, observe)
        self.classes: Sequence[SizeClass] = classes
        self.entries = seen_entries(program.entries, states_of(program))
        self.closed = program.report.get("closed", ())
        self.interrupted = False

    def tune(
        self, classes: Sequence[SizeClass], call: Call, seconds: float, progress: Progress
    ) -> Iterator[Found]:
        """What is found for each of ``classes``, which share the time. ``call`` runs the program once.

        Ctrl-C ends it with what was found so far; then it is ``interrupted``.
        """
        end = time.monotonic() + seconds
        rows: list[Row] = []
        for number, each in enumerate(classes):
            progress.begin(each.operation, number, len(classes))
            now = time.monotonic()
            found = Found(each, each.now, 1.0, 0)
            try:
                self._search(found, rows, call, now + (end - now) / (len(classes) - number), progress)
            except KeyboardInterrupt:
                self.interrupted = True
            if found.gain > 1:
                rows.insert(0, found.row)
            yield found
            if self.interrupted:
                break

    def _search(self, found: Found, rows: Sequence[Row], call: Call, end: float, progress: Progress) -> None:
        """Fill ``found``, also where Ctrl-C ends it. ``rows``: those of other classes."""
        known, of = templates(), found.of
        path = [of.row(of.now.template, of.now.numbers)]
        seen = {_key(path[0])}
        with self._executable([path[0], *rows]) as before:
            now, expected = before, call(before)
            try:
                for row in _candidates(path, of, built_in_rows(of.table), known):
                    if time.monotonic() >= end:
                        break
                    if _key(row) in seen or not _fits(row, known[row.template]):
                        continue
                    seen.add(_key(row))
                    found.tried += 1
                    other, ratio = self._compare(now, row, rows, call, expected, found)
                    progress.tried(row, ratio)
                    if other is not None:
                        if now is not before:
                            now.close()
                        now = other
                        path.append(row)
            finally:
                if now is not before:
                    gain = ratio_of_times(call, before, now, self._threads == 1)
                    now.close()
                    if gain >= LEAST_GAIN:
                        found.row, found.gain = path[-1], gain

    def _compare(
        self, now: Executable, row: Row, rows: Sequence[Row], call: Call, expected: Any, found: Found
    ) -> tuple[Executable | None, float | None]:
        """The program with ``row`` if it is faster, and how much."""
        try:
            other = self._executable([row, *rows])
        except ScheduleFileError:  # the numbers do not go with each other
            return None, None
        except LoweringError as error:
            found.problems.append(f"{_text(row)}: {error.message}")
            return None, None
        ratio: float | None = None
        try:
            if not agree(expected, call(other)):
                found.problems.append(f"{_text(row)}: other results")
                return None, None
            ratio = ratio_of_times(call, now, other, self._threads == 1)
            if ratio >= LEAST_GAIN:
                ratio = min(ratio, ratio_of_times(call, now, other, self._threads == 1))
            taken = ratio >= LEAST_GAIN
        except BaseException:
            other.close()
            raise
        if not taken:
            other.close()
        return (other if taken else None), ratio

    def _executable(self, rows: Sequence[Row]) -> Executable:
        with tempfile.TemporaryDirectory(prefix="devscope-") as folder:
            path = Path(folder) / "schedules.toml"
            path.write_text("\n".join(map(row_toml, rows)))
            options = replace(self._options, schedules=path)
        return executable_for(self._source, options, self._mapping, False, self._threads)


def size_classes(chosen: Sequence[Choice], instructions: str) -> list[SizeClass]:
    """The classes of the operations that have kernels, in the order of the program, the most work first."""
    found: dict[str, tuple[float, SizeClass]] = {}
    for choice in chosen:
        row = choice.row
        if row is None or 0 in choice.sizes.values():
            continue
        known = {name: size for name, size in choice.sizes.items() if size is not None}
        most = {name: 1 << (size - 1).bit_length() for name, size in known.items()}
        least = {name: size // 2 + 1 for name, size in most.items()}
        unknown = [name for name, size in choice.sizes.items() if size is None]
        # What is computed by other instructions of the processor stays so.
        is_other = row.element not in (choice.element, "any")
        element, by = (row.element, row.instructions) if is_other else (choice.element, instructions)
        pattern = Row(choice.kind, "", element, {}, most, least, unknown, choice.contiguous, by)
        what = f"{place_of(choice.location)}: {choice.operation}, {named_sizes(choice.sizes)}, {choice.element}"
        found.setdefault(
            repr(pattern), (-math.prod(known.values()), SizeClass(what, row, pattern, bool(unknown), instructions))
        )
    return [each for _, each in sorted(found.values(), key=lambda pair: pair[0])]


def _candidates(
    path: Sequence[Row], of: SizeClass, built_in: Sequence[Row], known: Mapping[str, Template]
) -> Iterator[Row]:
    """Rows to try, around the last one of ``path``, which grows, until none is better."""
    for name, template in known.items():
        starts = [row for row in built_in if row.template == name and row.element in (of.now.element, "any")]
        if template.kind == of.pattern.kind and starts:
            yield of.row(name, starts[0].numbers)
    done: Row | None = None
    while done is not path[-1]:
        done = path[-1]
        template = known[done.template]
        for name, number in template.numbers.items():
            for value in number.candidates:
                yield of.row(done.template, _with(path[-1].numbers, name, value, template))


def _with(numbers: Mapping[str, int], name: str, value: int, template: Template) -> dict[str, int]:
    """``numbers`` with another one, and those that are multiples of it still such."""
    changed = {**numbers, name: value}
    for other, legal in template.numbers.items():
        of = changed.get(legal.multiple_of, 0)
        if of and other in changed:
            changed[other] = max(of, changed[other] // of * of)
    return changed


def _fits(row: Row, template: Template) -> bool:
    """Whether the block that a kernel works on may stay in registers."""
    if not template.in_registers:
        return True
    elements = math.prod(row.numbers.get(name, 1) for name in template.in_registers)
    return elements * _bytes(row.element) <= REGISTERS.get(str(row.instructions), REGISTERS["avx512"])


def _bytes(element: str) -> int:
    """Of a sum of such elements: of bf16 and i8, it has 32 bits."""
    digits = re.search("[0-9]+", element)
    return max(4, int(digits[0]) // 8) if digits else 4


def _key(row: Row) -> tuple[object, ...]:
    return row.template, *sorted(row.numbers.items())


def _text(row: Row) -> str:
    return f"{row.template} with {named_sizes(row.numbers)}"


def ratio_of_times(call: Call, first: Executable, second: Executable, is_alone: bool) -> float:
    """How many times as fast as the ``first`` the ``second`` is: the median of calls that alternate, both warm.

    ``is_alone``: they have one thread.
    """
    # Of one thread, the processor's time: other work of the machine is not in it.
    clock = time.process_time if is_alone else time.perf_counter
    begin = clock()
    call(second)
    call(first)
    calls = max(1, math.ceil(_LONG_ENOUGH / max((clock() - begin) / 2, 1e-6)))

    def seconds(executable: Executable) -> float:
        begin = clock()
        for _ in range(calls):
            call(executable)
        return clock() - begin

    ratios: list[float] = []
    for number in range(_PAIRS):
        if number % 2:
            after = seconds(second)
            ratios.append(seconds(first) / after)
        else:
            ratios.append(seconds(first) / seconds(second))
    return statistics.median(ratios)


def agree(expected: Any, results: Any) -> bool:
    """Whether results are the same but for the order of sums."""
    pairs = zip(_arrays(expected), _arrays(results), strict=True)
    return all(_agrees(np.asarray(a), np.asarray(b)) for a, b in pairs)


def _arrays(results: Any) -> tuple[Any, ...]:
    return results if isinstance(results, tuple) else () if results is None else (results,)


def _agrees(a: Any, b: Any) -> bool:
    if a.dtype.kind not in "fc":
        return bool(np.array_equal(a, b))
    finite = np.isfinite(a)
    if not np.array_equal(finite, np.isfinite(b)):
        return False
    size = np.abs(a[finite]).max(initial=0)
    return bool(np.abs(a[finite] - b[finite]).max(initial=0) <= _LARGEST_ERROR * size)


def merged(old: str, new: Sequence[Found], comment: str) -> str:
    """The text of a file of schedules: what was found in front of the rows of ``old`` that are for others.

    ``comment`` says how rows were found.
    """
    done = {_pattern(each.of.pattern) for each in new if each.gain > 1}
    texts = [
        row_toml(each.row, f"{each.of.operation}\n{each.gain:.2f} times as fast as {each.of.now.place}; {comment}")
        for each in new
        if each.gain > 1
    ]
    blocks = [block for block in re.split(r"\n\s*\n", old.strip()) if block]
    for block in blocks:
        try:
            rows = user_rows(block, "schedules")
        except ScheduleFileError:
            continue
        if not any(_pattern(row) in done for row in rows):
            texts.append(f"{block}\n")
    return "\n".join(texts)


def _pattern(row: Row) -> str:
    conditions = row.kind, row.element, row.contiguous, row.instructions, sorted(row.dynamic)
    return repr((*conditions, sorted(row.at_most.items()), sorted(row.at_least.items())))
