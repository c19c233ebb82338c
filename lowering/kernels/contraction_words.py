"""Contractions of 16 and 8 bits by instructions that multiply and add up several steps of k at once.

What these steps have of a line of A or B is packed as a word of 32 bits. Panels are of words, and so are steps
of k in a kernel's inner loop.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

_LANES = 16
_WIDE = f"vector<{_LANES}xi32>"


@dataclass(frozen=True)
class Words:
    """``steps``: elements of a word. ``instruction``: LLVM's, which adds products of words of A and of B to sums.
    ``instructions``: the processor's that it is one of, as rows of schedules say it."""

    element: str
    sum: str
    steps: int
    instructions: str
    instruction: str


WORD = "i32"
"""What panels are of."""

BYTES = "i8"
"""The instruction multiplies signed bytes by unsigned ones. Those of A become the other kind by their first bits:
128 more or less than they were, so that sums begin with as many times those of B."""

_SIGNS = -0x7F7F7F80
"""The first bits of four bytes."""

_BRAIN = "bf16"

_SAFE = 142
"""The instruction for bf16 makes subnormal numbers 0. There are none on the way where exponents of A and B, as
they are stored, have this sum at least: all products, and so all sums, are then multiples of 2^-126."""

_ROUND = "llvm.x86.avx512bf16.cvtneps2bf16.512"

WORDS: Mapping[str, Words] = {
    words.element: words
    for words in (
        Words(_BRAIN, "f32", 2, "avx512_bf16", "llvm.x86.avx512bf16.dpbf16ps.512"),
        Words(BYTES, "i32", 4, "avx512_vnni", "llvm.x86.avx512.vpdpbusd.512"),
    )
}
"""By the element that rows of schedules for them say."""


def words_of(a: str, b: str, sums: str) -> Words | None:
    """For operands and sums of these types."""
    words = WORDS.get(a)
    return words if words is not None and (a, sums) == (b, words.sum) else None


def problem_of(template: str, element: str, instructions: str | None, numbers: Mapping[str, int]) -> str | None:
    """Why no kernel of words can be made with a row that says so, whose numbers are legal by themselves."""
    words = WORDS.get(element)
    if template not in ("contraction", "convolution") or words is None:
        return None
    if instructions != words.instructions:
        return f'element {element} needs instructions = "{words.instructions}"'
    steps = {"columns": _LANES}
    if template == "contraction":
        steps |= {"depth": words.steps, "steps": words.steps}
    return next(
        (
            f"numbers.{name} must be a multiple of {of} for {element}"
            for name, of in steps.items()
            if numbers[name] % of
        ),
        None,
    )


def to_words(to: str, value: str, words: Words, is_a: bool, count: int) -> str:
    """``value``, a vector of elements of A or of B, those of a word side by side, as ``count`` words."""
    wide, narrow = f"vector<{count}x{WORD}>", f"vector<{count * words.steps}x{words.element}>"
    if words.element != BYTES or not is_a:
        return f"{to} = vector.bitcast {value} : {narrow} to {wide}"
    return f"""{to}_plain = vector.bitcast {value} : {narrow} to {wide}
        {to}_signs = arith.constant dense<{_SIGNS}> : {wide}
        {to} = arith.xori {to}_plain, {to}_signs : {wide}"""


