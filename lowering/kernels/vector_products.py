"""Products of floats along a loop, by vectors; done again in order where the result is not finite.

In any order, a part that overflows and one that is 0 make NaN of what is 0 in its order, and an infinity of what a
small part comes before. A finite product had no such part.
"""

from collections.abc import Sequence
from typing import Any

from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.control_flow import for_loop, if_else
from devscope.lowering.kernels.nest import Nest
from devscope.lowering.kernels.nest_bodies import PRODUCT, clone_body, combiners
from devscope.lowering.kernels.vector_bodies import compare
from devscope.lowering.kernels.vector_loops import Indices, Loaded, VectorLoop
from devscope.lowering.mlir_util import Builder

_UNORDERED = 14


def are_products(nest: Nest) -> bool:
    """Whether a nest has no other results."""
    types = [ir.MemRefType(result.value.type).element_type for result in nest.results]
    found = combiners(nest.op, (PRODUCT,))
    return all(op is not None and op.name == PRODUCT for op in found) and all(
        isinstance(type_, ir.F32Type | ir.F64Type) for type_ in types
    )


class ProductLoop(VectorLoop):
    """The reduction of a nest of which `are_products` holds."""

    def __init__(self, nest: Nest, loop: int, lanes: int, used: Sequence[bool]) -> None:
        super().__init__(nest, loop, lanes, used)
        self._combiners = combiners(nest.op, (PRODUCT,))

    def reduce(
        self, build: Builder, bounds: tuple[Any, Any], indices: Indices, loaded: Loaded, carried: Sequence[Any]
    ) -> list[Any]:
        found = super().reduce(build, bounds, indices, loaded, carried)
        broken: Any = None
        for value in found:  # what is not finite has no difference to itself
            none = build.value("arith.subf", [value, value], value.type)
            is_nan = compare(build, "arith.cmpf", _UNORDERED, none, none)
            broken = is_nan if broken is None else build.value("arith.ori", [broken, is_nan], is_nan.type)

        def point(inside: Builder, index: Any, values: list[Any]) -> list[Any]:
            here = {**indices, self._loop: index}
            mapping = {self._arguments[number]: value for number, value in loaded.items()}
            for number, operand in enumerate(self._nest.operands[: self._nest.inputs]):
                if self._used[number] and number not in loaded:
                    argument = self._arguments[number]
                    at = [here[loop] for loop in operand.dims]
                    mapping[argument] = inside.value("memref.load", [operand.value, *at], argument.type)
            mapping |= zip(self._arguments[self._nest.inputs :], values, strict=True)
            return clone_body(inside, self._nest.op, mapping, here, reassociate=False)

        def in_order(inside: Builder) -> list[Any]:
            return for_loop(inside, (*bounds, inside.constant(1)), list(carried), point)

        return if_else(build, broken, in_order, lambda _: found, [value.type for value in found])
