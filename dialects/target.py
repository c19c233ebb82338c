"""Target kinds: what code can be compiled for, with which options, and on which type of device it runs.

A plugin adds a kind, and with it a device type, through `register_target_kind`.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from devscope.errors import OptionError

OptionValue = str | int | bool
"""What a target option can hold; in IR a string, a signless i64 and an i1."""

_TYPE_NAMES: dict[type, str] = {
    str: 'a string, such as "..."',
    int: "an i64, such as 1",
    bool: "true or false",
}


def _shown(value: object) -> str:
    """``value`` as MLIR writes it."""
    match value:
        case bool():
            return str(value).lower()
        case str():
            return f'"{value}"'
        case _:
            return str(value)


class OptionSpec(NamedTuple):
    """One option of a target kind: the type of its value, what it means, and for integers the legal range."""

    type: type[str] | type[int] | type[bool]
    doc: str = ""
    minimum: int = -(2**63)
    maximum: int = 2**63 - 1

    def accepts(self, value: object) -> bool:
        """Whether ``value`` is of this option's type and in its range; a bool is no integer here."""
        if type(value) is int and not self.minimum <= value <= self.maximum:
            return False
        return type(value) is self.type

    @property
    def type_text(self) -> str:
        """What is legal, in words, for error messages."""
        text = _TYPE_NAMES[self.type]
        if self.minimum > -(2**63):
            text += f", from {self.minimum}" + (f" to {self.maximum}" if self.maximum < 2**63 - 1 else " on")
        return text


@dataclass(frozen=True)
class TargetKind:
    """A way to compile: ``options`` is the schema that every target of this kind obeys.

    ``calls`` says whether its functions can call each other, unless a target's option ``calls`` does.
    ``generated``: whether code is generated for all that is placed there; else it runs what its backend claims.
    """

    name: str
    device_type: str
    options: Mapping[str, OptionSpec] = field(default_factory=dict[str, OptionSpec])
    calls: bool = True
    generated: bool = True

    def check_options(self, options: Mapping[str, object]) -> None:
        """Raise `OptionError` for the first option that this kind lacks or that is ill-typed."""
        for name, value in options.items():
            spec = self.options.get(name)
            if spec is None:
                raise OptionError(
                    f"unknown option '{name}' of target kind '{self.name}'", notes=[self._legal_options()]
                )
            if not spec.accepts(value):
                raise OptionError(
                    f"option '{name}' of target kind '{self.name}' must be {spec.type_text}, not {_shown(value)}"
                )

    def _legal_options(self) -> str:
        if not self.options:
            return f"target kind '{self.name}' has no options"
        legal = ", ".join(f"{name} ({spec.type.__name__})" for name, spec in sorted(self.options.items()))
        return f"legal options are: {legal}"


_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")

_KINDS: dict[str, TargetKind] = {}


def register_target_kind(kind: TargetKind) -> None:
    """Make ``kind`` known. Raises `OptionError` when another kind has its name or a name is malformed."""
    if not (_NAME.fullmatch(kind.name) and _NAME.fullmatch(kind.device_type)):
        raise OptionError(
            f"target kind '{kind.name}' with device type '{kind.device_type}' cannot be registered",
            notes=["both names must begin with a letter and be made of letters, digits, '_', '-' and '.'"],
        )
    known = _KINDS.setdefault(kind.name, kind)
    if known != kind:
        raise OptionError(
            f"target kind '{kind.name}' is already registered with other options or another device type",
            notes=["choose another name"],
        )


_finders: list[Callable[[str], object]] = []


def find_kinds_with(finder: Callable[[str], object]) -> None:
    """Have ``finder`` called with the name of a kind that is not known: it may register one of that name."""
    if finder not in _finders:
        _finders.append(finder)


def _find(name: str) -> TargetKind | None:
    if name not in _KINDS:
        for finder in _finders:
            finder(name)
    return _KINDS.get(name)


def target_kinds() -> Mapping[str, TargetKind]:
    """All registered kinds by name; a read-only view that later registrations show up in."""
    return MappingProxyType(_KINDS)


def get_target_kind(name: str) -> TargetKind:
    """The kind called ``name``. Raises `OptionError` that lists the legal kinds."""
    kind = _find(name)
    if kind is None:
        legal = f"legal target kinds are: {', '.join(sorted(_KINDS))}, and those of installed backends"
        raise OptionError(f"unknown target kind '{name}'", notes=[legal])
    return kind


def device_types() -> tuple[str, ...]:
    """The device types of all registered kinds, sorted."""
    return tuple(sorted({kind.device_type for kind in _KINDS.values()}))


def computes_anything(device_type: str) -> bool:
    """Whether operations may be placed on devices of a type: no backend's that runs what it claims only."""
    kind = _KINDS.get(device_type)
    return kind is None or kind.generated


def check_device_type(name: str) -> None:
    """Raise `OptionError` that lists the legal device types unless ``name`` is one of them."""
    if name not in device_types() and (_find(name) is None or name not in device_types()):
        legal = f"legal device types are: {', '.join(device_types())}, and those of installed backends"
        raise OptionError(f"unknown device type '{name}'", notes=[legal])


_CALLS = OptionSpec(bool, "whether functions on the device call each other; if not, callees are inlined")

for _kind in (
    TargetKind(
        "cpu",
        "cpu",
        {
            "cpu": OptionSpec(str, "LLVM's name of the processor; the machine's own by default"),
            "features": OptionSpec(str, "LLVM's feature string, such as +avx2,+fma"),
            "opt": OptionSpec(int, "LLVM's optimisation level", minimum=0, maximum=3),
        },
    ),
    TargetKind(
        "opencl",
        "opencl",
        {
            "type": OptionSpec(str, "what it is: cpu or gpu; by default what the device is that programs run on"),
            "vector": OptionSpec(
                int, "bytes of a vector, of a cpu; by default those of the device that programs run on", minimum=1
            ),
            "workgroup": OptionSpec(int, "work items per workgroup", minimum=1),
            "subgroup": OptionSpec(
                int,
                "work items of a gpu that exchange numbers without memory; by default those of a sub-group of the "
                "device that programs run on, if it can",
                minimum=2,
            ),
            "fp64": OptionSpec(bool, "whether the device has double precision"),
            "fp16": OptionSpec(bool, "whether the device has half precision"),
            "calls": _CALLS,
        },
    ),
    TargetKind(
        "cuda",
        "cuda",
        {
            "arch": OptionSpec(str, "compute capability, such as sm_90"),
            "ptx": OptionSpec(str, "PTX version, such as 8.0"),
            "tf32": OptionSpec(bool, "whether products of f32 may be of tf32: rounded to 10 bits of mantissa"),
            "calls": _CALLS,
        },
    ),
    TargetKind("rocm", "rocm", {"arch": OptionSpec(str, "GPU architecture, such as gfx90a"), "calls": _CALLS}),
):
    register_target_kind(_kind)