def in_words(lines: np.ndarray[Any, Any], words: Words, is_a: bool) -> np.ndarray[Any, Any]:
    """The elements of the last axis as words, of zeros behind the last one."""
    *shape, steps = lines.shape
    whole = np.zeros((*shape, -(-steps // words.steps) * words.steps), lines.dtype)
    whole[..., :steps] = lines
    return whole.view(np.int32) ^ np.int32(_SIGNS if words.element == BYTES and is_a else 0)


def _add(words: Words, is_unsigned: bool, sums: str, a: str, b: str, to: str) -> str:
    """``to``: sums of 16 lines, with the products of their words added."""
    narrow, type_ = f"vector<{_LANES * words.steps}x{words.element}>", f"vector<{_LANES}x{words.sum}>"
    one, other = (b, a) if is_unsigned else (a, b)
    return f"""{to}_one = vector.bitcast {one} : {_WIDE} to {narrow}
        {to}_other = vector.bitcast {other} : {_WIDE} to {narrow}
        {to} = llvm.call_intrinsic "{words.instruction}"({sums}, {to}_one, {to}_other)
          : ({type_}, {narrow}, {narrow}) -> {type_}"""


def round_sums(to: str, sums: str, columns: int) -> str:
    """``sums``, a vector of so many, as bf16: by the instruction for that where none can be subnormal."""
    line, short = f"vector<{columns}xf32>", f"vector<{columns}x{_BRAIN}>"
    part, half = f"vector<{_LANES}xf32>", f"vector<{_LANES}x{_BRAIN}>"
    text, made = list[str](), f"{to}_unset"
    for at in range(0, columns, _LANES):
        text += [
            _slice(f"{to}_sums{at}", sums, at, columns, "f32"),
            f'{to}_half{at} = llvm.call_intrinsic "{_ROUND}"({to}_sums{at}) : ({part}) -> {half}',
            f"{to}_to{at} = vector.insert_strided_slice {to}_half{at}, {made} "
            f"{{offsets = [{at}], strides = [1]}} : {half} into {short}",
        ]
        made = f"{to}_to{at}"
    lines = "\n".join(text)
    return f"""{to}_has_none = arith.andi %is_first, %is_safe : i1
        {to} = scf.if {to}_has_none -> ({short}) {{
          {to}_unset = ub.poison : {short}
          {lines}
          scf.yield {made} : {short}
        }} else {{
          {to}_exact = arith.truncf {sums} : {line} to {short}
          scf.yield {to}_exact : {short}
        }}"""


class SumsOfWords(NamedTuple):
    """Text of a kernel: before it goes through panels of B, and before it goes through those of A; ``%sums``."""

    before_columns: str
    before_rows: str
    text: str


def sums_of_words(
    words: Words,
    is_unsigned: bool,
    rows: int,
    columns: int,
    loop: Callable[[str, str], str],
    panel_of_a: str,
    read_a: str,
    read_b: str,
) -> SumsOfWords:
    """``loop``: that through k, of what sums begin with and the text that makes ``%more`` of ``%so_far``."""
    products = multiply_words(words, is_unsigned, rows, columns)
    if words.element == BYTES:
        begin = _begin_of_bytes(rows, columns, read_b, is_unsigned)
        return SumsOfWords("", begin, f"%sums = {loop('%begin', products)}")
    block = f"vector<{rows}x{columns}x{words.sum}>"
    text = f"""%sums = scf.if %is_safe -> ({block}) {{
          %sums_at_once = {loop("%zeros", products)}
          scf.yield %sums_at_once : {block}
        }} else {{
          %sums_apart = {loop("%zeros", multiply_apart(rows, columns))}
          scf.yield %sums_apart : {block}
        }}"""
    return SumsOfWords(_exponents_of_a(panel_of_a, rows, read_a), _exponents_of_b(columns, read_b), text)


def multiply_words(words: Words, is_unsigned: bool, rows: int, columns: int) -> str:
    """``%more``: ``%so_far``, with the products of ``%a`` and ``%b_row``, which are words, added."""
    block, line = f"vector<{rows}x{columns}x{words.sum}>", f"vector<{columns}x{words.sum}>"
    part = f"vector<{_LANES}x{words.sum}>"
    text = [_slice(f"%b_part{at}", "%b_row", at, columns, WORD) for at in range(0, columns, _LANES)]
    before = "%so_far"
    for row in range(rows):
        text += [
            f"%a_word{row} = vector.extract %a[{row}] : {WORD} from vector<{rows}x{WORD}>",
            f"%a_all{row} = vector.broadcast %a_word{row} : {WORD} to {_WIDE}",
            f"%line{row} = vector.extract %so_far[{row}] : {line} from {block}",
        ]
        made = f"%line{row}"
        for at in range(0, columns, _LANES):
            name = f"{row}_{at}"
            text += [
                _slice(f"%held{name}", f"%line{row}", at, columns, words.sum),
                _add(words, is_unsigned, f"%held{name}", f"%a_all{row}", f"%b_part{at}", f"%added{name}"),
                f"%line{name} = vector.insert_strided_slice %added{name}, {made} "
                f"{{offsets = [{at}], strides = [1]}} : {part} into {line}",
            ]
            made = f"%line{name}"
        after = "%more" if row == rows - 1 else f"%after{row}"
        text.append(f"{after} = vector.insert {made}, {before} [{row}] : {line} into {block}")
        before = after
    return "\n".join(text)


def multiply_apart(rows: int, columns: int) -> str:
    """`multiply_words` for words of bf16 as f32, one half after the other."""
    text: list[str] = []
    for name, value, count in (("a", "%a", rows), ("b", "%b_row", columns)):
        wide, floats = f"vector<{count}x{WORD}>", f"vector<{count}xf32>"
        text += [
            f"%{name}_half = arith.constant dense<16> : {wide}",
            f"%{name}_mask = arith.constant dense<-65536> : {wide}",
            f"%{name}_low = arith.shli {value}, %{name}_half : {wide}",
            f"%{name}_high = arith.andi {value}, %{name}_mask : {wide}",
            f"%{name}_first = arith.bitcast %{name}_low : {wide} to {floats}",
            f"%{name}_second = arith.bitcast %{name}_high : {wide} to {floats}",
        ]
    types = f"vector<{rows}xf32>, vector<{columns}xf32>"
    return "\n".join(
        [
            *text,
            f"%once = vector.outerproduct %a_first, %b_first, %so_far : {types}",
            f"%more = vector.outerproduct %a_second, %b_second, %once : {types}",
        ]
    )


def _begin_of_bytes(rows: int, columns: int, read_b: str, is_unsigned: bool) -> str:
    """``%begin``: what sums begin with, -128 or 128 times those of a panel of B."""
    line, words = f"vector<{columns}xi32>", WORDS[BYTES]
    made, text = "%unset", list[str]()
    for at in range(0, columns, _LANES):
        text += [
            _slice(f"%b_part{at}", "%b_row", at, columns, WORD),
            _slice(f"%held{at}", "%of_signs", at, columns, WORD),
            _add(words, is_unsigned, f"%held{at}", "%signs", f"%b_part{at}", f"%added{at}"),
            f"%line{at} = vector.insert_strided_slice %added{at}, {made} {{offsets = [{at}], strides = [1]}} "
            f": {_WIDE} into {line}",
        ]
        made = f"%line{at}"
    steps = "\n".join(text)
    return f"""%signs = arith.constant dense<{_SIGNS}> : {_WIDE}
        %unset = ub.poison : {line}
        %sums_of_signs = scf.for %k = %0 to %turns step %1 iter_args(%of_signs = %no_sums) -> ({line}) {{
          {read_b}
          {steps}
          scf.yield {made} : {line}
        }}
        %begin_line = arith.subi %no_sums, %sums_of_signs : {line}
        %begin = vector.broadcast %begin_line : {line} to vector<{rows}x{columns}xi32>"""


def _exponents_of_a(panel: str, rows: int, read_a: str) -> str:
    """``%a_exponent``: at most that of any number but 0 of all panels of a task."""
    return f"""%most_exponent = arith.constant 255 : i16
        %a_exponent = scf.for %i = %i_begin to %i_end step %rows iter_args(%lower = %most_exponent) -> (i16) {{
          %row = arith.addi %m0, %i : index
          {panel}
          {_least_exponent("panel", rows, read_a, "%a")}
          %lowest = arith.minui %lower, %panel_exponent : i16
          scf.yield %lowest : i16
        }}"""


def _exponents_of_b(columns: int, read_b: str) -> str:
    """``%is_safe``: whether no element of panels of A and B, and no sum of their products, can be subnormal."""
    return f"""{_least_exponent("b", columns, read_b, "%b_row")}
        {is_safe()}"""


def is_safe() -> str:
    """``%is_safe``, for the least exponents ``%a_exponent`` and ``%b_exponent`` of what is multiplied."""
    return f"""%exponents = arith.addi %a_exponent, %b_exponent : i16
        %least_safe = arith.constant {_SAFE} : i16
        %has_no_small_sums = arith.cmpi uge, %exponents, %least_safe : i16
        %lesser = arith.minui %a_exponent, %b_exponent : i16
        %of_subnormal = arith.constant 0 : i16
        %has_no_small_elements = arith.cmpi ne, %lesser, %of_subnormal : i16
        %is_safe = arith.andi %has_no_small_sums, %has_no_small_elements : i1"""


def _least_exponent(name: str, count: int, read: str, value: str) -> str:
    """``%NAME_exponent`` of a panel, whose steps ``read`` has as ``value``. That of a power of two is one less."""
    wide, halves = f"vector<{count}x{WORD}>", f"vector<{2 * count}xi16>"
    return f"""%{name}_ones = arith.constant dense<1> : {halves}
        %{name}_largest = arith.constant dense<-1> : {halves}
        %{name}_all = scf.for %k = %0 to %turns step %1 iter_args(%least = %{name}_largest) -> ({halves}) {{
          {read}
          %halves = vector.bitcast {value} : {wide} to {halves}
          %no_sign = arith.shli %halves, %{name}_ones : {halves}
          %no_zero = arith.subi %no_sign, %{name}_ones : {halves}
          %less = arith.minui %least, %no_zero : {halves}
          scf.yield %less : {halves}
        }}
        %{name}_bits = vector.reduction <minui>, %{name}_all : {halves} into i16
        %{name}_digits = arith.constant 8 : i16
        %{name}_exponent = arith.shrui %{name}_bits, %{name}_digits : i16"""


def _slice(to: str, value: str, at: int, columns: int, element: str) -> str:
    return (
        f"{to} = vector.extract_strided_slice {value} {{offsets = [{at}], sizes = [{_LANES}], strides = [1]}} "
        f": vector<{columns}x{element}> to vector<{_LANES}x{element}>"
    )
