"""Contractions beside numpy: all layouts, element types, kinds of sizes, and what kernels take along."""

from __future__ import annotations

import ctypes
import itertools
import mmap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from scipy import special

import devscope

pytestmark = pytest.mark.sampled(12)

Array = np.ndarray[Any, Any]

DTYPES: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    "i8": np.int8,
    "i32": np.int32,
    "i64": np.int64,
}


@dataclass(frozen=True)
class Case:
    """``spec``: as `numpy.einsum` has it, letters are loops, some maybe of the result alone. ``dynamic``: those
    whose sizes are not known.

    ``adds``: to an argument, else the sums begin with zero.
    """

    spec: str
    sizes: Mapping[str, int]
    element: str = "f32"
    result: str = ""
    dynamic: str = ""
    adds: bool = True
    extend: str = "arith.extsi"

    @property
    def axes(self) -> list[str]:
        inputs, result = self.spec.split("->")
        return [*inputs.split(","), result]

    @property
    def elements(self) -> list[str]:
        return [self.element, self.element, self.result or self.element]

    def shape(self, axes: str) -> list[int]:
        return [self.sizes[loop] for loop in axes]

    def type(self, axes: str, element: str) -> str:
        extents = ["?" if loop in self.dynamic else str(self.sizes[loop]) for loop in axes]
        return f"tensor<{'x'.join([*extents, element])}>"

    def maps(self, *axes: str) -> str:
        loops = list(dict.fromkeys("".join(axes)))
        maps = [f"affine_map<({', '.join(loops)}) -> ({', '.join(each)})>" for each in axes]
        return f"indexing_maps = [{', '.join(maps)}]"

    def function(self, name: str) -> str:
        """As a generic: the most general form."""
        a, b, c = self.axes
        loops = list(dict.fromkeys("".join(self.axes)))
        kinds = ", ".join('"parallel"' if loop in c else '"reduction"' for loop in loops)
        one, _, sum_ = self.elements
        is_float = not sum_.startswith("i")
        kind = "f" if is_float else "i"
        extend = "arith.extf" if is_float else self.extend
        types = [self.type(axes, element) for axes, element in zip(self.axes, self.elements, strict=True)]
        extends = [f"%{x}w = {extend} %{x} : {one} to {sum_}" for x in "xy"] if one != sum_ else []
        x, y = ("%xw", "%yw") if extends else ("%x", "%y")
        arguments = ", ".join(f"%{name}: {type_}" for name, type_ in zip("abc", types, strict=True))
        start = "%c" if self.adds else "%fill"
        return f"""
            func.func @{name}({arguments}) -> {types[2]} {{
              %zero = arith.constant {"0.0" if is_float else "0"} : {sum_}
              %fill = linalg.fill ins(%zero : {sum_}) outs(%c : {types[2]}) -> {types[2]}
              %r = linalg.generic {{{self.maps(a, b, c)}, iterator_types = [{kinds}]}}
                  ins(%a, %b : {types[0]}, {types[1]}) outs({start} : {types[2]}) {{
              ^bb0(%x: {one}, %y: {one}, %sum: {sum_}):
                {" ".join(f"{line}{chr(10)}" for line in extends)}
                %product = arith.mul{kind} {x}, {y} : {sum_}
                %more = arith.add{kind} %sum, %product : {sum_}
                linalg.yield %more : {sum_}
              }} -> {types[2]}
              return %r : {types[2]}
            }}
        """

    def arguments(self, rng: np.random.Generator) -> list[Array]:
        """Small whole numbers, whose sums are exact in every order."""
        most = 3 if self.elements[2] in ("f16", "bf16") else 100
        pairs = zip(self.axes, self.elements, strict=True)
        return [rng.integers(-most, most + 1, self.shape(axes)).astype(DTYPES[element]) for axes, element in pairs]

    def expected(self, a: Array, b: Array, c: Array) -> Array:
        wide = np.int64 if self.elements[2].startswith("i") else np.float64
        start = c.astype(wide) if self.adds else np.zeros(c.shape, wide)
        inputs, result = self.spec.split("->")
        copies = [axis for axis, loop in enumerate(result) if loop not in inputs]
        summed = "".join(loop for loop in result if loop in inputs)
        found = np.einsum(f"{inputs}->{summed}", a.astype(wide), b.astype(wide))
        return np.asarray(np.expand_dims(found, copies) + start).astype(c.dtype)


def check(cases: Sequence[Case], default: str = "cpu:0") -> None:
    """All cases as entries of one program, which give exactly what numpy gives."""
    source = "\n".join(case.function(f"case_{number}") for number, case in enumerate(cases))
    rng = np.random.default_rng(0)
    with devscope.compile(source, default=default, cache=False) as executable:
        for number, case in enumerate(cases):
            arguments = case.arguments(rng)
            result = executable.run(f"case_{number}", *arguments)
            np.testing.assert_array_equal(result, case.expected(*arguments), str(case))


MNK = {"m": 37, "n": 70, "k": 45}

TYPES = [
    *(("f16", "f16"), ("bf16", "bf16"), ("f16", "f32"), ("bf16", "f32"), ("f64", "f64"), ("f32", "f64")),
    *(("i8", "i32"), ("i8", "i64"), ("i32", "i32"), ("i64", "i64")),
]


def test_layouts() -> None:
    """Each operand either way round, batches of each, several loops of a kind, side by side in memory and not."""
    layouts = [Case(f"{a},{b}->{c}", MNK) for a in ("mk", "km") for b in ("kn", "nk") for c in ("mn", "nm")]
    sizes = {**MNK, "b": 3, "d": 2, "p": 5, "q": 4, "r": 3}
    specs = [
        *("bmk,bkn->bmn", "mbk,bnk->mbn", "bkm,kn->bmn", "mk,bkn->bnm", "bdmk,bdkn->bdmn", "bmdk,bndk->bdmn"),
        *("mpk,kn->mpn", "pmk,nk->mpn", "mk,knq->mnq", "mk,kqn->mnq", "mkr,krn->mn", "mkr,rkn->mn", "mkr,nkr->mn"),
        *("bmpkr,bkrnq->bmpnq", "mpkr,rnkq->mnpq", "k,kn->n", "mk,k->m", "bmk,bk->bm", "mk,kn->mn"),
        *("mk,kn->mpn", "mk,kn->pmn", "bmk,bkn->bmnp"),
        *("mk,bkn->bmn", "km,bnk->bmn", "bmk,kn->bnm", "mk,bdkn->bdmn", "mk,bkn->mbn"),
    ]
    check([*layouts, *(Case(spec, sizes) for spec in specs)])


