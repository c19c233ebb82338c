"""Runs compiled programs."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, Self

from devscope.runtime.arguments import ArgumentList, out_arrays
from devscope.runtime.cache import DiskCache, open_cache
from devscope.runtime.devices import check_shared_memory, resolve_devices
from devscope.runtime.entry import ARGUMENTS, CHECKED, WITH_OUT
from devscope.runtime.file_format import read_program, save_program
from devscope.runtime.pool import Builds, Counters, InstancePool, end_calls_at_exit
from devscope.runtime.program import Entry, Program, find_entry, signatures
from devscope.runtime.program_check import check_program
from devscope.runtime.signatures import Key
from devscope.runtime.state import State, count_on_devices, seen_entries, states_of
from devscope.runtime.structure import structures_of
from devscope.runtime.threads import described_cores, thread_count

MAIN = "main"


class Results(tuple[Any, ...]):
    """The results of a call, in order; those that have a name in the source are attributes, too."""

    def __new__(cls, results: Iterable[Any], names: Sequence[str]) -> Self:
        made = super().__new__(cls, results)
        made.names = tuple(names)
        return made

    names: tuple[str, ...]

    def __getattr__(self, name: str) -> Any:
        names = self.__dict__.get("names", ())
        if name in names:
            return self[names.index(name)]
        raise AttributeError(f"there is no result '{name}'; the results are: {', '.join(names)}")

    def __reduce__(self) -> Any:
        return Results, (tuple(self), self.names)


class Executable:
    """A program made ready to run on devices of this machine.

    ``devices`` says where virtual devices run when not on the physical device of the same name:
    ``{"opencl:1": "opencl:0"}``. ``cache`` keeps what drivers build; ``"default"`` is the user's cache.
    ``trusted``: the program was compiled here, or by whom the user trusts (docs/trust.md). ``threads``: the most
    that a call uses on the host (docs/concurrency.md).

    Calls take numpy arrays or DLPack objects and give numpy arrays; results are complete on return. Calls from
    several threads run side by side if the program uses the host alone, each in a copy of the program; of a
    program with devices they run one after the other, since each copy would hold the constants in device memory.
    Driver objects are released by :meth:`close`, at the end of a ``with`` block, or with the object; arrays that
    were returned stay valid.

    Raises :class:`DeviceNotFoundError`, :class:`OptionError`, :class:`DeviceError` (a driver refuses the kernels,
    or devices do not share memory that must) or :class:`ExecutableFormatError` (host code for another machine).
    """

    def __init__(
        self,
        program: Program,
        devices: Mapping[str, str] | None = None,
        cache: DiskCache | Literal["default"] | None = "default",
        trusted: bool = True,
        threads: int | None = None,
    ) -> None:
        check_program(program)
        self.program = program
        virtual = {spec.name: spec.compiled_for for spec in program.slots()}
        physical = resolve_devices(virtual, devices)
        self.devices: dict[str, str] = {name: device.name for name, device in physical.items()}
        """The physical device of every virtual device."""
        check_shared_memory(program, physical)
        cores = described_cores(program.report)
        taken = {
            device.name: cores.get(name, device.cores) for name, device in physical.items() if device.type != "cpu"
        }
        self.threads = thread_count(threads, cores.get("cpu:0"), sum(taken.values()))
        """The most threads that a call uses on the host."""
        slots = [physical[spec.name] for spec in program.slots()]
        on_host = all(device.type == "cpu" for device in slots)
        builds = Builds(open_cache if cache == "default" else lambda: cache, trusted)
        limit = max(os.cpu_count() or 1, 2) if on_host else 1
        states = states_of(program)
        alone = count_on_devices(states) > 0
        self._pool = InstancePool(program, slots, builds, self.threads, limit, alone)
        self._entries = entries = seen_entries(program.entries, states)
        self._main = MAIN if MAIN in entries or len(entries) != 1 else next(iter(entries))
        self._arguments = {name: ArgumentList(name, entry) for name, entry in entries.items()}
        self._structures = structures_of(program, entries)
        self._names = {name: tuple(spec.name for spec in entry.outputs) for name, entry in entries.items()}
        self._states = {name: State(spec, self._pool.call) for name, spec in states.items()}
        self._release = weakref.finalize(self, self._pool.close)
        end_calls_at_exit()

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        devices: Mapping[str, str] | None = None,
        cache: DiskCache | Literal["default"] | None = "default",
        verify: bool = True,
        trusted_keys: Sequence[Key] | None = None,
        threads: int | None = None,
    ) -> Executable:
        """Loads a ``.dsx`` file. Constants are used from the file, which must not be changed in place.

        ``verify=False`` skips the check sums (they read all constants once). ``trusted_keys``: paths of public
        keys; only what one of them signed is loaded then, and trusted (docs/trust.md). Raises
        :class:`ExecutableFormatError`, and what the constructor raises.
        """
        program = read_program(path, verify, trusted_keys)
        return cls(program, devices, cache, trusted=trusted_keys is not None, threads=threads)

    def save(self, path: str | os.PathLike[str], sign_with: Key | None = None) -> None:
        """Writes a ``.dsx`` file, in one step, signed with a private key if its path is given.

        Raises :class:`ExecutableFormatError` when it cannot be written, :class:`OptionError` for what is no key.
        """
        save_program(self.program, path, sign_with)

    @property
    def entries(self) -> dict[str, Entry]:
        """The functions that :meth:`run` can call, with the types of their arguments and results."""
        return self._entries

    def entry(self, name: str) -> Entry:
        """The entry of this name; raises :class:`InputError` if there is none."""
        return find_entry(self.entries, name, self.program.report.get("closed", ()))

    def __reduce__(self) -> Any:
        """Neither pickled nor copied: two would release the same memory."""
        raise TypeError("an Executable cannot be copied or pickled: save() writes its program to a file")

    def __repr__(self) -> str:
        """Its functions, with the names, shapes and dtypes of what they take and give, and its devices."""
        devices = (one if one == other else f"{one} = {other}" for one, other in self.devices.items())
        return f"<Executable {signatures(self.entries)} on {', '.join(devices)}>"

    def __call__(self, /, *arguments: Any, **named: Any) -> Any:
        """Runs ``main``, or the only entry of the program. See :meth:`run`."""
        return self._run(self._main, arguments, named)

    def run(self, name: str, /, *arguments: Any, **named: Any) -> Any:
        """Calls an entry: an array for one result, a tuple for several, None for none.

        Where arguments or results of the source nest, those of the call do: docs/ways-in.md.

        Arguments may be ``named`` as in the source of the program; so are the attributes of a tuple of results.
        Unless one is called so, ``out`` is an array for the result, or a sequence of an array or None for each:
        the results are written there, and these arrays returned (docs/memory.md).

        Raises :class:`ArgumentError` for a wrong number or name of arguments (which is a TypeError, too),
        :class:`InputError` for a wrong entry, dtype or shape; :class:`DeviceError` when a device
        fails, when memory runs out, on the host too, or when a tensor would get a negative size;
        :class:`ExecutionError` when an assertion of the program does not hold. The executable stays usable.
        """
        return self._run(name, arguments, named)

    def _run(self, name: str, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """As :meth:`run`. What needs no conversion is checked in native code only, which refuses the rest."""
        structure = self._structures.get(name) if name.__class__ is str else None
        if structure is not None:
            out = named.pop("out", None) if "out" not in structure.parameters else None
            results = self.run_arrays(name, structure.arrays(name, given, named), out)
            return structure.result(results)
        results: Any = NotImplemented
        checks = self._arguments.get(name) if name.__class__ is str else None
        state = self._states.get(name) if checks is not None else None
        if state is not None:
            results = self._with_state(state, name, given, named)
        elif checks is not None and not named:
            results = self._pool.call(name, given, ARGUMENTS)
        elif checks is not None and checks.with_out(given, named):
            out = named["out"]
            several = out if isinstance(out, list | tuple) else (out,)  # pyright: ignore[reportUnknownVariableType]
            results = self._pool.call(name, (*given, *several), WITH_OUT)
        if results is NotImplemented:
            results = self._pool.call(name, self._checked(name, given, named), CHECKED)
        if len(results) == 1:
            return results[0]
        return Results(results, self._names[name]) if results else None

    def run_arrays(self, name: str, arguments: Sequence[Any], out: Any = None) -> tuple[Any, ...]:
        """As :meth:`run`, with nothing nested: the arrays of all arguments, in order, and those of the results."""
        self.entry(name)
        named = {} if out is None else {"out": out}
        if (state := self._states.get(name)) is not None:
            return self._with_state(state, name, tuple(arguments), named)
        results = self._pool.call(name, arguments, ARGUMENTS) if out is None else NotImplemented
        if results is NotImplemented:
            results = self._pool.call(name, self._checked(name, tuple(arguments), named), CHECKED)
        return results

    def _with_state(
        self, state: State, name: str, given: tuple[Any, ...], named: dict[str, Any]
    ) -> tuple[Any, ...]:
        values = self._checked(name, given, named)
        entry = self._entries[name]

        def run(kept: Sequence[Any]) -> Sequence[Any]:
            arguments, outs = values[: len(entry.inputs)], values[len(entry.inputs) :]
            return self._pool.call(name, [*arguments, *kept, *outs, *[None] * len(kept)], CHECKED, True)

        return state.call(run, len(entry.outputs))

    def _checked(self, name: str, given: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
        entry = self.entry(name)
        outs: list[Any] = []
        if "out" in named and not self._arguments[name].has("out"):
            outs = out_arrays(name, entry.outputs, named.pop("out"))
        return [*self._arguments[name](given, named), *(outs or [None] * len(entry.outputs))]

    def reset(self) -> None:
        """Makes state, which calls leave for later ones, what it was at first: see docs/torch.md."""
        for state in self._states.values():
            state.reset()

    def state(self, name: str = MAIN) -> dict[str, Any]:
        """What the calls of an entry keep from one to the next, by name: copies, on the host; empty if nothing."""
        self.entry(name)
        return self._states[name].values() if name in self._states else {}

    def memory(self) -> dict[str, dict[str, int]]:
        """What the compiler planned for the memory of each virtual device, in bytes: see docs/memory.md."""
        return {name: dict(needed) for name, needed in self.program.report.get("memory", {}).items()}

    def counters(self) -> Counters:
        """Launches, copies and allocations so far."""
        return self._pool.counters()

    def reset_counters(self) -> None:
        """Sets the counters to zero."""
        self._pool.reset_counters()

    def close(self) -> None:
        """Waits for the devices and releases everything; calls raise :class:`InputError` from then on."""
        self._release()

    def __enter__(self) -> Executable:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
