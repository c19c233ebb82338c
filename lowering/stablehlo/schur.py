"""Eigenvalues of matrices of any kind: Hessenberg's form, then steps of QR with two shifts at once (Francis).

Golub, Van Loan: Matrix Computations, 7.4 to 7.6. Functions of arrays (`arrays.Array`) of shape ``[..., n, n]``, real or
complex. All matrices of a batch take the same steps, each on that part of it which is not done yet.
"""

from __future__ import annotations

from devscope.lowering.stablehlo.arrays import Array
from devscope.lowering.stablehlo.factors import EPSILON, TINY, identity, norm, places, reflected, reflection

_SWEEPS = 30
"""Most steps for each eigenvalue."""


def hessenberg(a: Array) -> tuple[Array, Array, Array]:
    """``gehrd``: Hessenberg's form, below it the vectors of reflections; their factors ``[..., n - 1]``; their product."""
    text, n = a.text, a.extents[-1]

    def step(i: str, a: Array, taus: Array, product: Array) -> list[Array]:
        after = text.index("addi", i, 1)
        is_own, below = places(a, -2, after)
        column = a.at(-1, i)
        vector, beta, tau = reflection(column, column.at(-1, after), is_own, below)
        reflects = (is_own | below).where(vector, text.full(vector.extents, a.of, 0))
        right = places(a, -1, i)[1].spread(-2, n)
        a = right.where(reflected(a, reflects, tau.conj()), a)
        a = right.where(_from_right(a, reflects, tau), a)
        column = is_own.where(beta.spread(-1, n), below.where(vector, column))
        return [a.put(-1, i, column), taus.put(-1, i, tau), _from_right(product, reflects, tau)]

    taus = text.full([*a.extents[:-2], max(n - 1, 0)], a.of, 0)
    a, taus, product = text.loop(max(n - 1, 0), [a, taus, identity(a, n)], step)
    return a, taus, product


def schur(a: Array) -> tuple[Array, Array, Array]:
    """``gees``: T and unitary Z, ``a == Z T Z^H``, and which matrices are not done (i1).

    T is triangular; that of a real matrix has blocks of two, of equal numbers on the diagonal, for pairs of complex
    eigenvalues.
    """
    t, _, z = hessenberg(a)
    text, n = a.text, a.extents[-1]
    t, first, last = _deflated(t)
    if n > 2:

        def test(count: Array, _first: Array, last: Array, _t: Array, _z: Array) -> Array:
            return count.compare("LT", _SWEEPS * n) & last.compare("GT", 0).any()

        def body(count: Array, first: Array, last: Array, t: Array, z: Array) -> list[Array]:
            t, z = _sweep(t, z, count, first, last)
            t, first, last = _deflated(t)
            return [count + 1, first, last, t, z]

        start = text.full((), "i64", 0)
        _, _, last, t, z = text.loop_while([start, first, last, t, z], test, body)
    t, z = _without_pairs(t, z)
    return t, z, last.compare("GT", 0)


def eigenvalues(t: Array) -> tuple[Array, Array]:
    """Of what `schur` returns, real parts and imaginary ones; those of pairs are conjugate, positive ones first."""
    n = t.extents[-1]
    values = t.diagonal(range(n))
    if t.is_complex or n < 2:
        return values.real(), values.imag()
    below, above = t.part(-2, 1, n).part(-1, 0, n - 1), t.part(-2, 0, n - 1).part(-1, 1, n)
    below, above = below.diagonal(range(n - 1)), above.diagonal(range(n - 1))
    part = below.abs().sqrt() * above.abs().sqrt()
    none = t.text.full([*t.extents[:-2], 1], t.of, 0)
    return values, part.join(-1, none) - none.join(-1, part)


def complex_form(t: Array, z: Array, of: str) -> tuple[Array, Array]:
    """The same with a triangular T, of complex numbers."""
    if t.is_complex:
        return t, z
    return _without_pairs(t.with_imag(0, of), z.with_imag(0, of))


def eigenvectors(t: Array, z: Array) -> Array:
    """The right ones as columns, of length 1, of a triangular T; the largest number of each is real."""
    text, n = t.text, t.extents[-1]
    values = t.diagonal(range(n))
    least = (norm(norm(t, -1), -1) * EPSILON[t.real_of]).maximum(TINY[t.real_of]).spread(-1, n)

    def step(i: str, x: Array) -> list[Array]:
        row = text.index("subi", n - 1, i)
        known = (t.at(-2, row).spread(-1, n) * x).sum(-2)
        divisor = t.at(-2, row).at(-1, row).spread(-1, n) - values
        divisor = divisor.abs().compare("GT", least).where(divisor, least.with_imag(0, t.of))
        is_own, after = places(t, -1, row)
        zeros = text.full(known.extents, t.of, 0)
        found = is_own.where(1, after.where(-known / divisor, zeros))
        shrinks = found.abs().maximum(1).spread(-2, n).with_imag(0, t.of)  # else many equal values overflow
        return [x.put(-2, row, found) / shrinks]

    (x,) = text.loop(n, [text.full(t.extents, t.of, 0)], step)
    x = (z.spread(-1, n) * x.spread(-3, n)).sum(-2)
    x = x / norm(x, -2).spread(-2, n).with_imag(0, t.of)
    size, rows = x.abs(), text.iota(n).spread(-1, n)
    counts = size.compare("EQ", size.most(-2).spread(-2, n))
    first = counts.where(rows.in_batch(), text.full(counts.extents, "i64", n)).reduce("minimum", [-2], n)
    largest = rows.in_batch().compare("EQ", first.spread(-2, n)).where(x, text.full(x.extents, x.of, 0)).sum(-2)
    turn = largest.conj() / largest.abs().with_imag(0, t.of)
    return x * turn.spread(-2, n)


