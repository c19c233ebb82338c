"""`Backend`: who can compile, or compute in another way, some patterns of a program.

A backend is a target kind with a table of patterns and a code generator. ``device-partition`` makes of each match
a private function that has, as ``func.func`` attributes,

* ``device.compiler = "NAME"`` and ``device.target = #device.target<"NAME", {...}>``,
* ``device.composite = "NAME.PATTERN"``, and ``device.scope``, the device whose memory its data is in;

its body are the operations that matched. What comes after leaves such functions alone; `Backend.codegen` gets them
last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import BlockArgument

from devscope.dialects.target import OptionSpec, OptionValue
from devscope.errors import LoweringError

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.dialects.func import FuncOp
    from xdsl.ir import Attribute, SSAValue

    from devscope.analysis.patterns import Match
    from devscope.analysis.patterns.language import Answer
    from devscope.errors import SourceLocation

Options = Mapping[str, OptionValue]


class Phase(Enum):
    """When passes of a backend run, on the whole module but for the last: on a module of one claimed function."""

    BEFORE_PARTITIONING = "before_partitioning"
    AFTER_PARTITIONING_0 = "after_partitioning_0"
    """Before functions as values became calls and what every scope is was decided."""
    AFTER_PARTITIONING_1 = "after_partitioning_1"
    """After that."""
    BEFORE_CODEGEN = "before_codegen"


class Row(NamedTuple):
    """``pattern``: of `devscope.patterns`, or PDL. ``predicate`` sees the match: its operations, values and types,
    and the options of the target."""

    name: str
    pattern: Any
    predicate: Callable[[Match], Answer] | None = None


# ------------------------------------------------------------------------------------------ what code can be


class Argument(NamedTuple):
    """An argument of a C function.

    ``pointer``: to the first element of tensor ``value``; ``scalar``: ``value`` itself, a number. ``size``:
    dimension ``dim`` of tensor ``value``. ``constant``: ``number``. Operands count from 0, results follow.
    ``type``: MLIR's, such as ``"i32"``; for sizes and constants.
    """

    what: Literal["pointer", "scalar", "size", "constant"]
    value: int = 0
    dim: int = 0
    number: int | float = 0
    type: str = "i64"

    @classmethod
    def pointer(cls, value: int) -> Argument:
        return cls("pointer", value)

    @classmethod
    def scalar(cls, value: int) -> Argument:
        return cls("scalar", value)

    @classmethod
    def size(cls, value: int, dim: int, type: str = "i64") -> Argument:
        return cls("size", value, dim, type=type)

    @classmethod
    def constant(cls, number: int | float, type: str = "i64") -> Argument:
        return cls("constant", number=number, type=type)


Arguments = Sequence[Argument] | None
"""None is the usual order: of each operand and then of each result its pointer and its sizes, of a number the
number. The function returns an ``int32_t``, 0 for success:

    int32_t f(const float *a, int64_t a_rows, int64_t a_columns, float *out, int64_t rows, int64_t columns);
