"""Calls of routines on matrices: XLA's own and ours by name, those that JAX makes for processors by LAPACK's."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from devscope.lowering.interop.bindings import ir
from devscope.lowering.stablehlo import factors, jacobi
from devscope.lowering.stablehlo.arrays import Array, Text
from devscope.lowering.stablehlo.linear_algebra import cholesky, triangular_solve
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


def _given(op: Any) -> tuple[Text, list[Array]]:
    """The matrices. JAX also gives calls with dynamic results the shapes of these, which follow from the operands."""
    text = Text(op.operands[0].type)
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
    _, (a,) = _given(op)
    factor = cholesky(a, _options(op)["uplo"] == "L")
    return _finish(op, [factor, _failed(factor)])


def _trsm(op: Any) -> str:
    _, (a, b) = _given(op)
    options = _options(op)
    transpose = {"N": "NO_TRANSPOSE", "T": "TRANSPOSE", "C": "ADJOINT"}[options["trans_x"]]
    side, triangle, unit = options["side"] == "L", options["uplo"] == "L", options["diag"] == "U"
    return _finish(op, [triangular_solve(a, b, side, triangle, unit, transpose)])


def _getrf(op: Any) -> str:
    _, (a,) = _given(op)
    packed, pivots, _, info = factors.lu(a)
    return _finish(op, [packed, pivots + 1, info])


def _lu_decomposition(op: Any) -> str:
    _, (a,) = _given(op)
    return _finish(op, factors.lu(a)[:3])


def _geqrf(op: Any) -> str:
    _, (a,) = _given(op)
    return _finish(op, factors.qr(a))


def _orgqr(op: Any) -> str:
    _, (a, taus) = _given(op)
    return _finish(op, [factors.product_of_reflections(a, taus, a.extents[-1])])


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


def _triangular(lower: bool) -> Routine:
    def expanded(op: Any) -> str:
        _, (a, b) = _given(op)
        return _finish(op, [triangular_solve(a, b, True, lower, False, "NO_TRANSPOSE")])

    return expanded


def _cholesky(op: Any) -> str:
    _, (a,) = _given(op)
    return _finish(op, [cholesky(a, True)])


_REAL_NAMES: Mapping[str, str] = {"ungqr": "orgqr", "heevd": "syevd"}
"""Of routines that are called otherwise for complex numbers."""

_OF_LAPACK: Mapping[str, Routine] = {
    "potrf": _potrf,
    "trsm": _trsm,
    "getrf": _getrf,
    "geqrf": _geqrf,
    "orgqr": _orgqr,
    "syevd": _syevd,
    "gesdd": _gesdd,
}

_BY_NAME: Mapping[str, Routine] = {
    "LuDecomposition": _lu_decomposition,
    "Qr": _geqrf,
    "ProductOfElementaryHouseholderReflectors": _orgqr,
    "Eigh": _eigh,
    "devscope.svd": _svd(False),
    "devscope.full_svd": _svd(True),
    "devscope.cholesky": _cholesky,
    "devscope.solve_lower": _triangular(True),
    "devscope.solve_upper": _triangular(False),
}
"""XLA's, and those of the frontends."""
