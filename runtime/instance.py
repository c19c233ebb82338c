"""Copies of a loaded program, so that several threads can call it at once."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

from devscope.errors import InputError
from devscope.runtime.builds import Builds
from devscope.runtime.context import Counters, NativeContext, read_counters
from devscope.runtime.drivers import Device
from devscope.runtime.entry import EntryCaller
from devscope.runtime.linker import HostLibrary
from devscope.runtime.program import Program


class Instance:
    """A copy of a program's code with a context of its own, for one call at a time."""

    def __init__(self, program: Program, physical: Sequence[Device], builds: Builds) -> None:
        self._library = HostLibrary(program, sorted({device.type for device in physical} | {"cpu"}))
        try:
            self.context = NativeContext(program, physical, self._library, builds)
        except BaseException:
            self._library.close()
            raise
        self._callers = {name: EntryCaller(name, entry, self._library) for name, entry in program.entries.items()}

    def run(self, name: str, arrays: Sequence[Any]) -> list[Any]:
        """Calls an entry with checked arguments. Raises what :meth:`Executable.run` raises."""
        caller, context = self._callers[name], self.context
        context.arenas.prepare(name)
        context.take_back_memory()
        if not caller.call(context.address, arrays):
            raise context.take_error()
        return caller.take_results(context.returned.give)

    def close(self) -> None:
        """Waits for the devices and releases everything."""
        self.context.close()
        self._library.close()


class InstancePool:
    """The instances of a program: idle ones, and those that run.

    A call takes one that is idle. If there is none it makes another one, or waits where there are ``limit`` of
    them. A call from within a call of the same thread (a finalizer or a signal handler can do that) never waits.
    """

    def __init__(self, program: Program, physical: Sequence[Device], builds: Builds, limit: int) -> None:
        self._make = lambda: Instance(program, physical, builds)
        self._builds = builds
        self._limit = limit
        self._closed = False
        self._running: Counter[int] = Counter()
        """How many calls each thread is in."""
        # Its lock is reentrant: garbage collection may call the program from anywhere.
        self._changed = threading.Condition()
        try:
            self.instances = [self._make()]
        except BaseException:
            builds.close()
            raise
        self._idle = list(self.instances)

    @contextmanager
    def instance(self) -> Generator[Instance]:
        """An instance for one call. Raises :class:`InputError` when the pool is closed."""
        thread = threading.get_ident()
        instance = self._take(thread)
        try:
            if instance is None:
                instance = self._make()
                self.instances.append(instance)
            yield instance
        finally:
            self._give_back(thread, instance)

    def counters(self) -> Counters:
        """What all instances did."""
        return read_counters([instance.context for instance in list(self.instances)], self._builds.count)

    def reset_counters(self) -> None:
        """Sets the counters to zero, when no other thread is in a call."""
        with self._changed:
            self._wait_for_others()
            self._builds.count = 0
            for instance in self.instances:
                instance.context.reset_counters()

    def close(self) -> None:
        """Waits for the calls of other threads and releases everything that no call of this one needs."""
        with self._changed:
            self._closed = True
            self._wait_for_others()
            while self._idle:
                self._idle.pop().close()
            if not self._running:
                self._builds.close()

    def _take(self, thread: int) -> Instance | None:
        """An idle instance, or None if a new one may be made."""
        with self._changed:
            while not self._closed:
                if self._idle or self._running.total() < self._limit or thread in self._running:
                    self._running[thread] += 1
                    return self._idle.pop() if self._idle else None
                self._changed.wait()
        raise InputError("the executable was closed", notes=["load or compile the program again"])

    def _give_back(self, thread: int, instance: Instance | None) -> None:
        with self._changed:
            self._running[thread] -= 1
            if not self._running[thread]:
                del self._running[thread]
            if instance is not None and not self._closed:
                self._idle.append(instance)
            elif instance is not None:
                instance.close()
                if not self._running:
                    self._builds.close()
            self._changed.notify_all()

    def _wait_for_others(self) -> None:
        thread = threading.get_ident()
        while any(other != thread for other in self._running):
            self._changed.wait()
