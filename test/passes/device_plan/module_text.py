"""Modules from and to text, with short names for scopes."""

from __future__ import annotations

import io
import re

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.parser import Parser
from xdsl.printer import Printer

from devscope.dialects.context import make_context

_SCOPE = re.compile(r"#(any|[a-z]+)([0-9]*)(?:@([A-Za-z.]+))?(?![A-Za-z0-9_.<])")


def expand(text: str) -> str:
    """Write ``#gpu0@A`` in full: gpu is cuda, dev is opencl, any is open; ``!t`` is a tensor type."""

    def scope(match: re.Match[str]) -> str:
        kind = {"gpu": "cuda", "dev": "opencl", "any": ""}.get(match[1], match[1])
        return f'#device.scope<"{kind}", {match[2] or -1} : i64, "", "{match[3] or ""}">'

    return _SCOPE.sub(scope, text).replace("!t", "tensor<5x7xf32>")


def parse(text: str) -> ModuleOp:
    return Parser(make_context(), expand(text), "<test>").parse_module()


def generic(module: Operation) -> str:
    """An operation in generic form: xDSL's custom form leaves out the attributes of declarations' arguments."""
    stream = io.StringIO()
    Printer(stream, print_generic_format=True).print_op(module)
    return stream.getvalue()
