"""Random programs of JAX's libraries, as users write them: functions by name, draws, images, factors, models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, nn, random
from jax.scipy import ndimage, signal, special, stats
from jax_programs import Program, Random


def _names(text: str) -> list[str]:
    return text.split()


_DTYPES = _names("float32 float32 float64 float16 bfloat16 int32 int8 uint8 uint32 complex64 bool")
_ONE = _names("""
abs angle arccos arccosh arcsin arcsinh arctan arctanh cbrt ceil conj cos cosh deg2rad exp exp2 expm1 floor
frexp i0 imag isfinite isinf isnan isneginf log log10 log1p log2 logical_not modf nan_to_num negative positive
real reciprocal rint sign signbit sin sinc sinh sqrt square tan tanh trunc bitwise_count
""")
_TWO = _names("""
add arctan2 bitwise_and bitwise_xor copysign divide divmod equal float_power floor_divide fmax fmin fmod gcd
greater heaviside hypot lcm ldexp left_shift less_equal logaddexp logaddexp2 logical_xor maximum minimum mod
multiply nextafter not_equal power remainder right_shift subtract
""")
_ALONG = _names("""
all amax any argmax argmin argsort average count_nonzero cumprod cumsum diff flip max mean median min nanargmax
nancumsum nanmax nanmean nanmedian nanmin nanprod nanstd nansum nanvar prod ptp sort std sum unwrap var
""")
_SPECIAL = _names("entr erf erfc erfinv expit gammaln digamma i0 i0e i1 i1e log_ndtr logit ndtr ndtri exp1 expi")
_ACTIVATIONS = _names("celu elu gelu hard_swish leaky_relu mish selu silu softplus squareplus")
_LAWS = _names("norm cauchy expon logistic uniform gumbel_r")
_MATRIX: tuple[Callable[[Any], Any], ...] = (
    lambda a: jnp.pad(a, 2, mode="reflect") if min(a.shape) > 2 else jnp.pad(a, 1, mode="edge"),
    lambda a: jnp.pad(a, ((1, 2), (0, 3)), mode="wrap"),
    lambda a: jnp.pad(a, 1, mode="symmetric"),
    lambda a: [jnp.roll(a, (1, -2), (0, 1)), jnp.rot90(a), jnp.tril(a, 1), jnp.triu(a, -1)],
    lambda a: [jnp.repeat(a, 2, 1), jnp.tile(a, (2, 1, 2)), jnp.kron(a[:2], a[:, :2])],
    lambda a: jnp.unique(a, size=8, fill_value=0, return_index=True, return_counts=True),
    lambda a: [jnp.nonzero(a, size=7, fill_value=-1), jnp.argwhere(a, size=3)],
    lambda a: [jnp.take(a, jnp.array([0, 9, -1]), axis=1, mode=mode) for mode in ("fill", "clip", "wrap")],
    lambda a: jnp.take_along_axis(a, jnp.argsort(a, 1), 1),
    lambda a: [a[::2, ::-1], a[:, None, -1:], a[jnp.array([0, -1])], a[jnp.argmax(jnp.sum(a, 1))]],
    lambda a: [a.at[0].set(0), a.at[:, ::2].add(1), a.at[jnp.array([0, 9])].get(mode="fill", fill_value=1)],
    lambda a: [jnp.einsum("ij,kj->ik", a, a), jnp.einsum("ij->j", a), jnp.tensordot(a, a, ([0], [0]))],
    lambda a: [jnp.searchsorted(jnp.sort(a[0]), a), jnp.digitize(a, jnp.array([-1, 0, 2]))],
    lambda a: [jnp.insert(a, 1, 3, axis=1), jnp.delete(a, 0, 0), jnp.append(a, a, 0), jnp.diagonal(a)],
    lambda a: [jnp.convolve(a[0], a[-1], mode) for mode in ("full", "same", "valid")],
    lambda a: [jnp.select([a > 1, a > 0], [a, a + a], a * 0), jnp.where(a > 0, a, 0), jnp.clip(a, 0, 2)],
    lambda a: [jnp.histogram(a, bins=5), jnp.percentile(a, 30, axis=0), jnp.cov(a)],
    lambda a: jnp.lexsort((a[0], jnp.flip(a[0]))),
)


def _is_legal(function: Callable[..., Any], *arguments: Any) -> bool:
    try:
        jax.eval_shape(function, *arguments)
    except Exception:
        return False
    return True


def _first_legal(r: Random, make: Callable[[], tuple[Callable[..., Any], list[Any]]]) -> Program:
    """Not all functions take all dtypes."""
    while True:
        function, arguments = make()
        if _is_legal(function, *arguments):
            return function, arguments


def numpy_functions(r: Random) -> Program:
    """Of any dtype, with numbers that are none, in small and in large arrays."""

    def make() -> tuple[Callable[..., Any], list[Any]]:
        kind = r.integer(0, 4)
        shape = r.shape(2, 2, (1, 2, 4, 5, 7, 33)) if kind > 1 else r.shape(0, 3, (1, 2, 5, 33))
        x, y = (r.array(shape, r.pick(_DTYPES), r.pick((0, 0.2))) for _ in range(2))
        if kind == 0:
            return getattr(jnp, r.pick(_ONE)), [x]
        if kind == 1:
            return getattr(jnp, r.pick(_TWO)), [x, y]
        if kind == 2:
            function, axis = getattr(jnp, r.pick(_ALONG)), r.integer(-1, 2)
            return (lambda a: function(a, axis=axis)), [x]
        return r.pick(_MATRIX), [x]

    return _first_legal(r, make)


def draws(r: Random) -> Program:
    """Random numbers of all distributions, from keys that are given."""
    n, p = r.shape(0, 2, (1, 3, 5)), r.rng.uniform(0.2, 0.9)
    of, ints = r.pick(("float32", "float64", "bfloat16", "float16")), r.pick(("int8", "int32", "uint16", "int64"))
    options: list[Callable[[Any], Any]] = [
        lambda k: [random.uniform(k, n, of), random.normal(k, n, of), random.bits(k, n, "uint8")],
        lambda k: [random.randint(k, n, 0, 100, ints), random.bernoulli(k, p, n), random.rademacher(k, n)],
        lambda k: [random.permutation(k, 9), random.choice(k, 9, (4,), replace=False), random.split(k, 3)],
        lambda k: [random.categorical(k, jnp.arange(5.0), shape=(4,)), random.gumbel(k, n), random.laplace(k, n)],
        lambda k: [random.gamma(k, 3 * p, n), random.beta(k, p, 2, n), random.dirichlet(k, jnp.ones(3), n)],
        lambda k: [random.poisson(k, 9 * p, n), random.binomial(k, 10, p, n), random.geometric(k, p, n)],
        lambda k: [random.truncated_normal(k, -1, p, n), random.exponential(k, n), random.t(k, 3.0, n)],
        lambda k: [random.cauchy(k, n), random.logistic(k, n), random.maxwell(k, n), random.pareto(k, 2.0, n)],
        lambda k: random.multivariate_normal(k, jnp.zeros(3), jnp.eye(3) + 0.2, (2,)),
        lambda k: lax.scan(lambda k, _: (random.fold_in(k, 7), random.normal(k, n)), k, None, length=4),
        lambda k: jax.vmap(lambda k: random.uniform(k, n))(random.split(k, 3)),
        lambda k: jax.grad(lambda a: random.gamma(k, a, n).sum())(3 * p),
        lambda k: random.bits(random.wrap_key_data(jnp.concatenate([k, k]), impl="rbg"), n),
    ]
    return r.pick(options), [r.rng.integers(0, 2**32, 2, dtype=np.uint32)]


def functions_of_science(r: Random) -> Program:
    """Of ``jax.scipy``, of images and signals, and activations, with derivatives."""
    x, inside = r.array((4, 5), "float32", r.pick((0, 0.2))), r.rng.uniform(0.05, 0.95, (4, 5)).astype("float32")
    method, size = r.pick(("nearest", "linear", "cubic", "lanczos3")), (r.integer(1, 9), r.integer(1, 9))
    mode = r.pick(("constant", "nearest", "wrap", "mirror", "reflect"))
    name = r.pick(_SPECIAL)
    activation = getattr(nn, r.pick(_ACTIVATIONS))
    law = getattr(stats, r.pick(_LAWS))
    of_one = getattr(special, name)
    options: list[tuple[Callable[..., Any], list[Any]]] = [
        (lambda a: of_one(a), [inside]),
        (lambda a: jax.vmap(jax.vmap(jax.grad(of_one)))(a), [inside]),
        (
            lambda a, b: [special.betainc(a, b, b), special.gammainc(a * 5, b), special.xlogy(a, b)],
            [inside, inside],
        ),
        (lambda a: [special.polygamma(1, a), special.zeta(2 + a, a), special.logsumexp(a, 1)], [inside]),
        (lambda a: [activation(a), jax.grad(lambda z: activation(z).sum())(a)], [x]),
        (lambda a: [law.logpdf(a), law.cdf(a), law.ppf(a)], [inside]),
        (lambda a: jax.image.resize(a, size, method), [inside]),
        (lambda a: jax.grad(lambda z: (jax.image.resize(z, size, method) ** 2).sum())(a), [inside]),
        (lambda a: ndimage.map_coordinates(a, [a[:2] * 9, a[1:3] * 7], r.integer(0, 2), mode, 0.5), [inside]),
        (lambda a: [signal.convolve2d(a, a[:2, :3], "same"), signal.correlate(a, a[:3, :2], "valid")], [inside]),
        (lambda a: [jnp.fft.fft2(a), jnp.fft.irfft(jnp.fft.rfft(a)), signal.fftconvolve(a, a)], [inside]),
    ]
    return r.pick(options)


def _well(r: Random, batch: Sequence[int], n: int, dtype: str) -> Any:
    """Symmetric matrices that are far from singular."""
    a = r.array((*batch, n, n), dtype, scale=1)
    return (a @ np.conj(np.swapaxes(a, -1, -2)) / n + np.eye(n)).astype(dtype)


def factors(r: Random) -> Program:
    """Of matrices, some of them so large that they go by blocks."""
    dtype, batch = r.pick(("float32", "float64", "complex64")), r.pick([(), (), (2,)])
    a = _well(r, batch, r.pick((1, 3, 5, 130)), dtype)
    b = r.array((*a.shape[:-1], r.pick((1, 17))), dtype, scale=1)
    small = _well(r, batch, r.pick((1, 2, 4)), "float64")
    options: list[tuple[Callable[..., Any], list[Any]]] = [
        (jnp.linalg.cholesky, [a]),
        (lambda m, v: jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(m), True), v), [a, b]),
        (lambda m, v: lax.linalg.triangular_solve(m, v, left_side=True, lower=True, transpose_a=True), [a, b]),
        (lambda m, v: lax.linalg.triangular_solve(m, v, left_side=True, unit_diagonal=True), [a * 0.1, b]),
        (lambda m, v: [jnp.linalg.solve(m, v), jnp.linalg.slogdet(m)], [a, b]),
        (lambda m: [jnp.abs(jnp.linalg.qr(m)[1]), jnp.linalg.inv(m)], [a]),
        (lambda m: [jnp.linalg.eigvalsh(m), jnp.linalg.svd(m, compute_uv=False)], [small]),
        (lambda m: [jnp.linalg.pinv(m), jnp.linalg.matrix_rank(m), jnp.linalg.det(m)], [small]),
        (lambda m: jax.grad(lambda z: jnp.linalg.cholesky(z).real.sum())(m), [small]),
        (lambda m: jax.vmap(jax.scipy.linalg.expm)(m.reshape(-1, *m.shape[-2:])), [small]),
    ]
    return r.pick(options)


def models(r: Random) -> Program:
    """Cells, blocks and algorithms with steps, some with derivatives."""
    n, d, t = r.pick((2, 3)), r.pick((2, 4)), r.pick((1, 5, 9))
    dtype = r.pick(("float32", "float64"))
    w, xs, v = (r.array(shape, dtype, scale=0.7) for shape in ((d, d), (t, n, d), (t, d)))

    def cell(w: Any, xs: Any) -> Any:
        return lax.scan(lambda h, x: ((h := jnp.tanh(h @ w + x)), {"h": h, "s": (h.sum(-1),)}), xs[0], xs)

    def attention(w: Any, xs: Any) -> Any:
        scores = jnp.einsum("tnd,snd->nts", xs @ w, xs)
        scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -jnp.inf)
        return jnp.einsum("nts,snd->tnd", nn.softmax(scores), xs)

    def routed(w: Any, v: Any) -> Any:
        gates, chosen = lax.top_k(nn.softmax(v @ w), 2)
        return (nn.one_hot(chosen, d, dtype=v.dtype) * gates[..., None]).sum(1) @ w

    def online(v: Any) -> Any:
        def step(carry: Any, row: Any) -> Any:
            most, total = carry
            new = jnp.maximum(most, row.max())
            return (new, total * jnp.exp(most - new) + jnp.exp(row - new).sum()), new

        return lax.scan(step, (v.dtype.type(-np.inf), v.dtype.type(0)), v)

    def linear(a: Any, b: Any) -> Any:
        return lax.associative_scan(lambda x, y: (x[0] * y[0], y[0] * x[1] + y[1]), (a, b))

    def doubled(x: Any) -> Any:
        return lax.while_loop(lambda c: c[0] < 10, lambda c: (c[0] * 2 + 1, c[1] + c[0]), (x, x * 0))

    def step(w: Any, m: Any, v: Any) -> Any:
        value, slope = jax.value_and_grad(lambda w: jnp.mean(nn.gelu(v @ w) ** 2))(w)
        slope = slope * jnp.minimum(1, 1 / jnp.sqrt((slope**2).sum()))
        m = 0.9 * m + 0.1 * slope
        return w - 0.1 * m / (jnp.sqrt(m * m) + 1e-3), m, value

    options: list[tuple[Callable[..., Any], list[Any]]] = [
        (cell, [w, xs]),
        (lambda w, xs: jax.grad(lambda w: jnp.sum(cell(w, xs)[1]["h"] ** 2))(w), [w, xs]),
        (lambda w, xs: jax.grad(lambda w: jnp.sum(jax.checkpoint(cell)(w, xs)[0]))(w), [w, xs]),
        (attention, [w, xs]),
        (lambda w, xs: jax.grad(lambda w: jnp.sum(attention(w, xs) ** 2))(w), [w, xs]),
        (routed, [w, v]),
        (lambda w, v: jax.jacfwd(lambda w: routed(w, v))(w), [w, v]),
        (online, [v]),
        (linear, [v, v[::-1].copy()]),
        (jax.vmap(doubled), [np.abs(v[0]) + 0.1]),
        (lambda w, m, v: lax.fori_loop(0, 3, lambda i, c: step(*c[:2], v), (*step(w, m, v),)), [w, w * 0, v]),
        (lambda w, v: jax.hessian(lambda w: jnp.sum(jnp.tanh(v @ w)))(w), [w, v]),
        (
            lambda v: jax.vmap(lambda i, x: lax.switch(i, [jnp.sin, jnp.cumsum, jnp.sort], x))(
                np.arange(t) - 1, v
            ),
            [v],
        ),
        (lambda v: jax.ops.segment_sum(v, np.arange(t) % 3, 3), [v]),
    ]
    return r.pick(options)


def unknown_sizes(r: Random) -> tuple[Callable[..., Any], list[Any], list[str]]:
    """More of what extents that are known when the program runs go through: factors, loops, branches, images."""
    n, m = r.pick((1, 2, 5, 40)), r.pick((1, 3, 4))
    x, y = (r.array((n, m), r.pick(("float32", "int32", "bfloat16", "float64")), scale=1) for _ in range(2))
    f, square = r.array((n, m), "float32", scale=1), _well(r, (), n, r.pick(("float32", "float64", "complex64")))
    batch, image = r.array((n, 4, 3), "float32", scale=1), r.array((n, 6, 5, 2), "float32", scale=1)
    options: list[tuple[Callable[..., Any], list[Any], list[str]]] = [
        (jnp.linalg.cholesky, [square], ["n, n"]),
        (lambda a: [jnp.linalg.inv(a), jnp.linalg.slogdet(a)], [square], ["n, n"]),
        (lambda a: jnp.linalg.solve(a, a[:, :1]), [square], ["n, n"]),
        (lambda a: jnp.abs(jnp.linalg.qr(a)[1]), [square], ["n, n"]),
        (lambda a: jax.scipy.linalg.solve_triangular(a, a, lower=True), [square], ["n, n"]),
        (lambda a: lax.scan(lambda c, row: (c + row, c * row), jnp.zeros_like(a[0]), a), [f], ["n, m"]),
        (lambda a: jax.grad(lambda a: jnp.sum(jnp.tanh(a @ a.T) ** 2))(a), [f], ["n, m"]),
        (lambda a: lax.cond(jnp.sum(a) > 0, jnp.sin, lambda a: a[::-1], a), [f], ["n, m"]),
        (lambda a: jnp.where(a > 0, a, a.mean(0)), [f], ["n, m"]),
        (lambda a, b: jnp.einsum("nm,km->nk", a, b), [f, f], ["n, m", "n, m"]),
        (lambda a, b: [jnp.stack([a, b], 1), jnp.maximum(a, b)], [x, y.astype(x.dtype)], ["n, m", "n, m"]),
        (lambda a: jnp.einsum("nij,nkj->nik", a, a), [batch], ["n, 4, 3"]),
        (lambda a: a.mean((1, 2)), [batch], ["n, 4, 3"]),
        (
            lambda a: lax.reduce_window(a, -np.inf, lax.max, (1, 2, 2, 1), (1, 2, 1, 1), "SAME"),
            [image],
            ["n, 6, 5, 2"],
        ),
        (
            lambda a: lax.conv_general_dilated(
                a, np.ones((3, 3, 2, 4), "float32"), (1, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            ),
            [image],
            ["n, 6, 5, 2"],
        ),
        (lambda a: jax.image.resize(a, (a.shape[0], 9, 4, 2), "linear"), [image], ["n, 6, 5, 2"]),
        (lambda a: lax.top_k(a.T, 1), [f], ["n, m"]),
        (lambda a: jnp.take_along_axis(a, jnp.argsort(a, 1), 1), [f], ["n, m"]),
        (lambda a: [jnp.cumsum(a, 0), jnp.cumprod(a, 1), lax.cummax(a, 0)], [x], ["n, m"]),
        (lambda a: nn.one_hot(jnp.argmax(a, 1), a.shape[1]), [f], ["n, m"]),
        (lambda a: lax.dynamic_update_slice(a, a[:1] * 2, (jnp.argmax(a[:, 0]), 0)), [f], ["n, m"]),
        (lambda a: a.reshape(-1)[jnp.array([0, -1])], [x], ["n, m"]),
        (
            lambda a: [a.T.reshape(a.shape[0], -1), jnp.expand_dims(a, 1) - a, jnp.outer(a[0], a[:, 0])],
            [x],
            ["n, m"],
        ),
        (lambda a: [jnp.var(a, 0), jnp.linalg.norm(a, axis=1), nn.log_softmax(a, 0)], [f], ["n, m"]),
        (lambda a: jnp.fft.rfft(a, axis=1), [r.array((n, 6), "float32")], ["n, 6"]),
    ]
    return r.pick(options)


FAMILIES: dict[str, Callable[[Random], Any]] = {
    f.__name__: f for f in (numpy_functions, draws, functions_of_science, factors, models, unknown_sizes)
}
