"""The MLP that compilers are compared on: 64 x (784-1024-1024-10), relu, f32, as MLIR text."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

SIZES = (784, 1024, 1024, 10)
BATCH = 64

Array = NDArray[np.float32]


def parameters(seed: int = 0) -> list[Array]:
    """Weights [inputs, outputs] and biases [outputs], alternating."""
    generator = np.random.default_rng(seed)
    arrays: list[Array] = []
    for inputs, outputs in itertools.pairwise(SIZES):
        arrays.append((generator.standard_normal((inputs, outputs)) / inputs**0.5).astype(np.float32))
        arrays.append(generator.standard_normal(outputs).astype(np.float32))
    return arrays


def batch(seed: int = 1) -> Array:
    """Images: [64, 784]."""
    return np.random.default_rng(seed).random((BATCH, SIZES[0]), dtype=np.float32)


def reference(images: Array, arrays: list[Array]) -> Array:
    """What numpy computes: [64, 784] -> [64, 10]."""
    for layer in range(len(arrays) // 2):
        images = images @ arrays[2 * layer] + arrays[2 * layer + 1]
        if layer < len(arrays) // 2 - 1:
            images = np.maximum(images, 0)
    return images


def module_text(constants: bool, on_opencl: int = 0) -> str:
    """The MLP as an MLIR module; the first ``on_opencl`` layers are placed on opencl:0.

    With ``constants`` the parameters stand in the module, otherwise they are arguments of ``@main``.
    """
    arrays = parameters() if constants else []
    arguments = [f"%x0: tensor<{BATCH}x{SIZES[0]}xf32>"]
    body: list[str] = []
    for n, (inputs, outputs) in enumerate(itertools.pairwise(SIZES)):
        types = [f"tensor<{inputs}x{outputs}xf32>", f"tensor<{outputs}xf32>"]
        if constants:
            body += [
                f'  %{name}{n} = arith.constant dense<"0x{array.tobytes().hex().upper()}"> : {type_}'
                for name, array, type_ in zip("wb", arrays[2 * n : 2 * n + 2], types, strict=True)
            ]
        else:
            arguments += [f"%{name}{n}: {type_}" for name, type_ in zip("wb", types, strict=True)]
        body.append(_layer(n, inputs, outputs, placed=n < on_opencl, relu=n < len(SIZES) - 2))
    result = f"tensor<{BATCH}x{SIZES[-1]}xf32>"
    aliases = '#device = #device.scope<"opencl", 0 : i64, "", "">\n' if on_opencl else ""
    return (
        f"{aliases}func.func @main({', '.join(arguments)}) -> {result} {{\n"
        "  %zero = arith.constant 0.0 : f32\n"
        + "\n".join(body)
        + f"\n  return %x{len(SIZES) - 1} : {result}\n}}\n"
    )


def _layer(n: int, inputs: int, outputs: int, placed: bool, relu: bool) -> str:
    before, after = f"tensor<{BATCH}x{inputs}xf32>", f"tensor<{BATCH}x{outputs}xf32>"
    weight, bias = f"tensor<{inputs}x{outputs}xf32>", f"tensor<{outputs}xf32>"
    scope = "{device.scope = #device}" if placed else ""
    attributes = f"attrs = {scope} " if placed else ""
    activation = "%y = arith.maximumf %sum, %zero : f32\n    linalg.yield %y : f32"
    return f"""\
  %empty{n} = tensor.empty() : {after}
  %zeros{n} = linalg.fill ins(%zero : f32) outs(%empty{n} : {after}) -> {after}
  %product{n} = linalg.matmul {scope} ins(%x{n}, %w{n} : {before}, {weight}) outs(%zeros{n} : {after}) -> {after}
  %x{n + 1} = linalg.generic {{
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}}
      ins(%product{n}, %b{n} : {after}, {bias}) outs(%empty{n} : {after}) {attributes}{{
  ^bb0(%p: f32, %b: f32, %unused: f32):
    %sum = arith.addf %p, %b : f32
    {activation if relu else "linalg.yield %sum : f32"}
  }} -> {after}"""
