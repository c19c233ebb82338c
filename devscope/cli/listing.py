"""``--list-passes`` and ``--version``."""

from __future__ import annotations

from importlib.metadata import version

from devscope.cli.mlir_passes import known_passes
from devscope.cli.pass_options import describe_options
from devscope.cli.pass_pipeline import PassTable


def pass_listing(passes: PassTable) -> str:
    """All passes, one a line: devscope's with their options, then the names of xDSL's and MLIR's."""
    lines: dict[str, list[str]] = {"devscope": [], "xdsl": [], "mlir": known_passes()}
    for full_name, load in passes.items():
        owner, _, name = full_name.partition(".")
        options = [f"[{option}]" for option in describe_options(load())] if owner == "devscope" else []
        lines[owner].append(" ".join([name, *options]))
    return "".join(
        f"{owner}:\n" + "".join(f"  {line}\n" for line in sorted(found)) for owner, found in lines.items()
    )


def version_text() -> str:
    from devscope import __version__
    from devscope.lowering.interop.bindings import PACKAGE

    bindings = PACKAGE.replace("_", "-")
    return f"devscope {__version__} (xdsl {version('xdsl')}, {bindings} {version(bindings)})\n"
