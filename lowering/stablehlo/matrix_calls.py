"""Calls of routines on matrices: XLA's own and ours by name, those that JAX makes for processors by LAPACK's."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from devscope.errors import LoweringError
from devscope.lowering.interop.bindings import ir
from devscope.lowering.interop.diagnostics import decode_location
from devscope.lowering.stablehlo import blocked_factors, factors, jacobi, schur
from devscope.lowering.stablehlo.arrays import Array, Text
from devscope.lowering.stablehlo.folds import add_windows
from devscope.lowering.stablehlo.fourier import PARTS
from devscope.lowering.stablehlo.linear_algebra import cholesky, exponential, triangular_solve
from devscope.lowering.stablehlo.scans import running_extremum, running_log_sum
from devscope.lowering.stablehlo.scatter import COMBINERS, along_rows
from devscope.lowering.stablehlo.templates import element, shape

Routine = Callable[[Any], str]
"""Makes of a call the text that `templates.expand` takes."""

_LAPACK = re.compile(r"lapack_[sdcz](\w+)_ffi")


def routine(name: str) -> Routine | None:
    """What expands calls of a name."""
    if found := _LAPACK.fullmatch(name):
        return _OF_LAPACK.get(_REAL_NAMES.get(found[1], found[1]))
    return _BY_NAME.get(name)


def _options(op: Any) -> dict[str, str]:
    """What a foreign function of XLA is told, characters by their numbers."""
    options = ir.DictAttr(op.attributes["mhlo.backend_config"])
    return {
        item.name: chr(ir.IntegerAttr(item.attr).value)
        for item in options
        if isinstance(item.attr, ir.IntegerAttr)
    }


def _given(op: Any, is_of_any_size: bool = False) -> tuple[Text, list[Array]]:
    """The matrices. JAX also gives calls with dynamic results the shapes of these, which follow from the operands."""
    text = Text(op.operands[0].type)
    if not is_of_any_size and min(shape(op.operands[0].type)[-2:]) < 0:
        name = ir.StringAttr(op.attributes["call_target_name"]).value
        raise LoweringError(
            f"'{name}' needs matrices whose numbers of rows and columns are known as the program is compiled",
            decode_location(op.location),
            [
                "leave these dimensions static, and compile a program for each size",
                "LU, QR, Cholesky's factor and triangular systems may be of any size",
            ],
        )
    shapes: list[int] = []
    if "indices_of_shape_operands" in op.attributes:
        shapes = list(ir.DenseIntElementsAttr(op.attributes["indices_of_shape_operands"]))
    matrices = [(number, value.type) for number, value in enumerate(op.operands) if number not in shapes]
    return text, [text.operand(number, type_) for number, type_ in matrices]


def _finish(op: Any, results: Sequence[Array]) -> str:
    """The text that ends with as many of the results as the call has, of the element types that they have there."""
    values = [value.convert(str(element(result.type))) for value, result in zip(results, op.results, strict=False)]
    return values[0].text.result(values)


def _failed(a: Array) -> Array:
    """LAPACK's: 1 where something is not a number (i32, for each of the batch)."""
    part = a.real()
    return part.compare("NE", part).reduce("or", [-1, -2], 0).convert("i32")


def _potrf(op: Any) -> str:
    _, (a,) = _given(op, is_of_any_size=True)
    factor = cholesky(a, _options(op)["uplo"] == "L")
    return _finish(op, [factor, _failed(factor)])


def _trsm(op: Any) -> str:
    _, (a, b) = _given(op, is_of_any_size=True)
    options = _options(op)
    transpose = {"N": "NO_TRANSPOSE", "T": "TRANSPOSE", "C": "ADJOINT"}[options["trans_x"]]
    side, triangle, unit = options["side"] == "L", options["uplo"] == "L", options["diag"] == "U"
    return _finish(op, [triangular_solve(a, b, side, triangle, unit, transpose)])


def _getrf(op: Any) -> str:
    _, (a,) = _given(op, is_of_any_size=True)
    packed, pivots, _, info = blocked_factors.lu(a)
    return _finish(op, [packed, pivots + 1, info])