def test_operands_that_are_read_where_they_are() -> None:
    """Whole blocks of columns, with rows and steps of k behind the last whole ones."""
    sizes = {"b": 2, "m": 37, "n": 96, "k": 530}
    specs = ("mk,kn->mn", "km,kn->mn", "bmk,bkn->bmn", "bmk,bkn->mbn")
    cases = [Case(spec, sizes, adds=adds) for spec in specs for adds in (False, True)]
    check([*cases, Case("mk,kn->mn", sizes, "f64"), Case("mk,kn->mn", {**sizes, "m": 70}, "i32")])


@pytest.mark.parametrize("default", ["cpu:0", "opencl:0"])
def test_steps_that_are_pages_apart_are_packed(default: str) -> None:
    """With more steps than are packed at a time, and rows behind the last whole block. So are many rows."""
    sizes = ((20, 30, "n"), (300, 1030, ""))
    cases = [Case("km,kn->mn", {"m": 1024, "n": n, "k": k}, dynamic=each) for n, k, each in sizes]
    check([*cases, Case("mk,kn->mn", {"m": 35, "n": 272, "k": 1024})], default)


@pytest.mark.parametrize("default", ["cpu:0", "opencl:0"])
def test_rows_that_are_shorter_than_a_vector(default: str) -> None:
    """They are read with what is behind them, but for the last ones."""
    shapes = [(37, n, k) for n, k in ((1, 140), (3, 70), (5, 2), (10, 70), (13, 1100), (15, 40))]
    cases = [Case("mk,kn->mn", {"m": max(m, 4096 // (n * k) + 1), "n": n, "k": k}) for m, n, k in shapes]
    more = [Case("bmk,bkn->bmn", {"b": 2, "m": 37, "n": 5, "k": 40}, element) for element in ("f32", "i32")]
    check([*cases, *more], default)


def test_nothing_is_read_behind_the_last_row() -> None:
    """The second operand ends where memory does."""
    m, n, k = 32, 13, 70
    page, libc = mmap.PAGESIZE, ctypes.CDLL(None, use_errno=True)
    pages = mmap.mmap(-1, 2 * page)
    behind = ctypes.addressof(ctypes.c_char.from_buffer(pages)) + page
    b = np.frombuffer(pages, np.float32, k * n, page - 4 * k * n).reshape(k, n)
    b[...] = np.random.default_rng(0).normal(size=b.shape)
    a = np.random.default_rng(1).normal(size=(m, k)).astype(np.float32)
    program = devscope.compile(Case("mk,kn->mn", {"m": m, "n": n, "k": k}, adds=False).function("main"))
    assert libc.mprotect(ctypes.c_void_p(behind), page, 0) == 0
    try:
        result = program(a, b, np.zeros((m, n), np.float32))
    finally:
        assert libc.mprotect(ctypes.c_void_p(behind), page, mmap.PROT_READ | mmap.PROT_WRITE) == 0
    np.testing.assert_allclose(result, a @ b, rtol=1e-4, atol=1e-4)


def test_on_a_device() -> None:
    """The same kernels, whose tasks are work-items: packed, in place, few rows, vectors along k; all types."""
    sizes = {**MNK, "b": 3, "q": 4}
    specs = ("mk,kn->mn", "km,nk->mn", "mk,kn->nm", "bmk,bkn->bmn", "mk,bkn->bmn", "mk,knq->mnq", "mk,k->m")
    types = [("f64", ""), ("i32", ""), ("i64", ""), ("f16", "f32"), ("f16", ""), ("i8", "i32")]
    check(
        [
            *(Case(spec, sizes) for spec in (*specs, "mk,kn->qmn")),
            *(Case("mk,kn->mn", MNK, *pair, adds=False) for pair in types),
            Case("mk,kn->mn", {"m": 37, "n": 320, "k": 530}),
            *(Case(spec, {"m": m, "n": 70, "k": 530}) for m in (1, 3) for spec in ("mk,kn->mn", "mk,nk->mn")),
            *(Case("mk,kn->mn", {"m": 37, "n": 10, "k": k}, adds=False) for k in (300, 304)),
            Case("mk,kn->mn", MNK, dynamic="mnk"),
            *(Case("mk,nk->mn", {**MNK, line: 1}, dynamic="mnk", adds=False) for line in "mn"),
            Case("bmk,bkn->bmn", {**sizes, "k": 0}, dynamic="k"),
            Case("mk,kn->mn", {**sizes, "m": 0}, dynamic="mn"),
        ],
        "opencl:0",
    )


def test_few_rows_or_columns() -> None:
    sizes = {"n": 200, "k": 130}
    check(
        [
            Case(spec, {**sizes, "m": m})
            for m in (1, 2, 3, 4, 5)
            for spec in ("mk,kn->mn", "mk,nk->mn", "km,nk->mn")
        ]
        + [
            Case(spec, {"m": 130, "k": 70, "n": n})
            for n in (1, 2, 10, 16, 17)
            for spec in ("mk,kn->mn", "mk,nk->mn")
        ]
        + [Case("mk,kn->mn", {"m": 2, "n": 1100, "k": 2000}, dynamic=dynamic) for dynamic in ("", "k")]
        + [Case(spec, {"m": 90, "k": 70, "n": 1}) for spec in ("mk,kn->mn", "km,kn->mn", "km,nk->mn")]
        + [Case("mk,kn->nm", {**sizes, "m": 3}), Case("mk,kn->nm", {"m": 200, "k": 130, "n": 3})]
    )


def test_one_row() -> None:
    """Rows of B side by side that stand apart: groups of them that are whole, or not, or none."""
    lengths = (1, 7, 8, 9, 127, 128, 129, 300)
    cases = [Case("mk,kn->mn", {"m": 1, "k": k, "n": n}) for k in lengths for n in (5, 64)]
    cases += [
        Case("mk,kn->mn", {"m": 1, "k": 77, "n": n}, element) for n in (3, 4100) for element in ("f32", "f64")
    ]
    cases += [Case("bk,bkn->bn", {"b": 3, "k": 150, "n": 40}, element) for element in ("f32", "i32", "i64")]
    check([*cases, Case("mk,kn->mn", {"m": 1, "k": 1, "n": 40}, dynamic="k")])


def test_few_columns_and_long_sums() -> None:
    """Vectors along k: blocks, steps and panels that are not whole, batches, and what has to be packed."""
    sizes = {"m": 21, "n": 7, "k": 301, "b": 3}
    layouts = [f"{a},{b}->mn" for a in ("mk", "km") for b in ("kn", "nk")]
    shapes = [(m, n, k) for m in (5, 64) for n in (2, 5, 10, 12) for k in (256, 263)]
    cases = [
        *(Case(spec, sizes, adds=adds) for spec in layouts for adds in (False, True)),
        *(Case("mk,kn->mn", {"m": m, "n": n, "k": k}) for m, n, k in shapes),
        *(
            Case(spec, sizes, dynamic="mb")
            for spec in ("mk,kn->mn", "bmk,bkn->bmn", "bmk,kn->bmn", "bmk,bnk->mbn")
        ),
        *(
            Case(spec, {**sizes, "n": 200, "m": m}, dynamic="n")
            for spec in ("mk,nk->mn", "km,nk->mn")
            for m in (3, 4)
        ),
        Case("mk,nk->mn", {**sizes, "n": 200, "m": 3}, dynamic="k"),
        Case("mk,kn->mn", {**sizes, "m": 0}),
        *(Case("mk,kn->mn", sizes, element, result) for element, result in TYPES),
    ]
    check(cases)


def test_sizes_that_are_not_known() -> None:
    """Nothing, one, and more than the parts that kernels work in."""
    cases = [
        Case("mk,kn->mn", {"m": m, "n": n, "k": k}, dynamic="mnk", adds=adds)
        for m, n, k in ((0, 5, 7), (5, 0, 7), (5, 7, 0), (1, 1, 1), (9, 33, 17), (70, 130, 600), (2050, 3, 2))
        for adds in (False, True)
    ]
    sizes = {"b": 9, "m": 20, "n": 40, "k": 30, "p": 3, "q": 2, "r": 5}
    more = [Case("bmk,bnk->bmn", {**sizes, "b": b}, dynamic="bm") for b in (0, 1, 9)]
    one = [{**sizes, "k": 137, **dict.fromkeys(lines, 1)} for lines in ("m", "n", "mn")]
    layouts = [f"{a},{b}->mn" for a in ("mk", "km") for b in ("kn", "nk")]
    more += [Case(spec, each, dynamic="mnk") for spec in (*layouts, "bmk,bkn->bmn", "mk,kn->nm") for each in one]
    more += [
        Case("mk,kn->mn", each, *types, dynamic="mn")
        for each in one[:2]
        for types in (("f64", ""), ("bf16", ""), ("i8", "i32"))
    ]
    specs = ("mpkr,krnq->mpnq", "mpkr,rknq->npmq", "mk,knq->mqn")
    check([*cases, *more, *(Case(spec, sizes, dynamic="mnkpqr") for spec in specs)])


@pytest.mark.parametrize("default", ["cpu:0", "opencl:0"])
def test_few_rows_and_columns_of_unknown_number(default: str) -> None:
    """As many as kernels for few are for, one less and one more, in one program for all."""
    specs = [f"{a},{b}->mn" for a in ("mk", "km") for b in ("kn", "nk")] + ["bmk,bkn->bmn"]
    cases = [Case(spec, {}, dynamic="bmnk", adds=False) for spec in specs]
    types = ("f64", "f64"), ("bf16", "f32"), ("i8", "i32")
    cases += [Case(specs[0], {"k": 137}, *each, dynamic="mn", adds=False) for each in types]
    source = "\n".join(case.function(f"case_{number}") for number, case in enumerate(cases))
    few = [(lines, other) for lines in (2, 3, 4, 5, 8, 9, 12, 13) for other in (3, 70)]
    rng = np.random.default_rng(0)
    with devscope.compile(source, default=default, cache=False) as executable:
        for m, n in [*few, *(pair[::-1] for pair in few)]:
            for number, case in enumerate(cases):
                of_size = replace(case, sizes={"b": 2, "k": 40, "m": m, "n": n} | case.sizes)
                arguments = of_size.arguments(rng)
                result = executable.run(f"case_{number}", *arguments)
                np.testing.assert_array_equal(result, of_size.expected(*arguments), str(of_size))


def test_nothing_to_sum() -> None:
    sizes = {"m": 70, "n": 90, "k": 0}
    check([Case("mk,kn->mn", sizes, adds=adds) for adds in (False, True)])


def test_one_product() -> None:
    """Nothing is added up, which is elementwise: also where sizes are unknown, and with what is held."""
    sizes = {"b": 3, "m": 7, "n": 30, "k": 1, "q": 1}
    specs = ("mk,kn->mn", "km,nk->nm", "bmk,nbk->mbn", "mkq,kqn->mn", "mk,kn->mqn", "k,kn->n")
    check(
        [
            *(Case(spec, sizes, adds=adds) for spec in specs for adds in (False, True)),
            *(Case("mk,kn->mn", sizes, element, result) for element, result in TYPES),
            Case("bmk,bkn->bmn", sizes, dynamic="bmn"),
        ]
    )


@pytest.mark.parametrize(("element", "result"), TYPES)
def test_element_types(element: str, result: str) -> None:
    sizes = {**MNK, "b": 2, "r": 3}
    specs = ("mk,kn->mn", "km,nk->mn", "mkr,rkn->mn") + (("bmk,bnk->bmn",) if element == "f16" else ())
    few = [Case(spec, {**MNK, "m": 1}, element, result) for spec in ("mk,kn->mn", "mk,nk->mn")]
    check([*(Case(spec, sizes, element, result, dynamic="k" * (spec[0] == "k")) for spec in specs), *few])


def test_unsigned_elements() -> None:
    case = Case("mk,kn->mn", MNK, "i8", "i32", extend="arith.extui")
    a, b, c = case.arguments(np.random.default_rng(0))
    with devscope.compile(case.function("main")) as executable:
        result = executable(a, b, c)
    wide = [x.view(np.uint8).astype(np.int32) for x in (a, b)]
    np.testing.assert_array_equal(result, wide[0] @ wide[1] + c)


def test_sums_of_low_precision_are_computed_in_f32() -> None:
    """4096 ones would stop at 2048 in f16 and at 256 in bf16, also where loops of k are not one for the kernel."""
    for element in ("f16", "bf16"):
        cases = [
            Case("mk,kn->mn", {"m": 8, "n": 40, "k": 4096}, element),
            Case("mkr,rkn->mn", {"m": 8, "n": 40, "k": 64, "r": 64}, element),
            Case("mk,kn->mn", {"m": 1, "n": 40, "k": 4096}, element),
        ]
        source = "\n".join(case.function(f"case_{number}") for number, case in enumerate(cases))
        with devscope.compile(source, cache=False) as executable:
            for number, case in enumerate(cases):
                a, b, c = (np.ones_like(x) for x in case.arguments(np.random.default_rng(0)))
                result = executable.run(f"case_{number}", a, b, 0 * c)
                np.testing.assert_array_equal(result.astype(np.float32), 4096)


def test_special_values() -> None:
    """Infinities and NaNs get into the sums that they belong to, and into no others."""
    for sizes in ({"m": 33, "n": 67, "k": 70}, {"m": 33, "n": 7, "k": 270}):
        case = Case("mk,kn->mn", sizes, dynamic="m", adds=False)
        a, b, c = case.arguments(np.random.default_rng(0))
        a[3, 5], a[32, -1], b[-1, -1], b[1, 0] = np.nan, np.inf, -np.inf, np.nan
        with devscope.compile(case.function("main")) as executable, np.errstate(all="ignore"):
            np.testing.assert_array_equal(executable(a, b, c), a.astype(np.float64) @ b)


@pytest.mark.parametrize("place", ["empty", "x{n}"])
def test_equal_layers(place: str) -> None:
    """Results of equal types, each with its epilogue; none is in the memory of what is still read, as written."""
    type_ = "tensor<40x40xf32>"
    lines = [
        f"""%p{n} = linalg.matmul ins(%x{n}, %w : {type_}, {type_}) outs(%zeros : {type_}) -> {type_}
            %x{n + 1} = linalg.abs ins(%p{n} : {type_}) outs(%{place.format(n=n)} : {type_}) -> {type_}"""
        for n in range(4)
    ]
    source = f"""
        func.func @main(%x0: {type_}, %w: {type_}) -> {type_} {{
          %zero = arith.constant 0.0 : f32
          %empty = tensor.empty() : {type_}
          %zeros = linalg.fill ins(%zero : f32) outs(%empty : {type_}) -> {type_}
          {" ".join(f"{line}{chr(10)}" for line in lines)}
          return %x4 : {type_}
        }}
    """
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-2, 3, (40, 40)).astype(np.float32) for _ in range(2))
    with devscope.compile(source, cache=False) as executable:
        result = executable(x, w)
    for _ in range(4):
        x = np.abs(x @ w)
    np.testing.assert_array_equal(result, x)


M, N, K = 61, 70, 300
EPILOGUES: dict[str, tuple[str, Callable[..., Array]]] = {
    "bias": ("%r = arith.addf %p, %bias : f32", lambda p, **x: p + x["bias"]),
    "relu": ("%r = arith.maximumf %p, %zero : f32", lambda p, **x: np.maximum(p, 0)),
    "residual": ("%r = arith.subf %p, %residual : f32", lambda p, **x: p - x["residual"]),
    "column": ("%r = arith.mulf %p, %column : f32", lambda p, **x: p * x["column"][:, None]),
    "scalar": ("%r = arith.addf %p, %scalar : f32", lambda p, **x: p + x["scalar"]),
    "all": (
        """%1 = arith.addf %p, %bias : f32
           %2 = arith.maximumf %1, %zero : f32
           %3 = arith.addf %2, %residual : f32
           %4 = arith.mulf %3, %column : f32
           %5 = arith.cmpf olt, %4, %scalar : f32
           %r = arith.select %5, %p, %4 : f32""",
        lambda p, **x: np.where(
            (y := (np.maximum(p + x["bias"], 0) + x["residual"]) * x["column"][:, None]) < x["scalar"], p, y
        ),
    ),
    "square": ("%r = arith.mulf %p, %p : f32", lambda p, **x: p * p),
    "sigmoid": (
        """%1 = arith.negf %p : f32
           %2 = math.exp %1 : f32
           %one = arith.constant 1.0 : f32
           %3 = arith.addf %2, %one : f32
           %r = arith.divf %one, %3 : f32""",
        lambda p, **x: 1 / (1 + np.exp(-p)),
    ),
    "gelu": (
        """%root = arith.constant 0.70710678 : f32
           %half = arith.constant 0.5 : f32
           %1 = arith.mulf %p, %root : f32
           %2 = math.erf %1 : f32
           %3 = arith.mulf %p, %half : f32
           %r = math.fma %2, %3, %3 : f32""",
        lambda p, **x: p / 2 * (1 + special.erf(p / np.sqrt(2))),
    ),
    "tanh": ("%r = math.tanh %p : f32", lambda p, **x: np.tanh(p)),
    "sine": ("%r = math.sin %p : f32", lambda p, **x: np.sin(p)),
}


def epilogue_function(name: str, lines: str, in_place: bool, rows: str) -> str:
    result = f"tensor<{rows}x{N}xf32>"
    init = "%product" if in_place else "%empty"
    maps = ["(i, j)", "(j)", "(i, j)", "(i)", "()", "(i, j)"]
    return f"""
        func.func @{name}(%a: tensor<{rows}x{K}xf32>, %b: tensor<{K}x{N}xf32>, %bias: tensor<{N}xf32>,
            %residual: {result}, %column: tensor<{rows}xf32>, %scalar: tensor<f32>) -> {result} {{
          %zero = arith.constant 0.0 : f32
          %0 = arith.constant 0 : index
          %m = tensor.dim %a, %0 : tensor<{rows}x{K}xf32>
          %empty = tensor.empty({"%m" if rows == "?" else ""}) : {result}
          %zeros = linalg.fill ins(%zero : f32) outs(%empty : {result}) -> {result}
          %product = linalg.matmul ins(%a, %b : tensor<{rows}x{K}xf32>, tensor<{K}x{N}xf32>)
            outs(%zeros : {result}) -> {result}
          %done = linalg.generic {{indexing_maps = [{", ".join(f"affine_map<(i, j) -> {m}>" for m in maps)}],
              iterator_types = ["parallel", "parallel"]}}
              ins(%product, %bias, %residual, %column, %scalar
                : {result}, tensor<{N}xf32>, {result}, tensor<{rows}xf32>, tensor<f32>) outs({init} : {result}) {{
          ^bb0(%p: f32, %bias_: f32, %residual_: f32, %column_: f32, %scalar_: f32, %old: f32):
            {
        lines.replace("%bias", "%bias_")
        .replace("%residual", "%residual_")
        .replace("%column", "%column_")
        .replace("%scalar", "%scalar_")
    }
            linalg.yield %r : f32
          }} -> {result}
          return %done : {result}
        }}
    """


def test_epilogues() -> None:
    cases = [(name, in_place, rows) for name in EPILOGUES for in_place, rows in ((False, "?"), (True, str(M)))]
    source = "\n".join(
        epilogue_function(f"case_{number}", EPILOGUES[name][0], in_place, rows)
        for number, (name, in_place, rows) in enumerate(cases)
    )
    rng = np.random.default_rng(0)
    shapes = {"a": (M, K), "b": (K, N), "bias": (N,), "residual": (M, N), "column": (M,), "scalar": ()}
    data = {name: np.asarray(rng.standard_normal(shape, dtype=np.float32)) for name, shape in shapes.items()}
    data["a"][:] /= 10
    with devscope.compile(source, cache=False) as executable:
        for number, (name, _, rows) in enumerate(cases):
            for m in (M, 1) if rows == "?" else (M,):
                some = {
                    each: array[:m] if each in ("a", "residual", "column") else array
                    for each, array in data.items()
                }
                result = executable.run(f"case_{number}", *some.values())
                expected = EPILOGUES[name][1](some["a"] @ some["b"], **some)
                np.testing.assert_allclose(result, expected, rtol=2e-4, atol=2e-4, err_msg=name)


@pytest.mark.parametrize("target", ["cpu:0", "opencl:0"])
def test_masks_have_a_byte_for_each_element(target: str) -> None:
    source = f"""
        func.func @main(%a: tensor<?x{K}xf32>, %b: tensor<{K}x{N}xf32>, %mask: tensor<?x{N}xi1>)
            -> tensor<?x{N}xf32> {{
          %zero = arith.constant 0.0 : f32
          %hidden = arith.constant -5.0 : f32
          %0 = arith.constant 0 : index
          %m = tensor.dim %a, %0 : tensor<?x{K}xf32>
          %empty = tensor.empty(%m) : tensor<?x{N}xf32>
          %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x{N}xf32>) -> tensor<?x{N}xf32>
          %product = linalg.matmul ins(%a, %b : tensor<?x{K}xf32>, tensor<{K}x{N}xf32>)
            outs(%zeros : tensor<?x{N}xf32>) -> tensor<?x{N}xf32>
          %others = linalg.fill ins(%hidden : f32) outs(%empty : tensor<?x{N}xf32>) -> tensor<?x{N}xf32>
          %seen = linalg.map {{ arith.select }}
            ins(%mask, %product, %others : tensor<?x{N}xi1>, tensor<?x{N}xf32>, tensor<?x{N}xf32>)
            outs(%empty : tensor<?x{N}xf32>)
          return %seen : tensor<?x{N}xf32>
        }}
    """
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape, dtype=np.float32) for shape in ((M, K), (K, N)))
    mask = rng.random((M, N)) < 0.5
    with devscope.compile(source, default=target, cache=False) as executable:
        np.testing.assert_allclose(executable(a, b, mask), np.where(mask, a @ b, -5), rtol=1e-4, atol=1e-4)


