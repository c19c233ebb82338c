"""What an entry accepts, what it gives back, and how it says no. Runs on the host alone."""

from __future__ import annotations

import array
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from handmade import program, symbol, vector

from devscope.errors import InputError
from devscope.runtime.arguments import ArgumentCheck
from devscope.runtime.executable import Executable
from devscope.runtime.program import Entry, TensorSpec

# sum(x: 3x?xf32) -> f32; scalar entries give their argument back.
SUM = """
define void @_mlir_ciface_devscope_entry_sum(ptr %result, ptr %x) {
  %data = call ptr @data(ptr %x)
  %size0.p = getelementptr i64, ptr %x, i64 3
  %size1.p = getelementptr i64, ptr %x, i64 4
  %size0 = load i64, ptr %size0.p
  %size1 = load i64, ptr %size1.p
  %n = mul i64 %size0, %size1
  %memory = call ptr @devscope_host_alloc(i64 4)
  store float 0.0, ptr %memory
  br label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ %next, %body ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %body, label %exit
body:
  %p = getelementptr float, ptr %data, i64 %i
  %value = load float, ptr %p
  %old = load float, ptr %memory
  %new = fadd float %old, %value
  store float %new, ptr %memory
  %next = add i64 %i, 1
  br label %loop
exit:
  call void @give(ptr %result, ptr %memory)
  ret void
}
"""
SUM_ENTRY = Entry(symbol("sum"), [TensorSpec("f32", [3, None], False, "x")], [TensorSpec("f32", [])])


@pytest.fixture(scope="module")
def total() -> Executable:
    return Executable(program(SUM, {"main": SUM_ENTRY}))


class Exporter:
    """A foreign array: nothing but DLPack."""

    def __init__(self, data: np.ndarray[Any, Any], device: tuple[int, int] = (1, 0)) -> None:
        self.data = data
        self.device = device

    def __dlpack__(self, **options: Any) -> Any:
        return self.data.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device


def numbers(columns: int = 4) -> np.ndarray[Any, Any]:
    return np.arange(3 * columns, dtype=np.float32).reshape(3, columns)


@pytest.mark.parametrize("columns", [0, 1, 4, 100])
def test_dynamic_dimension(total: Executable, columns: int) -> None:
    result = total(numbers(columns))
    assert result.shape == ()
    assert result == numbers(columns).sum()


@pytest.mark.parametrize(
    "value",
    [
        Exporter(numbers()),
        memoryview(numbers()),
        numbers().T.copy().T,
        numbers(8)[:, ::2] * 0 + numbers(),
        np.frombuffer(b"x" + numbers().tobytes(), np.uint8)[1:].view(np.float32).reshape(3, 4),
        np.lib.stride_tricks.as_strided(numbers(), (3, 4), (16, 4), writeable=False),
    ],
    ids=["dlpack", "buffer", "column order", "fresh", "unaligned", "read only"],
)
def test_sources_of_arrays(total: Executable, value: Any) -> None:
    assert total(value) == numbers().sum()


def test_strided_views_are_read_right(total: Executable) -> None:
    whole = numbers(8)
    assert total(whole[:, 1::2]) == whole[:, 1::2].sum()
    assert total(whole[::-1]) == whole.sum()


class Subclass(np.ndarray):  # pyright: ignore[reportMissingTypeArgument]
    """Says something else of itself than its memory holds; the memory counts."""

    def __array__(self, *arguments: Any, **options: Any) -> Any:
        return np.zeros((3, 4), np.float32)


class Interface:
    """Memory by numpy's protocol, with what else the protocol has."""

    def __init__(self, array: np.ndarray[Any, Any], **more: Any) -> None:
        self._array = array
        self.__array_interface__ = {**array.__array_interface__, **more}


class Converted:
    """As pandas' frames: no memory to show, but a conversion."""

    def __array__(self, *arguments: Any, **options: Any) -> Any:
        return numbers()


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize("kind", [np.matrix, np.memmap, np.recarray, Subclass])
def test_subclasses_are_plain_arrays(total: Executable, kind: Any, tmp_path: Path) -> None:
    numbers().tofile(tmp_path / "data")
    mapped = np.memmap(tmp_path / "data", np.float32, "r", shape=(3, 4))
    value = mapped if kind is np.memmap else numbers().view(kind)
    assert type(value) is kind
    assert total(value) == numbers().sum()
    assert total(Interface(numbers(), mask=None)) == numbers().sum()


def test_rank_0(total: Executable) -> None:
    check = ArgumentCheck(TensorSpec("f32", [], True, "x"), 0)
    for value in (np.array(2.5, np.float32), np.float32(2.5), np.array(2.5, np.float32).view(Subclass)):
        assert check(value) == 2.5


