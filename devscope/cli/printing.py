"""Modules as text, in which each distinct scope is named once at the top and used by its name.

``{device.scope = #device.scope<"opencl", 0 : i64, "", "">}`` becomes ``{device.scope = #opencl0}`` under
``#opencl0 = #device.scope<"opencl", 0 : i64, "", "">``. MLIR has no hook that lets a dialect loaded through
IRDL choose aliases, hence this pass over the text. It parses back to the same module: what stands in string
literals, comments and the bodies of other dialects' attributes is left as it is. (The body of an unregistered
dialect's attribute is opaque text to MLIR: an alias in there would never be resolved.)
"""

import re
from typing import Any

from devscope.lowering.interop.custom_form import to_custom
from devscope.lowering.interop.mixed_types import without_twins

_SCOPE = "#device.scope<"
_STRING = r'"(?:[^"\\]|\\.)*"'
_TOKEN = re.compile(rf"{_STRING}|//[^\n]*|[#!][A-Za-z_][\w$.-]*<", re.DOTALL)
_BRACKET = re.compile(rf"{_STRING}|->|[<\[({{]|[>\])}}]", re.DOTALL)
_FIELDS = re.compile(r'#device\.scope<"(.*?)", (-?\d+) : i64, .*, "(.*?)">', re.DOTALL)
_USED_NAME = re.compile(r"#([A-Za-z_][\w$-]*)")


def module_text(module: Any, generic: bool = False, locations: bool = False, aliases: bool = True) -> str:
    """The text of an MLIR module, ending in a newline, that devscope parses back to the same module."""
    text: str = module.operation.get_asm(print_generic_op_form=generic, enable_debug_info=locations)
    text = without_twins(text.removesuffix("\n") + "\n")
    if not generic:
        text = to_custom(text)
    return add_scope_aliases(text) if aliases else text


def add_scope_aliases(text: str) -> str:
    """The same module with an alias definition per distinct scope in front."""
    if _SCOPE not in text:
        return text
    taken = set(_USED_NAME.findall(text))
    aliases: dict[str, str] = {}
    pieces: list[str] = []
    copied = position = 0
    while (match := _TOKEN.search(text, position)) is not None:
        position = match.end()
        if not match.group().endswith("<") or match.group()[0] not in "#!":
            continue
        position = _close(text, position)
        if match.group() == _SCOPE:
            scope = text[match.start() : position]
            if scope not in aliases:
                aliases[scope] = _fresh_name(scope, taken)
            pieces += (text[copied : match.start()], "#", aliases[scope])
            copied = position
    pieces.append(text[copied:])
    definitions = [f"#{name} = {scope}\n" for scope, name in aliases.items()]
    return "".join(definitions + pieces)


def _close(text: str, position: int) -> int:
    """The position after the bracket that closes the one just before ``position``."""
    depth = 1
    for match in _BRACKET.finditer(text, position):
        token = match.group()
        if token in "<[({":
            depth += 1
        elif token in ">])}":
            depth -= 1
            if depth == 0:
                return match.end()
    return len(text)


def _fresh_name(scope: str, taken: set[str]) -> str:
    """A name from the scope's own fields, such as ``opencl0`` or ``cuda1_shared``, that is not yet used."""
    fields = _FIELDS.fullmatch(scope)
    base = "scope"
    if fields is not None:
        kind, number, memory = fields.groups()
        base = (kind or "any") + (number if int(number) >= 0 else "") + (f"_{memory}" if memory else "")
    base = re.sub(r"\W", "_", base, flags=re.ASCII)
    if not base[0].isalpha():
        base = f"scope_{base}"
    name, suffix = base, 0
    while name in taken:
        suffix += 1
        name = f"{base}_{suffix}"
    taken.add(name)
    return name
