"""The passes over xDSL IR. Each is imported when a tool first asks for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.passes import ModulePass


def get_all_passes() -> dict[str, Callable[[], type[ModulePass]]]:
    """Pass name to a function that imports and returns the pass, in alphabetical order."""

    def device_canonicalize() -> type[ModulePass]:
        from devscope.passes.device_canonicalize import DeviceCanonicalizePass

        return DeviceCanonicalizePass

    def device_overlap() -> type[ModulePass]:
        from devscope.passes.device_overlap import DeviceOverlapPass

        return DeviceOverlapPass

    def device_pipeline_loops() -> type[ModulePass]:
        from devscope.passes.device_pipeline_loops import DevicePipelineLoopsPass

        return DevicePipelineLoopsPass

    def device_plan() -> type[ModulePass]:
        from devscope.passes.device_plan import DevicePlanPass

        return DevicePlanPass

    def device_split() -> type[ModulePass]:
        from devscope.passes.device_split import DeviceSplitPass

        return DeviceSplitPass

    def device_verify() -> type[ModulePass]:
        from devscope.passes.device_verify import DeviceVerifyPass

        return DeviceVerifyPass

    return {
        "device-canonicalize": device_canonicalize,
        "device-overlap": device_overlap,
        "device-pipeline-loops": device_pipeline_loops,
        "device-plan": device_plan,
        "device-split": device_split,
        "device-verify": device_verify,
    }
