"""Trains a small MLP on scikit-learn's handwritten digits and writes it as an MLIR module.

The data are real: 1797 images of 8x8 pixels that scikit-learn ships with (test set of the UCI "Optical
Recognition of Handwritten Digits"). Three quarters train the network, the rest is held out.

    python examples/digits/train.py        writes build/digits/digits.mlir and build/digits/digits.npz
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

BUILD = Path(__file__).resolve().parents[2] / "build" / "digits"

HIDDEN = (128, 64)
SEED = 0

Array = NDArray[np.float32]


@dataclass
class Digits:
    """A trained network and the images that it has not seen.

    ``weights[i]``: [inputs, outputs], ``biases[i]``: [outputs]; ``images``: [n, 64] in 0..1, ``labels``: [n].
    """

    weights: list[Array]
    biases: list[Array]
    images: Array
    labels: NDArray[np.int64]

    def probabilities(self, images: Array) -> Array:
        """What numpy computes: [n, 64] -> [n, 10], in f32."""
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            images = np.tanh(images @ weight + bias)
        scores = images @ self.weights[-1] + self.biases[-1]
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)


def train() -> Digits:
    """Train the network (a few seconds). Pixels run from 0 to 16 and are scaled to 0..1."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split
    from sklearn.neural_network import MLPClassifier
    from threadpoolctl import threadpool_limits

    data: Any = load_digits(return_X_y=True)
    pixels, labels = data
    parts: list[Any] = train_test_split(pixels / 16, labels, test_size=0.25, random_state=SEED, stratify=labels)
    train_x, test_x, train_y, test_y = parts
    network = MLPClassifier(HIDDEN, activation="tanh", max_iter=300, tol=1e-3, random_state=SEED)
    with threadpool_limits(1):  # several would wait for each other most of the time: the products are small
        network.fit(train_x, train_y)
    return Digits(
        weights=[weight.astype(np.float32) for weight in network.coefs_],
        biases=[bias.astype(np.float32) for bias in network.intercepts_],
        images=test_x.astype(np.float32),
        labels=test_y.astype(np.int64),
    )


def dense(array: Array) -> str:
    """An array as an MLIR constant. The hexadecimal form is exact, and short."""
    shape = "x".join(map(str, array.shape))
    return f'dense<"0x{array.astype("<f4").tobytes().hex().upper()}"> : tensor<{shape}xf32>'


LAYER = """
  // layer {n}: {inputs} -> {outputs}
  %w{n} = arith.constant {weight}
  %b{n} = arith.constant {bias}
  %empty{n} = tensor.empty(%batch) : tensor<?x{outputs}xf32>
  %zeros{n} = linalg.fill ins(%zero : f32) outs(%empty{n} : tensor<?x{outputs}xf32>) -> tensor<?x{outputs}xf32>
  %product{n} = linalg.matmul {scope}
      ins(%x{n}, %w{n} : tensor<?x{inputs}xf32>, tensor<{inputs}x{outputs}xf32>)
      outs(%zeros{n} : tensor<?x{outputs}xf32>) -> tensor<?x{outputs}xf32>
  %x{next} = linalg.generic {{indexing_maps = [#same, #bias, #same], iterator_types = ["parallel", "parallel"]}}
      ins(%product{n}, %b{n} : tensor<?x{outputs}xf32>, tensor<{outputs}xf32>)
      outs(%empty{n} : tensor<?x{outputs}xf32>) {attrs} {{
  ^bb0(%p: f32, %b: f32, %o: f32):
    %sum = arith.addf %p, %b : f32{activation}
  }} -> tensor<?x{outputs}xf32>"""

TANH = "\n    %y = math.tanh %sum : f32\n    linalg.yield %y : f32"
IDENTITY = "\n    linalg.yield %sum : f32"

