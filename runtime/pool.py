"""Copies of a loaded program, so that several threads can call it at once; what they share, and what they did."""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from threading import get_ident
from typing import Any
from weakref import WeakSet

from devscope.errors import InputError
from devscope.runtime.cache import DiskCache
from devscope.runtime.drivers import Device, DeviceProgram, forked
from devscope.runtime.instance import Instance
from devscope.runtime.interpreter import method
from devscope.runtime.linker import shared_runtime
from devscope.runtime.program import Program


@dataclass(frozen=True)
class CopyCount:
    """A number of copies and the bytes that they moved."""

    copies: int = 0
    bytes: int = 0

    def __add__(self, other: CopyCount) -> CopyCount:
        return CopyCount(self.copies + other.copies, self.bytes + other.bytes)


@dataclass
class Counters:
    """What an executable did on its devices, since it was made or since the counters were reset.

    The dictionaries are keyed by virtual device. ``allocations`` counts buffers that the program asked for,
    ``driver_allocations`` those that could not be served from freed ones. ``copies`` is keyed by source and
    destination; pairs without copies are left out. h2d, d2h, d2d: copies to devices, from devices, and
    between or inside devices. ``live`` is not a sum: the buffers that the program has now and will free (its
    constants stay), none between calls. ``builds``: programs that drivers built or loaded. For the host,
    allocations are blocks of memory, and the driver is the C library.
    """

    launches: Counter[str] = field(default_factory=Counter[str])
    allocations: Counter[str] = field(default_factory=Counter[str])
    driver_allocations: Counter[str] = field(default_factory=Counter[str])
    copies: dict[tuple[str, str], CopyCount] = field(default_factory=dict[tuple[str, str], CopyCount])
    h2d: CopyCount = CopyCount()
    d2h: CopyCount = CopyCount()
    d2d: CopyCount = CopyCount()
    live: Counter[str] = field(default_factory=Counter[str])
    builds: int = 0

    def add(self, instance: Instance) -> None:
        """Adds what an instance of the executable did."""
        names = [spec.name for spec in instance.specs]
        for name, record in zip(names, instance.records, strict=True):
            for kind in ("launches", "allocations", "driver_allocations"):
                getattr(self, kind)[name] += getattr(record.counters, kind)
            self.live[name] += record.live_count
        for (source, target), cell in zip(product(range(len(names)), repeat=2), instance.traffic, strict=True):
            moved = CopyCount(cell.copies, cell.bytes)
            if cell.copies:
                ends = names[source], names[target]
                self.copies[ends] = self.copies.get(ends, CopyCount()) + moved
            if source or target:
                direction = f"{'d' if source else 'h'}2{'d' if target else 'h'}"
                setattr(self, direction, getattr(self, direction) + moved)


class Builds:
    """Builds a binary once per physical device, from the driver's own binary if the cache has it."""

    def __init__(self, open_cache: Callable[[], DiskCache | None], trusted: bool = True) -> None:
        """``trusted``: this process may build the binaries itself; else another one has to survive that first."""
        self.count = 0
        """How many programs drivers built or loaded since this was last set to 0."""
        self._open_cache = open_cache
        self._trusted = trusted
        self._programs: dict[tuple[str, bytes], DeviceProgram] = {}
        self._lock = threading.Lock()

    def get(self, device: Device, binary: bytes) -> DeviceProgram:
        """The program of a binary. Raises :class:`DeviceError` when the driver refuses it."""
        with self._lock:
            known = (device.name, binary)
            if known not in self._programs:
                digest = hashlib.sha256(device.identity.encode() + b"\0" + binary).hexdigest()
                cache = self._open_cache()
                built = cache.load_blob(digest) if cache else None
                apart = device.build_apart(binary) if built is None and not self._trusted else None
                program, fresh = device.build(binary, apart or built)
                fresh = fresh or apart
                self.count += 1
                self._programs[known] = program
                if cache and fresh is not None:
                    cache.store_blob(digest, fresh)
            return self._programs[known]

    def forget(self) -> object:
        """The programs, which must not go away, and nothing to release any more."""
        lost, self._programs = self._programs, {}
        self._lock = threading.Lock()
        return lost

    def close(self) -> None:
        """Releases the programs, whose kernels are released."""
        for program in self._programs.values():
            program.release()
        self._programs.clear()


_pools: WeakSet[InstancePool] = WeakSet()


def _forget_other_threads() -> None:
    for pool in list(_pools):
        pool.forget_other_threads()


os.register_at_fork(after_in_child=_forget_other_threads)


@cache
def end_calls_at_exit() -> None:
    """Calls that daemon threads are in must not go on while the interpreter takes itself apart.

    To be called once something else is registered that closes pools, which then comes after this.
    """

    @atexit.register
    def end() -> None:  # pyright: ignore[reportUnusedFunction]
        for pool in list(_pools):
            pool.end()


_PATIENCE = 0.001
"""Seconds that a call waits for an instance before it comes before calls that begin."""


