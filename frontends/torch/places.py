"""Where in the user's program a node of a graph is."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Any

_HERE = os.path.dirname(__file__)
_FRAME = re.compile(r'File "([^"]+)", line ([0-9]+), in ')
_INDEX = re.compile(r"\['?([^'\]]+)'?\]")
_VARIABLE = re.compile(r"^(L\.(self|fn)(?![^.])|[LG])\.?")
"""Where ``torch.compile`` finds a module: in a local variable, or a global one; itself is ``self`` or ``fn``."""
_OWN_FRAMES = re.compile(r"[/\\]torch[/\\](nn|_|functional|utils|fx|export|autograd|masked|overrides)")


def described(node: Any) -> str:
    """Where in the user's program a node is, for messages."""
    frame, path = frame_of(node), module_path(node)
    place = ", ".join([*([f"in {path}"] if path else ()), *([":".join(frame)] if frame else ())])
    return place and f" ({place})"


def frame_of(node: Any) -> tuple[str, str] | None:
    """File and line of the user's code that a node is of."""
    return users_frame(_FRAME.findall(node.meta.get("stack_trace") or ""))


def users_frame(stack: Iterable[tuple[str, str]]) -> tuple[str, str] | None:
    """The innermost of files and lines that is the user's code; else the innermost of PyTorch's."""
    frames = [one for one in stack if _HERE not in one[0] and not one[0].startswith("<eval_with_key>")]
    own = [one for one in frames if not _OWN_FRAMES.search(one[0])] or frames[-1:]
    return own[-1] if own else None


def module_path(node: Any) -> str:
    """The path of the module that a node is of, as ``named_modules`` has it; empty for the outermost."""
    stack = node.meta.get("nn_module_stack") or {}
    path = next((path for path, _ in reversed(list(stack.values()))), "")
    if path.startswith("_empty_nn_module_stack"):
        return ""
    # Of ``torch.compile``: ``L['self'].layers.0``, and ``G['nets'][1].head`` for ``nets.1.head``.
    return _VARIABLE.sub("", _INDEX.sub(r".\1", path)) if _INDEX.search(path) else path
