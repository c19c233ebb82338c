"""MLIR text and bytecode into modules of a context, with the file name that the user knows in every location."""

import io
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from devscope.dialects.irdl_file import IRDL_FILE
from devscope.dialects.scope_attribute import RESULTS
from devscope.errors import DevscopeError, Note, ParseError, SourceLocation
from devscope.lowering.interop import bindings
from devscope.lowering.interop.bindings import children, ir
from devscope.lowering.interop.diagnostics import rename_file, translate
from devscope.lowering.interop.mixed_types import refuses_a_type, with_twins

BYTECODE_MAGIC = b"ML\xefR"
_UNNAMED = "-"
"""The file name that MLIR gives to a module parsed from a string."""
_SEVERAL_OPERATIONS = "source must contain a single top-level operation"


def make_mlir_context() -> Any:
    """An ``ir.Context`` that knows the dialects of the bindings and ``device``, and lets others pass."""
    context = ir.Context()
    context.allow_unregistered_dialects = True
    bindings.register_stablehlo(context)
    bindings.register_tm_tensor(context)
    with context, ir.Location.unknown():
        bindings.load("_mlir_libs._mlirDialectsIRDL").load_dialects(
            ir.Module.parse(IRDL_FILE.read_text(encoding="utf-8"))
        )
        # IRDL has no traits; without these, no region of device.region and device.launch would verify.
        ir.IsTerminatorTrait.attach("device.yield")
        ir.NoTerminatorTrait.attach("device.launch")
    return context


def parse_file(path: str | Path, context: Any) -> Any:
    """The ``ir.Module`` in a file of text or bytecode. MLIR maps a file of text; Python never holds it.

    Raises `ParseError`, also when the file cannot be read.
    """
    name = _printable(os.fspath(path))
    try:
        with open(path, "rb") as file:
            start = file.read(len(BYTECODE_MAGIC))
        if start == BYTECODE_MAGIC or name != os.fspath(path):  # the bindings take no such path
            return parse_text(Path(path).read_bytes(), name, context)
    except OSError as error:
        raise ParseError(f"cannot read {name}: {error.strerror}") from None
    except ValueError as error:  # a zero in the path
        raise ParseError(f"cannot read {name!r}: {error}") from None
    try:
        return _printable_signatures(ir.Module.parseFile(name, context))
    except RuntimeError as error:
        if not bindings.not_text(error):
            raise
        return parse_text(Path(path).read_bytes(), name, context)  # which says where
    except ir.MLIRError as error:
        found = translate(error, ParseError, f"{name} is not an MLIR module")
        return _parse_custom(found, Path(path).read_text("utf-8", "replace"), name, context)


def _parse_custom(error: DevscopeError, text: str, filename: str, context: Any) -> Any:
    """The module in ``text``, in which MLIR found ``error``, with custom forms expanded. Raises `ParseError`."""
    from devscope.lowering.interop.custom_form import to_generic

    generic = to_generic(text) if _may_be_custom(error) else text
    if refuses_a_type(error.message):
        generic = with_twins(text)
    if generic == text:
        from devscope.lowering.interop.parse_hints import explained

        raise explained(error, text, filename) from None
    return parse_text(generic, filename, context)


def _may_be_custom(error: DevscopeError) -> bool:
    """Whether an error may be of a custom form: those of dialects loaded through IRDL have no location."""
    from devscope.lowering.interop.custom_form import is_shardy

    return error.location is None or is_shardy(error.message)


def _printable(name: str) -> str:
    """``name`` without what UTF-8, and so MLIR, cannot hold."""
    return name.encode(errors="replace").decode()


def parse_text(text: str | bytes, filename: str, context: Any) -> Any:
    """The ``ir.Module`` in text or bytecode. Raises `ParseError`."""
    filename = _printable(filename)
    if isinstance(text, bytes):
        if text.startswith(BYTECODE_MAGIC):
            with _readable(filename, is_bytecode=True):
                return _printable_signatures(_parse_unnamed(text, filename, context))
        text = decoded(text, filename)
    with _readable(filename):
        return _printable_signatures(_parse_named(text, filename, context))


def decoded(text: bytes, filename: str) -> str:
    """``text`` of MLIR. Raises `ParseError` where it is not UTF-8."""
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        where = SourceLocation.of_byte(filename, text, error.start)
        raise ParseError("neither MLIR bytecode nor UTF-8 text", where) from None


