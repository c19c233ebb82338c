"""What the templates of contractions are filled with."""

from collections.abc import Sequence

from devscope.lowering.kernels.contraction_dots import of_dots
from devscope.lowering.kernels.contraction_ends import end_of_block, end_of_row, is_plain, prefetch
from devscope.lowering.kernels.contraction_match import Contraction, Place
from devscope.lowering.kernels.contraction_operands import (
    Extra,
    clamped,
    matrix_type,
    operand_type,
    read_columns,
    read_rows,
    zero,
)
from devscope.lowering.kernels.contraction_panels import (
    TaskPacking,
    pack_tasks,
    packing,
    panel,
    read_panel,
    steps_of_k,
    task_packing,
)
from devscope.lowering.kernels.contraction_words import SumsOfWords, sums_of_words
from devscope.lowering.kernels.epilogue import Epilogue
from devscope.lowering.kernels.library import KernelLibrary
from devscope.lowering.kernels.table import Row

_ALL_LINES = 1 << 40
"""Of an operand that is not packed."""

DOTS = "dots"

NARROW = "narrow"

PACKED = "contraction"
"""The template that packs its operands; it has numbers of its own, as docs/schedules.md says."""


def values(
    found: Contraction,
    row: Row,
    parameters: str,
    follows: Epilogue | None,
    extras: Sequence[Extra],
    library: KernelLibrary,
) -> dict[str, object]:
    """What the template of ``row`` is filled with. ``parameters``: of the function, with ``extras``."""
    numbers = {"rows": found.limit("m") or 1, **row.numbers}
    rows, columns = numbers["rows"], numbers["columns"]
    of, result = found.element, found.c.element
    made: dict[str, object] = {
        **{name.upper(): number for name, number in numbers.items()},
        "PARAMETERS": parameters,
        "A": operand_type(found.a),
        "B": operand_type(found.b),
        "C": matrix_type(result),
        "SUM": of,
        "RESULT": result,
        "ZERO": zero(result),
        "ZERO_OF_SUM": zero(of),
        "BLOCK": f"vector<{rows}x{columns}x{of}>",
        "LINE": f"vector<{columns}x{of}>",
        "END": end_of_row(found, columns, follows, extras),
        "ELEMENT_OF_B": found.b.element,
        "ZERO_OF_B": zero(found.b.element),
    }
    if row.template == PACKED:
        return made | _of_packed(found, row, library, follows, extras)
    if row.template == NARROW:
        apart = row.numbers.get("apart", 1)
        return made | _of_narrow(found, rows, columns, row.numbers["steps"]) | {"APART": apart}
    return made | of_dots(found, row.numbers, library)