"""


@dataclass(frozen=True)
class Mlir:
    """MLIR text of a module with a function of the claimed one's name, which devscope compiles for the host.

    On tensors it replaces the body. On memrefs it takes the operands and then the results, which it writes;
    ``calls`` are the functions of the backend's `Runtime` that it declares and calls; it may call
    ``devscope_threads``, too, which gives an i64: how many threads a call may use. ``close``: a function of the
    text without arguments or results, called before the code is unloaded, which releases what others made.
    """

    text: str
    calls: Sequence[str] = ()
    close: str = ""


@dataclass(frozen=True)
class LlvmIr:
    """LLVM IR text that defines the function ``symbol``; ``calls``: what it calls of the backend's `Runtime`.

    ``close`` is as in `Mlir`."""

    text: str
    symbol: str
    arguments: Arguments = None
    calls: Sequence[str] = ()
    close: str = ""


@dataclass(frozen=True)
class ObjectCode:
    """A relocatable object for the host that defines the function ``symbol``."""

    data: bytes
    symbol: str
    arguments: Arguments = None
    calls: Sequence[str] = ()


@dataclass(frozen=True)
class CSource:
    """C that defines the function ``symbol``; ``toolchain``, which the backend brings, makes an object of it."""

    text: str
    symbol: str
    toolchain: Callable[[str], bytes]
    arguments: Arguments = None
    calls: Sequence[str] = ()


@dataclass(frozen=True)
class LibraryCall:
    """A call of a C function that the backend's `Runtime` has. ``status``: whether it returns an ``int32_t``, 0
    for success; else nothing."""

    symbol: str
    arguments: Arguments = None
    status: bool = True


@dataclass(frozen=True)
class PythonCall:
    """A call of a Python function that the backend's `Runtime` has under this name.

    It gets numpy arrays of operands, to read, and of results, to write; numbers as 0-d arrays.
    """

    name: str


@dataclass(frozen=True)
class DeviceBinary:
    """Code for the backend's device; ``kernel``: what is launched, with the buffers of operands and of results.

    Its arguments are those of the usual order: pointers of the device, sizes, numbers.
    """

    data: bytes
    kernel: str


Code = Mlir | LlvmIr | ObjectCode | CSource | LibraryCall | PythonCall | DeviceBinary


# ------------------------------------------------------------------------------------------ the backend


@dataclass(frozen=True)
class Claimed:
    """A function to compile, as `Backend.codegen` gets it.

    ``pattern``: the name of the one that matched, without the backend's; of several merged matches ``""``.
    ``match``: what the pattern matched in ``function``; None for several. ``module``: an xDSL module with
    ``function`` and the private functions that it calls, of merged matches. Constants of more than one number that
    it uses are its last operands. ``text``: the module in MLIR's syntax, after `Backend.lowering`.
    """

    name: str
    pattern: str
    options: Options
    module: ModuleOp
    function: FuncOp
    text: str
    match: Match | None
    location: SourceLocation | None
    passed: Sequence[int]
    """Which parameters of ``function`` code gets: the others are sizes that the shapes of these say."""
    constants: Sequence[int] = ()
    """Which operands of the code are constants: their data is the same in every call."""

    @property
    def buffers(self) -> list[str]:
        """The types of what code gets that is called with buffers: operands, then results, as MLIR writes them."""
        return [_buffer(type_) for type_ in (*self.inputs, *self.outputs)]

    def operand(self, value: SSAValue) -> int:
        """Which operand of the code a value of ``function`` is. Raises LoweringError if it is none."""
        if isinstance(value, BlockArgument) and value.block is self.function.body.first_block:
            with suppress(ValueError):
                return self.passed.index(value.index)
        from devscope.analysis.patterns import splat_value

        what = f"a value of '{self.name}' is no operand of its code"
        if (number := splat_value(value)) is not None:
            raise LoweringError(f"{what}: it is {number:g} everywhere", self.location, ["splat_value gives that"])
        raise LoweringError(what, self.location)

    @property
    def inputs(self) -> Sequence[Attribute]:
        """The types of the operands of its code."""
        types = self.function.function_type.inputs.data
        return [types[position] for position in self.passed]

    @property
    def outputs(self) -> Sequence[Attribute]:
        """The types of its results."""
        return self.function.function_type.outputs.data


def _buffer(type_: Attribute) -> str:
    if not isinstance(type_, TensorType):
        return str(type_)
    sizes = ("?" if size == DYNAMIC_INDEX else str(size) for size in type_.get_shape())
    return f"memref<{'x'.join([*sizes, str(type_.get_element_type())])}>"


class Backend:
    """Subclass this, set what differs, and register it.

    ``name``: of the target kind and of the compiler. ``options``: the schema of the target. ``device_type``: where
    its code runs: ``"cpu"`` is ordinary memory of the host. ``patterns``: in the order in which they are tried.
    ``passes``: xDSL passes, run in order. ``lowering``: MLIR's pass pipelines, run on each claimed function.
    ``merge``: whether neighbouring matches become one function. ``programs``: MLIR text of programs that it claims
    something of, which ``devscope check-backend`` runs.
    """

    name: ClassVar[str]
    options: ClassVar[Mapping[str, OptionSpec]] = {}
    device_type: ClassVar[str] = "cpu"
    patterns: Sequence[Row] = ()
    passes: Mapping[Phase | str, Sequence[Any]] = {}
    lowering: Sequence[str] = ()
    merge: bool = False
    programs: Sequence[str] = ()

    def codegen(self, function: Claimed) -> Code:
        """Code for a claimed function. Any exception is an error at the place of the operation."""
        raise NotImplementedError("it has no codegen")

    def cost(self, match: Any) -> float | None:
        """Seconds that a match takes; None: not known."""
        return None

    def check_options(self, options: Options) -> None:
        """Raise OptionError for a value that the schema allows and the backend does not know."""

    def version(self) -> str | None:
        """Part of the key of compiled programs that are kept: what changes when its code does.

        None: of an installed package's backend, the state of the package's files; programs compiled with another
        one are not kept.
        """
        return None


@dataclass(frozen=True)
class Selected:
    """A backend as a compilation uses it: with options, and the device where its code runs.

    ``fallback``: whether devscope compiles what the backend claims and then cannot compile. ``without``: names of
    patterns that are left out.
    """

    backend: Backend
    options: Options
    device: str
    fallback: bool = False
    without: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        return self.backend.name

    @property
    def patterns(self) -> Sequence[Row]:
        return [row for row in self.backend.patterns if row[0] not in self.without]

    @property
    def merge(self) -> bool:
        return self.backend.merge

    def cost(self, match: Any) -> float | None:
        return self.backend.cost(match)
