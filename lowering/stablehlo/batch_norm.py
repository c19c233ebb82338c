"""Normalisation of a batch, as StableHLO's specification writes it out; floats below 32 bits are computed in f32."""

from collections.abc import Sequence
from typing import Any

from devscope.lowering.interop.bindings import ir
from devscope.lowering.stablehlo.arrays import Array, Text
from devscope.lowering.stablehlo.templates import element, expand, number


def expand_inference(op: Any) -> None:
    batch = _Batch(op)
    x, scale, offset, mean, variance = batch.operands
    batch.replace([batch.normalised(x, mean, variance) * batch.spread(scale) + batch.spread(offset)])


def expand_training(op: Any) -> None:
    batch = _Batch(op)
    x, scale, offset = batch.operands
    mean = batch.sum(x) / batch.count
    centred = x - batch.spread(mean)
    variance = batch.sum(centred * centred) / batch.count
    y = batch.normalised(x, mean, variance) * batch.spread(scale) + batch.spread(offset)
    batch.replace([y, mean, variance])


def expand_gradients(op: Any) -> None:
    batch = _Batch(op)
    x, scale, mean, variance, grad = batch.operands
    centred, padded = x - batch.spread(mean), variance + batch.epsilon
    grad_sum, slope = batch.sum(grad), batch.sum(grad * centred) / padded
    terms = grad * batch.spread(batch.count) - batch.spread(grad_sum) - batch.spread(slope) * centred
    factor = scale / padded.sqrt() / batch.count
    grad_scale = batch.sum(grad * batch.normalised(x, mean, variance))
    batch.replace([batch.spread(factor) * terms, grad_scale, grad_sum])


class _Batch:
    """Arrays are of all elements, or have a number for each feature."""

    def __init__(self, op: Any) -> None:
        self._op, type_ = op, op.operands[0].type
        self._text, feature = Text(type_), number(op, "feature_index")
        self._given, extents = str(element(type_)), self._text.operand(0, type_).extents
        of = "f64" if self._given == "f64" else "f32"
        self._others = [axis for axis in range(len(extents)) if axis != feature]
        self.operands = [
            Array(
                self._text, f"%{n}", extents if value.type == type_ else extents[feature:][:1], self._given
            ).convert(of)
            for n, value in enumerate(op.operands)
        ]
        self.epsilon = ir.FloatAttr(op.attributes["epsilon"]).value
        size = self._text.index("addi", 1, 0)
        for axis in self._others:
            size = self._text.index("muli", size, f"%n{axis}")
        self.count = self._text.number(size).convert(of).spread(0, extents[feature])

    def sum(self, array: Array) -> Array:
        return array.sum(*self._others)

    def spread(self, array: Array) -> Array:
        """The number of each feature, for all elements."""
        return array.broadcast(self._others, self.operands[0].extents)

    def normalised(self, x: Array, mean: Array, variance: Array) -> Array:
        return (x - self.spread(mean)) / self.spread((variance + self.epsilon).sqrt())

    def replace(self, results: Sequence[Array]) -> None:
        expand(self._op, self._text.result([array.convert(self._given) for array in results]))
