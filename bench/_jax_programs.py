"""Five JAX programs of the kinds that users bring: a training step, a scan, a KV cache, a solver, a filter.

``PROGRAMS`` is a table of functions that make one, small or of the size that is measured, from a seed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

Tree = Any
"""Arrays in dictionaries and tuples."""


class JaxProgram(NamedTuple):
    """A function, and arguments for it in numpy's arrays."""

    function: Callable[..., Tree]
    arguments: tuple[Tree, ...]


def _normal(rng: np.random.Generator, *shape: int, scale: float = 1.0) -> Any:
    return (scale * rng.standard_normal(shape)).astype(np.float32)


def _training_step(parameters: Tree, x: Any, labels: Any) -> Tree:
    def loss(parameters: Tree) -> Any:
        h = x
        for layer in parameters[:-1]:
            h = jax.nn.relu(h @ layer["w"] + layer["b"])
        logits = h @ parameters[-1]["w"] + parameters[-1]["b"]
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1))

    value, gradient = jax.value_and_grad(loss)(parameters)
    return jax.tree.map(lambda p, g: p - 0.1 * g, parameters, gradient), value


def mlp(small: bool, seed: int = 0) -> JaxProgram:
    """One step of gradient descent of a classifier: cross-entropy by integer labels, new parameters, the loss."""
    rng = np.random.default_rng(seed)
    batch, sizes = (4, (6, 8, 5, 3)) if small else (64, (784, 512, 256, 10))
    parameters = [
        {"w": _normal(rng, m, n, scale=(2 / m) ** 0.5), "b": np.zeros(n, np.float32)} for m, n in pairwise(sizes)
    ]
    labels = rng.integers(0, sizes[-1], batch).astype(np.int32)
    return JaxProgram(_training_step, (parameters, _normal(rng, batch, sizes[0]), labels))


def _lstm(parameters: Tree, xs: Any) -> Tree:
    hidden = parameters["u"].shape[0]

    def cell(state: Tree, x: Any) -> Tree:
        h, c = state
        i, f, g, o = jnp.split(x @ parameters["w"] + h @ parameters["u"] + parameters["b"], 4, axis=-1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    zero = jnp.zeros((xs.shape[1], hidden), xs.dtype)
    return jax.lax.scan(cell, (zero, zero), xs)


def lstm(small: bool, seed: int = 0) -> JaxProgram:
    """A sequence through an LSTM, time first: the last state, and the outputs."""
    rng = np.random.default_rng(seed)
    steps, batch, features, hidden = (5, 2, 3, 4) if small else (64, 16, 64, 128)
    parameters = {
        "w": _normal(rng, features, 4 * hidden, scale=features**-0.5),
        "u": _normal(rng, hidden, 4 * hidden, scale=hidden**-0.5),
        "b": _normal(rng, 4 * hidden, scale=0.1),
    }
    return JaxProgram(_lstm, (parameters, _normal(rng, steps, batch, features)))


def _attention(heads: int, parameters: Tree, cache: Tree, x: Any, position: Any) -> Tree:
    def normed(x: Any) -> Any:
        mean = jnp.mean(x, -1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(jnp.var(x, -1, keepdims=True) + 1e-5)

    batch, new, width = x.shape
    y = normed(x) * parameters["scale"]
    query, key, value = (
        (y @ parameters[name]).reshape(batch, new, heads, width // heads).transpose(0, 2, 1, 3) for name in "qkv"
    )
    keys = jax.lax.dynamic_update_slice(cache["keys"], key, (0, 0, position, 0))
    values = jax.lax.dynamic_update_slice(cache["values"], value, (0, 0, position, 0))
    scores = jnp.einsum("bhqd,bhkd->bhqk", query, keys) / (width // heads) ** 0.5
    seen = jnp.arange(keys.shape[2])[None, :] <= position + jnp.arange(new)[:, None]
    weights = jax.nn.softmax(jnp.where(seen, scores, -jnp.inf), axis=-1)
    mixed = jnp.einsum("bhqk,bhkd->bhqd", weights, values).transpose(0, 2, 1, 3).reshape(batch, new, width)
    x = x + mixed @ parameters["o"]
    x = x + jax.nn.gelu(normed(x) @ parameters["up"]) @ parameters["down"]
    return x, {"keys": keys, "values": values}


def attention(small: bool, seed: int = 0) -> JaxProgram:
    """A transformer block that decodes: new tokens go into the cache at a position, and attend to it."""
    rng = np.random.default_rng(seed)
    batch, heads, width, length, new, position = (2, 2, 8, 6, 2, 3) if small else (4, 8, 512, 512, 4, 300)
    shapes = {name: (width, width) for name in "qkvo"} | {"up": (width, 4 * width), "down": (4 * width, width)}
    parameters = {name: _normal(rng, *shape, scale=shape[0] ** -0.5) for name, shape in shapes.items()}
    parameters["scale"] = np.ones(width, np.float32)
    cache = {name: _normal(rng, batch, heads, length, width // heads) for name in ("keys", "values")}
    arguments = (parameters, cache, _normal(rng, batch, new, width), np.int32(position))
    return JaxProgram(partial(_attention, heads), arguments)


def _solve(points: Any, targets: Any, queries: Any) -> Tree:
    def kernel(a: Any, b: Any) -> Any:
        return jnp.exp(-0.5 * jnp.sum((a[:, None] - b[None]) ** 2, axis=-1))

    factor = jnp.linalg.cholesky(kernel(points, points) + 0.1 * jnp.eye(points.shape[0], dtype=points.dtype))
    weights = jax.scipy.linalg.cho_solve((factor, True), targets)
    return kernel(queries, points) @ weights, 2 * jnp.sum(jnp.log(jnp.diagonal(factor)))


def solver(small: bool, seed: int = 0) -> JaxProgram:
    """A Gaussian process: a kernel matrix, its Cholesky factor, two solves; means and log determinant."""
    rng = np.random.default_rng(seed)
    count, dims, queries = (7, 2, 3) if small else (256, 4, 64)
    return JaxProgram(_solve, (_normal(rng, count, dims), _normal(rng, count, 1), _normal(rng, queries, dims)))


def _filter(signals: Any, cutoff: Any) -> Any:
    spectrum = jnp.fft.rfft(signals)
    frequencies = jnp.fft.rfftfreq(signals.shape[-1])
    gain = 1 / (1 + (frequencies / cutoff) ** 4)
    return jnp.fft.irfft(spectrum * gain, signals.shape[-1]), jnp.abs(spectrum) ** 2


def fft_filter(small: bool, seed: int = 0) -> JaxProgram:
    """Signals without their high frequencies, and their power spectra."""
    rng = np.random.default_rng(seed)
    return JaxProgram(_filter, (_normal(rng, *((2, 132) if small else (32, 4096))), np.float32(0.1)))


PROGRAMS: dict[str, Callable[[bool], JaxProgram]] = {
    "MLP, training step": mlp,
    "LSTM by scan": lstm,
    "attention block, KV cache": attention,
    "Cholesky solver": solver,
    "FFT filter": fft_filter,
}
