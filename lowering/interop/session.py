"""One MLIR context and all that devscope asks of it: parse, import, export, run passes."""

from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnregisteredOp

from devscope.dialects.context import make_context
from devscope.errors import LoweringError, OptionError
from devscope.gc_pause import gc_paused
from devscope.lowering.interop.artifacts import parse
from devscope.lowering.interop.attributes import AttributeBridge
from devscope.lowering.interop.bindings import ir, passmanager
from devscope.lowering.interop.diagnostics import translate
from devscope.lowering.interop.exporter import Exporter
from devscope.lowering.interop.importer import Importer
from devscope.lowering.interop.parsing import make_mlir_context
from devscope.lowering.interop.properties import HiddenProperties


class Session:
    """An ``ir.Context`` that knows every upstream dialect, StableHLO where the bindings carry it, and ``device``.

    Operations of other dialects are accepted unverified. Modules of one session cannot be used in another.
    ``xdsl_context`` is what imported modules are made in; by default it knows all of xDSL's dialects and ours.
    ``context`` comes from `make_mlir_context`; by default, a session makes its own.
    """

    def __init__(self, xdsl_context: Context | None = None, context: Any = None) -> None:
        self.context: Any = make_mlir_context() if context is None else context
        self.xdsl_context = make_context() if xdsl_context is None else xdsl_context
        bridge = AttributeBridge(self.context, self.xdsl_context)
        hidden = HiddenProperties(self.context)
        self._importer = Importer(bridge, hidden, self.xdsl_context)
        self._bridge, self._hidden = bridge, hidden

    def parse(self, text: str | bytes, filename: str = "<input>") -> Any:
        """The verified ``ir.Module`` of MLIR text, bytecode or an artifact; locations in text name ``filename``.

        Raises `ParseError`.
        """
        return parse(text, filename, self.context)

    def to_xdsl(self, module: Any) -> ModuleOp:
        """The xDSL twin of ``module``, an ``ir.Module`` of this session, which stays as it is.

        Attributes and types that xDSL cannot hold faithfully, and dense constants of more than 16 elements that
        are not splats, are stand-ins for what stays in MLIR (`PayloadAttr`, `PayloadType`, and, for constants,
        ``DenseResourceAttr``). Operations that xDSL does not know or does not accept are ``UnregisteredOp``s.
        Raises `ParseError` for what cannot be carried over faithfully.
        """
        self._check_owner(module)
        return self._importer.module(module)

    def ends_to_xdsl(self, module: Any) -> ModuleOp:
        """As `to_xdsl`, but functions have their arguments and what they return alone: enough to know their types,
        and the names and places of these values. It does not verify. Raises `ParseError`.
        """
        self._check_owner(module)
        return self._importer.module(module, whole=False)

    def to_mlir(self, module: ModuleOp, verify: bool = True) -> Any:
        """The MLIR twin of ``module``, a new ``ir.Module``, verified unless ``verify`` is false.

        Raises `LoweringError`, with MLIR's diagnostics, when MLIR cannot hold it or refuses it.
        """
        with gc_paused():
            result = Exporter(self._bridge, self._hidden).module(module)
        if verify:
            try:
                result.operation.verify()
            except ir.MLIRError as error:
                raise translate(error, LoweringError, "MLIR's verifier refuses the module") from None
        return result

    def run_passes(self, module: Any, pipeline: str) -> None:
        """Run MLIR passes over an ``ir.Module`` or ``ir.Operation`` of this session, in place, and verify it.

        ``pipeline`` is MLIR's textual form, ``"builtin.module(canonicalize,cse)"``. Raises `OptionError` when it
        names an unknown pass or option, `LoweringError`, with MLIR's diagnostics, when a pass fails.
        """
        self._check_owner(module)
        try:
            manager = passmanager.PassManager.parse(pipeline, self.context)
        except ValueError as error:
            raise _bad_pipeline(pipeline, str(error)) from None
        op = getattr(module, "operation", module)
        manager.enable_verifier(False)  # after each pass: it takes longer than most passes
        try:
            manager.run(op)
            op.verify()
        except ir.MLIRError as error:
            raise translate(error, LoweringError, f"a pass of {pipeline} failed") from None

    def may_have(self, operation: str) -> bool:
        """Whether a module may have operations of this name, which may be of a dialect that nobody here knows."""
        if self.context.is_registered_operation(operation):
            return True
        known = self.xdsl_context.get_optional_op(operation)
        if known is not None and not issubclass(known, UnregisteredOp):
            return True
        try:
            self.context.dialects[operation.partition(".")[0]]
        except (IndexError, KeyError):
            return True
        return False

    def _check_owner(self, module: Any) -> None:
        # MLIR itself would not notice, and crash.
        if module.context is not self.context:
            raise LoweringError("the module belongs to another session")


def _bad_pipeline(pipeline: str, message: str) -> OptionError:
    """MLIR says where in the text it stopped, then what is wrong, then shows the text again."""
    first, *rest = [line for line in message.splitlines() if line.strip(" ^")]
    cause = first.rpartition("error: ")[2].rpartition("<Pass-Options-Parser>: ")[2]
    return OptionError(f"invalid pass pipeline '{pipeline}': {cause}", notes=[n for n in rest if "failed" in n])
