"""The passes over xDSL IR. Each is imported when a tool first asks for it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.passes import ModulePass

_PASSES = {
    "device-bind-target": ("devscope.passes.device_bind_target", "DeviceBindTargetPass"),
    "device-canonicalize": ("devscope.passes.device_canonicalize", "DeviceCanonicalizePass"),
    "device-chunk-copies": ("devscope.passes.device_chunk_copies", "DeviceChunkCopiesPass"),
    "device-inline": ("devscope.passes.border.inline", "DeviceInlinePass"),
    "device-merge": ("devscope.passes.border.equal", "DeviceMergePass"),
    "device-move-copies": ("devscope.passes.device_move_copies", "DeviceMoveCopiesPass"),
    "device-overlap": ("devscope.passes.device_overlap", "DeviceOverlapPass"),
    "device-pipeline-loops": ("devscope.passes.device_pipeline_loops", "DevicePipelineLoopsPass"),
    "device-plan": ("devscope.passes.device_plan", "DevicePlanPass"),
    "device-sccp": ("devscope.passes.border.constants", "DeviceSccpPass"),
    "device-split": ("devscope.passes.device_split", "DeviceSplitPass"),
    "device-unused": ("devscope.passes.border.unused", "DeviceUnusedPass"),
    "device-verify": ("devscope.passes.device_verify", "DeviceVerifyPass"),
    "device-verify-split": ("devscope.passes.device_verify_split", "DeviceVerifySplitPass"),
}
"""Per pass, in alphabetical order, its module and class."""


def get_all_passes() -> dict[str, Callable[[], type[ModulePass]]]:
    """Pass name to a function that imports and returns the pass, in alphabetical order."""
    return {name: partial(_load, *place) for name, place in _PASSES.items()}


def _load(module: str, name: str) -> type[ModulePass]:
    from xdsl.passes import ModulePass

    found = getattr(import_module(module), name)
    assert issubclass(found, ModulePass)
    return found