def test_an_epilogue_that_loops_of_the_kernel_cannot_go_through() -> None:
    """Its operand has one of two axes that are one loop for the kernel."""
    source = """
        func.func @main(%a: tensor<3x20x40xf32>, %b: tensor<40x50xf32>, %t: tensor<20x50xf32>,
            %e: tensor<3x20x50xf32>) -> tensor<3x20x50xf32> {
          %zero = arith.constant 0.0 : f32
          %fill = linalg.fill ins(%zero : f32) outs(%e : tensor<3x20x50xf32>) -> tensor<3x20x50xf32>
          %p = linalg.contract indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>,
              affine_map<(b, m, n, k) -> (k, n)>, affine_map<(b, m, n, k) -> (b, m, n)>]
            ins(%a, %b : tensor<3x20x40xf32>, tensor<40x50xf32>)
            outs(%fill : tensor<3x20x50xf32>) -> tensor<3x20x50xf32>
          %r = linalg.generic {indexing_maps = [affine_map<(b, m, n) -> (b, m, n)>,
              affine_map<(b, m, n) -> (m, n)>, affine_map<(b, m, n) -> (b, m, n)>],
              iterator_types = ["parallel", "parallel", "parallel"]}
              ins(%p, %t : tensor<3x20x50xf32>, tensor<20x50xf32>) outs(%e : tensor<3x20x50xf32>) {
          ^bb0(%x: f32, %y: f32, %o: f32):
            %s = arith.addf %x, %y : f32
            linalg.yield %s : f32
          } -> tensor<3x20x50xf32>
          return %r : tensor<3x20x50xf32>
        }
    """
    rng = np.random.default_rng(0)
    a, b, t = (rng.standard_normal(s, dtype=np.float32) for s in ((3, 20, 40), (40, 50), (20, 50)))
    with devscope.compile(source) as executable:
        np.testing.assert_allclose(
            executable(a, b, t, np.zeros((3, 20, 50), "f4")), a @ b + t, rtol=1e-4, atol=1e-4
        )


