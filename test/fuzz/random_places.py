"""Windows of random programs: elements at computed places, some of which are outside and so not read.

Whole vectors of work-items compute places, those that read nothing too; extents are odd, so that vectors end
beyond them. What loops carry are sums of elements or places, which divisions take apart again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from random_values import Environment, Type

if TYPE_CHECKING:
    from random_program import Block, Generator

_GUARDS = {
    "unsigned": "{inside} = arith.cmpi ult, {at}, {size} : {type}",
    "signed": """{inside}a = arith.cmpi sge, {at}, {zero} : {type}
      {inside}b = arith.cmpi sgt, {size}, {at} : {type}
      {inside} = arith.andi {inside}a, {inside}b : i1""",
    "least": """{inside}a = arith.minui {at}, {last} : {type}
      {inside} = arith.cmpi eq, {inside}a, {at} : {type}""",
}
_STEPS = {
    "sum": "%.new = arith.addi %.old, %.element : i64",
    "place": """%.less = arith.cmpi slt, %.element, %.none : i64
      %.new = arith.select %.less, %.number, %.old : i64""",
    "branch": """%.less = arith.cmpi slt, %.element, %.none : i64
      %.new = scf.if %.less -> i64 {
        %.more = arith.addi %.old, %.number : i64
        scf.yield %.more : i64
      } else {
        %.other = tensor.extract %.x[%.ch] : tensor<%.lengthxi64>
        %.both = arith.xori %.old, %.other : i64
        scf.yield %.both : i64
      }""",
    "best": """%.first = arith.cmpi slt, %.old, %.none : i64
      %.new = scf.if %.first -> i64 {
        scf.yield %.number : i64
      } else {
        %.q = arith.index_cast %.old : i64 to index
        %.y2 = arith.remui %.q, %.channels : index
        %.z2 = arith.divui %.q, %.channels : index
        %.y1 = arith.remui %.z2, %.width : index
        %.y0 = arith.divui %.z2, %.width : index
        %.t0 = arith.muli %.y0, %.width : index
        %.t1 = arith.addi %.t0, %.y1 : index
        %.t2 = arith.muli %.t1, %.channels : index
        %.t3 = arith.addi %.t2, %.y2 : index
        %.was = tensor.extract %.x[%.t3] : tensor<%.lengthxi64>
        %.keep = arith.cmpi sge, %.was, %.element : i64
        %.chosen = arith.select %.keep, %.old, %.number : i64
        scf.yield %.chosen : i64
      }""",
}
"""What becomes of ``%.old``, which loops carry, at a place that is inside: ``%.number``."""


def windows(g: Generator, block: Block) -> None:
    """A generic whose body goes over a window of a tensor, from one that is made for it on."""
    rows, columns, channels = g.integer(1, 21), g.integer(1, 70), g.pick((1, 2, 3, 4, 8, 8))
    counts = (g.integer(1, 4), g.integer(1, 4))
    scales = (g.integer(1, 3), g.pick((1, 1, 2, 2, 3, -1, -2)))
    begins = tuple(g.integer(-3, 2) + (0 if scale > 0 else columns) for scale in scales)
    height, width = (
        max(1, extent * abs(scale) - g.integer(-2, 4))
        for extent, scale in zip((rows, columns), scales, strict=True)
    )
    kind, guard, type_ = g.pick([*_STEPS]), g.pick([*_GUARDS]), g.pick(("index", "index", "i64", "i32"))
    length = height * width * channels
    x = _elements(g, block, length)
    extents = (rows, columns, channels) if g.chance(0.5) else (rows, columns)
    result, rank = Type("i64", extents), len(extents)
    out = g.empty(block, result)
    numbers = {"zero": 0, "height": height, "width": width, "channels": channels, "lastheight": height - 1,
               "lastwidth": width - 1, "scale0": scales[0], "scale1": scales[1], "begin0": begins[0],
               "begin1": begins[1]}  # fmt: skip
    lines = [f"%.{name}_ = arith.constant {number} : {type_}" for name, number in numbers.items()]
    lines += [f"%.{name} = arith.constant {numbers[name]} : index" for name in ("width", "channels")]
    initial = -1 if kind == "best" else 0
    lines += ["%.none = arith.constant 0 : i64", f"%.initial = arith.constant {initial} : i64"]
    for dim, name in enumerate(("row", "column", "ch")):
        lines.append(
            f"%.{name} = linalg.index {dim} : index" if dim < rank else f"%.{name} = arith.constant 0 : index"
        )
        lines += _cast(f"%.{name}_", f"%.{name}", "index", type_)
    for axis, name in enumerate(("row", "column")):
        lines.append(f"%.scaled{axis} = arith.muli %.{name}_, %.scale{axis}_ : {type_}")
        lines.append(f"%.from{axis} = arith.addi %.scaled{axis}, %.begin{axis}_ : {type_}")
        lines.append(f"%.count{axis} = arith.constant {counts[axis]} : index")
    lines.append("%.r = scf.for %.k0 = %c0 to %.count0 step %c1 iter_args(%.carried = %.initial) -> i64 {")
    lines.append("%.s = scf.for %.k1 = %c0 to %.count1 step %c1 iter_args(%.old = %.carried) -> i64 {")
    for axis, (extent, name) in enumerate((("height", "high"), ("width", "wide"))):
        lines += _cast(f"%.k{axis}_", f"%.k{axis}", "index", type_)
        lines.append(f"%.at{axis} = arith.addi %.from{axis}, %.k{axis}_ : {type_}")
        names = {"inside": f"%.{name}", "at": f"%.at{axis}", "size": f"%.{extent}_", "last": f"%.last{extent}_"}
        lines.append(_GUARDS[guard].format(zero="%.zero_", type=type_, **names))
    lines += [
        "%.inside = arith.andi %.high, %.wide : i1",
        f"%.p0 = arith.muli %.at0, %.width_ : {type_}",
        f"%.p1 = arith.addi %.p0, %.at1 : {type_}",
        f"%.p2 = arith.muli %.p1, %.channels_ : {type_}",
        f"%.p3 = arith.addi %.p2, %.ch_ : {type_}",
        "%.t = scf.if %.inside -> i64 {",
        *_cast("%.place", "%.p3", type_, "index"),
        "%.number = arith.index_cast %.place : index to i64",
        f"%.element = tensor.extract {x}[%.place] : tensor<{length}xi64>",
        _STEPS[kind].replace("%.x[", f"{x}[").replace("%.length", str(length)),
        "scf.yield %.new : i64\n    } else {\n      scf.yield %.old : i64\n    }",
        "scf.yield %.t : i64\n    }\n    scf.yield %.s : i64\n    }",
    ]
    prefix = g.name() + "_"
    dims = ", ".join("ijk"[:rank])
    kinds = ", ".join(['"parallel"'] * rank)
    text = (
        f"linalg.generic {{indexing_maps = [affine_map<({dims}) -> ({dims})>], iterator_types = [{kinds}]}}\n"
        f"    outs({out} : {result}){g.scope(prefix=' attrs =')} {{\n  ^bb0(%.o: i64):\n    "
        + "\n    ".join(lines)
        + f"\n    linalg.yield %.r : i64\n  }} -> {result}"
    )

    def run(e: Environment) -> Any:
        row, column, *others = np.indices(extents)
        channel = others[0] if others else 0
        data = np.asarray(e[x])
        old = np.full(extents, initial, np.int64)
        for k in range(counts[0]):
            for m in range(counts[1]):
                high, wide = row * scales[0] + begins[0] + k, column * scales[1] + begins[1] + m
                inside = (high >= 0) & (high < height) & (wide >= 0) & (wide < width)
                place = np.where(inside, (high * width + wide) * channels + channel, 0)
                old = np.where(inside, _step(kind, data, place, old, channel), old)
        return old

    g.emit(block, result, text.replace("%.", prefix), run)


def _step(kind: str, data: Any, place: Any, old: Any, channel: Any) -> Any:
    element = data[place]
    match kind:
        case "sum":
            return old + element
        case "place":
            return np.where(element < 0, place, old)
        case "branch":
            return np.where(element < 0, old + place, old ^ data[channel])
        case _:
            return np.where((old >= 0) & (data[np.maximum(old, 0)] >= element), old, place)


def _cast(name: str, value: str, source: str, target: str) -> list[str]:
    if source == target:
        return [f"{name} = arith.ori {value}, {value} : {source}"]
    return [f"{name} = arith.index_cast {value} : {source} to {target}"]


def _elements(g: Generator, block: Block, length: int) -> str:
    """A tensor of small numbers of either sign."""
    i, factor, modulus, middle, last = (g.name() for _ in range(5))
    lines = (
        f"{factor} = arith.constant 7919 : index",
        f"{modulus} = arith.constant 101 : index",
        f"{middle} = arith.constant 50 : i64",
        f"{i}a = arith.muli {i}, {factor} : index",
        f"{i}b = arith.remui {i}a, {modulus} : index",
        f"{i}c = arith.index_cast {i}b : index to i64",
        f"{last} = arith.subi {i}c, {middle} : i64",
        f"tensor.yield {last} : i64",
    )
    type_ = Type("i64", (length,))
    text = f"tensor.generate {{\n  ^bb0({i}: index):\n    " + "\n    ".join(lines) + f"\n  }}{g.scope()} : {type_}"
    return g.emit(block, type_, text, lambda _: np.arange(length) * 7919 % 101 - 50)
