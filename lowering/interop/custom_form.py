"""The custom forms of device operations and of Shardy in text that MLIR reads and prints.

MLIR knows the dialect through IRDL, which has no assembly formats: it reads and prints the generic form only.
What is read here is what xDSL reads::

    %1 = device.device_copy %0 from #cpu0 to #opencl0 : tensor<4xf32>
    %2 = device.on_device %1 on #opencl0 {constrain_result = true} : tensor<4xf32>

Both directions are a rewriting of the text. `device.region` and `device.launch`, which have regions, and
operations with further attributes are left in generic form.

JAX writes two operations of Shardy, which the bindings lack, also into programs of one device: there a sharding
constraint is what it constrains, StableHLO's call of that name, and a mesh is nothing.
"""

import re

STRING = r'"(?:[^"\\\n]|\\.)*"'
_INNER = rf'<(?:->|{STRING}|[^"<>])*>'
BRACKETED = rf'(?:<(?:->|{STRING}|[^"<>]|{_INNER})*>)?'
_VALUE = r"%[\w$.-]+(?:#\d+)?"
_SCOPE = rf"#[\w$.-]+{BRACKETED}"
_TYPE = rf"!?[A-Za-z_][\w$.-]*{BRACKETED}"
_FLAGS = r"constrain_(?:body|result) = (?:true|false)"

_CUSTOM = re.compile(
    rf"{STRING}|//[^\n]*|\b(?P<name>device\.(?:device_copy|on_device))\s+(?P<operand>{_VALUE})"
    rf"\s+(?:from\s+(?P<src>{_SCOPE})\s+to\s+(?P<dst>{_SCOPE})|on\s+(?P<scope>{_SCOPE}))"
    rf"\s*(?P<more>\{{[^{{}}]*\}})?\s*:\s*(?P<type>{_TYPE})"
    rf"|^\s*(?P<mesh>sdy\.mesh @[^\n]*)"
    rf"|\bsdy\.sharding_constraint\s+(?P<sharded>{_VALUE})\s*{BRACKETED}\s*:\s*(?P<of>{_TYPE})",
    re.MULTILINE,
)
# As MLIR prints them: an operation a line, attributes in the order of their names.
_END = r"(?= loc\(|$)"
_COPY = re.compile(
    rf'^( *%\w+ = )"device\.device_copy"\(({_VALUE})\) \{{dst = ({_SCOPE}), src = ({_SCOPE})\}}'
    rf" : \(({_TYPE})\) -> \5{_END}",
    re.MULTILINE,
)
_ON_DEVICE = re.compile(
    rf'^( *%\w+ = )"device\.on_device"\(({_VALUE})\) \{{((?:{_FLAGS}, )*)scope = ({_SCOPE})\}}'
    rf" : \(({_TYPE})\) -> \5{_END}",
    re.MULTILINE,
)


def to_custom(text: str) -> str:
    """Text that MLIR printed, with the custom forms."""
    if '"device.' not in text:
        return text
    text = _COPY.sub(r"\1device.device_copy \2 from \4 to \3 : \5", text)
    return _ON_DEVICE.sub(_on_device, text)


def _on_device(match: re.Match[str]) -> str:
    result, operand, flags, scope, type_ = match.groups()
    attributes = f" {{{flags[:-2]}}}" if flags else ""
    return f"{result}device.on_device {operand} on {scope}{attributes} : {type_}"


def to_generic(text: str) -> str:
    """The text with the generic forms, which MLIR reads; every line keeps its number."""
    return _CUSTOM.sub(_generic, text)


def is_shardy(message: str) -> bool:
    """Whether MLIR says that it does not know Shardy."""
    return "`sdy'" in message


def _generic(match: re.Match[str]) -> str:
    if match["mesh"] or match["sharded"]:
        return _of_shardy(match) + "\n" * match[0].count("\n")
    name, operand, type_ = match["name"], match["operand"], match["type"]
    given = [f"{key} = {match[key]}" for key in ("src", "dst", "scope") if match[key]]
    if len(given) != {"device.device_copy": 2, "device.on_device": 1}.get(name):
        return match[0]
    more = (match["more"] or "{}")[1:-1].strip()
    attributes = ", ".join(filter(None, [*given, more]))
    return f'"{name}"({operand}) {{{attributes}}} : ({type_}) -> {type_}' + "\n" * match[0].count("\n")


def _of_shardy(match: re.Match[str]) -> str:
    if match["mesh"]:
        return ""
    call = '{call_target_name = "Sharding"}'
    return f'"stablehlo.custom_call"({match["sharded"]}) {call} : ({match["of"]}) -> {match["of"]}'
