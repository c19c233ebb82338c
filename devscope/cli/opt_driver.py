"""What ``devscope-opt`` does once its command line is read."""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from devscope.cli.diagnostics import Diagnostic, check_diagnostics, diagnostics_of
from devscope.cli.files import read_input, write_output
from devscope.cli.pass_registry import Stage, parse_stages
from devscope.cli.pipeline import Hooks, ModuleState, run_stages
from devscope.cli.printing import PrintStyle, module_text
from devscope.cli.split_file import SEPARATOR, split_text
from devscope.cli.timing import Timer
from devscope.errors import DevscopeError, OptionError, ParseError, SourceLocation
from devscope.lowering.interop.session import Session

if TYPE_CHECKING:
    from devscope.passes.plan.remarks import Remark

_BYTECODE_MAGIC = b"ML\xefR"


def run(arguments: argparse.Namespace) -> int:
    """Runs the command; errors of single modules are printed, and the status is then 1.

    Raises DevscopeError for what concerns the whole run: a bad pipeline, an unreadable file.
    """
    stages = parse_stages(arguments.pass_pipeline)
    job = _Job(arguments, stages)
    status = job.run()
    if arguments.timing:
        sys.stderr.write(job.timer.table())
    return status


class _Job:
    """One run of the command over all modules of its input."""

    def __init__(self, arguments: argparse.Namespace, stages: Sequence[Stage]) -> None:
        self._arguments = arguments
        self._stages = stages
        self._filename = "<stdin>" if arguments.file == "-" else arguments.file
        self._style = PrintStyle(
            generic=arguments.print_op_generic,
            locations=arguments.print_debuginfo,
            aliases=not arguments.no_scope_aliases,
        )
        self.timer = Timer()
        self._diagnostics: list[Diagnostic] = []

    def run(self) -> int:
        data = read_input(self._arguments.file)
        chunks = self._chunks(data)
        outputs: list[str | bytes] = []
        failed = False
        for chunk in chunks:
            output, ok = self._process(chunk)
            failed |= not ok
            if output is not None:
                outputs.append(output)
        if failed:
            return 1
        if self._arguments.emit_bytecode:
            write_output(self._arguments.output, b"".join(part for part in outputs if isinstance(part, bytes)))
        else:
            texts = [part for part in outputs if isinstance(part, str)]
            write_output(self._arguments.output, f"{SEPARATOR}\n\n".join(texts))
        return 0

    def _chunks(self, data: bytes) -> Sequence[str | bytes]:
        if data.startswith(_BYTECODE_MAGIC):
            if self._arguments.split_input_file or self._arguments.verify_diagnostics:
                raise OptionError("--split-input-file and --verify-diagnostics need text, not bytecode")
            return [data]
        text = _decode(data, self._filename)
        if not self._arguments.split_input_file:
            return [text]
        if self._arguments.emit_bytecode:
            raise OptionError("--emit-bytecode writes one module: it does not go with --split-input-file")
        return split_text(text)

    def _process(self, chunk: str | bytes) -> tuple[str | bytes | None, bool]:
        """The module's output, None when it failed, and whether all went as it should."""
        self._diagnostics = []
        output = None
        try:
            output = self._transform(chunk)
        except DevscopeError as error:
            if not self._arguments.verify_diagnostics:
                self._report(error)
                return None, False
            self._diagnostics += diagnostics_of(error)
        if not self._arguments.verify_diagnostics:
            return output, True
        assert isinstance(chunk, str)
        problems = check_diagnostics(chunk, self._filename, self._diagnostics)
        for problem in problems:
            sys.stderr.write(f"{problem}\n")
        return output, not problems

    def _transform(self, chunk: str | bytes) -> str | bytes:
        timer = self.timer
        with timer.measure("(start)"):
            # A session per module: names of resources and the like must not leak from one to the next.
            session = Session()
        handler = session.context.attach_diagnostic_handler(self._on_diagnostic)
        try:
            with timer.measure("(parse)"):
                module = session.parse(chunk, self._filename)
            state = ModuleState(session, module, timer)
            each = self._arguments.timing or self._wants_ir
            run_stages(state, self._stages, timer, self._hooks(), each)
            result = state.in_mlir()
            with timer.measure("(print)"):
                return self._printed(result)
        finally:
            handler.detach()

    def _printed(self, module: Any) -> str | bytes:
        if not self._arguments.emit_bytecode:
            return module_text(module, self._style)
        import io

        stream = io.BytesIO()
        module.operation.write_bytecode(stream)
        return stream.getvalue()

    @property
    def _wants_ir(self) -> bool:
        return self._arguments.print_ir_before_all or self._arguments.print_ir_after_all

    def _hooks(self) -> Hooks:
        def dump(when: str, name: str, state: ModuleState) -> None:
            with self.timer.measure("(print)"):
                text = module_text(state.snapshot(), self._style)
            sys.stderr.write(f"// -----// IR Dump {when} {name} //----- //\n{text}\n")

        return Hooks(
            before=(lambda name, state: dump("Before", name, state))
            if self._arguments.print_ir_before_all
            else None,
            after=(lambda name, state: dump("After", name, state)) if self._arguments.print_ir_after_all else None,
            remark=self._on_remark,
        )

    def _on_diagnostic(self, diagnostic: Any) -> bool:
        """Warnings and remarks of MLIR; its errors come as exceptions."""
        from devscope.lowering.interop.positions import file_line_col

        position = file_line_col(diagnostic.location)
        location = None if position is None else SourceLocation(*position)
        severity = str(diagnostic.severity).rpartition(".")[2].lower()
        self._tell([Diagnostic(severity, diagnostic.message, location)])
        return True

    def _on_remark(self, remark: Remark) -> None:
        """What a pass of devscope has to say."""
        notes = (Diagnostic("note", note.text, note.location or remark.location) for note in remark.notes)
        self._tell([Diagnostic(remark.severity, remark.message, remark.location), *notes])

    def _tell(self, diagnostics: Sequence[Diagnostic]) -> None:
        self._diagnostics += diagnostics
        if not self._arguments.verify_diagnostics:
            sys.stderr.write("".join(f"{diagnostic}\n" for diagnostic in diagnostics))

    def _report(self, error: DevscopeError) -> None:
        if self._arguments.traceback:
            traceback.print_exception(error)
        sys.stderr.write(f"{error}\n")


def _decode(data: bytes, filename: str) -> str:
    try:
        text = data.decode()
        bad = data.find(b"\0")  # MLIR would take it for a blank
    except UnicodeDecodeError as error:
        text, bad = "", error.start
    if bad >= 0:
        line = data.count(b"\n", 0, bad) + 1
        column = bad - data.rfind(b"\n", 0, bad)
        raise ParseError("neither MLIR bytecode nor UTF-8 text", SourceLocation(filename, line, column))
    return text
