"""What a target is: how code of one target kind is compiled, in one object.

A target kind (`devscope.dialects.target`) has a name, a device type and a schema of options; a `Target` adds what
the stages (`stages`) ask for: schedules and pipelines, which are files (`pipelines`), what is legal, and the code
generator. The targets that come with devscope are the modules ``devscope.lowering.<kind>.target``, each with a
``TARGET``, imported when a program needs them; others are made known by `register_target`.
docs/adding-a-target.md walks through one.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from devscope.dialects.target import OptionValue, TargetKind
from devscope.lowering.constants import ConstantTable
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.table import Row, Schedules
from devscope.lowering.mlir_util import RunPasses

if TYPE_CHECKING:
    from devscope.lowering.gpu.device_kernels import DeviceKernels

Options = Mapping[str, OptionValue]
HOST_SLOT = 0
"""The host's number among the memories of a program; virtual devices have the following ones."""

T = TypeVar("T")


@dataclass(frozen=True)
class Rule(Generic[T]):
    """A row of a table: ``choice`` is what is taken for operations that meet all conditions; None is met by all.

    ``ops``: names. ``element``: the element type of the result, such as ``"f32"``. ``static``: whether all shapes
    are known. ``options``: values of the target's options.
    """

    choice: T
    ops: Collection[str] | None = None
    element: str | None = None
    static: bool | None = None
    options: Options = field(default_factory=dict[str, OptionValue])

    def holds(self, op: Any, options: Options) -> bool:
        if self.ops is not None and op.name not in self.ops:
            return False
        if any(options.get(name) != value for name, value in self.options.items()):
            return False
        if self.element is None and self.static is None:
            return True
        shaped = [ir.ShapedType(v.type) for v in (*op.operands, *op.results) if isinstance(v.type, ir.ShapedType)]
        if self.element is not None and (not shaped or str(shaped[-1].element_type) != self.element):
            return False
        return self.static is None or self.static == all(type_.has_static_shape for type_ in shaped)


def choose(rules: Sequence[Rule[T]], op: Any, options: Options) -> T | None:
    """What the first rule that holds for ``op`` says."""
    return next((rule.choice for rule in rules if rule.holds(op, options)), None)


class Schedule(NamedTuple):
    """A named sequence of a file of transforms, for operations on tensors that have its mark.

    ``order`` is that of loops, outermost first, where the sequence lets one choose: by their positions.
    """

    file: str
    sequence: str
    order: tuple[int, ...] = ()

    @property
    def mark(self) -> str:
        return f"{self.sequence}{list(self.order)}" if self.order else self.sequence


class GridSchedule(NamedTuple):
    """Workgroup shape: how many work-items, and how many of them along the innermost loop."""

    workgroup: int = 256
    innermost: int = 64

    def with_options(self, options: Options) -> GridSchedule:
        """A target's option ``workgroup`` takes precedence."""
        return self._replace(workgroup=int(options.get("workgroup", self.workgroup)))

    def tiles(self, trip_counts: Sequence[int | None]) -> list[int]:
        """Tile sizes for a parallel loop nest, outermost first; unknown trip counts are ``None``.

        The innermost loop gets the most work-items because consecutive work-items then touch
        consecutive memory; loops shorter than their share give the rest to the next loop outwards.
        """
        tiles = [1] * len(trip_counts)
        left = self.workgroup
        for index in reversed(range(len(trip_counts))):
            share = min(left, self.innermost) if index == len(trip_counts) - 1 and index > 0 else left
            count = trip_counts[index]
            while count is not None and share > 1 and share // 2 >= count:
                share //= 2
            tiles[index] = max(share, 1)
            left //= tiles[index]
        return tiles


class Lanes(NamedTuple):
    """``width`` work-items side by side give each other numbers of types ``elements`` without memory."""

    width: int = 1
    elements: Collection[str] = ()


NO_LANES = Lanes()


@dataclass(frozen=True)
class DeviceBinary:
    """A binary of all kernels of one device, and for each kernel its name and argument sizes in bytes."""

    data: bytes = b""
    kernels: list[tuple[str, list[int]]] = field(default_factory=list[tuple[str, list[int]]])


