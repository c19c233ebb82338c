"""``onednn``: products of matrices, convolutions and softmax of f32 by oneDNN, called from compiled host code.

A bias, a tensor that is added, and an activation are post-operations of the primitive; constant weights are put
into the layout that it wants once. oneDNN's relu drops NaNs, its softmax keeps them to themselves, its gelu makes
one of an infinity: unless the option ``finite`` says that there are none, the first two are mended, and the last
is left to others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import ClassVar

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Operation, SSAValue

from devscope.analysis.patterns import Match
from devscope.analysis.patterns.attributes import splat_value
from devscope.analysis.patterns.python_values import python_value
from devscope.backends.backend import Backend, Claimed, Code, Row
from devscope.backends.contractions import is_zero, operand_of, product_of, transposes
from devscope.backends.onednn.api import (
    ACCURATE,
    DIRECT,
    INFERENCE,
    Argument,
    Size,
    Tensor,
    Text,
    row_major,
    spread_rows,
)
from devscope.backends.onednn.patterns import (
    ACTIVATIONS,
    LAYOUTS,
    SOFTMAX,
    accepts,
    accepts_softmax,
    rows,
    softmax_axis,
)
from devscope.backends.onednn.primitive import Primitive
from devscope.backends.onednn.programs import programs
from devscope.backends.onednn.special_values import relu, spread_nans
from devscope.dialects.names import op_name
from devscope.dialects.target import OptionSpec

Descriptor = Callable[[Argument], str]


class Onednn(Backend):
    name: ClassVar[str] = "onednn"
    patterns: Sequence[Row] = (
        *(Row(name, pattern, accepts) for name, pattern in rows()),
        Row("softmax", SOFTMAX, accepts_softmax),
    )

    options: ClassVar[Mapping[str, OptionSpec]] = {"finite": OptionSpec(bool)}
    programs: Sequence[str] = tuple(programs())

    def codegen(self, function: Claimed) -> Code:
        match = function.match
        assert match is not None
        if function.pattern == "softmax":
            return _softmax(function, match)
        return _Contraction(function, match).code()


def _sizes(function: Claimed, operand: int) -> list[Size]:
    """Of an operand or a result."""
    type_ = [*function.inputs, *function.outputs][operand]
    assert isinstance(type_, TensorType)
    return [
        Size(1, ((operand, axis),)) if size == DYNAMIC_INDEX else Size(size)
        for axis, size in enumerate(type_.get_shape())
    ]


def _swapped(sizes: Sequence[Size], turned: bool) -> list[Size]:
    return [*sizes[:-2], sizes[-1], sizes[-2]] if turned else [*sizes]


class _Contraction:
    """A product of matrices or a convolution, with what follows it."""

    def __init__(self, function: Claimed, match: Match) -> None:
        self.function, self.match = function, match
        self.result = len(function.inputs)
        self.tensors: list[Tensor] = []

    def code(self) -> Code:
        found = next(iter(self.match.named(*LAYOUTS)), None)
        create = self._product(product_of(self.match)) if found is None else self._convolution(found)
        activation = next((name for name in ACTIVATIONS if name in self.match), None)
        before, after = self._before(), None
        if before:
            self.tensors[-1] = self.tensors[-1]._replace(is_read=True)
        if activation == "relu" and not self.function.options.get("finite"):
            activation, after = None, partial(relu, self.result, _sizes(self.function, self.result))
        return Primitive(self.function, self.tensors, create, activation, bool(before), before, after).code()

    def _is_constant(self, operand: int) -> bool:
        return operand in self.function.constants

    def _before(self) -> list[str]:
        """Text that puts what is added into the result; none if nothing is."""
        if "bias" in self.match and "sum" not in self.match:
            return []
        added = self.match["sum"] if "sum" in self.match else self.match["init"]
        if "sum" not in self.match and is_zero(added):
            return []
        out = f"outs(%a{self.result} : {self.function.buffers[self.result]})"
        splat = splat_value(added)
        if splat is not None:
            return [f"%added = arith.constant {splat!r} : f32", f"linalg.fill ins(%added : f32) {out}"]
        operand = self.function.operand(added)
        return [f"linalg.copy ins(%a{operand} : {self.function.buffers[operand]}) {out}"]

    def _add(self, argument: Argument, operand: int, dims: Sequence[Size], strides: Sequence[Size]) -> None:
        constant = self._is_constant(operand)
        is_free = argument is Argument.WEIGHTS and constant
        is_read = argument is not Argument.DESTINATION
        self.tensors.append(Tensor(operand, argument, dims, strides, is_free, constant, is_read))

    # ------------------------------------------------------------------------------------------- products

    def _product(self, product: Operation) -> Callable[[Text, str, Descriptor, str], None]:
        own = transposes(product)
        assert own is not None
        for argument, value, turned in zip(
            (Argument.SOURCE, Argument.WEIGHTS), product.operands[:2], own, strict=True
        ):
            operand, before = operand_of(self.function, value)
            sizes = _sizes(self.function, operand)
            is_turned = before != turned
            self._add(argument, operand, _swapped(sizes, is_turned), _swapped(row_major(sizes), is_turned))
            if argument is Argument.WEIGHTS and not is_turned:
                self.tensors[-1] = self.tensors[-1]._replace(spread=spread_rows(sizes))
        result = _sizes(self.function, self.result)
        if "bias" in self.match:
            self._bias(len(result), len(result) - 1)
        self._add(Argument.DESTINATION, self.result, result, row_major(result))
        return self._create_product

    def _bias(self, rank: int, axis: int) -> None:
        operand = self.function.operand(self.match["bias"])
        (size,) = _sizes(self.function, operand)
        dims = [size if other == axis else Size(1) for other in range(rank)]
        self._add(Argument.BIAS, operand, dims, row_major(dims))

    @staticmethod
    def _create_product(text: Text, pd: str, descriptor: Descriptor, attributes: str) -> None:
        names = (Argument.SOURCE, Argument.WEIGHTS, Argument.BIAS, Argument.DESTINATION)
        given = [descriptor(argument) for argument in names]
        text.checked("dnnl_matmul_primitive_desc_create", pd, text.engine(), *given, attributes)

    # ------------------------------------------------------------------------------------------- convolutions

    def _convolution(self, product: Operation) -> Callable[[Text, str, Descriptor, str], None]:
        layout = LAYOUTS[op_name(product)]
        space = layout.space
        low = high = [0] * len(space)
        image = product.operands[0]
        pad = image.owner
        if isinstance(pad, Operation) and op_name(pad) == "tensor.pad" and pad in self.match.ops:
            image = pad.operands[0]
            low, high = (
                [python_value(pad.get_attr_or_prop(side))[layout.image.index(axis)] for axis in space]
                for side in ("static_low", "static_high")
            )
        grouped = "g" in layout.filters
        self._described(Argument.SOURCE, image, layout.image, ("n", "gc", *space))
        weights = ("g", "f", "c", *space) if grouped else ("f", "c", *space)
        self._described(Argument.WEIGHTS, product.operands[1], layout.filters, weights)
        if "bias" in self.match:
            operand = self.function.operand(self.match["bias"])
            self._add(Argument.BIAS, operand, _sizes(self.function, operand), [Size(1)])
        self._described(Argument.DESTINATION, None, layout.result, ("n", "gf", *space))
        if not layout.channels_last:
            self.tensors = [one._replace(is_free=one.argument is not Argument.BIAS) for one in self.tensors]
        else:
            self.tensors = [one._replace(is_free=one.argument is Argument.WEIGHTS) for one in self.tensors]
        strides, dilations = (self._numbers(product, name, len(space)) for name in ("strides", "dilations"))
        lists = [
            strides,
            [Size(one.number - 1) for one in dilations],
            [Size(n) for n in low],
            [Size(n) for n in high],
        ]

        def create(text: Text, pd: str, descriptor: Descriptor, attributes: str) -> None:
            names = (Argument.SOURCE, Argument.WEIGHTS, Argument.BIAS, Argument.DESTINATION)
            given = [descriptor(argument) for argument in names]
            kinds = text.i32(INFERENCE), text.i32(DIRECT)
            arrays = [text.sizes(list_, place) for place, list_ in enumerate(lists)]
            symbol = "dnnl_convolution_forward_primitive_desc_create"
            text.checked(symbol, pd, text.engine(), *kinds, *given, *arrays, attributes)

        return create

    @staticmethod
    def _numbers(product: Operation, name: str, count: int) -> list[Size]:
        found = python_value(product.get_attr_or_prop(name)) or [1]
        return [Size(number) for number in (found * count if len(found) == 1 else found)]

    def _described(self, argument: Argument, value: SSAValue | None, has: str, wants: Sequence[str]) -> None:
        """``has``: the axes of the program's tensor; ``wants``: those of the primitive's, which may be two of
        these that stand side by side, or one that the program's does not have.
        """
        operand = self.result if value is None else self.function.operand(value)
        sizes = _sizes(self.function, operand)
        strides = row_major(sizes)
        dims, steps = list[Size](), list[Size]()
        for axes in wants:
            dim, step = Size(1), Size(1)
            for axis in axes:
                if axis in has:
                    dim, step = dim * sizes[has.index(axis)], strides[has.index(axis)]
            dims.append(dim)
            steps.append(step)
        self._add(argument, operand, dims, steps)


def _softmax(function: Claimed, match: Match) -> Code:
    operand, result = function.operand(match["x"]), len(function.inputs)
    sizes = _sizes(function, result)
    tensors = [
        Tensor(operand, Argument.SOURCE, sizes, row_major(sizes)),
        Tensor(result, Argument.DESTINATION, sizes, row_major(sizes), is_read=False),
    ]

    def create(text: Text, pd: str, descriptor: Descriptor, attributes: str) -> None:
        kinds = text.i32(INFERENCE), text.i32(ACCURATE)
        ends = descriptor(Argument.SOURCE), descriptor(Argument.DESTINATION)
        axis = text.i32(softmax_axis(match))
        symbol = "dnnl_softmax_forward_primitive_desc_create"
        text.checked(symbol, pd, text.engine(), *kinds, *ends, axis, attributes)

    after = (
        None if function.options.get("finite") else partial(spread_nans, result, len(sizes), softmax_axis(match))
    )
    return Primitive(function, tensors, create, after=after).code()
