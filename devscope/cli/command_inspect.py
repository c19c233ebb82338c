"""``devscope inspect``: all that is in a saved program. Nothing of it runs, and no driver is asked."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from devscope.runtime.inspection import Inspection

NAME = "inspect"
HELP = "show what is in a .dsx file, without running any of it"
EPILOG = """\
examples:
  devscope inspect model.dsx
  devscope inspect model.dsx --json
  devscope inspect model.dsx --trusted-key maker.pub
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a .dsx file; '-': from standard input")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--trusted-key",
        action="append",
        metavar="KEY.pub",
        help="fail unless the file is signed with this key; repeat for more",
    )


def execute(arguments: argparse.Namespace) -> int:
    from devscope.cli.files import program_file, program_source
    from devscope.runtime.inspection import inspect

    with program_file(program_source(arguments.file)) as file:
        found = inspect(file, arguments.trusted_key)
    print(json.dumps(found, indent=2) if arguments.json else _text(found), end="\n" if arguments.json else "")
    return 0


def _text(found: Inspection) -> str:
    from devscope.cli.tables import Column, output_width, table_text
    from devscope.runtime.format_bytes import format_bytes

    parts: list[str] = []

    def facts(title: str, rows: dict[str, str]) -> None:
        width = max(map(len, rows), default=0)
        lines = [f"  {name:<{width}}  {value}".rstrip() for name, value in rows.items()]
        parts.append("\n".join([title, *(lines or ["  none"])]) + "\n")

    def table(title: str, columns: list[Column], rows: list[tuple[str, ...]]) -> None:
        if rows:
            parts.append(f"{title}\n{table_text(columns, rows, output_width())}")
        else:
            parts.append(f"{title}\n  none\n")

    name, right = Column("name"), True
    facts("file", {key: _cell(value) for key, value in found["file"].items()})
    table(
        "members",
        [name, Column("bytes", right=right), Column("SHA-256")],
        [(member["name"], f"{member['bytes']:,}", member["sha256"]) for member in found["members"]],
    )
    facts("host code", {key: _cell(value) for key, value in found["host"].items()})
    table(
        "entries",
        [name, Column("", right=right), Column("type"), Column("called")],
        [
            (entry["name"], f"{kind} {index}", spec["type"], spec["name"])
            for entry in found["entries"]
            for kind in ("argument", "result")
            for index, spec in enumerate(entry[f"{kind}s"])
        ],
    )
    table(
        "devices",
        [
            Column("slot", right=right),
            name,
            Column("compiled for"),
            Column("binary"),
            Column("kernels", wraps=True),
        ],
        [
            (
                str(device["slot"]),
                device["name"],
                device["kind"],
                f"{b['format']}, {b['bytes']:,} bytes",
                _kernels(b),
            )
            for device in found["devices"]
            for b in device["binaries"] or [{"format": "none", "bytes": 0, "kernels": []}]
        ],
    )
    table(
        "constants",
        [Column("number", right=right), Column("type"), Column("bytes", right=right)],
        [(str(i), spec["type"], f"{spec['bytes']:,}") for i, spec in enumerate(found["constants"])],
    )
    table(
        "arenas",
        [name, Column("places", right=right), Column("alignment", right=right), Column("needed by", wraps=True)],
        [
            (
                arena["device"],
                f"{arena['places']:,}",
                str(arena["alignment"]),
                ", ".join(f"{entry}: {format_bytes(size)}" for entry, size in arena["needed"].items()),
            )
            for arena in found["arenas"]
        ],
    )
    facts("must share memory", {low: high for low, high in found["shared"]})
    facts("compiled with", {key: _cell(value) for key, value in found["options"].items()})
    return "\n".join(parts)


def _kernels(binary: dict[str, Any]) -> str:
    return ", ".join(f"{kernel['name']}({', '.join(kernel['arguments'])})" for kernel in binary["kernels"])


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, dict):
        return ", ".join(f"{key}={item}" for key, item in value.items()) or "none"  # pyright: ignore[reportUnknownVariableType]
    return "none" if value is None else f"{value:,}" if type(value) is int else str(value)
