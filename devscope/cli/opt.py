"""``devscope-opt``: passes of devscope, xDSL and MLIR over an MLIR file."""

import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from itertools import groupby
from typing import Any

from xdsl.universe import Universe
from xdsl.xdsl_opt_main import xDSLOptMain

from devscope.cli.command_line import Parser, report, run_tool, watch_output
from devscope.cli.diagnostics import Diagnostic, check_diagnostics, diagnostics_of
from devscope.cli.files import (
    SEPARATOR,
    STDIN,
    decode,
    read_input,
    require_other_file,
    require_place,
    split_text,
    write_output,
)
from devscope.cli.guard import guarded, works_on
from devscope.cli.mlir_passes import known_passes
from devscope.cli.module_state import ModuleState, Timer
from devscope.cli.pass_pipeline import Stage, describe_options, parse_stages
from devscope.errors import DevscopeError, InputError, OptionError, depth_reported
from devscope.offered_kinds import find_offered_kinds
from devscope.source import EXECUTABLE_MAGIC

find_offered_kinds()

_DESCRIPTION = "Reads MLIR, runs passes of devscope, xDSL and MLIR on it, prints it."
_EPILOG = """\
example:
  devscope-opt model.mlir -p 'canonicalize,device-plan{default=opencl:0 arguments=host},device-verify'

passes:
  A name means devscope's pass of that name, else xDSL's, else MLIR's; a prefix decides: xdsl.cse, mlir.cse.
  Options: name{key=value key="quoted value"}. Anything with parentheses is MLIR's: func.func(cse),
  mlir(cse,func.func(linalg-fuse-elementwise-ops)), builtin.module(...). See also --list-passes.
"""
_BYTECODE_MAGIC = b"ML\xefR"


