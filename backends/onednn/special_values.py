"""What oneDNN computes otherwise than the program says, for NaNs and infinities: code that runs after it."""

from __future__ import annotations

from collections.abc import Sequence

from devscope.backends.onednn.api import Size, Text

_WIDE = 16


def relu(operand: int, sizes: Sequence[Size], text: Text) -> None:
    """The greater of each number and 0, or NaN: oneDNN's gives 0 for that."""
    count = text.number(1)
    for size in sizes:
        count = text.new(f"arith.muli {count}, {text.size(size)} : i64")
    wide = text.number(_WIDE)
    whole = text.new(f"arith.muli {text.new(f'arith.divsi {count}, {wide} : i64')}, {wide} : i64")
    zero, data = text.number(0), text.data(operand)
    _relu(text, data, (zero, whole, wide), f"vector<{_WIDE}xf32>", "dense<0.0>")
    _relu(text, data, (whole, count, text.number(1)), "f32", "0.0")


def _relu(text: Text, data: str, bounds: tuple[str, str, str], type_: str, zero: str) -> None:
    start, end, step = bounds
    least = text.new(f"arith.constant {zero} : {type_}")
    index = text.fresh()
    text.line(f"scf.for {index} = {start} to {end} step {step} : i64 {{")
    place = text.new(f"llvm.getelementptr {data}[{index}] : (!llvm.ptr, i64) -> !llvm.ptr, f32")
    value = text.new(f"llvm.load {place} {{alignment = 4 : i64}} : !llvm.ptr -> {type_}")
    value = text.new(f"arith.maximumf {value}, {least} : {type_}")
    text.line(f"llvm.store {value}, {place} {{alignment = 4 : i64}} : {type_}, !llvm.ptr")
    text.line("}")


def spread_nans(operand: int, rank: int, axis: int, text: Text) -> None:
    """A NaN among the results of softmax along an axis is that of all there: oneDNN's are so where the NaN or the
    infinity was."""
    type_, zero, one = text.types[operand], text.number(0, "index"), text.number(1, "index")
    ends = [text.new(f"memref.dim %a{operand}, {text.number(n, 'index')} : {type_}") for n in range(rank)]
    none = text.real(0.0)
    order = [*(other for other in range(rank) if other != axis), axis]
    index = {at: text.fresh() for at in order}
    place = f"%a{operand}[{', '.join(index[at] for at in range(rank))}] : {type_}"
    for at in order[:-1]:
        text.line(f"scf.for {index[at]} = {zero} to {ends[at]} step {one} {{")
    found, before = text.fresh(), text.fresh()
    along = f"scf.for {index[axis]} = {zero} to {ends[axis]} step {one}"
    text.line(f"{found} = {along} iter_args({before} = {none}) -> (f32) {{")
    total = text.new(f"arith.addf {before}, {text.new(f'memref.load {place}')} : f32")
    text.line(f"scf.yield {total} : f32\n}}")
    with text.when(text.new(f"arith.cmpf uno, {found}, {found} : f32")):
        text.line(f"{along} {{\nmemref.store {found}, {place}\n}}")
    text.line("}\n" * (rank - 1))
