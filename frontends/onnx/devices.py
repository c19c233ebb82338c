"""``device_configurations`` of nodes (IR version 11): read into locations, and written from plans."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from devscope.dialects.location import KIND_MARK, PRAGMA
from devscope.errors import DevscopeWarning
from devscope.lowering.placement_hints import device_called

IR_VERSION = 11
_CONFIGURATION = "devscope"
_NAMED = re.compile(r'loc\("([^"\\]*)"\)')


def devices_of(model: Any) -> dict[str, str]:
    """The devices of a model's nodes, by name of node. What is not of one known device is a warning."""
    configurations = {one.name: list(one.device) for one in model.configuration}
    found: dict[str, str] = {}
    for node in model.graph.node:
        for said in node.device_configurations:
            numbers = {number for spec in said.sharding_spec for number in spec.device}
            if not numbers and said.HasField("pipeline_stage"):
                numbers = {said.pipeline_stage}
            names = configurations.get(said.configuration_id, [])
            device = _device(names, numbers)
            if device and node.name:
                found.setdefault(node.name, device)
            elif not device:
                what = f"'{said.configuration_id}' of node '{node.name}'"
                text = f"the device configuration {what} is not of one device that is known: it places nothing"
                warnings.warn(DevscopeWarning(text), stacklevel=2)
    return found


def _device(names: Sequence[str], numbers: set[int]) -> str:
    counts: dict[str, int] = {}
    known = [device_called(name, counts) for name in names]
    places = {known[number] for number in numbers if 0 <= number < len(known)}
    return places.pop() if len(places) == len(numbers) == 1 else ""


def location_of(node: Any, device: str | None, outer: str = "") -> str:
    """A node's name, its operator, its layer, and the device that the model has it on, around what calls it.

    The layer is the metadata `layer_ann`, by which ONNX Runtime's ``session.layer_assignment_settings`` places nodes.
    """
    said = f"{PRAGMA}({device}, device_configurations)" if device else ""
    layer = next((entry.value for entry in node.metadata_props if entry.key == "layer_ann"), "")
    location = outer
    for name in filter(None, (said, layer, f"{KIND_MARK}{node.op_type}", node.name)):
        location = f'"{_escaped(name)}"({location})' if location else f'"{_escaped(name)}"'
    return location


def located(text: str, model: Any) -> str:
    """MLIR text in which nodes' locations are their names, with locations that say all of them."""
    nodes, devices = {node.name: node for node in model.graph.node if node.name}, devices_of(model)

    def more(match: re.Match[str]) -> str:
        node = nodes.get(match[1])
        return f"loc({location_of(node, devices.get(match[1]))})" if node is not None else match[0]

    return _NAMED.sub(more, text)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")


def annotate(model: Any, devices: Mapping[str, str]) -> None:
    """Write the devices of nodes, by name of node, into a model."""
    names = sorted(set(devices.values()))
    kept = [one for one in model.configuration if one.name != _CONFIGURATION]
    del model.configuration[:]
    model.configuration.extend(kept)
    model.configuration.add(name=_CONFIGURATION, num_devices=len(names), device=names)
    model.ir_version = max(model.ir_version, IR_VERSION)
    for node in model.graph.node:
        others = [one for one in node.device_configurations if one.configuration_id != _CONFIGURATION]
        del node.device_configurations[:]
        if (device := devices.get(node.name)) is not None:
            said = node.device_configurations.add(configuration_id=_CONFIGURATION)
            for output in node.output:
                said.sharding_spec.add(tensor_name=output, device=[names.index(device)])
        node.device_configurations.extend(others)  # the first one counts
