"""The one value that all elements of a constant have, and what products of matrices read transposed."""

from __future__ import annotations

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr
from xdsl.ir import Attribute, Operation, SSAValue

from devscope.analysis.patterns.elements import repetition
from devscope.dialects.names import op_name
from devscope.dialects.op_facts import facts_of


def splat_value(value: SSAValue) -> float | None:
    """What a scalar constant is, or every element of a tensor that is made from one; None if that is not known."""
    owner = value.owner
    while isinstance(owner, Operation):
        facts = facts_of(owner)
        if facts.fills:
            value = owner.operands[0]
        elif (repeated := repetition(owner)) is not None:
            value, _ = repeated
        elif facts.rematerialised and not owner.operands:
            number = owner.get_attr_or_prop("value")  # an integer's attribute is false if the number is 0
            return _splat(owner.get_attr_or_prop("values") if number is None else number)
        else:
            return None
        owner = value.owner
    return None


def _splat(attribute: Attribute | None) -> float | None:
    if isinstance(attribute, DenseIntOrFPElementsAttr):
        if len(attribute) == 0 or not attribute.is_splat():
            return None
        try:
            attribute = next(iter(attribute.iter_attrs()))
        except (NotImplementedError, StopIteration):  # elements that xDSL does not unpack
            return None
    if isinstance(attribute, IntegerAttr | FloatAttr):
        return float(attribute.value.data)
    return None


def transposes(product: Operation) -> tuple[bool, bool] | None:
    """Which factors a product of matrices itself reads transposed; None where its indexing maps are others."""
    maps = product.get_attr_or_prop("indexing_maps")
    if maps is None:
        return False, False
    found = [str(one.data) for one in getattr(maps, "data", ())]
    batch = 1 if op_name(product) == "linalg.batch_matmul" else 0
    dims = [f"d{number}" for number in range(batch + 3)]
    lead, (m, n, k) = dims[:batch], dims[batch:]

    def written(*results: str) -> str:
        return f"({', '.join(dims)}) -> ({', '.join([*lead, *results])})"

    if len(found) != 3 or found[2] != written(m, n):
        return None
    a = {written(m, k): False, written(k, m): True}.get(found[0])
    b = {written(k, n): False, written(n, k): True}.get(found[1])
    return None if a is None or b is None else (a, b)