MASKED = np.ma.MaskedArray(numbers(), mask=numbers() > 5)
MASK_MESSAGE = r"argument 0 'x': a masked array is not accepted.*\n.*x\.filled\(value\)"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((MASKED,), MASK_MESSAGE),
        ((np.ma.MaskedArray(numbers()),), MASK_MESSAGE),  # also where nothing is masked: it may be, next time
        ((MASKED[1:2, :1],), MASK_MESSAGE),
        ((np.ma.masked,), MASK_MESSAGE),
        ((Interface(numbers(), mask=numbers() > 5),), MASK_MESSAGE),
        ((Interface(numbers(), data=None, typestr="nonsense"),), "could not be taken over through numpy"),
        ((Converted(),), "got Converted\n.*np.asarray"),
        ((numbers().astype(object),), "expected dtype float32, got object"),
        ((numbers().view([("a", "<f4"), ("b", "<f4")]),), "expected dtype float32, got void64"),
        ((np.rec.array([(1.0, 2)], dtype=[("a", "<f4"), ("b", "<i4")]),), "expected dtype float32, got record64"),
        ((), r"'main' takes 1 argument, got 0\n.*\(x: 3x\?xf32\)"),
        ((numbers(), numbers()), "takes 1 argument, got 2"),
        ((numbers().astype(np.float64),), "argument 0 'x': expected dtype float32, got float64\n.*np.float32"),
        ((numbers().astype(">f4"),), "expected dtype float32"),
        ((np.zeros((4, 3), np.float32),), r"argument 0 'x': expected shape \[3, \?\], got \[4, 3\]"),
        ((np.zeros(3, np.float32),), r"expected shape \[3, \?\], got \[3\]"),
        (([[1.0], [2.0], [3.0]],), "expected a numpy array or an object with __dlpack__, got list"),
        ((1.0,), "got float"),
        ((None,), "got NoneType"),
        (("text",), "got str"),
        ((b"bytes",), "got bytes"),
        ((Exporter(numbers(), (2, 0)),), "not in host memory\n.*copy it to the CPU"),
        ((Exporter(numbers().astype(np.int8)),), "expected dtype float32, got int8"),
        ((array.array("d", [1.0, 2.0, 3.0]),), "expected dtype float32, got float64"),
    ],
)
def test_wrong_arguments(total: Executable, arguments: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        total(*arguments)


def test_dlpack_that_fails(total: Executable) -> None:
    class Broken(Exporter):
        def __dlpack__(self, **options: Any) -> Any:
            raise BufferError("needs gradients")

    with pytest.raises(InputError, match=r"through DLPack: needs gradients\n.*pass np.asarray"):
        total(Broken(numbers()))


def test_arrays_are_not_copied() -> None:
    check = ArgumentCheck(vector("f32"), 0)
    data = np.arange(4, dtype=np.float32)
    assert check(data) is data
    assert np.shares_memory(check(Exporter(data)), data)


SAME = """
define void @_mlir_ciface_devscope_entry_same(ptr %result, ptr %x) {
  %data = call ptr @data(ptr %x)
  call void @give(ptr %result, ptr %data)
  ret void
}
"""


@pytest.fixture(scope="module")
def same() -> Executable:
    """Entries for scalars, by their types, that give their arguments back."""
    specs = [
        TensorSpec(dtype, [], True, "s") for dtype in ("i1", "i8", "i32", "i64", "index", "f16", "f32", "f64")
    ]
    return Executable(program(SAME, {spec.dtype: Entry(symbol("same"), [spec], [spec]) for spec in specs}))


def check_scalar(dtype: str, value: Any) -> Any:
    result = ArgumentCheck(TensorSpec(dtype, [], True, "s"), 2)(value)
    assert result.shape == ()
    return result


@pytest.mark.parametrize(
    ("dtype", "value", "numpy_type"),
    [
        ("i1", True, np.bool_),
        ("i8", -128, np.int8),
        ("i64", 2**63 - 1, np.int64),
        ("index", 5, np.int64),
        ("f32", 0.5, np.float32),
        ("f64", 3, np.float64),
        ("f16", float("inf"), np.float16),
        ("f32", float("nan"), np.float32),
        ("i32", np.int32(4), np.int32),
        ("f64", np.float64(4), np.float64),
        ("f32", np.array(4, np.float32), np.float32),
    ],
)
def test_scalars(same: Executable, dtype: str, value: Any, numpy_type: type) -> None:
    result = check_scalar(dtype, value)
    assert result.dtype == numpy_type
    assert result == value or np.isnan(value)
    result = same.run(dtype, value)
    assert type(result) is numpy_type
    assert result == value or np.isnan(value)


@pytest.mark.parametrize(
    ("dtype", "value", "message"),
    [
        ("i8", 128, "argument 2 's': 128 is outside the range of i8"),
        ("i64", 2**63, "outside the range of i64"),
        ("f16", 1e6, "outside the range of f16"),
        ("f64", 10**400, "outside the range of f64"),
        ("i64", 2**300, "an integer of 301 bits is outside the range of i64"),
        ("i32", 1.0, "expected a value of type i32, got 1.0 of type float"),
        ("i1", 1, "expected a value of type i1, got 1 of type int"),
        ("i32", True, "expected a value of type i32, got True of type bool"),
        ("f32", np.float64(1), "expected dtype float32, got float64"),
        ("f32", np.zeros(1, np.float32), r"expected shape \[\], got \[1\]"),
        ("f32", "1", "expected a number, a numpy array or"),
    ],
)
def test_wrong_scalars(same: Executable, dtype: str, value: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_scalar(dtype, value)
    with pytest.raises(InputError, match=message.replace("argument 2", "argument 0")):
        same.run(dtype, value)


@pytest.mark.parametrize("dtype", ["i8", "i32", "i64", "f32", "f64"])
def test_numbers_at_the_ends_of_ranges(same: Executable, dtype: str) -> None:
    """As what numpy makes of them, or refused."""
    kind = np.dtype({"i": "int", "f": "float"}[dtype[0]] + dtype[1:])
    limits = np.iinfo(kind) if kind.kind == "i" else np.finfo(kind)
    ends = [int(limits.min), int(limits.max)] if kind.kind == "i" else [float(limits.min), float(limits.max)]
    least = 1 if kind.kind == "i" else ends[1] * 1e-7
    for value in [*ends, 0, -1]:
        assert same.run(dtype, value) == kind.type(value)
    for value in [ends[0] - least, ends[1] + least] if dtype != "f64" else [10**400]:
        with pytest.raises(InputError, match="outside the range"):
            same.run(dtype, value)
    if kind.kind == "f":
        assert np.isnan(same.run(dtype, float("nan")))
        assert same.run(dtype, float("-inf")) == -np.inf
        assert np.signbit(same.run(dtype, -0.0))


def test_complex_numbers_whose_magnitude_is_beyond_the_range() -> None:
    largest = complex(1.7e308, 1.7e308)
    assert check_scalar("complex<f64>", largest) == largest
    with pytest.raises(InputError, match="outside the range"):
        check_scalar("complex<f32>", largest)


def test_no_number_is_a_bf16() -> None:
    with pytest.raises(InputError, match="cannot be given for a bf16 parameter"):
        check_scalar("bf16", 1.0)


def test_numbers_are_for_scalars_only() -> None:
    with pytest.raises(InputError, match="got float"):
        ArgumentCheck(TensorSpec("f32", []), 0)(1.0)


def test_bf16_arguments_are_bits() -> None:
    check = ArgumentCheck(vector("bf16"), 0)
    bits = np.array([0x3F80, 0x4000], np.uint16)
    assert check(bits) is bits
    with pytest.raises(InputError, match="expected dtype bfloat16"):
        check(bits.astype(np.float32))


def test_bf16_results_without_ml_dtypes(monkeypatch: pytest.MonkeyPatch) -> None:
    from devscope.runtime.dtypes import array_dtype

    array_dtype.cache_clear()
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with Executable(program(ROWS, {"main": Entry(symbol("rows"), [vector("bf16", 12)], [ROWS_OF_BITS])})) as exe:
        array_dtype.cache_clear()
        result = exe(np.arange(12, dtype=np.uint16))
        assert (result.dtype, result.shape) == (np.uint16, (3, 2))


# rows(x: 12xT) -> 3x2xT, every other element of three rows; elements have two bytes.
ROWS = """
define void @_mlir_ciface_devscope_entry_rows(ptr %result, ptr %x) {
  %from = call ptr @data(ptr %x)
  %memory = call ptr @devscope_host_alloc(i64 24)
  call void @devscope_copy(i64 0, ptr %from, i64 0, i64 0, ptr %memory, i64 0, i64 24)
  call void @give(ptr %result, ptr %memory)
  %sizes = getelementptr i64, ptr %result, i64 3
  store <4 x i64> <i64 3, i64 2, i64 4, i64 2>, ptr %sizes, align 8
  ret void
}
"""
ROWS_OF_BITS = TensorSpec("bf16", [3, 2])


def test_strided_results() -> None:
    spec = TensorSpec("i16", [3, 2])
    with Executable(program(ROWS, {"main": Entry(symbol("rows"), [vector("i16", 12)], [spec])})) as exe:
        result = exe(np.arange(12, dtype=np.int16))
        out = np.empty((3, 2), np.int16)
        assert exe(np.arange(12, dtype=np.int16), out=out) is out
    assert result.tolist() == out.tolist() == [[0, 2], [4, 6], [8, 10]]
    assert result.strides == (8, 4)
    assert result.flags.writeable
    assert result.flags.aligned
    assert not result.flags.c_contiguous


def test_arrays_whose_dtype_is_an_equal_one(total: Executable) -> None:
    """As of arrays that were pickled."""
    x = pickle.loads(pickle.dumps(numbers()))
    assert x.dtype is not np.dtype(np.float32)
    assert total(x) == numbers().sum()
    with pytest.raises(InputError, match="foreign byte order"):
        total(x.astype(">f4"))