def _lu_decomposition(op: Any) -> str:
    _, (a,) = _given(op, is_of_any_size=True)
    return _finish(op, blocked_factors.lu(a)[:3])


def _geqrf(op: Any) -> str:
    _, (a,) = _given(op, is_of_any_size=True)
    return _finish(op, blocked_factors.qr(a))


def _orgqr(op: Any) -> str:
    _, (a, taus) = _given(op, is_of_any_size=True)
    return _finish(op, [blocked_factors.product_of_reflections(a, taus, a.extents[-1])])


def _syevd(op: Any) -> str:
    _, (a,) = _given(op)
    values, vectors = jacobi.eigh(a, _options(op)["uplo"] == "L")
    return _finish(op, [vectors, values, _failed(values.spread(-1, 1))])


def _eigh(op: Any) -> str:
    """Its options: whether the lower triangle is given, whether values are sorted, most sweeps, a tolerance."""
    _, (a,) = _given(op)
    lower = ir.StringAttr(op.attributes["backend_config"]).value.partition(",")[0] == "1"
    values, vectors = jacobi.eigh(a, lower)
    return _finish(op, [vectors, values])


def _gesdd(op: Any) -> str:
    _, (a,) = _given(op)
    # Not by its mode: where JAX wants no vectors, there are results for some, of either size.
    is_full = [shape(op.results[n].type)[axis] for n, axis in ((2, -1), (3, -2))] == [*a.extents[-2:]]
    left, values, right = jacobi.svd(a, is_full)
    return _finish(op, [a, values, left, right, _failed(values.spread(-1, 1))])


def _svd(full: bool) -> Routine:
    def expanded(op: Any) -> str:
        _, (a,) = _given(op)
        return _finish(op, jacobi.svd(a, full))

    return expanded


def _gehrd(op: Any) -> str:
    _, (a,) = _given(op)
    options = ir.DictAttr(op.attributes["mhlo.backend_config"])
    if [ir.IntegerAttr(options[name]).value for name in ("low", "high")] != [1, a.extents[-1]]:
        raise ValueError("a part of a matrix")
    packed, taus, _ = schur.hessenberg(a)
    return _finish(op, [packed, taus, _failed(a)])


def _sytrd(op: Any) -> str:
    """Of the upper triangle as of the lower one of what is turned around."""
    _, (a,) = _given(op)
    is_lower, n = _options(op)["uplo"] == "L", a.extents[-1]

    def turned(value: Array, *axes: int) -> Array:
        for axis in () if is_lower else axes:
            value = value.take(axis, range(value.extents[axis])[::-1])
        return value

    packed, taus, _ = schur.hessenberg(jacobi.hermitian(turned(a, -1, -2), True))
    kept = turned(packed, -1, -2)
    rows, columns = a.text.iota(n).spread(-1, n), a.text.iota(n).spread(0, n)
    is_other = rows.compare("LT" if is_lower else "GT", columns).in_batch()
    diagonal, below = packed.diagonal(range(n)).real(), schur.subdiagonal(packed).real()
    given = [turned(diagonal, -1), turned(below, -1), turned(taus, -1)]
    return _finish(op, [is_other.where(a, kept), *given, _failed(a)])


def _gees(op: Any) -> str:
    _, (a,) = _given(op)
    if _options(op)["sort"] != "N":
        raise ValueError("an order of eigenvalues")
    small, scale = factors.scaled(a)
    n = a.extents[-1]
    t, z, is_undone = schur.schur(small)
    values = [part * scale.spread(-1, n) for part in schur.eigenvalues(t)]
    if a.is_complex:
        values = [values[0].with_imag(values[1], a.of)]
    t = t * scale.spread(-1, n).spread(-1, n).with_imag(0, a.of)
    none = a.text.full((), "i64", 0).in_batch()
    return _finish(op, [t, factors.spoilt(z, scale), *values, none, is_undone.convert("i32")])


def _geev(op: Any) -> str:
    _, (a,) = _given(op)
    options = _options(op)
    values, sides, is_undone = _eigen(a, options["compute_left"] == "V", options["compute_right"] == "V")
    parts = [values] if a.is_complex else [values.real(), values.imag()]
    return _finish(op, [*parts, *sides, is_undone.convert("i32")])


