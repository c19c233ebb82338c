"""``devscope plan``: where everything goes, and why."""

from __future__ import annotations

import argparse
import json
import re
import sys
from typing import TYPE_CHECKING

from devscope.cli.compile_options import (
    PLAN_OPTIONS,
    add_compile_arguments,
    compile_options,
    name_of,
    require_output,
    require_source,
)
from devscope.compile_options import require_use_of_machine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from devscope.passes.device_plan import Copy, Placement, Plan
    from devscope.passes.device_plan.report.plan import ReadBack

NAME = "plan"
HELP = "show the plan of a program: annotated IR, or tables of scopes, reasons and copies"
EPILOG = """\
examples:
  devscope plan model.mlir                  the annotated IR
  devscope plan model.mlir --table          op, scope, why; copies and their bytes
  devscope plan model.mlir --json           the same for programs, with all steps of the reasons
  devscope plan model.mlir --dot            a graph: devscope plan model.mlir --dot | dot -Tsvg > plan.svg
  devscope plan model.mlir --table --backend blas --partition search   also who takes what, and why
  devscope plan model.mlir --table --place 'linalg.matmul=opencl:0'   by rules instead of annotations
  devscope plan model.onnx --place 'Conv=opencl:0' -o annotated.onnx   a model that says where its nodes run
  devscope plan model.mlir --explain %5     why %5 is where it is, and why it is copied
  devscope plan model.mlir --explain 7      the same for what stands in line 7; also FILE:LINE, @function:%name
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_compile_arguments(parser, names=PLAN_OPTIONS)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--table", action="store_true", help="print tables instead of IR")
    form.add_argument("--json", action="store_true", help="print JSON instead of IR")
    form.add_argument("--dot", action="store_true", help="print a graph for Graphviz instead of IR")
    form.add_argument(
        "--explain",
        metavar="WHAT",
        help="print why a value (%%name, @function:%%name) or what is in a line (LINE, FILE:LINE) is where it is",
    )
    form.add_argument(
        "-o",
        "--output",
        metavar="FILE.onnx",
        help="of an ONNX model: write it, with the devices of its nodes as device_configurations, instead of IR",
    )
    parser.add_argument("--remarks", action="store_true", help="report every copy, and operations without a rule")


def execute(arguments: argparse.Namespace) -> int:
    from devscope.cli.printing import module_text
    from devscope.passes.device_plan.report.explain import Query, explain
    from devscope.planning import plan_source

    query = Query.parse(arguments.explain) if arguments.explain is not None else None
    if arguments.place is None:
        require_use_of_machine(arguments.machine, arguments.completion, arguments.partition)
    options = compile_options(arguments)
    require_use_of_machine(arguments.machine, options.completion, arguments.partition)
    source = require_source(arguments.file)
    if arguments.output is not None:
        from devscope.cli.onnx_output import require_model, write_annotated

        model = require_model(source)
        require_output(arguments, arguments.output)
        plan = plan_source(source, options).plan
        count = write_annotated(model, arguments.output, plan)
        said = sys.stdout if arguments.output != "-" else sys.stderr
        print(f"{arguments.output}: {count} nodes have a device", file=said)
        _report(plan, arguments.remarks, False)
        return 0
    planned = plan_source(source, options)
    if query is not None:
        print(explain(planned.plan, planned.module, query), end="")
    elif arguments.json:
        found = planned.plan.to_json(chains=True)
        if planned.partition is not None:
            found["partition"] = {**planned.partition.to_json(), "candidates": planned.partition.offers()}
        print(json.dumps(found, indent=2))
    elif arguments.dot:
        from devscope.passes.device_plan.report.dot import dot_text

        print(dot_text(planned.plan, planned.module), end="")
    elif arguments.table:
        from devscope.cli.tables import output_width

        print(plan_text(planned.plan, name_of(source), output_width()), end="")
        if planned.partition is not None:
            from devscope.cli.partition_tables import partition_text

            print("\n" + partition_text(planned.partition, name_of(source), output_width()), end="")
    else:
        print(module_text(planned.session.to_mlir(planned.module)), end="")
    _report(planned.plan, arguments.remarks, query is not None or arguments.table or arguments.json)
    return 0


def _report(plan: Plan, remarks: bool, shown: bool) -> None:
    """Warnings, and remarks on request, on stderr. ``shown``: stdout has all but the remarks on single copies."""
    found = [] if shown else [r for r in plan.remarks if remarks or r.severity == "warning"]
    for remark in [*found, *(plan.copy_remarks if remarks else ())]:
        print(remark.text, file=sys.stderr)


def plan_text(plan: Plan, file: str, width: int) -> str:
    """The plan as two tables, operations and copies, and remarks; positions in ``file`` are line:column."""
    from devscope.cli.tables import Column, table_text

    columns = (
        Column("in"),
        Column("op"),
        Column("part of", wraps=True),
        Column("at"),
        Column("scope"),
        Column("why", wraps=True),
    )
    rows = [_placement_row(placement, file) for placement in plan.placements]
    # Where no function has a clone, the position says in which one it is; and what no operation has, is left out.
    shown = [index for index in range(len(columns)) if any(row[index] for row in rows) and (index or plan.clones)]
    columns, rows = [columns[i] for i in shown], [[row[i] for i in shown] for row in rows]
    parts = [table_text(columns, rows, width) if rows else "no operations\n"]
    if plan.copies:
        columns = (
            Column("copy of", wraps=True),
            Column("from"),
            Column("to"),
            Column("bytes", right=True),
            Column("times", right=True),
            Column("asked by", wraps=True),
        )
        parts.append(table_text(columns, [_copy_row(copy, file) for copy in plan.copies], width))
    parts.append(_total(plan.copies, "copy", "copies"))
    if plan.read_backs:
        columns = (
            Column("read back of", wraps=True),
            Column("from"),
            Column("bytes", right=True),
            Column("times", right=True),
            Column("by"),
            Column("at"),
        )
        parts.append(table_text(columns, [_read_row(read, file) for read in plan.read_backs], width))
        parts.append(_total(plan.read_backs, "read-back", "read-backs"))
    if plan.remarks:
        parts.append("".join(_short(f"{remark.text}\n", file) for remark in plan.remarks))
    return "\n".join(parts)


def _placement_row(placement: Placement, file: str) -> tuple[str, ...]:
    from devscope.dialects.location import source_kinds, source_location, source_name

    op = placement.operation
    where, name, kinds = source_location(op), source_name(op) or "", source_kinds(op)[-1:]
    position = "" if where is None else _short(str(where), file)
    part = f"{name} ({kinds[0]})".strip() if kinds else name
    return (
        f"@{placement.function}",
        placement.op,
        part,
        position,
        placement.scope.short(),
        _short(placement.reason, file),
    )


def _copy_row(copy: Copy, file: str) -> tuple[str, ...]:
    size = "dynamic" if copy.bytes is None else f"{copy.bytes:,}"
    ends = copy.src.short(), copy.dst.short()
    return _short(copy.value, file), *ends, size, _times(copy), _short(copy.required_by, file)


def _read_row(read: ReadBack, file: str) -> tuple[str, ...]:
    from devscope.dialects.location import source_location

    where = source_location(read.operation)
    position = "" if where is None else _short(str(where), file)
    return _short(read.value, file), read.src.short(), f"{read.bytes:,}", _times(read), read.op, position


def _times(one: Copy | ReadBack) -> str:
    return str(one.repetition) or "x1"


def _total(found: Sequence[Copy | ReadBack], one: str, many: str) -> str:
    """How many there are, how often they run, if not once each, and what they move in all."""
    if not found:
        return f"no {many}\n"
    name = f"{len(found):,} {one if len(found) == 1 else many}"
    counted = [each for each in found if each.repetition.total is not None]
    runs = sum(each.repetition.times for each in counted)
    unknown = sum(each.bytes is None for each in found)
    dynamic = f" and {unknown} of dynamic size" if unknown else ""
    if runs == len(found):
        return f"{name}, {_moved(found)} bytes{dynamic}\n"
    in_loops = [each for each in found if each.repetition.total is None]
    parts = [f"{len(counted):,} run {runs:,} times in all, {_moved(counted)} bytes"] if counted else []
    if in_loops:
        parts.append(f"{len(in_loops):,} in loops of unknown length, {_moved(in_loops)} bytes per iteration")
    return f"{name}: {'; '.join(parts)}{dynamic}\n"


def _moved(found: Sequence[Copy | ReadBack]) -> str:
    return f"{sum((each.bytes or 0) * each.repetition.times for each in found):,}"


def _short(text: str, file: str) -> str:
    """``text`` without the name of the file that all of it is about."""
    return re.sub(rf"(?<!'){re.escape(file)}:", "", text)  # but for what is quoted