def constant_program() -> tuple[str, dict[str, Array]]:
    """Constants as either operand, of a batch, read by others, too, twice, and of f16, and as filters of single
    pixels."""
    rng = np.random.default_rng(0)
    data = {
        "w": rng.standard_normal((90, 70), dtype=np.float32),
        "v": rng.standard_normal((40, 90), dtype=np.float32),
        "u": rng.standard_normal((3, 50, 33), dtype=np.float32),
        "h": rng.integers(-3, 4, (90, 40)).astype(np.float16),
        "c": rng.standard_normal((30, 35, 1, 1), dtype=np.float32),
    }
    texts = {
        name: f'dense<"0x{array.tobytes().hex()}"> : '
        f"tensor<{'x'.join(map(str, array.shape))}xf{8 * array.itemsize}>"
        for name, array in data.items()
    }

    def product(spec: str, constant: str, types: Sequence[str], swapped: bool = False) -> str:
        loops = list(dict.fromkeys(spec.replace(",", "").replace("->", "")))
        maps = ", ".join(
            f"affine_map<({', '.join(loops)}) -> ({', '.join(axes)})>"
            for axes in spec.replace("->", ",").split(",")
        )
        x, k, r = types
        operands = (f"%k, %x : {k}, {x}") if swapped else (f"%x, %k : {x}, {k}")
        return f"""(%x: {x}, %init: {r}) -> {r} {{
          %k = arith.constant {texts[constant]}
          %r = linalg.contract indexing_maps = [{maps}] ins({operands}) outs(%init : {r}) -> {r}
          return %r : {r}
        }}"""

    w, v, u = "tensor<90x70xf32>", "tensor<40x90xf32>", "tensor<3x50x33xf32>"
    functions = {
        "right": product("mk,kn->mn", "w", ("tensor<?x90xf32>", w, "tensor<?x70xf32>")),
        "turned": product("mk,nk->mn", "w", ("tensor<?x70xf32>", w, "tensor<?x90xf32>")),
        "left": product("mk,kn->mn", "v", ("tensor<90x50xf32>", v, "tensor<40x50xf32>"), swapped=True),
        "again": product("mk,kn->mn", "v", ("tensor<90x80xf32>", v, "tensor<40x80xf32>"), swapped=True),
        "batch": product("bmk,bnk->bmn", "u", ("tensor<3x20x33xf32>", u, "tensor<3x20x50xf32>")),
        "half": product("mk,kn->mn", "h", ("tensor<20x90xf16>", "tensor<90x40xf16>", "tensor<20x40xf16>")),
    }
    image, filters, result = "tensor<1x35x8x8xf32>", "tensor<30x35x1x1xf32>", "tensor<1x30x8x8xf32>"
    functions["single"] = f"""(%x: {image}, %init: {result}) -> {result} {{
      %k = arith.constant {texts["c"]}
      %r = linalg.conv_2d_nchw_fchw ins(%x, %k : {image}, {filters}) outs(%init : {result}) -> {result}
      return %r : {result}
    }}"""
    plain = f"""func.func @plain() -> {w} {{
      %k = arith.constant {texts["w"]}
      return %k : {w}
    }}"""
    return "\n".join([*(f"func.func @{name}{text}" for name, text in functions.items()), plain]), data


