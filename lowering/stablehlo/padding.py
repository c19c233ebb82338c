"""``stablehlo.pad`` of dynamic extents."""

from typing import Any

from devscope.lowering.stablehlo.templates import commas, element, expand, extents_of, fold_empty, integers, shape
from devscope.lowering.stablehlo.windows import padded_extent


def expand_pad(op: Any) -> None:
    """Of dynamic extents upstream pads at the edges alone, and by no less than nothing."""
    amounts = [integers(op, name) for name in ("edge_padding_low", "edge_padding_high", "interior_padding")]
    types = [value.type for value in (*op.operands, *op.results)]
    if fold_empty(op) or all(type_.has_static_shape for type_ in types):
        return
    if min(amounts[0] + amounts[1]) >= 0:
        if any(amounts[2]):
            _put_into_padding(op, *amounts)
        return
    kind = f"tensor<{len(amounts[0])}xi64>"
    lines = [f"%c{n} = stablehlo.constant dense<{numbers}> : {kind}" for n, numbers in enumerate(amounts)]
    lines.append(
        f"%r = stablehlo.dynamic_pad %0, %1, %c0, %c1, %c2 : "
        f"({types[0]}, {types[1]}, {commas([kind] * 3)}) -> {types[2]}"
    )
    expand(op, "\n".join([*lines, f'"devscope.return"(%r) : ({types[2]}) -> ()']))


def _put_into_padding(op: Any, low: list[int], high: list[int], holes: list[int]) -> None:
    """What kernels of convolutions read without the padding."""
    source, result = op.operands[0].type, op.results[0].type
    extents, rank = shape(source), range(len(low))
    lines = ["%zero = arith.constant 0 : index", "%one = arith.constant 1 : index"]
    extents_of(lines.append, "n", "%0", source)
    wide = [f"%n{axis}" for axis in rank]
    for axis in rank:
        if low[axis] or high[axis] or holes[axis]:
            for name, amount in (("p", low[axis]), ("high", high[axis]), ("h", holes[axis] + 1)):
                lines.append(f"%{name}{axis} = arith.constant {amount} : index")
            padded_extent(lines.append, axis, f"%n{axis}")
            wide[axis] = f"%padded{axis}"
    sizes = commas(wide[axis] for axis in rank if shape(result)[axis] < 0)
    here = commas(f"%n{axis}" if extents[axis] < 0 else extents[axis] for axis in rank)
    steps = [hole + 1 for hole in holes]
    lines += [
        f"%other = tensor.extract %1[] : {op.operands[1].type}",
        f"%room = tensor.empty({sizes}) : {result}",
        f"%full = linalg.fill ins(%other : {element(result)}) outs(%room : {result}) -> {result}",
    ]
    if 0 not in extents:  # of nothing the verifier says that it is put behind the end
        lines.append(f"%r = tensor.insert_slice %0 into %full{low} [{here}] {steps} : {source} into {result}")
    lines.append(f'"devscope.return"(%{"r" if 0 not in extents else "full"}) : ({result}) -> ()')
    expand(op, "\n".join(lines))
