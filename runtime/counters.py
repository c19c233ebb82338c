"""What an executable did on its devices, counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import product

from devscope.runtime.instance import Instance


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
