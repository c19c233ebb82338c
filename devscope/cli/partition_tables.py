"""Who took what of a program, and why, as tables: a part of ``devscope plan --table``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from devscope.analysis.machine import duration
from devscope.cli.tables import Column, table_text

if TYPE_CHECKING:
    from devscope.passes.device_partition import Decision, Partition, Refusal, Taken


def partition_text(partition: Partition, file: str, width: int) -> str:
    """What was taken, what it costs and would cost otherwise, and why others did not take it."""
    parts = ["nobody took anything\n"]
    if partition.taken:
        columns = [Column("in"), Column("operations", wraps=True), Column("at"), Column("taken by", wraps=True)]
        priced = any(row.seconds is not None for row in partition.taken)
        if priced:
            columns += [Column("takes", right=True), Column("says", wraps=True), Column("others", wraps=True)]
        rows = [_taken(row, file, priced) for row in partition.taken]
        parts = [table_text(tuple(columns), rows, width)]
    parts += [_decision(one) for one in partition.decisions]
    if partition.refusals:
        columns = [Column("not taken"), Column("at"), Column("by", wraps=True), Column("because", wraps=True)]
        parts.append(table_text(tuple(columns), [_refusal(one, file) for one in partition.refusals], width))
    return "\n".join(parts)


def _taken(row: Taken, file: str, priced: bool) -> tuple[str, ...]:
    where = str(row.location).replace(f"{file}:", "") if row.location is not None else ""
    cells = f"@{row.function}", ", ".join(row.operations), where, row.by
    if not priced:
        return cells
    takes = duration(row.seconds) if row.seconds is not None else ""
    return *cells, takes, row.source, ", ".join(f"{name} {duration(seconds)}" for name, seconds in row.others)


def _decision(one: Decision) -> str:
    known = "".join(f"; {name}: {duration(seconds)}" for name, seconds in one.known.items())
    end = "" if one.complete else f" (time is up: at least {duration(one.bound)})"
    return f"@{one.function} takes {duration(one.seconds)}{end}, the least of {one.candidates} candidates{known}\n"


def _refusal(one: Refusal, file: str) -> tuple[str, ...]:
    where = str(one.location).replace(f"{file}:", "") if one.location is not None else ""
    nearly = "nearly matches: " if one.near else ""
    return one.op, where, f"{one.backend}.{one.pattern}", nearly + one.reason.replace(f"{file}:", "")