def _eigen(a: Array, left: bool, right: bool) -> tuple[Array, list[Array], Array]:
    """Eigenvalues, the vectors of both sides, those that are not wanted of no meaning, and which matrices are not done.

    All is complex; vectors of real eigenvalues of real matrices have imaginary parts of 0.
    """
    n = a.extents[-1]
    of = a.of if a.is_complex else f"complex<{a.of}>"
    small, scale = factors.scaled(a)
    t, z, is_undone = schur.schur(small)
    real, imaginary = (part * scale.spread(-1, n) for part in schur.eigenvalues(t))
    t, z = schur.complex_form(t, z, of)
    sides = [t, t]
    if left:
        back = range(n)[::-1]
        around = t.conj().transpose().take(-1, back).take(-2, back)
        sides[0] = schur.eigenvectors(around, z.take(-1, back)).take(-1, back)
    if right:
        sides[1] = schur.eigenvectors(t, z)
    if not a.is_complex:
        is_real = imaginary.compare("EQ", 0).spread(-2, n)
        sides = [is_real.where(side.real().with_imag(0, of), side) for side in sides]
        sides = [side / factors.norm(side, -2).spread(-2, n).with_imag(0, of) for side in sides]
    return real.with_imag(imaginary, of), [factors.spoilt(side, scale) for side in sides], is_undone


def _right_eigen(op: Any) -> str:
    """Eigenvalues and right vectors."""
    _, (a,) = _given(op)
    values, (_, vectors), _ = _eigen(a, False, True)
    return _finish(op, [values, vectors])


def _triangular(lower: bool) -> Routine:
    def expanded(op: Any) -> str:
        _, (a, b) = _given(op, is_of_any_size=True)
        return _finish(op, [triangular_solve(a, b, True, lower, False, "NO_TRANSPOSE")])

    return expanded


def _bits(op: Any) -> str:
    old, new = op.operands[0].type, op.results[0].type
    return f'%r = stablehlo.bitcast_convert %0 : ({old}) -> {new}\n"devscope.return"(%r) : ({new}) -> ()'


def _cholesky(op: Any) -> str:
    _, (a,) = _given(op, is_of_any_size=True)
    return _finish(op, [cholesky(a, True)])


def _exponential(op: Any) -> str:
    _, (a,) = _given(op, is_of_any_size=True)
    return _finish(op, [exponential(a)])


_REAL_NAMES: Mapping[str, str] = {"ungqr": "orgqr", "heevd": "syevd", "hetrd": "sytrd"}
"""Of routines that are called otherwise for complex numbers."""

_OF_LAPACK: Mapping[str, Routine] = {
    "potrf": _potrf,
    "trsm": _trsm,
    "getrf": _getrf,
    "geqrf": _geqrf,
    "orgqr": _orgqr,
    "syevd": _syevd,
    "gesdd": _gesdd,
    "geev": _geev,
    "gees": _gees,
    "gehrd": _gehrd,
    "sytrd": _sytrd,
}

_BY_NAME: Mapping[str, Routine] = {
    "LuDecomposition": _lu_decomposition,
    "Qr": _geqrf,
    "ProductOfElementaryHouseholderReflectors": _orgqr,
    "Eigh": _eigh,
    "devscope.svd": _svd(False),
    "devscope.full_svd": _svd(True),
    "devscope.eig": _right_eigen,
    "devscope.cholesky": _cholesky,
    "devscope.exponential": _exponential,
    "devscope.solve_lower": _triangular(True),
    "devscope.solve_upper": _triangular(False),
    **{f"devscope.scatter_{name}": partial(along_rows, name) for name in COMBINERS},
    "devscope.cummax": partial(running_extremum, True),
    "devscope.cummin": partial(running_extremum, False),
    "devscope.logcumsumexp": running_log_sum,
    "devscope.add_windows": add_windows,
    "devscope.bits": _bits,
    **{f"devscope.{name}": transform for name, transform in PARTS.items()},
}
"""XLA's, and those of the frontends."""
