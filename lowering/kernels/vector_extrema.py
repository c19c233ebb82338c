"""Extrema of floats along a loop, by vectors of their bits as integers: three instructions for each, not six.

Numbers that are not negative are in the order of their bits, negative ones in the opposite order. So an extremum
is the largest or least of all bits, with a sign or without; where there is a NaN, one of these is a NaN as well.
"""

from collections.abc import Sequence
from typing import Any

from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.nest import Nest
from devscope.lowering.kernels.nest_bodies import combiners, neutral
from devscope.lowering.kernels.vector_bodies import as_vector, compare, vector_of
from devscope.lowering.kernels.vector_loops import Indices, Loaded, VectorLoop, across
from devscope.lowering.mlir_util import Builder

_EXTREMA = ("arith.maximumf", "arith.minimumf")
_OF_BITS = ("maxsi", "minui", "maxui")
_SIGNED_LESS, _SIGNED_GREATER, _GREATER = 2, 4, 8
_WIDE_REGISTER = 64
"""Bytes of those that have extrema of integers of 64 bits."""


def are_extrema(nest: Nest, lanes: int) -> bool:
    """Whether a nest has no other results, of types whose bits have extrema in vectors."""
    types = [str(ir.MemRefType(result.value.type).element_type) for result in nest.results]
    known = {"f32"} if lanes * 8 < _WIDE_REGISTER else {"f32", "f64"}
    return known.issuperset(types) and all(op is not None and op.name in _EXTREMA for op in combiners(nest.op))


class ExtremumLoop(VectorLoop):
    """The reduction of a nest of which `are_extrema` holds."""

    def _first(self, build: Builder, carried: Sequence[Any]) -> list[Any]:
        return [as_vector(build, bits, self._lanes) for value in carried for bits in [_bits(build, value)] * 3]

    def _add(self, build: Builder, here: Indices, loaded: Loaded, old: Sequence[Any], mask: Any) -> list[Any]:
        arguments = self._arguments[self._nest.inputs :]
        numbers = [
            op.operands[int(op.operands[0] == old)] for op, old in zip(self._combiners, arguments, strict=True)
        ]
        unused = self._neutral(build, [argument.type for argument in arguments])
        found = self._values_of(build, numbers, here, loaded, unused, mask)
        return self._combine(build, old, [bits for value in found for bits in [_bits(build, value)] * 3])

    def _combine(self, build: Builder, left: Sequence[Any], right: Sequence[Any]) -> list[Any]:
        return [
            build.value(f"arith.{_OF_BITS[number % 3]}", pair, pair[0].type)
            for number, pair in enumerate(zip(left, right, strict=True))
        ]

    def _last(self, build: Builder, sums: Sequence[Any], carried: Sequence[Any]) -> list[Any]:
        made: list[Any] = []
        for number, (op, value) in enumerate(zip(self._combiners, carried, strict=True)):
            bits = _bits(build, value)
            most, least, most_negative = (
                across(build, name, vector, bits)
                for name, vector in zip(_OF_BITS, sums[number * 3 : number * 3 + 3], strict=True)
            )
            is_max, zero = op.name == "arith.maximumf", build.constant(0, bits.type)
            infinity = _bits(build, neutral(build, op.name, value.type))
            if is_max:  # a negative NaN is the only one that is not the largest
                other = compare(build, "arith.cmpi", _SIGNED_LESS, most, zero)
                found = build.value("arith.select", [other, least, most], bits.type)
                broken, nan = compare(build, "arith.cmpi", _GREATER, most_negative, infinity), most_negative
            else:
                other = compare(build, "arith.cmpi", _SIGNED_LESS, most_negative, zero)
                found = build.value("arith.select", [other, most_negative, least], bits.type)
                broken, nan = compare(build, "arith.cmpi", _SIGNED_GREATER, most, infinity), most
            found = build.value("arith.select", [broken, nan, found], bits.type)
            made.append(build.value("arith.bitcast", [found], value.type))
        return made


def _bits(build: Builder, value: Any) -> Any:
    is_vector = isinstance(value.type, ir.VectorType)
    width = ir.FloatType(ir.VectorType(value.type).element_type if is_vector else value.type).width
    integer = ir.IntegerType.get_signless(width, value.context)
    type_ = vector_of(ir.VectorType(value.type).shape[0], integer) if is_vector else integer
    return build.value("arith.bitcast", [value], type_)
