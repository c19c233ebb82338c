"""Stores of the first elements of vectors without masks, with which AVX2 takes several times as long."""

from collections.abc import Mapping
from itertools import accumulate


def parts(width: int) -> list[tuple[int, int]]:
    """The powers of two that ``width`` is the sum of, the largest first, behind where each begins."""
    sizes = [1 << bit for bit in reversed(range(width.bit_length())) if width & 1 << bit]
    return list(zip(accumulate(sizes, initial=0), sizes, strict=False))


def partial_store(
    value: str, size: int, width: int, to: str, places: Mapping[int, str], type_: str, of: str
) -> list[str]:
    """Lines that store the first ``width`` of ``size`` elements by `parts`, each at its place."""
    if width == size:
        return [f"vector.store {value}, {to}[{places[0]}] : {type_}, vector<{size}x{of}>"]
    text = list[str]()
    for begin, part in parts(width):
        text += [
            f"{value}_{begin} = vector.extract_strided_slice {value} {{offsets = [{begin}], sizes = [{part}], "
            f"strides = [1]}} : vector<{size}x{of}> to vector<{part}x{of}>",
            f"vector.store {value}_{begin}, {to}[{places[begin]}] : {type_}, vector<{part}x{of}>",
        ]
    return text
