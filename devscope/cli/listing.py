"""``--list-passes`` and ``--version``."""

from __future__ import annotations

from importlib.metadata import version

from devscope.cli.mlir_pass_manager import known_passes
from devscope.cli.pass_options import describe_options
from devscope.cli.pass_registry import devscope_passes, xdsl_passes


def pass_listing() -> str:
    """All passes, one a line: devscope's with their options, then the names of xDSL's and MLIR's."""
    lines = ["devscope:"]
    for name, load in sorted(devscope_passes().items()):
        options = " ".join(f"[{option}]" for option in describe_options(load()))
        lines.append(f"  {name} {options}".rstrip())
    lines += ["xdsl:", *(f"  {name}" for name in sorted(xdsl_passes()))]
    lines += ["mlir:", *(f"  {name}" for name in sorted(known_passes()))]
    return "\n".join(lines) + "\n"


def version_text() -> str:
    from devscope import __version__
    from devscope.lowering.interop.bindings import PACKAGE

    bindings = PACKAGE.replace("_", "-")
    return f"devscope {__version__} (xdsl {version('xdsl')}, {bindings} {version(bindings)})\n"