def test_constants_are_packed_beforehand(tmp_path: Any) -> None:
    source, data = constant_program()
    rng = np.random.default_rng(1)
    with devscope.compile(source, cache=False) as executable:
        executable.save(tmp_path / "program.dsx")
        # w turned, and as it is for `plain`; right: 90 steps of 3 panels of 32; v once for both; u; h; c.
        assert len(executable.program.constants) == 7
        assert [90, 70] in [spec.shape for spec in executable.program.constants]
        assert not {(40, 90), (3, 50, 33), (30, 35, 1, 1)} & {
            tuple(spec.shape) for spec in executable.program.constants
        }
    with devscope.Executable.load(tmp_path / "program.dsx") as executable:
        np.testing.assert_array_equal(executable.run("plain"), data["w"])
        for m in (0, 1, 37):
            x, y = (rng.standard_normal((m, size), dtype=np.float32) for size in (90, 70))
            result = executable.run("right", x, np.ones((m, 70), np.float32))
            np.testing.assert_allclose(result, x @ data["w"] + 1, rtol=1e-4, atol=1e-4)
            result = executable.run("turned", y, np.ones((m, 90), np.float32))
            np.testing.assert_allclose(result, y @ data["w"].T + 1, rtol=1e-4, atol=1e-4)
        for name, n in (("left", 50), ("again", 80)):
            z = rng.standard_normal((90, n), dtype=np.float32)
            result = executable.run(name, z, np.zeros((40, n), np.float32))
            np.testing.assert_allclose(result, data["v"] @ z, rtol=1e-4, atol=1e-4)
        image = rng.standard_normal((1, 35, 8, 8), dtype=np.float32)
        result = executable.run("single", image, np.ones((1, 30, 8, 8), np.float32))
        want = np.einsum("fcij,bchw->bfhw", data["c"], image) + 1
        np.testing.assert_allclose(result, want, rtol=1e-4, atol=1e-4)
        x = rng.standard_normal((3, 20, 33), dtype=np.float32)
        result = executable.run("batch", x, np.zeros((3, 20, 50), np.float32))
        np.testing.assert_allclose(result, x @ data["u"].transpose(0, 2, 1), rtol=1e-4, atol=1e-4)
        x = rng.integers(-3, 4, (20, 90)).astype(np.float16)
        result = executable.run("half", x, np.zeros((20, 40), np.float16))
        np.testing.assert_array_equal(result, x.astype(np.float32) @ data["h"].astype(np.float32))