class OptMain(xDSLOptMain):
    """xDSL's driver, with what it lacks: MLIR's parser, verifier, printer and passes, errors with a position (one
    module's do not end the run), expected diagnostics, and output that appears as a whole or not at all.

    What goes from `parse_chunk` through `apply_passes` to `output_resulting_program` is a `ModuleState`.
    """

    def __init__(self, args: Sequence[str] | None = None) -> None:
        # Not xDSL's: it makes a parser of its own, whose errors have another form and another exit status.
        self.available_passes = {}
        self.timer = Timer()
        self._diagnostics: list[Diagnostic] = []
        self.register_all_passes()
        parser = Parser(prog="devscope-opt", description=_DESCRIPTION, epilog=_EPILOG)
        self.register_all_arguments(parser)
        self.args, unknown = parser.parse_known_args(args)
        parser.refuse_unknown(unknown)
        self.stages: Sequence[Stage] = ()
        self.status = 0
        """Of the process: 1 if a module failed, or did not give the diagnostics that it should."""

    def register_all_arguments(self, arg_parser: Any) -> None:
        add = arg_parser.add_argument

        def flag(*names: str, help: str) -> None:
            add(*names, action="store_true", help=help)

        add("file", nargs="?", default="-", metavar="FILE", help="MLIR text or bytecode; '-' (default): stdin")
        add("-p", "--pass-pipeline", default="", metavar="PIPELINE", help="passes to run, separated by commas")
        add("-o", "--output", default="-", metavar="OUT", help="where to write; '-' (default): stdout")
        flag("--split-input-file", help="parts between lines '// -----' are modules of their own")
        flag("--verify-diagnostics", help="check '// expected-error {{...}}' and its kin")
        flag("--print-op-generic", "--mlir-print-op-generic", help="print the generic form")
        flag("--print-debuginfo", "--mlir-print-debuginfo", help="print locations")
        flag("--print-ir-before-all", "--mlir-print-ir-before-all", help="on stderr")
        flag("--print-ir-after-all", "--mlir-print-ir-after-all", help="on stderr")
        flag("--no-scope-aliases", help="print #device.scope<...> in full at every use")
        flag("--emit-bytecode", help="write MLIR bytecode instead of text")
        flag("--timing", "--mlir-timing", help="wall time per pass, on stderr")
        flag("--list-passes", help="list all passes and exit")
        flag("--traceback", help="with an error, show where in the tool it came from")
        accepted = "accepted for mlir-opt's sake: unregistered dialects are always allowed"
        flag("--allow-unregistered-dialect", help=accepted)
        flag("--version", help="print versions and exit")

    def register_all_passes(self) -> None:
        """Under the names ``devscope.NAME`` and ``xdsl.NAME``: those of xDSL and of the plugins beside it."""
        from devscope.passes import get_all_passes

        own = get_all_passes()
        for name, load in Universe.get_multiverse().all_passes.items():
            if name not in own:
                self.register_pass(f"xdsl.{name}", load)
        for name, load in own.items():
            self.register_pass(f"devscope.{name}", load)

    def run(self) -> None:
        """All of the command, after which `status` is set.

        Raises DevscopeError for what concerns the whole run: a bad pipeline, an unreadable file.
        """
        if self.args.version or self.args.list_passes:
            sys.stdout.write(_version_text() if self.args.version else self._pass_listing())
            return
        works_on(self.get_input_name())
        self.stages = parse_stages(self.args.pass_pipeline, self.available_passes)
        self._refuse_what_has_no_effect()
        require_place(self.args.output)
        require_other_file(self.args.output, [self.args.file])
        outputs = [self._process(chunk) for chunk in self._chunks()]
        written = [output for output in outputs if output is not None]
        if len(written) == len(outputs):
            write_output(self.args.output, (SEPARATOR + b"\n\n").join(written))
        if self.args.timing:
            sys.stderr.write(self.timer.table())
        self.status = int(len(written) < len(outputs))

    def _refuse_what_has_no_effect(self) -> None:
        dumps = [name for name in ("print_ir_before_all", "print_ir_after_all") if getattr(self.args, name)]
        if dumps and not self.stages:
            raise OptionError(f"{_flag(dumps[0])} has no effect without passes", notes=["-p names them"])
        text = ("print_op_generic", "print_debuginfo", "no_scope_aliases")
        for name in (name for name in text if getattr(self.args, name)):
            if self.args.emit_bytecode and not dumps:
                raise OptionError(f"{_flag(name)} has no effect on bytecode")

    def _pass_listing(self) -> str:
        """All passes, one a line: devscope's with their options, then the names of xDSL's and MLIR's."""
        lines: dict[str, list[str]] = {"devscope": [], "xdsl": [], "mlir": known_passes()}
        for full_name, load in self.available_passes.items():
            owner, _, name = full_name.partition(".")
            options = [f"[{option}]" for option in describe_options(load())] if owner == "devscope" else []
            lines[owner].append(" ".join([name, *options]))
        return "".join(
            f"{owner}:\n" + "".join(f"  {line}\n" for line in sorted(found)) for owner, found in lines.items()
        )

    def get_input_name(self) -> str:
        return STDIN if self.args.file == "-" else self.args.file

    def _chunks(self) -> Sequence[str | bytes]:
        """The modules of the input, as text whose lines have their numbers in the file, or as bytecode."""
        data, split = read_input(self.args.file), self.args.split_input_file
        if data.startswith(_BYTECODE_MAGIC):
            if split or self.args.verify_diagnostics:
                raise OptionError("--split-input-file and --verify-diagnostics need text, not bytecode")
            return [data]
        if data.startswith(EXECUTABLE_MAGIC):
            raise InputError(f"'{self.get_input_name()}' is a compiled program, not MLIR")
        text = decode(data, self.get_input_name())
        if split and self.args.emit_bytecode:
            raise OptionError("--emit-bytecode writes one module: it does not go with --split-input-file")
        return split_text(text) if split else [text]

    def _process(self, chunk: str | bytes) -> bytes | None:
        """The output of one module; None when it failed, or when its diagnostics are not those expected."""
        from devscope.lowering.interop.bindings import without_dialect_modules
        from devscope.lowering.interop.session import Session

        self._diagnostics, output = [], b""
        with self.timer.measure("(start)"):
            # A session per module: names of resources and the like must not leak from one to the next.
            session = Session()
        handler = session.context.attach_diagnostic_handler(self._on_diagnostic)
        try:
            with depth_reported(), without_dialect_modules():
                output = self._transformed(session, chunk)
        except DevscopeError as error:
            if not self.args.verify_diagnostics:
                report(error, self.args.traceback)
                return None
            self._diagnostics += diagnostics_of(error)
        finally:
            handler.detach()
        problems: list[str] = []
        if self.args.verify_diagnostics and isinstance(chunk, str):
            problems = check_diagnostics(chunk, self.get_input_name(), self._diagnostics)
            sys.stderr.write("".join(f"{problem}\n" for problem in problems))
        return None if problems else output

    def _transformed(self, session: Any, chunk: str | bytes) -> bytes:
        from devscope.lowering.interop.parsing import bytecode

        with self.timer.measure("(parse)"):
            module = session.parse(chunk, self.get_input_name())
        state = ModuleState(session, module, self.timer)
        self.apply_passes(state)
        module = state.in_mlir()
        with self.timer.measure("(print)"):
            if not self.args.emit_bytecode:
                return self.output_resulting_program(module).encode()
            return bytecode(module)

    def apply_passes(self, prog: Any) -> None:
        state: ModuleState = prog
        for group in self._groups():
            name = ",".join(stage.name for stage in group)
            if self.args.print_ir_before_all:
                self._dump("Before", name, state)
            state.run(group, name, self._on_remark)
            if self.args.print_ir_after_all:
                self._dump("After", name, state)

    def _groups(self) -> Iterator[Sequence[Stage]]:
        """Stages that run together: MLIR passes, unless each is looked at, or a single pass."""
        each = self.args.timing or self.args.print_ir_before_all or self.args.print_ir_after_all
        for in_mlir, group in groupby(self.stages, lambda stage: stage.pass_ is None):
            stages = list(group)
            yield from [stages] if in_mlir and not each else [[stage] for stage in stages]

    def _dump(self, when: str, name: str, state: ModuleState) -> None:
        with self.timer.measure("(print)"):
            text = self.output_resulting_program(state.snapshot())
        sys.stderr.write(f"// -----// IR Dump {when} {name} //----- //\n{text}\n")

    def output_resulting_program(self, prog: Any) -> str:
        from devscope.cli.printing import module_text

        aliases = not self.args.no_scope_aliases
        return module_text(prog, self.args.print_op_generic, self.args.print_debuginfo, aliases)

    def _on_diagnostic(self, diagnostic: Any) -> bool:
        """Warnings and remarks of MLIR; its errors come as exceptions."""
        from devscope.lowering.interop.diagnostics import decode_location as position

        severity = str(diagnostic.severity).rpartition(".")[2].lower()
        self._tell([Diagnostic(severity, diagnostic.message, position(diagnostic.location))])
        return True

    def _on_remark(self, remark: Any) -> None:
        """What a pass of devscope has to say."""
        notes = (Diagnostic("note", note.text, note.location or remark.location) for note in remark.notes)
        self._tell([Diagnostic(remark.severity, remark.message, remark.location), *notes])

    def _tell(self, diagnostics: Sequence[Diagnostic]) -> None:
        self._diagnostics += diagnostics
        if not self.args.verify_diagnostics:
            sys.stderr.write("".join(f"{diagnostic}\n" for diagnostic in diagnostics))


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _version_text() -> str:
    from devscope import __version__
    from devscope.lowering.interop.bindings import PACKAGE

    bindings = PACKAGE.replace("_", "-")
    return f"devscope {__version__} (xdsl {version('xdsl')}, {bindings} {version(bindings)})\n"


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns the exit status: 0, or 1 after an error message on stderr (2: wrong options)."""
    if argv is None:
        watch_output()
        return guarded(lambda: main(sys.argv[1:]))

    def execute() -> int:
        tool = OptMain(argv)
        tool.run()
        return tool.status

    return run_tool(execute, "--traceback" in argv)


if __name__ == "__main__":
    sys.exit(main())
