"""How sums end: they are added to what the result holds, go through the epilogue, are rounded and written.

Whole blocks may end in registers; others row by row, so that a kernel has the text for a row once, whatever the
block is.
"""

from collections.abc import Sequence

from devscope.lowering.kernels.contraction_match import Contraction
from devscope.lowering.kernels.contraction_operands import (
    CACHE_LINE,
    Extra,
    addition,
    element_bytes,
    extended,
    matrix_type,
    zero,
)
from devscope.lowering.kernels.contraction_words import round_sums
from devscope.lowering.kernels.epilogue import Epilogue
from devscope.lowering.kernels.table import Row

_FEW_STEPS = 12
"""Of an epilogue that is done to whole blocks of sums: the code of a longer one would be large."""


def prefetch(found: Contraction, rows: int, columns: int) -> str:
    """The lines of the result that a whole block is written to, while its sums are computed."""
    lines: list[str] = []
    elements, type_ = CACHE_LINE // element_bytes(found.c.element), matrix_type(found.c.element)
    for row in range(rows):
        lines += [f"%r{row} = arith.constant {row} : index", f"%row_of{row} = arith.addi %row, %r{row} : index"]
        for column in range(0, columns, elements):
            at = f"%at{row}_{column}"
            lines += [
                f"%c{row}_{column} = arith.constant {column} : index",
                f"{at} = arith.addi %column, %c{row}_{column} : index",
                f"memref.prefetch %C[%b, %row_of{row}, {at}], write, locality<3>, data : {type_}",
            ]
    return "\n".join(lines)


def _ends_whole(found: Contraction, follows: Epilogue | None, extras: Sequence[Extra]) -> bool:
    """Whether whole blocks of sums end in registers, also with the epilogue: one that is not unrolled to much."""
    if found.c.element != found.element:
        return False
    readable = all(extra.side_by_side or not extra.columns for extra in extras)
    return follows is None or (len(follows.steps) <= _FEW_STEPS and readable)


def is_plain(found: Contraction, follows: Epilogue | None, extras: Sequence[Extra]) -> str:
    """Whether whole blocks end in registers: at least those of sums to which more is added."""
    if found.c.element != found.element:
        return "%is_plain = arith.constant false"
    if _ends_whole(found, follows, extras):
        return "%is_plain = arith.constant true"
    return "%is_plain = arith.xori %is_last, %only : i1"


def end_of_block(found: Contraction, row: Row, follows: Epilogue | None, extras: Sequence[Extra]) -> str:
    """`end_of_row` for a whole block of sums."""
    if found.c.element != found.element:
        return ""
    rows, columns = row.numbers["rows"], row.numbers["columns"]
    type_, shape = matrix_type(found.element), f"{rows}x{columns}x"
    block, at, inside = f"vector<{shape}{found.element}>", "%C[%b, %row, %column]", "{in_bounds = [true, true]}"
    text = f"""%all_sums = scf.if %is_first -> ({block}) {{
          scf.yield %sums : {block}
        }} else {{
          %held = vector.transfer_read {at}, %nothing {inside} : {type_}, {block}
          %more_sums = {addition(found.element)} %sums, %held : {block}
          scf.yield %more_sums : {block}
        }}"""
    if follows is None or not _ends_whole(found, follows, extras):
        return f"{text}\nvector.transfer_write %all_sums, {at} {inside} : {block}, {type_}"
    lines = [_read_whole_extra(number, extra, rows, columns) for number, extra in enumerate(extras)]
    lines += [step.replace("$block", shape).replace("%sums", "%all_sums") for step in follows.steps]
    steps = "\n".join(lines)
    return f"""{text}
        %to_write = scf.if %is_last -> ({block}) {{
          {steps}
          scf.yield {follows.done.replace("%sums", "%all_sums")} : {block}
        }} else {{
          scf.yield %all_sums : {block}
        }}
        vector.transfer_write %to_write, {at} {inside} : {block}, {type_}"""


