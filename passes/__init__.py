"""The passes over xDSL IR. Each is imported when a tool first asks for it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.passes import ModulePass

    from devscope.analysis.manager import AnalysisManager

_PASSES = {
    "device-bind-target": ("devscope.passes.device_bind_target", "DeviceBindTargetPass"),
    "device-canonicalize": ("devscope.passes.device_canonicalize", "DeviceCanonicalizePass"),
    "device-chunk-copies": ("devscope.passes.device_chunk_copies", "DeviceChunkCopiesPass"),
    "device-inline": ("devscope.passes.device_inline", "DeviceInlinePass"),
    "device-merge": ("devscope.passes.device_merge", "DeviceMergePass"),
    "device-move-copies": ("devscope.passes.device_move_copies", "DeviceMoveCopiesPass"),
    "device-overlap": ("devscope.passes.device_overlap", "DeviceOverlapPass"),
    "device-pipeline-loops": ("devscope.passes.device_pipeline_loops", "DevicePipelineLoopsPass"),
    "device-plan": ("devscope.passes.device_plan", "DevicePlanPass"),
    "device-sccp": ("devscope.passes.device_sccp", "DeviceSccpPass"),
    "device-split": ("devscope.passes.device_split", "DeviceSplitPass"),
    "device-unused": ("devscope.passes.device_unused", "DeviceUnusedPass"),
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


def simplify_across_functions(analyses: AnalysisManager) -> bool:
    """Run the interprocedural passes on a split module, in place; whether it has device functions at all.

    Facts, dead values and equal code on the host simplify devices, and the other way round. Raises LoweringError
    for a recursive function that a target would have to inline.
    """
    # Imported here because programs for the host alone do without.
    from devscope.analysis.placed_functions import functions_on_devices
    from devscope.analysis.symbols import Symbols
    from devscope.passes.device_inline import DeviceInlinePass
    from devscope.passes.device_merge import DeviceMergePass
    from devscope.passes.device_sccp import DeviceSccpPass
    from devscope.passes.device_unused import DeviceUnusedPass

    if not functions_on_devices(analyses.get(Symbols)):
        return False
    for one in (DeviceInlinePass(), DeviceSccpPass(), DeviceUnusedPass(), DeviceMergePass()):
        analyses.run(one)
    return True