@pytest.mark.parametrize("target", ["cpu:0", "opencl:0"])
def test_few_rows_beside_constants(target: str) -> None:
    """Whose panels are read, as whole ones and as a last one that is not."""
    rng, cases = np.random.default_rng(3), dict[str, tuple[Array, Array]]()
    text = ""
    rows, columns = ((1, 3, 7, 8), (40, 64, 150)) if target == "cpu:0" else ((1, 8), (150,))
    for number, (m, n, of, turned) in enumerate(itertools.product(rows, columns, ("f32", "f64"), (False, True))):
        dtype = np.float32 if of == "f32" else np.float64
        a = rng.standard_normal((m, 90)).astype(dtype)
        b = rng.standard_normal((n, 90) if turned else (90, n)).astype(dtype)
        cases[f"case_{number}"] = a, b.T if turned else b
        c, weights = f"tensor<{m}x{n}x{of}>", f"tensor<{'x'.join(map(str, b.shape))}x{of}>"
        text += f"""
            func.func @case_{number}(%a: tensor<{m}x90x{of}>, %c: {c}) -> {c} {{
              %b = arith.constant dense<"0x{b.tobytes().hex()}"> : {weights}
              %r = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
                  affine_map<(m, n, k) -> ({"n, k" if turned else "k, n"})>, affine_map<(m, n, k) -> (m, n)>]
                ins(%a, %b : tensor<{m}x90x{of}>, {weights}) outs(%c : {c}) -> {c}
              return %r : {c}
            }}"""
    with devscope.compile(text, default=target, cache=False) as executable:
        for name, (a, b) in cases.items():
            c = rng.standard_normal((len(a), b.shape[1])).astype(a.dtype)
            np.testing.assert_allclose(executable.run(name, a, c), a @ b + c, rtol=1e-4, atol=1e-4)


