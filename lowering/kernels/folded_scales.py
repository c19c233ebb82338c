"""What is done behind a contraction or a convolution with constants for each of its channels, as by a batch
normalisation, becomes one product and one sum, and products go into the weights.

As TVM's FoldScaleAxis, and as others fold a batch normalisation. Numbers are rounded in other places then: by no
more than the sums in front of them are, which are in another order, too. Constants are computed in f64.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from devscope.lowering import mlir_util
from devscope.lowering.constants import ConstantTable, constant_tensor, tensor_elements
from devscope.lowering.initial_values import loops_by_axis
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.accumulators import fills_with_zero
from devscope.lowering.kernels.contraction_match import sums_products
from devscope.runtime.dtypes import DTYPES

_Array = np.ndarray[Any, Any]

_MOST_STEPS = 512
"""Of sums in front of which weights are scaled: of longer ones a product behind is a small part."""

_MOST_CONSTANTS = 1 << 16
"""That are computed with."""


def _rsqrt(x: _Array) -> _Array:
    return 1 / np.sqrt(x)


_EVALUATED: Mapping[str, Callable[..., Any]] = {
    "arith.addf": np.add,
    "arith.subf": np.subtract,
    "arith.mulf": np.multiply,
    "arith.divf": np.divide,
    "arith.negf": np.negative,
    "arith.extf": np.positive,
    "arith.truncf": np.positive,
    "math.sqrt": np.sqrt,
    "math.rsqrt": _rsqrt,
}


def fold_scales(module: Any, constants: ConstantTable) -> None:
    """Rewrite the elementwise operations on tensors of ``module`` that begin so, once they are fused."""
    for op in mlir_util.named(module.operation, "linalg.generic"):
        folded: Any | None = op
        while folded is not None:
            folded = _fold_one(folded, constants)


def _fold_one(op: Any, constants: ConstantTable) -> Any | None:
    """What ``op`` becomes if one of its inputs is what it is done for; else None."""
    for number, value in enumerate(list(op.operands)[: -len(op.results)] if op.results else []):
        sums = _sums_of(value)
        if sums is None or str(value.type.element_type) not in ("f32", "f64"):
            continue
        chain = _Chain(op, number, constants)
        if chain.steps and (made := _fold(chain, sums, constants)) is not None:
            return made
    return None


@dataclass(frozen=True)
class _Sums:
    """``op`` sums up products. ``axes``: of its result, for each axis of a tensor that is it, reshaped maybe."""

    op: Any
    axes: Sequence[Sequence[int]]


def _sums_of(value: Any) -> _Sums | None:
    """What makes ``value`` for one reader, if that are sums of products."""
    if not isinstance(value.type, ir.RankedTensorType):
        return None
    op, axes = _maker_for_one(value), [[axis] for axis in range(ir.RankedTensorType(value.type).rank)]
    if op is not None and op.name == "tensor.collapse_shape":
        axes = [[axis.value for axis in group] for group in op.attributes["reassociation"]]
        op = _maker_for_one(op.operands[0])
    is_one = op is not None and op.name.startswith("linalg.") and len(op.operands) == 3
    return _Sums(op, axes) if is_one and sums_products(op) is not None else None


def _maker_for_one(value: Any) -> Any | None:
    readers = [use.owner for use in value.uses if use.owner.name != "tensor.dim"]
    return mlir_util.maker(value) if len(readers) == 1 else None


class _Chain:
    """The first ``steps`` of the body of ``op`` that are done to its input ``number``, and their result, ``last``.

    They multiply by ``scale`` and add ``shift``: numbers, or arrays with an axis for each loop, of size 1 along
    those for which they are the same.
    """

    def __init__(self, op: Any, number: int, constants: ConstantTable) -> None:
        self.op, self.number = op, number
        self._constants = constants
        self.loops = loops_by_axis(op)
        self._arguments = list(mlir_util.entry_block(op).arguments)
        self.steps: list[Any] = []
        self.scale: _Array = np.ones(())
        self.shift: _Array = np.zeros(())
        self.last = self._arguments[number]
        with np.errstate(all="ignore"):
            while self._take(list(self.last.uses)):
                pass

    def _take(self, uses: Sequence[Any]) -> bool:
        step = uses[0].owner if len(uses) == 1 else None
        if step is None or step.name not in ("arith.addf", "arith.subf", "arith.mulf", "arith.divf"):
            return False
        place = uses[0].operand_number
        other = None if step.name == "arith.divf" and place == 1 else self._evaluate(step.operands[1 - place])
        if other is None:
            return False
        other, scale, shift = other.astype(np.float64), self.scale, self.shift
        if step.name in ("arith.mulf", "arith.divf"):
            by = np.multiply if step.name == "arith.mulf" else np.divide
            scale, shift = by(scale, other), by(shift, other)
        else:
            if step.name == "arith.subf":
                other, sign = (-other, 1) if place == 0 else (other, -1)
                scale, shift = sign * scale, sign * shift
            shift = shift + other
        dtype = np.dtype(DTYPES[str(self.last.type)])
        if not (_is_normal(scale, dtype) and _is_normal(shift, dtype)):
            return False
        self.scale, self.shift = np.asarray(scale), np.asarray(shift)
        self.steps.append(step)
        self.last = step.results[0]
        return True

    def _evaluate(self, value: Any) -> _Array | None:
        """None if ``value``, of the body, is no constant."""
        if value in self._arguments:
            return self._array(self._arguments.index(value))
        op = mlir_util.maker(value)
        if op is None:
            return None
        if op.name == "arith.constant":
            number = ir.FloatAttr(op.attributes["value"]).value if isinstance(value.type, ir.FloatType) else None
            return None if number is None else np.asarray(number, DTYPES[str(value.type)])
        function, dtype = _EVALUATED.get(op.name), DTYPES.get(str(value.type))
        if function is None or dtype is None:
            return None
        operands = [self._evaluate(operand) for operand in op.operands]
        return None if any(each is None for each in operands) else np.asarray(function(*operands)).astype(dtype)

    def _array(self, number: int) -> _Array | None:
        """An input that is a constant, by loops."""
        value = self.op.operands[number]
        if number >= len(self.op.operands) - len(self.op.results) or not isinstance(
            value.type, ir.RankedTensorType
        ):
            return None
        array, loops = tensor_elements(value, self._constants), self.loops[number]
        if array is None or array.dtype.kind != "f" or array.size > _MOST_CONSTANTS:
            return None
        shape = [1] * len(ir.ArrayAttr(self.op.attributes["iterator_types"]))
        for loop, size in zip(loops, array.shape, strict=True):
            if loop is not None:
                shape[loop] = size
            elif size != 1:
                return None
        places = [-1 if loop is None else loop for loop in loops]
        return np.transpose(array, sorted(range(array.ndim), key=places.__getitem__)).reshape(shape)


def _is_normal(exact: _Array, dtype: np.dtype[Any]) -> bool:
    """Whether numbers of ``dtype`` are near ``exact``: none is too large, or so small that digits get lost."""
    rounded = np.abs(np.asarray(exact).astype(dtype))
    return bool(np.all((exact == 0) | (rounded >= np.finfo(dtype).tiny) & np.isfinite(rounded)))


def _loops_of(array: _Array) -> list[int]:
    """Along which ``array`` is not the same."""
    return [loop for loop, size in enumerate(np.shape(array)) if size != 1]


def _fold(chain: _Chain, sums: _Sums, constants: ConstantTable) -> Any | None:
    scale, shift = chain.scale, chain.shift
    scales, shifts = bool(np.any(scale != 1)), bool(np.any(shift != 0))
    if not scales:
        return None
    if _scale_weights(chain, sums, constants):
        scales = False
    elif len(chain.steps) <= scales + shifts:
        return None
    return _rewrite(chain, scale if scales else None, shift if shifts else None, constants)


def _scale_weights(chain: _Chain, sums: _Sums, constants: ConstantTable) -> bool:
    """Multiply the weights of ``sums``, which are not long, if they are constant."""
    op = sums.op
    fill = mlir_util.maker(op.operands[2])
    if fill is None or not fills_with_zero(fill):
        return False
    of = loops_by_axis(op)
    channels: list[int | None] = []
    sizes: list[int] = []
    of_value = chain.loops[chain.number]
    for loop in _loops_of(chain.scale):
        if loop not in of_value:
            return False
        axes = sums.axes[of_value.index(loop)]
        channels += [of[2][axis] for axis in axes]
        known = ir.RankedTensorType(op.results[0].type).shape
        sizes += [chain.scale.shape[loop]] if len(axes) == 1 else [known[axis] for axis in axes]
    if ir.ShapedType.get_dynamic_size() in sizes:
        return False
    summed = {loop for loops in of for loop in loops} - {*of[2], None}
    element = ir.RankedTensorType(op.results[0].type).element_type
    for number in (0, 1):
        loops, array = of[number], tensor_elements(op.operands[number], constants)
        if array is None or ir.RankedTensorType(op.operands[number].type).element_type != element:
            continue
        shape = dict(zip(loops, array.shape, strict=True))
        if not {*summed, *channels} <= set(loops) or math.prod(shape[loop] for loop in summed) > _MOST_STEPS:
            continue
        order = sorted(range(len(channels)), key=lambda each: loops.index(channels[each]))
        factors = np.transpose(chain.scale.reshape(sizes), order)
        with np.errstate(all="ignore"):
            exact = array * factors.reshape([shape[loop] if loop in channels else 1 for loop in loops])
            if _is_normal(exact, array.dtype):
                op.operands[number] = constant_tensor(op, exact.astype(array.dtype), element, constants)
                return True
    return False


def _rewrite(chain: _Chain, scale: Any, shift: Any, constants: ConstantTable) -> Any:
    """The operation with the steps replaced by a product and a sum, each if there is one, and without inputs that
    nobody reads."""
    op, block = chain.op, mlir_util.entry_block(chain.op)
    inputs = range(len(op.operands) - len(op.results))
    element = chain.last.type
    operands, maps = list(op.operands), list(ir.ArrayAttr(op.attributes["indexing_maps"]))
    count = len(ir.ArrayAttr(op.attributes["iterator_types"]))
    build = mlir_util.Builder(chain.steps[0])
    made = block.arguments[chain.number]
    for name, value in (("arith.mulf", scale), ("arith.addf", shift)):
        if value is not None:
            loops = _loops_of(value)
            array = np.asarray(value, DTYPES[str(element)]).reshape([np.shape(value)[loop] for loop in loops])
            index = [ir.AffineDimExpr.get(loop, op.context) for loop in loops]
            operands.append(constant_tensor(op, array, element, constants))
            maps.append(ir.AffineMapAttr.get(ir.AffineMap.get(count, 0, index, op.context)))
            made = build.value(name, [made, block.add_argument(element, op.location)], element)
    chain.last.replace_all_uses_with(made)
    for step in reversed(mlir_util.children(op)[:-1]):
        if not any(True for result in step.results for _ in result.uses):
            step.erase()
    results = range(len(inputs), len(op.operands))
    for number in results:  # behind what is read
        old = block.arguments[number]
        old.replace_all_uses_with(block.add_argument(old.type, op.location))
    used = [number for number in inputs if any(True for _ in block.arguments[number].uses)]
    order = [*used, *range(len(op.operands), len(operands)), *results]
    for number in reversed(range(len(op.operands))):
        if number not in used:
            block.erase_argument(number)
    attributes = dict(op.attributes.items())
    attributes["indexing_maps"] = ir.ArrayAttr.get([maps[number] for number in order])
    groups = [operands[number] for number in order]
    split = len(order) - len(results)
    new = mlir_util.Builder(op).grouped(
        op.name, [groups[:split], groups[split:]], [value.type for value in op.results], attributes, regions=1
    )
    block.append_to(new.regions[0])
    mlir_util.replace_op(op, new.results)
    return new
