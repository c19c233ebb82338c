"""State of programs: values that a call leaves for the next one, as PyTorch's buffers that ``forward`` writes to.

To the compiled entry they are arguments, the last ones, and the last results. Whoever calls sees neither: an
`Executable` keeps them on the host, from one call to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

import numpy as np

from devscope.errors import ExecutableFormatError
from devscope.runtime.program import Entry, Program


@dataclass(frozen=True)
class StateSpec:
    """Of one entry: what its state is called, and the entry that gives what it is at first."""

    names: list[str]
    initial: str


def states_of(program: Program) -> dict[str, StateSpec]:
    """Of the entries that have state. Raises ExecutableFormatError for what a damaged file may say of it."""
    found: dict[str, StateSpec] = {}
    try:
        for name, fields in program.report.get("state", {}).items():
            found[name] = StateSpec(**fields)
            count, entry = len(found[name].names), program.entries[name]
            at_first = program.entries[found[name].initial].outputs
            kept = entry.inputs[-count:], entry.outputs[-count:]
            if not count or any([_type(one) for one in part] != [_type(one) for one in at_first] for part in kept):
                raise ValueError(f"the state of '{name}' is not what it is at first")
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ExecutableFormatError(f"the program says wrongly what its state is: {error}") from None
    return found


def _type(spec: Any) -> tuple[Any, ...]:
    return spec.dtype, tuple(spec.shape)


def seen_entries(entries: Mapping[str, Entry], states: Mapping[str, StateSpec]) -> dict[str, Entry]:
    """``entries`` as callers see them: without state."""
    hidden = {spec.initial for spec in states.values()}
    found = {name: entry for name, entry in entries.items() if name not in hidden}
    for name, spec in states.items():
        count, entry = len(spec.names), entries[name]
        found[name] = replace(entry, inputs=entry.inputs[:-count], outputs=entry.outputs[:-count])
    return found


class State:
    """The state of one entry. One call at a time has it: the next needs what it leaves."""

    def __init__(self, spec: StateSpec) -> None:
        self.spec = spec
        self._lock = Lock()
        self._arrays: Sequence[Any] | None = None

    def call(
        self, run: Callable[[Sequence[Any]], Sequence[Any]], first: Callable[[], Sequence[Any]], given: int
    ) -> tuple[Any, ...]:
        """The results of ``run``, called with the state, but for the new state; the first ``given`` are.

        ``first`` gives the state at first. If ``run`` raises, the state stays as it is.
        """
        with self._lock:
            if self._arrays is None:
                self._arrays = first()
            results = run(self._arrays)
            seen, kept = tuple(results[:given]), results[given:]
            # One value may be a result twice, in the same memory; what the caller has may be written to.
            self._arrays = [
                one.copy() if any(np.may_share_memory(one, other) for other in seen) else one for one in kept
            ]
            return seen

    def reset(self) -> None:
        """Make the state what it was at first."""
        with self._lock:
            self._arrays = None
