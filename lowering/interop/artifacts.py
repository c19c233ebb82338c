"""StableHLO's portable artifacts: bytecode of its versioned dialect VHLO, which any later StableHLO reads."""

from __future__ import annotations

from typing import Any

from devscope.errors import ParseError
from devscope.lowering.interop.bindings import load_optional
from devscope.lowering.interop.parsing import BYTECODE_MAGIC, parse_text

_PRODUCER = b"StableHLO_v"
_HEAD_BYTES = len(BYTECODE_MAGIC) + 10 + len(_PRODUCER)


def is_portable_artifact(data: bytes) -> bool:
    """Whether bytes are MLIR bytecode that StableHLO wrote: behind the magic, a version, then the producer."""
    return data.startswith(BYTECODE_MAGIC) and _PRODUCER in data[:_HEAD_BYTES]


def parse(source: str | bytes, name: str, context: Any) -> Any:
    """The ``ir.Module`` in text, bytecode or an artifact, in ``context``. Raises ParseError."""
    if isinstance(source, bytes) and is_portable_artifact(source):
        return read_artifact(source, name, context)
    return parse_text(source, name, context)


def read_artifact(data: bytes, name: str, context: Any) -> Any:
    """The ``ir.Module`` in an artifact, in ``context``. Raises ParseError."""
    extension = load_optional("_mlir_libs._stablehlo") or load_optional("dialects.stablehlo")
    if extension is None:
        raise ParseError(f"{name} is StableHLO, which these MLIR bindings lack")
    errors: list[str] = []

    def note(diagnostic: Any) -> bool:
        errors.append(diagnostic.message)
        return True

    handler = context.attach_diagnostic_handler(note)
    try:
        return extension.deserialize_portable_artifact(context, data)
    except Exception as error:  # the bindings raise several kinds
        what = errors[0] if errors else str(error)
        raise ParseError(
            f"{name} is not a StableHLO artifact that can be read: {what}",
            notes=[f"StableHLO {extension.get_current_version()} and older artifacts are"],
        ) from None
    finally:
        handler.detach()