def _read_whole_extra(number: int, extra: Extra, rows: int, columns: int) -> str:
    """The elements of an operand of an epilogue for a whole block of sums."""
    name, block = f"%extra{number}", f"vector<{rows}x{columns}x{extra.element}>"
    if extra.columns:
        return f"""%pad{number} = arith.constant {zero(extra.element)} : {extra.element}
            %operand{number} = vector.transfer_read {name}[%b, %row, %column], %pad{number}
              {{in_bounds = [true, true]}} : {extra.kernel_type}, {block}"""
    text = [f"%x{number}_0 = ub.poison : {block}"]
    line = f"vector<{columns}x{extra.element}>"
    for row in range(rows):
        at = f"{number}_{row}"
        to = f"%operand{number}" if row == rows - 1 else f"%x{number}_{row + 1}"
        text += [
            f"%i{at} = arith.constant {row} : index",
            f"%j{at} = arith.addi %row, %i{at} : index",
            f"%e{at} = memref.load {name}[%b, %j{at}, %column] : {extra.kernel_type}",
            f"%l{at} = vector.broadcast %e{at} : {extra.element} to {line}",
            f"{to} = vector.insert %l{at}, %x{at} [{row}] : {line} into {block}",
        ]
    return "\n".join(text)


def end_of_row(found: Contraction, columns: int, follows: Epilogue | None, extras: Sequence[Extra]) -> str:
    """A row of sums, ``%part_sums``, is added to what the result holds and written: all sums with the epilogue."""
    of, result, type_ = found.element, found.c.element, matrix_type(found.c.element)
    line, written = f"vector<{columns}x{of}>", f"vector<{columns}x{result}>"
    read = f"%held = vector.transfer_read %C[%b, %at, %column], %nothing : {type_}, {written}"
    text = f"""%so_far_there = scf.if %is_first -> ({line}) {{
          scf.yield %no_sums : {line}
        }} else {{
          {read}
          {extended("%held_wide", "%held", result, found, f"{columns}")}
          scf.yield %held_wide : {line}
        }}
        %all_sums = {addition(of)} %part_sums, %so_far_there : {line}"""
    sums = "%all_sums"
    if result != of:
        plain = f"%rounded = arith.truncf {sums} : {line} to {written}"
        text += f"\n{plain if found.words is None else round_sums('%rounded', sums, columns)}"
        sums = "%rounded"
    place = f"%C[%b, %at, %column] : {written}, {type_}"
    write = f"""%end_of_line = arith.addi %column, %columns : index
        %fits = arith.cmpi sle, %end_of_line, %N : index
        scf.if %fits {{
          vector.store {sums}, %C[%b, %at, %column] : {type_}, {written}
        }} else {{
          vector.transfer_write {sums}, {place}
        }}"""
    if follows is None:
        return f"{text}\n{write}"
    steps = [_read_extra(number, extra, columns) for number, extra in enumerate(extras)]
    steps += [step.replace("$block", f"{columns}x").replace("%sums", sums) for step in follows.steps]
    lines, done = "\n".join(steps), follows.done.replace("%sums", sums)
    return f"""{text}
        %to_write = scf.if %is_last -> ({written}) {{
          {lines}
          scf.yield {done} : {written}
        }} else {{
          scf.yield {sums} : {written}
        }}
        {write.replace(sums, "%to_write")}"""


def _read_extra(number: int, extra: Extra, columns: int) -> str:
    block = f"vector<{columns}x{extra.element}>"
    if not extra.columns:
        return f"""%element{number} = memref.load %extra{number}[%b, %at, %column] : {extra.kernel_type}
            %operand{number} = vector.broadcast %element{number} : {extra.element} to {block}"""
    return f"""%pad{number} = arith.constant {zero(extra.element)} : {extra.element}
        %operand{number} = vector.transfer_read %extra{number}[%b, %at, %column], %pad{number}
          : {extra.kernel_type}, {block}"""