_PIXELS = """
func.func @{name}(%x: {x}, %bias: tensor<{m}x{of}>) -> {c} {{
  %w = arith.constant {w}
  %zero = arith.constant {zero} : {of}
  %empty = tensor.empty() : {c}
  %zeros = linalg.fill ins(%zero : {of}) outs(%empty : {c}) -> {c}
  %sums = linalg.contract indexing_maps = [affine_map<(b, m, p, q, k) -> (m, k)>,
      affine_map<(b, m, p, q, k) -> (b, k, p, q)>, affine_map<(b, m, p, q, k) -> (b, m, p, q)>]
    ins(%w, %x : tensor<{m}x{k}x{of}>, {x}) outs(%zeros : {c}) -> {c}
  %biases = linalg.broadcast ins(%bias : tensor<{m}x{of}>) outs(%empty : {c}) dimensions = [0, 2, 3]
  %done = linalg.add ins(%sums, %biases : {c}, {c}) outs(%empty : {c}) -> {c}
  return %done : {c}
}}
"""


@pytest.mark.parametrize("target", ["cpu:0", "opencl:0"])
def test_few_columns_of_constant_rows(target: str, tmp_path: Path) -> None:
    """Small images of which all channels are read: blocks of sums are vectors along rows, the filters."""
    rows, text, rng = "", "", np.random.default_rng(7)
    numbers = "rows = 7, columns = 16, lanes = 8, steps = 16, pixels = 64, elements = 512, tasks = 4"
    elements = ("f16", "f32", "f64", "i32", "i64")
    for instructions, of in itertools.product(("opencl-cpu", None), elements[1:]):
        if instructions is None or target != "cpu:0":
            rows += f"""
                [[contraction]]
                template = "turned"
                element = "{of}"
                saves = 1
                {f'instructions = "{instructions}"' if instructions else ""}
                numbers = {{ {numbers} }}
                """
    (tmp_path / "rows.toml").write_text(rows)
    cases: dict[str, tuple[Array, list[Array]]] = {}
    for of, (b, m, k, p, q) in itertools.product(
        elements, ((1, 48, 20, 7, 7), (3, 35, 33, 3, 3), (2, 64, 5, 5, 4))
    ):
        name = f"{of}_{b}_{m}"
        w, x, bias = (rng.integers(-3, 4, s).astype(DTYPES[of]) for s in ((m, k), (b, k, p, q), (m,)))
        text += _PIXELS.format(
            **{"name": name, "of": of, "m": m, "k": k, "zero": "0" if of.startswith("i") else "0.0"},
            **{"x": f"tensor<{b}x{k}x{p}x{q}x{of}>", "c": f"tensor<{b}x{m}x{p}x{q}x{of}>"},
            w=f'dense<"0x{w.tobytes().hex()}"> : tensor<{m}x{k}x{of}>',
        )
        cases[name] = w, [x, bias]
    with devscope.compile(text, default=target, schedules=tmp_path / "rows.toml", cache=False) as executable:
        for name, (w, (x, bias)) in cases.items():
            want = np.einsum("mk,bkpq->bmpq", w, x) + bias[:, None, None]
            np.testing.assert_array_equal(executable.run(name, x, bias), want, name)


def test_layers_of_one_size() -> None:
    """What a layer reads is not written over by what follows it, whatever the memory of that is used for."""
    size = 96
    types = f"tensor<{size}x{size}xf32>"
    layer = """
      %z{n} = arith.constant 0.0 : f32
      %e{n} = tensor.empty() : {type}
      %f{n} = linalg.fill ins(%z{n} : f32) outs(%e{n} : {type}) -> {type}
      %m{n} = linalg.matmul ins({x}, %w : {type}, {type}) outs(%f{n} : {type}) -> {type}
      %r{n} = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
          iterator_types = ["parallel", "parallel"]}} ins(%m{n} : {type}) outs(%e{n} : {type}) {{
      ^bb0(%a: f32, %b: f32):
        %v = arith.maximumf %a, %z{n} : f32
        linalg.yield %v : f32
      }} -> {type}"""
    body = "".join(layer.format(n=n, type=types, x="%x" if n == 0 else f"%r{n - 1}") for n in range(4))
    program = devscope.compile(
        f"func.func @main(%x: {types}, %w: {types}) -> {types} {{{body}\nreturn %r3 : {types}\n}}"
    )
    rng = np.random.default_rng(3)
    x, w = (rng.integers(-1, 2, (size, size)).astype(np.float32) for _ in range(2))
    w[rng.random(w.shape) < 0.9] = 0
    expected = x
    for _ in range(4):
        expected = np.maximum(expected @ w, 0)
    np.testing.assert_array_equal(program(x, w), expected)


def _attention(sizes: str) -> str:
    """Two layers and a product of batches, reshaped and computed in between; ``sizes``: of a batch."""
    all_, row = "affine_map<(i, j, k) -> (i, j, k)>", "affine_map<(i, j, k) -> (k)>"
    batch = f"tensor<{sizes}x6x24xf32>"
    rows = "tensor<?x24xf32>" if sizes == "?" else f"tensor<{6 * int(sizes)}x24xf32>"
    heads, split = f"tensor<{sizes}x2x6x12xf32>", f"tensor<{sizes}x6x2x12xf32>"
    merged = "tensor<?x6x12xf32>" if sizes == "?" else f"tensor<{2 * int(sizes)}x6x12xf32>"
    products = merged.replace("12", "6")
    return f"""
        func.func @main(%x: {batch}, %w: tensor<24x24xf32>, %b: tensor<24xf32>, %k: {merged})
            -> ({products}, {rows}) {{
          %c0 = arith.constant 0 : index
          %c6 = arith.constant 6 : index
          %c2 = arith.constant 2 : index
          %zero = arith.constant 0.0 : f32
          %n = tensor.dim %x, %c0 : {batch}
          %n6 = arith.muli %n, %c6 : index
          %n2 = arith.muli %n, %c2 : index
          %empty = tensor.empty({"%n6" if sizes == "?" else ""}) : {rows}
          %z = linalg.fill ins(%zero : f32) outs(%empty : {rows}) -> {rows}
          %0 = tensor.collapse_shape %x [[0, 1], [2]] : {batch} into {rows}
          %1 = linalg.matmul ins(%0, %w : {rows}, tensor<24x24xf32>) outs(%z : {rows}) -> {rows}
          %2 = tensor.expand_shape %1 [[0, 1], [2]] output_shape [{"%n" if sizes == "?" else sizes}, 6, 24]
            : {rows} into {batch}
          %3 = linalg.generic {{indexing_maps = [{all_}, {row}, {all_}],
              iterator_types = ["parallel", "parallel", "parallel"]}}
              ins(%2, %b : {batch}, tensor<24xf32>) outs(%x : {batch}) {{
          ^bb0(%in: f32, %c: f32, %o: f32):
            %y = arith.addf %in, %c : f32
            %t = math.tanh %y : f32
            linalg.yield %t : f32
          }} -> {batch}
          %4 = tensor.collapse_shape %3 [[0, 1], [2]] : {batch} into {rows}
          %5 = linalg.matmul ins(%4, %w : {rows}, tensor<24x24xf32>) outs(%z : {rows}) -> {rows}
          %6 = math.absf %5 : {rows}
          %7 = tensor.expand_shape %6 [[0, 1], [2, 3]] output_shape [{"%n" if sizes == "?" else sizes}, 6, 2, 12]
            : {rows} into {split}
          %e4 = tensor.empty({"%n" if sizes == "?" else ""}) : {heads}
          %8 = linalg.transpose ins(%7 : {split}) outs(%e4 : {heads}) permutation = [0, 2, 1, 3]
          %9 = tensor.collapse_shape %8 [[0, 1], [2], [3]] : {heads} into {merged}
          %e3 = tensor.empty({"%n2" if sizes == "?" else ""}) : {products}
          %z3 = linalg.fill ins(%zero : f32) outs(%e3 : {products}) -> {products}
          %10 = linalg.contract indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>,
              affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>]
              ins(%9, %k : {merged}, {merged}) outs(%z3 : {products}) -> {products}
          return %10, %5 : {products}, {rows}
        }}"""