def _of_packed(
    found: Contraction, row: Row, library: KernelLibrary, follows: Epilogue | None, extras: Sequence[Extra]
) -> dict[str, object]:
    """Where the elements of A and of B are read, and how a whole block of sums ends."""
    rows, columns = row.numbers["rows"], row.numbers["columns"]
    to_pack = {
        name: packing(found, operand, name, row, library)
        for name, operand in (("a", found.a), ("b", found.b))
        if operand.place is Place.TO_PACK
    }
    by_tasks = found.b.place is Place.TO_PACK_IN_TASKS
    of_task = task_packing(found, row, library) if by_tasks else TaskPacking("", "")
    panel_of_a, read_a = clamped("row", rows, "%row", "%last_row"), read_rows(found, rows, "%k_all", "")
    if found.a.place is not Place.IN_PLACE:
        panel_of_a, read_a = panel("a", "%i", "%row", found.a, rows), read_panel("%a", "a", found.a, rows, found)
    block_of_b = f"{operand_type(found.b)}, vector<{columns}x{found.element}>"
    panel_of_b, read_b = "", f"%b_row = vector.load %B[%b, %k_all, %column] : {block_of_b}"
    if found.b.place is not Place.IN_PLACE:
        panel_of_b = panel("b", "%j", "%column", found.b, columns)
        read_b = read_panel("%b_row", "b", found.b, columns, found)
    block, types = (
        f"vector<{rows}x{columns}x{found.element}>",
        f"vector<{rows}x{found.element}>, vector<{columns}x{found.element}>",
    )

    def loop(begin: str, multiply: str, ends: str = "%0 to %turns", read: str = read_b) -> str:
        return f"""scf.for %k = {ends} step %1 iter_args(%so_far = {begin}) -> ({block}) {{
            %k_all = arith.addi %k0, %k : index
            {read_a}
            {read}
            {multiply}
            scf.yield %more : {block}
          }}"""

    if found.words is None:
        product = f"%more = vector.outerproduct %a, %b_row, %so_far : {types}"
        text = f"%sums = {loop('%zeros', product)}"
        n = found.extent("n")
        if found.b.place is Place.IN_PLACE and n and n % columns:
            # Rows are read with what is behind them, but for the last ones.
            behind = columns - n % columns
            some = f"%b_row = vector.transfer_read %B[%b, %k_all, %column], %no_column : {block_of_b}"
            text = f"""%at_end = arith.constant {-(-behind // n)} : index
                %before_end = arith.subi %K, %at_end : index
                %most_here = arith.subi %before_end, %k0 : index
                %some_here = arith.maxsi %most_here, %0 : index
                %whole = arith.minsi %some_here, %turns : index
                %sums_of_whole = {loop("%zeros", product, "%0 to %whole")}
                %sums = {loop("%sums_of_whole", product, "%whole to %turns", some)}"""
        sums = SumsOfWords("", "", text)
    else:
        is_unsigned = found.extend == "arith.extui"
        sums = sums_of_words(found.words, is_unsigned, rows, columns, loop, panel_of_a, read_a, read_b)
    return {
        "STEPS": steps_of_k(found, row),
        "STEPS_AT_ONCE": found.steps_at_once,
        "ROWS_AT_ONCE": row.numbers["most_rows"] if "a" in to_pack else _ALL_LINES,
        "COLUMNS_AT_ONCE": row.numbers["most_columns"] if "b" in to_pack else _ALL_LINES,
        "PACK": pack_tasks(to_pack) if to_pack else "",
        "ROOM_OF_B": of_task.room,
        "PACK_IN_TASK": of_task.pack,
        "PANEL_OF_B": f"{panel_of_b}\n{sums.before_rows}",
        "PANEL_OF_A": panel_of_a,
        "BEFORE_PANELS_OF_B": sums.before_columns,
        "SUMS": sums.text,
        "PREFETCH": prefetch(found, rows, columns),
        "IS_PLAIN": is_plain(found, follows, extras),
        "WHOLE_END": end_of_block(found, row, follows, extras),
    }


def _of_narrow(found: Contraction, rows: int, columns: int, steps: int) -> dict[str, object]:
    """Products of so many steps of k are added to a block of sums in one go; A is read before."""

    def add(name: str, k: str, sums: str, more: str, whole: bool = False) -> str:
        block = f"vector<{rows}x{found.element}>, vector<{columns}x{found.element}>"
        return f"""{read_columns(found, columns, k, f"%b{name}", name, whole)}
            {more} = vector.outerproduct %a{name}, %b{name}, {sums} : {block}"""

    def read(step: int) -> str:
        return f"""%step{step} = arith.constant {step} : index
            %behind{step} = arith.muli %step{step}, %apart : index
            %at_k{step} = arith.addi %k0, %behind{step} : index
            {read_rows(found, rows, f"%at_k{step}", f"{step}")}"""

    adds = (add(f"{n}", f"%at_k{n}", f"%sums{n}", f"%sums{n + 1}", whole=True) for n in range(steps))
    return {
        "PANEL_OF_A": clamped("row", rows, "%row", "%last_row"),
        "READ_ALL_A": "\n".join(map(read, range(steps))),
        "ADD_ALL": "\n".join(adds),
        "READ_A": read_rows(found, rows, "%k", "_k"),
        "ADD": add("_k", "%k", "%so_far", "%more"),
    }