def _deflated(t: Array) -> tuple[Array, Array, Array]:
    """Without what is below Hessenberg's form, or small on its subdiagonal.

    Returns the first and the last place of the last part that is larger than a pair, or 0 for both (i64).
    """
    text, n = t.text, t.extents[-1]
    rows, columns = text.iota(n).spread(-1, n), text.iota(n).spread(0, n)
    zeros = text.full(t.extents, t.of, 0)
    t = rows.compare("GT", columns + 1).in_batch().where(zeros, t)
    nothing = text.full((), "i64", 0).in_batch()
    if n < 2:
        return t, nothing, nothing
    size = t.diagonal(range(n)).abs()
    size = size.part(-1, 0, n - 1) + size.part(-1, 1, n)
    size = size.compare("EQ", 0).where(norm(norm(t, -1), -1).spread(-1, n - 1), size)
    is_left = subdiagonal(t).abs().compare("GT", size * EPSILON[t.real_of])
    none = text.full([*t.extents[:-2], 1], "i1", 0)
    is_small = (~none.join(-1, is_left)).spread(-1, n)
    t = (is_small & rows.compare("EQ", columns + 1).in_batch()).where(zeros, t)
    if n < 3:
        return t, nothing, nothing
    ends = (text.iota(n - 2) + 2).in_batch()
    are_left = is_left.part(-1, 0, n - 2) & is_left.part(-1, 1, n - 1)
    last = are_left.where(ends, text.full(ends.extents, "i64", 0)).most(-1)
    begins = (text.iota(n - 1) + 1).in_batch()
    is_before = ~is_left & begins.compare("LT", last.spread(-1, n - 1))
    return t, is_before.where(begins, text.full(begins.extents, "i64", 0)).most(-1), last


def subdiagonal(t: Array) -> Array:
    """Below the diagonal, ``[..., n - 1]``."""
    n = t.extents[-1]
    if n < 2:
        return t.text.full([*t.extents[:-2], 0], t.of, 0)
    return t.part(-2, 1, n).part(-1, 0, n - 1).diagonal(range(n - 1))


def _sweep(t: Array, z: Array, count: Array, first: Array, last: Array) -> tuple[Array, Array]:
    """A step of QR on places ``first`` to ``last``, by reflections of three rows and columns each."""
    text, n = t.text, t.extents[-1]
    total, product = _shifts(t, count, last)

    def step(k: str, t: Array, z: Array) -> list[Array]:
        begin = text.index("minsi", k, n - 3)
        own, after = text.number(k), text.index("addi", k, 1)
        place = text.iota(3) + text.number(begin).spread(0, 3)
        is_own, is_next = (place.compare("EQ", text.number(at).spread(0, 3)).in_batch() for at in (k, after))
        below = place.compare("GT", own.spread(0, 3)).in_batch()
        below = below & ~place.in_batch().compare("GT", last.spread(-1, 3))
        own = own.in_batch()
        is_active = ~own.compare("LT", first) & own.compare("LT", last)

        rows = t.some(-2, begin, 3)
        here, beside = rows.at(-1, k), rows.at(-1, after)
        zeros = text.full(here.extents, t.of, 0)
        corner, under = is_own.where(here, zeros).sum(-1), is_next.where(here, zeros).sum(-1)
        shifted = here * (corner - total).spread(-1, 3) + beside * under.spread(-1, 3)
        shifted = shifted + is_own.where(product.spread(-1, 3), zeros)
        before = rows.at(-1, text.index("maxsi", text.index("subi", k, 1), 0))
        column = own.compare("EQ", first).spread(-1, 3).where(shifted, before)
        column = ((is_own | below) & is_active.spread(-1, 3)).where(column, zeros)
        vector, _, tau = reflection(column, is_own.where(column, zeros).sum(-1), is_own, below)
        vector = (is_own | below).where(vector, zeros)

        t = t.put_some(-2, begin, reflected(rows, vector, tau.conj()))
        t = t.put_some(-1, begin, _from_right(t.some(-1, begin, 3), vector, tau))
        return [t, z.put_some(-1, begin, _from_right(z.some(-1, begin, 3), vector, tau))]

    t, z = text.loop(n - 1, [t, z], step)
    return t, z