@pytest.mark.parametrize("sizes", ["3", "?"])
@pytest.mark.parametrize("device", ["cpu:0", "opencl:0"])
def test_operands_that_are_computed_elementwise(sizes: str, device: str) -> None:
    """They are computed once, whatever reshapes and transposes are in between."""
    rng = np.random.default_rng(5)
    x, w, b, k = (rng.standard_normal(shape, np.float32) for shape in [(3, 6, 24), (24, 24), (24,), (6, 6, 12)])
    w /= 5
    products, rows = devscope.compile(_attention(sizes), default=device, cache=False)(x, w, b, k)
    layer = np.tanh(x @ w + b) @ w
    split = np.abs(layer).reshape(3, 6, 2, 12).transpose(0, 2, 1, 3).reshape(6, 6, 12)
    np.testing.assert_allclose(rows, layer.reshape(18, 24), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(products, split @ k.transpose(0, 2, 1), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("target", ["cpu:0", "opencl:0"])
@pytest.mark.parametrize("size", [4, 40])
def test_sums_over_what_is_repeated(target: str, size: int) -> None:
    """A broadcast along the loop that is summed, which ``linalg.contract`` cannot say, before each operand."""
    square, vector = f"tensor<{size}x{size}xf32>", f"tensor<{size}xf32>"
    program = devscope.compile(
        f"""
        func.func @main(%v: {vector}, %s: tensor<f32>, %m: {square}) -> ({square}, {square}, {square}) {{
          %zero = arith.constant 0.0 : f32
          %empty = tensor.empty() : {square}
          %zeros = linalg.fill ins(%zero : f32) outs(%empty : {square}) -> {square}
          %rows = linalg.broadcast ins(%v : {vector}) outs(%empty : {square}) dimensions = [1]
          %columns = linalg.broadcast ins(%v : {vector}) outs(%empty : {square}) dimensions = [0]
          %all = linalg.broadcast ins(%s : tensor<f32>) outs(%empty : {square}) dimensions = [0, 1]
          %0 = linalg.matmul ins(%rows, %m : {square}, {square}) outs(%zeros : {square}) -> {square}
          %1 = linalg.matmul ins(%m, %columns : {square}, {square}) outs(%zeros : {square}) -> {square}
          %2 = linalg.matmul ins(%all, %m : {square}, {square}) outs(%zeros : {square}) -> {square}
          return %0, %1, %2 : {square}, {square}, {square}
        }}
        """,
        default=target,
    )
    rng = np.random.default_rng(0)
    v, s, m = (rng.standard_normal(shape).astype(np.float32) for shape in ([size], [], [size, size]))
    wants = [np.outer(v, m.sum(0)), np.outer(m.sum(1), v), np.broadcast_to(s * m.sum(0), m.shape)]
    for got, want in zip(program.run("main", v, s, m), wants, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


EXTENDED = """
func.func @main(%a: tensor<37x130x{of}>, %b: tensor<70x130x{of}>) -> (tensor<37x70x{to}>, tensor<37x130x{to}>) {{
  %zero = arith.constant {zero} : {to}
  %e = tensor.empty() : tensor<130x70x{of}>
  %bt = linalg.transpose ins(%b : tensor<70x130x{of}>) outs(%e : tensor<130x70x{of}>) permutation = [1, 0]
  %x = {extend} %a : tensor<37x130x{of}> to tensor<37x130x{to}>
  %y = {extend} %bt : tensor<130x70x{of}> to tensor<130x70x{to}>
  %c = tensor.splat %zero : tensor<37x70x{to}>
  %r = linalg.matmul ins(%x, %y : tensor<37x130x{to}>, tensor<130x70x{to}>)
    outs(%c : tensor<37x70x{to}>) -> tensor<37x70x{to}>
  return %r, %x : tensor<37x70x{to}>, tensor<37x130x{to}>
}}
"""


@pytest.mark.parametrize("default", ["cpu:0", "opencl:0"])
@pytest.mark.parametrize(
    ("of", "to", "extend"),
    [
        *(("bf16", "f32", "arith.extf"), ("f16", "f32", "arith.extf"), ("f32", "f64", "arith.extf")),
        *(("i8", "i32", "arith.extsi"), ("i8", "i32", "arith.extui"), ("i32", "i64", "arith.extui")),
    ],
)
def test_operands_that_are_extended_before(of: str, to: str, extend: str, default: str) -> None:
    """Kernels read the tensors of fewer bits, and extend as the program does."""
    rng, wide = np.random.default_rng(0), np.int64 if to.startswith("i") else np.float64
    a, b = (rng.integers(-100, 100, (m, 130)).astype(DTYPES[of]) for m in (37, 70))
    text = EXTENDED.format(of=of, to=to, extend=extend, zero="0.0" if to.startswith("f") else "0")
    result, x = devscope.compile(text, default=default)(a, b)
    unsigned = [each.view(f"u{each.itemsize}") if extend == "arith.extui" else each for each in (a, b)]
    one, other = (each.astype(wide) for each in unsigned)
    np.testing.assert_array_equal(x, one.astype(x.dtype))
    np.testing.assert_array_equal(result, (one @ other.T).astype(result.dtype))