MODULE = """\
// A 64-128-64-10 perceptron for handwritten digits. The first two layers are placed on opencl:0; nothing is said
// about the rest, which goes where the planner's default is.
#device = #device.scope<"opencl", 0 : i64, "", "">
#same = affine_map<(d0, d1) -> (d0, d1)>
#bias = affine_map<(d0, d1) -> (d1)>
#row = affine_map<(d0, d1) -> (d0)>

// images: [n, 64] in 0..1 -> probabilities: [n, 10], digits: [n]
func.func @main(%x0: tensor<?x64xf32>) -> (tensor<?x10xf32>, tensor<?xi64>) {{
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0 : i64
  %lowest = arith.constant 0xFF800000 : f32
  %batch = tensor.dim %x0, %c0 : tensor<?x64xf32>
{layers}

  %space = tensor.empty(%batch) : tensor<?x10xf32>
  %probabilities = linalg.softmax dimension(1)
      ins(%x{last} : tensor<?x10xf32>) outs(%space : tensor<?x10xf32>) -> tensor<?x10xf32>

  // argmax: the largest probability of each row, and where it stands
  %values = tensor.empty(%batch) : tensor<?xf32>
  %places = tensor.empty(%batch) : tensor<?xi64>
  %first_values = linalg.fill ins(%lowest : f32) outs(%values : tensor<?xf32>) -> tensor<?xf32>
  %first_places = linalg.fill ins(%none : i64) outs(%places : tensor<?xi64>) -> tensor<?xi64>
  %best:2 = linalg.generic {{indexing_maps = [#same, #row, #row], iterator_types = ["parallel", "reduction"]}}
      ins(%probabilities : tensor<?x10xf32>) outs(%first_values, %first_places : tensor<?xf32>, tensor<?xi64>) {{
  ^bb0(%p: f32, %value: f32, %place: i64):
    %column = linalg.index 1 : index
    %here = arith.index_cast %column : index to i64
    %better = arith.cmpf ogt, %p, %value : f32
    %new_value = arith.select %better, %p, %value : f32
    %new_place = arith.select %better, %here, %place : i64
    linalg.yield %new_value, %new_place : f32, i64
  }} -> (tensor<?xf32>, tensor<?xi64>)
  return %probabilities, %best#1 : tensor<?x10xf32>, tensor<?xi64>
}}
"""

ON_DEVICE = "{device.scope = #device}"


def module_text(digits: Digits) -> str:
    """The network as an MLIR module, its weights as constants; every layer but the last is on opencl:0."""
    layers: list[str] = []
    last = len(digits.weights) - 1
    for n, (weight, bias) in enumerate(zip(digits.weights, digits.biases, strict=True)):
        placed = n < last
        layers.append(
            LAYER.format(
                n=n,
                next=n + 1,
                inputs=weight.shape[0],
                outputs=weight.shape[1],
                weight=dense(weight),
                bias=dense(bias),
                scope=ON_DEVICE if placed else "",
                attrs=f"attrs = {ON_DEVICE}" if placed else "",
                activation=TANH if placed else IDENTITY,
            )
        )
    return MODULE.format(layers="\n".join(layers), last=last + 1)


def prepare(directory: Path = BUILD) -> tuple[Path, Digits]:
    """The module and the network, made once and kept in ``directory`` until this file changes."""
    model, data = directory / "digits.mlir", directory / "digits.npz"
    newest = Path(__file__).stat().st_mtime
    if all(file.exists() and file.stat().st_mtime > newest for file in (model, data)):
        return model, read(data)
    digits = train()
    directory.mkdir(parents=True, exist_ok=True)
    model.write_text(module_text(digits))
    arrays: dict[str, Any] = {"images": digits.images, "labels": digits.labels}
    arrays |= {f"weight{n}": array for n, array in enumerate(digits.weights)}
    arrays |= {f"bias{n}": array for n, array in enumerate(digits.biases)}
    np.savez(data, **arrays)
    return model, digits


def read(data: Path) -> Digits:
    with np.load(data, allow_pickle=False) as arrays:
        layers = range(len(HIDDEN) + 1)
        return Digits(
            weights=[arrays[f"weight{n}"] for n in layers],
            biases=[arrays[f"bias{n}"] for n in layers],
            images=arrays["images"],
            labels=arrays["labels"],
        )


def main() -> None:
    model, digits = prepare()
    guesses = digits.probabilities(digits.images).argmax(axis=1)
    print(f"{model}: numpy gets {np.mean(guesses == digits.labels):.2%} of {len(digits.labels)} held-out images")


if __name__ == "__main__":
    main()
