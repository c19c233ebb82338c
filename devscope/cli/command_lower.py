"""``devscope lower``: the IR of one stage of a compilation."""

import argparse
from typing import Any

from devscope.cli.compile_options import (
    add_compile_arguments,
    compile_options,
    is_given,
    require_output,
    require_source,
)
from devscope.compile_options import CompileOptions
from devscope.errors import OptionError

NAME = "lower"
HELP = "show the IR of one stage of a compilation"
EPILOG = """\
stages, in order:
  plan           scopes and copies
  split          host functions and device functions
  schedule       which row of schedules each operation of the host got, one a line
  host-buffers   host functions over buffers; device data in the memory space of its scope
  launchers      device functions over buffers, launching kernels (once per device)
  kernels        the kernels (once per device)
  memory         all host code, with the places of its buffers
  host           all host code, calling the runtime
  host-llvm      its LLVM IR, before the runtime is linked in and optimised

example:
  devscope lower model.mlir --stage kernels
"""

#: Written out because the list in devscope.pipeline takes a compiler to import.
STAGES = ("plan", "split", "schedule", "host-buffers", "launchers", "kernels", "memory", "host", "host-llvm")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_compile_arguments(parser)
    parser.add_argument("--stage", required=True, choices=STAGES, metavar="STAGE", help=", ".join(STAGES))
    parser.add_argument("-o", "--output", default="-", metavar="OUT", help="default: stdout")


def _require_effect(arguments: argparse.Namespace, options: CompileOptions) -> None:
    """Raise OptionError for an option that what is shown does not depend on."""
    first = {
        "devices": "split",
        "chunks": "split",
        "checks": "schedule",
        "schedules": "schedule",
        "storage": "memory",
        "memory-limit": "memory",
    }
    if options.completion != "min-cost" and options.partition != "search":
        first["machine"] = "memory"  # says which memory is shared
    for option, stage in first.items():
        if is_given(arguments, option) and STAGES.index(stage) > STAGES.index(arguments.stage):
            raise OptionError(
                f"--{option} has no effect on --stage {arguments.stage}",
                notes=[f"the first stage that depends on it is '{stage}'"],
            )


def execute(arguments: argparse.Namespace) -> int:
    from devscope.cli.files import write_output
    from devscope.pipeline import compile_source

    options = compile_options(arguments)
    _require_effect(arguments, options)
    require_output(arguments, arguments.output)
    texts: list[str] = []

    def collect(stage: str, payload: Any) -> None:
        if stage == arguments.stage:
            texts.append(_text(payload))

    compile_source(require_source(arguments.file), options, collect)
    write_output(arguments.output, "// -----\n".join(texts))
    return 0


def _text(payload: Any) -> str:
    from devscope.cli.printing import module_text
    from devscope.lowering.kernels.schedule_report import ScheduleReport

    return str(payload) if isinstance(payload, str | ScheduleReport) else module_text(payload)