class InstancePool:
    """The instances of a program: idle ones, and those that run.

    A call takes one that is idle. If there is none it makes another one, or waits where there are ``limit`` of
    them. A call from within a call of the same thread (a finalizer or a signal handler can do that) never waits.
    If the program keeps state on devices there is one instance ``alone``, which has it: such a call is refused.
    """

    def __init__(
        self,
        program: Program,
        physical: Sequence[Device],
        builds: Builds,
        threads: int,
        limit: int,
        alone: bool = False,
    ) -> None:
        self._make = lambda: Instance(program, physical, builds.get, threads)
        self._builds = builds
        self._limit = limit
        self._alone = alone
        self._on_devices = any(device.type != "cpu" for device in physical)
        self._closed = self._ending = self._forked = False
        try:
            self.instances = [self._make()]
        except BaseException:
            builds.close()
            raise
        self._idle = list(self.instances)
        # Calls take from it and give back in single steps, without the lock: an exception that the handler of a
        # signal raises loses none.
        self._move: Any = method(shared_runtime()["devscope_python_move"], 0)
        _pools.add(self)
        self._lost: list[object] = []
        """What a forked process may neither use nor release."""
        self._starting: set[int] = set()
        """Calls for which instances are made, by their lists: what they leave there when they are interrupted goes
        in `give_back`."""
        # Its lock is reentrant: garbage collection may call the program from anywhere.
        self._changed = threading.Condition()
        self._waiting = 0
        self._overdue: list[object] = []
        """Who has waited for longer than `_PATIENCE`, one after the other."""

    def take(self, held: list[Instance]) -> Instance:
        """An instance for one call, which is in ``held``, too; give it back, also after an exception.

        Raises :class:`InputError` when the pool is closed, and :class:`DeviceError` after a fork, see `forked`.
        """
        while True:
            if self._forked:
                raise forked()
            if not self._overdue and self._move(self._idle, held, "thread", get_ident()) is not None:
                return held[0]
            if self._wait_for_idle(held):
                self._start(held)
            if held:
                return held[0]

    def call(self, name: str, values: Sequence[Any], way: int, keep: bool = False) -> Any:
        """Calls an entry, see `Instance.run`; ``keep``: what it leaves on devices is the program's state then."""
        held: list[Instance] = []
        try:
            instance = self.take(held)
            results = instance.run(name, values, way)
            if keep:
                instance.keep_states()
            return results
        finally:
            try:
                self.give_back(held)
            finally:
                if held:  # the handler of a signal raised an exception on the way
                    self.give_back(held)

    def give_back(self, held: list[Instance]) -> None:
        """Ends a call; takes what is left in ``held``, if anything."""
        if self._forked:
            held.clear()
            return
        self._move(held, self._idle, "thread", None)
        if self._waiting or self._closed or self._starting:
            with self._changed:
                self._starting.discard(id(held))
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

    def end(self) -> None:
        """Ends the calls of other threads, since the process ends: waits for nothing."""
        self._ending = self._closed = True
        for instance in list(self.instances):
            if instance.thread not in (None, get_ident()):
                instance.end()

    def forget_other_threads(self) -> None:
        """In a process that was forked: nobody goes on with the calls of the others."""
        me = get_ident()
        if self._on_devices:  # of which nothing can be released either
            self._forked = True
            self._lost += [self.instances, self._idle, self._builds.forget()]
            self.instances, self._idle = [], []
        self.instances[:] = [one for one in self.instances if one.thread == me or one in self._idle]
        self._changed = threading.Condition()
        self._overdue.clear()
        self._starting.clear()
        self._waiting = 0

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
                if not (self._ending and instance.abandoned):
                    instance.close()
                self.instances.remove(instance)
        with self._changed:
            # Who waits for the end of the calls may have seen an instance that was neither idle nor gone yet.
            self._changed.notify_all()
            if not self.instances and not self._ending:
                self._builds.close()

    def _wait_for_idle(self, held: list[Instance]) -> bool:
        """Waits for an idle instance and takes it; or else True: the call may make one, which counts from now on.

        Who has waited for long comes before calls that begin. Those of a busy thread would take back what it has
        given back before another thread has the interpreter's lock, which it only gets while they run.
        """
        me = object()
        with self._changed, contextlib.ExitStack() as waiting:
            if not self._wait(lambda: self._closed or self._may_take(me) or self._may_start(), _PATIENCE):
                waiting.callback(self._leave, me)
                self._overdue.append(me)
                self._wait(lambda: self._closed or self._may_take(me) or self._may_start())
            if self._ending and threading.current_thread() is not threading.main_thread():
                raise SystemExit  # while the process ends; handlers of its end are told like others
            if self._closed:
                raise InputError("the executable was closed", notes=["load or compile the program again"])
            if self._idle or not self._may_start():
                self._move(self._idle, held, "thread", get_ident())
                return False
            self._starting.add(id(held))
            return True

    def _may_take(self, me: object) -> bool:
        return bool(self._idle) and (not self._overdue or self._overdue[0] is me)

    def _leave(self, me: object) -> None:
        """For the next one who is overdue."""
        if me in self._overdue:
            self._overdue.remove(me)
        self._changed.notify_all()

    def _may_start(self) -> bool:
        me = get_ident()
        mine = any(instance.thread == me for instance in self.instances)
        if mine and self._alone:
            raise InputError("a call from within a call of the same thread: the program keeps state on a device")
        return mine or len(self.instances) + len(self._starting) < self._limit

    def _start(self, held: list[Instance]) -> None:
        try:
            instance = self._make()
            instance.thread = get_ident()
            self.instances.append(instance)
            held.append(instance)
        finally:
            with self._changed:
                self._starting.discard(id(held))
                self._changed.notify_all()

    def _others(self) -> int:
        """How many instances are not idle and not this thread's."""
        mine = sum(instance.thread == get_ident() for instance in self.instances)
        return len(self.instances) + len(self._starting) - len(self._idle) - mine

    def _wait(self, until: Callable[[], Any], seconds: float | None = None) -> Any:
        # Whoever gives an instance back looks at the number after that: either it sees it, or it was seen here.
        self._waiting += 1
        try:
            return self._changed.wait_for(until, seconds)
        finally:
            self._waiting -= 1