def parse_once(text: str, filename: str, context: Any) -> Any:
    """`parse_text` for text whose resources keep their names: read a second time, they would get others.

    Raises `ParseError` also for what only a second attempt reads.
    """
    from devscope.lowering.interop.custom_form import to_generic

    with _readable(filename):
        try:
            module = ir.Module.parse(to_generic(text), context)
        except ir.MLIRError as error:
            raise translate(error, ParseError, f"{filename} is not an MLIR module") from None
        rename_file(module, _UNNAMED, _printable(filename))
        return _printable_signatures(module)


def _printable_signatures(module: Any) -> Any:
    """``module`` without empty lists of attributes of results.

    MLIR's verifier takes one also where there are results; its printer crashes at it.
    """
    waiting = list(children(module.operation))
    while waiting:
        op = waiting.pop()
        if op.name == "builtin.module":
            waiting += children(op)
        elif op.name.endswith(".func"):
            listed = op.attributes.get(RESULTS)
            if isinstance(listed, ir.ArrayAttr) and not len(listed):
                del op.attributes[RESULTS]
    return module


@contextmanager
def _readable(filename: str, is_bytecode: bool = False) -> Generator[None]:
    """Raises `ParseError` where the bindings cannot make Python text of a name, or of what MLIR says of it."""
    try:
        yield
    except RuntimeError as error:
        if not bindings.not_text(error):
            raise
        raise ParseError(
            f"{filename} has names that are not UTF-8, which MLIR's Python bindings cannot read",
            notes=["bytecode can be damaged, too"] if is_bytecode else (),
        ) from None


def _parse_named(text: str, filename: str, context: Any) -> Any:
    try:
        op = ir.Operation.parse(text, source_name=filename, context=context).operation
    except ir.MLIRError as error:
        if any(d.message.startswith(_SEVERAL_OPERATIONS) for d in error.error_diagnostics):
            return _parse_unnamed(text, filename, context)
        return _parse_custom(
            translate(error, ParseError, f"{filename} is not an MLIR module"), text, filename, context
        )
    except TypeError:  # from the bindings: the only argument that can be of a wrong kind is the text
        raise ParseError(f"{filename} has characters that are not Unicode") from None
    return _as_module(op, filename)


def _parse_unnamed(text: str | bytes, filename: str, context: Any) -> Any:
    """The parser of the bindings that takes any module, but knows no file names."""
    try:
        module = ir.Module.parse(text, context)
    except ir.MLIRError as error:
        found = translate(error, ParseError, f"{filename} is not an MLIR module", files={_UNNAMED: filename})
        if isinstance(text, str):
            return _parse_custom(found, text, filename, context)
        generic = _generic_text(text) if refuses_a_type(found.message) else ""
        if generic == (changed := with_twins(generic)):
            raise _at_start(found, filename) from None
        return parse_text(changed, filename, context)
    if isinstance(text, str):
        rename_file(module, _UNNAMED, filename)
    return module


def _at_start(error: DevscopeError, filename: str) -> DevscopeError:
    """``error`` of MLIR's reader of bytecode, with a place in the file: what is about the bytes has no line."""
    if error.location is None or not error.location.line:
        error.location = SourceLocation(filename, 1, 1)
        error.notes += (Note("the bytecode is damaged, or of a newer version of MLIR"),)
    return error


def _generic_text(bytecode: bytes) -> str:
    """What a context without dialects of its own reads in bytecode; nothing of what it cannot read."""
    context = ir.Context()
    context.allow_unregistered_dialects = True
    try:
        module = ir.Module.parse(bytecode, context)
    except ir.MLIRError:
        return ""
    all_data = {"large_resource_limit": 1 << 62}
    return module.operation.get_asm(enable_debug_info=True, print_generic_op_form=True, **all_data)


def bytecode(module: Any) -> bytes:
    """The bytecode of an ``ir.Module``, which carries it over to another context, locations included."""
    stream = io.BytesIO()
    module.operation.write_bytecode(stream)
    return stream.getvalue()


def _as_module(op: Any, filename: str) -> Any:
    """``op`` as a module: itself when it is one, else the only operation of a new one.

    The bindings parse a named string to an operation only, and do not convert that to an ``ir.Module``; moving
    the operations at its top into one is cheap.
    """
    if op.name != "builtin.module":
        module = ir.Module.create(ir.Location.file(filename, 0, 0, op.context))
        module.body.append(op)
        return module
    module = ir.Module.create(op.location)
    for name, attribute in op.attributes.items():
        module.operation.attributes[name] = attribute
    for inner in children(op):
        module.body.append(inner)
    return module
