"""Text that transposes as many vectors as each of them has elements."""

from collections.abc import Sequence

from devscope.lowering.kernels.index_text import IndexText


def transposed(text: IndexText, rows: Sequence[str], element: str) -> list[str]:
    """The columns of ``rows``: with an instruction for each of them in each step where they are a power of two."""
    size = len(rows)
    row = f"vector<{size}x{element}>"
    if size & (size - 1):
        square = f"vector<{size}x{row.removeprefix('vector<')}"
        all_ = text.define(f"vector.from_elements {', '.join(_elements(text, rows, row))} : {square}")
        turned = text.define(f"vector.transpose {all_}, [1, 0] : {square} to {square}")
        return [text.define(f"vector.extract {turned}[{number}] : {row} from {square}") for number in range(size)]
    names, half = list(rows), size // 2
    halves = [
        [place for lane in range(begin, begin + half) for place in (lane, size + lane)] for begin in (0, half)
    ]
    for _ in range(size.bit_length() - 1):
        # Rows i and i + size / 2 are interleaved: that is the first or the last half of a row of twice the size.
        names = [
            text.define(f"vector.shuffle {one}, {other} {places} : {row}, {row}")
            for one, other in zip(names[:half], names[half:], strict=True)
            for places in halves
        ]
    return names


def _elements(text: IndexText, rows: Sequence[str], type_: str) -> list[str]:
    element = type_.rpartition("x")[2].removesuffix(">")
    return [
        text.define(f"vector.extract {row}[{number}] : {element} from {type_}")
        for row in rows
        for number in range(len(rows))
    ]
