"""Copies of a loaded program, so that several threads can call it at once."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
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
        self.thread: int | None = None
        """The thread whose call it runs."""

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
        try:
            self.instances = [self._make()]
        except BaseException:
            builds.close()
            raise
        # Calls take from it and give back in single steps, without the lock.
        self._idle = list(self.instances)
        self._starting = 0
        """Instances that are being made."""
        # Its lock is reentrant: garbage collection may call the program from anywhere.
        self._changed = threading.Condition()
        self._waiting = 0

    def take(self) -> Instance:
        """An instance for one call; give it back. Raises :class:`InputError` when the pool is closed."""
        try:
            instance = self._idle.pop()
        except IndexError:
            instance = self._wait_for_idle() or self._start()
        instance.thread = threading.get_ident()
        return instance

    def give_back(self, instance: Instance) -> None:
        """Ends a call."""
        instance.thread = None
        self._idle.append(instance)
        if self._waiting or self._closed:
            with self._changed:
                self._changed.notify_all()
            if self._closed:
                self._close_idle()

    def counters(self) -> Counters:
        """What all instances did."""
        return read_counters([instance.context for instance in list(self.instances)], self._builds.count)

    def reset_counters(self) -> None:
        """Sets the counters to zero; those of calls that run meanwhile may count in part."""
        self._builds.count = 0
        for instance in list(self.instances):
            instance.context.reset_counters()

    def close(self) -> None:
        """Waits for the calls of other threads and releases everything that no call of this one needs."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            self._wait(lambda: not self._others())
        self._close_idle()

    def _close_idle(self) -> None:
        while self._idle:
            with contextlib.suppress(IndexError):  # another thread was faster
                instance = self._idle.pop()
                instance.close()
                self.instances.remove(instance)
        with self._changed:
            # Who waits for the end of the calls may have seen an instance that was neither idle nor gone yet.
            self._changed.notify_all()
            if not self.instances:
                self._builds.close()

    def _wait_for_idle(self) -> Instance | None:
        """An idle instance, or None when a new one may be made, which counts from now on."""
        with self._changed:
            self._wait(lambda: self._closed or self._idle or self._may_start())
            if self._closed:
                raise InputError("the executable was closed", notes=["load or compile the program again"])
            if self._idle:
                return self._idle.pop()
            self._starting += 1
            return None

    def _may_start(self) -> bool:
        mine = any(instance.thread == threading.get_ident() for instance in self.instances)
        return mine or len(self.instances) + self._starting < self._limit

    def _start(self) -> Instance:
        try:
            instance = self._make()
            self.instances.append(instance)
            return instance
        finally:
            with self._changed:
                self._starting -= 1
                self._changed.notify_all()

    def _others(self) -> int:
        """How many instances are not idle and not this thread's."""
        mine = sum(instance.thread == threading.get_ident() for instance in self.instances)
        return len(self.instances) + self._starting - len(self._idle) - mine

    def _wait(self, until: Callable[[], Any]) -> None:
        # Whoever gives an instance back looks at the number after that: either it sees it, or it was seen here.
        self._waiting += 1
        try:
            self._changed.wait_for(until)
        finally:
            self._waiting -= 1
