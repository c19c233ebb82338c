"""How a program is planned and built."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from devscope.analysis.amounts import parse_size
from devscope.errors import DevscopeWarning, OptionError, option_note

if TYPE_CHECKING:
    from devscope.analysis.placement import Placement
    from devscope.backends.backend import Selected
    from devscope.lowering.kernels.table import Row
    from devscope.runtime.program import Program

LEGAL = {
    "arguments": ("host", "open"),
    "completion": ("default", "min-cost"),
    "storage": ("planned", "dynamic"),
    "checks": ("off", "on"),
    "partition": ("eager", "search"),
}
"""The values of options that have few."""


_HOST = "cpu:0"

_FILES = ("machine", "schedules", "costs")
"""Options that are paths."""

_CONTENTS = ("machine_text", "costs_text", "rows", "tuned_text", "placement")
"""What files say."""

TUNED = "tuned on this machine"
"""Where rows of ``devscope tune`` come from, for people."""


@dataclass(frozen=True)
class CompileOptions:
    """How a program is planned and built; equal options and equal source give the same program.

    ``default``: scope of what no annotation reaches. ``arguments``: ``"host"`` pins tensor arguments and results
    of public functions to the host, so that copies stand in the IR; ``"open"`` lets the plan decide. ``targets``:
    for each virtual device built for another kind of device, that kind. ``completion``: how scopes are chosen that
    the program leaves open, ``"default"`` or ``"min-cost"``; ``machine``: the file that tells the latter how fast
    the machine is, and which copies are not needed because devices share memory, see docs/machine.md.
    ``memory_limits``: the most bytes that the program may need on virtual devices; ``storage``: whether the places
    of buffers are ``"planned"``, or all memory is allocated as the program runs, ``"dynamic"``, see
    docs/memory.md. ``chunks``: in how many parts large data goes to devices, through their work and back, see
    docs/concurrency.md. ``checks``: whether indices and divisions are checked as the program runs, ``"on"``, see
    docs/checks.md. ``schedules``: a file of rows that say how kernels are made, before the built-in ones and those
    that were tuned on this machine, see docs/schedules.md. ``backends``: which backends are offered the program,
    first ones first, with their options: ``"blas"``, ``"vanilla:banks=4"``, see docs/backends.md. ``partition``:
    who takes what: ``"eager"``, whoever comes first, or ``"search"``, at the least cost, also among the devices
    that ``machine`` describes; ``costs``: a file of what that is; ``search_limit``: seconds per function after
    which the best counts that is known, see docs/partitioning.md. ``place``: rules that say where operations go:
    a TOML file, a mapping of patterns to devices, a list of `Rule`; or ``"auto"``, where they take the least time,
    see docs/placing.md.
    """

    default: str = "cpu:0"
    arguments: str = "host"
    targets: Mapping[str, str] = field(default_factory=dict[str, str])
    completion: str = "default"
    machine: str | os.PathLike[str] | None = None
    memory_limits: Mapping[str, int] = field(default_factory=dict[str, int])
    storage: str = "planned"
    chunks: int = 1
    checks: str = "off"
    schedules: str | os.PathLike[str] | None = None
    backends: Sequence[str] = ()
    partition: str = "eager"
    costs: str | os.PathLike[str] | None = None
    search_limit: float = 10.0
    place: Any = None
    placement: Placement | None = field(default=None, init=False)
    """What ``place`` says, read once."""
    costs_text: str | None = field(default=None, init=False)
    """What ``costs`` says, read once."""
    machine_text: str | None = field(default=None, init=False)
    """What ``machine`` says, read once."""
    rows: Sequence[Row] = field(default=(), init=False)
    """What ``schedules`` says, read once."""

    def __post_init__(self) -> None:
        purposes = {
            "arguments": "treat arguments",
            "completion": "complete a plan",
            "storage": "get storage",
            "checks": "check indices",
            "partition": "partition",
        }
        for name, legal in LEGAL.items():
            if (value := getattr(self, name)) not in legal:
                message = f"'{value}' is not a way to {purposes[name]}"
                raise OptionError(message, notes=[f"legal: {', '.join(legal)}"])
        if not isinstance(self.default, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise OptionError(f"{self.default!r} is not a scope", notes=["write TYPE:NUMBER, such as 'opencl:0'"])
        if not isinstance(self.chunks, int) or isinstance(self.chunks, bool) or self.chunks < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise OptionError(
                f"{self.chunks!r} is not a number of chunks", notes=["legal: 1 (as a whole) and more"]
            )
        named: Any = self.backends
        backends = tuple(named) if isinstance(named, Iterable) and not isinstance(named, str) else (None,)
        if not all(isinstance(one, str) for one in backends):
            raise OptionError(
                f"'backends' is {named!r}, which is no list of names",
                notes=["such as backends=['blas']"],
            )
        object.__setattr__(self, "backends", backends)
        if isinstance(self.search_limit, str) or not self.search_limit > 0:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise OptionError(f"'search_limit' is {self.search_limit!r}", notes=["it is in seconds, above 0"])
        if self.costs is not None:
            from devscope.passes.device_partition.cost_file import costs_text
            from devscope.runtime.paths import checked_path

            if self.partition != "search":
                raise OptionError(
                    "costs have no effect on a partition that does not look at them",
                    notes=[option_note("give", "partition", "search")],
                )
            path = checked_path(self.costs, "'costs'", OptionError)
            object.__setattr__(self, "costs_text", costs_text(path))
        if self.place is not None:
            self._take_rules()
        if self.machine is not None:
            from devscope.analysis.machine_file import machine_text
            from devscope.runtime.paths import checked_path

            path = checked_path(self.machine, "'machine'", OptionError)
            object.__setattr__(self, "machine_text", machine_text(path))
        if self.schedules is not None:
            from devscope.lowering.cpu.kernel_tables import user_rows
            from devscope.lowering.kernels.row_file import rows_text
            from devscope.runtime.paths import checked_path

            path = checked_path(self.schedules, "'schedules'", OptionError)
            object.__setattr__(self, "rows", user_rows(rows_text(path), path))

    def _take_rules(self) -> None:
        """A default among the rules is that of the plan; ``auto`` chooses by cost."""
        from devscope.analysis.placement import AUTO
        from devscope.analysis.placement_forms import placement_of

        placement = placement_of(self.place)
        object.__setattr__(self, "placement", placement)
        default = placement.default
        if default is None:
            return
        if default.device == AUTO:
            object.__setattr__(self, "completion", "min-cost")
            if self.machine is None:
                object.__setattr__(self, "machine_text", _this_machine())
        elif self.default not in (_HOST, default.device):
            raise OptionError(
                f"{default.text} is {default.device}, and 'default' is {self.default}",
                default.at,
                ["say it once"],
            )
        else:
            object.__setattr__(self, "default", default.device)

    @property
    def needs_kinds(self) -> bool:
        """Whether rules ask what operations were made of."""
        return self.placement is not None and self.placement.needs_kinds

    @property
    def machine_name(self) -> str:
        """What messages call the machine description."""
        return "this machine" if self.machine is None else os.fspath(self.machine)

    def to_json(self) -> dict[str, object]:
        """The options as programs record them; of files, their paths."""
        plain = {name: value for name, value in vars(self).items() if name not in _CONTENTS}
        return {
            **plain,
            "targets": dict(self.targets),
            "memory_limits": dict(self.memory_limits),
            "place": None if self.placement is None else self.placement.to_json(),
            **{name: None if (path := plain[name]) is None else os.fspath(path) for name in _FILES},
        }

    @cached_property
    def tuned_text(self) -> str:
        """The rows that ``devscope tune`` found on this machine, as they are kept; read once."""
        from devscope.runtime.cache import open_cache

        store = open_cache()
        return (store.load_schedules() if store is not None else None) or ""

    def all_rows(self) -> Sequence[Row]:
        """Those of ``schedules``, then the tuned ones, which are left out with a warning if they are no rows."""
        if not self.tuned_text:
            return self.rows
        from devscope.lowering.cpu.kernel_tables import user_rows

        try:
            return [*self.rows, *user_rows(self.tuned_text, TUNED, TUNED)]
        except OptionError as error:
            message = f"tuned schedules are not used: {error.message}; remove them: devscope tune --clear"
            warnings.warn(DevscopeWarning(message), stacklevel=2)
            return self.rows

    @property
    def is_cacheable(self) -> bool:
        """Whether `key` says all that a program depends on: not of functions that place operations, and of
        backends that are made in this process.
        """
        if self.placement is not None and self.placement.key is None:
            return False
        if not self.backends:
            return True
        from devscope.backends.registry import version_of

        return all(version_of(one.backend) is not None for one in self._selected)

    def names_backends_of(self, program: Program) -> bool:
        """Whether `key` tells of all backends of a program, whose text may name others."""
        named = {one.name for one in self._selected}
        return all(one["backend"] in named for one in program.report.get("backends", ()))

    def key(self) -> str:
        mappings = sorted(self.targets.items()), sorted(self.memory_limits.items())
        rest = (
            self.completion,
            self.machine_text,
            self.storage,
            self.chunks,
            self.checks,
            self.rows,
            self.tuned_text,
        )
        partition = (self._key_of_backends(), self.partition, self.costs_text)
        rules = self.placement.key if self.placement is not None else ""
        return repr((self.default, self.arguments, *mappings, *rest, *partition, rules))

    def _key_of_backends(self) -> str:
        if not self.backends:
            return ""
        from devscope.backends.registry import describe

        return describe(self._selected)

    @property
    def _selected(self) -> Sequence[Selected]:
        if not self.backends:
            return ()
        from devscope.backends.registry import find_backends

        return find_backends(self.backends)


def _this_machine() -> str:
    """The description that ``devscope devices --measure --keep`` kept, else one of nominal figures."""
    from devscope.analysis.machine import nominal_machine
    from devscope.analysis.machine_file import machine_toml
    from devscope.runtime.cache import open_cache
    from devscope.runtime.devices import list_devices

    store = open_cache()
    kept = store.load_machine() if store is not None else None
    return kept or machine_toml(nominal_machine([device.name for device in list_devices()], _HOST))


def require_use_of_machine(machine: object, completion: str | None, partition: str | None = None) -> None:
    """Raise OptionError when a plan alone is wanted that a machine description would not change."""
    if machine is not None and completion != "min-cost" and partition != "search":
        raise OptionError(
            "a machine description has no effect on a plan that does not look at costs",
            notes=[option_note("give", "completion", "min-cost")],
        )


def checked_limits(limits: Mapping[str, str | int] | None) -> dict[str, int]:
    """The limits in bytes. Raises OptionError."""
    return {device: parse_size(size) for device, size in (limits or {}).items()}
