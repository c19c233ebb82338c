"""``devscope plan``: where everything goes, and why."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from devscope.cli.compile_options import add_compile_arguments, compile_options, require_file

if TYPE_CHECKING:
    from devscope.passes.plan import Plan

NAME = "plan"
HELP = "show the plan of a program: annotated IR, or a table of scopes, reasons and copies"
EPILOG = """\
examples:
  devscope plan model.mlir                  the annotated IR
  devscope plan model.mlir --table          op, scope, why, bytes copied
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_compile_arguments(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--table", action="store_true", help="print a table instead of IR")
    form.add_argument("--json", action="store_true", help="print JSON instead of IR")


def execute(arguments: argparse.Namespace) -> int:
    from devscope.cli.printing import PrintStyle, module_text
    from devscope.pipeline import plan_source

    planned = plan_source(require_file(arguments.file), compile_options(arguments))
    if arguments.json:
        print(json.dumps(planned.plan.to_json(), indent=2))
    elif arguments.table:
        print_table(planned.plan)
    else:
        print(module_text(planned.session.to_mlir(planned.module), PrintStyle()), end="")
    return 0


def print_table(plan: Plan) -> None:
    """The plan as two tables: operations with their scopes, copies with their sizes."""
    from rich.console import Console
    from rich.table import Table

    console = Console(soft_wrap=True)
    table = Table(title="plan", title_justify="left", box=None, pad_edge=False)
    for column in ("op", "scope", "why"):
        table.add_column(column, overflow="fold")
    for placement in plan.placements:
        table.add_row(placement.op, placement.scope.short(), placement.reason)
    console.print(table)
    if not plan.copies:
        console.print("no copies")
        return
    copies = Table(title="copies", title_justify="left", box=None, pad_edge=False)
    for column in ("value", "from", "to", "asked by"):
        copies.add_column(column, overflow="fold")
    copies.add_column("bytes", justify="right")
    for copy in plan.copies:
        size = "dynamic" if copy.bytes is None else f"{copy.bytes:,}"
        copies.add_row(copy.value, copy.src.short(), copy.dst.short(), copy.asked_by, size)
    console.print(copies)
