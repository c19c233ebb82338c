"""State of programs: values that a call leaves for the next one, as PyTorch's buffers that ``forward`` writes to.

Whoever calls does not see it. To the compiled entry, what is kept on the host are arguments, the last ones, and
the last results: an `Executable` has the arrays from one call to the next. What is on a device stays there, in
buffers of the program (``native/buffers.c``): entries of their own bring it in and out.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import Lock, get_ident
from typing import Any

import numpy as np

from devscope.errors import ExecutableFormatError, InputError
from devscope.runtime.entry import ARGUMENTS, CHECKED
from devscope.runtime.program import Entry, Program


@dataclass(frozen=True)
class StateSpec:
    """Of one entry: what its state is called, the entry that gives what it is at first, and what is on devices."""

    names: list[str]
    initial: str
    on_devices: list[str] = field(default_factory=list[str])

    @property
    def on_host(self) -> list[str]:
        return [name for name in self.names if name not in self.on_devices]

    @property
    def load(self) -> str:
        """The entry that takes what is to be on devices."""
        return f"{self.initial}.load"

    @property
    def read(self) -> str:
        """The entry that gives what is on devices."""
        return f"{self.initial}.read"

    @property
    def own_entries(self) -> list[str]:
        return [self.initial, *([self.load, self.read] if self.on_devices else [])]


def states_of(program: Program) -> dict[str, StateSpec]:
    """Of the entries that have state. Raises ExecutableFormatError for what a damaged file may say of it."""
    found: dict[str, StateSpec] = {}
    try:
        for name, fields in program.report.get("state", {}).items():
            spec = found[name] = StateSpec(**fields)
            entries, entry = program.entries, program.entries[name]
            at_first = dict(zip(spec.names, map(_type, entries[spec.initial].outputs), strict=True))
            on_host = [at_first[one] for one in spec.on_host]
            on_devices = [at_first[one] for one in spec.on_devices]
            kept = [(entry.inputs[-len(on_host) :], on_host), (entry.outputs[-len(on_host) :], on_host)]
            if on_devices:
                kept += [(entries[spec.load].inputs, on_devices), (entries[spec.read].outputs, on_devices)]
            if not spec.names or any([_type(one) for one in part] != wanted for part, wanted in kept if wanted):
                raise ValueError(f"the state of '{name}' is not what it is at first")
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ExecutableFormatError(f"the program says wrongly what its state is: {error}") from None
    return found


def _type(spec: Any) -> tuple[Any, ...]:
    return spec.dtype, tuple(spec.shape)


def count_on_devices(states: Mapping[str, StateSpec]) -> int:
    """How many buffers of devices keep state."""
    return sum(len(spec.on_devices) for spec in states.values())


def seen_entries(entries: Mapping[str, Entry], states: Mapping[str, StateSpec]) -> dict[str, Entry]:
    """``entries`` as callers see them: without state."""
    hidden = {one for spec in states.values() for one in spec.own_entries}
    found = {name: entry for name, entry in entries.items() if name not in hidden}
    for name, spec in states.items():
        count, entry = len(spec.on_host), entries[name]
        inputs, outputs = (part[: len(part) - count] for part in (entry.inputs, entry.outputs))
        found[name] = replace(entry, inputs=inputs, outputs=outputs)
    return found


class State:
    """The state of one entry. One call at a time has it: the next needs what it leaves.

    ``call``: that of the program's `InstancePool`.
    """

    def __init__(self, spec: StateSpec, call: Callable[..., Sequence[Any]]) -> None:
        self.spec = spec
        self._call_entry = call
        self._lock = Lock()
        self._owner: int | None = None
        self._arrays: Sequence[Any] | None = None

    def call(self, run: Callable[[Sequence[Any]], Sequence[Any]], given: int) -> tuple[Any, ...]:
        """The results of ``run``, called with the state, but for the new state; the first ``given`` are.

        If ``run`` raises, the state stays as it is. Raises `InputError` for a call from within a call.
        """
        with self._owned():
            results = run(self._ready())
            seen, kept = tuple(results[:given]), results[given:]
            # One value may be a result twice, in the same memory; what the caller has may be written to.
            self._arrays = [
                one.copy() if any(np.may_share_memory(one, other) for other in seen) else one for one in kept
            ]
            return seen

    def values(self) -> dict[str, Any]:
        """Copies of what the state is, by name."""
        with self._owned():
            found = {name: one.copy() for name, one in zip(self.spec.on_host, self._ready(), strict=True)}
            if self.spec.on_devices:
                found |= zip(self.spec.on_devices, self._call_entry(self.spec.read, (), ARGUMENTS), strict=True)
            return {name: found[name] for name in self.spec.names}

    def reset(self) -> None:
        """Make the state what it was at first."""
        with self._owned():
            self._arrays = None

    def _ready(self) -> Sequence[Any]:
        """What is on the host; at first, with what is on devices brought there."""
        if self._arrays is None:
            at_first = dict(zip(self.spec.names, self._call_entry(self.spec.initial, (), ARGUMENTS), strict=True))
            if self.spec.on_devices:
                loaded = [at_first[name] for name in self.spec.on_devices]
                self._call_entry(self.spec.load, loaded, CHECKED, True)
            self._arrays = [at_first[name] for name in self.spec.on_host]
        return self._arrays

    @contextmanager
    def _owned(self) -> Generator[None]:
        if self._owner == get_ident():  # the handler of a signal, or a finalizer
            raise InputError("a call from within a call of the same thread cannot have the program's state")
        with self._lock:
            self._owner = get_ident()
            try:
                yield
            finally:
                self._owner = None
