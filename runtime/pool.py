"""Copies of a loaded program, so that several threads can call it at once, and what they share."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Callable, Sequence
from typing import Any

from devscope.errors import InputError
from devscope.runtime.cache import DiskCache
from devscope.runtime.counters import Counters
from devscope.runtime.drivers import Device, DeviceProgram
from devscope.runtime.instance import Instance
from devscope.runtime.program import Program


class Builds:
    """Builds a binary once per physical device, from the driver's own binary if the cache has it."""

    def __init__(self, open_cache: Callable[[], DiskCache | None]) -> None:
        self.count = 0
        """How many programs drivers built or loaded since this was last set to 0."""
        self._open_cache = open_cache
        self._programs: dict[tuple[str, bytes], DeviceProgram] = {}
        self._lock = threading.Lock()

    def get(self, device: Device, binary: bytes) -> DeviceProgram:
        """The program of a binary. Raises :class:`DeviceError` when the driver refuses it."""
        with self._lock:
            known = (device.name, binary)
            if known not in self._programs:
                digest = hashlib.sha256(device.identity.encode() + b"\0" + binary).hexdigest()
                cache = self._open_cache()
                program, fresh = device.build(binary, cache.load_blob(digest) if cache else None)
                self.count += 1
                self._programs[known] = program
                if cache and fresh is not None:
                    cache.store_blob(digest, fresh)
            return self._programs[known]

    def close(self) -> None:
        """Releases the programs, whose kernels are released."""
        for program in self._programs.values():
            program.release()
        self._programs.clear()


class InstancePool:
    """The instances of a program: idle ones, and those that run.

    A call takes one that is idle. If there is none it makes another one, or waits where there are ``limit`` of
    them. A call from within a call of the same thread (a finalizer or a signal handler can do that) never waits.
    """

    def __init__(self, program: Program, physical: Sequence[Device], builds: Builds, limit: int) -> None:
        self._make = lambda: Instance(program, physical, builds.get)
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
        counters = Counters(builds=self._builds.count)
        for instance in list(self.instances):
            counters.add(instance)
        return counters

    def reset_counters(self) -> None:
        """Sets the counters to zero; those of calls that run meanwhile may count in part."""
        self._builds.count = 0
        for instance in list(self.instances):
            instance.reset_counters()

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
