"""What programs say of places in the words of XLA and MLIR, as ``device.scope`` and ``device.on_device``.

docs/placing.md has the table. What cannot be read, or says nothing of one device, is a remark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from devscope.dialects.device import PLACED_BY_ATTR, SCOPE_ATTR, ScopeAttr
from devscope.dialects.target import device_types
from devscope.errors import SourceLocation
from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.interop.diagnostics import decode_location
from devscope.lowering.mlir_util import Builder

MARKS = (
    b"_xla",
    b"annotate_device_placement",
    b"MoveTo",
    b"mhlo.sharding",
    b"mhlo.memory_kind",
    b"sdy.mesh",
    b"dlti.",
)
"""What a program's text or bytecode has somewhere that has a hint."""

_FRONTEND, _SHARDING, _MEMORY = "mhlo.frontend_attributes", "mhlo.sharding", "mhlo.memory_kind"
_COMPUTE, _BUFFER, _SDY = "_xla_compute_type", "_xla_buffer_placement", "xla.sdy.sharding"
_SYSTEM = "dlti.target_system_spec"
_HOST = "cpu:0"
_KINDS = {"pinned_host": _HOST, "unpinned_host": _HOST, "host": _HOST, "device": ""}
"""Memories, and the devices that they are of; the empty one is the program's."""
_CALLS = {"MoveToHost": "host", "MoveToDevice": "device", "PinToDevice": "device"}
_MAXIMAL = re.compile(r"\{?\s*(?:maximal device=([0-9]+)|devices=\[(?:1,?)+\]<?=?\[?([0-9]+)\]?)[^0-9]*\}?")
_OF_MESH = re.compile(r"@(\w+)")
_ONE = re.compile(r"(\w+) = #?(?:sdy\.)?mesh<\[\](?:, device_ids=\[([0-9]+)\])?>")
_DEVICE = re.compile(r'"([^"]+)" = #dlti\.target_device_spec<')
_ID = re.compile(r'"(?:dlti\.)?device_id" = ([0-9]+)')

Report = Callable[[str, SourceLocation | None], None]


def read_hints(module: Any, default: str, devices: Sequence[str], report: Report) -> None:
    """Make scopes of the hints in an ``ir.Module``, in place.

    ``default``: the program's device, unless ``devices`` says what numbers mean: then the first of them.
    ``report`` gets what cannot be read, and where.
    """
    _Hints(module, default, devices, report).run()


