"""How a program is planned and built."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from devscope.errors import OptionError


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
    docs/concurrency.md.
    """

    default: str = "cpu:0"
    arguments: str = "host"
    targets: Mapping[str, str] = field(default_factory=dict[str, str])
    completion: str = "default"
    machine: str | os.PathLike[str] | None = None
    memory_limits: Mapping[str, int] = field(default_factory=dict[str, int])
    storage: str = "planned"
    chunks: int = 1
    machine_text: str | None = field(default=None, init=False)
    """What ``machine`` says, read once."""

    def __post_init__(self) -> None:
        for what, value, legal in (
            ("to treat arguments", self.arguments, ("host", "open")),
            ("to complete a plan", self.completion, ("default", "min-cost")),
            ("to get storage", self.storage, ("planned", "dynamic")),
        ):
            if value not in legal:
                raise OptionError(f"'{value}' is not a way {what}", notes=[f"legal: {', '.join(legal)}"])
        if not isinstance(self.chunks, int) or self.chunks < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise OptionError(
                f"{self.chunks!r} is not a number of chunks", notes=["legal: 1 (as a whole) and more"]
            )
        if self.machine is not None:
            from devscope.analysis.machine_file import machine_text

            object.__setattr__(self, "machine_text", machine_text(self.machine))

    def key(self) -> str:
        mappings = sorted(self.targets.items()), sorted(self.memory_limits.items())
        rest = self.completion, self.machine_text, self.storage, self.chunks
        return repr((self.default, self.arguments, *mappings, *rest))