def _nothing(*_: object) -> None:
    """What a target does that has nothing to check, or to prepare."""


def _no_kernels(*_: object) -> None:
    return None


@dataclass(frozen=True, kw_only=True)
class Target:
    """How code for ``kind`` is compiled.

    ``schedules``: for operations on tensors. ``check_options`` raises OptionError for a value that the schema
    allows and the compiler does not know. ``inline_elements``: constants of so many elements are immediate data;
    the data of larger ones reaches the device once, through the runtime.
    """

    kind: TargetKind
    schedules: Sequence[Rule[Schedule]] = ()
    check_options: Callable[[Options], None] = _nothing
    inline_elements: int = 0

    @property
    def name(self) -> str:
        return self.kind.name


@dataclass(frozen=True, kw_only=True)
class HostTarget(Target):
    """``read_schedules`` gives the schedules for kernels, in which rows of the user's come first. ``call_kernels``
    replaces operations on buffers by calls of kernels, and begins to compile these; ``to_llvm`` gives the LLVM IR
    of bufferised code, and that of these, ``compile_object`` the object code of the first with named entries,
    ``compile_ir`` that of LLVM IR by itself, as it is."""

    read_schedules: Callable[[Options, Sequence[Row]], Schedules]
    call_kernels: Callable[[Any, Schedules, ConstantTable, Options, RunPasses], Any]
    to_llvm: Callable[[Any, Schedules, Any, RunPasses], tuple[str, str]]
    compile_object: Callable[[str, Sequence[str], Options, Any], Any]
    compile_ir: Callable[[Options, str], bytes]


@dataclass(frozen=True, kw_only=True)
class KernelTarget(Target):
    """A target whose code is kernels that the host launches.

    ``grids``: the schedules of kernels, chosen by their first operation. ``compile_kernels`` compiles a builtin
    module of ``gpu.module`` operations, which compute with ``floats`` and with integers of up to ``integer_bits``,
    if there are ``integer_widths`` of one of these; ``optional_types``: those that it may lack, with the target
    option that says so. ``prepare`` is called early, once it is known that the target is needed: what it starts in
    the background is there when kernels are compiled. ``choose_kernels``: from which schedules operations become
    calls of kernels of the library, or, where there are schedules alone, of kernels in which work-items share it;
    rows of the user's come first; ``lanes``: which of these work-items need no memory for that. What has neither
    becomes a grid of work-items. ``alignment``: of buffers, in bytes, whatever their elements are.
    """

    compile_kernels: Callable[[Any, RunPasses, Options], DeviceBinary]
    choose_kernels: Callable[[Options, Sequence[Row]], DeviceKernels | Schedules | None] = _no_kernels
    lanes: Callable[[Options], Lanes] = lambda _: NO_LANES
    alignment: int = 1
    grids: Sequence[Rule[GridSchedule]] = (Rule(GridSchedule()),)
    floats: Collection[str] = ("f16", "f32", "f64")
    integer_bits: int = 64
    integer_widths: Sequence[int] = ()
    optional_types: Mapping[str, str] = field(default_factory=dict[str, str])
    prepare: Callable[[], object] = _nothing


def _refuse(*_: object) -> DeviceBinary:
    raise AssertionError("a backend's device runs what the backend claimed")


@dataclass(frozen=True, kw_only=True)
class ClaimedTarget(KernelTarget):
    """Of a backend with a device of its own, which runs claimed functions only, see `lowering.claimed`."""

    compile_kernels: Callable[[Any, RunPasses, Options], DeviceBinary] = _refuse


_BUILT_IN = ("cpu", "cuda", "opencl")
_registered: dict[str, Target] = {}


def register_target(target: Target) -> None:
    """Make ``target`` what compiles for its kind, which is registered, too."""
    _registered[target.name] = target


def find_target(kind: str) -> Target | None:
    """The target for a target kind; None where nothing compiles for it."""
    if kind in _BUILT_IN and kind not in _registered:
        register_target(importlib.import_module(f"devscope.lowering.{kind}.target").TARGET)
    return _registered.get(kind)


def target_names() -> list[str]:
    """The target kinds that something can compile for."""
    return sorted({*_BUILT_IN, *_registered})