class _Hints:
    def __init__(self, module: Any, default: str, devices: Sequence[str], report: Report) -> None:
        self._module, self._report = module, report
        self._default = devices[0] if devices else default
        self._numbers: Mapping[int, str] = dict(enumerate(devices)) or self._described() or {0: default}
        self._meshes = self._one_device_meshes()
        self._said: set[str] = set()

    def run(self) -> None:
        for op in mlir_util.walk(self._module.operation):
            if op.name == "func.func":
                self._signature(op)
            elif op.name == "stablehlo.custom_call":
                self._call(op)
            else:
                self._operation(op)

    # What a program says of its devices

    def _described(self) -> dict[int, str]:
        """The devices of ``#dlti.target_system_spec``, by ``device_id``, else by their order."""
        attributes = self._module.operation.attributes
        if _SYSTEM not in attributes:
            return {}
        found: dict[int, str] = {}
        counts: dict[str, int] = {}
        entries = re.split(_DEVICE, str(attributes[_SYSTEM]))[1:]
        for position, (name, spec) in enumerate(zip(entries[::2], entries[1::2], strict=True)):
            device = device_called(name, counts)
            number = _ID.search(spec)
            if device:
                found[int(number[1]) if number is not None else position] = device
            else:
                self._report(f"'{name}' of '#{_SYSTEM}' is a device of no type that is known", None)
        text = ", ".join(f"{number} is {device}" for number, device in sorted(found.items()))
        if found:
            self._report(
                f"'#{_SYSTEM}' says which device has which number, and places nothing by itself: {text}", None
            )
        return found

    def _one_device_meshes(self) -> dict[str, int | None]:
        """Shardy's meshes without axes, by name: the device that they are."""
        said = _frontend(self._module.operation).get("xla.sdy.meshes", "")
        return {name: int(number) if number else None for name, number in _ONE.findall(said.replace("\\22", '"'))}

    # Which scope a hint means

    def _of_sharding(self, text: str, where: Any) -> str:
        match = _MAXIMAL.fullmatch(text)
        if match is None:
            self._remark(f"'{_SHARDING} = {_short(text)}' is not of one device: it places nothing", where)
            return ""
        return self._of_number(int(match[1] or match[2]), f"{_SHARDING} = {text}", where)

    def _of_mesh(self, text: str, where: Any) -> str:
        mesh = _OF_MESH.search(text)
        if mesh is None or mesh[1] not in self._meshes:
            self._remark(f"'{_SDY} = {_short(text)}' is not of one device: it places nothing", where)
            return ""
        number = self._meshes[mesh[1]]
        return "" if number is None else self._of_number(number, f"{_SDY} = {text}", where)

    def _of_number(self, number: int, what: str, where: Any) -> str:
        if (device := self._numbers.get(number)) is not None:
            return device
        known = ", ".join(f"{key} is {name}" for key, name in self._numbers.items())
        self._remark(
            f"'{what}' places nothing: of devices, {known}; say more: devices = [...] among the rules", where
        )
        return ""

    def _of_memory(self, kind: str, what: str, where: Any) -> str:
        if kind not in _KINDS:
            self._remark(f"'{what} = {kind}' is a memory that is not known: it places nothing", where)
            return ""
        return _KINDS[kind] or self._default

    def _of_attributes(self, op: Any) -> Iterator[tuple[str, str]]:
        """Devices that an operation is said to be on, and in which words."""
        frontend = _frontend(op)
        if (kind := frontend.get(_COMPUTE)) is not None:
            device = _HOST if kind == "host" else ""
            if not device:
                self._remark(f"'{_COMPUTE} = {kind}' is a place that is not known: it places nothing", op.location)
            yield device, f"{_COMPUTE} = {kind}"
        if _SHARDING in op.attributes and (text := _text(op.attributes[_SHARDING])) is not None:
            yield self._of_sharding(text, op.location), f"{_SHARDING} = {text}"
        if (text := frontend.get(_SDY)) is not None:
            yield self._of_mesh(text, op.location), f"{_SDY} = {text}"
        for key in frontend:
            if key.startswith("_xla") and key not in (_COMPUTE, _BUFFER):
                self._remark(f"'{key}' is not read", op.location)

    # Where it is written

    def _operation(self, op: Any) -> None:
        if _BUFFER in _frontend(op):
            self._remark(f"'{_BUFFER}' on '{op.name}' places nothing: it is read on custom calls", op.location)
        for device, said in self._of_attributes(op):
            if device and SCOPE_ATTR not in op.attributes and not self._is_call_of_placed(op):
                op.attributes[SCOPE_ATTR] = self._scope(device)
                op.attributes[PLACED_BY_ATTR] = self._string(said)

    def _is_call_of_placed(self, op: Any) -> bool:
        """Whether a call is of a function whose operations say the same."""
        if op.name != "func.call":
            return False
        callee = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
        function = next(f for f in mlir_util.functions(self._module) if mlir_util.symbol_name(f) == callee)
        return any(_COMPUTE in _frontend(inner) for inner in mlir_util.walk(function)[1:])

    def _call(self, op: Any) -> None:
        """Calls that say where their operand shall be."""
        name, frontend = ir.StringAttr(op.attributes["call_target_name"]).value, _frontend(op)
        said = list(self._of_attributes(op))
        if name == "annotate_device_placement" and _BUFFER in frontend:
            said.append(
                (self._of_memory(frontend[_BUFFER], _BUFFER, op.location), f"{_BUFFER} = {frontend[_BUFFER]}")
            )
        elif name in _CALLS:
            said.append((self._of_memory(_CALLS[name], name, op.location), name))
        elif name == "annotate_device_placement":
            self._remark(f"'{name}' without '{_BUFFER}' places nothing", op.location)
        for device, words in said:
            if device and [v.type for v in op.operands] == [v.type for v in op.results]:
                result = Builder(op).op(
                    "device.on_device",
                    [op.operands[0]],
                    [op.results[0].type],
                    {
                        "scope": self._scope(device),
                        "constrain_body": ir.BoolAttr.get(False, op.context),
                        "constrain_result": ir.BoolAttr.get(True, op.context),
                        PLACED_BY_ATTR: self._string(words),
                    },
                )
                mlir_util.replace_op(op, list(result.results))
                return

    def _signature(self, function: Any) -> None:
        for side in ("arg_attrs", "res_attrs"):
            if side in function.attributes:
                entries = [self._entry(entry, function) for entry in ir.ArrayAttr(function.attributes[side])]
                function.attributes[side] = ir.ArrayAttr.get(entries, function.context)

    def _entry(self, entry: Any, function: Any) -> Any:
        attributes = {one.name: one.attr for one in ir.DictAttr(entry)}
        read: dict[str, Callable[[str], str]] = {
            _MEMORY: lambda text: self._of_memory(text, _MEMORY, function.location),
            _SHARDING: lambda text: self._of_sharding(text, function.location),
        }
        for name, device_of in read.items():
            text = _text(attributes[name]) if name in attributes else None
            if text is not None and (device := device_of(text)) and SCOPE_ATTR not in attributes:
                attributes[SCOPE_ATTR] = self._scope(device)
                attributes[PLACED_BY_ATTR] = self._string(f"{name} = {text}")
        return ir.DictAttr.get(attributes, function.context)

    def _scope(self, device: str) -> Any:
        return ir.Attribute.parse(str(ScopeAttr.parse_text(device)), self._module.context)

    def _string(self, text: str) -> Any:
        return ir.StringAttr.get(text, self._module.context)

    def _remark(self, text: str, location: Any) -> None:
        """Once for all operations that say the same."""
        if text not in self._said:
            self._said.add(text)
            self._report(text, decode_location(location))


def device_called(name: str, counts: dict[str, int]) -> str:
    """The device that others call ``"CPU"``, ``"GPU"`` or ``"opencl:1"``; empty if nobody knows it.

    ``counts`` is how many there were of each type, for names without a number.
    """
    kind, _, number = name.lower().partition(":")
    kind = "opencl" if kind == "gpu" else kind
    if kind not in device_types() or not (number or "0").isdigit():
        return ""
    place = counts.get(kind, 0)
    counts[kind] = place + 1
    return _HOST if kind == "cpu" else f"{kind}:{number or place}"


def _frontend(op: Any) -> dict[str, str]:
    if _FRONTEND not in op.attributes:
        return {}
    entries = ((one.name, _text(one.attr)) for one in ir.DictAttr(op.attributes[_FRONTEND]))
    return {name: text for name, text in entries if text is not None}


def _text(attribute: Any) -> str | None:
    """None for what is no text."""
    return (
        ir.StringAttr(attribute).value_bytes.decode(errors="replace")
        if isinstance(attribute, ir.StringAttr)
        else None
    )


def _short(text: str) -> str:
    shown = text if text.isprintable() else repr(text)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."