def _shifts(t: Array, count: Array, last: Array) -> tuple[Array, Array]:
    """Sum and product of the eigenvalues of the last two places; every tenth time other numbers, against cycles."""
    text, n = t.text, t.extents[-1]

    def at(values: Array, distance: int) -> Array:
        places_ = (text.iota(values.extents[-1]) + distance).in_batch()
        found = places_.compare("EQ", last.spread(-1, values.extents[-1]))
        return found.where(values, text.full(values.extents, t.of, 0)).sum(-1)

    diagonal, below = t.diagonal(range(n)), subdiagonal(t)
    corner, other = at(diagonal, 0), at(diagonal, 1)
    total = corner + other
    product = corner * other - at(subdiagonal(t.transpose()), 1) * at(below, 1)
    size = (at(below, 1).abs() + at(below, 2).abs()).with_imag(0, t.of)
    middle = corner + size * 0.75
    is_tenth = (count - count / 10 * 10).compare("EQ", 9).in_batch()
    return is_tenth.where(middle + middle, total), is_tenth.where(middle * middle + size * size * 0.4375, product)


def _from_right(a: Array, vector: Array, tau: Array) -> Array:
    *_, m, n = a.extents
    dots = (a * vector.spread(-2, m)).sum(-1) * tau.spread(-1, m)
    return a - dots.spread(-1, n) * vector.conj().spread(-2, m)


def _without_pairs(t: Array, z: Array) -> tuple[Array, Array]:
    """Blocks of two become triangular; those of real matrices with complex eigenvalues as `schur` says."""
    text, n = t.text, t.extents[-1]

    def step(k: str, t: Array, z: Array) -> list[Array]:
        after = text.index("addi", k, 1)
        x, y, is_pair = _rotation(*(t.at(-2, row).at(-1, column) for row in (k, after) for column in (k, after)))
        first, second = t.at(-2, k), t.at(-2, after)
        wide_x, wide_y = x.spread(-1, n), y.spread(-1, n)
        t = t.put(-2, k, wide_x.conj() * first + wide_y.conj() * second)
        t = t.put(-2, after, wide_x * second - wide_y * first)
        t, z = (_rotated(value, k, after, wide_x, wide_y) for value in (t, z))
        row = t.at(-2, after)
        low, corner = row.at(-1, k), t.at(-2, k).at(-1, k)
        mean = (corner + row.at(-1, after)) * 0.5
        row = row.put(-1, k, is_pair.where(low, text.full(low.extents, t.of, 0)))
        t = t.put(-2, after, row.put(-1, after, is_pair.where(mean, row.at(-1, after))))
        return [t.put(-2, k, t.at(-2, k).put(-1, k, is_pair.where(mean, corner))), z]

    t, z = text.loop(max(n - 1, 0), [t, z], step)
    return t, z


def _rotated(a: Array, k: str, after: str, x: Array, y: Array) -> Array:
    first, second = a.at(-1, k), a.at(-1, after)
    return a.put(-1, k, x * first + y * second).put(-1, after, x.conj() * second - y.conj() * first)


def _rotation(a: Array, b: Array, c: Array, d: Array) -> tuple[Array, Array, Array]:
    """The first column of what makes ``[[a, b], [c, d]]`` triangular, and which have complex eigenvalues, but are real:
    those get equal numbers on the diagonal (LAPACK's ``lanv2``)."""
    text = a.text
    zeros, ones = text.full(a.extents, a.of, 0), text.full(a.extents, a.of, 1)
    half = (a - d) * 0.5
    square = half * half + b * c
    is_done = c.compare("EQ", 0)
    if a.is_complex:
        root = square.sqrt()
        more, less = half + root, half - root
        x, y, is_pair = more.abs().compare("LT", less.abs()).where(less, more), c, text.full(a.extents, "i1", 0)
    else:
        is_pair = square.compare("LT", 0) & ~is_done
        root = square.maximum(0).sqrt()
        x = half + half.compare("LT", 0).where(-root, root)
        total = b + c
        length = (total * total + half * half * 4).sqrt()
        divisor = length.compare("EQ", 0).where(ones, length)
        cosine = ((total.abs() / divisor + 1) * 0.5).sqrt()
        sine = -half / (divisor * cosine)
        sine = total.compare("LT", 0).where(-sine, sine)
        is_even = length.compare("EQ", 0)
        x = is_pair.where(is_even.where(ones, cosine), x)
        y = is_pair.where(is_even.where(zeros, sine), c)
    x, y = is_done.where(ones, x), is_done.where(zeros, y)
    length = (x.abs() * x.abs() + y.abs() * y.abs()).sqrt().with_imag(0, a.of)
    return x / length, y / length, is_pair
