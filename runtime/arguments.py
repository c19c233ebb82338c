"""Arguments of calls: numpy and DLPack arrays on their way into an entry.

Nothing is converted silently: an argument has the dtype of its parameter or is refused. The exception are
Python numbers given for scalar parameters. An array that is contiguous is used where it is. docs/devscope.md says
what becomes of subclasses of numpy's array and of other objects.

numpy has no bfloat16: ``bf16`` arguments are arrays of ``ml_dtypes.bfloat16``, or of uint16 holding the bits; so
with the other `EXTENSION_TYPES`.
"""

import cmath
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from devscope.errors import ArgumentError, InputError, Note
from devscope.runtime.dtypes import ENTRY_DTYPES, EXTENSION_TYPES
from devscope.runtime.program import Entry, TensorSpec

Array = NDArray[Any]

_NUMBERS = (bool, int, float, complex)
_CPU_DEVICE_TYPES = (1, 3)  # DLPack's kDLCPU and kDLCUDAHost


class ArgumentList:
    """Checks the arguments of one entry."""

    def __init__(self, name: str, entry: Entry) -> None:
        self._name = name
        self._specs = entry.inputs
        self._checks = [ArgumentCheck(spec, position) for position, spec in enumerate(entry.inputs)]

    def __call__(self, values: Sequence[Any], named: Mapping[str, Any] | None = None) -> list[Array]:
        """The arguments of a call as arrays: by position, then by the names of the rest.

        Raises :class:`ArgumentError` and other InputErrors.
        """
        if named:
            values = self._with_named(values, named)
        if len(values) != len(self._checks):
            count = len(self._checks)
            raise self._error(f"takes {count} {'argument' if count == 1 else 'arguments'}, got {len(values)}")
        return [check(value) for check, value in zip(self._checks, values, strict=True)]

    def with_out(self, values: Sequence[Any], named: Mapping[str, Any]) -> bool:
        """Whether all arguments are given by position, and ``out`` besides."""
        return len(named) == 1 and "out" in named and len(values) == len(self._checks) and not self.has("out")

    def has(self, name: str) -> bool:
        """Whether an argument has this name."""
        return any(spec.name == name for spec in self._specs)

    def _with_named(self, values: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        names = [spec.name for spec in self._specs]
        for name in named:
            if name not in names:
                raise self._error(f"has no argument '{name}'")
            if name in names[: len(values)]:
                raise self._error(f"got argument '{name}' twice: by position and by name")
        left = names[len(values) :]
        if missing := [name for name in left if name not in named]:
            raise self._error(f"lacks {', '.join(map(repr, missing))}")
        return [*values, *(named[name] for name in left)]

    def _error(self, what: str) -> ArgumentError:
        specs = ", ".join(f"{spec.name}: {spec}" if spec.name else str(spec) for spec in self._specs)
        return ArgumentError(f"'{self._name}' {what}", notes=[f"its arguments are: ({specs})"])


def out_arrays(name: str, specs: Sequence[TensorSpec], given: Any) -> list[Array | None]:
    """An array or None for each result of the entry ``name``, from what the caller gave: one, or a sequence.

    Empty if there are none. Raises :class:`InputError` for what a result cannot be written to.
    """
    if given is None:
        return []
    outs: list[Any] = list(given) if isinstance(given, list | tuple) else [given]  # pyright: ignore[reportUnknownArgumentType]
    if len(outs) != len(specs):
        count = f"{len(specs)} {'result' if len(specs) == 1 else 'results'}"
        raise InputError(f"'{name}' has {count}, 'out' has {len(outs)}", notes=["give an array or None for each"])
    for position, (spec, out) in enumerate(zip(specs, outs, strict=True)):
        if out is not None and (problem := _problem(spec, out)):
            fitting = (
                "" if spec.scalar else f"an array from np.empty(shape, np.{ENTRY_DTYPES[spec.dtype].name}), or "
            )
            raise InputError(f"out {position}: {problem}", notes=[f"give {fitting}None for a new result"])
    arrays = [out for out in outs if out is not None]
    for number, array in enumerate(arrays):
        if any(np.may_share_memory(array, other) for other in arrays[:number]):
            raise InputError("two arrays of 'out' share memory")
    return outs


def _problem(spec: TensorSpec, out: Any) -> str:
    """Why a result cannot be written to ``out``; empty if it can."""
    dtype, shape = ENTRY_DTYPES[spec.dtype], tuple(spec.shape)
    if spec.scalar:
        return "the result is a scalar, for which there is no array"
    if not isinstance(out, np.ndarray) or isinstance(out, np.ma.MaskedArray):
        return f"expected a numpy array, got {type(out).__name__}"
    array: Array = out
    if array.dtype != dtype and array.dtype.name != EXTENSION_TYPES.get(spec.dtype):
        return f"expected dtype {dtype.name}, got {_given_dtype(array)}"
    if not _fits(shape, array.shape):
        return f"expected shape {_shape(shape)}, got {_shape(array.shape)}"
    flags = array.flags
    needed = (
        ("contiguous (in C order)", flags.c_contiguous),
        ("aligned", flags.aligned),
        ("writable", flags.writeable),
    )
    lacking = [name for name, is_so in needed if not is_so]
    return f"the array is not {' and not '.join(lacking)}" if lacking else ""


class ArgumentCheck:
    """Turns one argument of a call into an array that compiled code can read.

    ``position`` counts from 0.
    """

    def __init__(self, spec: TensorSpec, position: int) -> None:
        self.spec = spec
        self.position = position
        self.dtype = ENTRY_DTYPES[spec.dtype]
        self._extension = EXTENSION_TYPES.get(spec.dtype)
        self.shape = tuple(spec.shape)
        self._most = float(np.finfo(self.dtype).max) if self.dtype.kind in "fc" else 0.0

    def __call__(self, value: Any) -> Array:
        """The value as an aligned C-contiguous array of the parameter's dtype and shape.

        Raises :class:`InputError`.
        """
        array: Array = value if type(value) is np.ndarray else self._import(value)
        if array.dtype != self.dtype and array.dtype.name != self._extension:
            raise self._error(f"expected dtype {self._dtype_name()}, got {_given_dtype(array)}", self._advice())
        if array.shape != self.shape and not _fits(self.shape, array.shape):
            raise self._error(f"expected shape {_shape(self.shape)}, got {_shape(array.shape)}")
        if not (array.flags.c_contiguous and array.flags.aligned):
            array = np.array(array, order="C", copy=True)
        return array

    def _import(self, value: Any) -> Array:
        if type(value).__module__.partition(".")[0] == "torch" and hasattr(value, "detach"):
            return self._from_torch(value)
        if self.spec.scalar and isinstance(value, _NUMBERS) and not isinstance(value, np.generic):
            return self._number(value)
        if isinstance(value, np.generic):
            return np.asarray(value)
        if isinstance(value, np.ma.MaskedArray) or _interface(value).get("mask") is not None:
            raise self._error(
                "a masked array is not accepted: its masked elements would be computed with like others",
                "pass x.filled(value), or x.data to mean all of it",
            )
        if isinstance(value, np.ndarray):
            return np.asarray(value)
        if type(value).__module__.partition(".")[0] == "jax":
            jax = sys.modules["jax"]
            if isinstance(value, jax.core.Tracer):
                raise self._error(
                    "JAX is tracing a function, where an array has no elements yet",
                    "call the program outside of jax.jit, or through jax.pure_callback",
                )
            if type(value).__name__ == "PRNGKeyArray":
                value = jax.random.key_data(value)
        if hasattr(value, "__dlpack__"):
            return self._from_dlpack(value)
        if _interface(value) or _has_buffer(value):
            return self._taken("numpy", np.asarray, value)
        wanted = "a number, a numpy array" if self.spec.scalar else "a numpy array"
        raise self._error(
            f"expected {wanted} or an object with __dlpack__, got {type(value).__name__}", self._advice()
        )

    def _from_torch(self, value: Any) -> Array:
        """A tensor of PyTorch, gradients or not; numpy takes the bits of what it has no dtype for."""
        bits = None if self._extension is None else _torch(self._extension)
        value = value.detach() if value.requires_grad else value
        try:  # most are usable as they are
            return value.view(_torch(self.dtype.name)).numpy() if bits and value.dtype is bits else value.numpy()
        except (RuntimeError, TypeError):
            pass
        if value.device.type != "cpu" or value.layout is not _torch("strided"):
            raise self._error("the tensor is not a dense one in host memory", "pass x.cpu().to_dense()")
        if bits and value.dtype is bits:
            value = value.contiguous().view(_torch(self.dtype.name))
        note = f"pass x.to(torch.{self.dtype.name})" if self._extension is None else None
        return self._taken("numpy", lambda: value.resolve_conj().resolve_neg().numpy(), note=note)

    def _from_dlpack(self, value: Any) -> Array:
        device = self._taken("DLPack", lambda: int(value.__dlpack_device__()[0]))
        if device not in _CPU_DEVICE_TYPES:
            raise self._error("the array is not in host memory", "copy it to the CPU first")
        if self._extension is not None and hasattr(value, "__array__"):  # numpy takes no such dtype by DLPack
            return self._taken("numpy", np.asarray, value)
        return self._taken("DLPack", np.from_dlpack, value)

    def _taken(self, protocol: str, take: Callable[..., Any], *values: Any, note: str | None = None) -> Any:
        try:
            return take(*values)
        except (BufferError, RuntimeError, TypeError, ValueError, AttributeError) as error:
            what = f"the array could not be taken over through {protocol}: {error}"
            raise self._error(what, note or self._advice()) from None

    def _number(self, value: complex) -> Array:
        """A Python number as a rank-0 array; its kind must fit the parameter, its value the range."""
        kind = self.spec.dtype
        if self._extension is not None:
            raise self._error(f"a Python number cannot be given for a {kind} parameter", self._advice())
        is_complex = self.dtype.kind == "c"
        is_float = is_complex or self.dtype.kind == "f"
        fits = is_complex if isinstance(value, complex) else is_float or not isinstance(value, float)
        if isinstance(value, bool) != (kind == "i1") or not fits:
            raise self._error(
                f"expected a value of type {kind}, got {_shown(value)} of type {type(value).__name__}"
            )
        if is_float and max(abs(value.real), abs(value.imag)) <= self._most:
            return np.array(value, self.dtype)
        with np.errstate(over="ignore"):
            try:
                number = np.array(value, self.dtype)
            except OverflowError:
                raise self._error(f"{_shown(value)} is outside the range of {kind}") from None
        if is_float and cmath.isfinite(value) and not np.isfinite(number):
            raise self._error(f"{_shown(value)} is outside the range of {kind}")
        return number

    def _dtype_name(self) -> str:
        extension = self._extension
        return self.dtype.name if extension is None else f"{extension} (or its bits as {self.dtype.name})"

    def _advice(self) -> Note:
        array = f"np.asarray(x, dtype=np.{self.dtype.name})"
        if self._extension is not None:
            return Note(
                f"pass x.astype(ml_dtypes.{self._extension})", flags=f"save the bits: np.save(file, {array})"
            )
        return Note(f"pass {array}", flags=f"save it as np.save(file, {array})")

    def _error(self, what: str, note: str | None = None) -> InputError:
        name = f" '{self.spec.name}'" if self.spec.name else ""
        return InputError(f"argument {self.position}{name}: {what}", notes=[note] if note else ())


def _shown(value: complex) -> str:
    # Python does not write integers of thousands of digits, and nobody reads those of hundreds.
    bits = value.bit_length() if isinstance(value, int) else 0
    return f"an integer of {bits} bits" if bits > 256 else str(value)


def _given_dtype(array: Array) -> str:
    return array.dtype.name if array.dtype.isnative else f"{array.dtype.name} in foreign byte order"


def _torch(name: str) -> Any:
    return getattr(sys.modules["torch"], name, None)


def _fits(wanted: tuple[int | None, ...], shape: tuple[int, ...]) -> bool:
    return len(shape) == len(wanted) and all(
        expected is None or expected == size for expected, size in zip(wanted, shape, strict=True)
    )


def _interface(value: Any) -> Mapping[str, Any]:
    """What an object that is not numpy's says of its memory to numpy; nothing of others."""
    found = getattr(value, "__array_interface__", None)
    return found if isinstance(found, Mapping) else {}  # pyright: ignore[reportUnknownVariableType]


def _has_buffer(value: Any) -> bool:
    if isinstance(value, bytes | bytearray | str):
        return False
    try:
        memoryview(value).release()
    except TypeError:
        return False
    return True


def _shape(shape: tuple[int | None, ...]) -> str:
    return "[" + ", ".join("?" if size is None else str(size) for size in shape) + "]"
