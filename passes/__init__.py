"""The passes over xDSL IR. Each is imported when a tool first asks for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.passes import ModulePass


def get_all_passes() -> dict[str, Callable[[], type[ModulePass]]]:
    """Pass name to a function that imports and returns the pass, in alphabetical order."""

    def device_bind_target() -> type[ModulePass]:
        from devscope.passes.device_bind_target import DeviceBindTargetPass

        return DeviceBindTargetPass

    def device_canonicalize() -> type[ModulePass]:
        from devscope.passes.device_canonicalize import DeviceCanonicalizePass

        return DeviceCanonicalizePass

    def device_inline() -> type[ModulePass]:
        from devscope.passes.border.inline import DeviceInlinePass

        return DeviceInlinePass

    def device_merge() -> type[ModulePass]:
        from devscope.passes.border.equal import DeviceMergePass

        return DeviceMergePass

    def device_plan() -> type[ModulePass]:
        from devscope.passes.device_plan import DevicePlanPass

        return DevicePlanPass

    def device_sccp() -> type[ModulePass]:
        from devscope.passes.border.constants import DeviceSccpPass

        return DeviceSccpPass

    def device_split() -> type[ModulePass]:
        from devscope.passes.device_split import DeviceSplitPass

        return DeviceSplitPass

    def device_unused() -> type[ModulePass]:
        from devscope.passes.border.unused import DeviceUnusedPass

        return DeviceUnusedPass

    def device_verify() -> type[ModulePass]:
        from devscope.passes.device_verify import DeviceVerifyPass

        return DeviceVerifyPass

    def device_verify_split() -> type[ModulePass]:
        from devscope.passes.device_verify_split import DeviceVerifySplitPass

        return DeviceVerifySplitPass

    return {
        "device-bind-target": device_bind_target,
        "device-canonicalize": device_canonicalize,
        "device-inline": device_inline,
        "device-merge": device_merge,
        "device-plan": device_plan,
        "device-sccp": device_sccp,
        "device-split": device_split,
        "device-unused": device_unused,
        "device-verify": device_verify,
        "device-verify-split": device_verify_split,
    }
