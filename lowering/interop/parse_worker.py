"""The process in which `parse_apart` has MLIR parse: a source from stdin; pickled, what to read in place of it.

That is bytecode for bytecode, None for text, or a ParseError.
"""

import os
import pickle
import sys
from typing import Any

from devscope.errors import ParseError
from devscope.lowering.interop.artifacts import parse
from devscope.lowering.interop.bindings import ir
from devscope.lowering.interop.parsing import BYTECODE_MAGIC, bytecode, make_mlir_context


def _reread(data: bytes, filename: str, context: Any) -> Any:
    """The module in bytecode or an artifact that JAX's bindings read, or None."""
    from devscope.lowering.interop.other_bindings import reread_bytecode

    if (read := reread_bytecode(data)) is None:
        return None
    try:
        return parse(read, filename, context)
    except ParseError:
        return None


def _answer(data: bytes, filename: str) -> bytes | ParseError | None:
    context = make_mlir_context()
    try:
        module = parse(data, filename, context)
    except ParseError as error:
        if data.startswith(BYTECODE_MAGIC) and (module := _reread(data, filename, context)) is not None:
            return bytecode(module)
        # Text is parsed again by the process that asks, whose message is as good.
        return error if data.startswith(BYTECODE_MAGIC) else None

    def look(op: Any) -> Any:
        names.add(op.name)
        return ir.WalkResult.ADVANCE

    names: set[str] = set()
    module.operation.walk(look)
    return bytecode(module) if data.startswith(BYTECODE_MAGIC) else None


if __name__ == "__main__":
    answer = pickle.dumps(_answer(sys.stdin.buffer.read(), sys.argv[1]))
    sys.stdout.buffer.write(answer)
    sys.stdout.buffer.flush()
    os._exit(0)
